/* SPDX-License-Identifier: Apache-2.0
 * A ring of fixed-size records between two threads of one process (control thread and one worker, one direction).
 * Same discipline as the queue pair: one writer per index line, the peer's index cached. Both ends are our own code,
 * so there are no broken-index checks. One producer thread, one consumer thread; nothing here blocks. */
#ifndef SHR_MAILBOX_H
#define SHR_MAILBOX_H

#include <stdbool.h>
#include <stdint.h>

#include "common/atomic.h"
#include "common/compiler.h"
#include "common/status.h"

struct shr_mailbox {
	uint8_t *records; /* constant after create */
	uint32_t rec_bytes, mask;
	TN_CACHE_ALIGNED tn_a32 tail; /* producer: records published [X1] */
	uint32_t head_seen;
	TN_CACHE_ALIGNED tn_a32 head; /* consumer: records taken     [X2] */
	uint32_t tail_seen;
};

/* Allocates room for `entries` (power of two, <= 65536) records of rec_bytes (1 .. 4096).
 * TN_INVALID, TN_NO_MEMORY. On failure *mb is untouched. Before both threads use it. */
TN_MUST_USE tn_status shr_mailbox_create(struct shr_mailbox *mb, uint32_t rec_bytes, uint32_t entries);
/* Frees it; accepts a zeroed object. After both threads stopped using it. */
void shr_mailbox_destroy(struct shr_mailbox *mb);

/* Producer. Copies one record in; false when full (nothing changed): keep it and try again. */
TN_MUST_USE bool shr_mailbox_push(struct shr_mailbox *mb, const void *rec);
/* Consumer. Copies the oldest record out; false when empty. */
TN_MUST_USE bool shr_mailbox_pop(struct shr_mailbox *mb, void *rec_out);
/* Consumer. True when pop would succeed; also the re-check between arming a doorbell and sleeping. */
TN_INLINE bool shr_mailbox_pending(const struct shr_mailbox *mb)
{
	return tn_load_relaxed32(&mb->tail) != tn_load_relaxed32(&mb->head);
}

#endif
