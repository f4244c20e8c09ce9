/* SPDX-License-Identifier: Apache-2.0
 * Ingress: takes descriptors out of a submission ring - each copied exactly once into the request that will own it -
 * and validates the copies. What becomes of them is the next stage's business. Worker thread. */
#ifndef DP_INGRESS_SQ_DRAIN_H
#define DP_INGRESS_SQ_DRAIN_H

#include "dataplane/ingress/validate.h"
#include "dataplane/request/pool.h"

#define DP_DRAIN_BATCH 32u

/* One entry: request->sqe is the copy, request->note the payload of a NOTIFY. status other than TN_OK: refused.
 * Completion slots are reserved: 2 for READ and WRITE, 1 for NOTIFY and for whatever is refused, 0 for CANCEL. */
struct dp_drained { struct dp_request *request; tn_status status; };

/* Takes up to `max` (<= DP_DRAIN_BATCH) entries and gives their slots back to the application; returns how many.
 * Takes fewer when completion slots, pool objects or notice buffers are short: the rest stays in the ring (back
 * pressure). A ring that breaks the rules sets qp->broken and gives nothing. */
uint32_t dp_sq_drain(struct dp_qp *qp, struct dp_pools *pools, const struct dp_view *view,
		     const struct dp_ingress_cfg *cfg, uint64_t now_ns, struct dp_drained *out, uint32_t max);

#endif
