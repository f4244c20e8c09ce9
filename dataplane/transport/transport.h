/* SPDX-License-Identifier: Apache-2.0
 * The contract between a worker and a transport. One instance per (worker, kind); one ops table per kind, resolved at
 * set-up. All calls come from the worker's thread; none may block, allocate per operation, or log.
 *
 * Life of an attempt: submit() accepts it (TN_OK) and from then on the transport owes exactly one dp_attempt_done().
 * submit() may return TN_AGAIN (no room now; nothing happened) or a failure with *result filled (nothing happened).
 * dp_attempt_done() may be called from inside progress(), cancel() or peer_set(), never from inside submit(). */
#ifndef DP_TRANSPORT_H
#define DP_TRANSPORT_H

#include "dataplane/request/request.h"

struct dp_worker;
struct dp_hello;
struct dp_note_in;
struct dp_path_info;
struct dp_transport;
struct tn_rand;

enum dp_reach { /* can this transport serve this target now? */
	DP_REACH_READY = 0,
	DP_REACH_CONNECT = 1, /* yes, after a connect that submit() starts by itself */
	DP_REACH_NO = 2       /* not this target (wrong kind, peer has no such endpoint, transport down) */
};

struct dp_transport_ops {
	enum tn_transport kind;
	/* Allocate everything this instance will ever need. */
	tn_status (*create)(struct dp_worker *w, struct dp_transport **out);
	void (*destroy)(struct dp_transport *t); /* accepts half-built; nothing outstanding */

	enum dp_reach (*reach)(const struct dp_transport *t, const struct dp_remote *remote);
	/* Look whether the peer can be reached, after attempts failed: READY, it is; CONNECT: an answer is looked for, and told
	 * with dp_worker_probed() (not from inside); none until `until_ns` means no. NULL: there is nothing to look at. */
	enum dp_reach (*probe)(struct dp_transport *t, uint32_t peer_index, uint64_t until_ns);
	tn_status (*submit)(struct dp_transport *t, struct dp_attempt *a, struct dp_result *result);
	/* Move work; returns how much (0 = nothing to do). `budget` bounds one call so that no stage starves another. */
	uint32_t (*progress)(struct dp_transport *t, uint64_t now_ns, uint32_t budget);
	/* End it early: stop what has not left, let the rest drain into where it may, then dp_attempt_done(). Whether that
	 * happens inside this call or later tells the worker whether the memory is still busy. */
	void (*cancel)(struct dp_transport *t, struct dp_attempt *a);
	/* The earliest time progress() must run although nothing arrives; UINT64_MAX = none. */
	uint64_t (*next_timer_ns)(const struct dp_transport *t);
	/* True when progress() has work that needs no wake-up (slices to copy, bytes to send): the worker must not sleep. */
	bool (*busy)(const struct dp_transport *t);
	/* True while what arrives or leaves are parts of large blocks: the worker then sleeps between them instead of
	 * spinning, because waking up costs little against the time that a part takes. NULL: never. */
	bool (*bulk)(const struct dp_transport *t);
	/* True while urgent requests come and go beside large blocks: the worker then looks for news between any two parts of
	 * those. NULL: it always finds out by itself. */
	bool (*urgent)(const struct dp_transport *t);

	/* Server side and changes; NULL where the kind has none. After segment_revoke the worker asks segment_busy each loop
	 * until it is false. */
	void (*peer_set)(struct dp_transport *t, const struct dp_peer *peer);
	bool (*segment_busy)(const struct dp_transport *t, tn_handle segment);  /* incoming operations still touch it */
	void (*segment_revoke)(struct dp_transport *t, tn_handle segment);      /* start refusing; running ones drain */
	void (*lane_adopt)(struct dp_transport *t, int fd, struct dp_hello *hello);
	/* This data plane stops: what peers ask from now on is refused, and they are told so. False while something that they
	 * asked before is under way; asked each loop until true, or until the worker's patience ends. */
	bool (*drain)(struct dp_transport *t);
	bool (*fence)(struct dp_transport *t, uint32_t peer_index, const struct tn_id128 *keep_session);
	/* Notifications and control datagrams on the protected control lane. */
	tn_status (*note_send)(struct dp_transport *t, struct dp_request *r, const struct dp_remote *remote, uint64_t seq);
	void (*note_cancel)(struct dp_transport *t, struct dp_request *r); /* forget who asked: no dp_note_done() follows */
	void (*note_verdict)(struct dp_transport *t, uint64_t token, tn_status verdict);
	tn_status (*datagram_send)(struct dp_transport *t, uint32_t peer_index, const void *bytes, uint32_t len);
	uint32_t (*lane_cnt)(const struct dp_transport *t, uint32_t peer_index); /* that carry payload now: no control lane */
	/* How the way to a peer looks. The one call that comes from the control thread: it reads atomic words only. */
	void (*path_info)(const struct dp_transport *t, uint32_t peer_index, struct dp_path_info *out);
};

struct dp_transport {
	const struct dp_transport_ops *ops;
	struct dp_worker *worker;
	bool up; /* usable on this host right now */
	uint64_t progress_ns; /* the worker's: when progress() last moved something; 0 = never */
};

/* ---- what the worker offers its transports (worker.c and the stages; declared here so transports see no more) ---- */

/* The attempt is over: memory of both ends is no longer touched by it. Frees the attempt. */
void dp_attempt_done(struct dp_worker *w, struct dp_attempt *a, const struct dp_result *result);
/* A NOTIFY request is over. */
void dp_note_done(struct dp_worker *w, struct dp_request *r, tn_status status, uint8_t phase, uint8_t reason);
/* Lookups in the worker's tables; NULL when stale. */
const struct dp_segment *dp_worker_segment(const struct dp_worker *w, tn_handle h);
const struct dp_peer *dp_worker_peer(const struct dp_worker *w, uint32_t index);
/* The buffer behind a registration id, or NULL. Checked for every incoming frame: rights, range, access list. */
const struct dp_buffer *dp_worker_registration(const struct dp_worker *w, uint64_t registration,
                                               const struct dp_segment **segment_out);
/* Ask the control thread (single flight there). */
void dp_worker_remote_refresh(struct dp_worker *w, tn_handle remote, uint64_t stale_generation);
void dp_worker_peer_refresh(struct dp_worker *w, uint32_t peer_index);
/* The peer answered a part of an attempt: it is not stalled (admission), and this way to it works (rails). The end of an
 * attempt needs no call. */
void dp_worker_answered(struct dp_worker *w, enum tn_transport kind, uint32_t peer_index);
/* The answer to a probe(); one that nobody waits for any more does no harm. */
void dp_worker_probed(struct dp_worker *w, enum tn_transport kind, uint32_t peer_index, bool ok);
/* Hand an incoming notice or datagram to the control thread; TN_AGAIN when its mailbox is full. Takes `note` unless it
 * returns TN_AGAIN. `token` < 2^56 is the transport's own; dp_note_token() adds the kind, by which the verdict finds its
 * way back (note_verdict() gets the whole). */
TN_INLINE uint64_t dp_note_token(enum tn_transport kind, uint64_t serial) { return (uint64_t)kind << 56 | serial; }
tn_status dp_worker_note_in(struct dp_worker *w, uint64_t token, tn_handle segment, struct dp_note_in *note);
tn_status dp_worker_datagram_in(struct dp_worker *w, uint32_t peer_index, const void *bytes, uint32_t len);
void dp_worker_lane_state(struct dp_worker *w, enum tn_transport kind, uint32_t peer_index, bool up);

/* One epoll set per worker. `ready` is called from the worker's loop with the epoll events. */
struct dp_pollable { void (*ready)(struct dp_pollable *p, uint32_t events); int fd; };
tn_status dp_worker_poll_add(struct dp_worker *w, struct dp_pollable *p, uint32_t events);
void dp_worker_poll_mod(struct dp_worker *w, struct dp_pollable *p, uint32_t events);
void dp_worker_poll_del(struct dp_worker *w, struct dp_pollable *p);

uint64_t dp_worker_now(const struct dp_worker *w);   /* CLOCK_MONOTONIC, read once per loop */
void dp_worker_refresh_now(struct dp_worker *w);     /* read it again after work that took time (not when virtual) */
uint32_t dp_worker_index(const struct dp_worker *w);
const struct tn_config *dp_worker_config(const struct dp_worker *w);
const struct tn_id128 *dp_worker_session(const struct dp_worker *w);
const struct tn_peer_id *dp_worker_self(const struct dp_worker *w); /* our stable id */
struct tn_metrics *dp_worker_metrics(struct dp_worker *w); /* this worker's cells (common/metrics.h) */
/* The worker's generator (common/rand.h), from which a transport seeds its own at set-up: so that a run whose session is
 * given can be repeated. For jitter, never for secrets. */
struct tn_rand *dp_worker_rand(struct dp_worker *w);

extern const struct dp_transport_ops dp_shm_ops;
extern const struct dp_transport_ops dp_tcp_ops;

#endif
