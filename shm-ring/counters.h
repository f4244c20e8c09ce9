/* SPDX-License-Identifier: Apache-2.0
 * Counter cells. Each thread has a block of its own and is its only writer: an update is a relaxed load, an add and a
 * relaxed store, no locked instruction and no line that two threads write. Readers add the blocks up and may see a
 * value late, never torn. Which index means what is common/metrics.def's business. */
#ifndef SHR_COUNTERS_H
#define SHR_COUNTERS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/atomic.h"
#include "common/compiler.h"
#include "shm-ring/telemetry.h"

/* Writer; `block` from shr_tele_cells() of this thread, idx < cell_cnt. Compiled out with -DTENT_METRICS=OFF. */
TN_INLINE void shr_cell_add(tn_a64 *block, uint32_t idx, uint64_t n)
{
#if TENT_METRICS
	tn_count64(&block[idx], n);
#else
	(void)block, (void)idx, (void)n;
#endif
}

/* For gauges that go both ways. In two's complement the sum over blocks is right even when one block went below zero
 * because one thread raised and another lowered. */
TN_INLINE void shr_cell_sub(tn_a64 *block, uint32_t idx, uint64_t n) { shr_cell_add(block, idx, 0 - n); }

/* For gauges that are set (timestamps, levels). */
TN_INLINE void shr_cell_set(tn_a64 *block, uint32_t idx, uint64_t v)
{
#if TENT_METRICS
	tn_store_relaxed64(&block[idx], v);
#else
	(void)block, (void)idx, (void)v;
#endif
}

/* How the blocks of all threads become one number. */
enum shr_fold {
	SHR_FOLD_SUM,
	SHR_FOLD_MIN, /* over workers that have set the cell; 0 when none has */
	SHR_FOLD_MAX,
};

/* Reader. One thread's cell; 0 when idx or thread is outside this file's tables. */
uint64_t shr_cell_read(const struct shr_tele_ro *t, uint32_t thread, uint32_t idx);
/* Reader. All threads' cells of one index, control thread included. 0 when idx is outside. */
uint64_t shr_cell_fold(const struct shr_tele_ro *t, uint32_t idx, enum shr_fold fold);

#endif
