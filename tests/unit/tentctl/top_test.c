/* SPDX-License-Identifier: Apache-2.0
 * The view between two samples that are made up, the screen that it gives at several sizes, and the verb on a telemetry
 * file without any daemon. */
#include "tests/unit/tentctl/run.h"

#include "common/clock.h"
#include "controlplane/tentctl/top/top.h"
#include "shm-ring/lease.h"

static struct tctl_top_sample before, now;
static struct tn_metrics m;
static tn_a64 cells[TN_METRIC_CELL_CNT];

static void counted(struct tctl_top_sample *s)
{
	for (uint32_t i = 0; i < TN_METRIC_CELL_CNT; i++)
		s->cells[i] = tn_load_relaxed64(&cells[i]);
}

/* One second in which tcp wrote 2000 requests of 1 MB in 400 us, 10 of which failed. */
static void fabricate(void)
{
	tctl_top_drop(&now);
	memset(&before, 0, sizeof before);
	for (uint32_t i = 0; i < TN_METRIC_CELL_CNT; i++)
		tn_store_relaxed64(&cells[i], 0);
	tn_metrics_bind(&m, cells, true);
	before.generation = 4;
	before.at_ns = 100 * TN_NS_PER_S;
	before.life = TCTL_LIFE_RUNNING;
	before.start_mono_ns = 10 * TN_NS_PER_S;
	before.pid = 77;
	before.numbers = before.recording = before.control = before.loads = true;
	before.loaded = before.up = 1u << TN_TRANSPORT_TCP | 1u << TN_TRANSPORT_SHM;
	before.worker_cnt = 2;
	before.workers[0] = before.workers[1] = (struct tctl_top_worker){ .alive = true, .cpu = UINT32_MAX };
	snprintf(before.host, sizeof before.host, "a");
	tn_counter_add(&m, TN_C1(WRITE_BYTES_TOTAL, TN_TRANSPORT_TCP), 5555);
	counted(&before);
	now = before;
	now.at_ns += TN_NS_PER_S;
	now.at_real_ns = 1700000000 * TN_NS_PER_S;
	tn_counter_add(&m, TN_C1(WRITE_BYTES_TOTAL, TN_TRANSPORT_TCP), UINT64_C(2000000000));
	tn_counter_add(&m, TN_C1(WRITE_REQUESTS_TOTAL, TN_TRANSPORT_TCP), 2010);
	tn_counter_add(&m, TN_C3(TERMINAL_FAILURES_TOTAL, TN_TRANSPORT_TCP, TN_PHASE_CONNECT, TN_REASON_PEER_CLOSED),
		       10);
	tn_gauge_add(&m, TN_G1(LOGICAL_REQUESTS_INFLIGHT, TN_OP_WRITE), 3);
	for (int i = 0; i < 2000; i++)
		tn_hist_observe(&m, TN_H1(WRITE_LATENCY_US, TN_TRANSPORT_TCP), 400000);
	counted(&now);
	now.workers[0].busy_ns = 250000000;
	now.workers[0].idle_ns = 750000000;
	json_t *answer = json_loads("{\"total\":2,\"local\":{\"started\":0},\"peers\":["
				    "{\"name\":\"quiet\",\"started\":0,\"ended\":0},"
				    "{\"name\":\"busy\",\"started\":2013,\"ended\":2010,\"failed\":10,\"inflight\":3,"
				    "\"written_bytes\":2000000000,"
				    "\"lanes\":2,\"latency\":[0,0,0,0,0,0,0,0,2000],\"last_failure\":{\"transport\":"
				    "\"tcp\",\"phase\":\"connect\","
				    "\"reason\":\"peer_closed\",\"ms_ago\":1500}}]}",
				    0, NULL);
	tctl_top_read_loads(answer, &now);
	json_decref(answer);
}

static double real(const json_t *j, const char *key) { return json_real_value(json_object_get(j, key)); }
static const json_t *first(const json_t *j, const char *key) { return json_array_get(json_object_get(j, key), 0); }

static void rates(void)
{
	fabricate();
	json_t *v = tctl_top_view(&before, &now);
	const json_t *t = json_object_get(v, "totals"), *peer = first(v, "peers"), *f = first(v, "failures");
	CU_ASSERT_DOUBLE_EQUAL(real(t, "write_bytes_per_s"), 2e9, 1);
	CU_ASSERT_DOUBLE_EQUAL(real(t, "requests_per_s"), 2010, 0.1);
	CU_ASSERT_DOUBLE_EQUAL(real(t, "failed_per_s"), 10, 0.1);
	CU_ASSERT_EQUAL(json_integer_value(json_object_get(t, "inflight")), 3);
	const json_t *tcp = first(v, "transports");
	CU_ASSERT_STRING_EQUAL(json_string_value(json_object_get(tcp, "transport")), "tcp");
	json_int_t p50 = json_integer_value(json_object_get(tcp, "p50_ns"));
	CU_ASSERT_TRUE(p50 > 200000 && p50 <= 500000); /* within its bucket */
	CU_ASSERT_STRING_EQUAL(json_string_value(json_object_get(peer, "peer")), "busy"); /* the busiest first */
	CU_ASSERT_DOUBLE_EQUAL(real(peer, "write_bytes_per_s"), 2e9, 1);
	CU_ASSERT_TRUE(json_integer_value(json_object_get(peer, "p99_ns")) > 200000);
	CU_ASSERT_EQUAL(json_array_size(json_object_get(v, "peers")), 2); /* nothing moved on this host */
	CU_ASSERT_DOUBLE_EQUAL(real(first(v, "workers"), "busy"), 0.25, 0.001);
	CU_ASSERT_STRING_EQUAL(json_string_value(json_object_get(f, "phase")), "connect");
	CU_ASSERT_DOUBLE_EQUAL(real(f, "per_s"), 10, 0.1);
	json_decref(v);
}

static void another_generation_has_no_rates(void)
{
	fabricate();
	now.generation++;
	json_t *v = tctl_top_view(&before, &now);
	CU_ASSERT_EQUAL(real(json_object_get(v, "totals"), "write_bytes_per_s"), 0);
	CU_ASSERT_EQUAL(real(first(v, "workers"), "busy"), 0);
	CU_ASSERT_EQUAL(real(first(v, "peers"), "write_bytes_per_s"), 0);
	json_decref(v);
}

/* Width of the widest line in columns, and the number of rows, of a frame without colour. */
static void measure(const char *text, unsigned *width, unsigned *rows)
{
	unsigned column = 0;
	*width = 0;
	*rows = 1;
	for (const char *p = text; *p != '\0'; p++) {
		if (*p == '\033') {
			p += strcspn(p, "KJHm");
		} else if (*p == '\n') {
			column = 0;
			++*rows;
		} else if (*p != '\r' && ((unsigned char)*p & 0xc0) != 0x80) {
			column++;
			*width = TN_MAX(*width, column);
		}
	}
}

static void fits_every_screen(void)
{
	static struct tctl_top_history h;
	fabricate();
	json_t *v = tctl_top_view(&before, &now);
	for (int i = 0; i < 200; i++)
		tctl_top_remember(&h, v);
	CU_ASSERT_EQUAL(h.cnt, TCTL_TOP_HISTORY);
	for (unsigned w = 1; w < 200; w += 7)
		for (unsigned rows = 1; rows < 60; rows += 3)
			for (unsigned utf8 = 0; utf8 < 2; utf8++) {
				struct tctl_canvas c;
				unsigned width = 0, height = 0;
				tctl_canvas_init(&c, w, rows);
				c.screen = c.colour = true;
				c.utf8 = utf8 != 0;
				tctl_top_draw(&c, v, &h, "q quit");
				CU_ASSERT_FALSE(c.text.failed);
				measure(c.text.p, &width, &height);
				bool good =
				    width <= w && height <= rows && (rows == 1 || w <= 6 || strstr(c.text.p, "q quit"));
				CU_ASSERT_TRUE(good);
				tctl_canvas_free(&c);
			}
	json_decref(v);
}

static void headings_stand_apart(void)
{
	struct tctl_canvas c;
	fabricate();
	json_t *v = tctl_top_view(&before, &now);
	for (unsigned w = 100; w <= 127; w += 27) { /* narrow and wide cells, each as few as hold them */
		tctl_canvas_init(&c, w, 0);
		tctl_top_draw(&c, v, NULL, NULL);
		const char *head = strstr(c.text.p, "TRANSPORT"), *end = strchr(head, '\n');
		unsigned words = 0;
		for (const char *p = head; p < end; p++)
			words += *p != ' ' && (p == head || p[-1] == ' ');
		CU_ASSERT_EQUAL(words, 11);
		CU_ASSERT_TRUE(strstr(head, " RETX/s") < end);
		tctl_canvas_free(&c);
	}
	json_decref(v);
}

static void says_what_matters(void)
{
	struct tctl_canvas c;
	fabricate();
	json_t *v = tctl_top_view(&before, &now);
	tctl_canvas_init(&c, 80, 0);
	tctl_top_draw(&c, v, NULL, NULL);
	CU_ASSERT_PTR_NOT_NULL(strstr(c.text.p, "tent a  22:13:20Z  data plane up 1m31s  pid 77, generation 4"));
	CU_ASSERT_PTR_NOT_NULL(strstr(c.text.p, "failed 10.0/s"));
	CU_ASSERT_PTR_NOT_NULL(strstr(c.text.p, "connect/peer_closed"));
	CU_ASSERT_PTR_NOT_NULL(strstr(c.text.p, "25.0%"));
	tctl_canvas_reset(&c);
	json_decref(v);
	now.life = TCTL_LIFE_DIED;
	now.last_sign_ns = now.at_ns - 12 * TN_NS_PER_S;
	now.control = now.loads = false;
	snprintf(now.control_error, sizeof now.control_error, "not running");
	v = tctl_top_view(&before, &now);
	tctl_top_draw(&c, v, NULL, NULL);
	CU_ASSERT_PTR_NOT_NULL(strstr(c.text.p, "data plane died 12.0s ago  tentctl postmortem 4"));
	CU_ASSERT_PTR_NOT_NULL(strstr(c.text.p, "control plane: not running"));
	CU_ASSERT_PTR_NULL(strstr(c.text.p, "PEER"));
	CU_ASSERT_TRUE(json_is_null(json_object_get(v, "peers")));
	json_decref(v);
	tctl_canvas_free(&c);
	tctl_top_drop(&now);
}

static void the_verb_without_daemons(void)
{
	struct shr_tele t;
	struct shr_tele_cfg cfg = { .worker_cnt = 1,
				    .cell_cnt = TN_METRIC_CELL_CNT,
				    .event_slots = 8,
				    .keep_slots = 8,
				    .schema_hash = tn_metric_schema_hash(),
				    .session = { { 9 } },
				    .start_mono_ns = tn_now_ns(),
				    .start_real_ns = tn_real_ns(),
				    .metrics_compiled = true,
				    .build = "x y z",
				    .loaded_transports = 1u << TN_TRANSPORT_TCP };
	run_dir();
	CU_ASSERT_EQUAL(run("top", NULL), TCTL_FAILED); /* the test's output is no terminal */
	CU_ASSERT_PTR_NOT_NULL(strstr(ran.err, "use --once or -j"));
	CU_ASSERT_EQUAL(run("top", "--interval", "1ms", NULL), TCTL_USAGE);
	CU_ASSERT_EQUAL(run("top", "--once", "--interval", "100ms", NULL), TCTL_OK);
	CU_ASSERT_PTR_NOT_NULL(strstr(ran.out, "no data plane ran here"));
	CU_ASSERT_EQUAL_FATAL(shr_tele_create(run_dir(), &cfg, &t), TN_OK);
	tn_store_relaxed32(&t.hdr->state, SHR_TELE_RUNNING);
	CU_ASSERT_EQUAL(run("top", "-j", "-i", "100ms", NULL), TCTL_OK);
	json_t *j = run_json();
	CU_ASSERT_STRING_EQUAL(json_string_value(json_object_get(json_object_get(j, "data_plane"), "verdict")), "died");
	CU_ASSERT_EQUAL(json_array_size(json_object_get(j, "transports")), 1);
	CU_ASSERT_TRUE(json_is_false(json_object_get(json_object_get(j, "control_plane"), "answers")));
	json_decref(j);
	shr_tele_close(&t);
	run_dir_remove();
}

TN_TEST_MAIN("tentctl top",
	{ "rates between two samples", rates },
	{ "no rates across a restart", another_generation_has_no_rates },
	{ "a frame fits every screen", fits_every_screen },
	{ "headings do not touch", headings_stand_apart },
	{ "the page says what matters", says_what_matters },
	{ "the verb without daemons", the_verb_without_daemons })
