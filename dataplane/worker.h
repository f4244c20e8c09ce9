/* SPDX-License-Identifier: Apache-2.0
 * One worker: a thread that polls, owns its queue pairs, tables, transports and everything in flight, and shares
 * nothing. The loop in worker.c is the only place that knows the order of the stages. Used by daemon.c (life),
 * control.c (mailboxes) and the worker's own stages. */
#ifndef DP_WORKER_H
#define DP_WORKER_H

#include "common/config.h"
#include "dataplane/apply.h"
#include "dataplane/selection/rail.h"
#include "shm-ring/abi.h"

struct dp_load_sum;
struct dp_path_info;
struct dp_transport_ops;
struct dp_worker;
struct shr_tele;

/* What all workers of a data plane are told at start. Borrowed by the workers for their whole life (keep the pointer,
 * do not copy it), constant except for what the comments say. */
struct dp_worker_env {
	const struct tn_config *config;    /* at start; a reloaded one comes with DP_CMD_TUNE */
	struct tn_id128 session;
	struct tn_peer_id self;            /* stable id of this host's pair. Zero until the control plane told it: the control
	                                    * thread writes it once, before it posts the first PEER_SET (the mailbox publishes
	                                    * it), so whoever holds a peer may read it */
	const struct shr_tele *telemetry;  /* mapped telemetry file (shm-ring/telemetry.h); NULL: private cells (tests) */
	uint32_t worker_cnt;
	/* Transports in place of the built-in ones (tests, simulator): array ending in NULL; NULL = the registry's. */
	const struct dp_transport_ops *const *transports;
};

/* Control-thread side of a queue pair that it hands over with DP_CMD_QP_ADD. */
struct dp_qp_cfg {
	uint64_t id;                       /* handle returned to the application */
	uint32_t client_id;
	uint32_t client_uid;
	uint8_t *region;                   /* struct shr_qp_shm; unmapped by the control thread after QP_DEL's ack */
	uint32_t region_bytes, sq_entries, cq_entries, note_slots;
	int doorbell_fd;                   /* our end of the queue pair's doorbell (shm-ring/doorbell.h): the worker polls it
	                                    * before it sleeps and rings it for completions; closed by the control thread
	                                    * after QP_DEL's ack */
	uint64_t seed;                     /* scatters its tables: numbers of the application cannot aim at one bucket */
};
/* Build the worker's half (pools are the worker's own). NULL when memory is short. Control thread. */
struct dp_qp *dp_qp_new(const struct dp_qp_cfg *cfg);
void dp_qp_free(struct dp_qp *qp);     /* after QP_DEL's ack */

/* Allocate; does not start. Control thread. */
tn_status dp_worker_new(const struct dp_worker_env *env, uint32_t index, struct dp_worker **out);
/* Start the pinned thread (`cpu` UINT32_MAX = not pinned). */
tn_status dp_worker_start(struct dp_worker *w, uint32_t cpu);
/* After DP_CMD_STOP was acknowledged (or within deadline_ns): join. */
void dp_worker_join(struct dp_worker *w, uint64_t deadline_ns);
void dp_worker_free(struct dp_worker *w);

/* Queue a command and wake the worker. TN_AGAIN when the mailbox is full: the control thread keeps it and retries. */
tn_status dp_worker_post(struct dp_worker *w, const struct dp_cmd *cmd);
/* Take one event; TN_AGAIN when there is none. */
tn_status dp_worker_take(struct dp_worker *w, struct dp_evt *evt_out);
int dp_worker_event_fd(const struct dp_worker *w);    /* eventfd: readable when events wait (control thread's epoll) */

/* What this worker has done for a target (DP_PEER_SELF: this host), added to *sum. Control thread, at any time. */
void dp_worker_load_add(const struct dp_worker *w, uint32_t peer_index, struct dp_load_sum *sum);
/* How the way to a peer over this kind looks from this worker. False: it has no such transport, or one without
 * connections. Control thread, at any time. */
bool dp_worker_path_info(const struct dp_worker *w, enum tn_transport kind, uint32_t peer_index, struct dp_path_info *out);
/* The health of the way to a peer (DP_PEER_SELF: this host) over this kind, as this worker sees it, and until when it cools
 * down or is probed. Control thread, at any time. */
enum dp_rail_state dp_worker_rail(const struct dp_worker *w, enum tn_transport kind, uint32_t peer_index,
				  uint64_t *until_ns_out);

#endif
