/* SPDX-License-Identifier: Apache-2.0
 * Notices and datagrams on the control lane: order, verdicts in any order, deadlines, cancel, bounds, and that payload
 * does not hold them up. */
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "tests/unit/cu.h"
#include "tests/unit/stream/mem_net.h"
#include "tests/unit/stream/rig.h"

static struct rig_memory far, near;
static struct dp_segment *segment;
static struct dp_remote *remote;
static struct dp_path *path;

static void begin(void)
{
	rig_start(NULL);
	far = rig_memory(100000, 0);
	near = rig_memory(100000, 0);
	segment = rig_publish(&rig.b, 0, &far, 2, SHR_RIGHT_REMOTE_READ | SHR_RIGHT_REMOTE_WRITE, SHR_ACCESS_PEERS);
	remote = rig_remote(segment);
	path = &rig_stream(&rig.a)->paths[1];
	rig.virtual_ns = tn_now_ns();
	rig.virtual_time = true;
}

static void end(void)
{
	CU_ASSERT_EQUAL(path->small_head, path->small_tail);
	rig_stop();
	free(remote);
	rig_memory_free(&far);
	rig_memory_free(&near);
}

static void pass(uint64_t ns)
{
	rig.virtual_ns += ns;
	rig_steps(20);
}

static struct dp_request request(uint8_t *payload, uint32_t len)
{
	return (struct dp_request){ .note = payload,
				    .sqe.note_len = len,
				    .deadline_ns = rig.virtual_ns + 5 * TN_NS_PER_S };
}

static tn_status note(struct dp_request *r, uint64_t seq) { return rig.a.t->ops->note_send(rig.a.t, r, remote, seq); }

static tn_status datagram(uint32_t peer, const void *bytes, uint32_t len)
{
	return rig.a.t->ops->datagram_send(rig.a.t, peer, bytes, len);
}

static void test_delivery(void)
{
	static uint8_t text[4097] = "hello";
	begin();
	struct dp_request r1 = request(text, 6), r2 = request(NULL, 0), r3 = request(text, 4096),
			  r4 = request(text, 4097);
	CU_ASSERT(note(&r1, 64) == TN_OK && note(&r2, 128) == TN_OK && note(&r3, 192) == TN_OK);
	CU_ASSERT_EQUAL(note(&r4, 256), TN_TOO_BIG);
	CU_ASSERT(rig_until_count(&rig.a.note_done_cnt, 3, 1000));
	CU_ASSERT(rig.b.note_cnt == 3 && rig.b.notes[0].seq == 64 && rig.b.notes[1].len == 0 &&
		  rig.b.notes[2].len == 4096);
	CU_ASSERT(memcmp(rig.b.notes[0].payload, "hello", 6) == 0 && memcmp(rig.b.notes[2].payload, text, 4096) == 0);
	CU_ASSERT_STRING_EQUAL(rig.b.notes[0].from, "host-a");
	CU_ASSERT_EQUAL(rig.b.notes[0].segment, segment->handle);
	CU_ASSERT(rig.a.note_done[0].r == &r1 && rig.a.note_done[1].r == &r2 && rig.a.note_done[0].status == TN_OK);
	CU_ASSERT_EQUAL(path->open_cnt, 0); /* all of it on the control lane, which is not counted */
	CU_ASSERT_EQUAL(rig.a.t->ops->lane_cnt(rig.a.t, 0), 0);
	CU_ASSERT_TRUE(path->control != NULL && path->control->state == DP_LANE_READY);
	end();
}

static void expect_verdict(uint64_t seq, tn_status status, uint8_t reason)
{
	static uint8_t text[8] = "v";
	static struct dp_request r;
	uint32_t before = rig.a.note_done_cnt;
	r = request(text, 2);
	CU_ASSERT_EQUAL(note(&r, seq), TN_OK);
	CU_ASSERT_FATAL(rig_until_count(&rig.a.note_done_cnt, before + 1, 1000));
	CU_ASSERT_EQUAL(rig.a.note_done[before].status, status);
	if (status != TN_OK)
		CU_ASSERT(rig.a.note_done[before].reason == reason && rig.a.note_done[before].phase == TN_PHASE_NOTIFY);
}

static void test_verdicts(void)
{
	begin();
	rig.b.verdict = TN_LIMIT;
	expect_verdict(1, TN_LIMIT, TN_REASON_QUEUE_FULL);
	rig.b.verdict = TN_CLIENT_GONE;
	expect_verdict(2, TN_STALE, TN_REASON_STALE_GENERATION);
	rig.b.verdict = TN_PERMISSION;
	expect_verdict(3, TN_PERMISSION, TN_REASON_MR_ERROR);
	rig.b.verdict = TN_OK;
	rig.b.note_in_status = TN_AGAIN; /* the mailbox to the control thread is full */
	expect_verdict(4, TN_PATH_DOWN, TN_REASON_INTERNAL);
	rig.b.note_in_status = TN_OK;
	expect_verdict(5, TN_OK, 0);
	segment->access = SHR_ACCESS_SAME_UID;
	segment->generation++;
	expect_verdict(6, TN_PERMISSION, TN_REASON_MR_ERROR);
	rig_withdraw(&rig.b, 0);
	expect_verdict(7, TN_STALE, TN_REASON_STALE_GENERATION);
	end();
}

static void test_deadline_and_cancel(void)
{
	static uint8_t text[8] = "late";
	begin();
	struct dp_request r1 = request(text, 5), r2 = request(text, 5), r3 = request(text, 5);
	rig.b.verdict_later = true;
	note(&r1, 1);
	note(&r2, 2);
	rig_steps(10);
	rig.a.t->ops->note_cancel(rig.a.t, &r2);
	CU_ASSERT(rig.b.note_cnt == 2 && rig.a.note_done_cnt == 0);
	pass(6 * TN_NS_PER_S); /* past the deadline; also past the lane's progress timeout */
	CU_ASSERT(rig.a.note_done_cnt == 1 && rig.a.note_done[0].r == &r1);
	rig.b.t->ops->note_verdict(rig.b.t, rig.b.notes[0].token, TN_OK); /* nobody waits: ignored */
	rig.b.verdict_later = false;
	r3.deadline_ns = rig.virtual_ns + 5 * TN_NS_PER_S;
	note(&r3, 3);
	pass(TN_NS_PER_S);
	rig_steps(20);
	CU_ASSERT(rig.a.note_done_cnt == 2 && rig.a.note_done[1].r == &r3 && rig.a.note_done[1].status == TN_OK);
	end();
}

/* Its deadline passes while its answer is on the way: it may be there. */
static void test_late_answer(void)
{
	static uint8_t text[8] = "late";
	begin();
	struct dp_request r = request(text, 5);
	r.deadline_ns = rig.virtual_ns + 50 * TN_NS_PER_MS; /* long before the lane counts as silent */
	rig.b.verdict_later = true;
	note(&r, 1);
	rig_steps(10);
	CU_ASSERT_EQUAL_FATAL(rig.b.note_cnt, 1);
	pass(60 * TN_NS_PER_MS);
	CU_ASSERT(rig.a.note_done_cnt == 1 && rig.a.note_done[0].r == &r && rig.a.note_done[0].status == TN_AMBIGUOUS);
	CU_ASSERT_EQUAL(rig.a.note_done[0].reason, TN_REASON_TIMEOUT);
	pass(20 * TN_NS_PER_S); /* the lane is given up, and its place with it */
	end();
}

static void test_nobody_there(void)
{
	static uint8_t text[8] = "lost";
	begin();
	struct dp_request r1 = request(text, 5), r2 = request(text, 5);
	rig.b.verdict_later = true;
	note(&r1, 1);
	rig_steps(10);
	CU_ASSERT_FATAL(path->control != NULL && rig.b.note_cnt == 1);
	mem.refuse = UINT32_MAX;
	note(&r2, 2);
	dp_lane_close(path->control, TN_PATH_DOWN, DP_FRAME_OK, true); /* r1 was sent, and is there; r2 waits for a new lane */
	datagram(0, "old", 3);
	pass(4 * TN_NS_PER_S);
	CU_ASSERT_EQUAL(rig.a.note_done_cnt, 0);
	pass(2 * TN_NS_PER_S);
	CU_ASSERT(rig.a.note_done_cnt == 2 && rig.a.note_done[0].r == &r1 && rig.a.note_done[0].status == TN_AMBIGUOUS);
	CU_ASSERT_EQUAL(rig.a.note_done[0].reason, TN_REASON_TIMEOUT);
	CU_ASSERT(rig.a.note_done[1].r == &r2 && rig.a.note_done[1].status == TN_TIMEOUT);
	mem.refuse = 0;
	pass(2 * TN_NS_PER_S);
	CU_ASSERT_EQUAL(rig.b.datagram_cnt, 0); /* too old, dropped */
	end();
}

/* Sent and judged over there; nothing of the answers comes. */
static void two_unanswered(struct dp_request *r1, struct dp_request *r2)
{
	static uint8_t text[8] = "again";
	*r1 = request(text, 6);
	*r2 = request(text, 6);
	rig.b.verdict_later = true;
	note(r1, 64);
	note(r2, 128);
	rig_steps(10);
	CU_ASSERT_FATAL(path->control != NULL && rig.b.note_cnt == 2 && rig.a.note_done_cnt == 0);
	rig.b.verdict_later = false;
}

static void lose_lane(void) { dp_lane_close(path->control, TN_PATH_DOWN, DP_FRAME_OK, true); }

/* They go to the same incarnation again, with their numbers; one that was canceled meanwhile does not. */
static void test_crosses_a_lost_lane(void)
{
	struct dp_request r1, r2;
	begin();
	two_unanswered(&r1, &r2);
	rig.a.t->ops->note_cancel(rig.a.t, &r2);
	lose_lane();
	CU_ASSERT_EQUAL(rig.a.note_done_cnt, 0);
	pass(TN_NS_PER_S);
	CU_ASSERT(rig.b.note_cnt == 3 && rig.b.notes[2].seq == 64 && memcmp(rig.b.notes[2].payload, "again", 6) == 0);
	CU_ASSERT(rig.a.note_done_cnt == 1 && rig.a.note_done[0].r == &r1 && rig.a.note_done[0].status == TN_OK);
	end();
}

/* Asked again and not looked at: nothing is known about what arrived before. */
static void test_again_and_refused(void)
{
	struct dp_request r1, r2;
	begin();
	two_unanswered(&r1, &r2);
	lose_lane();
	rig.b.note_in_status = TN_AGAIN;
	pass(TN_NS_PER_S);
	CU_ASSERT_EQUAL_FATAL(rig.a.note_done_cnt, 2);
	CU_ASSERT(rig.a.note_done[0].status == TN_AMBIGUOUS && rig.a.note_done[1].status == TN_AMBIGUOUS);
	end();
}

static void test_another_incarnation(void)
{
	struct dp_request r1, r2;
	begin();
	two_unanswered(&r1, &r2);
	lose_lane();
	rig.b.session.b[0]++;
	rig_peer_set();
	CU_ASSERT_EQUAL_FATAL(rig.a.note_done_cnt, 2);
	CU_ASSERT(rig.a.note_done[0].status == TN_AMBIGUOUS && rig.a.note_done[0].reason == TN_REASON_PEER_CLOSED);
	pass(TN_NS_PER_S);
	CU_ASSERT_EQUAL(rig.b.note_cnt, 2);
	end();
}

/* One of an older version remembers nothing. */
static void test_receiver_that_forgets(void)
{
	struct dp_request r1, r2;
	begin();
	two_unanswered(&r1, &r2);
	CU_ASSERT_TRUE(path->control->remembers);
	path->control->remembers = false;
	lose_lane();
	CU_ASSERT(rig.a.note_done_cnt == 2 && rig.a.note_done[1].status == TN_AMBIGUOUS);
	pass(TN_NS_PER_S);
	CU_ASSERT_EQUAL(rig.b.note_cnt, 2);
	end();
}

/* On a lane that breaks, but not a byte of them left: they go out on the next one, except the one that was canceled. */
static void test_unsent_goes_on(void)
{
	static uint8_t text[8] = "later";
	begin();
	struct dp_request r0 = request(text, 6), r1 = request(text, 6), r2 = request(text, 6), r3 = request(text, 6);
	note(&r0, 1);
	CU_ASSERT_FATAL(rig_until_count(&rig.a.note_done_cnt, 1, 1000));
	mem.stall[0] = true;
	note(&r1, 2);
	note(&r2, 3);
	note(&r3, 4);
	rig_steps(5);
	CU_ASSERT_EQUAL_FATAL(path->small_next, path->small_tail);
	rig.a.t->ops->note_cancel(rig.a.t, &r2);
	dp_lane_close(path->control, TN_PATH_DOWN, DP_FRAME_OK, true);
	CU_ASSERT_EQUAL(rig.a.note_done_cnt, 1);
	mem.stall[0] = false;
	pass(TN_NS_PER_S);
	rig_steps(20);
	CU_ASSERT(rig.a.note_done_cnt == 3 && rig.a.note_done[1].r == &r1 && rig.a.note_done[1].status == TN_OK &&
		  rig.a.note_done[2].r == &r3 && rig.a.note_done[2].status == TN_OK);
	CU_ASSERT(rig.b.note_cnt == 3 && rig.b.notes[1].seq == 2 && rig.b.notes[2].seq == 4);
	end();
}

static void test_bounds_and_order(void)
{
	static uint8_t text[8] = "full";
	static struct dp_request r[40];
	begin();
	rig.b.verdict_later = true;
	uint32_t taken = 0;
	for (unsigned i = 0; i < 40; i++) {
		r[i] = request(text, 5);
		taken += note(&r[i], i + 1) == TN_OK;
	}
	CU_ASSERT(taken == 24);
	CU_ASSERT_EQUAL(datagram(0, text, 5), TN_OK); /* room is kept for datagrams */
	rig_steps(20);
	CU_ASSERT_EQUAL_FATAL(rig.b.note_cnt, 24);
	for (unsigned i = 0; i < 24; i++) { /* the last first */
		CU_ASSERT_EQUAL(rig.b.notes[i].seq, i + 1);
		rig.b.t->ops->note_verdict(rig.b.t, rig.b.notes[23 - i].token, i % 2 ? TN_OK : TN_PERMISSION);
		rig_steps(2);
		CU_ASSERT(i == 23 || rig.a.note_done_cnt == 0);
	}
	rig_steps(20);
	CU_ASSERT(rig.a.note_done_cnt == 24 && rig.b.datagram_cnt == 1);
	for (unsigned i = 0; i < 24; i++)
		CU_ASSERT(rig.a.note_done[i].r == &r[i] &&
			  rig.a.note_done[i].status == (i % 2 ? TN_PERMISSION : TN_OK));
	end();
}

static void test_datagrams(void)
{
	static uint8_t bytes[2049];
	begin();
	CU_ASSERT_EQUAL(datagram(0, bytes, 0), TN_INVALID);
	CU_ASSERT_EQUAL(datagram(0, bytes, 2049), TN_INVALID);
	CU_ASSERT_EQUAL(datagram(7, bytes, 10), TN_PEER_DOWN);
	for (unsigned i = 0; i < 32; i++)
		CU_ASSERT_EQUAL(datagram(0, bytes, 2048), TN_OK);
	CU_ASSERT_EQUAL(datagram(0, bytes, 2048), TN_AGAIN);
	rig.b.datagram_in_status = TN_AGAIN; /* dropped over there; the sender does not care */
	CU_ASSERT(rig_until_count(&rig.b.datagram_cnt, 32, 1000) && rig.b.datagram_bytes == 32 * 2048);
	rig_steps(10);
	CU_ASSERT_EQUAL(rig.a.note_done_cnt, 0);
	end();
}

/* Bulk does not delay a datagram: it has its own connection. */
static void test_protected(void)
{
	struct rig_attempt bulk;
	begin();
	rig_attempt(&bulk, TN_OP_WRITE, remote, 0, near.base, 60000);
	rig_submit(&bulk);
	mem.pipe_max = 300;
	datagram(0, "x", 1);
	CU_ASSERT(rig_until_count(&rig.b.datagram_cnt, 1, 1000));
	CU_ASSERT(!bulk.done);
	mem.pipe_max = 0;
	CU_ASSERT(rig_until(&bulk.done, 1000) && bulk.r.status == TN_OK);
	end();
}

/* What notices and datagrams cost for each peer, used or not. */
static void test_memory_of_a_peer(void)
{
	CU_ASSERT_TRUE(sizeof(struct dp_path) + DP_STREAM_SMALL_BYTES <= 256u * 1024u);
	CU_ASSERT_TRUE(sizeof(struct dp_small) * DP_STREAM_SMALL_SLOTS <= 4096u);
}

TN_TEST_MAIN("stream notices",
	{ "the memory of a peer is bounded", test_memory_of_a_peer },
	{ "delivery", test_delivery },
	{ "verdicts", test_verdicts },
	{ "deadline and cancel", test_deadline_and_cancel },
	{ "nobody there", test_nobody_there },
	{ "a late answer", test_late_answer },
	{ "unsent when the lane breaks", test_unsent_goes_on },
	{ "a notice crosses a lost lane", test_crosses_a_lost_lane },
	{ "sent again and not looked at", test_again_and_refused },
	{ "another incarnation is ambiguous", test_another_incarnation },
	{ "a receiver that forgets", test_receiver_that_forgets },
	{ "bounds and order", test_bounds_and_order },
	{ "datagrams", test_datagrams },
	{ "payload does not hold them up", test_protected })
