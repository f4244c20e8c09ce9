/* SPDX-License-Identifier: Apache-2.0
 * Rails through a whole worker with scripted transports: who waits for one, who tries it first, who comes after, and
 * what a restarted peer changes. Every case ends with the contract's equations and empty pools. */
#include "tests/unit/dataplane/script.h"

static const struct script_step down = { SCRIPT_FAIL, { .status = TN_PATH_DOWN, .phase = TN_PHASE_POLL,
							.reason = TN_REASON_PEER_CLOSED, .nothing_left = true } };

static const struct script_step hang = { SCRIPT_HANG, { 0 } };

static struct shr_cqe_shm run(struct rig *g, struct shr_sqe_shm sqe)
{
	struct shr_cqe_shm c = { .status = TN_PENDING };
	rig_submit(g, sqe);
	for (int i = 0; i < 400 && !rig_poll(g, &c); i++)
		rig_advance(g, RIG_MS);
	return c;
}

/* The only way to its target cools down: it waits, is not charged an attempt, and goes when the rail is good again. */
static void test_cooling_rail_is_waited_for(void)
{
	static const char *const sets[] = { "retry/max_attempts=4", "retry/base_delay_ms=1", "rails/cool_min_ms=500" };
	struct rig g;
	rig_open(&g, sets, 3, script_only_tcp);
	struct dp_remote *r = script_open_remote(&g, 1);
	struct script_step steps[3] = { down, down, down };
	struct shr_cqe_shm c;
	script_set(&script_tcp, steps, 3);
	script_tcp.probe = DP_REACH_CONNECT;
	rig_submit(&g, script_sqe(SHR_OP_WRITE, 1, 0, 4096));
	for (unsigned i = 0; i < 100 && g.w->selector.rails.sick_cnt == 0; i++)
		rig_advance(&g, RIG_MS);
	CU_ASSERT_EQUAL_FATAL(g.w->selector.rails.sick_cnt, 1);
	rig_submit(&g, script_sqe(SHR_OP_WRITE, 2, 8192, 4096));
	for (unsigned i = 0; i < 400; i++) {
		rig_advance(&g, RIG_MS);
		CU_ASSERT_FALSE(rig_poll(&g, &c));
	}
	CU_ASSERT_EQUAL(script_tcp.submits, 3);
	CU_ASSERT_EQUAL(script_tcp.probes, 0);
	CU_ASSERT(dp_worker_next_ns(g.w) > g.now + RIG_MS); /* and nobody turns in circles */
	for (unsigned i = 0; i < 1000 && script_tcp.probes == 0; i++)
		rig_advance(&g, RIG_MS);
	CU_ASSERT_EQUAL(script_tcp.probes, 1);
	rig_advance(&g, RIG_MS);
	CU_ASSERT_EQUAL(script_tcp.submits, 3);
	script_tcp.beyond = hang;
	dp_worker_probed(g.w, TN_TRANSPORT_TCP, 3, true);
	rig_advance(&g, RIG_MS);
	CU_ASSERT_EQUAL(script_tcp.held_cnt, 1); /* one on trial */
	struct dp_result ok = { .status = TN_OK };
	script_end(&script_tcp, 0, &ok);
	rig_advance(&g, RIG_MS);
	CU_ASSERT_EQUAL_FATAL(script_tcp.held_cnt, 1); /* the other one follows */
	script_end(&script_tcp, 0, &ok);
	rig_advance(&g, RIG_MS);
	for (unsigned i = 0; i < 2; i++) {
		CU_ASSERT_TRUE_FATAL(rig_poll(&g, &c));
		CU_ASSERT(c.status == TN_OK && c.attempts == (c.token == 1 ? 4 : 1));
	}
	rig_close(&g);
	free(r);
}

/* It never comes back: the end is the deadline, not before. */
static void test_cooling_rail_until_deadline(void)
{
	static const char *const sets[] = { "retry/max_attempts=8", "rails/max_errors=1", "rails/probe_ms=10",
					    "rails/cool_max_ms=10000" };
	struct rig g;
	rig_open(&g, sets, 4, script_only_tcp);
	struct dp_remote *r = script_open_remote(&g, 1);
	struct shr_cqe_shm c;
	uint64_t deadline = g.now + 5000 * RIG_MS;
	struct shr_sqe_shm s = script_sqe(SHR_OP_WRITE, 1, 0, 4096);
	script_tcp.beyond = down;
	script_tcp.probe = DP_REACH_CONNECT;
	s.deadline_ns = deadline;
	rig_submit(&g, s);
	while (g.now + 3 * RIG_MS < deadline) {
		rig_advance(&g, RIG_MS);
		CU_ASSERT_FALSE_FATAL(rig_poll(&g, &c));
	}
	rig_advance(&g, 3 * RIG_MS);
	CU_ASSERT_TRUE_FATAL(rig_poll(&g, &c));
	CU_ASSERT(c.status == TN_TIMEOUT && c.phase == TN_PHASE_RETRY && c.attempts == 1 && c.transport == TN_TRANSPORT_TCP);
	s = script_sqe(SHR_OP_WRITE, 2, 0, 4096); /* that made no attempt: what it waited for is told */
	s.deadline_ns = g.now + 20 * RIG_MS;
	rig_submit(&g, s);
	rig_advance(&g, RIG_MS);
	rig_advance(&g, 20 * RIG_MS);
	CU_ASSERT_TRUE_FATAL(rig_poll(&g, &c));
	CU_ASSERT(c.status == TN_TIMEOUT && c.phase == TN_PHASE_RETRY && c.attempts == 0 && c.transport == TN_TRANSPORT_TCP);
	CU_ASSERT(script_tcp.probes >= 3 && script_tcp.probes <= 6);
	rig_close(&g);
	free(r);
}

/* A peer that restarts is tried at once. The attempt on trial that has no room, or is canceled, lets another one try. */
static void test_trial(void)
{
	static const char *const sets[] = { "rails/max_errors=1", "rails/cool_min_ms=60000", "rails/cool_max_ms=60000",
					    "admission/merge=false" };
	struct rig g;
	rig_open(&g, sets, 4, script_only_tcp);
	struct dp_remote *r = script_open_remote(&g, 1);
	struct dp_peer before = { .index = 3, .session.b = { 42 } }, after = { .index = 3, .session.b = { 43 } };
	struct script_step full = { SCRIPT_FULL, { 0 } }, steps[4] = { down, full, hang, hang };
	struct shr_cqe_shm c;
	script_set(&script_tcp, steps, 4);
	CU_ASSERT_EQUAL(rig_do(&g, (struct dp_cmd){ .kind = DP_CMD_PEER_SET, .ptr = &before, .fd = -1 }), TN_OK);
	rig_submit(&g, script_sqe(SHR_OP_WRITE, 1, 0, 4096));
	rig_advance(&g, 10 * RIG_MS);
	CU_ASSERT_EQUAL(g.w->selector.rails.sick_cnt, 1);
	for (uint64_t i = 2; i <= 3; i++)
		rig_submit(&g, script_sqe(SHR_OP_WRITE, i, i * 4096, 4096));
	struct dp_peer again = before;
	CU_ASSERT_EQUAL(rig_do(&g, (struct dp_cmd){ .kind = DP_CMD_PEER_SET, .ptr = &again, .fd = -1 }), TN_OK);
	rig_advance(&g, RIG_MS);
	uint32_t submits = script_tcp.submits; /* nothing new about it */
	CU_ASSERT_EQUAL(rig_do(&g, (struct dp_cmd){ .kind = DP_CMD_PEER_SET, .ptr = &after, .fd = -1 }), TN_OK);
	rig_advance(&g, RIG_MS);
	rig_advance(&g, RIG_MS);
	CU_ASSERT_EQUAL(script_tcp.submits, submits + 2);
	CU_ASSERT_EQUAL_FATAL(script_tcp.held_cnt, 1);
	uint64_t token = tn_list_first(&script_tcp.held[0]->owner->requests, struct dp_request, owner_link)->sqe.token;
	rig_submit(&g, (struct shr_sqe_shm){ .opcode = SHR_OP_CANCEL, .token = token });
	rig_advance(&g, RIG_MS);
	CU_ASSERT(rig_poll(&g, &c) && c.status == TN_CANCELED && c.token == token);
	rig_advance(&g, RIG_MS);
	CU_ASSERT_EQUAL(script_tcp.held_cnt, 1);
	rig_close(&g);
	free(r);
}

/* Nobody waits for the end of a long attempt on trial: its first bytes say that the rail works. What attempts from before the
 * cool-down tell is old news: it ends neither the trial nor the rail. */
static void test_long_trial(void)
{
	static const char *const sets[] = { "rails/max_errors=1", "rails/cool_min_ms=60000", "rails/cool_max_ms=60000",
					    "admission/merge=false", "retry/base_delay_ms=1" };
	struct rig g;
	rig_open(&g, sets, 5, script_only_tcp);
	struct dp_remote *r = script_open_remote(&g, 1);
	struct dp_peer peer = { .index = 3, .session.b = { 42 } };
	struct script_step steps[3] = { hang, hang, down };
	script_set(&script_tcp, steps, 3);
	script_tcp.beyond = hang;
	CU_ASSERT_EQUAL(rig_do(&g, (struct dp_cmd){ .kind = DP_CMD_PEER_SET, .ptr = &peer, .fd = -1 }), TN_OK);
	for (uint64_t i = 1; i <= 4; i++) {
		rig_submit(&g, script_sqe(SHR_OP_WRITE, i, i * 4096, 4096));
		rig_advance(&g, RIG_MS);
	}
	CU_ASSERT_EQUAL(g.w->selector.rails.sick_cnt, 1);
	CU_ASSERT_EQUAL_FATAL(script_tcp.held_cnt, 2); /* older than its cool-down */
	CU_ASSERT_EQUAL(rig_do(&g, (struct dp_cmd){ .kind = DP_CMD_PEER_BACK, .num = 3, .fd = -1 }), TN_OK);
	rig_advance(&g, RIG_MS);
	CU_ASSERT_EQUAL_FATAL(script_tcp.held_cnt, 3); /* one of the two on trial */
	struct dp_result canceled = { .status = TN_CANCELED, .nothing_left = true };
	script_end(&script_tcp, 0, &canceled);
	rig_advance(&g, RIG_MS);
	CU_ASSERT_EQUAL_FATAL(script_tcp.held_cnt, 2); /* still one on trial */
	script_end(&script_tcp, 0, &down.result);
	rig_advance(&g, 2 * RIG_MS);
	CU_ASSERT_EQUAL(g.w->selector.rails.by_target[4][TN_TRANSPORT_TCP].rail.state, DP_RAIL_PROBATION);
	dp_worker_answered(g.w, TN_TRANSPORT_TCP, 3);
	CU_ASSERT_EQUAL(g.w->selector.rails.sick_cnt, 0);
	rig_advance(&g, 2 * RIG_MS);
	CU_ASSERT_EQUAL(script_tcp.held_cnt, 3); /* the others beside it */
	struct dp_result ok = { .status = TN_OK };
	while (script_tcp.held_cnt > 0)
		script_end(&script_tcp, 0, &ok);
	rig_advance(&g, RIG_MS);
	rig_close(&g);
	free(r);
}

/* Where failures are to count no more, all rails are up at once, and who waited goes on. */
static void test_rails_switched_off(void)
{
	static const char *const sets[] = { "rails/max_errors=1", "rails/cool_min_ms=60000", "rails/cool_max_ms=60000" };
	struct rig g;
	rig_open(&g, sets, 3, script_only_tcp);
	struct dp_remote *r = script_open_remote(&g, 1);
	script_set(&script_tcp, &down, 1);
	rig_submit(&g, script_sqe(SHR_OP_WRITE, 1, 0, 4096));
	rig_advance(&g, 100 * RIG_MS);
	CU_ASSERT_EQUAL(g.w->selector.rails.sick_cnt, 1);
	CU_ASSERT_EQUAL(script_tcp.submits, 1);
	struct tn_config *cfg = rig_config((const char *const[]){ "rails/max_errors=0" }, 1);
	CU_ASSERT_EQUAL(rig_do(&g, (struct dp_cmd){ .kind = DP_CMD_TUNE, .ptr = cfg, .fd = -1 }), TN_OK);
	CU_ASSERT_EQUAL(g.w->selector.rails.sick_cnt, 0);
	struct shr_cqe_shm c;
	for (unsigned i = 0; i < 10 && !rig_poll(&g, &c); i++)
		rig_advance(&g, RIG_MS);
	CU_ASSERT(c.status == TN_OK && c.attempts == 2);
	rig_close(&g);
	tn_config_free(cfg);
	free(r);
}

/* Failing over goes only where something can serve: else the same transport again, after a pause. */
static void test_no_failover_to_a_cooling_rail(void)
{
	static const char *const sets[] = { "rails/max_errors=2", "rails/cool_min_ms=60000", "rails/cool_max_ms=60000" };
	struct rig g;
	rig_open(&g, sets, 3, script_both);
	struct dp_remote *r = script_open_remote(&g, 1);
	for (unsigned i = 0; i < 2; i++)
		(void)dp_rails_ended(&g.w->selector.rails, TN_TRANSPORT_TCP, 3, TN_PATH_DOWN, g.now, g.now + i);
	script_set(&script_rdma, &down, 1);
	struct shr_cqe_shm c = run(&g, script_sqe(SHR_OP_WRITE, 1, 0, 4096));
	CU_ASSERT(c.status == TN_OK && c.transport == TN_TRANSPORT_RDMA && c.attempts == 2);
	CU_ASSERT_EQUAL(script_tcp.submits, 0);
	rig_close(&g);
	free(r);
}

/* Other policies find what waits, too. */
static void test_other_rules(void)
{
	static const char *const sets[] = { "policies=[{\"name\":\"t\",\"transports\":[\"tcp\"]}]", "rails/max_errors=1",
					    "rails/cool_min_ms=300", "rails/cool_max_ms=300" };
	static const char *const other[] = { "policies=[{\"name\":\"r\",\"transports\":[\"rdma\"]}]" };
	struct rig g;
	struct shr_cqe_shm c;
	rig_open(&g, sets, 4, script_both);
	struct tn_config *fresh = rig_config(other, 1);
	struct dp_remote *r = script_open_remote(&g, 1);
	script_set(&script_tcp, &down, 1);
	rig_submit(&g, script_sqe(SHR_OP_WRITE, 1, 0, 4096));
	for (unsigned i = 0; i < 20; i++)
		rig_advance(&g, RIG_MS);
	CU_ASSERT_EQUAL(g.w->pools.states.owner[DP_OWNER_WAITING], 1);
	CU_ASSERT_EQUAL(rig_do(&g, (struct dp_cmd){ .kind = DP_CMD_TUNE, .ptr = fresh, .fd = -1 }), TN_OK);
	for (unsigned i = 0; i < 400 && !rig_poll(&g, &c); i++)
		rig_advance(&g, RIG_MS);
	CU_ASSERT(c.status == TN_OK && c.transport == TN_TRANSPORT_RDMA && c.attempts == 2);
	CU_ASSERT_EQUAL(script_tcp.submits, 1);
	rig_close(&g);
	tn_config_free(fresh);
	free(r);
}

TN_TEST_MAIN("rails",
	{ "other rules for what waits", test_other_rules },
	{ "a cooling rail is waited for", test_cooling_rail_is_waited_for },
	{ "a rail that stays down ends with the deadline", test_cooling_rail_until_deadline },
	{ "one attempt on trial, and who follows it", test_trial },
	{ "a long attempt on trial holds nobody up, an old one ends nothing", test_long_trial },
	{ "rails/max_errors 0 brings all up", test_rails_switched_off },
	{ "no failing over to a cooling rail", test_no_failover_to_a_cooling_rail },
)
