/* SPDX-License-Identifier: Apache-2.0
 * The door of a queue pair: writes its header, checks a mapped region before anything in it is used, and checks the
 * shape of one copied-out descriptor. The result of the region check is a private view; the shared header is never
 * read again on any path that decides something. Pure over bytes; any thread; fuzzed. */
#ifndef SHR_RING_CHECK_H
#define SHR_RING_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/compiler.h"
#include "common/status.h"
#include "shm-ring/abi.h"
#include "shm-ring/layout.h"

/* Private copy of everything needed to use a queue-pair region; pointers go into the caller's mapping. */
struct shr_qp_view {
	struct shr_qp_layout lay;
	struct shr_qp_shm *qp;
	struct shr_sqe_shm *sq;
	struct shr_cqe_shm *cq;
	uint8_t *notes;    /* note_slots * SHR_NOTE_BYTES; NULL when there are none */
	uint32_t qp_id;
	uint16_t abi_minor; /* the smaller of both sides */
};

/* Creator: writes the header of a zeroed region of lay->region_bytes, magic last, and gives the creator's own view. */
void shr_qp_format(void *base, const struct shr_qp_layout *lay, uint32_t qp_id, struct shr_qp_view *view_out);

/* Joiner: checks a mapping of `bytes` (already compared with fstat by shr_region_map). Copies the header once, then
 * recomputes the layout from its counts and compares every number.
 * TN_AGAIN: no magic yet (not formatted). TN_ABI_MISMATCH: another major version, or entry sizes of another build.
 * TN_CLIENT_BROKEN: the numbers contradict each other or the size. *view_out is untouched on failure. */
TN_MUST_USE tn_status shr_qp_check(void *base, size_t bytes, struct shr_qp_view *view_out);

/* True while the shared header still says what the view was built from. Nothing depends on it for safety; it lets an
 * error text say "the header was overwritten" instead of only "broken index". */
bool shr_qp_view_matches(const struct shr_qp_view *view);

/* Number of the note slot's first byte in the region; slot < lay.note_slots. */
TN_INLINE uint8_t *shr_qp_note(const struct shr_qp_view *v, uint32_t slot)
{
	return v->notes + (size_t)slot * SHR_NOTE_BYTES;
}

/* Shape of one private descriptor copy: what can be judged without tables. note_slots: of its queue pair.
 * TN_OK; TN_INVALID: unknown opcode or flag, a value outside its enum, a field that its opcode does not use is set,
 * reserved bytes; TN_RANGE: offset + length overflows, or zero length; TN_TOO_BIG: payload over SHR_NOTE_BYTES.
 * All refuse this one request (SHR_CQE_REFUSED), not the client. */
TN_MUST_USE tn_status shr_sqe_check_shape(const struct shr_sqe_shm *sqe, uint32_t note_slots);

#endif
