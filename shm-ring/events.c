/* SPDX-License-Identifier: Apache-2.0
 * Writer and reader of event rings. A record's seq is odd while its slot is being written and 2*(n+1) once record n
 * is whole; the ring's tail counts whole records. All words are relaxed atomics, ordered by the tail [E2] and by the
 * fences around overwriting [E1]; tests/model/events.pml is the proof that this is enough.
 * Writer: worker or control thread. Reader: control plane, tentctl. */
#include "shm-ring/events.h"

#include "common/atomic.h"
#include "shm-ring/words.h"

#define EVENT_WORDS ((uint32_t)(sizeof(struct shr_event_shm) / 8))
#define WHOLE(n) (2 * ((n) + 1))

TN_STATIC_ASSERT(offsetof(struct shr_event_shm, seq) == 0, "seq is the first word; the copies below start behind it");

static tn_a64 *slot_of(struct shr_event_ring_shm *ring, uint32_t i)
{
	return (tn_a64 *)(void *)((uint8_t *)(ring + 1) + (size_t)i * sizeof(struct shr_event_shm));
}

static const tn_a64 *const_slot_of(const struct shr_event_ring_shm *ring, uint32_t i)
{
	return (const tn_a64 *)(const void *)((const uint8_t *)(ring + 1) + (size_t)i * sizeof(struct shr_event_shm));
}

void shr_event_writer_init(struct shr_event_writer *w, const struct shr_tele *t, uint32_t thread, bool keep)
{
	*w = (struct shr_event_writer){
		.ring = shr_tele_ring(t, thread, keep),
		.mask = (keep ? t->lay.keep_slots : t->lay.event_slots) - 1,
	};
}

void shr_event_write(struct shr_event_writer *w, const struct shr_event_shm *rec)
{
	tn_a64 *slot = slot_of(w->ring, (uint32_t)w->next & w->mask);
	tn_store_relaxed64(&slot[0], WHOLE(w->next) - 1);
	/* [E1] release fence: the odd seq is visible before any word of the new record; a reader that copied such a
	 * word sees a changed seq afterwards. */
	tn_fence_release();
	shr_words_store(&slot[1], (const uint8_t *)rec + 8, EVENT_WORDS - 1);
	/* Relaxed: nobody looks for record n before the tail below says that it is there. */
	tn_store_relaxed64(&slot[0], WHOLE(w->next));
	w->next++;
	/* [E2] release: a reader that sees the new tail sees every record below it, words and even seq. */
	tn_store_release64(&w->ring->tail, w->next);
}

void shr_event_reader_init(struct shr_event_reader *r, const struct shr_tele_ro *t, uint32_t thread, bool keep,
			   bool from_start)
{
	*r = (struct shr_event_reader){
		.ring = shr_tele_ro_ring(t, thread, keep),
		.mask = (keep ? t->lay.keep_slots : t->lay.event_slots) - 1,
	};
	if (from_start)
		return;
	uint64_t tail = tn_load_relaxed64(&r->ring->tail);
	r->next = tail > (uint64_t)r->mask + 1 ? tail - r->mask - 1 : 0;
}

/* Copies record n if it is still whole in its slot. */
static bool read_record(const struct shr_event_reader *r, uint64_t n, struct shr_event_shm *out)
{
	const tn_a64 *slot = const_slot_of(r->ring, (uint32_t)n & r->mask);
	uint64_t copy[EVENT_WORDS];
	/* Relaxed: the acquire of the tail made record n readable; here we only look whether it was overwritten since. */
	copy[0] = tn_load_relaxed64(&slot[0]);
	if (copy[0] != WHOLE(n))
		return false;
	shr_words_load(&copy[1], &slot[1], EVENT_WORDS - 1);
	/* [E1] acquire fence: pairs with the writer's fence; if a word above was of a later record, seq has moved. */
	tn_fence_acquire();
	if (tn_load_relaxed64(&slot[0]) != copy[0])
		return false;
	__builtin_memcpy(out, copy, sizeof copy);
	return true;
}

uint32_t shr_event_read(struct shr_event_reader *r, struct shr_event_shm *out, uint32_t max)
{
	/* [E2] acquire: pairs with the tail store; every record below was whole at some time. */
	uint64_t tail = tn_load_acquire64(&r->ring->tail);
	uint64_t slots = (uint64_t)r->mask + 1;
	if (tail < r->next) /* cannot be: the writer only adds, and a new writer has a new file */
		return 0;
	if (tail - r->next > slots) {
		r->missed += tail - r->next - slots;
		r->next = tail - slots;
	}
	uint32_t got = 0;
	while (got < max && r->next != tail) {
		if (read_record(r, r->next, &out[got]))
			got++;
		else
			r->missed++;
		r->next++;
	}
	return got;
}
