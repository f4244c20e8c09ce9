/* SPDX-License-Identifier: Apache-2.0
 * What peers may ask this control plane. The caller is the key that it authenticated with (rq->to.peer); a request that
 * came over a connection without one never gets here. */
#include <stdio.h>
#include <string.h>

#include "common/message.h"
#include "common/hook.h"
#include "controlplane/link/changed.h"
#include "controlplane/node.h"
#include "controlplane/peer/hello.h"
#include "controlplane/peer/issue.h"
#include "controlplane/segment/local.h"
#include "controlplane/segment/remote.h"

/* What a peer needs to know of a segment, and nothing about who owns it here. */
static json_t *redacted(const json_t *seg)
{
	static const char *const keep[] = { "name", "generation", "publication", "bytes", "buffers" };
	json_t *out = json_object();
	for (size_t i = 0; i < TN_ARRAY_LEN(keep); i++)
		json_object_set(out, keep[i], json_object_get(seg, keep[i]));
	return out;
}

static void on_get_segment(struct cp_node *node, const struct cp_request *rq)
{
	struct tn_json_in in;
	char name[TN_NAME_MAX], text[TN_MESSAGE_DETAIL];
	const char *peer = node->peers[rq->to.peer].cfg->name;
	tn_json_in_init(&in, rq->body);
	if (tn_json_name(&in, "name", name) != TN_OK) {
		cp_node_reply(node, &rq->to, in.status, in.err, NULL);
		return;
	}
	if (!node->link.attached || !node->link.snapshot_done) {
		char trouble[CP_TROUBLE_TEXT] = "the data plane of that host is not attached yet";
		cp_node_reply(node, &rq->to, TN_DATAPLANE_DOWN,
			      node->link.attached ? trouble : cp_node_link_trouble(node, trouble), NULL);
		return;
	}
	const json_t *seg = cp_local_get(node->local, name);
	if (seg == NULL || !cp_local_allows(seg, peer)) {
		/* the same answer for both, except that an owner's operator finds the difference in tentctl segment show */
		snprintf(text, sizeof text, "host %s publishes no segment %s to peer %s", node->name, name, peer);
		if (seg == NULL)
			cp_local_subscribe(node->local, name, rq->to.peer);
		cp_node_reply(node, &rq->to, TN_NOT_FOUND, text, NULL);
		return;
	}
	json_t *b = json_object();
	tn_json_put_hex128(b, "session", &node->link.session);
	json_object_set_new(b, "segment", redacted(seg));
	cp_local_subscribe(node->local, name, rq->to.peer);
	cp_node_reply(node, &rq->to, TN_OK, NULL, b);
}

static void on_segment_updated(struct cp_node *node, const struct cp_request *rq)
{
	struct tn_json_in in;
	char name[TN_NAME_MAX];
	struct tn_id128 session;
	uint64_t generation;
	tn_json_in_init(&in, rq->body);
	tn_json_name(&in, "name", name);
	tn_json_hex128(&in, "session", &session);
	tn_json_u64(&in, "generation", 0, UINT64_MAX, &generation);
	if (in.status != TN_OK) {
		cp_node_reply(node, &rq->to, in.status, in.err, NULL);
		return;
	}
	TN_HOOK(cp_segment_updated);
	cp_remote_invalidate(node, node->remote, rq->to.peer, name, generation);
	cp_link_segment_changed(node, node->peers[rq->to.peer].cfg->name, name, &session, generation);
	cp_node_reply(node, &rq->to, TN_OK, NULL, NULL);
	cp_opens_advance(node, rq->to.peer, name); /* some may wait for just this */
}

static void on_probe(struct cp_node *node, const struct cp_request *rq)
{
	struct tn_json_in in;
	uint64_t nonce;
	json_t *b;
	tn_json_in_init(&in, rq->body);
	if (tn_json_u64(&in, "nonce", 0, UINT64_MAX, &nonce) != TN_OK) {
		cp_node_reply(node, &rq->to, in.status, in.err, NULL);
		return;
	}
	b = json_object();
	tn_json_put_u64(b, "nonce", nonce);
	cp_node_reply(node, &rq->to, TN_OK, NULL, b);
}

const struct cp_method cp_server_methods[] = {
	{ "hello", cp_hello_heard },
	{ "get_segment", on_get_segment },
	{ "issue_ticket", cp_issue_ticket },
	{ "segment_updated", on_segment_updated },
	{ "probe", on_probe },
	{ NULL, NULL },
};
