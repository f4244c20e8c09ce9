/* SPDX-License-Identifier: Apache-2.0
 * A hand-made peer against either end: every frame error is counted once and closes the lane, refused WRITEs are
 * drained, fences, withdrawn segments, time limits, bounds. */
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "tests/unit/cu.h"
#include "tests/unit/stream/mem_net.h"
#include "tests/unit/stream/rig.h"

#define ALL_RIGHTS (SHR_RIGHT_REMOTE_READ | SHR_RIGHT_REMOTE_WRITE)

static struct rig_memory far;
static struct dp_segment *segment;
static uint64_t registration;

static void begin(void)
{
	rig_start(NULL);
	far = rig_memory(65536, 0);
	segment = rig_publish(&rig.b, 0, &far, 1, ALL_RIGHTS, SHR_ACCESS_PEERS);
	registration = segment->buffers[0].registration;
	rig.manual = true;
	rig.virtual_ns = tn_now_ns();
	rig.virtual_time = true;
}

static void end(void)
{
	CU_ASSERT(rig_guards_intact(&far));
	rig_stop();
	rig_memory_free(&far);
}

static void pass(uint64_t ns)
{
	rig.virtual_ns += ns;
	rig_steps(10);
}

/* ---- playing a client ---- */

#define PEER_INDEX 7u

static struct dp_hello hello_of(uint8_t session, uint32_t epoch, uint16_t lane)
{
	struct dp_hello h = { .version_min = 1, .version_max = 1, .path_epoch = epoch, .worker = 2, .lane = lane,
	                      .frame_bytes = 16384, .peer_index = PEER_INDEX, .conn_cnt = &rig.conn_cnt };
	memset(h.sender_session.b, session, sizeof h.sender_session.b);
	memset(h.sender.b, 0x31, sizeof h.sender.b);
	strcpy(h.peer_name, "host-a");
	return h;
}

/* Adopted with its answer read; *status_out is the answer's. The link. */
static int dial_as(uint8_t session, uint32_t epoch, uint16_t lane, uint16_t *status_out)
{
	struct dp_hello *h = malloc(sizeof *h);
	struct dp_hello_answer a = { .status = 0xffff };
	uint8_t bytes[DP_HELLO_ANSWER_BYTES];
	*h = hello_of(session, epoch, lane);
	int link = mem_open();
	tn_fetch_add32(&rig.conn_cnt, 1);
	rig.b.t->ops->lane_adopt(rig.b.t, link, h);
	rig_steps(3);
	CU_ASSERT_EQUAL(mem_pull(link, 0, bytes, sizeof bytes), sizeof bytes);
	CU_ASSERT_EQUAL(dp_hello_answer_decode(bytes, sizeof bytes, &a), DP_FRAME_OK);
	*status_out = a.status;
	bool told = tn_id128_eq(&a.session, &rig.b.session) && a.path_epoch == epoch;
	CU_ASSERT(a.status == DP_HELLO_ACCEPTED ? told : tn_id128_is_zero(&a.session)); /* a refusal tells nothing */
	return link;
}

static int dial(uint16_t lane)
{
	uint16_t status;
	int link = dial_as(1, 1, lane, &status);
	CU_ASSERT_EQUAL(status, DP_HELLO_ACCEPTED);
	return link;
}

static void ask(int link, uint8_t op, uint64_t id, uint64_t reg, uint64_t offset, uint64_t length)
{
	uint8_t b[DP_FRAME_REQ_BYTES];
	struct dp_frame_req q = { .op = op, .id = id, .registration = reg, .offset = offset, .length = length };
	dp_frame_req_encode(&q, b);
	mem_push(link, 0, b, sizeof b);
}

/* The next answer's status; 0xffff when there is none. */
static uint16_t answer(int link, uint64_t id, uint64_t length)
{
	uint8_t b[DP_FRAME_RSP_BYTES];
	struct dp_frame_rsp r;
	rig_steps(5);
	if (mem_waiting(link, 0) < sizeof b)
		return 0xffff;
	mem_pull(link, 0, b, sizeof b);
	CU_ASSERT_EQUAL(dp_frame_rsp_decode(b, sizeof b, id, length, &r), DP_FRAME_OK);
	return r.status;
}

static const uint8_t *junk(uint8_t v)
{
	static uint8_t bytes[20000];
	memset(bytes, v, sizeof bytes);
	return bytes;
}

static void test_operations(void)
{
	uint8_t got[200];
	begin();
	int k = dial(0);
	ask(k, DP_FRAME_WRITE, 1, registration, 100, 200);
	mem_push(k, 0, junk(7), 200);
	CU_ASSERT_EQUAL(answer(k, 1, 200), DP_FRAME_ST_OK);
	CU_ASSERT(far.base[99] == 0 && far.base[100] == 7 && far.base[299] == 7 && far.base[300] == 0);
	ask(k, DP_FRAME_READ, 2, registration, 100, 200);
	CU_ASSERT_EQUAL(answer(k, 2, 200), DP_FRAME_ST_OK);
	CU_ASSERT(mem_pull(k, 0, got, 200) == 200 && memcmp(got, far.base + 100, 200) == 0);
	mem_hang_up(k, 0, false);
	rig_steps(5);
	CU_ASSERT(!mem_is_open(k, 1) && tn_load_relaxed32(&rig.conn_cnt) == 0);
	end();
}

/* Drain rule: a refused WRITE costs its bytes, not the lane; nothing is touched. */
static void test_drain(void)
{
	begin();
	int k = dial(0);
	static const struct { uint64_t off, len, reg_delta; uint16_t status;
	} bad[] = { { 0, 100, 99, DP_FRAME_ST_STALE },
		    { 65536, 1, 0, DP_FRAME_ST_RANGE },
		    { 65535, 2, 0, DP_FRAME_ST_RANGE },
		    { UINT64_MAX, 16384, 0, DP_FRAME_ST_RANGE },
		    { UINT64_MAX - 99, 100, 0, DP_FRAME_ST_RANGE } };
	uint64_t id = 1;
	for (unsigned i = 0; i < TN_ARRAY_LEN(bad); i++) {
		ask(k, DP_FRAME_WRITE, id, registration + bad[i].reg_delta, bad[i].off, bad[i].len);
		mem_push(k, 0, junk(9), bad[i].len);
		CU_ASSERT_EQUAL(answer(k, id, bad[i].len), bad[i].status);
		id++;
		ask(k, DP_FRAME_READ, id, registration + bad[i].reg_delta, bad[i].off, bad[i].len);
		CU_ASSERT_EQUAL(answer(k, id, bad[i].len), bad[i].status);
		CU_ASSERT_EQUAL(mem_waiting(k, 0), 0);
		id++;
	}
	segment->buffers[0].rights = SHR_RIGHT_REMOTE_READ;
	ask(k, DP_FRAME_WRITE, id, registration, 0, 300);
	mem_push(k, 0, junk(9), 300);
	CU_ASSERT_EQUAL(answer(k, id, 300), DP_FRAME_ST_PERMISSION);
	for (size_t i = 0; i < far.bytes; i++)
		CU_ASSERT_FATAL(far.base[i] == 0);
	ask(k, DP_FRAME_READ, id + 1, registration, 0, 300);
	CU_ASSERT_EQUAL(answer(k, id + 1, 300), DP_FRAME_ST_OK);
	end();
}

/* ---- close rule ---- */

static void server_error(uint16_t lane, size_t off, uint8_t value, enum dp_frame_error expected)
{
	uint8_t b[DP_FRAME_REQ_BYTES];
	struct dp_frame_req q = { .op = lane == DP_HELLO_LANE_CONTROL ? DP_FRAME_NOTE : DP_FRAME_WRITE, .id = 1,
	                          .registration = registration, .length = 256 };
	int k = dial(lane);
	uint64_t before = rig_protocol_errors(&rig.b, TN_SIDE_SERVER, expected);
	dp_frame_req_encode(&q, b);
	b[off] = value;
	mem_push(k, 0, b, sizeof b);
	mem_push(k, 0, junk(0xee), 256);
	rig_steps(5);
	CU_ASSERT(!mem_is_open(k, 1));
	RIG_NUMBER(rig_protocol_errors(&rig.b, TN_SIDE_SERVER, expected), before + 1);
	CU_ASSERT_EQUAL(mem_waiting(k, 0), 0); /* closed without a word */
}

static void test_server_errors(void)
{
	begin();
	server_error(0, 0, 'X', DP_FRAME_BAD_MAGIC);
	server_error(0, 5, 2, DP_FRAME_BAD_VERSION);
	server_error(0, 6, 9, DP_FRAME_BAD_OPCODE);
	server_error(0, 6, DP_FRAME_NOTE, DP_FRAME_BAD_OPCODE);
	server_error(DP_HELLO_LANE_CONTROL, 6, DP_FRAME_WRITE, DP_FRAME_BAD_OPCODE);
	server_error(0, 7, 1, DP_FRAME_BAD_RESERVED);
	server_error(0, 15, 2, DP_FRAME_BAD_ID);
	server_error(0, 36, 1, DP_FRAME_BAD_LENGTH);
	server_error(0, 45, 1, DP_FRAME_BAD_RESERVED);
	server_error(DP_HELLO_LANE_CONTROL, 37, 0x10, DP_FRAME_BAD_LENGTH);
	for (size_t i = 0; i < far.bytes; i++)
		CU_ASSERT_FATAL(far.base[i] == 0);
	CU_ASSERT_EQUAL(tn_load_relaxed32(&rig.conn_cnt), 0);
	RIG_NUMBER(rig_counter(&rig.b, TN_G1(STREAM_CONNECTIONS, TN_STREAM_TCP).cell), 0);
	end();
}

static void test_cut_short(void)
{
	begin();
	int k = dial(0);
	mem_push(k, 0, junk('T'), 20);
	mem_hang_up(k, 0, false);
	rig_steps(5);
	CU_ASSERT(!mem_is_open(k, 1));
	RIG_NUMBER(rig_protocol_errors(&rig.b, TN_SIDE_SERVER, DP_FRAME_BAD_SIZE), 1);
	k = dial(0);
	mem_hang_up(k, 0, false); /* between frames: the normal end */
	rig_steps(5);
	CU_ASSERT(!mem_is_open(k, 1));
	RIG_NUMBER(rig_protocol_errors(&rig.b, TN_SIDE_SERVER, DP_FRAME_BAD_SIZE), 1);
	end();
}

/* Ids of answers and requests run per lane: the second request must be 2. */
static void test_server_id_runs(void)
{
	begin();
	int k = dial(0);
	ask(k, DP_FRAME_READ, 1, registration, 0, 16);
	ask(k, DP_FRAME_READ, 2, registration, 0, 16);
	ask(k, DP_FRAME_READ, 2, registration, 0, 16);
	rig_steps(5);
	CU_ASSERT(!mem_is_open(k, 1));
	RIG_NUMBER(rig_protocol_errors(&rig.b, TN_SIDE_SERVER, DP_FRAME_BAD_ID), 1);
	end();
}

/* ---- playing a server ---- */

/* a connects, sends HELLO and one READ or WRITE of 256 bytes; returns the link after accepting, *ra under way. */
static int catch_client(struct rig_attempt *ra, struct dp_remote *remote, uint8_t *local, uint8_t op)
{
	uint8_t bytes[DP_HELLO_BYTES];
	struct dp_hello h;
	rig_attempt(ra, op, remote, 0, local, 256);
	CU_ASSERT_EQUAL(rig_submit(ra), TN_OK);
	rig_steps(5);
	int k = mem_next_unaccepted();
	CU_ASSERT_FATAL(k >= 0);
	mem.link[k].accepted = true;
	CU_ASSERT_EQUAL(mem_pull(k, 1, bytes, sizeof bytes), sizeof bytes);
	CU_ASSERT_EQUAL(dp_hello_decode(bytes, sizeof bytes, &h), DP_FRAME_OK);
	CU_ASSERT(tn_id128_eq(&h.sender_session, &rig.a.session) && tn_id128_eq(&h.ticket, &rig.ticket) &&
		  h.worker == 3);
	struct dp_hello_answer a = {
		.version = 1, .session = rig.b.session, .frame_bytes = 4096, .path_epoch = h.path_epoch
	};
	dp_hello_answer_encode(&a, bytes);
	mem_push(k, 1, bytes, DP_HELLO_ANSWER_BYTES);
	rig_steps(5);
	return k;
}

static void client_error(size_t off, uint8_t value, uint8_t op, enum dp_frame_error expected)
{
	struct rig_attempt ra;
	uint8_t b[DP_FRAME_RSP_BYTES];
	begin();
	struct rig_memory near = rig_memory(256, 0x44);
	struct dp_remote *remote = rig_remote(segment);
	int k = catch_client(&ra, remote, near.base, op);
	CU_ASSERT_EQUAL(mem_waiting(k, 1), DP_FRAME_REQ_BYTES + (op == TN_OP_WRITE ? 256u : 0u));
	struct dp_frame_rsp r = { .status = DP_FRAME_ST_OK, .id = 1, .committed = 256 };
	dp_frame_rsp_encode(&r, b);
	b[off] = value;
	mem_push(k, 1, b, sizeof b);
	mem_push(k, 1, junk(0xee), 256);
	rig_steps(5);
	RIG_NUMBER(rig_protocol_errors(&rig.a, TN_SIDE_CLIENT, expected), 1);
	CU_ASSERT(!mem_is_open(k, 0));
	bool ended = ra.done && ra.r.status == TN_PATH_PROTOCOL && ra.r.reason == TN_REASON_PROTOCOL;
	bool fencing = !ra.done && rig_stream(&rig.a)->paths[1].epoch == 2; /* it may have landed */
	CU_ASSERT(op == TN_OP_READ ? ended : fencing);
	CU_ASSERT(near.base[0] == 0x44 && near.base[255] == 0x44 && rig_guards_intact(&near));
	if (!ra.done)
		rig.a.t->ops->cancel(rig.a.t, &ra.a);
	end();
	free(remote);
	rig_memory_free(&near);
}

static void test_client_errors(void)
{
	client_error(0, 0, TN_OP_READ, DP_FRAME_BAD_MAGIC);
	client_error(5, 9, TN_OP_READ, DP_FRAME_BAD_VERSION);
	client_error(7, DP_FRAME_ST_CNT, TN_OP_READ, DP_FRAME_BAD_STATUS);
	client_error(15, 2, TN_OP_READ, DP_FRAME_BAD_ID);
	client_error(23, 1, TN_OP_READ, DP_FRAME_BAD_COMMITTED);
	client_error(7, DP_FRAME_ST_STALE, TN_OP_READ, DP_FRAME_BAD_COMMITTED); /* refused, but it says 256 */
	client_error(31, 1, TN_OP_READ, DP_FRAME_BAD_RESERVED);
	client_error(15, 2, TN_OP_WRITE, DP_FRAME_BAD_ID);
	client_error(22, 0, TN_OP_WRITE, DP_FRAME_BAD_COMMITTED);
}

static void test_unasked_answer(void)
{
	struct rig_attempt ra;
	uint8_t b[DP_FRAME_RSP_BYTES], got[DP_FRAME_REQ_BYTES];
	begin();
	struct rig_memory near = rig_memory(256, 0);
	struct dp_remote *remote = rig_remote(segment);
	int k = catch_client(&ra, remote, near.base, TN_OP_READ);
	mem_pull(k, 1, got, sizeof got);
	dp_frame_rsp_encode(&(struct dp_frame_rsp){ .status = DP_FRAME_ST_OK, .id = 1, .committed = 256 }, b);
	mem_push(k, 1, b, sizeof b);
	mem_push(k, 1, junk(3), 256);
	rig_steps(5);
	CU_ASSERT(ra.done && ra.r.status == TN_OK && near.base[0] == 3 && near.base[255] == 3);
	dp_frame_rsp_encode(&(struct dp_frame_rsp){ .status = DP_FRAME_ST_OK, .id = 2, .committed = 256 }, b);
	mem_push(k, 1, b, sizeof b);
	mem_hang_up(k, 1, false);
	rig_steps(5);
	CU_ASSERT(!mem_is_open(k, 0));
	RIG_NUMBER(rig_protocol_errors(&rig.a, TN_SIDE_CLIENT, DP_FRAME_BAD_ID), 1);
	end();
	free(remote);
	rig_memory_free(&near);
}

static void bad_greeting(size_t off, uint8_t value, enum dp_frame_error expected)
{
	struct rig_attempt ra;
	uint8_t bytes[DP_HELLO_BYTES];
	begin();
	struct rig_memory near = rig_memory(256, 0);
	struct dp_remote *remote = rig_remote(segment);
	rig_attempt(&ra, TN_OP_WRITE, remote, 0, near.base, 256);
	rig_submit(&ra);
	rig_steps(5);
	int k = mem_next_unaccepted();
	mem.link[k].accepted = true;
	mem_pull(k, 1, bytes, sizeof bytes);
	struct dp_hello_answer a = { .version = 1, .session = rig.b.session, .frame_bytes = 4096, .path_epoch = 1 };
	dp_hello_answer_encode(&a, bytes);
	bytes[off] = value;
	mem_push(k, 1, bytes, DP_HELLO_ANSWER_BYTES);
	rig_steps(5);
	RIG_NUMBER(rig_protocol_errors(&rig.a, TN_SIDE_CLIENT, expected), 1);
	CU_ASSERT(!mem_is_open(k, 0));
	CU_ASSERT_EQUAL(mem_waiting(k, 1), 0); /* not one byte of payload went to it */
	rig.a.t->ops->cancel(rig.a.t, &ra.a);
	CU_ASSERT(ra.done && ra.r.nothing_left);
	end();
	free(remote);
	rig_memory_free(&near);
}

/* An answer that comes in pieces is waited for without work in between. */
static void test_slow_greeting(void)
{
	struct rig_attempt ra;
	uint8_t bytes[DP_HELLO_BYTES];
	begin();
	struct rig_memory near = rig_memory(256, 0);
	struct dp_remote *remote = rig_remote(segment);
	rig_attempt(&ra, TN_OP_WRITE, remote, 0, near.base, 256);
	rig_submit(&ra);
	rig_steps(5);
	int k = mem_next_unaccepted();
	mem.link[k].accepted = true;
	mem_pull(k, 1, bytes, sizeof bytes);
	struct dp_hello_answer a = { .version = 1, .session = rig.b.session, .frame_bytes = 4096, .path_epoch = 1 };
	dp_hello_answer_encode(&a, bytes);
	for (size_t i = 0; i < DP_HELLO_ANSWER_BYTES; i++) {
		CU_ASSERT_EQUAL(mem_waiting(k, 1), 0);
		mem_push(k, 1, bytes + i, 1);
		rig_steps(5);
		CU_ASSERT(!rig.a.t->ops->busy(rig.a.t));
	}
	CU_ASSERT_EQUAL(mem_waiting(k, 1), DP_FRAME_REQ_BYTES + 256u);
	rig.a.t->ops->cancel(rig.a.t, &ra.a);
	end();
	free(remote);
	rig_memory_free(&near);
}

static void test_bad_greetings(void)
{
	bad_greeting(0, 'H', DP_FRAME_BAD_MAGIC);
	bad_greeting(5, 7, DP_FRAME_BAD_VERSION);
	bad_greeting(16, 1, DP_FRAME_BAD_TICKET);  /* another session than the one we dialled */
	bad_greeting(39, 9, DP_FRAME_BAD_TICKET);  /* another epoch than ours */
	bad_greeting(63, 9, DP_FRAME_BAD_RESERVED);
}

/* ---- fences ---- */

static void test_epochs(void)
{
	uint16_t status;
	begin();
	int k1 = dial_as(1, 1, 0, &status), k2 = dial_as(1, 1, DP_HELLO_LANE_CONTROL, &status);
	ask(k1, DP_FRAME_WRITE, 1, registration, 0, 1000);
	mem_push(k1, 0, junk(5), 500);
	rig_steps(5);
	CU_ASSERT(far.base[499] == 5 && rig.b.t->ops->segment_busy(rig.b.t, segment->handle));
	mem_push(k1, 0, junk(6), 500); /* on its way when the fence comes */
	int k3 = dial_as(1, 2, 0, &status);
	CU_ASSERT(status == DP_HELLO_ACCEPTED && !mem_is_open(k1, 1) && !mem_is_open(k2, 1) && mem_is_open(k3, 1));
	rig_steps(5);
	CU_ASSERT(far.base[500] == 0 && !rig.b.t->ops->segment_busy(rig.b.t, segment->handle)); /* it did not land */
	dial_as(1, 1, 1, &status);
	CU_ASSERT_EQUAL(status, DP_HELLO_OLD_EPOCH);
	CU_ASSERT(mem_is_open(k3, 1) && tn_load_relaxed32(&rig.conn_cnt) == 1);
	end();
}

static void test_incarnations(void)
{
	uint16_t status;
	begin();
	int k1 = dial_as(1, 5, 0, &status), k2 = dial_as(1, 5, 1, &status);
	int k3 = dial_as(2, 1, 0, &status); /* the same peer, restarted: its old lanes end first */
	CU_ASSERT(status == DP_HELLO_ACCEPTED && !mem_is_open(k1, 1) && !mem_is_open(k2, 1) && mem_is_open(k3, 1));
	struct dp_hello h = hello_of(2, 1, 0);
	struct tn_id128 none = { { 0 } };
	CU_ASSERT(rig.b.t->ops->fence(rig.b.t, PEER_INDEX + 1, &none));
	CU_ASSERT(mem_is_open(k3, 1));
	CU_ASSERT(rig.b.t->ops->fence(rig.b.t, PEER_INDEX, &h.sender_session));
	CU_ASSERT(mem_is_open(k3, 1));
	CU_ASSERT(rig.b.t->ops->fence(rig.b.t, PEER_INDEX, &none));
	CU_ASSERT(!mem_is_open(k3, 1) && tn_load_relaxed32(&rig.conn_cnt) == 0);
	end();
}

static void test_too_many(void)
{
	uint16_t status;
	begin();
	for (unsigned i = 0; i < 16; i++)
		dial((uint16_t)i);
	int k = dial_as(1, 1, 99, &status);
	CU_ASSERT_EQUAL(status, DP_HELLO_TOO_MANY);
	CU_ASSERT(!mem_is_open(k, 1));
	end();
}

/* It stops: what is half in ends, whatever comes after it is told, and nothing else is waited for. */
static void test_stop(void)
{
	uint16_t status;
	begin();
	int k = dial(0), c = dial(DP_HELLO_LANE_CONTROL);
	ask(k, DP_FRAME_WRITE, 1, registration, 0, 1000);
	mem_push(k, 0, junk(5), 400);
	rig_steps(5);
	CU_ASSERT_FALSE(rig.b.t->ops->drain(rig.b.t));
	CU_ASSERT(rig.b.t->up);
	mem_push(k, 0, junk(5), 600);
	CU_ASSERT_EQUAL(answer(k, 1, 1000), DP_FRAME_ST_OK);
	CU_ASSERT(far.base[999] == 5);
	CU_ASSERT(rig.b.t->ops->drain(rig.b.t));
	ask(k, DP_FRAME_WRITE, 2, registration, 0, 1000);
	rig_steps(5);
	CU_ASSERT_FALSE(rig.b.t->ops->drain(rig.b.t)); /* its payload is discarded before the answer */
	mem_push(k, 0, junk(6), 1000);
	CU_ASSERT_EQUAL(answer(k, 2, 1000), DP_FRAME_ST_SHUTDOWN);
	ask(k, DP_FRAME_READ, 3, registration, 0, 1000);
	CU_ASSERT_EQUAL(answer(k, 3, 1000), DP_FRAME_ST_SHUTDOWN);
	ask(c, DP_FRAME_NOTE, 1, registration, 0, 5);
	mem_push(c, 0, junk(7), 5);
	CU_ASSERT_EQUAL(answer(c, 1, 5), DP_FRAME_ST_SHUTDOWN);
	CU_ASSERT_EQUAL(rig.b.note_cnt, 0);
	CU_ASSERT(far.base[0] == 5 && far.base[999] == 5);
	CU_ASSERT(mem_is_open(k, 1) && mem_is_open(c, 1)); /* they close them */
	dial_as(1, 1, 1, &status);
	CU_ASSERT_EQUAL(status, DP_HELLO_DRAINING);
	CU_ASSERT(rig.b.t->ops->drain(rig.b.t));
	end();
}

/* ---- withdrawn segments ---- */

static void test_revoke_finishes(void)
{
	begin();
	int k = dial(0);
	ask(k, DP_FRAME_WRITE, 1, registration, 0, 1000);
	mem_push(k, 0, junk(5), 400);
	rig_steps(5);
	tn_handle h = segment->handle;
	rig_withdraw(&rig.b, 0);
	rig.b.t->ops->segment_revoke(rig.b.t, h);
	CU_ASSERT(rig.b.t->ops->segment_busy(rig.b.t, h));
	ask(k, DP_FRAME_READ, 9, registration, 0, 1); /* bytes of the WRITE, in truth: framing is by length alone */
	mem_push(k, 0, junk(6), 600 - DP_FRAME_REQ_BYTES);
	CU_ASSERT_EQUAL(answer(k, 1, 1000), DP_FRAME_ST_OK); /* it ran when the segment was withdrawn: it may finish */
	CU_ASSERT(!rig.b.t->ops->segment_busy(rig.b.t, h) && far.base[999] == 6);
	ask(k, DP_FRAME_READ, 2, registration, 0, 100);
	CU_ASSERT_EQUAL(answer(k, 2, 100), DP_FRAME_ST_STALE);
	end();
}

static void test_revoke_grace(void)
{
	begin();
	int k = dial(0);
	ask(k, DP_FRAME_WRITE, 1, registration, 0, 1000);
	mem_push(k, 0, junk(5), 400);
	rig_steps(5);
	tn_handle h = segment->handle;
	rig_withdraw(&rig.b, 0);
	rig.b.t->ops->segment_revoke(rig.b.t, h);
	pass(900 * TN_NS_PER_MS);
	CU_ASSERT(rig.b.t->ops->segment_busy(rig.b.t, h));
	pass(200 * TN_NS_PER_MS);
	CU_ASSERT(!rig.b.t->ops->segment_busy(rig.b.t, h)); /* a dawdling peer does not hold the memory */
	mem_push(k, 0, junk(6), 600);
	CU_ASSERT_EQUAL(answer(k, 1, 1000), DP_FRAME_ST_STALE);
	CU_ASSERT(far.base[399] == 5 && far.base[400] == 0);
	end();
}

static void test_revoke_answers(void)
{
	begin();
	int k = dial(0);
	mem.pipe_max = 500;
	ask(k, DP_FRAME_READ, 1, registration, 0, 1000);
	ask(k, DP_FRAME_READ, 2, registration, 0, 1000);
	rig_steps(5); /* half of the first answer is out */
	tn_handle h = segment->handle;
	rig_withdraw(&rig.b, 0);
	rig.b.t->ops->segment_revoke(rig.b.t, h);
	CU_ASSERT(rig.b.t->ops->segment_busy(rig.b.t, h));
	pass(1100 * TN_NS_PER_MS);
	CU_ASSERT(!rig.b.t->ops->segment_busy(rig.b.t, h) && !mem_is_open(k, 1));
	end();
}

/* ---- time ---- */

static void test_times(void)
{
	begin();
	int idle = dial(0), header = dial(1), payload = dial(2), reader = dial(3);
	mem_push(header, 0, junk(0), 5);
	ask(payload, DP_FRAME_WRITE, 1, registration, 0, 1000);
	mem_push(payload, 0, junk(5), 400);
	mem.pipe_max = 500;
	ask(reader, DP_FRAME_READ, 1, registration, 0, 1000);
	rig_steps(5);
	pass(1900 * TN_NS_PER_MS);
	CU_ASSERT(mem_is_open(header, 1) && mem_is_open(payload, 1) && mem_is_open(reader, 1));
	pass(200 * TN_NS_PER_MS);
	CU_ASSERT(!mem_is_open(header, 1) && !mem_is_open(payload, 1) && !mem_is_open(reader, 1));
	pass(3600 * TN_NS_PER_S);
	CU_ASSERT(mem_is_open(idle, 1)); /* only the connecting side retires an idle lane */
	end();
}

static void test_verdict_after_the_end(void)
{
	begin();
	int k = dial(DP_HELLO_LANE_CONTROL);
	rig.b.verdict_later = true;
	ask(k, DP_FRAME_NOTE, 1, registration, 64, 5);
	mem_push(k, 0, "abcde", 5);
	CU_ASSERT_EQUAL(answer(k, 1, 5), 0xffff);
	CU_ASSERT_EQUAL_FATAL(rig.b.note_cnt, 1);
	mem_hang_up(k, 0, true);
	rig_steps(5);
	int k2 = dial(DP_HELLO_LANE_CONTROL); /* perhaps in the same slot */
	ask(k2, DP_FRAME_NOTE, 1, registration, 128, 5);
	mem_push(k2, 0, "fghij", 5);
	rig_steps(5);
	rig.b.t->ops->note_verdict(rig.b.t, rig.b.notes[0].token, TN_OK);
	rig.b.t->ops->note_verdict(rig.b.t, UINT64_MAX, TN_OK);
	CU_ASSERT_EQUAL(answer(k2, 1, 5), 0xffff); /* that verdict was not for this one */
	rig.b.t->ops->note_verdict(rig.b.t, rig.b.notes[1].token, TN_LIMIT);
	CU_ASSERT_EQUAL(answer(k2, 1, 5), DP_FRAME_ST_INBOX_FULL);
	end();
}

/* The client of a second control lane gave the first one up, and sends again what stands in it. */
static void test_second_control_lane(void)
{
	begin();
	int data = dial(0), k1 = dial(DP_HELLO_LANE_CONTROL);
	ask(k1, DP_FRAME_NOTE, 1, registration, 64, 5);
	mem_push(k1, 0, "abc", 3);
	rig_steps(3);
	mem_push(k1, 0, "de", 2); /* on its way */
	int k2 = dial(DP_HELLO_LANE_CONTROL);
	CU_ASSERT(!mem_is_open(k1, 1) && mem_is_open(k2, 1) && mem_is_open(data, 1));
	CU_ASSERT_EQUAL(rig.b.note_cnt, 0);
	ask(k2, DP_FRAME_NOTE, 1, registration, 64, 5);
	mem_push(k2, 0, "abcde", 5);
	CU_ASSERT_EQUAL(answer(k2, 1, 5), DP_FRAME_ST_OK);
	CU_ASSERT_EQUAL(rig.b.note_cnt, 1);
	end();
}

TN_TEST_MAIN("stream server and hostile peers",
	{ "a second control lane", test_second_control_lane },
	{ "operations", test_operations },
	{ "drain rule", test_drain },
	{ "close rule", test_server_errors },
	{ "cut short", test_cut_short },
	{ "request ids", test_server_id_runs },
	{ "bad answers", test_client_errors },
	{ "unasked answer", test_unasked_answer },
	{ "slow greeting", test_slow_greeting },
	{ "bad greetings", test_bad_greetings },
	{ "epochs", test_epochs },
	{ "incarnations", test_incarnations },
	{ "too many", test_too_many },
	{ "a stop refuses, and waits for what is under way", test_stop },
	{ "withdrawn while running", test_revoke_finishes },
	{ "withdrawn, peer dawdles", test_revoke_grace },
	{ "withdrawn, half an answer out", test_revoke_answers },
	{ "times", test_times },
	{ "verdict after the end", test_verdict_after_the_end })
