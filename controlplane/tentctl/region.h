/* SPDX-License-Identifier: Apache-2.0
 * The data plane's telemetry region as tentctl reads it, with or without daemons: find a file, map it read-only, fold
 * its cells, say whether its writer lives. Used by top, postmortem and doctor. */
#ifndef TCTL_REGION_H
#define TCTL_REGION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/metrics.h"
#include "common/status.h"
#include "shm-ring/telemetry.h"

#define TCTL_REGION_PATH_MAX 4200u
enum { TCTL_REGIONS_MAX = 16 }; /* of one directory that are looked at */

struct tctl_region {
	struct shr_tele_ro ro;   /* ro.live NULL = none */
	bool numbers;            /* its cells mean what ours mean (schema hash) and were compiled in */
	char path[TCTL_REGION_PATH_MAX];
};

/* Maps the file of a generation in `dir` (0: the newest that is whole). NOT_FOUND and others: err says which file and
 * what about it. *out untouched on failure. */
TN_MUST_USE tn_status tctl_region_open(const char *dir, uint64_t generation, struct tctl_region *out, char *err,
				       size_t err_bytes);
void tctl_region_close(struct tctl_region *r); /* accepts a zeroed one */

/* X(NAME, text) of the writer. HUNG: lives, but its control thread gave no sign for TCTL_HUNG_NS. UNKNOWN: we may not
 * look at its lock. */
#define TCTL_LIFE_LIST(X) \
	X(RUNNING, running) X(HUNG, hung) X(STOPPED, stopped) X(DIED, died) X(DIED_STARTING, died_starting) \
	X(DIED_DRAINING, died_draining) X(UNKNOWN, unknown)
#define X(n, s) TCTL_LIFE_##n,
enum tctl_life { TCTL_LIFE_LIST(X) TCTL_LIFE_CNT };
#undef X
#define TCTL_HUNG_NS UINT64_C(5000000000)

enum tctl_life tctl_region_life(const struct tctl_region *r, const char *dir, uint64_t now_ns);
const char *tctl_life_text(enum tctl_life life);
const char *tctl_tele_state_text(unsigned state); /* enum shr_tele_state */
/* Latest moment of CLOCK_MONOTONIC at which anything of the writer was seen alive. */
uint64_t tctl_region_last_sign_ns(const struct tctl_region *r);

/* All threads' cells of the families that the data plane owns, each by its aggregation; cells[TN_METRIC_CELL_CNT]. */
void tctl_region_fold(const struct tctl_region *r, uint64_t *cells);
/* One thread's (worker, or lay.worker_cnt). */
void tctl_region_fold_thread(const struct tctl_region *r, uint32_t thread, uint64_t *cells);

/* ---- reading folded cells (or the difference of two) ---- */
TN_INLINE uint64_t tctl_counter(const uint64_t *cells, struct tn_counter_at at) { return cells[at.cell]; }
TN_INLINE int64_t tctl_gauge(const uint64_t *cells, struct tn_gauge_at at) { return (int64_t)cells[at.cell]; }
uint64_t tctl_hist_count(const uint64_t *cells, struct tn_hist_at at);
/* The value below which permille of the observations lie, in the unit of the cell, interpolated within its bucket;
 * beyond the last bound: that bound. 0 when nothing was observed. */
uint64_t tctl_hist_at(const uint64_t *cells, struct tn_hist_at at, unsigned permille);
/* The same over two series of equal type taken together. */
uint64_t tctl_hist_at2(const uint64_t *cells, struct tn_hist_at a, struct tn_hist_at b, unsigned permille);

#endif
