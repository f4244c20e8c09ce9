/* SPDX-License-Identifier: Apache-2.0
 * Events and spans of a worker in a real telemetry file: which are written when, in which ring, how the rate limit
 * counts what it held back, and that the state block tells the truth. */
#include "common/trace.h"
#include "shm-ring/telemetry.h"
#include "tests/unit/dataplane/script.h"

struct tele {
	char dir[64], path[128];
	struct shr_tele t;
	struct shr_tele_ro ro;
	struct shr_event_reader log, keep;
};

static void tele_open(struct tele *x)
{
	snprintf(x->dir, sizeof x->dir, "/dev/shm/tent-test-XXXXXX");
	RIG_FATAL(mkdtemp(x->dir));
	struct shr_tele_cfg cfg = { .worker_cnt = 1, .cell_cnt = TN_METRIC_CELL_CNT, .event_slots = 1024, .keep_slots = 1024,
				    .session.b = { 1 }, .build = "test" };
	RIG_FATAL(shr_tele_create(x->dir, &cfg, &x->t) == TN_OK);
	char name[SHR_TELE_NAME_MAX];
	shr_tele_name(x->t.generation, name);
	snprintf(x->path, sizeof x->path, "%s/%s", x->dir, name);
	RIG_FATAL(shr_tele_open_ro(x->path, &x->ro) == TN_OK);
	shr_event_reader_init(&x->log, &x->ro, 0, false, true);
	shr_event_reader_init(&x->keep, &x->ro, 0, true, true);
}

static void tele_close(struct tele *x)
{
	shr_tele_close_ro(&x->ro);
	shr_tele_close(&x->t);
	unlink(x->path);
	rmdir(x->dir);
}

static void open_with(struct rig *g, struct tele *x, const char *const *sets, size_t cnt)
{
	tele_open(x);
	rig_open_tele(g, sets, cnt, script_both, &x->t);
}

static uint32_t take(struct shr_event_reader *r, uint8_t kind, struct shr_event_shm *last)
{
	struct shr_event_shm e[64];
	uint32_t n, hits = 0;
	while ((n = shr_event_read(r, e, TN_ARRAY_LEN(e))) > 0) {
		for (uint32_t i = 0; i < n; i++) {
			if (e[i].kind == kind) {
				hits++;
				*last = e[i];
			}
		}
	}
	return hits;
}

static struct script_step down(void)
{
	return (struct script_step){ SCRIPT_FAIL, { .status = TN_PATH_DOWN, .phase = TN_PHASE_POLL,
		.reason = TN_REASON_PEER_CLOSED, .nothing_left = true } };
}

static void test_quiet_by_default(void)
{
	struct rig g;
	struct tele x;
	struct shr_event_shm e;
	open_with(&g, &x, NULL, 0);
	for (uint64_t i = 1; i <= 20; i++)
		CU_ASSERT_EQUAL(rig_run(&g, rig_sqe(SHR_OP_WRITE, i, 0, 0, 4096)).status, TN_OK);
	CU_ASSERT_EQUAL(shr_event_read(&x.log, &e, 1), 0);
	CU_ASSERT_EQUAL(shr_event_read(&x.keep, &e, 1), 0);
	rig_close(&g);
	tele_close(&x);
}

static void test_failure_and_failover(void)
{
	struct rig g;
	struct tele x;
	struct shr_event_shm e;
	static const char *const sets[] = { "retry/max_attempts=2" };
	open_with(&g, &x, sets, 1);
	struct dp_remote *r = script_open_remote(&g, 1);
	struct script_step step = down();
	script_set(&script_rdma, &step, 1);
	struct shr_sqe_shm s = script_sqe(SHR_OP_WRITE, 1, 0, 4096);
	s.trace_hi = 0x1111, s.trace_lo = 0x2222;
	CU_ASSERT_EQUAL(rig_run(&g, s).status, TN_OK);
	CU_ASSERT_EQUAL(take(&x.log, SHR_EVENT_FAILOVER, &e), 1);
	CU_ASSERT_EQUAL(e.from, TN_TRANSPORT_RDMA);
	CU_ASSERT_EQUAL(e.to, TN_TRANSPORT_TCP);
	CU_ASSERT_EQUAL(e.trace_hi, 0x1111);
	CU_ASSERT_EQUAL(e.trace_lo, 0x2222);
	CU_ASSERT_EQUAL(e.status, TN_PATH_DOWN);
	/* The failed attempt's span is kept, and keeps that of the transfer although the transfer completed. */
	struct shr_event_reader again = x.keep;
	CU_ASSERT_EQUAL(take(&again, SHR_EVENT_ATTEMPT_FAILED, &e), 1);
	CU_ASSERT(e.attempt_id != 0 && e.request_id != 0);
	again = x.keep;
	CU_ASSERT_EQUAL(take(&again, SHR_EVENT_SPAN_ATTEMPT, &e), 1);
	CU_ASSERT_EQUAL(e.retention, TN_RETENTION_ERROR);
	uint64_t parent = e.parent_span_id;
	CU_ASSERT_EQUAL(take(&x.keep, SHR_EVENT_SPAN_TRANSFER, &e), 1);
	CU_ASSERT_EQUAL(e.retention, TN_RETENTION_LINKED_CHILD);
	CU_ASSERT_EQUAL(e.span_id, parent);
	/* Both transports fail: the request, too. */
	script_set(&script_rdma, &step, 1);
	script_set(&script_tcp, &step, 1);
	CU_ASSERT_EQUAL(rig_run(&g, script_sqe(SHR_OP_WRITE, 2, 0, 4096)).status, TN_PATH_DOWN);
	CU_ASSERT_EQUAL(take(&x.keep, SHR_EVENT_REQUEST_FAILED, &e), 1);
	CU_ASSERT_EQUAL(e.reason, TN_REASON_PEER_CLOSED);
	CU_ASSERT((e.trace_hi | e.trace_lo) != 0); /* drawn */
	CU_ASSERT(e.attempt_id != 0);              /* its last */
	script_rdma.reach = script_tcp.reach = DP_REACH_NO;
	rig_submit(&g, script_sqe(SHR_OP_WRITE, 3, 0, 4096));
	rig_steps(&g, 2);
	CU_ASSERT_EQUAL(take(&x.keep, SHR_EVENT_SELECTION_FAILED, &e), 1);
	CU_ASSERT_EQUAL(e.attempt_id, 0); /* none was made */
	char why[TN_REJECT_TEXT];
	CU_ASSERT_STRING_EQUAL(tn_reject_text(e.arg, why), "rdma no_endpoint, hp_tcp not_built, tcp no_endpoint, shm wrong_target");
	rig_close(&g);
	free(r);
	tele_close(&x);
}

static void test_slow_stuck_sampled(void)
{
	struct rig g;
	struct tele x;
	struct shr_event_shm e;
	static const char *const sets[] = { "observability/slow_request_threshold_us=1000", "observability/stuck_request_threshold_us=200000",
					    "observability/trace_sample_rate_ppm=1000000" };
	open_with(&g, &x, sets, 3);
	struct dp_remote *r = script_open_remote(&g, 1);
	struct script_step hang = { SCRIPT_HANG, { 0 } };
	script_set(&script_rdma, &hang, 1);
	rig_submit(&g, script_sqe(SHR_OP_WRITE, 1, 0, 4096));
	rig_steps(&g, 2);
	for (int i = 0; i < 50; i++)
		rig_advance(&g, 10 * RIG_MS);
	CU_ASSERT_EQUAL(take(&x.log, SHR_EVENT_REQUEST_STUCK, &e), 1); /* once */
	CU_ASSERT(e.attempt_id != 0);                                  /* the one that hangs */
	CU_ASSERT_EQUAL(e.transport, TN_TRANSPORT_RDMA);
	CU_ASSERT_EQUAL(tn_load_relaxed32(&g.w->stats.block->inflight), 1);
	CU_ASSERT(tn_load_relaxed64(&g.w->stats.block->oldest_work_ns) != 0);
	struct dp_result ok = { .status = TN_OK };
	script_end(&script_rdma, 0, &ok);
	rig_advance(&g, 10 * RIG_MS);
	struct shr_cqe_shm c;
	CU_ASSERT_TRUE(rig_poll(&g, &c) && c.status == TN_OK);
	CU_ASSERT_EQUAL(take(&x.log, SHR_EVENT_REQUEST_SLOW, &e), 1);
	CU_ASSERT(e.duration_ns >= 500 * RIG_MS);
	CU_ASSERT_EQUAL(tn_load_relaxed32(&g.w->stats.block->inflight), 0);
	CU_ASSERT_EQUAL(tn_load_relaxed64(&g.w->stats.block->oldest_work_ns), 0);
	CU_ASSERT_EQUAL(take(&x.keep, SHR_EVENT_SPAN_TRANSFER, &e), 1);
	CU_ASSERT_EQUAL(e.retention, TN_RETENTION_HEAD_SAMPLED);
	/* The hot values change while it runs. */
	static const char *const none[] = { "observability/slow_request_threshold_us=0", "retry/max_attempts=1" };
	struct tn_config *fresh = rig_config(none, 2);
	CU_ASSERT_EQUAL(rig_do(&g, (struct dp_cmd){ .kind = DP_CMD_TUNE, .ptr = fresh, .num = 2, .fd = -1 }), TN_OK);
	CU_ASSERT_EQUAL(g.w->tuning.attempts_max, 1);
	CU_ASSERT_EQUAL(g.w->stats.slow_ns, 0);
	rig_run(&g, rig_sqe(SHR_OP_WRITE, 2, 0, 0, 64));
	CU_ASSERT_EQUAL(take(&x.keep, SHR_EVENT_SPAN_TRANSFER, &e), 0);
	rig_close(&g);
	tn_config_free(fresh);
	free(r);
	tele_close(&x);
}

static void test_rate_limit(void)
{
	struct rig g;
	struct tele x;
	struct shr_event_shm e = { 0 };
	open_with(&g, &x, NULL, 0);
	uint32_t seen = 0;
	for (uint64_t i = 1; i <= 300; i++) {
		struct shr_sqe_shm s = rig_sqe(SHR_OP_WRITE, i, 0, 0, 64);
		s.deadline_ns = 1;
		CU_ASSERT_EQUAL(rig_run(&g, s).status, TN_TIMEOUT);
		seen += take(&x.keep, SHR_EVENT_REQUEST_FAILED, &e);
	}
	CU_ASSERT(seen >= DP_EVENTS_BURST && seen < DP_EVENTS_BURST + 20);
	rig_advance(&g, 1000 * RIG_MS);
	struct shr_sqe_shm s = rig_sqe(SHR_OP_WRITE, 999, 0, 0, 64);
	s.deadline_ns = 1;
	rig_run(&g, s);
	CU_ASSERT_EQUAL(take(&x.keep, SHR_EVENT_REQUEST_FAILED, &e), 1);
	CU_ASSERT_EQUAL(e.suppressed + seen, 300);
	rig_close(&g);
	tele_close(&x);
}

/* Log events are limited, spans are not: all of 10000 failures within a second leave theirs, when the ring is read every
 * 50 ms as the control plane does; a reader that falls behind counts what it missed. */
static void test_failed_spans_are_kept(void)
{
	enum { FAILURES = 10000, PER_READ = 500 };
	struct rig g;
	struct tele x;
	struct shr_event_shm e[64];
	uint32_t spans = 0, failed = 0, n;
	open_with(&g, &x, NULL, 0);
	uint64_t began = g.now;
	for (uint64_t i = 1; i <= FAILURES; i++) {
		struct shr_sqe_shm s = rig_sqe(SHR_OP_WRITE, i, 0, 0, 64);
		s.deadline_ns = 1;
		CU_ASSERT_EQUAL(rig_run(&g, s).status, TN_TIMEOUT);
		if (i % PER_READ != 0)
			continue;
		while ((n = shr_event_read(&x.keep, e, TN_ARRAY_LEN(e))) > 0) {
			for (uint32_t k = 0; k < n; k++) {
				bool span = e[k].kind == SHR_EVENT_SPAN_TRANSFER;
				CU_ASSERT(!span || (e[k].retention == TN_RETENTION_TIMEOUT && e[k].suppressed == 0));
				spans += span;
				failed += e[k].kind == SHR_EVENT_REQUEST_FAILED;
			}
		}
	}
	CU_ASSERT(g.now - began < 1000 * RIG_MS);
	CU_ASSERT_EQUAL(x.keep.missed, 0);
	CU_ASSERT_EQUAL(spans, FAILURES);
	CU_ASSERT(failed < 2 * DP_EVENTS_BURST);
	/* 2000 more without a look: 1024 slots hold the last ones. */
	for (uint64_t i = 1; i <= 2000; i++) {
		struct shr_sqe_shm s = rig_sqe(SHR_OP_WRITE, i, 0, 0, 64);
		s.deadline_ns = 1;
		rig_run(&g, s);
	}
	(void)take(&x.keep, SHR_EVENT_SPAN_TRANSFER, e);
	CU_ASSERT(x.keep.missed >= 2000 - 1024);
	rig_close(&g);
	tele_close(&x);
}

/* Who follows a batch or a merged owner through the log does it by numbers of the engine, which no two of them share;
 * the application's number of a batch is its own affair. */
static void test_ids(void)
{
	enum { NUMBER = 4711 };
	struct rig g;
	struct tele x;
	struct shr_event_shm e = { 0 }, attempts[2];
	static const char *const sets[] = { "retry/max_attempts=1" };
	open_with(&g, &x, sets, 1);
	struct dp_remote *r = script_open_remote(&g, 1);
	for (uint64_t round = 0; round < 2; round++) {
		struct script_step step = down(), both[2] = { step, step };
		script_rdma.reach = DP_REACH_NO;
		script_set(&script_tcp, both, 2);
		struct shr_sqe_shm s[3] = { script_sqe(SHR_OP_WRITE, 1, 0, 64), script_sqe(SHR_OP_WRITE, 2, 64, 64),
					    script_sqe(SHR_OP_WRITE, 3, 4096, 64) };
		for (unsigned i = 0; i < 3; i++)
			s[i].batch = NUMBER, s[i].flags = SHR_SQE_BATCH;
		rig_submit_on(&g.q, s, 3);
		rig_steps(&g, 5);
		/* two owners: the first is merged of two requests */
		struct shr_event_shm all[16];
		uint32_t n = shr_event_read(&x.keep, all, TN_ARRAY_LEN(all)), a = 0, f = 0;
		for (uint32_t i = 0; i < n; i++) {
			CU_ASSERT(all[i].batch_id != 0 && all[i].batch_id != NUMBER && all[i].task_id != 0);
			CU_ASSERT_EQUAL(all[i].batch_id, all[0].batch_id);
			if (all[i].kind == SHR_EVENT_ATTEMPT_FAILED && a < 2)
				attempts[a++] = all[i];
		}
		CU_ASSERT_EQUAL_FATAL(a, 2);
		CU_ASSERT_NOT_EQUAL(attempts[0].task_id, attempts[1].task_id);
		for (uint32_t i = 0; i < n; i++) {
			if (all[i].kind != SHR_EVENT_REQUEST_FAILED)
				continue;
			f++;
			CU_ASSERT(all[i].task_id == attempts[0].task_id || all[i].task_id == attempts[1].task_id);
		}
		CU_ASSERT_EQUAL(f, 3);
		if (round > 0) {
			CU_ASSERT_NOT_EQUAL(e.batch_id, all[0].batch_id); /* the same number, another batch */
			CU_ASSERT_NOT_EQUAL(e.task_id, all[0].task_id);
		}
		e = all[0];
		struct shr_cqe_shm c;
		while (rig_poll(&g, &c))
			CU_ASSERT_EQUAL(c.status, TN_PATH_DOWN);
		/* the notice closes the batch, and tells that it failed */
		struct shr_sqe_shm note = { .opcode = SHR_OP_NOTIFY, .token = 9, .segment = tn_handle_make(2, 1), .batch = NUMBER,
					    .flags = SHR_SQE_BATCH, .priority = TN_PRIORITY_MEDIUM };
		CU_ASSERT_EQUAL(rig_run(&g, note).status, TN_CANCELED);
		(void)take(&x.keep, SHR_EVENT_SPAN_TRANSFER, &all[0]);
	}
	rig_close(&g);
	free(r);
	tele_close(&x);
}

/* The switch stops metrics of traffic, never those on which the equations stand. */
static void test_recording_switch(void)
{
	struct rig g;
	struct tele x;
	open_with(&g, &x, NULL, 0);
	tn_store_relaxed32(&x.t.hdr->recording, 0);
	rig_advance(&g, 5 * RIG_MS);
	rig_run(&g, rig_sqe(SHR_OP_WRITE, 1, 0, 0, 64));
	CU_ASSERT_EQUAL(tn_load_relaxed64(&g.w->stats.m.cells[TN_C1(WRITE_BYTES_TOTAL, TN_TRANSPORT_SHM).cell]), 0);
	CU_ASSERT_EQUAL(tn_load_relaxed64(&g.w->stats.m.cells[TN_C1(LOGICAL_REQUESTS_STARTED_TOTAL, TN_OP_WRITE).cell]), TENT_METRICS);
	rig_close(&g);
	tele_close(&x);
}

TN_TEST_MAIN("events",
	{ "nothing is written when all is well", test_quiet_by_default },
	{ "failures, failover, kept spans", test_failure_and_failover },
	{ "slow, stuck, sampled, retuned", test_slow_stuck_sampled },
	{ "the rate limit counts what it held back", test_rate_limit },
	{ "ten thousand failed spans in a second are all kept", test_failed_spans_are_kept },
	{ "batches and tasks have numbers of the engine", test_ids },
	{ "the recording switch", test_recording_switch },
)
