/* SPDX-License-Identifier: Apache-2.0
 * The simulated hosts: a data plane (the real daemon from its main function on), a control plane (its real mind, with our
 * network in place of its sockets), and the applications. Whoever dies is started again. */
#ifndef SIM_HOST_H
#define SIM_HOST_H

#include <jansson.h>

#include "common/config.h"
#include "tests/sim/kernel.h"

struct dp_worker;

#define SIM_WORKERS_MAX 4u

struct sim_host {
	uint32_t index;
	char runtime_dir[64], config_path[80], cold[1536]; /* cold: the part of its configuration that stays */
	struct sim_proc *dataplane, *controlplane;
	struct dp_worker *workers[SIM_WORKERS_MAX]; /* of the data plane that lives; NULL ends */
	uint64_t dataplane_starts, controlplane_starts;
	bool starved;               /* this start of the data plane soon finds no memory */
};
extern struct sim_host sim_hosts[SIM_HOSTS];

/* Files in `dir`, then both pairs of daemons start. */
void sim_hosts_start(const char *dir);
/* The next daemon that dies is back very soon. */
void sim_hosts_hurry(void);
/* From now on a daemon that dies stays dead. */
void sim_hosts_let_die(void);
/* An operator's request to the control plane of a host; nobody reads the answer. `body` is stolen. */
void sim_host_ask(uint32_t host, const char *type, json_t *body);
/* Its configuration file anew: with drawn values of what can change while a daemon runs, or calm: with the defaults. */
void sim_host_write_config(const struct sim_host *h, bool calm);
/* Of the configuration file, for what a daemon would do with it. NULL: no memory. */
struct tn_config *sim_host_config(const struct sim_host *h);

#endif
