/* SPDX-License-Identifier: Apache-2.0
 * The rate limiter of log lines. */
#include "controlplane/observe/log_limit.h"

#include "common/clock.h"

/* The bucket as a debt in time: each line costs 1/RATE seconds, the debt drains with the clock, BURST lines fit. */
bool cp_log_limit_pass(struct cp_log_limit *l, const struct shr_event_shm *ev, uint64_t now_ns,
		       uint64_t *suppressed_out)
{
	const uint64_t cost = TN_NS_PER_S / CP_LOG_RATE;
	if (ev->kind == SHR_EVENT_SPAN_TRANSFER || ev->kind == SHR_EVENT_SPAN_ATTEMPT ||
	    ev->kind >= SHR_EVENT_KIND_CNT) {
		*suppressed_out = 0;
		return true;
	}
	uint64_t *used = &l->kind[ev->kind].used_ns, *suppressed = &l->kind[ev->kind].suppressed;
	*suppressed += ev->suppressed;
	*used = TN_MAX(*used, now_ns);
	if (*used - now_ns > (CP_LOG_BURST - 1) * cost) {
		*suppressed += 1;
		return false;
	}
	*used += cost;
	*suppressed_out = *suppressed;
	*suppressed = 0;
	return true;
}
