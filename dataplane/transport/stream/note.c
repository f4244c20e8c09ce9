/* SPDX-License-Identifier: Apache-2.0
 * Notices and datagrams of the connecting side: small frames on the path's own control lane, which payload cannot
 * crowd out. Their bytes are copied into slots of the path, so the caller's memory is free at once and a deadline or
 * cancel only forgets who asked. They leave in order; a notice that left with a lane that breaks leaves again on the next
 * one, with its number, by which the same incarnation of the receiver knows it again. Worker thread only. */
#include "common/assert.h"
#include "common/clock.h"
#include "dataplane/transport/stream/account.h"

#define NOTE_SLOTS (DP_STREAM_SMALL_SLOTS - 8u)      /* the rest is for datagrams */
#define DATAGRAM_TTL_NS (2 * TN_NS_PER_S)            /* an older one is of no use to its receiver */

TN_INLINE struct dp_stream *stream_of(struct dp_transport *t) { return tn_container_of(t, struct dp_stream, base); }

static struct dp_small *slot_at(struct dp_path *p, uint32_t pos)
{
	return &p->small[pos & (DP_STREAM_SMALL_SLOTS - 1)];
}

static uint8_t *slot_bytes(struct dp_path *p, uint32_t pos)
{
	return p->stream->small + (size_t)(p->peer_index + 1u) * DP_STREAM_SMALL_BYTES +
	       (size_t)(pos & (DP_STREAM_SMALL_SLOTS - 1)) * DP_FRAME_NOTE_MAX;
}

static void enqueue(struct dp_path *p, const struct dp_small *what, const void *bytes)
{
	if (what->length > 0)
		memcpy(slot_bytes(p, p->small_tail), bytes, what->length);
	*slot_at(p, p->small_tail++) = *what;
	dp_stream_timer(p->stream, what->deadline_ns);
	dp_path_dirty(p);
}

tn_status dp_stream_note_send(struct dp_transport *t, struct dp_request *r, const struct dp_remote *remote,
			      uint64_t seq)
{
	struct dp_path *p = remote->local ? NULL : dp_path_of(stream_of(t), remote->peer_index);
	if (p == NULL || remote->buffer_cnt == 0)
		return TN_UNSUPPORTED;
	if (r->sqe.note_len > DP_FRAME_NOTE_MAX)
		return TN_TOO_BIG;
	if (p->small_tail - p->small_head >= NOTE_SLOTS)
		return TN_AGAIN;
	struct dp_small slot = { .note = r, .registration = remote->buffers[0].registration, .seq = seq,
	                         .deadline_ns = r->deadline_ns, .length = r->sqe.note_len, .op = DP_FRAME_NOTE };
	enqueue(p, &slot, r->note);
	return TN_OK;
}

void dp_stream_note_cancel(struct dp_transport *t, struct dp_request *r)
{
	struct dp_stream *s = stream_of(t);
	for (uint32_t i = 0; i < tn_load_relaxed32(&s->path_cnt); i++) {
		struct dp_path *p = &s->paths[i];
		for (uint32_t pos = p->small_head; pos != p->small_tail; pos++) {
			struct dp_small *slot = slot_at(p, pos);
			if (slot->note != r)
				continue;
			slot->note = NULL;
			if ((int32_t)(pos - p->small_next) >= 0)
				slot->op = 0; /* on no lane yet: it does not go out any more */
		}
	}
}

tn_status dp_stream_datagram_send(struct dp_transport *t, uint32_t peer_index, const void *bytes, uint32_t len)
{
	struct dp_stream *s = stream_of(t);
	struct dp_path *p = dp_path_of(s, peer_index);
	if (p == NULL || p->endpoint_cnt == 0)
		return TN_PEER_DOWN;
	if (len == 0 || len > DP_FRAME_DATAGRAM_MAX)
		return TN_INVALID;
	if (p->small_tail - p->small_head >= DP_STREAM_SMALL_SLOTS)
		return TN_AGAIN;
	struct dp_small slot = { .deadline_ns = dp_stream_now(s) + DATAGRAM_TTL_NS,
				 .length = len,
				 .op = DP_FRAME_DATAGRAM };
	enqueue(p, &slot, bytes);
	return TN_OK;
}

/* It does not go out any more. */
static void end_slot(struct dp_path *p, struct dp_small *slot, tn_status status, uint8_t reason)
{
	struct dp_request *r = slot->note;
	slot->note = NULL;
	slot->op = 0;
	if (r != NULL)
		dp_note_done(p->stream->base.worker, r, status, TN_PHASE_NOTIFY, reason);
}

void dp_note_pump(struct dp_path *p)
{
	struct dp_lane *l = p->control;
	if (l == NULL || l->state != DP_LANE_READY)
		return;
	for (; p->small_next != p->small_tail && dp_lane_room(l) > 0; p->small_next++) {
		struct dp_small *slot = slot_at(p, p->small_next);
		if (slot->left && !l->remembers)
			end_slot(p, slot, TN_AMBIGUOUS, TN_REASON_PEER_CLOSED);
		if (slot->op == 0) { /* expired; its place goes when it is the oldest */
			if (p->small_head == p->small_next)
				p->small_head++;
			continue;
		}
		if (l->head == l->tail)
			l->moved_ns = dp_stream_now(l->stream);
		struct dp_lane_op *op = dp_lane_push(l);
		op->op = slot->op;
		op->ptr = slot_bytes(p, p->small_next);
		op->registration = slot->registration;
		op->offset = slot->seq;
		op->length = slot->length;
		dp_stream_timer(l->stream, l->moved_ns + l->stream->cfg.progress_timeout_ns);
	}
	dp_lane_kick(l);
}

static void skip_expired(struct dp_path *p)
{
	while (p->small_head != p->small_next && slot_at(p, p->small_head)->op == 0)
		p->small_head++;
}

void dp_note_answered(struct dp_lane *l, uint16_t status)
{
	struct dp_path *p = l->path;
	skip_expired(p);
	tn_assert(p->small_head != p->small_next);
	bool again = slot_at(p, p->small_head)->left;
	struct dp_request *r = slot_at(p, p->small_head++)->note;
	uint8_t reason = 0;
	tn_status st = dp_slice_status(status, &reason);
	if (again && st == TN_PATH_DOWN) /* nobody looked at it, so nothing is said about what arrived before */
		st = TN_AMBIGUOUS;
	skip_expired(p);
	if (r != NULL)
		dp_note_done(p->stream->base.worker, r, st, TN_PHASE_NOTIFY, reason);
	if (p->small_next != p->small_tail)
		dp_path_dirty(p);
}

void dp_note_lost(struct dp_lane *l, uint8_t reason)
{
	struct dp_path *p = l->path;
	/* All wait for the next lane. Of those that began to leave nobody knows whether they arrived, but a receiver that
	 * remembers them. */
	for (uint32_t pos = p->small_head; pos != p->small_next; pos++) {
		struct dp_small *slot = slot_at(p, pos);
		if (slot->op == 0)
			continue;
		slot->left |= l->head != l->tail && (dp_lane_op_at(l, l->head)->flags & DP_LANE_OP_LEFT);
		l->head += l->head != l->tail;
		bool again = slot->op == DP_FRAME_NOTE && l->remembers && p->stream->base.up;
		if ((slot->left && !again) || (slot->op == DP_FRAME_NOTE && slot->note == NULL)) /* canceled in the meantime */
			end_slot(p, slot, TN_AMBIGUOUS, reason);
	}
	p->small_next = p->small_head;
}

void dp_note_forget(struct dp_path *p)
{
	for (uint32_t pos = p->small_head; pos != p->small_tail; pos++)
		if (slot_at(p, pos)->left)
			end_slot(p, slot_at(p, pos), TN_AMBIGUOUS, TN_REASON_PEER_CLOSED);
}

uint64_t dp_note_sweep(struct dp_path *p, uint64_t now_ns)
{
	uint64_t next = UINT64_MAX;
	for (uint32_t pos = p->small_head; pos != p->small_tail; pos++) {
		struct dp_small *slot = slot_at(p, pos);
		bool on_lane = (int32_t)(pos - p->small_next) < 0, left = on_lane || slot->left;
		if (slot->op == 0 || (slot->note == NULL && on_lane))
			continue;
		if (slot->deadline_ns > now_ns) {
			next = TN_MIN(next, slot->deadline_ns);
			continue;
		}
		struct dp_request *r = slot->note;
		slot->note = NULL;
		if (!on_lane)
			slot->op = 0;
		if (r != NULL)
			dp_note_done(p->stream->base.worker, r, left ? TN_AMBIGUOUS : TN_TIMEOUT, TN_PHASE_NOTIFY,
				     TN_REASON_TIMEOUT);
	}
	if (p->control == NULL) /* nobody else passes over them while there is no lane */
		for (; p->small_next != p->small_tail && slot_at(p, p->small_next)->op == 0; p->small_next++)
			p->small_head++;
	return next;
}
