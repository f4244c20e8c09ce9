/* SPDX-License-Identifier: Apache-2.0
 * Deficit round robin: shares by bytes, whatever the sizes; large heads get through; an idle flow saves nothing up. */
#include "dataplane/admission/drr.h"
#include "tests/unit/cu.h"

#define QUANTUM 1000u

static void test_one_flow(void)
{
	struct dp_drr d;
	struct dp_drr_flow f;
	dp_drr_init(&d, QUANTUM);
	dp_drr_flow_init(&f);
	CU_ASSERT_PTR_NULL(dp_drr_pick(&d));
	f.cost = 123456;
	dp_drr_run(&d, &f);
	dp_drr_run(&d, &f);
	for (int i = 0; i < 10; i++) {
		CU_ASSERT_PTR_EQUAL(dp_drr_pick(&d), &f);
		dp_drr_charge(&f);
		CU_ASSERT(f.deficit < QUANTUM);
	}
	dp_drr_stop(&f, false);
	CU_ASSERT_PTR_NULL(dp_drr_pick(&d));
	CU_ASSERT_EQUAL(f.deficit, 0);
}

/* Three flows with heads of 100, 1000 and 7777 bytes must move the same number of bytes. */
static void test_equal_bytes(void)
{
	static const uint64_t cost[] = { 100, 1000, 7777 };
	struct dp_drr d;
	struct dp_drr_flow f[3];
	uint64_t sent[3] = { 0 };
	dp_drr_init(&d, QUANTUM);
	for (int i = 0; i < 3; i++) {
		dp_drr_flow_init(&f[i]);
		f[i].cost = cost[i];
		dp_drr_run(&d, &f[i]);
	}
	for (int i = 0; i < 100000; i++) {
		struct dp_drr_flow *p = dp_drr_pick(&d);
		sent[p - f] += p->cost;
		dp_drr_charge(p);
		/* At any moment no flow is more than a head and a few quanta ahead of another. */
		for (int a = 0; a < 3; a++)
			for (int b = 0; b < 3; b++)
				CU_ASSERT_FATAL(sent[a] <= sent[b] + 2 * 7777 + 4 * QUANTUM);
	}
}

static void test_stopped_flow(void)
{
	struct dp_drr d;
	struct dp_drr_flow a, b;
	dp_drr_init(&d, QUANTUM);
	dp_drr_flow_init(&a);
	dp_drr_flow_init(&b);
	a.cost = b.cost = 600;
	dp_drr_run(&d, &a);
	dp_drr_run(&d, &b);
	CU_ASSERT_PTR_NOT_NULL(dp_drr_pick(&d));
	uint64_t saved = b.deficit;
	dp_drr_stop(&b, true); /* held: keeps what it had, gets no more */
	for (int i = 0; i < 50; i++)
		dp_drr_charge(dp_drr_pick(&d));
	CU_ASSERT_EQUAL(b.deficit, saved);
	dp_drr_stop(&b, false); /* empty: loses it */
	CU_ASSERT_EQUAL(b.deficit, 0);
	dp_drr_run(&d, &b);
	bool seen = false;
	for (int i = 0; i < 5; i++) {
		struct dp_drr_flow *p = dp_drr_pick(&d);
		seen |= p == &b;
		dp_drr_charge(p);
	}
	CU_ASSERT_TRUE(seen);
}

static void test_zero_quantum(void)
{
	struct dp_drr d;
	struct dp_drr_flow f;
	dp_drr_init(&d, 0);
	dp_drr_flow_init(&f);
	f.cost = UINT64_C(1) << 40;
	dp_drr_run(&d, &f);
	CU_ASSERT_PTR_EQUAL(dp_drr_pick(&d), &f);
}

TN_TEST_MAIN("drr",
	{ "a single flow always goes", test_one_flow },
	{ "bytes are shared equally, sizes do not matter", test_equal_bytes },
	{ "held flows keep their deficit, empty ones lose it", test_stopped_flow },
	{ "a quantum of 0 still makes progress", test_zero_quantum },
)
