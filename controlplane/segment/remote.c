/* SPDX-License-Identifier: Apache-2.0
 * The cache of peers' descriptors. An entry is fetching, positive or negative; eviction takes the entry that was used
 * longest ago. Entries are found by a hash of (peer, name) and confirmed by comparing both. */
#include "controlplane/segment/remote.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/hook.h"
#include "common/list.h"
#include "common/message.h"
#include "controlplane/node.h"
#include "controlplane/observe/cells.h"

struct cp_remote_entry {
	struct tn_list lru;      /* front = used longest ago */
	struct tn_list chain;
	uint32_t peer;
	char name[TN_NAME_MAX];
	bool fetching;
	bool refetch;            /* was invalidated while its fetch was under way */
	tn_status status;        /* PENDING until the first answer */
	char detail[240];
	json_t *segment;
	struct tn_id128 session;
	uint64_t generation;
	uint64_t retry_ns, backoff_ns; /* negative, or the owner said the same again: not asked before */
};

#define BUCKETS 4096u

struct cp_remote_cache {
	struct tn_list lru;
	struct tn_list buckets[BUCKETS];
	size_t cnt, max;
};

struct cp_remote_cache *cp_remote_new(uint32_t entries_max)
{
	struct cp_remote_cache *c = calloc(1, sizeof *c);
	if (c == NULL)
		return NULL;
	tn_list_init(&c->lru);
	for (uint32_t i = 0; i < BUCKETS; i++)
		tn_list_init(&c->buckets[i]);
	c->max = entries_max;
	return c;
}

static void entry_free(struct cp_remote_cache *c, struct cp_remote_entry *e)
{
	tn_list_unlink(&e->lru);
	tn_list_unlink(&e->chain);
	json_decref(e->segment);
	free(e);
	c->cnt--;
}

void cp_remote_free(struct cp_remote_cache *c)
{
	if (c == NULL)
		return;
	while (!tn_list_empty(&c->lru))
		entry_free(c, tn_list_first(&c->lru, struct cp_remote_entry, lru));
	free(c);
}

size_t cp_remote_cnt(const struct cp_remote_cache *c)
{
	return c->cnt;
}

static uint32_t bucket_of(uint32_t peer, const char *name)
{
	uint32_t h = 2166136261u ^ peer; /* FNV-1a; names come from our own applications, chains stay bounded by max */
	for (; *name != '\0'; name++)
		h = (h ^ (uint8_t)*name) * 16777619u;
	return (h ^ h >> 15) % BUCKETS;
}

static struct cp_remote_entry *find(struct cp_remote_cache *c, uint32_t peer, const char *name)
{
	struct tn_list *b = &c->buckets[bucket_of(peer, name)];
	tn_list_foreach(n, b) {
		struct cp_remote_entry *e = tn_list_entry(n, struct cp_remote_entry, chain);
		if (e->peer == peer && strcmp(e->name, name) == 0)
			return e;
	}
	return NULL;
}

static struct cp_remote_entry *add(struct cp_remote_cache *c, uint32_t peer, const char *name)
{
	if (c->cnt >= c->max) {
		struct cp_remote_entry *victim = NULL;
		tn_list_foreach(n, &c->lru) {
			struct cp_remote_entry *e = tn_list_entry(n, struct cp_remote_entry, lru);
			if (!e->fetching && victim == NULL)
				victim = e;
		}
		if (victim == NULL)
			return NULL;
		entry_free(c, victim);
	}
	struct cp_remote_entry *e = calloc(1, sizeof *e);
	if (e == NULL)
		return NULL;
	e->peer = peer;
	e->status = TN_PENDING;
	snprintf(e->name, sizeof e->name, "%s", name);
	tn_list_push_back(&c->lru, &e->lru);
	tn_list_push_back(&c->buckets[bucket_of(peer, name)], &e->chain);
	c->cnt++;
	return e;
}

/* ---- fetch ---- */

static void fetch(struct cp_node *node, struct cp_remote_entry *e);

static tn_status read_answer(struct cp_remote_entry *e, const json_t *body)
{
	struct tn_json_in in, seg_in;
	const json_t *seg = NULL, *buffers;
	struct tn_id128 session;
	char name[TN_NAME_MAX];
	uint64_t generation = 0, bytes;
	tn_json_in_init(&in, body);
	tn_json_hex128(&in, "session", &session);
	tn_json_object(&in, "segment", &seg);
	tn_json_in_init(&seg_in, seg);
	tn_json_name(&seg_in, "name", name);
	tn_json_u64(&seg_in, "generation", 1, UINT64_MAX, &generation);
	tn_json_u64(&seg_in, "bytes", 1, UINT64_MAX, &bytes);
	tn_json_array(&seg_in, "buffers", 64, &buffers);
	if (in.status != TN_OK || seg_in.status != TN_OK || strcmp(name, e->name) != 0) {
		snprintf(e->detail, sizeof e->detail, "the peer's answer is malformed: %.80s",
			 in.status != TN_OK ? in.err : seg_in.err);
		return TN_PATH_PROTOCOL;
	}
	json_decref(e->segment);
	e->segment = json_incref((json_t *)(uintptr_t)seg);
	e->session = session;
	e->generation = generation;
	return TN_OK;
}

struct fetch_ctx { uint32_t peer; char name[TN_NAME_MAX]; };

static void on_fetched(struct cp_node *node, void *ctx, tn_status status, const char *detail, const json_t *body)
{
	struct fetch_ctx f = *(struct fetch_ctx *)ctx;
	free(ctx);
	struct cp_remote_entry *e = find(node->remote, f.peer, f.name);
	if (e == NULL)
		return;
	e->fetching = false;
	if (e->refetch) {
		e->refetch = false;
		fetch(node, e);
		return;
	}
	struct tn_id128 session = e->session;
	uint64_t generation = e->generation;
	snprintf(e->detail, sizeof e->detail, "%s", detail);
	if (status == TN_OK)
		status = read_answer(e, body);
	TN_HOOK(cp_segment_fetched);
	e->status = status;
	cp_count_segment(node->metrics, TN_SEGMENT_EVENT_REMOTE_FETCH, status == TN_OK);
	if (status == TN_OK && !(e->generation == generation && tn_id128_eq(&e->session, &session))) {
		if (generation != 0)
			cp_count_segment(node->metrics, TN_SEGMENT_EVENT_GENERATION_ADVANCE, true);
		e->backoff_ns = e->retry_ns = 0;
	} else {
		uint64_t base = tn_config_ns(node->config, TN_CFG_CONTROL_NEGATIVE_CACHE_MS);
		uint64_t max = tn_config_ns(node->config, TN_CFG_CONTROL_NEGATIVE_CACHE_MAX_MS);
		e->backoff_ns = e->backoff_ns == 0 ? base : TN_MIN(e->backoff_ns * 2, max);
		e->retry_ns = node->now_ns + e->backoff_ns + tn_rand_below(&node->rand, e->backoff_ns / 4 + 1);
	}
	cp_opens_advance(node, f.peer, f.name);
}

static void fetch(struct cp_node *node, struct cp_remote_entry *e)
{
	struct fetch_ctx *f = malloc(sizeof *f);
	json_t *body = json_object();
	if (f == NULL || tn_json_put_str(body, "name", e->name) != TN_OK) {
		free(f);
		json_decref(body);
		e->status = TN_NO_MEMORY;
		return;
	}
	f->peer = e->peer;
	memcpy(f->name, e->name, sizeof f->name);
	e->fetching = true;
	cp_exchange_call(node->exchange,
			 &(struct cp_call_opts){
				 .target = e->peer, .type = "get_segment", .method = TN_RPC_METHOD_GET_SEGMENT, .body = body,
				 .attempts = (uint32_t)tn_config_u64(node->config, TN_CFG_CONTROL_RPC_ATTEMPTS),
				 .deadline_ns = node->now_ns + tn_config_ns(node->config, TN_CFG_CONTROL_RPC_TIMEOUT_MS),
				 .done = on_fetched, .ctx = f },
			 node->now_ns);
}

static bool is_stale(const struct cp_remote_entry *e, const struct tn_id128 *session, uint64_t generation)
{
	return generation != 0 && e->generation == generation && tn_id128_eq(&e->session, session);
}

void cp_remote_get(struct cp_node *node, struct cp_remote_cache *c, uint32_t peer, const char *name,
		   const struct tn_id128 *stale_session, uint64_t stale_generation, struct cp_remote_view *view)
{
	struct cp_remote_entry *e = find(c, peer, name);
	bool was_known = e != NULL;
	*view = (struct cp_remote_view){ .status = TN_LIMIT, .detail = "the cache of remote segments is full of fetches" };
	if (e == NULL && (e = add(c, peer, name)) == NULL)
		return;
	tn_list_unlink(&e->lru);
	tn_list_push_back(&c->lru, &e->lru);
	bool stale = e->status == TN_OK && is_stale(e, stale_session, stale_generation);
	bool usable = e->status == TN_OK && !stale;
	if (!e->fetching)
		cp_count_segment(node->metrics, usable ? TN_SEGMENT_EVENT_CACHE_HIT : TN_SEGMENT_EVENT_CACHE_MISS, true);
	if (!usable && !e->fetching) {
		bool negative = stale || (was_known && e->status != TN_OK && e->status != TN_PENDING);
		if (!negative || node->now_ns >= e->retry_ns) {
			uint32_t idx = e->peer;
			e->status = TN_PENDING;
			fetch(node, e);
			if ((e = find(c, idx, name)) == NULL)
				return;
		}
	}
	view->status = e->fetching ? TN_PENDING : stale ? TN_STALE : e->status;
	view->segment = e->segment;
	view->session = e->session;
	view->generation = e->generation;
	view->detail = e->detail;
	view->retry_ns = e->retry_ns;
}

bool cp_remote_peek(struct cp_remote_cache *c, uint32_t peer, const char *name, struct cp_remote_view *view)
{
	const struct cp_remote_entry *e = find(c, peer, name);
	if (e == NULL)
		return false;
	*view = (struct cp_remote_view){
		.status = e->fetching ? TN_PENDING : e->status, .segment = e->segment, .session = e->session,
		.generation = e->generation, .detail = e->detail, .retry_ns = e->retry_ns,
	};
	return true;
}

static void invalidate(struct cp_node *node, struct cp_remote_cache *c, struct cp_remote_entry *e)
{
	cp_count_segment(node->metrics, TN_SEGMENT_EVENT_CACHE_INVALIDATE, true);
	if (e->fetching)
		e->refetch = true;
	else
		entry_free(c, e);
}

void cp_remote_invalidate(struct cp_node *node, struct cp_remote_cache *c, uint32_t peer, const char *name,
			  uint64_t generation)
{
	struct cp_remote_entry *e = find(c, peer, name);
	if (e == NULL)
		return;
	if (!e->fetching && e->generation != 0 && generation > e->generation) /* else the answer tells */
		cp_count_segment(node->metrics, TN_SEGMENT_EVENT_GENERATION_ADVANCE, true);
	invalidate(node, c, e);
}

void cp_remote_invalidate_session(struct cp_node *node, struct cp_remote_cache *c, uint32_t peer,
				  const struct tn_id128 *session)
{
	bool any = false;
	tn_list_foreach(n, &c->lru) {
		struct cp_remote_entry *e = tn_list_entry(n, struct cp_remote_entry, lru);
		if (e->peer != peer || e->status != TN_OK || tn_id128_eq(&e->session, session))
			continue;
		any = true;
		invalidate(node, c, e);
	}
	if (any)
		cp_count_segment(node->metrics, TN_SEGMENT_EVENT_CACHE_RESET, true);
}

void cp_remote_forgive(struct cp_node *node, struct cp_remote_cache *c, uint32_t peer, const struct tn_id128 *session)
{
	tn_list_foreach(n, &c->lru) {
		struct cp_remote_entry *e = tn_list_entry(n, struct cp_remote_entry, lru);
		if (e->peer == peer)
			e->retry_ns = e->backoff_ns = 0;
	}
	cp_remote_invalidate_session(node, c, peer, session);
}
