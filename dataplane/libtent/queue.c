/* SPDX-License-Identifier: Apache-2.0
 * Life of a queue pair: created with the data plane's region and doorbell, destroyed when nothing of it can be touched.
 * Also its door, where the keeper leaves events. Application threads and, for the door, the keeper. */
#include "dataplane/libtent/queue.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "common/bits.h"
#include "dataplane/libtent/options.h"

#define DEFAULT_DEPTH 128u

/* ---- the ring ---- */

static uint32_t build_create(const void *arg, uint8_t body[static SHR_MSG_MAX])
{
	const tent_qp *qp = arg;
	struct shr_msg_qp_create m = { .sq_entries = qp->depth, .note_slots = LT_NOTE_SLOTS };

	memcpy(body, &m, sizeof m);
	return sizeof m;
}

void lt_queue_create_call(const tent_qp *qp, uint64_t deadline_ns, struct lt_call *call_out)
{
	*call_out = (struct lt_call){ .type = SHR_MSG_QP_CREATE,
				     .build = build_create,
				     .arg = qp,
				     .fd = -1,
				     .again = true,
				     .deadline_ns = deadline_ns };
}

tn_status lt_ring_open(const tent_qp *qp, struct lt_reply *reply, struct lt_ring **ring_out)
{
	struct shr_msg_qp_create_reply r;
	struct lt_ring *ring = calloc(1, sizeof *ring);
	tn_status s = TN_NO_MEMORY;

	if (ring == NULL)
		goto undo_fds;
	memcpy(&r, reply->body, sizeof r);
	ring->id = r.id;
	s = shr_region_map(reply->fds[0], r.region_bytes, true, &ring->region);
	if (s != TN_OK)
		goto undo_ring;
	reply->fds[0] = -1;
	s = shr_qp_check(ring->region.base, ring->region.bytes, &ring->view);
	if (s == TN_OK && (ring->view.lay.sq_entries != qp->depth || ring->view.lay.note_slots != LT_NOTE_SLOTS))
		s = TN_CLIENT_BROKEN;
	if (s != TN_OK)
		goto undo_region;
	shr_sq_prod_init(&ring->sq, &ring->view);
	shr_cq_cons_init(&ring->cq, &ring->view);
	ring->doorbell = reply->fds[1];
	reply->fds[1] = -1;
	*ring_out = ring;
	return TN_OK;

undo_region:
	shr_region_close(&ring->region);
undo_ring:
	free(ring);
undo_fds:
	lt_reply_drop_fds(reply);
	return s == TN_AGAIN ? TN_CLIENT_BROKEN : s; /* handed over unformatted */
}

void lt_ring_close(struct lt_ring *ring)
{
	if (ring == NULL)
		return;
	(void)close(ring->doorbell);
	shr_region_close(&ring->region);
	free(ring);
}

tn_status lt_queue_watch_doorbell(tent_qp *qp, bool watch)
{
	struct epoll_event ev = { .events = EPOLLIN };

	if (qp->ring == NULL || qp->ring->doorbell_up == watch)
		return TN_OK;
	if (epoll_ctl(qp->epoll_fd, watch ? EPOLL_CTL_ADD : EPOLL_CTL_DEL, qp->ring->doorbell, &ev) != 0 && watch)
		return tn_status_from_errno(errno);
	qp->ring->doorbell_up = watch;
	return TN_OK;
}

/* ---- the door ---- */

void lt_queue_knock(tent_qp *qp, uint32_t events)
{
	uint64_t one = 1;

	/* Only a hint: what was left at the door is passed on by the context's lock. */
	(void)tn_exchange32(&qp->events, tn_load_relaxed32(&qp->events) | events);
	(void)!write(qp->wake_fd, &one, sizeof one);
}

tent_status lt_queue_refuse(const tent_qp *qp, const char *call)
{
	if (qp == NULL)
		return lt_fail(TN_INVALID, "%s: qp is NULL", call);
	if (qp->magic != LT_QP_MAGIC)
		return lt_fail(TN_INVALID, "%s: qp is no queue pair", call);
	if (lt_forked(qp->fork_mark))
		return lt_fail(TN_FORKED, "%s: the queue pair was made before fork()", call);
	return lt_fail(qp->dead_status, "%s: %s", call, qp->dead_text);
}

/* ---- life ---- */

static void release(tent_qp *qp)
{
	lt_ring_close(qp->ring);
	lt_ring_close(qp->next_ring);
	if (qp->epoll_fd >= 0)
		(void)close(qp->epoll_fd);
	if (qp->wake_fd >= 0)
		(void)close(qp->wake_fd);
	lt_batches_destroy(&qp->batches);
	free(qp->slots);
	free(qp->free_slots);
	free(qp->scratch);
	free(qp->notes);
	qp->magic = 0;
	free(qp);
}

void lt_queue_free(tent_qp *qp)
{
	tn_list_unlink(&qp->link);
	release(qp);
}

static tn_status allocate_shadow(tent_qp *qp)
{
	qp->slots = calloc(qp->depth, sizeof *qp->slots);
	qp->free_slots = malloc(qp->depth * sizeof *qp->free_slots);
	qp->scratch = malloc(qp->depth * sizeof *qp->scratch);
	qp->notes = malloc(LT_NOTE_SLOTS * sizeof *qp->notes);
	if (qp->slots == NULL || qp->free_slots == NULL || qp->scratch == NULL || qp->notes == NULL)
		return TN_NO_MEMORY;
	for (uint32_t i = 0; i < qp->depth; i++) {
		qp->slots[i].generation = 1;
		qp->free_slots[i] = qp->depth - 1 - i;
	}
	qp->free_cnt = qp->depth;
	qp->note_free = (UINT64_C(1) << LT_NOTE_SLOTS) - 1;
	return lt_batches_init(&qp->batches, 2 * qp->depth);
}

static tent_qp *new_queue(tent_context *ctx, uint32_t depth)
{
	struct epoll_event ev = { .events = EPOLLIN };
	tent_qp *qp = calloc(1, sizeof *qp);

	if (qp == NULL)
		return NULL;
	qp->magic = LT_QP_MAGIC;
	qp->fork_mark = ctx->fork_mark;
	qp->ctx = ctx;
	qp->depth = depth;
	qp->look_credit = LT_LOOK_CREDIT;
	qp->default_deadline_ns = ctx->hello.default_deadline_ns;
	qp->max_request_bytes = ctx->hello.max_request_bytes;
	tn_list_init(&qp->link);
	tn_store_relaxed64(&qp->held_deadline_ns, UINT64_MAX);
	qp->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	qp->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (qp->epoll_fd < 0 || qp->wake_fd < 0 || epoll_ctl(qp->epoll_fd, EPOLL_CTL_ADD, qp->wake_fd, &ev) != 0 ||
	    allocate_shadow(qp) != TN_OK) {
		release(qp);
		return NULL;
	}
	return qp;
}

/* Lock held. On success the queue pair is in its context. */
static tent_status create_locked(tent_qp *qp)
{
	tent_context *ctx = qp->ctx;
	struct lt_reply reply = { .fds = { -1, -1 } };
	struct lt_call c;

	lt_queue_create_call(qp, tn_deadline_after(tn_now_ns(), ctx->timeout_ns), &c);
	tn_status s = lt_call(ctx, &c, &reply);
	if (s == TN_OK)
		s = reply.status;
	if (s != TN_OK)
		return lt_call_fail(ctx, "tent_qp_create", "a queue pair", s, reply.detail);
	s = lt_ring_open(qp, &reply, &qp->ring);
	if (s == TN_OK)
		s = lt_queue_watch_doorbell(qp, true);
	if (s != TN_OK) {
		uint64_t id;

		memcpy(&id, reply.body, sizeof id);
		lt_call_undo(ctx, SHR_MSG_QP_CREATE, id);
		return lt_fail(s, "tent_qp_create: the region that the data plane handed over was refused");
	}
	tn_list_push_back(&ctx->qps, &qp->link);
	return TENT_OK;
}

tent_status tent_qp_create(tent_context *ctx, const tent_qp_options *opt, tent_qp **qp_out)
{
	tent_status s = lt_context_check(ctx, "tent_qp_create");
	tent_qp_options o = TENT_QP_OPTIONS_INIT;

	if (s != TENT_OK)
		return s;
	if (qp_out == NULL)
		return lt_fail(TN_INVALID, "tent_qp_create: qp_out is NULL");
	if (opt != NULL) {
		s = lt_options_take("tent_qp_create: opt", "TENT_QP_OPTIONS_INIT", opt,
				    offsetof(tent_qp_options, depth) + sizeof o.depth, &o, sizeof o);
		if (s != TENT_OK)
			return s;
	}
	if (o.reserved != 0)
		return lt_fail(TN_INVALID, "tent_qp_create: opt->reserved is %u: it must be zero", o.reserved);
	if (o.depth == 0)
		o.depth = DEFAULT_DEPTH;
	if (!tn_is_pow2(o.depth) || o.depth < SHR_SQ_ENTRIES_MIN || o.depth > SHR_SQ_ENTRIES_MAX)
		return lt_fail(TN_INVALID, "tent_qp_create: depth is %u: a power of two from %u to %u", o.depth,
			       SHR_SQ_ENTRIES_MIN, SHR_SQ_ENTRIES_MAX);
	(void)pthread_mutex_lock(&ctx->lock);
	tent_qp *qp = new_queue(ctx, o.depth);
	s = qp != NULL ? create_locked(qp)
		       : lt_fail(TN_NO_MEMORY, "tent_qp_create: no memory or file descriptors for it");
	(void)pthread_mutex_unlock(&ctx->lock);
	if (s == TENT_OK)
		*qp_out = qp;
	else if (qp != NULL)
		release(qp);
	return s;
}

/* Has the data plane that lives let go of it? TN_OK also when there is none: one that hung up has. Lock held; the queue
 * pair is in no list. */
static tn_status destroy_there(const tent_qp *qp, uint64_t deadline_ns)
{
	/* A ring at the door is the living one; the one in use is then of the dead. */
	const struct lt_ring *living = qp->next_ring != NULL ? qp->next_ring : qp->ring;
	uint32_t detail;
	bool dead = living == NULL || (qp->next_ring == NULL && (tn_load_relaxed32(&qp->events) & LT_EVENT_LOST) != 0);

	return lt_call_let_go(qp->ctx, SHR_MSG_QP_DESTROY, dead ? 0 : living->id, deadline_ns, &detail);
}

tent_status tent_qp_destroy(tent_qp *qp)
{
	if (qp == NULL)
		return TENT_OK;
	if (qp->magic != LT_QP_MAGIC || lt_forked(qp->fork_mark))
		return lt_queue_refuse(qp, "tent_qp_destroy");
	tent_context *ctx = qp->ctx;
	uint64_t deadline_ns = tn_deadline_after(tn_now_ns(), ctx->recover_timeout_ns);

	(void)pthread_mutex_lock(&ctx->lock);
	while (ctx->state == TENT_STATE_RECOVERING) /* the keeper walks the list; this ends with its own deadline */
		(void)lt_context_wait(ctx, UINT64_MAX);
	tn_list_unlink(&qp->link);
	tn_status s = destroy_there(qp, deadline_ns);
	if (s != TN_OK) {
		tn_list_push_back(&ctx->qps, &qp->link);
		qp->dead_status = TN_CLOSED;
		(void)snprintf(qp->dead_text, sizeof qp->dead_text, "tent_qp_destroy() was called before");
	}
	(void)pthread_mutex_unlock(&ctx->lock);
	if (s != TN_OK)
		return lt_fail(s, "tent_qp_destroy: the data plane did not say that it let go of the buffers");
	release(qp);
	return TENT_OK;
}

int tent_qp_fd(tent_qp *qp)
{
	if (qp == NULL || qp->magic != LT_QP_MAGIC || lt_forked(qp->fork_mark))
		return (int)lt_queue_refuse(qp, "tent_qp_fd");
	return qp->epoll_fd;
}

uint32_t tent_qp_outstanding(const tent_qp *qp)
{
	return qp != NULL && qp->magic == LT_QP_MAGIC ? qp->unfinished : 0;
}
