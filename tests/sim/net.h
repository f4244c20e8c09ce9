/* SPDX-License-Identifier: Apache-2.0
 * The network between the simulated hosts and within each, and what goes wrong in it. Within a host little is late. */
#ifndef SIM_NET_H
#define SIM_NET_H

#include "tests/sim/kernel.h"

/* One direction or both are the same here: a link is between two hosts (or within one). */
struct sim_link {
	uint64_t delay_ns, jitter_ns;
	uint64_t bytes_per_s;
	uint32_t write_max, pipe_max; /* bytes that one send takes at most, and that are on their way at most */
	bool reset_next;              /* the next connection that sends is broken, with its bytes on their way */
	bool cut;                     /* nothing passes; what was sent waits for the end of it, or for its own time-out */
};

struct sim_link *sim_link(uint32_t from, uint32_t to);
void sim_link_init(void);
void sim_link_cut(uint32_t a, uint32_t b);
void sim_link_heal(uint32_t a, uint32_t b);
uint64_t sim_link_delay(uint32_t from, uint32_t to, size_t bytes);
/* Break a connection between them, as a middlebox does, at the next moment at which bytes are on their way: its sender hears
 * of it at once, the other end later, and may have to read all of the bytes before. */
void sim_tcp_reset_next(uint32_t a, uint32_t b);
/* "10.0.0.1" */
const char *sim_host_address(uint32_t host);

#endif
