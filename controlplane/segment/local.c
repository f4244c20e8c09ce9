/* SPDX-License-Identifier: Apache-2.0
 * Local segments by name: {name: {"seg": SEG, "mark": snapshot number, "subs": [peer index...]}} in a jansson object,
 * which is the string table; the SEG itself is what the data plane sent, kept whole. Beside it {name: [peer index...]} of
 * those who wait for a name that is not there: of a publisher that is on its way back, mostly. */
#include "controlplane/segment/local.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/message.h"
#include "controlplane/node.h"
#include "controlplane/observe/cells.h"
#include "controlplane/segment/updates.h"
#include "shm-ring/abi.h"

#define WANTED_MAX 4096u /* names; beyond that a peer finds out by asking again */

struct cp_local {
	json_t *by_name, *wanted;
	json_int_t mark;
	bool in_snapshot;
};

struct cp_local *cp_local_new(void)
{
	struct cp_local *l = calloc(1, sizeof *l);
	if (l == NULL)
		return NULL;
	l->by_name = json_object();
	l->wanted = json_object();
	if (l->by_name == NULL || l->wanted == NULL) {
		cp_local_free(l);
		return NULL;
	}
	return l;
}

void cp_local_free(struct cp_local *l)
{
	if (l == NULL)
		return;
	json_decref(l->by_name);
	json_decref(l->wanted);
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
static void tell_subscribers(struct cp_node *node, const json_t *entry, const char *name, uint64_t generation)
{
	size_t i;
	json_t *sub;
	json_array_foreach(json_object_get(entry, "subs"), i, sub)
		cp_updates_tell(node, (uint32_t)json_integer_value(sub), name, generation);
}

/* It appeared: whoever waited for it, and may see it, asks again now instead of when its back-off is over. */
static void tell_waiting(struct cp_node *node, struct cp_local *l, const json_t *seg, const char *name)
{
	size_t i;
	json_t *sub, *subs = json_incref(json_object_get(l->wanted, name));
	json_object_del(l->wanted, name);
	json_array_foreach(subs, i, sub) {
		uint32_t peer = (uint32_t)json_integer_value(sub);
		if (cp_local_allows(seg, node->peers[peer].cfg->name))
			cp_updates_tell(node, peer, name, generation_of(seg));
	}
	json_decref(subs);
}

static bool findable(const json_t *seg)
{
	return (json_integer_value(json_object_get(seg, "access")) & SHR_ACCESS_PEERS) != 0;
}

/* old, NULL: what was there before. Peers find in this table what they may see: it is the registry. */
static void count_put(struct cp_node *node, const json_t *old, const json_t *seg)
{
	const struct tn_metrics *m = node->metrics;
	cp_count_segment(m, old == NULL ? TN_SEGMENT_EVENT_SNAPSHOT_PUBLISHED : TN_SEGMENT_EVENT_SNAPSHOT_MUTATED, true);
	if (findable(old) && !findable(seg))
		cp_count_segment(m, TN_SEGMENT_EVENT_REGISTRY_DELETE, true);
	if (findable(seg) && !(findable(old) && generation_of(old) == generation_of(seg)))
		cp_count_segment(m, TN_SEGMENT_EVENT_REGISTRY_PUBLISH, true);
	if (old != NULL && generation_of(old) != generation_of(seg))
		cp_count_segment(m, TN_SEGMENT_EVENT_GENERATION_ADVANCE, true);
}

/* Gone: those who used it wait for the next one of that name. */
static void drop(struct cp_node *node, struct cp_local *l, const char *name)
{
	json_t *entry = json_incref(json_object_get(l->by_name, name)), *subs = json_object_get(entry, "subs");
	char kept[TN_NAME_MAX]; /* the caller's may be the key that goes */
	snprintf(kept, sizeof kept, "%s", name);
	json_object_del(l->by_name, kept);
	if (json_array_size(subs) > 0 && json_object_size(l->wanted) < WANTED_MAX)
		json_object_set(l->wanted, kept, subs);
	tell_subscribers(node, entry, kept, 0);
	cp_count_segment(node->metrics, TN_SEGMENT_EVENT_SNAPSHOT_MUTATED, true);
	if (findable(json_object_get(entry, "seg")))
		cp_count_segment(node->metrics, TN_SEGMENT_EVENT_REGISTRY_DELETE, true);
	json_decref(entry);
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
	if (s != TN_OK) {
		cp_count_segment(node->metrics, TN_SEGMENT_EVENT_SNAPSHOT_PUBLISHED, false);
		return s;
	}
	json_t *old = json_object_get(l->by_name, name);
	json_t *entry = json_object();
	json_t *subs = old != NULL ? json_incref(json_object_get(old, "subs")) : json_array();
	bool newer = old != NULL && generation_of(json_object_get(old, "seg")) != generation_of(seg);
	if (newer)
		tell_subscribers(node, old, name, generation_of(seg));
	count_put(node, json_object_get(old, "seg"), seg);
	if (json_object_set(entry, "seg", (json_t *)(uintptr_t)seg) != 0 || json_object_set_new(entry, "subs", subs) != 0 ||
	    json_object_set_new(entry, "mark", json_integer(l->mark)) != 0 ||
	    json_object_set_new(l->by_name, name, entry) != 0) {
		snprintf(err, err_bytes, "no memory for segment %s", name);
		return TN_NO_MEMORY;
	}
	if (old == NULL)
		tell_waiting(node, l, seg, name);
	return TN_OK;
}

void cp_local_remove(struct cp_node *node, struct cp_local *l, const char *name, uint64_t generation)
{
	json_t *entry = json_object_get(l->by_name, name);
	if (entry == NULL || generation_of(json_object_get(entry, "seg")) > generation)
		return;
	drop(node, l, name);
}

void cp_local_snapshot_end(struct cp_node *node, struct cp_local *l)
{
	const char *name;
	json_t *entry;
	void *next;
	json_object_foreach_safe(l->by_name, next, name, entry) {
		if (json_integer_value(json_object_get(entry, "mark")) == l->mark)
			continue;
		drop(node, l, name);
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
	if (!findable(seg))
		return false;
	if (json_array_size(peers) == 0)
		return true;
	json_array_foreach(peers, i, p)
		if (json_is_string(p) && strcmp(json_string_value(p), peer_name) == 0)
			return true;
	return false;
}

/* Who waits for a name that is not there, or NULL. */
static json_t *wanted(struct cp_local *l, const char *name)
{
	json_t *subs = json_object_get(l->wanted, name);
	if (subs == NULL && json_object_size(l->wanted) < WANTED_MAX) {
		subs = json_array();
		json_object_set_new(l->wanted, name, subs);
	}
	return subs;
}

void cp_local_subscribe(struct cp_local *l, const char *name, uint32_t index)
{
	size_t i;
	json_t *s, *entry = json_object_get(l->by_name, name);
	json_t *subs = entry != NULL ? json_object_get(entry, "subs") : wanted(l, name);
	json_array_foreach(subs, i, s)
		if (json_integer_value(s) == (json_int_t)index)
			return;
	json_array_append_new(subs, json_integer(index));
}
