/* SPDX-License-Identifier: Apache-2.0
 * The monotonic clock moves forward, deadlines saturate, and waits are never rounded down. */
#include "common/clock.h"

#include "tests/unit/cu.h"

static void clocks_move(void)
{
	uint64_t a = tn_now_ns(), b = tn_now_ns();
	CU_ASSERT(b >= a);
	struct timespec ts = { 0, 2000000 };
	nanosleep(&ts, NULL);
	CU_ASSERT(tn_now_ns() - a >= 2 * TN_NS_PER_MS);
	CU_ASSERT(tn_real_ns() > UINT64_C(1600000000) * TN_NS_PER_S);
	CU_ASSERT(tn_cpu_ns() > 0);
}

static void deadlines_saturate(void)
{
	CU_ASSERT_EQUAL(tn_deadline_after(5, 10), 15);
	CU_ASSERT_EQUAL(tn_deadline_after(5, UINT64_MAX), UINT64_MAX);
	CU_ASSERT_EQUAL(tn_remaining_ns(15, 5), 10);
	CU_ASSERT_EQUAL(tn_remaining_ns(5, 15), 0);
	CU_ASSERT_EQUAL(tn_ns_to_poll_ms(0), 0);
	CU_ASSERT_EQUAL(tn_ns_to_poll_ms(1), 1);
	CU_ASSERT_EQUAL(tn_ns_to_poll_ms(2 * TN_NS_PER_MS), 2);
	CU_ASSERT_EQUAL(tn_ns_to_poll_ms(UINT64_MAX), INT32_MAX);
}

TN_TEST_MAIN("common/clock", { "clocks move forward", clocks_move }, { "deadlines saturate", deadlines_saturate })
