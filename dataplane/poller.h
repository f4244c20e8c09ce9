/* SPDX-License-Identifier: Apache-2.0
 * A worker's epoll set: doorbells, the mailbox wake-up and the sockets of its transports, and the rule how often a
 * spinning worker asks it. One worker; dp_poller_init by the control thread, before that worker runs. */
#ifndef DP_POLLER_H
#define DP_POLLER_H

#include <sys/epoll.h>

#include "dataplane/transport/transport.h"

#define DP_POLL_EVENTS 64
#define DP_POLL_SKIP_MAX 4u
#define DP_POLL_SKIP_BELLS 32u /* with nothing but doorbells: a ring may wait for a few turns */

struct dp_poller {
	int epfd;
	bool precise;                  /* the kernel has epoll_pwait2(): sleeps end to the microsecond */
	uint32_t sockets;              /* pollables of transports: with none, it is never eager */
	uint32_t skip, skip_max;       /* loops until the next question; grows while the answers are empty */
	int cnt;                       /* events of the question being served; 0 outside */
	struct epoll_event events[DP_POLL_EVENTS];
};

tn_status dp_poller_init(struct dp_poller *p);
void dp_poller_destroy(struct dp_poller *p);

/* TN_LIMIT (watches), TN_NO_MEMORY, TN_SYSTEM. `socket`: counts for the asking rule. */
tn_status dp_poller_add(struct dp_poller *p, struct dp_pollable *what, uint32_t events, bool socket);
void dp_poller_mod(struct dp_poller *p, struct dp_pollable *what, uint32_t events);
/* Also forgets events of it that were fetched and not served yet. */
void dp_poller_del(struct dp_poller *p, struct dp_pollable *what, bool socket);

/* A spinning worker's turn: asks at once while `eager` (work on sockets is expected), else now and then; never while
 * there are neither sockets nor `bells` that may ring. Serves what is ready; returns how much. */
uint32_t dp_poller_spin(struct dp_poller *p, bool eager, bool bells);
/* Sleep up to timeout_ns and serve what woke us. */
uint32_t dp_poller_sleep(struct dp_poller *p, uint64_t timeout_ns);

#endif
