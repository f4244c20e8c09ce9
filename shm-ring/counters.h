/* SPDX-License-Identifier: Apache-2.0
 * The reader's side of counter cells. Each thread of the data plane has a block of its own (shr_tele_cells) and is its
 * only writer, through common/metrics.h: relaxed load, add, relaxed store. Readers fold the blocks into one number and
 * may see a value late, never torn. Which index means what is common/metrics.def's business. */
#ifndef SHR_COUNTERS_H
#define SHR_COUNTERS_H

#include <stdint.h>

#include "common/metrics.h"
#include "shm-ring/telemetry.h"

/* One thread's cell (thread = worker, or lay.worker_cnt for the control thread); 0 when idx or thread is outside this
 * file's tables. */
uint64_t shr_cell_read(const struct shr_tele_ro *t, uint32_t thread, uint32_t idx);

/* All threads' cells of one index, control thread included. SUM is modulo 2^64, so that a gauge which one thread
 * raised and another lowered comes out right; MIN is over threads that have set the cell, 0 when none has.
 * 0 when idx is outside. */
uint64_t shr_cell_fold(const struct shr_tele_ro *t, uint32_t idx, enum tn_metric_agg agg);

#endif
