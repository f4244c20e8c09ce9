/* SPDX-License-Identifier: Apache-2.0
 * The observability object of the control plane. Two locks: `facts_lock` guards the mapping, facts and exemplars and is
 * held only while they are copied or swapped, for the loop waits for it: a scrape keeps the mapping and folds it without
 * the lock. `render_lock` serializes renderings and guards their snapshot. Order: render_lock, then facts_lock. */
#include "controlplane/observe/observe.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "controlplane/observe/diagnostics.h"
#include "controlplane/observe/scrape.h"

/* A telemetry region; unmapped by the last of its users. */
struct mapping { struct shr_tele_ro ro; uint32_t users; };

struct cp_observe {
	struct cp_observe_cfg cfg;
	uint64_t start_ns;
	struct cp_cells cells;
	struct cp_http *http;

	pthread_mutex_t facts_lock;
	struct mapping *map; /* NULL: none */
	struct cp_observe_facts facts;
	struct cp_exemplars exemplars;
	struct cp_event_pump pump; /* loop thread; bound to map */

	pthread_mutex_t render_lock;
	struct cp_snapshot snapshot;
};

/* ---- life */

tn_status cp_observe_create(const struct cp_observe_cfg *cfg, struct cp_observe **out)
{
	struct cp_observe *o = calloc(1, sizeof *o);
	if (!o)
		return TN_NO_MEMORY;
	o->cfg = *cfg;
	o->start_ns = tn_now_ns();
	cp_cells_init(&o->cells, cfg->recording);
	if (pthread_mutex_init(&o->facts_lock, NULL) != 0)
		goto undo_object;
	if (pthread_mutex_init(&o->render_lock, NULL) != 0)
		goto undo_facts_lock;
	if (cp_event_pump_init(&o->pump, cfg->mark_path) != TN_OK)
		goto undo_render_lock;
	*out = o;
	return TN_OK;

undo_render_lock:
	cp_event_pump_close(&o->pump);
	pthread_mutex_destroy(&o->render_lock);
undo_facts_lock:
	pthread_mutex_destroy(&o->facts_lock);
undo_object:
	free(o);
	return TN_NO_MEMORY;
}

/* Gives up one use. */
static void mapping_drop(struct cp_observe *o, struct mapping *m)
{
	if (m == NULL)
		return;
	pthread_mutex_lock(&o->facts_lock);
	bool last = --m->users == 0;
	pthread_mutex_unlock(&o->facts_lock);
	if (!last)
		return;
	shr_tele_close_ro(&m->ro);
	free(m);
}

void cp_observe_destroy(struct cp_observe *o)
{
	if (!o)
		return;
	cp_observe_http_stop(o);
	cp_event_pump_close(&o->pump);
	mapping_drop(o, o->map);
	pthread_mutex_destroy(&o->render_lock);
	pthread_mutex_destroy(&o->facts_lock);
	free(o);
}

void cp_observe_reconfigure(struct cp_observe *o, bool recording, uint64_t stall_ns)
{
	tn_metrics_switch(&o->cells.rec, recording);
	pthread_mutex_lock(&o->facts_lock);
	o->cfg.recording = recording;
	o->cfg.stall_ns = stall_ns;
	pthread_mutex_unlock(&o->facts_lock);
}

const struct tn_metrics *cp_observe_metrics(struct cp_observe *o)
{
	return &o->cells.rec;
}

const struct cp_recent *cp_observe_recent(const struct cp_observe *o)
{
	return o->pump.recent;
}

/* ---- the data plane */

tn_status cp_observe_attach(struct cp_observe *o, const char *path)
{
	struct mapping *fresh = calloc(1, sizeof *fresh);
	tn_status st = fresh != NULL ? shr_tele_open_ro(path, &fresh->ro) : TN_NO_MEMORY;
	if (st != TN_OK) {
		free(fresh);
		fresh = NULL;
	}
	if (st != TN_OK && st != TN_ABI_MISMATCH)
		return st;
	if (fresh != NULL)
		fresh->users = 1;
	pthread_mutex_lock(&o->facts_lock);
	struct mapping *old = o->map;
	o->map = fresh;
	memset(&o->exemplars, 0, sizeof o->exemplars);
	cp_event_pump_bind(&o->pump, fresh ? &fresh->ro : NULL, fresh && fresh->ro.hdr.start_mono_ns >= o->start_ns);
	pthread_mutex_unlock(&o->facts_lock);
	mapping_drop(o, old);
	return st;
}

void cp_observe_facts(struct cp_observe *o, const struct cp_observe_facts *facts)
{
	pthread_mutex_lock(&o->facts_lock);
	o->facts = *facts;
	pthread_mutex_unlock(&o->facts_lock);
}

static void no_sink(void *ctx, const char *line, size_t len)
{
	(void)ctx, (void)line, (void)len;
}

bool cp_observe_poll(struct cp_observe *o)
{
	uint64_t missed[2];
	pthread_mutex_lock(&o->facts_lock);
	uint32_t cnt = cp_event_pump_read(&o->pump, &o->exemplars, missed);
	pthread_mutex_unlock(&o->facts_lock);
	cp_pipeline_add(&o->cells, TN_C1(EVENTS_DROPPED_TOTAL, TN_RING_LOG), missed[0]);
	cp_pipeline_add(&o->cells, TN_C1(EVENTS_DROPPED_TOTAL, TN_RING_TRACE), missed[1]);
	cp_event_pump_render(&o->pump, cnt, tn_now_ns(), o->cfg.sink ? o->cfg.sink : no_sink, o->cfg.sink_ctx);
	return o->pump.more;
}

/* ---- asking */

/* Call with facts_lock held. */
static void collect_ready(struct cp_observe *o, uint64_t now_ns, struct cp_ready_in *in)
{
	memset(in, 0, sizeof *in);
	in->now_ns = now_ns;
	in->stall_ns = o->cfg.stall_ns;
	in->required_transports = o->cfg.required_transports;
	in->attached = o->map != NULL;
	in->engine_alive = o->facts.engine_alive;
	in->peer_bus_bound = o->facts.peer_bus_bound;
	in->link_up = o->facts.link_up;
	in->silent_since_ns = o->facts.silent_since_ns;
	if (!in->attached)
		return;
	const struct shr_tele_ro *tele = &o->map->ro;
	in->schema_ok = cp_scrape_schema_ok(tele);
	in->engine_state = tn_load_relaxed32(&tele->live->state);
	in->loaded_transports = tele->hdr.loaded_transports;
	in->worker_cnt = tele->lay.worker_cnt;
	for (uint32_t i = 0; i < in->worker_cnt; i++) {
		const struct shr_worker_shm *b = shr_tele_ro_worker(tele, i);
		in->worker[i] = (struct cp_worker_state){
			.alive = tn_load_relaxed32(&b->alive) != 0,
			.last_progress_ns = tn_load_relaxed64(&b->last_progress_ns),
			.oldest_work_ns = tn_load_relaxed64(&b->oldest_work_ns),
			.transports_up = tn_load_relaxed32(&b->transports_up),
			.inflight = tn_load_relaxed32(&b->inflight),
			.queued = tn_load_relaxed32(&b->queued),
			.batches = tn_load_relaxed32(&b->batches),
			.lanes = tn_load_relaxed32(&b->lanes),
			.outstanding_bytes = tn_load_relaxed64(&b->outstanding_bytes),
		};
	}
}

uint32_t cp_observe_ready(struct cp_observe *o, struct cp_ready_in *out)
{
	pthread_mutex_lock(&o->facts_lock);
	collect_ready(o, tn_now_ns(), out);
	pthread_mutex_unlock(&o->facts_lock);
	return cp_ready_evaluate(out);
}

/* The pid of a data plane may by now be another process (or be seen from another pid namespace): it must have started
 * before its region, and not long before. */
static bool plausible_engine(const struct cp_process *p, uint64_t region_start_real_ns)
{
	const uint64_t slack_ns = 2 * TN_NS_PER_S, setup_ns = 300 * TN_NS_PER_S;
	return p->start_real_ns <= region_start_real_ns + slack_ns && p->start_real_ns + setup_ns >= region_start_real_ns;
}

void cp_observe_snapshot(struct cp_observe *o, struct cp_snapshot *out)
{
	struct cp_process process[TN_PROCESS_CNT] = { 0 };
	struct cp_process *engine = &process[TN_PROCESS_DATAPLANE];

	pthread_mutex_lock(&o->facts_lock);
	struct mapping *map = o->map;
	struct cp_observe_facts facts = o->facts;
	struct cp_exemplars exemplars = o->exemplars;
	bool recording = o->cfg.recording;
	if (map != NULL)
		map->users++;
	pthread_mutex_unlock(&o->facts_lock);

	(void)cp_process_read(0, &process[TN_PROCESS_CONTROLPLANE]);
	if (map != NULL && facts.engine_alive && map->ro.hdr.pid > 0) {
		(void)cp_process_read((pid_t)map->ro.hdr.pid, engine);
		engine->known = engine->known && plausible_engine(engine, map->ro.hdr.start_real_ns);
	}
	struct cp_scrape_in in = {
		.own = &o->cells,
		.tele = map != NULL ? &map->ro : NULL,
		.exemplars = &exemplars,
		.process = process,
		.dataplane_up = facts.engine_alive,
		.recording = recording,
		.now_mono_ns = tn_now_ns(),
		.now_real_ns = tn_real_ns(),
	};
	cp_scrape(&in, out);
	mapping_drop(o, map);
}

/* Call with render_lock held: it makes the serialization cells one-writer. */
static unsigned render_metrics(struct cp_observe *o, enum tn_format format, struct tn_text *out)
{
	cp_pipeline_add(&o->cells, TN_C1(METRICS_SERIALIZATION_ATTEMPTS_TOTAL, format), 1);
	cp_observe_snapshot(o, &o->snapshot);
	if (format == TN_FORMAT_OPENMETRICS)
		cp_openmetrics_render(&o->snapshot, &o->cfg.build, out);
	else
		cp_prom_text_render(&o->snapshot, &o->cfg.build, out);
	if (out->failed) {
		cp_pipeline_add(&o->cells, TN_C1(METRICS_SERIALIZATION_FAILURES_TOTAL, format), 1);
		return 500;
	}
	cp_pipeline_set(&o->cells, TN_G0(METRICS_LAST_SUCCESS_TIMESTAMP_SECONDS), o->snapshot.now_real_ns);
	return 200;
}

static unsigned render_diagnostics(struct cp_observe *o, struct tn_text *out)
{
	struct cp_ready_in ready;
	struct cp_diagnostics_in in = { .ready = &ready, .build = &o->cfg.build, .engine_build = "" };
	char engine_build[sizeof o->map->ro.hdr.build] = "";
	uint64_t now = tn_now_ns();

	pthread_mutex_lock(&o->facts_lock);
	collect_ready(o, now, &ready);
	in.recording = o->cfg.recording;
	if (ready.attached) {
		const struct shr_tele_ro *tele = &o->map->ro;
		memcpy(engine_build, tele->hdr.build, sizeof engine_build - 1);
		uint64_t start_ns = tele->hdr.start_mono_ns;
		in.engine_uptime_ns = ready.engine_alive && now > start_ns ? now - start_ns : 0;
		in.config_generation = tn_load_relaxed64(&tele->live->config_generation);
		in.engine_generation = tele->hdr.generation;
		in.engine_metrics_compiled = tele->hdr.metrics_compiled != 0;
		in.recording = tn_load_relaxed32(&tele->live->recording) != 0;
	}
	pthread_mutex_unlock(&o->facts_lock);

	in.engine_build = engine_build;
	in.reasons = cp_ready_evaluate(&ready);
	in.uptime_ns = now - o->start_ns;
	cp_pipeline_add(&o->cells, TN_C1(METRICS_SERIALIZATION_ATTEMPTS_TOTAL, TN_FORMAT_JSON), 1);
	cp_diagnostics_json(&in, out);
	if (out->failed)
		cp_pipeline_add(&o->cells, TN_C1(METRICS_SERIALIZATION_FAILURES_TOTAL, TN_FORMAT_JSON), 1);
	return out->failed ? 500 : 200;
}

static unsigned render_ready(struct cp_observe *o, struct tn_text *out)
{
	struct cp_ready_in in;
	uint32_t reasons = cp_observe_ready(o, &in);
	cp_ready_json(&in, reasons, out);
	return reasons ? 503 : 200;
}

unsigned cp_observe_render(struct cp_observe *o, enum cp_http_path path, struct tn_text *out, const char **content_type_out)
{
	unsigned code = 200;
	*content_type_out = "application/json; charset=utf-8";
	pthread_mutex_lock(&o->render_lock);
	switch (path) {
	case CP_HTTP_METRICS:
		*content_type_out = CP_PROM_CONTENT_TYPE;
		code = render_metrics(o, TN_FORMAT_TEXT, out);
		break;
	case CP_HTTP_OPENMETRICS:
		*content_type_out = o->cfg.openmetrics ? CP_OPENMETRICS_CONTENT_TYPE : "text/plain; charset=utf-8";
		if (o->cfg.openmetrics)
			code = render_metrics(o, TN_FORMAT_OPENMETRICS, out);
		else {
			tn_text_str(out, "not found (metrics/openmetrics_enabled is false)\n");
			code = 404;
		}
		break;
	case CP_HTTP_LIVE:
		cp_live_json(tn_now_ns() - o->start_ns, out);
		break;
	case CP_HTTP_READY:
		code = render_ready(o, out);
		break;
	case CP_HTTP_DIAGNOSTICS:
		code = render_diagnostics(o, out);
		break;
	case CP_HTTP_HEALTH:
	case CP_HTTP_PATH_CNT:
		*content_type_out = "text/plain; charset=utf-8";
		tn_text_str(out, "ok\n");
		break;
	}
	pthread_mutex_unlock(&o->render_lock);
	return code;
}

/* ---- HTTP */

static unsigned render_for_http(void *ctx, enum cp_http_path path, struct tn_text *out, const char **content_type_out)
{
	return cp_observe_render(ctx, path, out, content_type_out);
}

tn_status cp_observe_http_start(struct cp_observe *o, const char *host, uint16_t port, uint16_t *port_out,
				char err[static TN_ERR_TEXT])
{
	if (o->http)
		return TN_BUSY;
	struct cp_http_ops ops = { render_for_http, o };
	/* Set before the thread exists: from then on a scrape may read it. */
	cp_pipeline_set(&o->cells, TN_G0(METRICS_HTTP_SERVER_UP), 1);
	tn_status st = cp_http_start(host, port, &ops, &o->http, port_out, err);
	if (st != TN_OK) {
		cp_pipeline_set(&o->cells, TN_G0(METRICS_HTTP_SERVER_UP), 0);
		cp_pipeline_add(&o->cells, TN_C0(METRICS_HTTP_START_FAILURES_TOTAL), 1);
	}
	return st;
}

int cp_observe_http_fd(const struct cp_observe *o)
{
	return cp_http_fd(o->http);
}

void cp_observe_http_stop(struct cp_observe *o)
{
	cp_http_stop(o->http);
	o->http = NULL;
	cp_pipeline_set(&o->cells, TN_G0(METRICS_HTTP_SERVER_UP), 0);
}
