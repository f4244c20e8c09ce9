/* SPDX-License-Identifier: Apache-2.0
 * Life of attempts at the connecting side: accepted, failed, canceled, reported; and the only owner of the law of the
 * ambiguous WRITE: a slice whose first byte may have left and whose answer is missing keeps its attempt until the
 * path is fenced or the deadline passes. Transport step of the flow; worker thread only. */
#include "common/assert.h"
#include "common/bits.h"
#include "dataplane/transport/stream/account.h"

#define CANCEL_GRACE_NS 500000000u /* for the last bytes of a canceled WRITE to leave and be answered */

TN_INLINE struct dp_stream *stream_of(struct dp_transport *t) { return tn_container_of(t, struct dp_stream, base); }

/* ---- places ---- */

static struct tn_list *run_list(struct dp_path *p, const struct dp_attempt *a)
{
	return &p->run[a->priority < TN_PRIORITY_CNT ? a->priority : TN_PRIORITY_LOW]
		      [a->bytes > DP_STREAM_SMALL_ATTEMPT];
}

void dp_client_place(struct dp_xfer *x, enum dp_xfer_place to)
{
	struct dp_path *p = x->path;
	struct tn_list *lists[] = { [DP_XFER_NOWHERE] = NULL,
				    [DP_XFER_RUN] = run_list(p, x->attempt),
				    [DP_XFER_PARKED] = &p->parked,
				    [DP_XFER_FENCING] = &p->fencing,
				    [DP_XFER_CANCELING] = &p->stream->canceling,
				    [DP_XFER_DONE] = &p->stream->done };
	if (x->place != DP_XFER_NOWHERE)
		tn_list_unlink(&x->attempt->t_link);
	p->queued += (to == DP_XFER_RUN) - (uint32_t)(x->place == DP_XFER_RUN);
	if (p->queued == 0)
		p->wait_ns = UINT64_MAX; /* nobody waits for a lane: the next one gets its whole time */
	x->place = (uint8_t)to;
	if (lists[to] != NULL)
		tn_list_push_back(lists[to], &x->attempt->t_link);
}

static struct dp_xfer *xfer_get(struct dp_stream *s)
{
	struct dp_xfer *x = s->xfer_free;
	if (x != NULL)
		s->xfer_free = x->free_next;
	else if (s->xfer_fresh < s->cfg.xfers)
		x = &s->xfers[s->xfer_fresh++];
	return x;
}

/* ---- the end of an attempt ---- */

static enum tn_outcome outcome_of(tn_status st)
{
	switch (st) {
	case TN_OK: return TN_OUTCOME_COMPLETED;
	case TN_CANCELED: return TN_OUTCOME_CANCELED;
	case TN_TIMEOUT:
	case TN_PATH_TIMEOUT: return TN_OUTCOME_TIMEOUT;
	default: return TN_OUTCOME_FAILED;
	}
}

static void report(struct dp_xfer *x)
{
	static const uint8_t events[TN_OUTCOME_CNT] = {
		[TN_OUTCOME_COMPLETED] = TN_STREAM_EVENT_COMPLETED, [TN_OUTCOME_FAILED] = TN_STREAM_EVENT_FAILED,
		[TN_OUTCOME_TIMEOUT] = TN_STREAM_EVENT_TIMEOUT, [TN_OUTCOME_CANCELED] = TN_STREAM_EVENT_CANCELED };
	struct dp_stream *s = x->path->stream;
	struct dp_attempt *a = x->attempt;
	struct dp_result r = a->t_result;
	if (a->t_done == a->bytes && !x->failed) /* a cancel that came too late */
		r = (struct dp_result){ .status = TN_OK };
	r.bytes = a->t_done;
	r.nothing_left = a->op == TN_OP_READ || (!x->landed && !x->doubtful);
	r.fenced = !r.nothing_left && !x->unfenced;
	dp_client_place(x, DP_XFER_NOWHERE);
	unsigned outcome = outcome_of(r.status);
	dp_account_event(s, a->op, events[outcome]);
	if (x->start_ns != 0)
		tn_hist_observe(s->metrics, TN_H3(STREAM_ATTEMPT_LATENCY_US, s->kind, a->op, outcome),
				dp_stream_now(s) - x->start_ns);
	else
		dp_account_depth(s, -1);
	dp_account_admitted(s, -1, a->bytes);
	a->t_priv = NULL;
	x->free_next = s->xfer_free;
	s->xfer_free = x;
	dp_attempt_done(s->base.worker, a, &r);
}

/* Nothing of it is on a lane or in doubt, and nothing more will be: it is over, reported at the next safe point. */
void dp_client_settle(struct dp_xfer *x)
{
	struct dp_attempt *a = x->attempt;
	if (x->place == DP_XFER_DONE || a->t_slices > 0 || x->ambiguous > 0)
		return;
	if (a->t_next == a->bytes || x->failed || x->canceled)
		dp_client_place(x, DP_XFER_DONE);
}

void dp_client_flush(struct dp_stream *s)
{
	/* Reading and writing took time: an attempt that is answered within one turn of the worker took more than none. The
	 * ends of one flush share one reading of the clock. */
	if (!tn_list_empty(&s->done))
		dp_worker_refresh_now(s->base.worker);
	while (!tn_list_empty(&s->done))
		report(tn_list_first(&s->done, struct dp_attempt, t_link)->t_priv);
}

/* ---- taking operations back ---- */

/* Take the attempt's slices off one lane as far as that is possible at once: what has not left is dropped, answers of
 * READs go nowhere. WRITE slices that left stay. */
static void detach_lane(struct dp_lane *l, struct dp_xfer *x)
{
	for (uint32_t pos = l->head; pos != l->tail; pos++) {
		struct dp_lane_op *op = dp_lane_op_at(l, pos);
		if (op->xfer != x || (op->flags & DP_LANE_OP_DROPPED))
			continue;
		if (!(op->flags & DP_LANE_OP_LEFT)) {
			if (op->op == DP_FRAME_WRITE)
				l->tx_backlog -= op->length;
			dp_slice_forget(l, op);
			op->flags |= DP_LANE_OP_DROPPED;
		} else if (op->op == DP_FRAME_READ) {
			op->xfer->out_bytes -= op->length;
			op->xfer->attempt->t_slices--;
			op->xfer = NULL;
			op->flags |= DP_LANE_OP_DISCARD;
			if (pos == l->head && l->rx_left > 0)
				l->rx_ptr = NULL;
		}
	}
	while (l->tail != l->tx && (dp_lane_op_at(l, l->tail - 1)->flags & DP_LANE_OP_DROPPED))
		l->tail--;
}

static void detach(struct dp_xfer *x)
{
	for (uint32_t i = 0; i < DP_PATH_PLACES; i++)
		if (x->path->lanes[i] != NULL)
			detach_lane(x->path->lanes[i], x);
}

/* The first failure wins; its siblings are called back. Does not settle. */
void dp_client_fail(struct dp_xfer *x, tn_status status, uint8_t phase, uint8_t reason)
{
	if (x->failed || x->canceled)
		return;
	x->failed = true;
	x->attempt->t_result = (struct dp_result){ .status = status, .phase = phase, .reason = reason };
	dp_client_place(x, DP_XFER_NOWHERE);
	detach(x);
}

/* ---- submit, cancel ---- */

static tn_status refuse(struct dp_result *result, tn_status status, uint8_t phase, uint8_t reason)
{
	*result = (struct dp_result){ .status = status, .phase = phase, .reason = reason, .nothing_left = true };
	return status;
}

enum dp_reach dp_stream_reach(const struct dp_transport *t, const struct dp_remote *remote)
{
	const struct dp_stream *s = tn_container_of((struct dp_transport *)(uintptr_t)t, struct dp_stream, base);
	if (!t->up)
		return DP_REACH_NO;
	const struct dp_path *p = dp_path_of(s, remote->peer_index);
	if (p == NULL || p->endpoint_cnt == 0)
		return DP_REACH_NO;
	return p->ready_cnt > 0 ? DP_REACH_READY : DP_REACH_CONNECT;
}

/* Index of the buffer that holds `off`, when all of the range lies in buffers that follow each other; or UINT32_MAX. */
static uint32_t locate(const struct dp_remote *remote, uint64_t off, uint64_t bytes)
{
	uint32_t first = UINT32_MAX;
	for (uint32_t i = 0; i < remote->buffer_cnt && bytes > 0; i++) {
		const struct dp_remote_buffer *b = &remote->buffers[i];
		if (off < b->segment_off || off - b->segment_off >= b->bytes) {
			if (first != UINT32_MAX)
				return UINT32_MAX;
			continue;
		}
		first = TN_MIN(first, i);
		uint64_t here = TN_MIN(bytes, b->bytes - (off - b->segment_off));
		off += here;
		bytes -= here;
	}
	return bytes == 0 ? first : UINT32_MAX;
}

tn_status dp_stream_submit(struct dp_transport *t, struct dp_attempt *a, struct dp_result *result)
{
	struct dp_stream *s = stream_of(t);
	if (dp_stream_reach(t, a->remote) == DP_REACH_NO)
		return refuse(result, TN_PEER_DOWN, TN_PHASE_CONNECT, TN_REASON_UNAVAILABLE);
	uint32_t buffer = locate(a->remote, a->remote_off, a->bytes);
	if (buffer == UINT32_MAX)
		return refuse(result, TN_RANGE, TN_PHASE_SUBMIT, TN_REASON_MR_ERROR);
	struct dp_xfer *x = xfer_get(s);
	if (x == NULL)
		return TN_AGAIN;
	struct dp_path *p = dp_path_of(s, a->remote->peer_index);
	*x = (struct dp_xfer){ .attempt = a, .path = p, .submit_ns = dp_stream_now(s), .buffer = buffer };
	a->t_priv = x;
	a->t_next = a->t_done = 0;
	a->t_slices = 0;
	a->t_result = (struct dp_result){ .status = TN_OK };
	dp_client_place(x, DP_XFER_RUN);
	dp_account_admitted(s, 1, a->bytes);
	dp_account_depth(s, 1);
	dp_account_event(s, a->op, TN_STREAM_EVENT_QUEUED);
	if (a->owner != NULL && a->owner->attempt_cnt > 1 && a->owner->last_transport == t->ops->kind)
		dp_account_event(s, a->op, TN_STREAM_EVENT_RETRY);
	dp_path_dirty(p);
	return TN_OK;
}

void dp_stream_cancel(struct dp_transport *t, struct dp_attempt *a)
{
	struct dp_stream *s = stream_of(t);
	struct dp_xfer *x = a->t_priv;
	if (x->canceled && x->place != DP_XFER_DONE)
		return; /* on its way */
	if (x->place != DP_XFER_DONE) {
		if (!x->failed)
			a->t_result = (struct dp_result){ .status = TN_CANCELED, .reason = TN_REASON_CANCELED,
			                                  .phase = x->start_ns != 0 ? TN_PHASE_POST : TN_PHASE_QUEUE };
		x->canceled = true;
		x->unfenced |= x->ambiguous > 0;
		x->ambiguous = 0;
		dp_client_place(x, DP_XFER_NOWHERE);
		detach(x);
		dp_client_settle(x);
	}
	if (x->place == DP_XFER_DONE) {
		report(x);
		return;
	}
	/* WRITE slices that left: their last bytes still come from this memory, and they may still land over there */
	x->cancel_ns = dp_stream_now(s) + CANCEL_GRACE_NS;
	dp_stream_timer(s, x->cancel_ns);
	dp_client_place(x, DP_XFER_CANCELING);
}

/* The grace is over: a frame that is stuck half-way costs its lane; answers that are missing are not waited for. */
static void abandon(struct dp_xfer *x)
{
	struct dp_path *p = x->path;
	for (uint32_t i = 0; i < DP_PATH_PLACES && x->attempt->t_slices > 0; i++) {
		struct dp_lane *l = p->lanes[i];
		if (l == NULL)
			continue;
		if (l->tx != l->tail && l->tx_done > 0 && dp_lane_op_at(l, l->tx)->xfer == x) {
			dp_lane_close(l, TN_PATH_TIMEOUT, DP_FRAME_OK, true);
			continue;
		}
		for (uint32_t pos = l->head; pos != l->tx; pos++) {
			struct dp_lane_op *op = dp_lane_op_at(l, pos);
			if (op->xfer != x)
				continue;
			x->out_bytes -= op->length;
			x->attempt->t_slices--;
			op->xfer = NULL;
			x->doubtful = x->unfenced = true;
		}
	}
	dp_client_settle(x);
}

void dp_client_sweep_canceled(struct dp_stream *s, uint64_t now_ns)
{
	while (!tn_list_empty(&s->canceling)) {
		struct dp_xfer *x = tn_list_first(&s->canceling, struct dp_attempt, t_link)->t_priv;
		if (x->cancel_ns > now_ns) {
			dp_stream_timer(s, x->cancel_ns);
			return;
		}
		abandon(x);
		tn_assert(x->place == DP_XFER_DONE);
	}
}

/* ---- lost lanes, fences ---- */

bool dp_client_lane_lost(struct dp_lane *l, tn_status status, uint8_t reason)
{
	bool doubt = false;
	for (uint32_t pos = l->head; pos != l->tail; pos++) {
		struct dp_lane_op *op = dp_lane_op_at(l, pos);
		struct dp_xfer *x = op->xfer;
		if (x == NULL || (op->flags & DP_LANE_OP_DROPPED))
			continue;
		bool ambiguous = op->op == DP_FRAME_WRITE && (op->flags & DP_LANE_OP_LEFT);
		dp_slice_forget(l, op);
		dp_client_fail(x, status, TN_PHASE_COMPLETION, reason);
		if (ambiguous) {
			x->doubtful = true;
			x->unfenced |= x->canceled;
			x->ambiguous += !x->canceled;
			doubt |= !x->canceled;
		}
		if (x->ambiguous > 0 && x->place != DP_XFER_FENCING) {
			dp_client_place(x, DP_XFER_FENCING);
			dp_stream_timer(l->stream, x->attempt->deadline_ns);
		}
		dp_client_settle(x);
	}
	return doubt;
}

void dp_client_fenced(struct dp_path *p)
{
	while (!tn_list_empty(&p->fencing)) {
		struct dp_xfer *x = tn_list_first(&p->fencing, struct dp_attempt, t_link)->t_priv;
		x->ambiguous = 0;
		dp_client_place(x, DP_XFER_NOWHERE);
		dp_client_settle(x);
	}
}

void dp_client_fail_queued(struct dp_path *p, tn_status status, uint8_t phase, uint8_t reason)
{
	for (unsigned prio = 0; prio < TN_PRIORITY_CNT; prio++)
		for (unsigned size = 0; size < 2; size++)
			while (!tn_list_empty(&p->run[prio][size])) {
				struct dp_xfer *x =
					tn_list_first(&p->run[prio][size], struct dp_attempt, t_link)->t_priv;
				dp_client_fail(x, status, phase, reason);
				dp_client_settle(x);
			}
}

uint64_t dp_client_sweep(struct dp_path *p, uint64_t now_ns)
{
	uint64_t next = UINT64_MAX;
	tn_list_foreach(node, &p->fencing) {
		struct dp_xfer *x = tn_list_entry(node, struct dp_attempt, t_link)->t_priv;
		if (x->attempt->deadline_ns > now_ns) {
			next = TN_MIN(next, x->attempt->deadline_ns);
			continue;
		}
		x->unfenced = true;
		x->ambiguous = 0;
		dp_client_place(x, DP_XFER_NOWHERE);
		dp_client_settle(x);
	}
	return next;
}
