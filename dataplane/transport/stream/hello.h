/* SPDX-License-Identifier: Apache-2.0
 * The only owner of the bytes of HELLO and its answer (docs/protocol.md 1.1, 1.2), which open every lane. The
 * accepting side reads exactly DP_HELLO_BYTES, decodes, judges (version, session, ticket, room) and either answers a
 * refusal and closes, or hands socket and struct to the worker that serves the path (greet.c), which answers. Any thread. */
#ifndef DP_STREAM_HELLO_H
#define DP_STREAM_HELLO_H

#include "common/atomic.h"
#include "common/ids.h"
#include "dataplane/transport/stream/frame.h"

#define DP_HELLO_BYTES 160u
#define DP_HELLO_ANSWER_BYTES 64u
#define DP_HELLO_LANE_CONTROL 0xffffu /* struct dp_hello.lane of a path's control lane ... */
#define DP_HELLO_LANE_URGENT 0xfffeu  /* ... and of its lane for urgent requests */
#define DP_HELLO_FEATURE_NOTES UINT64_C(2) /* the receiver remembers notices: one may be sent again */
#define DP_HELLO_URGENT_BYTES (64u * 1024u) /* largest READ or WRITE there */

struct dp_hello {
	/* on the wire */
	uint16_t version_min, version_max;
	uint64_t features;                /* offered */
	struct tn_id128 sender_session;   /* never zero after decode; the same holds for sender, ticket, path_epoch */
	struct tn_id128 receiver_session; /* the one that the sender expects; zero = it does not know */
	struct tn_peer_id sender;
	struct tn_id128 ticket;           /* secret: compare with tn_id128_eq_secret, wipe after the check */
	uint32_t path_epoch;              /* from 1 */
	uint16_t worker;                  /* the sender's; with sender_session it names the path */
	uint16_t lane;                    /* 0.., or DP_HELLO_LANE_URGENT, DP_HELLO_LANE_CONTROL */
	uint32_t frame_bytes;             /* DP_FRAME_BYTES_MIN ..= DP_FRAME_BYTES_MAX */
	/* not on the wire: what the accepting side found out, constant afterwards */
	uint32_t peer_index;              /* index of the peer that the ticket belongs to */
	char peer_name[TN_NAME_MAX];      /* its name, for access lists and notices */
	tn_a32 *conn_cnt; /* accepted connections of that peer, counted by the accepting side; whoever closes
			   * the socket subtracts one: tn_fetch_add32(conn_cnt, UINT32_MAX). Lives longer
			   * than any lane; NULL: not counted */
};

/* Answer status; the enum's numbers are on the wire. */
enum dp_hello_status {
	DP_HELLO_ACCEPTED = 0,
	DP_HELLO_NO_VERSION = 1,
	DP_HELLO_NO_TICKET = 2, /* unknown, revoked, of another peer */
	DP_HELLO_SESSION = 3,   /* receiver_session is not ours */
	DP_HELLO_TOO_MANY = 4,
	DP_HELLO_DRAINING = 5,
	DP_HELLO_OLD_EPOCH = 6, /* a lane with a higher epoch of this path was accepted before */
	DP_HELLO_ADDRESS = 7,   /* the ticket is good, but the lane comes from an address that it is not bound to */
	DP_HELLO_STATUS_CNT
};

struct dp_hello_answer {
	uint16_t version;          /* chosen; 0 when refused for it */
	uint16_t status;           /* enum dp_hello_status */
	uint64_t features;         /* agreed */
	struct tn_id128 session;   /* receiver's; zero in refusals: a stranger learns nothing */
	uint32_t frame_bytes;      /* the server's largest */
	uint32_t path_epoch;       /* accepted */
	uint8_t seen[16];          /* DP_HELLO_ADDRESS: where the lane came from, IPv4 as ::ffff:a.b.c.d; else zero */
};

/* Never fail. */
void dp_hello_encode(const struct dp_hello *hello, uint8_t out[static DP_HELLO_BYTES]);
void dp_hello_answer_encode(const struct dp_hello_answer *answer, uint8_t out[static DP_HELLO_ANSWER_BYTES]);

/* Check order: size, magic, version range (min <= max, not 0), identity (zero session, sender, ticket or epoch:
 * BAD_TICKET), frame size (BAD_LENGTH), zero tail (BAD_RESERVED). Anything but OK: close without an answer. *out is
 * written only when OK; its not-on-the-wire members are zeroed. */
enum dp_frame_error dp_hello_decode(const uint8_t *buf, size_t len, struct dp_hello *out);
/* Check order: size, magic, status, version (when accepted), frame size (when accepted), zero tail and, but for
 * DP_HELLO_ADDRESS, zero address. */
enum dp_frame_error dp_hello_answer_decode(const uint8_t *buf, size_t len, struct dp_hello_answer *out);

/* The version both can speak, or 0: answer DP_HELLO_NO_VERSION. */
uint16_t dp_hello_version_choose(const struct dp_hello *hello);
/* Feature bits that this build agrees to (of those offered). */
uint64_t dp_hello_features_agree(uint64_t offered);

#endif
