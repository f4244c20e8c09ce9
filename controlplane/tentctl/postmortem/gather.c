/* SPDX-License-Identifier: Apache-2.0
 * From a telemetry region to the document: who it was, its workers' last state, what it had done, what was in flight,
 * what failed, which equations do not hold. Ages are counted from the last sign of life of a dead writer, from now of a
 * living one. */
#include <stdlib.h>

#include "common/clock.h"
#include "common/message.h"
#include "common/metrics_check.h"
#include "controlplane/tentctl/postmortem/postmortem.h"
#include "controlplane/tentctl/tentctl.h"
#include "shm-ring/event_json.h"

enum { FAILURES_MOST = 12, BREACHES_MOST = 32, LOOKS_MOST = 20 };

struct gather {
	const struct tctl_region *r;
	const struct tctl_postmortem_cfg *cfg;
	uint64_t end_ns;             /* ages are counted from here */
	uint64_t cells[TN_METRIC_CELL_CNT], thread[TN_METRIC_CELL_CNT];
};

static void put_age(const struct gather *g, json_t *j, const char *key, uint64_t mono_ns)
{
	if (mono_ns != 0)
		tn_json_put_u64(j, key, mono_ns < g->end_ns ? (g->end_ns - mono_ns) / TN_NS_PER_US : 0);
}

static json_t *transports_json(uint32_t mask)
{
	json_t *list = json_array();
	for (unsigned k = 0; k < TN_TRANSPORT_CNT; k++)
		if (mask >> k & 1)
			json_array_append_new(list, json_string(tn_transport_name(k)));
	return list;
}

static void put_who(const struct gather *g, json_t *doc)
{
	const struct shr_tele_hdr_shm *h = &g->r->ro.hdr, *live = g->r->ro.live;
	const struct shr_event_clock clock = { h->start_mono_ns, h->start_real_ns };
	char time[SHR_EVENT_TIME_MAX];
	bool alive = g->cfg->life == TCTL_LIFE_RUNNING || g->cfg->life == TCTL_LIFE_HUNG;
	uint64_t last_ns = tctl_region_last_sign_ns(g->r),
		 last_real_ns = h->start_real_ns + (last_ns - h->start_mono_ns);

	tn_json_put_u64(doc, "generation", h->generation);
	tctl_put_name(doc, "file", g->r->path);
	tn_json_put_str(doc, "verdict", tctl_life_text(g->cfg->life));
	tn_json_put_bool(doc, "alive", alive);
	tn_json_put_str(doc, "state", tctl_tele_state_text(tn_load_relaxed32(&live->state)));
	if (tn_json_put_str(doc, "build", h->build) != TN_OK)
		tn_json_put_str(doc, "build", "?");
	json_object_set_new(doc, "abi", json_sprintf("%u.%u", h->abi_major, h->abi_minor));
	tn_json_put_hex128(doc, "session", &h->session);
	tn_json_put_u64(doc, "pid", h->pid);
	tn_json_put_str(doc, "started", shr_event_time(h->start_mono_ns, &clock, time));
	tn_json_put_str(doc, "last_sign", shr_event_time(last_ns, &clock, time));
	tn_json_put_u64(doc, "lived_us", (last_ns - h->start_mono_ns) / TN_NS_PER_US);
	tn_json_put_u64(doc, "last_sign_us_ago", tn_remaining_ns(g->cfg->now_real_ns, last_real_ns) / TN_NS_PER_US);
	put_age(g, doc, "heartbeat_us_before_end", tn_load_relaxed64(&live->heartbeat_ns));
	json_object_set_new(doc, "transports_loaded", transports_json(h->loaded_transports));
	tn_json_put_u64(doc, "config_generation", tn_load_relaxed64(&live->config_generation));
	tn_json_put_bool(doc, "recording", tn_load_relaxed32(&live->recording) != 0);
	tn_json_put_bool(doc, "numbers", g->r->numbers);
}

/* ---- workers ---- */

static json_t *thread_attempts(const struct gather *g)
{
	json_t *j = json_object();
	for (unsigned k = 0; k < TN_TRANSPORT_CNT; k++) {
		int64_t n = tctl_gauge(g->thread, TN_G2(INFLIGHT_ATTEMPTS, k, TN_OP_READ)) +
			    tctl_gauge(g->thread, TN_G2(INFLIGHT_ATTEMPTS, k, TN_OP_WRITE));
		if (n != 0)
			json_object_set_new(j, tn_transport_name(k), json_integer(n));
	}
	return j;
}

/* Where its oldest work was: nobody recorded the stage of a single request, but the sums say which stages held any. */
static const char *stage_of(bool alive, uint32_t inflight, uint32_t queued, size_t attempts)
{
	if (inflight == 0)
		return alive ? "idle" : "ended";
	if (attempts > 0)
		return queued > 0 ? "transports, and more waits in admission" : "transports";
	return queued > 0 ? "admission: nothing was with a transport" : "waiting: back-off, refresh or connect";
}

static json_t *worker_json(struct gather *g, uint32_t i)
{
	const struct shr_worker_shm *w = shr_tele_ro_worker(&g->r->ro, i);
	json_t *j = json_object();
	uint32_t cpu = tn_load_relaxed32(&w->cpu), inflight = tn_load_relaxed32(&w->inflight);
	uint32_t queued = tn_load_relaxed32(&w->queued);
	uint64_t busy = tn_load_relaxed64(&w->busy_ns), idle = tn_load_relaxed64(&w->idle_ns);
	bool alive = tn_load_relaxed32(&w->alive) != 0;

	tctl_region_fold_thread(g->r, i, g->thread);
	json_t *attempts = thread_attempts(g);
	tn_json_put_u64(j, "index", i);
	if (cpu != UINT32_MAX)
		tn_json_put_u64(j, "cpu", cpu);
	tn_json_put_bool(j, "thread", alive);
	tn_json_put_str(j, "work", stage_of(alive, inflight, queued, json_object_size(attempts)));
	tn_json_put_u64(j, "inflight", inflight);
	tn_json_put_u64(j, "queued", queued);
	tn_json_put_u64(j, "outstanding_bytes", tn_load_relaxed64(&w->outstanding_bytes));
	tn_json_put_u64(j, "batches", tn_load_relaxed32(&w->batches));
	tn_json_put_u64(j, "lanes", tn_load_relaxed32(&w->lanes));
	put_age(g, j, "oldest_work_us", tn_load_relaxed64(&w->oldest_work_ns));
	put_age(g, j, "last_progress_us", tn_load_relaxed64(&w->last_progress_ns));
	put_age(g, j, "last_loop_us", tn_load_relaxed64(&w->loop_ns));
	tn_json_put_u64(j, "busy_permille",
			busy + idle > 0 ? (uint64_t)((double)busy * 1000 / (double)(busy + idle)) : 0);
	json_object_set_new(j, "transports_up", transports_json(tn_load_relaxed32(&w->transports_up)));
	json_object_set_new(j, "attempts", attempts);
	return j;
}

/* ---- numbers ---- */

static json_t *request_json(const struct gather *g, unsigned op)
{
	json_t *j = json_object();
	uint64_t bytes = 0;
	tn_json_put_str(j, "operation", tn_op_name(op));
	tn_json_put_u64(j, "started", tctl_counter(g->cells, TN_C1(LOGICAL_REQUESTS_STARTED_TOTAL, op)));
	for (unsigned o = 0; o < TN_OUTCOME_CNT; o++) {
		uint64_t n = 0;
		for (unsigned k = 0; k < TN_TRANSPORT_CNT; k++)
			n += tctl_counter(g->cells, TN_C3(LOGICAL_REQUEST_OUTCOMES_TOTAL, op, k, o));
		tn_json_put_u64(j, tn_outcome_name(o), n);
	}
	for (unsigned k = 0; k < TN_TRANSPORT_CNT; k++)
		bytes +=
		    tctl_counter(g->cells, op == TN_OP_READ ? TN_C1(READ_BYTES_TOTAL, k) : TN_C1(WRITE_BYTES_TOTAL, k));
	json_object_set_new(j, "inflight", json_integer(tctl_gauge(g->cells, TN_G1(LOGICAL_REQUESTS_INFLIGHT, op))));
	tn_json_put_u64(j, "bytes", bytes);
	return j;
}

/* One (transport, operation) that made attempts; NULL when it made none. */
static json_t *attempt_json(const struct gather *g, unsigned kind, unsigned op)
{
	uint64_t n = tctl_counter(g->cells, TN_C2(TRANSPORT_ATTEMPTS_TOTAL, kind, op));
	struct tn_hist_at latency = TN_H2(TRANSPORT_ATTEMPT_LATENCY_US, kind, op);
	if (n == 0)
		return NULL;
	json_t *j = json_object();
	tn_json_put_str(j, "transport", tn_transport_name(kind));
	tn_json_put_str(j, "operation", tn_op_name(op));
	tn_json_put_u64(j, "attempts", n);
	for (unsigned o = 0; o < TN_OUTCOME_CNT; o++)
		tn_json_put_u64(j, tn_outcome_name(o),
				tctl_counter(g->cells, TN_C3(TRANSPORT_ATTEMPT_OUTCOMES_TOTAL, kind, op, o)));
	json_object_set_new(j, "inflight", json_integer(tctl_gauge(g->cells, TN_G2(INFLIGHT_ATTEMPTS, kind, op))));
	tn_json_put_u64(j, "bytes", tctl_counter(g->cells, op == TN_OP_READ ? TN_C1(READ_BYTES_TOTAL, kind) :
									    TN_C1(WRITE_BYTES_TOTAL, kind)));
	tn_json_put_u64(j, "p50_ns", tctl_hist_at(g->cells, latency, 500));
	tn_json_put_u64(j, "p99_ns", tctl_hist_at(g->cells, latency, 990));
	return j;
}

static json_t *admission_json(const struct gather *g)
{
	json_t *j = json_object();
	int64_t owners = 0, bytes = 0, queued = 0;
	for (unsigned k = 0; k < TN_OWNER_KIND_CNT; k++) {
		owners += tctl_gauge(g->cells, TN_G1(ADMISSION_OUTSTANDING_OWNERS, k));
		bytes += tctl_gauge(g->cells, TN_G1(ADMISSION_OUTSTANDING_BYTES, k));
		queued += tctl_gauge(g->cells, TN_G1(ADMISSION_QUEUED_OWNERS, k));
	}
	json_object_set_new(j, "queued_owners", json_integer(queued));
	json_object_set_new(j, "dispatched_owners", json_integer(owners));
	json_object_set_new(j, "dispatched_bytes", json_integer(bytes));
	return j;
}

static json_t *streams_json(const struct gather *g)
{
	json_t *list = json_array();
	for (unsigned s = 0; s < TN_STREAM_CNT; s++) {
		uint64_t retrans = tctl_counter(g->cells, TN_C1(TCP_RETRANSMISSIONS_TOTAL, s));
		int64_t connections = tctl_gauge(g->cells, TN_G1(STREAM_CONNECTIONS, s));
		int64_t tasks = tctl_gauge(g->cells, TN_G1(STREAM_ADMITTED_TASKS, s));
		if (connections == 0 && tasks == 0 && retrans == 0)
			continue;
		json_t *j = json_object();
		tn_json_put_str(j, "transport", tn_transport_name(s + TN_TRANSPORT_HP_TCP));
		json_object_set_new(j, "connections", json_integer(connections));
		json_object_set_new(j, "operations", json_integer(tasks));
		json_object_set_new(j, "bytes", json_integer(tctl_gauge(g->cells, TN_G1(STREAM_ADMITTED_BYTES, s))));
		json_object_set_new(j, "queued", json_integer(tctl_gauge(g->cells, TN_G1(STREAM_QUEUE_DEPTH, s))));
		tn_json_put_u64(j, "retransmissions", retrans);
		json_array_append_new(list, j);
	}
	return list;
}

struct failure { uint8_t kind, phase, reason; uint64_t cnt; };

static int most_first(const void *a, const void *b)
{
	const struct failure *x = a, *y = b;
	return x->cnt < y->cnt ? 1 : x->cnt > y->cnt ? -1 : 0;
}

static json_t *failures_json(const struct gather *g)
{
	static struct failure all[TN_TRANSPORT_CNT * TN_PHASE_CNT * TN_REASON_CNT];
	size_t cnt = 0;
	for (unsigned k = 0; k < TN_TRANSPORT_CNT; k++)
		for (unsigned p = 0; p < TN_PHASE_CNT; p++)
			for (unsigned r = 0; r < TN_REASON_CNT; r++) {
				uint64_t n = tctl_counter(g->cells, TN_C3(TERMINAL_FAILURES_TOTAL, k, p, r));
				if (n > 0)
					all[cnt++] = (struct failure){ (uint8_t)k, (uint8_t)p, (uint8_t)r, n };
			}
	qsort(all, cnt, sizeof all[0], most_first);
	json_t *list = json_array();
	for (size_t i = 0; i < cnt && i < FAILURES_MOST; i++) {
		json_t *j = json_object();
		tn_json_put_str(j, "transport", tn_transport_name(all[i].kind));
		tn_json_put_str(j, "phase", tn_phase_name(all[i].phase));
		tn_json_put_str(j, "reason", tn_reason_name(all[i].reason));
		tn_json_put_u64(j, "count", all[i].cnt);
		json_array_append_new(list, j);
	}
	return list;
}

static json_t *rejections_json(const struct gather *g)
{
	json_t *j = json_object();
	for (unsigned r = 0; r < TN_REASON_CNT; r++) {
		uint64_t n = tctl_counter(g->cells, TN_C1(SUBMIT_REJECTIONS_TOTAL, r));
		if (n > 0)
			tn_json_put_u64(j, tn_reason_name(r), n);
	}
	return j;
}

static json_t *equations_json(const struct gather *g)
{
	struct tn_equation_breach breach[BREACHES_MOST];
	unsigned wrong = tn_metric_equations_check(g->cells, breach, BREACHES_MOST);
	json_t *j = json_object(), *list = json_array();
	for (unsigned i = 0; i < wrong && i < BREACHES_MOST; i++) {
		json_t *b = json_object();
		tn_json_put_u64(b, "number", breach[i].equation);
		tn_json_put_str(b, "equation", breach[i].text);
		tn_json_put_str(b, "of", breach[i].where);
		json_object_set_new(b, "left", json_integer(breach[i].left));
		json_object_set_new(b, "right", json_integer(breach[i].right));
		json_array_append_new(list, b);
	}
	tn_json_put_u64(j, "wrong", wrong);
	json_object_set_new(j, "breaches", list);
	return j;
}

static void put_numbers(const struct gather *g, json_t *doc)
{
	json_t *requests = json_array(), *attempts = json_array();
	for (unsigned op = 0; op < TN_OP_CNT; op++)
		json_array_append_new(requests, request_json(g, op));
	for (unsigned k = 0; k < TN_TRANSPORT_CNT; k++)
		for (unsigned op = 0; op < TN_OP_CNT; op++) {
			json_t *j = attempt_json(g, k, op);
			if (j != NULL)
				json_array_append_new(attempts, j);
		}
	json_object_set_new(doc, "requests", requests);
	json_object_set_new(doc, "attempts", attempts);
	json_object_set_new(doc, "admission", admission_json(g));
	json_object_set_new(doc, "streams", streams_json(g));
	json_object_set_new(doc, "failures", failures_json(g));
	json_object_set_new(doc, "rejections", rejections_json(g));
	json_object_set_new(doc, "equations", equations_json(g));
}

json_t *tctl_postmortem_gather(const struct tctl_region *r, const struct tctl_postmortem_cfg *cfg)
{
	json_t *doc = json_object(), *workers = json_array();
	struct gather *g = calloc(1, sizeof *g);
	if (g == NULL || doc == NULL || workers == NULL) {
		free(g);
		json_decref(workers);
		return doc;
	}
	bool alive = cfg->life == TCTL_LIFE_RUNNING || cfg->life == TCTL_LIFE_HUNG;
	*g = (struct gather){ .r = r, .cfg = cfg, .end_ns = alive ? cfg->now_ns : tctl_region_last_sign_ns(r) };
	tctl_region_fold(r, g->cells);
	/* A living writer counts while we read: believe a difference only if it stays. */
	for (unsigned look = 1; alive && look < LOOKS_MOST && tn_metric_equations_check(g->cells, NULL, 0) > 0; look++)
		tctl_region_fold(r, g->cells);
	put_who(g, doc);
	for (uint32_t i = 0; i < r->ro.lay.worker_cnt; i++)
		json_array_append_new(workers, worker_json(g, i));
	json_object_set_new(doc, "workers", workers);
	if (r->numbers)
		put_numbers(g, doc);
	json_object_set_new(doc, "events", tctl_postmortem_events(r, cfg, g->end_ns));
	free(g);
	return doc;
}
