/* SPDX-License-Identifier: Apache-2.0
 * Is this pair ready to serve? A pure function of a handful of facts, and its JSON. Cost: the number of workers (at
 * most SHR_WORKERS_MAX) and transport kinds; it never looks at tasks. Any thread. */
#ifndef CP_OBSERVE_READY_H
#define CP_OBSERVE_READY_H

#include <stdbool.h>
#include <stdint.h>

#include "common/domain.h"
#include "common/text_buf.h"
#include "shm-ring/abi.h"

/* The closed set of reasons, in the order in which they are reported. */
#define CP_READY_REASON_LIST(X) \
	X(DIAGNOSTICS_UNAVAILABLE, engine_diagnostics_unavailable) X(ENGINE_UNAVAILABLE, engine_unavailable) \
	X(CONTROL_PLANE_UNAVAILABLE, control_plane_unavailable) X(NO_TRANSPORT, no_transport_available) \
	X(WORKER_UNAVAILABLE, progress_worker_unavailable) X(WORKER_STALLED, progress_worker_stalled)
enum cp_ready_reason {
#define X(n, s) CP_READY_##n,
	CP_READY_REASON_LIST(X)
#undef X
	CP_READY_REASON_CNT
};

struct cp_worker_state { /* copy of the interesting part of struct shr_worker_shm */
	bool alive;
	uint64_t last_progress_ns; /* 0 = never */
	uint64_t oldest_work_ns;   /* 0 = idle */
	uint32_t transports_up;    /* bits */
	uint32_t inflight, queued, batches, lanes;
	uint64_t outstanding_bytes;
};

struct cp_ready_in {
	uint64_t now_ns;   /* CLOCK_MONOTONIC */
	uint64_t stall_ns; /* T */
	bool attached;     /* a region is mapped: its ABI is ours; the fields below it mean something */
	bool schema_ok;    /* and its metric schema is ours */
	bool engine_alive; /* the process lives */
	uint32_t engine_state;        /* enum shr_tele_state */
	bool peer_bus_bound, link_up; /* control plane: peers can reach us; the bus to the data plane works */
	uint64_t silent_since_ns;     /* the link is down because a data plane that is not dead says nothing since; 0: no */
	uint32_t loaded_transports, required_transports; /* bits (1 << enum tn_transport) */
	uint32_t worker_cnt;
	struct cp_worker_state worker[SHR_WORKERS_MAX];
};

/* Bit (1 << enum cp_ready_reason) for every reason that holds; 0 = ready. Transports and workers are judged only while
 * the engine itself is available: of a dead one nothing more can be said, and its cause shall stand alone.
 * A required transport must be up on every living worker, since a queue pair never leaves its worker. */
uint32_t cp_ready_evaluate(const struct cp_ready_in *in);

/* True when the worker has work older than T and has not moved for T. */
bool cp_ready_worker_stalled(const struct cp_worker_state *w, uint64_t now_ns, uint64_t stall_ns);

/* Text of a reason; "invalid" outside. */
const char *cp_ready_reason_text(unsigned reason);

/* Transports usable on at least one living worker, as bits; 0 while the engine is not available. */
uint32_t cp_ready_transports_up(const struct cp_ready_in *in);

/* Appends the versioned JSON body of /ready (reasons as evaluated; `detail` says in words what the closed set of reasons
 * cannot) and of /live. */
void cp_ready_json(const struct cp_ready_in *in, uint32_t reasons, struct tn_text *out);
void cp_live_json(uint64_t uptime_ns, struct tn_text *out);

/* Writes the array member `reasons` of ready and diagnostics. */
struct tn_jout;
void cp_ready_json_reasons(struct tn_jout *j, uint32_t reasons);

#endif
