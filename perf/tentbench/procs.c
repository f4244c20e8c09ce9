/* SPDX-License-Identifier: Apache-2.0
 * Reads CPU clocks of other processes. The kernel's clock of a process has ns resolution, while /proc/PID/stat counts
 * ticks of 10 ms: too coarse for a cell of one second. See procs.h. */
#include "perf/tentbench/procs.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/clock.h"

static void read_status(struct tb_proc *p)
{
	char path[64], line[256];

	(void)snprintf(path, sizeof path, "/proc/%d/status", (int)p->pid);
	FILE *f = fopen(path, "re");
	if (f == NULL)
		return;
	while (fgets(line, sizeof line, f) != NULL) {
		(void)sscanf(line, "Name: %19[^\n]", p->name);
		(void)sscanf(line, "Cpus_allowed_list: %31[^\n]", p->cpus);
	}
	(void)fclose(f);
}

bool tb_procs_add(struct tb_procs *ps, pid_t pid, char *err, size_t err_bytes)
{
	struct tb_proc *p = &ps->p[ps->cnt];

	for (unsigned i = 0; i < ps->cnt; i++)
		if (ps->p[i].pid == pid)
			return true;
	if (ps->cnt == TB_PROCS_MAX) {
		(void)snprintf(err, err_bytes, "more than %d processes", TB_PROCS_MAX);
		return false;
	}
	*p = (struct tb_proc){ .pid = pid, .name = "?", .cpus = "?" };
	int rc = clock_getcpuclockid(pid, &p->clock);
	if (rc != 0) {
		(void)snprintf(err, err_bytes, "process %d: %s", (int)pid, strerror(rc));
		return false;
	}
	read_status(p);
	ps->cnt++;
	return true;
}

/* The process that listens on a socket, whatever its type; 0 when nobody does. */
static pid_t listener_of(const char *path)
{
	static const int types[] = { SOCK_SEQPACKET, SOCK_STREAM };
	struct sockaddr_un addr = { .sun_family = AF_UNIX };

	if (strlen(path) >= sizeof addr.sun_path)
		return 0;
	memcpy(addr.sun_path, path, strlen(path));
	for (unsigned i = 0; i < 2; i++) {
		struct ucred cred = { 0 };
		socklen_t len = sizeof cred;
		int fd = socket(AF_UNIX, types[i] | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

		if (fd < 0)
			return 0;
		bool good = connect(fd, (const struct sockaddr *)&addr, sizeof addr) == 0 &&
			    getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) == 0;
		(void)close(fd);
		if (good)
			return cred.pid;
	}
	return 0;
}

bool tb_procs_add_daemons(struct tb_procs *ps, const char *dir, char *err, size_t err_bytes)
{
	DIR *d = opendir(dir);
	struct dirent *e;
	bool found = false, good = true;

	if (d == NULL) {
		(void)snprintf(err, err_bytes, "%s: %s", dir, strerror(errno));
		return false;
	}
	while (good && (e = readdir(d)) != NULL) {
		char path[512];
		pid_t pid;

		if (e->d_type != DT_SOCK || snprintf(path, sizeof path, "%s/%s", dir, e->d_name) >= (int)sizeof path)
			continue;
		pid = listener_of(path);
		if (pid > 0) {
			found = true;
			good = tb_procs_add(ps, pid, err, err_bytes);
		}
	}
	(void)closedir(d);
	if (good && !found)
		(void)snprintf(err, err_bytes, "%s: no daemon listens there", dir);
	return good && found;
}

static void read_machine(struct tb_moment *m)
{
	unsigned long long user, nice, system, idle, iowait, irq, softirq, steal;
	uint64_t tick_ns = TN_NS_PER_S / (uint64_t)sysconf(_SC_CLK_TCK);
	FILE *f = fopen("/proc/stat", "re");

	m->busy_ns = m->steal_ns = 0;
	if (f == NULL)
		return;
	if (fscanf(f, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &user, &nice, &system, &idle, &iowait, &irq, &softirq,
		   &steal) == 8) {
		m->busy_ns = (user + nice + system + irq + softirq) * tick_ns;
		m->steal_ns = steal * tick_ns;
	}
	(void)fclose(f);
}

void tb_procs_sample(const struct tb_procs *ps, struct tb_moment *m)
{
	m->at_ns = tn_now_ns(); /* first: what sampling costs is inside a window that opens, and it closes before */
	m->gone = false;
	for (unsigned i = 0; i < ps->cnt; i++) {
		struct timespec ts = { 0 };

		if (clock_gettime(ps->p[i].clock, &ts) != 0)
			m->gone = true;
		m->cpu_ns[i] = (uint64_t)ts.tv_sec * TN_NS_PER_S + (uint64_t)ts.tv_nsec;
	}
	read_machine(m);
}
