/* SPDX-License-Identifier: Apache-2.0
 * How many log lines a second an event kind may make. Pure; the state belongs to the caller. */
#ifndef CP_OBSERVE_LOG_LIMIT_H
#define CP_OBSERVE_LOG_LIMIT_H

#include <stdbool.h>
#include <stdint.h>

#include "shm-ring/abi.h"

/* Token bucket per event kind: CP_LOG_RATE lines a second, CP_LOG_BURST at once. Spans are not limited: their sampling
 * is their limit. Zeroed = full. */
enum { CP_LOG_RATE = 100, CP_LOG_BURST = 200 };
struct cp_log_limit {
	struct { uint64_t used_ns, suppressed; } kind[SHR_EVENT_KIND_CNT];
};
/* True when the event may be rendered now; *suppressed_out is then the number to print. Else it is counted. */
bool cp_log_limit_pass(struct cp_log_limit *l, const struct shr_event_shm *ev, uint64_t now_ns,
		       uint64_t *suppressed_out);

#endif
