/* SPDX-License-Identifier: Apache-2.0
 * Lanes that peers opened to us: taking them over, the fence (a higher epoch or a new incarnation closes what came
 * before), withdrawn segments, verdicts of notices, and their timers. The accepting side never closes an idle lane: the
 * other end may be about to send. Worker thread only. */
#include <stdlib.h>

#include "common/assert.h"
#include "common/clock.h"
#include "common/hook.h"
#include "dataplane/transport/stream/account.h"
#include "dataplane/transport/stream/serve.h"

#define REVOKE_GRACE_NS TN_NS_PER_S /* for running operations on a withdrawn segment */
#define TOKEN_SLOT_BITS 8u          /* slot | lane << 8 | serial << 25; below 2^56 */
#define TOKEN_LANE_BITS 17u         /* DP_STREAM_LANES_MAX */
#define TOKEN_SERIAL_BITS 31u
TN_STATIC_ASSERT(DP_LANE_OPS == 1u << TOKEN_SLOT_BITS && DP_STREAM_LANES_MAX == 1u << TOKEN_LANE_BITS,
		 "tokens have room");

TN_INLINE struct dp_stream *stream_of(struct dp_transport *t) { return tn_container_of(t, struct dp_stream, base); }

/* ---- senders ---- */

static struct dp_sender *sender_find(struct dp_stream *s, const struct tn_id128 *session, uint32_t worker)
{
	tn_list_foreach(node, &s->senders) {
		struct dp_sender *src = tn_list_entry(node, struct dp_sender, link);
		if (src->worker == worker && tn_id128_eq(&src->session, session))
			return src;
	}
	return NULL;
}

static struct dp_sender *sender_get(struct dp_stream *s, const struct dp_hello *h)
{
	struct dp_sender *src = tn_list_first(&s->free_senders, struct dp_sender, link);
	if (src != NULL)
		tn_list_unlink(&src->link);
	else if (s->sender_fresh < s->cfg.server_lanes)
		src = &s->sender_pool[s->sender_fresh++];
	else
		return NULL;
	src->peer_index = h->peer_index;
	src->session = h->sender_session;
	src->worker = h->worker;
	src->epoch = h->path_epoch;
	tn_list_init(&src->lanes);
	tn_list_push_back(&s->senders, &src->link);
	return src;
}

static void sender_put(struct dp_stream *s, struct dp_sender *src)
{
	tn_list_unlink(&src->link);
	tn_list_push_back(&s->free_senders, &src->link);
}

/* Close all its lanes; the sender is gone afterwards. Bytes that were not read yet are dropped by the kernel, so
 * nothing of them can land any more. */
static void sender_close(struct dp_sender *src)
{
	struct dp_lane *l;
	uint32_t cnt = 0;
	TN_HOOK(dp_fence_closing);
	tn_list_foreach(node, &src->lanes)
		cnt++;
	for (; cnt > 0 && (l = tn_list_first(&src->lanes, struct dp_lane, sender_link)) != NULL; cnt--)
		dp_lane_close(l, TN_PEER_STALE, DP_FRAME_OK, true); /* the last one frees the sender */
}

/* Its client gave it up and sends again what stands in it. */
static void close_control(struct dp_sender *src)
{
	tn_list_foreach(node, &src->lanes) {
		struct dp_lane *l = tn_list_entry(node, struct dp_lane, sender_link);
		if (l->control)
			dp_lane_close(l, TN_PEER_STALE, DP_FRAME_OK, true);
	}
}

bool dp_stream_fence(struct dp_transport *t, uint32_t peer_index, const struct tn_id128 *keep_session)
{
	struct dp_stream *s = stream_of(t);
	tn_list_foreach(node, &s->senders) {
		struct dp_sender *src = tn_list_entry(node, struct dp_sender, link);
		if (src->peer_index == peer_index && !tn_id128_eq(&src->session, keep_session))
			sender_close(src);
	}
	return true; /* closed is drained: this thread is the only one that moves their bytes */
}

/* ---- adopting ---- */

static void uncount(const struct dp_hello *h)
{
	if (h->conn_cnt != NULL)
		tn_fetch_add32(h->conn_cnt, UINT32_MAX);
}

static void encode_answer(const struct dp_stream *s, const struct dp_hello *h, uint16_t status,
                          uint8_t out[static DP_HELLO_ANSWER_BYTES])
{
	struct dp_hello_answer a = { .version = dp_hello_version_choose(h), .status = status };
	if (status == DP_HELLO_ACCEPTED) {
		a.features = dp_hello_features_agree(h->features);
		a.session = *dp_worker_session(s->base.worker);
		a.frame_bytes = s->cfg.frame_bytes;
		a.path_epoch = h->path_epoch;
	}
	dp_hello_answer_encode(&a, out);
}

static void ignore_ready(struct dp_pollable *p, uint32_t events)
{
	(void)p;
	(void)events;
}

/* Say no and close; the answer fits into an empty socket, or is not important. */
static void refuse(struct dp_stream *s, int fd, const struct dp_hello *h, uint16_t status)
{
	struct dp_bytes b = { .poll = { .ready = ignore_ready, .fd = -1 }, .worker = s->base.worker };
	uint8_t bytes[DP_HELLO_ANSWER_BYTES];
	size_t moved = 0;
	encode_answer(s, h, status, bytes);
	if (s->bytes->adopt(s->provider, &b, fd, false) != TN_OK)
		return;
	(void)s->bytes->writev(&b, &(struct iovec){ bytes, sizeof bytes }, 1, &moved);
	s->bytes->close(&b, false);
}

/* Status of the answer; when accepted the lane is under way. */
static uint16_t accept_lane(struct dp_stream *s, int fd, const struct dp_hello *h)
{
	if (s->draining)
		return DP_HELLO_DRAINING;
	dp_stream_fence(&s->base, h->peer_index, &h->sender_session);
	struct dp_sender *src = sender_find(s, &h->sender_session, h->worker);
	if (src != NULL && h->path_epoch < src->epoch)
		return DP_HELLO_OLD_EPOCH;
	if (src != NULL && h->path_epoch > src->epoch) {
		sender_close(src);
		src = NULL;
	}
	if (src == NULL)
		src = sender_get(s, h);
	bool room = src != NULL && s->server_cnt < s->cfg.server_lanes;
	struct dp_lane *l = room ? dp_stream_lane_get(s, &dp_server_side, DP_LANE_READY) : NULL;
	if (l == NULL) {
		if (src != NULL && tn_list_empty(&src->lanes))
			sender_put(s, src);
		return DP_HELLO_TOO_MANY;
	}
	l->hello = *h;
	memset(&l->hello.ticket, 0, sizeof l->hello.ticket);
	l->sender = src;
	s->server_cnt++;
	tn_list_push_back(&src->lanes, &l->sender_link);
	if (h->lane == DP_HELLO_LANE_CONTROL)
		close_control(src);
	l->control = h->lane == DP_HELLO_LANE_CONTROL;
	l->urgent = l->control || h->lane == DP_HELLO_LANE_URGENT;
	l->index = h->lane;
	l->epoch = h->path_epoch;
	dp_lane_agree_frames(l, h->frame_bytes);
	l->greeted = true;
	l->remembers = (dp_hello_features_agree(h->features) & DP_HELLO_FEATURE_NOTES) != 0;
	uint8_t bytes[DP_HELLO_ANSWER_BYTES];
	TN_HOOK(dp_hello_accepted);
	encode_answer(s, h, DP_HELLO_ACCEPTED, bytes);
	dp_lane_preamble(l, bytes, sizeof bytes);
	if (s->bytes->adopt(s->provider, &l->bytes, fd, l->urgent) != TN_OK) {
		dp_lane_close(l, TN_PATH_DOWN, DP_FRAME_OK, true);
		return DP_HELLO_ACCEPTED; /* the socket is gone: nobody to answer */
	}
	l->readable = l->writable = true; /* try at once */
	dp_stream_timer(s, l->moved_ns + s->cfg.progress_timeout_ns);
	dp_lane_kick(l);
	return DP_HELLO_ACCEPTED;
}

void dp_stream_lane_adopt(struct dp_transport *t, int fd, struct dp_hello *hello)
{
	struct dp_stream *s = stream_of(t);
	uint16_t status = accept_lane(s, fd, hello);
	if (status != DP_HELLO_ACCEPTED) {
		refuse(s, fd, hello, status);
		uncount(hello);
	}
	explicit_bzero(&hello->ticket, sizeof hello->ticket);
	free(hello);
}

void dp_server_closed(struct dp_lane *l, tn_status status, enum dp_frame_error error)
{
	struct dp_sender *src = l->sender;
	(void)status;
	(void)error;
	free(l->rx_note);
	l->rx_note = NULL;
	l->head = l->tx = l->tail = 0;
	l->rx_left = 0;
	l->rx_segment = 0;
	uncount(&l->hello);
	l->stream->server_cnt--;
	tn_list_unlink(&l->sender_link);
	if (tn_list_empty(&src->lanes))
		sender_put(l->stream, src);
	dp_stream_lane_put(l);
}

/* ---- the end of service ---- */

/* A request is half in, or an answer is not out. A notice that waits for its verdict is nobody's memory. */
static bool under_way(const struct dp_lane *l)
{
	bool answering = l->tx != l->tail && l->side->tx_ready(&l->ops[l->tx & (DP_LANE_OPS - 1)]);
	return l->rx_left > 0 || l->rx_have > 0 || l->pre_left > 0 || answering;
}

bool dp_stream_drain(struct dp_transport *t)
{
	struct dp_stream *s = stream_of(t);
	s->draining = true;
	tn_list_foreach(node, &s->live) {
		const struct dp_lane *l = tn_list_entry(node, struct dp_lane, live_link);
		if (l->sender != NULL && under_way(l))
			return false;
	}
	return true;
}

/* ---- withdrawn segments ---- */

/* Calls `mark` for a lane that touches the segment; with mark NULL only says whether one does. */
static bool touches(struct dp_lane *l, tn_handle segment, bool mark)
{
	bool any = l->rx_left > 0 && l->rx_segment == segment;
	if (any && mark)
		l->rx_revoked = true;
	for (uint32_t pos = l->tx; pos != l->tail; pos++) {
		struct dp_lane_op *op = dp_lane_op_at(l, pos);
		if (op->segment != segment)
			continue;
		any = true;
		if (mark)
			op->flags |= DP_LANE_OP_REVOKED;
	}
	return any;
}

bool dp_stream_segment_busy(const struct dp_transport *t, tn_handle segment)
{
	struct dp_stream *s = tn_container_of((struct dp_transport *)(uintptr_t)t, struct dp_stream, base);
	tn_list_foreach(node, &s->live) {
		struct dp_lane *l = tn_list_entry(node, struct dp_lane, live_link);
		if (l->sender != NULL && touches(l, segment, false))
			return true;
	}
	return false;
}

void dp_stream_segment_revoke(struct dp_transport *t, tn_handle segment)
{
	struct dp_stream *s = stream_of(t);
	uint64_t until = dp_stream_now(s) + REVOKE_GRACE_NS;
	tn_list_foreach(node, &s->live) {
		struct dp_lane *l = tn_list_entry(node, struct dp_lane, live_link);
		if (l->sender == NULL || !touches(l, segment, true))
			continue;
		l->revoke_ns = TN_MIN(l->revoke_ns, until);
		dp_stream_timer(s, l->revoke_ns);
	}
}

/* ---- verdicts ---- */

uint64_t dp_serve_token(const struct dp_lane *l, uint32_t slot)
{
	uint64_t serial = l->serial & ((1u << TOKEN_SERIAL_BITS) - 1);
	uint64_t index = (uint64_t)(l - l->stream->lanes);
	return dp_note_token(l->stream->base.ops->kind,
	                     serial << (TOKEN_SLOT_BITS + TOKEN_LANE_BITS) | index << TOKEN_SLOT_BITS | slot);
}

uint16_t dp_serve_verdict(tn_status verdict)
{
	switch (verdict) {
	case TN_OK: return DP_FRAME_ST_OK;
	case TN_AGAIN:
	case TN_LIMIT:
	case TN_BUSY: return DP_FRAME_ST_INBOX_FULL;
	case TN_STALE:
	case TN_NOT_FOUND:
	case TN_CLIENT_GONE: return DP_FRAME_ST_NO_RECEIVER;
	case TN_PERMISSION: return DP_FRAME_ST_PERMISSION;
	default: return DP_FRAME_ST_INTERNAL;
	}
}

void dp_stream_note_verdict(struct dp_transport *t, uint64_t token, tn_status verdict)
{
	struct dp_stream *s = stream_of(t);
	uint32_t slot = token & (DP_LANE_OPS - 1);
	uint32_t index = token >> TOKEN_SLOT_BITS & ((1u << TOKEN_LANE_BITS) - 1);
	if (index >= s->lane_fresh)
		return;
	struct dp_lane *l = &s->lanes[index];
	struct dp_lane_op *op = &l->ops[slot];
	if (!dp_lane_open(l) || l->sender == NULL || dp_serve_token(l, slot) != token ||
	    !(op->flags & DP_LANE_OP_WAITING))
		return; /* the lane is gone: nobody to tell */
	op->status = dp_serve_verdict(verdict);
	op->flags &= (uint8_t)~DP_LANE_OP_WAITING;
	l->moved_ns = dp_stream_now(s);
	dp_lane_kick(l);
}

/* ---- timers ---- */

uint64_t dp_server_sweep(struct dp_lane *l, uint64_t now_ns)
{
	uint64_t due = l->moved_ns + l->stream->cfg.progress_timeout_ns;
	if (now_ns >= l->revoke_ns) {
		l->revoke_ns = UINT64_MAX;
		dp_serve_revoke(l);
		if (!dp_lane_open(l))
			return UINT64_MAX;
	}
	if (!under_way(l)) /* an idle lane, and one that waits for a verdict, may stay for ever */
		return l->revoke_ns;
	if (now_ns < due)
		return TN_MIN(due, l->revoke_ns);
	dp_lane_close(l, TN_PATH_TIMEOUT, DP_FRAME_OK, true);
	return UINT64_MAX;
}
