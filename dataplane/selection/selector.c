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

void dp_selector_tune(struct dp_selector *s, const struct tn_config *cfg, uint64_t now_ns)
{
	s->config = cfg;
	s->failovers_max = (uint32_t)tn_config_u64(cfg, TN_CFG_RETRY_MAX_FAILOVERS);
	dp_rails_tune(&s->rails, cfg, now_ns);
}

static struct dp_policy_answer order_of(const struct dp_selector *s, const struct dp_owner *o, const struct shr_sqe_shm *sqe,
					bool local)
{
	struct dp_policy_query q = {
		.local = local, .priority = o->priority, .intent = sqe->intent, .policy = o->policy, .bytes = dp_owner_whole(o)->bytes,
	};
	return dp_policy_order(s->config, &q);
}

void dp_select_candidates(struct dp_selector *s, struct dp_owner *o, const struct shr_sqe_shm *sqe, bool local)
{
	struct dp_policy_answer order = order_of(s, o, sqe, local);
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

/* But for its rail. */
static enum dp_reject judge(const struct dp_selector *s, const struct dp_transport *t, const struct dp_remote *remote)
{
	if (s->off >> t->ops->kind & 1)
		return DP_REJECT_OFF;
	if (!t->up)
		return DP_REJECT_DOWN;
	return t->ops->reach(t, remote) == DP_REACH_NO ? DP_REJECT_NO_ENDPOINT : DP_REJECT_NONE;
}

/* It changed its transport as often as it may, and the one it has can be used: no other one. */
static bool pinned(const struct dp_selector *s, const struct dp_owner *o)
{
	for (unsigned i = 0; o->failover_cnt >= s->failovers_max && i < o->candidate_cnt; i++)
		if (o->candidates[i] == o->last_transport)
			return s->by_kind[o->last_transport]->up && !(s->off >> o->last_transport & 1);
	return false;
}

bool dp_select_more(const struct dp_selector *s, const struct dp_owner *o, const struct dp_remote *remote, uint64_t now_ns)
{
	for (unsigned i = o->candidate + 1u; i < o->candidate_cnt; i++) {
		unsigned kind = o->candidates[i];
		if (judge(s, s->by_kind[kind], remote) == DP_REJECT_NONE &&
		    dp_rails_open(&s->rails, kind, o->peer_index, now_ns))
			return true;
	}
	return false;
}

/* The first one from `i` on, or `end`. */
static unsigned walk(struct dp_selector *s, struct dp_owner *o, const struct dp_remote *remote, unsigned i, unsigned end,
		     uint64_t now_ns)
{
	bool hinted = o->hint != TN_TRANSPORT_UNSPEC, one = pinned(s, o);
	uint64_t again_ns = o->retry_ns != 0 ? o->retry_ns : UINT64_MAX;
	bool passes = o->retry_ns != 0;
	for (; i < end; i++) {
		struct dp_transport *t = s->by_kind[o->candidates[i]];
		enum dp_reject why = one && t->ops->kind != o->last_transport ? DP_REJECT_BUDGET : judge(s, t, remote);
		if (why == DP_REJECT_NONE && s->rails.sick_cnt > 0)
			why = dp_rails_ask(&s->rails, t, o->peer_index, now_ns, &again_ns);
		o->rejected[o->candidates[i]] = (uint8_t)why;
		if (why == DP_REJECT_NONE)
			break;
		passes |= dp_reject_is_wait(why);
		count_event(s, hinted ? TN_SELECTION_HINT_UNAVAILABLE : TN_SELECTION_CANDIDATE_UNAVAILABLE);
	}
	o->retry_ns = passes ? again_ns : 0;
	return i;
}

struct dp_transport *dp_select(struct dp_selector *s, struct dp_owner *o, const struct dp_remote *remote, uint64_t now_ns)
{
	unsigned from = o->candidate;
	o->retry_ns = 0;
	unsigned i = walk(s, o, remote, from, o->candidate_cnt, now_ns);
	bool found = i < o->candidate_cnt;
	if (!found && from > 0) {
		i = walk(s, o, remote, 0, from, now_ns);
		found = i < from;
	}
	tn_counter_add(s->m, TN_C0(SELECTION_CALLS_TOTAL), 1);
	count_event(s, !found ? TN_SELECTION_EXHAUSTED : i == 0 ? TN_SELECTION_SELECTED : TN_SELECTION_FALLBACK);
	o->candidate = found ? (uint8_t)i : 0;
	return found ? s->by_kind[o->candidates[i]] : NULL;
}

void dp_select_reasons(const struct dp_selector *s, const struct dp_owner *o, const struct shr_sqe_shm *sqe,
		       uint8_t out[static TN_TRANSPORT_CNT])
{
	bool local = o->peer_index == DP_PEER_SELF;
	struct dp_policy_answer order = order_of(s, o, sqe, local);
	for (unsigned kind = 0; kind < TN_TRANSPORT_CNT; kind++) {
		enum dp_reject why = dp_reject_by_rule(s->config, kind, local, &order, o->hint);
		out[kind] = (uint8_t)(why == DP_REJECT_NONE && !s->by_kind[kind] ? DP_REJECT_DOWN : why);
	}
	for (unsigned i = 0; i < o->candidate_cnt; i++)
		out[o->candidates[i]] = o->rejected[o->candidates[i]];
}
