/* SPDX-License-Identifier: Apache-2.0
 * Between a data plane's link (which believes that it speaks ZeroMQ) and the control plane of its host. */
#ifndef SIM_LINK_H
#define SIM_LINK_H

#include "tests/sim/kernel.h"

/* The control planes' side. */
struct sim_link_ends {
	bool (*lives)(uint32_t host);
	void (*deliver)(uint32_t host, uint64_t connection, const void *bytes, size_t len);
};
void sim_link_attach(const struct sim_link_ends *to);
/* To the data plane behind this connection. False: it is gone. */
bool sim_link_send(uint32_t host, uint64_t connection, const void *bytes, size_t len);
void sim_link_controlplane_died(uint32_t host);

#endif
