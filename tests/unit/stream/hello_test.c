/* SPDX-License-Identifier: Apache-2.0
 * HELLO and its answer against the byte table of docs/protocol.md 1.1 and 1.2, and every refusal. */
#include "dataplane/transport/stream/hello.h"

#include <string.h>

#include "tests/unit/cu.h"

static struct dp_hello sample(void)
{
	struct dp_hello h = {
		.version_min = 1, .version_max = 1, .features = 0x0102030405060708,
		.path_epoch = 0x0a0b0c0d, .worker = 0x1112, .lane = DP_HELLO_LANE_CONTROL, .frame_bytes = 1u << 20,
	};
	memset(h.sender_session.b, 0xa1, 16);
	memset(h.receiver_session.b, 0xb2, 16);
	memset(h.sender.b, 0xc3, 32);
	memset(h.ticket.b, 0xd4, 16);
	return h;
}

static void test_hello_bytes(void)
{
	struct dp_hello h = sample(), back;
	uint8_t b[DP_HELLO_BYTES];
	dp_hello_encode(&h, b);
	static const uint8_t head[16] = { 'T', 'N', 'T', 'H', 0, 1, 0, 1, 1, 2, 3, 4, 5, 6, 7, 8 };
	static const uint8_t mid[12] = { 0x0a, 0x0b, 0x0c, 0x0d, 0x11, 0x12, 0xff, 0xff, 0, 0x10, 0, 0 };
	CU_ASSERT(memcmp(b, head, sizeof head) == 0);
	CU_ASSERT(b[16] == 0xa1 && b[31] == 0xa1 && b[32] == 0xb2 && b[47] == 0xb2);
	CU_ASSERT(b[48] == 0xc3 && b[79] == 0xc3 && b[80] == 0xd4 && b[95] == 0xd4);
	CU_ASSERT(memcmp(b + 96, mid, sizeof mid) == 0);
	CU_ASSERT(b[108] == 0 && b[159] == 0);

	memset(&back, 0xee, sizeof back);
	CU_ASSERT_EQUAL(dp_hello_decode(b, sizeof b, &back), DP_FRAME_OK);
	CU_ASSERT(tn_id128_eq(&back.sender_session, &h.sender_session) && tn_id128_eq(&back.ticket, &h.ticket));
	CU_ASSERT(tn_id128_eq(&back.receiver_session, &h.receiver_session) && tn_peer_id_eq(&back.sender, &h.sender));
	CU_ASSERT_EQUAL(back.features, h.features);
	CU_ASSERT_EQUAL(back.path_epoch, h.path_epoch);
	CU_ASSERT_EQUAL(back.worker, h.worker);
	CU_ASSERT_EQUAL(back.lane, h.lane);
	CU_ASSERT_EQUAL(back.frame_bytes, h.frame_bytes);
	CU_ASSERT_EQUAL(back.peer_index, 0);
	CU_ASSERT_STRING_EQUAL(back.peer_name, "");
}

static enum dp_frame_error decode_with(size_t off, uint8_t value, size_t len)
{
	struct dp_hello h = sample(), out;
	uint8_t b[DP_HELLO_BYTES + 1] = { 0 };
	dp_hello_encode(&h, b);
	if (len > 0)
		memset(b + off, value, len);
	memset(&out, 0x5a, sizeof out);
	enum dp_frame_error e = dp_hello_decode(b, DP_HELLO_BYTES, &out);
	if (e != DP_FRAME_OK)
		CU_ASSERT(out.path_epoch == 0x5a5a5a5a); /* outputs untouched on failure */
	return e;
}

static void test_hello_refusals(void)
{
	struct dp_hello h = sample(), out;
	uint8_t b[DP_HELLO_BYTES + 1] = { 0 };
	dp_hello_encode(&h, b);
	CU_ASSERT_EQUAL(dp_hello_decode(b, DP_HELLO_BYTES - 1, &out), DP_FRAME_BAD_SIZE);
	CU_ASSERT_EQUAL(dp_hello_decode(b, DP_HELLO_BYTES + 1, &out), DP_FRAME_BAD_SIZE);
	CU_ASSERT_EQUAL(decode_with(3, 'R', 1), DP_FRAME_BAD_MAGIC);
	CU_ASSERT_EQUAL(decode_with(4, 0, 4), DP_FRAME_BAD_VERSION);
	CU_ASSERT_EQUAL(decode_with(5, 9, 1), DP_FRAME_BAD_VERSION); /* min > max */
	CU_ASSERT_EQUAL(decode_with(16, 0, 16), DP_FRAME_BAD_TICKET);
	CU_ASSERT_EQUAL(decode_with(32, 0, 16),
			DP_FRAME_OK); /* receiver session not known yet: judged by the acceptor */
	CU_ASSERT_EQUAL(decode_with(48, 0, 32), DP_FRAME_BAD_TICKET);
	CU_ASSERT_EQUAL(decode_with(80, 0, 16), DP_FRAME_BAD_TICKET);
	CU_ASSERT_EQUAL(decode_with(96, 0, 4), DP_FRAME_BAD_TICKET);
	CU_ASSERT_EQUAL(decode_with(104, 0, 4), DP_FRAME_BAD_LENGTH);
	CU_ASSERT_EQUAL(decode_with(104, 0xff, 4), DP_FRAME_BAD_LENGTH);
	for (size_t off = 108; off < DP_HELLO_BYTES; off++)
		CU_ASSERT_EQUAL(decode_with(off, 1, 1), DP_FRAME_BAD_RESERVED);
}

static void test_answer(void)
{
	struct dp_hello_answer a = { .version = 1,
				     .status = DP_HELLO_ACCEPTED,
				     .features = 0,
				     .frame_bytes = 65536,
				     .path_epoch = 7 },
			       back;
	memset(a.session.b, 0x77, 16);
	uint8_t b[DP_HELLO_ANSWER_BYTES];
	dp_hello_answer_encode(&a, b);
	static const uint8_t head[8] = { 'T', 'N', 'T', 'A', 0, 1, 0, 0 };
	static const uint8_t tail[8] = { 0, 1, 0, 0, 0, 0, 0, 7 };
	CU_ASSERT(memcmp(b, head, 8) == 0 && b[16] == 0x77 && memcmp(b + 32, tail, 8) == 0);
	CU_ASSERT_EQUAL(dp_hello_answer_decode(b, sizeof b, &back), DP_FRAME_OK);
	CU_ASSERT(tn_id128_eq(&a.session, &back.session) && back.frame_bytes == 65536 && back.path_epoch == 7);

	CU_ASSERT_EQUAL(dp_hello_answer_decode(b, sizeof b - 1, &back), DP_FRAME_BAD_SIZE);
	b[0] = 'X';
	CU_ASSERT_EQUAL(dp_hello_answer_decode(b, sizeof b, &back), DP_FRAME_BAD_MAGIC);
	b[0] = 'T';
	b[7] = DP_HELLO_STATUS_CNT;
	CU_ASSERT_EQUAL(dp_hello_answer_decode(b, sizeof b, &back), DP_FRAME_BAD_STATUS);
	b[7] = 0;
	b[5] = 2;
	CU_ASSERT_EQUAL(dp_hello_answer_decode(b, sizeof b, &back), DP_FRAME_BAD_VERSION);
	b[5] = 1;
	b[63] = 1;
	CU_ASSERT_EQUAL(dp_hello_answer_decode(b, sizeof b, &back), DP_FRAME_BAD_RESERVED);
	b[63] = 0;
	memset(b + 32, 0, 4);
	CU_ASSERT_EQUAL(dp_hello_answer_decode(b, sizeof b, &back), DP_FRAME_BAD_LENGTH);

	struct dp_hello_answer no = { .version = 0, .status = DP_HELLO_NO_TICKET }; /* a refusal needs nothing else */
	dp_hello_answer_encode(&no, b);
	CU_ASSERT_EQUAL(dp_hello_answer_decode(b, sizeof b, &back), DP_FRAME_OK);
	CU_ASSERT_EQUAL(back.status, DP_HELLO_NO_TICKET);
	b[40] = 1; /* an address, and this is no refusal for it */
	CU_ASSERT_EQUAL(dp_hello_answer_decode(b, sizeof b, &back), DP_FRAME_BAD_RESERVED);
	struct dp_hello_answer stray = { .status = DP_HELLO_ADDRESS, .seen = { [0] = 0x20, [15] = 9 } };
	dp_hello_answer_encode(&stray, b);
	CU_ASSERT(b[40] == 0x20 && b[55] == 9);
	CU_ASSERT_EQUAL(dp_hello_answer_decode(b, sizeof b, &back), DP_FRAME_OK);
	CU_ASSERT_EQUAL(memcmp(back.seen, stray.seen, sizeof back.seen), 0);
	b[56] = 1;
	CU_ASSERT_EQUAL(dp_hello_answer_decode(b, sizeof b, &back), DP_FRAME_BAD_RESERVED);
}

static void test_version(void)
{
	struct dp_hello h = sample();
	CU_ASSERT_EQUAL(dp_hello_version_choose(&h), 1);
	h.version_max = 9;
	CU_ASSERT_EQUAL(dp_hello_version_choose(&h), 1);
	h.version_min = 2;
	CU_ASSERT_EQUAL(dp_hello_version_choose(&h), 0);
	CU_ASSERT_EQUAL(dp_hello_features_agree(UINT64_MAX), DP_HELLO_FEATURE_NOTES);
	CU_ASSERT_EQUAL(dp_hello_features_agree(~DP_HELLO_FEATURE_NOTES), 0);
}

TN_TEST_MAIN("stream hello",
	{ "bytes", test_hello_bytes },
	{ "refusals", test_hello_refusals },
	{ "answer", test_answer },
	{ "version", test_version })
