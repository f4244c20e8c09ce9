/* SPDX-License-Identifier: Apache-2.0
 * Codec of file segments (docs/protocol.md section 6): the trailing page in which the publisher describes the content,
 * and the notice with which a put ends. Pure functions over bytes that a stranger may have written. */
#ifndef TCTL_TRAILER_H
#define TCTL_TRAILER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/status.h"
#include "controlplane/tentctl/sha256.h"

#define TCTL_TRAILER_BYTES 4096u
#define TCTL_TRAILER_VERSION 2u
#define TCTL_TRAILER_SEAL_OFF 256u /* of the hash over all bytes before it */
#define TCTL_VERDICTS 8u
#define TCTL_PUT_NOTICE_BYTES 64u
/* Largest capacity of a file segment: 1 TiB. */
#define TCTL_CAPACITY_MAX (UINT64_C(1) << 40)

enum tctl_content { /* what the data are */
	TCTL_CONTENT_EMPTY = 0,   /* nothing was put yet */
	TCTL_CONTENT_READY = 1,   /* content_bytes and sha256 describe them */
	TCTL_CONTENT_HASHING = 2, /* a put arrived; the publisher reads it */
	TCTL_CONTENT_DAMAGED = 3, /* the last put did not arrive as its sender hashed it */
	TCTL_CONTENT_CNT
};
enum tctl_put_result { /* how a put ended */
	TCTL_PUT_NONE = 0,      /* the publisher is verifying it */
	TCTL_PUT_DONE = 1,      /* arrived and verified (and written to --output) */
	TCTL_PUT_READ_ONLY = 2,
	TCTL_PUT_TOO_BIG = 3,
	TCTL_PUT_MISMATCH = 4,  /* the hashes of both sides differ */
	TCTL_PUT_OUTPUT = 5,    /* verified, but --output could not be written */
	TCTL_PUT_CNT
};

struct tctl_verdict {
	uint64_t nonce;          /* of the put; 0 = none */
	enum tctl_put_result result;
};

struct tctl_trailer {
	enum tctl_content content;
	uint64_t capacity;       /* bytes of room */
	uint64_t content_bytes;  /* <= capacity */
	uint64_t sequence;       /* +1 with every change of this page */
	uint8_t sha256[TCTL_SHA256_BYTES];
	struct tctl_verdict verdicts[TCTL_VERDICTS]; /* of the last puts that the publisher saw, newest first */
};

/* Bytes of a segment with that capacity: the room in whole pages, then the trailer; 0 when above TCTL_CAPACITY_MAX. */
uint64_t tctl_trailer_segment_bytes(uint64_t capacity);
/* Where the trailer of a segment of that size would begin; false when it is too small or of odd size. */
bool tctl_trailer_offset(uint64_t segment_bytes, uint64_t *offset_out);

void tctl_trailer_encode(const struct tctl_trailer *t, uint8_t page[static TCTL_TRAILER_BYTES]);
/* NOT_FOUND: no trailer, the segment is no file segment. AGAIN: the page changed while it was read. UNSUPPORTED: of a
 * newer version. INVALID: its values contradict each other or the size of the segment. err: one line, except for
 * NOT_FOUND. */
tn_status tctl_trailer_decode(const uint8_t page[static TCTL_TRAILER_BYTES], uint64_t segment_bytes,
			      struct tctl_trailer *out, char err[static TN_ERR_TEXT]);

/* The verdict of the put with this nonce changes, or it is the newest and the oldest is forgotten. */
void tctl_trailer_judge(struct tctl_trailer *t, uint64_t nonce, enum tctl_put_result result);
/* NULL: the publisher has not seen that put, or has forgotten it. */
const struct tctl_verdict *tctl_trailer_verdict(const struct tctl_trailer *t, uint64_t nonce);

struct tctl_put_notice {
	uint64_t nonce;          /* random, not 0 */
	uint64_t content_bytes;
	uint8_t sha256[TCTL_SHA256_BYTES];
};
void tctl_put_notice_encode(const struct tctl_put_notice *n, uint8_t out[static TCTL_PUT_NOTICE_BYTES]);
/* False: not such a notice. */
bool tctl_put_notice_decode(const uint8_t *bytes, size_t n, struct tctl_put_notice *out);

#endif
