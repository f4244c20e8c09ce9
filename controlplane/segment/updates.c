/* SPDX-License-Identifier: Apache-2.0
 * segment_updated, the owner's half: a few calls to each peer at a time, and behind them, by name, what it was not told
 * yet. A peer that hangs while thousands of segments go holds these few calls and nothing more. */
#include "controlplane/segment/updates.h"

#include <stdio.h>

#include "common/clock.h"
#include "common/message.h"

#define OUT_MAX 32u      /* calls to one peer */
#define WAITING_MAX 1024u /* names; of others a peer learns when it is refused what it has */

static void pump(struct cp_node *node, struct cp_peer *p);

static void on_told(struct cp_node *node, void *ctx, tn_status status, const char *detail, const json_t *body)
{
	struct cp_peer *p = ctx;
	(void)status, (void)detail, (void)body; /* who did not hear it is refused what is stale */
	p->updates.out--;
	pump(node, p);
}

/* Takes the body, which says the generation so far. */
static void call(struct cp_node *node, struct cp_peer *p, const char *name, json_t *body)
{
	tn_json_put_str(body, "name", name);
	tn_json_put_hex128(body, "session", &node->link.session);
	p->updates.out++;
	cp_exchange_call(node->exchange,
			 &(struct cp_call_opts){
				 .target = p->index, .type = "segment_updated", .method = TN_RPC_METHOD_SEGMENT_UPDATED,
				 .body = body, .attempts = 1, .done = on_told, .ctx = p,
				 .deadline_ns = node->now_ns + tn_config_ns(node->config, TN_CFG_CONTROL_RPC_TIMEOUT_MS) },
			 node->now_ns);
}

/* A call may end inside its own beginning, which must not begin the next one in there. */
static void pump(struct cp_node *node, struct cp_peer *p)
{
	struct cp_updates *u = &p->updates;
	void *first;
	if (u->busy)
		return;
	u->busy = true;
	while (u->out < OUT_MAX && (first = json_object_iter(u->waiting)) != NULL) {
		char name[TN_NAME_MAX];
		json_t *body = json_incref(json_object_iter_value(first));
		snprintf(name, sizeof name, "%s", json_object_iter_key(first));
		json_object_del(u->waiting, name);
		call(node, p, name, body);
	}
	u->busy = false;
}

void cp_updates_tell(struct cp_node *node, uint32_t peer, const char *name, uint64_t generation)
{
	struct cp_peer *p = &node->peers[peer];
	if (p->updates.waiting == NULL)
		p->updates.waiting = json_object();
	if (json_object_size(p->updates.waiting) >= WAITING_MAX && json_object_get(p->updates.waiting, name) == NULL)
		return;
	json_t *body = json_object();
	tn_json_put_u64(body, "generation", generation);
	json_object_set_new(p->updates.waiting, name, body);
	pump(node, p);
}
