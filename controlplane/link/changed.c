/* SPDX-License-Identifier: Apache-2.0
 * Control plane -> data plane calls that need no state of their own. */
#include "controlplane/link/changed.h"

#include <stdlib.h>

#include "common/message.h"

static void ignore_answer(struct cp_node *node, void *ctx, tn_status status, const char *detail, const json_t *body)
{
	/* a data plane that is away learns of it when a peer refuses the stale registration */
	(void)node, (void)ctx, (void)status, (void)detail, (void)body;
}

static void tell(struct cp_node *node, const char *type, json_t *body)
{
	cp_exchange_call(node->exchange,
			 &(struct cp_call_opts){
				 .target = CP_TARGET_LINK, .type = type, .body = body, .attempts = 1, .done = ignore_answer,
				 .deadline_ns = node->now_ns + tn_config_ns(node->config, TN_CFG_CONTROL_RPC_TIMEOUT_MS) },
			 node->now_ns);
}

void cp_link_segment_changed(struct cp_node *node, const char *peer, const char *name, const struct tn_id128 *session,
			     uint64_t generation)
{
	json_t *b = json_object();
	tn_json_put_str(b, "peer", peer);
	tn_json_put_str(b, "name", name);
	tn_json_put_hex128(b, "session", session);
	tn_json_put_u64(b, "generation", generation);
	tell(node, "segment_changed", b);
}

void cp_link_peer_returned(struct cp_node *node, const char *peer, const struct tn_id128 *session)
{
	json_t *b = json_object();
	tn_json_put_str(b, "peer", peer);
	tn_json_put_hex128(b, "session", session);
	tell(node, "peer_returned", b);
}

static void on_forwarded(struct cp_node *node, void *ctx, tn_status status, const char *detail, const json_t *body)
{
	struct cp_reply_to *to = ctx;
	json_t *copy = status == TN_OK && body != NULL ? json_copy((json_t *)(uintptr_t)body) : NULL;
	cp_node_reply(node, to, status, status == TN_OK ? NULL : detail, copy);
	free(to);
}

void cp_link_forward(struct cp_node *node, const struct cp_request *rq, const char *type, json_t *body)
{
	struct cp_reply_to *to = malloc(sizeof *to);
	if (to == NULL) {
		json_decref(body);
		cp_node_reply(node, &rq->to, TN_NO_MEMORY, NULL, NULL);
		return;
	}
	*to = rq->to;
	cp_exchange_call(node->exchange,
			 &(struct cp_call_opts){ .target = CP_TARGET_LINK, .type = type, .body = body, .attempts = 1,
						 .deadline_ns = rq->deadline_ns, .done = on_forwarded, .ctx = to },
			 node->now_ns);
}
