/* SPDX-License-Identifier: Apache-2.0
 * Checks of memory, file descriptors and room on tmpfs. */
#include <stdlib.h>
#include <string.h>

#include "common/units.h"
#include "controlplane/tentctl/doctor/doctor.h"
#include "shm-ring/layout.h"

/* "HugePages_Total:      64" of /proc/meminfo; kB become bytes. False when the line is not there. */
static bool meminfo(const char *text, const char *key, uint64_t *out)
{
	const char *p = strstr(text, key);
	char *end;
	if (p == NULL || p[strlen(key)] != ':')
		return false;
	*out = strtoull(p + strlen(key) + 1, &end, 10);
	if (strncmp(end, " kB", 3) == 0)
		*out *= 1024;
	return true;
}

void tctl_check_hugepages(struct tctl_doctor *d)
{
	char text[8192], size[TN_UNITS_TEXT];
	uint64_t total = 0, left = 0, bytes = 0;
	if (!tctl_host_read(d->host, "/proc/meminfo", text, sizeof text) || !meminfo(text, "HugePages_Total", &total) ||
	    !meminfo(text, "HugePages_Free", &left) || !meminfo(text, "Hugepagesize", &bytes)) {
		tctl_found(d, TCTL_GRADE_OK, "this kernel has no hugepages; applications get ordinary memory");
		return;
	}
	tn_bytes_format(bytes, size);
	if (total == 0) {
		tctl_found(d, TCTL_GRADE_OK,
			   "none reserved: fine, unless an application asks tent for hugepages (512 of %s: "
			   "sysctl -w vm.nr_hugepages=512)",
			   size);
	} else if (left == 0) {
		tctl_found(d, TCTL_GRADE_WARN,
			   "all %llu hugepages of %s are taken: the next application that asks for some is refused",
			   (unsigned long long)total, size);
		tctl_fix(d, "sysctl -w vm.nr_hugepages=%llu", (unsigned long long)total * 2);
	} else {
		tctl_found(d, TCTL_GRADE_OK, "%llu of %llu hugepages of %s are free", (unsigned long long)left,
			   (unsigned long long)total, size);
	}
}

/* Soft and hard value of a line of /proc/PID/limits; UINT64_MAX = unlimited. */
static bool limit_of(const struct tctl_doctor *d, const char *line, uint64_t *soft, uint64_t *hard)
{
	char path[64], who[16], text[4096], s[32], h[32];
	snprintf(path, sizeof path, "/proc/%s/limits", tctl_doctor_whose(d, who));
	if (!tctl_host_read(d->host, path, text, sizeof text))
		return false;
	const char *p = strstr(text, line);
	if (p == NULL || sscanf(p + strlen(line), "%31s %31s", s, h) != 2)
		return false;
	*soft = strcmp(s, "unlimited") == 0 ? UINT64_MAX : strtoull(s, NULL, 10);
	*hard = strcmp(h, "unlimited") == 0 ? UINT64_MAX : strtoull(h, NULL, 10);
	return true;
}

static const char *whose_text(const struct tctl_doctor *d)
{
	return d->pair->dataplane.held && d->pair->dataplane.pid != 0 ? "the running data plane"
								      : "a process started from here";
}

void tctl_check_memlock(struct tctl_doctor *d)
{
	uint64_t soft, hard;
	char size[TN_UNITS_TEXT];
	if (!limit_of(d, "Max locked memory", &soft, &hard))
		return;
	if (hard == UINT64_MAX)
		tctl_found(d, TCTL_GRADE_OK, "%s may lock all memory", whose_text(d));
	else
		tctl_found(d, TCTL_GRADE_OK, "%s may lock %s; tcp and shm lock none, rdma (not in this build) would",
			   whose_text(d), tn_bytes_format(hard, size));
}

/* What most applications need; the limit is for the greedy one. */
#define QPS_USUAL 4u

/* Descriptors of a data plane with every client, connection and lane that the configuration allows, and so many queue
 * pairs of each client. */
static uint64_t files_wanted(const struct tctl_doctor *d, uint64_t qps)
{
	const struct tn_config *c = d->config;
	uint64_t clients = tn_config_u64(c, TN_CFG_LIMITS_MAX_CLIENTS), workers = tctl_doctor_workers(d);
	uint64_t lanes = workers * tn_config_peer_cnt(c) * (tn_config_u64(c, TN_CFG_TCP_LANES_PER_PEER) + 2);
	/* Of a client: its socket, its pidfd, one of each queue pair. */
	return clients * (2 + qps) + tn_config_u64(c, TN_CFG_TCP_MAX_CONNECTIONS) + lanes + workers * 8 + 64;
}

void tctl_check_nofile(struct tctl_doctor *d)
{
	const uint64_t qps = tn_config_u64(d->config, TN_CFG_LIMITS_MAX_QPS_PER_CLIENT);
	uint64_t soft, hard, want = files_wanted(d, qps), usual = files_wanted(d, TN_MIN(qps, QPS_USUAL));
	if (!limit_of(d, "Max open files", &soft, &hard)) {
		tctl_found(d, TCTL_GRADE_WARN, "the limit of open files cannot be read");
		return;
	}
	if (hard >= want) {
		tctl_found(d, TCTL_GRADE_OK, "%s may open %llu files; the configuration's limits need %llu at most",
			   whose_text(d), (unsigned long long)hard, (unsigned long long)want);
		return;
	}
	if (hard >= usual) {
		tctl_found(d, TCTL_GRADE_OK,
			   "%s may open %llu files: enough for all clients with %u queue pairs each (%llu for all that "
			   "limits/max_qps_per_client allows)",
			   whose_text(d), (unsigned long long)hard, QPS_USUAL, (unsigned long long)want);
		return;
	}
	tctl_found(d, hard < 1024 ? TCTL_GRADE_FAIL : TCTL_GRADE_WARN,
		   "%s may open %llu files, but limits/* and transports/tcp/max_connections allow up to %llu: past "
		   "that, queue pairs "
		   "and lanes are refused",
		   whose_text(d), (unsigned long long)hard, (unsigned long long)want);
	if (d->pair->dataplane.held && d->pair->dataplane.pid != 0)
		tctl_fix(d, "prlimit --pid %u --nofile=%llu   # and LimitNOFILE=%llu in its unit",
			 d->pair->dataplane.pid, (unsigned long long)want, (unsigned long long)want);
	else
		tctl_fix(d, "ulimit -n %llu   # as root before the start; in a systemd unit: LimitNOFILE=%llu",
			 (unsigned long long)want, (unsigned long long)want);
}

/* Bytes of one telemetry file of this configuration. */
static uint64_t telemetry_bytes(const struct tctl_doctor *d)
{
	struct shr_tele_layout lay;
	uint32_t slots[2] = { SHR_EVENT_SLOTS_MIN, SHR_EVENT_SLOTS_MIN };
	const enum tn_config_key key[2] = { TN_CFG_OBS_EVENT_SLOTS, TN_CFG_OBS_KEEP_SLOTS };
	for (unsigned i = 0; i < 2; i++)
		while (slots[i] < tn_config_u64(d->config, key[i]) && slots[i] < SHR_EVENT_SLOTS_MAX)
			slots[i] *= 2;
	return shr_tele_layout(tctl_doctor_workers(d), TN_METRIC_CELL_CNT, slots[0], slots[1], &lay) == TN_OK
		   ? lay.region_bytes
		   : 0;
}

static void room(struct tctl_doctor *d, const struct tctl_fs *fs, const char *where, uint64_t want, const char *what)
{
	char left[TN_UNITS_TEXT], total[TN_UNITS_TEXT], need[TN_UNITS_TEXT];
	if (!fs->known)
		return;
	tn_bytes_format(fs->free_bytes, left);
	tn_bytes_format(fs->total_bytes, total);
	if (fs->free_bytes >= want) {
		tctl_found(d, TCTL_GRADE_OK, "%s: %s of %s are free", where, left, total);
		return;
	}
	tctl_found(d, TCTL_GRADE_FAIL, "%s: only %s of %s are free; %s needs %s", where, left, total, what,
		   tn_bytes_format(want, need));
	tctl_fix(d, "mount -o remount,size=%lluM %s   # or remove what fills it: du -sh %s/*",
		 (unsigned long long)((fs->total_bytes + want) / 1048576 + 64), where, where);
}

void tctl_check_shm(struct tctl_doctor *d)
{
	const struct tctl_host *h = d->host;
	/* Two kept files and the new one. */
	room(d, &h->runtime_fs, d->dir, telemetry_bytes(d) * (d->pair->dataplane.held ? 1 : 3),
	     "the data plane's telemetry");
	if (h->runtime_fs.known && !h->runtime_fs.tmpfs) {
		tctl_found(d, TCTL_GRADE_WARN,
			   "%s is not on tmpfs: counters and events are written back to a disk all the time", d->dir);
		tctl_fix(d, "findmnt -t tmpfs   # then set runtime_dir to a folder on one of them, e.g. /dev/shm/tent");
	}
	room(d, &h->shm_fs, "/dev/shm", 16 << 20, "an application's memory");
}
