/* SPDX-License-Identifier: Apache-2.0
 * The table behind heat.h: two-way associative. A block that lost its row to others is taken for cold, which costs
 * a slower copy, never a wrong one. Pure. */
#include "dataplane/transport/shm/heat.h"

#include "common/bits.h"
#include "common/compiler.h"

#define BLOCK_SHIFT_MIN 12u
#define BLOCK_SHIFT_MAX 18u

void dp_heat_init(struct dp_heat *h, uint64_t near_bytes, uint64_t min_bytes)
{
	*h = (struct dp_heat){ .near_bytes = near_bytes, .block_shift = BLOCK_SHIFT_MIN };
	while (h->block_shift < BLOCK_SHIFT_MAX && UINT64_C(4) << h->block_shift <= min_bytes)
		h->block_shift++;
}

/* The block's row, or the row that it gets. */
static struct dp_heat_row *row_of(struct dp_heat *h, uint64_t block)
{
	/* Neighbours in different sets, and pools at round distances from each other, too. */
	struct dp_heat_row *set = h->rows[(block ^ block >> 9 ^ block >> 18) & (DP_HEAT_SETS - 1)];
	if (set[0].block == block && set[0].at != 0)
		return &set[0];
	if (set[1].block == block && set[1].at != 0)
		return &set[1];
	return set[0].at <= set[1].at ? &set[0] : &set[1];
}

bool dp_heat_touch(struct dp_heat *h, uint64_t address, uint64_t bytes)
{
	bool near = true;
	if (bytes == 0 || bytes > h->near_bytes)
		return false;
	uint64_t last = (address + bytes - 1) >> h->block_shift;
	for (uint64_t block = address >> h->block_shift; block <= last; block++) {
		struct dp_heat_row *r = row_of(h, block);
		near = near && r->at != 0 && r->block == block && h->moved_bytes + 1 - r->at <= h->near_bytes;
		r->block = block;
		r->at = h->moved_bytes + 1; /* 0 is an empty row */
	}
	return near;
}
