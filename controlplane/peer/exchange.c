/* SPDX-License-Identifier: Apache-2.0
 * The only place where an outstanding call lives: a fixed table of calls found by id, resent while attempts are left,
 * ended exactly once. An attempt, its call or retry are counted
 * at one point, when the attempt ends, so attempts = calls + retries always holds. */
#include "controlplane/peer/exchange.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/assert.h"
#include "common/map_u64.h"
#include "controlplane/node.h"
#include "controlplane/observe/cells.h"

struct cp_call {
	struct tn_list link;      /* active or free list */
	struct cp_call_opts opts;
	uint64_t id;
	uint64_t start_ns, attempt_ns; /* of the call, of the attempt under way */
	uint64_t resend_ns;       /* when the attempt under way is given up; UINT64_MAX: it is the last */
	uint32_t attempts_left, attempt; /* attempt: 1, 2, ... of those really handed over */
	bool in_flight;           /* an attempt was really handed to the socket */
};

struct cp_exchange {
	struct cp_node *node;
	struct tn_map_u64 by_id;
	struct tn_list active, free;
	struct cp_call *calls;
	uint32_t used;            /* of calls; those behind were never touched, most hosts never need them */
	uint32_t outstanding, to_link, max;
	uint64_t next_id;
	char text[TN_NAME_MAX + 128]; /* of silence() */
	uint64_t next_ns; /* nothing is due before: a bound that a tick makes exact */
};

struct cp_exchange *cp_exchange_new(struct cp_node *node, uint32_t calls_max)
{
	struct cp_exchange *x = calloc(1, sizeof *x);
	if (x == NULL)
		return NULL;
	x->node = node;
	x->max = calls_max;
	x->next_id = 1;
	x->next_ns = UINT64_MAX;
	tn_list_init(&x->active);
	tn_list_init(&x->free);
	x->calls = calloc(calls_max, sizeof *x->calls);
	if (x->calls == NULL || tn_map_u64_init(&x->by_id, calls_max, tn_rand_u64(&node->rand)) != TN_OK) {
		cp_exchange_free(x);
		return NULL;
	}
	return x;
}

void cp_exchange_free(struct cp_exchange *x)
{
	if (x == NULL)
		return;
	if (x->calls != NULL)
		tn_list_foreach(n, &x->active)
			json_decref(tn_list_entry(n, struct cp_call, link)->opts.body);
	tn_map_u64_fini(&x->by_id);
	free(x->calls);
	free(x);
}

static bool counted(const struct cp_call *c)
{
	return c->opts.target != CP_TARGET_LINK;
}

static enum tn_rpc_outcome outcome_of(tn_status status)
{
	switch (status) {
	case TN_TIMEOUT: return TN_RPC_OUTCOME_TIMEOUT;
	case TN_CANCELED: return TN_RPC_OUTCOME_CANCELED;
	case TN_PEER_DOWN:
	case TN_PEER_DENIED: return TN_RPC_OUTCOME_CONNECT_ERROR;
	case TN_PATH_PROTOCOL:
	case TN_INTERNAL: return TN_RPC_OUTCOME_TRANSPORT_ERROR;
	default: return TN_RPC_OUTCOME_SUCCESS; /* an answer came, whatever it says */
	}
}

static void attempt_end(struct cp_exchange *x, struct cp_call *c, enum tn_rpc_outcome outcome, uint64_t now_ns)
{
	if (counted(c) && c->in_flight)
		cp_count_rpc(x->node->metrics, c->opts.method, outcome, now_ns - c->attempt_ns, c->attempt);
	c->in_flight = false;
}

static uint32_t *calls_to(struct cp_exchange *x, uint32_t target)
{
	return target == CP_TARGET_LINK ? &x->to_link : &x->node->peers[target].calls;
}

/* Nobody may have more calls than are left for all others: one that hangs gets half of them, with many that hang there is
 * as much left for the next one as each of them has. */
static bool has_share(struct cp_exchange *x, uint32_t target)
{
	return *calls_to(x, target) < x->max - x->outstanding;
}

static struct tn_list *free_take(struct cp_exchange *x)
{
	struct tn_list *n = tn_list_pop_front(&x->free);
	if (n != NULL || x->used == x->max)
		return n;
	n = &x->calls[x->used++].link;
	tn_list_init(n);
	return n;
}

/* The one way out; the body is the caller's. */
static struct cp_call_opts call_free(struct cp_exchange *x, struct cp_call *c)
{
	struct cp_call_opts opts = c->opts;
	tn_map_u64_remove(&x->by_id, c->id, NULL);
	tn_list_unlink(&c->link);
	tn_list_push_front(&x->free, &c->link);
	c->opts.body = NULL;
	x->outstanding--;
	--*calls_to(x, opts.target);
	return opts;
}

static void call_end(struct cp_exchange *x, struct cp_call *c, tn_status status, const char *detail, const json_t *body)
{
	struct cp_call_opts opts = call_free(x, c);
	opts.done(x->node, opts.ctx, status, detail == NULL ? "" : detail, status == TN_OK ? body : NULL);
	json_decref(opts.body);
}

/* Why there is no answer. */
static const char *silence(struct cp_exchange *x, const struct cp_call *c)
{
	if (counted(c))
		return cp_contact_text(&x->node->peers[c->opts.target]);
	snprintf(x->text, sizeof x->text, "the data plane of host %s did not answer in time; what it was asked for may still happen", x->node->name);
	return x->text;
}

static tn_status silence_status(const struct cp_exchange *x, const struct cp_call *c)
{
	return counted(c) && x->node->peers[c->opts.target].contact == CP_CONTACT_DENIED ? TN_PEER_DENIED : TN_PEER_DOWN;
}

/* Ended without an answer. */
static void call_fail(struct cp_exchange *x, struct cp_call *c, tn_status status, const char *detail)
{
	if (counted(c))
		cp_contact_failed(x->node, &x->node->peers[c->opts.target], status, detail);
	call_end(x, c, status, detail, NULL);
}

static uint64_t due_ns(const struct cp_call *c)
{
	return TN_MIN(c->opts.deadline_ns, c->resend_ns);
}

/* Hand one attempt to the socket. A refusal there ends the attempt at once; the next one is tried at its time. */
static tn_status attempt_start(struct cp_exchange *x, struct cp_call *c, uint64_t now_ns)
{
	uint64_t left = c->opts.deadline_ns - now_ns;
	c->resend_ns = c->attempts_left > 1 ? now_ns + left / c->attempts_left : UINT64_MAX;
	x->next_ns = TN_MIN(x->next_ns, due_ns(c));
	c->attempts_left--;
	c->attempt_ns = now_ns;
	c->attempt++;
	c->in_flight = true;
	tn_status s = cp_node_send(x->node, c->opts.target, c->opts.type, c->id, left, c->opts.body);
	if (s != TN_OK)
		attempt_end(x, c, outcome_of(s == TN_AGAIN ? TN_PEER_DOWN : s), now_ns);
	return s;
}

uint64_t cp_exchange_call(struct cp_exchange *x, const struct cp_call_opts *opts, uint64_t now_ns)
{
	tn_assert(opts->attempts > 0 && opts->done != NULL);
	bool may = opts->deadline_ns > now_ns && has_share(x, opts->target);
	struct tn_list *n = may ? free_take(x) : NULL;
	if (n == NULL) {
		bool late = opts->deadline_ns <= now_ns;
		opts->done(x->node, opts->ctx, late ? TN_TIMEOUT : TN_LIMIT,
			   late ? "the deadline had passed before the call" : "too many calls to it wait for an answer", NULL);
		json_decref(opts->body);
		return 0;
	}
	struct cp_call *c = tn_list_entry(n, struct cp_call, link);
	c->opts = *opts;
	c->id = x->next_id++;
	c->start_ns = now_ns;
	c->attempt = 0;
	c->attempts_left = opts->attempts;
	tn_list_push_back(&x->active, &c->link);
	x->outstanding++;
	++*calls_to(x, c->opts.target);
	if (tn_map_u64_insert_ptr(&x->by_id, c->id, c) != TN_OK) {
		call_end(x, c, TN_NO_MEMORY, "no room for another call", NULL);
		return 0;
	}
	uint64_t id = c->id;
	tn_status s = attempt_start(x, c, now_ns);
	if (s == TN_OK || c->attempts_left > 0)
		return id;
	call_fail(x, c, s == TN_AGAIN ? silence_status(x, c) : s, silence(x, c));
	return 0;
}

void cp_exchange_cancel(struct cp_exchange *x, uint64_t id)
{
	struct cp_call *c = id != 0 ? tn_map_u64_find_ptr(&x->by_id, id) : NULL;
	if (c == NULL)
		return;
	attempt_end(x, c, TN_RPC_OUTCOME_CANCELED, x->node->now_ns);
	json_decref(call_free(x, c).body);
}

void cp_exchange_reply(struct cp_exchange *x, uint32_t target, uint64_t id, tn_status status, const char *detail,
		       const json_t *body, uint64_t now_ns)
{
	struct cp_call *c = tn_map_u64_find_ptr(&x->by_id, id);
	if (c == NULL || c->opts.target != target)
		return; /* a late answer, or an answer to somebody else's question is no answer */
	attempt_end(x, c, TN_RPC_OUTCOME_SUCCESS, now_ns);
	if (counted(c))
		cp_contact_answered(&x->node->peers[target]);
	call_end(x, c, status, detail, body);
}

/* Whoever is told that a call is over may start new calls and so change the list: those that were there are taken from
 * its front one by one, and put back at its end as long as they live. */
static struct cp_call *rotate(struct cp_exchange *x)
{
	struct tn_list *n = tn_list_pop_front(&x->active);
	if (n == NULL)
		return NULL;
	tn_list_push_back(&x->active, n);
	return tn_list_entry(n, struct cp_call, link);
}

void cp_exchange_drop(struct cp_exchange *x, uint32_t target, tn_status status, const char *detail)
{
	uint64_t newer_id = x->next_id;
	struct cp_call *c;
	for (uint32_t left = x->outstanding; left > 0 && (c = rotate(x)) != NULL; left--) {
		if (c->opts.target != target || c->id >= newer_id)
			continue;
		attempt_end(x, c, outcome_of(status), x->node->now_ns);
		call_fail(x, c, status, detail);
	}
}

void cp_exchange_resend(struct cp_exchange *x, uint32_t target, uint64_t now_ns)
{
	struct cp_call *c;
	for (uint32_t left = x->outstanding; left > 0 && (c = rotate(x)) != NULL; left--) {
		if (c->opts.target != target || now_ns >= c->opts.deadline_ns)
			continue;
		attempt_end(x, c, TN_RPC_OUTCOME_CONNECT_ERROR, now_ns);
		c->attempts_left = TN_MAX(c->attempts_left, 1u);
		(void)attempt_start(x, c, now_ns); /* a refusal waits for the next attempt or the deadline */
	}
}

static void tick_one(struct cp_exchange *x, struct cp_call *c, uint64_t now_ns)
{
	if (now_ns >= c->opts.deadline_ns) {
		attempt_end(x, c, TN_RPC_OUTCOME_TIMEOUT, now_ns);
		call_fail(x, c, TN_TIMEOUT, silence(x, c));
		return;
	}
	if (now_ns >= c->resend_ns) {
		attempt_end(x, c, TN_RPC_OUTCOME_TIMEOUT, now_ns);
		(void)attempt_start(x, c, now_ns); /* a refusal waits for the next attempt or the deadline */
	}
	x->next_ns = TN_MIN(x->next_ns, due_ns(c));
}

void cp_exchange_tick(struct cp_exchange *x, uint64_t now_ns)
{
	struct cp_call *c;
	if (now_ns < x->next_ns)
		return;
	x->next_ns = UINT64_MAX;
	for (uint32_t left = x->outstanding; left > 0 && (c = rotate(x)) != NULL; left--)
		tick_one(x, c, now_ns);
}

uint64_t cp_exchange_next_ns(const struct cp_exchange *x)
{
	return x->next_ns;
}

uint32_t cp_exchange_outstanding(const struct cp_exchange *x)
{
	return x->outstanding;
}
