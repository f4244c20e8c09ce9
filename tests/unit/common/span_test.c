/* SPDX-License-Identifier: Apache-2.0
 * Big-endian fields round-trip, and nothing is read or written past either end, however often it is tried. */
#include "common/span.h"

#include "tests/unit/cu.h"

static void round_trip(void)
{
	uint8_t buf[21];
	struct tn_wr w = tn_wr_make(buf, sizeof buf);
	tn_wr_u8(&w, 0x01);
	tn_wr_u16(&w, 0x0203);
	tn_wr_u32(&w, 0x04050607);
	tn_wr_u64(&w, UINT64_C(0x08090a0b0c0d0e0f));
	tn_wr_bytes(&w, "abcd", 4);
	tn_wr_zero(&w, 2);
	CU_ASSERT_FALSE(w.overrun);
	CU_ASSERT_EQUAL(w.left, 0);
	for (uint8_t i = 0; i < 15; i++)
		CU_ASSERT_EQUAL(buf[i], i + 1);
	struct tn_rd r = tn_rd_make(buf, sizeof buf);
	char text[4];
	CU_ASSERT_EQUAL(tn_rd_u8(&r), 0x01);
	CU_ASSERT_EQUAL(tn_rd_u16(&r), 0x0203);
	CU_ASSERT_EQUAL(tn_rd_u32(&r), 0x04050607);
	CU_ASSERT_EQUAL(tn_rd_u64(&r), UINT64_C(0x08090a0b0c0d0e0f));
	tn_rd_bytes(&r, text, 4);
	CU_ASSERT_EQUAL(memcmp(text, "abcd", 4), 0);
	CU_ASSERT_FALSE(tn_rd_done(&r));
	tn_rd_skip(&r, 2);
	CU_ASSERT_TRUE(tn_rd_done(&r));
}

static void overrun_sticks(void)
{
	static const uint8_t three[3] = { 1, 2, 3 };
	struct tn_rd r = tn_rd_make(three, sizeof three);
	CU_ASSERT_EQUAL(tn_rd_u32(&r), 0);
	CU_ASSERT_TRUE(r.overrun);
	CU_ASSERT_EQUAL(tn_rd_u8(&r), 0);   /* one byte would fit, but the message is already broken */
	CU_ASSERT_FALSE(tn_rd_done(&r));
	uint8_t filled[4] = { 9, 9, 9, 9 };
	tn_rd_bytes(&r, filled, 4);
	CU_ASSERT_EQUAL(filled[0] | filled[3], 0);
	r = tn_rd_make(three, sizeof three);
	struct tn_span s = tn_rd_span(&r, SIZE_MAX);
	CU_ASSERT_PTR_NULL(s.ptr);
	CU_ASSERT_EQUAL(s.len, 0);

	uint8_t buf[4] = { 7, 7, 7, 7 };
	struct tn_wr w = tn_wr_make(buf, 3);
	tn_wr_u16(&w, 0x0101);
	tn_wr_u16(&w, 0x0202);
	CU_ASSERT_TRUE(w.overrun);
	tn_wr_u8(&w, 3);
	CU_ASSERT_EQUAL(buf[2], 7);
	CU_ASSERT_EQUAL(buf[3], 7);
}

static void empty_buffers(void)
{
	struct tn_rd r = tn_rd_make(NULL, 0);
	CU_ASSERT_TRUE(tn_rd_done(&r));
	tn_rd_skip(&r, 0);
	CU_ASSERT_TRUE(tn_rd_done(&r));
	CU_ASSERT_EQUAL(tn_rd_u8(&r), 0);
	CU_ASSERT_TRUE(r.overrun);
	struct tn_wr w = tn_wr_make(NULL, 0);
	tn_wr_bytes(&w, NULL, 0);
	CU_ASSERT_FALSE(w.overrun);
}

TN_TEST_MAIN("common/span", { "fields round-trip", round_trip }, { "an overrun sticks", overrun_sticks },
	{ "empty buffers", empty_buffers })
