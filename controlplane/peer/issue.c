/* SPDX-License-Identifier: Apache-2.0
 * issue_ticket, the receiver's half: draw a ticket for (peer, its session), install it in our data plane, then answer. A
 * datagram key belongs to the peer's control plane too, which counts the datagrams: another one gets another key. Asked
 * again by the same one it gives the same answer, so retries are harmless. */
#include "controlplane/peer/issue.h"

#include <stdlib.h>
#include <string.h>

#include <sodium.h>

#include "common/hook.h"
#include "common/message.h"
#include "controlplane/peer/address.h"

struct cp_issue { /* one caller that waits for the installation */
	struct tn_list link;
	struct cp_reply_to to;
};

static json_t *answer(const struct cp_node *node, const struct cp_peer *p)
{
	char key[65];
	json_t *b = json_object();
	sodium_bin2hex(key, sizeof key, p->issued_key, sizeof p->issued_key);
	tn_json_put_hex128(b, "session", &node->link.session);
	tn_json_put_hex128(b, "ticket", &p->issued_ticket);
	tn_json_put_str(b, "datagram_key", key);
	json_object_set(b, "endpoints", node->link.endpoints);
	tn_json_put_u64(b, "frame_bytes", node->link.frame_bytes);
	sodium_memzero(key, sizeof key);
	return b;
}

void cp_issue_end(struct cp_node *node, struct cp_peer *p, tn_status status, const char *detail)
{
	cp_exchange_cancel(node->exchange, p->install_call);
	p->install_call = 0;
	for (struct tn_list *n; (n = tn_list_pop_front(&p->issue_waiting)) != NULL;) {
		struct cp_issue *w = tn_list_entry(n, struct cp_issue, link);
		cp_node_reply(node, &w->to, status, detail, status == TN_OK ? answer(node, p) : NULL);
		free(w);
	}
}

static void issue_fail(struct cp_node *node, struct cp_peer *p, tn_status status, const char *detail)
{
	memset(&p->issued_to, 0, sizeof p->issued_to);
	cp_issue_end(node, p, status, detail);
}

static void on_installed(struct cp_node *node, void *ctx, tn_status status, const char *detail, const json_t *body)
{
	struct cp_peer *p = ctx;
	(void)body;
	TN_HOOK(cp_ticket_installed);
	p->install_call = 0;
	if (status != TN_OK)
		issue_fail(node, p, status, detail);
	else
		cp_issue_end(node, p, TN_OK, NULL);
}

static void install(struct cp_node *node, struct cp_peer *p, const struct cp_request *rq, const json_t *named)
{
	json_t *allowed = NULL, *body;
	char why[TN_ERR_TEXT];
	tn_status st = cp_address_allowed(p->cfg, named, rq->address, &allowed, why);
	if (st != TN_OK) {
		issue_fail(node, p, st, why);
		return;
	}
	body = json_object();
	tn_json_put_hex128(body, "ticket", &p->issued_ticket);
	tn_json_put_str(body, "peer", p->cfg->name);
	tn_json_put_peer_id(body, "peer_id", &p->cfg->id);
	tn_json_put_hex128(body, "session", &p->issued_to);
	json_object_set_new(body, "addresses", allowed);
	p->install_call = cp_exchange_call(
		node->exchange,
		&(struct cp_call_opts){ .target = CP_TARGET_LINK, .type = "install_ticket", .body = body, .attempts = 1,
					.deadline_ns = rq->deadline_ns, .done = on_installed, .ctx = p },
		node->now_ns);
}

/* What a question is about. */
struct wish {
	struct tn_id128 session, control; /* control: zero when the peer's version does not tell */
	const json_t *addresses;
	bool renew;
};

static tn_status wish_read(struct tn_json_in *in, struct wish *w)
{
	*w = (struct wish){ .renew = false };
	tn_json_hex128(in, "session", &w->session);
	tn_json_array(in, "addresses", CP_ADDRESSES_NAMED_MAX, &w->addresses);
	if (tn_json_has(in, "control_session"))
		tn_json_hex128(in, "control_session", &w->control);
	if (tn_json_has(in, "renew"))
		tn_json_bool(in, "renew", &w->renew);
	if (in->status == TN_OK && tn_id128_is_zero(&w->session))
		tn_json_refuse(in, "session", "is zero");
	return in->status;
}

/* Somebody who begins to count anew signs with the next key: what the old one authenticated is worth nothing any more. */
static void key_draw(struct cp_peer *p, const struct tn_id128 *control)
{
	randombytes_buf(p->issued_key, sizeof p->issued_key);
	p->rx_sequence = 0;
	p->issued_control = *control;
	p->issued_call = 0;
}

static void ticket_draw(struct cp_node *node, struct cp_peer *p, const struct cp_request *rq, const struct wish *w)
{
	if (tn_rand_id128(&p->issued_ticket) != TN_OK) {
		issue_fail(node, p, TN_SYSTEM, "no randomness for a ticket");
		return;
	}
	TN_HOOK(cp_ticket_drawn);
	p->issued_to = w->session;
	install(node, p, rq, w->addresses);
}

void cp_issue_ticket(struct cp_node *node, const struct cp_request *rq)
{
	struct cp_peer *p = &node->peers[rq->to.peer];
	struct tn_json_in in;
	struct wish wish;
	tn_json_in_init(&in, rq->body);
	if (wish_read(&in, &wish) != TN_OK) {
		cp_node_reply(node, &rq->to, in.status, in.err, NULL);
		return;
	}
	if (!node->link.attached) {
		char text[CP_TROUBLE_TEXT];
		cp_node_reply(node, &rq->to, TN_DATAPLANE_DOWN, cp_node_link_trouble(node, text), NULL);
		return;
	}
	struct cp_issue *w = calloc(1, sizeof *w);
	if (w == NULL) {
		cp_node_reply(node, &rq->to, TN_NO_MEMORY, NULL, NULL);
		return;
	}
	w->to = rq->to;
	bool same = tn_id128_eq(&p->issued_to, &wish.session);
	if (!same) /* the peer restarted meanwhile: its old session's wait is over */
		cp_issue_end(node, p, TN_PEER_STALE, "a newer session asked for a ticket");
	if (!same || !tn_id128_eq(&p->issued_control, &wish.control))
		key_draw(p, &wish.control);
	/* asked a second time, or overtaken by a newer question: the caller of the newest has what is valid now */
	bool renew = wish.renew && (rq->to.id > p->issued_call || tn_id128_is_zero(&wish.control));
	p->issued_call = TN_MAX(p->issued_call, rq->to.id);
	tn_list_push_back(&p->issue_waiting, &w->link);
	if (p->install_call != 0)
		return;
	if (same && !renew)
		cp_issue_end(node, p, TN_OK, NULL);
	else
		ticket_draw(node, p, rq, &wish);
}
