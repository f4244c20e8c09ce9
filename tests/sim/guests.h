/* SPDX-License-Identifier: Apache-2.0
 * Processes that do not behave: they may break what is theirs and nothing else. */
#ifndef SIM_GUESTS_H
#define SIM_GUESTS_H

#include <stdbool.h>
#include <stdint.h>

/* Connects to the attach socket of a host, says nothing or rubbish, and hangs up after a while. */
void sim_stranger(uint32_t host);
/* Attaches as an application does, and writes noise into the index words of its own queue pair. */
void sim_vandal(uint32_t host);

/* None is left. */
bool sim_guests_gone(void);

#endif
