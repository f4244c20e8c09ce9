/* SPDX-License-Identifier: Apache-2.0
 * Permutations of blocks, and the content that verify mode writes. See walk.h. */
#include "perf/tentbench/walk.h"

#include <stdlib.h>
#include <string.h>

#include "common/compiler.h"
#include "common/rand.h"

bool tb_walk_init(struct tb_walk *w, uint32_t cnt, uint64_t seed)
{
	struct tn_rand rand;
	uint32_t *order = calloc(cnt, sizeof *order);

	if (order == NULL)
		return false;
	tn_rand_seed(&rand, seed);
	for (uint32_t i = 0; i < cnt; i++) { /* Fisher-Yates, inside out */
		uint32_t j = (uint32_t)tn_rand_below(&rand, (uint64_t)i + 1);
		order[i] = order[j];
		order[j] = i;
	}
	*w = (struct tb_walk){ .order = order, .cnt = cnt };
	return true;
}

void tb_walk_free(struct tb_walk *w)
{
	free(w->order);
	*w = (struct tb_walk){ 0 };
}

/* splitmix64's finalizer: neighbouring words of a block have nothing in common. */
static uint64_t word_of(uint64_t key, uint64_t i)
{
	uint64_t x = key + i * UINT64_C(0x9e3779b97f4a7c15);

	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 31;
}

void tb_pattern_fill(void *to, size_t bytes, uint64_t key)
{
	uint8_t *p = to;

	for (size_t off = 0; off < bytes; off += sizeof(uint64_t)) {
		uint64_t word = word_of(key, off / sizeof word);
		memcpy(p + off, &word, TN_MIN(sizeof word, bytes - off));
	}
}

size_t tb_pattern_check(const void *at, size_t bytes, uint64_t key)
{
	const uint8_t *p = at;

	for (size_t off = 0; off < bytes; off += sizeof(uint64_t)) {
		uint64_t word = word_of(key, off / sizeof word);
		size_t n = TN_MIN(sizeof word, bytes - off);

		if (memcmp(p + off, &word, n) != 0) {
			for (size_t i = 0; i < n; i++)
				if (p[off + i] != ((const uint8_t *)&word)[i])
					return off + i;
		}
	}
	return bytes;
}
