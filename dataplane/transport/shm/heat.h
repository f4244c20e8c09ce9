/* SPDX-License-Identifier: Apache-2.0
 * A worker's guess whether a destination is still in the caches: it remembers when it last wrote each block, counted in
 * bytes moved since. What was written fewer bytes ago than the caches hold is taken for cached. Pure; one owner. */
#ifndef DP_SHM_HEAT_H
#define DP_SHM_HEAT_H

#include <stdbool.h>
#include <stdint.h>

/* Well above the number of blocks that caches hold. Two ways: a stream that passes by replaces what is older. */
#define DP_HEAT_SETS 512u /* a power of two */
#define DP_HEAT_WAYS 2u

struct dp_heat {
	uint64_t moved_bytes; /* so far; the clock */
	uint64_t near_bytes;  /* how far back a write may lie to count as cached */
	uint32_t block_shift;
	struct dp_heat_row {
		uint64_t block;   /* address >> block_shift */
		uint64_t at;      /* moved_bytes after its last write; 0 = empty row */
	} rows[DP_HEAT_SETS][DP_HEAT_WAYS];
};

/* `min_bytes`: the smallest range that will be asked about. Neighbouring ranges share at most the blocks at their ends,
 * so blocks are at most half of it. */
void dp_heat_init(struct dp_heat *h, uint64_t near_bytes, uint64_t min_bytes);
/* The range will be written now. True: all of it was written recently enough to be cached. A range larger than
 * near_bytes never is. */
bool dp_heat_touch(struct dp_heat *h, uint64_t address, uint64_t bytes);
/* Bytes were moved, to wherever. */
static inline void dp_heat_moved(struct dp_heat *h, uint64_t bytes) { h->moved_bytes += bytes; }

#endif
