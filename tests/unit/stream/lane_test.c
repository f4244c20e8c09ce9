/* SPDX-License-Identifier: Apache-2.0
 * Lanes over memory links: reads and writes cut at every place, order, windows and backlog, time limits, idle lanes,
 * back-off of connects. The clock is virtual where time matters. */
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "dataplane/request/state.h"
#include "tests/unit/cu.h"
#include "tests/unit/stream/mem_net.h"
#include "tests/unit/stream/rig.h"

#define ALL_RIGHTS (SHR_RIGHT_REMOTE_READ | SHR_RIGHT_REMOTE_WRITE)

static struct rig_memory far, near;
static struct dp_remote *remote;

static void begin(const struct dp_stream_cfg *cfg, size_t bytes)
{
	rig_start(cfg);
	far = rig_memory(bytes, 0);
	near = rig_memory(bytes, 0);
	remote = rig_remote(rig_publish(&rig.b, 0, &far, 1, ALL_RIGHTS, SHR_ACCESS_PEERS));
}

static void end(void)
{
	CU_ASSERT(rig_guards_intact(&far) && rig_guards_intact(&near));
	CU_ASSERT_EQUAL(rig_stream(&rig.a)->admitted, 0);
	rig_stop();
	free(remote);
	rig_memory_free(&far);
	rig_memory_free(&near);
}

static void go_virtual(void)
{
	rig.virtual_ns = tn_now_ns();
	rig.virtual_time = true;
}

static void pass(uint64_t ns)
{
	rig.virtual_ns += ns;
	rig_steps(20);
}

static uint32_t open_ends(int end)
{
	uint32_t cnt = 0;
	for (int i = 0; i < MEM_LINKS; i++)
		cnt += mem_is_open(i, end);
	return cnt;
}

/* ---- cut reads and writes ---- */

static void there_and_back(size_t bytes, uint64_t seed)
{
	rig_pattern(near.base, bytes, seed);
	CU_ASSERT_EQUAL(rig_move(TN_OP_WRITE, remote, 0, near.base, bytes), TN_OK);
	CU_ASSERT(rig_pattern_is(far.base, bytes, seed));
	memset(near.base, 0, bytes);
	CU_ASSERT_EQUAL(rig_move(TN_OP_READ, remote, 0, near.base, bytes), TN_OK);
	CU_ASSERT(rig_pattern_is(near.base, bytes, seed));
}

static void test_dribble(void)
{
	begin(NULL, 40000);
	mem.read_max = mem.write_max = 1;
	there_and_back(20000, 1); /* two frames, byte by byte, HELLO included */
	end();
}

static void test_every_cut(void)
{
	begin(NULL, 40000);
	for (size_t cut = 1; cut < 120; cut++) {
		mem.read_max = cut;
		mem.write_max = cut % 3 ? cut : 0;
		mem.pipe_max = cut % 5 == 0 ? cut : 0;
		there_and_back(300 + cut, cut);
	}
	end();
}

/* Runs of small operations: headers come many at a time, also followed by payload in the same read. */
static void test_runs(void)
{
	enum { N = 40 };
	static struct rig_attempt ra[N];
	begin(NULL, N * 256);
	for (size_t cut = 1; cut < 700; cut += cut < 60 ? 1 : 37) {
		mem.read_max = cut;
		mem.write_max = cut * 2;
		for (unsigned i = 0; i < N; i++) {
			bool write = (cut + i) % 7 == 0;
			rig_pattern((write ? near.base : far.base) + i * 256, 200, i + cut);
			rig_attempt(&ra[i], write ? TN_OP_WRITE : TN_OP_READ, remote, i * 256, near.base + i * 256,
				    200);
			CU_ASSERT_EQUAL_FATAL(rig_submit(&ra[i]), TN_OK);
		}
		for (unsigned i = 0; i < N; i++) {
			CU_ASSERT_FATAL(rig_until(&ra[i].done, 5000));
			CU_ASSERT(ra[i].r.status == TN_OK);
			CU_ASSERT(rig_pattern_is(far.base + i * 256, 200, i + cut) &&
				  rig_pattern_is(near.base + i * 256, 200, i + cut));
		}
	}
	end();
}

/* ---- bounds ---- */

static void test_ring_and_window(void)
{
	enum { N = 600 };
	static struct rig_attempt ra[N];
	struct dp_stream_cfg cfg = rig_cfg();
	cfg.xfers = N;
	cfg.lanes_per_peer = 1;
	begin(&cfg, N * 64);
	rig_pattern(near.base, N * 64, 5);
	mem.pipe_max = 4096;
	for (unsigned i = 0; i < N; i++) {
		rig_attempt(&ra[i], TN_OP_WRITE, remote, i * 64, near.base + i * 64, 64);
		CU_ASSERT_EQUAL_FATAL(rig_submit(&ra[i]), TN_OK);
	}
	struct rig_attempt more;
	rig_attempt(&more, TN_OP_WRITE, remote, 0, near.base, 64);
	CU_ASSERT_EQUAL(rig_submit(&more), TN_AGAIN); /* the pool is bounded, and says so */
	uint32_t most = 0;
	for (unsigned i = 0; i < N; i++)
		while (!ra[i].done) {
			rig_step();
			struct dp_lane *l = rig_stream(&rig.a)->paths[1].lanes[0];
			most = l != NULL && l->tail - l->head > most ? l->tail - l->head : most;
			CU_ASSERT_FATAL(l == NULL || l->out_bytes <= cfg.lane_window_bytes);
		}
	CU_ASSERT(most <= DP_LANE_OPS && most > 100);
	CU_ASSERT(rig_pattern_is(far.base, N * 64, 5));
	end();
}

/* The reader stops reading: the server keeps a bounded number of answers and resumes. */
static void test_backlog(void)
{
	struct dp_stream_cfg cfg = rig_cfg();
	cfg.lane_window_bytes = 32768;
	begin(NULL, 400000);
	rig_stream(&rig.b)->cfg.lane_window_bytes =
		cfg.lane_window_bytes; /* the server allows less than the client asks */
	rig_stream(&rig.a)->cfg.lane_window_bytes = 262144;
	mem.pipe_max = 5000;
	rig_pattern(far.base, 400000, 9);
	struct rig_attempt ra;
	rig_attempt(&ra, TN_OP_READ, remote, 0, near.base, 400000);
	CU_ASSERT_EQUAL(rig_submit(&ra), TN_OK);
	uint64_t most = 0;
	while (!ra.done) {
		rig_step();
		tn_list_foreach(node, &rig_stream(&rig.b)->live) {
			struct dp_lane *l = tn_list_entry(node, struct dp_lane, live_link);
			most = l->tx_backlog > most ? l->tx_backlog : most;
		}
	}
	CU_ASSERT_EQUAL(ra.r.status, TN_OK);
	CU_ASSERT(most >= 32768 && most <= 32768 + 16384);
	CU_ASSERT(rig_pattern_is(near.base, 400000, 9));
	end();
}

static void test_two_lanes(void)
{
	begin(NULL, 200000);
	CU_ASSERT_EQUAL(rig_move(TN_OP_WRITE, remote, 0, near.base, 200000), TN_OK);
	CU_ASSERT_EQUAL(rig_move(TN_OP_WRITE, remote, 0, near.base, 200000), TN_OK);
	CU_ASSERT_EQUAL(rig.a.t->ops->lane_cnt(rig.a.t, 0), 2);
	const struct dp_path *p = &rig_stream(&rig.a)->paths[1];
	CU_ASSERT(p->lanes[0]->op_cnt > 2 && p->lanes[1]->op_cnt > 2);
	CU_ASSERT_EQUAL(rig.a.lane_ups, 1);
	end();
}

/* A small or urgent attempt does not wait until a large one is through. */
static void test_small_first(void)
{
	struct dp_stream_cfg cfg = rig_cfg();
	cfg.lanes_per_peer = 1;
	begin(&cfg, 3000000);
	mem.pipe_max = 8192;
	struct rig_attempt large, small, urgent;
	rig_attempt(&large, TN_OP_WRITE, remote, 0, near.base, 2000000);
	rig_attempt(&small, TN_OP_WRITE, remote, 2000000, near.base, 100);
	rig_attempt(&urgent, TN_OP_WRITE, remote, 2500000, near.base, 100000);
	urgent.a.priority = TN_PRIORITY_HIGH;
	rig_submit(&large);
	rig_steps(60);
	CU_ASSERT(!large.done && large.a.t_done > 0);
	uint64_t before = large.a.t_next;
	rig_submit(&small);
	rig_submit(&urgent);
	CU_ASSERT(rig_until(&urgent.done, 2000));
	CU_ASSERT(!large.done && large.a.t_next - before <= 65536); /* no more than the window behind it */
	CU_ASSERT(rig_until(&small.done, 2000));
	CU_ASSERT(!large.done && large.a.t_next - before <= 2 * 65536);
	CU_ASSERT(rig_until(&large.done, 5000));
	end();
}

/* ---- time ---- */

static void test_idle(void)
{
	begin(NULL, 1000);
	go_virtual();
	CU_ASSERT_EQUAL(rig_move(TN_OP_WRITE, remote, 0, near.base, 1000), TN_OK);
	CU_ASSERT(open_ends(0) >= 1 && open_ends(1) == open_ends(0));
	pass(59 * TN_NS_PER_S);
	CU_ASSERT(open_ends(0) >= 1);
	pass(2 * TN_NS_PER_S);
	CU_ASSERT(open_ends(0) == 0 && open_ends(1) == 0);
	CU_ASSERT_EQUAL(rig.a.lane_downs, 1);
	CU_ASSERT_EQUAL(tn_load_relaxed32(&rig.conn_cnt), 0);
	RIG_NUMBER(rig_counter(&rig.b, TN_G1(STREAM_CONNECTIONS, TN_STREAM_TCP).cell), 0);
	CU_ASSERT_EQUAL(rig_move(TN_OP_WRITE, remote, 0, near.base, 1000), TN_OK); /* and comes back at once */
	CU_ASSERT_EQUAL(rig_stream(&rig.a)->paths[1].epoch, 1);
	end();
}

static void test_progress_timeout(void)
{
	begin(NULL, 1000);
	go_virtual();
	CU_ASSERT_EQUAL(rig_move(TN_OP_READ, remote, 0, near.base, 1000), TN_OK);
	mem.stall[1] = true; /* the receiver hangs */
	struct rig_attempt ra;
	rig_attempt(&ra, TN_OP_READ, remote, 0, near.base, 1000);
	rig_submit(&ra);
	rig_steps(10);
	pass(1900 * TN_NS_PER_MS);
	CU_ASSERT(!ra.done);
	CU_ASSERT(rig.a.t->ops->next_timer_ns(rig.a.t) <= rig.virtual_ns + 200 * TN_NS_PER_MS);
	pass(200 * TN_NS_PER_MS);
	CU_ASSERT(ra.done && ra.r.status == TN_PATH_TIMEOUT && ra.r.reason == TN_REASON_TIMEOUT && ra.r.nothing_left);
	CU_ASSERT_EQUAL(rig_stream(&rig.a)->paths[1].epoch, 1); /* a READ needs no fence */
	mem.stall[1] = false;
	pass(TN_NS_PER_S);
	CU_ASSERT_EQUAL(rig_move(TN_OP_READ, remote, 0, near.base, 1000), TN_OK);
	end();
}

static void test_hello_timeout(void)
{
	begin(NULL, 1000);
	go_virtual();
	rig.manual = true; /* connected, but nobody answers */
	struct rig_attempt ra;
	rig_attempt(&ra, TN_OP_WRITE, remote, 0, near.base, 1000);
	rig_submit(&ra);
	rig_steps(10);
	pass(900 * TN_NS_PER_MS);
	CU_ASSERT(!ra.done && open_ends(0) == 1);
	pass(200 * TN_NS_PER_MS);
	CU_ASSERT(ra.done && ra.r.phase == TN_PHASE_CONNECT && ra.r.reason == TN_REASON_UNAVAILABLE &&
		  ra.r.nothing_left);
	CU_ASSERT(rig.a.peer_refreshes >= 1);
	end();
}

static void test_backoff(void)
{
	begin(NULL, 1000);
	go_virtual();
	mem.refuse = UINT32_MAX;
	struct rig_attempt ra;
	for (unsigned i = 0; i < 10; i++) { /* attempt after attempt, one after the other fails */
		rig_attempt(&ra, TN_OP_WRITE, remote, 0, near.base, 1000);
		rig_submit(&ra);
		for (unsigned ms = 0; ms < 1100 && !ra.done; ms++)
			pass(TN_NS_PER_MS);
		CU_ASSERT(ra.done && ra.r.status == TN_PATH_DOWN && ra.r.nothing_left);
	}
	/* 10 s: about eight doublings up to 1 s, then at most two per second */
	CU_ASSERT(mem.connects >= 12 && mem.connects <= 32);
	CU_ASSERT(rig.a.peer_refreshes >= 2 && rig.a.peer_refreshes <= 10);
	mem.refuse = 0;
	rig_attempt(&ra, TN_OP_WRITE, remote, 0, near.base, 1000);
	rig_submit(&ra);
	pass(TN_NS_PER_S - 1);
	rig_steps(10);
	CU_ASSERT(ra.done && ra.r.status == TN_OK);
	end();
}

static void test_addresses(void)
{
	begin(NULL, 1000);
	rig.a.peer.of[TN_TRANSPORT_TCP].cnt = 3;
	rig_peer_set();
	mem.refuse = 2; /* the third address answers: no pause between addresses */
	uint64_t t0 = tn_now_ns();
	CU_ASSERT_EQUAL(rig_move(TN_OP_WRITE, remote, 0, near.base, 1000), TN_OK);
	CU_ASSERT(tn_now_ns() - t0 < 500 * TN_NS_PER_MS && mem.connects == 3);
	rig.a.peer.of[TN_TRANSPORT_TCP].cnt = 0;
	rig_peer_set();
	CU_ASSERT_EQUAL(rig.a.t->ops->reach(rig.a.t, remote), DP_REACH_NO);
	struct rig_attempt ra;
	rig_attempt(&ra, TN_OP_WRITE, remote, 0, near.base, 1000);
	CU_ASSERT_EQUAL(rig_submit(&ra), TN_PEER_DOWN);
	CU_ASSERT(ra.r.nothing_left);
	end();
}

#if TENT_HOOKS
static uint32_t seen;
static void see(const struct dp_machine *m, unsigned from, unsigned to)
{
	seen += m == &dp_lane_machine && from == DP_LANE_READY && to == DP_LANE_DRAINING;
}
#endif

static void test_observer(void)
{
#if TENT_HOOKS
	static struct dp_lane l = { .state = DP_LANE_READY };
	dp_move_seen = see;
	dp_lane_move(&l, DP_LANE_DRAINING);
	dp_move_seen = NULL;
	CU_ASSERT_EQUAL(seen, 1);
#endif
}

TN_TEST_MAIN("stream lanes",
	{ "an observer sees the moves", test_observer },
	{ "one byte at a time", test_dribble },
	{ "cut at every place", test_every_cut },
	{ "runs of small operations", test_runs },
	{ "ring and window", test_ring_and_window },
	{ "backlog", test_backlog },
	{ "two lanes", test_two_lanes },
	{ "small and urgent first", test_small_first },
	{ "idle", test_idle },
	{ "progress timeout", test_progress_timeout },
	{ "nobody answers HELLO", test_hello_timeout },
	{ "back-off", test_backoff },
	{ "addresses", test_addresses })
