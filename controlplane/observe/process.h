/* SPDX-License-Identifier: Apache-2.0
 * What /proc knows about one of the two processes: the source of the process_* families. HTTP thread; reads a few small
 * files and lists one directory. */
#ifndef CP_OBSERVE_PROCESS_H
#define CP_OBSERVE_PROCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/status.h"

struct cp_process {
	bool known;             /* false: the other fields mean nothing */
	uint64_t cpu_ns;        /* user + system, all threads, dead ones included */
	uint64_t resident_bytes, virtual_bytes;
	uint64_t open_fds, max_fds; /* open_fds 0 = not permitted to look */
	uint64_t start_real_ns; /* since the epoch, to a clock tick */
};

/* Reads pid (0 = this process). TN_NOT_FOUND when there is none, TN_SYSTEM when /proc makes no sense; then known is
 * false. */
tn_status cp_process_read(pid_t pid, struct cp_process *out);

#endif
