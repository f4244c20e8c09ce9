/* SPDX-License-Identifier: Apache-2.0
 * Which destinations count as cached, for the patterns that applications have. */
#include "dataplane/transport/shm/heat.h"

#include "tests/unit/cu.h"

#define KIB UINT64_C(1024)
#define MIB (1024 * KIB)
#define POOL (UINT64_C(0x7f1234567000))

static struct dp_heat heat;

static bool write_to(uint64_t address, uint64_t bytes)
{
	bool near = dp_heat_touch(&heat, address, bytes);
	dp_heat_moved(&heat, bytes);
	return near;
}

/* Share of near writes, in percent, of the last of three laps over a pool in steps of `bytes`. */
static unsigned lap(uint64_t pool_bytes, uint64_t bytes)
{
	uint64_t cnt = pool_bytes / bytes, near = 0;
	for (unsigned n = 0; n < 3; n++)
		for (uint64_t i = 0; i < cnt; i++)
			near += write_to(POOL + (i * 7 % cnt) * bytes, bytes) && n == 2;
	return (unsigned)(near * 100 / cnt);
}

static void test_small_pools_are_near_large_ones_are_not(void)
{
	dp_heat_init(&heat, 32 * MIB, MIB);
	CU_ASSERT_EQUAL(lap(8 * MIB, MIB), 100);
	CU_ASSERT_EQUAL(lap(30 * MIB, 2 * MIB), 100);
	dp_heat_init(&heat, 32 * MIB, MIB);
	CU_ASSERT_EQUAL(lap(510 * MIB, MIB), 0);
	CU_ASSERT_EQUAL(lap(33 * MIB, MIB), 0);
}

static void test_a_stream_is_cold_whatever_its_alignment(void)
{
	dp_heat_init(&heat, 32 * MIB, MIB);
	for (uint64_t i = 0; i < 1000; i++)
		CU_ASSERT_FALSE(write_to(POOL + 100 + i * MIB, MIB));
	/* small steps: neighbours share blocks, and must not warm each other */
	dp_heat_init(&heat, 32 * MIB, 64 * KIB);
	for (uint64_t i = 0; i < 1000; i++)
		CU_ASSERT_FALSE(write_to(POOL + 4100 + i * 64 * KIB, 64 * KIB));
}

static void test_one_buffer_used_again_is_near_beside_a_stream(void)
{
	dp_heat_init(&heat, 32 * MIB, MIB);
	for (uint64_t i = 0; i < 300; i++) {
		bool near = write_to(POOL, MIB);
		CU_ASSERT_EQUAL(near, i > 0);
		for (uint64_t k = 0; k < 20; k++)
			CU_ASSERT_FALSE(write_to(POOL + (64 + i * 20 + k) * MIB, MIB));
	}
}

static void test_age_counts_bytes_not_writes(void)
{
	dp_heat_init(&heat, 32 * MIB, MIB);
	CU_ASSERT_FALSE(write_to(POOL, MIB));
	dp_heat_moved(&heat, 30 * MIB);
	CU_ASSERT_TRUE(write_to(POOL, MIB));
	dp_heat_moved(&heat, 32 * MIB);
	CU_ASSERT_FALSE(write_to(POOL, MIB));
}

static void test_part_of_a_range_is_not_all_of_it(void)
{
	dp_heat_init(&heat, 32 * MIB, MIB);
	(void)write_to(POOL, MIB);
	CU_ASSERT_FALSE(write_to(POOL, 2 * MIB));
	CU_ASSERT_TRUE(write_to(POOL, 2 * MIB));
}

static void test_what_caches_cannot_hold_never_is(void)
{
	dp_heat_init(&heat, 32 * MIB, MIB);
	for (int i = 0; i < 3; i++)
		CU_ASSERT_FALSE(write_to(POOL, 64 * MIB));
	CU_ASSERT_FALSE(dp_heat_touch(&heat, POOL, 0));
	/* the highest address there is, and a copy of nothing known: both must just end */
	CU_ASSERT_FALSE(write_to(UINT64_MAX - MIB, MIB));
	dp_heat_init(&heat, 0, 0);
	CU_ASSERT_FALSE(write_to(POOL, 1));
	CU_ASSERT_FALSE(write_to(POOL, 1));
}

TN_TEST_MAIN("heat", { "small pools are near, large ones are not", test_small_pools_are_near_large_ones_are_not },
	     { "a stream is cold whatever its alignment", test_a_stream_is_cold_whatever_its_alignment },
	     { "one buffer used again is near beside a stream", test_one_buffer_used_again_is_near_beside_a_stream },
	     { "age counts bytes, not writes", test_age_counts_bytes_not_writes },
	     { "part of a range is not all of it", test_part_of_a_range_is_not_all_of_it },
	     { "what caches cannot hold never is", test_what_caches_cannot_hold_never_is }, )
