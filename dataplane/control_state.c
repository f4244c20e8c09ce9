/* SPDX-License-Identifier: Apache-2.0
 * The tables of control_state.h as data, and the moves. Control thread. */
#include "dataplane/control_state.h"

#include "common/assert.h"

#define X(n, s) #s,
static const char *const app_names[] = { DP_APP_STATES(X) };
static const char *const qpair_names[] = { DP_QPAIR_STATES(X) };
static const char *const mem_names[] = { DP_MEM_STATES(X) };
static const char *const seg_names[] = { DP_SEG_STATES(X) };
static const char *const opened_names[] = { DP_OPENED_STATES(X) };
static const char *const link_names[] = { DP_LINK_STATES(X) };
static const char *const pair_names[] = { DP_PAIR_STATES(X) };
#undef X

#define X(f, t, when) { DP_APP_##f, DP_APP_##t, when },
static const struct dp_move_row app_moves[] = { DP_APP_MOVES(X) };
#undef X
#define X(f, t, when) { DP_QPAIR_##f, DP_QPAIR_##t, when },
static const struct dp_move_row qpair_moves[] = { DP_QPAIR_MOVES(X) };
#undef X
#define X(f, t, when) { DP_MEM_##f, DP_MEM_##t, when },
static const struct dp_move_row mem_moves[] = { DP_MEM_MOVES(X) };
#undef X
#define X(f, t, when) { DP_SEG_##f, DP_SEG_##t, when },
static const struct dp_move_row seg_moves[] = { DP_SEG_MOVES(X) };
#undef X
#define X(f, t, when) { DP_OPENED_##f, DP_OPENED_##t, when },
static const struct dp_move_row opened_moves[] = { DP_OPENED_MOVES(X) };
#undef X
#define X(f, t, when) { DP_LINK_##f, DP_LINK_##t, when },
static const struct dp_move_row link_moves[] = { DP_LINK_MOVES(X) };
#undef X
#define X(f, t, when) { DP_PAIR_##f, DP_PAIR_##t, when },
static const struct dp_move_row pair_moves[] = { DP_PAIR_MOVES(X) };
#undef X

#define X(P, p, label, text) \
	[DP_CONTROL_##P] = { label, text, p##_names, TN_ARRAY_LEN(p##_names), p##_moves, TN_ARRAY_LEN(p##_moves) },
const struct dp_machine dp_control_machines[DP_CONTROL_OBJECT_CNT] = { DP_CONTROL_OBJECTS(X) };
#undef X

void dp_control_move(enum dp_control_object object, uint8_t *state, unsigned to)
{
	const struct dp_machine *m = &dp_control_machines[object];
	bool allowed = false;

	for (uint32_t i = 0; i < m->move_cnt; i++)
		allowed |= m->moves[i].from == *state && m->moves[i].to == to;
	tn_assert(allowed);
	DP_MOVE_SEEN(m, *state, to);
	*state = (uint8_t)to;
}

const char *dp_control_state_name(enum dp_control_object object, unsigned state)
{
	const struct dp_machine *m = &dp_control_machines[object];

	return state < m->state_cnt ? m->states[state] : "invalid";
}
