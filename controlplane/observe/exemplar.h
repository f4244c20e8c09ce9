/* SPDX-License-Identifier: Apache-2.0
 * Exemplars of tent_transport_attempt_latency_us: one fixed slot per {transport, operation}, the latest retained trace
 * wins. They are derived from the retained SPAN_ATTEMPT events, which the data plane writes after it observed the
 * latency; a scrape copies the slots before it reads the cells, so an exemplar never precedes its count.
 * Owned by whoever holds the observe lock. */
#ifndef CP_OBSERVE_EXEMPLAR_H
#define CP_OBSERVE_EXEMPLAR_H

#include <stdint.h>

#include "common/domain.h"
#include "common/trace.h"
#include "shm-ring/abi.h"

struct cp_exemplar {
	uint64_t trace_hi, trace_lo; /* both 0 = no exemplar */
	uint64_t duration_ns;
	uint64_t mono_ns;            /* end of the attempt, the data plane's CLOCK_MONOTONIC */
};

struct cp_exemplars { struct cp_exemplar slot[TN_TRANSPORT_CNT][TN_OP_CNT]; };

/* Takes the event when it is a retained attempt span with a trace id; anything else, also a value outside its domain,
 * is ignored. */
TN_INLINE void cp_exemplar_offer(struct cp_exemplars *x, const struct shr_event_shm *ev)
{
	if (ev->kind != SHR_EVENT_SPAN_ATTEMPT || ev->retention == TN_RETENTION_NONE || (ev->trace_hi | ev->trace_lo) == 0)
		return;
	if (ev->transport >= TN_TRANSPORT_CNT || ev->operation >= TN_OP_CNT)
		return;
	struct cp_exemplar *slot = &x->slot[ev->transport][ev->operation];
	if (ev->mono_ns >= slot->mono_ns)
		*slot = (struct cp_exemplar){ ev->trace_hi, ev->trace_lo, ev->duration_ns, ev->mono_ns };
}

#endif
