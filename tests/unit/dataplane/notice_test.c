/* SPDX-License-Identifier: Apache-2.0
 * Notifications: data before notice, failed members, reuse of batch numbers, local delivery and verdict, remote
 * delivery, deadlines on the way, sequence numbers. */
#include "tests/unit/dataplane/script.h"

static struct shr_sqe_shm note(uint64_t token, tn_handle segment, uint32_t batch, const char *text, struct rig *g)
{
	uint32_t len = (uint32_t)strlen(text);
	if (len)
		memcpy(shr_qp_note(&g->q.view, 3), text, len);
	return (struct shr_sqe_shm){ .user_data = token, .token = token, .segment = segment, .opcode = SHR_OP_NOTIFY, .batch = batch,
				     .flags = batch ? SHR_SQE_BATCH : 0, .note_len = len, .note_slot = len ? 3 : 0,
				     .priority = TN_PRIORITY_MEDIUM };
}

static struct shr_sqe_shm member(uint8_t op, uint64_t token, tn_handle segment, uint32_t batch, uint64_t len)
{
	struct shr_sqe_shm e = rig_sqe(op, token, 0, 0, len);
	e.segment = segment;
	e.batch = batch;
	e.flags = SHR_SQE_BATCH;
	return e;
}

static tn_handle here(void) { return tn_handle_make(1, 1); }
static tn_handle there(void) { return tn_handle_make(2, 1); }

static void verdict(struct rig *g, uint32_t event, tn_status status)
{
	struct dp_cmd cmd = { .kind = DP_CMD_NOTE_VERDICT, .num = g->events[event].num, .status = status, .fd = -1 };
	RIG_FATAL(dp_worker_post(g->w, &cmd) == TN_OK);
	rig_steps(g, 2);
}

static void test_local(void)
{
	struct rig g;
	struct shr_cqe_shm c;
	rig_open(&g, NULL, 0, NULL);
	rig_submit(&g, note(1, here(), 0, "hello", &g));
	rig_steps(&g, 2);
	CU_ASSERT_EQUAL_FATAL(g.event_cnt, 1);
	const struct dp_note_in *in = g.events[0].ptr;
	CU_ASSERT_EQUAL(g.events[0].kind, DP_EVT_NOTE);
	CU_ASSERT_EQUAL(g.events[0].num2, g.segment->handle);
	CU_ASSERT_EQUAL(in->len, 5);
	CU_ASSERT_EQUAL(in->uid, 1000);
	CU_ASSERT_EQUAL(memcmp(in->payload, "hello", 5), 0);
	CU_ASSERT_FALSE(rig_poll(&g, &c)); /* only the receiver's word ends it */
	verdict(&g, 0, TN_OK);
	CU_ASSERT_TRUE(rig_poll(&g, &c) && c.status == TN_OK && c.opcode == SHR_OP_NOTIFY);
	verdict(&g, 0, TN_OK); /* said twice: nobody is meant any more */
	CU_ASSERT_FALSE(rig_poll(&g, &c));
	rig_submit(&g, note(2, here(), 0, "", &g));
	rig_steps(&g, 2);
	CU_ASSERT_EQUAL_FATAL(g.event_cnt, 2);
	const struct dp_note_in *in2 = g.events[1].ptr;
	CU_ASSERT(in2->seq > in->seq);
	CU_ASSERT_EQUAL(in2->seq & 63, 0);
	verdict(&g, 1, TN_LIMIT);
	CU_ASSERT_TRUE(rig_poll(&g, &c) && c.outcome == TN_OUTCOME_FAILED && c.reason == TN_REASON_QUEUE_FULL);
	if (TENT_METRICS) { /* counted as what they are, and as nothing else */
		const tn_a64 *cells = g.w->stats.m.cells;
		for (unsigned end = 0; end < 2; end++)
			CU_ASSERT_EQUAL(tn_load_relaxed64(&cells[TN_C2(NOTIFY_OUTCOMES_TOTAL, TN_TRANSPORT_SHM, end).cell]), 1);
		for (unsigned i = TN_MB_TERMINAL_FAILURES_TOTAL; i <= TN_MLAST_TERMINAL_FAILURES_TOTAL; i++)
			CU_ASSERT_EQUAL(tn_load_relaxed64(&cells[i]), 0);
	}
	/* Canceled when it had left: the receiver has it, or will. */
	rig_submit(&g, note(3, here(), 0, "gone", &g));
	rig_steps(&g, 2);
	rig_submit(&g, (struct shr_sqe_shm){ .opcode = SHR_OP_CANCEL, .token = 3 });
	rig_steps(&g, 2);
	CU_ASSERT_TRUE(rig_poll(&g, &c) && c.token == 3 && c.outcome == TN_OUTCOME_CANCELED && c.status == TN_AMBIGUOUS);
	rig_close(&g);
}

static void test_data_before_notice(void)
{
	struct rig g;
	struct shr_cqe_shm c;
	rig_open(&g, NULL, 0, NULL);
	rig_submit(&g, member(SHR_OP_WRITE, 1, here(), 8, 4000000));
	rig_submit(&g, member(SHR_OP_WRITE, 2, here(), 8, 64));
	rig_submit(&g, note(3, here(), 8, "done", &g));
	rig_submit(&g, member(SHR_OP_WRITE, 4, here(), 8, 3000000)); /* the number is free again: another batch */
	bool first = false;
	for (int i = 0; i < 60; i++) {
		rig_steps(&g, 1);
		if (g.event_cnt && !first) {
			first = true;
			CU_ASSERT_EQUAL(g.target.base[3999999], 0xa5);
		}
		while (rig_poll(&g, &c))
			CU_ASSERT_EQUAL(c.status, TN_OK);
	}
	CU_ASSERT_TRUE(first);
	CU_ASSERT_EQUAL(g.event_cnt, 1);
	verdict(&g, 0, TN_OK);
	CU_ASSERT_TRUE(rig_poll(&g, &c) && c.token == 3 && c.status == TN_OK);
	rig_submit(&g, note(5, here(), 8, "late", &g)); /* everything of that batch completed long ago */
	rig_steps(&g, 2);
	CU_ASSERT_EQUAL(g.event_cnt, 2);
	verdict(&g, 1, TN_OK);
	CU_ASSERT_TRUE(rig_poll(&g, &c) && c.token == 5 && c.status == TN_OK);
	CU_ASSERT_EQUAL(g.w->pools.batches.live, 0);
	rig_close(&g);
}

/* A member that failed, was canceled, or was refused: no notice, and the number is free again. */
static void test_failed_member(void)
{
	for (unsigned how = 0; how < 4; how++) {
		struct rig g;
		struct shr_cqe_shm c;
		rig_open(&g, NULL, 0, NULL);
		struct shr_sqe_shm m = member(SHR_OP_WRITE, 1, here(), 5, 3000000);
		if (how == 0)
			m.deadline_ns = g.now + 2000;
		if (how == 2)
			m.memory = tn_handle_make(9, 9);
		rig_submit(&g, m);
		if (how == 3) { /* fails before the notice is there */
			rig_steps(&g, 2);
			rig_submit(&g, (struct shr_sqe_shm){ .opcode = SHR_OP_CANCEL, .token = 1 });
			rig_steps(&g, 2);
		}
		rig_submit(&g, note(2, here(), 5, "x", &g));
		if (how == 1)
			rig_submit(&g, (struct shr_sqe_shm){ .opcode = SHR_OP_CANCEL, .token = 1 });
		rig_steps(&g, 60);
		CU_ASSERT_TRUE(rig_poll(&g, &c) && c.token == 1 && c.outcome != TN_OUTCOME_COMPLETED);
		CU_ASSERT_TRUE(rig_poll(&g, &c) && c.token == 2);
		CU_ASSERT_EQUAL(c.status, TN_CANCELED);
		CU_ASSERT_EQUAL(c.phase, TN_PHASE_NOTIFY);
		CU_ASSERT_EQUAL(g.event_cnt, 0);
		CU_ASSERT_EQUAL(g.w->pools.batches.live, 0);
		rig_submit(&g, member(SHR_OP_WRITE, 3, here(), 5, 64));
		rig_submit(&g, note(4, here(), 5, "y", &g));
		rig_steps(&g, 3);
		CU_ASSERT_EQUAL(g.event_cnt, 1);
		rig_close(&g);
	}
}

/* Half of a batch went to memory that nobody has any more: whoever publishes the name now is not told that it is there.
 * With the same publication (its data plane restarted) the notice goes out. */
static void test_published_anew(void)
{
	for (uint8_t other = 0; other < 2; other++) {
		struct rig g;
		struct shr_cqe_shm c;
		rig_open(&g, NULL, 0, script_only_tcp);
		struct dp_remote *r = script_open_remote(&g, 1), *newer = script_remote(&g, 2);
		newer->session.b[0] = 43;
		newer->publication.b[0] = other;
		uint64_t begin_ns = g.now;
		rig_submit(&g, member(SHR_OP_WRITE, 1, there(), 5, 64));
		rig_steps(&g, 2);
		CU_ASSERT_TRUE(rig_poll(&g, &c) && c.token == 1 && c.status == TN_OK);
		CU_ASSERT_EQUAL(rig_do(&g, (struct dp_cmd){ .kind = DP_CMD_REMOTE_SET, .ptr = newer, .fd = -1 }), TN_OK);
		struct shr_sqe_shm n = note(2, there(), 5, "x", &g);
		n.begin_ns = begin_ns;
		rig_submit(&g, n);
		rig_steps(&g, 2);
		CU_ASSERT_EQUAL(script_tcp.notes, 1u - other);
		if (other) {
			CU_ASSERT_TRUE(rig_poll(&g, &c) && c.token == 2 && c.status == TN_STALE);
			CU_ASSERT_EQUAL(c.phase, TN_PHASE_NOTIFY);
			CU_ASSERT_EQUAL(c.reason, TN_REASON_STALE_GENERATION);
		} else {
			dp_note_done(g.w, script_tcp.note, TN_OK, 0, 0);
		}
		n = note(3, there(), 6, "x", &g);
		n.begin_ns = g.now;
		rig_submit(&g, n);
		rig_steps(&g, 2);
		CU_ASSERT_EQUAL(script_tcp.notes, 2u - other);
		dp_note_done(g.w, script_tcp.note, TN_OK, 0, 0);
		rig_close(&g);
		free(r), free(newer);
	}
}

static void test_deadline_while_waiting(void)
{
	struct rig g;
	struct shr_cqe_shm c;
	rig_open(&g, NULL, 0, script_only_tcp);
	struct dp_remote *r = script_open_remote(&g, 1);
	struct script_step hang = { SCRIPT_HANG, { 0 } };
	script_set(&script_tcp, &hang, 1);
	rig_submit(&g, member(SHR_OP_WRITE, 1, there(), 5, 64));
	struct shr_sqe_shm n = note(2, there(), 5, "x", &g);
	n.deadline_ns = g.now + RIG_MS;
	rig_submit(&g, n);
	rig_steps(&g, 2);
	rig_advance(&g, 2 * RIG_MS);
	CU_ASSERT_TRUE(rig_poll(&g, &c) && c.token == 2 && c.status == TN_TIMEOUT && c.phase == TN_PHASE_NOTIFY);
	struct dp_result ok = { .status = TN_OK };
	script_end(&script_tcp, 0, &ok);
	rig_steps(&g, 2);
	CU_ASSERT_TRUE(rig_poll(&g, &c) && c.token == 1 && c.status == TN_OK);
	CU_ASSERT_EQUAL(script_tcp.notes, 0);
	CU_ASSERT_EQUAL(g.w->pools.batches.live, 0);
	rig_close(&g);
	free(r);
}

static void test_remote(void)
{
	struct rig g;
	struct shr_cqe_shm c;
	rig_open(&g, NULL, 0, script_only_tcp);
	struct dp_remote *r = script_open_remote(&g, 1), *newer = script_remote(&g, 2);
	script_tcp.note_status = TN_AGAIN;
	rig_submit(&g, note(1, there(), 0, "far", &g));
	rig_steps(&g, 5);
	CU_ASSERT_EQUAL(script_tcp.notes, 0);
	script_tcp.note_status = TN_OK;
	rig_steps(&g, 1);
	CU_ASSERT_EQUAL_FATAL(script_tcp.notes, 1);
	CU_ASSERT_EQUAL(memcmp(script_tcp.note->note, "far", 3), 0);
	dp_note_done(g.w, script_tcp.note, TN_OK, 0, 0);
	rig_steps(&g, 1);
	CU_ASSERT_TRUE(rig_poll(&g, &c) && c.status == TN_OK && c.transport == TN_TRANSPORT_TCP);
	script_tcp.note_status = TN_PATH_DOWN;
	c = rig_run(&g, note(2, there(), 0, "far", &g));
	CU_ASSERT_EQUAL(c.status, TN_PATH_DOWN);
	CU_ASSERT_EQUAL(c.reason, TN_REASON_PEER_CLOSED);
	/* The deadline passes on the way: over for the application, while the transport still holds the object and the
	 * descriptor it used. */
	script_tcp.note_status = TN_OK;
	struct shr_sqe_shm n = note(3, there(), 0, "far", &g);
	n.deadline_ns = g.now + RIG_MS;
	rig_submit(&g, n);
	rig_steps(&g, 2);
	rig_advance(&g, 2 * RIG_MS);
	CU_ASSERT_TRUE(rig_poll(&g, &c) && c.token == 3 && c.outcome == TN_OUTCOME_TIMEOUT && c.status == TN_AMBIGUOUS && c.flags == 0);
	uint64_t id = rig_post(&g, (struct dp_cmd){ .kind = DP_CMD_REMOTE_SET, .ptr = newer, .fd = -1 });
	rig_steps(&g, 2);
	CU_ASSERT_NOT_EQUAL(g.acked, id);
	dp_note_done(g.w, script_tcp.note, TN_OK, 0, 0);
	rig_steps(&g, 2);
	CU_ASSERT_EQUAL(g.acked, id);
	CU_ASSERT_FALSE(rig_poll(&g, &c));
	rig_close(&g);
	free(r), free(newer);
}

/* The payload is copied once: what the application does to the slot afterwards changes nothing. */
static void test_copied_once(void)
{
	struct rig g;
	rig_open(&g, NULL, 0, script_only_tcp);
	struct dp_remote *r = script_open_remote(&g, 1);
	struct shr_sqe_shm n = note(1, there(), 0, "before", &g);
	rig_submit(&g, n);
	rig_steps(&g, 1);
	memcpy(shr_qp_note(&g.q.view, 3), "AFTER!", 6);
	CU_ASSERT_EQUAL(memcmp(script_tcp.note->note, "before", 6), 0);
	dp_note_done(g.w, script_tcp.note, TN_OK, 0, 0);
	/* A slot that is reused before its completion is noticed when more payloads are out than slots exist. */
	script_tcp.note_status = TN_AGAIN;
	for (uint64_t i = 0; i < RIG_NOTES + 2; i++)
		rig_submit(&g, note(10 + i, there(), 0, "z", &g));
	rig_steps(&g, 3);
	struct shr_cqe_shm c;
	uint32_t refused = 0;
	while (rig_poll(&g, &c))
		refused += c.status == TN_LIMIT && c.flags == SHR_CQE_REFUSED;
	CU_ASSERT_EQUAL(refused, 2);
	rig_close(&g);
	free(r);
}

TN_TEST_MAIN("notice",
	{ "local delivery and verdict", test_local },
	{ "data before notice, numbers are reusable", test_data_before_notice },
	{ "a failed member cancels the notice", test_failed_member },
	{ "a segment that was published anew", test_published_anew },
	{ "deadline while waiting for the batch", test_deadline_while_waiting },
	{ "remote delivery", test_remote },
	{ "the payload is copied once", test_copied_once },
)
