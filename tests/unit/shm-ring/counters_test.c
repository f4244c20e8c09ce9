/* SPDX-License-Identifier: Apache-2.0
 * Folding of counter cells over threads, and indices that this file does not have. */
#include "shm-ring/counters.h"

#include "tests/unit/shm-ring/fixture.h"

static void folds(void)
{
	struct fx_dir dir;
	struct shr_tele t;
	struct shr_tele_ro ro;
	struct shr_tele_cfg cfg = fx_tele_cfg();
	fx_dir_make(&dir);
	CU_ASSERT_EQUAL_FATAL(shr_tele_create(dir.path, &cfg, &t), TN_OK);
	fx_tele_open(&dir, t.generation, &ro);
	for (uint32_t thread = 0; thread < 3; thread++) {
		CU_ASSERT_EQUAL((uintptr_t)shr_tele_cells(&t, thread) % TN_CACHE_LINE, 0);
		tn_count64(&shr_tele_cells(&t, thread)[0], 10 * (thread + 1));
	}
	CU_ASSERT_EQUAL(shr_cell_fold(&ro, 0, TN_AGG_SUM), 60);
	CU_ASSERT_EQUAL(shr_cell_fold(&ro, 0, TN_AGG_MIN), 10);
	CU_ASSERT_EQUAL(shr_cell_fold(&ro, 0, TN_AGG_MAX), 30);
	CU_ASSERT_EQUAL(shr_cell_read(&ro, 2, 0), 30);
	/* The control thread never sets a worker's timestamp: it must not pull the minimum to zero. */
	tn_store_relaxed64(&shr_tele_cells(&t, 0)[9], 500);
	tn_store_relaxed64(&shr_tele_cells(&t, 1)[9], 400);
	CU_ASSERT_EQUAL(shr_cell_fold(&ro, 9, TN_AGG_MIN), 400);
	/* Raised by one thread, lowered by another. */
	tn_count64(&shr_tele_cells(&t, 0)[5], 3);
	tn_count64(&shr_tele_cells(&t, 1)[5], (uint64_t)-2);
	CU_ASSERT_EQUAL(shr_cell_fold(&ro, 5, TN_AGG_SUM), 1);
	CU_ASSERT_EQUAL(shr_cell_fold(&ro, 16, TN_AGG_SUM), 0);
	CU_ASSERT_EQUAL(shr_cell_fold(&ro, UINT32_MAX, TN_AGG_MAX), 0);
	CU_ASSERT_EQUAL(shr_cell_read(&ro, 3, 0), 0);
	shr_tele_close_ro(&ro);
	shr_tele_close(&t);
	fx_dir_remove(&dir);
}

TN_TEST_MAIN("shm-ring/counters", { "sum, minimum and maximum over threads", folds })
