/* SPDX-License-Identifier: Apache-2.0
 * The map against a plain array as model, with keys that crowd, with key 0, at the capacity, and while growing. */
#include "common/map_u64.h"

#include "common/rand.h"
#include "tests/unit/cu.h"

static void basics(void)
{
	struct tn_map_u64 m;
	uint64_t v = 77;
	CU_ASSERT_EQUAL_FATAL(tn_map_u64_init(&m, 3, 1), TN_OK);
	CU_ASSERT_EQUAL(tn_map_u64_insert(&m, 0, 10), TN_OK);
	CU_ASSERT_EQUAL(tn_map_u64_insert(&m, UINT64_MAX, 11), TN_OK);
	CU_ASSERT_EQUAL(tn_map_u64_insert(&m, 5, 12), TN_OK);
	CU_ASSERT_EQUAL(tn_map_u64_insert(&m, 5, 13), TN_EXISTS);
	CU_ASSERT_EQUAL(tn_map_u64_insert(&m, 0, 13), TN_EXISTS);
	CU_ASSERT_EQUAL(tn_map_u64_insert(&m, 6, 13), TN_LIMIT);
	CU_ASSERT(tn_map_u64_find(&m, 0, &v) && v == 10);
	CU_ASSERT(tn_map_u64_find(&m, UINT64_MAX, &v) && v == 11);
	CU_ASSERT(tn_map_u64_find(&m, 5, NULL));
	CU_ASSERT_TRUE(tn_map_u64_update(&m, 5, 20));
	CU_ASSERT_TRUE(tn_map_u64_update(&m, 0, 21));
	CU_ASSERT_FALSE(tn_map_u64_update(&m, 6, 22));
	CU_ASSERT(tn_map_u64_remove(&m, 5, &v) && v == 20);
	CU_ASSERT(tn_map_u64_remove(&m, 0, &v) && v == 21);
	v = 77;
	CU_ASSERT_FALSE(tn_map_u64_remove(&m, 0, &v));
	CU_ASSERT_FALSE(tn_map_u64_find(&m, 5, &v));
	CU_ASSERT_FALSE(tn_map_u64_update(&m, 0, 1));
	CU_ASSERT_EQUAL(v, 77);
	CU_ASSERT_EQUAL(m.cnt, 1);
	CU_ASSERT_EQUAL(tn_map_u64_insert_ptr(&m, 9, &m), TN_OK);
	CU_ASSERT_PTR_EQUAL(tn_map_u64_find_ptr(&m, 9), &m);
	CU_ASSERT_PTR_NULL(tn_map_u64_find_ptr(&m, 10));
	tn_map_u64_fini(&m);
	tn_map_u64_fini(&m);
	CU_ASSERT_EQUAL(tn_map_u64_init(&m, 0, 1), TN_INVALID);
	CU_ASSERT_EQUAL(tn_map_u64_init(&m, UINT32_MAX, 1), TN_INVALID);
}

/* A full small map whose keys all come from a small range, so that runs are long and removals hit their middles. */
static void against_a_model(void)
{
	enum { KEYS = 64, CAP = 32 };
	for (uint64_t seed = 0; seed < 20; seed++) {
		struct tn_map_u64 m;
		struct tn_rand r;
		uint64_t model[KEYS], cnt = 0;
		bool there[KEYS] = { false };
		tn_rand_seed(&r, seed);
		CU_ASSERT_EQUAL_FATAL(tn_map_u64_init(&m, CAP, seed), TN_OK);
		for (int step = 0; step < 4000; step++) {
			uint64_t key = tn_rand_below(&r, KEYS), v = 0;
			if (tn_rand_below(&r, 3) > 0) {
				tn_status want = there[key] ? TN_EXISTS : cnt == CAP ? TN_LIMIT : TN_OK;
				CU_ASSERT_EQUAL_FATAL(tn_map_u64_insert(&m, key, (uint64_t)step), want);
				if (want == TN_OK) {
					there[key] = true;
					model[key] = (uint64_t)step;
					cnt++;
				}
			} else {
				CU_ASSERT_EQUAL_FATAL(tn_map_u64_remove(&m, key, &v), there[key]);
				CU_ASSERT_FATAL(!there[key] || v == model[key]);
				cnt -= there[key];
				there[key] = false;
			}
			for (uint64_t k = 0; k < KEYS; k++) {
				v = 0;
				if (tn_map_u64_find(&m, k, &v) != there[k] || (there[k] && v != model[k]))
					CU_FAIL_FATAL("map and model differ");
			}
		}
		uint64_t cursor = 0, k, v, seen = 0;
		while (tn_map_u64_next(&m, &cursor, &k, &v)) {
			CU_ASSERT_FATAL(k < KEYS && there[k] && model[k] == v);
			seen++;
		}
		CU_ASSERT_EQUAL(seen, cnt);
		CU_ASSERT_EQUAL(m.cnt, cnt);
		tn_map_u64_fini(&m);
	}
}

static void growing(void)
{
	struct tn_map_u64 m;
	uint64_t v;
	CU_ASSERT_EQUAL_FATAL(tn_map_u64_init(&m, 1, 42), TN_OK);
	for (uint64_t k = 0; k < 5000; k++) {
		if (m.cnt == m.capacity)
			CU_ASSERT_EQUAL_FATAL(tn_map_u64_reserve(&m, m.capacity * 2), TN_OK);
		CU_ASSERT_EQUAL_FATAL(tn_map_u64_insert(&m, k << 40, k), TN_OK);
	}
	for (uint64_t k = 0; k < 5000; k++)
		CU_ASSERT_FATAL(tn_map_u64_find(&m, k << 40, &v) && v == k);
	CU_ASSERT_EQUAL(tn_map_u64_reserve(&m, 10), TN_OK);
	CU_ASSERT_EQUAL(tn_map_u64_reserve(&m, UINT32_MAX), TN_INVALID);
	CU_ASSERT_EQUAL(m.cnt, 5000);
	tn_map_u64_fini(&m);
}

TN_TEST_MAIN("common/map_u64", { "basics", basics }, { "against a model", against_a_model }, { "growing", growing })
