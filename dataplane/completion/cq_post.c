/* SPDX-License-Identifier: Apache-2.0
 * Completion rings: post, publish, ring the doorbell. The full fence between publishing an index and reading the armed
 * word [D2] is paid once per loop, not per completion. Worker thread. */
#include "dataplane/completion/cq_post.h"

#include "common/hook.h"
#include "shm-ring/doorbell.h"

void dp_cq_post(struct dp_completion *c, struct dp_qp *qp, const struct shr_cqe_shm *cqe, uint64_t ring_ns)
{
	if (qp->broken)
		return;
	shr_cq_put(&qp->cq, cqe);
	qp->ring_ns = qp->unrung++ == 0 ? ring_ns : TN_MIN(qp->ring_ns, ring_ns);
	if (!tn_list_linked(&qp->dirty_link))
		tn_list_push_back(&c->dirty, &qp->dirty_link);
}

void dp_cq_unreserve(struct dp_qp *qp, uint32_t n)
{
	if (!qp->broken)
		shr_cq_unreserve(&qp->cq, n);
}

/* Waking an application costs both CPUs about as much as copying 256 KiB, so one that keeps many large requests outstanding
 * is not woken for each: the first ones wait until as many are over as still run, or until their time is up. */
static bool may_wait(const struct dp_qp *qp, uint64_t now_ns)
{
	return now_ns < qp->ring_ns && qp->unrung < qp->outstanding;
}

uint32_t dp_cq_flush(struct dp_completion *c, uint64_t now_ns)
{
	if (tn_list_empty(&c->dirty))
		return 0;
	uint32_t published = 0;
	TN_HOOK(dp_cq_put);
	tn_list_foreach(node, &c->dirty)
		published += shr_cq_publish(&tn_list_entry(node, struct dp_qp, dirty_link)->cq);
	TN_HOOK(dp_cq_published);
	shr_doorbell_publish_fence();
	tn_list_foreach(node2, &c->dirty) {
		struct dp_qp *qp = tn_list_entry(node2, struct dp_qp, dirty_link);
		if (shr_doorbell_is_armed(&qp->view.qp->cq_armed.value)) {
			if (may_wait(qp, now_ns))
				continue;
			shr_doorbell_ring(qp->cfg.doorbell_fd);
		}
		qp->unrung = 0;
		tn_list_unlink(&qp->dirty_link);
	}
	return published;
}

uint64_t dp_cq_ring_ns(const struct dp_completion *c)
{
	uint64_t next = UINT64_MAX;
	tn_list_foreach(node, &c->dirty)
		next = TN_MIN(next, tn_list_entry(node, struct dp_qp, dirty_link)->ring_ns);
	return next;
}
