/* SPDX-License-Identifier: Apache-2.0
 * State tables and moves of the objects that flow. The allowed-move masks and the rows for the documentation come from
 * the same X lists, so they cannot differ. One worker owns each object. */
#include "dataplane/request/state.h"

#include "common/assert.h"

#define X(n, s) #s,
static const char *const request_names[] = { DP_REQUEST_STATES(X) };
static const char *const owner_names[] = { DP_OWNER_STATES(X) };
static const char *const attempt_names[] = { DP_ATTEMPT_STATES(X) };
static const char *const wait_names[] = { DP_WAITS(X) };
#undef X

#define X(f, t, when) { DP_REQUEST_##f, DP_REQUEST_##t, when },
static const struct dp_move_row request_moves[] = { DP_REQUEST_MOVES(X) };
#undef X
#define X(f, t, when) { DP_OWNER_##f, DP_OWNER_##t, when },
static const struct dp_move_row owner_moves[] = { DP_OWNER_MOVES(X) };
#undef X
#define X(f, t, when) { DP_ATTEMPT_##f, DP_ATTEMPT_##t, when },
static const struct dp_move_row attempt_moves[] = { DP_ATTEMPT_MOVES(X) };
#undef X

/* One bit per (from, to), as a constant: up to 8 states. */
#define BIT(f, t) | UINT64_C(1) << ((f) * 8 + (t))
#define X(f, t, when) BIT(DP_REQUEST_##f, DP_REQUEST_##t)
static const uint64_t request_allowed = UINT64_C(0) DP_REQUEST_MOVES(X);
#undef X
#define X(f, t, when) BIT(DP_OWNER_##f, DP_OWNER_##t)
static const uint64_t owner_allowed = UINT64_C(0) DP_OWNER_MOVES(X);
#undef X
#define X(f, t, when) BIT(DP_ATTEMPT_##f, DP_ATTEMPT_##t)
static const uint64_t attempt_allowed = UINT64_C(0) DP_ATTEMPT_MOVES(X);
#undef X

TN_STATIC_ASSERT((int)DP_REQUEST_STATE_CNT <= 8 && (int)DP_OWNER_STATE_CNT <= 8 && (int)DP_ATTEMPT_STATE_CNT <= 8,
		 "move masks have eight states");

TN_INLINE void recount(uint32_t *population, unsigned from, unsigned to)
{
	population[from] -= from != 0;
	population[to] += to != 0;
}

void dp_request_move(struct dp_states *s, struct dp_request *r, enum dp_request_state to)
{
	tn_assert(request_allowed >> (r->state * 8u + to) & 1);
	DP_MOVE_SEEN(&dp_machines[0], r->state, to);
	recount(s->request, r->state, to);
	r->state = (uint8_t)to;
}

void dp_owner_move(struct dp_states *s, struct dp_owner *o, enum dp_owner_state to)
{
	tn_assert(owner_allowed >> (o->state * 8u + to) & 1);
	DP_MOVE_SEEN(&dp_machines[1], o->state, to);
	recount(s->owner, o->state, to);
	o->state = (uint8_t)to;
}

void dp_attempt_move(struct dp_states *s, struct dp_attempt *a, enum dp_attempt_state to)
{
	tn_assert(attempt_allowed >> (a->state * 8u + to) & 1);
	DP_MOVE_SEEN(&dp_machines[2], a->state, to);
	recount(s->attempt, a->state, to);
	a->state = (uint8_t)to;
}

#define NAME(table, v) ((v) < TN_ARRAY_LEN(table) ? (table)[v] : "invalid")
const char *dp_request_state_name(unsigned state) { return NAME(request_names, state); }
const char *dp_owner_state_name(unsigned state) { return NAME(owner_names, state); }
const char *dp_attempt_state_name(unsigned state) { return NAME(attempt_names, state); }
const char *dp_wait_name(unsigned wait) { return NAME(wait_names, wait); }

#define MACHINE(label, text, names, rows) \
	{ label, text, names, TN_ARRAY_LEN(names), rows, TN_ARRAY_LEN(rows) }
const struct dp_machine dp_machines[] = {
	MACHINE("request", "What the application asked for; one per submission-queue entry that passed validation.",
		request_names, request_moves),
	MACHINE("owner", "What is admitted and scheduled: one request, or contiguous ones merged.", owner_names, owner_moves),
	MACHINE("attempt", "One owner on one transport.", attempt_names, attempt_moves),
};
const uint32_t dp_machine_cnt = TN_ARRAY_LEN(dp_machines);
