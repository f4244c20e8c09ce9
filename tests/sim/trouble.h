/* SPDX-License-Identifier: Apache-2.0
 * What goes wrong, and when: each seed draws which kinds of trouble it has and how often. */
#ifndef SIM_TROUBLE_H
#define SIM_TROUBLE_H

#include <stdbool.h>

void sim_trouble_start(void);
/* This seed kills, or is short of memory. */
bool sim_trouble_kills(void);
bool sim_trouble_starves(void);
/* Nothing more goes wrong, and what was cut or stopped goes on. */
void sim_trouble_end(void);

#endif
