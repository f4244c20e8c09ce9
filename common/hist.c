/* SPDX-License-Identifier: Apache-2.0
 * The log-linear recorder. No state of its own; any thread, one per recorder. */
#include "common/hist.h"

#include <string.h>

#include "common/bits.h"

#define STEPS (UINT64_C(1) << TN_LOGHIST_STEP_BITS)

/* Below 2*STEPS every value has its own bucket; above, the top STEP_BITS + 1 bits select it. */
static unsigned loghist_bucket(uint64_t value)
{
	if (value < 2 * STEPS)
		return (unsigned)value;
	unsigned shift = tn_log2_floor(value) - TN_LOGHIST_STEP_BITS;
	return (unsigned)(((uint64_t)shift << TN_LOGHIST_STEP_BITS) + (value >> shift));
}

/* Largest value of a bucket. */
static uint64_t loghist_upper(unsigned bucket)
{
	if (bucket < 2 * STEPS)
		return bucket;
	unsigned shift = (bucket >> TN_LOGHIST_STEP_BITS) - 1;
	uint64_t top = (bucket & (STEPS - 1)) | STEPS;
	return (top << shift) + ((UINT64_C(1) << shift) - 1);
}

void tn_loghist_reset(struct tn_loghist *h) { memset(h, 0, sizeof *h); }

void tn_loghist_add(struct tn_loghist *h, uint64_t value)
{
	h->min = h->cnt == 0 ? value : TN_MIN(h->min, value);
	h->max = TN_MAX(h->max, value);
	h->cnt++;
	h->sum += (double)value;
	h->buckets[loghist_bucket(value)]++;
}

void tn_loghist_merge(struct tn_loghist *into, const struct tn_loghist *from)
{
	if (from->cnt == 0)
		return;
	into->min = into->cnt == 0 ? from->min : TN_MIN(into->min, from->min);
	into->max = TN_MAX(into->max, from->max);
	into->cnt += from->cnt;
	into->sum += from->sum;
	for (unsigned i = 0; i < TN_LOGHIST_BUCKETS; i++)
		into->buckets[i] += from->buckets[i];
}

uint64_t tn_loghist_percentile(const struct tn_loghist *h, double pct)
{
	if (h->cnt == 0 || pct <= 0)
		return h->min;
	double exact = (double)h->cnt * pct / 100;
	uint64_t rank = exact >= (double)h->cnt ? h->cnt : (uint64_t)exact;
	if ((double)rank < exact || rank == 0)
		rank++;
	uint64_t seen = 0;
	for (unsigned i = 0; i < TN_LOGHIST_BUCKETS; i++) {
		seen += h->buckets[i];
		if (seen >= rank)
			return TN_MIN(loghist_upper(i), h->max);
	}
	return h->max;
}

double tn_loghist_mean(const struct tn_loghist *h) { return h->cnt == 0 ? 0 : h->sum / (double)h->cnt; }
