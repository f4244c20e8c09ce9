/* SPDX-License-Identifier: Apache-2.0
 * A worker's tables. The arrays are reserved for the most that the limits allow (bounded here) and cost memory only
 * where handles really are. One worker. */
#include "dataplane/segment/view.h"

#include <stdlib.h>

#include "common/assert.h"

/* The most slots of one table: more than any host needs, and a bound on reserved address space. */
#define SLOTS_MAX (UINT32_C(1) << 22)

static uint32_t slots(const struct tn_config *cfg, enum tn_config_key per_client)
{
	uint64_t n = tn_config_u64(cfg, TN_CFG_LIMITS_MAX_CLIENTS) * tn_config_u64(cfg, per_client);
	return n > SLOTS_MAX ? SLOTS_MAX : (uint32_t)n;
}

tn_status dp_view_init(struct dp_view *v, const struct tn_config *cfg, uint64_t map_seed)
{
	*v = (struct dp_view){
		.memory_cap = slots(cfg, TN_CFG_LIMITS_MAX_MEMORIES_PER_CLIENT),
		.segment_cap = slots(cfg, TN_CFG_LIMITS_MAX_SEGMENTS_PER_CLIENT),
		.remote_cap = slots(cfg, TN_CFG_LIMITS_MAX_OPENS_PER_CLIENT),
		.peer_cap = DP_PEERS_MAX,
	};
	v->memories = calloc(v->memory_cap, sizeof *v->memories);
	v->segments = calloc(v->segment_cap, sizeof *v->segments);
	v->remotes = calloc(v->remote_cap, sizeof *v->remotes);
	v->peers = calloc(v->peer_cap + 1, sizeof *v->peers);
	if (!v->memories || !v->segments || !v->remotes || !v->peers ||
	    tn_map_u64_init(&v->registrations, 1024, map_seed) != TN_OK) {
		dp_view_destroy(v);
		return TN_NO_MEMORY;
	}
	return TN_OK;
}

void dp_view_destroy(struct dp_view *v)
{
	tn_map_u64_fini(&v->registrations);
	free(v->memories);
	free(v->segments);
	free(v->remotes);
	free(v->peers);
	*v = (struct dp_view){ 0 };
}

struct dp_memory_slot *dp_view_memory_slot(const struct dp_view *v, tn_handle h)
{
	uint32_t i = tn_handle_index(h);
	struct dp_memory_slot *s = i < v->memory_cap ? &v->memories[i] : NULL;
	return s && s->obj && s->obj->handle == h ? s : NULL;
}

struct dp_segment_slot *dp_view_segment_slot(const struct dp_view *v, tn_handle h)
{
	uint32_t i = tn_handle_index(h);
	struct dp_segment_slot *s = i < v->segment_cap ? &v->segments[i] : NULL;
	return s && s->obj && s->obj->handle == h ? s : NULL;
}

struct dp_remote_slot *dp_view_remote_slot(const struct dp_view *v, tn_handle h)
{
	uint32_t i = tn_handle_index(h);
	struct dp_remote_slot *s = i < v->remote_cap ? &v->remotes[i] : NULL;
	return s && s->obj && s->obj->handle == h ? s : NULL;
}

tn_status dp_view_memory_add(struct dp_view *v, const struct dp_memory *m)
{
	uint32_t i = tn_handle_index(m->handle);
	if (i >= v->memory_cap)
		return TN_LIMIT;
	if (v->memories[i].obj)
		return TN_EXISTS;
	v->memories[i] = (struct dp_memory_slot){ .obj = m };
	v->memory_top = TN_MAX(v->memory_top, i + 1);
	return TN_OK;
}

tn_status dp_view_segment_add(struct dp_view *v, const struct dp_segment *s)
{
	uint32_t i = tn_handle_index(s->handle);
	if (i >= v->segment_cap || s->buffer_cnt > SHR_SEGMENT_BUFFERS_MAX)
		return TN_LIMIT;
	if (v->segments[i].obj)
		return TN_EXISTS;
	/* Growing the map is the one allocation that a command can cause; it doubles, so it happens rarely. */
	uint32_t needed = v->registrations.cnt + s->buffer_cnt;
	if (needed > v->registrations.capacity && tn_map_u64_reserve(&v->registrations, needed * 2) != TN_OK)
		return TN_NO_MEMORY;
	for (uint32_t b = 0; b < s->buffer_cnt; b++) {
		tn_status st = tn_map_u64_insert(&v->registrations, s->buffers[b].registration, (uint64_t)i << 8 | b);
		if (st == TN_OK)
			continue;
		while (b-- > 0)
			tn_map_u64_remove(&v->registrations, s->buffers[b].registration, NULL);
		return st;
	}
	v->segments[i] = (struct dp_segment_slot){ .obj = s };
	return TN_OK;
}

tn_status dp_view_remote_set(struct dp_view *v, const struct dp_remote *r, uint64_t now_ns,
			     const struct dp_remote **old_out)
{
	uint32_t i = tn_handle_index(r->handle);
	if (i >= v->remote_cap)
		return TN_LIMIT;
	struct dp_remote_slot *s = &v->remotes[i];
	if (s->obj && s->obj->handle != r->handle)
		return TN_EXISTS;
	if (s->obj && !tn_id128_eq(&s->obj->publication, &r->publication))
		s->republished_ns = now_ns;
	*old_out = s->obj;
	s->obj = r;
	s->asked_ns = 0;
	v->remote_top = TN_MAX(v->remote_top, i + 1);
	return TN_OK;
}

tn_status dp_view_peer_set(struct dp_view *v, const struct dp_peer *p)
{
	struct dp_view_peer *s = dp_view_peer_slot(v, p->index);
	if (!s)
		return TN_LIMIT;
	*s = (struct dp_view_peer){ .obj = p };
	v->peer_top = TN_MAX(v->peer_top, p->index + 2u);
	return TN_OK;
}

bool dp_view_memory_hide(struct dp_view *v, tn_handle h)
{
	struct dp_memory_slot *s = dp_view_memory_slot(v, h);
	return s && !s->gone && (s->gone = true);
}

bool dp_view_segment_hide(struct dp_view *v, tn_handle h)
{
	struct dp_segment_slot *s = dp_view_segment_slot(v, h);
	if (!s || s->gone)
		return false;
	s->gone = true;
	for (uint32_t b = 0; b < s->obj->buffer_cnt; b++)
		tn_map_u64_remove(&v->registrations, s->obj->buffers[b].registration, NULL);
	return true;
}

bool dp_view_remote_hide(struct dp_view *v, tn_handle h)
{
	struct dp_remote_slot *s = dp_view_remote_slot(v, h);
	return s && !s->gone && (s->gone = true);
}

void dp_view_memory_forget(struct dp_view *v, tn_handle h)
{
	struct dp_memory_slot *s = dp_view_memory_slot(v, h);
	tn_assert(s && s->gone && s->users == 0);
	*s = (struct dp_memory_slot){ 0 };
}

void dp_view_segment_forget(struct dp_view *v, tn_handle h)
{
	struct dp_segment_slot *s = dp_view_segment_slot(v, h);
	tn_assert(s && s->gone && s->users == 0);
	*s = (struct dp_segment_slot){ 0 };
}

void dp_view_remote_forget(struct dp_view *v, tn_handle h)
{
	struct dp_remote_slot *s = dp_view_remote_slot(v, h);
	tn_assert(s && s->gone && s->users == 0);
	*s = (struct dp_remote_slot){ 0 };
}

const struct dp_buffer *dp_view_registration(const struct dp_view *v, uint64_t registration,
					     const struct dp_segment **segment_out)
{
	uint64_t at;
	if (registration == 0 || !tn_map_u64_find(&v->registrations, registration, &at))
		return NULL;
	const struct dp_segment *s = v->segments[at >> 8].obj;
	*segment_out = s;
	return &s->buffers[at & 0xff];
}

uint32_t dp_remote_buffer_at(const struct dp_remote *r, uint64_t off)
{
	uint32_t lo = 0, hi = r->buffer_cnt;
	while (hi - lo > 1) {
		uint32_t mid = lo + (hi - lo) / 2;
		if (r->buffers[mid].segment_off <= off)
			lo = mid;
		else
			hi = mid;
	}
	bool inside = hi > lo && off >= r->buffers[lo].segment_off &&
		      off - r->buffers[lo].segment_off < r->buffers[lo].bytes;
	return inside ? lo : UINT32_MAX;
}

uint32_t dp_segment_buffer_at(const struct dp_segment *s, uint64_t off)
{
	uint32_t lo = 0, hi = s->buffer_cnt;
	while (hi - lo > 1) {
		uint32_t mid = lo + (hi - lo) / 2;
		if (s->buffers[mid].segment_off <= off)
			lo = mid;
		else
			hi = mid;
	}
	bool inside = hi > lo && off >= s->buffers[lo].segment_off &&
		      off - s->buffers[lo].segment_off < s->buffers[lo].bytes;
	return inside ? lo : UINT32_MAX;
}
