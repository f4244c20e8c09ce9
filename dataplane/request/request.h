/* SPDX-License-Identifier: Apache-2.0
 * What flows: request (what the application asked), owner (one request, or contiguous ones merged), attempt (one owner
 * on one transport), batch. Pools and state moves; one worker owns all of them, no other thread ever looks. */
#ifndef DP_REQUEST_H
#define DP_REQUEST_H

#include "common/domain.h"
#include "common/ids.h"
#include "common/list.h"
#include "dataplane/segment/table.h"
#include "shm-ring/abi.h"

struct dp_worker;
struct dp_target;
struct dp_qp;
struct dp_transport;
struct dp_stage_area;
struct dp_stage_piece;

/* X(STATE, name). Moves are a table in state.c; dp_<object>_move() checks, counts and traces. */
#define DP_REQUEST_STATES(X) \
	X(FREE, free) X(QUEUED, queued) X(RUNNING, running) X(ZOMBIE, zombie /* terminal posted, memory still busy */)
#define DP_OWNER_STATES(X) \
	X(FREE, free) X(QUEUED, queued) X(DISPATCHED, dispatched) X(WAITING, waiting /* back-off, refresh or connect */) \
	X(DONE, done /* terminal, attempt may still hold memory */) \
	X(STAGED, staged /* moves in pieces through staging buffers */) \
	X(LEAVING, leaving /* staged, terminal; copies or pieces have not let go */)
#define DP_ATTEMPT_STATES(X) \
	X(FREE, free) X(ACTIVE, active) X(CANCELING, canceling)
#define X(n, s) DP_REQUEST_##n,
enum dp_request_state { DP_REQUEST_STATES(X) DP_REQUEST_STATE_CNT };
#undef X
#define X(n, s) DP_OWNER_##n,
enum dp_owner_state { DP_OWNER_STATES(X) DP_OWNER_STATE_CNT };
#undef X
#define X(n, s) DP_ATTEMPT_##n,
enum dp_attempt_state { DP_ATTEMPT_STATES(X) DP_ATTEMPT_STATE_CNT };
#undef X

/* X(WHY, name): what a WAITING owner waits for. */
#define DP_WAITS(X) \
	X(NONE, none) X(BACKOFF, backoff) X(RAIL, rail /* all that could serve it cool down or are switched off */) \
	X(REMOTE, descriptor) X(PEER, peer /* a newer session or ticket */)
#define X(n, s) DP_WAIT_##n,
enum dp_wait { DP_WAITS(X) DP_WAIT_CNT };
#undef X

struct dp_batch { /* open batch number of one queue pair */
	struct tn_list link;
	uint64_t batch_id;  /* ours, for logs; the application's number means nothing to others */
	uint32_t number;
	uint32_t pending;   /* members not yet terminal */
	uint16_t client;    /* index, for its share of the pool */
	bool failed;        /* a member did not complete */
	struct dp_request *notify; /* waiting SHR_OP_NOTIFY; NULL until it is submitted */
};

struct dp_request {
	struct tn_list qp_link;    /* all outstanding of its queue pair */
	struct tn_list token_link; /* those that a CANCEL may name, by token */
	struct tn_list owner_link;
	struct dp_qp *qp;
	struct dp_owner *owner;    /* NULL for NOTIFY while it waits for its batch */
	struct dp_batch *batch;
	struct shr_sqe_shm sqe;    /* our private, validated copy */
	uint64_t request_id;
	uint64_t ingress_ns, deadline_ns;
	uint32_t timer_slot;       /* position in the deadline heap; UINT32_MAX = none */
	uint16_t client;           /* index, for its share of the pools; also when qp is NULL */
	uint8_t state;
	uint8_t note_transport;    /* NOTIFY: enum tn_transport that carries it */
	bool stuck_reported;
	uint8_t *note;             /* NOTIFY: payload copied from shared memory once; NULL when empty */
	const struct dp_remote *note_remote; /* NOTIFY on its way: the version of the remote it uses */
};

/* Its place in a heap of deadlines (admission/deadline.h). */
struct dp_edf_node { struct dp_owner *child, *next, *prev; };

struct dp_owner {
	struct tn_list link;       /* admission queue or waiting list */
	struct tn_list requests;
	uint64_t owner_id;         /* task_id of logs */
	uint32_t request_cnt;      /* not yet terminal */
	uint8_t state, op /* enum tn_op */, priority, hint;
	bool may_have_left;        /* a WRITE attempt ended without proof that no byte left */
	bool child_kept;           /* a span of one of its attempts was kept */
	bool express;              /* it is out in the windows of the highest class */
	uint8_t end_outcome;       /* enum tn_outcome for which its attempt is being canceled */
	uint8_t attempt_cnt, failover_cnt, candidate; /* attempts so far; index into candidates[] */
	uint8_t stale_cnt;         /* attempts that found the registration stale */
	uint8_t wait;              /* enum dp_wait, while WAITING */
	uint8_t kind;              /* enum tn_owner_kind */
	uint8_t candidate_cnt;     /* 0: to be chosen */
	uint8_t candidates[TN_TRANSPORT_CNT];
	uint8_t rejected[TN_TRANSPORT_CNT]; /* enum dp_reject of the candidates that were looked at last */
	uint16_t policy;
	uint32_t peer_index;       /* admission target; DP_PEER_SELF = local */
	struct dp_target *target;  /* of the same; admission's, from its first push on */
	tn_handle memory, remote;
	uint64_t local_off, remote_off, bytes;
	uint64_t deadline_ns;      /* the earliest of its requests */
	uint64_t attempt_id;       /* of its last attempt; 0 = none */
	uint64_t admit_ns, dispatch_ns, attempt_ns, retry_ns; /* entered the queue, left it, last attempt began, wait ends
	                                                       * (UINT64_MAX: when it is woken) */
	uint32_t retry_slot;       /* position in the retry heap; UINT32_MAX = none */
	struct dp_attempt *attempt;
	struct dp_stage_task *task;   /* STAGED, LEAVING; or it is a piece of this */
	struct dp_stage_piece *piece; /* kind STAGING_INTERNAL: it moves this; it has no requests of its own */
	uint64_t stale_generation; /* WAITING for a newer remote than this */
	bool moving;               /* its attempt is being canceled because its transport was switched off */
	bool outdated;             /* its last attempt used a version of the remote that was replaced meanwhile */
	/* why the last attempt failed */
	tn_status last_status;
	uint8_t last_phase, last_reason, last_transport;
	uint16_t needed_permille;  /* ends because its deadline cannot be met: time needed of the time left; else 0 */
	struct dp_edf_node edf;    /* in the admission queue, while that is ordered by deadline */
};

/* The part of a STAGED or LEAVING owner that only those have (dataplane/stage.c). */
struct dp_stage_task {
	struct tn_list link;       /* waits for a staging buffer (its area's), or is over (the worker's) */
	struct dp_owner *owner;
	struct dp_stage_area *area;
	uint64_t next_off;         /* bytes handed out in pieces */
	uint64_t done_bytes;       /* of these, over and good */
	uint32_t held;             /* pieces that are not over */
	struct tn_id128 publication; /* whose memory the first of its pieces has reached; all must reach the same */
	bool over, quarantined;
	uint8_t end_outcome, end_phase, end_reason; /* over: why */
	tn_status end_status;
	uint64_t since_ns;         /* LEAVING: since then */
};

/* The owner that has the requests. */
TN_INLINE const struct dp_owner *dp_owner_whole(const struct dp_owner *o) { return tn_unlikely(o->task != NULL) ? o->task->owner : o; }

/* How an attempt ended, as the transport saw it. */
struct dp_result {
	tn_status status;      /* TN_OK: every byte is committed at its destination */
	uint8_t phase, reason; /* enum tn_phase, tn_reason; only when status != TN_OK */
	bool nothing_left;     /* proof that no byte of a WRITE left this host (or that the peer refused it unapplied) */
	bool fenced;           /* bytes may have left, but the path is fenced: nothing of it can land later */
	uint64_t bytes;
};

struct dp_attempt {
	struct dp_owner *owner;
	struct dp_transport *transport;
	uint64_t attempt_id, span_id, start_ns;
	uint8_t state, op, kind /* enum tn_transport */, priority;
	/* resolved by the worker, constant while ACTIVE */
	uint8_t *local;                   /* first byte of local memory */
	const struct dp_remote *remote;
	const struct dp_segment *segment; /* local targets */
	uint64_t remote_off, bytes;
	uint64_t deadline_ns;
	/* the transport's own bookkeeping */
	struct tn_list t_link;
	uint64_t t_next;      /* bytes handed out as slices */
	uint64_t t_done;      /* bytes committed */
	uint32_t t_slices;    /* slices in flight */
	struct dp_result t_result; /* first failure wins */
	void *t_priv;
};

#endif
