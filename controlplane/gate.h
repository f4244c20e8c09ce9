/* SPDX-License-Identifier: Apache-2.0
 * How many connections each listening socket of the control plane may hold: for its whole life the process has
 * descriptors left for itself and for whom it knows, whoever connects. ZeroMQ, the HTTP library and libc have no such
 * bound, and ZeroMQ ends the process when a descriptor is missing at the wrong moment. So this file stands where all of
 * them get their connections: it defines accept4() and accept() of the process (see gate.c).
 *
 * A connection is fresh until it is known: the library has said more to it than it says to strangers, or has kept it
 * for longer than it keeps them. When fresh ones are too many, the oldest of the newcomer's own address goes (on this
 * host: of its process), then the oldest of all; who means it has shown who it is by then. Known ones never go for a
 * newcomer; when they are too many, the newcomer goes.
 *
 * One per process. Any thread, but the connections of a door are accepted and closed by one thread only. */
#ifndef CP_GATE_H
#define CP_GATE_H

#include <stddef.h>
#include <stdint.h>

#include "common/metrics.h"
#include "common/status.h"

#define CP_GATE_HANDSHAKE_MS 3000 /* what ZeroMQ sockets are told: from accept to who it is, however slowly it speaks */

struct cp_gate_bounds {
	uint32_t fresh_max, fresh_per_address; /* per address, or per process on this host; 0: any number */
	uint32_t known_max, known_per_address; /* 0: none becomes known */
	uint32_t stranger_bytes; /* the most that a TCP stranger is ever sent here; 0: none can come, none is counted */
	uint64_t silent_ns;      /* the library ends by itself who has not shown by then who it is */
};

/* Raises the soft limit of descriptors to the hard one and checks that every door at its bounds, `peer_cnt` peers and
 * the process itself fit. TN_LIMIT: they do not; err then names the limit, what is needed and what to do.
 * TN_NO_MEMORY, TN_SYSTEM (accept4() of this process is not ours). Before any door opens; no other thread runs. */
TN_MUST_USE tn_status cp_gate_init(uint32_t peer_cnt, char *err, size_t err_bytes);
void cp_gate_fini(void);

/* From now on `listen_fd` is this door. Before, nobody gets in: whoever accepts is told EAGAIN. */
void cp_gate_open(enum tn_door door, int listen_fd);

/* Looks at the fresh ones and brings what ended unheard to the counters, and to the log at most once in ten seconds for
 * each door. Each connection that never became known is counted once: CROWDED (we ended it), DESCRIPTORS (none was
 * left for it), SILENT (its time ran out), STRANGER (it ended otherwise: no key, no such protocol, or it left). Loop thread, each turn of the loop. */
void cp_gate_report(const struct tn_metrics *m, uint64_t now_ns);

/* For tests: other bounds than those that follow from the peers, before the door opens. */
void cp_gate_bound(enum tn_door door, const struct cp_gate_bounds *bounds);

#endif
