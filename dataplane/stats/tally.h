/* SPDX-License-Identifier: Apache-2.0
 * The worker's memory of what happened in this turn of the loop. Requests of one turn mostly share kind, operation and
 * times (the clock is read once per turn), so they are counted here as "n times the same" and reach the metric cells in
 * one update per family and turn. Flushed before the turn ends: at a turn's end the equations hold. One worker. */
#ifndef DP_STATS_TALLY_H
#define DP_STATS_TALLY_H

#include <stdbool.h>

#include "common/domain.h"
#include "common/metrics.h"

/* A completed READ or WRITE: when it came, left the queue, was tried, ended, and had to end. */
struct dp_tally_done {
	uint64_t ingress_ns, dispatch_ns, attempt_ns, end_ns, deadline_ns, bytes;
	uint32_t series; /* dp_tally_series() */
};
/* A completed attempt. */
struct dp_tally_attempt { uint64_t took_ns; uint32_t op, kind; };
/* Owners of one kind in admission. */
struct dp_tally_owners {
	uint64_t admitted, dispatched, wait_ns, wait_cnt; /* since the last flush */
	uint64_t outstanding_bytes;                       /* levels */
	uint32_t queued, outstanding;
	bool dirty;
};

struct dp_tally {
	const struct tn_metrics *m;
	bool dirty;
	/* since the last flush */
	uint64_t started[TN_OP_CNT];
	uint64_t selections, selected;
	struct dp_tally_done done;
	uint64_t done_cnt;
	struct dp_tally_attempt attempt;
	uint64_t attempt_cnt, attempts[TN_TRANSPORT_CNT][TN_OP_CNT];
	/* levels */
	uint32_t inflight[TN_OP_CNT], attempts_inflight[TN_TRANSPORT_CNT][TN_OP_CNT];
	struct dp_tally_owners owners[TN_OWNER_KIND_CNT];
	uint32_t attempts_moved; /* bit dp_tally_series(): that count or level did */
};

/* Transport and operation in one number. */
TN_INLINE uint32_t dp_tally_series(unsigned kind, unsigned op) { return kind * TN_OP_CNT + op; }

void dp_tally_init(struct dp_tally *t, const struct tn_metrics *m);
/* Bring everything to the cells. */
void dp_tally_flush(struct dp_tally *t);
void dp_tally_flush_done(struct dp_tally *t);
void dp_tally_flush_attempt(struct dp_tally *t);
void dp_tally_flush_wait(struct dp_tally *t, unsigned owner_kind);

TN_INLINE void dp_tally_started(struct dp_tally *t, enum tn_op op)
{
	t->dirty = true;
	t->started[op]++;
	t->inflight[op]++;
}

TN_INLINE void dp_tally_done(struct dp_tally *t, const struct dp_tally_done *d)
{
	const struct dp_tally_done *o = &t->done;
	t->inflight[d->series % TN_OP_CNT]--;
	bool same = d->ingress_ns == o->ingress_ns && d->dispatch_ns == o->dispatch_ns && d->attempt_ns == o->attempt_ns &&
		    d->end_ns == o->end_ns && d->deadline_ns == o->deadline_ns && d->bytes == o->bytes &&
		    d->series == o->series;
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
	t->attempts_moved |= 1u << dp_tally_series(kind, op);
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

/* Owners in the admission queue and in the windows; `kind`: enum tn_owner_kind. */
TN_INLINE struct dp_tally_owners *dp_tally_owners(struct dp_tally *t, unsigned kind)
{
	struct dp_tally_owners *o = &t->owners[kind];
	t->dirty = o->dirty = true;
	return o;
}
TN_INLINE void dp_tally_admitted(struct dp_tally *t, unsigned kind)
{
	struct dp_tally_owners *o = dp_tally_owners(t, kind);
	o->admitted++;
	o->queued++;
}
TN_INLINE void dp_tally_dispatched(struct dp_tally *t, unsigned kind, uint64_t bytes, uint64_t wait_ns)
{
	struct dp_tally_owners *o = dp_tally_owners(t, kind);
	o->dispatched++;
	o->queued--;
	o->outstanding++;
	o->outstanding_bytes += bytes;
	if (wait_ns != o->wait_ns) {
		dp_tally_flush_wait(t, kind);
		o->wait_ns = wait_ns;
	}
	o->wait_cnt++;
}
TN_INLINE void dp_tally_dropped(struct dp_tally *t, unsigned kind) { dp_tally_owners(t, kind)->queued--; }
TN_INLINE void dp_tally_released(struct dp_tally *t, unsigned kind, uint64_t bytes)
{
	struct dp_tally_owners *o = dp_tally_owners(t, kind);
	o->outstanding--;
	o->outstanding_bytes -= bytes;
}

/* A selection whose first candidate served. */
TN_INLINE void dp_tally_selected(struct dp_tally *t)
{
	t->selections++;
	t->selected++;
	t->dirty = true;
}

#endif
