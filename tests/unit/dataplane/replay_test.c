/* SPDX-License-Identifier: Apache-2.0
 * Retry, failover and the replay law through a whole worker with scripted transports; refresh of stale descriptors;
 * late cancels; fences. Every case ends with the contract's equations and empty pools. */
#include <fcntl.h>

#include "dataplane/transport/stream/hello.h"
#include "tests/unit/dataplane/script.h"

static uint64_t cell(const struct rig *g, uint32_t i) { return tn_load_relaxed64(&g->w->stats.m.cells[i]); }
#define COUNT(g, at) (TENT_METRICS ? cell(g, (at).cell) : 0)
#define IF_METRICS(n) (TENT_METRICS ? (n) : 0)
#define COUNT_IS(g, at, n) CU_ASSERT_EQUAL(COUNT(g, at), IF_METRICS(n))

static struct script_step down(bool nothing_left, bool fenced)
{
	return (struct script_step){ SCRIPT_FAIL, { .status = TN_PATH_DOWN, .phase = TN_PHASE_POLL,
		.reason = TN_REASON_PEER_CLOSED, .nothing_left = nothing_left, .fenced = fenced } };
}

static struct script_step fails(tn_status status, uint8_t phase, uint8_t reason)
{
	return (struct script_step){ SCRIPT_FAIL, { .status = status, .phase = phase, .reason = reason, .nothing_left = true } };
}

static const struct script_step hang = { SCRIPT_HANG, { 0 } };

static struct shr_cqe_shm run(struct rig *g, struct shr_sqe_shm sqe)
{
	struct shr_cqe_shm c = { .status = TN_PENDING };
	rig_submit(g, sqe);
	for (int i = 0; i < 400 && !rig_poll(g, &c); i++)
		rig_advance(g, RIG_MS);
	return c;
}

static void test_law_table(void)
{
	static const struct { uint8_t op; uint16_t flags; bool nothing, fenced; tn_status status; uint8_t attempts; } rows[] = {
		{ SHR_OP_READ, 0, false, false, TN_OK, 2 },
		{ SHR_OP_READ, SHR_SQE_AT_MOST_ONCE, false, false, TN_OK, 2 },
		{ SHR_OP_WRITE, 0, false, false, TN_AMBIGUOUS, 1 },
		{ SHR_OP_WRITE, 0, true, false, TN_OK, 2 },
		{ SHR_OP_WRITE, 0, false, true, TN_OK, 2 },
		{ SHR_OP_WRITE, SHR_SQE_AT_MOST_ONCE, false, true, TN_AMBIGUOUS, 1 },
		{ SHR_OP_WRITE, SHR_SQE_AT_MOST_ONCE, true, false, TN_OK, 2 },
	};
	for (size_t i = 0; i < TN_ARRAY_LEN(rows); i++) {
		struct rig g;
		rig_open(&g, NULL, 0, script_only_tcp);
		struct dp_remote *r = script_open_remote(&g, 1);
		struct script_step step = down(rows[i].nothing, rows[i].fenced);
		script_set(&script_tcp, &step, 1);
		struct shr_sqe_shm s = script_sqe(rows[i].op, 1, 0, 4096);
		s.flags = rows[i].flags;
		struct shr_cqe_shm c = run(&g, s);
		CU_ASSERT_EQUAL(c.status, rows[i].status);
		CU_ASSERT_EQUAL(c.attempts, rows[i].attempts);
		CU_ASSERT_EQUAL(script_tcp.submits, rows[i].attempts);
		rig_close(&g);
		free(r);
	}
}

/* Contract equation 8: recovered from rdma to tcp. */
static void test_failover(void)
{
	struct rig g;
	static const char *const sets[] = { "retry/max_attempts=4" };
	rig_open(&g, sets, 1, script_both);
	struct dp_remote *r = script_open_remote(&g, 1);
	struct script_step step = down(true, false);
	script_set(&script_rdma, &step, 1);
	struct shr_cqe_shm c = run(&g, script_sqe(SHR_OP_WRITE, 1, 0, 4096));
	CU_ASSERT_EQUAL(c.status, TN_OK);
	CU_ASSERT_EQUAL(c.transport, TN_TRANSPORT_TCP);
	CU_ASSERT_EQUAL(c.attempts, 2);
	COUNT_IS(&g, TN_C3(TRANSPORT_ATTEMPT_OUTCOMES_TOTAL, TN_TRANSPORT_RDMA, TN_OP_WRITE, TN_OUTCOME_FAILED), 1);
	COUNT_IS(&g, TN_C3(TRANSPORT_ATTEMPT_OUTCOMES_TOTAL, TN_TRANSPORT_TCP, TN_OP_WRITE, TN_OUTCOME_COMPLETED), 1);
	COUNT_IS(&g, TN_C2(TRANSPORT_FAILOVER_TOTAL, TN_TRANSPORT_RDMA, TN_TRANSPORT_TCP), 1);
	COUNT_IS(&g, TN_C3(LOGICAL_REQUEST_OUTCOMES_TOTAL, TN_OP_WRITE, TN_TRANSPORT_TCP, TN_OUTCOME_COMPLETED), 1);
	/* A failure at submit is an attempt like any other. */
	step.what = SCRIPT_REFUSE;
	script_set(&script_rdma, &step, 1);
	c = run(&g, script_sqe(SHR_OP_WRITE, 2, 0, 4096));
	CU_ASSERT_EQUAL(c.status, TN_OK);
	CU_ASSERT_EQUAL(c.transport, TN_TRANSPORT_TCP);
	COUNT_IS(&g, TN_C3(TRANSPORT_ATTEMPT_OUTCOMES_TOTAL, TN_TRANSPORT_RDMA, TN_OP_WRITE, TN_OUTCOME_FAILED), 2);
	/* An unreachable first choice is a fallback, no failover. */
	script_rdma.reach = DP_REACH_NO;
	c = run(&g, script_sqe(SHR_OP_READ, 3, 0, 4096));
	CU_ASSERT_EQUAL(c.status, TN_OK);
	CU_ASSERT_EQUAL(c.attempts, 1);
	COUNT_IS(&g, TN_C2(TRANSPORT_FAILOVER_TOTAL, TN_TRANSPORT_RDMA, TN_TRANSPORT_TCP), 2);
	/* A hint is not replaced. */
	struct shr_sqe_shm s = script_sqe(SHR_OP_READ, 4, 0, 4096);
	s.hint = TN_TRANSPORT_RDMA;
	c = run(&g, s);
	CU_ASSERT_EQUAL(c.status, TN_PEER_DOWN);
	CU_ASSERT_EQUAL(c.phase, TN_PHASE_SELECTION);
	rig_close(&g);
	free(r);
}

/* Each change of transport counts, and after the last one it stays. */
static void test_failover_budget(void)
{
	static const char *const sets[] = { "retry/max_failovers=1", "rails/max_errors=0", "retry/max_attempts=4" };
	struct rig g;
	rig_open(&g, sets, 3, script_both);
	struct dp_remote *r = script_open_remote(&g, 1);
	script_rdma.beyond = script_tcp.beyond = down(true, false);
	struct shr_cqe_shm c = run(&g, script_sqe(SHR_OP_WRITE, 1, 0, 4096));
	CU_ASSERT(c.status == TN_PATH_DOWN && c.attempts == 4 && c.transport == TN_TRANSPORT_TCP);
	CU_ASSERT_EQUAL(script_rdma.submits, 1);
	CU_ASSERT_EQUAL(script_tcp.submits, 3);
	COUNT_IS(&g, TN_C2(TRANSPORT_FAILOVER_TOTAL, TN_TRANSPORT_RDMA, TN_TRANSPORT_TCP), 1);
	rig_close(&g);
	free(r);
}

static void test_attempts_are_bounded(void)
{
	static const char *const sets[] = { "retry/max_attempts=3", "rails/max_errors=0" };
	struct rig g;
	rig_open(&g, sets, 2, script_only_tcp);
	struct dp_remote *r = script_open_remote(&g, 1);
	struct script_step d = down(true, false), steps[5] = { d, d, d, d, d };
	script_set(&script_tcp, steps, 5);
	struct shr_cqe_shm c = run(&g, script_sqe(SHR_OP_WRITE, 1, 0, 4096));
	CU_ASSERT_EQUAL(c.status, TN_PATH_DOWN);
	CU_ASSERT_EQUAL(c.reason, TN_REASON_PEER_CLOSED);
	CU_ASSERT_EQUAL(c.attempts, 3);
	unsigned tcp = tn_stream_kind(TN_TRANSPORT_TCP);
	COUNT_IS(&g, TN_C3(STREAM_EVENTS_TOTAL, tcp, TN_OP_WRITE, TN_STREAM_EVENT_RETRY_EXHAUSTED), 1);
	/* A wait that would end after the deadline is not waited: the true reason comes now. */
	script_set(&script_tcp, steps, 5);
	struct shr_sqe_shm s = script_sqe(SHR_OP_WRITE, 2, 0, 4096);
	s.deadline_ns = g.now + 2 * RIG_MS; /* the first back-off is at least 2.5 ms */
	rig_submit(&g, s);
	rig_steps(&g, 5);
	CU_ASSERT_TRUE_FATAL(rig_poll(&g, &c));
	CU_ASSERT_EQUAL(c.status, TN_PATH_DOWN);
	CU_ASSERT_EQUAL(c.attempts, 1);
	COUNT_IS(&g, TN_C3(STREAM_EVENTS_TOTAL, tcp, TN_OP_WRITE, TN_STREAM_EVENT_RETRY_EXHAUSTED), 1);
	rig_close(&g);
	free(r);
}

/* A merged owner fails after one of its requests passed its deadline: that one timed out, and gets its memory back with
 * the owner; the others end as the owner did. Each counts once. */
static void test_merged_failure(void)
{
	enum { N = 3, BYTES = 4096 };
	static const uint64_t deadline_us[N] = { 5000, 5900, 5900 }; /* near enough to be merged */
	struct rig g;
	struct shr_sqe_shm s[N];
	struct shr_cqe_shm c;
	rig_open(&g, NULL, 0, script_only_tcp);
	struct dp_remote *r = script_open_remote(&g, 1);
	script_set(&script_tcp, &hang, 1);
	for (uint64_t i = 0; i < N; i++) {
		s[i] = script_sqe(SHR_OP_WRITE, i + 1, i * BYTES, BYTES);
		s[i].deadline_ns = g.now + deadline_us[i] * 1000;
	}
	rig_submit_on(&g.q, s, N);
	rig_steps(&g, 2);
	CU_ASSERT_EQUAL_FATAL(script_tcp.held_cnt, 1);
	CU_ASSERT_EQUAL(script_tcp.held[0]->bytes, N * BYTES);
	rig_advance(&g, 5 * RIG_MS);
	CU_ASSERT_TRUE_FATAL(rig_poll(&g, &c));
	CU_ASSERT(c.token == 1 && c.kind == SHR_CQE_TERMINAL && c.status == TN_TIMEOUT && c.outcome == TN_OUTCOME_TIMEOUT);
	CU_ASSERT(c.flags == SHR_CQE_MEMORY_BUSY && c.phase == TN_PHASE_POLL && c.reason == TN_REASON_TIMEOUT && c.bytes == 0);
	CU_ASSERT_FALSE(rig_poll(&g, &c));
	rig_check_equations(&g);
	struct dp_result range = fails(TN_RANGE, TN_PHASE_COMPLETION, TN_REASON_MR_ERROR).result;
	script_end(&script_tcp, 0, &range);
	rig_steps(&g, 2);
	uint32_t released = 0, failed = 0;
	while (rig_poll(&g, &c)) {
		if (c.kind == SHR_CQE_RELEASE) {
			CU_ASSERT_EQUAL(c.token, 1);
			released++;
			continue;
		}
		CU_ASSERT(c.token == 2 + failed && c.status == TN_RANGE && c.outcome == TN_OUTCOME_FAILED && c.flags == 0);
		CU_ASSERT(c.phase == TN_PHASE_COMPLETION && c.reason == TN_REASON_MR_ERROR);
		CU_ASSERT(c.transport == TN_TRANSPORT_TCP && c.attempts == 1 && c.bytes == 0);
		failed++;
	}
	CU_ASSERT_EQUAL(released, 1);
	CU_ASSERT_EQUAL(failed, 2);
	rig_check_equations(&g);
	COUNT_IS(&g, TN_C1(LOGICAL_REQUESTS_STARTED_TOTAL, TN_OP_WRITE), N);
	COUNT_IS(&g, TN_C3(LOGICAL_REQUEST_OUTCOMES_TOTAL, TN_OP_WRITE, TN_TRANSPORT_TCP, TN_OUTCOME_TIMEOUT), 1);
	COUNT_IS(&g, TN_C3(LOGICAL_REQUEST_OUTCOMES_TOTAL, TN_OP_WRITE, TN_TRANSPORT_TCP, TN_OUTCOME_FAILED), 2);
	COUNT_IS(&g, TN_G1(LOGICAL_REQUESTS_INFLIGHT, TN_OP_WRITE), 0);
	COUNT_IS(&g, TN_C3(TRANSPORT_ATTEMPT_OUTCOMES_TOTAL, TN_TRANSPORT_TCP, TN_OP_WRITE, TN_OUTCOME_FAILED), 1);
	COUNT_IS(&g, TN_C2(TRANSPORT_ATTEMPTS_TOTAL, TN_TRANSPORT_TCP, TN_OP_WRITE), 1);
	rig_close(&g);
	free(r);
}

static void test_no_room_defers(void)
{
	struct rig g;
	rig_open(&g, NULL, 0, script_only_tcp);
	struct dp_remote *r = script_open_remote(&g, 1);
	struct script_step full = { SCRIPT_FULL, { 0 } }, steps[3] = { full, full, full };
	script_set(&script_tcp, steps, 3);
	struct shr_cqe_shm c = run(&g, script_sqe(SHR_OP_WRITE, 1, 0, 4096));
	CU_ASSERT_EQUAL(c.status, TN_OK);
	CU_ASSERT_EQUAL(c.attempts, 1);
	COUNT_IS(&g, TN_C2(ADMISSION_EVENTS_TOTAL, TN_OWNER_KIND_USER, TN_ADMISSION_DEFER), 3);
	COUNT_IS(&g, TN_C2(TRANSPORT_ATTEMPTS_TOTAL, TN_TRANSPORT_TCP, TN_OP_WRITE), 1);
	rig_close(&g);
	free(r);
}

static void test_stale_refresh(void)
{
	struct rig g;
	rig_open(&g, NULL, 0, script_only_tcp);
	struct dp_remote *old = script_open_remote(&g, 1), *same = script_remote(&g, 1), *newer = script_remote(&g, 2);
	struct dp_remote *newest = script_remote(&g, 3);
	struct script_step stale = fails(TN_STALE, TN_PHASE_METADATA, TN_REASON_STALE_GENERATION), twice[2] = { stale, stale };
	script_set(&script_tcp, &stale, 1);
	rig_submit(&g, script_sqe(SHR_OP_WRITE, 1, 0, 4096));
	rig_steps(&g, 3);
	CU_ASSERT_EQUAL_FATAL(g.event_cnt, 1);
	CU_ASSERT_EQUAL(g.events[0].kind, DP_EVT_REMOTE_REFRESH);
	CU_ASSERT_EQUAL(g.events[0].num, tn_handle_make(2, 1));
	CU_ASSERT_EQUAL(g.events[0].num2, 1);
	struct shr_cqe_shm c;
	CU_ASSERT_EQUAL(rig_do(&g, (struct dp_cmd){ .kind = DP_CMD_REMOTE_SET, .ptr = same, .fd = -1 }), TN_OK);
	rig_steps(&g, 3);
	CU_ASSERT_FALSE(rig_poll(&g, &c)); /* not newer */
	CU_ASSERT_EQUAL(rig_do(&g, (struct dp_cmd){ .kind = DP_CMD_REMOTE_SET, .ptr = newer, .fd = -1 }), TN_OK);
	rig_steps(&g, 3);
	CU_ASSERT_TRUE_FATAL(rig_poll(&g, &c));
	CU_ASSERT_EQUAL(c.status, TN_OK);
	CU_ASSERT_EQUAL(c.attempts, 2);
	/* The second stale answer is final. */
	script_set(&script_tcp, twice, 2);
	rig_submit(&g, script_sqe(SHR_OP_WRITE, 2, 0, 4096));
	rig_steps(&g, 3);
	CU_ASSERT_EQUAL(rig_do(&g, (struct dp_cmd){ .kind = DP_CMD_REMOTE_SET, .ptr = newest, .fd = -1 }), TN_OK);
	rig_steps(&g, 3);
	CU_ASSERT_TRUE_FATAL(rig_poll(&g, &c));
	CU_ASSERT_EQUAL(c.status, TN_STALE);
	CU_ASSERT_EQUAL(c.reason, TN_REASON_STALE_GENERATION);
	rig_close(&g);
	free(old), free(same), free(newer), free(newest);
}

/* The version that was refused is already replaced: the newer one is used, nothing newer than that is waited for. */
static void test_stale_of_old_version(void)
{
	struct rig g;
	rig_open(&g, NULL, 0, script_only_tcp);
	struct dp_remote *old = script_open_remote(&g, 1), *newer = script_remote(&g, 2);
	script_set(&script_tcp, &hang, 1);
	rig_submit(&g, script_sqe(SHR_OP_WRITE, 1, 0, 4096));
	rig_steps(&g, 2);
	uint64_t id = rig_post(&g, (struct dp_cmd){ .kind = DP_CMD_REMOTE_SET, .ptr = newer, .fd = -1 });
	rig_steps(&g, 2);
	struct dp_result stale = fails(TN_STALE, TN_PHASE_COMPLETION, TN_REASON_STALE_GENERATION).result;
	script_end(&script_tcp, 0, &stale);
	rig_steps(&g, 4);
	CU_ASSERT_EQUAL(g.acked, id);
	struct shr_cqe_shm c = { .status = TN_PENDING };
	CU_ASSERT_TRUE(rig_poll(&g, &c));
	CU_ASSERT_EQUAL(c.status, TN_OK);
	CU_ASSERT_EQUAL(c.attempts, 2);
	CU_ASSERT_EQUAL(g.event_cnt, 0); /* nothing was asked for */
	rig_close(&g);
	free(old), free(newer);
}

/* A peer that restarts again while the request is on its way refuses twice, and each time for the first time. */
static void test_stale_of_each_incarnation(void)
{
	struct rig g;
	rig_open(&g, NULL, 0, script_only_tcp);
	struct dp_remote *v[3] = { script_open_remote(&g, 1), script_remote(&g, 1), script_remote(&g, 1) };
	v[1]->session.b[0] = 43;
	v[2]->session.b[0] = 44;
	struct script_step stale = fails(TN_STALE, TN_PHASE_METADATA, TN_REASON_STALE_GENERATION), twice[2] = { stale, stale };
	script_set(&script_tcp, twice, 2);
	rig_submit(&g, script_sqe(SHR_OP_WRITE, 1, 0, 4096));
	struct shr_cqe_shm c = { .status = TN_PENDING };
	for (int i = 1; i < 3; i++) {
		rig_steps(&g, 3);
		CU_ASSERT_FALSE(rig_poll(&g, &c));
		CU_ASSERT_EQUAL(g.event_cnt, (uint32_t)i);
		CU_ASSERT_EQUAL(rig_do(&g, (struct dp_cmd){ .kind = DP_CMD_REMOTE_SET, .ptr = v[i], .fd = -1 }), TN_OK);
	}
	rig_steps(&g, 3);
	CU_ASSERT_TRUE(rig_poll(&g, &c));
	CU_ASSERT_EQUAL(c.status, TN_OK);
	CU_ASSERT_EQUAL(c.attempts, 3);
	rig_close(&g);
	free(v[0]), free(v[1]), free(v[2]);
}

/* A replaced descriptor is acknowledged only when no attempt uses the old one. */
static void test_remote_set_quiesces(void)
{
	struct rig g;
	rig_open(&g, NULL, 0, script_only_tcp);
	struct dp_remote *old = script_open_remote(&g, 1), *newer = script_remote(&g, 2);
	script_set(&script_tcp, &hang, 1);
	rig_submit(&g, script_sqe(SHR_OP_WRITE, 1, 0, 4096));
	rig_steps(&g, 2);
	uint64_t id = rig_post(&g, (struct dp_cmd){ .kind = DP_CMD_REMOTE_SET, .ptr = newer, .fd = -1 });
	rig_steps(&g, 5);
	CU_ASSERT_NOT_EQUAL(g.acked, id);
	CU_ASSERT_PTR_EQUAL(script_tcp.held[0]->remote, old);
	struct dp_result ok = { .status = TN_OK };
	script_end(&script_tcp, 0, &ok);
	rig_steps(&g, 2);
	CU_ASSERT_EQUAL(g.acked, id);
	struct shr_cqe_shm c;
	CU_ASSERT_TRUE(rig_poll(&g, &c) && c.status == TN_OK);
	rig_close(&g);
	free(old), free(newer);
}

/* Refused as stale because of a version that was replaced meanwhile: the newer one is used at once. */
static void test_stale_version_replaced(void)
{
	struct rig g;
	struct shr_cqe_shm c;
	rig_open(&g, NULL, 0, script_only_tcp);
	struct dp_remote *old = script_open_remote(&g, 1), *newer = script_remote(&g, 2);
	script_set(&script_tcp, &hang, 1);
	rig_submit(&g, script_sqe(SHR_OP_WRITE, 1, 0, 4096));
	rig_steps(&g, 2);
	uint64_t id = rig_post(&g, (struct dp_cmd){ .kind = DP_CMD_REMOTE_SET, .ptr = newer, .fd = -1 });
	rig_steps(&g, 2);
	struct script_step stale = fails(TN_STALE, TN_PHASE_METADATA, TN_REASON_STALE_GENERATION);
	script_end(&script_tcp, 0, &stale.result);
	rig_steps(&g, 3);
	CU_ASSERT_EQUAL(g.acked, id);
	CU_ASSERT_TRUE(rig_poll(&g, &c) && c.status == TN_OK && c.attempts == 2);
	CU_ASSERT_EQUAL(g.event_cnt, 0); /* nobody was asked */
	rig_close(&g);
	free(old), free(newer);
}

static void test_peer_refresh(void)
{
	struct rig g;
	rig_open(&g, NULL, 0, script_only_tcp);
	struct dp_remote *r = script_open_remote(&g, 1);
	struct dp_peer peer = { .index = 3, .name = "b" };
	struct script_step stale = fails(TN_PEER_STALE, TN_PHASE_CONNECT, TN_REASON_STALE_GENERATION);
	script_set(&script_tcp, &stale, 1);
	rig_submit(&g, script_sqe(SHR_OP_WRITE, 1, 0, 4096));
	rig_steps(&g, 3);
	CU_ASSERT_EQUAL_FATAL(g.event_cnt, 1);
	CU_ASSERT_EQUAL(g.events[0].kind, DP_EVT_PEER_REFRESH);
	CU_ASSERT_EQUAL(g.events[0].num, 3);
	CU_ASSERT_EQUAL(rig_do(&g, (struct dp_cmd){ .kind = DP_CMD_PEER_SET, .ptr = &peer, .fd = -1 }), TN_OK);
	CU_ASSERT_EQUAL(script_tcp.peer_sets, 1);
	rig_steps(&g, 2);
	struct shr_cqe_shm c;
	CU_ASSERT_TRUE(rig_poll(&g, &c) && c.status == TN_OK);
	rig_close(&g);
	free(r);
}

/* The transport cannot let go at the deadline: the completion says memory busy, the release comes with the end. */
static void test_late_cancel(void)
{
	struct rig g;
	rig_open(&g, NULL, 0, script_only_tcp);
	struct dp_remote *r = script_open_remote(&g, 1);
	script_tcp.cancel_late = true;
	script_set(&script_tcp, &hang, 1);
	struct shr_sqe_shm s = script_sqe(SHR_OP_READ, 1, 0, 4096);
	s.deadline_ns = g.now + 10 * RIG_MS;
	rig_submit(&g, s);
	rig_steps(&g, 2);
	rig_advance(&g, 10 * RIG_MS);
	struct shr_cqe_shm c;
	CU_ASSERT_TRUE_FATAL(rig_poll(&g, &c));
	CU_ASSERT_EQUAL(c.status, TN_TIMEOUT);
	CU_ASSERT_EQUAL(c.flags, SHR_CQE_MEMORY_BUSY);
	CU_ASSERT_EQUAL(script_tcp.cancels, 1);
	rig_check_equations(&g);
	/* The memory stays until the transport lets go. */
	uint64_t id = rig_post(&g, (struct dp_cmd){ .kind = DP_CMD_MEM_DEL, .num = tn_handle_make(1, 1), .fd = -1 });
	rig_steps(&g, 3);
	CU_ASSERT_NOT_EQUAL(g.acked, id);
	COUNT_IS(&g, TN_C2(LATE_COMPLETIONS_TOTAL, TN_TRANSPORT_TCP, TN_OP_READ), 0);
	script_let_go(&script_tcp);
	rig_steps(&g, 2);
	CU_ASSERT_EQUAL(g.acked, id);
	CU_ASSERT_TRUE_FATAL(rig_poll(&g, &c));
	CU_ASSERT_EQUAL(c.kind, SHR_CQE_RELEASE);
	CU_ASSERT_EQUAL(c.token, 1);
	COUNT_IS(&g, TN_C2(LATE_COMPLETIONS_TOTAL, TN_TRANSPORT_TCP, TN_OP_READ), 1);
	COUNT_IS(&g, TN_C3(TRANSPORT_ATTEMPT_OUTCOMES_TOTAL, TN_TRANSPORT_TCP, TN_OP_READ, TN_OUTCOME_TIMEOUT), 1);
	rig_close(&g);
	free(r);
}

static void test_fence_and_segment(void)
{
	struct rig g;
	rig_open(&g, NULL, 0, script_only_tcp);
	script_tcp.fence_done = false;
	uint64_t id = rig_post(&g, (struct dp_cmd){ .kind = DP_CMD_FENCE, .fd = -1 });
	rig_steps(&g, 3);
	CU_ASSERT_NOT_EQUAL(g.acked, id);
	CU_ASSERT(script_tcp.fences >= 2);
	script_tcp.fence_done = true;
	rig_steps(&g, 1);
	CU_ASSERT_EQUAL(g.acked, id);
	const struct dp_segment *seg = NULL;
	CU_ASSERT_PTR_NOT_NULL(dp_worker_registration(g.w, 100, &seg));
	CU_ASSERT_PTR_EQUAL(seg, g.segment);
	script_tcp.seg_busy = true;
	id = rig_post(&g, (struct dp_cmd){ .kind = DP_CMD_SEG_DEL, .num = g.segment->handle, .fd = -1 });
	rig_steps(&g, 3);
	CU_ASSERT_PTR_NULL(dp_worker_registration(g.w, 100, &seg)); /* refused at once */
	CU_ASSERT_PTR_NULL(dp_worker_segment(g.w, g.segment->handle));
	CU_ASSERT_NOT_EQUAL(g.acked, id);
	script_tcp.seg_busy = false;
	rig_steps(&g, 1);
	CU_ASSERT_EQUAL(g.acked, id);
	rig_close(&g);
}

/* A stop lets end what peers have under way, for a second at most; who connects meanwhile is told by the transport. */
static void test_stop_serves_out(void)
{
	for (int patience_ends = 0; patience_ends < 2; patience_ends++) {
		struct rig g;
		rig_open(&g, NULL, 0, script_only_tcp);
		script_tcp.serving = true;
		CU_ASSERT_EQUAL(script_tcp.drains, 0);
		uint64_t id = rig_post(&g, (struct dp_cmd){ .kind = DP_CMD_STOP, .fd = -1 });
		rig_steps(&g, 1);
		rig_advance(&g, 500 * RIG_MS);
		CU_ASSERT_NOT_EQUAL(g.acked, id);
		CU_ASSERT(script_tcp.drains > 0 && !g.w->stopped);
		struct dp_cmd lane = { .kind = DP_CMD_LANE_ADOPT, .fd = open("/dev/null", O_RDWR | O_CLOEXEC),
				       .ptr = calloc(1, sizeof(struct dp_hello)), .len = TN_TRANSPORT_TCP };
		CU_ASSERT_EQUAL(dp_worker_post(g.w, &lane), TN_OK);
		rig_steps(&g, 1);
		CU_ASSERT_EQUAL(script_tcp.lanes, 1);
		script_tcp.serving = patience_ends;
		rig_advance(&g, patience_ends ? 500 * RIG_MS : 0);
		CU_ASSERT_EQUAL(g.acked, id);
		CU_ASSERT_TRUE(g.w->stopped);
		rig_close(&g);
	}
}

/* A lane goes to the transport whose listener it came to, whichever else takes lanes. */
static void test_lanes_by_kind(void)
{
	struct rig g;
	static const struct { uint32_t kind; tn_status status; uint32_t rdma, tcp; } rows[] = {
		{ TN_TRANSPORT_TCP, TN_OK, 0, 1 }, { TN_TRANSPORT_RDMA, TN_OK, 1, 1 }, { TN_TRANSPORT_HP_TCP, TN_UNSUPPORTED, 1, 1 },
		{ TN_TRANSPORT_SHM, TN_UNSUPPORTED, 1, 1 }, { TN_TRANSPORT_CNT, TN_UNSUPPORTED, 1, 1 },
	};
	rig_open(&g, NULL, 0, script_both);
	for (size_t i = 0; i < TN_ARRAY_LEN(rows); i++) {
		struct dp_cmd lane = { .kind = DP_CMD_LANE_ADOPT, .fd = open("/dev/null", O_RDWR | O_CLOEXEC),
				       .ptr = calloc(1, sizeof(struct dp_hello)), .len = rows[i].kind };
		CU_ASSERT_EQUAL(rig_do(&g, lane), rows[i].status);
		CU_ASSERT(script_rdma.lanes == rows[i].rdma && script_tcp.lanes == rows[i].tcp);
	}
	rig_close(&g);
}

static void test_lost_remote(void)
{
	struct rig g;
	rig_open(&g, NULL, 0, script_only_tcp);
	struct dp_remote *r = script_remote(&g, 1);
	r->lost = true;
	r->lost_status = TN_STALE;
	CU_ASSERT_EQUAL(rig_do(&g, (struct dp_cmd){ .kind = DP_CMD_REMOTE_SET, .ptr = r, .fd = -1 }), TN_OK);
	struct shr_cqe_shm c = run(&g, script_sqe(SHR_OP_WRITE, 1, 0, 4096));
	CU_ASSERT_EQUAL(c.status, TN_STALE);
	CU_ASSERT_EQUAL(c.phase, TN_PHASE_METADATA);
	CU_ASSERT_EQUAL(c.flags, 0);
	rig_close(&g);
	free(r);
}

static void test_peer_window(void)
{
	static const char *const sets[] = { "admission/peer_window_owners=2", "admission/merge=false" };
	struct rig g;
	rig_open(&g, sets, 2, script_only_tcp);
	struct dp_remote *r = script_open_remote(&g, 1);
	struct script_step steps[5] = { hang, hang, hang, hang, hang };
	script_set(&script_tcp, steps, 5);
	for (uint64_t i = 1; i <= 5; i++)
		rig_submit(&g, script_sqe(SHR_OP_WRITE, i, 0, 4096));
	rig_steps(&g, 5);
	CU_ASSERT_EQUAL(script_tcp.held_cnt, 2);
	CU_ASSERT_EQUAL(g.w->admission.queued, 3);
	struct shr_cqe_shm c = rig_run(&g, rig_sqe(SHR_OP_WRITE, 9, 0, 0, 4096)); /* this host is another target */
	CU_ASSERT_EQUAL(c.status, TN_OK);
	struct dp_result ok = { .status = TN_OK };
	script_end(&script_tcp, 0, &ok);
	rig_steps(&g, 2);
	CU_ASSERT_EQUAL(script_tcp.held_cnt, 2);
	CU_ASSERT_EQUAL(g.w->admission.queued, 2);
	rig_close(&g);
	free(r);
}

/* Canceled while they wait behind a full peer window, in any order: no owner stays. */
static void test_random_cancels(void)
{
	enum { ROUND = 24 };
	static const char *const sets[] = { "admission/peer_window_owners=2", "admission/merge=false" };
	struct rig g;
	struct shr_cqe_shm c;
	uint64_t token = 0, ended = 0;
	rig_open(&g, sets, 2, script_only_tcp);
	struct dp_remote *r = script_open_remote(&g, 1);
	script_tcp.beyond = hang;
	for (unsigned round = 0; round < 40; round++) {
		uint64_t first = token + 1;
		for (unsigned i = 0; i < ROUND; i++)
			rig_submit(&g, script_sqe(SHR_OP_WRITE, ++token, 0, 4096));
		rig_steps(&g, 2);
		CU_ASSERT_EQUAL(script_tcp.held_cnt, 2);
		for (unsigned i = 0; i < ROUND; i++) /* 7 and 24 have no common divisor: each once */
			rig_submit(&g, (struct shr_sqe_shm){ .opcode = SHR_OP_CANCEL, .token = first + (i * 7 + round) % ROUND });
		rig_steps(&g, 4);
		for (; rig_poll(&g, &c); ended++)
			CU_ASSERT_EQUAL(c.status, TN_CANCELED);
		CU_ASSERT_EQUAL(ended, token);
		CU_ASSERT_EQUAL(g.w->pools.owners.live, 0);
		CU_ASSERT_EQUAL(g.w->admission.queued + g.w->admission.window.owners, 0);
	}
	rig_close(&g);
	free(r);
}

/* Requests of one batch choose their transports one by one, whatever the first of them chose. */
static void test_each_selects_alone(void)
{
	static const uint8_t hints[] = { TN_TRANSPORT_RDMA, TN_TRANSPORT_TCP, TN_TRANSPORT_TCP, TN_TRANSPORT_RDMA };
	struct rig g;
	struct shr_sqe_shm s[TN_ARRAY_LEN(hints)];
	struct shr_cqe_shm c;
	unsigned seen = 0;
	rig_open(&g, NULL, 0, script_both);
	struct dp_remote *r = script_open_remote(&g, 1);
	for (unsigned i = 0; i < TN_ARRAY_LEN(hints); i++) {
		s[i] = script_sqe(SHR_OP_WRITE, i + 1, i * 4096, 4096);
		s[i].batch = 3;
		s[i].flags = SHR_SQE_BATCH;
		s[i].hint = hints[i];
	}
	rig_submit_on(&g.q, s, TN_ARRAY_LEN(hints));
	rig_steps(&g, 4);
	for (; rig_poll(&g, &c); seen++) {
		CU_ASSERT_EQUAL(c.status, TN_OK);
		CU_ASSERT_EQUAL(c.transport, hints[c.token - 1]);
	}
	CU_ASSERT_EQUAL(seen, TN_ARRAY_LEN(hints));
	rig_close(&g);
	free(r);
}

/* All that a queue pair can hold fails at the same time: all of it waits for its retry, none for a place in a queue, and all
 * ends. */
static void test_all_retry_at_once(void)
{
	static const char *const sets[] = { "admission/merge=false", "retry/max_attempts=8" };
	struct rig g;
	struct shr_cqe_shm c;
	unsigned ended = 0;
	rig_open(&g, sets, 2, script_only_tcp);
	struct dp_remote *r = script_open_remote(&g, 1);
	script_tcp.beyond = down(true, false);
	for (uint64_t i = 1; i <= RIG_SQ; i++)
		rig_submit(&g, script_sqe(SHR_OP_WRITE, i, 0, 4096));
	for (unsigned i = 0; i < 100 && script_tcp.submits < RIG_SQ; i++) /* 100 us: no retry is due yet */
		rig_steps(&g, 1);
	rig_steps(&g, 1);
	CU_ASSERT_EQUAL(script_tcp.submits, RIG_SQ);
	CU_ASSERT_EQUAL(script_tcp.held_cnt, 0);
	CU_ASSERT_EQUAL(g.w->pools.requests.live, RIG_SQ);
	CU_ASSERT_FALSE(rig_poll(&g, &c));
	script_tcp.beyond = (struct script_step){ SCRIPT_OK, { 0 } };
	for (unsigned i = 0; i < 1000 && ended < RIG_SQ; i++) {
		rig_advance(&g, RIG_MS);
		for (; rig_poll(&g, &c); ended++)
			CU_ASSERT_TRUE(c.status == TN_OK && c.attempts >= 2);
	}
	CU_ASSERT_EQUAL(ended, RIG_SQ);
	rig_close(&g);
	free(r);
}

/* A peer that answers nothing fills the worker's window, for a while. */
static void test_stalled_peer(void)
{
	static const char *const sets[] = { "admission/window_owners=2", "admission/peer_window_owners=2",
					    "admission/merge=false", "admission/stall_ms=50" };
	struct rig g;
	rig_open(&g, sets, 4, script_only_tcp);
	struct dp_remote *r = script_open_remote(&g, 1);
	struct script_step steps[3] = { hang, hang, hang };
	script_set(&script_tcp, steps, 3);
	for (uint64_t i = 1; i <= 2; i++)
		rig_submit(&g, script_sqe(SHR_OP_WRITE, i, 0, 4096));
	rig_steps(&g, 5);
	CU_ASSERT_EQUAL(script_tcp.held_cnt, 2);
	rig_submit(&g, rig_sqe(SHR_OP_WRITE, 9, 0, 0, 4096));
	rig_steps(&g, 5);
	struct shr_cqe_shm c;
	CU_ASSERT_FALSE(rig_poll(&g, &c));
	CU_ASSERT(dp_worker_next_ns(g.w) <= g.now + 50 * RIG_MS); /* it does not sleep over it */
	rig_advance(&g, 50 * RIG_MS);
	CU_ASSERT(rig_poll(&g, &c) && c.token == 9 && c.status == TN_OK);
	CU_ASSERT_EQUAL(g.w->admission.stalled.owners, 2);
	struct dp_result ok = { .status = TN_OK };
	script_end(&script_tcp, 0, &ok); /* it answers: what is still out counts again */
	CU_ASSERT_EQUAL(g.w->admission.stalled.owners, 0);
	CU_ASSERT_EQUAL(g.w->admission.window.owners, 1);
	rig_advance(&g, 50 * RIG_MS);
	CU_ASSERT_EQUAL(g.w->admission.stalled.owners, 1);
	dp_worker_answered(g.w, TN_TRANSPORT_TCP, 3); /* a part of what runs */
	CU_ASSERT_EQUAL(g.w->admission.window.owners, 1);
	rig_close(&g);
	free(r);
}

/* Ends what is out; it took `ns`. */
static void served_in(struct rig *g, uint64_t ns)
{
	struct dp_result ok = { .status = TN_OK };
	rig_steps(g, 2);
	rig_advance(g, ns);
	script_end(&script_tcp, 0, &ok);
	rig_steps(g, 2);
}

static void tune(struct rig *g, struct tn_config *cfg)
{
	CU_ASSERT_EQUAL(rig_do(g, (struct dp_cmd){ .kind = DP_CMD_TUNE, .ptr = cfg, .num = 2, .fd = -1 }), TN_OK);
}

/* Whose deadline cannot be met ends at once, when it comes or when it is its turn, and no transport hears of it. */
static void test_infeasible(void)
{
	static const char *const sets[] = { "admission/drop_infeasible=true", "admission/peer_window_owners=1" };
	struct rig g;
	struct shr_cqe_shm c;
	rig_open(&g, sets, 2, script_only_tcp);
	struct dp_remote *r = script_open_remote(&g, 1);
	script_tcp.beyond = hang;
	struct shr_sqe_shm late = script_sqe(SHR_OP_WRITE, 1, 0, 1 << 20);
	late.deadline_ns = g.now + 100 * RIG_MS; /* nobody knows yet how long it will take */
	rig_submit(&g, late);
	served_in(&g, RIG_MS);
	CU_ASSERT_TRUE(rig_poll(&g, &c) && c.status == TN_OK);
	late = script_sqe(SHR_OP_WRITE, 2, 0, RIG_BYTES / 2); /* 2 ms at this rate */
	late.deadline_ns = g.now + RIG_MS;
	c = rig_run(&g, late);
	CU_ASSERT_TRUE(c.status == TN_TIMEOUT && c.outcome == TN_OUTCOME_TIMEOUT);
	CU_ASSERT_TRUE(c.phase == TN_PHASE_ADMISSION && c.reason == TN_REASON_RESOURCE_EXHAUSTED);
	CU_ASSERT_EQUAL(c.attempts, 0);
	CU_ASSERT_EQUAL(script_tcp.submits, 1);
	rig_submit(&g, script_sqe(SHR_OP_WRITE, 3, 0, 1 << 20));
	late.token = 4;
	late.deadline_ns = g.now + 4 * RIG_MS; /* it can, behind the one that is out */
	rig_submit(&g, late);
	rig_steps(&g, 3);
	CU_ASSERT_EQUAL(g.w->admission.queued, 1);
	served_in(&g, 3 * RIG_MS); /* that took longer */
	CU_ASSERT_TRUE(rig_poll(&g, &c) && c.token == 3 && c.status == TN_OK);
	CU_ASSERT_TRUE(rig_poll(&g, &c) && c.token == 4 && c.status == TN_TIMEOUT);
	CU_ASSERT_EQUAL(c.reason, TN_REASON_RESOURCE_EXHAUSTED);
	CU_ASSERT_EQUAL(script_tcp.submits, 2);
	late.token = 5;
	late.deadline_ns = g.now - RIG_MS; /* over before it came: that is infeasible, too */
	CU_ASSERT_EQUAL(rig_run(&g, late).status, TN_TIMEOUT);
	COUNT_IS(&g, TN_C1(DEADLINE_INFEASIBLE_TOTAL, TN_TRANSPORT_UNSPEC), 3);
	COUNT_IS(&g, TN_C2(ADMISSION_EVENTS_TOTAL, TN_OWNER_KIND_USER, TN_ADMISSION_DEADLINE_DROP), 3);
	COUNT_IS(&g, TN_C3(LOGICAL_REQUEST_OUTCOMES_TOTAL, TN_OP_WRITE, TN_TRANSPORT_UNSPEC, TN_OUTCOME_TIMEOUT), 3);
	static const char *const off[] = { "admission/drop_infeasible=false" };
	struct tn_config *fresh = rig_config(off, 1);
	tune(&g, fresh);
	late.token = 6;
	late.deadline_ns = g.now + RIG_MS / 2;
	rig_submit(&g, late);
	rig_steps(&g, 3);
	CU_ASSERT_EQUAL(script_tcp.submits, 3); /* nobody asked */
	rig_close(&g);
	tn_config_free(fresh);
	free(r);
}

/* The share of its time that each request used, whatever its end. */
static void test_deadline_used(void)
{
	struct rig g;
	rig_open(&g, NULL, 0, script_only_tcp);
	struct dp_remote *r = script_open_remote(&g, 1);
	script_tcp.beyond = hang;
	struct shr_sqe_shm s = script_sqe(SHR_OP_WRITE, 1, 0, 4096);
	s.deadline_ns = g.now + 10 * RIG_MS;
	rig_submit(&g, s);
	served_in(&g, 6 * RIG_MS);
	s.token = 2;
	s.deadline_ns = g.now + 10 * RIG_MS;
	rig_submit(&g, s);
	rig_steps(&g, 2);
	rig_advance(&g, 11 * RIG_MS);
	CU_ASSERT_EQUAL(script_tcp.held_cnt, 0);
	uint32_t at = TN_H1(DEADLINE_MLU_PERMILLE, TN_TRANSPORT_TCP).cell;
	CU_ASSERT_EQUAL(cell(&g, at + tn_bucket(TN_MTYPE_DEADLINE, 600)), IF_METRICS(1));
	CU_ASSERT_EQUAL(cell(&g, at + tn_bucket(TN_MTYPE_DEADLINE, 1100)), IF_METRICS(1));
	COUNT_IS(&g, TN_C1(DEADLINE_INFEASIBLE_TOTAL, TN_TRANSPORT_TCP), 0);
	rig_close(&g);
	free(r);
}

/* Through the whole worker: who came last and must be done first goes first. */
static void test_earliest_deadline(void)
{
	static const char *const sets[] = { "admission/peer_window_owners=1", "admission/merge=false" };
	static const char *const more[] = { "admission/peer_window_owners=1", "admission/edf=true" };
	struct rig g;
	struct shr_cqe_shm c;
	rig_open(&g, sets, 2, script_only_tcp);
	struct dp_remote *r = script_open_remote(&g, 1);
	script_tcp.beyond = hang;
	for (uint64_t i = 1; i <= 4; i++) {
		struct shr_sqe_shm s = script_sqe(SHR_OP_WRITE, i, 0, 4096);
		s.deadline_ns = g.now + (1000 - 100 * i) * RIG_MS;
		rig_submit(&g, s);
	}
	rig_steps(&g, 3);
	struct tn_config *fresh = rig_config(more, 2);
	tune(&g, fresh); /* while they wait */
	static const uint64_t order[] = { 1, 4, 3, 2 };
	for (uint32_t i = 0; i < 4; i++) {
		served_in(&g, RIG_MS);
		CU_ASSERT_TRUE(rig_poll(&g, &c) && c.token == order[i] && c.status == TN_OK);
	}
	rig_close(&g);
	tn_config_free(fresh);
	free(r);
}

#define POLICIES(a, b) "policies=[{\"name\":\"p\",\"transports\":[\"" a "\"]},{\"name\":\"q\",\"transports\":[\"" b "\"]}]"

/* Other policies apply to what waits, but not to what moves; a number that means nothing now is a miss. */
static void test_policies_change(void)
{
	static const char *const sets[] = { POLICIES("rdma", "rdma"), "admission/merge=false" };
	static const char *const other[] = { POLICIES("tcp", "rdma"), "admission/merge=false" };
	static const char *const none[] = { "policies=[]" };
	struct rig g;
	struct shr_cqe_shm c;
	rig_open(&g, sets, 2, script_both);
	struct dp_remote *r = script_open_remote(&g, 1);
	struct script_step full = { SCRIPT_FULL, { 0 } };
	struct shr_sqe_shm s = script_sqe(SHR_OP_WRITE, 1, 0, 4096);
	script_rdma.beyond = hang;
	rig_submit(&g, s);
	rig_steps(&g, 2);
	CU_ASSERT_EQUAL(script_rdma.held_cnt, 1);
	script_rdma.beyond = full;
	s.token = 2;
	rig_submit(&g, s);
	s.token = 3;
	s.policy = TN_CONFIG_POLICY_ID_FIRST + 1; /* q */
	rig_submit(&g, s);
	rig_steps(&g, 5);
	CU_ASSERT_EQUAL(g.w->admission.queued, 2);
	struct tn_config *fresh = rig_config(other, 2), *empty = rig_config(none, 1);
	tune(&g, fresh);
	CU_ASSERT_TRUE(rig_poll(&g, &c) && c.token == 2 && c.transport == TN_TRANSPORT_TCP);
	CU_ASSERT_EQUAL(script_rdma.held_cnt, 1);
	script_rdma.beyond = (struct script_step){ SCRIPT_OK, { 0 } };
	rig_steps(&g, 3);
	CU_ASSERT_TRUE(rig_poll(&g, &c) && c.token == 3 && c.transport == TN_TRANSPORT_RDMA);
	COUNT_IS(&g, TN_C1(SELECTION_EVENTS_TOTAL, TN_SELECTION_POLICY_MISS), 0);
	s.token = 4;
	s.policy = SHR_POLICY_GONE;
	CU_ASSERT_EQUAL(rig_run(&g, s).status, TN_OK);
	COUNT_IS(&g, TN_C1(SELECTION_EVENTS_TOTAL, TN_SELECTION_POLICY_MISS), 1);
	tune(&g, empty); /* which was loaded alone: nothing was ever numbered by it */
	s.token = 5;
	s.policy = TN_CONFIG_POLICY_ID_FIRST;
	c = rig_run(&g, s);
	CU_ASSERT_TRUE(c.status == TN_INVALID && (c.flags & SHR_CQE_REFUSED));
	struct dp_result ok = { .status = TN_OK };
	script_end(&script_rdma, 0, &ok);
	rig_steps(&g, 2);
	rig_close(&g);
	tn_config_free(fresh);
	tn_config_free(empty);
	free(r);
}

/* Paused, everything is taken and nothing goes out: what is out ends, deadlines run, cancel works. */
static void test_pause(void)
{
	struct rig g;
	struct shr_cqe_shm c;
	rig_open(&g, NULL, 0, script_only_tcp);
	struct dp_remote *r = script_open_remote(&g, 1);
	struct script_step steps[1] = { hang };
	script_set(&script_tcp, steps, 1);
	rig_submit(&g, script_sqe(SHR_OP_WRITE, 1, 0, 4096));
	rig_steps(&g, 2);
	CU_ASSERT_EQUAL(rig_do(&g, (struct dp_cmd){ .kind = DP_CMD_MODE, .num = DP_MODE_PAUSE, .fd = -1 }), TN_OK);
	struct shr_sqe_shm soon = script_sqe(SHR_OP_WRITE, 2, 4096, 4096), note = script_sqe(SHR_OP_NOTIFY, 5, 0, 0);
	soon.deadline_ns = g.now + 5 * RIG_MS;
	note.memory = 0;
	rig_submit(&g, soon);
	rig_submit(&g, script_sqe(SHR_OP_WRITE, 3, 8192, 4096));
	rig_submit(&g, script_sqe(SHR_OP_READ, 4, 0, 4096));
	rig_submit(&g, note);
	rig_steps(&g, 10);
	CU_ASSERT(script_tcp.submits == 1 && script_tcp.notes == 0 && g.w->admission.queued == 3);
	served_in(&g, RIG_MS);
	CU_ASSERT_TRUE(rig_poll(&g, &c) && c.token == 1 && c.status == TN_OK);
	rig_submit(&g, (struct shr_sqe_shm){ .opcode = SHR_OP_CANCEL, .token = 4 });
	rig_steps(&g, 2);
	CU_ASSERT_TRUE(rig_poll(&g, &c) && c.token == 4 && c.status == TN_CANCELED);
	rig_advance(&g, 5 * RIG_MS);
	CU_ASSERT_TRUE(rig_poll(&g, &c) && c.token == 2 && c.status == TN_TIMEOUT && c.phase == TN_PHASE_ADMISSION);
	rig_advance(&g, 1000 * RIG_MS);
	CU_ASSERT(script_tcp.submits == 1 && script_tcp.notes == 0 && g.w->admission.queued == 1);
	CU_ASSERT(dp_worker_next_ns(g.w) > g.now); /* and it sleeps */
	CU_ASSERT_EQUAL(rig_do(&g, (struct dp_cmd){ .kind = DP_CMD_MODE, .num = DP_MODE_RUN, .fd = -1 }), TN_OK);
	rig_steps(&g, 2);
	CU_ASSERT_TRUE(rig_poll(&g, &c) && c.token == 3 && c.status == TN_OK);
	CU_ASSERT_EQUAL(script_tcp.notes, 1);
	dp_note_done(g.w, script_tcp.note, TN_OK, 0, 0);
	rig_close(&g);
	free(r);
}

/* Draining, what was taken goes on, also what was paused, and what comes is refused; it is over when all that ended. */
static void test_drain_mode(void)
{
	struct rig g;
	struct shr_cqe_shm c;
	rig_open(&g, NULL, 0, script_only_tcp);
	struct dp_remote *r = script_open_remote(&g, 1);
	script_tcp.beyond = hang;
	CU_ASSERT_EQUAL(rig_do(&g, (struct dp_cmd){ .kind = DP_CMD_MODE, .num = DP_MODE_PAUSE, .fd = -1 }), TN_OK);
	rig_submit(&g, script_sqe(SHR_OP_WRITE, 1, 0, 4096));
	rig_steps(&g, 2);
	uint64_t id = rig_post(&g, (struct dp_cmd){ .kind = DP_CMD_MODE, .num = DP_MODE_DRAIN, .fd = -1 });
	rig_steps(&g, 2);
	CU_ASSERT_EQUAL(script_tcp.held_cnt, 1);
	rig_submit(&g, script_sqe(SHR_OP_WRITE, 2, 0, 4096));
	rig_steps(&g, 2);
	CU_ASSERT_TRUE(rig_poll(&g, &c) && c.token == 2 && c.status == TN_CLOSED && (c.flags & SHR_CQE_REFUSED));
	CU_ASSERT_NOT_EQUAL(g.acked, id);
	served_in(&g, 100 * RIG_MS);
	CU_ASSERT_TRUE(rig_poll(&g, &c) && c.token == 1 && c.status == TN_OK);
	CU_ASSERT_EQUAL(g.acked, id);
	CU_ASSERT_FALSE(g.w->stopped);
	rig_close(&g);
	free(r);
}

TN_TEST_MAIN("replay",
	{ "random cancels leave no owner behind", test_random_cancels },
	{ "each request of a batch selects alone", test_each_selects_alone },
	{ "all requests retry at once", test_all_retry_at_once },
	{ "the replay law through the worker", test_law_table },
	{ "failover, fallback, hint", test_failover },
	{ "the failover budget", test_failover_budget },
	{ "attempts and waits are bounded", test_attempts_are_bounded },
	{ "a merged owner fails, one member timed out before", test_merged_failure },
	{ "a transport without room defers", test_no_room_defers },
	{ "a stale descriptor is refreshed once", test_stale_refresh },
	{ "a replaced descriptor quiesces", test_remote_set_quiesces },
	{ "stale again after another restart", test_stale_of_each_incarnation },
	{ "a refusal of a version already replaced", test_stale_of_old_version },
	{ "a version that was replaced meanwhile", test_stale_version_replaced },
	{ "a stale peer is refreshed", test_peer_refresh },
	{ "memory busy, then released", test_late_cancel },
	{ "fence and segment removal wait for the transport", test_fence_and_segment },
	{ "a stop serves out", test_stop_serves_out },
	{ "lanes go to the transport of their kind", test_lanes_by_kind },
	{ "a lost segment fails with its reason", test_lost_remote },
	{ "a full peer window holds only that peer", test_peer_window },
	{ "a silent peer leaves the worker's window", test_stalled_peer },
	{ "a deadline that cannot be met", test_infeasible },
	{ "how much of its time a request used", test_deadline_used },
	{ "the earliest deadline first", test_earliest_deadline },
	{ "policies change while requests wait", test_policies_change },
	{ "paused, nothing goes out", test_pause },
	{ "draining, what was taken goes on", test_drain_mode },
)
