/* SPDX-License-Identifier: Apache-2.0
 * Sizes and offsets of the queue-pair and telemetry regions. Every count is bounded before it is multiplied, and the
 * bounds are asserted to keep each product inside its type, so nothing here can overflow. Pure; any thread. */
#include "shm-ring/layout.h"

#include "common/bits.h"

TN_STATIC_ASSERT((uint64_t)SHR_SQ_ENTRIES_MAX * sizeof(struct shr_sqe_shm) +
			 2ull * SHR_SQ_ENTRIES_MAX * sizeof(struct shr_cqe_shm) +
			 (uint64_t)SHR_NOTE_SLOTS_MAX * SHR_NOTE_BYTES + 4 * SHR_PAGE < UINT32_MAX,
		 "the largest queue pair fits its 32-bit offsets");
TN_STATIC_ASSERT((uint64_t)SHR_CELLS_MAX * sizeof(uint64_t) + TN_CACHE_LINE < UINT32_MAX, "a cell block fits 32 bits");

static bool slots_valid(uint32_t slots)
{
	return tn_is_pow2(slots) && slots >= SHR_EVENT_SLOTS_MIN && slots <= SHR_EVENT_SLOTS_MAX;
}

static uint64_t ring_bytes(uint32_t slots)
{
	return sizeof(struct shr_event_ring_shm) + (uint64_t)slots * sizeof(struct shr_event_shm);
}

tn_status shr_qp_layout(uint32_t sq_entries, uint32_t note_slots, struct shr_qp_layout *out)
{
	if (!tn_is_pow2(sq_entries) || sq_entries < SHR_SQ_ENTRIES_MIN || sq_entries > SHR_SQ_ENTRIES_MAX)
		return TN_INVALID;
	if (note_slots > SHR_NOTE_SLOTS_MAX)
		return TN_INVALID;
	struct shr_qp_layout l = { .sq_entries = sq_entries, .cq_entries = 2 * sq_entries, .note_slots = note_slots };
	/* 128: an entry of either ring never shares the pair of lines that the adjacent-line prefetcher moves. */
	l.sq_off = (uint32_t)tn_align_up(sizeof(struct shr_qp_shm), 128);
	l.cq_off = l.sq_off + sq_entries * (uint32_t)sizeof(struct shr_sqe_shm);
	l.note_off = (uint32_t)tn_align_up(l.cq_off + l.cq_entries * sizeof(struct shr_cqe_shm), SHR_PAGE);
	l.region_bytes = (uint32_t)tn_align_up((uint64_t)l.note_off + (uint64_t)note_slots * SHR_NOTE_BYTES, SHR_PAGE);
	*out = l;
	return TN_OK;
}

tn_status shr_tele_layout(uint32_t worker_cnt, uint32_t cell_cnt, uint32_t event_slots, uint32_t keep_slots,
			  struct shr_tele_layout *out)
{
	if (worker_cnt == 0 || worker_cnt > SHR_WORKERS_MAX || cell_cnt > SHR_CELLS_MAX)
		return TN_INVALID;
	if (!slots_valid(event_slots) || !slots_valid(keep_slots))
		return TN_INVALID;
	uint64_t threads = (uint64_t)worker_cnt + 1;
	struct shr_tele_layout l = {
		.worker_cnt = worker_cnt,
		.cell_cnt = cell_cnt,
		.event_slots = event_slots,
		.keep_slots = keep_slots,
		.worker_off = sizeof(struct shr_tele_hdr_shm),
	};
	/* At least one line per thread even without cells: two threads never write one line. */
	l.cell_block_bytes = (uint32_t)tn_align_up(TN_MAX(cell_cnt, 1u) * sizeof(uint64_t), TN_CACHE_LINE);
	l.cell_off = tn_align_up(l.worker_off + worker_cnt * sizeof(struct shr_worker_shm), TN_CACHE_LINE);
	l.event_off = tn_align_up(l.cell_off + threads * l.cell_block_bytes, SHR_PAGE);
	l.keep_off = tn_align_up(l.event_off + threads * ring_bytes(event_slots), SHR_PAGE);
	l.region_bytes = tn_align_up(l.keep_off + threads * ring_bytes(keep_slots), SHR_PAGE);
	*out = l;
	return TN_OK;
}

uint64_t shr_tele_ring_off(const struct shr_tele_layout *l, uint32_t thread, bool keep)
{
	return keep ? l->keep_off + thread * ring_bytes(l->keep_slots) :
		      l->event_off + thread * ring_bytes(l->event_slots);
}
