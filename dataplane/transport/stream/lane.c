/* SPDX-License-Identifier: Apache-2.0
 * Moving bytes of one lane: gathering writes from the send ring, reading headers and payload to where they belong; see
 * lane.h. Runs in the worker's progress step; everything that has a meaning is behind the side's table. */
#include "dataplane/transport/stream/lane.h"

#include <string.h>
#include <sys/epoll.h>

#include "common/assert.h"
#include "common/clock.h"
#include "common/hook.h"
#include "dataplane/transport/stream/account.h"

#define TX_CALL_BYTES (2u * 1024u * 1024u) /* one write call; bounds what the other lanes wait for */
#define PIECE_BYTES (64u * 1024u)          /* less is not worth a call of its own */
#define URGENT_KEEP_NS TN_NS_PER_S         /* after an urgent request, others are expected */
#define IO_ROUNDS 4u                       /* calls per direction and service */
#define SAMPLE_OPS 256u                    /* operations between two looks at the connection's figures */

struct dp_lane_op *dp_lane_push(struct dp_lane *l)
{
	tn_assert_debug(dp_lane_room(l) > 0);
	struct dp_lane_op *op = dp_lane_op_at(l, l->tail++);
	memset(op, 0, offsetof(struct dp_lane_op, hdr));
	return op;
}

void dp_lane_preamble(struct dp_lane *l, const uint8_t *bytes, uint32_t len)
{
	memcpy(l->pre + sizeof l->pre - len, bytes, len);
	l->pre_left = len;
}

/* Is there something that may be written now? */
static bool tx_pending(const struct dp_lane *l)
{
	if (l->pre_left > 0)
		return true;
	if (l->state != DP_LANE_READY && l->state != DP_LANE_DRAINING)
		return false;
	for (uint32_t pos = l->tx; pos != l->tail; pos++) {
		const struct dp_lane_op *op = &l->ops[pos & (DP_LANE_OPS - 1)];
		if (!(op->flags & DP_LANE_OP_DROPPED))
			return l->side->tx_ready(op);
	}
	return false;
}

static bool rx_possible(const struct dp_lane *l)
{
	return l->readable && (l->rx_left > 0 || l->side->rx_want(l) > l->rx_have);
}

/* Headers that were read ahead while there was no room for them. */
static bool rx_parked(const struct dp_lane *l)
{
	return l->greeted && l->rx_left == 0 && l->rx_have >= l->side->rx_hdr_bytes && l->side->rx_room(l);
}

void dp_lane_kick(struct dp_lane *l)
{
	if (!dp_lane_open(l))
		return;
	if (!tn_list_linked(&l->rx_link)) {
		bool rx = l->state == DP_LANE_CONNECTING ? l->writable || l->hangup : rx_possible(l) || rx_parked(l);
		if (rx)
			tn_list_push_back(&l->stream->rx[!l->urgent], &l->rx_link);
	}
	if (!tn_list_linked(&l->tx_link) && l->writable && l->state != DP_LANE_CONNECTING && tx_pending(l))
		tn_list_push_back(&l->stream->tx[!l->urgent], &l->tx_link);
}

/* Figures of the connection: now and then, and before it closes. */
static void sample(struct dp_lane *l)
{
	struct dp_bytes_info info;
	struct dp_stream *s = l->stream;
	if (!s->bytes->info(&l->bytes, &info))
		return;
	if (info.retrans_total > l->retrans_seen)
		tn_counter_add(s->metrics, TN_C1(TCP_RETRANSMISSIONS_TOTAL, s->kind),
			       info.retrans_total - l->retrans_seen);
	l->retrans_seen = info.retrans_total;
	tn_hist_observe(s->metrics, TN_H1(TCP_SRTT_US, s->kind), info.srtt_ns);
	tn_hist_observe(s->metrics, TN_H1(TCP_CWND_SEGMENTS, s->kind), info.cwnd_segments);
}

void dp_lane_count_op(struct dp_lane *l)
{
	if (++l->op_cnt % SAMPLE_OPS == 0)
		sample(l);
}

void dp_lane_agree_frames(struct dp_lane *l, uint32_t theirs)
{
	uint32_t both = TN_MIN(l->stream->cfg.frame_bytes, theirs);
	l->frame_bytes = l->urgent ? TN_MIN(both, DP_HELLO_URGENT_BYTES) : both;
}

void dp_lane_close(struct dp_lane *l, tn_status status, enum dp_frame_error error, bool abort)
{
	if (!dp_lane_open(l))
		return;
	if (l->state != DP_LANE_CONNECTING)
		sample(l);
	if (error != DP_FRAME_OK)
		dp_account_protocol(l->stream, l->side->metric, error);
	l->stream->bytes->close(&l->bytes, abort);
	explicit_bzero(l->pre, sizeof l->pre); /* perhaps a HELLO that never left */
	dp_lane_move(l, DP_LANE_CLOSED);
	dp_account_connections(l->stream, -1);
	tn_list_unlink(&l->rx_link);
	tn_list_unlink(&l->tx_link);
	l->side->closed(l, status, error);
}

/* How much of `bytes` the next call may move: as much as bulk may still have of this turn. */
static size_t call_limit(const struct dp_lane *l, size_t bytes)
{
	size_t left = l->stream->turn_left;
	return l->urgent || bytes <= left || bytes - left < PIECE_BYTES ? bytes : TN_MAX(left, PIECE_BYTES);
}

static bool turn_over(const struct dp_lane *l) { return !l->urgent && l->stream->turn_left == 0; }

/* Bytes moved: the lane is alive, and is looked at again when that was too long ago. */
static void moved_now(struct dp_lane *l, size_t bytes)
{
	if (!l->urgent)
		l->stream->turn_left -= TN_MIN(l->stream->turn_left, bytes);
	else if (!l->control)
		l->stream->urgent_until_ns = dp_stream_now(l->stream) + URGENT_KEEP_NS;
	l->stream->call_bytes = (l->stream->call_bytes * 7 + bytes) / 8;
	l->moved_ns = dp_stream_now(l->stream);
	dp_stream_timer(l->stream, l->moved_ns + l->stream->cfg.progress_timeout_ns);
}

static void broken(struct dp_lane *l, enum dp_frame_error error)
{
	dp_lane_close(l, TN_PATH_PROTOCOL, error, true);
}

/* ---- sending ---- */

/* Fill iov from the preamble and the ring; returns the number of entries. */
static uint32_t tx_gather(struct dp_lane *l, struct iovec iov[static DP_BYTES_IOV_MAX], size_t *bytes_out)
{
	uint32_t cnt = 0, off = l->tx_done;
	size_t bytes = 0, limit = call_limit(l, TX_CALL_BYTES);
	uint64_t id = l->next_id;
	if (l->pre_left > 0)
		iov[cnt++] = (struct iovec){ l->pre + sizeof l->pre - l->pre_left, bytes = l->pre_left };
	if (l->state != DP_LANE_READY && l->state != DP_LANE_DRAINING) {
		*bytes_out = bytes;
		return cnt;
	}
	for (uint32_t pos = l->tx; pos != l->tail && cnt + 2 <= DP_BYTES_IOV_MAX && bytes < limit; pos++) {
		struct dp_lane_op *op = dp_lane_op_at(l, pos);
		if (op->flags & DP_LANE_OP_DROPPED)
			continue;
		if (!l->side->tx_ready(op))
			break;
		if (off == 0)
			l->side->tx_header(op, id++);
		struct iovec payload = l->side->tx_payload(l, op);
		uint32_t hdr = l->side->tx_hdr_bytes;
		if (off < hdr) {
			iov[cnt++] = (struct iovec){ op->hdr + off, hdr - off };
			bytes += hdr - off;
			off = hdr;
		}
		if (payload.iov_len > off - hdr) {
			payload.iov_base = (uint8_t *)payload.iov_base + (off - hdr);
			payload.iov_len = TN_MIN(payload.iov_len - (off - hdr), TN_MAX(limit, bytes + 1) - bytes);
			iov[cnt++] = payload;
			bytes += payload.iov_len;
		}
		off = 0;
	}
	*bytes_out = bytes;
	return cnt;
}

/* Operations that will never be sent do not stand in front of one that will. */
static void tx_pass_dropped(struct dp_lane *l)
{
	while (l->tx != l->tail) {
		struct dp_lane_op *op = dp_lane_op_at(l, l->tx);
		if (!(op->flags & DP_LANE_OP_DROPPED))
			return;
		l->tx++;
		l->side->tx_whole(l, op);
	}
}

/* n bytes were taken: move the ring on. */
static void tx_advance(struct dp_lane *l, size_t n)
{
	size_t m = TN_MIN(n, (size_t)l->pre_left);
	l->pre_left -= (uint32_t)m;
	if (m > 0 && l->pre_left == 0)
		explicit_bzero(l->pre, sizeof l->pre); /* a HELLO carries a ticket */
	n -= m;
	for (tx_pass_dropped(l); n > 0 && l->tx != l->tail; tx_pass_dropped(l)) {
		struct dp_lane_op *op = dp_lane_op_at(l, l->tx);
		if (l->tx_done == 0)
			l->side->tx_first(l, op);
		size_t left = l->side->tx_hdr_bytes + l->side->tx_payload(l, op).iov_len - l->tx_done;
		m = TN_MIN(n, left);
		n -= m;
		l->tx_done += (uint32_t)m;
		if (m == left) {
			l->tx_done = 0;
			l->tx++;
			l->side->tx_whole(l, op);
		}
	}
	tn_assert_debug(n == 0);
}

/* Entries of iov that belong to the first thing in it, and so fail or move with nothing else. */
static uint32_t tx_first_cnt(struct dp_lane *l)
{
	return l->pre_left == 0 && l->tx_done < l->side->tx_hdr_bytes ? 2 : 1;
}

/* Fault points inside a frame: cut what is written now so that the frame stands half there. */
static void tx_cut(struct dp_lane *l, struct iovec iov[static 2], uint32_t *cnt, size_t *want)
{
	bool header = l->sender != NULL ? TN_HOOK_ARMED(dp_answer_header) : TN_HOOK_ARMED(dp_request_header);
	bool half = l->sender != NULL ? TN_HOOK_ARMED(dp_answer_half) : TN_HOOK_ARMED(dp_request_half);
	if (tn_likely(!header && !half) || l->pre_left > 0 || l->tx_done > 0 || *cnt < 2 || l->tx == l->tail)
		return;
	struct dp_lane_op *op = dp_lane_op_at(l, l->tx);
	if ((op->flags & DP_LANE_OP_DROPPED) || l->side->tx_payload(l, op).iov_len < 2)
		return;
	*cnt = header ? 1 : 2;
	iov[1].iov_len /= 2;
	*want = iov[0].iov_len + (header ? 0 : iov[1].iov_len);
}

static void tx_cut_pass(const struct dp_lane *l)
{
	if (l->sender == NULL && l->tx_done == l->side->tx_hdr_bytes)
		TN_HOOK(dp_request_header);
	else if (l->sender == NULL && l->tx_done > 0)
		TN_HOOK(dp_request_half);
	else if (l->sender != NULL && l->tx_done == l->side->tx_hdr_bytes)
		TN_HOOK(dp_answer_header);
	else if (l->sender != NULL && l->tx_done > 0)
		TN_HOOK(dp_answer_half);
}

/* The first thing to be sent has a page that cannot be had. */
static bool tx_fault(struct dp_lane *l)
{
	tx_pass_dropped(l); /* it is nobody else's page */
	return l->side->fault(l, true);
}

uint32_t dp_lane_transmit(struct dp_lane *l)
{
	uint32_t calls = 0;
	/* Counted whatever comes of it: no error may keep the worker here. The caller kicks the lane again. */
	for (uint32_t round = 0; round < IO_ROUNDS && dp_lane_open(l) && l->writable && !turn_over(l) && tx_pending(l);
	     round++) {
		struct iovec iov[DP_BYTES_IOV_MAX];
		size_t want, moved = 0;
		uint32_t cnt = tx_gather(l, iov, &want);
		tx_cut(l, iov, &cnt, &want);
		tn_status st = l->stream->bytes->writev(&l->bytes, iov, cnt, &moved);
		if (st == TN_FAULT && cnt > tx_first_cnt(l)) /* whose page is it? */
			st = l->stream->bytes->writev(&l->bytes, iov, tx_first_cnt(l), &moved);
		if (st == TN_OK) {
			calls++;
			moved_now(l, moved);
			/* A short write is a full connection or a page that cannot be had. Only the next call tells: after the
			 * latter no event would follow. */
			tx_advance(l, moved);
			tx_cut_pass(l);
		} else if (st == TN_AGAIN) {
			l->writable = false;
		} else if (st != TN_FAULT || !tx_fault(l)) {
			dp_lane_close(l, st == TN_FAULT ? TN_PATH_DOWN : st, DP_FRAME_OK, true);
		}
	}
	return calls;
}

/* ---- receiving ---- */

/* m payload bytes arrived at rx_ptr (or nowhere). */
static void rx_advance(struct dp_lane *l, size_t m)
{
	l->rx_left -= (uint32_t)m;
	if (l->rx_ptr != NULL)
		l->rx_ptr += m;
	if (l->rx_left == 0)
		l->side->rx_payload(l);
	else if (l->sender != NULL)
		TN_HOOK(dp_write_half_in);
	else
		TN_HOOK(dp_read_half_in);
}

/* Payload that came in one read with its header: at most a few hundred bytes, and only after a run of READ requests. */
static bool rx_spill(struct dp_lane *l)
{
	size_t m = TN_MIN(l->rx_left, l->rx_have - l->rx_pos);
	if (m == 0)
		return true;
	if (l->rx_ptr != NULL && !dp_stream_spill(l->stream, l->rx_ptr, l->rx_buf + l->rx_pos, m) &&
	    !l->side->fault(l, false))
		return false;
	l->rx_pos += (uint32_t)m;
	rx_advance(l, m);
	return true;
}

/* Take every whole header that is in the buffer and has room. */
static void rx_parse(struct dp_lane *l)
{
	uint32_t hdr = l->side->rx_hdr_bytes;
	if (l->state == DP_LANE_HELLO_SENT) {
		if (l->rx_have < DP_HELLO_ANSWER_BYTES)
			return;
		l->rx_have = 0; /* nothing more can be there: rx_want asked for no more */
		enum dp_frame_error e = l->side->answer(l, l->rx_buf);
		if (e != DP_FRAME_OK)
			broken(l, e);
		return;
	}
	while (dp_lane_open(l) && l->rx_left == 0 && l->rx_have - l->rx_pos >= hdr && l->side->rx_room(l)) {
		enum dp_frame_error e = l->side->rx_header(l, l->rx_buf + l->rx_pos);
		if (e != DP_FRAME_OK) {
			broken(l, e);
			return;
		}
		l->rx_pos += hdr;
		if (dp_lane_open(l) && l->rx_left > 0 && !rx_spill(l)) {
			dp_lane_close(l, TN_PATH_DOWN, DP_FRAME_OK, true);
			return;
		}
	}
	if (!dp_lane_open(l) || l->rx_pos == 0)
		return;
	l->rx_have -= l->rx_pos;
	memmove(l->rx_buf, l->rx_buf + l->rx_pos, l->rx_have);
	l->rx_pos = 0;
}

/* What the next read may fill. */
static uint32_t rx_targets(struct dp_lane *l, struct iovec iov[static 2], size_t *want_out)
{
	uint32_t cnt = 0;
	size_t want = 0;
	if (l->rx_left > 0) {
		uint32_t len = l->rx_ptr != NULL ? l->rx_left : TN_MIN(l->rx_left, DP_STREAM_SCRATCH_BYTES);
		len = (uint32_t)call_limit(l, len);
		if (l->sender != NULL ? TN_HOOK_ARMED(dp_write_half_in) : TN_HOOK_ARMED(dp_read_half_in))
			len = (len + 1) / 2;
		iov[cnt++] = (struct iovec){ l->rx_ptr != NULL ? l->rx_ptr : l->stream->scratch, want = len };
	}
	if (want == l->rx_left) {
		uint32_t ahead = l->side->rx_want(l);
		if (ahead > l->rx_have) {
			iov[cnt++] = (struct iovec){ l->rx_buf + l->rx_have, ahead - l->rx_have };
			want += ahead - l->rx_have;
		}
	}
	*want_out = want;
	return cnt;
}

/* One read; false when there is nothing more for now (or ever). */
static bool rx_once(struct dp_lane *l)
{
	struct iovec iov[2];
	size_t want, moved = 0;
	uint32_t cnt = rx_targets(l, iov, &want);
	if (cnt == 0)
		return false;
	tn_status st = l->stream->bytes->readv(&l->bytes, iov, cnt, &moved);
	if (st == TN_AGAIN) {
		l->readable = false;
		return false;
	}
	if (st == TN_FAULT && l->rx_left > 0 && l->side->fault(l, false))
		return true;
	if (st == TN_CLOSED) {
		bool half = l->rx_have > 0 && l->rx_have < l->side->rx_hdr_bytes;
		dp_lane_close(l, TN_PATH_DOWN, half ? DP_FRAME_BAD_SIZE : DP_FRAME_OK, false);
		return false;
	}
	if (st != TN_OK) {
		dp_lane_close(l, st == TN_FAULT ? TN_PATH_DOWN : st, DP_FRAME_OK, false);
		return false;
	}
	moved_now(l, moved);
	/* Short: drained, and the provider will call when more arrives. But short of payload it may be a page that cannot be
	 * had, and no event would follow: the next call tells. */
	bool doubt = l->rx_ptr != NULL && l->rx_left > 0 && moved < iov[0].iov_len;
	if (moved < want && !l->hangup && !doubt)
		l->readable = false;
	size_t m = TN_MIN(moved, (size_t)l->rx_left);
	l->rx_have += (uint32_t)(moved - m);
	if (m > 0)
		rx_advance(l, m);
	rx_parse(l);
	return true;
}

static uint32_t finish_connect(struct dp_lane *l)
{
	tn_status st = l->stream->bytes->connected(&l->bytes);
	if (st == TN_AGAIN) {
		l->writable = l->hangup = false;
		return 0;
	}
	if (st != TN_OK)
		dp_lane_close(l, st, DP_FRAME_OK, true);
	else
		l->side->connected(l);
	return 1;
}

uint32_t dp_lane_receive(struct dp_lane *l)
{
	if (l->state == DP_LANE_CONNECTING)
		return finish_connect(l);
	uint32_t calls = 0;
	if (rx_parked(l)) {
		rx_parse(l);
		calls++;
	}
	while (dp_lane_open(l) && calls < IO_ROUNDS && !turn_over(l) && rx_possible(l) && rx_once(l))
		calls++;
	return calls;
}
