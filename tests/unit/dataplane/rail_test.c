/* SPDX-License-Identifier: Apache-2.0
 * Rails: every move of the table, the error window, one failure per instant, cool-downs that double between bounds, flapping,
 * and random histories that keep to the rules. */
#include "dataplane/selection/rail.h"

#include "common/clock.h"
#include "common/rand.h"
#include "tests/unit/cu.h"

#define MS TN_NS_PER_MS
#define T0 (1000 * MS)

static const struct dp_rail_cfg cfg = {
	.errors_max = 3, .window_ns = 1000 * MS, .cool_min_ns = 100 * MS, .cool_max_ns = 2000 * MS, .settle_ns = 5000 * MS,
};

static void fail_times(struct dp_rail *r, unsigned n, uint64_t from_ns)
{
	for (unsigned i = 0; i < n; i++)
		dp_rail_failed(r, &cfg, from_ns + i, 0);
}

/* A rail in this state at T0 + 3, by its shortest way. */
static struct dp_rail rail_in(enum dp_rail_state state)
{
	struct dp_rail r = { 0 };
	if (state != DP_RAIL_UP)
		fail_times(&r, 3, T0);
	if (state == DP_RAIL_PROBING)
		dp_rail_probe(&r, T0 + 300 * MS);
	if (state == DP_RAIL_PROBATION)
		dp_rail_renewed(&r, T0 + 3);
	return r;
}

static void ev_fail(struct dp_rail *r) { fail_times(r, 3, T0 + MS); }
static void ev_work(struct dp_rail *r) { dp_rail_worked(r, T0 + MS); }
static void ev_undecided(struct dp_rail *r) { dp_rail_undecided(r); }
static void ev_yes(struct dp_rail *r) { dp_rail_probed(r, &cfg, true, T0 + MS, 0); }
static void ev_no(struct dp_rail *r) { dp_rail_probed(r, &cfg, false, T0 + MS, 0); }
static void ev_renewed(struct dp_rail *r) { dp_rail_renewed(r, T0 + MS); }
static void ev_probe(struct dp_rail *r)
{
	if (r->state == DP_RAIL_COOLING)
		dp_rail_probe(r, T0 + 300 * MS);
}

/* Each event in each state; together they make every move of the table and no other. */
static void test_every_move(void)
{
	enum { U = DP_RAIL_UP, C = DP_RAIL_COOLING, P = DP_RAIL_PROBING, T = DP_RAIL_PROBATION };
	static const struct { void (*event)(struct dp_rail *r); uint8_t to[DP_RAIL_STATE_CNT]; } rows[] = {
		{ ev_fail, { C, C, P, C } },      { ev_work, { U, C, P, U } }, { ev_undecided, { U, C, P, T } },
		{ ev_probe, { U, P, P, T } },     { ev_yes, { U, T, T, T } },  { ev_no, { U, C, C, T } },
		{ ev_renewed, { U, T, T, T } },
	};
	uint32_t seen = 0;
	for (size_t i = 0; i < TN_ARRAY_LEN(rows); i++)
		for (unsigned from = 0; from < DP_RAIL_STATE_CNT; from++) {
			struct dp_rail r = rail_in(from);
			CU_ASSERT_EQUAL_FATAL(r.state, from);
			rows[i].event(&r);
			CU_ASSERT_EQUAL(r.state, rows[i].to[from]);
			if (r.state != from)
				seen |= 1u << (from * DP_RAIL_STATE_CNT + r.state);
		}
	uint32_t table = 0;
	for (uint32_t i = 0; i < dp_rail_machine.move_cnt; i++)
		table |= 1u << (dp_rail_machine.moves[i].from * DP_RAIL_STATE_CNT + dp_rail_machine.moves[i].to);
	CU_ASSERT_EQUAL(seen, table);
	CU_ASSERT_STRING_EQUAL(dp_rail_state_name(DP_RAIL_PROBATION), "probation");
	CU_ASSERT_STRING_EQUAL(dp_rail_state_name(DP_RAIL_STATE_CNT), "invalid");
}

static void test_verdicts(void)
{
	struct dp_rail r = rail_in(DP_RAIL_UP);
	CU_ASSERT_EQUAL(dp_rail_ask(&r, T0), DP_RAIL_USE);
	r = rail_in(DP_RAIL_COOLING);
	CU_ASSERT_EQUAL(dp_rail_ask(&r, r.until_ns - 1), DP_RAIL_NO);
	CU_ASSERT_EQUAL(dp_rail_ask(&r, r.until_ns), DP_RAIL_PROBE);
	r = rail_in(DP_RAIL_PROBING);
	CU_ASSERT_EQUAL(dp_rail_ask(&r, r.until_ns - 1), DP_RAIL_NO);
	CU_ASSERT_EQUAL(dp_rail_ask(&r, r.until_ns), DP_RAIL_LATE);
	r = rail_in(DP_RAIL_PROBATION);
	CU_ASSERT_EQUAL(dp_rail_ask(&r, T0), DP_RAIL_TRY);
	dp_rail_try(&r);
	CU_ASSERT_EQUAL(dp_rail_ask(&r, T0), DP_RAIL_NO); /* one at a time */
	dp_rail_undecided(&r);
	CU_ASSERT_EQUAL(dp_rail_ask(&r, T0), DP_RAIL_TRY);
	dp_rail_try(&r);
	dp_rail_worked(&r, T0);
	CU_ASSERT_EQUAL(dp_rail_ask(&r, T0), DP_RAIL_USE);
}

static void test_error_window(void)
{
	struct dp_rail r = { 0 };
	for (unsigned i = 0; i < 1000; i++)
		dp_rail_failed(&r, &cfg, T0, 0); /* a lane broke under a thousand attempts */
	CU_ASSERT_EQUAL(r.error_cnt, 1);
	for (unsigned i = 1; i < 100; i++)
		dp_rail_failed(&r, &cfg, T0 + i * 500 * MS, 0); /* two in each window */
	CU_ASSERT_EQUAL(r.state, DP_RAIL_UP);
	dp_rail_failed(&r, &cfg, T0 + 99 * 500 * MS + 1, 0);
	CU_ASSERT_EQUAL(r.state, DP_RAIL_COOLING);
	struct dp_rail_cfg never = cfg;
	never.errors_max = 0;
	r = (struct dp_rail){ 0 };
	for (unsigned i = 0; i < 100; i++)
		dp_rail_failed(&r, &never, T0 + i, 0);
	CU_ASSERT_EQUAL(r.state, DP_RAIL_UP);
}

/* The n-th cool-down in a row is in [min, 2 min] * 2^(n-1), cut at max. */
static void test_doubling(void)
{
	struct tn_rand rand;
	tn_rand_seed(&rand, 7);
	for (unsigned round = 0; round < 200; round++) {
		struct dp_rail r = { 0 };
		uint64_t now = T0, least = UINT64_MAX, most = 0;
		fail_times(&r, 2, now);
		dp_rail_failed(&r, &cfg, now += 2, tn_rand_u64(&rand));
		for (unsigned n = 0; n < 12; n++) {
			uint64_t cool = r.until_ns - now, top = TN_MIN((2 * cfg.cool_min_ns) << n, cfg.cool_max_ns);
			CU_ASSERT(cool >= top / 2 && cool <= top);
			least = TN_MIN(least, cool);
			most = TN_MAX(most, cool);
			now = r.until_ns;
			dp_rail_probe(&r, now + MS);
			if (n % 2 == 0) { /* it gets there, but the attempt fails */
				dp_rail_probed(&r, &cfg, true, now, 0);
				dp_rail_failed(&r, &cfg, now, tn_rand_u64(&rand));
			} else {
				dp_rail_probed(&r, &cfg, false, now, tn_rand_u64(&rand));
			}
		}
		CU_ASSERT(least >= cfg.cool_min_ns && most <= cfg.cool_max_ns);
	}
	struct dp_rail_cfg odd = cfg; /* a maximum below the minimum */
	odd.cool_max_ns = 1;
	struct dp_rail r = { 0 };
	for (unsigned i = 0; i < 3; i++)
		dp_rail_failed(&r, &odd, T0 + i, UINT64_MAX);
	CU_ASSERT_EQUAL(r.until_ns - (T0 + 2), odd.cool_min_ns);
}

/* Up for a moment only: the next cool-down is longer. Up for long: a short one again. */
static void test_flap(void)
{
	struct dp_rail r = { 0 };
	uint64_t now = T0, before = 0;
	for (unsigned n = 0; n < 4; n++) {
		fail_times(&r, 3, now);
		CU_ASSERT_EQUAL_FATAL(r.state, DP_RAIL_COOLING);
		CU_ASSERT(r.until_ns - now > before);
		before = r.until_ns - now;
		now = r.until_ns;
		dp_rail_renewed(&r, now);
		dp_rail_worked(&r, now);
		now += cfg.settle_ns / 2;
	}
	now += cfg.settle_ns;
	fail_times(&r, 3, now);
	CU_ASSERT(r.until_ns - (now + 2) <= 2 * cfg.cool_min_ns);
	CU_ASSERT_EQUAL(r.cool_cnt, 1);
}

/* Whatever happens: never used while it cools, never two on trial, never out longer than max plus a probe. */
static void test_random(void)
{
	struct tn_rand rand;
	struct dp_rail r = { 0 };
	uint64_t now = T0;
	bool out = false;
	tn_rand_seed(&rand, 11);
	for (unsigned i = 0; i < 200000; i++) {
		now += tn_rand_range(&rand, 1, 50 * MS);
		enum dp_rail_verdict v = dp_rail_ask(&r, now);
		if (r.state == DP_RAIL_COOLING || r.state == DP_RAIL_PROBING)
			CU_ASSERT(v >= DP_RAIL_PROBE && r.until_ns <= now + cfg.cool_max_ns);
		if (v == DP_RAIL_TRY) {
			CU_ASSERT_FALSE(out);
			dp_rail_try(&r);
			out = true;
		} else if (v == DP_RAIL_PROBE) {
			dp_rail_probe(&r, now + 20 * MS);
		} else if (v == DP_RAIL_LATE) {
			dp_rail_probed(&r, &cfg, false, now, tn_rand_u64(&rand));
		}
		switch (tn_rand_range(&rand, 0, 7)) {
		case 0: case 1: dp_rail_failed(&r, &cfg, now, tn_rand_u64(&rand)); break;
		case 2: dp_rail_worked(&r, now); break;
		case 3: dp_rail_undecided(&r); break;
		case 4: dp_rail_probed(&r, &cfg, tn_rand_range(&rand, 0, 1), now, tn_rand_u64(&rand)); break;
		default: break;
		}
		out = r.trial;
		CU_ASSERT(!r.trial || r.state == DP_RAIL_PROBATION);
	}
}

TN_TEST_MAIN("rail",
	{ "every event in every state makes the moves of the table", test_every_move },
	{ "who may pass", test_verdicts },
	{ "failures count within a window, once per instant", test_error_window },
	{ "cool-downs double between their bounds", test_doubling },
	{ "a rail that flaps stays out longer", test_flap },
	{ "random histories keep the rules", test_random },
)
