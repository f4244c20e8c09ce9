/* SPDX-License-Identifier: Apache-2.0
 * Which moves of all state machines, and which fault points, the seeds of a run passed. The counts stand in memory that
 * the processes of all seeds share. */
#ifndef SIM_COVER_H
#define SIM_COVER_H

#include <stdbool.h>
#include <stdio.h>

#include "common/hook.h"

/* Before the first seed; what later processes count is seen here. */
void sim_cover_init(void);
/* In the process of a seed: hear of moves from now on. */
void sim_cover_listen(void);
void sim_cover_hook(enum tn_hook hook);
/* One line per machine, then what was never seen and is not excused. How many of those there are. */
unsigned sim_cover_print(FILE *to);

#endif
