/* SPDX-License-Identifier: Apache-2.0
 * The page and the document that a telemetry file gives: fabricated files of writers that died in each state, events of
 * both rings in order of time, equations, and files that are none. */
#include "tests/unit/tentctl/run.h"

#include "common/clock.h"
#include "common/metrics.h"
#include "shm-ring/events.h"
#include "shm-ring/lease.h"
#include "shm-ring/telemetry.h"

#define START_NS (50 * TN_NS_PER_S)

static struct tn_id128 session_of(uint8_t n) { return (struct tn_id128){ { n, 0xab } }; }

static void make(uint8_t n, struct shr_tele *out)
{
	struct shr_tele_cfg cfg = {
		.worker_cnt = 2, .cell_cnt = TN_METRIC_CELL_CNT, .event_slots = 16, .keep_slots = 8,
		.schema_hash = tn_metric_schema_hash(), .session = session_of(n), .start_mono_ns = START_NS,
		.start_real_ns = 1700000000 * TN_NS_PER_S, .metrics_compiled = true, .build = "0.1.0 abc test",
		.loaded_transports = 1u << TN_TRANSPORT_TCP | 1u << TN_TRANSPORT_SHM,
	};
	CU_ASSERT_EQUAL_FATAL(shr_tele_create(run_dir(), &cfg, out), TN_OK);
}

static void event(struct shr_event_writer *w, uint64_t at_ns, uint8_t kind, uint64_t request)
{
	struct shr_event_shm e = {
		.mono_ns = START_NS + at_ns,
		.kind = kind,
		.request_id = request,
		.transport = TN_TRANSPORT_TCP,
		.operation = TN_OP_WRITE,
		.phase = TN_PHASE_CONNECT,
		.reason = TN_REASON_PEER_CLOSED,
		.status = TN_PATH_DOWN,
		.duration_ns = 1500000,
		.arg = kind == SHR_EVENT_STATE ? SHR_TELE_RUNNING : 3,
	};
	shr_event_write(w, &e);
}

/* Worker 0 died with one WRITE on tcp and one more queued, worker 1 had nothing. */
static void fill_crash(const struct shr_tele *t)
{
	struct tn_metrics m;
	struct shr_worker_shm *w = shr_tele_worker(t, 0);
	struct shr_event_writer log, keep, control;
	tn_metrics_bind(&m, shr_tele_cells(t, 0), true);
	tn_counter_add(&m, TN_C1(LOGICAL_REQUESTS_STARTED_TOTAL, TN_OP_WRITE), 10);
	tn_counter_add(&m, TN_C3(LOGICAL_REQUEST_OUTCOMES_TOTAL, TN_OP_WRITE, TN_TRANSPORT_TCP, TN_OUTCOME_COMPLETED),
		       7);
	tn_counter_add(&m, TN_C3(LOGICAL_REQUEST_OUTCOMES_TOTAL, TN_OP_WRITE, TN_TRANSPORT_TCP, TN_OUTCOME_FAILED), 1);
	tn_gauge_add(&m, TN_G1(LOGICAL_REQUESTS_INFLIGHT, TN_OP_WRITE), 2);
	tn_counter_add(&m, TN_C2(TRANSPORT_ATTEMPTS_TOTAL, TN_TRANSPORT_TCP, TN_OP_WRITE), 9);
	tn_counter_add(&m, TN_C3(TRANSPORT_ATTEMPT_OUTCOMES_TOTAL, TN_TRANSPORT_TCP, TN_OP_WRITE, TN_OUTCOME_COMPLETED),
		       7);
	tn_counter_add(&m, TN_C3(TRANSPORT_ATTEMPT_OUTCOMES_TOTAL, TN_TRANSPORT_TCP, TN_OP_WRITE, TN_OUTCOME_FAILED),
		       1);
	tn_counter_add(&m, TN_C2(TRANSPORT_ATTEMPT_FAILURES_TOTAL, TN_TRANSPORT_TCP, TN_OP_WRITE), 1);
	tn_gauge_add(&m, TN_G2(INFLIGHT_ATTEMPTS, TN_TRANSPORT_TCP, TN_OP_WRITE), 1);
	tn_counter_add(&m, TN_C3(TERMINAL_FAILURES_TOTAL, TN_TRANSPORT_TCP, TN_PHASE_CONNECT, TN_REASON_PEER_CLOSED),
		       1);
	tn_counter_add(&m, TN_C1(WRITE_BYTES_TOTAL, TN_TRANSPORT_TCP), 7 << 20);
	tn_store_relaxed32(&w->alive, 1);
	tn_store_relaxed32(&w->inflight, 2);
	tn_store_relaxed32(&w->queued, 1);
	tn_store_relaxed64(&w->loop_ns, START_NS + 10 * TN_NS_PER_S);
	tn_store_relaxed64(&w->oldest_work_ns, START_NS + 7 * TN_NS_PER_S);
	tn_store_relaxed64(&w->last_progress_ns, START_NS + 9 * TN_NS_PER_S);
	shr_event_writer_init(&log, t, 0, false);
	shr_event_writer_init(&keep, t, 0, true);
	shr_event_writer_init(&control, t, 2, false);
	event(&control, 1000, SHR_EVENT_STATE, 0);
	event(&keep, 4000000, SHR_EVENT_REQUEST_FAILED, 77);
	event(&log, 3000000, SHR_EVENT_REQUEST_STUCK, 77);
	event(&keep, 5000000, SHR_EVENT_SPAN_TRANSFER, 77);
	tn_store_relaxed32(&t->hdr->state, SHR_TELE_RUNNING);
	tn_store_relaxed64(&t->hdr->heartbeat_ns, START_NS + 8 * TN_NS_PER_S);
}

static const json_t *at(const json_t *j, const char *key, size_t i)
{
	return json_array_get(json_object_get(j, key), i);
}

static long long num(const json_t *j, const char *key) { return json_integer_value(json_object_get(j, key)); }

static bool is(const json_t *j, const char *key, const char *want)
{
	const char *s = json_string_value(json_object_get(j, key));
	return s != NULL && strcmp(s, want) == 0;
}

static void nothing_there(void)
{
	run_dir();
	CU_ASSERT_EQUAL(run("postmortem", NULL), TCTL_FAILED);
	CU_ASSERT_PTR_NOT_NULL(strstr(ran.err, "no telemetry file"));
	CU_ASSERT_EQUAL(run("postmortem", "7", NULL), TCTL_FAILED);
	CU_ASSERT_PTR_NOT_NULL(strstr(ran.err, "dataplane-7.tele does not exist"));
	CU_ASSERT_EQUAL(run("postmortem", "last", NULL), TCTL_USAGE);
	CU_ASSERT_EQUAL(run("postmortem", "--events", "1000000", NULL), TCTL_USAGE);
}

static void a_crash_as_document(void)
{
	struct shr_tele t;
	make(1, &t);
	fill_crash(&t);
	shr_tele_close(&t);
	CU_ASSERT_EQUAL(run("-j", "postmortem", NULL), TCTL_OK);
	json_t *j = run_json();
	CU_ASSERT_PTR_NOT_NULL_FATAL(j);
	CU_ASSERT_TRUE(is(j, "verdict", "died"));
	CU_ASSERT_TRUE(is(j, "state", "running"));
	CU_ASSERT_TRUE(is(j, "last_sign", "2023-11-14T22:13:30.000000Z"));
	CU_ASSERT_EQUAL(num(j, "lived_us"), 10000000);
	CU_ASSERT_EQUAL(num(j, "heartbeat_us_before_end"), 2000000);
	const json_t *w = at(j, "workers", 0), *writes = at(j, "requests", 1), *a = at(j, "attempts", 0),
		     *f = at(j, "failures", 0);
	CU_ASSERT_EQUAL(num(w, "oldest_work_us"), 3000000);
	CU_ASSERT_EQUAL(num(w, "last_progress_us"), 1000000);
	CU_ASSERT_TRUE(!TENT_METRICS || (is(w, "work", "transports, and more waits in admission")));
	CU_ASSERT_TRUE(!TENT_METRICS || num(json_object_get(w, "attempts"), "tcp") == 1);
	CU_ASSERT_TRUE(is(at(j, "workers", 1), "work", "ended"));
	CU_ASSERT_TRUE(!TENT_METRICS || num(writes, "started") == 10);
	CU_ASSERT_TRUE(!TENT_METRICS || num(writes, "inflight") == 2);
	CU_ASSERT_TRUE(!TENT_METRICS || num(writes, "bytes") == 7 << 20);
	CU_ASSERT_TRUE(!TENT_METRICS || num(a, "attempts") == 9);
	CU_ASSERT_TRUE(!TENT_METRICS ||
		       (is(f, "phase", "connect") && is(f, "reason", "peer_closed") && num(f, "count") == 1));
	CU_ASSERT_EQUAL(num(json_object_get(j, "equations"), "wrong"), 0);
	const json_t *e = json_object_get(j, "events");
	CU_ASSERT_EQUAL(json_array_size(json_object_get(e, "last")), 3); /* the span was not asked for */
	CU_ASSERT_EQUAL(num(e, "written"), 4);
	CU_ASSERT_TRUE(is(at(e, "last", 0), "state", "running") && is(at(e, "last", 0), "thread", "control"));
	CU_ASSERT_TRUE(is(at(e, "last", 1), "event", "tent.request.stuck") && is(at(e, "last", 1), "ring", "log"));
	CU_ASSERT_TRUE(is(at(e, "last", 2), "event", "tent.request.failed") && is(at(e, "last", 2), "ring", "keep"));
	CU_ASSERT_EQUAL(num(at(e, "last", 2), "us_from_end"), 4000 - 10000000);
	json_decref(j);
	CU_ASSERT_EQUAL(run("-j", "postmortem", "--spans", "-n", "1", NULL), TCTL_OK);
	j = run_json();
	CU_ASSERT_TRUE(is(at(json_object_get(j, "events"), "last", 0), "event", "tent.logical_transfer"));
	json_decref(j);
}

static void a_crash_as_page(void)
{
	CU_ASSERT_EQUAL(run("postmortem", NULL), TCTL_OK);
	CU_ASSERT_PTR_NOT_NULL(strstr(ran.out, "generation 1: died: it ran and ended without a word"));
	CU_ASSERT_PTR_NOT_NULL(strstr(ran.out, "every equation between them holds"));
	CU_ASSERT_PTR_NOT_NULL(strstr(ran.out, "tcp write connect/peer_closed path_down after 1.50ms request 77"));
	CU_ASSERT_PTR_NULL(strchr(ran.out, '\033')); /* not a terminal */
}

static void the_crashed_one_is_chosen(void)
{
	struct shr_tele t;
	struct shr_lease lease = SHR_LEASE_NONE;
	struct tn_id128 s = session_of(3);
	make(2, &t);
	tn_store_relaxed32(&t.hdr->state, SHR_TELE_STOPPED);
	shr_tele_close(&t);
	make(3, &t); /* the running one */
	tn_store_relaxed32(&t.hdr->state, SHR_TELE_RUNNING);
	tn_store_relaxed64(&t.hdr->heartbeat_ns, tn_now_ns());
	CU_ASSERT_EQUAL_FATAL(shr_lease_take(run_dir(), "dataplane", &s, &lease), TN_OK);
	CU_ASSERT_EQUAL(run("-j", "postmortem", NULL), TCTL_OK);
	CU_ASSERT_EQUAL(run_json_number("generation"), 1);
	json_t *j = run_json();
	CU_ASSERT_TRUE(is(at(j, "others", 0), "verdict", "running"));
	CU_ASSERT_TRUE(is(at(j, "others", 1), "verdict", "stopped"));
	json_decref(j);
	CU_ASSERT_EQUAL(run("-j", "postmortem", "3", NULL), TCTL_OK);
	CU_ASSERT_TRUE(run_json_is("verdict", "running"));
	tn_store_relaxed64(&t.hdr->heartbeat_ns, tn_now_ns() - 6 * TN_NS_PER_S);
	CU_ASSERT_EQUAL(run("-j", "postmortem", "3", NULL), TCTL_OK);
	CU_ASSERT_TRUE(run_json_is("verdict", "hung"));
	shr_lease_release(&lease);
	tn_store_relaxed32(&t.hdr->state, SHR_TELE_DRAINING);
	CU_ASSERT_EQUAL(run("-j", "postmortem", "3", NULL), TCTL_OK);
	CU_ASSERT_TRUE(run_json_is("verdict", "died_draining"));
	shr_tele_close(&t);
}

/* A counter that was not written any more: the page says so instead of hiding it. */
static void broken_equations_are_shown(void)
{
	struct shr_tele t;
	struct tn_metrics m;
	make(4, &t);
	tn_metrics_bind(&m, shr_tele_cells(&t, 1), true);
	tn_counter_add(&m, TN_C1(LOGICAL_REQUESTS_STARTED_TOTAL, TN_OP_READ), 5);
	shr_tele_close(&t);
	CU_ASSERT_EQUAL(run("postmortem", "4", NULL), TCTL_OK);
	CU_ASSERT_TRUE(!TENT_METRICS || strstr(ran.out, "1 equation wrong") != NULL);
	CU_ASSERT_TRUE(!TENT_METRICS || strstr(ran.out, "started = outcomes + inflight") != NULL);
	CU_ASSERT_PTR_NOT_NULL(strstr(ran.out, "died while it started"));
}

static void foreign_files(void)
{
	struct shr_tele t;
	make(5, &t);
	t.hdr->schema_hash++; /* counters of another version: the rest is still told */
	memcpy(t.hdr->build, "\033[2J\x9b", 6);
	memset(t.hdr->build + 5, 'x', sizeof t.hdr->build - 5);
	shr_tele_close(&t);
	CU_ASSERT_EQUAL(run("postmortem", "5", NULL), TCTL_OK);
	CU_ASSERT_PTR_NOT_NULL(strstr(ran.out, "numbers    not readable"));
	CU_ASSERT_PTR_NULL(strchr(ran.out, '\033'));
	CU_ASSERT_EQUAL(run("-j", "postmortem", "5", NULL), TCTL_OK);
	json_t *j = run_json();
	CU_ASSERT_PTR_NOT_NULL(j);
	json_decref(j);
	write_file("dataplane-6.tele", "garbage", 7);
	CU_ASSERT_EQUAL(run("postmortem", "6", NULL), TCTL_FAILED);
	CU_ASSERT_PTR_NOT_NULL(strstr(ran.err, "no telemetry file"));
	write_file("dataplane-7.tele", "", 0);
	CU_ASSERT_EQUAL(run("postmortem", "7", NULL), TCTL_FAILED);
	CU_ASSERT_PTR_NOT_NULL(strstr(ran.err, "never finished"));
	run_dir_remove();
}

TN_TEST_MAIN("tentctl postmortem",
	{ "a directory without files", nothing_there },
	{ "a crash as a document", a_crash_as_document },
	{ "a crash as a page", a_crash_as_page },
	{ "of several, the one that crashed", the_crashed_one_is_chosen },
	{ "equations that do not hold are shown", broken_equations_are_shown },
	{ "files of others and of nobody", foreign_files })
