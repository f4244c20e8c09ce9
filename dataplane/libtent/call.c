/* SPDX-License-Identifier: Apache-2.0
 * Requests to the data plane and their replies. The waiter of a call lives in the context's list from send to reply;
 * one that was given up stays there, marked abandoned, until its reply comes and can be undone. */
#include "dataplane/libtent/call.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* While the socket is full, or was found hung up before the keeper noticed. */
#define SEND_RETRY_NS TN_NS_PER_MS
/* While the data plane's workers are behind with what it asked them to do, or it drains and is about to go. */
#define BUSY_RETRY_NS (10 * TN_NS_PER_MS)

uint32_t lt_build_id(const void *arg, uint8_t body[static SHR_MSG_MAX])
{
	struct shr_msg_id m = { .id = *(const uint64_t *)arg };

	memcpy(body, &m, sizeof m);
	return sizeof m;
}

uint32_t lt_build_none(const void *arg, uint8_t body[static SHR_MSG_MAX])
{
	(void)arg, (void)body;
	return 0;
}

/* The message that takes back what `type` created; 0 = it created nothing. */
static uint16_t undo_type(uint16_t type)
{
	switch (type) {
	case SHR_MSG_QP_CREATE: return SHR_MSG_QP_DESTROY;
	case SHR_MSG_MEM_REGISTER:
	case SHR_MSG_MEM_IMPORT: return SHR_MSG_MEM_UNREGISTER;
	case SHR_MSG_PUBLISH: return SHR_MSG_WITHDRAW;
	case SHR_MSG_OPEN: return SHR_MSG_CLOSE;
	default: return 0;
	}
}

bool lt_reply_parse(uint16_t type, struct shr_msg *m, struct lt_reply *out)
{
	uint32_t body_bytes = m->len - (uint32_t)sizeof m->hdr;

	*out = (struct lt_reply){ .status = (tn_status)m->hdr.status, .detail = m->hdr.detail, .fds = { -1, -1 } };
	/* No status between OK and failure answers a control call, except AGAIN. */
	if (m->hdr.type != (type | SHR_MSG_REPLY) || body_bytes > sizeof out->body || m->hdr.status > TN_AGAIN) {
		shr_msg_close_fds(m);
		return false;
	}
	memcpy(out->body, shr_msg_body_ro(m), body_bytes);
	for (uint32_t i = 0; i < m->fd_cnt; i++)
		out->fds[i] = m->fds[i];
	m->fd_cnt = 0;
	return true;
}

void lt_reply_drop_fds(struct lt_reply *r)
{
	for (int i = 0; i < (int)SHR_MSG_FDS_MAX; i++) {
		if (r->fds[i] >= 0)
			(void)close(r->fds[i]);
		r->fds[i] = -1;
	}
}

static uint64_t reply_id(const struct lt_reply *r)
{
	uint64_t id;

	memcpy(&id, r->body, sizeof id); /* every creating reply starts with the id */
	return id;
}

void lt_call_message(const struct lt_call *call, uint32_t correlation, struct shr_msg *m_out)
{
	uint8_t body[SHR_MSG_MAX];
	uint32_t bytes = call->build(call->arg, body);

	memcpy(shr_msg_begin(m_out, call->type, correlation, bytes), body, bytes);
	if (call->fd >= 0) {
		m_out->fds[0] = call->fd;
		m_out->fd_cnt = 1;
	}
}

tn_status lt_call_start(tent_context *ctx, const struct lt_call *call,
			void (*finish)(tent_context *, struct lt_waiter *), void *arg, struct lt_waiter **waiter_out)
{
	struct lt_waiter *w = calloc(1, sizeof *w);
	struct shr_msg m;

	if (w == NULL)
		return TN_NO_MEMORY;
	w->type = call->type;
	w->finish = finish;
	w->arg = arg;
	w->deadline_ns = call->deadline_ns;
	w->reply = (struct lt_reply){ .fds = { -1, -1 } };
	w->correlation = ++ctx->correlation != 0 ? ctx->correlation : ++ctx->correlation; /* 0 is for events */
	lt_call_message(call, w->correlation, &m);
	tn_status s = shr_msg_send(ctx->sock, &m);
	if (s != TN_OK) {
		free(w);
		return s;
	}
	tn_list_push_back(&ctx->waiters, &w->link);
	*waiter_out = w;
	return TN_OK;
}

/* Waits until an attachment is there to talk to. */
static tn_status wait_attached(tent_context *ctx, uint64_t deadline_ns)
{
	while (ctx->state == TENT_STATE_RECOVERING)
		if (!lt_context_wait(ctx, deadline_ns))
			return TN_TIMEOUT;
	return ctx->state == TENT_STATE_DEAD ? TN_DATAPLANE_DOWN : TN_OK;
}

/* One attachment's try. *lost_out: it is lost, or the answer belongs to a dead one; ask the successor. */
static tn_status call_once(tent_context *ctx, const struct lt_call *call, struct lt_reply *reply, bool *lost_out)
{
	struct lt_waiter *w;
	uint32_t attachment = ctx->reattach_cnt;
	tn_status s;

	while ((s = lt_call_start(ctx, call, NULL, NULL, &w)) == TN_AGAIN || s == TN_PATH_DOWN) {
		if (s == TN_PATH_DOWN && ctx->closing) { /* the goodbye: the keeper will not look for a successor */
			*lost_out = true;
			return TN_OK;
		}
		if (tn_now_ns() >= call->deadline_ns)
			return TN_TIMEOUT;
		(void)lt_context_wait(ctx, TN_MIN(call->deadline_ns, tn_deadline_after(tn_now_ns(), SEND_RETRY_NS)));
		if (ctx->state != TENT_STATE_ATTACHED || ctx->reattach_cnt != attachment) {
			*lost_out = true;
			return TN_OK;
		}
	}
	if (s != TN_OK)
		return s;
	while (!w->done && !w->lost) {
		if (!lt_context_wait(ctx, call->deadline_ns) && !w->done && !w->lost) {
			w->abandoned = true; /* the keeper frees it */
			return TN_TIMEOUT;
		}
	}
	*lost_out = w->lost || ctx->state != TENT_STATE_ATTACHED || ctx->reattach_cnt != attachment;
	if (*lost_out)
		lt_reply_drop_fds(&w->reply);
	else
		*reply = w->reply;
	free(w);
	return TN_OK;
}

tn_status lt_call(tent_context *ctx, const struct lt_call *call, struct lt_reply *reply)
{
	const struct lt_reply nothing = { .fds = { -1, -1 } };
	bool no_room = false; /* what the data plane said last */

	for (;;) {
		bool lost = false;
		tn_status s = wait_attached(ctx, call->deadline_ns);

		if (s == TN_OK)
			s = call_once(ctx, call, reply, &lost);
		else if (s == TN_DATAPLANE_DOWN && !call->again)
			lost = true, s = TN_OK;
		if (s == TN_TIMEOUT && no_room && ctx->state == TENT_STATE_ATTACHED) {
			*reply = nothing;
			reply->status = TN_AGAIN;
			return TN_OK;
		}
		if (s != TN_OK)
			return s;
		if (lost && !call->again && ctx->broken)
			return TN_CLIENT_BROKEN;
		if (lost && !call->again) {
			*reply = nothing;
			return TN_OK;
		}
		if (lost)
			continue;
		if (!call->again || !lt_reply_is_not_now(reply) || tn_now_ns() >= call->deadline_ns)
			return TN_OK;
		no_room = reply->status == TN_AGAIN;
		(void)lt_context_wait(ctx, tn_deadline_after(tn_now_ns(), BUSY_RETRY_NS));
	}
}

tn_status lt_call_let_go(tent_context *ctx, uint16_t type, uint64_t id, uint64_t deadline_ns, uint32_t *detail_out)
{
	struct lt_reply reply = { .status = TN_OK };
	struct lt_call call = { .type = type, .build = lt_build_id, .arg = &id, .fd = -1, .deadline_ns = deadline_ns };

	if (id == 0)
		return ctx->broken ? TN_CLIENT_BROKEN : TN_OK;
	tn_status s = lt_call(ctx, &call, &reply);
	*detail_out = reply.detail;
	if (s == TN_OK)
		s = reply.status;
	return s == TN_STALE || s == TN_NOT_FOUND ? TN_OK : s; /* an earlier try that timed out here succeeded there */
}

static void ignore_reply(tent_context *ctx, struct lt_waiter *w)
{
	(void)ctx;
	lt_reply_drop_fds(&w->reply);
}

void lt_call_undo(tent_context *ctx, uint16_t type, uint64_t id)
{
	struct lt_waiter *w;
	struct lt_call call = { .type = undo_type(type), .build = lt_build_id, .arg = &id, .fd = -1,
				.deadline_ns = UINT64_MAX };

	if (call.type != 0 && ctx->state == TENT_STATE_ATTACHED)
		(void)lt_call_start(ctx, &call, ignore_reply, NULL, &w);
}

/* The waiter leaves the list; whoever is interested learns. */
static void settle(tent_context *ctx, struct lt_waiter *w)
{
	tn_list_unlink(&w->link);
	if (w->finish != NULL) {
		w->finish(ctx, w);
		free(w);
	} else if (w->abandoned) {
		lt_reply_drop_fds(&w->reply);
		if (w->done && w->reply.status == TN_OK && undo_type(w->type) != 0)
			lt_call_undo(ctx, w->type, reply_id(&w->reply));
		free(w);
	}
}

static struct lt_waiter *find_waiter(tent_context *ctx, uint32_t correlation)
{
	tn_list_foreach(node, &ctx->waiters) {
		struct lt_waiter *w = tn_list_entry(node, struct lt_waiter, link);

		if (w->correlation == correlation)
			return w;
	}
	return NULL;
}

static void finish(tent_context *ctx, struct lt_waiter *w)
{
	w->done = true;
	settle(ctx, w);
	(void)pthread_cond_broadcast(&ctx->cond);
}

bool lt_call_deliver(tent_context *ctx, struct shr_msg *m)
{
	struct lt_waiter *w = find_waiter(ctx, m->hdr.correlation);

	if (w == NULL) { /* answers a question that nobody asked */
		shr_msg_close_fds(m);
		return false;
	}
	if (!lt_reply_parse(w->type, m, &w->reply))
		return false;
	finish(ctx, w);
	return true;
}

bool lt_call_deliver_bare(tent_context *ctx, struct shr_msg *m)
{
	struct lt_waiter *w = m->len != 0 ? find_waiter(ctx, m->hdr.correlation) : NULL;
	struct shr_msg_hdr hdr;

	/* Judged as it was sent. */
	if (w == NULL || shr_msg_check(m->bytes, m->len, SHR_MSG_FDS_MAX, SHR_FROM_DATAPLANE, &hdr) != TN_OK ||
	    !lt_reply_parse(w->type, m, &w->reply))
		return false;
	if (undo_type(w->type) != 0)
		lt_call_undo(ctx, w->type, reply_id(&w->reply));
	w->reply = (struct lt_reply){ .status = TN_LIMIT, .detail = LT_DETAIL_NO_FD, .fds = { -1, -1 } };
	finish(ctx, w);
	return true;
}

void lt_call_lose_all(tent_context *ctx)
{
	tn_list_foreach(node, &ctx->waiters) {
		struct lt_waiter *w = tn_list_entry(node, struct lt_waiter, link);

		w->lost = true;
		settle(ctx, w);
	}
	(void)pthread_cond_broadcast(&ctx->cond);
}

tent_status lt_call_fail(const tent_context *ctx, const char *call, const char *what, tn_status status, uint32_t detail)
{
	char number[64] = "";

	if (ctx->state == TENT_STATE_DEAD)
		return lt_context_fail_dead(ctx, call);
	if (status == TN_TIMEOUT && ctx->state == TENT_STATE_RECOVERING)
		return lt_fail(TN_DATAPLANE_DOWN, "%s: %s: the data plane is gone and has not come back in time", call,
			       what);
	if (status == TN_TIMEOUT)
		return lt_fail(status, "%s: %s: the data plane of this host did not answer in time", call, what);
	if (status == TN_AGAIN) /* to a control call "not now" is a failure: nothing will tell when */
		return lt_fail(TN_BUSY, "%s: %s: the data plane has no room for it now", call, what);
	if (status == TN_LIMIT && detail == LT_DETAIL_NO_FD)
		return lt_fail(status, "%s: %s: this process has no file descriptor left for it (RLIMIT_NOFILE)", call, what);
	if (detail != 0)
		(void)snprintf(number, sizeof number, " [detail %u]", detail);
	return lt_fail(status, "%s: %s: %s%s%s", call, what, tn_status_meaning(status), number,
		       status == TN_LIMIT ? ": of limits/* in the data plane's configuration, or of its open files (RLIMIT_NOFILE), "
					    "which its log would say" : "");
}
