/* SPDX-License-Identifier: Apache-2.0
 * Walks the candidates. A hint leaves one candidate; a hint that cannot serve is exhausted, never replaced.
 * One worker. */
#include "dataplane/selection/selector.h"

#include "dataplane/selection/policy.h"
#include "dataplane/transport/transport.h"

static void count_event(const struct dp_selector *s, enum tn_selection event)
{
	tn_counter_add(s->m, TN_C1(SELECTION_EVENTS_TOTAL, event), 1);
}

void dp_select_candidates(const struct dp_selector *s, struct dp_owner *o, const struct shr_sqe_shm *sqe, bool local)
{
	struct dp_policy_query q = {
		.local = local, .priority = o->priority, .intent = sqe->intent, .policy = o->policy, .bytes = o->bytes,
	};
	struct dp_policy_answer order = dp_policy_order(s->config, &q);
	bool hinted = o->hint != TN_TRANSPORT_UNSPEC;
	o->candidate = o->candidate_cnt = 0;
	if (order.miss)
		count_event(s, TN_SELECTION_POLICY_MISS);
	for (unsigned i = 0; i < order.cnt; i++) {
		unsigned kind = order.kinds[i];
		if (s->by_kind[kind] && (!hinted || o->hint == kind))
			o->candidates[o->candidate_cnt++] = (uint8_t)kind;
	}
	if (o->candidate_cnt == 0)
		count_event(s, hinted ? TN_SELECTION_HINT_REJECTED : TN_SELECTION_CANDIDATE_EMPTY);
}

struct dp_transport *dp_select(const struct dp_selector *s, struct dp_owner *o, const struct dp_remote *remote)
{
	bool hinted = o->hint != TN_TRANSPORT_UNSPEC;
	for (unsigned i = o->candidate; i < o->candidate_cnt; i++) {
		struct dp_transport *t = s->by_kind[o->candidates[i]];
		if (t->up && t->ops->reach(t, remote) != DP_REACH_NO) {
			o->candidate = (uint8_t)i;
			if (i == 0) {
				dp_tally_selected(s->tally);
			} else {
				tn_counter_add(s->m, TN_C0(SELECTION_CALLS_TOTAL), 1);
				count_event(s, TN_SELECTION_FALLBACK);
			}
			return t;
		}
		count_event(s, hinted ? TN_SELECTION_HINT_UNAVAILABLE : TN_SELECTION_CANDIDATE_UNAVAILABLE);
	}
	tn_counter_add(s->m, TN_C0(SELECTION_CALLS_TOTAL), 1);
	count_event(s, TN_SELECTION_EXHAUSTED);
	return NULL;
}
