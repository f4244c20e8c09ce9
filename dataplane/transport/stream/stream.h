/* SPDX-License-Identifier: Apache-2.0
 * Inside of the framed stream transports: one struct dp_stream per (worker, kind) with its lanes, its paths to peers
 * (client.c, path.c, note.c) and the senders of others (server.c). Private to transport/stream and to the kinds
 * built on it (transport/tcp), which bring a byte-stream provider and get a complete ops table out of these
 * functions. */
#ifndef DP_STREAM_STREAM_H
#define DP_STREAM_STREAM_H

#include "common/metrics.h"
#include "common/rand.h"
#include "dataplane/transport/stream/lane.h"

#define DP_PATH_LANES_MAX 16u
#define DP_PATH_URGENT DP_PATH_LANES_MAX /* place of the urgent lane among a path's */
#define DP_PATH_PLACES (DP_PATH_LANES_MAX + 1u)
#define DP_STREAM_SMALL_SLOTS 32u /* notices and datagrams in flight on one control lane; power of two */
#define DP_STREAM_SMALL_BYTES (DP_STREAM_SMALL_SLOTS * DP_FRAME_NOTE_MAX)
#define DP_STREAM_LANES_MAX (1u << 17)
#define DP_STREAM_SCRATCH_BYTES (64u * 1024u)
#define DP_STREAM_SUSPECTS 8u
#define DP_STREAM_SMALL_ATTEMPT DP_HELLO_URGENT_BYTES /* attempts up to this are not stuck behind larger ones */

struct dp_stream_cfg {
	uint32_t lanes_per_peer, frame_bytes;
	uint32_t peer_cnt;        /* peer indices are below; there is a path more, to ourselves (DP_PEER_SELF) */
	uint32_t server_lanes;    /* accepted connections at once */
	uint32_t xfers;           /* attempts accepted and not ended */
	uint64_t lane_window_bytes;
	uint64_t connect_timeout_ns, progress_timeout_ns, idle_timeout_ns;
};

/* Which list an attempt's t_link is in. */
enum dp_xfer_place { DP_XFER_NOWHERE, DP_XFER_RUN, DP_XFER_PARKED, DP_XFER_FENCING, DP_XFER_CANCELING, DP_XFER_DONE };

/* Our side of an attempt. Pooled; dp_attempt.t_priv points here. */
struct dp_xfer {
	struct dp_attempt *attempt;
	struct dp_path *path;
	uint64_t submit_ns, start_ns; /* accepted; first slice given to a lane (0 = not yet) */
	uint64_t cancel_ns;           /* CANCELING: when it is left to itself */
	uint64_t out_bytes;           /* of its slices on lanes, unanswered */
	uint32_t buffer;              /* index of the remote buffer that t_next is in */
	uint32_t ambiguous; /* WRITE slices that may have left on lanes that are closed; waits for the fence */
	uint8_t place;                /* enum dp_xfer_place */
	bool failed, canceled;
	bool landed;                  /* a slice of it was answered OK, or refused after a part of it may have landed */
	bool doubtful;                /* a slice of it was ambiguous at some time ... */
	bool unfenced;                /* ... and no fence settled it */
	struct dp_xfer *free_next;
};

/* One notice or datagram of a path's control lane, in order: [head, next) on the lane, [next, tail) not yet. */
struct dp_small {
	struct dp_request *note; /* NULL: datagram, or nobody waits any more */
	uint64_t registration, seq, deadline_ns;
	uint32_t length;
	uint8_t op;              /* DP_FRAME_NOTE, DP_FRAME_DATAGRAM; 0 = it does not go out any more */
	bool left;               /* on an earlier lane, unanswered: it may have arrived */
};

/* What the control thread may read of a path (board.c). */
struct dp_path_board {
	tn_a32 known, lanes, opening, control, hold, why, fail_cnt;
	tn_a64 next_try_ns, since_ns;
	tn_a64 endpoint_ns[DP_ENDPOINTS_MAX], endpoint_result[DP_ENDPOINTS_MAX]; /* result: status (32) | errno (32) */
	tn_a64 seen[2]; /* struct dp_hello_answer.seen of the last such refusal, as it lies in memory */
};

/* Connections to one peer. */
struct dp_path {
	struct dp_stream *stream;
	uint32_t peer_index, epoch;
	struct dp_lane *lanes[DP_PATH_PLACES]; /* NULL = closed; those for all requests, then the urgent one */
	struct dp_lane *control;
	struct tn_list run[TN_PRIORITY_CNT][2]; /* attempts with bytes not yet cut: [0] small, [1] large; via t_link */
	uint8_t turn[TN_PRIORITY_CNT];            /* small ones served since the last large one */
	struct tn_list parked;                    /* have as much on lanes as one may have */
	struct tn_list fencing;                   /* failed with ambiguous slices */
	struct tn_list dirty_link;                /* in dp_stream.dirty: pump and connect have something to do */
	uint32_t queued;                          /* attempts in run */
	/* the peer as last told by peer_set(); endpoint_cnt 0 = not known */
	struct tn_id128 session;
	struct tn_id128 *ticket;                  /* in dp_stream.tickets */
	uint32_t endpoint_cnt;
	struct sockaddr_storage endpoints[DP_ENDPOINTS_MAX];
	/* connecting */
	uint32_t open_cnt, ready_cnt, opening_cnt; /* data lanes; data lanes READY; all lanes on their way */
	uint32_t fail_cnt;                        /* connections that failed in a row */
	uint32_t endpoint, round;                 /* next address; addresses tried in this round */
	uint64_t next_try_ns;                     /* no new connection before */
	uint64_t probe_ns;                        /* a lane is wanted until then although nothing needs it; 0 = no */
	uint64_t wait_ns;                         /* attempts without a ready lane fail then; UINT64_MAX = none wait */
	bool want_more;                           /* every ready lane is busy */
	bool want_urgent;                         /* an urgent request found bulk on all of them */
	bool breaking;                            /* inside dp_path_break() */
	bool up;                                  /* as last told with dp_worker_lane_state() */
	/* asking the control thread for a new session or ticket */
	bool hold;                                /* no connection before its answer */
	uint32_t refresh_cnt;
	uint64_t refresh_ns;                      /* not asked again before */
	tn_status refresh_why;                    /* PEER_DENIED, PEER_ADDRESS, PEER_STALE, PATH_DOWN */
	bool stray;                               /* in this round an address refused us for where we come from */
	struct dp_path_board board;
	/* control lane */
	uint32_t small_head, small_next, small_tail;
	struct dp_small small[DP_STREAM_SMALL_SLOTS];
};

/* One path as its receiver sees it: (sender incarnation, sender worker). Exists while it has lanes. */
struct dp_sender {
	struct tn_list link;  /* dp_stream.senders, or free */
	struct tn_list lanes;
	struct tn_id128 session;
	uint32_t peer_index, worker, epoch;
};

struct dp_stream {
	struct dp_transport base;
	const struct dp_bytes_ops *bytes;
	void *provider;
	struct dp_stream_cfg cfg;
	struct tn_metrics *metrics;
	unsigned kind; /* enum tn_stream */
	struct tn_rand rand;
	bool draining;     /* we serve nobody any more; our own lanes go on and report (base.up is the transport's own end) */
	uint64_t timer_ns; /* nothing is due before */
	uint64_t call_bytes; /* that a call moves, smoothed over the last few calls that moved any */
	struct dp_path *paths;     /* by row; path_cnt of them are set up: up to the highest peer that was told of */
	tn_a32 path_cnt;           /* grows; the control thread's explanation reads it */
	struct tn_id128 *tickets;  /* by row, like paths; pages that stay out of core dumps */
	struct dp_lane *lanes;
	struct dp_sender *sender_pool;
	struct dp_xfer *xfers, *xfer_free;
	uint8_t *small;            /* DP_STREAM_SMALL_BYTES per path: payloads of its notices and datagrams */
	uint8_t *scratch;          /* discarded payload lands here */
	const uint8_t *zeros;      /* DP_FRAME_BYTES_MAX of them, read-only */
	int spill[2];              /* pipe: the kernel copies, so a bad page of a client is an error and not a signal */
	tn_handle suspects[DP_STREAM_SUSPECTS]; /* segments of which an answer broke off (serve.c); 0 = none */
	uint32_t suspect_cnt;      /* ever; the next one replaces the oldest */
	uint32_t lane_cap, server_cnt, admitted;
	uint32_t lane_fresh, sender_fresh,
		xfer_fresh;                      /* slots below were used before; those above were never touched */
	struct tn_list free_lanes, live; /* lanes */
	struct tn_list rx[2], tx[2];     /* those that can move something: [0] urgent, [1] bulk */
	size_t turn_left;                /* bytes that bulk may still move in this turn and direction */
	uint64_t urgent_until_ns;        /* urgent requests come and go */
	bool bulk_owed;                  /* urgent lanes had the last turn for themselves */
	struct tn_list dirty;      /* paths */
	struct tn_list senders, free_senders;
	struct tn_list canceling;  /* attempts in the order of their cancel_ns, via t_link */
	struct tn_list done;       /* attempts to be reported at the next safe point, via t_link */
};

/* ---- stream.c: life, the progress round, timers ---- */
/* Common part of every kind's create(). metrics and rand come from the worker. */
tn_status dp_stream_new(struct dp_worker *w, const struct dp_transport_ops *ops, const struct dp_bytes_ops *bytes,
                        const struct dp_stream_cfg *cfg, struct dp_transport **out);
void dp_stream_cfg_tcp(const struct tn_config *config, struct dp_stream_cfg *out); /* keys transports/tcp */
void dp_stream_destroy(struct dp_transport *t);
uint32_t dp_stream_progress(struct dp_transport *t, uint64_t now_ns, uint32_t budget);
uint64_t dp_stream_next_timer_ns(const struct dp_transport *t);
bool dp_stream_busy(const struct dp_transport *t);
bool dp_stream_bulk(const struct dp_transport *t);
bool dp_stream_urgent(const struct dp_transport *t);
struct dp_lane *dp_stream_lane_get(struct dp_stream *s, const struct dp_lane_side *side, enum dp_lane_state state);
void dp_stream_lane_put(struct dp_lane *l);
TN_INLINE uint64_t dp_stream_now(const struct dp_stream *s) { return dp_worker_now(s->base.worker); }
/* Something is due at `ns`. */
TN_INLINE void dp_stream_timer(struct dp_stream *s, uint64_t ns)
{
	if (ns < s->timer_ns)
		s->timer_ns = ns;
}
/* Copy into memory that a client may have made unusable; false: it is. len <= DP_LANE_RX_BYTES. */
bool dp_stream_spill(struct dp_stream *s, uint8_t *to, const uint8_t *from, size_t len);

/* ---- client.c: life of attempts ---- */
enum dp_reach dp_stream_reach(const struct dp_transport *t, const struct dp_remote *remote);
tn_status dp_stream_submit(struct dp_transport *t, struct dp_attempt *a, struct dp_result *result);
void dp_stream_cancel(struct dp_transport *t, struct dp_attempt *a);
void dp_client_place(struct dp_xfer *x, enum dp_xfer_place to);
/* First failure wins and calls the siblings back; settle ends it when nothing of it is left anywhere. */
void dp_client_fail(struct dp_xfer *x, tn_status status, uint8_t phase, uint8_t reason);
void dp_client_settle(struct dp_xfer *x);
void dp_client_fail_queued(struct dp_path *p, tn_status status, uint8_t phase, uint8_t reason);
void dp_client_fenced(struct dp_path *p);    /* nothing ambiguous can land any more */
uint64_t dp_client_sweep(struct dp_path *p, uint64_t now_ns); /* ambiguous attempts whose deadline passed */
void dp_client_sweep_canceled(struct dp_stream *s, uint64_t now_ns);
void dp_client_flush(struct dp_stream *s);   /* report what ended */
/* The attempts of a closed lane; true when a slice is ambiguous: the path must be broken. */
bool dp_client_lane_lost(struct dp_lane *l, tn_status status, uint8_t reason);

/* ---- slice.c: attempts on lanes ---- */
extern const struct dp_lane_side dp_client_side;
void dp_slice_pump(struct dp_path *p);       /* give slices to lanes that have room */
/* Take the operation out of the lane's and its attempt's books. */
void dp_slice_forget(struct dp_lane *l, struct dp_lane_op *op);
tn_status dp_slice_status(uint16_t status, uint8_t *reason_out); /* of a frame status */

/* ---- path.c: connections to a peer ---- */
void dp_stream_peer_set(struct dp_transport *t, const struct dp_peer *peer);
uint32_t dp_stream_lane_cnt(const struct dp_transport *t, uint32_t peer_index);
enum dp_reach dp_stream_probe(struct dp_transport *t, uint32_t peer_index, uint64_t until_ns);
struct dp_path *dp_path_of(const struct dp_stream *s, uint32_t peer_index); /* NULL: no such peer */
void dp_path_init(struct dp_path *p, struct dp_stream *s, uint32_t row);
TN_INLINE void dp_path_dirty(struct dp_path *p)
{
	if (!tn_list_linked(&p->dirty_link))
		tn_list_push_back(&p->stream->dirty, &p->dirty_link);
}
void dp_path_connect(struct dp_path *p, uint64_t now_ns);        /* open what is wanted and allowed now */
uint64_t dp_path_sweep(struct dp_path *p, uint64_t now_ns);      /* what is due; returns when the next thing is */
uint64_t dp_path_lane_sweep(struct dp_lane *l, uint64_t now_ns);
void dp_path_closed(struct dp_lane *l, tn_status status, enum dp_frame_error error); /* dp_client_side.closed */
void dp_path_connected(struct dp_lane *l);                                           /* dp_client_side.connected */
enum dp_frame_error dp_path_answer(struct dp_lane *l, const uint8_t *bytes);         /* dp_client_side.answer */

/* ---- board.c: what people may know of a path ---- */
void dp_path_board(struct dp_path *p);       /* it changed */
void dp_path_board_outcome(struct dp_path *p, uint32_t endpoint, tn_status status, int os_error);
void dp_path_board_seen(struct dp_path *p, const uint8_t seen[static 16]);
void dp_path_board_clear(struct dp_path *p); /* other endpoints */
void dp_path_board_since(struct dp_path *p); /* it went up or down */
void dp_stream_path_info(const struct dp_transport *t, uint32_t peer_index, struct dp_path_info *out);

/* ---- note.c: the client's control lane ---- */
tn_status dp_stream_note_send(struct dp_transport *t, struct dp_request *r, const struct dp_remote *remote,
			      uint64_t seq);
void dp_stream_note_cancel(struct dp_transport *t, struct dp_request *r);
tn_status dp_stream_datagram_send(struct dp_transport *t, uint32_t peer_index, const void *bytes, uint32_t len);
void dp_note_pump(struct dp_path *p);
void dp_note_answered(struct dp_lane *l, uint16_t status);
void dp_note_lost(struct dp_lane *l, uint8_t reason);
void dp_note_forget(struct dp_path *p);      /* the peer is another incarnation: it remembers none */
uint64_t dp_note_sweep(struct dp_path *p, uint64_t now_ns);

/* ---- server.c: lanes that peers opened; serve.c: what they ask ---- */
void dp_stream_lane_adopt(struct dp_transport *t, int fd, struct dp_hello *hello);
bool dp_stream_drain(struct dp_transport *t);
bool dp_stream_fence(struct dp_transport *t, uint32_t peer_index, const struct tn_id128 *keep_session);
bool dp_stream_segment_busy(const struct dp_transport *t, tn_handle segment);
void dp_stream_segment_revoke(struct dp_transport *t, tn_handle segment);
void dp_stream_note_verdict(struct dp_transport *t, uint64_t token, tn_status verdict);
extern const struct dp_lane_side dp_server_side;
void dp_server_closed(struct dp_lane *l, tn_status status, enum dp_frame_error error); /* dp_server_side.closed */
uint64_t dp_server_sweep(struct dp_lane *l, uint64_t now_ns);
/* The grace of a withdrawn segment is over: what still touches it ends. */
void dp_serve_revoke(struct dp_lane *l);

/* Everything of the ops table that does not depend on the kind. */
#define DP_STREAM_OPS                                                                                                  \
	.destroy = dp_stream_destroy, .reach = dp_stream_reach, .probe = dp_stream_probe, .submit = dp_stream_submit,  \
	.progress = dp_stream_progress, .cancel = dp_stream_cancel, .next_timer_ns = dp_stream_next_timer_ns,          \
	.busy = dp_stream_busy, .bulk = dp_stream_bulk, .urgent = dp_stream_urgent, .peer_set = dp_stream_peer_set,    \
	.segment_busy = dp_stream_segment_busy,                                                                        \
	.segment_revoke = dp_stream_segment_revoke, .lane_adopt = dp_stream_lane_adopt, .drain = dp_stream_drain,      \
	.fence = dp_stream_fence,                                                                                      \
	.note_send = dp_stream_note_send, .note_cancel = dp_stream_note_cancel,                                        \
	.note_verdict = dp_stream_note_verdict, .datagram_send = dp_stream_datagram_send,                              \
	.lane_cnt = dp_stream_lane_cnt, .path_info = dp_stream_path_info

#endif
