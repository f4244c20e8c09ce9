/* SPDX-License-Identifier: Apache-2.0
 * The worker's memory of what happened in this turn of the loop. Requests of one turn mostly share kind, operation and
 * times (the clock is read once per turn), so they are counted here as "n times the same" and reach the metric cells in
 * one update per family and turn. Flushed before the turn ends: at a turn's end the equations hold. One worker. */
#ifndef DP_STATS_TALLY_H
#define DP_STATS_TALLY_H

#include <stdbool.h>

#include "common/domain.h"
#include "common/metrics.h"

/* A completed READ or WRITE. */
struct dp_tally_done {
	uint64_t latency_ns, queue_wait_ns, dispatch_ns, transport_ns, bytes;
	uint32_t op, kind;
};
/* A completed attempt. */
struct dp_tally_attempt { uint64_t took_ns; uint32_t op, kind; };

struct dp_tally {
	const struct tn_metrics *m;
	bool dirty;
	/* since the last flush */
	uint64_t started[TN_OP_CNT];
	uint64_t admitted, dispatched, wait_ns, wait_cnt;
	uint64_t selections, selected;
	struct dp_tally_done done;
	uint64_t done_cnt;
	struct dp_tally_attempt attempt;
	uint64_t attempt_cnt, attempts[TN_TRANSPORT_CNT][TN_OP_CNT];
	/* levels */
	uint32_t inflight[TN_OP_CNT], attempts_inflight[TN_TRANSPORT_CNT][TN_OP_CNT];
	uint32_t queued, outstanding_owners;
	uint64_t outstanding_bytes;
	uint32_t attempts_moved; /* bit kind * TN_OP_CNT + op: that count or level did */
};

void dp_tally_init(struct dp_tally *t, const struct tn_metrics *m);
/* Bring everything to the cells. */
void dp_tally_flush(struct dp_tally *t);
void dp_tally_flush_done(struct dp_tally *t);
void dp_tally_flush_attempt(struct dp_tally *t);
void dp_tally_flush_wait(struct dp_tally *t);

TN_INLINE void dp_tally_started(struct dp_tally *t, enum tn_op op)
{
	t->dirty = true;
	t->started[op]++;
	t->inflight[op]++;
}

TN_INLINE void dp_tally_done(struct dp_tally *t, const struct dp_tally_done *d)
{
	const struct dp_tally_done *o = &t->done;
	t->inflight[d->op]--;
	bool same = d->latency_ns == o->latency_ns && d->queue_wait_ns == o->queue_wait_ns &&
		    d->dispatch_ns == o->dispatch_ns && d->transport_ns == o->transport_ns && d->bytes == o->bytes &&
		    d->op == o->op && d->kind == o->kind;
	if (!same) {
		dp_tally_flush_done(t);
		t->done = *d;
	}
	t->done_cnt++;
	t->dirty = true;
}

/* attempts or attempts_inflight of [kind][op] changed. */
TN_INLINE void dp_tally_attempt_moved(struct dp_tally *t, unsigned kind, unsigned op)
{
	t->attempts_moved |= 1u << (kind * TN_OP_CNT + op);
	t->dirty = true;
}

TN_INLINE void dp_tally_attempt_start(struct dp_tally *t, unsigned kind, unsigned op)
{
	t->attempts[kind][op]++;
	t->attempts_inflight[kind][op]++;
	dp_tally_attempt_moved(t, kind, op);
}

TN_INLINE void dp_tally_attempt_done(struct dp_tally *t, unsigned kind, unsigned op, uint64_t took_ns)
{
	t->attempts_inflight[kind][op]--;
	if (t->attempt.took_ns != took_ns || t->attempt.kind != kind || t->attempt.op != op) {
		dp_tally_flush_attempt(t);
		t->attempt = (struct dp_tally_attempt){ took_ns, op, kind };
	}
	t->attempt_cnt++;
	dp_tally_attempt_moved(t, kind, op);
}

/* Owners in the admission queue and in the windows. */
TN_INLINE void dp_tally_admitted(struct dp_tally *t)
{
	t->admitted++;
	t->queued++;
	t->dirty = true;
}
TN_INLINE void dp_tally_dispatched(struct dp_tally *t, uint64_t bytes, uint64_t wait_ns)
{
	t->dispatched++;
	t->queued--;
	t->outstanding_owners++;
	t->outstanding_bytes += bytes;
	if (wait_ns != t->wait_ns) {
		dp_tally_flush_wait(t);
		t->wait_ns = wait_ns;
	}
	t->wait_cnt++;
	t->dirty = true;
}
TN_INLINE void dp_tally_dropped(struct dp_tally *t)
{
	t->queued--;
	t->dirty = true;
}
TN_INLINE void dp_tally_released(struct dp_tally *t, uint64_t bytes)
{
	t->outstanding_owners--;
	t->outstanding_bytes -= bytes;
	t->dirty = true;
}

/* A selection whose first candidate served. */
TN_INLINE void dp_tally_selected(struct dp_tally *t)
{
	t->selections++;
	t->selected++;
	t->dirty = true;
}

#endif
