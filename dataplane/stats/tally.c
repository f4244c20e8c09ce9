/* SPDX-License-Identifier: Apache-2.0
 * From the tally of one turn to the metric cells. One worker. */
#include "dataplane/stats/tally.h"

void dp_tally_init(struct dp_tally *t, const struct tn_metrics *m) { *t = (struct dp_tally){ .m = m }; }

void dp_tally_flush_done(struct dp_tally *t)
{
	uint64_t n = t->done_cnt;
	if (n == 0)
		return;
	const struct tn_metrics m = *t->m;
	const struct dp_tally_done *d = &t->done;
	unsigned kind = d->kind;
	bool rd = d->op == TN_OP_READ;
	tn_counter_add(&m, TN_C3(LOGICAL_REQUEST_OUTCOMES_TOTAL, d->op, kind, TN_OUTCOME_COMPLETED), n);
	tn_counter_add(&m, rd ? TN_C1(READ_REQUESTS_TOTAL, kind) : TN_C1(WRITE_REQUESTS_TOTAL, kind), n);
	tn_counter_add(&m, rd ? TN_C1(READ_BYTES_TOTAL, kind) : TN_C1(WRITE_BYTES_TOTAL, kind), n * d->bytes);
	tn_hist_observe_n(&m, rd ? TN_H1(READ_LATENCY_US, kind) : TN_H1(WRITE_LATENCY_US, kind), d->latency_ns, n);
	tn_hist_observe_n(&m, rd ? TN_H1(READ_SIZE_BYTES, kind) : TN_H1(WRITE_SIZE_BYTES, kind), d->bytes, n);
	tn_hist_observe_n(&m, TN_H1(STAGE_QUEUE_WAIT_US, kind), d->queue_wait_ns, n);
	tn_hist_observe_n(&m, TN_H1(STAGE_DISPATCH_US, kind), d->dispatch_ns, n);
	tn_hist_observe_n(&m, TN_H1(STAGE_TRANSPORT_US, kind), d->transport_ns, n);
	t->done_cnt = 0;
}

void dp_tally_flush_attempt(struct dp_tally *t)
{
	uint64_t n = t->attempt_cnt;
	if (n == 0)
		return;
	const struct dp_tally_attempt *a = &t->attempt;
	tn_counter_add(t->m, TN_C3(TRANSPORT_ATTEMPT_OUTCOMES_TOTAL, a->kind, a->op, TN_OUTCOME_COMPLETED), n);
	tn_hist_observe_n(t->m, TN_H2(TRANSPORT_ATTEMPT_LATENCY_US, a->kind, a->op), a->took_ns, n);
	t->attempt_cnt = 0;
}

void dp_tally_flush_wait(struct dp_tally *t)
{
	if (t->wait_cnt == 0)
		return;
	tn_hist_observe_n(t->m, TN_H2(ADMISSION_WAIT_US, TN_OWNER_KIND_USER, TN_ADMISSION_END_DISPATCH), t->wait_ns,
			  t->wait_cnt);
	t->wait_cnt = 0;
}

static void flush_attempts(struct dp_tally *t)
{
	dp_tally_flush_attempt(t);
	TN_STATIC_ASSERT(TN_TRANSPORT_CNT * TN_OP_CNT <= 32, "bits of attempts_moved");
	for (uint32_t left = t->attempts_moved; left != 0; left &= left - 1) {
		unsigned kind = (unsigned)__builtin_ctz(left) / TN_OP_CNT, op = (unsigned)__builtin_ctz(left) % TN_OP_CNT;
		tn_counter_add(t->m, TN_C2(TRANSPORT_ATTEMPTS_TOTAL, kind, op), t->attempts[kind][op]);
		t->attempts[kind][op] = 0;
		tn_gauge_set(t->m, TN_G2(INFLIGHT_ATTEMPTS, kind, op), t->attempts_inflight[kind][op]);
	}
	t->attempts_moved = 0;
}

void dp_tally_flush(struct dp_tally *t)
{
	if (!t->dirty)
		return;
	const struct tn_metrics m = *t->m;
	dp_tally_flush_done(t);
	dp_tally_flush_wait(t);
	flush_attempts(t);
	for (unsigned op = 0; op < TN_OP_CNT; op++) {
		tn_counter_add(&m, TN_C1(LOGICAL_REQUESTS_STARTED_TOTAL, op), t->started[op]);
		tn_gauge_set(&m, TN_G1(LOGICAL_REQUESTS_INFLIGHT, op), t->inflight[op]);
		t->started[op] = 0;
	}
	tn_counter_add(&m, TN_C2(ADMISSION_EVENTS_TOTAL, TN_OWNER_KIND_USER, TN_ADMISSION_ADMIT), t->admitted);
	tn_counter_add(&m, TN_C2(ADMISSION_EVENTS_TOTAL, TN_OWNER_KIND_USER, TN_ADMISSION_DISPATCH), t->dispatched);
	tn_gauge_set(&m, TN_G1(ADMISSION_QUEUED_OWNERS, TN_OWNER_KIND_USER), t->queued);
	tn_gauge_set(&m, TN_G1(ADMISSION_OUTSTANDING_OWNERS, TN_OWNER_KIND_USER), t->outstanding_owners);
	tn_gauge_set(&m, TN_G1(ADMISSION_OUTSTANDING_BYTES, TN_OWNER_KIND_USER), t->outstanding_bytes);
	tn_counter_add(&m, TN_C0(SELECTION_CALLS_TOTAL), t->selections);
	tn_counter_add(&m, TN_C1(SELECTION_EVENTS_TOTAL, TN_SELECTION_SELECTED), t->selected);
	t->admitted = t->dispatched = t->selections = t->selected = 0;
	t->dirty = false;
}
