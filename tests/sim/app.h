/* SPDX-License-Identifier: Apache-2.0
 * Applications: programs that use libtent as people do, from tent_open() to tent_close(), and tell the model. Two on each
 * host; each publishes one segment and reads and writes those of all others. */
#ifndef SIM_APP_H
#define SIM_APP_H

#include "tests/sim/model.h"

struct me;

struct sim_app {
	uint32_t index, host, starts;
	struct sim_proc *proc;
	struct me *me;              /* of that process */
	bool drained;               /* its last process ended as it should: all taken, all given back */
	uint64_t healed_ns;         /* since things stopped going wrong: when it had moved bytes with everybody; 0 = not yet */
};
extern struct sim_app sim_apps[SIM_APPS];

void sim_apps_start(void);
/* The next one that starts is killed while it still sets itself up. */
void sim_apps_die_young(void);
/* While things go wrong: one of this host is killed after so long. */
void sim_app_kill_in(uint32_t host, uint64_t delay_ns);
/* How each is doing, into the trace. */
void sim_apps_print(void);
/* Things stopped going wrong: from now on everything must heal, then applications end by themselves at end_ns and are not
 * started again. */
void sim_apps_calm(uint64_t end_ns);

#endif
