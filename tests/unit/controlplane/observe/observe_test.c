/* SPDX-License-Identifier: Apache-2.0
 * The whole walk of a number: recorded in a real telemetry file as a data plane does, attached, scraped over HTTP; and
 * what is said while the data plane is missing, foreign, dead, or replaced. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/metrics_check.h"
#include "controlplane/observe/observe.h"
#include "shm-ring/events.h"
#include "shm-ring/telemetry.h"
#include "tests/unit/controlplane/observe/prom_check.h"
#include "tests/unit/cu.h"

static char dir[64];
static char lines[65536];
static size_t lines_len;

static void sink(void *ctx, const char *line, size_t len)
{
	(void)ctx;
	if (lines_len + len < sizeof lines) {
		memcpy(lines + lines_len, line, len);
		lines_len += len;
		lines[lines_len] = '\0';
	}
}

static const char *mark_path;

static struct cp_observe *make(void)
{
	struct cp_observe *o = NULL;
	struct cp_observe_cfg cfg = { .build = { "9.9", "cafe", "Test" }, .openmetrics = true, .recording = true,
		.stall_ns = 10 * TN_NS_PER_S, .sink = sink, .mark_path = mark_path };
	lines_len = 0;
	lines[0] = '\0';
	CU_ASSERT_EQUAL_FATAL(cp_observe_create(&cfg, &o), TN_OK);
	return o;
}

static struct shr_tele engine(uint64_t schema, uint32_t cells)
{
	struct shr_tele t;
	struct shr_tele_cfg cfg = { .worker_cnt = 2, .cell_cnt = cells, .event_slots = 64, .keep_slots = 64, .schema_hash = schema,
		.start_mono_ns = tn_now_ns(), .start_real_ns = tn_real_ns(), .loaded_transports = 1u << TN_TRANSPORT_TCP,
		.metrics_compiled = true, .build = "1.0 beef Release" };
	strcpy(dir, "/tmp/tent-observe-XXXXXX");
	CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(dir));
	CU_ASSERT_EQUAL_FATAL(shr_tele_create(dir, &cfg, &t), TN_OK);
	for (uint32_t w = 0; w < 2; w++) {
		tn_store_relaxed32(&shr_tele_worker(&t, w)->alive, 1);
		tn_store_relaxed32(&shr_tele_worker(&t, w)->transports_up, 1u << TN_TRANSPORT_TCP);
	}
	tn_store_release32(&t.hdr->state, SHR_TELE_RUNNING);
	return t;
}

static const char *path_of(const struct shr_tele *t)
{
	static char path[160];
	char name[SHR_TELE_NAME_MAX];
	shr_tele_name(t->generation, name);
	(void)snprintf(path, sizeof path, "%s/%s", dir, name);
	return path;
}

static void drop(struct shr_tele *t)
{
	(void)unlink(path_of(t));
	(void)rmdir(dir);
	shr_tele_close(t);
}

static struct tn_text got;
static unsigned fetch(struct cp_observe *o, enum cp_http_path path)
{
	const char *type;
	tn_text_free(&got);
	tn_text_init(&got, CP_HTTP_BODY_MAX);
	unsigned code = cp_observe_render(o, path, &got, &type);
	CU_ASSERT_FALSE_FATAL(got.failed);
	return code;
}

static bool has(const char *part)
{
	return strstr(got.p, part) != NULL;
}

static void facts(struct cp_observe *o, bool alive, bool bound, bool up)
{
	cp_observe_facts(o, &(struct cp_observe_facts){ alive, bound, up, 0 });
}

static void before_any_data_plane(void)
{
	struct cp_observe *o = make();
	cp_count_rpc(cp_observe_metrics(o), TN_RPC_METHOD_HELLO, TN_RPC_OUTCOME_TIMEOUT, 5000, 1);
	CU_ASSERT_EQUAL(fetch(o, CP_HTTP_METRICS), 200);
	CU_ASSERT_TRUE(has("tent_dataplane_up 0\n") && has("tent_metrics_build_info{version=\"9.9\",commit=\"cafe\",build_type=\"Test\"} 1\n"));
	CU_ASSERT_TRUE(has("tent_metrics_serialization_attempts_total{format=\"text\"} 1\n"));
	CU_ASSERT_TRUE(has("tent_metrics_last_success_timestamp_seconds 0\n"));
	CU_ASSERT_FALSE(has("tent_logical_requests_started_total"));
	CU_ASSERT_EQUAL(has("tent_rpc_attempts_total{method=\"hello\",outcome=\"timeout\"} 1\n"), TENT_METRICS);
	CU_ASSERT_EQUAL(has("process_resident_memory_bytes{process=\"controlplane\"}"), TENT_METRICS);
	CU_ASSERT_FALSE(has("process=\"dataplane\""));
	CU_ASSERT_EQUAL(fetch(o, CP_HTTP_METRICS), 200);
	CU_ASSERT_FALSE(has("tent_metrics_last_success_timestamp_seconds 0\n"));
	CU_ASSERT_EQUAL(fetch(o, CP_HTTP_READY), 503);
	CU_ASSERT_TRUE(has("\"engine_diagnostics_unavailable\",\"engine_unavailable\",\"control_plane_unavailable\""));
	CU_ASSERT_EQUAL(fetch(o, CP_HTTP_DIAGNOSTICS), 200);
	CU_ASSERT_EQUAL(fetch(o, CP_HTTP_LIVE), 200);
	CU_ASSERT_EQUAL(fetch(o, CP_HTTP_HEALTH), 200);
	CU_ASSERT_EQUAL(cp_observe_attach(o, "/nonexistent/dataplane-1.tele"), TN_NOT_FOUND);
	cp_observe_destroy(o);
}

/* Three requests on two workers, one of them still in flight. */
static void run_requests(struct shr_tele *t)
{
	for (uint32_t w = 0; w < 2; w++) {
		struct tn_metrics m;
		tn_metrics_bind(&m, shr_tele_cells(t, w), true);
		tn_counter_add(&m, TN_C1(LOGICAL_REQUESTS_STARTED_TOTAL, TN_OP_WRITE), 1 + w);
		tn_gauge_add(&m, TN_G1(LOGICAL_REQUESTS_INFLIGHT, TN_OP_WRITE), w);
		tn_counter_add(&m, TN_C3(LOGICAL_REQUEST_OUTCOMES_TOTAL, TN_OP_WRITE, TN_TRANSPORT_TCP, TN_OUTCOME_COMPLETED), 1);
		tn_counter_add(&m, TN_C2(TRANSPORT_ATTEMPTS_TOTAL, TN_TRANSPORT_TCP, TN_OP_WRITE), 1);
		tn_counter_add(&m, TN_C3(TRANSPORT_ATTEMPT_OUTCOMES_TOTAL, TN_TRANSPORT_TCP, TN_OP_WRITE, TN_OUTCOME_COMPLETED), 1);
		tn_hist_observe(&m, TN_H2(TRANSPORT_ATTEMPT_LATENCY_US, TN_TRANSPORT_TCP, TN_OP_WRITE), 3000);
		tn_gauge_set(&m, TN_G1(DISPATCH_WINDOW_OWNERS, TN_WINDOW_EFFECTIVE), 8 + w);
	}
}

static void numbers_reach_the_exposition(void)
{
	struct cp_observe *o = make();
	struct shr_tele t = engine(tn_metric_schema_hash(), TN_METRIC_CELL_CNT);
	char err[256] = "";
	run_requests(&t);
	CU_ASSERT_EQUAL_FATAL(cp_observe_attach(o, path_of(&t)), TN_OK);
	facts(o, true, true, true);
	CU_ASSERT_EQUAL(fetch(o, CP_HTTP_READY), 200);
	CU_ASSERT_EQUAL(fetch(o, CP_HTTP_METRICS), 200);
	CU_ASSERT_TRUE(prom_check(got.p, got.len, false, NULL, err, sizeof err));
	CU_ASSERT_TRUE(has("tent_dataplane_up 1\n"));
#if TENT_METRICS
	CU_ASSERT_TRUE(has("tent_logical_requests_started_total{operation=\"write\"} 3\n"));
	CU_ASSERT_TRUE(has("tent_logical_requests_inflight{operation=\"write\"} 1\n"));
	CU_ASSERT_TRUE(has("tent_dispatch_window_owners{kind=\"effective\"} 8\n")); /* the narrowest */
	CU_ASSERT_TRUE(has("tent_transport_attempt_latency_us_sum{transport=\"tcp\",operation=\"write\"} 6\n"));
	CU_ASSERT_TRUE(has("process_cpu_seconds_total{process=\"dataplane\"}"));
	struct cp_snapshot *snap = malloc(sizeof *snap);
	struct tn_equation_breach breach;
	cp_observe_snapshot(o, snap);
	CU_ASSERT_EQUAL(tn_metric_equations_check(snap->cell, &breach, 1), 0);
	free(snap);
#endif
	/* the data plane dies: its last numbers stay */
	facts(o, false, true, false);
	CU_ASSERT_EQUAL(fetch(o, CP_HTTP_READY), 503);
	CU_ASSERT_TRUE(has("[\"engine_unavailable\",\"control_plane_unavailable\"]"));
	CU_ASSERT_EQUAL(fetch(o, CP_HTTP_METRICS), 200);
	CU_ASSERT_TRUE(has("tent_dataplane_up 0\n"));
	CU_ASSERT_EQUAL(has("tent_logical_requests_started_total{operation=\"write\"} 3\n"), TENT_METRICS);
	CU_ASSERT_FALSE(has("process=\"dataplane\""));
	cp_observe_destroy(o);
	drop(&t);
}

static void another_schema_serves_the_pipeline_only(void)
{
	struct cp_observe *o = make();
	struct shr_tele t = engine(tn_metric_schema_hash() + 1, TN_METRIC_CELL_CNT);
	CU_ASSERT_EQUAL_FATAL(cp_observe_attach(o, path_of(&t)), TN_OK);
	facts(o, true, true, true);
	CU_ASSERT_EQUAL(fetch(o, CP_HTTP_METRICS), 200);
	CU_ASSERT_TRUE(has("tent_dataplane_up 1\n") && !has("tent_rpc_calls_total") && !has("tent_read_bytes_total"));
	CU_ASSERT_EQUAL(fetch(o, CP_HTTP_READY), 503);
	CU_ASSERT_TRUE(has("[\"engine_diagnostics_unavailable\"]"));
	CU_ASSERT_EQUAL(fetch(o, CP_HTTP_DIAGNOSTICS), 200);
	CU_ASSERT_TRUE(has("\"schema_matches\":false"));
	drop(&t);
	t = engine(tn_metric_schema_hash(), TN_METRIC_CELL_CNT - 1);
	CU_ASSERT_EQUAL_FATAL(cp_observe_attach(o, path_of(&t)), TN_OK);
	CU_ASSERT_EQUAL(fetch(o, CP_HTTP_READY), 503);
	cp_observe_destroy(o);
	drop(&t);
}

static void another_abi_detaches(void)
{
	struct cp_observe *o = make();
	struct shr_tele t = engine(tn_metric_schema_hash(), TN_METRIC_CELL_CNT);
	CU_ASSERT_EQUAL_FATAL(cp_observe_attach(o, path_of(&t)), TN_OK);
	facts(o, true, true, true);
	CU_ASSERT_EQUAL(fetch(o, CP_HTTP_READY), 200);
	t.hdr->abi_major++;
	CU_ASSERT_EQUAL(cp_observe_attach(o, path_of(&t)), TN_ABI_MISMATCH);
	CU_ASSERT_EQUAL(fetch(o, CP_HTTP_READY), 503);
	CU_ASSERT_TRUE(has("[\"engine_diagnostics_unavailable\"]"));
	CU_ASSERT_FALSE(cp_observe_poll(o));
	cp_observe_destroy(o);
	drop(&t);
}

static void events_become_lines_and_exemplars(void)
{
	struct cp_observe *o = make();
	struct shr_tele t = engine(tn_metric_schema_hash(), TN_METRIC_CELL_CNT);
	struct shr_event_writer w0, w1_keep;
	run_requests(&t);
	CU_ASSERT_EQUAL_FATAL(cp_observe_attach(o, path_of(&t)), TN_OK);
	shr_event_writer_init(&w0, &t, 0, false);
	shr_event_writer_init(&w1_keep, &t, 1, true);
	struct shr_event_shm ev = { .kind = SHR_EVENT_REQUEST_SLOW, .mono_ns = tn_now_ns(), .request_id = 2,
		.transport = TN_TRANSPORT_TCP, .operation = TN_OP_WRITE };
	shr_event_write(&w0, &ev);
	ev.kind = SHR_EVENT_SPAN_ATTEMPT;
	ev.mono_ns--; /* earlier, in another ring: lines come in time order */
	ev.request_id = 1;
	ev.trace_lo = 0x77;
	ev.duration_ns = 3000;
	ev.retention = TN_RETENTION_HEAD_SAMPLED;
	shr_event_write(&w1_keep, &ev);
	CU_ASSERT_FALSE(cp_observe_poll(o));
	const char *first = strstr(lines, "\"tent.transport_attempt\""), *second = strstr(lines, "\"tent.request.slow\"");
	CU_ASSERT_TRUE(first && second && first < second);
	CU_ASSERT_EQUAL(fetch(o, CP_HTTP_OPENMETRICS), 200);
	CU_ASSERT_EQUAL(has("le=\"+Inf\"} 2 # {trace_id=\"00000000000000000000000000000077\"} 3 "), TENT_METRICS);
	char err[256] = "";
	CU_ASSERT_TRUE(prom_check(got.p, got.len, true, NULL, err, sizeof err));
	fetch(o, CP_HTTP_METRICS);
	CU_ASSERT_FALSE(has("trace_id"));

	/* overwritten before we looked: counted by ring */
	for (unsigned i = 0; i < 100; i++)
		shr_event_write(&w0, &ev);
	while (cp_observe_poll(o))
		;
	fetch(o, CP_HTTP_METRICS);
	CU_ASSERT_TRUE(has("tent_events_dropped_total{ring=\"log\"} 36\n") && has("tent_events_dropped_total{ring=\"trace\"} 0\n"));
	cp_observe_destroy(o);
	drop(&t);
}

static void pipeline_failures_are_counted(void)
{
	static const enum cp_http_path page[TN_FORMAT_CNT] = {
		[TN_FORMAT_TEXT] = CP_HTTP_METRICS, [TN_FORMAT_OPENMETRICS] = CP_HTTP_OPENMETRICS, [TN_FORMAT_JSON] = CP_HTTP_DIAGNOSTICS,
	};
	struct cp_observe *o = make(), *busy = make();
	char err[TN_ERR_TEXT], line[120];
	uint16_t port;
	for (unsigned f = 0; f < TN_FORMAT_CNT; f++) {
		struct tn_text small;
		const char *type;
		tn_text_init(&small, 64);
		CU_ASSERT_EQUAL(cp_observe_render(o, page[f], &small, &type), 500);
		tn_text_free(&small);
	}
	CU_ASSERT_EQUAL_FATAL(cp_observe_http_start(busy, "127.0.0.1", 0, &port, err), TN_OK);
	CU_ASSERT_NOT_EQUAL(cp_observe_http_start(o, "127.0.0.1", port, &port, err), TN_OK);
	CU_ASSERT_EQUAL(fetch(o, CP_HTTP_METRICS), 200);
	for (unsigned f = 0; f < TN_FORMAT_CNT; f++) {
		(void)snprintf(line, sizeof line, "tent_metrics_serialization_failures_total{format=\"%s\"} 1\n", tn_format_name(f));
		CU_ASSERT_TRUE(has(line));
	}
	CU_ASSERT_TRUE(has("tent_metrics_http_start_failures_total 1\n") && has("tent_metrics_http_server_up 0\n"));
	cp_observe_destroy(busy);
	cp_observe_destroy(o);
}

static void span(struct shr_event_writer *w, uint64_t request_id) /* spans are not rate-limited */
{
	struct shr_event_shm ev = { .kind = SHR_EVENT_SPAN_ATTEMPT, .mono_ns = tn_now_ns(), .request_id = request_id,
		.trace_lo = 0x77, .duration_ns = 3000, .retention = TN_RETENTION_HEAD_SAMPLED,
		.transport = TN_TRANSPORT_TCP, .operation = TN_OP_WRITE };
	shr_event_write(w, &ev);
}

static bool logged(unsigned request_id)
{
	char part[40];
	(void)snprintf(part, sizeof part, "\"request_id\":%u,", request_id);
	return strstr(lines, part) != NULL;
}

/* Another control plane, the same data plane: it goes on where its predecessor stopped. */
static struct cp_observe *again(struct cp_observe *o, const struct shr_tele *t)
{
	cp_observe_destroy(o);
	o = make();
	CU_ASSERT_EQUAL_FATAL(cp_observe_attach(o, path_of(t)), TN_OK);
	while (cp_observe_poll(o))
		;
	return o;
}

static void a_restart_renders_nothing_twice(void)
{
	char mark[] = "/tmp/tent-mark-XXXXXX";
	int fd = mkstemp(mark);
	struct shr_event_writer w;
	struct shr_tele t = engine(tn_metric_schema_hash(), TN_METRIC_CELL_CNT);
	CU_ASSERT_TRUE_FATAL(fd >= 0);
	mark_path = mark;
	shr_event_writer_init(&w, &t, 0, true);
	span(&w, 101);
	struct cp_observe *o = again(make(), &t);
	CU_ASSERT_TRUE(logged(101));
	span(&w, 102); /* while it runs: in the log */
	(void)cp_observe_poll(o);
	CU_ASSERT_TRUE(logged(102));
	span(&w, 103); /* while nobody reads: not yet */
	o = again(o, &t);
	CU_ASSERT_TRUE(!logged(101) && !logged(102) && logged(103));
	const struct cp_recent_item *old = cp_recent_after(cp_observe_recent(o), 0); /* but all of it can be asked for */
	CU_ASSERT_TRUE(old != NULL && old->ev.request_id == 101 && cp_recent_last(cp_observe_recent(o)) == 3);
	o = again(o, &t);
	CU_ASSERT_EQUAL(lines_len, 0);
	for (unsigned i = 0; i < 100; i++) /* 64 slots: 36 are gone before the next one comes, and that is known */
		span(&w, 200 + i);
	o = again(o, &t);
	CU_ASSERT_FALSE(logged(235));
	fetch(o, CP_HTTP_METRICS);
	CU_ASSERT_TRUE(has("tent_events_dropped_total{ring=\"trace\"} 36\n"));
	/* a mark that cannot be of this ring, or is none at all, costs nothing but the repetition */
	span(&w, 300);
	CU_ASSERT_EQUAL(pwrite(fd, "\xff\xff\xff\xff\xff\xff\xff\xff", 8, 32), 8);
	o = again(o, &t);
	CU_ASSERT_TRUE(logged(300));
	CU_ASSERT_EQUAL(ftruncate(fd, 3), 0);
	o = again(o, &t);
	CU_ASSERT_TRUE(logged(300));
	cp_observe_destroy(o);
	mark_path = NULL;
	close(fd);
	unlink(mark);
	drop(&t);
}

static void stalled_worker_is_seen(void)
{
	struct cp_observe *o = make();
	struct shr_tele t = engine(tn_metric_schema_hash(), TN_METRIC_CELL_CNT);
	CU_ASSERT_EQUAL_FATAL(cp_observe_attach(o, path_of(&t)), TN_OK);
	facts(o, true, true, true);
	tn_store_relaxed64(&shr_tele_worker(&t, 1)->oldest_work_ns, 1);
	CU_ASSERT_EQUAL(fetch(o, CP_HTTP_READY), 503);
	CU_ASSERT_TRUE(has("[\"progress_worker_stalled\"]") && has("\"progress_worker\":\"stalled\""));
	cp_observe_reconfigure(o, true, UINT64_MAX);
	CU_ASSERT_EQUAL(fetch(o, CP_HTTP_READY), 200);
	tn_store_release32(&t.hdr->state, SHR_TELE_DRAINING);
	CU_ASSERT_EQUAL(fetch(o, CP_HTTP_READY), 503);
	CU_ASSERT_TRUE(has("[\"engine_unavailable\"]"));
	cp_observe_destroy(o);
	drop(&t);
}

static void over_http(void)
{
	struct cp_observe *o = make();
	uint16_t port = 0, other = 0;
	char err[TN_ERR_TEXT] = "", buf[16384];
	CU_ASSERT_EQUAL_FATAL(cp_observe_http_start(o, "127.0.0.1", 0, &port, err), TN_OK);
	CU_ASSERT_EQUAL(cp_observe_http_start(o, "127.0.0.1", 0, &other, err), TN_BUSY);
	struct cp_observe *second = make();
	CU_ASSERT_EQUAL(cp_observe_http_start(second, "127.0.0.1", port, &other, err), TN_EXISTS);
	fetch(second, CP_HTTP_METRICS);
	CU_ASSERT_TRUE(has("tent_metrics_http_start_failures_total 1\n") && has("tent_metrics_http_server_up 0\n"));
	cp_observe_destroy(second);

	struct sockaddr_in sa = { .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct timeval tv = { .tv_sec = 10 };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof tv);
	CU_ASSERT_EQUAL_FATAL(connect(fd, (struct sockaddr *)&sa, sizeof sa), 0);
	const char *request = "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n";
	CU_ASSERT_EQUAL(send(fd, request, strlen(request), MSG_NOSIGNAL), (ssize_t)strlen(request));
	size_t n = 0;
	for (ssize_t r; n < sizeof buf - 1 && (r = recv(fd, buf + n, sizeof buf - 1 - n, 0)) > 0;)
		n += (size_t)r;
	buf[n] = '\0';
	close(fd);
	CU_ASSERT_PTR_NOT_NULL(strstr(buf, "Content-Type: " CP_PROM_CONTENT_TYPE "\r\n"));
	CU_ASSERT_PTR_NOT_NULL(strstr(buf, "tent_metrics_http_server_up 1\n"));
	cp_observe_http_stop(o);
	fetch(o, CP_HTTP_METRICS);
	CU_ASSERT_TRUE(has("tent_metrics_http_server_up 0\n"));
	cp_observe_destroy(o);
	tn_text_free(&got);
}

/* ---- threads: a data plane records, the loop attaches and polls, a scraper renders */
struct race { struct cp_observe *o; struct shr_tele *t; tn_a32 stop; unsigned scrapes, malformed; };

static void *race_engine(void *arg)
{
	struct race *r = arg;
	struct shr_event_writer w;
	struct tn_metrics m;
	struct shr_event_shm ev = { .kind = SHR_EVENT_SPAN_ATTEMPT, .transport = TN_TRANSPORT_SHM, .trace_lo = 1, .retention = TN_RETENTION_SLOW };
	tn_metrics_bind(&m, shr_tele_cells(r->t, 0), true);
	shr_event_writer_init(&w, r->t, 0, true);
	while (!tn_load_acquire32(&r->stop)) {
		tn_hist_observe(&m, TN_H2(TRANSPORT_ATTEMPT_LATENCY_US, TN_TRANSPORT_SHM, TN_OP_READ), 1234);
		ev.mono_ns++;
		shr_event_write(&w, &ev);
	}
	return NULL;
}

static void *race_scraper(void *arg)
{
	struct race *r = arg;
	struct tn_text t;
	const char *type;
	char err[256] = "";
	tn_text_init(&t, CP_HTTP_BODY_MAX);
	while (!tn_load_acquire32(&r->stop)) {
		tn_text_reset(&t);
		cp_observe_render(r->o, CP_HTTP_OPENMETRICS, &t, &type);
		r->malformed += t.failed || !prom_check(t.p, t.len, true, NULL, err, sizeof err);
		r->scrapes++;
		tn_text_reset(&t);
		cp_observe_render(r->o, CP_HTTP_DIAGNOSTICS, &t, &type);
	}
	tn_text_free(&t);
	return NULL;
}

static void three_threads(void)
{
	struct shr_tele t = engine(tn_metric_schema_hash(), TN_METRIC_CELL_CNT);
	struct race r = { .o = make(), .t = &t };
	pthread_t a, b;
	pthread_create(&a, NULL, race_engine, &r);
	pthread_create(&b, NULL, race_scraper, &r);
	uint64_t end_ns = tn_now_ns() + 300 * TN_NS_PER_MS;
	for (unsigned i = 0; tn_now_ns() < end_ns; i++) {
		if (i % 8 == 0)
			CU_ASSERT_EQUAL(cp_observe_attach(r.o, path_of(&t)), TN_OK);
		facts(r.o, i & 1, true, i & 2);
		lines_len = 0;
		(void)cp_observe_poll(r.o);
		cp_count_rpc(cp_observe_metrics(r.o), TN_RPC_METHOD_PROBE, TN_RPC_OUTCOME_SUCCESS, i, 1 + i % 2);
		(void)usleep(500);
	}
	tn_store_release32(&r.stop, 1);
	pthread_join(a, NULL);
	pthread_join(b, NULL);
	CU_ASSERT_TRUE(r.scrapes > 0);
	CU_ASSERT_EQUAL(r.malformed, 0);
	cp_observe_destroy(r.o);
	drop(&t);
}

TN_TEST_MAIN("observe", { "before any data plane", before_any_data_plane },
	{ "numbers reach the exposition", numbers_reach_the_exposition },
	{ "another schema serves the pipeline only", another_schema_serves_the_pipeline_only },
	{ "another ABI detaches", another_abi_detaches },
	{ "a restart renders nothing twice", a_restart_renders_nothing_twice },
	{ "failures of the pipeline are counted", pipeline_failures_are_counted },
	{ "events become lines and exemplars", events_become_lines_and_exemplars },
	{ "a stalled worker is seen", stalled_worker_is_seen }, { "over HTTP", over_http }, { "three threads", three_threads })
