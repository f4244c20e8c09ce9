/* SPDX-License-Identifier: Apache-2.0
 * Acts of a seed: hosts and applications start; things go wrong for a while; things stop going wrong, and everything must
 * heal, drain and end. */
#include "tests/sim/story.h"

#include <signal.h>

#include "dataplane/worker_state.h"
#include "tests/sim/app.h"
#include "tests/sim/fabric.h"
#include "tests/sim/fd.h"
#include "tests/sim/guests.h"
#include "tests/sim/host.h"
#include "tests/sim/net.h"
#include "tests/sim/trouble.h"

#define TROUBLE_EVENTS 16000u
#define EVENTS_MIN 20000u
#define EVENTS_MAX 400000u
#define HEAL_NS (12 * TN_NS_PER_S)  /* from the end of the trouble until everybody moves bytes with everybody */
#define END_NS (60 * TN_NS_PER_S)   /* from the wish to end until all is given back */

static void look(void *arg, uint64_t num)
{
	(void)arg;
	sim_model_look();
	sim_after(sim_pick(20, 400) * TN_NS_PER_US, look, NULL, num + 1);
}

static bool all_drained(void)
{
	for (uint32_t i = 0; i < SIM_APPS; i++)
		if (!sim_apps[i].drained)
			return false;
	return sim_guests_gone();
}

static bool all_healed(void)
{
	for (uint32_t i = 0; i < SIM_APPS; i++)
		if (sim_apps[i].healed_ns == 0)
			return false;
	return true;
}

/* Runs until cond, or fails with this name when it takes longer than `ns`. */
static void run_until(bool (*cond)(void), uint64_t ns, const char *check, const char *what)
{
	uint64_t until_ns = sim.now_ns + ns;
	while (!cond()) {
		if (sim.now_ns >= until_ns || sim.events >= EVENTS_MAX) {
			sim_model_print();
			sim_apps_print();
		}
		sim_check(sim.now_ns < until_ns, check, "%s", what);
		sim_check(sim.events < EVENTS_MAX, check, "%s: %u events were not enough", what, EVENTS_MAX);
		(void)sim_run(sim.events + 64);
	}
}

/* Nothing of an application that left is left. */
static void check_workers_empty(void)
{
	for (uint32_t h = 0; h < SIM_HOSTS; h++) {
		for (unsigned i = 0; i < SIM_WORKERS_MAX && sim_hosts[h].workers[i] != NULL; i++) {
			const struct dp_worker *w = sim_hosts[h].workers[i];
			const struct dp_pools *p = &w->pools;
			sim_check(p->requests.live + p->owners.live + p->attempts.live + p->batches.live + p->notes.live + p->tasks.live == 0, "leak",
				  "host %u worker %u: %u requests, %u owners, %u attempts, %u batches, %u notices", h, i, p->requests.live,
				  p->owners.live, p->attempts.live, p->batches.live, p->notes.live);
			sim_check(tn_list_empty(&w->qps) && tn_list_empty(&w->waiting) && tn_list_empty(&w->quiescing), "leak",
				  "host %u worker %u: something is left in its lists", h, i);
			sim_check(dp_admission_out_bytes(&w->admission) == 0, "leak",
				  "host %u worker %u: %llu bytes in its window", h, i, (unsigned long long)dp_admission_out_bytes(&w->admission));
		}
	}
}

static bool daemons_ended(void)
{
	for (uint32_t h = 0; h < SIM_HOSTS; h++)
		if (sim_hosts[h].dataplane->state != SIM_DEAD)
			return false;
	return true;
}

void sim_story(const char *dir)
{
	sim_link_init();
	sim_fabric_init(sim_chance(3));
	sim_model_init();
	sim_hosts_start(dir);
	sim_apps_start();
	sim_trouble_start();
	look(NULL, 0);
	(void)sim_run(TROUBLE_EVENTS);
	sim_trace("the trouble is over");
	sim_trouble_end();
	sim_model_calm();
	sim_apps_calm(sim.now_ns + HEAL_NS);
	run_until(all_healed, HEAL_NS, "heal", "not all applications reach all others again");
	if (sim.events < EVENTS_MIN)
		(void)sim_run(EVENTS_MIN);
	sim_apps_calm(sim.now_ns);
	run_until(all_drained, END_NS, "drain", "not all applications ended");
	uint64_t until_ns = sim.now_ns + 100 * TN_NS_PER_MS;
	while (sim.now_ns < until_ns)
		(void)sim_run(sim.events + 16);
	sim_model_look_at_all();
	sim_model_end();
	check_workers_empty();
	sim_hosts_let_die();
	for (uint32_t h = 0; h < SIM_HOSTS; h++)
		(void)sim_signal(sim_hosts[h].dataplane, SIGTERM);
	run_until(daemons_ended, 15 * TN_NS_PER_S, "stop", "a data plane does not stop");
}
