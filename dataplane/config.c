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

/* "0-3,8": the CPUs as a person writes them, cut to fit. */
static void cpus_text(const uint32_t *cpus, uint32_t cnt, char *out, size_t out_bytes)
{
	size_t at = 0;

	out[0] = '\0';
	for (uint32_t i = 0, last; i < cnt && at < out_bytes; i = last + 1) {
		for (last = i; last + 1 < cnt && cpus[last + 1] == cpus[last] + 1;)
			last++;
		at += (size_t)snprintf(out + at, out_bytes - at, last > i ? "%s%u-%u" : "%s%u", i > 0 ? "," : "", cpus[i],
		                       cpus[last]);
	}
}

static bool allowed(const uint32_t *cpus, uint32_t cnt, uint64_t cpu)
{
	for (uint32_t i = 0; i < cnt; i++)
		if (cpus[i] == cpu)
			return true;
	return false;
}

/* Every entry must be a CPU of ours: which one, where it is written, and what there is instead. */
static tn_status check_cpus(const struct tn_config *cfg, const uint32_t *cpus, uint32_t cpu_cnt, char *err,
                            size_t err_bytes)
{
	char origin[256], have[64];

	for (unsigned i = 0; i < tn_config_list_cnt(cfg, TN_CFG_WORKERS_CPUS); i++) {
		uint64_t cpu = tn_config_list_u64(cfg, TN_CFG_WORKERS_CPUS, i);
		if (allowed(cpus, cpu_cnt, cpu))
			continue;
		tn_config_origin_text(tn_config_origin(cfg, TN_CFG_WORKERS_CPUS), origin, sizeof origin);
		cpus_text(cpus, cpu_cnt, have, sizeof have);
		(void)snprintf(err, err_bytes, "%s: workers/cpus[%u]: this process may not use CPU %llu, only %s (taskset, "
		               "cpuset)", origin, i, (unsigned long long)cpu, have);
		return TN_CONFIG;
	}
	return TN_OK;
}

tn_status dp_plan_make(const struct tn_config *cfg, struct dp_plan *out, char *err, size_t err_bytes)
{
	uint32_t cpus[CPU_SETSIZE];
	uint32_t cpu_cnt = cpus_allowed(cpus);
	unsigned given = tn_config_list_cnt(cfg, TN_CFG_WORKERS_CPUS);
	struct dp_plan plan = { .worker_cnt = TN_MIN(tn_config_worker_cnt(cfg, cpu_cnt), SHR_WORKERS_MAX) };
	tn_status s = check_cpus(cfg, cpus, cpu_cnt, err, err_bytes);

	if (s != TN_OK)
		return s;
	for (uint32_t i = 0; i < plan.worker_cnt; i++) {
		if (i < given)
			plan.cpus[i] = (uint32_t)tn_config_list_u64(cfg, TN_CFG_WORKERS_CPUS, i);
		else
			plan.cpus[i] = cpu_cnt > plan.worker_cnt ? cpus[i] : UINT32_MAX;
	}
	plan.transports = dp_registry_mask(cfg);
	plan.event_slots = slots(tn_config_u64(cfg, TN_CFG_OBS_EVENT_SLOTS));
	plan.keep_slots = slots(tn_config_u64(cfg, TN_CFG_OBS_KEEP_SLOTS));
	*out = plan;
	return TN_OK;
}
