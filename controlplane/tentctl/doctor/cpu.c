/* SPDX-License-Identifier: Apache-2.0
 * Checks of CPUs: those that the data plane may use, and how much of them, against the workers that are configured. */
#include <stdlib.h>
#include <string.h>

#include "controlplane/tentctl/doctor/doctor.h"

static bool busy(const struct tctl_doctor *d)
{
	return tn_config_enum(d->config, TN_CFG_POLL_MODE) == TN_POLL_MODE_BUSY;
}

static bool listed_cpus_allowed(struct tctl_doctor *d, const bool *cpus)
{
	unsigned wrong = 0, n = tn_config_list_cnt(d->config, TN_CFG_WORKERS_CPUS);
	for (unsigned i = 0; i < n; i++) {
		uint64_t cpu = tn_config_list_u64(d->config, TN_CFG_WORKERS_CPUS, i);
		if (cpu < 1024 && cpus[cpu])
			continue;
		tctl_found(d, TCTL_GRADE_FAIL,
			   "workers/cpus names CPU %llu, which the process may not use: the data plane will not start",
			   (unsigned long long)cpu);
		tctl_fix(d, "taskset -pc $$   # shows what is allowed; change workers/cpus, or the cpuset "
			    "(AllowedCPUs=) of the unit");
		wrong++;
	}
	return wrong == 0;
}

void tctl_check_affinity(struct tctl_doctor *d)
{
	bool cpus[1024];
	unsigned cnt = tctl_doctor_cpus(d, cpus), workers = tctl_doctor_workers(d);
	if (cnt == 0) {
		tctl_found(d, TCTL_GRADE_WARN, "the allowed CPUs cannot be read");
		return;
	}
	if (!listed_cpus_allowed(d, cpus))
		return;
	if (workers > cnt || (workers == cnt && busy(d))) {
		tctl_found(d, TCTL_GRADE_WARN, "%u worker%s%s for %u CPU%s: %s", workers,
			   tn_plural(workers), busy(d) ? " without sleep" : "", cnt, tn_plural(cnt),
			   workers > cnt ? "they take turns and latency suffers"
					 : "nothing is left for applications and control threads");
		tctl_fix(d, "set workers/count to %u%s", cnt > 1 ? cnt - 1 : 1,
			 busy(d) ? ", or poll/mode to adaptive" : "");
		return;
	}
	tctl_found(d, TCTL_GRADE_OK, "%u worker%s, %u CPU%s allowed", workers, tn_plural(workers), cnt,
		   tn_plural(cnt));
}

/* ---- cgroup quota, in CPUs; 0 = none ---- */

static double quota_v2(const struct tctl_doctor *d, char *group)
{
	double least = 0;
	for (;;) { /* every level counts */
		char path[600], text[64];
		long long quota, period;
		snprintf(path, sizeof path, "/sys/fs/cgroup%s/cpu.max", strcmp(group, "/") == 0 ? "" : group);
		if (tctl_host_read(d->host, path, text, sizeof text) &&
		    sscanf(text, "%lld %lld", &quota, &period) == 2 && period > 0) {
			double here = (double)quota / (double)period;
			least = least == 0 || here < least ? here : least;
		}
		char *slash = strrchr(group, '/');
		if (slash == NULL || group[1] == '\0')
			return least;
		slash[slash == group] = '\0';
	}
}

static bool read_number(const struct tctl_doctor *d, const char *group, const char *file, long long *out)
{
	static const char *const mounts[] = { "cpu,cpuacct", "cpu" };
	char path[600], text[64];
	for (unsigned i = 0; i < TN_ARRAY_LEN(mounts); i++) {
		snprintf(path, sizeof path, "/sys/fs/cgroup/%s%s/%s", mounts[i], strcmp(group, "/") == 0 ? "" : group,
			 file);
		if (tctl_host_read(d->host, path, text, sizeof text) && sscanf(text, "%lld", out) == 1)
			return true;
		/* Inside a container the path of the host is not there; its own group is mounted at the top. */
		snprintf(path, sizeof path, "/sys/fs/cgroup/%s/%s", mounts[i], file);
		if (tctl_host_read(d->host, path, text, sizeof text) && sscanf(text, "%lld", out) == 1)
			return true;
	}
	return false;
}

static double quota_v1(const struct tctl_doctor *d, const char *group)
{
	long long quota, period;
	return read_number(d, group, "cpu.cfs_quota_us", &quota) &&
		       read_number(d, group, "cpu.cfs_period_us", &period) && quota > 0 && period > 0
		   ? (double)quota / (double)period
		   : 0;
}

static double quota_of(const struct tctl_doctor *d)
{
	char path[64], who[16], text[8192], *rest = text, *line;
	double least = 0;
	snprintf(path, sizeof path, "/proc/%s/cgroup", tctl_doctor_whose(d, who));
	if (!tctl_host_read(d->host, path, text, sizeof text))
		return 0;
	while ((line = strsep(&rest, "\n")) != NULL) { /* HIERARCHY:CONTROLLERS:GROUP */
		char *controllers = strchr(line, ':'),
		     *group = controllers != NULL ? strchr(controllers + 1, ':') : NULL;
		if (group == NULL)
			continue;
		*group++ = '\0';
		double here = 0;
		if (controllers[1] == '\0' && strncmp(line, "0:", 2) == 0)
			here = quota_v2(d, group);
		else if (strcmp(controllers + 1, "cpu") == 0 || strcmp(controllers + 1, "cpu,cpuacct") == 0 ||
			 strcmp(controllers + 1, "cpuacct,cpu") == 0)
			here = quota_v1(d, group);
		least = here > 0 && (least == 0 || here < least) ? here : least;
	}
	return least;
}

void tctl_check_cgroup(struct tctl_doctor *d)
{
	double quota = quota_of(d);
	unsigned workers = tctl_doctor_workers(d);
	double want = workers + (busy(d) ? 0.5 : 0.0);
	if (quota == 0) {
		tctl_found(d, TCTL_GRADE_OK, "no CPU quota");
	} else if (quota < want) {
		tctl_found(
		    d, TCTL_GRADE_WARN,
		    "its cgroup may use %.2f CPUs, too few for %u worker%s%s: it is stopped for parts of each period, "
		    "which looks like latency spikes",
		    quota, workers, tn_plural(workers), busy(d) ? " without sleep" : "");
		tctl_fix(d, "raise the quota (systemd: CPUQuota=%u%%; Kubernetes: limits.cpu), or lower workers/count",
			 (workers + 1) * 100);
	} else {
		tctl_found(d, TCTL_GRADE_OK, "its cgroup may use %.2f CPUs", quota);
	}
}
