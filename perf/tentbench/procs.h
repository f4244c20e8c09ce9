/* SPDX-License-Identifier: Apache-2.0
 * CPU time of the processes that take part: this one, the other application, the daemons; and of everybody else on the
 * machine, because a figure that was taken beside other work should say so. One owner thread. */
#ifndef TB_PROCS_H
#define TB_PROCS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#define TB_PROCS_MAX 48

struct tb_proc {
	pid_t pid;
	clockid_t clock;   /* CPU time of all its threads, also of those that ended */
	char name[20];     /* as the kernel shows it (16 bytes) */
	char cpus[32];     /* CPUs it may run on, "0-1" */
};

struct tb_procs {
	struct tb_proc p[TB_PROCS_MAX];
	unsigned cnt;
};

/* A moment: CPU time of each process, and what the machine as a whole did. */
struct tb_moment {
	uint64_t at_ns;
	uint64_t cpu_ns[TB_PROCS_MAX];
	uint64_t busy_ns, steal_ns; /* all CPUs together, /proc/stat; steps of a clock tick */
	bool gone;                  /* one of the processes ended: the differences mean nothing */
};

/* Add this process; another process (once only). false: no such process, or too many; err says which. */
bool tb_procs_add(struct tb_procs *ps, pid_t pid, char *err, size_t err_bytes);
/* Add whoever listens on a unix socket in the runtime directory: the daemons of that host. */
bool tb_procs_add_daemons(struct tb_procs *ps, const char *dir, char *err, size_t err_bytes);

void tb_procs_sample(const struct tb_procs *ps, struct tb_moment *m);

#endif
