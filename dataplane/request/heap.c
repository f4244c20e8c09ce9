/* SPDX-License-Identifier: Apache-2.0
 * The heap of times. Deadlines mostly come in ascending order, so an insert is usually one comparison; four children
 * per node keep the path short and its comparisons on one or two cache lines. One owner thread. */
#include "dataplane/request/heap.h"

#include <stdlib.h>

#include "common/assert.h"

#define ARITY 4u

TN_INLINE void put(struct dp_heap *h, uint32_t i, struct dp_heap_entry e)
{
	h->entries[i] = e;
	*(uint32_t *)(void *)((char *)e.obj + h->slot_off) = i;
}

TN_INLINE uint32_t *slot_of(const struct dp_heap *h, void *obj)
{
	return (uint32_t *)(void *)((char *)obj + h->slot_off);
}

static void sift_up(struct dp_heap *h, uint32_t i, struct dp_heap_entry e)
{
	while (i > 0) {
		uint32_t parent = (i - 1) / ARITY;
		if (h->entries[parent].at_ns <= e.at_ns)
			break;
		put(h, i, h->entries[parent]);
		i = parent;
	}
	put(h, i, e);
}

static void sift_down(struct dp_heap *h, uint32_t i, struct dp_heap_entry e)
{
	for (;;) {
		uint32_t first = i * ARITY + 1, best = first;
		if (first >= h->cnt)
			break;
		uint32_t end = TN_MIN(first + ARITY, h->cnt);
		for (uint32_t c = first + 1; c < end; c++)
			if (h->entries[c].at_ns < h->entries[best].at_ns)
				best = c;
		if (h->entries[best].at_ns >= e.at_ns)
			break;
		put(h, i, h->entries[best]);
		i = best;
	}
	put(h, i, e);
}

tn_status dp_heap_init(struct dp_heap *h, uint32_t cap, size_t slot_off)
{
	struct dp_heap_entry *entries = calloc(cap, sizeof *entries); /* pages come when used */
	if (!entries)
		return TN_NO_MEMORY;
	*h = (struct dp_heap){ .entries = entries, .cap = cap, .slot_off = slot_off };
	return TN_OK;
}

void dp_heap_destroy(struct dp_heap *h)
{
	free(h->entries);
	*h = (struct dp_heap){ 0 };
}

void dp_heap_set(struct dp_heap *h, void *obj, uint64_t at_ns)
{
	uint32_t i = *slot_of(h, obj);
	struct dp_heap_entry e = { at_ns, obj };
	if (i == DP_HEAP_NONE) {
		tn_assert(h->cnt < h->cap);
		sift_up(h, h->cnt++, e);
		return;
	}
	if (at_ns < h->entries[i].at_ns)
		sift_up(h, i, e);
	else
		sift_down(h, i, e);
}

void dp_heap_remove(struct dp_heap *h, void *obj)
{
	uint32_t i = *slot_of(h, obj);
	if (i == DP_HEAP_NONE)
		return;
	*slot_of(h, obj) = DP_HEAP_NONE;
	struct dp_heap_entry last = h->entries[--h->cnt];
	if (i == h->cnt)
		return;
	if (i > 0 && last.at_ns < h->entries[(i - 1) / ARITY].at_ns)
		sift_up(h, i, last);
	else
		sift_down(h, i, last);
}
