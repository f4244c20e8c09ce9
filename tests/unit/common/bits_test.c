/* SPDX-License-Identifier: Apache-2.0
 * Edges of the power-of-two, alignment and overflow helpers. */
#include "common/bits.h"

#include "tests/unit/cu.h"

static void powers(void)
{
	CU_ASSERT_FALSE(tn_is_pow2(0));
	CU_ASSERT_TRUE(tn_is_pow2(1));
	CU_ASSERT_FALSE(tn_is_pow2(6));
	CU_ASSERT_TRUE(tn_is_pow2(UINT64_C(1) << 63));
	CU_ASSERT_EQUAL(tn_pow2_ceil(0), 1);
	CU_ASSERT_EQUAL(tn_pow2_ceil(1), 1);
	CU_ASSERT_EQUAL(tn_pow2_ceil(5), 8);
	CU_ASSERT_EQUAL(tn_pow2_ceil(8), 8);
	CU_ASSERT_EQUAL(tn_pow2_ceil((UINT64_C(1) << 63) - 1), UINT64_C(1) << 63);
	CU_ASSERT_EQUAL(tn_log2_floor(1), 0);
	CU_ASSERT_EQUAL(tn_log2_floor(UINT64_MAX), 63);
	CU_ASSERT_EQUAL(tn_log2_ceil(1), 0);
	CU_ASSERT_EQUAL(tn_log2_ceil(9), 4);
	CU_ASSERT_EQUAL(tn_bit_width(0), 0);
	CU_ASSERT_EQUAL(tn_bit_width(255), 8);
	CU_ASSERT_EQUAL(tn_bit_width(UINT64_MAX), 64);
}

static void alignment(void)
{
	uint64_t v;
	CU_ASSERT_EQUAL(tn_align_up(0, 64), 0);
	CU_ASSERT_EQUAL(tn_align_up(65, 64), 128);
	CU_ASSERT_EQUAL(tn_align_down(127, 64), 64);
	CU_ASSERT_TRUE(tn_is_aligned(4096, 4096));
	CU_ASSERT_FALSE(tn_is_aligned(4097, 4096));
	CU_ASSERT_TRUE(tn_align_up_checked(1, 4096, &v));
	CU_ASSERT_EQUAL(v, 4096);
	CU_ASSERT_FALSE(tn_align_up_checked(UINT64_MAX - 5, 4096, &v));
}

static void hostile_ranges(void)
{
	uint64_t v;
	CU_ASSERT_TRUE(tn_range_within(0, 10, 10));
	CU_ASSERT_TRUE(tn_range_within(10, 0, 10));
	CU_ASSERT_FALSE(tn_range_within(11, 0, 10));
	CU_ASSERT_FALSE(tn_range_within(5, 6, 10));
	CU_ASSERT_FALSE(tn_range_within(UINT64_MAX, 2, 10));
	CU_ASSERT_FALSE(tn_range_within(2, UINT64_MAX, 10));
	CU_ASSERT_TRUE(tn_add_checked(1, 2, &v) && v == 3);
	CU_ASSERT_FALSE(tn_add_checked(UINT64_MAX, 1, &v));
	CU_ASSERT_TRUE(tn_mul_checked(UINT32_MAX, UINT32_MAX, &v));
	CU_ASSERT_FALSE(tn_mul_checked(UINT64_C(1) << 33, UINT64_C(1) << 33, &v));
}

static void shares(void)
{
	CU_ASSERT_EQUAL(tn_permille(0, 5), 0);
	CU_ASSERT_EQUAL(tn_permille(1, 2), 500);
	CU_ASSERT_EQUAL(tn_permille(3, 2), 1500);
	CU_ASSERT_EQUAL(tn_permille(1, 1000001), 0);
	CU_ASSERT_EQUAL(tn_permille(66, 1), UINT16_MAX);
	CU_ASSERT_EQUAL(tn_permille(UINT64_MAX, UINT64_MAX), UINT16_MAX); /* beyond 580 years: too much for it */
	CU_ASSERT_EQUAL(tn_permille(0, 0), UINT16_MAX);
}

TN_TEST_MAIN("common/bits", { "powers of two and logarithms", powers }, { "alignment", alignment },
	{ "shares in permille", shares },
	{ "ranges and sums that would wrap are refused", hostile_ranges })
