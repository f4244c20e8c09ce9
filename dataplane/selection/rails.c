/* SPDX-License-Identifier: Apache-2.0
 * The table of rails of a worker. One worker. */
#include "dataplane/selection/rails.h"

#include <stdlib.h>

#include "dataplane/completion/classify.h"

tn_status dp_rails_init(struct dp_rails *rs, uint32_t peers, struct tn_rand *rand)
{
	*rs = (struct dp_rails){ .by_target = calloc(peers + 1, sizeof *rs->by_target), .row_cnt = peers + 1, .rand = rand };
	return rs->by_target ? TN_OK : TN_NO_MEMORY;
}

void dp_rails_destroy(struct dp_rails *rs)
{
	free(rs->by_target);
	*rs = (struct dp_rails){ 0 };
}

static struct dp_rail_slot *slot_of(const struct dp_rails *rs, unsigned kind, uint32_t peer_index)
{
	return &rs->by_target[peer_index + 1u][kind]; /* DP_PEER_SELF is row 0 */
}

/* Books of a slot whose rail was in `before`. */
static void settle(struct dp_rails *rs, struct dp_rail_slot *s, unsigned before)
{
	rs->sick_cnt += (s->rail.state != DP_RAIL_UP) - (uint32_t)(before != DP_RAIL_UP);
	tn_store_relaxed64(&s->shown_until_ns, s->rail.until_ns);
	tn_store_relaxed32(&s->shown, s->rail.state);
}

static void all_up(struct dp_rails *rs, uint64_t now_ns)
{
	for (uint32_t i = 0; i < rs->row_cnt * TN_TRANSPORT_CNT && rs->sick_cnt > 0; i++) {
		struct dp_rail_slot *s = &rs->by_target[i / TN_TRANSPORT_CNT][i % TN_TRANSPORT_CNT];
		unsigned before = s->rail.state;
		dp_rail_renewed(&s->rail, now_ns);
		dp_rail_worked(&s->rail, now_ns);
		settle(rs, s, before);
	}
}

void dp_rails_tune(struct dp_rails *rs, const struct tn_config *cfg, uint64_t now_ns)
{
	rs->cfg = (struct dp_rail_cfg){
		.errors_max = (uint32_t)tn_config_u64(cfg, TN_CFG_RAILS_MAX_ERRORS),
		.window_ns = tn_config_ns(cfg, TN_CFG_RAILS_WINDOW_MS),
		.cool_min_ns = tn_config_ns(cfg, TN_CFG_RAILS_COOL_MIN_MS),
		.cool_max_ns = tn_config_ns(cfg, TN_CFG_RAILS_COOL_MAX_MS),
		.settle_ns = tn_config_ns(cfg, TN_CFG_RAILS_SETTLE_MS),
	};
	rs->probe_ns = tn_config_ns(cfg, TN_CFG_RAILS_PROBE_MS);
	if (rs->cfg.errors_max == 0)
		all_up(rs, now_ns);
}

bool dp_rails_open(const struct dp_rails *rs, unsigned kind, uint32_t peer_index, uint64_t now_ns)
{
	return dp_rail_ask(&slot_of(rs, kind, peer_index)->rail, now_ns) <= DP_RAIL_TRY;
}

/* Look whether the transport gets there. */
static void probe(struct dp_rails *rs, struct dp_transport *t, struct dp_rail *r, uint32_t peer_index, uint64_t now_ns)
{
	uint64_t until_ns = now_ns + rs->probe_ns;
	if (t->ops->probe && t->ops->probe(t, peer_index, until_ns) != DP_REACH_READY)
		dp_rail_probe(r, until_ns);
	else
		dp_rail_renewed(r, now_ns);
}

enum dp_reject dp_rails_ask(struct dp_rails *rs, struct dp_transport *t, uint32_t peer_index, uint64_t now_ns,
			    uint64_t *again_ns)
{
	struct dp_rail_slot *s = slot_of(rs, t->ops->kind, peer_index);
	struct dp_rail *r = &s->rail;
	unsigned before = r->state;
	enum dp_rail_verdict v = dp_rail_ask(r, now_ns);
	if (v == DP_RAIL_PROBE)
		probe(rs, t, r, peer_index, now_ns);
	else if (v == DP_RAIL_LATE)
		dp_rail_probed(r, &rs->cfg, false, now_ns, tn_rand_u64(rs->rand));
	if (r->state != before) {
		settle(rs, s, before);
		v = dp_rail_ask(r, now_ns);
	}
	if (v == DP_RAIL_TRY)
		dp_rail_try(r);
	if (v <= DP_RAIL_TRY)
		return DP_REJECT_NONE;
	if (r->state == DP_RAIL_PROBATION)
		return DP_REJECT_PROBATION;
	*again_ns = TN_MIN(*again_ns, r->until_ns);
	return DP_REJECT_COOLING;
}

bool dp_rails_ended(struct dp_rails *rs, unsigned kind, uint32_t peer_index, tn_status status, uint64_t start_ns,
		    uint64_t now_ns)
{
	struct dp_rail_slot *s = slot_of(rs, kind, peer_index);
	if (status != TN_OK && start_ns < s->rail.fresh_ns)
		return false;
	unsigned before = s->rail.state;
	bool trial = s->rail.trial;
	if (status == TN_OK)
		dp_rail_worked(&s->rail, now_ns);
	else if (dp_failure_is_of_path(status))
		dp_rail_failed(&s->rail, &rs->cfg, now_ns, tn_rand_u64(rs->rand));
	else
		dp_rail_undecided(&s->rail);
	if (s->rail.state != before)
		settle(rs, s, before);
	return trial != s->rail.trial;
}

bool dp_rails_probed(struct dp_rails *rs, unsigned kind, uint32_t peer_index, bool ok, uint64_t now_ns)
{
	struct dp_rail_slot *s = slot_of(rs, kind, peer_index);
	unsigned before = s->rail.state;
	dp_rail_probed(&s->rail, &rs->cfg, ok, now_ns, tn_rand_u64(rs->rand));
	if (s->rail.state == before)
		return false;
	settle(rs, s, before);
	return true;
}

bool dp_rails_renewed(struct dp_rails *rs, uint32_t peer_index, uint64_t now_ns)
{
	bool any = false;
	for (unsigned kind = 0; kind < TN_TRANSPORT_CNT; kind++) {
		struct dp_rail_slot *s = slot_of(rs, kind, peer_index);
		unsigned before = s->rail.state;
		dp_rail_renewed(&s->rail, now_ns);
		if (s->rail.state == before)
			continue;
		settle(rs, s, before);
		any = true;
	}
	return any;
}

enum dp_rail_state dp_rails_look(const struct dp_rails *rs, unsigned kind, uint32_t peer_index, uint64_t *until_ns_out)
{
	struct dp_rail_slot *s = slot_of(rs, kind, peer_index);
	*until_ns_out = tn_load_relaxed64(&s->shown_until_ns);
	return tn_load_relaxed32(&s->shown);
}
