/* SPDX-License-Identifier: Apache-2.0
 * What follows a failed attempt: the one classifier and the replay law (architecture section 5). Pure: facts in,
 * decision out; randomness is an argument. Any thread. */
#ifndef DP_COMPLETION_CLASSIFY_H
#define DP_COMPLETION_CLASSIFY_H

#include "dataplane/request/request.h"

enum dp_action {
	DP_ACTION_END,            /* terminal with the status below */
	DP_ACTION_RETRY,          /* same transport, after a back-off */
	DP_ACTION_FAILOVER,       /* next candidate, at once */
	DP_ACTION_WAIT,           /* until a rail that cools down may be tried; no attempt was made */
	DP_ACTION_REFRESH_REMOTE, /* the descriptor is stale: fetch it, then again */
	DP_ACTION_REFRESH_PEER    /* session or ticket is stale: fetch it, then again after a back-off */
};

/* What is known about an owner when one of its attempts failed. */
struct dp_failure {
	const struct dp_result *result;
	uint8_t op;              /* enum tn_op */
	bool at_most_once;
	bool may_have_left;      /* an earlier attempt of this WRITE ended without proof that nothing left */
	uint8_t stale_cnt;       /* earlier attempts that found the registration stale */
	uint32_t attempts, attempts_max;
	bool more_candidates;    /* another transport could be tried */
	uint32_t failovers, failovers_max;
	bool cooling;            /* no transport was asked, because rails are in the way */
};

struct dp_decision {
	enum dp_action action;
	tn_status status;        /* END: what the application sees */
	uint8_t phase, reason;
	bool exhausted;          /* END: only because as many attempts were made as may be */
};

struct dp_decision dp_classify(const struct dp_failure *f);

/* A failure that tells of the path or transport, not of the request. */
bool dp_failure_is_of_path(tn_status status);

/* May this owner be sent again at all? READ: always. WRITE: when provably none of its bytes left this host, or the old
 * path is fenced so that nothing of it can land later; AT_MOST_ONCE: only when none left. */
bool dp_replay_allowed(uint8_t op, bool at_most_once, bool may_have_left, const struct dp_result *r);

/* Wait before attempt number `attempts` + 1: base doubled per attempt, at most max, of which a random half is taken off
 * so that many owners do not come back together. */
uint64_t dp_backoff_ns(uint32_t attempts, uint64_t base_ns, uint64_t max_ns, uint64_t random);

#endif
