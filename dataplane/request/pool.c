/* SPDX-License-Identifier: Apache-2.0
 * Pools of one worker. calloc of a large array gives untouched zero pages, and the free list hands out recently used
 * objects first, so an idle worker costs no memory and a busy one stays in cache. One worker. */
#include "dataplane/request/pool.h"

#include <stdlib.h>
#include <string.h>

#include "common/assert.h"
#include "dataplane/request/heap.h"

static tn_status slab_init(struct dp_slab *s, size_t bytes, uint32_t cap)
{
	char *base = calloc(cap, bytes);
	if (!base)
		return TN_NO_MEMORY;
	*s = (struct dp_slab){ .base = base, .bytes = bytes, .cap = cap };
	return TN_OK;
}

static tn_status shared_init(struct dp_slab *s, size_t bytes, uint32_t cap)
{
	tn_status st = slab_init(s, bytes, cap);
	if (st == TN_OK && !(s->held = calloc(DP_CLIENTS_MAX, sizeof *s->held)))
		st = TN_NO_MEMORY;
	return st;
}

TN_INLINE void *slab_take(struct dp_slab *s)
{
	void *obj = s->free;
	if (obj)
		memcpy(&s->free, obj, sizeof s->free);
	else if (s->used < s->cap)
		obj = s->base + (size_t)s->used++ * s->bytes;
	else
		return NULL;
	s->live++;
	return obj;
}

TN_INLINE void slab_give(struct dp_slab *s, void *obj)
{
	memcpy(obj, &s->free, sizeof s->free);
	s->free = obj;
	s->live--;
}

/* The same from a pool that clients share. */
TN_INLINE void *shared_take(struct dp_slab *s, uint32_t client)
{
	void *obj = s->held[client] < dp_pool_room(s) ? slab_take(s) : NULL;
	s->held[client] += obj != NULL;
	return obj;
}

TN_INLINE void shared_give(struct dp_slab *s, void *obj, uint32_t client)
{
	tn_assert_debug(s->held[client] > 0);
	s->held[client]--;
	slab_give(s, obj);
}

tn_status dp_pools_init(struct dp_pools *p, uint32_t worker, uint32_t requests, uint32_t notes)
{
	*p = (struct dp_pools){ .worker = worker };
	if (shared_init(&p->requests, sizeof(struct dp_request), requests) != TN_OK ||
	    slab_init(&p->owners, sizeof(struct dp_owner), requests + DP_STAGE_MOVING_MAX) != TN_OK ||
	    slab_init(&p->attempts, sizeof(struct dp_attempt), requests + DP_STAGE_MOVING_MAX) != TN_OK ||
	    slab_init(&p->tasks, sizeof(struct dp_stage_task), requests) != TN_OK ||
	    shared_init(&p->batches, sizeof(struct dp_batch), requests) != TN_OK ||
	    shared_init(&p->notes, SHR_NOTE_BYTES, notes) != TN_OK) {
		dp_pools_destroy(p);
		return TN_NO_MEMORY;
	}
	return TN_OK;
}

void dp_pools_destroy(struct dp_pools *p)
{
	free(p->requests.base);
	free(p->owners.base);
	free(p->attempts.base);
	free(p->tasks.base);
	free(p->batches.base);
	free(p->notes.base);
	free(p->requests.held);
	free(p->batches.held);
	free(p->notes.held);
	*p = (struct dp_pools){ 0 };
}

struct dp_request *dp_request_new(struct dp_pools *p, uint32_t client)
{
	struct dp_request *r = shared_take(&p->requests, client);
	if (!r)
		return NULL;
	memset(r, 0, sizeof *r);
	tn_list_init(&r->qp_link);
	tn_list_init(&r->token_link);
	tn_list_init(&r->owner_link);
	r->timer_slot = DP_HEAP_NONE;
	r->client = (uint16_t)client;
	r->request_id = dp_request_id_next(p);
	return r;
}

struct dp_owner *dp_owner_new(struct dp_pools *p)
{
	struct dp_owner *o = slab_take(&p->owners);
	if (!o)
		return NULL;
	memset(o, 0, sizeof *o);
	tn_list_init(&o->link);
	tn_list_init(&o->requests);
	o->owner_id = ++p->owner_seq << 6 | p->worker;
	o->retry_slot = DP_HEAP_NONE;
	return o;
}

struct dp_attempt *dp_attempt_new(struct dp_pools *p)
{
	struct dp_attempt *a = slab_take(&p->attempts);
	if (!a)
		return NULL;
	memset(a, 0, sizeof *a);
	tn_list_init(&a->t_link);
	a->attempt_id = ++p->attempt_seq << 6 | p->worker;
	return a;
}

struct dp_stage_task *dp_task_new(struct dp_pools *p)
{
	struct dp_stage_task *t = slab_take(&p->tasks);
	if (!t)
		return NULL;
	memset(t, 0, sizeof *t);
	tn_list_init(&t->link);
	return t;
}

struct dp_batch *dp_batch_new(struct dp_pools *p, uint32_t client)
{
	struct dp_batch *b = shared_take(&p->batches, client);
	if (!b)
		return NULL;
	memset(b, 0, sizeof *b);
	tn_list_init(&b->link);
	b->client = (uint16_t)client;
	b->batch_id = ++p->batch_seq << 6 | p->worker;
	return b;
}

uint8_t *dp_note_new(struct dp_pools *p, const struct dp_request *r) { return shared_take(&p->notes, r->client); }

void dp_request_free(struct dp_pools *p, struct dp_request *r)
{
	tn_assert_debug(r->timer_slot == DP_HEAP_NONE);
	tn_assert_debug(!tn_list_linked(&r->owner_link) && !tn_list_linked(&r->qp_link) && !tn_list_linked(&r->token_link));
	if (r->note)
		shared_give(&p->notes, r->note, r->client);
	dp_request_move(&p->states, r, DP_REQUEST_FREE);
	shared_give(&p->requests, r, r->client);
}

void dp_request_discard(struct dp_pools *p, struct dp_request *r)
{
	tn_assert_debug(r->state == DP_REQUEST_FREE);
	if (r->note)
		shared_give(&p->notes, r->note, r->client);
	shared_give(&p->requests, r, r->client);
}

void dp_owner_free(struct dp_pools *p, struct dp_owner *o)
{
	tn_assert_debug(o->retry_slot == DP_HEAP_NONE && !tn_list_linked(&o->link) && tn_list_empty(&o->requests));
	dp_owner_move(&p->states, o, DP_OWNER_FREE);
	slab_give(&p->owners, o);
}

void dp_attempt_free(struct dp_pools *p, struct dp_attempt *a)
{
	if (a->state != DP_ATTEMPT_FREE) /* one that no transport accepted never left it */
		dp_attempt_move(&p->states, a, DP_ATTEMPT_FREE);
	slab_give(&p->attempts, a);
}

void dp_task_free(struct dp_pools *p, struct dp_stage_task *t) { slab_give(&p->tasks, t); }

void dp_batch_free(struct dp_pools *p, struct dp_batch *b)
{
	tn_list_unlink(&b->link);
	shared_give(&p->batches, b, b->client);
}

uint64_t dp_request_serial(const struct dp_pools *p, const struct dp_request *r)
{
	uint64_t index = (uint64_t)((const char *)r - p->requests.base) / p->requests.bytes;
	return (r->request_id & UINT32_MAX) << 24 | index;
}

static struct dp_request *request_at(const struct dp_pools *p, uint64_t place)
{
	return (struct dp_request *)(void *)(p->requests.base + place * p->requests.bytes);
}

struct dp_request *dp_request_find(const struct dp_pools *p, uint64_t request_id, uint32_t *place, uint32_t most)
{
	uint32_t end = *place + TN_MIN(most, p->requests.used - TN_MIN(*place, p->requests.used));
	for (uint32_t i = *place; i < end; i++) {
		struct dp_request *r = request_at(p, i);
		if (r->request_id == request_id && r->state != DP_REQUEST_FREE)
			return r;
	}
	*place = end >= p->requests.used ? UINT32_MAX : end;
	return NULL;
}

struct dp_request *dp_request_by_serial(const struct dp_pools *p, uint64_t serial)
{
	uint64_t index = serial & 0xffffffu;
	if (index >= p->requests.used)
		return NULL;
	struct dp_request *r = request_at(p, index);
	bool same = (r->request_id & UINT32_MAX) == (serial >> 24 & UINT32_MAX);
	return same && r->state != DP_REQUEST_FREE ? r : NULL;
}
