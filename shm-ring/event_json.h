/* SPDX-License-Identifier: Apache-2.0
 * What an event record means, once for everybody who shows one: name, level and meaningful fields of each kind, and the
 * record as a JSON line (contract sections 6 and 7). The field order is fixed; a field that means nothing for a kind is
 * left out. Records come from shared memory: every enum is checked, an unknown one reads "invalid". Pure; any thread.
 */
#ifndef SHR_EVENT_JSON_H
#define SHR_EVENT_JSON_H

#include <stdbool.h>
#include <stdint.h>

#include "common/text_buf.h"
#include "shm-ring/abi.h"

/* shr_event_form.fields: which fields mean something. */
enum {
	SHR_EVF_REQUEST = 1 << 0,   /* request, batch and task id, failovers */
	SHR_EVF_ATTEMPT = 1 << 1,   /* unless it is 0: there was none */
	SHR_EVF_TRANSPORT = 1 << 2,
	SHR_EVF_FROM_TO = 1 << 3,
	SHR_EVF_OPERATION = 1 << 4,
	SHR_EVF_PHASE = 1 << 5,     /* of a span: when its status is not ok */
	SHR_EVF_REASON = 1 << 6,
	SHR_EVF_STATUS = 1 << 7,
	SHR_EVF_DURATION = 1 << 8,
	SHR_EVF_ARG = 1 << 9,
	SHR_EVF_SPAN = 1 << 10,     /* a completed span: ids, start, retention */
	SHR_EVF_PARENT = 1 << 11,   /* span with a parent */
};

struct shr_event_form { const char *name, *level; unsigned fields; };

/* The form of a kind; NULL when it is unknown (also SHR_EVENT_NONE). */
const struct shr_event_form *shr_event_form(unsigned kind);
/* Name of an enum tn_retention; "invalid" outside. */
const char *shr_event_retention(unsigned retention);

/* Turns the writer's CLOCK_MONOTONIC into real time: both clocks read at one instant, at its start. */
struct shr_event_clock { uint64_t mono_ns, real_ns; };
#define SHR_EVENT_TIME_MAX 48u
/* "2026-01-31T23:59:59.123456Z"; also for times before the pair. Returns out. */
char *shr_event_time(uint64_t mono_ns, const struct shr_event_clock *clock, char out[static SHR_EVENT_TIME_MAX]);

/* Appends one line with its '\n'. suppressed: events of this kind not rendered since the last one (the record's own
 * number included by the caller). False, nothing written, when the kind is unknown. */
bool shr_event_json(const struct shr_event_shm *ev, const struct shr_event_clock *clock, uint64_t suppressed,
		    struct tn_text *out);

#endif
