/* SPDX-License-Identifier: Apache-2.0
 * Both halves of hello. Told: every peer of the config, because a control plane that restarted does not know who waits
 * for it; in a drawn order and paced, so that neither a large cluster nor a data plane that dies all the time makes a
 * storm. Heard: what this host remembers against the peer is forgotten, and asked again. */
#include "controlplane/peer/hello.h"

#include "common/clock.h"
#include "common/hook.h"
#include "common/message.h"
#include "controlplane/link/changed.h"
#include "controlplane/segment/remote.h"

#define BURST 8u
#define PAUSE_NS (10 * TN_NS_PER_MS)
#define ROUND_NS TN_NS_PER_S            /* between the beginnings of two rounds */
#define HEARD_MIN_NS (100 * TN_NS_PER_MS) /* a peer that says it more often is answered, and nothing more */

/* ---- told ---- */

static void round_begin(struct cp_node *node)
{
	struct cp_hello *h = &node->hello;
	h->again = false;
	h->left = node->peer_cnt;
	h->next = (uint32_t)tn_rand_below(&node->rand, TN_MAX(node->peer_cnt, 1u));
	h->due_ns = h->round_ns == 0 ? node->now_ns : TN_MAX(node->now_ns, h->round_ns + ROUND_NS);
	h->round_ns = h->due_ns;
}

void cp_hello_begin(struct cp_node *node)
{
	struct cp_hello *h = &node->hello;
	if (h->left == 0)
		round_begin(node);
	else
		h->again = h->left < node->peer_cnt; /* one that told nobody yet will tell the news */
}

/* A peer that is away says hello itself when it is back, and so does one whose data plane is. */
static void on_told(struct cp_node *node, void *ctx, tn_status status, const char *detail, const json_t *body)
{
	(void)detail;
	if (status == TN_OK && json_is_true(json_object_get(body, "data_plane")))
		cp_datagram_key_check(node, ctx, body);
}

static json_t *who_we_are(const struct cp_node *node, const struct cp_peer *to)
{
	json_t *b = json_object();
	tn_json_put_str(b, "name", node->name);
	tn_json_put_hex128(b, "session", &node->link.session);
	tn_json_put_hex128(b, "control_session", &node->control_session);
	cp_datagram_key_tell(to, b);
	return b;
}

void cp_hello_say(struct cp_node *node, uint32_t peer)
{
	if (!node->link.attached || !node->link.snapshot_done)
		return;
	cp_exchange_call(node->exchange,
			 &(struct cp_call_opts){
				 .target = peer, .type = "hello", .method = TN_RPC_METHOD_HELLO, .attempts = 1,
				 .body = who_we_are(node, &node->peers[peer]), .done = on_told, .ctx = &node->peers[peer],
				 .deadline_ns = node->now_ns + tn_config_ns(node->config, TN_CFG_CONTROL_RPC_TIMEOUT_MS) },
			 node->now_ns);
}

void cp_hello_tick(struct cp_node *node)
{
	struct cp_hello *h = &node->hello;
	if (h->left > 0 && !(node->link.attached && node->link.snapshot_done)) {
		h->left = 0; /* gone again: its successor begins a new round */
		h->again = false;
	}
	if (h->left == 0 || node->now_ns < h->due_ns)
		return;
	for (uint32_t i = 0; i < BURST && h->left > 0; i++, h->left--) {
		cp_hello_say(node, h->next);
		h->next = (h->next + 1) % node->peer_cnt;
	}
	h->due_ns = node->now_ns + PAUSE_NS;
	if (h->left == 0 && h->again)
		round_begin(node);
}

uint64_t cp_hello_next_ns(const struct cp_node *node)
{
	return node->hello.left > 0 ? node->hello.due_ns : UINT64_MAX;
}

/* ---- heard ---- */

/* The order matters: first nothing is held against the peer any more, then everybody who waits asks. */
static void returned(struct cp_node *node, struct cp_peer *p, const struct tn_id128 *session, const struct tn_id128 *control,
		     const json_t *hello)
{
	bool replaced = !tn_id128_eq(&p->control_session, control);
	p->control_session = *control;
	p->greeted_ns = node->now_ns;
	TN_HOOK(cp_hello_heard);
	cp_ticket_forgive(p);
	cp_remote_forgive(node, node->remote, p->index, session);
	if (replaced) {
		if (node->reconnect != NULL)
			node->reconnect(node->emit_ctx, p->index);
		cp_exchange_resend(node->exchange, p->index, node->now_ns);
	}
	cp_datagram_key_check(node, p, hello);
	cp_opens_advance(node, p->index, NULL);
	cp_link_peer_returned(node, p->cfg->name, session);
}

void cp_hello_heard(struct cp_node *node, const struct cp_request *rq)
{
	struct cp_peer *p = &node->peers[rq->to.peer];
	struct tn_json_in in;
	struct tn_id128 session, control;
	tn_json_in_init(&in, rq->body);
	bool told = tn_json_has(&in, "session") && tn_json_has(&in, "control_session");
	if (told) {
		tn_json_hex128(&in, "session", &session);
		tn_json_hex128(&in, "control_session", &control);
		if (in.status != TN_OK) {
			cp_node_reply(node, &rq->to, in.status, in.err, NULL);
			return;
		}
	}
	json_t *b = who_we_are(node, p);
	tn_json_put_bool(b, "data_plane", node->link.attached);
	if (!node->link.attached) {
		char text[CP_TROUBLE_TEXT];
		tn_json_put_str(b, "data_plane_trouble", cp_node_link_trouble(node, text));
	}
	json_object_set_new(b, "endpoints", node->link.endpoints != NULL ? json_incref(node->link.endpoints) : json_array());
	tn_json_put_u64(b, "frame_bytes", node->link.frame_bytes);
	cp_node_reply(node, &rq->to, TN_OK, NULL, b);
	if (told && (p->greeted_ns == 0 || node->now_ns - p->greeted_ns >= HEARD_MIN_NS))
		returned(node, p, &session, &control, rq->body);
}
