/* SPDX-License-Identifier: Apache-2.0
 * Completion rings: post, publish, ring the doorbell. The full fence between publishing an index and reading the armed
 * word [D2] is paid once per loop, not per completion. Worker thread. */
#include "dataplane/completion/cq_post.h"

#include "common/hook.h"
#include "shm-ring/doorbell.h"

void dp_cq_post(struct dp_completion *c, struct dp_qp *qp, const struct shr_cqe_shm *cqe)
{
	if (qp->broken)
		return;
	shr_cq_put(&qp->cq, cqe);
	if (!tn_list_linked(&qp->dirty_link))
		tn_list_push_back(&c->dirty, &qp->dirty_link);
}

void dp_cq_unreserve(struct dp_qp *qp, uint32_t n)
{
	if (!qp->broken)
		shr_cq_unreserve(&qp->cq, n);
}

uint32_t dp_cq_flush(struct dp_completion *c)
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
		if (shr_doorbell_is_armed(&qp->view.qp->cq_armed.value))
			shr_doorbell_ring(qp->cfg.doorbell_fd);
		tn_list_unlink(&qp->dirty_link);
	}
	return published;
}
