/* SPDX-License-Identifier: Apache-2.0
 * Equations 1 to 7 and 9 of the observability contract. 8 is a scenario, not a sum: it has a test of its own. */
#include "common/metrics_check.h"

#include <stdarg.h>
#include <stdio.h>

struct check {
	const uint64_t *cells;
	struct tn_equation_breach *out;
	unsigned max, found;
	tn_equation_fn *walk; /* NULL: only breaches, and texts are made for them only */
	void *ctx;
};

static uint64_t counter(const struct check *c, struct tn_counter_at at) { return c->cells[at.cell]; }
static uint64_t gauge(const struct check *c, struct tn_gauge_at at) { return c->cells[at.cell]; }

static void TN_PRINTF(6, 0) report(struct check *c, bool holds, unsigned number, const char *text, const uint64_t side[2],
				   const char *fmt, va_list ap)
{
	struct tn_equation_breach b = { .equation = number, .text = text, .left = (int64_t)side[0], .right = (int64_t)side[1] };
	if (c->walk == NULL && c->found >= c->max) {
		c->found++;
		return;
	}
	(void)vsnprintf(b.where, sizeof b.where, fmt, ap);
	if (c->walk != NULL)
		c->walk(c->ctx, &b, holds);
	else
		c->out[c->found++] = b;
}

static void TN_PRINTF(6, 7) equal(struct check *c, unsigned number, const char *text, uint64_t left, uint64_t right,
				  const char *fmt, ...)
{
	const uint64_t side[2] = { left, right };
	va_list ap;
	if (left == right && c->walk == NULL)
		return;
	va_start(ap, fmt);
	report(c, left == right, number, text, side, fmt, ap);
	va_end(ap);
}

static void TN_PRINTF(6, 7) at_most(struct check *c, unsigned number, const char *text, uint64_t left, uint64_t right,
				    const char *fmt, ...)
{
	const uint64_t side[2] = { left, right };
	va_list ap;
	bool holds = (int64_t)left <= (int64_t)right;
	if (holds && c->walk == NULL)
		return;
	va_start(ap, fmt);
	report(c, holds, number, text, side, fmt, ap);
	va_end(ap);
}

static void logical_requests(struct check *c)
{
	for (unsigned op = 0; op < TN_OP_CNT; op++) {
		uint64_t right = gauge(c, TN_G1(LOGICAL_REQUESTS_INFLIGHT, op));
		for (unsigned t = 0; t < TN_TRANSPORT_CNT; t++)
			for (unsigned o = 0; o < TN_OUTCOME_CNT; o++)
				right += counter(c, TN_C3(LOGICAL_REQUEST_OUTCOMES_TOTAL, op, t, o));
		equal(c, 1, "started = outcomes + inflight", counter(c, TN_C1(LOGICAL_REQUESTS_STARTED_TOTAL, op)), right,
		      "operation=%s", tn_op_name(op));
	}
}

static void attempts(struct check *c)
{
	for (unsigned t = 0; t < TN_TRANSPORT_CNT; t++)
		for (unsigned op = 0; op < TN_OP_CNT; op++) {
			uint64_t right = gauge(c, TN_G2(INFLIGHT_ATTEMPTS, t, op));
			for (unsigned o = 0; o < TN_OUTCOME_CNT; o++)
				right += counter(c, TN_C3(TRANSPORT_ATTEMPT_OUTCOMES_TOTAL, t, op, o));
			equal(c, 2, "attempts = attempt outcomes + inflight attempts",
			      counter(c, TN_C2(TRANSPORT_ATTEMPTS_TOTAL, t, op)), right, "transport=%s operation=%s",
			      tn_transport_name(t), tn_op_name(op));
			equal(c, 3, "attempt failures = attempt outcomes failed",
			      counter(c, TN_C2(TRANSPORT_ATTEMPT_FAILURES_TOTAL, t, op)),
			      counter(c, TN_C3(TRANSPORT_ATTEMPT_OUTCOMES_TOTAL, t, op, TN_OUTCOME_FAILED)),
			      "transport=%s operation=%s", tn_transport_name(t), tn_op_name(op));
		}
}

static void admission(struct check *c)
{
	for (unsigned k = 0; k < TN_OWNER_KIND_CNT; k++)
		equal(c, 4, "admit = dispatch + deadline_drop + cancel + queued",
		      counter(c, TN_C2(ADMISSION_EVENTS_TOTAL, k, TN_ADMISSION_ADMIT)),
		      counter(c, TN_C2(ADMISSION_EVENTS_TOTAL, k, TN_ADMISSION_DISPATCH)) +
			      counter(c, TN_C2(ADMISSION_EVENTS_TOTAL, k, TN_ADMISSION_DEADLINE_DROP)) +
			      counter(c, TN_C2(ADMISSION_EVENTS_TOTAL, k, TN_ADMISSION_CANCEL)) +
			      gauge(c, TN_G1(ADMISSION_QUEUED_OWNERS, k)),
		      "owner_kind=%s", tn_metric_domains[TN_DOMAIN_OWNER_KIND].values[k]);
}

static uint64_t slices(const struct check *c, enum tn_rdma_slice event)
{
	uint64_t sum = 0;
	for (unsigned op = 0; op < TN_OP_CNT; op++)
		sum += counter(c, TN_C2(RDMA_SLICE_EVENTS_TOTAL, op, event));
	return sum;
}

static void rdma(struct check *c)
{
	equal(c, 5, "post_attempt - post_error = success + error + canceled + abandoned + posted",
	      slices(c, TN_RDMA_SLICE_POST_ATTEMPT) - slices(c, TN_RDMA_SLICE_POST_ERROR),
	      slices(c, TN_RDMA_SLICE_COMPLETION_SUCCESS) + slices(c, TN_RDMA_SLICE_COMPLETION_ERROR) +
		      slices(c, TN_RDMA_SLICE_CANCELED) + slices(c, TN_RDMA_SLICE_ABANDONED) +
		      gauge(c, TN_G0(RDMA_POSTED_INFLIGHT_SLICES)),
	      "%s", "");
}

static void rpc(struct check *c)
{
	for (unsigned m = 0; m < TN_RPC_METHOD_CNT; m++) {
		uint64_t left = 0;
		for (unsigned o = 0; o < TN_RPC_OUTCOME_CNT; o++)
			left += counter(c, TN_C2(RPC_ATTEMPTS_TOTAL, m, o));
		equal(c, 6, "rpc attempts = calls + retries", left,
		      counter(c, TN_C1(RPC_CALLS_TOTAL, m)) + counter(c, TN_C1(RPC_RETRIES_TOTAL, m)), "method=%s",
		      tn_rpc_method_name(m));
	}
}

static void credit(struct check *c)
{
	for (unsigned r = 0; r < TN_CREDIT_RESOURCE_CNT; r++) {
		const char *name = tn_metric_domains[TN_DOMAIN_CREDIT_RESOURCE].values[r];
		uint64_t committed = gauge(c, TN_G1(CREDIT_COMMITTED, r));
		equal(c, 7, "granted - completed = committed",
		      counter(c, TN_C1(CREDIT_GRANTED_TOTAL, r)) - counter(c, TN_C1(CREDIT_COMPLETED_TOTAL, r)), committed,
		      "resource=%s", name);
		at_most(c, 7, "committed <= capacity", committed, gauge(c, TN_G1(CREDIT_CAPACITY, r)), "resource=%s", name);
	}
}

static void selection(struct check *c)
{
	equal(c, 9, "selection calls = selected + fallback + exhausted", counter(c, TN_C0(SELECTION_CALLS_TOTAL)),
	      counter(c, TN_C1(SELECTION_EVENTS_TOTAL, TN_SELECTION_SELECTED)) +
		      counter(c, TN_C1(SELECTION_EVENTS_TOTAL, TN_SELECTION_FALLBACK)) +
		      counter(c, TN_C1(SELECTION_EVENTS_TOTAL, TN_SELECTION_EXHAUSTED)),
	      "%s", "");
}

static void all(struct check *c)
{
	logical_requests(c);
	attempts(c);
	admission(c);
	rdma(c);
	rpc(c);
	credit(c);
	selection(c);
}

unsigned tn_metric_equations_check(const uint64_t *cells, struct tn_equation_breach *out, unsigned max)
{
	struct check c = { .cells = cells, .out = out, .max = max };
	all(&c);
	return c.found;
}

void tn_metric_equations_walk(const uint64_t *cells, tn_equation_fn *fn, void *ctx)
{
	struct check c = { .cells = cells, .walk = fn, .ctx = ctx };
	all(&c);
}
