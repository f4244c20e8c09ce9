/* SPDX-License-Identifier: Apache-2.0
 * Local segments by name: {name: {"seg": SEG, "mark": snapshot number, "subs": [peer index...]}} in a jansson object,
 * which is the string table; the SEG itself is what the data plane sent, kept whole. */
#include "controlplane/segment/local.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/message.h"
#include "controlplane/node.h"
#include "controlplane/observe/cells.h"
#include "shm-ring/abi.h"

struct cp_local {
	json_t *by_name;
	json_int_t mark;
	bool in_snapshot;
};

struct cp_local *cp_local_new(void)
{
	struct cp_local *l = calloc(1, sizeof *l);
	if (l != NULL)
		l->by_name = json_object();
	if (l == NULL || l->by_name == NULL) {
		free(l);
		return NULL;
	}
	return l;
}

void cp_local_free(struct cp_local *l)
{
	if (l == NULL)
		return;
	json_decref(l->by_name);
	free(l);
}

static uint64_t generation_of(const json_t *seg)
{
	struct tn_json_in in;
	uint64_t g = 0;
	tn_json_in_init(&in, seg);
	tn_json_u64(&in, "generation", 0, UINT64_MAX, &g);
	return g;
}

/* Tell every peer that fetched it; it asks again when it needs it. generation 0: gone. */
static void tell_subscribers(struct cp_node *node, const json_t *entry, const char *name, uint64_t generation);

static void ignore_answer(struct cp_node *node, void *ctx, tn_status status, const char *detail, const json_t *body)
{
	(void)node, (void)ctx, (void)status, (void)detail, (void)body;
}

static void tell_subscribers(struct cp_node *node, const json_t *entry, const char *name, uint64_t generation)
{
	size_t i;
	json_t *sub;
	json_array_foreach(json_object_get(entry, "subs"), i, sub) {
		json_t *body = json_object();
		tn_json_put_str(body, "name", name);
		tn_json_put_hex128(body, "session", &node->link.session);
		tn_json_put_u64(body, "generation", generation);
		cp_exchange_call(node->exchange,
				 &(struct cp_call_opts){
					 .target = (uint32_t)json_integer_value(sub), .type = "segment_updated",
					 .method = TN_RPC_METHOD_SEGMENT_UPDATED, .body = body, .attempts = 1, .done = ignore_answer,
					 .deadline_ns = node->now_ns + tn_config_ns(node->config, TN_CFG_CONTROL_RPC_TIMEOUT_MS) },
				 node->now_ns);
	}
}

void cp_local_snapshot_begin(struct cp_local *l)
{
	l->mark++;
	l->in_snapshot = true;
}

static tn_status check_seg(const json_t *seg, char name[static TN_NAME_MAX], char *err, size_t err_bytes)
{
	struct tn_json_in in;
	uint64_t u;
	const json_t *buffers;
	tn_json_in_init(&in, seg);
	tn_json_name(&in, "name", name);
	tn_json_u64(&in, "generation", 1, UINT64_MAX, &u);
	tn_json_u64(&in, "bytes", 1, UINT64_MAX, &u);
	tn_json_u64(&in, "access", 0, 7, &u);
	tn_json_array(&in, "buffers", SHR_SEGMENT_BUFFERS_MAX, &buffers);
	if (in.status != TN_OK)
		snprintf(err, err_bytes, "%s", in.err);
	return in.status;
}

tn_status cp_local_put(struct cp_node *node, struct cp_local *l, const json_t *seg, char *err, size_t err_bytes)
{
	char name[TN_NAME_MAX];
	tn_status s = check_seg(seg, name, err, err_bytes);
	if (s != TN_OK)
		return s;
	json_t *old = json_object_get(l->by_name, name);
	json_t *entry = json_object();
	json_t *subs = old != NULL ? json_incref(json_object_get(old, "subs")) : json_array();
	bool newer = old != NULL && generation_of(json_object_get(old, "seg")) != generation_of(seg);
	if (newer)
		tell_subscribers(node, old, name, generation_of(seg));
	if (json_object_set(entry, "seg", (json_t *)(uintptr_t)seg) != 0 || json_object_set_new(entry, "subs", subs) != 0 ||
	    json_object_set_new(entry, "mark", json_integer(l->mark)) != 0 ||
	    json_object_set_new(l->by_name, name, entry) != 0) {
		snprintf(err, err_bytes, "no memory for segment %s", name);
		return TN_NO_MEMORY;
	}
	cp_count_segment(node->metrics, old == NULL ? TN_SEGMENT_EVENT_SNAPSHOT_PUBLISHED : TN_SEGMENT_EVENT_SNAPSHOT_MUTATED,
		       true);
	return TN_OK;
}

void cp_local_remove(struct cp_node *node, struct cp_local *l, const char *name, uint64_t generation)
{
	json_t *entry = json_object_get(l->by_name, name);
	if (entry == NULL || generation_of(json_object_get(entry, "seg")) > generation)
		return;
	tell_subscribers(node, entry, name, 0);
	json_object_del(l->by_name, name);
	cp_count_segment(node->metrics, TN_SEGMENT_EVENT_SNAPSHOT_MUTATED, true);
}

void cp_local_snapshot_end(struct cp_node *node, struct cp_local *l)
{
	const char *name;
	json_t *entry;
	void *next;
	json_object_foreach_safe(l->by_name, next, name, entry) {
		if (json_integer_value(json_object_get(entry, "mark")) == l->mark)
			continue;
		tell_subscribers(node, entry, name, 0);
		json_object_del(l->by_name, name);
	}
	l->in_snapshot = false;
}

const json_t *cp_local_get(const struct cp_local *l, const char *name)
{
	return json_object_get(json_object_get(l->by_name, name), "seg");
}

size_t cp_local_cnt(const struct cp_local *l)
{
	return json_object_size(l->by_name);
}

json_t *cp_local_list(const struct cp_local *l, size_t first, size_t count)
{
	json_t *out = json_array();
	const char *name;
	json_t *entry;
	size_t i = 0;
	json_object_foreach(l->by_name, name, entry) {
		if (i >= first && i - first < count)
			json_array_append(out, json_object_get(entry, "seg"));
		i++;
	}
	return out;
}

bool cp_local_allows(const json_t *seg, const char *peer_name)
{
	size_t i;
	json_t *p;
	const json_t *peers = json_object_get(seg, "peers");
	if ((json_integer_value(json_object_get(seg, "access")) & SHR_ACCESS_PEERS) == 0)
		return false;
	if (json_array_size(peers) == 0)
		return true;
	json_array_foreach(peers, i, p)
		if (json_is_string(p) && strcmp(json_string_value(p), peer_name) == 0)
			return true;
	return false;
}

void cp_local_subscribe(struct cp_local *l, const char *name, uint32_t index)
{
	size_t i;
	json_t *s, *subs = json_object_get(json_object_get(l->by_name, name), "subs");
	json_array_foreach(subs, i, s)
		if (json_integer_value(s) == (json_int_t)index)
			return;
	json_array_append_new(subs, json_integer(index));
}
