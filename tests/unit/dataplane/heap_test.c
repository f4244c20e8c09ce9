/* SPDX-License-Identifier: Apache-2.0
 * The heap of times against a plain array: random inserts, moves and removals, always the earliest first. */
#include "dataplane/request/heap.h"

#include <string.h>

#include "common/rand.h"
#include "tests/unit/cu.h"

#define N 500u

struct item { uint64_t at; uint32_t slot; bool in; };

static uint64_t earliest(const struct item *items)
{
	uint64_t best = UINT64_MAX;
	for (uint32_t i = 0; i < N; i++)
		if (items[i].in && items[i].at < best)
			best = items[i].at;
	return best;
}

static void test_random(void)
{
	static struct item items[N];
	struct dp_heap h;
	struct tn_rand r;
	tn_rand_seed(&r, 20260801);
	memset(items, 0, sizeof items);
	for (uint32_t i = 0; i < N; i++)
		items[i].slot = DP_HEAP_NONE;
	CU_ASSERT_EQUAL_FATAL(dp_heap_init(&h, N, offsetof(struct item, slot)), TN_OK);
	CU_ASSERT_EQUAL(dp_heap_next_ns(&h), UINT64_MAX);
	CU_ASSERT_PTR_NULL(dp_heap_due(&h, UINT64_MAX));
	for (int step = 0; step < 20000; step++) {
		struct item *it = &items[tn_rand_below(&r, N)];
		if (tn_rand_below(&r, 3) == 0) {
			dp_heap_remove(&h, it);
			it->in = false;
			CU_ASSERT_EQUAL_FATAL(it->slot, DP_HEAP_NONE);
		} else {
			it->at = tn_rand_below(&r, 1000);
			it->in = true;
			dp_heap_set(&h, it, it->at);
		}
		CU_ASSERT_EQUAL_FATAL(dp_heap_next_ns(&h), earliest(items));
	}
	uint64_t last = 0;
	struct item *it;
	while ((it = dp_heap_due(&h, UINT64_MAX))) {
		CU_ASSERT_FATAL(it->at >= last);
		last = it->at;
		dp_heap_remove(&h, it);
	}
	CU_ASSERT_EQUAL(h.cnt, 0);
	dp_heap_destroy(&h);
}

static void test_due(void)
{
	struct item a = { .slot = DP_HEAP_NONE };
	struct dp_heap h;
	CU_ASSERT_EQUAL_FATAL(dp_heap_init(&h, 1, offsetof(struct item, slot)), TN_OK);
	dp_heap_set(&h, &a, 100);
	CU_ASSERT_PTR_NULL(dp_heap_due(&h, 99));
	CU_ASSERT_PTR_EQUAL(dp_heap_due(&h, 100), &a);
	dp_heap_remove(&h, &a);
	dp_heap_remove(&h, &a);
	CU_ASSERT_EQUAL(h.cnt, 0);
	dp_heap_destroy(&h);
}

TN_TEST_MAIN("heap", { "random work against a plain array", test_random }, { "due exactly when the time has come", test_due }, )
