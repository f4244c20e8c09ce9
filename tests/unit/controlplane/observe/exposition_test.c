/* SPDX-License-Identifier: Apache-2.0
 * prom_text and openmetrics: golden files (TENT_TEST_UPDATE_GOLDEN=1 rewrites them), the exposure rules, and the
 * independent checker, which is itself shown to refuse what is wrong. */
#include <stdio.h>
#include <string.h>

#include "controlplane/observe/prom_text.h"
#include "tests/unit/controlplane/observe/prom_check.h"
#include "tests/unit/cu.h"

static const struct cp_build build = { "1.2.3", "abc\"def\\", "Release" };
static struct cp_snapshot snap;

static void blank(bool full, bool has_dp)
{
	memset(&snap, 0, sizeof snap);
	snap.full = full;
	snap.has_dp = has_dp;
	snap.now_mono_ns = 5000000000u;
	snap.now_real_ns = 1700000000123456789u;
	snap.cell[TN_G0(METRICS_BUILD_INFO).cell] = 1;
}

static void observe(struct tn_hist_at at, uint64_t v)
{
	snap.cell[at.cell + tn_bucket(at.type, v)]++;
	snap.cell[at.cell + tn_bucket_cnt(at.type) + 1] += v;
}

static void traffic(void)
{
	blank(true, true);
	snap.has_process[TN_PROCESS_CONTROLPLANE] = true;
	snap.cell[TN_C1(PROCESS_CPU_SECONDS_TOTAL, TN_PROCESS_CONTROLPLANE).cell] = 1230000000;
	snap.cell[TN_G1(PROCESS_START_TIME_SECONDS, TN_PROCESS_CONTROLPLANE).cell] = 1699999000500000000u;
	snap.cell[TN_G0(DATAPLANE_UP).cell] = 1;
	snap.cell[TN_G0(METRICS_LAST_SUCCESS_TIMESTAMP_SECONDS).cell] = 1700000000000000000u;
	snap.cell[TN_C1(LOGICAL_REQUESTS_STARTED_TOTAL, TN_OP_WRITE).cell] = 3;
	snap.cell[TN_G1(LOGICAL_REQUESTS_INFLIGHT, TN_OP_WRITE).cell] = 1;
	snap.cell[TN_G1(LOGICAL_REQUESTS_INFLIGHT, TN_OP_READ).cell] = (uint64_t)-2;
	snap.cell[TN_C3(LOGICAL_REQUEST_OUTCOMES_TOTAL, TN_OP_WRITE, TN_TRANSPORT_TCP, TN_OUTCOME_COMPLETED).cell] = 2;
	snap.cell[TN_C3(TERMINAL_FAILURES_TOTAL, TN_TRANSPORT_TCP, TN_PHASE_CONNECT, TN_REASON_TIMEOUT).cell] = 7;
	snap.cell[TN_G1(WORKER_LAST_PROGRESS_TIMESTAMP_SECONDS, TN_WORKER_KIND_PROGRESS).cell] = 4000000000u;
	struct tn_hist_at latency = TN_H2(TRANSPORT_ATTEMPT_LATENCY_US, TN_TRANSPORT_TCP, TN_OP_WRITE);
	observe(latency, 900);         /* 0.9 us */
	observe(latency, 1000);        /* exactly the first bound */
	observe(latency, 1001);
	observe(latency, 7000000000u); /* beyond the last bound */
	observe(TN_H1(WRITE_SIZE_BYTES, TN_TRANSPORT_TCP), 65536);
	observe(TN_H1(DEADLINE_MLU_PERMILLE, TN_TRANSPORT_TCP), 951);
	snap.exemplars.slot[TN_TRANSPORT_TCP][TN_OP_WRITE] =
		(struct cp_exemplar){ 0x0123456789abcdefu, 0xfedcba9876543210u, 7000000000u, 4500000000u };
}

static void same_as_golden(const char *name, const struct tn_text *t)
{
	static char want[1 << 20];
	char path[512];
	(void)snprintf(path, sizeof path, "%s/%s", GOLDEN_DIR, name);
	if (getenv("TENT_TEST_UPDATE_GOLDEN")) {
		FILE *w = fopen(path, "w");
		CU_ASSERT_PTR_NOT_NULL_FATAL(w);
		fwrite(t->p, 1, t->len, w);
		fclose(w);
	}
	FILE *f = fopen(path, "r");
	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	size_t n = fread(want, 1, sizeof want, f);
	fclose(f);
	CU_ASSERT_EQUAL(n, t->len);
	CU_ASSERT_TRUE(n == t->len && memcmp(want, t->p, n) == 0);
}

static void well_formed(const struct tn_text *t, bool openmetrics)
{
	char err[256] = "";
	CU_ASSERT_FALSE_FATAL(t->failed);
	bool good = prom_check(t->p, t->len, openmetrics, NULL, err, sizeof err);
	if (!good)
		printf("\n%s\n", err);
	CU_ASSERT_TRUE(good);
}

static void render(struct tn_text *t, bool openmetrics)
{
	tn_text_init(t, CP_EXPOSE_BYTES_MAX);
	if (openmetrics)
		cp_openmetrics_render(&snap, &build, t);
	else
		cp_prom_text_render(&snap, &build, t);
}

static void golden_traffic(void)
{
	struct tn_text t;
	traffic();
	render(&t, false);
	well_formed(&t, false);
	same_as_golden("traffic.prom", &t);
	tn_text_free(&t);
	render(&t, true);
	well_formed(&t, true);
	same_as_golden("traffic.openmetrics", &t);
	tn_text_free(&t);
}

static void golden_pipeline_only(void)
{
	struct tn_text t;
	traffic();
	snap.full = snap.has_dp = false;
	render(&t, false);
	well_formed(&t, false);
	same_as_golden("pipeline.prom", &t);
	tn_text_free(&t);
}

static unsigned count(const char *text, const char *needle)
{
	unsigned n = 0;
	for (const char *p = text; (p = strstr(p, needle)) != NULL; p += strlen(needle))
		n++;
	return n;
}

static void what_never_occurred_is_hidden_except(void)
{
	struct tn_text t;
	blank(true, true);
	render(&t, false);
	well_formed(&t, false);
	CU_ASSERT_EQUAL(count(t.p, "tent_terminal_failures_total"), 0);              /* 900 cells */
	CU_ASSERT_EQUAL(count(t.p, "tent_logical_request_outcomes_total"), 0);       /* 40 cells */
	CU_ASSERT_EQUAL(count(t.p, "_bucket"), 0);                                   /* histograms */
	CU_ASSERT_EQUAL(count(t.p, "\ntent_read_bytes_total{"), TN_TRANSPORT_CNT);   /* at most 16 cells */
	CU_ASSERT_EQUAL(count(t.p, "\ntent_inflight_attempts{"), 10);                /* a gauge */
	CU_ASSERT_EQUAL(count(t.p, "\ntent_events_dropped_total{"), 2);              /* section 1 */
	CU_ASSERT_EQUAL(count(t.p, "process_"), 0);                                  /* nobody known */
	tn_text_free(&t);

	blank(true, false);
	render(&t, false);
	well_formed(&t, false);
	CU_ASSERT_EQUAL(count(t.p, "tent_read_bytes_total"), 0); /* no region: no false zero */
	CU_ASSERT_EQUAL(count(t.p, "\ntent_rpc_calls_total{"), TN_RPC_METHOD_CNT);
	tn_text_free(&t);
}

static void every_family_can_be_shown(void)
{
	struct tn_text t;
	for (unsigned openmetrics = 0; openmetrics < 2; openmetrics++) {
		blank(true, true);
		snap.has_process[0] = snap.has_process[1] = true;
		for (unsigned i = 0; i < TN_METRIC_CELL_CNT; i++)
			snap.cell[i] = i + 1;
		render(&t, openmetrics);
		well_formed(&t, openmetrics);
		CU_ASSERT_EQUAL(count(t.p, "# TYPE "), TN_M_CNT);
		tn_text_free(&t);
	}
}

static void a_full_buffer_is_a_failure(void)
{
	struct tn_text t;
	traffic();
	tn_text_init(&t, 1000);
	cp_prom_text_render(&snap, &build, &t);
	CU_ASSERT_TRUE(t.failed);
	CU_ASSERT_TRUE(t.len <= 1000);
	tn_text_free(&t);
}

static void the_checker_refuses(void)
{
	static const char *const wrong[] = {
		"tent_a 1\n",                                                              /* no HELP */
		"# HELP tent_a x\n# TYPE tent_a gauge\ntent_a 1",                          /* no newline */
		"# HELP tent_a x\n# TYPE tent_a gauge\ntent_a one\n",
		"# HELP tent_a x\n# TYPE tent_a gauge\ntent_a 1\ntent_a 2\n",              /* twice */
		"# HELP tent_a x\n# TYPE tent_a gauge\ntent_a{b=\"c} 1\n",
		"# HELP tent_a x\n# TYPE tent_a gauge\n# HELP tent_a x\n# TYPE tent_a gauge\n",
		"# HELP tent_a x\n# TYPE tent_a counter\n",                                /* counter without _total */
		"# HELP h x\n# TYPE h histogram\nh_bucket{le=\"1\"} 2\nh_bucket{le=\"+Inf\"} 1\nh_sum 1\nh_count 1\n",
		"# HELP h x\n# TYPE h histogram\nh_bucket{le=\"1\"} 1\nh_bucket{le=\"+Inf\"} 2\nh_sum 1\nh_count 3\n",
		"# HELP h x\n# TYPE h histogram\nh_bucket{le=\"1\"} 1\nh_sum 1\nh_count 1\n",
	};
	char err[256];
	for (unsigned i = 0; i < TN_ARRAY_LEN(wrong); i++)
		CU_ASSERT_FALSE(prom_check(wrong[i], strlen(wrong[i]), false, NULL, err, sizeof err));
	const char *good = "# HELP h x\n# TYPE h histogram\nh_bucket{le=\"1\"} 1\nh_bucket{le=\"+Inf\"} 2\nh_sum 1\nh_count 2\n";
	CU_ASSERT_TRUE(prom_check(good, strlen(good), false, NULL, err, sizeof err));
	CU_ASSERT_FALSE(prom_check(good, strlen(good), true, NULL, err, sizeof err)); /* no # EOF, no float bounds */
}

TN_TEST_MAIN("observe/exposition",
	{ "golden traffic in both formats", golden_traffic },
	{ "golden pipeline families only", golden_pipeline_only },
	{ "what never occurred is hidden, except", what_never_occurred_is_hidden_except },
	{ "every family can be shown", every_family_can_be_shown },
	{ "a full buffer is a failure", a_full_buffer_is_a_failure }, { "the checker refuses", the_checker_refuses })
