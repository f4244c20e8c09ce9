/* SPDX-License-Identifier: Apache-2.0
 * Request and response headers against the byte tables of docs/protocol.md 1.3 and 1.4, every refusal, and the
 * documented order of checks (the first broken rule names the error). */
#include "dataplane/transport/stream/frame.h"

#include <string.h>

#include "tests/unit/cu.h"

static const struct dp_frame_req_rule data_rule = { .id = 0x1122334455667788, .frame_bytes = 1u << 20 };
static const struct dp_frame_req_rule control_rule = { .id = 5, .frame_bytes = 1u << 20, .control = true };

static void test_req_bytes(void)
{
	struct dp_frame_req q = { .op = DP_FRAME_WRITE, .id = 0x1122334455667788, .registration = 0xa1a2a3a4a5a6a7a8,
		.offset = 0xb1b2b3b4b5b6b7b8, .length = 0x10000 }, back;
	uint8_t b[DP_FRAME_REQ_BYTES];
	dp_frame_req_encode(&q, b);
	static const uint8_t want[DP_FRAME_REQ_BYTES] = {
		'T', 'N', 'T', 'R', 0, 1, 2, 0, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88,
		0xa1, 0xa2, 0xa3, 0xa4, 0xa5, 0xa6, 0xa7, 0xa8, 0xb1, 0xb2, 0xb3, 0xb4, 0xb5, 0xb6, 0xb7, 0xb8,
		0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 };
	CU_ASSERT(memcmp(b, want, sizeof want) == 0);
	CU_ASSERT_EQUAL(dp_frame_req_decode(b, sizeof b, &data_rule, &back), DP_FRAME_OK);
	CU_ASSERT(back.op == q.op && back.id == q.id && back.registration == q.registration);
	CU_ASSERT(back.offset == q.offset && back.length == q.length);
}

/* Breaks one byte of a good request header. */
static enum dp_frame_error req_with(size_t off, uint8_t v)
{
	struct dp_frame_req q = { .op = DP_FRAME_READ, .id = data_rule.id, .registration = 1, .length = 4096 };
	struct dp_frame_req out = { .op = 0x5a };
	uint8_t b[DP_FRAME_REQ_BYTES];
	dp_frame_req_encode(&q, b);
	b[off] = v;
	enum dp_frame_error e = dp_frame_req_decode(b, sizeof b, &data_rule, &out);
	CU_ASSERT(e == DP_FRAME_OK || out.op == 0x5a);
	return e;
}

static void test_req_refusals(void)
{
	uint8_t b[DP_FRAME_REQ_BYTES + 1] = { 0 };
	struct dp_frame_req out;
	CU_ASSERT_EQUAL(dp_frame_req_decode(b, 47, &data_rule, &out), DP_FRAME_BAD_SIZE);
	CU_ASSERT_EQUAL(dp_frame_req_decode(b, 49, &data_rule, &out), DP_FRAME_BAD_SIZE);
	CU_ASSERT_EQUAL(req_with(0, 0), DP_FRAME_BAD_MAGIC);
	CU_ASSERT_EQUAL(req_with(3, 'S'), DP_FRAME_BAD_MAGIC);
	CU_ASSERT_EQUAL(req_with(5, 0), DP_FRAME_BAD_VERSION);
	CU_ASSERT_EQUAL(req_with(4, 1), DP_FRAME_BAD_VERSION);
	CU_ASSERT_EQUAL(req_with(6, 0), DP_FRAME_BAD_OPCODE);
	CU_ASSERT_EQUAL(req_with(6, 5), DP_FRAME_BAD_OPCODE);
	CU_ASSERT_EQUAL(req_with(6, DP_FRAME_NOTE), DP_FRAME_BAD_OPCODE);     /* control lane only */
	CU_ASSERT_EQUAL(req_with(6, DP_FRAME_DATAGRAM), DP_FRAME_BAD_OPCODE);
	CU_ASSERT_EQUAL(req_with(7, 1), DP_FRAME_BAD_RESERVED);
	CU_ASSERT_EQUAL(req_with(15, 0x89), DP_FRAME_BAD_ID);
	CU_ASSERT_EQUAL(req_with(32, 1), DP_FRAME_BAD_LENGTH);                /* 2^56 */
	CU_ASSERT_EQUAL(req_with(38, 0), DP_FRAME_BAD_LENGTH);                /* 0 */
	CU_ASSERT_EQUAL(req_with(37, 0x10), DP_FRAME_BAD_LENGTH);             /* frame + 4096 */
	CU_ASSERT_EQUAL(req_with(40, 1), DP_FRAME_BAD_RESERVED);
	CU_ASSERT_EQUAL(req_with(47, 1), DP_FRAME_BAD_RESERVED);
	CU_ASSERT_EQUAL(req_with(16, 0xff), DP_FRAME_OK);                     /* registration and offset are semantic */
	CU_ASSERT_EQUAL(req_with(24, 0xff), DP_FRAME_OK);
}

static enum dp_frame_error control_req(uint8_t op, uint64_t length)
{
	struct dp_frame_req q = { .op = op, .id = 5, .length = length }, out;
	uint8_t b[DP_FRAME_REQ_BYTES];
	dp_frame_req_encode(&q, b);
	return dp_frame_req_decode(b, sizeof b, &control_rule, &out);
}

static void test_control_ops(void)
{
	CU_ASSERT_EQUAL(control_req(DP_FRAME_NOTE, 0), DP_FRAME_OK);
	CU_ASSERT_EQUAL(control_req(DP_FRAME_NOTE, 4096), DP_FRAME_OK);
	CU_ASSERT_EQUAL(control_req(DP_FRAME_NOTE, 4097), DP_FRAME_BAD_LENGTH);
	CU_ASSERT_EQUAL(control_req(DP_FRAME_DATAGRAM, 0), DP_FRAME_BAD_LENGTH);
	CU_ASSERT_EQUAL(control_req(DP_FRAME_DATAGRAM, 1), DP_FRAME_OK);
	CU_ASSERT_EQUAL(control_req(DP_FRAME_DATAGRAM, 2048), DP_FRAME_OK);
	CU_ASSERT_EQUAL(control_req(DP_FRAME_DATAGRAM, 2049), DP_FRAME_BAD_LENGTH);
	CU_ASSERT_EQUAL(control_req(DP_FRAME_READ, 1), DP_FRAME_BAD_OPCODE); /* payload must not crowd out control */
	CU_ASSERT_EQUAL(control_req(DP_FRAME_WRITE, 1), DP_FRAME_BAD_OPCODE);
}

/* With everything wrong, repairing rule after rule must report the next one: that is the documented order. */
static void test_req_order(void)
{
	struct dp_frame_req q = { .op = DP_FRAME_READ, .id = data_rule.id, .registration = 1, .length = 4096 }, out;
	uint8_t good[DP_FRAME_REQ_BYTES], bad[DP_FRAME_REQ_BYTES];
	dp_frame_req_encode(&q, good);
	memset(bad, 0xee, sizeof bad);
	static const struct { size_t off, len; enum dp_frame_error error; } step[] = {
		{ 0, 4, DP_FRAME_BAD_MAGIC }, { 4, 2, DP_FRAME_BAD_VERSION }, { 6, 1, DP_FRAME_BAD_OPCODE },
		{ 7, 1, DP_FRAME_BAD_RESERVED }, { 8, 8, DP_FRAME_BAD_ID }, { 32, 8, DP_FRAME_BAD_LENGTH },
		{ 40, 8, DP_FRAME_BAD_RESERVED } };
	for (size_t i = 0; i < sizeof step / sizeof step[0]; i++) {
		CU_ASSERT_EQUAL(dp_frame_req_decode(bad, sizeof bad, &data_rule, &out), step[i].error);
		memcpy(bad + step[i].off, good + step[i].off, step[i].len);
	}
	CU_ASSERT_EQUAL(dp_frame_req_decode(bad, sizeof bad, &data_rule, &out), DP_FRAME_OK);
}

static enum dp_frame_error rsp_with(uint16_t status, uint64_t id, uint64_t committed, size_t off, uint8_t v)
{
	struct dp_frame_rsp r = { .status = status, .id = id, .committed = committed };
	struct dp_frame_rsp out = { .status = 0x5a5a };
	uint8_t b[DP_FRAME_RSP_BYTES];
	dp_frame_rsp_encode(&r, b);
	if (off < sizeof b)
		b[off] = v;
	enum dp_frame_error e = dp_frame_rsp_decode(b, sizeof b, 9, 512, &out);
	CU_ASSERT(e == DP_FRAME_OK ? out.status == status && out.committed == committed : out.status == 0x5a5a);
	return e;
}

static void test_rsp(void)
{
	const size_t none = DP_FRAME_RSP_BYTES;
	uint8_t b[DP_FRAME_RSP_BYTES];
	struct dp_frame_rsp r = { .status = 0x0a, .id = 0x0102030405060708, .committed = 0x1112131415161718 }, out;
	static const uint8_t want[DP_FRAME_RSP_BYTES] = { 'T', 'N', 'T', 'S', 0, 1, 0, 0x0a, 1, 2, 3, 4, 5, 6, 7, 8,
		0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18 };
	dp_frame_rsp_encode(&r, b);
	CU_ASSERT(memcmp(b, want, sizeof want) == 0);
	CU_ASSERT_EQUAL(dp_frame_rsp_decode(b, sizeof b - 1, 9, 512, &out), DP_FRAME_BAD_SIZE);
	CU_ASSERT_EQUAL(rsp_with(0, 9, 512, none, 0), DP_FRAME_OK);
	for (uint16_t s = 1; s < DP_FRAME_ST_CNT; s++) {
		CU_ASSERT_EQUAL(rsp_with(s, 9, 0, none, 0), DP_FRAME_OK);
		CU_ASSERT_EQUAL(rsp_with(s, 9, 512, none, 0), DP_FRAME_BAD_COMMITTED);
	}
	CU_ASSERT_EQUAL(rsp_with(0, 9, 511, none, 0), DP_FRAME_BAD_COMMITTED);
	CU_ASSERT_EQUAL(rsp_with(0, 9, 0, none, 0), DP_FRAME_BAD_COMMITTED);
	CU_ASSERT_EQUAL(rsp_with(0, 9, UINT64_MAX, none, 0), DP_FRAME_BAD_COMMITTED);
	CU_ASSERT_EQUAL(rsp_with(DP_FRAME_ST_CNT, 9, 0, none, 0), DP_FRAME_BAD_STATUS);
	CU_ASSERT_EQUAL(rsp_with(0, 8, 512, none, 0), DP_FRAME_BAD_ID);
	CU_ASSERT_EQUAL(rsp_with(0, 9, 512, 1, 0), DP_FRAME_BAD_MAGIC);
	CU_ASSERT_EQUAL(rsp_with(0, 9, 512, 5, 2), DP_FRAME_BAD_VERSION);
	CU_ASSERT_EQUAL(rsp_with(0, 9, 512, 24, 1), DP_FRAME_BAD_RESERVED);
	CU_ASSERT_EQUAL(rsp_with(0, 9, 512, 31, 1), DP_FRAME_BAD_RESERVED); /* touched, and applied? */
	CU_ASSERT_EQUAL(rsp_with(DP_FRAME_ST_STALE, 9, 0, 31, 1), DP_FRAME_OK);
	CU_ASSERT_EQUAL(rsp_with(DP_FRAME_ST_STALE, 9, 0, 31, 3), DP_FRAME_BAD_RESERVED);
	CU_ASSERT_EQUAL(rsp_with(DP_FRAME_ST_STALE, 9, 0, 24, 1), DP_FRAME_BAD_RESERVED);
	r.touched = true;
	dp_frame_rsp_encode(&r, b);
	CU_ASSERT_EQUAL(b[31], 1);
	CU_ASSERT_EQUAL(rsp_with(77, 8, 1, 31, 1), DP_FRAME_BAD_STATUS); /* order: status, id, committed, reserved */
	CU_ASSERT_EQUAL(rsp_with(0, 8, 1, 31, 1), DP_FRAME_BAD_ID);
	CU_ASSERT_EQUAL(rsp_with(0, 9, 1, 31, 1), DP_FRAME_BAD_COMMITTED);
}

TN_TEST_MAIN("stream frame",
	{ "request bytes", test_req_bytes },
	{ "request refusals", test_req_refusals },
	{ "control lane", test_control_ops },
	{ "order of checks", test_req_order },
	{ "response", test_rsp })
