/* SPDX-License-Identifier: Apache-2.0
 * The order in which blocks of a pool are used: a permutation drawn from the seed, walked round and round, so that a
 * cold pool is never hot by accident (no prefetcher follows it, a block comes back only after all others). Also the
 * bytes that verify mode writes. One owner thread per walk. */
#ifndef TB_WALK_H
#define TB_WALK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tb_walk {
	uint32_t *order; /* owned */
	uint32_t cnt, at;
};

/* cnt >= 1 blocks in an order that only the seed decides. false: no memory. */
bool tb_walk_init(struct tb_walk *w, uint32_t cnt, uint64_t seed);
/* Accepts a zeroed struct. */
void tb_walk_free(struct tb_walk *w);

static inline uint32_t tb_walk_next(struct tb_walk *w)
{
	uint32_t block = w->order[w->at];

	w->at = w->at + 1 == w->cnt ? 0 : w->at + 1;
	return block;
}

/* Fill with / compare to the bytes that `key` stands for: each word depends on the key and its place. */
void tb_pattern_fill(void *to, size_t bytes, uint64_t key);
/* The offset of the first wrong byte, or `bytes` when all are right. */
size_t tb_pattern_check(const void *at, size_t bytes, uint64_t key);

#endif
