/* SPDX-License-Identifier: Apache-2.0
 * The life of tent-controlplane: what is made in which order at start, the loop, and what is undone at the end. */
#ifndef CP_DAEMON_H
#define CP_DAEMON_H

#include "common/daemon_args.h"

/* Runs until SIGTERM or SIGINT. Returns the process's exit code: 0, or 1 with the reason in the log. */
int cp_daemon_run(const struct tn_daemon_args *args, struct tn_config *config);

#endif
