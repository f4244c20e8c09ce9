/* SPDX-License-Identifier: Apache-2.0
 * The generator is the published one, the same seed gives the same run, bounds hold, and identities differ. */
#include "common/rand.h"

#include "common/hook.h"
#include "tests/unit/cu.h"

/* First outputs of xoshiro256** from state {1, 2, 3, 4}, computed by hand from the published recurrence. */
static void published_sequence(void)
{
	struct tn_rand r = { { 1, 2, 3, 4 } };
	CU_ASSERT_EQUAL(tn_rand_u64(&r), 11520);
	CU_ASSERT_EQUAL(tn_rand_u64(&r), 0);
	CU_ASSERT_EQUAL(tn_rand_u64(&r), 1509978240);
	CU_ASSERT_EQUAL(tn_rand_u64(&r), UINT64_C(1215971899390074240));
}

static void same_seed_same_run(void)
{
	struct tn_rand a, b, c;
	tn_rand_seed(&a, 42);
	tn_rand_seed(&b, 42);
	tn_rand_seed(&c, 43);
	int differ = 0;
	for (int i = 0; i < 1000; i++) {
		uint64_t x = tn_rand_u64(&a);
		CU_ASSERT_EQUAL(x, tn_rand_u64(&b));
		differ += x != tn_rand_u64(&c);
	}
	CU_ASSERT(differ > 990);
}

static void bounds(void)
{
	struct tn_rand r;
	tn_rand_seed(&r, 0);
	unsigned seen[6] = { 0 };
	for (int i = 0; i < 60000; i++) {
		uint64_t v = tn_rand_below(&r, 6);
		CU_ASSERT_FATAL(v < 6);
		seen[v]++;
	}
	for (int i = 0; i < 6; i++)
		CU_ASSERT(seen[i] > 9000 && seen[i] < 11000);
	for (int i = 0; i < 1000; i++) {
		uint64_t v = tn_rand_range(&r, 10, 12);
		CU_ASSERT(v >= 10 && v <= 12);
		CU_ASSERT_EQUAL(tn_rand_below(&r, 1), 0);
	}
	CU_ASSERT_EQUAL(tn_rand_range(&r, 9, 9), 9);
	(void)tn_rand_range(&r, 0, UINT64_MAX);
	unsigned hits = 0;
	for (int i = 0; i < 100000; i++)
		hits += tn_rand_chance_ppm(&r, 100000);
	CU_ASSERT(hits > 9000 && hits < 11000);
	CU_ASSERT_FALSE(tn_rand_chance_ppm(&r, 0));
	CU_ASSERT_TRUE(tn_rand_chance_ppm(&r, 1000000));
}

static void identities(void)
{
	struct tn_id128 a, b;
	CU_ASSERT_EQUAL_FATAL(tn_rand_id128(&a), TN_OK);
	CU_ASSERT_EQUAL_FATAL(tn_rand_id128(&b), TN_OK);
	CU_ASSERT_FALSE(tn_id128_is_zero(&a));
	CU_ASSERT_FALSE(tn_id128_eq(&a, &b));
#if TENT_HOOKS
	CU_ASSERT_TRUE(tn_hook_set("rand_os=fail"));
	struct tn_id128 kept = a;
	CU_ASSERT_EQUAL(tn_rand_id128(&a), TN_SYSTEM);
	CU_ASSERT_TRUE(tn_id128_eq(&a, &kept));
	CU_ASSERT_TRUE(tn_hook_set(NULL));
#endif
}

TN_TEST_MAIN("common/rand", { "the published sequence", published_sequence },
	{ "same seed, same run", same_seed_same_run },
	{ "bounds", bounds }, { "identities", identities })
