/* SPDX-License-Identifier: Apache-2.0
 * Other work beside the cells: a thread with a queue pair of its own keeps WRITEs of one size and priority in flight from before
 * the first cell to behind the last, and counts what it moved. Started and stopped by the main thread; the conductor of a cell
 * reads the counters. */
#ifndef TB_BACKGROUND_H
#define TB_BACKGROUND_H

#include <pthread.h>
#include <stdbool.h>
#include <tent/tent.h>

#include "common/atomic.h"
#include "common/compiler.h"

struct tb_bench;

struct tb_background {
	const struct tb_bench *b;
	tent_memory *memory;
	pthread_t thread;
	uint64_t blocks;           /* of the segment, that it walks */
	tn_a64 bytes, done;        /* moved; operations */
	tn_a32 stop, failed;
	char why[300];             /* written before `failed` */
};

/* Start what the arguments ask for, and wait until every block in flight was moved once: its pages are there. NULL in
 * b->background: nothing was asked for. False: explained on standard error. */
bool tb_background_start(struct tb_bench *b);
/* Accepts a bench without one. */
void tb_background_stop(struct tb_bench *b);

TN_INLINE uint64_t tb_background_bytes(const struct tb_background *g) { return g == NULL ? 0 : tn_load_relaxed64(&g->bytes); }
TN_INLINE bool tb_background_failed(const struct tb_background *g) { return g != NULL && tn_load_acquire32(&g->failed) != 0; }

#endif
