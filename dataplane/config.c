/* SPDX-License-Identifier: Apache-2.0
 * The plan of a start: worker count and CPUs by the rules that common/config_schema.def documents. Main thread. */
#include "dataplane/config.h"

#include <sched.h>
#include <stdio.h>

#include "dataplane/transport/registry.h"
#include "shm-ring/layout.h"

static uint32_t slots(uint64_t wanted)
{
	uint32_t n = SHR_EVENT_SLOTS_MIN;

	while (n < wanted && n < SHR_EVENT_SLOTS_MAX)
		n *= 2;
	return n;
}

/* CPUs that this process may use, in order; at least one. */
static uint32_t cpus_allowed(uint32_t out[static CPU_SETSIZE])
{
	cpu_set_t set;
	uint32_t cnt = 0;

	CPU_ZERO(&set);
	if (sched_getaffinity(0, sizeof set, &set) != 0)
		CPU_SET(0, &set);
	for (uint32_t cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &set))
			out[cnt++] = cpu;
	return cnt;
}

static bool allowed(const uint32_t *cpus, uint32_t cnt, uint64_t cpu)
{
	for (uint32_t i = 0; i < cnt; i++)
		if (cpus[i] == cpu)
			return true;
	return false;
}

tn_status dp_plan_make(const struct tn_config *cfg, struct dp_plan *out, char err[static TN_ERR_TEXT])
{
	uint32_t cpus[CPU_SETSIZE];
	uint32_t cpu_cnt = cpus_allowed(cpus);
	unsigned given = tn_config_list_cnt(cfg, TN_CFG_WORKERS_CPUS);
	struct dp_plan plan = { .worker_cnt = TN_MIN(tn_config_worker_cnt(cfg, cpu_cnt), SHR_WORKERS_MAX) };

	for (uint32_t i = 0; i < plan.worker_cnt; i++) {
		plan.cpus[i] = cpu_cnt > plan.worker_cnt ? cpus[i] : UINT32_MAX;
		if (i >= given)
			continue;
		uint64_t cpu = tn_config_list_u64(cfg, TN_CFG_WORKERS_CPUS, i);
		if (!allowed(cpus, cpu_cnt, cpu)) {
			(void)snprintf(err, TN_ERR_TEXT, "workers/cpus: this process may not use CPU %llu (see taskset -p, cpusets)",
			               (unsigned long long)cpu);
			return TN_CONFIG;
		}
		plan.cpus[i] = (uint32_t)cpu;
	}
	plan.transports = dp_registry_mask(cfg);
	plan.event_slots = slots(tn_config_u64(cfg, TN_CFG_OBS_EVENT_SLOTS));
	plan.keep_slots = slots(tn_config_u64(cfg, TN_CFG_OBS_KEEP_SLOTS));
	*out = plan;
	return TN_OK;
}
