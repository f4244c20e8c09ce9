/* SPDX-License-Identifier: Apache-2.0
 * Encoding and checking of HELLO and its answer; see hello.h. */
#include "dataplane/transport/stream/hello.h"

#include "common/bits.h"
#include "common/span.h"

#define HELLO_MAGIC 0x544e5448u  /* "TNTH" */
#define ANSWER_MAGIC 0x544e5441u /* "TNTA" */
#define HELLO_TAIL 108u
#define ANSWER_SEEN 40u
#define ANSWER_TAIL 56u

static bool frame_bytes_valid(uint32_t v) { return v >= DP_FRAME_BYTES_MIN && v <= DP_FRAME_BYTES_MAX; }

void dp_hello_encode(const struct dp_hello *hello, uint8_t out[static DP_HELLO_BYTES])
{
	struct tn_wr w = tn_wr_make(out, DP_HELLO_BYTES);
	tn_wr_u32(&w, HELLO_MAGIC);
	tn_wr_u16(&w, hello->version_min);
	tn_wr_u16(&w, hello->version_max);
	tn_wr_u64(&w, hello->features);
	tn_wr_bytes(&w, hello->sender_session.b, sizeof hello->sender_session.b);
	tn_wr_bytes(&w, hello->receiver_session.b, sizeof hello->receiver_session.b);
	tn_wr_bytes(&w, hello->sender.b, sizeof hello->sender.b);
	tn_wr_bytes(&w, hello->ticket.b, sizeof hello->ticket.b);
	tn_wr_u32(&w, hello->path_epoch);
	tn_wr_u16(&w, hello->worker);
	tn_wr_u16(&w, hello->lane);
	tn_wr_u32(&w, hello->frame_bytes);
	tn_wr_zero(&w, DP_HELLO_BYTES - HELLO_TAIL);
}

void dp_hello_answer_encode(const struct dp_hello_answer *answer, uint8_t out[static DP_HELLO_ANSWER_BYTES])
{
	struct tn_wr w = tn_wr_make(out, DP_HELLO_ANSWER_BYTES);
	tn_wr_u32(&w, ANSWER_MAGIC);
	tn_wr_u16(&w, answer->version);
	tn_wr_u16(&w, answer->status);
	tn_wr_u64(&w, answer->features);
	tn_wr_bytes(&w, answer->session.b, sizeof answer->session.b);
	tn_wr_u32(&w, answer->frame_bytes);
	tn_wr_u32(&w, answer->path_epoch);
	tn_wr_bytes(&w, answer->seen, sizeof answer->seen);
	tn_wr_zero(&w, DP_HELLO_ANSWER_BYTES - ANSWER_TAIL);
}

enum dp_frame_error dp_hello_decode(const uint8_t *buf, size_t len, struct dp_hello *out)
{
	if (len != DP_HELLO_BYTES)
		return DP_FRAME_BAD_SIZE;
	struct dp_hello h = { 0 };
	struct tn_rd r = tn_rd_make(buf, len);
	if (tn_rd_u32(&r) != HELLO_MAGIC)
		return DP_FRAME_BAD_MAGIC;
	h.version_min = tn_rd_u16(&r);
	h.version_max = tn_rd_u16(&r);
	if (h.version_min == 0 || h.version_min > h.version_max)
		return DP_FRAME_BAD_VERSION;
	h.features = tn_rd_u64(&r);
	tn_rd_bytes(&r, h.sender_session.b, sizeof h.sender_session.b);
	tn_rd_bytes(&r, h.receiver_session.b, sizeof h.receiver_session.b);
	tn_rd_bytes(&r, h.sender.b, sizeof h.sender.b);
	tn_rd_bytes(&r, h.ticket.b, sizeof h.ticket.b);
	h.path_epoch = tn_rd_u32(&r);
	h.worker = tn_rd_u16(&r);
	h.lane = tn_rd_u16(&r);
	h.frame_bytes = tn_rd_u32(&r);
	if (tn_id128_is_zero(&h.sender_session) || tn_peer_id_is_zero(&h.sender) || tn_id128_is_zero(&h.ticket) ||
	    h.path_epoch == 0)
		return DP_FRAME_BAD_TICKET;
	if (!frame_bytes_valid(h.frame_bytes))
		return DP_FRAME_BAD_LENGTH;
	if (!tn_all_zero(buf + HELLO_TAIL, DP_HELLO_BYTES - HELLO_TAIL))
		return DP_FRAME_BAD_RESERVED;
	*out = h;
	return DP_FRAME_OK;
}

enum dp_frame_error dp_hello_answer_decode(const uint8_t *buf, size_t len, struct dp_hello_answer *out)
{
	if (len != DP_HELLO_ANSWER_BYTES)
		return DP_FRAME_BAD_SIZE;
	struct dp_hello_answer a = { 0 };
	struct tn_rd r = tn_rd_make(buf, len);
	if (tn_rd_u32(&r) != ANSWER_MAGIC)
		return DP_FRAME_BAD_MAGIC;
	a.version = tn_rd_u16(&r);
	a.status = tn_rd_u16(&r);
	a.features = tn_rd_u64(&r);
	tn_rd_bytes(&r, a.session.b, sizeof a.session.b);
	a.frame_bytes = tn_rd_u32(&r);
	a.path_epoch = tn_rd_u32(&r);
	tn_rd_bytes(&r, a.seen, sizeof a.seen);
	if (a.status >= DP_HELLO_STATUS_CNT)
		return DP_FRAME_BAD_STATUS;
	if (a.status == DP_HELLO_ACCEPTED && a.version != DP_FRAME_VERSION)
		return DP_FRAME_BAD_VERSION;
	if (a.status == DP_HELLO_ACCEPTED && !frame_bytes_valid(a.frame_bytes))
		return DP_FRAME_BAD_LENGTH;
	uint32_t zero_from = a.status == DP_HELLO_ADDRESS ? ANSWER_TAIL : ANSWER_SEEN;
	if (!tn_all_zero(buf + zero_from, DP_HELLO_ANSWER_BYTES - zero_from))
		return DP_FRAME_BAD_RESERVED;
	*out = a;
	return DP_FRAME_OK;
}

uint16_t dp_hello_version_choose(const struct dp_hello *hello)
{
	bool ours = hello->version_min <= DP_FRAME_VERSION && hello->version_max >= DP_FRAME_VERSION;
	return ours ? DP_FRAME_VERSION : 0;
}

uint64_t dp_hello_features_agree(uint64_t offered)
{
	return offered & DP_HELLO_FEATURE_NOTES; /* bit 0 is kept for the payload checksum */
}
