/* SPDX-License-Identifier: Apache-2.0
 * What memories, published segments and opened segments have in common: their place in a context, the id the data
 * plane gave them, and what became of them after a restart. The id and state words are read by submitting threads
 * without a lock; everything else is under the context's lock. A freed object's storage stays with the context and is
 * reused late, so a stale handle is an error and not a fault. */
#ifndef LT_OBJECT_H
#define LT_OBJECT_H

#include <tent/tent.h>

#include "common/atomic.h"
#include "common/list.h"
#include "common/status.h"
#include "dataplane/libtent/states.h"

enum lt_kind { LT_MEMORY, LT_PUBLISHED, LT_SEGMENT, LT_KIND_CNT };

struct lt_waiter;

struct lt_object {
	struct tn_list link;    /* in the context's objects[kind] in order of creation, or in its graves[kind] */
	tent_context *ctx;
	uint32_t kind;          /* enum lt_kind; constant */
	tn_a32 generation;      /* +1 when freed */
	tn_a32 state;           /* enum lt_object_state; stored after id [L1] */
	tn_a32 fail_status;     /* FAILED: tn_status that kept it from being restored; LOST: that ended it */
	tn_a64 id;              /* the data plane's handle; 0 unless LIVE (or CLOSING or LOST and still held there) */
	/* coming back after a restart: keeper */
	struct lt_waiter *inflight;
	uint64_t retry_ns, backoff_ns;
};

/* A zeroed object of `bytes` that starts with struct lt_object, not yet in any list, state GONE. NULL: no memory.
 * Context lock held. */
struct lt_object *lt_object_new(tent_context *ctx, enum lt_kind kind, size_t bytes);
/* GONE -> LIVE: puts it in its list with the data plane's id. Context lock held. */
void lt_object_enlist(struct lt_object *o, uint64_t id);
/* Checks the move against the table (a forbidden one is our bug) and makes it. Context lock held. */
void lt_object_move(struct lt_object *o, enum lt_object_state next);
/* The object is the user's no more: its generation ends, its storage rests. Context lock held. State CLOSING, or GONE
 * for one that never was enlisted. */
void lt_object_bury(struct lt_object *o);

/* Did it end since its generation was `life`? Asked after the lock was away. */
TN_INLINE bool lt_object_is_over(const struct lt_object *o, uint32_t life)
{
	return tn_load_relaxed32(&o->generation) != life;
}

/* Is this pointer a living handle of that kind (and, with ctx, of that context)? */
TN_INLINE bool lt_object_is(const struct lt_object *o, enum lt_kind kind, const tent_context *ctx)
{
	if (o == NULL || o->kind != (uint32_t)kind || (ctx != NULL && o->ctx != ctx))
		return false;
	uint32_t state = tn_load_relaxed32(&o->state);
	return state == LT_OBJECT_LIVE || state == LT_OBJECT_RESTORING || state == LT_OBJECT_FAILED;
}

#endif
