/* SPDX-License-Identifier: Apache-2.0
 * Handles go stale with a put, made-up handles find nothing, and the pool gives exactly its capacity. */
#include "common/pool.h"

#include <string.h>

#include "common/hook.h"
#include "common/rand.h"
#include "tests/unit/cu.h"

static void gives_its_capacity(void)
{
	struct tn_pool p;
	tn_handle h[3], more;
	uint8_t *o[3];
	CU_ASSERT_EQUAL_FATAL(tn_pool_init(&p, 3, 100), TN_OK);
	for (int i = 0; i < 3; i++) {
		o[i] = tn_pool_get(&p, &h[i]);
		CU_ASSERT_PTR_NOT_NULL_FATAL(o[i]);
		CU_ASSERT_EQUAL((uintptr_t)o[i] % TN_CACHE_LINE, 0);
		CU_ASSERT_EQUAL(o[i][99], 0);
		CU_ASSERT_NOT_EQUAL(tn_handle_generation(h[i]), 0);
		CU_ASSERT_EQUAL(tn_pool_handle_of(&p, o[i]), h[i]);
		CU_ASSERT_PTR_EQUAL(tn_pool_lookup(&p, h[i]), o[i]);
		memset(o[i], 0xff, 100);
	}
	CU_ASSERT_PTR_NULL(tn_pool_get(&p, &more));
	CU_ASSERT_EQUAL(p.live_cnt, 3);
	tn_pool_put(&p, h[1]);
	CU_ASSERT_PTR_EQUAL(tn_pool_get(&p, &more), o[1]);
	CU_ASSERT_NOT_EQUAL(more, h[1]);
	tn_pool_fini(&p);
	tn_pool_fini(&p);
}

static void stale_and_made_up(void)
{
	struct tn_pool p;
	tn_handle h = 0;
	CU_ASSERT_EQUAL_FATAL(tn_pool_init(&p, 4, 8), TN_OK);
	CU_ASSERT_PTR_NULL(tn_pool_lookup(&p, 0));
	for (uint32_t g = 0; g < 8; g++)   /* nothing is live: no generation opens a door */
		for (uint32_t i = 0; i < 6; i++)
			CU_ASSERT_PTR_NULL(tn_pool_lookup(&p, tn_handle_make(i, g)));
	CU_ASSERT_PTR_NOT_NULL(tn_pool_get(&p, &h));
	tn_pool_put(&p, h);
	CU_ASSERT_PTR_NULL(tn_pool_lookup(&p, h));
	CU_ASSERT_PTR_NULL(tn_pool_lookup(&p, tn_handle_make(tn_handle_index(h), tn_handle_generation(h) + 1)));
	CU_ASSERT_PTR_NULL(tn_pool_lookup(&p, tn_handle_make(tn_handle_index(h), tn_handle_generation(h) + 2)));
	/* A generation that wraps around still is never 0. */
	p.slots[p.free_head].generation = UINT32_MAX - 1;
	CU_ASSERT_PTR_NOT_NULL(tn_pool_get(&p, &h));
	CU_ASSERT_EQUAL(tn_handle_generation(h), UINT32_MAX);
	tn_pool_put(&p, h);
	CU_ASSERT_PTR_NOT_NULL(tn_pool_get(&p, &h));
	CU_ASSERT_EQUAL(tn_handle_generation(h), 1);
	tn_pool_fini(&p);
}

static void random_use(void)
{
	enum { CAP = 50 };
	struct tn_pool p;
	struct tn_rand r;
	tn_handle live[CAP];
	uint32_t cnt = 0;
	tn_rand_seed(&r, 3);
	CU_ASSERT_EQUAL_FATAL(tn_pool_init(&p, CAP, sizeof(uint64_t)), TN_OK);
	for (int step = 0; step < 20000; step++) {
		tn_handle h = 0;
		if (tn_rand_below(&r, 2) == 0) {
			uint64_t *o = tn_pool_get(&p, &h);
			CU_ASSERT_FATAL((o == NULL) == (cnt == CAP));
			if (o != NULL)
				*o = live[cnt++] = h;
		} else if (cnt > 0) {
			uint32_t i = (uint32_t)tn_rand_below(&r, cnt);
			uint64_t *o = tn_pool_lookup(&p, live[i]);
			CU_ASSERT_FATAL(o != NULL && *o == live[i]);
			tn_pool_put(&p, live[i]);
			CU_ASSERT_PTR_NULL(tn_pool_lookup(&p, live[i]));
			live[i] = live[--cnt];
		}
		CU_ASSERT_EQUAL_FATAL(p.live_cnt, cnt);
	}
	uint32_t cursor = 0, seen = 0;
	for (uint64_t *o; (o = tn_pool_next(&p, &cursor)) != NULL; seen++)
		tn_pool_put(&p, *o);
	CU_ASSERT_EQUAL(seen, cnt);
	CU_ASSERT_EQUAL(p.live_cnt, 0);
	tn_pool_fini(&p);
}

static void refused_sizes(void)
{
	struct tn_pool p;
	CU_ASSERT_EQUAL(tn_pool_init(&p, 0, 8), TN_INVALID);
	CU_ASSERT_EQUAL(tn_pool_init(&p, UINT32_MAX, 8), TN_INVALID);
	CU_ASSERT_EQUAL(tn_pool_init(&p, 8, 0), TN_INVALID);
	CU_ASSERT_EQUAL(tn_pool_init(&p, 8, SIZE_MAX), TN_INVALID);
	CU_ASSERT_EQUAL(tn_pool_init(&p, 1u << 30, SIZE_MAX / 4), TN_INVALID);
#if TENT_HOOKS
	CU_ASSERT_TRUE(tn_hook_set("pool_init=fail"));
	CU_ASSERT_EQUAL(tn_pool_init(&p, 8, 8), TN_NO_MEMORY);
	CU_ASSERT_PTR_NULL(p.objects);
	CU_ASSERT_TRUE(tn_hook_set(NULL));
#endif
}

TN_TEST_MAIN("common/pool", { "gives its capacity", gives_its_capacity },
	{ "stale and made-up handles", stale_and_made_up }, { "random use", random_use },
	{ "refused sizes", refused_sizes })
