/* SPDX-License-Identifier: Apache-2.0
 * The control thread: everything the data plane decides outside the hot path. This struct ties its rooms together -
 * ingress (clients, lanes that knock), segment (memory, segments, remotes, peers), link (control plane) - and is
 * touched by the control thread alone. daemon.c builds it, runs turns, and takes it down. */
#ifndef DP_CONTROL_H
#define DP_CONTROL_H

#include "common/config.h"
#include "common/daemon_args.h"
#include "common/metrics.h"
#include "common/rand.h"
#include "dataplane/control_state.h"
#include "dataplane/crew.h"
#include "dataplane/ingress/attach.h"
#include "dataplane/ingress/greet.h"
#include "dataplane/ingress/note.h"
#include "dataplane/ingress/refusal.h"
#include "dataplane/link/link.h"
#include "dataplane/loop.h"
#include "dataplane/reap.h"
#include "dataplane/segment/handles.h"
#include "dataplane/segment/names.h"
#include "dataplane/segment/peer.h"
#include "shm-ring/events.h"
#include "shm-ring/telemetry.h"

#define DP_TURN_NS UINT64_C(100000000) /* longest turn of the loop: the heartbeat in the telemetry header */

/* What daemon.c decided before the control thread's rooms are built. All borrowed. */
struct dp_control_cfg {
	struct tn_config *config;            /* owned by the control thread from here on: a reload replaces it */
	const struct tn_daemon_args *args;   /* how it was loaded, to load it again; NULL: no reload (tests) */
	struct dp_worker_env *env;
	struct shr_tele *telemetry;
};

/* Hot keys that `tune` set since the start: "key=value", one per key, owned. */
struct dp_tuned {
	char *sets[TN_DAEMON_SETS_MAX];
	unsigned cnt;
};

struct dp_control {
	struct dp_control_cfg cfg;
	struct tn_config *config;        /* running configuration; `config_old` until the workers let go of it */
	struct tn_config *config_old;
	struct dp_flight tune_flight;
	struct dp_tuned tuned;           /* on top of the start's arguments */
	struct dp_loop loop;
	struct dp_crew crew;
	struct dp_reap reap;
	struct tn_metrics metrics;       /* cells of block worker_cnt */
	struct shr_event_writer events, keep;
	struct tn_rand rand;             /* jitter, and seeds of tables */

	struct dp_attach attach;
	struct dp_greet greet;
	struct dp_refusals refusals;
	struct dp_notes notes;
	struct dp_peers peers;
	struct dp_link *link;            /* NULL until daemon.c connects it; then it may still be down */
	bool link_more;                  /* messages wait: the next turn does not */

	struct dp_handles memories, segments, remotes, qps;
	struct dp_names segment_names;   /* segments that can be found */
	struct dp_names remote_refs;
	uint64_t segment_generation;     /* last one given out */
	uint64_t registration_next;
	uint64_t memory_bytes;           /* mapped for clients */
	uint32_t qp_turn;

	uint8_t pair;                    /* enum dp_pair_state */
	uint32_t transports_off;         /* bits of kinds that an operator switched off */
	struct dp_flight transport_flights[TN_TRANSPORT_CNT]; /* of that, by kind; nobody waits for them */
	struct dp_flight mode_flight;    /* of pause and resume; nobody waits for it */
	bool stop_asked;                 /* `drain` came over the link: daemon.c drains ... */
	uint64_t drain_ns;               /* ... and gives what runs this long to end */
};

/* No new clients, lanes or objects. */
TN_INLINE bool dp_control_drains(const struct dp_control *ctl) { return ctl->pair == DP_PAIR_DRAINING; }

/* Builds the rooms; workers and sockets come after. NO_MEMORY, LIMIT, SYSTEM. On failure call dp_control_fini(). */
tn_status dp_control_init(struct dp_control *ctl, const struct dp_control_cfg *cfg);
/* Frees everything; the workers have ended (nothing touches client memory any more). Accepts a half-built one. */
void dp_control_fini(struct dp_control *ctl);
/* One turn of the loop; nothing to do makes it no longer than that. DP_TURN_NS keeps the heartbeat. */
void dp_control_turn(struct dp_control *ctl, uint64_t longest_ns);
/* The doors are open. */
void dp_control_run(struct dp_control *ctl);
/* Requests wait from now on, or go again. CLOSED: it drains; AGAIN: its doors are not open yet. *changed_out: it was not
 * so before. */
tn_status dp_control_pause(struct dp_control *ctl, bool on, bool *changed_out);
/* Switch a transport on or off for the requests of this host, until the data plane ends. UNSUPPORTED: not in this build, or
 * not enabled. BUSY: one of observability/required_transports, and `force` is not given. */
tn_status dp_control_transport(struct dp_control *ctl, enum tn_transport kind, bool on, bool force, bool *changed_out);
/* Tell clients and refuse what is new; `quiet` runs when nothing of what was accepted is left. */
void dp_control_drain_begin(struct dp_control *ctl, struct dp_flight *quiet);
/* The same (if that was not done), and send STOP to the workers, which cancel what is left; `stopped` runs when all have
 * acknowledged. */
void dp_control_drain(struct dp_control *ctl, struct dp_flight *stopped);
/* Load the configuration again and hand its hot values to the workers. The reasons of a refusal are in the log. AGAIN
 * while the one before is still on its way. *report: as of tn_daemon_reload(); untouched when nothing was loaded. */
tn_status dp_control_reload(struct dp_control *ctl, struct json_t **report);
/* The same with keys set on top ("key=value"), which later reloads keep. All of them or none. CONFIG: not a hot key, or
 * not a value for it. LIMIT: too many keys. */
tn_status dp_control_tune(struct dp_control *ctl, const char *const *sets, unsigned cnt);

/* One record in the flight recorder of the control thread (kept ring for failures). */
void dp_control_event(struct dp_control *ctl, enum shr_event_kind kind, tn_status status, uint64_t arg);

#endif
