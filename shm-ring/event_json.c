/* SPDX-License-Identifier: Apache-2.0
 * The forms of all kinds of events, and the renderer of JSON lines: log events, and completed spans (one root per
 * logical transfer, one child per attempt; what to retain was decided by the data plane). Any thread. */
#include "shm-ring/event_json.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#include "common/clock.h"
#include "common/domain.h"
#include "common/json_out.h"
#include "common/status.h"
#include "common/trace.h"

#define REQUEST SHR_EVF_REQUEST
#define ATTEMPT (SHR_EVF_REQUEST | SHR_EVF_ATTEMPT)
#define WHAT (SHR_EVF_TRANSPORT | SHR_EVF_OPERATION)
#define CAUSE (SHR_EVF_PHASE | SHR_EVF_REASON | SHR_EVF_STATUS)

static const struct shr_event_form forms[SHR_EVENT_KIND_CNT] = {
	[SHR_EVENT_REQUEST_FAILED] = { "tent.request.failed", "warn", ATTEMPT | WHAT | CAUSE | SHR_EVF_DURATION },
	[SHR_EVENT_REQUEST_SLOW] = { "tent.request.slow", "warn", ATTEMPT | WHAT | SHR_EVF_STATUS | SHR_EVF_DURATION },
	[SHR_EVENT_REQUEST_STUCK] = { "tent.request.stuck", "warn", ATTEMPT | WHAT | SHR_EVF_PHASE | SHR_EVF_DURATION },
	[SHR_EVENT_ATTEMPT_FAILED] = { "tent.transport.attempt_failed", "warn",
				       ATTEMPT | WHAT | CAUSE | SHR_EVF_DURATION },
	[SHR_EVENT_FAILOVER] = { "tent.transport.failover", "info",
				 ATTEMPT | SHR_EVF_FROM_TO | SHR_EVF_OPERATION | CAUSE },
	[SHR_EVENT_SELECTION_FAILED] = { "tent.transport.selection_failed", "warn",
					 REQUEST | SHR_EVF_OPERATION | CAUSE },
	[SHR_EVENT_SPAN_TRANSFER] = { "tent.logical_transfer", "info",
				      REQUEST | SHR_EVF_SPAN | WHAT | CAUSE | SHR_EVF_DURATION },
	[SHR_EVENT_SPAN_ATTEMPT] = { "tent.transport_attempt", "info",
				     ATTEMPT | SHR_EVF_SPAN | SHR_EVF_PARENT | WHAT | CAUSE | SHR_EVF_DURATION },
	[SHR_EVENT_CLIENT_DROPPED] = { "tent.client.dropped", "warn", SHR_EVF_STATUS | SHR_EVF_ARG },
	[SHR_EVENT_PEER_SESSION] = { "tent.peer.session", "info", SHR_EVF_STATUS },
	[SHR_EVENT_LANE_DOWN] = { "tent.lane.down", "info", SHR_EVF_TRANSPORT | CAUSE },
	[SHR_EVENT_STATE] = { "tent.state", "info", SHR_EVF_ARG },
};

const struct shr_event_form *shr_event_form(unsigned kind)
{
	return kind < SHR_EVENT_KIND_CNT && forms[kind].name != NULL ? &forms[kind] : NULL;
}

const char *shr_event_retention(unsigned retention)
{
	static const char *const text[] = {
#define X(n, s) #s,
		TN_RETENTION_LIST(X)
#undef X
	};
	return retention < TN_ARRAY_LEN(text) ? text[retention] : "invalid";
}

char *shr_event_time(uint64_t mono_ns, const struct shr_event_clock *clock, char out[static SHR_EVENT_TIME_MAX])
{
	uint64_t real_ns =
	    clock->real_ns + (mono_ns - clock->mono_ns); /* modulo 2^64: also for events before the pair */
	time_t s = (time_t)(real_ns / TN_NS_PER_S);
	struct tm tm;
	char day[32];
	if (!gmtime_r(&s, &tm) || strftime(day, sizeof day, "%Y-%m-%dT%H:%M:%S", &tm) == 0)
		(void)snprintf(day, sizeof day, "1970-01-01T00:00:00");
	(void)snprintf(out, SHR_EVENT_TIME_MAX, "%s.%06" PRIu64 "Z", day, real_ns % TN_NS_PER_S / TN_NS_PER_US);
	return out;
}

static void put_time(struct tn_jout *j, const char *key, uint64_t mono_ns, const struct shr_event_clock *clock)
{
	char text[SHR_EVENT_TIME_MAX];
	tn_jout_str(j, key, shr_event_time(mono_ns, clock, text));
}

static void put_hex(struct tn_jout *j, const char *key, uint64_t v)
{
	char hex[17];
	(void)snprintf(hex, sizeof hex, "%016" PRIx64, v);
	tn_jout_str(j, key, hex);
}

static void put_ids(struct tn_jout *j, const struct shr_event_shm *ev, const struct shr_event_clock *clock,
		    unsigned fields)
{
	if (fields & SHR_EVF_REQUEST) {
		tn_jout_u64(j, "request_id", ev->request_id);
		tn_jout_u64(j, "batch_id", ev->batch_id);
		tn_jout_u64(j, "task_id", ev->task_id);
	}
	if ((fields & SHR_EVF_ATTEMPT) && ev->attempt_id != 0)
		tn_jout_u64(j, "attempt_id", ev->attempt_id);
	if ((ev->trace_hi | ev->trace_lo) != 0) {
		char hex[33];
		(void)snprintf(hex, sizeof hex, "%016" PRIx64 "%016" PRIx64, ev->trace_hi, ev->trace_lo);
		tn_jout_str(j, "trace_id", hex);
	}
	if (fields & SHR_EVF_SPAN)
		put_hex(j, "span_id", ev->span_id);
	if (fields & SHR_EVF_PARENT)
		put_hex(j, "parent_span_id", ev->parent_span_id);
	if (fields & SHR_EVF_SPAN)
		put_time(j, "start", ev->mono_ns - ev->duration_ns, clock);
}

static void put_what(struct tn_jout *j, const struct shr_event_shm *ev, unsigned fields)
{
	if (fields & SHR_EVF_TRANSPORT)
		tn_jout_str(j, "transport", tn_transport_name(ev->transport));
	if (fields & SHR_EVF_FROM_TO) {
		tn_jout_str(j, "from", tn_transport_name(ev->from));
		tn_jout_str(j, "to", tn_transport_name(ev->to));
	}
	if (fields & SHR_EVF_OPERATION)
		tn_jout_str(j, "operation", tn_op_name(ev->operation));
	if ((fields & SHR_EVF_SPAN) && ev->status == TN_OK)
		fields &= ~(unsigned)(SHR_EVF_PHASE | SHR_EVF_REASON); /* nothing went wrong anywhere */
	if (fields & SHR_EVF_PHASE)
		tn_jout_str(j, "phase", tn_phase_name(ev->phase));
	if (fields & SHR_EVF_REASON)
		tn_jout_str(j, "reason", tn_reason_name(ev->reason));
	if (fields & SHR_EVF_STATUS)
		tn_jout_str(j, "status", tn_status_name((tn_status)ev->status));
}

bool shr_event_json(const struct shr_event_shm *ev, const struct shr_event_clock *clock, uint64_t suppressed,
		    struct tn_text *out)
{
	const struct shr_event_form *form = shr_event_form(ev->kind);
	struct tn_jout j;
	if (form == NULL)
		return false;
	tn_jout_begin(&j, out);
	tn_jout_str(&j, "event", form->name);
	put_time(&j, "ts", ev->mono_ns, clock);
	tn_jout_str(&j, "level", form->level);
	put_ids(&j, ev, clock, form->fields);
	put_what(&j, ev, form->fields);
	if (form->fields & SHR_EVF_DURATION)
		tn_jout_fixed(&j, "duration_us", ev->duration_ns, 3);
	if (form->fields & SHR_EVF_REQUEST)
		tn_jout_u64(&j, "failover_count", ev->failover_cnt);
	if (form->fields & SHR_EVF_ARG)
		tn_jout_u64(&j, "arg", ev->arg);
	tn_jout_u64(&j, "config_generation", ev->config_generation);
	if (form->fields & SHR_EVF_SPAN)
		tn_jout_str(&j, "retention", shr_event_retention(ev->retention));
	else if (suppressed)
		tn_jout_u64(&j, "suppressed", suppressed);
	tn_jout_end(&j);
	tn_text_char(out, '\n');
	return true;
}
