/* SPDX-License-Identifier: Apache-2.0
 * Taking a sample: the region first (it needs nobody), then what the control plane answers in time. */
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "controlplane/tentctl/tentctl.h"
#include "controlplane/tentctl/top/top.h"

enum { PAGE = 64 };

static void read_workers(const struct tctl_region *r, struct tctl_top_sample *s)
{
	s->worker_cnt = r->ro.lay.worker_cnt;
	for (uint32_t i = 0; i < s->worker_cnt; i++) {
		const struct shr_worker_shm *w = shr_tele_ro_worker(&r->ro, i);
		s->workers[i] = (struct tctl_top_worker){
			.alive = tn_load_relaxed32(&w->alive) != 0, .cpu = tn_load_relaxed32(&w->cpu),
			.inflight = tn_load_relaxed32(&w->inflight), .queued = tn_load_relaxed32(&w->queued),
			.lanes = tn_load_relaxed32(&w->lanes), .busy_ns = tn_load_relaxed64(&w->busy_ns),
			.idle_ns = tn_load_relaxed64(&w->idle_ns),
			.outstanding_bytes = tn_load_relaxed64(&w->outstanding_bytes),
			.oldest_work_ns = tn_load_relaxed64(&w->oldest_work_ns),
		};
		s->up |= tn_load_relaxed32(&w->transports_up);
	}
}

static void read_region(const char *dir, struct tctl_top_sample *s)
{
	struct tctl_region r;
	char err[512];
	if (tctl_region_open(dir, 0, &r, err, sizeof err) != TN_OK)
		return;
	s->generation = r.ro.hdr.generation;
	s->life = tctl_region_life(&r, dir, s->at_ns);
	s->start_mono_ns = r.ro.hdr.start_mono_ns;
	s->last_sign_ns = tctl_region_last_sign_ns(&r);
	s->pid = r.ro.hdr.pid;
	s->loaded = r.ro.hdr.loaded_transports;
	s->numbers = r.numbers;
	s->recording = tn_load_relaxed32(&r.ro.live->recording) != 0;
	read_workers(&r, s);
	tctl_region_fold(&r, s->cells);
	tctl_region_close(&r);
}

/* ---- the control plane's part ---- */

static void read_load(const json_t *j, struct tctl_top_load *l)
{
	const json_t *f = json_object_get(j, "last_failure"), *latency = json_object_get(j, "latency"), *v;
	const char *name = json_string_value(json_object_get(j, "name"));
	size_t i;
	*l = (struct tctl_top_load){
		.started = tctl_u64(j, "started"), .ended = tctl_u64(j, "ended"), .failed = tctl_u64(j, "failed"),
		.inflight = tctl_u64(j, "inflight"), .inflight_bytes = tctl_u64(j, "inflight_bytes"),
		.moved = { tctl_u64(j, "read_bytes"), tctl_u64(j, "written_bytes") },
		.lanes = (uint32_t)tctl_u64(j, "lanes"), .lanes_in = (uint32_t)tctl_u64(j, "lanes_in"),
		.failure_ms_ago = tctl_u64(f, "ms_ago"),
	};
	snprintf(l->name, sizeof l->name, "%s", name != NULL ? name : "");
	if (f != NULL)
		snprintf(l->failure, sizeof l->failure, "%.20s %.20s/%.20s", tctl_text(f, "transport"),
			 tctl_text(f, "phase"), tctl_text(f, "reason"));
	json_array_foreach(latency, i, v)
		if (i <= TN_BUCKETS_LATENCY_CNT)
			l->latency[i] = (uint64_t)json_integer_value(v);
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct tctl_top_load *)a)->name, ((const struct tctl_top_load *)b)->name);
}

void tctl_top_read_loads(const json_t *answer, struct tctl_top_sample *s)
{
	const json_t *list = json_object_get(answer, "peers");
	size_t n = json_array_size(list), i;
	json_t *j;
	if (json_object_get(answer, "local") != NULL)
		read_load(json_object_get(answer, "local"), &s->local);
	n = TN_MIN(n, (size_t)TCTL_TOP_PEERS_MAX - s->peer_cnt);
	void *more = n > 0 ? realloc(s->peers, (s->peer_cnt + n) * sizeof *s->peers) : NULL;
	if (more == NULL)
		return;
	s->peers = more;
	json_array_foreach(list, i, j)
		if (i < n)
			read_load(j, &s->peers[s->peer_cnt++]);
	qsort(s->peers, s->peer_cnt, sizeof *s->peers, by_name);
}

static void read_status(const json_t *answer, struct tctl_top_sample *s)
{
	const json_t *d = json_object_get(answer, "data_plane");
	snprintf(s->host, sizeof s->host, "%s", tctl_text(answer, "host"));
	s->clients = tctl_u64(d, "clients");
	s->qps = tctl_u64(d, "qps");
	s->segments = tctl_u64(d, "segments");
	s->opened = tctl_u64(d, "remotes");
	s->memory_bytes = tctl_u64(d, "memory_bytes");
}

static bool ask_loads(struct tctl *t, struct tctl_top_sample *s)
{
	uint64_t total = 1;
	char err[sizeof s->control_error];
	for (uint64_t first = 0; first < total && first < TCTL_TOP_PEERS_MAX; first += PAGE) {
		json_t *answer = NULL, *body = json_object();
		json_object_set_new(body, "first", json_integer((json_int_t)first));
		json_object_set_new(body, "count", json_integer(PAGE));
		if (tctl_query(t, "peer_load", body, &answer, err, sizeof err) != TN_OK)
			return first > 0;
		tctl_top_read_loads(answer, s);
		total = TN_MAX(tctl_u64(answer, "total"), (uint64_t)1);
		json_decref(answer);
	}
	return true;
}

static void ask_control(struct tctl *t, uint64_t wait_ns, struct tctl_top_sample *s)
{
	uint64_t timeout_ns = t->timeout_ns;
	json_t *answer = NULL;
	t->timeout_ns = TN_MIN(timeout_ns, wait_ns);
	tn_status st = tctl_query(t, "status", NULL, &answer, s->control_error, sizeof s->control_error);
	s->control = st == TN_OK;
	if (st == TN_CONTROLPLANE_DOWN)
		snprintf(s->control_error, sizeof s->control_error, "not running: start tent-controlplane");
	if (s->control) {
		read_status(answer, s);
		s->loads = ask_loads(t, s);
		json_decref(answer);
	}
	t->timeout_ns = timeout_ns;
}

void tctl_top_take(struct tctl *t, const char *dir, uint64_t wait_ns, struct tctl_top_sample *out)
{
	memset(out, 0, sizeof *out);
	out->life = TCTL_LIFE_UNKNOWN;
	out->at_ns = tn_now_ns();
	out->at_real_ns = tn_real_ns();
	read_region(dir, out);
	if (wait_ns > 0)
		ask_control(t, wait_ns, out);
}

void tctl_top_drop(struct tctl_top_sample *s)
{
	free(s->peers);
	s->peers = NULL;
	s->peer_cnt = 0;
}
