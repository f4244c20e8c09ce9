/* SPDX-License-Identifier: Apache-2.0
 * The last step: completions into the ring. Posted one by one, published in one store per queue pair and loop.
 * Worker thread. */
#ifndef DP_COMPLETION_CQ_POST_H
#define DP_COMPLETION_CQ_POST_H

#include "dataplane/completion/retire.h"

/* Writes one completion into a slot that was promised at ingress. Nothing is written for a broken ring. */
void dp_cq_post(struct dp_completion *c, struct dp_qp *qp, const struct shr_cqe_shm *cqe);
/* A promised slot that will not be used. */
void dp_cq_unreserve(struct dp_qp *qp, uint32_t n);

#endif
