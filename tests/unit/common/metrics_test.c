/* SPDX-License-Identifier: Apache-2.0
 * common/metrics: the layout has no holes or overlaps, buckets agree with a linear search, labels stay inside their
 * closed domains, and the recording switch stops what it may stop and nothing else. */
#include "common/metrics.h"

#include <string.h>

#include "tests/unit/cu.h"

static tn_a64 cells[TN_METRIC_CELL_CNT];

static struct tn_metrics fresh(bool recording)
{
	struct tn_metrics m;
	for (unsigned i = 0; i < TN_METRIC_CELL_CNT; i++)
		tn_store_relaxed64(&cells[i], 0);
	tn_metrics_bind(&m, cells, recording);
	return m;
}

static void layout_is_dense(void)
{
	uint32_t next = 0;
	for (unsigned i = 0; i < TN_M_CNT; i++) {
		const struct tn_metric_family *f = &tn_metric_families[i];
		unsigned series = 1;
		for (unsigned l = 0; l < f->label_cnt; l++)
			series *= tn_metric_domains[f->label[l].domain].cnt;
		CU_ASSERT_EQUAL(f->series_cnt, series);
		CU_ASSERT_EQUAL(f->base, next);
		next += f->series_cnt * f->width;
	}
	CU_ASSERT_EQUAL(next, TN_METRIC_CELL_CNT);
}

static bool plain_text(const char *s)
{
	return *s != '\0' && s[strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789_")] == '\0';
}

static void labels_come_from_closed_domains(void)
{
	static const char *const forbidden[] = { "peer", "address", "request_id", "policy", "segment", "nic", "qp", "id" };
	for (unsigned i = 0; i < TN_M_CNT; i++) {
		const struct tn_metric_family *f = &tn_metric_families[i];
		for (unsigned l = 0; l < f->label_cnt; l++) {
			CU_ASSERT_TRUE(plain_text(f->label[l].key));
			for (unsigned k = 0; k < TN_ARRAY_LEN(forbidden); k++)
				CU_ASSERT_STRING_NOT_EQUAL(f->label[l].key, forbidden[k]);
			CU_ASSERT_TRUE(f->label[l].domain > TN_DOMAIN_NONE && f->label[l].domain < TN_DOMAIN_CNT);
		}
	}
	for (unsigned d = TN_DOMAIN_NONE + 1; d < TN_DOMAIN_CNT; d++) {
		CU_ASSERT_FATAL(tn_metric_domains[d].values != NULL);
		CU_ASSERT_TRUE(tn_metric_domains[d].cnt >= 2 && tn_metric_domains[d].cnt <= 16);
		for (unsigned v = 0; v < tn_metric_domains[d].cnt; v++)
			CU_ASSERT_TRUE(plain_text(tn_metric_domains[d].values[v]));
	}
}

static void names_follow_the_conventions(void)
{
	for (unsigned i = 0; i < TN_M_CNT; i++) {
		const struct tn_metric_family *f = &tn_metric_families[i];
		size_t n = strlen(f->name);
		bool total = n > 6 && strcmp(f->name + n - 6, "_total") == 0;
		CU_ASSERT_TRUE(plain_text(f->name));
		CU_ASSERT_EQUAL(total, f->type == TN_MTYPE_COUNTER);
		CU_ASSERT_TRUE(strncmp(f->name, f->section == TN_METRIC_SECTION_PROCESS ? "process_" : "tent_", 5) == 0);
		CU_ASSERT_TRUE(strlen(f->help) > 10 && strpbrk(f->help, "\\\n\"") == NULL);
		if (f->type == TN_MTYPE_LATENCY)
			CU_ASSERT_TRUE(f->unit == TN_UNIT_NS_US && strcmp(f->name + n - 3, "_us") == 0);
		for (unsigned j = 0; j < i; j++)
			CU_ASSERT_STRING_NOT_EQUAL(f->name, tn_metric_families[j].name);
	}
}

static void check_bucket(unsigned type, uint64_t v)
{
	const struct tn_buckets *set = &tn_bucket_sets[type - TN_MTYPE_LATENCY];
	uint32_t want = 0;
	while (want < set->cnt && v > set->bound[want])
		want++;
	if (tn_bucket(type, v) != want)
		CU_FAIL("bucket differs from linear search");
}

static void buckets_match_a_linear_search(void)
{
	for (unsigned type = TN_MTYPE_LATENCY; type <= TN_MTYPE_SEGMENTS; type++) {
		const struct tn_buckets *set = &tn_bucket_sets[type - TN_MTYPE_LATENCY];
		CU_ASSERT_EQUAL(set->cnt, tn_bucket_cnt(type));
		for (unsigned b = 0; b < set->cnt; b++)
			for (uint64_t v = set->bound[b] > 3 ? set->bound[b] - 3 : 0; v <= set->bound[b] + 3; v++)
				check_bucket(type, v);
		for (unsigned k = 0; k < 64; k++)
			for (int d = -2; d <= 2; d++)
				check_bucket(type, (UINT64_C(1) << k) + (uint64_t)d);
		for (uint64_t v = 0; v < 20000; v++)
			check_bucket(type, v);
		check_bucket(type, UINT64_MAX);
	}
}

static void label_text_is_the_inverse_of_the_index(void)
{
	const struct tn_metric_family *f = &tn_metric_families[TN_M_TERMINAL_FAILURES_TOTAL];
	uint32_t cell = TN_C3(TERMINAL_FAILURES_TOTAL, TN_TRANSPORT_TCP, TN_PHASE_CONNECT, TN_REASON_PEER_CLOSED).cell;
	unsigned series = (cell - f->base) / f->width;
	CU_ASSERT_STRING_EQUAL(tn_metric_label_text(f, series, 0), "tcp");
	CU_ASSERT_STRING_EQUAL(tn_metric_label_text(f, series, 1), "connect");
	CU_ASSERT_STRING_EQUAL(tn_metric_label_text(f, series, 2), "peer_closed");
	CU_ASSERT_EQUAL(TN_H2(TRANSPORT_ATTEMPT_LATENCY_US, 0, 1).cell - TN_H2(TRANSPORT_ATTEMPT_LATENCY_US, 0, 0).cell,
			TN_BUCKETS_LATENCY_CNT + 2);
	CU_ASSERT_STRING_EQUAL(tn_metric_domains[TN_DOMAIN_STREAM].values[tn_stream_kind(TN_TRANSPORT_TCP)], "tcp");
	CU_ASSERT_STRING_EQUAL(tn_metric_domains[TN_DOMAIN_STREAM].values[tn_stream_kind(TN_TRANSPORT_HP_TCP)], "hp_tcp");
}

static void the_switch_stops_only_what_it_may(void)
{
	struct tn_metrics m = fresh(false);
	tn_counter_add(&m, TN_C1(READ_BYTES_TOTAL, TN_TRANSPORT_TCP), 100);
	tn_counter_add(&m, TN_C1(LOGICAL_REQUESTS_STARTED_TOTAL, TN_OP_READ), 2);
	tn_gauge_add(&m, TN_G1(LOGICAL_REQUESTS_INFLIGHT, TN_OP_READ), 2);
	tn_gauge_add(&m, TN_G1(LOGICAL_REQUESTS_INFLIGHT, TN_OP_READ), -3);
	tn_hist_observe(&m, TN_H1(READ_LATENCY_US, TN_TRANSPORT_TCP), 1500);
	const uint64_t on = TENT_METRICS ? UINT64_MAX : 0;
	CU_ASSERT_EQUAL(tn_load_relaxed64(&cells[TN_C1(READ_BYTES_TOTAL, TN_TRANSPORT_TCP).cell]), 0);
	CU_ASSERT_EQUAL(tn_load_relaxed64(&cells[TN_C1(LOGICAL_REQUESTS_STARTED_TOTAL, TN_OP_READ).cell]), 2 & on);
	CU_ASSERT_EQUAL(tn_load_relaxed64(&cells[TN_G1(LOGICAL_REQUESTS_INFLIGHT, TN_OP_READ).cell]), (uint64_t)-1 & on);
	CU_ASSERT_EQUAL(tn_load_relaxed64(&cells[TN_H1(READ_LATENCY_US, TN_TRANSPORT_TCP).cell + 1]), 0);

	tn_metrics_switch(&m, true);
	tn_hist_observe(&m, TN_H1(READ_LATENCY_US, TN_TRANSPORT_TCP), 1500);
	tn_gauge_set(&m, TN_G1(DISPATCH_WINDOW_OWNERS, TN_WINDOW_EFFECTIVE), 7);
	CU_ASSERT_EQUAL(tn_load_relaxed64(&cells[TN_H1(READ_LATENCY_US, TN_TRANSPORT_TCP).cell + 1]), 1 & on);
	CU_ASSERT_EQUAL(tn_load_relaxed64(&cells[TN_H1(READ_LATENCY_US, TN_TRANSPORT_TCP).cell + TN_BUCKETS_LATENCY_CNT + 1]),
			1500 & on);
	CU_ASSERT_EQUAL(tn_load_relaxed64(&cells[TN_G1(DISPATCH_WINDOW_OWNERS, TN_WINDOW_EFFECTIVE).cell]), 7 & on);
}

static void schema_hash_is_stable_within_a_build(void)
{
	CU_ASSERT_EQUAL(tn_metric_schema_hash(), tn_metric_schema_hash());
	CU_ASSERT_NOT_EQUAL(tn_metric_schema_hash(), 0);
}

static void folding_follows_the_aggregation(void)
{
	static uint64_t sum[TN_METRIC_CELL_CNT];
	static tn_a64 block[3][TN_METRIC_CELL_CNT];
	static const uint64_t v[3] = { 7, 0, 5 };
	uint32_t added = TN_C1(READ_BYTES_TOTAL, TN_TRANSPORT_TCP).cell, min = TN_G1(DISPATCH_WINDOW_OWNERS, TN_WINDOW_EFFECTIVE).cell,
		 max = TN_G1(WORKER_LAST_PROGRESS_TIMESTAMP_SECONDS, TN_WORKER_KIND_TCP).cell,
		 foreign = TN_C1(RPC_CALLS_TOTAL, TN_RPC_METHOD_HELLO).cell;
	for (unsigned w = 0; w < 3; w++) {
		tn_store_relaxed64(&block[w][added], v[w]);
		tn_store_relaxed64(&block[w][min], v[w]);
		tn_store_relaxed64(&block[w][max], v[w]);
		tn_store_relaxed64(&block[w][foreign], v[w]);
		tn_metric_fold(sum, block[w], TN_OWNER_DP);
	}
	CU_ASSERT_EQUAL(sum[added], 12);
	CU_ASSERT_EQUAL(sum[min], 5); /* the one that never set it has no opinion */
	CU_ASSERT_EQUAL(sum[max], 7);
	CU_ASSERT_EQUAL(sum[foreign], 0);
}

TN_TEST_MAIN("common/metrics", { "the layout is dense", layout_is_dense },
	{ "labels come from closed domains", labels_come_from_closed_domains },
	{ "names follow the conventions", names_follow_the_conventions },
	{ "buckets match a linear search", buckets_match_a_linear_search },
	{ "label text is the inverse of the index", label_text_is_the_inverse_of_the_index },
	{ "the switch stops only what it may", the_switch_stops_only_what_it_may },
	{ "folding follows the aggregation", folding_follows_the_aggregation },
	{ "the schema hash is stable within a build", schema_hash_is_stable_within_a_build })
