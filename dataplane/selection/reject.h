/* SPDX-License-Identifier: Apache-2.0
 * Why a transport is not used (common/reject.h): which reasons follow from rules alone, and which pass. Pure; any thread. */
#ifndef DP_SELECTION_REJECT_H
#define DP_SELECTION_REJECT_H

#include "common/reject.h"
#include "dataplane/selection/policy.h"

#define X(n, s, m) DP_REJECT_##n,
enum dp_reject { TN_REJECT_LIST(X) DP_REJECT_CNT };
#undef X

/* A request may wait for it to pass. */
TN_INLINE bool dp_reject_is_wait(unsigned r)
{
	return r == DP_REJECT_COOLING || r == DP_REJECT_PROBATION || r == DP_REJECT_OFF;
}

/* What keeps a kind from being a candidate at all: build, switch, target, policy (`order` answers for this target) or
 * hint (TN_TRANSPORT_UNSPEC: none). NONE: nothing of these. */
enum dp_reject dp_reject_by_rule(const struct tn_config *cfg, unsigned kind, bool local,
				 const struct dp_policy_answer *order, unsigned hint);

#endif
