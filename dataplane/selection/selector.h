/* SPDX-License-Identifier: Apache-2.0
 * Selection: from an owner's ordered candidates to the transport that takes the next attempt. Each call ends selected,
 * fallback or exhausted, and counts itself (contract equation 9). One worker. */
#ifndef DP_SELECTION_SELECTOR_H
#define DP_SELECTION_SELECTOR_H

#include "common/config.h"
#include "common/metrics.h"
#include "dataplane/request/request.h"
#include "dataplane/stats/tally.h"

struct dp_selector {
	struct dp_transport *by_kind[TN_TRANSPORT_CNT]; /* registered ones; NULL otherwise */
	const struct tn_config *config;
	const struct tn_metrics *m;
	struct dp_tally *tally;                        /* of the usual outcome: the first candidate served */
};

/* Fill the owner's candidates from policy, hint and what is registered; once, before its first attempt. `sqe` is its
 * first request's descriptor. Counts policy_miss, hint_rejected, candidate_empty. */
void dp_select_candidates(const struct dp_selector *s, struct dp_owner *o, const struct shr_sqe_shm *sqe, bool local);
/* The first reachable candidate from o->candidate on (which moves there); NULL = exhausted. */
struct dp_transport *dp_select(const struct dp_selector *s, struct dp_owner *o, const struct dp_remote *remote);

#endif
