/* SPDX-License-Identifier: Apache-2.0
 * A transport of kind rdma between the simulated hosts: one-sided reads and writes in parts that arrive in any order, late,
 * twice or never, and that still land after their sender has given up, until the other end is told (the fence). It is what
 * the engine has to expect of hardware, with the real contract of dataplane/transport/transport.h towards it. */
#ifndef SIM_FABRIC_H
#define SIM_FABRIC_H

#include <stdbool.h>
#include <stdint.h>

#include "tests/sim/kernel.h"

/* This seed's hosts are connected by it. */
void sim_fabric_init(bool present);
/* The connections of this host's workers break, with their parts on the way. */
void sim_fabric_break(uint32_t host);
/* The next parts are lost, or damaged on the way, which the other end throws away. */
void sim_fabric_lose(uint32_t parts);
/* The next parts take long. */
void sim_fabric_delay(uint32_t parts);
/* Things stopped going wrong. */
void sim_fabric_calm(void);

#endif
