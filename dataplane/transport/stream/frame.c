/* SPDX-License-Identifier: Apache-2.0
 * Encoding and checking of request and response headers; see frame.h. */
#include "dataplane/transport/stream/frame.h"

#include "common/span.h"

#define REQ_MAGIC 0x544e5452u /* "TNTR" */
#define RSP_MAGIC 0x544e5453u /* "TNTS" */
#define RSP_TOUCHED UINT64_C(1) /* bit of the flags */

void dp_frame_req_encode(const struct dp_frame_req *req, uint8_t out[static DP_FRAME_REQ_BYTES])
{
	tn_be32_store(out, REQ_MAGIC);
	tn_be16_store(out + 4, DP_FRAME_VERSION);
	out[6] = req->op;
	out[7] = 0;
	tn_be64_store(out + 8, req->id);
	tn_be64_store(out + 16, req->registration);
	tn_be64_store(out + 24, req->offset);
	tn_be64_store(out + 32, req->length);
	tn_be64_store(out + 40, 0);
}

void dp_frame_rsp_encode(const struct dp_frame_rsp *rsp, uint8_t out[static DP_FRAME_RSP_BYTES])
{
	tn_be32_store(out, RSP_MAGIC);
	tn_be16_store(out + 4, DP_FRAME_VERSION);
	tn_be16_store(out + 6, rsp->status);
	tn_be64_store(out + 8, rsp->id);
	tn_be64_store(out + 16, rsp->committed);
	tn_be64_store(out + 24, rsp->touched ? RSP_TOUCHED : 0);
}

static bool req_op_known(uint8_t op, bool control)
{
	if (control)
		return op == DP_FRAME_NOTE || op == DP_FRAME_DATAGRAM;
	return op == DP_FRAME_READ || op == DP_FRAME_WRITE;
}

static bool req_length_valid(uint8_t op, uint64_t length, uint32_t frame_bytes)
{
	switch (op) {
	case DP_FRAME_NOTE: return length <= DP_FRAME_NOTE_MAX;
	case DP_FRAME_DATAGRAM: return length >= 1 && length <= DP_FRAME_DATAGRAM_MAX;
	default: return length >= 1 && length <= frame_bytes;
	}
}

enum dp_frame_error dp_frame_req_decode(const uint8_t *buf, size_t len, const struct dp_frame_req_rule *rule,
                                        struct dp_frame_req *out)
{
	if (len != DP_FRAME_REQ_BYTES)
		return DP_FRAME_BAD_SIZE;
	if (tn_be32_load(buf) != REQ_MAGIC)
		return DP_FRAME_BAD_MAGIC;
	if (tn_be16_load(buf + 4) != DP_FRAME_VERSION)
		return DP_FRAME_BAD_VERSION;
	struct dp_frame_req req = {
		.op = buf[6],
		.id = tn_be64_load(buf + 8),
		.registration = tn_be64_load(buf + 16),
		.offset = tn_be64_load(buf + 24),
		.length = tn_be64_load(buf + 32),
	};
	if (!req_op_known(req.op, rule->control))
		return DP_FRAME_BAD_OPCODE;
	if (buf[7] != 0)
		return DP_FRAME_BAD_RESERVED;
	if (req.id != rule->id)
		return DP_FRAME_BAD_ID;
	if (!req_length_valid(req.op, req.length, rule->frame_bytes))
		return DP_FRAME_BAD_LENGTH;
	if (tn_be64_load(buf + 40) != 0)
		return DP_FRAME_BAD_RESERVED;
	*out = req;
	return DP_FRAME_OK;
}

enum dp_frame_error dp_frame_rsp_decode(const uint8_t *buf, size_t len, uint64_t id, uint64_t length,
                                        struct dp_frame_rsp *out)
{
	if (len != DP_FRAME_RSP_BYTES)
		return DP_FRAME_BAD_SIZE;
	if (tn_be32_load(buf) != RSP_MAGIC)
		return DP_FRAME_BAD_MAGIC;
	if (tn_be16_load(buf + 4) != DP_FRAME_VERSION)
		return DP_FRAME_BAD_VERSION;
	struct dp_frame_rsp rsp = {
		.status = tn_be16_load(buf + 6),
		.id = tn_be64_load(buf + 8),
		.committed = tn_be64_load(buf + 16),
	};
	if (rsp.status >= DP_FRAME_ST_CNT)
		return DP_FRAME_BAD_STATUS;
	if (rsp.id != id)
		return DP_FRAME_BAD_ID;
	if (rsp.committed != (rsp.status == DP_FRAME_ST_OK ? length : 0))
		return DP_FRAME_BAD_COMMITTED;
	uint64_t flags = tn_be64_load(buf + 24);
	if ((flags & ~RSP_TOUCHED) != 0 || (flags != 0 && rsp.status == DP_FRAME_ST_OK))
		return DP_FRAME_BAD_RESERVED;
	rsp.touched = flags != 0;
	*out = rsp;
	return DP_FRAME_OK;
}
