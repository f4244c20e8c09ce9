/* SPDX-License-Identifier: Apache-2.0
 * The states of a rail: names, allowed moves, and what each event does to it. Pure. */
#include "dataplane/selection/rail.h"

#include "common/assert.h"
#include "dataplane/completion/classify.h"

#define X(n, s) #s,
static const char *const names[] = { DP_RAIL_STATES(X) };
#undef X
#define X(f, t, when) { DP_RAIL_##f, DP_RAIL_##t, when },
static const struct dp_move_row moves[] = { DP_RAIL_MOVES(X) };
#undef X
/* One bit per (from, to). */
#define X(f, t, when) | UINT64_C(1) << (DP_RAIL_##f * 8 + DP_RAIL_##t)
static const uint64_t allowed = UINT64_C(0) DP_RAIL_MOVES(X);
#undef X
TN_STATIC_ASSERT((int)DP_RAIL_STATE_CNT <= 8, "the move mask has eight states");

static void move(struct dp_rail *r, enum dp_rail_state to)
{
	tn_assert(allowed >> (r->state * 8u + to) & 1);
	DP_MOVE_SEEN(&dp_rail_machine, r->state, to);
	r->state = (uint8_t)to;
	r->trial = false;
	r->error_cnt = 0;
}

/* Between the bounds, from the second one on twice as long as before, the upper half of it by chance. */
static void cool(struct dp_rail *r, const struct dp_rail_cfg *c, uint64_t now_ns, uint64_t random)
{
	uint64_t most = TN_MAX(c->cool_max_ns, c->cool_min_ns);
	move(r, DP_RAIL_COOLING);
	r->cool_cnt += r->cool_cnt < UINT8_MAX;
	uint64_t wait_ns = dp_backoff_ns(r->cool_cnt, 2 * c->cool_min_ns, most, random);
	r->until_ns = now_ns + TN_MAX(wait_ns, c->cool_min_ns);
}

enum dp_rail_verdict dp_rail_ask(const struct dp_rail *r, uint64_t now_ns)
{
	switch ((enum dp_rail_state)r->state) {
	case DP_RAIL_UP: return DP_RAIL_USE;
	case DP_RAIL_COOLING: return now_ns >= r->until_ns ? DP_RAIL_PROBE : DP_RAIL_NO;
	case DP_RAIL_PROBING: return now_ns >= r->until_ns ? DP_RAIL_LATE : DP_RAIL_NO;
	default: return r->trial ? DP_RAIL_NO : DP_RAIL_TRY;
	}
}

void dp_rail_try(struct dp_rail *r) { r->trial = true; }

void dp_rail_undecided(struct dp_rail *r) { r->trial = false; }

void dp_rail_worked(struct dp_rail *r, uint64_t now_ns)
{
	if (r->state != DP_RAIL_PROBATION)
		return;
	move(r, DP_RAIL_UP);
	r->up_ns = now_ns;
}

/* True when this failure is one too many. */
static bool too_many(struct dp_rail *r, const struct dp_rail_cfg *c, uint64_t now_ns)
{
	if (c->errors_max == 0 || (r->error_cnt > 0 && r->error_ns == now_ns))
		return false;
	if (r->error_cnt == 0 || now_ns - r->window_ns >= c->window_ns) {
		r->window_ns = now_ns;
		r->error_cnt = 0;
	}
	r->error_ns = now_ns;
	return ++r->error_cnt >= c->errors_max;
}

void dp_rail_failed(struct dp_rail *r, const struct dp_rail_cfg *c, uint64_t now_ns, uint64_t random)
{
	if (r->state == DP_RAIL_PROBATION) {
		cool(r, c, now_ns, random);
	} else if (r->state == DP_RAIL_UP && too_many(r, c, now_ns)) {
		if (r->up_ns == 0 || now_ns - r->up_ns >= c->settle_ns)
			r->cool_cnt = 0;
		cool(r, c, now_ns, random);
	}
}

void dp_rail_probe(struct dp_rail *r, uint64_t until_ns)
{
	move(r, DP_RAIL_PROBING);
	r->until_ns = until_ns;
}

void dp_rail_probed(struct dp_rail *r, const struct dp_rail_cfg *c, bool ok, uint64_t now_ns, uint64_t random)
{
	if (ok && r->state != DP_RAIL_UP)
		dp_rail_renewed(r, now_ns);
	else if (!ok && r->state == DP_RAIL_PROBING)
		cool(r, c, now_ns, random);
}

void dp_rail_renewed(struct dp_rail *r, uint64_t now_ns)
{
	if (r->state == DP_RAIL_PROBATION)
		return; /* whose trial is under way */
	r->fresh_ns = now_ns;
	r->error_cnt = 0;
	if (r->state == DP_RAIL_COOLING || r->state == DP_RAIL_PROBING)
		move(r, DP_RAIL_PROBATION);
}

const char *dp_rail_state_name(unsigned state) { return state < TN_ARRAY_LEN(names) ? names[state] : "invalid"; }

const struct dp_machine dp_rail_machine = {
	.name = "rail",
	.what = "The health of the way to one target over one transport, as one worker sees it. `up` is where each begins.",
	.states = names,
	.state_cnt = TN_ARRAY_LEN(names),
	.moves = moves,
	.move_cnt = TN_ARRAY_LEN(moves),
};
