/* SPDX-License-Identifier: Apache-2.0
 * A transport is switched off and on while requests use it: what runs may end, then moves by the replay law; what is queued
 * or waits chooses anew; what nothing else can serve waits. Every case ends with the contract's equations and empty pools. */
#include "tests/unit/dataplane/script.h"

static const struct script_step hang = { SCRIPT_HANG, { 0 } };

static uint64_t turn(struct rig *g, enum tn_transport kind, bool on, uint32_t grace_ms)
{
	uint64_t id = rig_post(g, (struct dp_cmd){ .kind = DP_CMD_TRANSPORT, .num = kind, .num2 = on, .len = grace_ms, .fd = -1 });
	rig_steps(g, 2);
	return id;
}

static void test_traffic_moves(void)
{
	static const char *const sets[] = { "admission/merge=false", "admission/peer_window_owners=2" };
	struct rig g;
	struct shr_cqe_shm c;
	unsigned tcp = 0;
	rig_open(&g, sets, 2, script_both);
	struct dp_remote *r = script_open_remote(&g, 1);
	script_rdma.beyond = hang;
	for (uint64_t i = 1; i <= 4; i++) /* two run, two are queued behind them */
		rig_submit(&g, script_sqe(SHR_OP_WRITE, i, i * 4096, 4096));
	rig_advance(&g, RIG_MS);
	CU_ASSERT_EQUAL_FATAL(script_rdma.held_cnt, 2);
	uint64_t id = turn(&g, TN_TRANSPORT_RDMA, false, 100);
	struct dp_result ok = { .status = TN_OK };
	script_end(&script_rdma, 0, &ok); /* within the grace */
	rig_advance(&g, 50 * RIG_MS);
	CU_ASSERT(rig_poll(&g, &c) && c.status == TN_OK && c.transport == TN_TRANSPORT_RDMA);
	CU_ASSERT(g.acked != id && script_rdma.held_cnt == 1 && script_rdma.cancels == 0);
	rig_advance(&g, 60 * RIG_MS);
	rig_advance(&g, RIG_MS);
	CU_ASSERT(g.acked == id && script_rdma.held_cnt == 0 && script_rdma.cancels == 1);
	for (; rig_poll(&g, &c); tcp++)
		CU_ASSERT(c.status == TN_OK && c.transport == TN_TRANSPORT_TCP);
	CU_ASSERT_EQUAL(tcp, 3);
	CU_ASSERT_EQUAL(script_rdma.submits, 2);
	if (TENT_METRICS)
		CU_ASSERT_EQUAL(tn_load_relaxed64(&g.w->stats.m.cells[TN_C2(TRANSPORT_FAILOVER_TOTAL, TN_TRANSPORT_RDMA, TN_TRANSPORT_TCP).cell]), 1);
	script_rdma.beyond = (struct script_step){ SCRIPT_OK, { 0 } };
	c = rig_run(&g, script_sqe(SHR_OP_READ, 9, 0, 4096));
	CU_ASSERT(c.status == TN_OK && c.transport == TN_TRANSPORT_TCP);
	id = turn(&g, TN_TRANSPORT_RDMA, true, 0);
	CU_ASSERT_EQUAL(g.acked, id);
	c = rig_run(&g, script_sqe(SHR_OP_READ, 10, 0, 4096));
	CU_ASSERT(c.status == TN_OK && c.transport == TN_TRANSPORT_RDMA);
	rig_close(&g);
	free(r);
}

/* Nothing else can serve it: queued or taken away, it waits until the transport is on again, or its deadline. */
static void test_only_way(void)
{
	struct rig g;
	struct shr_cqe_shm c;
	rig_open(&g, NULL, 0, script_only_tcp);
	struct dp_remote *r = script_open_remote(&g, 1);
	script_set(&script_tcp, &hang, 1);
	rig_submit(&g, script_sqe(SHR_OP_WRITE, 1, 0, 4096));
	rig_advance(&g, RIG_MS);
	CU_ASSERT_EQUAL(script_tcp.held_cnt, 1);
	CU_ASSERT_EQUAL(turn(&g, TN_TRANSPORT_TCP, false, 0), g.acked);
	struct shr_sqe_shm s = script_sqe(SHR_OP_READ, 2, 0, 4096);
	s.deadline_ns = g.now + 300 * RIG_MS;
	rig_submit(&g, s);
	rig_advance(&g, 200 * RIG_MS);
	rig_advance(&g, RIG_MS);
	CU_ASSERT_FALSE(rig_poll(&g, &c));
	CU_ASSERT(script_tcp.held_cnt == 0 && script_tcp.submits == 1);
	CU_ASSERT_EQUAL(g.w->pools.states.owner[DP_OWNER_WAITING], 2);
	rig_advance(&g, 200 * RIG_MS);
	CU_ASSERT(rig_poll(&g, &c) && c.token == 2 && c.status == TN_TIMEOUT && c.attempts == 0);
	CU_ASSERT_EQUAL(turn(&g, TN_TRANSPORT_TCP, true, 0), g.acked);
	rig_advance(&g, RIG_MS);
	CU_ASSERT(rig_poll(&g, &c) && c.token == 1 && c.status == TN_OK && c.attempts == 2);
	CU_ASSERT_EQUAL(turn(&g, TN_TRANSPORT_HP_TCP, false, 0), g.acked);
	CU_ASSERT_EQUAL(g.ack_status, TN_UNSUPPORTED);
	rig_close(&g);
	free(r);
}

/* A WRITE that left and is not fenced is not sent again; it ended nevertheless: that is told. */
static void test_replay_law(void)
{
	struct rig g;
	struct shr_cqe_shm c;
	rig_open(&g, NULL, 0, script_both);
	struct dp_remote *r = script_open_remote(&g, 1);
	script_set(&script_rdma, &hang, 1);
	script_rdma.cancel_late = true;
	rig_submit(&g, script_sqe(SHR_OP_WRITE, 1, 0, 4096));
	rig_advance(&g, RIG_MS);
	uint64_t id = turn(&g, TN_TRANSPORT_RDMA, false, 0);
	rig_advance(&g, RIG_MS);
	CU_ASSERT(g.acked != id && script_rdma.cancels == 1); /* asked once, however long it takes */
	rig_advance(&g, RIG_MS);
	CU_ASSERT_EQUAL(script_rdma.cancels, 1);
	script_let_go(&script_rdma); /* neither fenced nor unsent */
	rig_advance(&g, RIG_MS);
	CU_ASSERT(rig_poll(&g, &c) && c.status == TN_AMBIGUOUS);
	CU_ASSERT(g.acked == id && script_tcp.submits == 0);
	rig_close(&g);
	free(r);
}

/* Its deadline comes while the transport has not let go; or it completes after all. */
static void test_ends_on_the_way(void)
{
	struct rig g;
	struct shr_cqe_shm c;
	struct script_step steps[2] = { hang, hang };
	rig_open(&g, NULL, 0, script_both);
	struct dp_remote *r = script_open_remote(&g, 1);
	script_set(&script_rdma, steps, 2);
	script_rdma.cancel_late = true;
	struct shr_sqe_shm s = script_sqe(SHR_OP_WRITE, 1, 0, 4096);
	s.deadline_ns = g.now + 50 * RIG_MS;
	rig_submit(&g, s);
	rig_advance(&g, RIG_MS);
	rig_submit(&g, script_sqe(SHR_OP_WRITE, 2, 8192, 4096));
	rig_advance(&g, RIG_MS);
	CU_ASSERT_EQUAL_FATAL(script_rdma.held_cnt, 2);
	uint64_t id = turn(&g, TN_TRANSPORT_RDMA, false, 0);
	rig_advance(&g, 60 * RIG_MS);
	CU_ASSERT(rig_poll(&g, &c) && c.token == 1 && c.status == TN_TIMEOUT && c.flags == SHR_CQE_MEMORY_BUSY);
	struct dp_result ok = { .status = TN_OK };
	script_end(&script_rdma, 1, &ok);
	rig_advance(&g, RIG_MS);
	CU_ASSERT(rig_poll(&g, &c) && c.token == 2 && c.status == TN_OK && c.transport == TN_TRANSPORT_RDMA);
	script_let_go(&script_rdma);
	rig_advance(&g, RIG_MS);
	CU_ASSERT(rig_poll(&g, &c) && c.token == 1 && c.kind == SHR_CQE_RELEASE);
	CU_ASSERT(g.acked == id && script_tcp.submits == 0);
	rig_close(&g);
	free(r);
}

/* Inside the host: shm off, and what it had goes to our own listener, whose serving side alone keeps the segment. */
static void test_inside_the_host(void)
{
	struct rig g;
	rig_open(&g, NULL, 0, script_both);
	struct shr_cqe_shm c = rig_run(&g, rig_sqe(SHR_OP_WRITE, 1, 0, 0, 4096));
	CU_ASSERT(c.status == TN_OK && c.transport == TN_TRANSPORT_SHM);
	CU_ASSERT_EQUAL(turn(&g, TN_TRANSPORT_SHM, false, 0), g.acked);
	c = rig_run(&g, rig_sqe(SHR_OP_READ, 2, 0, 0, 4096));
	CU_ASSERT(c.status == TN_OK && c.transport == TN_TRANSPORT_TCP);
	CU_ASSERT_EQUAL(turn(&g, TN_TRANSPORT_SHM, true, 0), g.acked);
	c = rig_run(&g, rig_sqe(SHR_OP_READ, 3, 0, 0, 4096));
	CU_ASSERT(c.status == TN_OK && c.transport == TN_TRANSPORT_SHM);
	/* A lane that hangs does not hold up who withdraws the segment. */
	script_tcp.beyond = hang;
	struct shr_sqe_shm s = rig_sqe(SHR_OP_WRITE, 4, 0, 0, 4096);
	s.hint = TN_TRANSPORT_TCP;
	rig_submit(&g, s);
	rig_advance(&g, RIG_MS);
	CU_ASSERT_EQUAL(script_tcp.held_cnt, 1);
	CU_ASSERT_EQUAL(rig_do(&g, (struct dp_cmd){ .kind = DP_CMD_SEG_DEL, .num = g.segment->handle, .fd = -1 }), TN_OK);
	struct dp_result stale = { .status = TN_STALE, .nothing_left = true };
	script_end(&script_tcp, 0, &stale); /* as the serving side says */
	rig_advance(&g, RIG_MS);
	CU_ASSERT_EQUAL(g.w->pools.states.owner[DP_OWNER_WAITING], 1);
	rig_close(&g);
}

TN_TEST_MAIN("switch",
	{ "traffic moves without failing", test_traffic_moves },
	{ "the only way is waited for", test_only_way },
	{ "the replay law decides", test_replay_law },
	{ "a deadline and an end on the way", test_ends_on_the_way },
	{ "inside the host", test_inside_the_host },
)
