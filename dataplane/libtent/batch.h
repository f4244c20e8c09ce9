/* SPDX-License-Identifier: Apache-2.0
 * What a queue pair must remember of its batches so that a notice never promises what is not there: when each began,
 * which members are outstanding, and whether one failed where the present data plane cannot know. One owner thread
 * (the queue pair's). No allocation after init. */
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
	uint32_t idle_prev, idle_next; /* among the open ones whose members all completed, oldest first */
	uint64_t begin_ns;     /* when its first member was submitted */
	bool failed;           /* a member did not complete */
	bool failed_unseen;    /* ... and the present data plane does not know */
	bool idle;             /* in that list */
	bool closed;           /* its notice was submitted: the number may start a new batch */
	bool notice;           /* that notice is not terminal */
	bool notice_taken;     /* a dead data plane had taken that notice: it may have left */
};

struct lt_batches {
	struct lt_batch *entries; /* cap of them */
	uint32_t *chains;         /* cap (a power of two) hash chains of open batches */
	uint32_t cap, free;
	uint32_t idle_first, idle_last;
	bool evicted;             /* one was dropped before its notice: an unknown number may be as old as anything */
};

/* Room for `cap` (power of two) batches that are open or unfinished. TN_OK, TN_NO_MEMORY. */
tn_status lt_batches_init(struct lt_batches *t, uint32_t cap);
void lt_batches_destroy(struct lt_batches *t);

/* A member joins open batch `number` (!= 0), which starts if there is none; when the table is full, the oldest whose
 * members all completed makes room. LT_BATCH_NONE: it is full of batches that run, or that failed and were never closed
 * by a notice. */
uint32_t lt_batch_join(struct lt_batches *t, uint32_t number, uint64_t now_ns);
/* A member is terminal. seen: the present data plane said so itself. */
void lt_batch_leave(struct lt_batches *t, uint32_t batch, bool completed, bool seen);
/* The notice of `number` is submitted; *begin_out = when the batch began. LT_BATCH_NONE: the number is not known, so
 * nothing of it is outstanding and nothing failed; it began now, or, if batches were dropped, at an unknown time (0). */
uint32_t lt_batch_close(struct lt_batches *t, uint32_t number, uint64_t now_ns, uint64_t *begin_out);
/* The notice is terminal. */
void lt_batch_finish(struct lt_batches *t, uint32_t batch);
/* The data plane is gone, and what it knew with it. */
void lt_batches_forget_dataplane(struct lt_batches *t);

#endif
