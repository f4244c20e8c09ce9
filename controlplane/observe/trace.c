/* SPDX-License-Identifier: Apache-2.0
 * Completed spans as JSON lines: the root of a logical transfer and one child per attempt. Retention was decided by the
 * data plane (common/trace.h); what arrives here is kept. */
#include "controlplane/observe/log_render.h"

#include <inttypes.h>
#include <stdio.h>

#include "common/domain.h"
#include "common/json_out.h"
#include "common/status.h"
#include "common/trace.h"

static void put_span_id(struct tn_jout *j, const char *key, uint64_t id)
{
	char hex[17];
	(void)snprintf(hex, sizeof hex, "%016" PRIx64, id);
	tn_jout_str(j, key, hex);
}

static const char *retention_text(unsigned r)
{
	static const char *const text[] = {
#define X(n, s) #s,
		TN_RETENTION_LIST(X)
#undef X
	};
	return r < TN_ARRAY_LEN(text) ? text[r] : "invalid";
}

void cp_trace_render(const struct shr_event_shm *ev, const struct cp_log_clock *clock, struct tn_text *out)
{
	bool attempt = ev->kind == SHR_EVENT_SPAN_ATTEMPT;
	struct tn_jout j;

	tn_jout_begin(&j, out);
	tn_jout_str(&j, "event", attempt ? "tent.transport_attempt" : "tent.logical_transfer");
	cp_log_put_time(&j, "ts", ev->mono_ns, clock);
	tn_jout_str(&j, "level", "info");
	tn_jout_u64(&j, "request_id", ev->request_id);
	tn_jout_u64(&j, "batch_id", ev->batch_id);
	tn_jout_u64(&j, "task_id", ev->task_id);
	if (attempt)
		tn_jout_u64(&j, "attempt_id", ev->attempt_id);
	cp_log_put_trace(&j, ev);
	put_span_id(&j, "span_id", ev->span_id);
	if (attempt)
		put_span_id(&j, "parent_span_id", ev->parent_span_id);
	cp_log_put_time(&j, "start", ev->mono_ns - ev->duration_ns, clock);
	tn_jout_str(&j, "transport", tn_transport_name(ev->transport));
	tn_jout_str(&j, "operation", tn_op_name(ev->operation));
	tn_jout_str(&j, "status", tn_status_name((tn_status)ev->status));
	tn_jout_fixed(&j, "duration_us", ev->duration_ns, 3);
	tn_jout_u64(&j, "failover_count", ev->failover_cnt);
	tn_jout_u64(&j, "config_generation", ev->config_generation);
	tn_jout_str(&j, "retention", retention_text(ev->retention));
	tn_jout_end(&j);
	tn_text_char(out, '\n');
}
