/* SPDX-License-Identifier: Apache-2.0
 * The in-process record ring. Indices are free-running; a slot is index & mask. Producer code touches the tail line,
 * consumer code the head line, and each looks at the other's only when its cached copy says full or empty. */
#include "shm-ring/mailbox.h"

#include <stdlib.h>
#include <string.h>

#include "common/bits.h"

#define ENTRIES_MAX 65536u
#define RECORD_MAX 4096u

tn_status shr_mailbox_create(struct shr_mailbox *mb, uint32_t rec_bytes, uint32_t entries)
{
	if (rec_bytes == 0 || rec_bytes > RECORD_MAX || !tn_is_pow2(entries) || entries > ENTRIES_MAX)
		return TN_INVALID;
	size_t bytes = (size_t)rec_bytes * entries;
	bytes = tn_align_up(bytes, TN_CACHE_LINE);
	uint8_t *records = aligned_alloc(TN_CACHE_LINE, bytes);
	if (records == NULL)
		return TN_NO_MEMORY;
	memset(records, 0, bytes); /* faulted in here, not on the first message */
	memset(mb, 0, sizeof *mb);
	mb->records = records;
	mb->rec_bytes = rec_bytes;
	mb->mask = entries - 1;
	return TN_OK;
}

void shr_mailbox_destroy(struct shr_mailbox *mb)
{
	free(mb->records);
	mb->records = NULL;
}

bool shr_mailbox_push(struct shr_mailbox *mb, const void *rec)
{
	uint32_t tail = tn_load_relaxed32(&mb->tail);
	if (tail - mb->head_seen > mb->mask) {
		/* [X2] acquire: the consumer's copy out of this slot is over before it is overwritten. */
		mb->head_seen = tn_load_acquire32(&mb->head);
		if (tail - mb->head_seen > mb->mask)
			return false;
	}
	memcpy(mb->records + (size_t)(tail & mb->mask) * mb->rec_bytes, rec, mb->rec_bytes);
	/* [X1] release: the record is whole before the index covers it. */
	tn_store_release32(&mb->tail, tail + 1);
	return true;
}

bool shr_mailbox_pop(struct shr_mailbox *mb, void *rec_out)
{
	uint32_t head = tn_load_relaxed32(&mb->head);
	if (mb->tail_seen == head) {
		/* [X1] acquire: pairs with push; records below the index are whole. */
		mb->tail_seen = tn_load_acquire32(&mb->tail);
		if (mb->tail_seen == head)
			return false;
	}
	memcpy(rec_out, mb->records + (size_t)(head & mb->mask) * mb->rec_bytes, mb->rec_bytes);
	/* [X2] release: our read of the slot is over before the producer may reuse it. */
	tn_store_release32(&mb->head, head + 1);
	return true;
}
