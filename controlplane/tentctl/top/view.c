/* SPDX-License-Identifier: Apache-2.0
 * From two samples to a view: rates per second, percentiles of what ended in between, levels of now. Pure. */
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/message.h"
#include "controlplane/tentctl/top/top.h"

enum { FAILURES_MOST = 8 };

struct delta {
	const struct tctl_top_sample *before, *now;
	bool comparable;             /* same data plane, numbers readable */
	double seconds;
	uint64_t cells[TN_METRIC_CELL_CNT]; /* now - before */
};

static double rate(const struct delta *d, uint64_t n) { return d->comparable ? (double)n / d->seconds : 0; }

static void put_real(json_t *j, const char *key, double v) { json_object_set_new(j, key, json_real(v)); }

/* Below 50 and 99 of 100: absent when nothing ended. */
static void put_latency(json_t *j, const uint64_t *cells, struct tn_hist_at a, struct tn_hist_at b)
{
	if (tctl_hist_count(cells, a) + (a.cell == b.cell ? 0 : tctl_hist_count(cells, b)) == 0)
		return;
	tn_json_put_u64(j, "p50_ns", tctl_hist_at2(cells, a, b, 500));
	tn_json_put_u64(j, "p99_ns", tctl_hist_at2(cells, a, b, 990));
}

/* ---- the process ---- */

static json_t *process_json(const struct tctl_top_sample *s)
{
	bool alive = s->life == TCTL_LIFE_RUNNING || s->life == TCTL_LIFE_HUNG;
	json_t *j = json_object();
	if (s->generation == 0) {
		tn_json_put_str(j, "verdict", "absent");
		tn_json_put_bool(j, "alive", false);
		return j;
	}
	tn_json_put_str(j, "verdict", tctl_life_text(s->life));
	tn_json_put_bool(j, "alive", alive);
	tn_json_put_u64(j, "pid", s->pid);
	tn_json_put_u64(j, "generation", s->generation);
	tn_json_put_u64(j, "lived_ns", (alive ? s->at_ns : s->last_sign_ns) - s->start_mono_ns);
	tn_json_put_u64(j, "last_sign_ns_ago", s->at_ns > s->last_sign_ns ? s->at_ns - s->last_sign_ns : 0);
	tn_json_put_bool(j, "numbers", s->numbers);
	tn_json_put_bool(j, "recording", s->recording);
	return j;
}

/* ---- transports and totals ---- */

static uint64_t failed_by(const uint64_t *cells, unsigned kind)
{
	uint64_t n = 0;
	for (unsigned p = 0; p < TN_PHASE_CNT; p++)
		for (unsigned r = 0; r < TN_REASON_CNT; r++)
			n += tctl_counter(cells, TN_C3(TERMINAL_FAILURES_TOTAL, kind, p, r));
	return n;
}

static void put_stream(const struct delta *d, json_t *j, unsigned kind)
{
	if (kind != TN_TRANSPORT_TCP && kind != TN_TRANSPORT_HP_TCP)
		return;
	unsigned s = tn_stream_kind(kind);
	json_object_set_new(j, "connections", json_integer(tctl_gauge(d->now->cells, TN_G1(STREAM_CONNECTIONS, s))));
	put_real(j, "retransmissions_per_s", rate(d, tctl_counter(d->cells, TN_C1(TCP_RETRANSMISSIONS_TOTAL, s))));
}

static json_t *transport_json(const struct delta *d, unsigned kind)
{
	const struct tctl_top_sample *s = d->now;
	json_t *j = json_object();
	tn_json_put_str(j, "transport", tn_transport_name(kind));
	tn_json_put_bool(j, "up", s->up >> kind & 1);
	put_real(j, "read_bytes_per_s", rate(d, tctl_counter(d->cells, TN_C1(READ_BYTES_TOTAL, kind))));
	put_real(j, "write_bytes_per_s", rate(d, tctl_counter(d->cells, TN_C1(WRITE_BYTES_TOTAL, kind))));
	put_real(j, "requests_per_s", rate(d, tctl_counter(d->cells, TN_C1(READ_REQUESTS_TOTAL, kind)) +
						      tctl_counter(d->cells, TN_C1(WRITE_REQUESTS_TOTAL, kind))));
	json_object_set_new(j, "inflight",
			    json_integer(tctl_gauge(s->cells, TN_G2(INFLIGHT_ATTEMPTS, kind, TN_OP_READ)) +
					 tctl_gauge(s->cells, TN_G2(INFLIGHT_ATTEMPTS, kind, TN_OP_WRITE))));
	put_latency(j, d->cells, TN_H1(READ_LATENCY_US, kind), TN_H1(WRITE_LATENCY_US, kind));
	put_real(j, "failed_per_s", rate(d, failed_by(d->cells, kind)));
	tn_json_put_u64(j, "failed", failed_by(s->cells, kind));
	put_stream(d, j, kind);
	return j;
}

static json_t *transports_json(const struct delta *d)
{
	json_t *list = json_array();
	for (unsigned k = 0; k < TN_TRANSPORT_CNT; k++)
		if ((d->now->loaded >> k & 1) != 0 || failed_by(d->now->cells, k) > 0)
			json_array_append_new(list, transport_json(d, k));
	return list;
}

static json_t *totals_json(const struct delta *d)
{
	const struct tctl_top_sample *s = d->now;
	json_t *j = json_object();
	uint64_t bytes[TN_OP_CNT] = { 0 }, requests = 0, failed = 0, rejected = 0, outstanding = 0, queued = 0;
	int64_t inflight = 0;
	for (unsigned k = 0; k < TN_TRANSPORT_CNT; k++) {
		bytes[TN_OP_READ] += tctl_counter(d->cells, TN_C1(READ_BYTES_TOTAL, k));
		bytes[TN_OP_WRITE] += tctl_counter(d->cells, TN_C1(WRITE_BYTES_TOTAL, k));
		requests += tctl_counter(d->cells, TN_C1(READ_REQUESTS_TOTAL, k)) +
			    tctl_counter(d->cells, TN_C1(WRITE_REQUESTS_TOTAL, k));
		failed += failed_by(d->cells, k);
	}
	for (unsigned r = 0; r < TN_REASON_CNT; r++)
		rejected += tctl_counter(d->cells, TN_C1(SUBMIT_REJECTIONS_TOTAL, r));
	for (unsigned op = 0; op < TN_OP_CNT; op++)
		inflight += tctl_gauge(s->cells, TN_G1(LOGICAL_REQUESTS_INFLIGHT, op));
	for (unsigned k = 0; k < TN_OWNER_KIND_CNT; k++) {
		queued += (uint64_t)tctl_gauge(s->cells, TN_G1(ADMISSION_QUEUED_OWNERS, k));
		outstanding += (uint64_t)tctl_gauge(s->cells, TN_G1(ADMISSION_OUTSTANDING_BYTES, k));
	}
	for (uint32_t i = 0; !s->numbers && i < s->worker_cnt; i++) {
		queued += s->workers[i].queued;
		outstanding += s->workers[i].outstanding_bytes;
		inflight += s->workers[i].inflight;
	}
	put_real(j, "read_bytes_per_s", rate(d, bytes[TN_OP_READ]));
	put_real(j, "write_bytes_per_s", rate(d, bytes[TN_OP_WRITE]));
	put_real(j, "requests_per_s", rate(d, requests));
	json_object_set_new(j, "inflight", json_integer(inflight));
	tn_json_put_u64(j, "outstanding_bytes", outstanding);
	tn_json_put_u64(j, "queued", queued);
	put_real(j, "failed_per_s", rate(d, failed));
	put_real(j, "rejected_per_s", rate(d, rejected));
	return j;
}

/* ---- failures ---- */

struct failure { uint8_t kind, phase, reason; uint64_t total, fresh; };

static int worst_first(const void *a, const void *b)
{
	const struct failure *x = a, *y = b;
	if (x->fresh != y->fresh)
		return x->fresh < y->fresh ? 1 : -1;
	return x->total < y->total ? 1 : x->total > y->total ? -1 : 0;
}

static json_t *failures_json(const struct delta *d)
{
	static struct failure all[TN_TRANSPORT_CNT * TN_PHASE_CNT * TN_REASON_CNT];
	size_t cnt = 0;
	for (unsigned k = 0; k < TN_TRANSPORT_CNT; k++)
		for (unsigned p = 0; p < TN_PHASE_CNT; p++)
			for (unsigned r = 0; r < TN_REASON_CNT; r++) {
				struct tn_counter_at at = TN_C3(TERMINAL_FAILURES_TOTAL, k, p, r);
				if (d->now->cells[at.cell] > 0)
					all[cnt++] = (struct failure){ (uint8_t)k, (uint8_t)p, (uint8_t)r,
								       d->now->cells[at.cell], d->cells[at.cell] };
			}
	qsort(all, cnt, sizeof all[0], worst_first);
	json_t *list = json_array();
	for (size_t i = 0; i < cnt && i < FAILURES_MOST; i++) {
		json_t *j = json_object();
		tn_json_put_str(j, "transport", tn_transport_name(all[i].kind));
		tn_json_put_str(j, "phase", tn_phase_name(all[i].phase));
		tn_json_put_str(j, "reason", tn_reason_name(all[i].reason));
		tn_json_put_u64(j, "count", all[i].total);
		put_real(j, "per_s", rate(d, all[i].fresh));
		json_array_append_new(list, j);
	}
	return list;
}

/* ---- workers ---- */

static json_t *workers_json(const struct delta *d)
{
	json_t *list = json_array();
	for (uint32_t i = 0; i < d->now->worker_cnt; i++) {
		const struct tctl_top_worker *w = &d->now->workers[i], *b = &d->before->workers[i];
		uint64_t busy = d->comparable ? w->busy_ns - b->busy_ns : 0;
		uint64_t all = d->comparable ? busy + w->idle_ns - b->idle_ns : 0;
		json_t *j = json_object();
		tn_json_put_u64(j, "index", i);
		if (w->cpu != UINT32_MAX)
			tn_json_put_u64(j, "cpu", w->cpu);
		tn_json_put_bool(j, "alive", w->alive);
		put_real(j, "busy", all > 0 ? (double)busy / (double)all : 0);
		tn_json_put_u64(j, "inflight", w->inflight);
		tn_json_put_u64(j, "queued", w->queued);
		tn_json_put_u64(j, "outstanding_bytes", w->outstanding_bytes);
		tn_json_put_u64(j, "lanes", w->lanes);
		if (w->oldest_work_ns != 0 && w->oldest_work_ns < d->now->at_ns)
			tn_json_put_u64(j, "oldest_work_ns", d->now->at_ns - w->oldest_work_ns);
		json_array_append_new(list, j);
	}
	return list;
}

/* ---- peers ---- */

static const struct tctl_top_load *same_peer(const struct tctl_top_sample *s, const char *name)
{
	for (unsigned i = 0; i < s->peer_cnt; i++)
		if (strcmp(s->peers[i].name, name) == 0)
			return &s->peers[i];
	return NULL;
}

static json_t *load_json(const struct delta *d, const struct tctl_top_load *l, const struct tctl_top_load *b)
{
	static const struct tctl_top_load none;
	uint64_t fresh[TN_BUCKETS_LATENCY_CNT + 2] = { 0 }; /* and the sum, which nobody needs here */
	struct tn_hist_at at = { 0, true, TN_MTYPE_LATENCY };
	bool compare = d->comparable && d->before->loads;
	json_t *j = json_object();
	if (b == NULL || !compare)
		b = compare ? &none : l;
	for (unsigned i = 0; i <= TN_BUCKETS_LATENCY_CNT; i++)
		fresh[i] = l->latency[i] - b->latency[i];
	tn_json_put_str(j, "peer", l->name);
	tn_json_put_bool(j, "local", l->name[0] == '\0');
	put_real(j, "read_bytes_per_s", rate(d, l->moved[TN_OP_READ] - b->moved[TN_OP_READ]));
	put_real(j, "write_bytes_per_s", rate(d, l->moved[TN_OP_WRITE] - b->moved[TN_OP_WRITE]));
	put_real(j, "requests_per_s", rate(d, l->ended - b->ended));
	tn_json_put_u64(j, "inflight", l->inflight);
	tn_json_put_u64(j, "inflight_bytes", l->inflight_bytes);
	put_latency(j, fresh, at, at);
	put_real(j, "failed_per_s", rate(d, l->failed - b->failed));
	tn_json_put_u64(j, "failed", l->failed);
	tn_json_put_u64(j, "lanes", l->lanes);
	tn_json_put_u64(j, "lanes_in", l->lanes_in);
	if (l->failure[0] != '\0') {
		tn_json_put_str(j, "last_failure", l->failure);
		tn_json_put_u64(j, "last_failure_ms_ago", l->failure_ms_ago);
	}
	return j;
}

static double traffic(const json_t *j)
{
	return json_real_value(json_object_get(j, "read_bytes_per_s")) +
	       json_real_value(json_object_get(j, "write_bytes_per_s")) +
	       (double)json_integer_value(json_object_get(j, "inflight")) * 1e-3;
}

/* The busiest first; the list was sorted by name. */
static int busiest_first(const void *a, const void *b)
{
	double x = traffic(*(json_t *const *)a), y = traffic(*(json_t *const *)b);
	if (x != y)
		return x < y ? 1 : -1;
	return strcmp(json_string_value(json_object_get(*(json_t *const *)a, "peer")),
		      json_string_value(json_object_get(*(json_t *const *)b, "peer")));
}

static json_t *peers_json(const struct delta *d)
{
	const struct tctl_top_sample *s = d->now;
	json_t *list = json_array(), **item = calloc(s->peer_cnt + 1u, sizeof *item);
	unsigned cnt = 0;
	for (unsigned i = 0; item != NULL && i < s->peer_cnt; i++)
		item[cnt++] = load_json(d, &s->peers[i], same_peer(d->before, s->peers[i].name));
	if (item != NULL && s->local.started > 0)
		item[cnt++] = load_json(d, &s->local, &d->before->local);
	if (item != NULL)
		qsort(item, cnt, sizeof *item, busiest_first);
	for (unsigned i = 0; i < cnt; i++)
		json_array_append_new(list, item[i]);
	free(item);
	return list;
}

json_t *tctl_top_view(const struct tctl_top_sample *before, const struct tctl_top_sample *now)
{
	struct delta *d = calloc(1, sizeof *d);
	json_t *j = json_object();
	if (d == NULL)
		return j;
	d->before = before;
	d->now = now;
	d->comparable = now->generation != 0 && before->generation == now->generation && now->at_ns > before->at_ns;
	d->seconds = d->comparable ? (double)(now->at_ns - before->at_ns) / 1e9 : 1;
	for (uint32_t i = 0; d->comparable && i < TN_METRIC_CELL_CNT; i++)
		d->cells[i] = now->cells[i] - before->cells[i];
	tn_json_put_u64(j, "interval_ms", (now->at_ns - before->at_ns) / TN_NS_PER_MS);
	tn_json_put_u64(j, "time_ms", now->at_real_ns / TN_NS_PER_MS);
	if (now->control)
		tn_json_put_str(j, "host", now->host);
	json_object_set_new(j, "data_plane", process_json(now));
	json_t *control = json_object();
	tn_json_put_bool(control, "answers", now->control);
	if (!now->control && now->control_error[0] != '\0')
		tn_json_put_str(control, "error", now->control_error);
	json_object_set_new(j, "control_plane", control);
	json_object_set_new(j, "totals", totals_json(d));
	json_object_set_new(j, "transports", transports_json(d));
	json_object_set_new(j, "workers", workers_json(d));
	json_object_set_new(j, "failures", failures_json(d));
	if (now->control) {
		tn_json_put_u64(j, "clients", now->clients);
		tn_json_put_u64(j, "queue_pairs", now->qps);
		tn_json_put_u64(j, "segments", now->segments);
		tn_json_put_u64(j, "opened", now->opened);
		tn_json_put_u64(j, "memory_bytes", now->memory_bytes);
	}
	json_object_set_new(j, "peers", now->loads ? peers_json(d) : json_null());
	free(d);
	return j;
}

void tctl_top_remember(struct tctl_top_history *h, const json_t *view)
{
	const json_t *t = json_object_get(view, "totals");
	if (h->cnt == TCTL_TOP_HISTORY) {
		memmove(h->read, h->read + 1, sizeof h->read - sizeof h->read[0]);
		memmove(h->write, h->write + 1, sizeof h->write - sizeof h->write[0]);
		h->cnt--;
	}
	h->read[h->cnt] = json_real_value(json_object_get(t, "read_bytes_per_s"));
	h->write[h->cnt++] = json_real_value(json_object_get(t, "write_bytes_per_s"));
}
