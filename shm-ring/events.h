/* SPDX-License-Identifier: Apache-2.0
 * Overwrite rings of event records. Each thread owns two: normal events, and events that must be kept (errors,
 * retained spans), so that a flood of the one cannot wash away the other. The writer never waits and never learns who
 * reads. A reader maps the file read-only, keeps a cursor, never returns a half-written record, and counts what was
 * overwritten before it came. */
#ifndef SHR_EVENTS_H
#define SHR_EVENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/compiler.h"
#include "shm-ring/abi.h"
#include "shm-ring/telemetry.h"

/* Writer; one thread, no system call. */
struct shr_event_writer {
	struct shr_event_ring_shm *ring;
	uint32_t mask;
	uint64_t next; /* number of the record to be written next */
};

/* Binds to this thread's ring (thread as in shr_tele_cells). */
void shr_event_writer_init(struct shr_event_writer *w, const struct shr_tele *t, uint32_t thread, bool keep);
/* Writes one record; rec->seq is ignored. Overwrites the oldest. */
void shr_event_write(struct shr_event_writer *w, const struct shr_event_shm *rec);

/* Reader; one thread. `missed` is the total number of records that this reader can no longer get. */
struct shr_event_reader {
	const struct shr_event_ring_shm *ring;
	uint32_t mask;
	uint64_t next; /* number of the record to be read next */
	uint64_t missed;
};

/* Starts at the oldest record still there; records overwritten before count as missed only when from_start. A reader
 * that restarts on a running file passes false: it does not know what its predecessor had read. */
void shr_event_reader_init(struct shr_event_reader *r, const struct shr_tele_ro *t, uint32_t thread, bool keep,
			   bool from_start);
/* Copies up to `max` whole records in order into out (their seq field is 2 * (number + 1)); returns how many. 0 = none
 * new. Also works on the file of a dead writer: a record it died in is counted as missed only if it was overwriting
 * one. */
uint32_t shr_event_read(struct shr_event_reader *r, struct shr_event_shm *out, uint32_t max);

#endif
