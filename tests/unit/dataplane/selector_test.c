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
	dp_select_candidates(&g->w->selector, &o, &sqe, false);
	return o;
}

static void test_order_and_fallback(void)
{
	struct rig g;
	rig_open(&g, NULL, 0, script_both);
	struct dp_remote *r = script_remote(&g, 1);
	struct dp_owner o = owner(&g, 0, 0);
	CU_ASSERT_EQUAL(o.candidate_cnt, 2); /* hp_tcp is not registered */
	CU_ASSERT_PTR_EQUAL(dp_select(&g.w->selector, &o, r), &script_rdma.base);
	o.candidate++; /* failing over */
	CU_ASSERT_PTR_EQUAL(dp_select(&g.w->selector, &o, r), &script_tcp.base);
	script_rdma.reach = DP_REACH_NO;
	o = owner(&g, 0, 0);
	CU_ASSERT_PTR_EQUAL(dp_select(&g.w->selector, &o, r), &script_tcp.base);
	CU_ASSERT_EQUAL(o.candidate, 1);
	script_tcp.base.up = false;
	o = owner(&g, 0, 0);
	CU_ASSERT_PTR_NULL(dp_select(&g.w->selector, &o, r));
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
	CU_ASSERT_PTR_NULL(dp_select(&g.w->selector, &o, r));
	o = owner(&g, 0, 2); /* shm for a remote target */
	CU_ASSERT_EQUAL(o.candidate_cnt, 0);
	EVENT_IS(CANDIDATE_EMPTY, 1);
	o = owner(&g, TN_TRANSPORT_TCP, 0);
	script_tcp.reach = DP_REACH_NO;
	CU_ASSERT_PTR_NULL(dp_select(&g.w->selector, &o, r));
	EVENT_IS(HINT_UNAVAILABLE, 1);
	rig_close(&g);
	free(r);
}

TN_TEST_MAIN("selector",
	{ "order, failover, fallback, exhausted", test_order_and_fallback },
	{ "hints and policies narrow it", test_hint_and_policy },
)
