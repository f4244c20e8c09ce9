/* SPDX-License-Identifier: Apache-2.0
 * What the two halves of the stand-in share: its objects, and the queue-pair half's interface (standin_ring.c). One
 * thread. */
#ifndef STANDIN_PARTS_H
#define STANDIN_PARTS_H

#include "tests/unit/libtent/standin.h"

#include "shm-ring/doorbell.h"
#include "shm-ring/handshake.h"
#include "shm-ring/region.h"
#include "shm-ring/spsc.h"

#define CLIENTS 8
#define OBJECTS 64
#define PENDING (2 * SHR_SQ_ENTRIES_MAX)
#define FAILED_BATCHES 64

struct memory { uint64_t id; uint8_t *base; uint64_t bytes; };
struct segment {
	uint64_t id;
	char name[TN_NAME_MAX];
	struct tn_id128 publication;
	uint32_t buffer_cnt;
	struct shr_msg_buffer buffers[8];
	uint64_t bytes;
	struct shr_msg_hdr unanswered; /* the PUBLISH that waits for its answer; magic 0: none */
};
struct opened { uint64_t id; char name[TN_NAME_MAX]; };
struct pending { struct shr_sqe_shm sqe; bool used, released; };
struct qp {
	uint64_t id;
	struct shr_region region;
	struct shr_qp_view view;
	struct shr_sq_cons sq;
	struct shr_cq_prod cq;
	int doorbell, app_end;
	struct pending *pending;  /* in order; [0, pending_cnt) */
	uint32_t pending_cnt;
	uint64_t release[PENDING]; /* tokens that wait for their release */
	uint32_t release_cnt;
	uint32_t failed[FAILED_BATCHES], failed_cnt;
};
struct client {
	int sock;
	struct memory memories[OBJECTS];
	struct segment segments[OBJECTS];
	struct opened opens[OBJECTS];
	struct qp *qps[8];
	uint32_t notes_out;
};

extern struct standin_ctl *ctl;
extern struct client clients[CLIENTS];
extern struct shr_msg msg;

TN_INLINE void count(tn_a32 *c, int by) { tn_fetch_add32(c, (uint32_t)by); }

struct memory *find_memory(uint64_t id);
struct segment *find_segment(const char *name, struct client **owner_out);

/* A queue pair as ordered; its app_end is to be passed on and closed. */
struct qp *qp_make(const struct shr_msg_qp_create *b, uint64_t id);
void qp_drop(struct qp *q);
/* Takes what may be taken, finishes what may be finished. wild: an index to overwrite first. False: the client broke
 * its ring. */
bool qp_serve(struct qp *q, uint32_t wild);

#endif
