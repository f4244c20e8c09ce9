/* SPDX-License-Identifier: Apache-2.0
 * Selection: from an owner's ordered candidates to the transport that takes the next attempt. Each call ends selected,
 * fallback or exhausted, and counts itself (contract equation 9). Every candidate that is passed over leaves its reason
 * with the owner. One worker. */
#ifndef DP_SELECTION_SELECTOR_H
#define DP_SELECTION_SELECTOR_H

#include "common/config.h"
#include "common/metrics.h"
#include "dataplane/request/request.h"
#include "dataplane/selection/rails.h"
#include "dataplane/stats/tally.h"

struct dp_selector {
	struct dp_transport *by_kind[TN_TRANSPORT_CNT]; /* registered ones; NULL otherwise */
	uint32_t off;                                  /* bits of kinds that an operator switched off */
	const struct tn_config *config;
	uint32_t failovers_max;                        /* changes of transport that one owner may make */
	struct dp_rails rails;
	const struct tn_metrics *m;
	struct dp_tally *tally;                        /* of the usual outcome: the first candidate served */
};

/* Other rules from now on, for owners whose candidates are chosen from now on. */
void dp_selector_tune(struct dp_selector *s, const struct tn_config *cfg, uint64_t now_ns);
/* Fill the owner's candidates from policy, hint and what is registered. `sqe` is its first request's descriptor. Counts
 * policy_miss, hint_rejected, candidate_empty. */
void dp_select_candidates(struct dp_selector *s, struct dp_owner *o, const struct shr_sqe_shm *sqe, bool local);
/* The usual case of dp_select(): an owner without attempts, all rails up, its first candidate serves. NULL: ask it. */
TN_INLINE struct dp_transport *dp_select_usual(struct dp_selector *s, const struct dp_owner *o, const struct dp_remote *remote)
{
	if (tn_unlikely((s->rails.sick_cnt | s->off) != 0 || o->attempt_cnt > 0 || o->candidate > 0 || o->candidate_cnt == 0))
		return NULL;
	struct dp_transport *t = s->by_kind[o->candidates[0]];
	if (tn_unlikely(!t->up || t->ops->reach(t, remote) == DP_REACH_NO))
		return NULL;
	dp_tally_selected(s->tally);
	return t;
}
/* The first candidate that can serve now, from o->candidate on and then from the beginning (o->candidate moves there).
 * NULL: none can; o->retry_ns is when it is worth while because a rail may be open then (UINT64_MAX: when one changes, or an
 * operator switches a kind on again), 0: nothing that passes is in the way. An owner that may not change its transport any more has only the one it had. */
struct dp_transport *dp_select(struct dp_selector *s, struct dp_owner *o, const struct dp_remote *remote, uint64_t now_ns);
/* For people: why each kind is not used by this owner, whose first request has this descriptor (enum dp_reject; NONE: it
 * is, or could be). */
void dp_select_reasons(const struct dp_selector *s, const struct dp_owner *o, const struct shr_sqe_shm *sqe,
		       uint8_t out[static TN_TRANSPORT_CNT]);
/* Could a candidate behind o->candidate serve now? */
bool dp_select_more(const struct dp_selector *s, const struct dp_owner *o, const struct dp_remote *remote, uint64_t now_ns);

#endif
