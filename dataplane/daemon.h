/* SPDX-License-Identifier: Apache-2.0
 * The life of tent-dataplane, from a loaded configuration to its exit code. */
#ifndef DP_DAEMON_H
#define DP_DAEMON_H

#include "common/daemon_args.h"

/* Runs until SIGTERM, SIGINT or a shutdown over the link. Takes `config`. 0: drained and stopped; 1: could not start,
 * or the drain was cut short; the reason is in the log. */
int dp_daemon_run(const struct tn_daemon_args *args, struct tn_config *config);

#endif
