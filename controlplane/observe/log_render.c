/* SPDX-License-Identifier: Apache-2.0
 * The renderer of log events and its rate limiter. */
#include "controlplane/observe/log_render.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#include "common/clock.h"
#include "common/domain.h"
#include "common/json_out.h"
#include "common/status.h"

/* Which fields mean something for an event. */
enum {
	F_REQUEST = 1 << 0,   /* request, batch and task id */
	F_ATTEMPT = 1 << 1,
	F_TRANSPORT = 1 << 2,
	F_FROM_TO = 1 << 3,
	F_OPERATION = 1 << 4,
	F_CAUSE = 1 << 5,     /* phase and reason */
	F_STATUS = 1 << 6,
	F_DURATION = 1 << 7,
	F_PHASE = 1 << 8,     /* phase alone */
	F_ARG = 1 << 9,
};

struct event_form { const char *name, *level; unsigned fields; };

static const struct event_form forms[SHR_EVENT_KIND_CNT] = {
	[SHR_EVENT_REQUEST_FAILED] = { "tent.request.failed", "warn",
		F_REQUEST | F_ATTEMPT | F_TRANSPORT | F_OPERATION | F_CAUSE | F_STATUS | F_DURATION },
	[SHR_EVENT_REQUEST_SLOW] = { "tent.request.slow", "warn",
		F_REQUEST | F_ATTEMPT | F_TRANSPORT | F_OPERATION | F_STATUS | F_DURATION },
	[SHR_EVENT_REQUEST_STUCK] = { "tent.request.stuck", "warn",
		F_REQUEST | F_ATTEMPT | F_TRANSPORT | F_OPERATION | F_PHASE | F_DURATION },
	[SHR_EVENT_ATTEMPT_FAILED] = { "tent.transport.attempt_failed", "warn",
		F_REQUEST | F_ATTEMPT | F_TRANSPORT | F_OPERATION | F_CAUSE | F_STATUS | F_DURATION },
	[SHR_EVENT_FAILOVER] = { "tent.transport.failover", "info",
		F_REQUEST | F_ATTEMPT | F_FROM_TO | F_OPERATION | F_CAUSE | F_STATUS },
	[SHR_EVENT_SELECTION_FAILED] = { "tent.transport.selection_failed", "warn",
		F_REQUEST | F_OPERATION | F_CAUSE | F_STATUS },
	[SHR_EVENT_CLIENT_DROPPED] = { "tent.client.dropped", "warn", F_STATUS | F_ARG },
	[SHR_EVENT_PEER_SESSION] = { "tent.peer.session", "info", F_STATUS },
	[SHR_EVENT_LANE_DOWN] = { "tent.lane.down", "info", F_TRANSPORT | F_CAUSE | F_STATUS },
	[SHR_EVENT_STATE] = { "tent.state", "info", F_ARG },
};

void cp_log_put_time(struct tn_jout *j, const char *key, uint64_t mono_ns, const struct cp_log_clock *clock)
{
	uint64_t real_ns = clock->real_ns + (mono_ns - clock->mono_ns); /* modulo 2^64: also for events before the pair */
	time_t s = (time_t)(real_ns / TN_NS_PER_S);
	struct tm tm;
	char day[32], text[48];
	if (!gmtime_r(&s, &tm) || strftime(day, sizeof day, "%Y-%m-%dT%H:%M:%S", &tm) == 0)
		(void)snprintf(day, sizeof day, "1970-01-01T00:00:00");
	(void)snprintf(text, sizeof text, "%s.%06" PRIu64 "Z", day, real_ns % TN_NS_PER_S / TN_NS_PER_US);
	tn_jout_str(j, key, text);
}

void cp_log_put_trace(struct tn_jout *j, const struct shr_event_shm *ev)
{
	char hex[33];
	if ((ev->trace_hi | ev->trace_lo) == 0)
		return;
	(void)snprintf(hex, sizeof hex, "%016" PRIx64 "%016" PRIx64, ev->trace_hi, ev->trace_lo);
	tn_jout_str(j, "trace_id", hex);
}

static void put_ids(struct tn_jout *j, const struct shr_event_shm *ev, unsigned fields)
{
	if (fields & F_REQUEST) {
		tn_jout_u64(j, "request_id", ev->request_id);
		tn_jout_u64(j, "batch_id", ev->batch_id);
		tn_jout_u64(j, "task_id", ev->task_id);
	}
	if (fields & F_ATTEMPT)
		tn_jout_u64(j, "attempt_id", ev->attempt_id);
	cp_log_put_trace(j, ev);
}

static void put_what(struct tn_jout *j, const struct shr_event_shm *ev, unsigned fields)
{
	if (fields & F_TRANSPORT)
		tn_jout_str(j, "transport", tn_transport_name(ev->transport));
	if (fields & F_FROM_TO) {
		tn_jout_str(j, "from", tn_transport_name(ev->from));
		tn_jout_str(j, "to", tn_transport_name(ev->to));
	}
	if (fields & F_OPERATION)
		tn_jout_str(j, "operation", tn_op_name(ev->operation));
	if (fields & (F_CAUSE | F_PHASE))
		tn_jout_str(j, "phase", tn_phase_name(ev->phase));
	if (fields & F_CAUSE)
		tn_jout_str(j, "reason", tn_reason_name(ev->reason));
	if (fields & F_STATUS)
		tn_jout_str(j, "status", tn_status_name((tn_status)ev->status));
}

bool cp_log_render(const struct shr_event_shm *ev, const struct cp_log_clock *clock, uint64_t suppressed,
		   struct tn_text *out)
{
	if (ev->kind == SHR_EVENT_SPAN_TRANSFER || ev->kind == SHR_EVENT_SPAN_ATTEMPT) {
		cp_trace_render(ev, clock, out);
		return true;
	}
	if (ev->kind >= SHR_EVENT_KIND_CNT || !forms[ev->kind].name)
		return false;
	const struct event_form *form = &forms[ev->kind];
	struct tn_jout j;
	tn_jout_begin(&j, out);
	tn_jout_str(&j, "event", form->name);
	cp_log_put_time(&j, "ts", ev->mono_ns, clock);
	tn_jout_str(&j, "level", form->level);
	put_ids(&j, ev, form->fields);
	put_what(&j, ev, form->fields);
	if (form->fields & F_DURATION)
		tn_jout_fixed(&j, "duration_us", ev->duration_ns, 3);
	if (form->fields & F_REQUEST)
		tn_jout_u64(&j, "failover_count", ev->failover_cnt);
	if (form->fields & F_ARG)
		tn_jout_u64(&j, "arg", ev->arg);
	tn_jout_u64(&j, "config_generation", ev->config_generation);
	if (suppressed)
		tn_jout_u64(&j, "suppressed", suppressed);
	tn_jout_end(&j);
	tn_text_char(out, '\n');
	return true;
}

/* The bucket as a debt in time: each line costs 1/RATE seconds, the debt drains with the clock, BURST lines fit. */
bool cp_log_limit_pass(struct cp_log_limit *l, const struct shr_event_shm *ev, uint64_t now_ns, uint64_t *suppressed_out)
{
	const uint64_t cost = TN_NS_PER_S / CP_LOG_RATE;
	if (ev->kind == SHR_EVENT_SPAN_TRANSFER || ev->kind == SHR_EVENT_SPAN_ATTEMPT || ev->kind >= SHR_EVENT_KIND_CNT) {
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
