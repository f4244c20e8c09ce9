/* SPDX-License-Identifier: Apache-2.0
 * Attempts on lanes: cut into slices that lanes take one by one (by priority, small attempts not behind large ones,
 * none with all of a lane), sent as requests, answers matched in order. The table of the connecting side of a lane is
 * here. Transport step of the flow; worker thread only. */
#include "common/assert.h"
#include "dataplane/transport/stream/account.h"

#define SMALL_TURNS 8u /* small attempts in a row before a large one gets a slice */
#define URGENT_WINDOW_BYTES (4u * DP_STREAM_SMALL_ATTEMPT) /* that the urgent lane has unanswered */

/* ---- cutting slices ---- */

/* The attempt that gets the next slice, or NULL. Strict order of priorities; within one, turns. */
static struct dp_attempt *next_attempt(struct dp_path *p)
{
	for (unsigned prio = 0; prio < TN_PRIORITY_CNT; prio++) {
		struct dp_attempt *small = tn_list_first(&p->run[prio][0], struct dp_attempt, t_link);
		struct dp_attempt *large = tn_list_first(&p->run[prio][1], struct dp_attempt, t_link);
		if (small != NULL && (large == NULL || p->turn[prio] < SMALL_TURNS)) {
			p->turn[prio]++;
			return small;
		}
		p->turn[prio] = 0;
		if (large != NULL)
			return large;
	}
	return NULL;
}

static bool has_room(const struct dp_lane *l, uint64_t window)
{
	return l != NULL && l->state == DP_LANE_READY && dp_lane_room(l) > 0 && l->tx_backlog < l->frame_bytes &&
	       (l->out_bytes == 0 || l->out_bytes + l->frame_bytes <= window);
}

/* The ready lane with the least outstanding that has room for a frame, or NULL. */
static struct dp_lane *pick_lane(struct dp_path *p)
{
	const struct dp_stream_cfg *c = &p->stream->cfg;
	struct dp_lane *best = NULL;
	for (uint32_t i = 0; i < c->lanes_per_peer; i++) {
		struct dp_lane *l = p->lanes[i];
		if (has_room(l, c->lane_window_bytes) && (best == NULL || l->out_bytes < best->out_bytes))
			best = l;
	}
	return best;
}

static void start(struct dp_xfer *x)
{
	struct dp_stream *s = x->path->stream;
	x->start_ns = dp_stream_now(s);
	dp_account_depth(s, -1);
	dp_account_event(s, x->attempt->op, TN_STREAM_EVENT_ATTEMPT);
	tn_hist_observe(s->metrics, TN_H2(STREAM_QUEUE_WAIT_US, s->kind, x->attempt->op), x->start_ns - x->submit_ns);
}

static void cut(struct dp_lane *l, struct dp_xfer *x)
{
	struct dp_attempt *a = x->attempt;
	const struct dp_remote_buffer *b = &a->remote->buffers[x->buffer];
	uint64_t off = a->remote_off + a->t_next - b->segment_off;
	uint64_t len = TN_MIN(TN_MIN(a->bytes - a->t_next, b->bytes - off), (uint64_t)l->frame_bytes);
	if (x->start_ns == 0)
		start(x);
	if (l->head == l->tail) { /* the lane was quiet: its progress is measured from here */
		l->moved_ns = dp_stream_now(l->stream);
		dp_stream_timer(l->stream, l->moved_ns + l->stream->cfg.progress_timeout_ns);
	}
	struct dp_lane_op *op = dp_lane_push(l);
	op->op = a->op == TN_OP_READ ? DP_FRAME_READ : DP_FRAME_WRITE;
	op->ptr = a->local + a->t_next;
	op->registration = b->registration;
	op->offset = off;
	op->length = (uint32_t)len;
	op->xfer = x;
	l->out_bytes += len;
	l->tx_backlog += op->op == DP_FRAME_WRITE ? len : 0;
	x->out_bytes += len;
	a->t_slices++;
	a->t_next += len;
	x->buffer += off + len == b->bytes;
}

/* Its slice is cut: where it stands now. */
static void put_back(struct dp_xfer *x, uint64_t fair)
{
	const struct dp_attempt *a = x->attempt;
	bool enough = a->priority != TN_PRIORITY_HIGH && x->out_bytes >= fair;
	dp_client_place(x, a->t_next == a->bytes ? DP_XFER_NOWHERE : enough ? DP_XFER_PARKED : DP_XFER_RUN);
}

/* Small ones of the highest class have a lane where no bulk is in front of them, in no queue and in no buffer. What it
 * has no room for goes with all others. */
static void pump_urgent(struct dp_path *p)
{
	struct dp_lane *l = p->lanes[DP_PATH_URGENT];
	struct dp_attempt *a;
	while (has_room(l, URGENT_WINDOW_BYTES) &&
	       (a = tn_list_first(&p->run[TN_PRIORITY_HIGH][0], struct dp_attempt, t_link)) != NULL) {
		cut(l, a->t_priv);
		put_back(a->t_priv, UINT64_MAX);
		dp_lane_kick(l);
	}
}

void dp_slice_pump(struct dp_path *p)
{
	const struct dp_stream_cfg *c = &p->stream->cfg;
	/* what one attempt may have on lanes: enough to keep them busy, not all of their windows; an urgent one may */
	const uint64_t fair = TN_MAX((uint64_t)c->frame_bytes, c->lane_window_bytes / 4) * c->lanes_per_peer;
	pump_urgent(p);
	while (p->queued > 0) {
		struct dp_lane *l = pick_lane(p);
		if (l == NULL || l->out_bytes > 0)
			p->want_more = true;
		if (l == NULL ? p->ready_cnt > 0 : l->out_bytes >= TN_MIN(l->frame_bytes, DP_STREAM_SMALL_ATTEMPT))
			p->want_urgent |= !tn_list_empty(&p->run[TN_PRIORITY_HIGH][0]);
		if (l == NULL)
			return;
		struct dp_attempt *a = next_attempt(p);
		struct dp_xfer *x = a->t_priv;
		cut(l, x);
		put_back(x, fair); /* to the end of the line */
		dp_lane_kick(l);
	}
}

/* ---- answers ---- */

void dp_slice_forget(struct dp_lane *l, struct dp_lane_op *op)
{
	l->out_bytes -= op->length;
	if (op->xfer != NULL) {
		op->xfer->out_bytes -= op->length;
		op->xfer->attempt->t_slices--;
	}
	op->xfer = NULL;
}

static void skip_dropped(struct dp_lane *l)
{
	while (l->head != l->tx && (dp_lane_op_at(l, l->head)->flags & DP_LANE_OP_DROPPED))
		l->head++;
}

static const struct { tn_status status; uint8_t reason; } answers[DP_FRAME_ST_CNT] = {
	[DP_FRAME_ST_OK] = { TN_OK, 0 },
	[DP_FRAME_ST_VERSION] = { TN_PATH_PROTOCOL, TN_REASON_PROTOCOL },
	[DP_FRAME_ST_OPCODE] = { TN_PATH_PROTOCOL, TN_REASON_PROTOCOL },
	[DP_FRAME_ST_LENGTH] = { TN_PATH_PROTOCOL, TN_REASON_PROTOCOL },
	[DP_FRAME_ST_RANGE] = { TN_RANGE, TN_REASON_MR_ERROR },
	[DP_FRAME_ST_PERMISSION] = { TN_PERMISSION, TN_REASON_MR_ERROR },
	[DP_FRAME_ST_STALE] = { TN_STALE, TN_REASON_STALE_GENERATION },
	[DP_FRAME_ST_SHUTDOWN] = { TN_PATH_DOWN, TN_REASON_UNAVAILABLE },
	[DP_FRAME_ST_INTERNAL] = { TN_PATH_DOWN, TN_REASON_INTERNAL },
	[DP_FRAME_ST_INBOX_FULL] = { TN_LIMIT, TN_REASON_QUEUE_FULL },
	[DP_FRAME_ST_NO_RECEIVER] = { TN_STALE, TN_REASON_STALE_GENERATION },
	[DP_FRAME_ST_FAULT] = { TN_FAULT, TN_REASON_MR_ERROR },
};

tn_status dp_slice_status(uint16_t status, uint8_t *reason_out)
{
	*reason_out = answers[status].reason;
	return answers[status].status;
}

/* The oldest operation of the lane is answered. touched: refused, yet a part of a WRITE may have landed. */
static void complete(struct dp_lane *l, uint16_t status, bool touched)
{
	struct dp_lane_op *op = dp_lane_op_at(l, l->head++);
	struct dp_xfer *x = op->xfer;
	skip_dropped(l);
	dp_lane_count_op(l);
	l->path->fail_cnt = 0; /* the connection works */
	dp_worker_answered(l->stream->base.worker, l->stream->base.ops->kind, l->path->peer_index);
	if (status == DP_FRAME_ST_SHUTDOWN && l->state == DP_LANE_READY) {
		dp_lane_move(l, DP_LANE_DRAINING); /* the peer goes away: nothing new, close when empty */
		dp_stream_timer(l->stream, dp_stream_now(l->stream));
	}
	if (op->op == DP_FRAME_NOTE || op->op == DP_FRAME_DATAGRAM) {
		dp_note_answered(l, status);
		return;
	}
	uint32_t length = op->flags & DP_LANE_OP_ZEROS ? 0 : op->length; /* what was committed of ours */
	dp_slice_forget(l, op);
	if (x == NULL)
		return;
	if (status == DP_FRAME_ST_OK) {
		x->attempt->t_done += length;
		x->landed = true;
		if (x->place == DP_XFER_PARKED)
			dp_client_place(x, DP_XFER_RUN);
	} else {
		x->landed |= touched;
		dp_client_fail(x, answers[status].status, TN_PHASE_COMPLETION, answers[status].reason);
	}
	dp_client_settle(x);
}

/* ---- the side's table ---- */

static void tx_header(struct dp_lane_op *op, uint64_t id)
{
	op->id = id;
	struct dp_frame_req q = { .op = op->op, .id = id, .registration = op->registration, .offset = op->offset,
	                          .length = op->length };
	dp_frame_req_encode(&q, op->hdr);
}

static struct iovec tx_payload(const struct dp_lane *l, const struct dp_lane_op *op)
{
	if (!dp_frame_op_pushes(op->op))
		return (struct iovec){ NULL, 0 };
	const uint8_t *from = op->flags & DP_LANE_OP_ZEROS ? l->stream->zeros : op->ptr;
	return (struct iovec){ (void *)(uintptr_t)from, op->length };
}

static bool tx_ready(const struct dp_lane_op *op)
{
	(void)op;
	return true;
}

static void tx_first(struct dp_lane *l, struct dp_lane_op *op)
{
	op->flags |= DP_LANE_OP_LEFT;
	l->next_id = op->id + 1;
}

static void tx_whole(struct dp_lane *l, struct dp_lane_op *op)
{
	if (op->flags & DP_LANE_OP_DROPPED)
		skip_dropped(l);
	else if (op->op == DP_FRAME_WRITE)
		l->tx_backlog -= op->length;
}

/* Headers of answers up to the first that payload follows: the ring knows which. */
static uint32_t rx_want(const struct dp_lane *l)
{
	if (l->state == DP_LANE_HELLO_SENT)
		return DP_HELLO_ANSWER_BYTES;
	uint32_t want = 0;
	for (uint32_t pos = l->head + (l->rx_left > 0); pos != l->tx; pos++) {
		const struct dp_lane_op *op = &l->ops[pos & (DP_LANE_OPS - 1)];
		if (op->flags & DP_LANE_OP_DROPPED)
			continue;
		want += DP_FRAME_RSP_BYTES;
		if (op->op == DP_FRAME_READ || want + DP_FRAME_RSP_BYTES > DP_LANE_RX_BYTES)
			break;
	}
	if (want == 0 && l->rx_left == 0 && l->hangup) /* nothing is due: find the end of the stream, or nonsense */
		want = TN_MIN(l->rx_have + 1, DP_FRAME_RSP_BYTES);
	return want;
}

static bool rx_room(const struct dp_lane *l)
{
	(void)l;
	return true;
}

static enum dp_frame_error rx_header(struct dp_lane *l, const uint8_t *hdr)
{
	struct dp_frame_rsp rsp;
	if (l->head == l->tx)
		return DP_FRAME_BAD_ID; /* nobody asked */
	struct dp_lane_op *op = dp_lane_op_at(l, l->head);
	enum dp_frame_error e = dp_frame_rsp_decode(hdr, DP_FRAME_RSP_BYTES, op->id, op->length, &rsp);
	if (e != DP_FRAME_OK)
		return e;
	if (op->op == DP_FRAME_READ && rsp.status == DP_FRAME_ST_OK) {
		dp_lane_expect(l, op->flags & DP_LANE_OP_DISCARD ? NULL : op->ptr, op->length);
		return DP_FRAME_OK;
	}
	if (rsp.touched && op->op != DP_FRAME_WRITE)
		return DP_FRAME_BAD_RESERVED;
	complete(l, rsp.status, rsp.touched);
	return answers[rsp.status].status == TN_PATH_PROTOCOL ? DP_FRAME_BAD_STATUS : DP_FRAME_OK;
}

static void rx_payload(struct dp_lane *l) { complete(l, DP_FRAME_ST_OK, false); }

/* Memory of ours failed: the frame is carried to its end without it, so the lane survives. */
static bool fault(struct dp_lane *l, bool tx)
{
	struct dp_lane_op *op = dp_lane_op_at(l, tx ? l->tx : l->head);
	struct dp_xfer *x = op->xfer;
	if (tx && !dp_frame_op_pushes(op->op))
		return false;
	if (tx)
		op->flags |= DP_LANE_OP_ZEROS; /* a failed WRITE leaves its range undefined anyway */
	dp_account_fault(l->stream);
	if (x != NULL)
		dp_client_fail(x, TN_FAULT, TN_PHASE_POST, TN_REASON_MR_ERROR); /* drops or redirects this one, too */
	if (!tx)
		l->rx_ptr = NULL;
	if (x != NULL)
		dp_client_settle(x);
	return true;
}

const struct dp_lane_side dp_client_side = {
	.rx_hdr_bytes = DP_FRAME_RSP_BYTES,
	.tx_hdr_bytes = DP_FRAME_REQ_BYTES,
	.metric = TN_SIDE_CLIENT,
	.tx_header = tx_header,
	.tx_payload = tx_payload,
	.tx_ready = tx_ready,
	.tx_first = tx_first,
	.tx_whole = tx_whole,
	.rx_want = rx_want,
	.rx_room = rx_room,
	.rx_header = rx_header,
	.rx_payload = rx_payload,
	.fault = fault,
	.closed = dp_path_closed,
	.connected = dp_path_connected,
	.answer = dp_path_answer,
};
