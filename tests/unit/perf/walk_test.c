/* SPDX-License-Identifier: Apache-2.0
 * The order of blocks is a permutation that depends on the seed alone; the content check finds any wrong byte. */
#include "perf/tentbench/walk.h"

#include <string.h>

#include "tests/unit/cu.h"

#define CNT 1000u

static void visits_each_block_once_a_lap(void)
{
	struct tb_walk w = { 0 };

	CU_ASSERT_FATAL(tb_walk_init(&w, CNT, 5));
	for (int lap = 0; lap < 2; lap++) {
		uint8_t seen[CNT] = { 0 };
		uint32_t near = 0, last = 0;

		for (uint32_t i = 0; i < CNT; i++) {
			uint32_t b = tb_walk_next(&w);
			CU_ASSERT_FATAL(b < CNT);
			near += i > 0 && b == last + 1;
			seen[b]++;
			last = b;
		}
		for (uint32_t i = 0; i < CNT; i++)
			CU_ASSERT_EQUAL(seen[i], 1);
		CU_ASSERT(near < CNT / 20); /* a prefetcher has nothing to follow */
	}
	tb_walk_free(&w);
	tb_walk_free(&w);
}

static void is_decided_by_the_seed(void)
{
	struct tb_walk a, b, c;
	unsigned same = 0;

	CU_ASSERT_FATAL(tb_walk_init(&a, CNT, 5) && tb_walk_init(&b, CNT, 5) && tb_walk_init(&c, CNT, 6));
	for (uint32_t i = 0; i < CNT; i++) {
		uint32_t x = tb_walk_next(&a);
		CU_ASSERT_EQUAL(x, tb_walk_next(&b));
		same += x == tb_walk_next(&c);
	}
	CU_ASSERT(same < CNT / 20);
	tb_walk_free(&a);
	tb_walk_free(&b);
	tb_walk_free(&c);
}

static void finds_any_wrong_byte(void)
{
	uint8_t buf[77];

	for (size_t bytes = 1; bytes <= sizeof buf; bytes++) {
		tb_pattern_fill(buf, bytes, 42);
		CU_ASSERT_EQUAL(tb_pattern_check(buf, bytes, 42), bytes);
		if (bytes >= 4)
			CU_ASSERT(tb_pattern_check(buf, bytes, 43) < bytes);
		for (size_t i = 0; i < bytes; i++) {
			buf[i] ^= 0x10;
			CU_ASSERT_EQUAL(tb_pattern_check(buf, bytes, 42), i);
			buf[i] ^= 0x10;
		}
	}
}

TN_TEST_MAIN("perf walk", { "each block once a lap", visits_each_block_once_a_lap },
	     { "the seed decides", is_decided_by_the_seed }, { "any wrong byte is found", finds_any_wrong_byte })
