/* SPDX-License-Identifier: Apache-2.0
 * A worker's thread in the simulator: the real steps of a real worker, in the order of its own loop, with the checks that
 * hold after every single step. One thread. */
#include "dataplane/worker.h"

#include "common/metrics_check.h"
#include "dataplane/worker_state.h"
#include "tests/sim/app.h"
#include "tests/sim/host.h"
#include "tests/sim/kernel.h"

tn_status __wrap_dp_worker_start(struct dp_worker *w, uint32_t cpu);
void __wrap_dp_worker_join(struct dp_worker *w, uint64_t deadline_ns);

static void check_equations(const struct dp_worker *w)
{
	struct tn_equation_breach b;
	if (w->stats.m.cells == NULL || tn_metric_equations_check((const uint64_t *)(uintptr_t)w->stats.m.cells, &b, 1) == 0)
		return;
	sim_fail("equations", "worker %u: %u: %s, %s: %lld against %lld", w->index, b.equation, b.text, b.where, (long long)b.left,
		 (long long)b.right);
}

/* What is due at the time of a step is done in it. */
static void check_deadlines(const struct dp_worker *w)
{
	sim_check(w->stopping || dp_heap_next_ns(&w->deadlines) > w->now_ns, "deadlines", "worker %u left a request behind its deadline",
		  w->index);
}

/* Windows are exactly what dispatched owners hold. */
static void check_windows(const struct dp_worker *w)
{
	const struct dp_states *s = &w->pools.states;
	uint32_t held = s->owner[DP_OWNER_DISPATCHED] + s->owner[DP_OWNER_DONE];
	sim_check(dp_admission_out_owners(&w->admission) == held, "windows",
		  "worker %u: %u owners in the windows, %u dispatched", w->index, dp_admission_out_owners(&w->admission),
		  held);
	sim_check(w->admission.queued == s->owner[DP_OWNER_QUEUED], "windows", "worker %u: %u owners queued, %u in that state", w->index,
		  w->admission.queued, s->owner[DP_OWNER_QUEUED]);
}

static void check_step(const struct dp_worker *w)
{
	check_equations(w);
	check_deadlines(w);
	check_windows(w);
}

/* Something else has its CPU for long. Applications go on meanwhile, or die. */
static void stall(const struct sim_host *h)
{
	uint64_t ns = sim_pick(1, 30) * TN_NS_PER_MS;
	if (sim_chance(2))
		sim_app_kill_in(h->index, sim_pick(0, ns));
	sim_sleep(ns);
}

static void *worker_main(void *arg)
{
	struct dp_worker *w = arg;
	struct sim_host *h = &sim_hosts[sim_self()->host];
	for (unsigned i = 0; i < SIM_WORKERS_MAX; i++) {
		if (h->workers[i] == NULL) {
			h->workers[i] = w;
			break;
		}
	}
	w->now_ns = w->last_work_ns = tn_now_ns();
	tn_store_relaxed32(&w->stats.block->alive, 1);
	while (!w->stopped && !tn_load_relaxed32(&w->abort)) {
		uint32_t work = dp_worker_step(w, tn_now_ns());
		uint64_t until_ns;
		check_step(w);
		if (work > 0 || dp_worker_next_ns(w) <= w->now_ns) {
			if (sim_chance(800))
				stall(h);
			sim_sleep(sim_pick(300, 3000));
		} else if (dp_worker_sleep_begin(w, &until_ns)) {
			uint32_t served = dp_poller_sleep(&w->poller, until_ns - w->now_ns);
			dp_worker_sleep_end(w, tn_now_ns(), served);
		}
	}
	(void)dp_cq_flush(&w->completion, UINT64_MAX);
	tn_store_relaxed32(&w->stats.block->alive, 0);
	tn_store_release32(&w->exited, 1);
	return NULL;
}

tn_status __wrap_dp_worker_start(struct dp_worker *w, uint32_t cpu)
{
	w->cpu = cpu;
	w->started = true;
	(void)sim_spawn(sim_self(), ".worker", worker_main, w);
	return TN_OK;
}

void __wrap_dp_worker_join(struct dp_worker *w, uint64_t deadline_ns)
{
	if (!w->started)
		return;
	while (!tn_load_acquire32(&w->exited) && tn_now_ns() < deadline_ns)
		sim_sleep(TN_NS_PER_MS);
	tn_store_relaxed32(&w->abort, 1);
	while (!tn_load_acquire32(&w->exited))
		sim_sleep(TN_NS_PER_MS);
	w->started = false;
}
