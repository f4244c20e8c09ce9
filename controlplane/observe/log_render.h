/* SPDX-License-Identifier: Apache-2.0
 * Binary events -> JSON lines (contract sections 6 and 7). The field order is fixed; a field that means nothing for an
 * event is left out. Records come from shared memory: every enum is checked, an unknown one reads "invalid".
 * Pure; the rate limiter's state belongs to its caller. */
#ifndef CP_OBSERVE_LOG_RENDER_H
#define CP_OBSERVE_LOG_RENDER_H

#include <stdbool.h>
#include <stdint.h>

#include "common/text_buf.h"
#include "shm-ring/abi.h"

/* Turns the writer's CLOCK_MONOTONIC into real time: both clocks read at one instant, at its start. */
struct cp_log_clock { uint64_t mono_ns, real_ns; };

/* Appends one line with its '\n'. suppressed: events of this kind not rendered since the last one (the record's own
 * number included by the caller). False, nothing written, when the kind is unknown. */
bool cp_log_render(const struct shr_event_shm *ev, const struct cp_log_clock *clock, uint64_t suppressed,
		   struct tn_text *out);
/* Same for the two span kinds; called by cp_log_render(). */
void cp_trace_render(const struct shr_event_shm *ev, const struct cp_log_clock *clock, struct tn_text *out);

/* Helpers of the two renderers: "2026-01-31T23:59:59.123456Z", and 32 hex digits of the trace id. */
struct tn_jout;
void cp_log_put_time(struct tn_jout *j, const char *key, uint64_t mono_ns, const struct cp_log_clock *clock);
void cp_log_put_trace(struct tn_jout *j, const struct shr_event_shm *ev);

/* Token bucket per event kind: CP_LOG_RATE lines a second, CP_LOG_BURST at once. Spans are not limited: their sampling
 * is their limit. Zeroed = full. */
enum { CP_LOG_RATE = 100, CP_LOG_BURST = 200 };
struct cp_log_limit {
	struct { uint64_t used_ns, suppressed; } kind[SHR_EVENT_KIND_CNT];
};
/* True when the event may be rendered now; *suppressed_out is then the number to print. Else it is counted. */
bool cp_log_limit_pass(struct cp_log_limit *l, const struct shr_event_shm *ev, uint64_t now_ns, uint64_t *suppressed_out);

#endif
