/* SPDX-License-Identifier: Apache-2.0
 * DP_CMD_INSPECT: what a worker tells of a request in each of its states, and of one that is gone. */
#include "dataplane/inspect.h"
#include "tests/unit/dataplane/script.h"

static const struct script_step hang = { SCRIPT_HANG, { 0 } };
static const struct script_step down = { SCRIPT_FAIL, { .status = TN_PATH_DOWN, .phase = TN_PHASE_CONNECT,
							.reason = TN_REASON_UNAVAILABLE, .nothing_left = true } };

static struct dp_inspect box;

static tn_status look(struct rig *g, uint64_t request_id)
{
	memset(&box, 0xee, sizeof box);
	return rig_do(g, (struct dp_cmd){ .kind = DP_CMD_INSPECT, .num = request_id, .ptr = &box, .fd = -1 });
}

static uint64_t id_of(const struct rig *g, uint64_t token)
{
	tn_list_foreach(node, &g->q.qp->requests) {
		const struct dp_request *r = tn_list_entry(node, struct dp_request, qp_link);
		if (r->sqe.token == token)
			return r->request_id;
	}
	RIG_FATAL(!"no such request");
	return 0;
}

static void test_running(void)
{
	struct rig g;
	struct shr_cqe_shm c;
	rig_open(&g, NULL, 0, script_both);
	struct dp_remote *r = script_open_remote(&g, 1);
	script_set(&script_tcp, &hang, 1);
	script_rdma.reach = DP_REACH_NO;
	struct shr_sqe_shm s = script_sqe(SHR_OP_WRITE, 1, 0, 4096);
	s.deadline_ns = g.now + 500 * RIG_MS;
	s.batch = 4;
	s.flags = SHR_SQE_BATCH;
	s.trace_hi = 5;
	s.trace_lo = 6;
	rig_submit(&g, s);
	rig_advance(&g, 100 * RIG_MS);
	uint64_t id = id_of(&g, 1);
	script_tcp.held[0]->t_done = 1000;
	rig_advance(&g, 100 * RIG_MS);
	CU_ASSERT_EQUAL_FATAL(look(&g, id), TN_OK);
	CU_ASSERT(box.request_id == id && box.bytes == 4096 && box.opcode == SHR_OP_WRITE && box.trace_hi == 5 && box.trace_lo == 6);
	CU_ASSERT(box.batch_id != 0 && box.owner_id != 0 && box.owner_requests == 1 && box.owner_bytes == 4096);
	CU_ASSERT(box.state == DP_REQUEST_RUNNING && box.owner_state == DP_OWNER_DISPATCHED && box.phase == TN_PHASE_POLL);
	CU_ASSERT(box.wait == DP_WAIT_NONE && box.peer_index == 3 && box.priority == TN_PRIORITY_MEDIUM);
	CU_ASSERT(box.attempt_id != 0 && box.attempt_state == DP_ATTEMPT_ACTIVE && box.moved_bytes == 1000);
	CU_ASSERT(box.transport == TN_TRANSPORT_TCP && box.attempts == 1 && box.failovers == 0 && box.last_status == TN_OK);
	CU_ASSERT(box.age_ns > 99 * RIG_MS && box.age_ns < 300 * RIG_MS && box.left_ns > 200 * RIG_MS && box.left_ns < 401 * RIG_MS);
	CU_ASSERT(box.rejected[TN_TRANSPORT_RDMA] == DP_REJECT_NO_ENDPOINT && box.rejected[TN_TRANSPORT_TCP] == DP_REJECT_NONE);
	CU_ASSERT(box.rejected[TN_TRANSPORT_SHM] == DP_REJECT_TARGET && box.rejected[TN_TRANSPORT_HP_TCP] == DP_REJECT_NOT_BUILT);
	CU_ASSERT_EQUAL(look(&g, id + 64), TN_NOT_FOUND);
	/* Ended, but a transport has not let go. */
	script_tcp.cancel_late = true;
	rig_submit(&g, (struct shr_sqe_shm){ .opcode = SHR_OP_CANCEL, .token = 1 });
	rig_steps(&g, 3);
	CU_ASSERT_EQUAL(look(&g, id), TN_OK);
	CU_ASSERT(box.state == DP_REQUEST_ZOMBIE && box.owner_state == DP_OWNER_DONE && box.attempt_state == DP_ATTEMPT_CANCELING);
	script_let_go(&script_tcp);
	rig_steps(&g, 2);
	CU_ASSERT_EQUAL(look(&g, id), TN_NOT_FOUND);
	while (rig_poll(&g, &c)) {}
	rig_close(&g);
	free(r);
}

static void test_waiting(void)
{
	static const char *const sets[] = { "admission/peer_window_owners=1", "admission/merge=false", "rails/max_errors=1",
					    "rails/cool_min_ms=1000", "rails/cool_max_ms=1000" };
	struct rig g;
	rig_open(&g, sets, 5, script_only_tcp);
	struct dp_remote *r = script_open_remote(&g, 1);
	struct script_step steps[2] = { hang, down };
	script_set(&script_tcp, steps, 2);
	rig_submit(&g, script_sqe(SHR_OP_WRITE, 1, 0, 4096));
	rig_submit(&g, script_sqe(SHR_OP_READ, 2, 0, 4096));
	rig_advance(&g, RIG_MS);
	uint64_t id = id_of(&g, 2);
	CU_ASSERT_EQUAL(look(&g, id), TN_OK); /* behind the first one */
	CU_ASSERT(box.state == DP_REQUEST_QUEUED && box.owner_state == DP_OWNER_QUEUED && box.phase == TN_PHASE_ADMISSION);
	CU_ASSERT(box.attempts == 0 && box.attempt_id == 0 && box.transport == TN_TRANSPORT_UNSPEC && box.opcode == SHR_OP_READ);
	CU_ASSERT_EQUAL(box.rejected[TN_TRANSPORT_TCP], DP_REJECT_NONE);
	struct dp_result ok = { .status = TN_OK };
	script_end(&script_tcp, 0, &ok);
	for (unsigned i = 0; i < 20; i++)
		rig_advance(&g, RIG_MS);
	CU_ASSERT_EQUAL(look(&g, id), TN_OK);
	CU_ASSERT(box.state == DP_REQUEST_QUEUED && box.owner_state == DP_OWNER_WAITING && box.phase == TN_PHASE_RETRY);
	CU_ASSERT(box.wait == DP_WAIT_RAIL && box.wait_ns > 500 * RIG_MS && box.wait_ns <= 1000 * RIG_MS);
	CU_ASSERT(box.attempts == 1 && box.last_status == TN_PATH_DOWN && box.last_phase == TN_PHASE_CONNECT);
	CU_ASSERT(box.rejected[TN_TRANSPORT_TCP] == DP_REJECT_COOLING && box.rejected[TN_TRANSPORT_RDMA] == DP_REJECT_NOT_BUILT);
	rig_close(&g);
	free(r);
}

/* A notice has no owner; a pool that was full once is searched in parts. */
static void test_notice_and_place(void)
{
	struct rig g;
	rig_open(&g, NULL, 0, script_only_tcp);
	struct dp_remote *r = script_open_remote(&g, 1);
	rig_submit(&g, (struct shr_sqe_shm){ .opcode = SHR_OP_NOTIFY, .token = 9, .user_data = 9, .segment = tn_handle_make(2, 1) });
	rig_steps(&g, 3);
	uint64_t id = id_of(&g, 9);
	CU_ASSERT_EQUAL(look(&g, id), TN_OK);
	CU_ASSERT(box.opcode == SHR_OP_NOTIFY && box.owner_id == 0 && box.phase == TN_PHASE_NOTIFY && box.peer_index == 3);
	uint32_t place = 0, used = g.w->pools.requests.used;
	CU_ASSERT_PTR_NULL(dp_request_find(&g.w->pools, id, &place, 0));
	CU_ASSERT_EQUAL(place, 0);
	CU_ASSERT_PTR_NULL(dp_request_find(&g.w->pools, 1, &place, used + 7));
	CU_ASSERT_EQUAL(place, UINT32_MAX);
	place = 0;
	CU_ASSERT_PTR_NOT_NULL(dp_request_find(&g.w->pools, id, &place, used));
	dp_note_done(g.w, script_tcp.note, TN_OK, 0, 0);
	rig_steps(&g, 2);
	CU_ASSERT_EQUAL(look(&g, id), TN_NOT_FOUND);
	rig_close(&g);
	free(r);
}

TN_TEST_MAIN("inspect",
	{ "a request that runs", test_running },
	{ "a request that waits", test_waiting },
	{ "a notice, and where to look", test_notice_and_place },
)
