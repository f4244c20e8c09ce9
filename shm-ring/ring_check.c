/* SPDX-License-Identifier: Apache-2.0
 * Header writer and validators of the queue pair. The header is taken in one pass of single word reads; from then on
 * only the copy is judged, so a client that changes it meanwhile changes nothing. Any thread. */
#include "shm-ring/ring_check.h"

#include <string.h>

#include "common/atomic.h"
#include "common/bits.h"
#include "common/domain.h"
#include "shm-ring/words.h"

TN_STATIC_ASSERT(sizeof(struct shr_qp_hdr_shm) % 8 == 0, "the header is copied in words");
#define HDR_WORDS ((uint32_t)(sizeof(struct shr_qp_hdr_shm) / 8))

static void fill_view(void *base, const struct shr_qp_layout *lay, uint32_t qp_id, uint16_t minor, struct shr_qp_view *v)
{
	uint8_t *b = base;
	*v = (struct shr_qp_view){
		.lay = *lay,
		.qp = base,
		.sq = (struct shr_sqe_shm *)(void *)(b + lay->sq_off),
		.cq = (struct shr_cqe_shm *)(void *)(b + lay->cq_off),
		.notes = lay->note_slots != 0 ? b + lay->note_off : NULL,
		.qp_id = qp_id,
		.abi_minor = minor,
	};
}

static struct shr_qp_hdr_shm expected_header(const struct shr_qp_layout *lay, uint32_t qp_id)
{
	return (struct shr_qp_hdr_shm){
		.magic = SHR_QP_MAGIC,
		.abi_major = SHR_ABI_MAJOR,
		.abi_minor = SHR_ABI_MINOR,
		.region_bytes = lay->region_bytes,
		.sq_entries = lay->sq_entries,
		.cq_entries = lay->cq_entries,
		.sqe_bytes = sizeof(struct shr_sqe_shm),
		.cqe_bytes = sizeof(struct shr_cqe_shm),
		.sq_off = lay->sq_off,
		.cq_off = lay->cq_off,
		.note_off = lay->note_off,
		.note_slots = lay->note_slots,
		.qp_id = qp_id,
	};
}

void shr_qp_format(void *base, const struct shr_qp_layout *lay, uint32_t qp_id, struct shr_qp_view *view_out)
{
	struct shr_qp_shm *qp = base;
	struct shr_qp_hdr_shm h = expected_header(lay, qp_id);
	tn_store_relaxed32(&h.magic, 0);
	shr_words_store(&qp->hdr, &h, HDR_WORDS);
	/* [M1] release: whoever sees the magic sees the whole header and the zeroed indices. */
	tn_store_release32(&qp->hdr.magic, SHR_QP_MAGIC);
	fill_view(base, lay, qp_id, SHR_ABI_MINOR, view_out);
}

tn_status shr_qp_check(void *base, size_t bytes, struct shr_qp_view *view_out)
{
	if (bytes < sizeof(struct shr_qp_shm))
		return TN_CLIENT_BROKEN;
	const struct shr_qp_shm *qp = base;
	/* [M1] acquire: pairs with shr_qp_format; the header behind the magic is whole. */
	uint32_t magic = tn_load_acquire32(&qp->hdr.magic);
	if (magic == 0)
		return TN_AGAIN;
	struct shr_qp_hdr_shm h;
	shr_words_load(&h, &qp->hdr, HDR_WORDS);
	if (magic != SHR_QP_MAGIC || tn_load_relaxed32(&h.magic) != SHR_QP_MAGIC)
		return TN_CLIENT_BROKEN;
	if (h.abi_major != SHR_ABI_MAJOR || h.sqe_bytes != sizeof(struct shr_sqe_shm) ||
	    h.cqe_bytes != sizeof(struct shr_cqe_shm))
		return TN_ABI_MISMATCH;
	struct shr_qp_layout lay;
	if (shr_qp_layout(h.sq_entries, h.note_slots, &lay) != TN_OK)
		return TN_CLIENT_BROKEN;
	if (h.region_bytes != lay.region_bytes || h.cq_entries != lay.cq_entries || h.sq_off != lay.sq_off ||
	    h.cq_off != lay.cq_off || h.note_off != lay.note_off || lay.region_bytes != bytes)
		return TN_CLIENT_BROKEN;
	/* Reserved bytes may carry what a later minor version appended; ours to ignore only then. */
	if (h.abi_minor <= SHR_ABI_MINOR && !tn_all_zero(h.reserved, sizeof h.reserved))
		return TN_CLIENT_BROKEN;
	fill_view(base, &lay, h.qp_id, TN_MIN(h.abi_minor, (uint16_t)SHR_ABI_MINOR), view_out);
	return TN_OK;
}

bool shr_qp_view_matches(const struct shr_qp_view *view)
{
	struct shr_qp_hdr_shm now, want = expected_header(&view->lay, view->qp_id);
	shr_words_load(&now, &view->qp->hdr, HDR_WORDS);
	want.abi_minor = now.abi_minor; /* the creator's own may be newer than ours */
	return memcmp(&now, &want, offsetof(struct shr_qp_hdr_shm, reserved)) == 0;
}

/* READ and WRITE: both ranges named, no wrap, nothing of a notification. */
static tn_status check_data(const struct shr_sqe_shm *e)
{
	if (e->note_len != 0 || e->note_slot != 0 || e->segment == 0 || e->memory == 0)
		return TN_INVALID;
	if (((e->flags & SHR_SQE_BATCH) != 0) != (e->batch != 0))
		return TN_INVALID;
	if (e->length == 0 || e->local_off + e->length < e->length || e->remote_off + e->length < e->length)
		return TN_RANGE;
	return TN_OK;
}

static tn_status check_notify(const struct shr_sqe_shm *e, uint32_t note_slots)
{
	if (e->segment == 0 || e->memory != 0 || e->local_off != 0 || e->remote_off != 0 || e->length != 0)
		return TN_INVALID;
	if ((e->flags & SHR_SQE_BATCH) != 0 && e->batch == 0)
		return TN_INVALID;
	if (e->note_len > SHR_NOTE_BYTES)
		return TN_TOO_BIG;
	/* An empty notification needs no slot; its number must be 0 then. */
	if (e->note_len == 0 ? e->note_slot != 0 : e->note_slot >= note_slots)
		return TN_INVALID;
	return TN_OK;
}

/* CANCEL names its victim by token and nothing else. */
static tn_status check_cancel(const struct shr_sqe_shm *e)
{
	if (e->segment != 0 || e->memory != 0 || e->local_off != 0 || e->remote_off != 0 || e->length != 0 ||
	    e->batch != 0 || e->note_len != 0 || e->note_slot != 0 || e->flags != 0 || e->policy != 0)
		return TN_INVALID;
	return TN_OK;
}

tn_status shr_sqe_check_shape(const struct shr_sqe_shm *e, uint32_t note_slots)
{
	if ((e->flags & ~SHR_SQE_FLAGS_ALL) != 0 || !tn_all_zero(e->reserved, sizeof e->reserved) ||
	    !tn_all_zero(e->reserved2, sizeof e->reserved2))
		return TN_INVALID;
	if (e->priority >= TN_PRIORITY_CNT || e->intent >= SHR_INTENT_CNT || e->hint >= TN_TRANSPORT_CNT)
		return TN_INVALID;
	switch (e->opcode) {
	case SHR_OP_READ:
	case SHR_OP_WRITE:
		return check_data(e);
	case SHR_OP_NOTIFY:
		return check_notify(e, note_slots);
	case SHR_OP_CANCEL:
		return check_cancel(e);
	default:
		return TN_INVALID;
	}
}
