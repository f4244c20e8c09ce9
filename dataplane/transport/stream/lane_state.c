/* SPDX-License-Identifier: Apache-2.0
 * The states of a lane: names, allowed moves and the only function that makes a move, from the X lists of lane.h. */
#include "common/assert.h"
#include "dataplane/request/state.h"
#include "dataplane/transport/stream/lane.h"

#define X(n, s) #s,
static const char *const names[] = { DP_LANE_STATES(X) };
#undef X
#define X(f, t, when) { DP_LANE_##f, DP_LANE_##t, when },
static const struct dp_move_row moves[] = { DP_LANE_MOVES(X) };
#undef X
/* One bit per (from, to). */
#define X(f, t, when) | UINT64_C(1) << (DP_LANE_##f * 8 + DP_LANE_##t)
static const uint64_t allowed = UINT64_C(0) DP_LANE_MOVES(X);
#undef X
TN_STATIC_ASSERT((int)DP_LANE_STATE_CNT <= 8, "the move mask has eight states");

void dp_lane_move(struct dp_lane *l, enum dp_lane_state to)
{
	tn_assert(allowed >> (l->state * 8u + to) & 1);
	DP_MOVE_SEEN(&dp_lane_machine, l->state, to);
	l->state = (uint8_t)to;
}

const char *dp_lane_state_name(unsigned state) { return state < TN_ARRAY_LEN(names) ? names[state] : "invalid"; }

const struct dp_machine dp_lane_machine = {
	.name = "lane",
	.what = "One connection of a framed transport, at either end. `closed` is a free slot.",
	.states = names,
	.state_cnt = TN_ARRAY_LEN(names),
	.moves = moves,
	.move_cnt = TN_ARRAY_LEN(moves),
};
