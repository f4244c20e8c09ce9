/* SPDX-License-Identifier: Apache-2.0
 * What the keeper does when the data plane hung up: prove it dead, find its successor, hand everything over again, and
 * tell the queue pairs. Order: memories, policies, queue pairs (all before anybody may submit), then publications and opens,
 * which come back one by one while requests that need them are held. What becomes of each outstanding request is
 * decided by its owner thread in adopt.c. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "dataplane/libtent/call.h"
#include "common/hook.h"
#include "dataplane/libtent/memory.h"
#include "dataplane/libtent/queue.h"
#include "dataplane/libtent/segment.h"

/* After the hang-up the process may still be on its way out, with hardware under its command; its pidfd tells the end.
 * A data plane that lives on (it dropped only us) is waited for no longer than this. */
#define PROOF_NS TN_NS_PER_S
#define COPY_LOOK_NS (1 * TN_NS_PER_MS)
#define BACKOFF_MIN_NS (10 * TN_NS_PER_MS)
#define BACKOFF_MAX_NS (200 * TN_NS_PER_MS)
#define RESTORE_BACKOFF_MIN_NS (20 * TN_NS_PER_MS)
#define RESTORE_BACKOFF_MAX_NS (500 * TN_NS_PER_MS)

/* ---- the queue pairs' doors ---- */

/* Wakes owners whose held requests passed their deadline; returns the next such time. Lock held. */
static uint64_t knock_expired(tent_context *ctx, uint64_t now_ns)
{
	uint64_t due_ns = UINT64_MAX;

	tn_list_foreach(node, &ctx->qps) {
		tent_qp *qp = tn_list_entry(node, tent_qp, link);
		uint64_t deadline_ns = tn_load_relaxed64(&qp->held_deadline_ns);

		if (deadline_ns > now_ns)
			due_ns = TN_MIN(due_ns, deadline_ns);
		else if ((tn_load_relaxed32(&qp->events) & LT_EVENT_REFRESH) == 0)
			lt_queue_knock(qp, LT_EVENT_REFRESH);
	}
	return due_ns;
}

static void knock_all(tent_context *ctx, uint32_t events)
{
	tn_list_foreach(node, &ctx->qps)
		lt_queue_knock(tn_list_entry(node, tent_qp, link), events);
}

static void knock_dead(tent_qp *qp, tn_status status, const char *why)
{
	qp->door_status = status;
	(void)snprintf(qp->door_text, sizeof qp->door_text, "%s", why);
	lt_ring_close(qp->next_ring);
	qp->next_ring = NULL;
	lt_queue_knock(qp, LT_EVENT_DEAD);
}

void lt_context_die(tent_context *ctx, tn_status status, const char *why)
{
	char text[sizeof ctx->dead_text];
	uint64_t one = 1;

	/* What follows says of requests that their memory is quiet. */
	(void)lt_copier_settle(ctx, tn_deadline_after(tn_now_ns(), ctx->timeout_ns));

	(void)snprintf(text, sizeof text, "%s", why);
	memcpy(ctx->dead_text, text, sizeof ctx->dead_text);
	ctx->dead_status = status;
	lt_context_move(ctx, LT_CONTEXT_DEAD);
	if (ctx->sock >= 0)
		(void)close(ctx->sock);
	ctx->sock = -1;
	lt_call_lose_all(ctx);
	tn_list_foreach(node, &ctx->qps) {
		tent_qp *qp = tn_list_entry(node, tent_qp, link);

		if (qp->door_status == TN_OK)
			knock_dead(qp, status, ctx->dead_text);
	}
	(void)!write(ctx->note_fd, &one, sizeof one); /* whoever waits for notices learns too */
	(void)pthread_cond_broadcast(&ctx->cond);
}

/* ---- losing ---- */

static void close_socket(tent_context *ctx)
{
	(void)pthread_mutex_lock(&ctx->lock);
	lt_context_move(ctx, LT_CONTEXT_RECOVERING);
	ctx->lost_ns = tn_now_ns();
	(void)close(ctx->sock);
	ctx->sock = -1;
	lt_call_lose_all(ctx);
	(void)pthread_mutex_unlock(&ctx->lock);
}

static bool is_closing(tent_context *ctx)
{
	(void)pthread_mutex_lock(&ctx->lock);
	bool closing = ctx->closing;
	(void)pthread_mutex_unlock(&ctx->lock);
	return closing;
}

/* Sleeps until `until_ns`, or until `fd` is readable, waking owners of expired requests meanwhile. False: the context
 * closes. */
static bool nap(tent_context *ctx, int fd, uint64_t until_ns)
{
	for (;;) {
		uint64_t now_ns = tn_now_ns(), sink;

		(void)pthread_mutex_lock(&ctx->lock);
		bool closing = ctx->closing;
		uint64_t due_ns = knock_expired(ctx, now_ns);
		(void)pthread_mutex_unlock(&ctx->lock);
		if (closing)
			return false;
		if (now_ns >= until_ns || (fd >= 0 && lt_io_wait_readable(fd, -1, 0)))
			return true;
		(void)lt_io_wait_readable(fd, ctx->wake_fd, TN_MIN(until_ns, due_ns));
		(void)!read(ctx->wake_fd, &sink, sizeof sink);
	}
}

static void prove_dead(tent_context *ctx)
{
	if (ctx->pidfd < 0)
		return;
	(void)nap(ctx, ctx->pidfd, tn_deadline_after(tn_now_ns(), PROOF_NS));
	(void)close(ctx->pidfd);
	ctx->pidfd = -1;
}

/* What the dead data plane asked us to copy: none of it may be under way when requests are settled or sent again. False: it
 * does not end, or the context closes. */
static bool settle_copies(tent_context *ctx, uint64_t deadline_ns)
{
	for (;;) {
		(void)pthread_mutex_lock(&ctx->lock);
		bool quiet = lt_copier_drop(ctx);
		(void)pthread_mutex_unlock(&ctx->lock);
		if (quiet)
			return true;
		if (tn_now_ns() >= deadline_ns || !nap(ctx, -1, tn_deadline_after(tn_now_ns(), COPY_LOOK_NS)))
			return false;
	}
}

/* Nothing that the dead data plane gave us is valid any more. */
static void void_everything(tent_context *ctx)
{
	(void)pthread_mutex_lock(&ctx->lock);
	for (int kind = 0; kind < LT_KIND_CNT; kind++) {
		tn_list_foreach(node, &ctx->objects[kind]) {
			struct lt_object *o = tn_list_entry(node, struct lt_object, link);
			uint32_t state = tn_load_relaxed32(&o->state);

			o->retry_ns = 0;
			o->backoff_ns = RESTORE_BACKOFF_MIN_NS;
			if (state == LT_OBJECT_LIVE || state == LT_OBJECT_FAILED)
				lt_object_move(o, LT_OBJECT_RESTORING);
			else if (state == LT_OBJECT_CLOSING || state == LT_OBJECT_LOST)
				tn_store_relaxed64(&o->id, 0);
		}
	}
	tn_list_foreach(node, &ctx->qps) {
		tent_qp *qp = tn_list_entry(node, tent_qp, link);

		if (qp->door_status != TN_OK)
			continue;
		lt_ring_close(qp->next_ring);
		qp->next_ring = NULL;
		lt_queue_knock(qp, LT_EVENT_LOST);
	}
	(void)pthread_mutex_unlock(&ctx->lock);
}

/* ---- restoring, part 1: before the attachment is used ---- */

/* One request and its answer on a socket that only we know yet. */
static tn_status ask(tent_context *ctx, int sock, const struct lt_call *call, struct lt_reply *reply)
{
	struct shr_msg *m = ctx->incoming;
	uint32_t correlation = ++ctx->correlation;

	lt_call_message(call, correlation, m);
	tn_status s = shr_msg_send_until(sock, m, call->deadline_ns);
	while (s == TN_OK) {
		s = shr_msg_recv_until(sock, SHR_FROM_DATAPLANE, m, call->deadline_ns);
		if (s != TN_OK)
			break;
		if ((m->hdr.type & SHR_MSG_REPLY) != 0)
			return m->hdr.correlation == correlation && lt_reply_parse(call->type, m, reply)
				   ? TN_OK
				   : TN_PATH_PROTOCOL;
		(void)pthread_mutex_lock(&ctx->lock);
		(void)lt_keeper_dispatch(ctx, m);
		(void)pthread_mutex_unlock(&ctx->lock);
	}
	return s;
}

/* The same, asked again while its workers are behind, or it has no memory for now: everybody asks at once. A successor that
 * drains already is of no use. */
static tn_status ask_until_taken(tent_context *ctx, int sock, const struct lt_call *call, struct lt_reply *reply)
{
	for (;;) {
		tn_status s = ask(ctx, sock, call, reply);

		bool scarce = s == TN_OK && reply->status == TN_NO_MEMORY, late = tn_now_ns() >= call->deadline_ns;
		if (s != TN_OK || (scarce ? late : !lt_reply_is_not_now(reply)))
			return s;
		if (reply->status == TN_DATAPLANE_DOWN || late)
			return TN_DATAPLANE_DOWN;
		if (!nap(ctx, -1, tn_deadline_after(tn_now_ns(), BACKOFF_MIN_NS)))
			return TN_CLOSED;
	}
}

/* The object came back with an id, or it did not. Lock held. */
static void settle_object(struct lt_object *o, tn_status status, uint64_t id)
{
	if (status == TN_OK) {
		tn_store_relaxed64(&o->id, id);
		lt_object_move(o, LT_OBJECT_LIVE);
	} else if (o->kind == LT_PUBLISHED) {
		lt_published_lose((tent_published *)o, status);
	} else {
		tn_store_relaxed32(&o->fail_status, (uint32_t)status);
		lt_object_move(o, LT_OBJECT_FAILED);
	}
}

static tn_status restore_memories(tent_context *ctx, int sock)
{
	tn_list_foreach(node, &ctx->objects[LT_MEMORY]) {
		tent_memory *mem = tn_list_entry(node, tent_memory, obj.link);
		struct lt_reply reply;
		struct lt_call call;
		uint64_t id;

		if (tn_load_relaxed32(&mem->obj.state) != LT_OBJECT_RESTORING)
			continue;
		lt_memory_register_call(mem, tn_deadline_after(tn_now_ns(), ctx->timeout_ns), &call);
		tn_status s = TN_OK;
		if (ctx->hello.abi_minor < SHR_MINOR_IMPORT && (mem->imported || mem == ctx->staging))
			reply = (struct lt_reply){ .status = TN_UNSUPPORTED };
		else
			s = ask_until_taken(ctx, sock, &call, &reply);
		if (s != TN_OK)
			return s;
		memcpy(&id, reply.body, sizeof id);
		(void)pthread_mutex_lock(&ctx->lock);
		settle_object(&mem->obj, reply.status, id);
		(void)pthread_mutex_unlock(&ctx->lock);
	}
	return TN_OK;
}

static tn_status restore_queue(tent_context *ctx, int sock, tent_qp *qp)
{
	struct lt_ring *ring = NULL;
	struct lt_reply reply;
	struct lt_call call;

	lt_queue_create_call(qp, tn_deadline_after(tn_now_ns(), ctx->timeout_ns), &call);
	tn_status s = ask_until_taken(ctx, sock, &call, &reply);
	if (s != TN_OK)
		return s;
	s = reply.status == TN_OK ? lt_ring_open(qp, &reply, &ring) : reply.status;
	(void)pthread_mutex_lock(&ctx->lock);
	if (s == TN_OK)
		qp->next_ring = ring;
	else
		knock_dead(qp, s, "the restarted data plane gave no new queue pair");
	(void)pthread_mutex_unlock(&ctx->lock);
	return TN_OK;
}

static tn_status restore_queues(tent_context *ctx, int sock)
{
	tn_list_foreach(node, &ctx->qps) {
		tent_qp *qp = tn_list_entry(node, tent_qp, link);
		tn_status s = qp->door_status == TN_OK ? restore_queue(ctx, sock, qp) : TN_OK;

		if (s != TN_OK)
			return s;
	}
	return TN_OK;
}

/* What a policy is called is asked again; one that is gone, or that nobody can be asked for, matches nothing. */
static tn_status restore_policies(tent_context *ctx, int sock)
{
	struct lt_policies *p = &ctx->policies;

	for (uint32_t i = 0; i < tn_load_relaxed32(&p->cnt); i++) {
		struct lt_reply reply = { .status = TN_UNSUPPORTED };
		struct lt_call call;

		lt_policy_call(p->names[i], tn_deadline_after(tn_now_ns(), ctx->timeout_ns), &call);
		tn_status s = ctx->hello.abi_minor < SHR_MINOR_POLICY_FIND ? TN_OK : ask_until_taken(ctx, sock, &call, &reply);
		if (s != TN_OK)
			return s;
		lt_policy_answered(p, i, &reply);
	}
	return TN_OK;
}

/* False: the application closes meanwhile. It has said its goodbye already, to nobody; an attachment that began now
 * would never end. */
static bool adopt_socket(tent_context *ctx, int sock)
{
	(void)pthread_mutex_lock(&ctx->lock);
	if (ctx->closing) {
		(void)pthread_mutex_unlock(&ctx->lock);
		return false;
	}
	ctx->sock = sock;
	ctx->pidfd = lt_io_peer_pidfd(sock);
	lt_context_move(ctx, LT_CONTEXT_ATTACHED);
	ctx->draining = false;
	ctx->reattach_cnt++;
	tn_list_foreach(node, &ctx->qps) {
		tent_qp *qp = tn_list_entry(node, tent_qp, link);

		if (qp->next_ring != NULL)
			lt_queue_knock(qp, LT_EVENT_RING);
	}
	(void)pthread_cond_broadcast(&ctx->cond);
	(void)pthread_mutex_unlock(&ctx->lock);
	return true;
}

/* ---- finding the successor ---- */

/* What counts per attachment starts anew. Lock held. */
static void start_attachment(tent_context *ctx, const struct shr_msg_hello_reply *hello)
{
	ctx->hello = *hello;
	ctx->attachment++;
	ctx->note_inflight = ctx->note_taken = 0;
	memset(ctx->early_losses, 0, sizeof ctx->early_losses);
}

/* TN_OK: attached, or dead for good (the state tells). Anything else: try again. */
static tn_status try_successor(tent_context *ctx, uint64_t deadline_ns)
{
	struct shr_msg_hello_reply hello;
	bool reached;
	int sock;
	uint64_t until_ns = TN_MIN(deadline_ns, tn_deadline_after(tn_now_ns(), ctx->timeout_ns));
	tn_status s = lt_io_attach(ctx->socket_path, ctx->app, until_ns, &sock, &hello, &reached);

	if (s != TN_OK && s != TN_ABI_MISMATCH)
		return s;
	(void)pthread_mutex_lock(&ctx->lock);
	bool same = s == TN_OK && tn_id128_eq(&hello.session, &ctx->hello.session);
	if (s == TN_ABI_MISMATCH)
		lt_context_die(ctx, s, "the data plane came back with another ABI");
	else if (same && !ctx->draining)
		lt_context_die(ctx, TN_CLIENT_BROKEN,
			       "the data plane dropped this attachment: a ring or message rule was broken, or its "
			       "answers were not read");
	else if (!same)
		start_attachment(ctx, &hello);
	(void)pthread_mutex_unlock(&ctx->lock);
	if (s != TN_OK)
		return TN_OK;
	if (same) {
		(void)close(sock);
		return ctx->draining ? TN_AGAIN : TN_OK; /* draining: it goes away as it said */
	}
	TN_HOOK(lt_recover_attached);
	s = restore_memories(ctx, sock);
	TN_HOOK(lt_recover_memories);
	if (s == TN_OK)
		s = restore_policies(ctx, sock);
	if (s == TN_OK)
		s = restore_queues(ctx, sock);
	TN_HOOK(lt_recover_queues);
	if (s == TN_OK && adopt_socket(ctx, sock))
		return TN_OK;
	(void)close(sock);
	void_everything(ctx); /* this one is gone too, or of no use: what it gave is void */
	return s != TN_OK ? s : TN_CANCELED;
}

void lt_recover(tent_context *ctx)
{
	uint64_t deadline_ns = tn_deadline_after(tn_now_ns(), ctx->recover_timeout_ns);
	uint64_t backoff_ns = BACKOFF_MIN_NS;
	char why[sizeof ctx->dead_text];

	close_socket(ctx);
	prove_dead(ctx);
	bool quiet = settle_copies(ctx, deadline_ns);
	void_everything(ctx);
	while (quiet && !is_closing(ctx) && tn_now_ns() < deadline_ns) {
		if (try_successor(ctx, deadline_ns) == TN_OK)
			return;
		if (!nap(ctx, -1, TN_MIN(deadline_ns, tn_deadline_after(tn_now_ns(), backoff_ns))))
			return;
		backoff_ns = TN_MIN(backoff_ns * 2, BACKOFF_MAX_NS);
	}
	(void)snprintf(why, sizeof why, quiet ? "the data plane died and none came back within %llu ms" :
		       "the data plane died, and a copy in imported memory has not ended within %llu ms",
		       (unsigned long long)(ctx->recover_timeout_ns / TN_NS_PER_MS));
	(void)pthread_mutex_lock(&ctx->lock);
	if (!ctx->closing)
		lt_context_die(ctx, TN_DATAPLANE_DOWN, why);
	(void)pthread_mutex_unlock(&ctx->lock);
}

/* ---- restoring, part 2: publications and opens, while the attachment is in use ---- */

/* Others may still be on their way back: the publisher of a segment here, the control plane, a peer. */
static bool may_pass(tn_status s)
{
	switch (s) {
	case TN_AGAIN:
	case TN_DATAPLANE_DOWN:
	case TN_BUSY:
	case TN_TIMEOUT:
	case TN_NOT_FOUND:
	case TN_STALE:
	case TN_NO_MEMORY: /* of the restarted data plane, which everybody asks at once, or here */
	case TN_PATH_DOWN:
	case TN_PATH_TIMEOUT:
	case TN_PEER_DOWN: case TN_PEER_STALE: case TN_CONTROLPLANE_DOWN:
		return true;
	default:
		return false;
	}
}

/* Lock held. */
static void judge_restore(tent_context *ctx, struct lt_object *o, tn_status status, uint64_t id)
{
	uint64_t now_ns = tn_now_ns();

	if (status != TN_OK && may_pass(status) && now_ns < tn_deadline_after(ctx->lost_ns, ctx->recover_timeout_ns)) {
		o->retry_ns = now_ns + o->backoff_ns;
		o->backoff_ns = TN_MIN(o->backoff_ns * 2, RESTORE_BACKOFF_MAX_NS);
		return;
	}
	settle_object(o, status == TN_AGAIN ? TN_BUSY : status, id);
	knock_all(ctx, LT_EVENT_REFRESH);
}

/* Keeper: the answer to a restoring PUBLISH or OPEN, or the end of the attachment it was sent on. */
static void restore_answered(tent_context *ctx, struct lt_waiter *w)
{
	struct lt_object *o = w->arg;
	uint64_t id = 0;

	o->inflight = NULL;
	if (w->lost)
		return;
	TN_HOOK(lt_recover_restored);
	if (w->reply.status == TN_OK && o->kind == LT_SEGMENT)
		id = lt_segment_take_reply((tent_segment *)o, &w->reply);
	else if (w->reply.status == TN_OK)
		memcpy(&id, w->reply.body, sizeof id);
	if (tn_load_relaxed32(&o->state) == LT_OBJECT_CLOSING)
		tn_store_relaxed64(&o->id, id); /* whoever closes it waits for exactly this */
	else
		judge_restore(ctx, o, w->reply.status, id);
}

/* Lock held. */
static void start_restore(tent_context *ctx, struct lt_object *o, uint64_t now_ns)
{
	struct lt_call call;
	tn_status s = TN_OK;

	/* A PUBLISH that was taken holds the name, however long its answer needs: a second one would only meet the first.
	 * So it is waited for until the attachment ends. */
	if (o->kind == LT_PUBLISHED)
		s = lt_published_call((const tent_published *)o, UINT64_MAX, &call);
	else
		lt_segment_open_call((const tent_segment *)o, tn_deadline_after(now_ns, ctx->timeout_ns), &call);
	if (s == TN_OK)
		s = lt_call_start(ctx, &call, restore_answered, o, &o->inflight);
	if (s != TN_OK)
		judge_restore(ctx, o, s, 0);
}

uint64_t lt_restore_due(tent_context *ctx, uint64_t now_ns)
{
	uint64_t due_ns = knock_expired(ctx, now_ns);

	for (int kind = LT_PUBLISHED; kind <= LT_SEGMENT; kind++) {
		tn_list_foreach(node, &ctx->objects[kind]) {
			struct lt_object *o = tn_list_entry(node, struct lt_object, link);

			if (o->inflight != NULL && now_ns >= o->inflight->deadline_ns) {
				o->inflight->finish = NULL;
				o->inflight->abandoned = true;
				o->inflight = NULL;
				(void)pthread_cond_broadcast(&ctx->cond);
				if (tn_load_relaxed32(&o->state) == LT_OBJECT_RESTORING)
					judge_restore(ctx, o, TN_TIMEOUT, 0);
			}
			if (o->inflight == NULL && tn_load_relaxed32(&o->state) == LT_OBJECT_RESTORING &&
			    now_ns >= o->retry_ns)
				start_restore(ctx, o, now_ns);
			if (o->inflight != NULL)
				due_ns = TN_MIN(due_ns, o->inflight->deadline_ns);
			else if (tn_load_relaxed32(&o->state) == LT_OBJECT_RESTORING)
				due_ns = TN_MIN(due_ns, o->retry_ns);
		}
	}
	return due_ns;
}
