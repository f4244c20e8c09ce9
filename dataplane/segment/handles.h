/* SPDX-License-Identifier: Apache-2.0
 * Tables of {index, generation} handles: the control thread's way from a number that a client or worker sent to the
 * object it means, or to nothing when it is stale. Grows on demand up to its bound; indices stay small and dense,
 * because workers keep tables of the same indices. Control thread. */
#ifndef DP_SEGMENT_HANDLES_H
#define DP_SEGMENT_HANDLES_H

#include <stdint.h>

#include "common/ids.h"
#include "common/status.h"

struct dp_handle_slot {
	void *object;        /* NULL = free */
	uint32_t generation; /* of the object, or of the next one; never 0 */
	uint32_t next_free;
};

struct dp_handles {
	struct dp_handle_slot *slots;
	uint32_t cap, max;   /* slots allocated, bound */
	uint32_t used;
	uint32_t free_head;  /* UINT32_MAX = none */
};

void dp_handles_init(struct dp_handles *t, uint32_t max);
void dp_handles_fini(struct dp_handles *t); /* objects are the callers' */

/* TN_LIMIT at the bound, TN_NO_MEMORY. `object` is not NULL and stays the caller's. */
TN_MUST_USE tn_status dp_handles_add(struct dp_handles *t, void *object, tn_handle *handle_out);
/* The object, or NULL for a handle that is stale or was never given out. */
void *dp_handles_get(const struct dp_handles *t, tn_handle h);
/* The same, and the handle is stale from now on. */
void *dp_handles_remove(struct dp_handles *t, tn_handle h);
/* Object in slot index < cap, or NULL: to walk over all. */
TN_INLINE void *dp_handles_at(const struct dp_handles *t, uint32_t index) { return t->slots[index].object; }

#endif
