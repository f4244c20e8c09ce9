/* SPDX-License-Identifier: Apache-2.0
 * Turns endings into fixed-size event records: what is logged, which spans are kept, and the rate limit per kind of log
 * event. Spans that are kept are not limited: the keep ring is, and whoever reads it counts what it missed. No record carries an address, an offset or a name. Worker thread; no system call. */
#include <string.h>

#include "common/clock.h"
#include "common/reject.h"
#include "common/trace.h"
#include "dataplane/stats/stats.h"

static uint64_t mix(uint64_t x)
{
	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 31;
}

void dp_stats_trace_id(const struct dp_stats *s, const struct dp_request *r, uint64_t *hi, uint64_t *lo)
{
	*hi = r->sqe.trace_hi;
	*lo = r->sqe.trace_lo;
	if ((*hi | *lo) == 0) {
		*hi = mix(s->trace_seed + r->request_id);
		*lo = mix(~s->trace_seed ^ r->request_id * UINT64_C(0x9e3779b97f4a7c15)) | 1;
	}
}

static uint64_t root_span(const struct dp_request *r) { return mix(r->request_id) | 1; }

/* True when one more event of this kind may go now; *suppressed_out then says how many were held back before it. */
static bool admit(struct dp_stats *s, unsigned kind, uint64_t now_ns, uint16_t *suppressed_out)
{
	struct dp_event_limit *l = &s->limit[kind];
	uint64_t gained = (now_ns - l->refill_ns) / (TN_NS_PER_S / DP_EVENTS_PER_S);
	if (gained > 0) {
		l->tokens = (uint32_t)TN_MIN((uint64_t)l->tokens + gained, (uint64_t)DP_EVENTS_BURST);
		l->refill_ns = now_ns;
	}
	if (l->tokens == 0) {
		l->suppressed += l->suppressed < UINT16_MAX;
		return false;
	}
	l->tokens--;
	*suppressed_out = l->suppressed;
	l->suppressed = 0;
	return true;
}

static struct shr_event_shm record(const struct dp_stats *s, unsigned kind, const struct dp_request *r, uint64_t now_ns)
{
	struct shr_event_shm e = {
		.mono_ns = now_ns,
		.request_id = r->request_id,
		.batch_id = r->batch ? r->batch->batch_id : 0,
		.task_id = r->owner ? r->owner->owner_id : 0,
		.attempt_id = r->owner ? r->owner->attempt_id : 0,
		.kind = (uint8_t)kind,
		.operation = r->sqe.opcode == SHR_OP_READ ? TN_OP_READ : TN_OP_WRITE,
		.config_generation = s->config_generation,
	};
	dp_stats_trace_id(s, r, &e.trace_hi, &e.trace_lo);
	return e;
}

static void fill_ending(struct shr_event_shm *e, const struct dp_ending *end)
{
	e->status = end->status;
	e->transport = end->transport;
	e->phase = end->phase;
	e->reason = end->reason;
	e->duration_ns = end->end_ns - end->start_ns;
}

static enum tn_retention retention(const struct dp_stats *s, const struct shr_event_shm *e, const struct dp_ending *end)
{
	bool sampled = s->sample_ppm && tn_trace_sampled(e->trace_hi, e->trace_lo, s->sample_ppm);
	return tn_trace_retention(end->outcome == TN_OUTCOME_TIMEOUT,
				  end->outcome == TN_OUTCOME_FAILED || end->outcome == TN_OUTCOME_CANCELED,
				  end->end_ns - end->start_ns, s->trace_slow_ns, sampled);
}

static void keep_span(struct dp_stats *s, struct shr_event_shm *e, enum tn_retention why)
{
	e->retention = (uint8_t)why;
	shr_event_write(&s->keep, e);
}

void dp_stats_request_end(struct dp_stats *s, const struct dp_request *r, const struct dp_ending *end,
			  uint8_t failovers, bool child_kept)
{
	bool ok = end->outcome == TN_OUTCOME_COMPLETED;
	uint64_t took = end->end_ns - end->start_ns;
	if (!s->events || (ok && !child_kept && !s->slow_ns && !s->trace_slow_ns && !s->sample_ppm))
		return;
	uint16_t suppressed;
	unsigned kind = ok ? SHR_EVENT_REQUEST_SLOW : SHR_EVENT_REQUEST_FAILED;
	if ((!ok || (s->slow_ns && took >= s->slow_ns)) && admit(s, kind, end->end_ns, &suppressed)) {
		struct shr_event_shm e = record(s, kind, r, end->end_ns);
		fill_ending(&e, end);
		e.failover_cnt = failovers;
		e.suppressed = suppressed;
		shr_event_write(ok ? &s->log : &s->keep, &e);
	}
	struct shr_event_shm span = record(s, SHR_EVENT_SPAN_TRANSFER, r, end->end_ns);
	fill_ending(&span, end);
	span.span_id = root_span(r);
	span.failover_cnt = failovers;
	enum tn_retention why = retention(s, &span, end);
	if (why == TN_RETENTION_NONE && child_kept)
		why = TN_RETENTION_LINKED_CHILD;
	if (why != TN_RETENTION_NONE)
		keep_span(s, &span, why);
}

void dp_stats_request_stuck(struct dp_stats *s, const struct dp_request *r, uint8_t phase, uint8_t transport,
			    uint64_t now_ns)
{
	uint16_t suppressed;
	if (!s->events || !admit(s, SHR_EVENT_REQUEST_STUCK, now_ns, &suppressed))
		return;
	struct shr_event_shm e = record(s, SHR_EVENT_REQUEST_STUCK, r, now_ns);
	e.status = TN_PENDING;
	e.phase = phase;
	e.transport = transport;
	e.duration_ns = now_ns - r->ingress_ns;
	e.suppressed = suppressed;
	shr_event_write(&s->log, &e);
}

bool dp_stats_attempt_end(struct dp_stats *s, const struct dp_attempt *a, const struct dp_request *first,
			  const struct dp_ending *end)
{
	bool ok = end->outcome == TN_OUTCOME_COMPLETED;
	if (!s->events || (ok && !s->trace_slow_ns && !s->sample_ppm))
		return false;
	struct shr_event_shm e = record(s, SHR_EVENT_ATTEMPT_FAILED, first, end->end_ns);
	fill_ending(&e, end);
	e.attempt_id = a->attempt_id;
	uint16_t suppressed;
	if (!ok && admit(s, SHR_EVENT_ATTEMPT_FAILED, end->end_ns, &suppressed)) {
		e.suppressed = suppressed;
		shr_event_write(&s->keep, &e);
	}
	enum tn_retention why = retention(s, &e, end);
	if (why == TN_RETENTION_NONE)
		return false;
	e.kind = SHR_EVENT_SPAN_ATTEMPT;
	e.suppressed = 0;
	e.span_id = mix(a->attempt_id ^ s->trace_seed) | 1;
	e.parent_span_id = root_span(first);
	keep_span(s, &e, why);
	return true;
}

void dp_stats_failover(struct dp_stats *s, const struct dp_request *first, const struct dp_owner *o, uint8_t from,
		       uint8_t to, uint64_t now_ns)
{
	uint16_t suppressed;
	if (!s->events || !admit(s, SHR_EVENT_FAILOVER, now_ns, &suppressed))
		return;
	struct shr_event_shm e = record(s, SHR_EVENT_FAILOVER, first, now_ns);
	e.from = from;
	e.to = to;
	e.transport = to;
	e.status = o->last_status;
	e.phase = o->last_phase;
	e.reason = o->last_reason;
	e.failover_cnt = o->failover_cnt;
	e.duration_ns = now_ns - first->ingress_ns;
	e.suppressed = suppressed;
	shr_event_write(&s->log, &e);
}

void dp_stats_selection_failed(struct dp_stats *s, const struct dp_request *first, const struct dp_owner *o,
			       const uint8_t rejected[static TN_TRANSPORT_CNT], uint64_t now_ns)
{
	uint16_t suppressed;
	if (!s->events || !admit(s, SHR_EVENT_SELECTION_FAILED, now_ns, &suppressed))
		return;
	struct shr_event_shm e = record(s, SHR_EVENT_SELECTION_FAILED, first, now_ns);
	e.status = TN_PEER_DOWN;
	e.phase = TN_PHASE_SELECTION;
	e.reason = TN_REASON_UNAVAILABLE;
	e.failover_cnt = o->failover_cnt;
	e.duration_ns = now_ns - first->ingress_ns;
	e.suppressed = suppressed;
	e.arg = tn_reject_pack(rejected);
	shr_event_write(&s->keep, &e);
}
