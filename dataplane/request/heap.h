/* SPDX-License-Identifier: Apache-2.0
 * Times at which something must happen: a 4-ary min-heap of (time, object) with removal from the middle. The object
 * knows its place through a uint32_t inside it (deadline of a request, retry time of an owner). Times are arguments, so
 * the simulator's virtual time works the same. One owner thread. */
#ifndef DP_REQUEST_HEAP_H
#define DP_REQUEST_HEAP_H

#include <stddef.h>
#include <stdint.h>

#include "common/compiler.h"
#include "common/status.h"

#define DP_HEAP_NONE UINT32_MAX

struct dp_heap_entry { uint64_t at_ns; void *obj; };

struct dp_heap {
	struct dp_heap_entry *entries;
	uint32_t cnt, cap;
	size_t slot_off; /* where the object keeps its position */
};

/* Room for `cap` entries, untouched until used. slot_off: offset of the uint32_t in every object put in; it must hold
 * DP_HEAP_NONE while the object is outside. TN_NO_MEMORY. */
tn_status dp_heap_init(struct dp_heap *h, uint32_t cap, size_t slot_off);
void dp_heap_destroy(struct dp_heap *h); /* accepts a zeroed object */
/* Puts obj in, or moves it when it is already inside. The caller never has more than `cap` objects. */
void dp_heap_set(struct dp_heap *h, void *obj, uint64_t at_ns);
/* Takes obj out; nothing happens when it is not inside. */
void dp_heap_remove(struct dp_heap *h, void *obj);

/* Earliest time; UINT64_MAX when empty. */
TN_INLINE uint64_t dp_heap_next_ns(const struct dp_heap *h) { return h->cnt ? h->entries[0].at_ns : UINT64_MAX; }
/* The earliest object if its time has come, else NULL; it stays inside. */
TN_INLINE void *dp_heap_due(const struct dp_heap *h, uint64_t now_ns)
{
	return h->cnt && h->entries[0].at_ns <= now_ns ? h->entries[0].obj : NULL;
}

#endif
