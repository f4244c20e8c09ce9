/* SPDX-License-Identifier: Apache-2.0
 * One cell, or one index folded over the blocks of all threads. Reads a mapping that its writer may be changing or may
 * have left behind. Control plane and tentctl. */
#include "shm-ring/counters.h"

#include "common/atomic.h"

uint64_t shr_cell_read(const struct shr_tele_ro *t, uint32_t thread, uint32_t idx)
{
	if (thread > t->lay.worker_cnt || idx >= t->lay.cell_cnt)
		return 0;
	return tn_load_relaxed64(&shr_tele_ro_cells(t, thread)[idx]);
}

uint64_t shr_cell_fold(const struct shr_tele_ro *t, uint32_t idx, enum tn_metric_agg agg)
{
	uint64_t acc = 0;
	for (uint32_t thread = 0; thread <= t->lay.worker_cnt; thread++) {
		uint64_t v = shr_cell_read(t, thread, idx);
		switch (agg) {
		case TN_AGG_SUM:
			acc += v;
			break;
		case TN_AGG_MIN:
			if (v != 0 && (acc == 0 || v < acc))
				acc = v;
			break;
		case TN_AGG_MAX:
			acc = TN_MAX(acc, v);
			break;
		}
	}
	return acc;
}
