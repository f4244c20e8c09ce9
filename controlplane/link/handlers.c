/* SPDX-License-Identifier: Apache-2.0
 * What the data plane may say and ask. Its attach makes it the one data plane of this host: the newest attach wins, and
 * an older incarnation that still speaks is told that it is stale. */
#include <stdio.h>
#include <string.h>

#include "common/message.h"
#include "common/hook.h"
#include "controlplane/node.h"
#include "controlplane/peer/hello.h"
#include "controlplane/segment/local.h"

#define PEERS_PAGE 256u

/* The sender is the attached data plane; otherwise it is told to attach (again). */
static bool from_attached(struct cp_node *node, const struct cp_request *rq)
{
	if (node->link.attached && node->link.route.len == rq->to.route.len &&
	    memcmp(node->link.route.bytes, rq->to.route.bytes, rq->to.route.len) == 0)
		return true;
	cp_node_reply(node, &rq->to, TN_STALE, "attach first: this control plane does not know this data plane", NULL);
	return false;
}

/* A page of the peers: a message has 64 KiB, an entry about 100 bytes. */
static void put_peers(const struct cp_node *node, uint32_t first, json_t *b)
{
	json_t *peers = json_array();
	for (uint32_t i = first; i < node->peer_cnt && i - first < PEERS_PAGE; i++) {
		json_t *p = json_object();
		tn_json_put_u64(p, "index", i);
		tn_json_put_str(p, "name", node->peers[i].cfg->name);
		tn_json_put_peer_id(p, "id", &node->peers[i].cfg->id);
		json_array_append_new(peers, p);
	}
	json_object_set_new(b, "peers", peers);
	tn_json_put_u64(b, "peers_total", node->peer_cnt);
}

static json_t *attach_answer(const struct cp_node *node)
{
	json_t *b = json_object();
	tn_json_put_peer_id(b, "self", &node->self);
	tn_json_put_hex128(b, "control_session", &node->control_session);
	put_peers(node, 0, b);
	return b;
}

static tn_status read_attach(const struct cp_request *rq, struct cp_link *l, char err[static TN_ERR_TEXT])
{
	struct tn_json_in in;
	const json_t *endpoints = NULL;
	tn_json_in_init(&in, rq->body);
	tn_json_u32(&in, "pid", 1, UINT32_MAX, &l->pid);
	tn_json_u64(&in, "generation", 1, UINT64_MAX, &l->generation);
	tn_json_str_copy(&in, "telemetry", l->telemetry, sizeof l->telemetry);
	tn_json_array(&in, "endpoints", 16, &endpoints);
	tn_json_u64(&in, "frame_bytes", 4096, 1 << 20, &l->frame_bytes);
	tn_json_u64(&in, "sequence", 0, UINT64_MAX, &l->sequence);
	if (in.status == TN_OK && tn_id128_is_zero(&rq->session))
		tn_json_refuse(&in, "session", "is zero");
	if (in.status == TN_OK && (strchr(l->telemetry, '/') != NULL || l->telemetry[0] == '.'))
		tn_json_refuse(&in, "telemetry", "is not a plain file name");
	snprintf(err, TN_ERR_TEXT, "%s", in.err);
	if (in.status == TN_OK)
		l->endpoints = json_incref((json_t *)(uintptr_t)endpoints);
	return in.status;
}

static void on_attach(struct cp_node *node, const struct cp_request *rq)
{
	struct cp_link l = { .attached = true, .route = rq->to.route, .session = rq->session, .heard_ns = node->now_ns };
	char err[TN_ERR_TEXT];
	tn_status s = read_attach(rq, &l, err);
	if (s != TN_OK) {
		cp_node_reply(node, &rq->to, s, err, NULL);
		return;
	}
	if (node->link.attached && l.generation < node->link.generation) {
		json_decref(l.endpoints);
		cp_node_reply(node, &rq->to, TN_STALE, "a newer data plane of this host is attached", NULL);
		return;
	}
	bool restarted = !tn_id128_eq(&node->link.session, &l.session);
	/* calls to the old connection can get no answer any more; end them before the new one counts as attached */
	node->link.attached = false;
	cp_exchange_drop(node->exchange, CP_TARGET_LINK, TN_DATAPLANE_DOWN, "the data plane attached anew");
	if (restarted) {
		cp_tickets_reset(node);
		cp_opens_drop(node, "the data plane attached anew");
	}
	node->opens_next_ns = node->now_ns; /* those that waited while it was silent */
	json_decref(node->link.endpoints);
	node->link = l;
	cp_local_snapshot_begin(node->local);
	TN_HOOK(cp_link_attached);
	cp_node_reply(node, &rq->to, TN_OK, NULL, attach_answer(node));
}

static void on_peers(struct cp_node *node, const struct cp_request *rq)
{
	struct tn_json_in in;
	uint32_t first = 0;
	if (!from_attached(node, rq))
		return;
	tn_json_in_init(&in, rq->body);
	tn_json_u32(&in, "first", 0, node->peer_cnt, &first);
	if (in.status != TN_OK) {
		cp_node_reply(node, &rq->to, in.status, in.err, NULL);
		return;
	}
	json_t *b = json_object();
	put_peers(node, first, b);
	cp_node_reply(node, &rq->to, TN_OK, NULL, b);
}

static void on_snapshot(struct cp_node *node, const struct cp_request *rq)
{
	struct tn_json_in in;
	const json_t *segments = NULL;
	bool last = false;
	char err[TN_ERR_TEXT] = "";
	size_t i;
	json_t *seg;
	if (!from_attached(node, rq))
		return;
	tn_json_in_init(&in, rq->body);
	tn_json_array(&in, "segments", 256, &segments);
	tn_json_bool(&in, "last", &last);
	tn_json_u64(&in, "sequence", 0, UINT64_MAX, &node->link.sequence);
	if (in.status != TN_OK) {
		cp_node_reply(node, &rq->to, in.status, in.err, NULL);
		return;
	}
	tn_status s = TN_OK;
	TN_HOOK(cp_snapshot_chunk);
	json_array_foreach(segments, i, seg) {
		tn_status one = cp_local_put(node, node->local, seg, err, sizeof err);
		s = s == TN_OK ? one : s; /* the good ones count all the same; the first bad one is named */
	}
	if (last) {
		cp_local_snapshot_end(node, node->local);
		node->link.snapshot_done = true;
		cp_hello_begin(node);
	}
	cp_node_reply(node, &rq->to, s, s == TN_OK ? NULL : err, NULL);
}

static void on_published(struct cp_node *node, const struct cp_request *rq)
{
	struct tn_json_in in;
	const json_t *seg = NULL;
	char err[TN_ERR_TEXT];
	if (!from_attached(node, rq))
		return;
	tn_json_in_init(&in, rq->body);
	tn_json_u64(&in, "sequence", 0, UINT64_MAX, &node->link.sequence);
	tn_json_object(&in, "segment", &seg);
	if (in.status != TN_OK) {
		cp_node_reply(node, &rq->to, in.status, in.err, NULL);
		return;
	}
	tn_status s = cp_local_put(node, node->local, seg, err, sizeof err);
	TN_HOOK(cp_segment_put);
	cp_node_reply(node, &rq->to, s, s == TN_OK ? NULL : err, NULL);
}

static void on_withdrawn(struct cp_node *node, const struct cp_request *rq)
{
	struct tn_json_in in;
	char name[TN_NAME_MAX];
	uint64_t generation = 0;
	if (!from_attached(node, rq))
		return;
	tn_json_in_init(&in, rq->body);
	tn_json_u64(&in, "sequence", 0, UINT64_MAX, &node->link.sequence);
	tn_json_name(&in, "name", name);
	tn_json_u64(&in, "generation", 1, UINT64_MAX, &generation);
	if (in.status == TN_OK)
		cp_local_remove(node, node->local, name, generation);
	cp_node_reply(node, &rq->to, in.status, in.status == TN_OK ? NULL : in.err, NULL);
}

static void on_open(struct cp_node *node, const struct cp_request *rq)
{
	if (from_attached(node, rq))
		cp_open_start(node, rq);
}

static void on_heartbeat(struct cp_node *node, const struct cp_request *rq)
{
	if (!from_attached(node, rq))
		return;
	json_t *b = json_object();
	tn_json_put_hex128(b, "control_session", &node->control_session);
	cp_node_reply(node, &rq->to, TN_OK, NULL, b);
}

static void on_datagram(struct cp_node *node, const struct cp_request *rq)
{
	if (from_attached(node, rq))
		cp_datagram_from_link(node, rq);
}

static void on_peer_refresh(struct cp_node *node, const struct cp_request *rq)
{
	if (from_attached(node, rq))
		cp_peer_refresh_start(node, rq);
}

const struct cp_method cp_link_methods[] = {
	{ "attach", on_attach },
	{ "peers", on_peers },
	{ "snapshot", on_snapshot },
	{ "segment_published", on_published },
	{ "segment_withdrawn", on_withdrawn },
	{ "open", on_open },
	{ "peer_refresh", on_peer_refresh },
	{ "datagram", on_datagram },
	{ "heartbeat", on_heartbeat },
	{ NULL, NULL },
};
