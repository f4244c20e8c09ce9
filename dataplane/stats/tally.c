/* SPDX-License-Identifier: Apache-2.0
 * From the tally of one turn to the metric cells. One worker. */
#include "dataplane/stats/tally.h"

#include "common/bits.h"

void dp_tally_init(struct dp_tally *t, const struct tn_metrics *m) { *t = (struct dp_tally){ .m = m }; }

void dp_tally_flush_done(struct dp_tally *t)
{
	uint64_t n = t->done_cnt;
	if (n == 0)
		return;
	const struct tn_metrics m = *t->m;
	const struct dp_tally_done *d = &t->done;
	unsigned kind = d->series / TN_OP_CNT, op = d->series % TN_OP_CNT;
	bool rd = op == TN_OP_READ;
	uint64_t latency_ns = d->end_ns - d->ingress_ns;
	tn_counter_add(&m, TN_C3(LOGICAL_REQUEST_OUTCOMES_TOTAL, op, kind, TN_OUTCOME_COMPLETED), n);
	tn_counter_add(&m, rd ? TN_C1(READ_REQUESTS_TOTAL, kind) : TN_C1(WRITE_REQUESTS_TOTAL, kind), n);
	tn_counter_add(&m, rd ? TN_C1(READ_BYTES_TOTAL, kind) : TN_C1(WRITE_BYTES_TOTAL, kind), n * d->bytes);
	tn_hist_observe_n(&m, rd ? TN_H1(READ_LATENCY_US, kind) : TN_H1(WRITE_LATENCY_US, kind), latency_ns, n);
	tn_hist_observe_n(&m, rd ? TN_H1(READ_SIZE_BYTES, kind) : TN_H1(WRITE_SIZE_BYTES, kind), d->bytes, n);
	tn_hist_observe_n(&m, TN_H1(STAGE_QUEUE_WAIT_US, kind), d->dispatch_ns - d->ingress_ns, n);
	tn_hist_observe_n(&m, TN_H1(STAGE_DISPATCH_US, kind), d->attempt_ns - d->dispatch_ns, n);
	tn_hist_observe_n(&m, TN_H1(STAGE_TRANSPORT_US, kind), d->end_ns - d->attempt_ns, n);
	tn_hist_observe_n(&m, TN_H1(DEADLINE_MLU_PERMILLE, kind), tn_permille(latency_ns, d->deadline_ns - d->ingress_ns), n);
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

TN_INLINE void flush_wait(const struct tn_metrics *m, struct dp_tally_owners *o, unsigned kind)
{
	if (o->wait_cnt == 0)
		return;
	tn_hist_observe_n(m, TN_H2(ADMISSION_WAIT_US, kind, TN_ADMISSION_END_DISPATCH), o->wait_ns, o->wait_cnt);
	o->wait_cnt = 0;
}

void dp_tally_flush_wait(struct dp_tally *t, unsigned owner_kind) { flush_wait(t->m, &t->owners[owner_kind], owner_kind); }

TN_INLINE void flush_owners(const struct tn_metrics *m, struct dp_tally_owners *o, unsigned kind)
{
	flush_wait(m, o, kind);
	tn_counter_add(m, TN_C2(ADMISSION_EVENTS_TOTAL, kind, TN_ADMISSION_ADMIT), o->admitted);
	tn_counter_add(m, TN_C2(ADMISSION_EVENTS_TOTAL, kind, TN_ADMISSION_DISPATCH), o->dispatched);
	tn_gauge_set(m, TN_G1(ADMISSION_QUEUED_OWNERS, kind), o->queued);
	tn_gauge_set(m, TN_G1(ADMISSION_OUTSTANDING_OWNERS, kind), o->outstanding);
	tn_gauge_set(m, TN_G1(ADMISSION_OUTSTANDING_BYTES, kind), o->outstanding_bytes);
	o->admitted = o->dispatched = 0;
	o->dirty = false;
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
	flush_attempts(t);
	for (unsigned op = 0; op < TN_OP_CNT; op++) {
		tn_counter_add(&m, TN_C1(LOGICAL_REQUESTS_STARTED_TOTAL, op), t->started[op]);
		tn_gauge_set(&m, TN_G1(LOGICAL_REQUESTS_INFLIGHT, op), t->inflight[op]);
		t->started[op] = 0;
	}
	for (unsigned kind = 0; kind < TN_OWNER_KIND_CNT; kind++)
		if (t->owners[kind].dirty)
			flush_owners(&m, &t->owners[kind], kind);
	tn_counter_add(&m, TN_C0(SELECTION_CALLS_TOTAL), t->selections);
	tn_counter_add(&m, TN_C1(SELECTION_EVENTS_TOTAL, TN_SELECTION_SELECTED), t->selected);
	t->selections = t->selected = 0;
	t->dirty = false;
}
