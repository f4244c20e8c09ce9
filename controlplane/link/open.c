/* SPDX-License-Identifier: Apache-2.0
 * `open` and `peer_refresh` of the link: questions that wait until what they need is there - a ticket for the peer's
 * data plane and, for open, the segment's descriptor of the same incarnation, newer than what was found stale - or
 * until their deadline. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/hook.h"
#include "common/message.h"
#include "controlplane/node.h"
#include "controlplane/registry/registry.h"
#include "controlplane/segment/remote.h"

#define OPENS_MAX 8192u
#define MISSED_ROUNDS 4

struct cp_open {
	struct tn_list link;
	struct cp_reply_to to;
	struct cp_peer *peer;
	char name[TN_NAME_MAX];        /* "": peer_refresh, only the ticket is wanted */
	struct tn_id128 stale_session; /* of the descriptor found stale, or of the session that refused the lane */
	uint64_t stale_generation;     /* 0 = any will do */
	bool renew;                    /* the ticket in hand was refused: ask for another before answering */
	uint64_t deadline_ns;
	uint64_t retry_ns;             /* look again then, although nothing was heard; UINT64_MAX = only when something is */
};

static void finish(struct cp_node *node, struct cp_open *op, tn_status status, const char *detail, json_t *body)
{
	tn_list_unlink(&op->link);
	node->open_cnt--;
	cp_node_reply(node, &op->to, status, detail, body);
	free(op);
}

/* On the link STALE says that this control plane does not know the data plane that asks: what a peer calls stale is not
 * there (any more). */
static void finish_failed(struct cp_node *node, struct cp_open *op, tn_status status, const char *what)
{
	char text[TN_MESSAGE_DETAIL];
	status = status == TN_STALE ? TN_NOT_FOUND : status;
	snprintf(text, sizeof text, "%s%s%s: %s", op->peer->cfg->name, op->name[0] != '\0' ? "/" : "", op->name,
		 what[0] != '\0' ? what : tn_status_meaning(status));
	finish(node, op, status, text, NULL);
}

/* Not there now, but worth waiting for: the host is starting, or restarting under a name that we already used. */
static bool worth_waiting(const struct cp_open *op, tn_status s)
{
	return s == TN_TIMEOUT || s == TN_PEER_DOWN || s == TN_DATAPLANE_DOWN || s == TN_PEER_STALE ||
	       (op->stale_generation != 0 && (s == TN_NOT_FOUND || s == TN_STALE));
}

/* A definite no ends it (true); a "not yet" sets when to look again (false). */
static bool wait_or_fail(struct cp_node *node, struct cp_open *op, tn_status s, const char *detail, uint64_t retry_ns)
{
	if (worth_waiting(op, s) && retry_ns < op->deadline_ns) {
		op->retry_ns = retry_ns;
		node->opens_next_ns = TN_MIN(node->opens_next_ns, retry_ns);
		return false;
	}
	finish_failed(node, op, s == TN_TIMEOUT || s == TN_DATAPLANE_DOWN ? TN_PEER_DOWN : s, detail);
	return true;
}

/* True when op was finished. */
static bool advance(struct cp_node *node, struct cp_open *op)
{
	struct cp_remote_view v = { .status = TN_OK };
	struct cp_peer *p = op->peer;
	op->retry_ns = UINT64_MAX;
	if (op->name[0] != '\0')
		cp_remote_get(node, node->remote, p->index, op->name, &op->stale_session, op->stale_generation, &v);
	if (v.status == TN_PENDING)
		return false;
	if (v.status != TN_OK)
		return wait_or_fail(node, op, v.status, v.detail, v.retry_ns);
	bool other_session = op->name[0] != '\0' && p->ticket_state == CP_TICKET_HELD && !tn_id128_eq(&p->session, &v.session);
	bool renew = op->renew && p->ticket_state == CP_TICKET_HELD;
	op->renew = op->renew && p->ticket_state != CP_TICKET_HELD;
	cp_ticket_want(node, p, other_session || renew);
	if (p->ticket_state == CP_TICKET_FAILED)
		return wait_or_fail(node, op, p->last_status, p->last_detail, p->retry_ns);
	if (p->ticket_state != CP_TICKET_HELD || (op->name[0] != '\0' && !tn_id128_eq(&p->session, &v.session)))
		return false;
	TN_HOOK(cp_open_ready);
	json_t *b = json_object();
	json_object_set_new(b, "peer", cp_peer_json(p));
	if (op->name[0] != '\0')
		json_object_set(b, "segment", (json_t *)(uintptr_t)v.segment);
	finish(node, op, TN_OK, NULL, b);
	return true;
}

/* Asking may be answered at once (no room for a call, no socket), and answers advance the opens that wait for them: not
 * from inside another one's advance, which may be of the same open. They are remembered for its end. */
static void advance_alone(struct cp_node *node, struct cp_open *op)
{
	node->opens_busy = true;
	(void)advance(node, op);
	node->opens_busy = false;
}

static struct cp_open *rotate(struct cp_node *node)
{
	struct tn_list *n = tn_list_pop_front(&node->opens);
	if (n == NULL)
		return NULL;
	tn_list_push_back(&node->opens, n);
	return tn_list_entry(n, struct cp_open, link);
}

static bool waits_for(const struct cp_open *op, uint32_t peer, const char *name)
{
	return op->peer->index == peer && (name == NULL || strcmp(op->name, name) == 0);
}

/* Somebody was told of something while another one was advanced. What never settles goes on in the next tick. */
static void advance_missed(struct cp_node *node)
{
	struct cp_open *op;
	for (int round = 0; node->opens_missed && round < MISSED_ROUNDS; round++) {
		node->opens_missed = false;
		for (uint32_t left = node->open_cnt; left > 0 && (op = rotate(node)) != NULL; left--)
			advance_alone(node, op);
	}
	if (node->opens_missed)
		node->opens_next_ns = node->now_ns;
}

/* A descriptor and a ticket that name different incarnations settle by asking again: a ticket answer drops descriptors
 * of other sessions, a newer descriptor asks for a new ticket. */
void cp_opens_advance(struct cp_node *node, uint32_t peer, const char *name)
{
	struct cp_open *op;
	if (node->opens_busy) {
		node->opens_missed = true;
		return;
	}
	for (uint32_t left = node->open_cnt; left > 0 && (op = rotate(node)) != NULL; left--)
		if (waits_for(op, peer, name))
			advance_alone(node, op);
	advance_missed(node);
}

static struct cp_open *open_new(struct cp_node *node, const struct cp_request *rq)
{
	struct cp_open *op = node->open_cnt < OPENS_MAX ? calloc(1, sizeof *op) : NULL;
	if (op == NULL) {
		cp_node_reply(node, &rq->to, TN_LIMIT, "too many opens are waiting", NULL);
		return NULL;
	}
	op->to = rq->to;
	op->deadline_ns = rq->deadline_ns;
	op->retry_ns = UINT64_MAX;
	return op;
}

static void enqueue(struct cp_node *node, struct cp_open *op, struct cp_peer *peer)
{
	op->peer = peer;
	tn_list_push_back(&node->opens, &op->link);
	node->open_cnt++;
	node->opens_next_ns = TN_MIN(node->opens_next_ns, op->deadline_ns);
	advance_alone(node, op);
	advance_missed(node);
}

void cp_open_start(struct cp_node *node, const struct cp_request *rq)
{
	struct tn_json_in in;
	const char *ref = "";
	char err[TN_ERR_TEXT];
	uint32_t peer = CP_NO_PEER;
	struct cp_open *op = open_new(node, rq);
	if (op == NULL)
		return;
	tn_json_in_init(&in, rq->body);
	tn_json_str(&in, "ref", 2 * TN_NAME_MAX, &ref);
	if (tn_json_has(&in, "stale_generation")) {
		tn_json_u64(&in, "stale_generation", 0, UINT64_MAX, &op->stale_generation);
		tn_json_hex128(&in, "stale_session", &op->stale_session);
	}
	tn_status s = in.status;
	if (s != TN_OK)
		snprintf(err, sizeof err, "%s", in.err);
	else
		s = cp_registry_resolve(node->config, ref, &peer, op->name, err, sizeof err);
	if (s != TN_OK) {
		free(op);
		cp_node_reply(node, &rq->to, s, err, NULL);
		return;
	}
	enqueue(node, op, &node->peers[peer]);
}

void cp_peer_refresh_start(struct cp_node *node, const struct cp_request *rq)
{
	struct tn_json_in in;
	char name[TN_NAME_MAX];
	struct cp_peer *p = NULL;
	struct cp_open *op = open_new(node, rq);
	if (op == NULL)
		return;
	tn_json_in_init(&in, rq->body);
	tn_json_name(&in, "peer", name);
	tn_json_hex128(&in, "stale_session", &op->stale_session);
	if (in.status == TN_OK && (p = cp_node_peer_by_name(node, name)) == NULL)
		tn_json_refuse(&in, "peer", "names no peer of the config");
	if (in.status != TN_OK) {
		free(op);
		cp_node_reply(node, &rq->to, in.status, in.err, NULL);
		return;
	}
	/* what is held may already be newer than what the lane was refused with */
	op->renew = p->ticket_state == CP_TICKET_HELD && tn_id128_eq(&p->session, &op->stale_session);
	enqueue(node, op, p);
}

static void tick_one(struct cp_node *node, struct cp_open *op)
{
	if (node->now_ns >= op->deadline_ns) {
		finish_failed(node, op, op->peer->error.now && op->peer->error.status == TN_PEER_DENIED ? TN_PEER_DENIED : TN_PEER_DOWN,
			      op->peer->error.now ? op->peer->error.detail : "its answer did not come in time");
		return;
	}
	node->opens_next_ns = TN_MIN(node->opens_next_ns, op->deadline_ns);
	if (!node->link.attached)
		return; /* nothing is asked, or told, in the name of a data plane that is silent: it attaches again first */
	if (node->now_ns >= op->retry_ns)
		advance_alone(node, op); /* sets when to look again */
	else
		node->opens_next_ns = TN_MIN(node->opens_next_ns, op->retry_ns);
}

void cp_opens_tick(struct cp_node *node)
{
	struct cp_open *op;
	if (node->now_ns < node->opens_next_ns)
		return;
	node->opens_next_ns = UINT64_MAX;
	for (uint32_t left = node->open_cnt; left > 0 && (op = rotate(node)) != NULL; left--)
		tick_one(node, op);
	advance_missed(node);
}

uint64_t cp_opens_next_ns(const struct cp_node *node)
{
	return node->opens_next_ns;
}

void cp_opens_drop(struct cp_node *node, const char *why)
{
	while (!tn_list_empty(&node->opens))
		finish(node, tn_list_first(&node->opens, struct cp_open, link), TN_DATAPLANE_DOWN, why, NULL);
	node->opens_next_ns = UINT64_MAX;
}
