/* SPDX-License-Identifier: Apache-2.0
 * May this descriptor enter? Judges a private copy against the worker's tables: handles with generation and owner,
 * rights, ranges, sizes, hint, policy, deadline. Pure over its arguments. Worker thread. */
#ifndef DP_INGRESS_VALIDATE_H
#define DP_INGRESS_VALIDATE_H

#include "dataplane/ingress/qp.h"
#include "dataplane/segment/view.h"

struct dp_ingress_cfg {
	uint64_t max_request_bytes, default_deadline_ns, max_deadline_ns;
	uint32_t policy_end;             /* one more than the largest number of a policy */
	uint32_t transports;  /* bit (1 << enum tn_transport): registered on this worker */
	bool draining;        /* refuse everything new */
};

/* TN_OK with *deadline_out (absolute; the default for 0, cut to the farthest allowed), else why it is refused:
 * INVALID, RANGE, TOO_BIG (shape or size), STALE (handle), PERMISSION (rights), UNSUPPORTED (hint), CLOSED (drains). */
tn_status dp_validate(const struct dp_view *v, const struct dp_ingress_cfg *cfg, const struct dp_qp *qp,
		      const struct shr_sqe_shm *sqe, uint64_t now_ns, uint64_t *deadline_out);

/* Label of tent_submit_rejections_total for a refusal. */
enum tn_reason dp_refusal_reason(tn_status s);

#endif
