/* SPDX-License-Identifier: Apache-2.0
 * The equations: each holds on consistent numbers, and each is breached by moving one cell, with its own number and
 * labels; equation 8 as the scenario that the contract tells. */
#include "common/metrics_check.h"

#include <string.h>

#include "tests/unit/cu.h"

static uint64_t cells[TN_METRIC_CELL_CNT];

static void add(struct tn_counter_at at, uint64_t n) { cells[at.cell] += n; }
static void set(struct tn_gauge_at at, uint64_t v) { cells[at.cell] = v; }

static void consistent(void)
{
	memset(cells, 0, sizeof cells);
	add(TN_C1(LOGICAL_REQUESTS_STARTED_TOTAL, TN_OP_READ), 5);
	add(TN_C3(LOGICAL_REQUEST_OUTCOMES_TOTAL, TN_OP_READ, TN_TRANSPORT_TCP, TN_OUTCOME_COMPLETED), 2);
	add(TN_C3(LOGICAL_REQUEST_OUTCOMES_TOTAL, TN_OP_READ, TN_TRANSPORT_UNSPEC, TN_OUTCOME_TIMEOUT), 1);
	set(TN_G1(LOGICAL_REQUESTS_INFLIGHT, TN_OP_READ), 2);
	add(TN_C2(TRANSPORT_ATTEMPTS_TOTAL, TN_TRANSPORT_TCP, TN_OP_READ), 4);
	add(TN_C3(TRANSPORT_ATTEMPT_OUTCOMES_TOTAL, TN_TRANSPORT_TCP, TN_OP_READ, TN_OUTCOME_FAILED), 1);
	add(TN_C2(TRANSPORT_ATTEMPT_FAILURES_TOTAL, TN_TRANSPORT_TCP, TN_OP_READ), 1);
	set(TN_G2(INFLIGHT_ATTEMPTS, TN_TRANSPORT_TCP, TN_OP_READ), 3);
	add(TN_C2(ADMISSION_EVENTS_TOTAL, TN_OWNER_KIND_USER, TN_ADMISSION_ADMIT), 9);
	add(TN_C2(ADMISSION_EVENTS_TOTAL, TN_OWNER_KIND_USER, TN_ADMISSION_DISPATCH), 6);
	add(TN_C2(ADMISSION_EVENTS_TOTAL, TN_OWNER_KIND_USER, TN_ADMISSION_DEADLINE_DROP), 1);
	add(TN_C2(ADMISSION_EVENTS_TOTAL, TN_OWNER_KIND_USER, TN_ADMISSION_DEFER), 40);
	set(TN_G1(ADMISSION_QUEUED_OWNERS, TN_OWNER_KIND_USER), 2);
	add(TN_C2(RDMA_SLICE_EVENTS_TOTAL, TN_OP_WRITE, TN_RDMA_SLICE_POST_ATTEMPT), 7);
	add(TN_C2(RDMA_SLICE_EVENTS_TOTAL, TN_OP_READ, TN_RDMA_SLICE_POST_ERROR), 1);
	add(TN_C2(RDMA_SLICE_EVENTS_TOTAL, TN_OP_WRITE, TN_RDMA_SLICE_COMPLETION_SUCCESS), 4);
	set(TN_G0(RDMA_POSTED_INFLIGHT_SLICES), 2);
	add(TN_C2(RPC_ATTEMPTS_TOTAL, TN_RPC_METHOD_PROBE, TN_RPC_OUTCOME_SUCCESS), 3);
	add(TN_C1(RPC_CALLS_TOTAL, TN_RPC_METHOD_PROBE), 2);
	add(TN_C1(RPC_RETRIES_TOTAL, TN_RPC_METHOD_PROBE), 1);
	set(TN_G1(CREDIT_CAPACITY, TN_CREDIT_RESOURCE_DATA_BYTES), 100);
	set(TN_G1(CREDIT_COMMITTED, TN_CREDIT_RESOURCE_DATA_BYTES), 30);
	add(TN_C1(CREDIT_GRANTED_TOTAL, TN_CREDIT_RESOURCE_DATA_BYTES), 80);
	add(TN_C1(CREDIT_COMPLETED_TOTAL, TN_CREDIT_RESOURCE_DATA_BYTES), 50);
	add(TN_C0(SELECTION_CALLS_TOTAL), 3);
	add(TN_C1(SELECTION_EVENTS_TOTAL, TN_SELECTION_SELECTED), 2);
	add(TN_C1(SELECTION_EVENTS_TOTAL, TN_SELECTION_EXHAUSTED), 1);
	add(TN_C1(SELECTION_EVENTS_TOTAL, TN_SELECTION_POLICY_MISS), 9);
}

static void breach_is(uint32_t cell, unsigned equation, const char *where)
{
	struct tn_equation_breach b[4];
	consistent();
	cells[cell]++;
	CU_ASSERT_EQUAL_FATAL(tn_metric_equations_check(cells, b, 4), 1);
	CU_ASSERT_EQUAL(b[0].equation, equation);
	CU_ASSERT_STRING_EQUAL(b[0].where, where);
	CU_ASSERT_NOT_EQUAL(b[0].left, b[0].right);
}

static void all_hold(void)
{
	memset(cells, 0, sizeof cells);
	CU_ASSERT_EQUAL(tn_metric_equations_check(cells, NULL, 0), 0);
	consistent();
	CU_ASSERT_EQUAL(tn_metric_equations_check(cells, NULL, 0), 0);
}

static void each_is_breached_alone(void)
{
	breach_is(TN_C1(LOGICAL_REQUESTS_STARTED_TOTAL, TN_OP_READ).cell, 1, "operation=read");
	breach_is(TN_G1(LOGICAL_REQUESTS_INFLIGHT, TN_OP_WRITE).cell, 1, "operation=write");
	breach_is(TN_C2(TRANSPORT_ATTEMPTS_TOTAL, TN_TRANSPORT_SHM, TN_OP_WRITE).cell, 2, "transport=shm operation=write");
	breach_is(TN_C2(TRANSPORT_ATTEMPT_FAILURES_TOTAL, TN_TRANSPORT_TCP, TN_OP_READ).cell, 3, "transport=tcp operation=read");
	breach_is(TN_C2(ADMISSION_EVENTS_TOTAL, TN_OWNER_KIND_STAGING_INTERNAL, TN_ADMISSION_ADMIT).cell, 4,
		  "owner_kind=staging_internal");
	breach_is(TN_C2(RDMA_SLICE_EVENTS_TOTAL, TN_OP_READ, TN_RDMA_SLICE_ABANDONED).cell, 5, "");
	breach_is(TN_C1(RPC_RETRIES_TOTAL, TN_RPC_METHOD_HELLO).cell, 6, "method=hello");
	breach_is(TN_C1(CREDIT_GRANTED_TOTAL, TN_CREDIT_RESOURCE_REQUEST_SLOTS).cell, 7, "resource=request_slots");
	breach_is(TN_C0(SELECTION_CALLS_TOTAL).cell, 9, "");
}

static void committed_stays_within_capacity(void)
{
	struct tn_equation_breach b;
	consistent();
	set(TN_G1(CREDIT_CAPACITY, TN_CREDIT_RESOURCE_DATA_BYTES), 29);
	CU_ASSERT_EQUAL(tn_metric_equations_check(cells, &b, 1), 1);
	CU_ASSERT_EQUAL(b.equation, 7);
}

static void more_breaches_than_room(void)
{
	struct tn_equation_breach b[2] = { { 0 } };
	memset(cells, 0, sizeof cells);
	for (unsigned op = 0; op < TN_OP_CNT; op++)
		add(TN_C1(LOGICAL_REQUESTS_STARTED_TOTAL, op), 1);
	CU_ASSERT_EQUAL(tn_metric_equations_check(cells, b, 1), 2);
	CU_ASSERT_EQUAL(b[0].equation, 1);
	CU_ASSERT_EQUAL(b[1].equation, 0);
}

struct walk { unsigned shown, wrong; };
static void count(void *ctx, const struct tn_equation_breach *sides, bool holds)
{
	struct walk *w = ctx;
	w->shown++;
	w->wrong += !holds;
	CU_ASSERT_EQUAL(holds, sides->left == sides->right);
}

static void a_walk_shows_all(void)
{
	struct walk w = { 0 };
	memset(cells, 0, sizeof cells);
	add(TN_C1(LOGICAL_REQUESTS_STARTED_TOTAL, TN_OP_READ), 1);
	add(TN_C0(SELECTION_CALLS_TOTAL), 1);
	tn_metric_equations_walk(cells, count, &w);
	CU_ASSERT_EQUAL(w.wrong, 2);
	CU_ASSERT_EQUAL(w.shown, TN_OP_CNT + 2 * TN_TRANSPORT_CNT * TN_OP_CNT + TN_OWNER_KIND_CNT + 1 + TN_RPC_METHOD_CNT +
				 2 * TN_CREDIT_RESOURCE_CNT + 1);
}

/* Equation 8, with the recording switch off in the middle: sides of equations do not stop. */
static void a_recovered_request(void)
{
	static tn_a64 block[TN_METRIC_CELL_CNT];
	struct tn_metrics m;
	tn_metrics_bind(&m, block, true);
	tn_counter_add(&m, TN_C1(LOGICAL_REQUESTS_STARTED_TOTAL, TN_OP_WRITE), 1);
	tn_gauge_add(&m, TN_G1(LOGICAL_REQUESTS_INFLIGHT, TN_OP_WRITE), 1);
	tn_counter_add(&m, TN_C2(TRANSPORT_ATTEMPTS_TOTAL, TN_TRANSPORT_RDMA, TN_OP_WRITE), 1);
	tn_gauge_add(&m, TN_G2(INFLIGHT_ATTEMPTS, TN_TRANSPORT_RDMA, TN_OP_WRITE), 1);
	tn_metrics_switch(&m, false);
	tn_counter_add(&m, TN_C3(TRANSPORT_ATTEMPT_OUTCOMES_TOTAL, TN_TRANSPORT_RDMA, TN_OP_WRITE, TN_OUTCOME_FAILED), 1);
	tn_counter_add(&m, TN_C2(TRANSPORT_ATTEMPT_FAILURES_TOTAL, TN_TRANSPORT_RDMA, TN_OP_WRITE), 1);
	tn_gauge_add(&m, TN_G2(INFLIGHT_ATTEMPTS, TN_TRANSPORT_RDMA, TN_OP_WRITE), -1);
	tn_counter_add(&m, TN_C2(TRANSPORT_FAILOVER_TOTAL, TN_TRANSPORT_RDMA, TN_TRANSPORT_TCP), 1);
	tn_counter_add(&m, TN_C2(TRANSPORT_ATTEMPTS_TOTAL, TN_TRANSPORT_TCP, TN_OP_WRITE), 1);
	tn_counter_add(&m, TN_C3(TRANSPORT_ATTEMPT_OUTCOMES_TOTAL, TN_TRANSPORT_TCP, TN_OP_WRITE, TN_OUTCOME_COMPLETED), 1);
	tn_counter_add(&m, TN_C3(LOGICAL_REQUEST_OUTCOMES_TOTAL, TN_OP_WRITE, TN_TRANSPORT_TCP, TN_OUTCOME_COMPLETED), 1);
	tn_gauge_add(&m, TN_G1(LOGICAL_REQUESTS_INFLIGHT, TN_OP_WRITE), -1);
	for (unsigned i = 0; i < TN_METRIC_CELL_CNT; i++)
		cells[i] = tn_load_relaxed64(&block[i]);
	CU_ASSERT_EQUAL(tn_metric_equations_check(cells, NULL, 0), 0);
}

TN_TEST_MAIN("common/metrics_check", { "all hold", all_hold }, { "each is breached alone", each_is_breached_alone },
	{ "committed stays within capacity", committed_stays_within_capacity },
	{ "more breaches than room", more_breaches_than_room }, { "a walk shows all equations", a_walk_shows_all }, { "a recovered request", a_recovered_request })
