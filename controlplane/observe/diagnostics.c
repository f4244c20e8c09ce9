/* SPDX-License-Identifier: Apache-2.0
 * Writer of the /diagnostics document. */
#include "controlplane/observe/diagnostics.h"

#include "common/clock.h"
#include "common/json_out.h"

static void put_build(struct tn_jout *j, const struct cp_diagnostics_in *in)
{
	tn_jout_object(j, "build");
	tn_jout_str(j, "version", in->build->version);
	tn_jout_str(j, "commit", in->build->commit);
	tn_jout_str(j, "build_type", in->build->build_type);
	tn_jout_bool(j, "metrics_compiled", TENT_METRICS != 0);
	tn_jout_close_object(j);
}

static void put_engine(struct tn_jout *j, const struct cp_diagnostics_in *in)
{
#define X(n, s) #s,
	static const char *const states[] = { SHR_TELE_STATES(X) };
#undef X
	const struct cp_ready_in *r = in->ready;
	const char *state = r->engine_state < TN_ARRAY_LEN(states) ? states[r->engine_state] : "invalid";

	tn_jout_object(j, "engine");
	tn_jout_bool(j, "available", r->attached && r->engine_alive && r->engine_state == SHR_TELE_RUNNING);
	tn_jout_bool(j, "control_plane_available", r->peer_bus_bound && r->link_up);
	tn_jout_bool(j, "attached", r->attached);
	tn_jout_bool(j, "schema_matches", r->attached && r->schema_ok);
	tn_jout_bool(j, "alive", r->engine_alive);
	tn_jout_str(j, "state", r->attached ? state : NULL);
	tn_jout_str(j, "build", in->engine_build[0] ? in->engine_build : NULL);
	tn_jout_bool(j, "metrics_compiled", in->engine_metrics_compiled);
	tn_jout_bool(j, "recording", in->recording);
	tn_jout_u64(j, "uptime_s", in->engine_uptime_ns / TN_NS_PER_S);
	tn_jout_u64(j, "generation", in->engine_generation);
	tn_jout_u64(j, "config_generation", in->config_generation);
	tn_jout_close_object(j);
}

static void put_transports(struct tn_jout *j, const char *key, uint32_t bits)
{
	tn_jout_array(j, key);
	for (unsigned t = TN_TRANSPORT_UNSPEC + 1; t < TN_TRANSPORT_CNT; t++)
		if (bits >> t & 1)
			tn_jout_str(j, NULL, tn_transport_name(t));
	tn_jout_close_array(j);
}

static void put_age(struct tn_jout *j, const char *key, uint64_t then_ns, uint64_t now_ns)
{
	if (then_ns == 0)
		tn_jout_null(j, key);
	else
		tn_jout_u64(j, key, (now_ns > then_ns ? now_ns - then_ns : 0) / TN_NS_PER_MS);
}

static void put_workers(struct tn_jout *j, const struct cp_ready_in *r)
{
	tn_jout_array(j, "workers");
	for (uint32_t i = 0; i < r->worker_cnt; i++) {
		const struct cp_worker_state *w = &r->worker[i];
		tn_jout_object(j, NULL);
		tn_jout_bool(j, "running", w->alive && r->engine_alive);
		tn_jout_bool(j, "stalled", cp_ready_worker_stalled(w, r->now_ns, r->stall_ns));
		put_age(j, "last_progress_age_ms", w->last_progress_ns, r->now_ns);
		put_age(j, "oldest_inflight_age_ms", w->oldest_work_ns, r->now_ns);
		tn_jout_u64(j, "inflight", w->inflight);
		tn_jout_u64(j, "lanes", w->lanes);
		put_transports(j, "transports_up", w->transports_up);
		tn_jout_close_object(j);
	}
	tn_jout_close_array(j);
}

/* Sums over the workers. */
static void put_queue(struct tn_jout *j, const struct cp_ready_in *r)
{
	uint64_t queued = 0, inflight = 0, bytes = 0, batches = 0, oldest = 0;
	for (uint32_t i = 0; i < r->worker_cnt; i++) {
		const struct cp_worker_state *w = &r->worker[i];
		queued += w->queued;
		inflight += w->inflight;
		bytes += w->outstanding_bytes;
		batches += w->batches;
		if (w->oldest_work_ns && (oldest == 0 || w->oldest_work_ns < oldest))
			oldest = w->oldest_work_ns;
	}
	tn_jout_object(j, "runtime_queue");
	tn_jout_u64(j, "queued_owners", queued);
	tn_jout_u64(j, "inflight_requests", inflight);
	tn_jout_u64(j, "outstanding_bytes", bytes);
	tn_jout_close_object(j);
	tn_jout_u64(j, "alive_batches", batches);
	put_age(j, "oldest_inflight_age_ms", oldest, r->now_ns);
}

void cp_diagnostics_json(const struct cp_diagnostics_in *in, struct tn_text *out)
{
	struct tn_jout j;
	tn_jout_begin(&j, out);
	tn_jout_u64(&j, "schema_version", 1);
	put_build(&j, in);
	tn_jout_bool(&j, "ready", in->reasons == 0);
	cp_ready_json_reasons(&j, in->reasons);
	tn_jout_u64(&j, "uptime_s", in->uptime_ns / TN_NS_PER_S);
	put_engine(&j, in);
	put_transports(&j, "transports", in->ready->loaded_transports);
	put_transports(&j, "required_transports", in->ready->required_transports);
	put_workers(&j, in->ready);
	put_queue(&j, in->ready);
	tn_jout_end(&j);
	tn_text_char(out, '\n');
}
