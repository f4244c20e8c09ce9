/* SPDX-License-Identifier: Apache-2.0
 * The staging buffers of one application on one worker, and who gets the next one. A buffer is a chunk of memory that the
 * application made and handed over (so it is charged to the application, and a quarrel about a buffer is nobody else's);
 * a piece is what passes through it: a part of a staged owner. Made by the control thread, then its worker's alone; no
 * other thread looks. The order of the steps is dataplane/stage.c's. */
#ifndef DP_STAGING_POOL_H
#define DP_STAGING_POOL_H

#include "dataplane/request/state.h"

#define DP_STAGE_CHUNKS_MAX 64u

/* X(STATE, name) and X(from, to, "when"): a piece, which is a buffer in use. */
#define DP_STAGE_STATES(X) \
	X(FREE, free) X(FILL, fill) X(READY, ready) X(MOVE, move) X(DRAIN, drain) X(QUARANTINE, quarantine)
#define DP_STAGE_MOVES(X) \
	X(FREE, FILL, "WRITE: the application is to fill the buffer") \
	X(FREE, READY, "READ: there is nothing to fill") \
	X(FILL, READY, "filled") \
	X(FILL, FREE, "it could not be filled, or its request is over; or the application died") \
	X(FILL, QUARANTINE, "its request is over, and the application has not answered within staging/cleanup_ms") \
	X(READY, MOVE, "it is an owner in the admission queue") \
	X(READY, FREE, "its request is over") \
	X(MOVE, DRAIN, "READ: the bytes are here; the application is to take them into its memory") \
	X(MOVE, FREE, "WRITE: the bytes are at their target; or they are not, or its request is over") \
	X(DRAIN, FREE, "taken, or not, or its request is over; or the application died") \
	X(DRAIN, QUARANTINE, "its request is over, and the application has not answered within staging/cleanup_ms") \
	X(QUARANTINE, FREE, "the application answered after all, or died")

#define X(n, s) DP_STAGE_##n,
enum dp_stage_state { DP_STAGE_STATES(X) DP_STAGE_STATE_CNT };
#undef X

struct dp_stage_piece {
	struct tn_list link;        /* the worker's, by state: wants to be asked for; READY; MOVE */
	struct dp_stage_task *task; /* not FREE */
	struct dp_owner *owner;     /* MOVE */
	uint64_t off, bytes;        /* of the task's */
	struct tn_id128 publication; /* that its last attempt was about */
	uint32_t seq;               /* +1 for each copy that is asked for: an answer counts once */
	uint8_t state;
	bool asked;                 /* the application was asked for a copy and has not answered */
};

struct dp_stage_area {
	tn_handle memory;           /* its handle among the client's memories; SHR_RIGHT_STAGING */
	uint64_t chunk_bytes;
	uint32_t first, cnt;        /* chunks of the memory that are this worker's */
	uint64_t free;              /* a bit per chunk, from `first` on */
	struct tn_list link;        /* the worker's areas in which something may start */
	struct tn_list tasks[TN_PRIORITY_CNT]; /* that want a chunk */
	struct dp_stage_piece pieces[DP_STAGE_CHUNKS_MAX];
};

/* Splits `bytes` of staging buffers among the workers: chunks of at most chunk_bytes, at most DP_STAGE_CHUNKS_MAX for each.
 * False: there is not a page for each worker. */
bool dp_stage_split(uint64_t bytes, uint64_t chunk_bytes, uint32_t workers, uint64_t *chunk_out, uint32_t *cnt_out);
void dp_stage_area_init(struct dp_stage_area *a, tn_handle memory, uint64_t chunk_bytes, uint32_t first, uint32_t cnt);

/* A task wants (another) chunk: it waits for its turn. */
void dp_stage_enter(struct dp_stage_area *a, struct dp_stage_task *t);
/* The next part of whose turn it is, in a chunk: priorities first, then in turns. A task holds no more chunks than are left
 * free, so that one alone gets half of them and whoever comes finds some. Its state is still FREE. NULL: nobody waits, or
 * no chunk is free. */
struct dp_stage_piece *dp_stage_take(struct dp_stage_area *a);
/* A piece is over (any state, not linked): the chunk is free. The task may want it, or others. */
void dp_stage_give(struct dp_stage_area *a, struct dp_stage_piece *p);

/* Names a copy to the application, and finds it again: worker << 56 | chunk << 32 | seq. */
uint64_t dp_stage_tag(const struct dp_stage_area *a, const struct dp_stage_piece *p, uint32_t worker);
TN_INLINE uint32_t dp_stage_tag_worker(uint64_t tag) { return (uint32_t)(tag >> 56); }
TN_INLINE uint32_t dp_stage_tag_chunk(uint64_t tag) { return (uint32_t)(tag >> 32) & 0xffffffu; }
/* The piece that waits for the answer to this copy; NULL: none does. */
struct dp_stage_piece *dp_stage_asked(struct dp_stage_area *a, uint64_t tag);
/* Where its chunk begins in the memory. */
uint64_t dp_stage_chunk_off(const struct dp_stage_area *a, const struct dp_stage_piece *p);

/* A move outside the table is our own bug and asserts. */
void dp_stage_move(struct dp_stage_piece *p, enum dp_stage_state to);
extern const struct dp_machine dp_stage_machine;

#endif
