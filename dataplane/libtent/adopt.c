/* SPDX-License-Identifier: Apache-2.0
 * What the owner of a queue pair does when it finds something at its door: it closes the account with a dead data
 * plane, entry by entry, and carries on with its successor. The replay law stands in lose_request(). Owner thread,
 * inside its next call on the queue pair; no system call waits here. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/domain.h"
#include "common/hook.h"
#include "dataplane/libtent/queue.h"

/* ---- the dead ring's completions ---- */

/* The dead touch no memory: a terminal completion needs no release to follow, and one that waits for it has it now. */
static void take_dead_cqe(tent_qp *qp, const struct shr_cqe_shm *cqe)
{
	struct lt_slot *slot = lt_slot_of_token(qp, cqe->token);

	if (slot != NULL && cqe->kind == SHR_CQE_RELEASE && slot->state == LT_SLOT_READY)
		return; /* of a terminal completion that this same drain made final */
	slot = lt_cqe_check(qp, cqe);
	if (slot == NULL)
		return; /* it died writing nonsense; the slot is judged as if there were none */
	lt_cqe_to_completion(cqe, slot, &slot->done);
	slot->done.memory_busy = 0;
	if (cqe->kind == SHR_CQE_TERMINAL)
		lt_slot_settle(qp, slot, slot->done.outcome == TENT_OUTCOME_COMPLETED, true);
	lt_slot_move(slot, LT_SLOT_READY);
	lt_list_push(qp, &qp->ready, slot);
}

static void drain_dead_ring(tent_qp *qp)
{
	struct shr_cq_cons *cq = &qp->ring->cq;
	struct shr_cqe_shm cqe;
	uint32_t avail;

	if (shr_cq_peek(cq, cq->entries, &avail) != TN_OK)
		return;
	for (uint32_t i = 0; i < avail; i++) {
		shr_cq_copy(cq, i, &cqe);
		take_dead_cqe(qp, &cqe);
	}
	shr_cq_release(cq, avail);
}

/* The first place in the ring's history that the dead never copied out: from there on nothing ever left. A head that
 * makes no sense proves nothing, so then all counts as taken. */
static uint64_t first_untaken(const struct lt_ring *ring)
{
	/* [R2] acquire: only as a number; the dead worker copies nothing any more. */
	uint32_t waiting = ring->sq.published - tn_load_acquire32(&ring->view.qp->sq_head.value);

	return waiting > ring->sq.entries ? ring->put_cnt : ring->put_cnt - waiting;
}

/* ---- what becomes of each request ---- */

static void release_memory(tent_qp *qp, struct lt_slot *slot)
{
	slot->done = (tent_completion){ .user_data = slot->sqe.user_data, .kind = TENT_COMPLETION_RELEASE,
					.outcome = TENT_OUTCOME_COMPLETED, .opcode = slot->sqe.opcode };
	lt_slot_move(slot, LT_SLOT_READY);
	lt_list_push(qp, &qp->ready, slot);
}

/* May the request have had an effect that must not happen twice? */
static bool is_ambiguous(const tent_qp *qp, const struct lt_slot *slot)
{
	if (!slot->taken)
		return false;
	if (slot->sqe.opcode == SHR_OP_NOTIFY)
		return true;
	/* The notice of its batch may have told the receiver that the data is there: it may be in use by now. */
	if (slot->batch != LT_BATCH_NONE && qp->batches.entries[slot->batch].notice_taken)
		return true;
	return slot->sqe.opcode == SHR_OP_WRITE && (slot->sqe.flags & SHR_SQE_AT_MOST_ONCE) != 0;
}

/* The replay law. A READ may be sent again; so may a WRITE, because the receiver fences the dead incarnation before it
 * accepts the new one, and on this host the dead process writes no more. */
static void lose_request(tent_qp *qp, struct lt_slot *slot)
{
	if (is_ambiguous(qp, slot)) {
		uint8_t phase = slot->sqe.opcode == SHR_OP_NOTIFY ? TN_PHASE_NOTIFY : TN_PHASE_RETRY;
		lt_slot_finish(qp, slot, TENT_OUTCOME_FAILED, TN_AMBIGUOUS, phase, TN_REASON_UNAVAILABLE);
		return;
	}
	if (slot->cancel_asked) {
		lt_slot_finish(qp, slot, TENT_OUTCOME_CANCELED, TN_CANCELED, TN_PHASE_RETRY, TN_REASON_CANCELED);
		return;
	}
	if (slot->taken)
		slot->sqe.flags |= SHR_SQE_REPLAY;
	if (slot->deadline_ns != UINT64_MAX)
		slot->sqe.deadline_ns = slot->deadline_ns;
	lt_slot_move(slot, LT_SLOT_HELD);
	lt_slot_hold(qp, slot);
}

/* qsort has no argument for its order; the queue pair is owned by one thread and so is this. */
static _Thread_local const struct lt_slot *sort_slots;

static int by_sq_seq(const void *a, const void *b)
{
	uint64_t x = sort_slots[*(const uint32_t *)a].sq_seq, y = sort_slots[*(const uint32_t *)b].sq_seq;

	return x < y ? -1 : x > y;
}

/* Posted slots in the order in which they were posted, so that a notice stays behind its batch. */
static uint32_t posted_in_order(tent_qp *qp, uint64_t untaken)
{
	uint32_t cnt = 0;

	for (uint32_t i = 0; i < qp->depth; i++) {
		struct lt_slot *slot = &qp->slots[i];

		if (slot->state != LT_SLOT_POSTED)
			continue;
		slot->taken = slot->sq_seq < untaken;
		if (slot->taken && slot->sqe.opcode == SHR_OP_NOTIFY && slot->batch != LT_BATCH_NONE)
			qp->batches.entries[slot->batch].notice_taken = true;
		qp->scratch[cnt++] = i;
	}
	sort_slots = qp->slots;
	qsort(qp->scratch, cnt, sizeof *qp->scratch, by_sq_seq);
	return cnt;
}

static void append_list(tent_qp *qp, struct lt_slot_list *list, struct lt_slot_list *tail)
{
	struct lt_slot *slot;

	while ((slot = lt_list_pop(qp, tail)) != NULL)
		lt_list_push(qp, list, slot);
}

static void lose_ring(tent_qp *qp)
{
	struct lt_ring *ring = qp->ring;
	struct lt_slot_list held_before = qp->held;

	if (ring == NULL)
		return;
	if (!qp->ring_broken)
		drain_dead_ring(qp);
	TN_HOOK(lt_adopt_drained);
	lt_batches_forget_dataplane(&qp->batches);
	uint32_t cnt = posted_in_order(qp, qp->ring_broken ? ring->put_cnt : first_untaken(ring));
	qp->held = (struct lt_slot_list){ 0 };
	for (uint32_t i = 0; i < qp->depth; i++)
		if (qp->slots[i].state == LT_SLOT_BUSY)
			release_memory(qp, &qp->slots[i]);
	for (uint32_t i = 0; i < cnt; i++)
		lose_request(qp, &qp->slots[qp->scratch[i]]);
	append_list(qp, &qp->held, &held_before);
	(void)lt_queue_watch_doorbell(qp, false);
	qp->ring = NULL;
	qp->armed = false;
	lt_ring_close(ring);
}

/* ---- held requests ---- */

/* Back to the end of the list; it is counted as held already. */
static void hold_on(tent_qp *qp, struct lt_slot *slot)
{
	if (slot->deadline_ns < tn_load_relaxed64(&qp->held_deadline_ns))
		tn_store_relaxed64(&qp->held_deadline_ns, slot->deadline_ns);
	lt_list_push(qp, &qp->held, slot);
}

/* Room for one entry more? A ring with a nonsense index is given up. */
static bool has_room(tent_qp *qp)
{
	uint32_t room = 0;

	if (shr_sq_space(&qp->ring->sq, 1, &room) != TN_OK) {
		lt_queue_break(qp, "the data plane's index of a submission queue is out of range");
		return false;
	}
	return room != 0;
}

static void push_one(tent_qp *qp, struct lt_slot *slot, uint64_t now_ns)
{
	uint8_t phase, reason;

	if (slot->cancel_asked) {
		lt_slot_finish(qp, slot, TENT_OUTCOME_CANCELED, TN_CANCELED, TN_PHASE_QUEUE, TN_REASON_CANCELED);
		return;
	}
	if (slot->deadline_ns <= now_ns) {
		lt_slot_finish(qp, slot, TENT_OUTCOME_TIMEOUT, TN_TIMEOUT, TN_PHASE_QUEUE, TN_REASON_TIMEOUT);
		return;
	}
	tn_status s = qp->ring != NULL && !qp->ring_broken ? lt_slot_resolve(qp, slot, &phase, &reason) : TN_AGAIN;
	if (s == TN_OK && !has_room(qp))
		s = TN_AGAIN;
	if (s == TN_AGAIN) {
		hold_on(qp, slot);
		return;
	}
	if (s != TN_OK) {
		lt_slot_finish(qp, slot, s == TN_CANCELED ? TENT_OUTCOME_CANCELED : TENT_OUTCOME_FAILED, s, phase,
			       reason);
		return;
	}
	if (slot->batch != LT_BATCH_NONE && slot->sqe.opcode != SHR_OP_NOTIFY)
		qp->batches.entries[slot->batch].held--;
	lt_slot_post(qp, slot);
}

void lt_queue_push_held(tent_qp *qp)
{
	struct lt_slot_list todo = qp->held;
	struct lt_slot *slot;
	uint64_t now_ns = tn_now_ns();

	qp->held = (struct lt_slot_list){ 0 };
	tn_store_relaxed64(&qp->held_deadline_ns, UINT64_MAX);
	while ((slot = lt_list_pop(qp, &todo)) != NULL)
		push_one(qp, slot, now_ns);
	TN_HOOK(lt_adopt_pushed);
	if (qp->ring != NULL && !qp->ring_broken)
		lt_queue_publish(qp);
}

/* ---- the end ---- */

static void fail_everything(tent_qp *qp)
{
	uint8_t reason = qp->dead_status == TN_CLIENT_BROKEN ? TN_REASON_PROTOCOL : TN_REASON_UNAVAILABLE;
	struct lt_slot *slot;

	while ((slot = lt_list_pop(qp, &qp->held)) != NULL)
		lt_slot_finish(qp, slot, TENT_OUTCOME_FAILED, qp->dead_status, TN_PHASE_SHUTDOWN, reason);
	tn_store_relaxed64(&qp->held_deadline_ns, UINT64_MAX);
}

/* ---- the door ---- */

void lt_queue_adopt(tent_qp *qp)
{
	tent_context *ctx = qp->ctx;

	(void)pthread_mutex_lock(&ctx->lock);
	uint32_t events = tn_exchange32(&qp->events, 0);
	struct lt_ring *next = qp->next_ring;
	tn_status status = qp->door_status;
	char text[sizeof qp->door_text];
	qp->next_ring = NULL;
	memcpy(text, qp->door_text, sizeof text);
	uint64_t default_deadline_ns = ctx->hello.default_deadline_ns, max_request_bytes = ctx->hello.max_request_bytes;
	(void)pthread_mutex_unlock(&ctx->lock);

	if ((events & (LT_EVENT_LOST | LT_EVENT_DEAD)) != 0)
		lose_ring(qp);
	if ((events & LT_EVENT_DEAD) != 0) {
		qp->dead_status = status;
		(void)snprintf(qp->dead_text, sizeof qp->dead_text, "%s", text);
		fail_everything(qp);
		return;
	}
	if (next != NULL) {
		qp->ring = next;
		qp->default_deadline_ns = default_deadline_ns;
		qp->max_request_bytes = max_request_bytes;
		if (lt_queue_watch_doorbell(qp, true) != TN_OK)
			lt_queue_break(qp, "no epoll entry for the new doorbell");
	}
	if (qp->held.cnt != 0)
		lt_queue_push_held(qp);
}
