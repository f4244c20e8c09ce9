/* SPDX-License-Identifier: Apache-2.0
 * The reader's side of counter cells: one cell, or one index folded over the blocks of all threads. Reads a mapping
 * that its writer may be changing or may have left behind. Control plane and tentctl. */
#include "shm-ring/counters.h"

uint64_t shr_cell_read(const struct shr_tele_ro *t, uint32_t thread, uint32_t idx)
{
	if (thread > t->lay.worker_cnt || idx >= t->lay.cell_cnt)
		return 0;
	return tn_load_relaxed64(&shr_tele_ro_cells(t, thread)[idx]);
}

uint64_t shr_cell_fold(const struct shr_tele_ro *t, uint32_t idx, enum shr_fold fold)
{
	uint64_t acc = 0;
	for (uint32_t thread = 0; thread <= t->lay.worker_cnt; thread++) {
		uint64_t v = shr_cell_read(t, thread, idx);
		switch (fold) {
		case SHR_FOLD_SUM:
			acc += v;
			break;
		case SHR_FOLD_MIN:
			if (v != 0 && (acc == 0 || v < acc))
				acc = v;
			break;
		case SHR_FOLD_MAX:
			acc = TN_MAX(acc, v);
			break;
		}
	}
	return acc;
}
