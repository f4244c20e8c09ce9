/* SPDX-License-Identifier: Apache-2.0
 * The connecting side when things go wrong: the law of the ambiguous WRITE and its fence, tickets and sessions,
 * cancel of every kind, refusals of the receiver, memory that cannot be touched. */
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "dataplane/segment/fault.h"
#include "dataplane/transport/path_info.h"
#include "tests/unit/cu.h"
#include "tests/unit/stream/mem_net.h"
#include "tests/unit/stream/rig.h"

#define ALL_RIGHTS (SHR_RIGHT_REMOTE_READ | SHR_RIGHT_REMOTE_WRITE)

static struct rig_memory far, near;
static struct dp_segment *segment;
static struct dp_remote *remote;
static struct dp_path *path;

static void begin_with(const struct dp_stream_cfg *cfg, size_t bytes)
{
	rig_start(cfg);
	far = rig_memory(bytes, 0);
	near = rig_memory(bytes, 0);
	segment = rig_publish(&rig.b, 0, &far, 1, ALL_RIGHTS, SHR_ACCESS_PEERS);
	remote = rig_remote(segment);
	path = &rig_stream(&rig.a)->paths[1];
	rig.virtual_ns = tn_now_ns();
	rig.virtual_time = true;
}

static void begin(size_t bytes) { begin_with(NULL, bytes); }

static void end(void)
{
	CU_ASSERT(rig_guards_intact(&far) && rig_guards_intact(&near));
	CU_ASSERT_EQUAL(rig_stream(&rig.a)->admitted, 0);
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

static void warm_up(void)
{
	CU_ASSERT_EQUAL_FATAL(rig_move(TN_OP_WRITE, remote, 0, near.base, 100), TN_OK);
	CU_ASSERT_EQUAL_FATAL(path->ready_cnt, 1);
}

/* The memory link under data lane i. */
static int link_of_lane(unsigned i) { return (int)((struct mem_link *)path->lanes[i]->bytes.conn - mem.link); }

/* Everything of it was sent and nothing answered. */
static void sent_unanswered(struct rig_attempt *ra, uint8_t op, size_t bytes)
{
	mem.stall[1] = true;
	rig_attempt(ra, op, remote, 0, near.base, bytes);
	CU_ASSERT_EQUAL_FATAL(rig_submit(ra), TN_OK);
	rig_steps(10);
	CU_ASSERT_FATAL(!ra->done && ra->a.t_slices > 0);
}

static void reset_lane(unsigned i)
{
	mem_hang_up(link_of_lane(i), 1, true); /* a reset arrives at the connecting side */
}

/* ---- the ambiguous WRITE ---- */

static void test_fence(void)
{
	struct rig_attempt ra;
	begin(100000);
	warm_up();
	sent_unanswered(&ra, TN_OP_WRITE, 1000);
	rig.refuse = DP_HELLO_TOO_MANY;
	reset_lane(0);
	rig_steps(10);
	CU_ASSERT(!ra.done && path->epoch == 2 && path->open_cnt == 0);
	CU_ASSERT(!tn_list_empty(&path->fencing));
	mem.stall[1] = false;
	pass(2 * TN_NS_PER_S);
	CU_ASSERT(!ra.done); /* as long as nobody accepted, the doubt stands */
	rig.refuse = 0;
	pass(2 * TN_NS_PER_S);
	CU_ASSERT(ra.done && ra.r.status == TN_PATH_DOWN && ra.r.fenced && !ra.r.nothing_left && ra.done_cnt == 1);
	CU_ASSERT_EQUAL(ra.r.reason, TN_REASON_PEER_CLOSED);
	tn_list_foreach(node, &rig_stream(&rig.b)->senders)
		CU_ASSERT_EQUAL(tn_list_entry(node, struct dp_sender, link)->epoch, 2);
	CU_ASSERT_EQUAL(rig_move(TN_OP_WRITE, remote, 0, near.base, 1000), TN_OK);
	end();
}

static void test_unfenced_at_deadline(void)
{
	struct rig_attempt ra;
	begin(100000);
	warm_up();
	sent_unanswered(&ra, TN_OP_WRITE, 1000);
	rig.refuse = DP_HELLO_TOO_MANY;
	reset_lane(0);
	mem.stall[1] = false;
	pass(29 * TN_NS_PER_S);
	CU_ASSERT(!ra.done);
	pass(2 * TN_NS_PER_S);
	CU_ASSERT(ra.done && ra.r.status == TN_PATH_DOWN && !ra.r.fenced && !ra.r.nothing_left);
	end();
}

static void test_break_closes_all(void)
{
	struct rig_attempt big, ra;
	begin(300000);
	rig_attempt(&big, TN_OP_WRITE, remote, 0, near.base, 300000);
	rig_submit(&big);
	CU_ASSERT(rig_until(&big.done, 2000));
	CU_ASSERT_EQUAL_FATAL(path->ready_cnt, 2);
	sent_unanswered(&ra, TN_OP_WRITE, 60000); /* over both lanes */
	CU_ASSERT(path->lanes[0]->out_bytes > 0 && path->lanes[1]->out_bytes > 0);
	reset_lane(0);
	rig_steps(1);
	CU_ASSERT(path->open_cnt == 0 && path->epoch == 2 && !ra.done);
	mem.stall[1] = false;
	pass(TN_NS_PER_S);
	CU_ASSERT(ra.done && ra.r.fenced);
	end();
}

static void test_unsent_is_safe(void)
{
	struct rig_attempt ra;
	begin(100000);
	warm_up();
	mem.stall[0] = true; /* nothing leaves */
	rig_attempt(&ra, TN_OP_WRITE, remote, 0, near.base, 1000);
	rig_submit(&ra);
	rig_steps(5);
	CU_ASSERT(ra.a.t_slices == 1);
	mem.stall[0] = false;
	dp_lane_close(path->lanes[0], TN_PATH_DOWN, DP_FRAME_OK, true);
	rig_steps(2);
	CU_ASSERT(ra.done && ra.r.nothing_left && ra.r.status == TN_PATH_DOWN);
	CU_ASSERT_EQUAL(path->epoch, 1);
	pass(TN_NS_PER_S);
	end();
}

static void test_read_is_safe(void)
{
	struct rig_attempt ra;
	begin(100000);
	warm_up();
	sent_unanswered(&ra, TN_OP_READ, 1000);
	reset_lane(0);
	rig_steps(2);
	CU_ASSERT(ra.done && ra.r.nothing_left && ra.r.status == TN_PATH_DOWN && path->epoch == 1);
	mem.stall[1] = false;
	pass(TN_NS_PER_S);
	end();
}

/* Some slices committed, the rest never sent: not "nothing left", but nothing of it can land any more. */
static void test_half_committed(void)
{
	struct rig_attempt ra;
	begin(300000);
	warm_up();
	rig_attempt(&ra, TN_OP_WRITE, remote, 0, near.base, 300000);
	rig_submit(&ra);
	for (unsigned i = 0; i < 1000 && ra.a.t_done == 0; i++)
		rig_step();
	CU_ASSERT_FATAL(!ra.done && ra.a.t_done > 0);
	rig_withdraw(&rig.b, 0); /* the others find the registration stale */
	CU_ASSERT(rig_until(&ra.done, 2000));
	CU_ASSERT(ra.r.status == TN_STALE && ra.r.fenced && !ra.r.nothing_left &&
		  ra.r.reason == TN_REASON_STALE_GENERATION);
	CU_ASSERT(path->epoch == 1 && path->ready_cnt > 0);
	end();
}

/* Refused when the first half of its only frame was in the segment already: that is not "nothing left". */
static void test_half_a_frame_landed(void)
{
	struct rig_attempt ra;
	begin(100000);
	const tn_handle handle = segment->handle; /* it is gone with its withdrawal */
	warm_up();
	rig_pattern(near.base, 16000, 5);
	mem.pipe_max = 4000;
	rig_attempt(&ra, TN_OP_WRITE, remote, 0, near.base, 16000);
	rig_submit(&ra);
	for (unsigned i = 0; i < 100 && far.base[5000] == 0; i++)
		rig_step();
	CU_ASSERT_FATAL(!ra.done && far.base[5000] != 0 && far.base[15999] == 0);
	mem.stall[1] = true;
	rig.b.t->ops->segment_revoke(rig.b.t, handle);
	rig_withdraw(&rig.b, 0);
	pass(1100 * TN_NS_PER_MS);
	CU_ASSERT(!rig.b.t->ops->segment_busy(rig.b.t, handle));
	mem.stall[1] = false;
	CU_ASSERT(rig_until(&ra.done, 1000));
	CU_ASSERT(ra.r.status == TN_STALE && !ra.r.nothing_left && ra.r.fenced);
	CU_ASSERT(far.base[15999] == 0 && path->epoch == 1 && path->ready_cnt > 0);
	/* ... and of one that came later nothing did. */
	rig_attempt(&ra, TN_OP_WRITE, remote, 0, near.base, 1000);
	rig_submit(&ra);
	CU_ASSERT(rig_until(&ra.done, 1000) && ra.r.status == TN_STALE && ra.r.nothing_left);
	end();
}

static void test_new_incarnation(void)
{
	struct rig_attempt ra;
	begin(100000);
	warm_up();
	sent_unanswered(&ra, TN_OP_WRITE, 1000);
	mem.refuse = UINT32_MAX; /* the old one is gone */
	reset_lane(0);
	rig_steps(5);
	pass(TN_NS_PER_S);
	CU_ASSERT(!ra.done && rig.a.peer_refreshes >= 1);
	memset(rig.b.session.b, 0xb2, 16);
	rig_peer_set();
	rig_steps(2);
	CU_ASSERT(ra.done && ra.r.fenced);
	mem.stall[1] = false;
	end();
}

/* ---- tickets and sessions ---- */

static void test_ticket_refused(void)
{
	struct rig_attempt ra;
	begin(1000);
	memset(rig.ticket.b, 0x11, 16); /* the receiver has another one now */
	rig_attempt(&ra, TN_OP_WRITE, remote, 0, near.base, 1000);
	rig_submit(&ra);
	for (unsigned ms = 0; ms < 900; ms += 10)
		pass(10 * TN_NS_PER_MS);
	CU_ASSERT(!ra.done);
	CU_ASSERT_EQUAL(rig.refused, 1); /* held back until the control thread answers */
	struct dp_path_info info;
	dp_stream_path_info(rig.a.t, 0, &info);
	CU_ASSERT(info.known && info.hold && info.lanes == 0 && info.since_ns == 0 && info.why == TN_PEER_DENIED);
	CU_ASSERT(info.endpoints[0].tried_ns != 0 && info.endpoints[0].status == TN_PEER_DENIED);
	CU_ASSERT(rig.a.peer_refreshes >= 1 && rig.a.peer_refreshes <= 5);
	rig_peer_set();
	rig_steps(20);
	CU_ASSERT(ra.done && ra.r.status == TN_OK);
	dp_stream_path_info(rig.a.t, 0, &info);
	CU_ASSERT(!info.hold && info.lanes > 0 && info.since_ns != 0 && info.why == TN_OK);
	CU_ASSERT_EQUAL(info.endpoints[0].status, TN_OK);
	dp_stream_path_info(rig.a.t, 4000, &info); /* no such peer */
	CU_ASSERT(!info.known);
	end();
}

/* The wait of one that gave up is not charged to the next. */
static void test_each_waits_its_own_time(void)
{
	struct rig_attempt ra, next;
	begin(1000);
	rig.refuse = DP_HELLO_TOO_MANY;
	rig_attempt(&ra, TN_OP_WRITE, remote, 0, near.base, 100);
	rig_submit(&ra);
	rig_steps(5);
	pass(900 * TN_NS_PER_MS); /* of a second */
	CU_ASSERT(!ra.done);
	rig.a.t->ops->cancel(rig.a.t, &ra.a);
	CU_ASSERT(ra.done && ra.r.status == TN_CANCELED);
	rig_steps(5);
	rig_attempt(&next, TN_OP_WRITE, remote, 0, near.base, 100);
	rig_submit(&next);
	rig_steps(5);
	pass(300 * TN_NS_PER_MS);
	CU_ASSERT(!next.done);
	pass(800 * TN_NS_PER_MS);
	CU_ASSERT(next.done && next.r.phase == TN_PHASE_CONNECT && next.r.nothing_left);
	end();
}

static void test_ticket_stays_refused(void)
{
	struct rig_attempt ra;
	begin(1000);
	rig.refuse = DP_HELLO_NO_TICKET;
	rig_attempt(&ra, TN_OP_WRITE, remote, 0, near.base, 1000);
	rig_submit(&ra);
	uint32_t asked = 0;
	for (unsigned ms = 0; ms < 10000; ms += 10) {
		pass(10 * TN_NS_PER_MS);
		if (rig.a.peer_refreshes > asked)
			rig_peer_set(); /* unchanged */
		asked = rig.a.peer_refreshes;
		if (ra.done && ms < 5000) {
			CU_ASSERT(ra.r.status == TN_PEER_DENIED && ra.r.nothing_left && ra.r.phase == TN_PHASE_CONNECT);
			rig_attempt(&ra, TN_OP_WRITE, remote, 0, near.base, 1000);
			rig_submit(&ra);
		}
	}
	CU_ASSERT(ra.done);
	CU_ASSERT(rig.refused < 20 && rig.a.peer_refreshes < 20); /* no storm in ten seconds */
	end();
}

/* A good ticket from a wrong address: every new ticket is bound as before, so the refusal stays in view and nothing
 * storms; when the configuration over there was mended, the next lane clears it. */
static void test_address_refused(void)
{
	struct rig_attempt ra;
	struct dp_path_info info;
	begin(1000);
	rig.refuse = DP_HELLO_ADDRESS;
	rig_attempt(&ra, TN_OP_WRITE, remote, 0, near.base, 1000);
	rig_submit(&ra);
	uint32_t asked = 0;
	for (unsigned ms = 0; ms < 10000; ms += 10) {
		pass(10 * TN_NS_PER_MS);
		if (rig.a.peer_refreshes > asked) {
			rig.ticket.b[0]++; /* a new one each time */
			rig_peer_set();
		}
		asked = rig.a.peer_refreshes;
		if (ra.done && ms < 5000) {
			CU_ASSERT(ra.r.status == TN_PEER_ADDRESS && ra.r.nothing_left && ra.r.phase == TN_PHASE_CONNECT);
			rig_attempt(&ra, TN_OP_WRITE, remote, 0, near.base, 1000);
			rig_submit(&ra);
		}
	}
	CU_ASSERT(ra.done && ra.r.status == TN_PEER_ADDRESS);
	CU_ASSERT(rig.refused >= 2 && rig.refused < 20 && rig.a.peer_refreshes < 20);
	dp_stream_path_info(rig.a.t, 0, &info);
	CU_ASSERT(info.known && info.lanes == 0 && info.why == TN_PEER_ADDRESS);
	CU_ASSERT(info.seen[10] == 0xff && info.seen[15] == 9);
	CU_ASSERT_EQUAL(info.endpoints[0].status, TN_PEER_ADDRESS);
	rig.refuse = 0;
	rig_attempt(&ra, TN_OP_WRITE, remote, 0, near.base, 1000);
	rig_submit(&ra);
	for (unsigned ms = 0; ms < 6000 && !ra.done; ms += 10) {
		pass(10 * TN_NS_PER_MS);
		if (rig.a.peer_refreshes > asked)
			rig_peer_set();
		asked = rig.a.peer_refreshes;
	}
	CU_ASSERT(ra.done && ra.r.status == TN_OK);
	dp_stream_path_info(rig.a.t, 0, &info);
	CU_ASSERT(info.lanes > 0 && info.why != TN_PEER_ADDRESS);
	end();
}

static void test_session_differs(void)
{
	struct rig_attempt ra;
	begin(1000);
	memset(rig.b.session.b, 0xb3, 16);
	rig_attempt(&ra, TN_OP_WRITE, remote, 0, near.base, 1000);
	rig_submit(&ra);
	rig_steps(20);
	CU_ASSERT(rig.refused == 1 && rig.a.peer_refreshes == 1 && !ra.done);
	rig_peer_set();
	rig_steps(20);
	CU_ASSERT(ra.done && ra.r.status == TN_OK);
	end();
}

static void test_unknown_session(void)
{
	begin(1000);
	rig.a.peer.session = (struct tn_id128){ 0 };
	rig.a.t->ops->peer_set(rig.a.t, &rig.a.peer);
	struct rig_attempt ra;
	rig_attempt(&ra, TN_OP_WRITE, remote, 0, near.base, 1000);
	rig_submit(&ra);
	rig_steps(20);
	CU_ASSERT(mem.connects == 0 && rig.a.peer_refreshes == 1 && !ra.done);
	rig_peer_set();
	rig_steps(20);
	CU_ASSERT(ra.done && ra.r.status == TN_OK);
	end();
}

/* Back-off is drawn from the worker's generator: the same seed gives the same pauses, another one others. */
static void test_seed(void)
{
	struct tn_rand first[2];
	for (unsigned run = 0; run < 2; run++) {
		begin(1000);
		for (unsigned i = 0; i < 2; i++) {
			const struct tn_rand *r = &rig_stream(i ? &rig.b : &rig.a)->rand;
			if (run == 0)
				first[i] = *r;
			CU_ASSERT_EQUAL(memcmp(r, &first[i], sizeof *r), 0);
		}
		CU_ASSERT_NOT_EQUAL(memcmp(&first[0], &first[1], sizeof first[0]), 0);
		end();
	}
}

static void test_draining_peer(void)
{
	begin(1000);
	warm_up();
	CU_ASSERT(rig.b.t->ops->drain(rig.b.t));
	CU_ASSERT(rig.b.t->up); /* its own lanes go on */
	CU_ASSERT_EQUAL(rig_move(TN_OP_WRITE, remote, 0, near.base, 1000), TN_PATH_DOWN);
	rig_steps(5);
	CU_ASSERT_EQUAL(path->open_cnt, 0); /* drained and closed */
	CU_ASSERT_EQUAL(rig.a.lane_downs, 1);
	tn_container_of(rig.b.t, struct dp_stream, base)->draining = false; /* its successor */
	pass(TN_NS_PER_S);
	CU_ASSERT_EQUAL(rig_move(TN_OP_WRITE, remote, 0, near.base, 1000), TN_OK);
	end();
}

/* ---- cancel ---- */

static void cancel(struct rig_attempt *ra) { rig.a.t->ops->cancel(rig.a.t, &ra->a); }

static void test_cancel_read(void)
{
	struct rig_attempt ra;
	begin(100000);
	warm_up();
	rig_pattern(far.base, 100000, 4);
	mem.read_max = 700;
	mem.pipe_max = 3000;
	rig_attempt(&ra, TN_OP_READ, remote, 0, near.base, 100000);
	rig_submit(&ra);
	for (unsigned i = 0; i < 1000 && near.base[1000] == 0; i++)
		rig_step(); /* into the middle of a payload */
	CU_ASSERT_FATAL(!ra.done && near.base[1000] != 0);
	cancel(&ra);
	CU_ASSERT(ra.done && ra.r.status == TN_CANCELED && ra.r.nothing_left);
	memset(near.base, 0x5c, near.bytes);
	CU_ASSERT(rig_move(TN_OP_READ, remote, 50000, near.base + 50000, 30000) == TN_OK); /* the lanes go on */
	CU_ASSERT(rig_pattern_is(far.base, 100000, 4) && memcmp(near.base + 50000, far.base + 50000, 30000) == 0);
	for (size_t i = 0; i < 50000; i++)
		CU_ASSERT_FATAL(near.base[i] == 0x5c); /* memory was quiet from the moment of cancel */
	CU_ASSERT_EQUAL(path->epoch, 1);
	RIG_NUMBER(rig_protocol_errors(&rig.a, TN_SIDE_CLIENT, DP_FRAME_BAD_ID), 0);
	end();
}

static void test_cancel_queued(void)
{
	struct rig_attempt ra;
	begin(1000);
	rig_attempt(&ra, TN_OP_WRITE, remote, 0, near.base, 1000);
	rig_submit(&ra);
	cancel(&ra);
	CU_ASSERT(ra.done && ra.r.status == TN_CANCELED && ra.r.nothing_left && ra.r.phase == TN_PHASE_QUEUE);
	rig_steps(10);
	CU_ASSERT(ra.done_cnt == 1);
	end();
}

/* Two WRITEs that nothing left of yet; then the first is canceled and the way is free. */
static void cancel_the_first(struct rig_attempt *ra, struct rig_attempt *other)
{
	mem.stall[0] = true;
	rig_attempt(ra, TN_OP_WRITE, remote, 0, near.base, 1000);
	rig_submit(ra);
	rig_steps(5);
	rig_attempt(other, TN_OP_WRITE, remote, 5000, near.base + 5000, 1000);
	rig_submit(other);
	rig_steps(5);
	cancel(ra);
	CU_ASSERT(ra->done && ra->r.nothing_left);
	mem.stall[0] = false;
	for (unsigned i = 0; i < DP_PATH_LANES_MAX; i++)
		if (path->lanes[i] != NULL)
			path->lanes[i]->bytes.poll.ready(&path->lanes[i]->bytes.poll, 4 /* EPOLLOUT */);
}

static void test_cancel_unsent_write(void)
{
	struct rig_attempt ra, other;
	begin(100000);
	warm_up();
	rig_pattern(near.base + 5000, 1000, 8);
	cancel_the_first(&ra, &other);
	CU_ASSERT(rig_until(&other.done, 1000) && other.r.status == TN_OK);
	CU_ASSERT(rig_pattern_is(far.base + 5000, 1000, 8) && far.base[500] == 0);
	end();
}

/* Half of a frame is out: the rest follows from the memory, then the answer ends it. */
static void test_cancel_half_sent(void)
{
	struct rig_attempt ra;
	begin(100000);
	warm_up();
	mem.pipe_max = 4000;
	mem.stall[1] = true;
	rig_pattern(near.base, 16384, 3);
	rig_attempt(&ra, TN_OP_WRITE, remote, 0, near.base, 50000);
	rig_submit(&ra);
	rig_steps(10);
	CU_ASSERT(path->lanes[0]->tx_done > 0);
	cancel(&ra);
	CU_ASSERT(!ra.done); /* memory is busy */
	mem.stall[1] = false;
	CU_ASSERT(rig_until(&ra.done, 1000));
	CU_ASSERT(ra.r.status == TN_CANCELED && !ra.r.nothing_left && ra.r.fenced && ra.r.bytes == 16384);
	CU_ASSERT(rig_pattern_is(far.base, 16384, 3) &&
		  far.base[17000] == 0); /* one whole frame, nothing of the next */
	CU_ASSERT(path->epoch == 1 && path->ready_cnt > 0);
	end();
}

static void test_cancel_stuck(void)
{
	struct rig_attempt half, sent;
	begin(100000);
	warm_up();
	mem.stall[1] = true;
	rig_attempt(&sent, TN_OP_WRITE, remote, 0, near.base, 500);
	rig_submit(&sent);
	rig_steps(5);
	cancel(&sent);
	CU_ASSERT(!sent.done); /* it may still land: that is waited for, but not for long */
	pass(600 * TN_NS_PER_MS);
	CU_ASSERT(sent.done && !sent.r.fenced && !sent.r.nothing_left && path->open_cnt >= 1);
	mem.pipe_max = 1500;
	rig_attempt(&half, TN_OP_WRITE, remote, 0, near.base, 16000);
	rig_submit(&half);
	rig_steps(5);
	cancel(&half);
	CU_ASSERT(!half.done);
	pass(600 * TN_NS_PER_MS);
	CU_ASSERT(half.done && !half.r.fenced); /* its lane was given up */
	mem.stall[1] = false;
	pass(TN_NS_PER_S);
	CU_ASSERT_EQUAL(rig_move(TN_OP_WRITE, remote, 0, near.base, 1000), TN_OK);
	end();
}

static void test_cancel_ambiguous(void)
{
	struct rig_attempt ra;
	begin(100000);
	warm_up();
	sent_unanswered(&ra, TN_OP_WRITE, 1000);
	rig.refuse = DP_HELLO_TOO_MANY;
	reset_lane(0);
	rig_steps(5);
	CU_ASSERT(!ra.done);
	cancel(&ra);
	CU_ASSERT(ra.done && ra.done_cnt == 1 && !ra.r.fenced && !ra.r.nothing_left);
	mem.stall[1] = false;
	end();
}

/* ---- refusals and bad memory ---- */

static void test_range_and_rights(void)
{
	begin(100000);
	warm_up();
	remote->buffers[0].bytes = remote->bytes = 200000; /* a lie: more than there is */
	CU_ASSERT_EQUAL(rig_move(TN_OP_WRITE, remote, 99000, near.base, 2000), TN_RANGE);
	CU_ASSERT_EQUAL(rig_move(TN_OP_READ, remote, 100000, near.base, 1), TN_RANGE);
	struct rig_attempt ra;
	rig_attempt(&ra, TN_OP_WRITE, remote, 199999, near.base, 2);
	CU_ASSERT(rig_submit(&ra) == TN_RANGE && ra.r.nothing_left); /* known here already */
	segment->buffers[0].rights = SHR_RIGHT_REMOTE_READ;
	CU_ASSERT_EQUAL(rig_move(TN_OP_WRITE, remote, 0, near.base, 100), TN_PERMISSION);
	CU_ASSERT_EQUAL(rig_move(TN_OP_READ, remote, 0, near.base, 100), TN_OK);
	segment->buffers[0].rights = SHR_RIGHT_REMOTE_WRITE;
	CU_ASSERT_EQUAL(rig_move(TN_OP_READ, remote, 0, near.base, 100), TN_PERMISSION);
	rig_withdraw(&rig.b, 0);
	CU_ASSERT_EQUAL(rig_move(TN_OP_WRITE, remote, 0, near.base, 100), TN_STALE);
	CU_ASSERT(path->epoch == 1 && path->ready_cnt >= 1); /* refused, drained, the lane lives */
	end();
}

static void test_access_list(void)
{
	static char peers[2][TN_NAME_MAX] = { "host-z", "host-aa" };
	begin(1000);
	segment->peers = peers;
	segment->peer_cnt = 2;
	CU_ASSERT_EQUAL(rig_move(TN_OP_WRITE, remote, 0, near.base, 100), TN_PERMISSION);
	remote->buffers[0].bytes = remote->bytes = 2000;
	CU_ASSERT_EQUAL(rig_move(TN_OP_WRITE, remote, 1000, near.base, 100),
			TN_PERMISSION); /* not even its size is told */
	strcpy(peers[1], "host-a");
	segment->generation++;
	CU_ASSERT_EQUAL(rig_move(TN_OP_WRITE, remote, 0, near.base, 100), TN_OK);
	segment->access = SHR_ACCESS_LOCAL_ALL; /* not for other hosts at all */
	segment->generation++;
	CU_ASSERT_EQUAL(rig_move(TN_OP_WRITE, remote, 0, near.base, 100), TN_PERMISSION);
	end();
}

/* To ourselves: a row of its own, an id that nobody else knows, and no list of peers is asked. */
static void test_to_ourselves(void)
{
	begin(1000);
	segment->access = SHR_ACCESS_SAME_UID;
	remote->local = true;
	remote->peer_index = rig.a.peer.index = DP_PEER_SELF;
	memset(rig.a.peer.id.b, 0x99, sizeof rig.a.peer.id.b);
	CU_ASSERT_EQUAL(dp_stream_reach(rig.a.t, remote), DP_REACH_NO); /* not told of it yet */
	rig_peer_set();
	path = &rig_stream(&rig.a)->paths[0];
	CU_ASSERT_EQUAL(dp_stream_reach(rig.a.t, remote), DP_REACH_CONNECT);
	rig_steps(20);
	CU_ASSERT(rig.hellos == 0 && path->open_cnt == 0); /* nobody needs it */
	CU_ASSERT_EQUAL(rig_move(TN_OP_WRITE, remote, 0, near.base, 100), TN_PERMISSION); /* from another host */
	CU_ASSERT(tn_peer_id_eq(&rig.sender, &rig.a.peer.id) && !tn_peer_id_eq(&rig.sender, &rig.a.self));
	rig.itself = true;
	reset_lane(0);
	rig_steps(5);
	pass(TN_NS_PER_S);
	CU_ASSERT_EQUAL(rig_move(TN_OP_WRITE, remote, 0, near.base, 100), TN_OK);
	CU_ASSERT(path->ready_cnt == 1 && rig_stream(&rig.a)->paths[1].open_cnt == 0);
	CU_ASSERT_EQUAL(dp_stream_lane_cnt(rig.a.t, DP_PEER_SELF), 1);
	segment->buffers[0].rights = SHR_RIGHT_REMOTE_READ;
	CU_ASSERT_EQUAL(rig_move(TN_OP_WRITE, remote, 0, near.base, 100), TN_PERMISSION);
	end();
}

static uint64_t events(unsigned op, unsigned event)
{
	return rig_counter(&rig.a, TN_C3(STREAM_EVENTS_TOTAL, TN_STREAM_TCP, op, event).cell);
}

static void bad_page(uint8_t op, const uint8_t *bad, tn_status expected)
{
	struct rig_attempt ra, good;
	uint32_t epoch = path->epoch;
	mem.bad = bad;
	rig_attempt(&ra, op, remote, 0, near.base, 30000);
	rig_attempt(&good, op, remote, 50000, near.base + 50000, 1000);
	rig_submit(&ra);
	rig_submit(&good);
	CU_ASSERT(rig_until(&ra.done, 1000) && rig_until(&good.done, 1000));
	CU_ASSERT(ra.r.status == expected && good.r.status == TN_OK);
	CU_ASSERT(path->epoch == epoch && path->ready_cnt >= 1); /* it costs the operation, not the lane */
	mem.bad = NULL;
}

static void test_bad_memory(void)
{
	begin(100000);
	warm_up();
	bad_page(TN_OP_WRITE, near.base, TN_FAULT);
	bad_page(TN_OP_WRITE, near.base + 20000, TN_FAULT);
	bad_page(TN_OP_READ, near.base + 20000, TN_FAULT);
	bad_page(TN_OP_WRITE, far.base + 20000, TN_FAULT); /* the other end says so */
	mem.bad = far.base + 700;
	struct rig_attempt ra;
	rig_attempt(&ra, TN_OP_WRITE, remote, 0, near.base, 1000);
	rig_submit(&ra);
	CU_ASSERT(rig_until(&ra.done, 1000) && ra.r.status == TN_FAULT);
	CU_ASSERT(!ra.r.nothing_left && ra.r.fenced); /* what is in front of that page may be written */
	mem.bad = NULL;
	end();
}

/* The dropped one in front of it is not to blame: the one with the bad page ends, and the worker is not kept. */
static void test_bad_memory_behind_dropped(void)
{
	struct rig_attempt ra, other;
	begin(100000);
	warm_up();
	mem.bad = near.base + 5000;
	cancel_the_first(&ra, &other);
	CU_ASSERT(rig_until(&other.done, 1000) && other.r.status == TN_FAULT && other.r.nothing_left);
	CU_ASSERT(path->epoch == 1 && path->ready_cnt >= 1);
	mem.bad = NULL;
	CU_ASSERT_EQUAL(rig_move(TN_OP_WRITE, remote, 0, near.base, 10000), TN_OK);
	end();
}

/* An answer that breaks off costs the lane once; then its segment is looked at first, and only the request fails. */
static void test_lost_page_over_there(void)
{
	begin(100000);
	warm_up();
	CU_ASSERT_EQUAL_FATAL(dp_fault_install(), TN_OK);
	uint8_t *page = (uint8_t *)(((uintptr_t)far.base + 12000) & ~(uintptr_t)4095); /* more than a chunk from the start */
	rig_page_lose(page);
	mem.bad = page;
	CU_ASSERT_EQUAL(rig_move(TN_OP_READ, remote, 0, near.base, 30000), TN_PATH_DOWN); /* half of it was out */
	pass(TN_NS_PER_S);
	CU_ASSERT_EQUAL(rig_move(TN_OP_WRITE, remote, 50000, near.base, 100), TN_OK);
	uint64_t connections = events(TN_OP_READ, TN_STREAM_EVENT_CONNECT_OK) + events(TN_OP_WRITE, TN_STREAM_EVENT_CONNECT_OK);
	for (unsigned i = 0; i < 3; i++) {
		struct rig_attempt ra;
		rig_attempt(&ra, TN_OP_READ, remote, 0, near.base, 30000);
		rig_submit(&ra);
		CU_ASSERT(rig_until(&ra.done, 1000) && ra.r.status == TN_FAULT && ra.r.phase == TN_PHASE_COMPLETION &&
			  ra.r.reason == TN_REASON_MR_ERROR);
		CU_ASSERT_EQUAL(rig_move(TN_OP_READ, remote, 50000, near.base, 30000), TN_OK);
	}
	RIG_NUMBER(events(TN_OP_READ, TN_STREAM_EVENT_CONNECT_OK) + events(TN_OP_WRITE, TN_STREAM_EVENT_CONNECT_OK), connections);
	RIG_NUMBER(rig_counter(&rig.b, TN_C1(MEMORY_FAULTS_TOTAL, TN_TRANSPORT_TCP).cell), 4);
	mem.bad = NULL;
	rig_page_find(page);
	CU_ASSERT_EQUAL(rig_move(TN_OP_READ, remote, 0, near.base, 30000), TN_OK); /* suspected, and innocent */
	end();
}

static void test_bad_memory_half_sent(void)
{
	struct rig_attempt ra;
	begin(100000);
	warm_up();
	mem.write_max = 1000;
	mem.bad = near.base + 5000; /* the header and some thousand bytes go out, then a page is gone */
	rig_attempt(&ra, TN_OP_WRITE, remote, 0, near.base, 16000);
	rig_submit(&ra);
	CU_ASSERT(rig_until(&ra.done, 1000));
	CU_ASSERT(ra.r.status == TN_FAULT && ra.r.reason == TN_REASON_MR_ERROR && path->ready_cnt >= 1 &&
		  path->epoch == 1);
	mem.bad = NULL;
	CU_ASSERT_EQUAL(rig_move(TN_OP_WRITE, remote, 0, near.base, 16000), TN_OK);
	end();
}

static void test_numbers(void)
{
	const unsigned k = TN_STREAM_TCP;
	begin(100000);
	for (unsigned i = 0; i < 300; i++)
		CU_ASSERT_EQUAL(rig_move(i % 2 ? TN_OP_READ : TN_OP_WRITE, remote, 0, near.base, 100), TN_OK);
	RIG_NUMBER(events(TN_OP_READ, TN_STREAM_EVENT_COMPLETED), 150);
	RIG_NUMBER(events(TN_OP_WRITE, TN_STREAM_EVENT_QUEUED), 150);
	RIG_NUMBER(events(TN_OP_WRITE, TN_STREAM_EVENT_ATTEMPT), 150);
	RIG_NUMBER(events(TN_OP_WRITE, TN_STREAM_EVENT_CONNECT_OK), 1);
	RIG_NUMBER(rig_counter(&rig.a, TN_G1(STREAM_QUEUE_DEPTH, k).cell), 0);
	RIG_NUMBER(rig_counter(&rig.a, TN_G1(STREAM_ADMITTED_BYTES, k).cell), 0);
	RIG_NUMBER(rig_counter(&rig.a, TN_G1(STREAM_BUSY_WORKERS, k).cell), 0);
	RIG_NUMBER(rig_counter(&rig.a, TN_G1(STREAM_CONNECTIONS, k).cell), 1);
	RIG_NUMBER(rig_counter(&rig.a, TN_C1(TCP_RETRANSMISSIONS_TOTAL, k).cell), 3); /* of the sample at 256 */
	end();
}

/* A probe opens a lane that no request asked for; its answer, or that of a whole round of addresses, is told once. */
static void test_probe(void)
{
	begin(1000);
	struct dp_transport *t = &rig_stream(&rig.a)->base;
	uint64_t until = rig.virtual_ns + 2 * TN_NS_PER_S;
	CU_ASSERT_EQUAL(dp_stream_probe(t, 77, until), DP_REACH_NO);
	rig.refuse = DP_HELLO_TOO_MANY;
	CU_ASSERT_EQUAL(dp_stream_probe(t, 0, until), DP_REACH_CONNECT);
	rig_steps(20);
	CU_ASSERT(rig.a.probes_failed == 1 && rig.a.probes_ok == 0 && path->open_cnt == 0);
	rig.refuse = 0;
	pass(TN_NS_PER_S);
	CU_ASSERT_EQUAL(path->open_cnt, 0); /* it is over */
	CU_ASSERT_EQUAL(dp_stream_probe(t, 0, rig.virtual_ns + 2 * TN_NS_PER_S), DP_REACH_CONNECT);
	pass(TN_NS_PER_S);
	CU_ASSERT(rig.a.probes_failed == 1 && rig.a.probes_ok == 1 && path->ready_cnt == 1);
	CU_ASSERT_EQUAL(dp_stream_probe(t, 0, until), DP_REACH_READY);
	pass(3 * TN_NS_PER_S);
	CU_ASSERT(rig.a.probes_failed == 1 && rig.a.probes_ok == 1 && path->ready_cnt == 1);
	reset_lane(0);
	rig_steps(10);
	rig.manual = true; /* no answer: whoever asked gives up by itself */
	CU_ASSERT_EQUAL(dp_stream_probe(t, 0, rig.virtual_ns + TN_NS_PER_S / 2), DP_REACH_CONNECT);
	pass(TN_NS_PER_S);
	CU_ASSERT(rig.a.probes_failed + rig.a.probes_ok == 2 && path->probe_ns == 0);
	/* A control lane that does not come up says nothing about data. */
	uint32_t no = rig.a.probes_failed;
	CU_ASSERT_EQUAL(t->ops->datagram_send(t, 0, "hello", 5), TN_OK);
	CU_ASSERT_EQUAL(dp_stream_probe(t, 0, rig.virtual_ns + TN_NS_PER_S), DP_REACH_CONNECT);
	for (unsigned i = 0; i < 50 && !path->control; i++)
		pass(10 * TN_NS_PER_MS);
	CU_ASSERT_TRUE_FATAL(path->control && path->open_cnt == 1);
	dp_lane_close(path->control, TN_PATH_DOWN, DP_FRAME_OK, true);
	CU_ASSERT(path->probe_ns != 0 && rig.a.probes_failed == no);
	rig.manual = false;
	end();
}

/* ---- urgent beside bulk ---- */

/* Bulk of `bytes` at the lowest priority; nobody answers while `stuck`. */
static void bulk(struct rig_attempt *ra, uint8_t op, size_t bytes, bool stuck)
{
	mem.stall[1] = stuck;
	rig_attempt(ra, op, remote, 0, near.base, bytes);
	ra->a.priority = TN_PRIORITY_LOW;
	CU_ASSERT_EQUAL_FATAL(rig_submit(ra), TN_OK);
}

static void urgent(struct rig_attempt *ra, size_t bytes)
{
	rig_attempt(ra, TN_OP_WRITE, remote, 0, near.base, bytes);
	ra->a.priority = TN_PRIORITY_HIGH;
	CU_ASSERT_EQUAL_FATAL(rig_submit(ra), TN_OK);
}

/* The first urgent request that meets bulk goes with it, and has the lane opened that the next ones take. */
static void with_urgent_lane(size_t bytes)
{
	struct rig_attempt big, first;
	bulk(&big, TN_OP_WRITE, bytes, false);
	CU_ASSERT(rig_until(&big.done, 2000));
	bulk(&big, TN_OP_WRITE, bytes, true);
	rig_steps(3);
	urgent(&first, 1000);
	mem.stall[1] = false;
	CU_ASSERT(rig_until(&first.done, 2000) && rig_until(&big.done, 2000));
	rig_steps(10);
	struct dp_lane *l = path->lanes[DP_PATH_URGENT];
	CU_ASSERT_FATAL(l != NULL && l->state == DP_LANE_READY && l->urgent && !l->control);
}

static void test_urgent_lane(void)
{
	struct rig_attempt big, small, large;
	uint32_t hellos;
	begin(300000);
	urgent(&small, 1000);
	CU_ASSERT(rig_until(&small.done, 2000));
	rig_steps(10);
	CU_ASSERT(path->lanes[DP_PATH_URGENT] == NULL); /* alone, one lane is as good as another */
	with_urgent_lane(300000);
	CU_ASSERT_EQUAL(path->ready_cnt, 2); /* it is not counted */
	tn_list_foreach(node, &rig_stream(&rig.b)->live) {
		const struct dp_lane *l = tn_list_entry(node, struct dp_lane, live_link);
		CU_ASSERT_EQUAL(l->urgent, l->index == DP_HELLO_LANE_URGENT);
	}
	bulk(&big, TN_OP_READ, 300000, true);
	rig_steps(3);
	hellos = rig.hellos;
	urgent(&large, 70000); /* bulk all the same */
	urgent(&small, 4096);
	rig_steps(2);
	CU_ASSERT_EQUAL(path->lanes[DP_PATH_URGENT]->out_bytes, 4096);
	mem.stall[1] = false;
	CU_ASSERT(rig_until(&small.done, 2000) && small.r.status == TN_OK);
	CU_ASSERT(!big.done && !large.done); /* it stood behind nothing of them */
	CU_ASSERT(rig_until(&big.done, 2000) && rig_until(&large.done, 2000));
	CU_ASSERT_EQUAL(rig.hellos, hellos);
	pass(61 * TN_NS_PER_S);
	CU_ASSERT(path->lanes[DP_PATH_URGENT] == NULL && path->open_cnt == 0); /* unused for long */
	end();
}

/* Its loss is that of any lane that carries data. */
static void test_urgent_lane_lost(void)
{
	struct rig_attempt ra;
	begin(300000);
	with_urgent_lane(300000);
	mem.stall[1] = true;
	urgent(&ra, 1000);
	rig_steps(10);
	CU_ASSERT_EQUAL_FATAL(path->lanes[DP_PATH_URGENT]->out_bytes, 1000);
	reset_lane(DP_PATH_URGENT);
	rig_steps(1);
	CU_ASSERT(path->epoch == 2 && path->open_cnt == 0 && path->lanes[DP_PATH_URGENT] == NULL && !ra.done);
	mem.stall[1] = false;
	pass(TN_NS_PER_S);
	CU_ASSERT(ra.done && ra.r.fenced);
	CU_ASSERT_EQUAL(rig_move(TN_OP_WRITE, remote, 0, near.base, 1000), TN_OK);
	end();
}

static size_t written(void)
{
	size_t sum = 0;
	for (int i = 0; i < MEM_LINKS; i++)
		sum += mem.link[i].used ? mem_waiting(i, 1) : 0;
	return sum;
}

/* While urgent requests come, a turn of the worker moves a bounded part of bulk, and none between an urgent answer and
 * whoever waits for it. */
static void test_bulk_in_pieces(void)
{
	struct rig_attempt big, small;
	struct dp_stream_cfg cfg = rig_cfg();
	cfg.lanes_per_peer = 4;
	cfg.frame_bytes = 256 * 1024;
	cfg.lane_window_bytes = 1024 * 1024;
	begin_with(&cfg, 4 * 1024 * 1024);
	with_urgent_lane(4 * 1024 * 1024);
	for (unsigned i = 0; i < 2; i++) { /* all four lanes are open */
		bulk(&big, TN_OP_WRITE, 4 * 1024 * 1024, false);
		CU_ASSERT(rig_until(&big.done, 2000));
	}
	CU_ASSERT_EQUAL_FATAL(path->ready_cnt, 4);
	CU_ASSERT_EQUAL(path->lanes[DP_PATH_URGENT]->frame_bytes, DP_HELLO_URGENT_BYTES); /* no bulk on it, says either end */
	tn_list_foreach(node, &rig_stream(&rig.b)->live)
		CU_ASSERT_EQUAL(tn_list_entry(node, struct dp_lane, live_link)->frame_bytes,
				tn_list_entry(node, struct dp_lane, live_link)->urgent ? DP_HELLO_URGENT_BYTES : 256 * 1024);
	rig.virtual_ns += TN_NS_PER_MS;
	bulk(&big, TN_OP_WRITE, 4 * 1024 * 1024, true);
	rig.a.t->ops->progress(rig.a.t, rig.virtual_ns, 64);
	CU_ASSERT(written() > 0 && written() <= 512 * 1024); /* somebody urgent was here a moment ago */
	mem.stall[1] = false;
	CU_ASSERT(rig_until(&big.done, 2000));
	bulk(&big, TN_OP_WRITE, 4 * 1024 * 1024, true);
	urgent(&small, 100);
	rig.a.t->ops->progress(rig.a.t, rig.virtual_ns, 64);
	CU_ASSERT(written() <= 200); /* its request first */
	mem.stall[1] = false;
	for (unsigned i = 0; i < 100 && !small.done; i++) {
		size_t before = written();
		rig_step();
		CU_ASSERT(small.done || written() <= before + 512 * 1024);
	}
	CU_ASSERT(small.done && !big.done);
	CU_ASSERT(rig_until(&big.done, 2000)); /* its turns come all the same */
	rig.virtual_ns += 2 * TN_NS_PER_S;
	bulk(&big, TN_OP_WRITE, 4 * 1024 * 1024, true);
	rig.a.t->ops->progress(rig.a.t, rig.virtual_ns, 64);
	CU_ASSERT_EQUAL(written(), 4 * MEM_PIPE_BYTES); /* nobody urgent for long: as much as goes */
	mem.stall[1] = false;
	CU_ASSERT(rig_until(&big.done, 2000));
	end();
}

TN_TEST_MAIN("stream paths",
	{ "an urgent request has a lane of its own", test_urgent_lane },
	{ "the urgent lane is lost", test_urgent_lane_lost },
	{ "bulk moves in pieces beside urgent ones", test_bulk_in_pieces },
	{ "probe", test_probe },
	{ "fence", test_fence },
	{ "no fence until the deadline", test_unfenced_at_deadline },
	{ "a break closes every lane", test_break_closes_all },
	{ "unsent WRITE", test_unsent_is_safe },
	{ "READ", test_read_is_safe },
	{ "half committed", test_half_committed },
	{ "half a frame landed", test_half_a_frame_landed },
	{ "new incarnation", test_new_incarnation },
	{ "ticket refused", test_ticket_refused },
	{ "ticket stays refused", test_ticket_stays_refused },
	{ "each waits its own time", test_each_waits_its_own_time },
	{ "address refused", test_address_refused },
	{ "session differs", test_session_differs },
	{ "session not known", test_unknown_session },
	{ "peer drains", test_draining_peer },
	{ "the worker's seed", test_seed },
	{ "cancel READ", test_cancel_read },
	{ "cancel queued", test_cancel_queued },
	{ "cancel unsent WRITE", test_cancel_unsent_write },
	{ "cancel half-sent WRITE", test_cancel_half_sent },
	{ "cancel stuck WRITE", test_cancel_stuck },
	{ "cancel ambiguous WRITE", test_cancel_ambiguous },
	{ "range and rights", test_range_and_rights },
	{ "access list", test_access_list },
	{ "to ourselves", test_to_ourselves },
	{ "bad memory", test_bad_memory },
	{ "bad memory behind a dropped WRITE", test_bad_memory_behind_dropped },
	{ "lost page over there", test_lost_page_over_there },
	{ "bad memory in half a frame", test_bad_memory_half_sent },
	{ "numbers", test_numbers })
