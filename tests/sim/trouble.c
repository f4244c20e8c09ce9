/* SPDX-License-Identifier: Apache-2.0
 * One table of kinds of trouble. One thread. */
#include "tests/sim/trouble.h"

#include <signal.h>
#include <stdio.h>

#include "tests/sim/app.h"
#include "tests/sim/fabric.h"
#include "tests/sim/fd.h"
#include "tests/sim/guests.h"
#include "tests/sim/host.h"
#include "tests/sim/net.h"

#define HOOK_PASSES_MAX 400u

static bool over;
static uint32_t kinds_on;       /* a bit for each kind of the table */
static uint64_t pause_max_ns;   /* between two troubles */

static struct sim_proc *any_dataplane(void) { return sim_hosts[sim_pick(0, SIM_HOSTS - 1)].dataplane; }
static struct sim_proc *any_controlplane(void) { return sim_hosts[sim_pick(0, SIM_HOSTS - 1)].controlplane; }
static struct sim_proc *any_app(void) { return sim_apps[sim_pick(0, SIM_APPS - 1)].proc; }

static struct sim_proc *any_process(void)
{
	switch (sim_pick(0, 4)) {
	case 0:
	case 1: return any_dataplane();
	case 2: return any_controlplane();
	default: return any_app();
	}
}

static void kill_now(void)
{
	struct sim_proc *p = any_process();
	if (p != NULL)
		sim_kill(p);
}

/* At one of the next fault points that it passes, in the middle of what it does there. */
static void kill_at_hook(void)
{
	struct sim_proc *p = sim_chance(3) ? any_process() : any_dataplane();
	if (p != NULL && p->hook_countdown == 0)
		p->hook_countdown = sim_pick(1, HOOK_PASSES_MAX);
}

static void go_on(void *arg, uint64_t num)
{
	(void)num;
	sim_cont(arg);
}

static void stop_for_a_while(void)
{
	struct sim_proc *p = any_process();
	if (p == NULL || p->state != SIM_RUNS)
		return;
	sim_stop(p);
	sim_after(sim_chance(3) ? sim_pick(1, 6000) * TN_NS_PER_MS : sim_pick(1, 200) * TN_NS_PER_MS, go_on, p, 0);
}

/* Between the hosts, and what a host's lanes to itself go over. */
static const struct { uint32_t a, b; } links[] = { { 0, 1 }, { 0, 0 }, { 1, 1 } };

static uint32_t any_link(void) { return sim_chance(3) ? (uint32_t)sim_pick(1, TN_ARRAY_LEN(links) - 1) : 0; }

static void heal(void *arg, uint64_t i)
{
	(void)arg;
	if (sim_link(links[i].a, links[i].b)->cut)
		sim_link_heal(links[i].a, links[i].b);
}

static void cut(void)
{
	uint32_t i = any_link();
	if (sim_link(links[i].a, links[i].b)->cut)
		return;
	sim_link_cut(links[i].a, links[i].b);
	sim_after(sim_chance(3) ? sim_pick(1, 8000) * TN_NS_PER_MS : sim_pick(1, 300) * TN_NS_PER_MS, heal, NULL, i);
}

static void reset(void)
{
	uint32_t i = any_link();
	sim_tcp_reset_next(links[i].a, links[i].b);
}

static void restart_politely(void)
{
	struct sim_proc *p = any_dataplane();
	if (p != NULL && p->state == SIM_RUNS && sim_signal(p, SIGTERM))
		sim_trace("SIGTERM to %s", p->name);
}

static void ask_resume(void *arg, uint64_t host)
{
	(void)arg;
	sim_host_ask((uint32_t)host, "resume", json_object());
}

#define SWITCHES (SIM_HOSTS * TN_ARRAY_LEN(switched))

static const char *const switched[] = { "shm", "tcp", "rdma" };

static void switch_transport(uint32_t host, uint64_t kind, bool enable)
{
	sim_host_ask(host, "transport", json_pack("{s:s,s:b,s:b}", "transport", switched[kind], "enable", enable, "force", 1));
}

static void switch_on(void *arg, uint64_t host_and_kind)
{
	(void)arg;
	switch_transport((uint32_t)(host_and_kind & 1), host_and_kind >> 1, true);
}

static void transport_off_for_a_while(void)
{
	uint64_t which = sim_pick(0, SWITCHES - 1);
	switch_transport((uint32_t)(which & 1), which >> 1, false);
	sim_after(sim_pick(1, 500) * TN_NS_PER_MS, switch_on, NULL, which);
}

static void pause_for_a_while(void)
{
	uint32_t host = (uint32_t)sim_pick(0, SIM_HOSTS - 1);
	sim_host_ask(host, "pause", json_object());
	sim_after(sim_pick(1, 500) * TN_NS_PER_MS, ask_resume, NULL, host);
}

static void drain(void) { sim_host_ask((uint32_t)sim_pick(0, SIM_HOSTS - 1), "drain", json_object()); }

static void reload_host(void *arg, uint64_t host)
{
	struct sim_proc *p = sim_hosts[host].dataplane;
	(void)arg;
	if (p != NULL && p->state == SIM_RUNS)
		(void)sim_signal(p, SIGHUP);
}

static void reload(void)
{
	uint32_t host = (uint32_t)sim_pick(0, SIM_HOSTS - 1);
	sim_host_write_config(&sim_hosts[host], sim_chance(8));
	reload_host(NULL, host);
}

static void slow_link(void)
{
	struct sim_link *l = sim_link(0, 1);
	l->bytes_per_s = sim_pick(1, 4000) << 20;
	l->delay_ns = sim_pick(10000, 5 * TN_NS_PER_MS);
	l->pipe_max = (uint32_t)sim_pick(2048, 262144);
}

/* The next allocations of one process, one or a few of them. */
static void no_memory(void)
{
	struct sim_proc *p = sim_chance(3) ? any_app() : any_dataplane();
	if (p != NULL)
		p->alloc_countdown = sim_pick(1, 40);
}

static void no_longer(void *arg, uint64_t num)
{
	struct sim_proc *p = arg;
	(void)num;
	p->failing = false;
}

static void fail_on_order(void)
{
	struct sim_proc *p = any_dataplane();
	if (p == NULL)
		return;
	p->failing = true;
	sim_after(sim_pick(1, 300) * TN_NS_PER_MS, no_longer, p, 0);
}

static void withdraw(void)
{
	char name[8];
	uint32_t app = (uint32_t)sim_pick(0, SIM_APPS - 1);
	(void)snprintf(name, sizeof name, sim_chance(3) ? "x" : "s%u", app);
	sim_host_ask(app / 2, "segment_withdraw", json_pack("{s:s}", "name", name));
}

/* A data plane dies with much on its way, which arrives when its successor works already. */
static struct { uint32_t host; uint64_t bytes_per_s; } doomed;

static void kill_doomed(void *arg, uint64_t num)
{
	(void)arg;
	(void)num;
	sim_link(0, 1)->bytes_per_s = doomed.bytes_per_s;
	sim_hosts_hurry();
	if (!over && sim_hosts[doomed.host].dataplane != NULL)
		sim_kill(sim_hosts[doomed.host].dataplane);
	doomed.bytes_per_s = 0;
}

static void kill_with_late_bytes(void)
{
	struct sim_link *l = sim_link(0, 1);
	if (doomed.bytes_per_s != 0)
		return;
	doomed.host = (uint32_t)sim_pick(0, SIM_HOSTS - 1);
	doomed.bytes_per_s = l->bytes_per_s;
	l->bytes_per_s = sim_pick(16, 512) << 10;
	l->pipe_max = 262144;
	sim_fabric_delay(40);
	sim_after(sim_pick(1, 15) * TN_NS_PER_MS, kill_doomed, NULL, 0);
}

static void break_fabric(void) { sim_fabric_break((uint32_t)sim_pick(0, SIM_HOSTS - 1)); }
static void lose_parts(void) { sim_fabric_lose((uint32_t)sim_pick(1, 4)); }
static void late_parts(void) { sim_fabric_delay((uint32_t)sim_pick(1, 20)); }

static void stranger(void) { sim_stranger((uint32_t)sim_pick(0, SIM_HOSTS - 1)); }
static void vandal(void) { sim_vandal((uint32_t)sim_pick(0, SIM_HOSTS - 1)); }

static void kill_young(void)
{
	sim_apps_die_young();
}

static const struct { void (*happen)(void); uint32_t weight; } kinds[] = {
	{ kill_now, 3 }, { kill_at_hook, 5 }, { stop_for_a_while, 3 }, { cut, 3 }, { reset, 5 }, { restart_politely, 2 },
	{ reload, 3 }, { slow_link, 2 }, { no_memory, 3 }, { fail_on_order, 1 }, { withdraw, 1 }, { kill_young, 2 },
	{ stranger, 1 }, { vandal, 1 }, { pause_for_a_while, 1 }, { drain, 1 }, { transport_off_for_a_while, 2 },
	{ kill_with_late_bytes, 3 }, { break_fabric, 3 }, { lose_parts, 3 }, { late_parts, 3 },
};

static bool has(void (*what)(void))
{
	for (uint32_t i = 0; i < TN_ARRAY_LEN(kinds) && !over; i++)
		if (kinds[i].happen == what)
			return (kinds_on >> i & 1) != 0;
	return false;
}

bool sim_trouble_kills(void) { return has(kill_young); }
bool sim_trouble_starves(void) { return has(no_memory); }

static void happen(void *arg, uint64_t num)
{
	uint32_t sum = 0, which;
	(void)arg;
	if (over)
		return;
	for (uint32_t i = 0; i < TN_ARRAY_LEN(kinds); i++)
		sum += (kinds_on >> i & 1) * kinds[i].weight;
	if (sum > 0) {
		uint32_t at = (uint32_t)sim_pick(0, sum - 1);
		for (which = 0; which < TN_ARRAY_LEN(kinds); which++) {
			uint32_t weight = (kinds_on >> which & 1) * kinds[which].weight;
			if (at < weight)
				break;
			at -= weight;
		}
		kinds[which].happen();
	}
	sim_after(sim_pick(0, pause_max_ns), happen, NULL, num + 1);
}

void sim_trouble_start(void)
{
	kinds_on = sim_chance(2) ? UINT32_MAX : (uint32_t)sim_pick(0, UINT32_MAX);
	pause_max_ns = sim_pick(10, 400) * TN_NS_PER_MS;
	sim_after(sim_pick(0, 300) * TN_NS_PER_MS, happen, NULL, 0);
}

void sim_trouble_end(void)
{
	over = true;
	for (uint32_t i = 0; i < TN_ARRAY_LEN(links); i++) {
		heal(NULL, i);
		sim_link(links[i].a, links[i].b)->reset_next = false;
	}
	sim_fabric_calm();
	for (uint32_t i = 0; i < SIM_HOSTS; i++)
		sim_host_write_config(&sim_hosts[i], true);
	/* Until every daemon is back. */
	for (uint64_t i = 0; i < 40; i++) {
		sim_after(i * 250 * TN_NS_PER_MS, ask_resume, NULL, i % SIM_HOSTS);
		sim_after(i * 250 * TN_NS_PER_MS, reload_host, NULL, i % SIM_HOSTS);
		sim_after(i * 250 * TN_NS_PER_MS, switch_on, NULL, i % SWITCHES);
	}
	for (struct sim_proc *p = sim.procs; p != NULL; p = p->next) {
		sim_cont(p);
		p->hook_countdown = p->alloc_countdown = 0;
		p->failing = false;
	}
}
