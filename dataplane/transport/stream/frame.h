/* SPDX-License-Identifier: Apache-2.0
 * The only owner of the bytes of request and response headers on a lane (docs/protocol.md 1.3, 1.4): pure functions
 * between 48/32 wire bytes and structs, checked in the documented order. Shared by every framed transport (tcp, later
 * hp_tcp). No state, no I/O; any thread; fuzzed by tests/fuzz/fuzz_frame.c. */
#ifndef DP_STREAM_FRAME_H
#define DP_STREAM_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/compiler.h"

#define DP_FRAME_VERSION 1u
#define DP_FRAME_REQ_BYTES 48u
#define DP_FRAME_RSP_BYTES 32u
#define DP_FRAME_BYTES_MIN 4096u          /* smallest "largest frame" that an end may announce */
#define DP_FRAME_BYTES_MAX (1024u * 1024u)
#define DP_FRAME_NOTE_MAX 4096u
#define DP_FRAME_DATAGRAM_MAX 2048u

enum dp_frame_op { DP_FRAME_READ = 1, DP_FRAME_WRITE = 2, DP_FRAME_NOTE = 3, DP_FRAME_DATAGRAM = 4 };

enum dp_frame_status {
	DP_FRAME_ST_OK = 0,
	DP_FRAME_ST_VERSION = 1,
	DP_FRAME_ST_OPCODE = 2,
	DP_FRAME_ST_LENGTH = 3,
	DP_FRAME_ST_RANGE = 4,
	DP_FRAME_ST_PERMISSION = 5,
	DP_FRAME_ST_STALE = 6,
	DP_FRAME_ST_SHUTDOWN = 7,
	DP_FRAME_ST_INTERNAL = 8,
	DP_FRAME_ST_INBOX_FULL = 9,
	DP_FRAME_ST_NO_RECEIVER = 10,
	DP_FRAME_ST_FAULT = 11,
	DP_FRAME_ST_CNT
};

/* Why bytes from the other end were refused. All but OK close the lane; the order after OK is the contract's
 * (label `error` of tent_hp_tcp_protocol_errors_total). */
enum dp_frame_error {
	DP_FRAME_OK = 0, DP_FRAME_BAD_SIZE, DP_FRAME_BAD_MAGIC, DP_FRAME_BAD_VERSION, DP_FRAME_BAD_RESERVED,
	DP_FRAME_BAD_OPCODE, DP_FRAME_BAD_LENGTH, DP_FRAME_BAD_STATUS, DP_FRAME_BAD_ID, DP_FRAME_BAD_COMMITTED,
	DP_FRAME_BAD_TICKET, DP_FRAME_BAD_ADDRESS, DP_FRAME_ERROR_CNT
};

struct dp_frame_req {
	uint8_t op;            /* enum dp_frame_op */
	uint64_t id;           /* +1 per request of the lane, from 1 */
	uint64_t registration; /* READ, WRITE: the buffer; NOTE: any buffer of the segment; DATAGRAM: 0 */
	uint64_t offset;       /* bytes from the buffer's start; NOTE: notice sequence */
	uint64_t length;       /* payload bytes asked for or following */
};

struct dp_frame_rsp {
	uint16_t status;       /* enum dp_frame_status */
	uint64_t id;
	uint64_t committed;    /* = length asked when status is OK, else 0 */
	bool touched;          /* refused, but a part of the WRITE may stand in the segment */
};

/* What a receiver of requests expects next on this lane. */
struct dp_frame_req_rule {
	uint64_t id;           /* of the next request */
	uint32_t frame_bytes;  /* agreed bound of READ and WRITE */
	bool control;          /* control lane: NOTE and DATAGRAM only; data lane: READ and WRITE only */
};

/* Never fail; the caller's numbers are its own. */
void dp_frame_req_encode(const struct dp_frame_req *req, uint8_t out[static DP_FRAME_REQ_BYTES]);
void dp_frame_rsp_encode(const struct dp_frame_rsp *rsp, uint8_t out[static DP_FRAME_RSP_BYTES]);

/* Decode exactly one header; `len` other than the header's size is BAD_SIZE. *out is untouched unless OK. An OK request
 * has op, id and length within the rule; registration and offset are still to be judged (they are semantic). */
enum dp_frame_error dp_frame_req_decode(const uint8_t *buf, size_t len, const struct dp_frame_req_rule *rule,
                                        struct dp_frame_req *out);
/* `id` and `length` are those of the lane's oldest unanswered request. */
enum dp_frame_error dp_frame_rsp_decode(const uint8_t *buf, size_t len, uint64_t id, uint64_t length,
                                        struct dp_frame_rsp *out);

/* Does this request carry payload towards the server? */
TN_INLINE bool dp_frame_op_pushes(uint8_t op) { return op != DP_FRAME_READ; }

#endif
