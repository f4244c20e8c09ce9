/* SPDX-License-Identifier: Apache-2.0
 * `status`: what this control plane knows of itself, and the data plane's own answer beside it. Answers also while no
 * data plane is attached: that is when it is asked most. `version` is the part that never changes. */
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/message.h"
#include "common/version.h"
#include "controlplane/bus/commands.h"
#include "controlplane/segment/local.h"
#include "controlplane/segment/remote.h"

static json_t *control_part(const struct cp_node *node)
{
	json_t *c = json_object();
	tn_json_put_str(c, "version", TN_VERSION);
	tn_json_put_hex128(c, "session", &node->control_session);
	tn_json_put_peer_id(c, "id", &node->self);
	tn_json_put_u64(c, "peers", node->peer_cnt);
	tn_json_put_u64(c, "segments", cp_local_cnt(node->local));
	tn_json_put_u64(c, "remote_segments_cached", cp_remote_cnt(node->remote));
	tn_json_put_u64(c, "calls_outstanding", cp_exchange_outstanding(node->exchange));
	tn_json_put_u64(c, "messages_refused", node->messages_refused);
	tn_json_put_u64(c, "datagrams_dropped", node->datagrams_dropped);
	return c;
}

static json_t *status_answer(const struct cp_node *node, const json_t *dp)
{
	json_t *b = json_object();
	tn_json_put_str(b, "host", node->name);
	tn_json_put_bool(b, "data_plane_attached", node->link.attached);
	json_object_set_new(b, "control_plane", control_part(node));
	if (!node->link.attached) {
		char text[CP_TROUBLE_TEXT];
		tn_json_put_str(b, "data_plane_trouble", cp_node_link_trouble(node, text));
		return b;
	}
	json_t *d = dp != NULL ? json_copy((json_t *)(uintptr_t)dp) : json_object();
	tn_json_put_u64(d, "pid", node->link.pid);
	tn_json_put_hex128(d, "session", &node->link.session);
	tn_json_put_u64(d, "generation", node->link.generation);
	json_object_set(d, "endpoints", node->link.endpoints);
	json_object_set_new(b, "data_plane", d);
	return b;
}

static void on_dp_status(struct cp_node *node, void *ctx, tn_status status, const char *detail, const json_t *body)
{
	struct cp_reply_to *to = ctx;
	json_t *b = status_answer(node, body);
	if (status != TN_OK)
		tn_json_put_str(b, "data_plane_error", detail);
	cp_node_reply(node, to, TN_OK, NULL, b);
	free(to);
}

void cp_bus_status(struct cp_node *node, const struct cp_request *rq)
{
	struct cp_reply_to *to = node->link.attached ? malloc(sizeof *to) : NULL;
	if (to == NULL) {
		cp_node_reply(node, &rq->to, TN_OK, NULL, status_answer(node, NULL));
		return;
	}
	*to = rq->to;
	/* a data plane that does not answer must not keep the operator waiting for more than a second */
	uint64_t deadline = TN_MIN(rq->deadline_ns, node->now_ns + TN_NS_PER_S);
	cp_exchange_call(node->exchange,
			 &(struct cp_call_opts){ .target = CP_TARGET_LINK, .type = "status", .attempts = 1,
						 .deadline_ns = deadline, .done = on_dp_status, .ctx = to },
			 node->now_ns);
}

void cp_bus_version(struct cp_node *node, const struct cp_request *rq)
{
	json_t *b = json_object();
	tn_json_put_str(b, "version", TN_VERSION);
	tn_json_put_str(b, "commit", TN_COMMIT);
	tn_json_put_str(b, "build_type", TN_BUILD_TYPE);
	cp_node_reply(node, &rq->to, TN_OK, NULL, b);
}
