/* SPDX-License-Identifier: Apache-2.0
 * The replay law and the classifier as tables: op x flag x what is known about the bytes x status. */
#include "dataplane/completion/classify.h"

#include "common/rand.h"
#include "tests/unit/cu.h"

static struct dp_decision ask(uint8_t op, bool amo, tn_status status, bool nothing_left, bool fenced, bool more, uint32_t attempts)
{
	struct dp_result res = { .status = status, .phase = TN_PHASE_POLL, .reason = TN_REASON_PEER_CLOSED,
				 .nothing_left = nothing_left, .fenced = fenced };
	struct dp_failure f = { .result = &res, .op = op, .at_most_once = amo, .attempts = attempts, .attempts_max = 4,
				.more_candidates = more, .failovers_max = 1 };
	return dp_classify(&f);
}

static void test_replay_law(void)
{
	static const struct { uint8_t op; bool amo, nothing_left, fenced, again; } rows[] = {
		{ TN_OP_READ, false, false, false, true },  { TN_OP_READ, true, false, false, true },
		{ TN_OP_WRITE, false, false, false, false }, { TN_OP_WRITE, false, true, false, true },
		{ TN_OP_WRITE, false, false, true, true },  { TN_OP_WRITE, false, true, true, true },
		{ TN_OP_WRITE, true, false, false, false }, { TN_OP_WRITE, true, true, false, true },
		{ TN_OP_WRITE, true, false, true, false },  { TN_OP_WRITE, true, true, true, true },
	};
	for (size_t i = 0; i < TN_ARRAY_LEN(rows); i++) {
		struct dp_decision d = ask(rows[i].op, rows[i].amo, TN_PATH_DOWN, rows[i].nothing_left, rows[i].fenced, false, 1);
		CU_ASSERT_EQUAL(d.action, rows[i].again ? DP_ACTION_RETRY : DP_ACTION_END);
		CU_ASSERT_EQUAL(d.status, rows[i].again ? TN_PATH_DOWN : TN_AMBIGUOUS);
		CU_ASSERT_EQUAL(d.reason, TN_REASON_PEER_CLOSED);
		d = ask(rows[i].op, rows[i].amo, TN_PATH_DOWN, rows[i].nothing_left, rows[i].fenced, true, 1);
		CU_ASSERT_EQUAL(d.action, rows[i].again ? DP_ACTION_FAILOVER : DP_ACTION_END);
	}
}

/* Bytes of an earlier attempt that may have left stay a reason, also when the last attempt provably sent none. */
static void test_earlier_attempt(void)
{
	struct dp_result res = { .status = TN_PATH_DOWN, .nothing_left = true };
	struct dp_failure f = { .result = &res, .op = TN_OP_WRITE, .at_most_once = true, .may_have_left = true, .attempts = 1, .attempts_max = 4 };
	CU_ASSERT_EQUAL(dp_classify(&f).status, TN_AMBIGUOUS);
}

static void test_classes(void)
{
	static const struct { tn_status status; bool more; uint32_t attempts; enum dp_action action; } rows[] = {
		{ TN_PATH_DOWN, false, 1, DP_ACTION_RETRY }, { TN_PATH_DOWN, true, 1, DP_ACTION_FAILOVER },
		{ TN_PATH_TIMEOUT, false, 3, DP_ACTION_RETRY }, { TN_PATH_DOWN, false, 4, DP_ACTION_END },
		{ TN_PATH_DOWN, true, 4, DP_ACTION_END },
		{ TN_PATH_PROTOCOL, true, 1, DP_ACTION_FAILOVER }, { TN_PATH_PROTOCOL, false, 1, DP_ACTION_END },
		{ TN_PEER_DOWN, false, 1, DP_ACTION_RETRY },
		{ TN_BUSY, true, 1, DP_ACTION_RETRY }, { TN_BUSY, true, 2, DP_ACTION_FAILOVER }, { TN_BUSY, false, 2, DP_ACTION_RETRY },
		{ TN_INTERNAL, false, 1, DP_ACTION_RETRY },
		{ TN_STALE, false, 1, DP_ACTION_REFRESH_REMOTE }, { TN_PEER_STALE, false, 1, DP_ACTION_REFRESH_PEER },
		{ TN_PEER_DENIED, true, 1, DP_ACTION_REFRESH_PEER },
		{ TN_RANGE, true, 1, DP_ACTION_END }, { TN_PERMISSION, true, 1, DP_ACTION_END }, { TN_INVALID, true, 1, DP_ACTION_END },
		{ TN_TIMEOUT, true, 1, DP_ACTION_END }, { TN_CANCELED, true, 1, DP_ACTION_END }, { TN_UNSUPPORTED, true, 1, DP_ACTION_END },
		{ TN_AMBIGUOUS, true, 1, DP_ACTION_END }, { TN_PEER_UNKNOWN, true, 1, DP_ACTION_END },
	};
	for (size_t i = 0; i < TN_ARRAY_LEN(rows); i++) {
		struct dp_decision d = ask(TN_OP_READ, false, rows[i].status, false, false, rows[i].more, rows[i].attempts);
		CU_ASSERT_EQUAL(d.action, rows[i].action);
		if (d.action == DP_ACTION_END)
			CU_ASSERT_EQUAL(d.status, rows[i].status);
	}
}

/* Who changed its transport as often as it may stays with the one it has. */
static void test_failover_budget(void)
{
	static const struct { tn_status status; uint32_t done, max; enum dp_action action; } rows[] = {
		{ TN_PATH_DOWN, 0, 0, DP_ACTION_RETRY },     { TN_PATH_DOWN, 0, 1, DP_ACTION_FAILOVER },
		{ TN_PATH_DOWN, 1, 1, DP_ACTION_RETRY },     { TN_PATH_DOWN, 2, 3, DP_ACTION_FAILOVER },
		{ TN_PATH_PROTOCOL, 3, 3, DP_ACTION_END },   { TN_BUSY, 2, 3, DP_ACTION_FAILOVER },
		{ TN_BUSY, 3, 3, DP_ACTION_RETRY },          { TN_RANGE, 0, 3, DP_ACTION_END },
	};
	for (size_t i = 0; i < TN_ARRAY_LEN(rows); i++) {
		struct dp_result res = { .status = rows[i].status, .nothing_left = true };
		struct dp_failure f = { .result = &res, .op = TN_OP_WRITE, .attempts = 2, .attempts_max = 8, .more_candidates = true,
					.failovers = rows[i].done, .failovers_max = rows[i].max };
		CU_ASSERT_EQUAL(dp_classify(&f).action, rows[i].action);
	}
}

/* While rails are in the way no attempt is made, so the bound on attempts is not what ends it; the replay law still is. */
static void test_cooling_waits(void)
{
	struct dp_result res = { .status = TN_PEER_DOWN, .phase = TN_PHASE_SELECTION, .nothing_left = true };
	struct dp_failure f = { .result = &res, .op = TN_OP_WRITE, .attempts = 8, .attempts_max = 8, .cooling = true };
	CU_ASSERT_EQUAL(dp_classify(&f).action, DP_ACTION_WAIT);
	f.at_most_once = f.may_have_left = true;
	CU_ASSERT_EQUAL(dp_classify(&f).status, TN_AMBIGUOUS);
	CU_ASSERT(dp_failure_is_of_path(TN_PATH_TIMEOUT) && dp_failure_is_of_path(TN_PEER_DOWN));
	CU_ASSERT(!dp_failure_is_of_path(TN_OK) && !dp_failure_is_of_path(TN_BUSY) && !dp_failure_is_of_path(TN_STALE) &&
		  !dp_failure_is_of_path(TN_PEER_DENIED) && !dp_failure_is_of_path(TN_CANCELED));
}

static void test_second_stale_is_terminal(void)
{
	struct dp_result res = { .status = TN_STALE, .reason = TN_REASON_STALE_GENERATION, .nothing_left = true };
	struct dp_failure f = { .result = &res, .op = TN_OP_WRITE, .stale_cnt = 1, .attempts = 2, .attempts_max = 8 };
	struct dp_decision d = dp_classify(&f);
	CU_ASSERT_EQUAL(d.action, DP_ACTION_END);
	CU_ASSERT_EQUAL(d.status, TN_STALE);
	CU_ASSERT_EQUAL(d.reason, TN_REASON_STALE_GENERATION);
}

static void test_backoff(void)
{
	struct tn_rand r;
	tn_rand_seed(&r, 1);
	for (int i = 0; i < 1000; i++) {
		uint64_t d = dp_backoff_ns(1, 5000, 100000, tn_rand_u64(&r));
		CU_ASSERT(d >= 2500 && d <= 5000);
		d = dp_backoff_ns(3, 5000, 100000, tn_rand_u64(&r));
		CU_ASSERT(d >= 10000 && d <= 20000);
		d = dp_backoff_ns(60, 5000, 100000, tn_rand_u64(&r));
		CU_ASSERT(d >= 50000 && d <= 100000);
		CU_ASSERT_EQUAL(dp_backoff_ns(5, 0, 100000, tn_rand_u64(&r)), 0);
		CU_ASSERT_EQUAL(dp_backoff_ns(5, 5000, 0, tn_rand_u64(&r)), 0);
	}
}

TN_TEST_MAIN("classify",
	{ "the replay law", test_replay_law },
	{ "an earlier attempt counts", test_earlier_attempt },
	{ "what each status leads to", test_classes },
	{ "the failover budget", test_failover_budget },
	{ "a cooling rail is waited for", test_cooling_waits },
	{ "the second stale answer is final", test_second_stale_is_terminal },
	{ "back-off doubles, is bounded and jitters", test_backoff },
)
