/* SPDX-License-Identifier: Apache-2.0
 * The shadow of what is outstanding: slots, their states and lists, and the step from a slot into the ring. Owner
 * thread of the queue pair. */
#include "common/assert.h"
#include "common/domain.h"
#include "common/hook.h"
#include "dataplane/libtent/queue.h"

#define X(from, to, when) | LT_MOVE_BIT(LT_SLOT_##from, LT_SLOT_##to)
static const uint64_t allowed = UINT64_C(0) LT_SLOT_MOVES(X);
#undef X
TN_STATIC_ASSERT((int)LT_SLOT_STATE_CNT <= 8, "the move mask has eight states");

void lt_slot_move(struct lt_slot *slot, enum lt_slot_state next)
{
	tn_assert(lt_move_is_allowed(allowed, slot->state, next));
	LT_MOVE_SEEN(SLOT, slot->state, next);
	slot->state = (uint8_t)next;
}

/* ---- lists and tokens ---- */

void lt_list_push(tent_qp *qp, struct lt_slot_list *list, struct lt_slot *slot)
{
	uint32_t index = (uint32_t)(slot - qp->slots);

	slot->next = LT_NO_SLOT;
	if (list->cnt++ == 0)
		list->head = index;
	else
		qp->slots[list->tail].next = index;
	list->tail = index;
}

struct lt_slot *lt_list_pop(tent_qp *qp, struct lt_slot_list *list)
{
	if (list->cnt == 0)
		return NULL;
	struct lt_slot *slot = &qp->slots[list->head];
	list->head = slot->next;
	list->cnt--;
	return slot;
}

uint64_t lt_slot_token(const tent_qp *qp, const struct lt_slot *slot)
{
	return tn_handle_make((uint32_t)(slot - qp->slots), slot->generation);
}

struct lt_slot *lt_slot_of_token(tent_qp *qp, uint64_t token)
{
	uint32_t index = tn_handle_index(token);

	if (index >= qp->depth || qp->slots[index].generation != tn_handle_generation(token))
		return NULL;
	return &qp->slots[index];
}

/* ---- from free to free ---- */

struct lt_slot *lt_slot_take(tent_qp *qp)
{
	if (qp->free_cnt == 0)
		return NULL;
	struct lt_slot *slot = &qp->slots[qp->free_slots[--qp->free_cnt]];
	lt_slot_move(slot, LT_SLOT_HELD);
	slot->memory = NULL;
	slot->segment = NULL;
	slot->policy = 0;
	slot->batch = LT_BATCH_NONE;
	slot->note = LT_NO_NOTE;
	slot->cancel_asked = false;
	slot->taken = false;
	qp->unfinished++;
	return slot;
}

void lt_slot_free(tent_qp *qp, struct lt_slot *slot)
{
	lt_slot_move(slot, LT_SLOT_FREE);
	if (++slot->generation == 0) /* 0 would make a token that looks like none */
		slot->generation = 1;
	qp->free_slots[qp->free_cnt++] = (uint32_t)(slot - qp->slots);
}

void lt_slot_settle(tent_qp *qp, struct lt_slot *slot, bool completed, bool seen)
{
	if (slot->note != LT_NO_NOTE) {
		qp->note_free |= UINT64_C(1) << slot->note;
		slot->note = LT_NO_NOTE;
	}
	if (slot->batch == LT_BATCH_NONE)
		return;
	if (slot->sqe.opcode == SHR_OP_NOTIFY)
		lt_batch_finish(&qp->batches, slot->batch);
	else
		lt_batch_leave(&qp->batches, slot->batch, completed, seen);
	slot->batch = LT_BATCH_NONE;
}

void lt_slot_finish(tent_qp *qp, struct lt_slot *slot, tent_outcome outcome, tn_status status, uint8_t phase,
		    uint8_t reason)
{
	if (slot->state == LT_SLOT_HELD && slot->batch != LT_BATCH_NONE && slot->sqe.opcode != SHR_OP_NOTIFY)
		qp->batches.entries[slot->batch].held--;
	slot->done = (tent_completion){
		.user_data = slot->sqe.user_data,
		.latency_ns = tn_remaining_ns(tn_now_ns(), slot->accept_ns),
		.status = (tent_status)status,
		.kind = slot->sqe.opcode == SHR_OP_NOTIFY ? TENT_COMPLETION_NOTIFY : TENT_COMPLETION_REQUEST,
		.outcome = outcome,
		.attempts = slot->taken,
		.phase = phase,
		.reason = reason,
		.opcode = slot->sqe.opcode == SHR_OP_NOTIFY ? 0 : slot->sqe.opcode,
	};
	lt_slot_settle(qp, slot, false, false);
	lt_slot_move(slot, LT_SLOT_READY);
	lt_list_push(qp, &qp->ready, slot);
}

/* ---- into the ring ---- */

/* Is the object there, coming, or gone for this request? */
static tn_status resolve_object(const struct lt_object *o, uint32_t generation)
{
	if (tn_load_relaxed32(&o->generation) != generation)
		return TN_STALE;
	/* [L1] acquire: an id read after LIVE is the id of this life. */
	switch (tn_load_acquire32(&o->state)) {
	case LT_OBJECT_LIVE:
		return TN_OK;
	case LT_OBJECT_RESTORING:
		return TN_AGAIN;
	case LT_OBJECT_FAILED:
		return (tn_status)tn_load_relaxed32(&o->fail_status);
	default:
		return TN_STALE;
	}
}

tn_status lt_slot_resolve(tent_qp *qp, struct lt_slot *slot, uint8_t *phase_out, uint8_t *reason_out)
{
	tn_status s = TN_OK;

	*phase_out = TN_PHASE_REGISTER;
	*reason_out = TN_REASON_MR_ERROR;
	if (slot->memory != NULL)
		s = resolve_object(&slot->memory->obj, slot->memory_generation);
	if (s != TN_OK)
		return s;
	*phase_out = TN_PHASE_METADATA;
	s = resolve_object(&slot->segment->obj, slot->segment_generation);
	*reason_out = s == TN_STALE ? TN_REASON_STALE_GENERATION : TN_REASON_UNAVAILABLE;
	if (s != TN_OK || slot->sqe.opcode != SHR_OP_NOTIFY || slot->sqe.batch == 0)
		return s;
	/* Data before notice, also over a restart, and only to the one who has the data. */
	*phase_out = TN_PHASE_NOTIFY;
	*reason_out = TN_REASON_STALE_GENERATION;
	if (slot->sqe.begin_ns < tn_load_relaxed64(&slot->segment->republished_ns))
		return TN_STALE;
	if (slot->batch == LT_BATCH_NONE)
		return TN_OK;
	const struct lt_batch *batch = &qp->batches.entries[slot->batch];
	*reason_out = TN_REASON_CANCELED;
	return batch->failed_unseen ? TN_CANCELED : batch->held != 0 ? TN_AGAIN : TN_OK;
}

void lt_slot_post(tent_qp *qp, struct lt_slot *slot)
{
	struct lt_ring *ring = qp->ring;

	slot->sqe.segment = tn_load_relaxed64(&slot->segment->obj.id);
	slot->sqe.memory = slot->memory != NULL ? tn_load_relaxed64(&slot->memory->obj.id) : 0;
	slot->sqe.policy = lt_policy_id(&qp->ctx->policies, slot->policy);
	slot->sqe.token = lt_slot_token(qp, slot);
	if (slot->note != LT_NO_NOTE)
		shr_words_store(shr_qp_note(&ring->view, slot->note), qp->notes[slot->note],
				(slot->sqe.note_len + 7) / 8);
	slot->sq_seq = ring->put_cnt++;
	shr_sq_put(&ring->sq, &slot->sqe);
	lt_slot_move(slot, LT_SLOT_POSTED);
}

void lt_queue_publish(tent_qp *qp)
{
	if (shr_sq_publish(&qp->ring->sq) == 0)
		return;
	TN_HOOK(lt_sq_published);
	(void)shr_doorbell_ring_if_armed(&qp->ring->view.qp->sq_armed.value, qp->ring->doorbell);
}

void lt_slot_hold(tent_qp *qp, struct lt_slot *slot)
{
	if (slot->batch != LT_BATCH_NONE && slot->sqe.opcode != SHR_OP_NOTIFY)
		qp->batches.entries[slot->batch].held++;
	if (slot->deadline_ns < tn_load_relaxed64(&qp->held_deadline_ns)) {
		tn_store_relaxed64(&qp->held_deadline_ns, slot->deadline_ns);
		lt_context_wake_keeper(qp->ctx); /* it watches this deadline while the owner may sleep elsewhere */
	}
	lt_list_push(qp, &qp->held, slot);
}

void lt_slot_date(const tent_qp *qp, struct lt_slot *slot, uint64_t now_ns)
{
	slot->accept_ns = now_ns;
	if (slot->sqe.deadline_ns != 0)
		slot->deadline_ns = slot->sqe.deadline_ns;
	else
		slot->deadline_ns =
		    qp->default_deadline_ns != 0 ? tn_deadline_after(now_ns, qp->default_deadline_ns) : UINT64_MAX;
}

void lt_slot_dispatch(tent_qp *qp, struct lt_slot *slot)
{
	uint8_t phase, reason;
	tn_status s =
	    tn_likely(qp->ring != NULL && !qp->ring_broken) ? lt_slot_resolve(qp, slot, &phase, &reason) : TN_AGAIN;

	if (tn_likely(s == TN_OK)) {
		lt_slot_post(qp, slot);
		return;
	}
	lt_slot_hold(qp, slot);
	if (s != TN_AGAIN) /* nothing will come that changes it: complete it now */
		lt_queue_push_held(qp);
}
