/* SPDX-License-Identifier: Apache-2.0
 * What a peer asks of us, and the answers: every field of a request is checked here, and nothing outside a published
 * buffer that this peer may use is ever read or written. Refused WRITEs are drained so that framing survives. Worker
 * thread only; a notice is the one thing that allocates (its bytes go to the control thread). */
#include <stdlib.h>

#include "common/assert.h"
#include "common/bits.h"
#include "common/hook.h"
#include "dataplane/apply.h"
#include "dataplane/segment/fault.h"
#include "dataplane/transport/stream/account.h"
#include "dataplane/transport/stream/serve.h"

/* ---- what may be touched ---- */

static bool on_list(const struct dp_segment *seg, const char *peer_name)
{
	if (!(seg->access & SHR_ACCESS_PEERS))
		return false;
	for (uint32_t i = 0; i < seg->peer_cnt; i++)
		if (strncmp(seg->peers[i], peer_name, TN_NAME_MAX) == 0)
			return true;
	return seg->peer_cnt == 0; /* no list: every peer that we trust at all */
}

/* Asked once per version of a segment and lane. Through our own lanes come only requests of applications that were let in when
 * they opened the segment (dp_local_admits_uid()). */
static bool allowed(struct dp_lane *l, const struct dp_segment *seg)
{
	if (l->allowed_segment != seg->handle || l->allowed_generation != seg->generation) {
		l->allowed_segment = seg->handle;
		l->allowed_generation = seg->generation;
		l->allowed = l->hello.peer_index == DP_PEER_SELF || on_list(seg, l->hello.peer_name);
	}
	return l->allowed;
}

/* The memory that a READ or WRITE names, or NULL and the refusal. Access first: who may not use it learns nothing. */
static uint8_t *target(struct dp_lane *l, const struct dp_frame_req *q, uint32_t right, tn_handle *segment_out,
                       uint16_t *status_out)
{
	const struct dp_segment *seg = NULL;
	if (l->stream->draining) {
		*status_out = DP_FRAME_ST_SHUTDOWN;
		return NULL;
	}
	const struct dp_buffer *b = dp_worker_registration(l->stream->base.worker, q->registration, &seg);
	if (b == NULL)
		*status_out = DP_FRAME_ST_STALE;
	else if (!allowed(l, seg) || !(b->rights & right))
		*status_out = DP_FRAME_ST_PERMISSION;
	else if (!tn_range_within(q->offset, q->length, b->bytes))
		*status_out = DP_FRAME_ST_RANGE;
	else {
		*status_out = DP_FRAME_ST_OK;
		*segment_out = seg->handle;
		return b->base + q->offset;
	}
	return NULL;
}

/* ---- answers ---- */

static struct dp_lane_op *answer(struct dp_lane *l, uint16_t status)
{
	struct dp_lane_op *op = dp_lane_push(l);
	op->id = l->rx_req.id;
	op->op = l->rx_req.op;
	op->status = status;
	op->offset = l->rx_req.length; /* committed, when the status is OK */
	return op;
}

/* An answer that breaks off half-way costs its lane, and with it everybody on it. So a segment to which that happened is
 * looked at before its next answers begin. */
static void suspect(struct dp_stream *s, tn_handle segment)
{
	for (uint32_t i = 0; i < DP_STREAM_SUSPECTS; i++)
		if (s->suspects[i] == segment)
			return;
	s->suspects[s->suspect_cnt++ % DP_STREAM_SUSPECTS] = segment;
}

static bool cannot_be_had(const struct dp_stream *s, tn_handle segment, const uint8_t *at, uint64_t bytes)
{
	if (tn_likely(s->suspect_cnt == 0))
		return false;
	for (uint32_t i = 0; i < DP_STREAM_SUSPECTS; i++)
		if (s->suspects[i] == segment)
			return !dp_fault_readable(at, bytes);
	return false;
}

static void serve_read(struct dp_lane *l)
{
	uint16_t status;
	tn_handle segment = 0;
	uint8_t *ptr = target(l, &l->rx_req, SHR_RIGHT_REMOTE_READ, &segment, &status);
	if (ptr != NULL && cannot_be_had(l->stream, segment, ptr, l->rx_req.length)) {
		dp_account_fault(l->stream);
		ptr = NULL;
		status = DP_FRAME_ST_FAULT;
	}
	struct dp_lane_op *op = answer(l, status);
	if (ptr == NULL)
		return;
	op->ptr = ptr;
	op->length = (uint32_t)l->rx_req.length;
	op->segment = segment;
	l->tx_backlog += op->length;
}

static void begin_note(struct dp_lane *l)
{
	uint32_t len = (uint32_t)l->rx_req.length;
	struct dp_note_in *note = malloc(sizeof *note + len);
	if (note != NULL) {
		memset(note, 0, sizeof *note);
		note->seq = l->rx_req.offset;
		note->len = len;
		note->session = l->hello.sender_session;
		note->peer_index = l->hello.peer_index;
		memcpy(note->from, l->hello.peer_name, sizeof note->from);
	}
	l->rx_note = note;
	dp_lane_expect(l, note != NULL ? note->payload : NULL, len);
}

static uint16_t deliver_note(struct dp_lane *l, uint32_t slot)
{
	const struct dp_segment *seg = NULL;
	struct dp_note_in *note = l->rx_note;
	if (l->stream->draining)
		return DP_FRAME_ST_SHUTDOWN;
	if (note == NULL)
		return DP_FRAME_ST_INTERNAL;
	/* Refused ones go the same way: it may be known already, from another lane. */
	if (dp_worker_registration(l->stream->base.worker, l->rx_req.registration, &seg) == NULL)
		note->refused = TN_STALE;
	else if (!allowed(l, seg))
		note->refused = TN_PERMISSION;
	tn_status st = dp_worker_note_in(l->stream->base.worker, dp_serve_token(l, slot), seg != NULL ? seg->handle : 0, note);
	if (st == TN_AGAIN) /* nobody looked at it */
		return DP_FRAME_ST_INTERNAL;
	l->rx_note = NULL; /* taken, also when it was refused */
	return st == TN_OK ? DP_FRAME_ST_OK : dp_serve_verdict(st);
}

static void end_note(struct dp_lane *l)
{
	uint32_t slot = l->tail & (DP_LANE_OPS - 1);
	struct dp_lane_op *op = answer(l, DP_FRAME_ST_OK);
	op->flags |= DP_LANE_OP_WAITING; /* before the hand-over: the verdict may come from inside it */
	uint16_t status = deliver_note(l, slot);
	if (status != DP_FRAME_ST_OK) {
		op->status = status;
		op->flags &= (uint8_t)~DP_LANE_OP_WAITING;
	}
	free(l->rx_note);
	l->rx_note = NULL;
}

static void end_datagram(struct dp_lane *l)
{
	tn_status st = dp_worker_datagram_in(l->stream->base.worker, l->hello.peer_index, l->datagram,
					     (uint32_t)l->rx_req.length);
	answer(l, st == TN_OK ? DP_FRAME_ST_OK : DP_FRAME_ST_INBOX_FULL);
}

/* ---- the side's table ---- */

static void tx_header(struct dp_lane_op *op, uint64_t id)
{
	(void)id;
	struct dp_frame_rsp r = { .status = op->status, .id = op->id,
	                          .committed = op->status == DP_FRAME_ST_OK ? op->offset : 0,
	                          .touched = (op->flags & DP_LANE_OP_TOUCHED) != 0 };
	dp_frame_rsp_encode(&r, op->hdr);
}

static struct iovec tx_payload(const struct dp_lane *l, const struct dp_lane_op *op)
{
	(void)l;
	return (struct iovec){ op->ptr, op->length };
}

static bool tx_ready(const struct dp_lane_op *op) { return !(op->flags & DP_LANE_OP_WAITING); }

static void tx_first(struct dp_lane *l, struct dp_lane_op *op)
{
	(void)l;
	op->flags |= DP_LANE_OP_LEFT;
}

static void tx_whole(struct dp_lane *l, struct dp_lane_op *op)
{
	l->tx_backlog -= op->length;
	l->head = l->tx;
	dp_lane_count_op(l);
}

/* One header at a time while payload comes between them; many in a run of READs. */
static uint32_t rx_want(const struct dp_lane *l)
{
	uint32_t taken = l->tail - l->head + (l->rx_left > 0);
	if (taken >= DP_LANE_OPS || l->tx_backlog >= l->stream->cfg.lane_window_bytes)
		return 0;
	return l->rx_ahead ? DP_LANE_RX_BYTES / DP_FRAME_REQ_BYTES * DP_FRAME_REQ_BYTES : DP_FRAME_REQ_BYTES;
}

static bool rx_room(const struct dp_lane *l)
{
	return dp_lane_room(l) > 0 && l->tx_backlog < l->stream->cfg.lane_window_bytes;
}

static enum dp_frame_error rx_header(struct dp_lane *l, const uint8_t *hdr)
{
	struct dp_frame_req_rule rule = { .id = l->next_id, .frame_bytes = l->frame_bytes, .control = l->control };
	enum dp_frame_error e = dp_frame_req_decode(hdr, DP_FRAME_REQ_BYTES, &rule, &l->rx_req);
	if (e != DP_FRAME_OK)
		return e;
	l->next_id++;
	l->rx_ahead = l->rx_req.op == DP_FRAME_READ;
	l->rx_segment = 0;
	l->rx_revoked = l->rx_touched = false;
	uint8_t *ptr;
	switch (l->rx_req.op) {
	case DP_FRAME_READ:
		serve_read(l);
		break;
	case DP_FRAME_WRITE:
		ptr = target(l, &l->rx_req, SHR_RIGHT_REMOTE_WRITE, &l->rx_segment, &l->rx_status);
		dp_lane_expect(l, ptr, (uint32_t)l->rx_req.length);
		break;
	case DP_FRAME_NOTE:
		begin_note(l);
		if (l->rx_left == 0)
			end_note(l);
		break;
	default:
		dp_lane_expect(l, l->datagram, (uint32_t)l->rx_req.length);
		break;
	}
	return DP_FRAME_OK;
}

static void rx_payload(struct dp_lane *l)
{
	struct dp_lane_op *op;
	switch (l->rx_req.op) {
	case DP_FRAME_WRITE:
		TN_HOOK(dp_write_landed);
		op = answer(l, l->rx_status);
		op->flags |= l->rx_touched ? DP_LANE_OP_TOUCHED : 0;
		l->rx_segment = 0;
		break;
	case DP_FRAME_NOTE:
		end_note(l);
		break;
	default:
		end_datagram(l);
		break;
	}
}

/* The rest of a WRITE's payload goes nowhere. */
static void turn_away(struct dp_lane *l, uint16_t why, bool touched)
{
	l->rx_ptr = NULL;
	l->rx_segment = 0;
	l->rx_status = why;
	l->rx_touched |= touched;
}

static bool fault(struct dp_lane *l, bool tx)
{
	dp_account_fault(l->stream);
	if (!tx) { /* its answer says why; what is in front of the bad page may be written, also when nothing "moved" */
		turn_away(l, DP_FRAME_ST_FAULT, true);
		return true;
	}
	if (l->tx == l->tail)
		return false;
	struct dp_lane_op *op = dp_lane_op_at(l, l->tx);
	if (l->tx_done > 0) { /* its length is promised already */
		suspect(l->stream, op->segment);
		return false;
	}
	l->tx_backlog -= op->length;
	op->length = 0;
	op->segment = 0;
	op->status = DP_FRAME_ST_FAULT;
	return true;
}

void dp_serve_revoke(struct dp_lane *l)
{
	if (l->rx_revoked && l->rx_left > 0)
		turn_away(l, DP_FRAME_ST_STALE, l->rx_left < l->rx_req.length);
	l->rx_revoked = false;
	for (uint32_t pos = l->tx; pos != l->tail; pos++) {
		struct dp_lane_op *op = dp_lane_op_at(l, pos);
		if (!(op->flags & DP_LANE_OP_REVOKED))
			continue;
		if (op->flags & DP_LANE_OP_LEFT) { /* half of the answer is out, the other half will not come */
			dp_lane_close(l, TN_PATH_TIMEOUT, DP_FRAME_OK, true);
			return;
		}
		l->tx_backlog -= op->length;
		op->length = 0;
		op->segment = 0;
		op->status = DP_FRAME_ST_STALE;
		op->flags &= (uint8_t)~DP_LANE_OP_REVOKED;
	}
	dp_lane_kick(l);
}

const struct dp_lane_side dp_server_side = {
	.rx_hdr_bytes = DP_FRAME_REQ_BYTES,
	.tx_hdr_bytes = DP_FRAME_RSP_BYTES,
	.metric = TN_SIDE_SERVER,
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
	.closed = dp_server_closed, /* connected, answer: of the other side only */
};
