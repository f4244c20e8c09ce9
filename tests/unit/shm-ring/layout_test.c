/* SPDX-License-Identifier: Apache-2.0
 * Layouts: parts do not overlap, bounds hold for every legal count, illegal counts are refused. */
#include "shm-ring/layout.h"

#include "tests/unit/cu.h"

static void qp_parts_in_order(void)
{
	for (uint32_t sq = SHR_SQ_ENTRIES_MIN; sq <= SHR_SQ_ENTRIES_MAX; sq *= 2) {
		for (uint32_t notes = 0; notes <= SHR_NOTE_SLOTS_MAX; notes++) {
			struct shr_qp_layout l;
			CU_ASSERT_EQUAL_FATAL(shr_qp_layout(sq, notes, &l), TN_OK);
			CU_ASSERT(l.sq_off >= sizeof(struct shr_qp_shm));
			CU_ASSERT(l.cq_off >= l.sq_off + sq * sizeof(struct shr_sqe_shm));
			CU_ASSERT(l.note_off >= l.cq_off + l.cq_entries * sizeof(struct shr_cqe_shm));
			CU_ASSERT(l.region_bytes >= l.note_off + notes * SHR_NOTE_BYTES);
			CU_ASSERT_EQUAL(l.cq_entries, 2 * sq);
			CU_ASSERT_EQUAL(l.sq_off % 64, 0);
			CU_ASSERT_EQUAL(l.cq_off % 64, 0);
			CU_ASSERT_EQUAL(l.note_off % SHR_PAGE, 0);
			CU_ASSERT_EQUAL(l.region_bytes % SHR_PAGE, 0);
		}
	}
}

static void qp_refuses_counts(void)
{
	static const uint32_t bad[] = { 0, 1, 4, 7, 9, 100, 4095, 8192, 0x80000000u, UINT32_MAX };
	struct shr_qp_layout l = { .region_bytes = 1 };
	for (size_t i = 0; i < TN_ARRAY_LEN(bad); i++)
		CU_ASSERT_EQUAL(shr_qp_layout(bad[i], 0, &l), TN_INVALID);
	CU_ASSERT_EQUAL(shr_qp_layout(64, SHR_NOTE_SLOTS_MAX + 1, &l), TN_INVALID);
	CU_ASSERT_EQUAL(shr_qp_layout(64, UINT32_MAX, &l), TN_INVALID);
	CU_ASSERT_EQUAL(l.region_bytes, 1); /* untouched */
}

static void tele_parts_in_order(void)
{
	static const uint32_t cells[] = { 0, 1, 7, 8, 9, 4000, SHR_CELLS_MAX };
	static const uint32_t workers[] = { 1, 2, 3, SHR_WORKERS_MAX };
	for (size_t c = 0; c < TN_ARRAY_LEN(cells); c++) {
		for (size_t w = 0; w < TN_ARRAY_LEN(workers); w++) {
			struct shr_tele_layout l;
			uint32_t n = workers[w];
			CU_ASSERT_EQUAL_FATAL(shr_tele_layout(n, cells[c], SHR_EVENT_SLOTS_MAX, 8, &l), TN_OK);
			CU_ASSERT(l.worker_off >= sizeof(struct shr_tele_hdr_shm));
			CU_ASSERT(shr_tele_worker_off(&l, n) <= l.cell_off);
			CU_ASSERT(l.cell_block_bytes >= cells[c] * sizeof(uint64_t));
			CU_ASSERT_EQUAL(l.cell_block_bytes % TN_CACHE_LINE, 0);
			CU_ASSERT(shr_tele_cells_off(&l, n + 1) <= l.event_off);
			CU_ASSERT(shr_tele_ring_off(&l, n + 1, false) <= l.keep_off);
			CU_ASSERT(shr_tele_ring_off(&l, n + 1, true) <= l.region_bytes);
			CU_ASSERT_EQUAL(l.region_bytes % SHR_PAGE, 0);
		}
	}
}

static void tele_refuses_counts(void)
{
	struct shr_tele_layout l = { .worker_cnt = 77 };
	CU_ASSERT_EQUAL(shr_tele_layout(0, 1, 8, 8, &l), TN_INVALID);
	CU_ASSERT_EQUAL(shr_tele_layout(SHR_WORKERS_MAX + 1, 1, 8, 8, &l), TN_INVALID);
	CU_ASSERT_EQUAL(shr_tele_layout(UINT32_MAX, 1, 8, 8, &l), TN_INVALID);
	CU_ASSERT_EQUAL(shr_tele_layout(1, SHR_CELLS_MAX + 1, 8, 8, &l), TN_INVALID);
	CU_ASSERT_EQUAL(shr_tele_layout(1, 1, 12, 8, &l), TN_INVALID);
	CU_ASSERT_EQUAL(shr_tele_layout(1, 1, 8, 4, &l), TN_INVALID);
	CU_ASSERT_EQUAL(shr_tele_layout(1, 1, 8, 2 * SHR_EVENT_SLOTS_MAX, &l), TN_INVALID);
	CU_ASSERT_EQUAL(l.worker_cnt, 77);
}

TN_TEST_MAIN("shm-ring/layout",
	{ "parts of a queue pair follow each other for every legal count", qp_parts_in_order },
	{ "illegal queue pair counts are refused", qp_refuses_counts },
	{ "parts of a telemetry region follow each other", tele_parts_in_order },
	{ "illegal telemetry counts are refused", tele_refuses_counts })
