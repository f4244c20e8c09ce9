/* SPDX-License-Identifier: Apache-2.0
 * The readiness rule of contract section 5 and its JSON, schema version 1. */
#include "controlplane/observe/ready.h"

#include <stdio.h>

#include "common/clock.h"
#include "common/json_out.h"

static uint64_t age_ns(uint64_t then, uint64_t now)
{
	return now > then ? now - then : 0; /* the writer's stamp may be younger than our clock reading */
}

bool cp_ready_worker_stalled(const struct cp_worker_state *w, uint64_t now_ns, uint64_t stall_ns)
{
	return w->oldest_work_ns && age_ns(w->oldest_work_ns, now_ns) > stall_ns &&
	       age_ns(w->last_progress_ns, now_ns) > stall_ns;
}

static bool engine_available(const struct cp_ready_in *in)
{
	return in->attached && in->engine_alive && in->engine_state == SHR_TELE_RUNNING;
}

static bool transports_missing(const struct cp_ready_in *in)
{
	for (uint32_t w = 0; w < in->worker_cnt; w++)
		if (in->worker[w].alive && (in->required_transports & ~in->worker[w].transports_up))
			return true;
	return cp_ready_transports_up(in) == 0;
}

uint32_t cp_ready_transports_up(const struct cp_ready_in *in)
{
	uint32_t up = 0;
	for (uint32_t w = 0; engine_available(in) && w < in->worker_cnt; w++)
		if (in->worker[w].alive)
			up |= in->worker[w].transports_up;
	return up & in->loaded_transports;
}

static uint32_t worker_reasons(const struct cp_ready_in *in)
{
	uint32_t reasons = in->worker_cnt == 0 ? 1u << CP_READY_WORKER_UNAVAILABLE : 0;
	for (uint32_t w = 0; w < in->worker_cnt; w++) {
		if (!in->worker[w].alive)
			reasons |= 1u << CP_READY_WORKER_UNAVAILABLE;
		else if (cp_ready_worker_stalled(&in->worker[w], in->now_ns, in->stall_ns))
			reasons |= 1u << CP_READY_WORKER_STALLED;
	}
	return reasons;
}

uint32_t cp_ready_evaluate(const struct cp_ready_in *in)
{
	uint32_t reasons = 0;
	if (!in->attached || !in->schema_ok)
		reasons |= 1u << CP_READY_DIAGNOSTICS_UNAVAILABLE;
	if (!in->engine_alive || (in->attached && in->engine_state != SHR_TELE_RUNNING))
		reasons |= 1u << CP_READY_ENGINE_UNAVAILABLE;
	if (!in->peer_bus_bound || !in->link_up)
		reasons |= 1u << CP_READY_CONTROL_PLANE_UNAVAILABLE;
	if (engine_available(in)) {
		if (transports_missing(in))
			reasons |= 1u << CP_READY_NO_TRANSPORT;
		reasons |= worker_reasons(in);
	}
	return reasons;
}

const char *cp_ready_reason_text(unsigned reason)
{
	static const char *const text[] = {
#define X(n, s) #s,
		CP_READY_REASON_LIST(X)
#undef X
	};
	return reason < TN_ARRAY_LEN(text) ? text[reason] : "invalid";
}

void cp_ready_json_reasons(struct tn_jout *j, uint32_t reasons)
{
	tn_jout_array(j, "reasons");
	for (unsigned r = 0; r < CP_READY_REASON_CNT; r++)
		if (reasons >> r & 1)
			tn_jout_str(j, NULL, cp_ready_reason_text(r));
	tn_jout_close_array(j);
}

static const char *worker_word(const struct cp_ready_in *in, uint32_t reasons)
{
	if (!engine_available(in) || reasons >> CP_READY_WORKER_UNAVAILABLE & 1)
		return "unavailable";
	return reasons >> CP_READY_WORKER_STALLED & 1 ? "stalled" : "running";
}

/* "control_plane_unavailable" alone would send people to the wrong process, and "engine_unavailable" does not say that
 * somebody wants it so. */
static void json_detail(struct tn_jout *j, const struct cp_ready_in *in)
{
	char text[128];
	if (in->attached && in->engine_alive && in->engine_state == SHR_TELE_PAUSED)
		tn_jout_str(j, "detail", "paused: requests wait until tentctl resume");
	else if (in->attached && in->engine_alive && in->engine_state == SHR_TELE_DRAINING)
		tn_jout_str(j, "detail", "draining: the data plane ends when what it has is done");
	if (in->attached && in->engine_alive && in->engine_state != SHR_TELE_RUNNING)
		return;
	if (in->link_up || in->silent_since_ns == 0)
		return;
	snprintf(text, sizeof text, "the data plane of this host does not answer: silent for %llu s (stopped, or hanging)",
		 (unsigned long long)(age_ns(in->silent_since_ns, in->now_ns) / TN_NS_PER_S));
	tn_jout_str(j, "detail", text);
}

void cp_ready_json(const struct cp_ready_in *in, uint32_t reasons, struct tn_text *out)
{
	struct tn_jout j;
	tn_jout_begin(&j, out);
	tn_jout_u64(&j, "schema_version", 1);
	tn_jout_bool(&j, "ready", reasons == 0);
	cp_ready_json_reasons(&j, reasons);
	json_detail(&j, in);
	tn_jout_object(&j, "checks");
	tn_jout_bool(&j, "engine", engine_available(in));
	tn_jout_bool(&j, "control_plane", in->peer_bus_bound && in->link_up);
	tn_jout_u64(&j, "transports", (uint64_t)__builtin_popcount(cp_ready_transports_up(in)));
	tn_jout_str(&j, "progress_worker", worker_word(in, reasons));
	tn_jout_close_object(&j);
	tn_jout_end(&j);
	tn_text_char(out, '\n');
}

void cp_live_json(uint64_t uptime_ns, struct tn_text *out)
{
	struct tn_jout j;
	tn_jout_begin(&j, out);
	tn_jout_u64(&j, "schema_version", 1);
	tn_jout_str(&j, "status", "live");
	tn_jout_u64(&j, "uptime_s", uptime_ns / TN_NS_PER_S);
	tn_jout_end(&j);
	tn_text_char(out, '\n');
}
