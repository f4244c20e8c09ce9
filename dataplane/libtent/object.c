/* SPDX-License-Identifier: Apache-2.0
 * Life of a context's objects: made, restored, buried. The allowed moves stand in states.h. */
#include "dataplane/libtent/object.h"

#include <stdlib.h>
#include <string.h>

#include "common/assert.h"
#include "dataplane/libtent/context.h"

/* How many freed objects of a kind rest before the oldest is used again. */
#define REST_CNT 64

#define X(from, to, when) | LT_MOVE_BIT(LT_OBJECT_##from, LT_OBJECT_##to)
static const uint64_t allowed = UINT64_C(0) LT_OBJECT_MOVES(X);
#undef X
TN_STATIC_ASSERT((int)LT_OBJECT_STATE_CNT <= 8, "the move mask has eight states");

void lt_object_move(struct lt_object *o, enum lt_object_state next)
{
	uint32_t state = tn_load_relaxed32(&o->state);

	tn_assert(lt_move_is_allowed(allowed, state, next));
	LT_MOVE_SEEN(OBJECT, state, next);
	if (next == LT_OBJECT_GONE || next == LT_OBJECT_RESTORING || next == LT_OBJECT_FAILED)
		tn_store_relaxed64(&o->id, 0);
	/* [L1] release: whoever sees LIVE sees the id that belongs to it. */
	tn_store_release32(&o->state, next);
}

struct lt_object *lt_object_new(tent_context *ctx, enum lt_kind kind, size_t bytes)
{
	struct lt_object *o;

	if (ctx->grave_cnt[kind] >= REST_CNT) {
		o = tn_list_entry(tn_list_pop_front(&ctx->graves[kind]), struct lt_object, link);
		ctx->grave_cnt[kind]--;
		memset((char *)o + sizeof *o, 0, bytes - sizeof *o);
	} else {
		o = calloc(1, bytes);
		if (o == NULL)
			return NULL;
		tn_list_init(&o->link);
	}
	o->ctx = ctx;
	o->kind = kind;
	o->inflight = NULL;
	o->retry_ns = o->backoff_ns = 0;
	return o;
}

void lt_object_enlist(struct lt_object *o, uint64_t id)
{
	tn_store_relaxed64(&o->id, id);
	lt_object_move(o, LT_OBJECT_LIVE);
	tn_list_push_back(&o->ctx->objects[o->kind], &o->link);
}

void lt_object_bury(struct lt_object *o)
{
	tent_context *ctx = o->ctx;

	if (tn_load_relaxed32(&o->state) != LT_OBJECT_GONE)
		lt_object_move(o, LT_OBJECT_GONE);
	tn_store_relaxed32(&o->generation, tn_load_relaxed32(&o->generation) + 1);
	tn_list_unlink(&o->link);
	tn_list_push_back(&ctx->graves[o->kind], &o->link);
	ctx->grave_cnt[o->kind]++;
}
