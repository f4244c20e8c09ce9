/* SPDX-License-Identifier: Apache-2.0
 * The last step: completions into the ring. Posted one by one, published in one store per queue pair and loop. Whoever
 * looks sees them then; whoever sleeps is rung, and for that a completion of a large block may wait a little for company.
 * Worker thread. */
#ifndef DP_COMPLETION_CQ_POST_H
#define DP_COMPLETION_CQ_POST_H

#include "dataplane/completion/retire.h"

/* Writes one completion into a slot that was promised at ingress. Nothing is written for a broken ring. A sleeping
 * application is rung by `ring_ns` at the latest; 0 = with the next flush. */
void dp_cq_post(struct dp_completion *c, struct dp_qp *qp, const struct shr_cqe_shm *cqe, uint64_t ring_ns);
/* A promised slot that will not be used. */
void dp_cq_unreserve(struct dp_qp *qp, uint32_t n);

#endif
