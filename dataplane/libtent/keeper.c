/* SPDX-License-Identifier: Apache-2.0
 * The keeper: one thread per context. It alone receives from the attach socket, hands replies to the callers that wait
 * for them, keeps notices, restores publications and opens after a restart, and starts recovery when the data plane
 * hangs up. It calls no code of the application. */
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "dataplane/libtent/call.h"
#include "dataplane/libtent/context.h"
#include "dataplane/libtent/segment.h"

bool lt_keeper_dispatch(tent_context *ctx, struct shr_msg *m)
{
	if ((m->hdr.type & SHR_MSG_REPLY) != 0)
		return lt_call_deliver(ctx, m);
	switch (m->hdr.type) {
	case SHR_MSG_NOTE:
		return lt_note_arrived(ctx, m);
	case SHR_MSG_SEGMENT_LOST:
		lt_published_lost(ctx, m);
		return true;
	case SHR_MSG_COPY:
		return lt_copier_asked(ctx, m);
	case SHR_MSG_SHUTDOWN: /* the hang-up that follows is what counts */
		ctx->draining = true;
		return true;
	default:
		return true;
	}
}

/* Takes everything there is. TN_OK: the socket is empty; TN_PATH_DOWN: hung up; TN_PATH_PROTOCOL. */
static tn_status receive_all(tent_context *ctx)
{
	for (;;) {
		tn_status s = shr_msg_recv(ctx->sock, SHR_FROM_DATAPLANE, ctx->incoming);

		if (s == TN_AGAIN)
			return TN_OK;
		if (s != TN_OK && s != TN_LIMIT)
			return s == TN_CLIENT_BROKEN ? TN_PATH_PROTOCOL : TN_PATH_DOWN;
		(void)pthread_mutex_lock(&ctx->lock);
		bool sound = s == TN_OK ? lt_keeper_dispatch(ctx, ctx->incoming)
					: lt_call_deliver_bare(ctx, ctx->incoming);
		(void)pthread_mutex_unlock(&ctx->lock);
		if (!sound)
			return TN_PATH_PROTOCOL;
	}
}

/* One side broke the rules while the data plane lives: stop talking, and wait for it to hang up, which it does after
 * our work is quiesced. Only then is nobody in our memory. */
static void give_up(tent_context *ctx, tn_status status, const char *why)
{
	uint64_t deadline_ns = tn_deadline_after(tn_now_ns(), ctx->recover_timeout_ns);
	tn_status s;

	lt_context_break(ctx, why);
	(void)shutdown(ctx->sock, SHUT_WR);
	do {
		s = shr_msg_recv(ctx->sock, SHR_FROM_DATAPLANE, ctx->incoming);
		if (s == TN_OK)
			shr_msg_close_fds(ctx->incoming);
		else if (s == TN_AGAIN && !lt_io_wait_readable(ctx->sock, -1, deadline_ns))
			break;
	} while (s != TN_PATH_DOWN && s != TN_SYSTEM && tn_now_ns() < deadline_ns);
	(void)pthread_mutex_lock(&ctx->lock);
	ctx->broken = s != TN_PATH_DOWN || ctx->sock_shut;
	lt_context_die(ctx, status, why);
	(void)pthread_mutex_unlock(&ctx->lock);
}

/* Sleeps until the socket or a wake-up has something, or restoring is due. */
static void sleep_until_work(tent_context *ctx, uint64_t until_ns)
{
	uint64_t sink;

	(void)lt_io_wait_readable(ctx->sock, ctx->wake_fd, until_ns);
	(void)!read(ctx->wake_fd, &sink, sizeof sink);
}

/* What the lock protects and the loop must know. */
struct look {
	tent_state state;
	bool closing, broken;
	uint64_t due_ns;
	char why[sizeof((tent_context *)0)->dead_text];
};

static struct look look_around(tent_context *ctx)
{
	struct look l = { .due_ns = UINT64_MAX };

	(void)pthread_mutex_lock(&ctx->lock);
	l.state = ctx->state;
	l.closing = ctx->closing;
	l.broken = ctx->broken;
	if (l.broken)
		memcpy(l.why, ctx->dead_text, sizeof l.why);
	if (l.state == TENT_STATE_ATTACHED && !l.broken)
		l.due_ns = lt_restore_due(ctx, tn_now_ns());
	(void)pthread_mutex_unlock(&ctx->lock);
	return l;
}

/* A hang-up while the context closes is the end of the keeper. Whoever still waits for a reply learns that none
 * comes. */
static bool is_goodbye(tent_context *ctx)
{
	(void)pthread_mutex_lock(&ctx->lock);
	bool closing = ctx->closing;
	if (closing)
		lt_call_lose_all(ctx);
	(void)pthread_mutex_unlock(&ctx->lock);
	return closing;
}

void *lt_keeper_main(void *arg)
{
	tent_context *ctx = arg;

	(void)prctl(PR_SET_NAME, "tent-keeper");
	for (;;) {
		struct look l = look_around(ctx);

		if (l.closing && l.state != TENT_STATE_ATTACHED)
			return NULL;
		if (l.state == TENT_STATE_DEAD) {
			sleep_until_work(ctx, UINT64_MAX);
			continue;
		}
		if (l.broken) {
			give_up(ctx, TN_CLIENT_BROKEN, l.why);
			continue;
		}
		sleep_until_work(ctx, l.due_ns);
		tn_status s = receive_all(ctx);
		if (s == TN_OK)
			continue;
		if (s == TN_PATH_PROTOCOL)
			give_up(ctx, TN_CLIENT_BROKEN, "the data plane sent a message that is not of the attach protocol");
		else if (is_goodbye(ctx))
			return NULL;
		else
			lt_recover(ctx);
	}
}
