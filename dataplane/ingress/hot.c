/* SPDX-License-Identifier: Apache-2.0
 * The list behind hot.h. Turning cold is the sleeper's side of the doorbell protocol for one ring [D1]: arm, full fence,
 * look again. Worker thread. */
#include "dataplane/ingress/hot.h"

#include "shm-ring/doorbell.h"

static tn_a32 *armed_word(struct dp_qp *qp) { return &qp->view.qp->sq_armed.value; }

void dp_hot_init(struct dp_hot *h)
{
	*h = (struct dp_hot){ 0 };
	tn_list_init(&h->qps);
}

static void heat(struct dp_qp *qp)
{
	shr_doorbell_disarm(armed_word(qp));
	qp->hot->cold -= qp->cold;
	qp->cold = false;
	tn_list_push_back(&qp->hot->qps, &qp->hot_link);
}

static void bell_ready(struct dp_pollable *p, uint32_t events)
{
	struct dp_qp *qp = tn_container_of(p, struct dp_qp, bell);
	(void)events; /* a hang-up is the control thread's business: it sees the client's socket close */
	(void)shr_doorbell_drain(p->fd);
	if (!tn_list_linked(&qp->hot_link) && !qp->broken && !qp->closing)
		heat(qp);
}

void dp_hot_add(struct dp_hot *h, struct dp_qp *qp, uint64_t now_ns)
{
	qp->hot = h;
	qp->work_ns = now_ns;
	qp->bell = (struct dp_pollable){ .ready = bell_ready, .fd = qp->cfg.doorbell_fd };
	heat(qp);
}

void dp_hot_remove(struct dp_qp *qp)
{
	if (!qp->hot)
		return;
	tn_list_unlink(&qp->hot_link);
	qp->hot->cold -= qp->cold;
	qp->cold = false;
}

void dp_hot_idle(struct dp_qp *qp, uint64_t now_ns)
{
	if (now_ns - qp->work_ns < DP_HOT_NS)
		return;
	qp->work_ns = now_ns; /* not asked again in every turn */
	if (qp->blocked || !tn_list_empty(&qp->requests) || (qp->broken && !qp->broken_told))
		return;
	if (qp->broken || qp->closing) { /* nobody is listened to any more */
		tn_list_unlink(&qp->hot_link);
		return;
	}
	shr_doorbell_arm(armed_word(qp));
	/* [D1] full: armed = 1 is visible before the index is read again. */
	shr_doorbell_arm_fence();
	if (shr_sq_pending(&qp->sq)) {
		shr_doorbell_disarm(armed_word(qp));
		return;
	}
	tn_list_unlink(&qp->hot_link);
	qp->cold = true;
	qp->hot->cold++;
}

void dp_hot_rotate(struct dp_hot *h)
{
	if (h->qps.next->next != &h->qps)
		tn_list_push_back(&h->qps, tn_list_pop_front(&h->qps));
}

void dp_hot_arm(struct dp_hot *h, bool on)
{
	tn_list_foreach(node, &h->qps) {
		tn_a32 *armed = armed_word(tn_list_entry(node, struct dp_qp, hot_link));
		if (on)
			shr_doorbell_arm(armed);
		else
			shr_doorbell_disarm(armed);
	}
}

bool dp_hot_waits(const struct dp_hot *h, bool *blocked_out)
{
	bool waits = false;
	*blocked_out = false;
	tn_list_foreach(node, &h->qps) {
		const struct dp_qp *qp = tn_list_entry(node, struct dp_qp, hot_link);
		if (qp->broken || qp->closing)
			continue;
		*blocked_out |= qp->blocked;
		waits |= !qp->blocked && shr_sq_pending(&qp->sq);
	}
	return waits;
}
