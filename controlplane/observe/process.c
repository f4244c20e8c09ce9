/* SPDX-License-Identifier: Apache-2.0
 * Reader of /proc/<pid>: stat, limits, fd. */
#include "controlplane/observe/process.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/clock.h"

static tn_status slurp(pid_t pid, const char *name, char *buf, size_t size)
{
	char path[64];
	(void)snprintf(path, sizeof path, "/proc/%ld/%s", (long)pid, name);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return TN_NOT_FOUND;
	size_t len = 0;
	ssize_t n;
	while (len < size - 1 && (n = read(fd, buf + len, size - 1 - len)) > 0)
		len += (size_t)n;
	buf[len] = '\0';
	(void)close(fd);
	return len ? TN_OK : TN_NOT_FOUND;
}

/* "." and ".." and, for ourselves, the descriptor of the listing are not counted. */
static uint64_t count_fds(pid_t pid)
{
	char path[64];
	(void)snprintf(path, sizeof path, "/proc/%ld/fd", (long)pid);
	DIR *d = opendir(path);
	if (!d)
		return 0;
	uint64_t n = 0;
	while (readdir(d))
		n++;
	(void)closedir(d);
	uint64_t other = pid == getpid() ? 3 : 2;
	return n > other ? n - other : 0;
}

static uint64_t ticks_to_ns(uint64_t ticks)
{
	long hz = sysconf(_SC_CLK_TCK);
	return ticks * (TN_NS_PER_S / (uint64_t)(hz > 0 ? hz : 100));
}

tn_status cp_process_read(pid_t pid, struct cp_process *out)
{
	char buf[4096];
	uint64_t utime, stime, start, vsize, rss;
	*out = (struct cp_process){ 0 };
	if (pid == 0)
		pid = getpid();
	tn_status st = slurp(pid, "stat", buf, sizeof buf);
	if (st != TN_OK)
		return st;
	/* The name in parentheses may contain anything; the fields after its last ')' are numbers: 14, 15, 22, 23, 24. */
	char *p = strrchr(buf, ')');
	if (!p || sscanf(p + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %" SCNu64 " %" SCNu64
			 " %*d %*d %*d %*d %*d %*d %" SCNu64 " %" SCNu64 " %" SCNu64,
			 &utime, &stime, &start, &vsize, &rss) != 5)
		return TN_SYSTEM;
	out->cpu_ns = ticks_to_ns(utime + stime);
	out->virtual_bytes = vsize;
	out->resident_bytes = rss * (uint64_t)sysconf(_SC_PAGESIZE);
	/* Ticks since boot -> real time, rounded to a tick so that the value does not jitter between scrapes. */
	uint64_t tick = ticks_to_ns(1);
	uint64_t boot_ns = tn_real_ns() - tn_clock_read_ns(CLOCK_BOOTTIME);
	out->start_real_ns = (boot_ns + tick / 2) / tick * tick + ticks_to_ns(start);
	out->open_fds = count_fds(pid);
	if (slurp(pid, "limits", buf, sizeof buf) == TN_OK && (p = strstr(buf, "Max open files")) != NULL)
		(void)sscanf(p, "Max open files %" SCNu64, &out->max_fds);
	out->known = true;
	return TN_OK;
}
