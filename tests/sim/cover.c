/* SPDX-License-Identifier: Apache-2.0
 * Counts in shared memory. The tables of the machines are those that the documentation is generated from. */
#include "tests/sim/cover.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "common/assert.h"
#include "dataplane/control_state.h"
#include "dataplane/libtent/states.h"
#include "dataplane/selection/rail.h"
#include "dataplane/staging/pool.h"
#include "dataplane/transport/stream/lane.h"

#define STATES_MAX 8u
#define MACHINES_MAX 24u

struct seen { uint64_t moves[MACHINES_MAX][STATES_MAX][STATES_MAX]; uint64_t hooks[TN_HOOK_CNT]; };
static struct seen *seen;

#define X(from, to, when) { LT_CONTEXT_##from, LT_CONTEXT_##to, when },
static const struct dp_move_row context_moves[] = { LT_CONTEXT_MOVES(X) };
#undef X
#define X(from, to, when) { LT_OBJECT_##from, LT_OBJECT_##to, when },
static const struct dp_move_row object_moves[] = { LT_OBJECT_MOVES(X) };
#undef X
#define X(from, to, when) { LT_SLOT_##from, LT_SLOT_##to, when },
static const struct dp_move_row slot_moves[] = { LT_SLOT_MOVES(X) };
#undef X
#define X(name, text) #text,
static const char *const context_states[] = { LT_CONTEXT_STATES(X) };
static const char *const object_states[] = { LT_OBJECT_STATES(X) };
static const char *const slot_states[] = { LT_SLOT_STATES(X) };
#undef X
static const struct dp_machine client_machines[] = { /* in the order of enum lt_machine */
	{ "context", "", context_states, LT_CONTEXT_STATE_CNT, context_moves, TN_ARRAY_LEN(context_moves) },
	{ "object", "", object_states, LT_OBJECT_STATE_CNT, object_moves, TN_ARRAY_LEN(object_moves) },
	{ "slot", "", slot_states, LT_SLOT_STATE_CNT, slot_moves, TN_ARRAY_LEN(slot_moves) },
};

/* Moves that no seed makes, and why. */
#define IN_ORDER "workers answer in order, so it needs an answer that was kept: unit.dataplane_ctl_refusal"

static const struct { const char *machine, *from, *to, *why; } excused[] = {
	{ "opened segment", "setting", "deleting", "no seed fills a worker's table: unit.dataplane_ctl_refusal does" },
	{ "memory", "adding", "deleting", "one worker is short of memory and the other is not, in few seeds: unit.dataplane_ctl_refusal" },
	{ "queue pair", "adding", "dead", IN_ORDER },
	{ "queue pair", "dead", "free", IN_ORDER },
	{ "opened segment", "setting", "free", IN_ORDER },
	{ "opened segment", "setting", "dead", IN_ORDER },
	{ "opened segment", "live", "dead", IN_ORDER },
	{ "opened segment", "dead", "free", IN_ORDER },
	{ "object", "closing", "live", "libtent counts the publications itself and does not ask" },
};

static const struct dp_machine *const single_machines[] = { &dp_lane_machine, &dp_rail_machine, &dp_stage_machine };

static unsigned machine_cnt(void)
{
	return dp_machine_cnt + DP_CONTROL_OBJECT_CNT + (unsigned)TN_ARRAY_LEN(single_machines) + (unsigned)TN_ARRAY_LEN(client_machines);
}

static const struct dp_machine *machine_at(unsigned i)
{
	if (i < dp_machine_cnt)
		return &dp_machines[i];
	i -= dp_machine_cnt;
	if (i < DP_CONTROL_OBJECT_CNT)
		return &dp_control_machines[i];
	i -= DP_CONTROL_OBJECT_CNT;
	return i < TN_ARRAY_LEN(single_machines) ? single_machines[i] : &client_machines[i - TN_ARRAY_LEN(single_machines)];
}

void sim_cover_init(void)
{
	tn_assert(machine_cnt() <= MACHINES_MAX);
	seen = mmap(NULL, sizeof *seen, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (seen == MAP_FAILED)
		abort();
}

static void on_move(const struct dp_machine *m, unsigned from, unsigned to)
{
	for (unsigned i = 0; i < machine_cnt(); i++)
		if (machine_at(i) == m)
			seen->moves[i][from][to]++;
}

static void on_client_move(enum lt_machine machine, unsigned from, unsigned to)
{
	on_move(&client_machines[machine], from, to);
}

void sim_cover_listen(void)
{
	dp_move_seen = on_move;
	lt_move_seen = on_client_move;
}

void sim_cover_hook(enum tn_hook hook) { seen->hooks[hook]++; }

/* NULL: a move that some seed has to make. */
static const char *why(const struct dp_machine *m, const struct dp_move_row *r)
{
	for (unsigned i = 0; i < TN_ARRAY_LEN(excused); i++)
		if (strcmp(excused[i].machine, m->name) == 0 && strcmp(excused[i].from, m->states[r->from]) == 0 &&
		    strcmp(excused[i].to, m->states[r->to]) == 0)
			return excused[i].why;
	return NULL;
}

unsigned sim_cover_print(FILE *to)
{
	unsigned gaps = 0;
	for (unsigned i = 0; i < machine_cnt(); i++) {
		const struct dp_machine *m = machine_at(i);
		unsigned passed = 0;
		for (unsigned k = 0; k < m->move_cnt; k++)
			passed += seen->moves[i][m->moves[k].from][m->moves[k].to] > 0;
		fprintf(to, "%-16s %3u of %3u moves\n", m->name, passed, m->move_cnt);
		for (unsigned k = 0; k < m->move_cnt; k++) {
			const struct dp_move_row *r = &m->moves[k];
			if (seen->moves[i][r->from][r->to] > 0)
				continue;
			bool fine = why(m, r) != NULL;
			gaps += !fine;
			fprintf(to, "    %s %s -> %s: %s\n", fine ? "excused" : "never", m->states[r->from], m->states[r->to],
				fine ? why(m, r) : r->when);
		}
	}
	size_t hook_cnt;
	const char *const *names = tn_hook_names(&hook_cnt);
	unsigned hooks = 0;
	for (size_t i = 0; i < hook_cnt; i++)
		hooks += seen->hooks[i] > 0;
	fprintf(to, "%-16s %3u of %3zu passed\n", "fault points", hooks, hook_cnt);
	for (size_t i = 0; i < hook_cnt; i++)
		if (seen->hooks[i] == 0)
			fprintf(to, "    not passed: %s\n", names[i]);
	return gaps;
}
