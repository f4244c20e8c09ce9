/* SPDX-License-Identifier: Apache-2.0
 * The drain loop. The completion slots of a request are promised before it is taken (the law by which no completion is
 * ever dropped); an entry for which there is no room is looked at again later, from a new copy. Worker thread. */
#include "dataplane/ingress/sq_drain.h"

#include "common/hook.h"

static uint32_t slots_needed(const struct shr_sqe_shm *sqe, tn_status status)
{
	if (status != TN_OK)
		return sqe->opcode == SHR_OP_CANCEL ? 0 : 1;
	switch (sqe->opcode) {
	case SHR_OP_READ: case SHR_OP_WRITE: return 2;
	case SHR_OP_NOTIFY: return 1;
	default: return 0;
	}
}

/* The payload, read once out of the application's slot. False: no buffer now. */
static bool copy_note(struct dp_qp *qp, struct dp_pools *pools, struct dp_request *r)
{
	if (r->sqe.note_len == 0)
		return true;
	uint8_t *buf = dp_note_new(pools, r);
	if (!buf)
		return false;
	/* Whole words; the slot is SHR_NOTE_BYTES long and so is the buffer. */
	shr_words_load(buf, shr_qp_note(&qp->view, r->sqe.note_slot), (r->sqe.note_len + 7) / 8);
	r->note = buf;
	qp->note_cnt++;
	return true;
}

uint32_t dp_sq_drain(struct dp_qp *qp, struct dp_pools *pools, const struct dp_view *view,
		     const struct dp_ingress_cfg *cfg, uint64_t now_ns, struct dp_drained *out, uint32_t max)
{
	uint32_t avail, cnt = 0;
	if (shr_sq_peek(&qp->sq, max, &avail) != TN_OK) {
		qp->broken = true;
		return 0;
	}
	max = TN_MIN(max, TN_MIN(avail, DP_DRAIN_BATCH));
	while (cnt < max) {
		struct dp_request *r = dp_request_new(pools, dp_client_index(qp->cfg.client_id));
		if (!r)
			break;
		shr_sq_copy(&qp->sq, cnt, &r->sqe);
		if (cnt + 1 < max)
			shr_sq_prefetch(&qp->sq, cnt + 1);
		tn_status status = dp_validate(view, cfg, qp, &r->sqe, now_ns, &r->deadline_ns);
		if (status == TN_OK && r->sqe.note_len != 0 && qp->note_cnt >= qp->view.lay.note_slots)
			status = TN_LIMIT; /* more payloads out than slots exist: it reuses slots that are ours */
		tn_status room = shr_cq_reserve(&qp->cq, slots_needed(&r->sqe, status));
		if (room == TN_OK && status == TN_OK && r->sqe.opcode == SHR_OP_NOTIFY && !copy_note(qp, pools, r)) {
			shr_cq_unreserve(&qp->cq, 1);
			room = TN_AGAIN;
		}
		if (room != TN_OK) {
			dp_request_discard(pools, r);
			qp->broken = room != TN_AGAIN;
			break;
		}
		r->qp = qp;
		r->ingress_ns = now_ns;
		out[cnt++] = (struct dp_drained){ r, status };
	}
	if (cnt > 0) {
		TN_HOOK(dp_sq_copied);
		shr_sq_release(&qp->sq, cnt);
		TN_HOOK(dp_sq_released);
	}
	qp->blocked = cnt == 0 && avail > 0;
	return cnt;
}
