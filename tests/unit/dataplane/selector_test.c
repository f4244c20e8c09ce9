/* SPDX-License-Identifier: Apache-2.0
 * Selection: candidates from policy, hint and what is registered; each call ends selected, fallback or exhausted. */
#include "dataplane/selection/selector.h"
#include "tests/unit/dataplane/script.h"

#if TENT_METRICS
static uint64_t event(const struct rig *g, enum tn_selection e)
{
	return tn_load_relaxed64(&g->w->stats.m.cells[TN_C1(SELECTION_EVENTS_TOTAL, e).cell]);
}
#define EVENT_IS(e, n) CU_ASSERT_EQUAL(event(&g, TN_SELECTION_##e), n)
#else
#define EVENT_IS(e, n) ((void)0)
#endif

static struct dp_owner owner(const struct rig *g, uint8_t hint, uint16_t policy)
{
	struct dp_owner o = { .bytes = 4096, .hint = hint, .policy = policy, .priority = TN_PRIORITY_MEDIUM };
	struct shr_sqe_shm sqe = { .intent = 0 };
	o.peer_index = 3;
	dp_select_candidates(&g->w->selector, &o, &sqe, false);
	return o;
}

static struct dp_transport *pick(struct rig *g, struct dp_owner *o, const struct dp_remote *r)
{
	return dp_select(&g->w->selector, o, r, g->now);
}

static void test_order_and_fallback(void)
{
	struct rig g;
	rig_open(&g, NULL, 0, script_both);
	struct dp_remote *r = script_remote(&g, 1);
	struct dp_owner o = owner(&g, 0, 0);
	CU_ASSERT_EQUAL(o.candidate_cnt, 2); /* hp_tcp is not registered */
	CU_ASSERT_PTR_EQUAL(pick(&g, &o, r), &script_rdma.base);
	o.candidate++; /* failing over */
	CU_ASSERT_PTR_EQUAL(pick(&g, &o, r), &script_tcp.base);
	script_rdma.reach = DP_REACH_NO;
	o = owner(&g, 0, 0);
	CU_ASSERT_PTR_EQUAL(pick(&g, &o, r), &script_tcp.base);
	CU_ASSERT_EQUAL(o.candidate, 1);
	script_tcp.base.up = false;
	o = owner(&g, 0, 0);
	CU_ASSERT_PTR_NULL(pick(&g, &o, r));
	CU_ASSERT_EQUAL(o.rejected[TN_TRANSPORT_RDMA], DP_REJECT_NO_ENDPOINT);
	CU_ASSERT_EQUAL(o.rejected[TN_TRANSPORT_TCP], DP_REJECT_DOWN);
	CU_ASSERT_EQUAL(o.retry_ns, 0);
	dp_tally_flush(&g.w->stats.tally);
	EVENT_IS(SELECTED, 1);
	EVENT_IS(FALLBACK, 2);
	EVENT_IS(EXHAUSTED, 1);
	EVENT_IS(CANDIDATE_UNAVAILABLE, 3);
	script_tcp.base.up = true;
	rig_close(&g);
	free(r);
}

static void test_hint_and_policy(void)
{
	static const char *const sets[] = { "policies=[{\"name\":\"t\",\"transports\":[\"tcp\"]},{\"name\":\"s\",\"transports\":[\"shm\"]}]" };
	struct rig g;
	rig_open(&g, sets, 1, script_both);
	struct dp_remote *r = script_remote(&g, 1);
	struct dp_owner o = owner(&g, 0, 0);
	CU_ASSERT_EQUAL(o.candidate_cnt, 1);
	CU_ASSERT_EQUAL(o.candidates[0], TN_TRANSPORT_TCP);
	o = owner(&g, TN_TRANSPORT_RDMA, 0); /* the policy does not allow it */
	CU_ASSERT_EQUAL(o.candidate_cnt, 0);
	EVENT_IS(HINT_REJECTED, 1);
	CU_ASSERT_PTR_NULL(pick(&g, &o, r));
	o = owner(&g, 0, TN_CONFIG_POLICY_ID_FIRST + 1); /* shm for a remote target */
	CU_ASSERT_EQUAL(o.candidate_cnt, 0);
	EVENT_IS(CANDIDATE_EMPTY, 1);
	o = owner(&g, TN_TRANSPORT_TCP, 0);
	script_tcp.reach = DP_REACH_NO;
	CU_ASSERT_PTR_NULL(pick(&g, &o, r));
	EVENT_IS(HINT_UNAVAILABLE, 1);
	rig_close(&g);
	free(r);
}

static void fail_rail(struct rig *g, unsigned kind)
{
	for (unsigned i = 0; i < 3; i++)
		(void)dp_rails_ended(&g->w->selector.rails, kind, 3, TN_PATH_DOWN, g->now, g->now + i);
}

static void test_rails(void)
{
	struct rig g;
	rig_open(&g, NULL, 0, script_both);
	struct dp_remote *r = script_remote(&g, 1);
	struct dp_rails *rails = &g.w->selector.rails;
	struct dp_owner o = owner(&g, 0, 0);
	uint64_t until;
	fail_rail(&g, TN_TRANSPORT_RDMA);
	CU_ASSERT_EQUAL(rails->sick_cnt, 1);
	CU_ASSERT_EQUAL(dp_rails_look(rails, TN_TRANSPORT_RDMA, 3, &until), DP_RAIL_COOLING);
	CU_ASSERT(until > g.now + 100 * RIG_MS && until <= g.now + 201 * RIG_MS);
	CU_ASSERT_PTR_EQUAL(pick(&g, &o, r), &script_tcp.base);
	CU_ASSERT_EQUAL(o.rejected[TN_TRANSPORT_RDMA], DP_REJECT_COOLING);
	CU_ASSERT_EQUAL(o.rejected[TN_TRANSPORT_TCP], DP_REJECT_NONE);
	o = owner(&g, TN_TRANSPORT_RDMA, 0);
	CU_ASSERT_PTR_NULL(pick(&g, &o, r)); /* a hint is not replaced */
	CU_ASSERT_EQUAL(o.retry_ns, until);
	/* Other targets have rails of their own. */
	o.peer_index = 4;
	CU_ASSERT_PTR_EQUAL(pick(&g, &o, r), &script_rdma.base);
	/* The cool-down is over: whoever asks starts the probe and goes another way meanwhile. */
	g.now = until;
	script_rdma.probe = DP_REACH_CONNECT;
	o = owner(&g, 0, 0);
	CU_ASSERT_PTR_EQUAL(pick(&g, &o, r), &script_tcp.base);
	o.candidate = 0;
	CU_ASSERT_PTR_EQUAL(pick(&g, &o, r), &script_tcp.base);
	CU_ASSERT_EQUAL(script_rdma.probes, 1);
	CU_ASSERT_TRUE(dp_rails_probed(rails, TN_TRANSPORT_RDMA, 3, true, g.now));
	CU_ASSERT_FALSE(dp_rails_probed(rails, TN_TRANSPORT_RDMA, 3, true, g.now));
	o.candidate = 0;
	CU_ASSERT_PTR_EQUAL(pick(&g, &o, r), &script_rdma.base);
	struct dp_owner second = owner(&g, 0, 0);
	CU_ASSERT_PTR_EQUAL(pick(&g, &second, r), &script_tcp.base);
	CU_ASSERT_EQUAL(second.rejected[TN_TRANSPORT_RDMA], DP_REJECT_PROBATION);
	CU_ASSERT_TRUE(dp_rails_ended(rails, TN_TRANSPORT_RDMA, 3, TN_OK, g.now, g.now));
	CU_ASSERT_EQUAL(rails->sick_cnt, 0);
	/* No answer in time is a no; a restarted peer is a new chance. */
	fail_rail(&g, TN_TRANSPORT_RDMA);
	(void)dp_rails_look(rails, TN_TRANSPORT_RDMA, 3, &until);
	o = owner(&g, TN_TRANSPORT_RDMA, 0);
	g.now = until;
	CU_ASSERT_PTR_NULL(pick(&g, &o, r));
	CU_ASSERT_EQUAL(dp_rails_look(rails, TN_TRANSPORT_RDMA, 3, &until), DP_RAIL_PROBING);
	CU_ASSERT_EQUAL(o.retry_ns, until);
	g.now = until;
	CU_ASSERT_PTR_NULL(pick(&g, &o, r));
	CU_ASSERT_EQUAL(dp_rails_look(rails, TN_TRANSPORT_RDMA, 3, &until), DP_RAIL_COOLING);
	CU_ASSERT_TRUE(dp_rails_renewed(rails, 3, g.now));
	CU_ASSERT_PTR_EQUAL(pick(&g, &o, r), &script_rdma.base);
	rig_close(&g);
	free(r);
}

/* Behind its first candidate: only what could serve now counts. And the budget. */
static void test_more_and_budget(void)
{
	static const char *const sets[] = { "retry/max_failovers=1" };
	struct rig g;
	rig_open(&g, sets, 1, script_both);
	struct dp_remote *r = script_remote(&g, 1);
	struct dp_owner o = owner(&g, 0, 0);
	CU_ASSERT_TRUE(dp_select_more(&g.w->selector, &o, r, g.now));
	script_tcp.reach = DP_REACH_NO;
	CU_ASSERT_FALSE(dp_select_more(&g.w->selector, &o, r, g.now));
	script_tcp.reach = DP_REACH_READY;
	fail_rail(&g, TN_TRANSPORT_TCP);
	CU_ASSERT_FALSE(dp_select_more(&g.w->selector, &o, r, g.now));
	o.candidate = 1; /* its place is the second one, which cools down: the first one serves */
	CU_ASSERT_PTR_EQUAL(pick(&g, &o, r), &script_rdma.base);
	CU_ASSERT_EQUAL(o.candidate, 0);
	/* It went from rdma to tcp, and may not go back while tcp is there. */
	o.failover_cnt = 1;
	o.last_transport = TN_TRANSPORT_TCP;
	CU_ASSERT_PTR_NULL(pick(&g, &o, r));
	CU_ASSERT_EQUAL(o.rejected[TN_TRANSPORT_RDMA], DP_REJECT_BUDGET);
	CU_ASSERT_EQUAL(o.rejected[TN_TRANSPORT_TCP], DP_REJECT_COOLING);
	CU_ASSERT(o.retry_ns > g.now);
	script_tcp.base.up = false;
	CU_ASSERT_PTR_EQUAL(pick(&g, &o, r), &script_rdma.base);
	script_tcp.base.up = true;
	rig_close(&g);
	free(r);
}

static void test_rules(void)
{
	static const char *const sets[] = { "policies=[{\"name\":\"t\",\"transports\":[\"rdma\",\"tcp\"]}]", "transports/shm/enable=false" };
	struct rig g;
	rig_open(&g, sets, 2, script_both);
	struct dp_policy_answer order = dp_policy_order(g.config, &(struct dp_policy_query){ .bytes = 1 });
	static const struct { uint8_t kind, hint; bool local; enum dp_reject why; } rows[] = {
		{ TN_TRANSPORT_TCP, 0, false, DP_REJECT_NONE },
		{ TN_TRANSPORT_TCP, TN_TRANSPORT_TCP, false, DP_REJECT_NONE },
		{ TN_TRANSPORT_TCP, TN_TRANSPORT_RDMA, false, DP_REJECT_HINT },
		{ TN_TRANSPORT_TCP, 0, true, DP_REJECT_NONE },
		{ TN_TRANSPORT_SHM, 0, false, DP_REJECT_DISABLED },
		{ TN_TRANSPORT_RDMA, 0, false, DP_REJECT_NOT_BUILT },
		{ TN_TRANSPORT_SHM, 0, true, DP_REJECT_DISABLED },
	};
	for (size_t i = 0; i < TN_ARRAY_LEN(rows); i++)
		CU_ASSERT_EQUAL(dp_reject_by_rule(g.config, rows[i].kind, rows[i].local, &order, rows[i].hint), rows[i].why);
	order.cnt = 0;
	CU_ASSERT_EQUAL(dp_reject_by_rule(g.config, TN_TRANSPORT_TCP, false, &order, 0), DP_REJECT_POLICY);
	CU_ASSERT_STRING_EQUAL(tn_reject_name(DP_REJECT_COOLING), "cooling");
	CU_ASSERT_STRING_EQUAL(tn_reject_name(DP_REJECT_CNT), "invalid");
	for (unsigned i = 1; i < DP_REJECT_CNT; i++)
		CU_ASSERT(tn_reject_meaning(i)[0] != '\0');
	rig_close(&g);
}

TN_TEST_MAIN("selector",
	{ "rails decide who is used", test_rails },
	{ "what is left behind a candidate, and the budget", test_more_and_budget },
	{ "what rules alone exclude", test_rules },
	{ "order, failover, fallback, exhausted", test_order_and_fallback },
	{ "hints and policies narrow it", test_hint_and_policy },
)
