/* SPDX-License-Identifier: Apache-2.0
 * Owner of what was refused at the doors. Control thread. */
#include "dataplane/ingress/refusal.h"

#include <inttypes.h>
#include <string.h>
#include <sys/resource.h>

#include "common/clock.h"
#include "common/log.h"
#include "dataplane/control.h"

#define TELL_EVERY_NS (10 * TN_NS_PER_S)

static const char *const door_texts[TN_DP_DOOR_CNT] = { DP_ATTACH_SOCKET, "transports/tcp/port" };

uint32_t dp_descriptor_limit(void)
{
	struct rlimit fds;
	return getrlimit(RLIMIT_NOFILE, &fds) == 0 ? (uint32_t)TN_MIN(fds.rlim_cur, (rlim_t)UINT32_MAX) : 0;
}

void dp_refused(struct dp_control *ctl, enum tn_dp_door door, enum tn_refusal why)
{
	uint64_t *n = ctl->refusals.door[door].since, *told_ns = &ctl->refusals.door[door].told_ns;

	tn_counter_add(&ctl->metrics, TN_C2(DATAPLANE_CONNECTIONS_REFUSED_TOTAL, door, why), 1);
	n[why]++;
	if (*told_ns != 0 && ctl->loop.now_ns - *told_ns < TELL_EVERY_NS)
		return;
	*told_ns = ctl->loop.now_ns;
	tn_log_warn("door", "%s: closed unheard: %" PRIu64 " because too many were open at once, %" PRIu64 " because no descriptor "
		    "was left (RLIMIT_NOFILE is %u: raise it with LimitNOFILE= in the unit), %" PRIu64 " without the right to come "
		    "in, %" PRIu64 " silent", door_texts[door], n[TN_REFUSAL_CROWDED], n[TN_REFUSAL_DESCRIPTORS],
		    dp_descriptor_limit(), n[TN_REFUSAL_STRANGER], n[TN_REFUSAL_SILENT]);
	memset(n, 0, sizeof ctl->refusals.door[door].since);
}
