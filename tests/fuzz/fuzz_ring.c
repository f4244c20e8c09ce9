/* SPDX-License-Identifier: Apache-2.0
 * What a client can write into a queue pair: input = {kind, size or slots, bytes}. kind even: a region header in a
 * mapping of `size` pages; whatever view comes out lies inside the mapping. kind odd: one descriptor; whatever shape is
 * accepted keeps its promises. */
#include <string.h>

#include "common/assert.h"
#include "common/domain.h"
#include "shm-ring/ring_check.h"
#include "tests/fuzz/fuzz.h"

#define PAGES_MAX 400u
static TN_ALIGNED(64) uint8_t region[PAGES_MAX * SHR_PAGE];

static void inside(const void *p, uint64_t bytes, size_t total)
{
	uint64_t off = (uint64_t)((const uint8_t *)p - region);
	tn_assert(off <= total && bytes <= total - off && off % 8 == 0);
}

static void try_header(const uint8_t *data, size_t len, uint32_t pages)
{
	size_t bytes = (size_t)(pages % (PAGES_MAX + 1)) * SHR_PAGE;
	memset(region, 0, sizeof(struct shr_qp_shm));
	memcpy(region, data, TN_MIN(len, sizeof(struct shr_qp_hdr_shm)));
	struct shr_qp_view v;
	if (shr_qp_check(region, bytes, &v) != TN_OK)
		return;
	tn_assert(v.lay.region_bytes == bytes && (void *)v.qp == (void *)region);
	inside(v.sq, (uint64_t)v.lay.sq_entries * sizeof *v.sq, bytes);
	inside(v.cq, (uint64_t)v.lay.cq_entries * sizeof *v.cq, bytes);
	if (v.notes != NULL)
		inside(v.notes, (uint64_t)v.lay.note_slots * SHR_NOTE_BYTES, bytes);
	tn_assert((v.notes != NULL) == (v.lay.note_slots != 0) && shr_qp_view_matches(&v));
}

static void try_sqe(const uint8_t *data, size_t len, uint32_t slots)
{
	struct shr_sqe_shm e = { 0 };
	memcpy(&e, data, TN_MIN(len, sizeof e));
	if (shr_sqe_check_shape(&e, slots) != TN_OK)
		return;
	tn_assert(e.priority < TN_PRIORITY_CNT && e.hint < TN_TRANSPORT_CNT && e.intent < SHR_INTENT_CNT);
	if (e.opcode == SHR_OP_READ || e.opcode == SHR_OP_WRITE)
		tn_assert(e.length > 0 && e.local_off + e.length >= e.length && e.remote_off + e.length >= e.length);
	else
		tn_assert(e.length == 0);
	tn_assert(e.note_len <= SHR_NOTE_BYTES && (e.note_len == 0 || e.note_slot < slots));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	if (len < 3)
		return 0;
	uint32_t n = (uint32_t)data[1] | (uint32_t)data[2] << 8;
	if ((data[0] & 1) == 0)
		try_header(data + 3, len - 3, n);
	else
		try_sqe(data + 3, len - 3, n);
	return 0;
}
