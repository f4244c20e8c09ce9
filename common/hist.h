/* SPDX-License-Identifier: Apache-2.0
 * A recorder of 64-bit values with a relative error of at most 1.6 %: log-linear buckets, 64 steps per power of two,
 * for benchmarks and percentiles. (The fixed buckets of exported metrics belong to common/metrics.h.) Adding never
 * allocates. One owner thread per recorder; recorders are merged afterwards. */
#ifndef TN_HIST_H
#define TN_HIST_H

#include <stdint.h>

#include "common/compiler.h"

#define TN_LOGHIST_STEP_BITS 6
#define TN_LOGHIST_BUCKETS ((64 - TN_LOGHIST_STEP_BITS + 1) << TN_LOGHIST_STEP_BITS)

/* About 30 KiB; zero-initialised = empty. */
struct tn_loghist {
	uint64_t cnt, min, max;         /* min and max are exact; 0 when empty */
	double sum;
	uint64_t buckets[TN_LOGHIST_BUCKETS];
};

void tn_loghist_reset(struct tn_loghist *h);
void tn_loghist_add(struct tn_loghist *h, uint64_t value);
/* Adds everything of `from`. */
void tn_loghist_merge(struct tn_loghist *into, const struct tn_loghist *from);
/* The value below or at which pct percent (0..100) of all values lie, rounded up within 1.6 %, never beyond max;
 * 0 gives min, 100 gives max; 0 when empty. */
uint64_t tn_loghist_percentile(const struct tn_loghist *h, double pct);
double tn_loghist_mean(const struct tn_loghist *h);

#endif
