/* SPDX-License-Identifier: Apache-2.0
 * The only arithmetic on sizes and offsets of shared regions. Creator and joiner call the same functions; the joiner
 * recomputes a layout from the counts in a header and compares, so an offset from a header is never believed.
 * Pure functions, no state; any thread. */
#ifndef SHR_LAYOUT_H
#define SHR_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>

#include "common/compiler.h"
#include "common/status.h"
#include "shm-ring/abi.h"

#define SHR_PAGE 4096u /* region sizes are multiples of this, whatever the machine's page is */
#define SHR_EVENT_SLOTS_MIN 8u
#define SHR_CELLS_MAX 65536u

/* Where things are in a queue-pair region. All offsets in bytes from its start. */
struct shr_qp_layout {
	uint32_t region_bytes;
	uint32_t sq_entries, cq_entries;
	uint32_t sq_off, cq_off, note_off;
	uint32_t note_slots;
};

/* Computes the layout of a queue pair.
 * sq_entries: power of two in [SHR_SQ_ENTRIES_MIN, SHR_SQ_ENTRIES_MAX]; note_slots: [0, SHR_NOTE_SLOTS_MAX].
 * TN_OK, or TN_INVALID when a count is outside its range; *out is then untouched. */
tn_status shr_qp_layout(uint32_t sq_entries, uint32_t note_slots, struct shr_qp_layout *out);

/* Where things are in a telemetry region. All offsets in bytes from its start. */
struct shr_tele_layout {
	uint32_t worker_cnt;
	uint32_t cell_cnt;         /* cells per block */
	uint32_t cell_block_bytes; /* distance between the blocks of two threads */
	uint32_t event_slots, keep_slots;
	uint64_t worker_off, cell_off, event_off, keep_off;
	uint64_t region_bytes;
};

/* Computes the layout of a telemetry region. Threads are workers 0 .. worker_cnt-1 and the control thread worker_cnt.
 * worker_cnt: [1, SHR_WORKERS_MAX]; cell_cnt: [0, SHR_CELLS_MAX]; event_slots and keep_slots: powers of two in
 * [SHR_EVENT_SLOTS_MIN, SHR_EVENT_SLOTS_MAX]. TN_OK, or TN_INVALID; *out is then untouched. */
tn_status shr_tele_layout(uint32_t worker_cnt, uint32_t cell_cnt, uint32_t event_slots, uint32_t keep_slots,
			  struct shr_tele_layout *out);

/* Byte offsets of one thread's parts; thread in [0, worker_cnt] (worker_cnt = the control thread). */
TN_INLINE uint64_t shr_tele_worker_off(const struct shr_tele_layout *l, uint32_t worker)
{
	return l->worker_off + (uint64_t)worker * sizeof(struct shr_worker_shm);
}
TN_INLINE uint64_t shr_tele_cells_off(const struct shr_tele_layout *l, uint32_t thread)
{
	return l->cell_off + (uint64_t)thread * l->cell_block_bytes;
}
uint64_t shr_tele_ring_off(const struct shr_tele_layout *l, uint32_t thread, bool keep);

#endif
