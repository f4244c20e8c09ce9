/* SPDX-License-Identifier: Apache-2.0
 * The board of a path: words about it that the control thread may read at any time, written by the worker at the edges
 * of connections (never per operation). Each word is true by itself; together they may be one edge apart. */
#include <string.h>

#include "dataplane/transport/path_info.h"
#include "dataplane/transport/stream/stream.h"

void dp_path_board(struct dp_path *p)
{
	struct dp_path_board *b = &p->board;
	tn_store_relaxed32(&b->known, p->endpoint_cnt > 0);
	tn_store_relaxed32(&b->lanes, p->ready_cnt);
	tn_store_relaxed32(&b->opening, p->opening_cnt);
	tn_store_relaxed32(&b->control, p->control != NULL && p->control->state == DP_LANE_READY);
	tn_store_relaxed32(&b->hold, p->hold);
	tn_store_relaxed32(&b->why, (uint32_t)(p->fail_cnt > 0 || p->hold ? p->refresh_why : TN_OK));
	tn_store_relaxed32(&b->fail_cnt, p->fail_cnt);
	tn_store_relaxed64(&b->next_try_ns, p->next_try_ns);
}

void dp_path_board_outcome(struct dp_path *p, uint32_t endpoint, tn_status status, int os_error)
{
	struct dp_path_board *b = &p->board;
	endpoint %= DP_ENDPOINTS_MAX;
	tn_store_relaxed64(&b->endpoint_result[endpoint], (uint64_t)(uint32_t)status << 32 | (uint32_t)os_error);
	tn_store_relaxed64(&b->endpoint_ns[endpoint], dp_stream_now(p->stream));
}

void dp_path_board_seen(struct dp_path *p, const uint8_t seen[static 16])
{
	uint64_t half[2];
	memcpy(half, seen, sizeof half);
	tn_store_relaxed64(&p->board.seen[0], half[0]);
	tn_store_relaxed64(&p->board.seen[1], half[1]);
}

void dp_path_board_clear(struct dp_path *p)
{
	for (uint32_t i = 0; i < DP_ENDPOINTS_MAX; i++) {
		tn_store_relaxed64(&p->board.endpoint_ns[i], 0);
		tn_store_relaxed64(&p->board.endpoint_result[i], 0);
	}
}

void dp_path_board_since(struct dp_path *p) { tn_store_relaxed64(&p->board.since_ns, dp_stream_now(p->stream)); }

/* Control thread. */
void dp_stream_path_info(const struct dp_transport *t, uint32_t peer_index, struct dp_path_info *out)
{
	const struct dp_stream *s = tn_container_of((struct dp_transport *)(uintptr_t)t, struct dp_stream, base);
	const struct dp_path *p = dp_path_of(s, peer_index);
	*out = (struct dp_path_info){ .known = false };
	if (p == NULL)
		return;
	const struct dp_path_board *b = &p->board;
	out->known = tn_load_relaxed32(&b->known) != 0;
	out->lanes = tn_load_relaxed32(&b->lanes);
	out->opening = tn_load_relaxed32(&b->opening);
	out->control = tn_load_relaxed32(&b->control) != 0;
	out->hold = tn_load_relaxed32(&b->hold) != 0;
	out->why = (tn_status)(int32_t)tn_load_relaxed32(&b->why);
	out->fail_cnt = tn_load_relaxed32(&b->fail_cnt);
	out->next_try_ns = tn_load_relaxed64(&b->next_try_ns);
	out->since_ns = tn_load_relaxed64(&b->since_ns);
	uint64_t half[2] = { tn_load_relaxed64(&b->seen[0]), tn_load_relaxed64(&b->seen[1]) };
	memcpy(out->seen, half, sizeof half);
	for (uint32_t i = 0; i < DP_ENDPOINTS_MAX; i++) {
		uint64_t result = tn_load_relaxed64(&b->endpoint_result[i]);
		out->endpoints[i].tried_ns = tn_load_relaxed64(&b->endpoint_ns[i]);
		out->endpoints[i].status = (tn_status)(int32_t)(result >> 32);
		out->endpoints[i].os_error = (int)(uint32_t)result;
	}
}
