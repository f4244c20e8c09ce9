/* SPDX-License-Identifier: Apache-2.0
 * What a queue pair must remember of its batches so that a restart of the data plane keeps data before notice: which
 * members are outstanding, and whether one failed where the present data plane cannot know. One owner thread (the
 * queue pair's). No allocation after init. */
#ifndef LT_BATCH_H
#define LT_BATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "common/status.h"

#define LT_BATCH_NONE UINT32_MAX

struct lt_batch {
	uint32_t number;       /* the application's */
	uint32_t next;         /* in its hash chain while open, in the free list while unused */
	uint32_t members;      /* accepted, not terminal */
	uint32_t held;         /* of those: not in a ring */
	bool failed;           /* a member did not complete */
	bool failed_unseen;    /* ... and the present data plane does not know */
	bool closed;           /* its notice was submitted: the number may start a new batch */
	bool notice;           /* that notice is not terminal */
	bool notice_taken;     /* a dead data plane had taken that notice: it may have left */
};

struct lt_batches {
	struct lt_batch *entries; /* cap of them */
	uint32_t *chains;         /* cap (a power of two) hash chains of open batches */
	uint32_t cap, free;
};

/* Room for `cap` (power of two) batches that are open or unfinished. TN_OK, TN_NO_MEMORY. */
tn_status lt_batches_init(struct lt_batches *t, uint32_t cap);
void lt_batches_destroy(struct lt_batches *t);

/* A member joins open batch `number` (!= 0), which starts if there is none. LT_BATCH_NONE: the table is full of batches
 * that failed and were never closed by a notice. */
uint32_t lt_batch_join(struct lt_batches *t, uint32_t number);
/* A member is terminal. seen: the present data plane said so itself. */
void lt_batch_leave(struct lt_batches *t, uint32_t batch, bool completed, bool seen);
/* The notice of `number` is submitted. LT_BATCH_NONE: nothing of it is outstanding and nothing failed. */
uint32_t lt_batch_close(struct lt_batches *t, uint32_t number);
/* The notice is terminal. */
void lt_batch_finish(struct lt_batches *t, uint32_t batch);
/* The data plane is gone, and what it knew with it. */
void lt_batches_forget_dataplane(struct lt_batches *t);

#endif
