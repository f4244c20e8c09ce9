/* SPDX-License-Identifier: Apache-2.0
 * Why a transport is not used: the one list of reasons, with the words that `explain` and `request show` say, and those
 * reasons that follow from rules alone. Pure; any thread. */
#ifndef DP_SELECTION_REJECT_H
#define DP_SELECTION_REJECT_H

#include "dataplane/selection/policy.h"

/* X(REASON, name, meaning). From NO_ENDPOINT on they may pass by themselves. */
#define DP_REJECT_LIST(X) \
	X(NONE, none, "") \
	X(NOT_BUILT, not_built, "not in this build") \
	X(DISABLED, disabled, "switched off") \
	X(TARGET, wrong_target, "not for such a target") \
	X(POLICY, policy, "the policy does not name it") \
	X(HINT, hint, "the request asks for another one") \
	X(DOWN, down, "it does not work on this host; see the data plane's log") \
	X(OFF, off, "an operator switched it off (tentctl transport enable)") \
	X(BUDGET, failovers, "the request changed its transport as often as it may") \
	X(NO_ENDPOINT, no_endpoint, "the peer advertises no address for it") \
	X(COOLING, cooling, "it failed too often, and is tried again later") \
	X(PROBATION, probation, "it failed too often, and another request tries it now") \
	X(FAILED, failed, "the request failed on it")
#define X(n, s, m) DP_REJECT_##n,
enum dp_reject { DP_REJECT_LIST(X) DP_REJECT_CNT };
#undef X

/* A request may wait for it to pass. */
TN_INLINE bool dp_reject_is_wait(unsigned r) 
{
	return r == DP_REJECT_COOLING || r == DP_REJECT_PROBATION || r == DP_REJECT_OFF;
}

const char *dp_reject_name(unsigned r);    /* "invalid" beyond the list */
const char *dp_reject_meaning(unsigned r); /* "" beyond the list */

/* What keeps a kind from being a candidate at all: build, switch, target, policy (`order` answers for this target) or
 * hint (TN_TRANSPORT_UNSPEC: none). NONE: nothing of these. */
enum dp_reject dp_reject_by_rule(const struct tn_config *cfg, unsigned kind, bool local,
				 const struct dp_policy_answer *order, unsigned hint);

#endif
