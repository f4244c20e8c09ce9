/* SPDX-License-Identifier: Apache-2.0
 * Takes completions, from the ring and of our own making. A completion from the ring is believed only where the shadow
 * agrees: its token names a request that is outstanding in that ring. Owner thread; never blocks. */
#include <string.h>

#include "common/domain.h"
#include "common/hook.h"
#include "dataplane/libtent/queue.h"

void lt_queue_break(tent_qp *qp, const char *why)
{
	if (qp->ring_broken)
		return;
	qp->ring_broken = true;
	lt_context_break(qp->ctx, why);
}

static bool terminal_is_sound(const struct shr_cqe_shm *c, const struct lt_slot *slot)
{
	bool completed = c->outcome == TN_OUTCOME_COMPLETED;

	return slot->state == LT_SLOT_POSTED && c->outcome < TN_OUTCOME_CNT && c->phase < TN_PHASE_CNT &&
	       c->reason < TN_REASON_CNT && c->transport < TN_TRANSPORT_CNT && completed == (c->status == TN_OK) &&
	       c->status <= TN_OK && c->bytes <= TN_MAX(slot->sqe.length, slot->sqe.note_len);
}

struct lt_slot *lt_cqe_check(tent_qp *qp, const struct shr_cqe_shm *cqe)
{
	struct lt_slot *slot = lt_slot_of_token(qp, cqe->token);

	if (slot == NULL)
		return NULL;
	if (cqe->kind == SHR_CQE_TERMINAL)
		return terminal_is_sound(cqe, slot) ? slot : NULL;
	return cqe->kind == SHR_CQE_RELEASE && slot->state == LT_SLOT_BUSY ? slot : NULL;
}

void lt_cqe_to_completion(const struct shr_cqe_shm *cqe, const struct lt_slot *slot, tent_completion *out)
{
	bool notice = slot->sqe.opcode == SHR_OP_NOTIFY;

	*out = (tent_completion){
		.user_data = slot->sqe.user_data,
		.kind = cqe->kind == SHR_CQE_RELEASE ? TENT_COMPLETION_RELEASE :
			notice ? TENT_COMPLETION_NOTIFY : TENT_COMPLETION_REQUEST,
		.request_id = cqe->request_id,
		.opcode = notice ? 0 : slot->sqe.opcode,
	};
	if (cqe->kind == SHR_CQE_RELEASE)
		return;
	out->bytes = cqe->bytes;
	out->latency_ns = cqe->latency_ns;
	out->status = (tent_status)cqe->status;
	out->outcome = cqe->outcome;
	out->transport = cqe->transport;
	out->memory_busy = (cqe->flags & SHR_CQE_MEMORY_BUSY) != 0;
	out->attempts = cqe->attempts;
	out->phase = cqe->phase;
	out->reason = cqe->reason;
}

/* One completion of the ring that passed its check. */
static void take_cqe(tent_qp *qp, const struct shr_cqe_shm *cqe, struct lt_slot *slot, tent_completion *out)
{
	lt_cqe_to_completion(cqe, slot, out);
	if (cqe->kind == SHR_CQE_TERMINAL) {
		lt_slot_settle(qp, slot, out->outcome == TENT_OUTCOME_COMPLETED, true);
		qp->unfinished--;
		if (out->memory_busy) {
			lt_slot_move(slot, LT_SLOT_BUSY);
			return;
		}
	}
	lt_slot_free(qp, slot);
}

static int take_from_ring(tent_qp *qp, tent_completion *out, int max)
{
	struct shr_cq_cons *cq = &qp->ring->cq;
	struct shr_cqe_shm cqe;
	uint32_t avail, n = 0;

	if (tn_unlikely(shr_cq_peek(cq, (uint32_t)max, &avail) != TN_OK)) {
		lt_queue_break(qp, "the data plane's index of a completion queue is out of range");
		return 0;
	}
	avail = TN_MIN(avail, (uint32_t)max);
	for (; n < avail; n++) {
		shr_cq_copy(cq, n, &cqe);
		struct lt_slot *slot = lt_cqe_check(qp, &cqe);
		if (tn_unlikely(slot == NULL)) {
			lt_queue_break(qp, "a completion names no request that is outstanding, or is malformed");
			break;
		}
		take_cqe(qp, &cqe, slot, &out[n]);
	}
	if (n != 0) {
		TN_HOOK(lt_cq_copied);
		shr_cq_release(cq, n);
	}
	return (int)n;
}

static int take_own(tent_qp *qp, tent_completion *out, int max)
{
	int n = 0;

	while (n < max && qp->ready.cnt != 0) {
		struct lt_slot *slot = lt_list_pop(qp, &qp->ready);

		out[n] = slot->done;
		if (out[n].kind != TENT_COMPLETION_RELEASE)
			qp->unfinished--;
		lt_slot_free(qp, slot);
		n++;
	}
	return n;
}

/* Held requests wait for room in the ring, for an object, or for their deadline. */
static void look_at_held(tent_qp *qp)
{
	uint32_t room = 0;
	bool may_post =
	    qp->ring != NULL && !qp->ring_broken && shr_sq_space(&qp->ring->sq, 1, &room) == TN_OK && room != 0;

	if (may_post || tn_load_relaxed64(&qp->held_deadline_ns) <= tn_now_ns())
		lt_queue_push_held(qp);
}

int lt_queue_poll(tent_qp *qp, tent_completion *out, int max, const char *call)
{
	int n = 0;

	if (tn_unlikely(!lt_queue_enter(qp)))
		return (int)lt_queue_refuse(qp, call);
	if (tn_unlikely(out == NULL || max <= 0))
		return (int)lt_fail(TN_INVALID, "%s: %s", call, out == NULL ? "out is NULL" : "max is not positive");
	if (qp->armed) {
		shr_doorbell_disarm(&qp->ring->view.qp->cq_armed.value);
		qp->armed = false;
	}
	if (tn_unlikely(qp->held.cnt != 0))
		look_at_held(qp);
	if (tn_unlikely(lt_queue_has_own(qp)))
		n = take_own(qp, out, max);
	if (tn_likely(qp->ring != NULL && !qp->ring_broken && n < max))
		n += take_from_ring(qp, out + n, max - n);
	if (tn_unlikely(n == 0 && qp->dead_status != TN_OK))
		return (int)lt_queue_refuse(qp, call);
	return n;
}

int tent_poll(tent_qp *qp, tent_completion *out, int max) { return lt_queue_poll(qp, out, max, "tent_poll"); }
