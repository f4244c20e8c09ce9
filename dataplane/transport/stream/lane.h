/* SPDX-License-Identifier: Apache-2.0
 * One lane = one TCP connection: the send ring, the receive state machine and the states of a connection, the same
 * for both ends. What frames mean is the side's business (client.c, note.c: struct dp_lane_side of the connecting
 * end; server.c: of the accepting end). Worker thread only; no allocation, no copy of payload except the few bytes
 * that arrive in one read together with a header. */
#ifndef DP_STREAM_LANE_H
#define DP_STREAM_LANE_H

#include "common/list.h"
#include "dataplane/transport/stream/bytes.h"
#include "dataplane/transport/stream/frame.h"
#include "dataplane/transport/stream/hello.h"

#define DP_LANE_OPS 256u        /* operations in flight on one lane; power of two */
#define DP_LANE_RX_BYTES 512u   /* headers that one read may take ahead */

/* X(STATE, name) */
#define DP_LANE_STATES(X) \
	X(CLOSED, closed) X(CONNECTING, connecting) X(HELLO_SENT, hello_sent) X(READY, ready) \
	X(DRAINING, draining /* no new operations; closes when empty */)
/* X(from, to, "when") */
#define DP_LANE_MOVES(X) \
	X(CLOSED, CONNECTING, "this side wants a lane and may connect now") \
	X(CONNECTING, HELLO_SENT, "connected, HELLO is on its way") \
	X(HELLO_SENT, READY, "the other side accepted") \
	X(CLOSED, READY, "accepted from a peer whose HELLO was judged good; the answer is on its way") \
	X(READY, DRAINING, "the other side is shutting down") \
	X(CONNECTING, CLOSED, "refused, or too late") \
	X(HELLO_SENT, CLOSED, "refused, or too late") \
	X(READY, CLOSED, "unused for long, end of the stream, error, no progress, or fenced") \
	X(DRAINING, CLOSED, "empty, or as for ready")
#define X(n, s) DP_LANE_##n,
enum dp_lane_state { DP_LANE_STATES(X) DP_LANE_STATE_CNT };
#undef X

struct dp_lane;
struct dp_machine;
struct dp_path;
struct dp_sender;
struct dp_stream;
struct dp_xfer;

/* dp_lane_op.flags */
#define DP_LANE_OP_DROPPED 0x01u /* client: never sent, its place in the ring is skipped */
#define DP_LANE_OP_LEFT    0x02u /* client: its first byte may have left; id is fixed */
#define DP_LANE_OP_DISCARD 0x04u /* client READ: the answer's payload goes nowhere */
#define DP_LANE_OP_WAITING 0x08u /* server NOTE: the verdict is not known yet */
#define DP_LANE_OP_REVOKED 0x20u /* server READ: its segment is being withdrawn */
#define DP_LANE_OP_TOUCHED 0x40u /* server WRITE: refused after a part of it may have landed */
#define DP_LANE_OP_ZEROS   0x10u /* client WRITE: its memory failed, the frame is completed with zeros */

/* One operation between its request and its answer. 128 bytes: the header that is being sent lives here, so a partial
 * write can resume and a provider may keep a reference until the bytes are acknowledged. */
struct dp_lane_op {
	uint8_t *ptr;            /* client: local memory or note slot; server: registered memory of a READ */
	uint64_t id, registration;
	uint64_t offset; /* client: within the buffer, or notice sequence; server: committed length of the answer */
	uint32_t length;         /* payload bytes of the request or the answer */
	uint16_t status;         /* server: enum dp_frame_status of the answer */
	uint8_t op, flags;
	struct dp_xfer *xfer;    /* client READ, WRITE; NULL: nobody waits any more */
	tn_handle segment;       /* server: what ptr belongs to */
	uint8_t hdr[DP_FRAME_REQ_BYTES];
};
TN_STATIC_ASSERT(sizeof(struct dp_lane_op) <= 128, "two cache lines per operation");

/* The meaning of frames at one end. */
struct dp_lane_side {
	uint32_t rx_hdr_bytes, tx_hdr_bytes; /* of arriving and of leaving headers */
	unsigned metric;                     /* enum tn_side */
	/* Fill op->hdr of an operation that is next to be sent as request `id` of the lane. */
	void (*tx_header)(struct dp_lane_op *op, uint64_t id);
	/* Payload that follows the header; may change until the first byte left. */
	struct iovec (*tx_payload)(const struct dp_lane *l, const struct dp_lane_op *op);
	bool (*tx_ready)(const struct dp_lane_op *op);
	void (*tx_first)(struct dp_lane *l, struct dp_lane_op *op); /* its first byte left */
	void (*tx_whole)(struct dp_lane *l, struct dp_lane_op *op); /* its last byte left; may advance head */
	/* How many bytes rx_buf may hold now, so that headers land in it and little else; 0 = do not read. */
	uint32_t (*rx_want)(const struct dp_lane *l);
	/* Can one more header be taken? */
	bool (*rx_room)(const struct dp_lane *l);
	/* One header; sets rx_left and rx_ptr when payload follows. Anything but OK closes the lane. */
	enum dp_frame_error (*rx_header)(struct dp_lane *l, const uint8_t *hdr);
	void (*rx_payload)(struct dp_lane *l);                      /* the payload is complete */
	/* A page of registered memory cannot be had: the rest of that payload is redirected; false = close the lane. */
	bool (*fault)(struct dp_lane *l, bool tx);
	/* The connection is over (already closed and out of its path). status says why. */
	void (*closed)(struct dp_lane *l, tn_status status, enum dp_frame_error error);
	void (*connected)(struct dp_lane *l);                       /* client: CONNECTING is over */
	enum dp_frame_error (*answer)(struct dp_lane *l, const uint8_t *bytes); /* client: HELLO's answer is here */
};

struct dp_lane {
	struct dp_bytes bytes;
	struct dp_stream *stream;
	const struct dp_lane_side *side;
	struct tn_list live_link;            /* all open lanes, or the free ones */
	struct tn_list rx_link, tx_link;     /* lanes that can move something now */
	struct tn_list sender_link;          /* server: lanes of one sender */
	uint32_t serial;             /* changes with every use of this slot */
	uint8_t state;               /* enum dp_lane_state */
	bool control, readable, writable, hangup;
	bool urgent;                 /* served before those of bulk: the control lane, and that of urgent requests */
	bool greeted;                /* HELLO was accepted */
	bool remembers;              /* DP_HELLO_FEATURE_NOTES was agreed */
	uint16_t index;              /* lane number within the path */
	uint32_t endpoint;           /* client: which of the peer's addresses it connects to */
	uint32_t epoch;
	uint32_t frame_bytes;        /* agreed bound of READ and WRITE */
	struct dp_path *path;        /* client */
	struct dp_sender *sender;    /* server */
	uint64_t open_ns, moved_ns;  /* last time a byte moved or work began */
	uint64_t limit_ns;           /* state deadline (connect, grace); UINT64_MAX = none */
	uint64_t op_cnt, retrans_seen;
	/* send: ring positions run freely; [head, tx) sent (client: unanswered), [tx, tail) not yet */
	uint32_t head, tx, tail;
	uint32_t tx_done;            /* bytes of ops[tx] that left, header included */
	uint32_t pre_left;           /* bytes of HELLO or its answer still to send, at the end of pre[] */
	uint64_t next_id;            /* client: id of the next request to be sent; server: of the next to arrive */
	uint64_t out_bytes;          /* client: lengths of unanswered operations */
	uint64_t tx_backlog;         /* client: unsent WRITE bytes; server: unsent READ bytes */
	/* receive */
	uint8_t *rx_ptr;             /* where payload goes; NULL = nowhere */
	uint32_t rx_left;            /* payload bytes still to come */
	uint32_t rx_have, rx_pos;    /* bytes in rx_buf, and how many of them were taken */
	bool rx_ahead;               /* server: the last request was a READ, more may follow without payload between */
	struct dp_frame_req rx_req;  /* server: the request whose payload arrives */
	uint16_t rx_status;          /* server: its answer so far */
	tn_handle rx_segment;        /* server: what rx_ptr belongs to; 0 = no client's memory */
	bool rx_revoked;             /* server: that segment is being withdrawn */
	bool rx_touched;             /* server: the payload was turned away after a part of it may have landed */
	uint64_t revoke_ns;          /* server: when the grace of a withdrawn segment ends; UINT64_MAX = none */
	void *rx_note;               /* server: struct dp_note_in being filled */
	/* server: who is allowed what, asked once per segment version */
	tn_handle allowed_segment;
	uint64_t allowed_generation;
	bool allowed;
	struct dp_hello hello;       /* server: who it is */
	uint8_t datagram[DP_FRAME_DATAGRAM_MAX]; /* server, control lane: one that arrives */
	uint8_t pre[DP_HELLO_BYTES];
	uint8_t rx_buf[DP_LANE_RX_BYTES];
	struct dp_lane_op ops[DP_LANE_OPS];
};

TN_INLINE struct dp_lane_op *dp_lane_op_at(struct dp_lane *l, uint32_t pos) { return &l->ops[pos & (DP_LANE_OPS - 1)]; }
TN_INLINE uint32_t dp_lane_room(const struct dp_lane *l) { return DP_LANE_OPS - (l->tail - l->head); }
TN_INLINE bool dp_lane_unsent(const struct dp_lane *l) { return l->tx != l->tail || l->pre_left > 0; }
TN_INLINE bool dp_lane_open(const struct dp_lane *l) { return l->state != DP_LANE_CLOSED; }

/* Checked state change. */
void dp_lane_move(struct dp_lane *l, enum dp_lane_state to);
const char *dp_lane_state_name(unsigned state);
extern const struct dp_machine dp_lane_machine; /* dataplane/request/state.h; for the generated page */

/* Room must be there. The new operation at the tail, cleared; the caller fills it, then dp_lane_kick(). */
struct dp_lane_op *dp_lane_push(struct dp_lane *l);
/* Put the lane on the lists of those that can move something. After a push, a verdict, room made. */
void dp_lane_kick(struct dp_lane *l);
/* Move a bounded amount in one direction; how many I/O calls moved something. The lane may be closed afterwards. */
uint32_t dp_lane_receive(struct dp_lane *l);
uint32_t dp_lane_transmit(struct dp_lane *l);
/* Queue HELLO or its answer in front of everything; len <= DP_HELLO_BYTES. */
void dp_lane_preamble(struct dp_lane *l, const uint8_t *bytes, uint32_t len);
/* An operation ended on this lane: samples the connection now and then. */
void dp_lane_count_op(struct dp_lane *l);
/* The largest frame of this lane: what both ends take, and on an urgent one what holds nobody up. */
void dp_lane_agree_frames(struct dp_lane *l, uint32_t theirs);
/* Close the connection, then side->closed(). Harmless on a closed lane. */
void dp_lane_close(struct dp_lane *l, tn_status status, enum dp_frame_error error, bool abort);

/* From side->rx_header(): `length` payload bytes follow and go to ptr (NULL = nowhere). */
TN_INLINE void dp_lane_expect(struct dp_lane *l, uint8_t *ptr, uint32_t length)
{
	l->rx_ptr = ptr;
	l->rx_left = length;
}

#endif
