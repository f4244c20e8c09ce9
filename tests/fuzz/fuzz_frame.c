/* SPDX-License-Identifier: Apache-2.0
 * Headers, HELLO and its answer from foreign bytes: no input reads out of bounds, and what is accepted is exactly what
 * we would have written. First byte: which codec. */
#include <string.h>

#include "common/assert.h"
#include "dataplane/transport/stream/hello.h"
#include "tests/fuzz/fuzz.h"

static void request(const uint8_t *data, size_t len, bool control)
{
	struct dp_frame_req_rule rule = { .id = 1, .frame_bytes = 65536, .control = control };
	struct dp_frame_req q;
	uint8_t back[DP_FRAME_REQ_BYTES];
	if (len >= 16) /* let more than one input in 2^64 past the id */
		for (rule.id = 0, back[0] = 8; back[0] < 16; back[0]++)
			rule.id = rule.id << 8 | data[back[0]];
	if (dp_frame_req_decode(data, len, &rule, &q) != DP_FRAME_OK)
		return;
	tn_assert(q.id == rule.id && q.length <= (control ? DP_FRAME_NOTE_MAX : rule.frame_bytes));
	tn_assert(control == (q.op == DP_FRAME_NOTE || q.op == DP_FRAME_DATAGRAM));
	dp_frame_req_encode(&q, back);
	tn_assert(len == sizeof back && memcmp(back, data, sizeof back) == 0);
}

static void response(const uint8_t *data, size_t len)
{
	struct dp_frame_rsp r;
	uint8_t back[DP_FRAME_RSP_BYTES];
	uint64_t id = len >= 16 ? data[15] : 0;
	if (dp_frame_rsp_decode(data, len, id, 4096, &r) != DP_FRAME_OK)
		return;
	tn_assert(r.status < DP_FRAME_ST_CNT && r.committed == (r.status == DP_FRAME_ST_OK ? 4096u : 0u));
	dp_frame_rsp_encode(&r, back);
	tn_assert(len == sizeof back && memcmp(back, data, sizeof back) == 0);
}

static void hello(const uint8_t *data, size_t len)
{
	struct dp_hello h;
	uint8_t back[DP_HELLO_BYTES];
	if (dp_hello_decode(data, len, &h) != DP_FRAME_OK)
		return;
	tn_assert(h.path_epoch > 0 && !tn_id128_is_zero(&h.ticket) && h.conn_cnt == NULL && h.peer_name[0] == 0);
	dp_hello_encode(&h, back);
	tn_assert(len == sizeof back && memcmp(back, data, sizeof back) == 0);
}

static void hello_answer(const uint8_t *data, size_t len)
{
	struct dp_hello_answer a;
	uint8_t back[DP_HELLO_ANSWER_BYTES];
	if (dp_hello_answer_decode(data, len, &a) != DP_FRAME_OK)
		return;
	tn_assert(a.status < DP_HELLO_STATUS_CNT);
	dp_hello_answer_encode(&a, back);
	tn_assert(len == sizeof back && memcmp(back, data, sizeof back) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	if (len == 0)
		return 0;
	switch (data[0] % 5) {
	case 0: request(data + 1, len - 1, false); break;
	case 1: request(data + 1, len - 1, true); break;
	case 2: response(data + 1, len - 1); break;
	case 3: hello(data + 1, len - 1); break;
	default: hello_answer(data + 1, len - 1); break;
	}
	return 0;
}
