/* SPDX-License-Identifier: Apache-2.0
 * The submission and completion ring between one application thread and one data-plane worker: hot path, inline.
 * One object, two structs: the shared half is in abi.h (index lines, entries), the private half here (masks, own index,
 * last index seen of the peer). Nobody trusts the peer's index: one that is more than `entries` away is
 * TN_CLIENT_BROKEN, and an entry is copied out once and only the copy is looked at.
 *
 *              producer            consumer
 *   SQ         application         worker
 *   CQ         worker              application
 *
 * Each struct belongs to one thread. Nothing here blocks, allocates or calls the system. */
#ifndef SHR_SPSC_H
#define SHR_SPSC_H

#include <stdint.h>

#include "common/atomic.h"
#include "common/compiler.h"
#include "common/status.h"
#include "shm-ring/abi.h"
#include "shm-ring/ring_check.h"
#include "shm-ring/words.h"

#define SHR_SQE_WORDS ((uint32_t)(sizeof(struct shr_sqe_shm) / 8))
#define SHR_CQE_WORDS ((uint32_t)(sizeof(struct shr_cqe_shm) / 8))

/* ------------------------------------------------------------------------------------------- SQ, application side */

struct shr_sq_prod {
	struct shr_qp_shm *qp;
	struct shr_sqe_shm *ring;
	uint32_t entries, mask;
	uint32_t tail;      /* entries written, published or not */
	uint32_t published; /* what sq_tail shows */
	uint32_t head_seen; /* last sq_head believed */
};

/* Starts at the beginning of a freshly created region. The view must outlive the ring (same mapping). */
TN_INLINE void shr_sq_prod_init(struct shr_sq_prod *p, const struct shr_qp_view *v)
{
	*p = (struct shr_sq_prod){ .qp = v->qp, .ring = v->sq, .entries = v->lay.sq_entries, .mask = v->lay.sq_entries - 1 };
}

/* Free entries now, at most `want` looked for: *free_out in [0, entries]. Reads the peer's line only when the cached
 * answer is below `want`. TN_CLIENT_BROKEN when sq_head is out of range (the ring was scribbled over: give it up). */
TN_INLINE tn_status shr_sq_space(struct shr_sq_prod *p, uint32_t want, uint32_t *free_out)
{
	uint32_t used = p->tail - p->head_seen;
	if (p->entries - used < want) {
		/* [R2] acquire: the worker's copies out of these slots are over before they are written again. */
		uint32_t head = tn_load_acquire32(&p->qp->sq_head.value);
		used = p->tail - head;
		if (tn_unlikely(used > p->entries))
			return TN_CLIENT_BROKEN;
		p->head_seen = head;
	}
	*free_out = p->entries - used;
	return TN_OK;
}

/* Writes one entry; the caller has seen space for it. Not visible before shr_sq_publish(). */
TN_INLINE void shr_sq_put(struct shr_sq_prod *p, const struct shr_sqe_shm *sqe)
{
	shr_words_store(&p->ring[p->tail & p->mask], sqe, SHR_SQE_WORDS);
	p->tail++;
}

/* Makes everything put so far visible in one store; returns how many entries that were. Ring the doorbell after it
 * (doorbell.h) when not 0. */
TN_INLINE uint32_t shr_sq_publish(struct shr_sq_prod *p)
{
	uint32_t n = p->tail - p->published;
	if (n != 0) {
		/* [R1] release: the entries are whole before the index covers them. */
		tn_store_release32(&p->qp->sq_tail.value, p->tail);
		p->published = p->tail;
	}
	return n;
}

/* -------------------------------------------------------------------------------------------- SQ, data-plane side */

struct shr_sq_cons {
	struct shr_qp_shm *qp;
	const struct shr_sqe_shm *ring;
	uint32_t entries, mask;
	uint32_t head;      /* entries released */
	uint32_t tail_seen; /* last sq_tail believed */
};

TN_INLINE void shr_sq_cons_init(struct shr_sq_cons *c, const struct shr_qp_view *v)
{
	*c = (struct shr_sq_cons){ .qp = v->qp, .ring = v->sq, .entries = v->lay.sq_entries, .mask = v->lay.sq_entries - 1 };
}

/* Entries ready to be copied out: *avail_out in [0, entries]. Reads the client's line only when fewer than `want` are
 * known. TN_CLIENT_BROKEN: the client's index is more than `entries` ahead or behind; drop the client. */
TN_INLINE tn_status shr_sq_peek(struct shr_sq_cons *c, uint32_t want, uint32_t *avail_out)
{
	uint32_t avail = c->tail_seen - c->head;
	if (avail < want) {
		/* [R1] acquire: pairs with the application's publish; entries below the index are whole. */
		uint32_t tail = tn_load_acquire32(&c->qp->sq_tail.value);
		avail = tail - c->head;
		if (tn_unlikely(avail > c->entries))
			return TN_CLIENT_BROKEN;
		c->tail_seen = tail;
	}
	*avail_out = avail;
	return TN_OK;
}

/* Copies entry `i` (0 = oldest, below the count that peek gave) into private memory, reading each word once. The copy
 * is still unchecked: shr_sqe_check_shape() comes next, and the shared entry is never looked at again. */
TN_INLINE void shr_sq_copy(const struct shr_sq_cons *c, uint32_t i, struct shr_sqe_shm *out)
{
	shr_words_load(out, &c->ring[(c->head + i) & c->mask], SHR_SQE_WORDS);
}

TN_INLINE void shr_sq_prefetch(const struct shr_sq_cons *c, uint32_t i)
{
	const char *e = (const char *)&c->ring[(c->head + i) & c->mask];
	TN_PREFETCH(e);
	TN_PREFETCH(e + TN_CACHE_LINE);
}

/* Gives `n` copied-out entries back to the application in one store. Call it before anything is done for the copies: when
 * the data plane dies, libtent takes the entries at and above sq_head as never seen and submits them again, WRITEs
 * included. */
TN_INLINE void shr_sq_release(struct shr_sq_cons *c, uint32_t n)
{
	c->head += n;
	/* [R2] release: our reads of the slots are over before the application may reuse them. */
	tn_store_release32(&c->qp->sq_head.value, c->head);
}

/* True when a publish has happened that peek has not seen; the re-check between arming and sleeping. An index out of
 * range also counts: the next peek reports it. */
TN_INLINE bool shr_sq_pending(const struct shr_sq_cons *c)
{
	return tn_load_relaxed32(&c->qp->sq_tail.value) != c->head;
}

/* -------------------------------------------------------------------------------------------- CQ, data-plane side */

/* Completions are never dropped because their slots are reserved when a request is taken from the SQ: 2 for READ and
 * WRITE (terminal, release), 1 for NOTIFY, 0 for CANCEL. An application that keeps at most sq_entries requests
 * outstanding and releases CQ entries before it submits again never meets TN_AGAIN here. */
struct shr_cq_prod {
	struct shr_qp_shm *qp;
	struct shr_cqe_shm *ring;
	uint32_t entries, mask;
	uint32_t tail;      /* entries written */
	uint32_t published; /* what cq_tail shows */
	uint32_t head_seen; /* last cq_head believed */
	uint32_t reserved;  /* slots promised to requests that are still running */
};

TN_INLINE void shr_cq_prod_init(struct shr_cq_prod *p, const struct shr_qp_view *v)
{
	*p = (struct shr_cq_prod){ .qp = v->qp, .ring = v->cq, .entries = v->lay.cq_entries, .mask = v->lay.cq_entries - 1 };
}

/* Promises `n` slots. TN_OK; TN_AGAIN: not enough now (leave the request in the SQ and come back);
 * TN_CLIENT_BROKEN: cq_head is out of range. */
TN_INLINE tn_status shr_cq_reserve(struct shr_cq_prod *p, uint32_t n)
{
	uint32_t used = p->tail - p->head_seen;
	if (p->entries - used < p->reserved + n) {
		/* [R4] acquire: the application's reads of these slots are over before they are written again. */
		uint32_t head = tn_load_acquire32(&p->qp->cq_head.value);
		used = p->tail - head;
		/* Moved backwards, beyond our tail, or beyond what was published. */
		if (tn_unlikely(used > p->tail - p->head_seen || used < p->tail - p->published))
			return TN_CLIENT_BROKEN;
		p->head_seen = head;
		if (p->entries - used < p->reserved + n)
			return TN_AGAIN;
	}
	p->reserved += n;
	return TN_OK;
}

/* Gives back promised slots that will not be used (no release completion follows). */
TN_INLINE void shr_cq_unreserve(struct shr_cq_prod *p, uint32_t n) { p->reserved -= n; }

/* Writes one completion into a promised slot. Not visible before shr_cq_publish(). */
TN_INLINE void shr_cq_put(struct shr_cq_prod *p, const struct shr_cqe_shm *cqe)
{
	p->reserved--;
	shr_words_store(&p->ring[p->tail & p->mask], cqe, SHR_CQE_WORDS);
	p->tail++;
}

/* Makes everything put so far visible in one store; returns how many. Ring the doorbell after it when not 0. */
TN_INLINE uint32_t shr_cq_publish(struct shr_cq_prod *p)
{
	uint32_t n = p->tail - p->published;
	if (n != 0) {
		/* [R3] release: the completions, and the payload bytes they announce, are whole before the index. */
		tn_store_release32(&p->qp->cq_tail.value, p->tail);
		p->published = p->tail;
	}
	return n;
}

/* ------------------------------------------------------------------------------------------- CQ, application side */

struct shr_cq_cons {
	struct shr_qp_shm *qp;
	const struct shr_cqe_shm *ring;
	uint32_t entries, mask;
	uint32_t head;      /* entries released */
	uint32_t tail_seen; /* last cq_tail believed */
};

TN_INLINE void shr_cq_cons_init(struct shr_cq_cons *c, const struct shr_qp_view *v)
{
	*c = (struct shr_cq_cons){ .qp = v->qp, .ring = v->cq, .entries = v->lay.cq_entries, .mask = v->lay.cq_entries - 1 };
}

/* Completions ready: *avail_out in [0, entries]; reads the worker's line only when fewer than `want` are known.
 * TN_CLIENT_BROKEN: the index is out of range; give the queue pair up. */
TN_INLINE tn_status shr_cq_peek(struct shr_cq_cons *c, uint32_t want, uint32_t *avail_out)
{
	uint32_t avail = c->tail_seen - c->head;
	if (avail < want) {
		/* [R3] acquire: pairs with the worker's publish; completion and payload are readable. */
		uint32_t tail = tn_load_acquire32(&c->qp->cq_tail.value);
		avail = tail - c->head;
		if (tn_unlikely(avail > c->entries))
			return TN_CLIENT_BROKEN;
		c->tail_seen = tail;
	}
	*avail_out = avail;
	return TN_OK;
}

TN_INLINE void shr_cq_copy(const struct shr_cq_cons *c, uint32_t i, struct shr_cqe_shm *out)
{
	shr_words_load(out, &c->ring[(c->head + i) & c->mask], SHR_CQE_WORDS);
}

/* Gives `n` completions back in one store; do it before submitting into the room they made. */
TN_INLINE void shr_cq_release(struct shr_cq_cons *c, uint32_t n)
{
	c->head += n;
	/* [R4] release: our reads of the slots are over before the worker may reuse them. */
	tn_store_release32(&c->qp->cq_head.value, c->head);
}

/* True when there is a completion that was not released yet; the re-check between arming and sleeping. */
TN_INLINE bool shr_cq_pending(const struct shr_cq_cons *c)
{
	return tn_load_relaxed32(&c->qp->cq_tail.value) != c->head;
}

#endif
