/* SPDX-License-Identifier: Apache-2.0
 * A view on a canvas: the state of the daemons, throughput with its recent past, then tables that share the rows that
 * are left - transports, peers, workers, failures. */
#include <string.h>
#include <time.h>

#include "common/clock.h"
#include "controlplane/tentctl/tentctl.h"
#include "controlplane/tentctl/top/top.h"

enum { WIDE = 127, WORKERS_LEAST = 4, FAILURES_LEAST = 2 };

/* Below WIDE columns everything is narrower, so that failures still fit into 80. */
static bool narrow(const struct tctl_canvas *c) { return c->width < WIDE; }
static unsigned name_width(const struct tctl_canvas *c) { return narrow(c) ? 12 : 17; }
static unsigned bar_width(const struct tctl_canvas *c) { return narrow(c) ? 16 : 24; }
static unsigned number_width(const struct tctl_canvas *c) { return narrow(c) ? 8 : 11; }

/* ---- numbers ---- */

static const char *scaled(double v, const char *unit, char out[static 24])
{
	static const char *const prefix[] = { "", "k", "M", "G", "T" };
	unsigned p = 0;
	while (v >= 999.5 && p + 1 < TN_ARRAY_LEN(prefix)) {
		v /= 1000;
		p++;
	}
	snprintf(out, 24, "%.*f%s%s%s", v == 0 || v >= 99.95 ? 0 : v >= 9.995 ? 1 : 2, v, unit[0] != '\0' ? " " : "",
		 prefix[p], unit);
	return out;
}

static double real(const json_t *j, const char *key) { return json_real_value(json_object_get(j, key)); }

static const char *ns_text(const json_t *j, const char *key)
{
	return json_object_get(j, key) != NULL ? tctl_time_text(tctl_u64(j, key)) : "-";
}

static void cell(struct tctl_canvas *c, enum tctl_style style, const char *text)
{
	tctl_put_cell(c, style, number_width(c), true, text);
}

static void cell_rate(struct tctl_canvas *c, double v, const char *unit)
{
	char text[24];
	cell(c, v > 0 ? TCTL_PLAIN : TCTL_DIM, v > 0 ? scaled(v, narrow(c) ? "" : unit, text) : "-");
}

static void cell_failed(struct tctl_canvas *c, double v)
{
	char text[24];
	cell(c, v > 0 ? TCTL_BAD : TCTL_DIM, v > 0 ? scaled(v, "", text) : "-");
}

static void cell_count(struct tctl_canvas *c, const json_t *j, const char *key, enum tctl_style style)
{
	char text[24];
	uint64_t v = tctl_u64(j, key);
	cell(c, v > 0 ? style : TCTL_DIM, v == 0 ? "-" : v < 100000 ? tctl_text(j, key) : scaled((double)v, "", text));
}

/* Over cells; the space is part of it, so that no two touch. */
static void headings(struct tctl_canvas *c, const char *const *names)
{
	for (; *names != NULL; names++) {
		tctl_put(c, TCTL_PLAIN, " ");
		tctl_put_cell(c, TCTL_BOLD, number_width(c) - 1, true, *names);
	}
	tctl_newline(c);
}

/* ---- the head ---- */

static void draw_data_plane(struct tctl_canvas *c, const json_t *p)
{
	const char *verdict = tctl_text(p, "verdict");
	if (strcmp(verdict, "running") == 0) {
		tctl_put(c, TCTL_GOOD, "data plane up %s", ns_text(p, "lived_ns"));
		tctl_put(c, TCTL_DIM, "  pid %s, generation %s", tctl_text(p, "pid"), tctl_text(p, "generation"));
	} else if (strcmp(verdict, "absent") == 0) {
		tctl_put(c, TCTL_BAD, "no data plane ran here");
	} else if (strcmp(verdict, "hung") == 0) {
		tctl_put(c, TCTL_BAD, "data plane gives no sign for %s  pid %s", ns_text(p, "last_sign_ns_ago"),
			 tctl_text(p, "pid"));
	} else {
		tctl_put(c, TCTL_BAD, "data plane %s %s ago", strncmp(verdict, "died", 4) == 0 ? "died" : verdict,
			 ns_text(p, "last_sign_ns_ago"));
		tctl_put(c, TCTL_PLAIN, "  tentctl postmortem %s", tctl_text(p, "generation"));
	}
}

static void draw_head(struct tctl_canvas *c, const json_t *v)
{
	const json_t *control = json_object_get(v, "control_plane"), *p = json_object_get(v, "data_plane");
	time_t s = (time_t)(tctl_u64(v, "time_ms") / 1000);
	struct tm tm;
	char clock[32] = "";
	if (gmtime_r(&s, &tm) != NULL)
		(void)strftime(clock, sizeof clock, "%H:%M:%SZ", &tm);
	tctl_put(c, TCTL_BOLD, "tent");
	if (json_object_get(v, "host") != NULL)
		tctl_put(c, TCTL_BOLD, " %s", tctl_text(v, "host"));
	tctl_put(c, TCTL_DIM, "  %s  ", clock);
	draw_data_plane(c, p);
	tctl_newline(c);
	if (json_is_true(json_object_get(control, "answers"))) {
		tctl_put(c, TCTL_GOOD, "control plane up");
		tctl_put(c, TCTL_DIM, "  clients %s, queue pairs %s, memory %s, segments %s, opened %s",
			 tctl_text(v, "clients"), tctl_text(v, "queue_pairs"),
			 tctl_bytes_text(tctl_u64(v, "memory_bytes")), tctl_text(v, "segments"),
			 tctl_text(v, "opened"));
	} else {
		tctl_put(c, TCTL_BAD, "control plane: ");
		tctl_put(c, TCTL_PLAIN, "%s",
			 json_object_get(control, "error") != NULL ? tctl_text(control, "error") : "not asked");
	}
	tctl_newline(c);
	if (json_is_false(json_object_get(p, "numbers")) || json_is_false(json_object_get(p, "recording"))) {
		tctl_put(c, TCTL_WARN, "%s", json_is_false(json_object_get(p, "numbers")) ?
			 "its counters are of another version: only workers can be shown" :
			 "recording is switched off: rates are not counted");
		tctl_newline(c);
	}
	tctl_newline(c);
}

static void draw_flow(struct tctl_canvas *c, const char *name, double now, const double *past, unsigned cnt, double max)
{
	char text[24];
	unsigned room = c->width > 24 ? c->width - 24 : 0, n = cnt < room ? cnt : room;
	tctl_put(c, TCTL_BOLD, "%-6s", name);
	tctl_put_cell(c, now > 0 ? TCTL_BOLD : TCTL_DIM, 12, true, scaled(now, "B/s", text));
	tctl_put(c, TCTL_PLAIN, "  ");
	if (past != NULL && max > 0)
		tctl_put_spark(c, TCTL_GOOD, past + (cnt - n), n, max);
	tctl_newline(c);
}

static void draw_totals(struct tctl_canvas *c, const json_t *v, const struct tctl_top_history *h)
{
	const json_t *t = json_object_get(v, "totals");
	double max = 0, failed = real(t, "failed_per_s"), rejected = real(t, "rejected_per_s");
	char text[24];
	for (unsigned i = 0; h != NULL && i < h->cnt; i++)
		max = TN_MAX(max, TN_MAX(h->read[i], h->write[i]));
	draw_flow(c, "read", real(t, "read_bytes_per_s"), h != NULL ? h->read : NULL, h != NULL ? h->cnt : 0, max);
	draw_flow(c, "write", real(t, "write_bytes_per_s"), h != NULL ? h->write : NULL, h != NULL ? h->cnt : 0, max);
	tctl_put(c, TCTL_BOLD, "%s requests/s", scaled(real(t, "requests_per_s"), "", text));
	tctl_put(c, TCTL_PLAIN, "   in flight %s (%s)   queued %s", tctl_text(t, "inflight"),
		 tctl_bytes_text(tctl_u64(t, "outstanding_bytes")), tctl_text(t, "queued"));
	tctl_put(c, failed > 0 ? TCTL_BAD : TCTL_PLAIN, "   failed %s/s", scaled(failed, "", text));
	tctl_put(c, rejected > 0 ? TCTL_WARN : TCTL_PLAIN, "   refused %s/s", scaled(rejected, "", text));
	tctl_newline(c);
	tctl_newline(c);
}

/* ---- tables ---- */

static void draw_transports(struct tctl_canvas *c, const json_t *list)
{
	static const char *const names[] = { "READ",   "WRITE",  "REQ/s", "FLIGHT",   "P50", "P99",
					     "FAIL/s", "FAILED", "CONNS", "RETX/s", NULL };
	size_t i;
	json_t *t;
	tctl_put_cell(c, TCTL_BOLD, name_width(c), false, "TRANSPORT");
	headings(c, names);
	json_array_foreach(list, i, t) {
		bool up = json_is_true(json_object_get(t, "up"));
		char name[32];
		snprintf(name, sizeof name, "%s%s", tctl_text(t, "transport"), up ? "" : " down");
		tctl_put_cell(c, up ? TCTL_PLAIN : TCTL_BAD, name_width(c), false, name);
		cell_rate(c, real(t, "read_bytes_per_s"), "B/s");
		cell_rate(c, real(t, "write_bytes_per_s"), "B/s");
		cell_rate(c, real(t, "requests_per_s"), "");
		cell_count(c, t, "inflight", TCTL_PLAIN);
		cell(c, TCTL_PLAIN, ns_text(t, "p50_ns"));
		cell(c, TCTL_PLAIN, ns_text(t, "p99_ns"));
		cell_failed(c, real(t, "failed_per_s"));
		cell_count(c, t, "failed", TCTL_PLAIN);
		cell_count(c, t, "connections", TCTL_PLAIN);
		cell_rate(c, real(t, "retransmissions_per_s"), "");
		tctl_newline(c);
	}
	tctl_newline(c);
}

static void draw_more(struct tctl_canvas *c, size_t shown, size_t all)
{
	if (shown >= all)
		return;
	tctl_put(c, TCTL_DIM, "... and %zu more", all - shown);
	tctl_newline(c);
}

static void draw_peer(struct tctl_canvas *c, const json_t *p)
{
	bool local = json_is_true(json_object_get(p, "local"));
	bool down = !local && tctl_u64(p, "lanes") == 0 && tctl_u64(p, "inflight") > 0;
	tctl_put_cell(c, down ? TCTL_BAD : TCTL_PLAIN, name_width(c) - 1, false,
		      local ? "(this host)" : tctl_text(p, "peer"));
	tctl_put(c, TCTL_PLAIN, " ");
	cell_rate(c, real(p, "read_bytes_per_s"), "B/s");
	cell_rate(c, real(p, "write_bytes_per_s"), "B/s");
	cell_rate(c, real(p, "requests_per_s"), "");
	cell_count(c, p, "inflight", TCTL_PLAIN);
	cell(c, TCTL_PLAIN, ns_text(p, "p50_ns"));
	cell(c, TCTL_PLAIN, ns_text(p, "p99_ns"));
	cell_failed(c, real(p, "failed_per_s"));
	cell_count(c, p, "failed", TCTL_PLAIN);
	cell_count(c, p, "lanes", TCTL_PLAIN);
	if (json_object_get(p, "last_failure") != NULL)
		tctl_put(c, TCTL_DIM, "  last: %s, %s ago", tctl_text(p, "last_failure"),
			 tctl_time_text(tctl_u64(p, "last_failure_ms_ago") * TN_NS_PER_MS));
	tctl_newline(c);
}

static void draw_peers(struct tctl_canvas *c, const json_t *list, unsigned room)
{
	static const char *const names[] = { "READ", "WRITE",  "REQ/s",  "FLIGHT", "P50",
					     "P99",  "FAIL/s", "FAILED", "LANES",  NULL };
	size_t i, all = json_array_size(list), most = room > 4 ? room - 3 : 1;
	json_t *p;
	if (!json_is_array(list) || all == 0)
		return;
	tctl_put_cell(c, TCTL_BOLD, name_width(c), false, "PEER");
	headings(c, names);
	most = all <= most + 1 ? all : most;
	json_array_foreach(list, i, p)
		if (i < most)
			draw_peer(c, p);
	draw_more(c, most, all);
	tctl_newline(c);
}

static void draw_worker(struct tctl_canvas *c, const json_t *w)
{
	char name[32], busy[16];
	double load = real(w, "busy");
	bool alive = json_is_true(json_object_get(w, "alive"));
	snprintf(name, sizeof name, "%s%s%s", tctl_text(w, "index"),
		 json_object_get(w, "cpu") != NULL ? " on CPU " : "",
		 json_object_get(w, "cpu") != NULL ? tctl_text(w, "cpu") : "");
	tctl_put_cell(c, alive ? TCTL_PLAIN : TCTL_BAD, name_width(c), false, name);
	tctl_put_bar(c, load > 0.9 ? TCTL_WARN : TCTL_GOOD, bar_width(c), (unsigned)(load * 1000 + 0.5));
	snprintf(busy, sizeof busy, "%.1f%%", load * 100);
	tctl_put_cell(c, alive ? TCTL_PLAIN : TCTL_BAD, 8, true, alive ? busy : "ended");
	tctl_put(c, TCTL_PLAIN, " ");
	cell_count(c, w, "inflight", TCTL_PLAIN);
	cell_count(c, w, "queued", TCTL_PLAIN);
	cell(c, tctl_u64(w, "outstanding_bytes") > 0 ? TCTL_PLAIN : TCTL_DIM,
	     tctl_u64(w, "outstanding_bytes") > 0 ? tctl_bytes_text(tctl_u64(w, "outstanding_bytes")) : "-");
	cell(c, tctl_u64(w, "oldest_work_ns") > TN_NS_PER_S ? TCTL_WARN : TCTL_PLAIN, ns_text(w, "oldest_work_ns"));
	cell_count(c, w, "lanes", TCTL_PLAIN);
	tctl_newline(c);
}

static void draw_workers(struct tctl_canvas *c, const json_t *list, unsigned room)
{
	static const char *const names[] = { "FLIGHT", "QUEUED", "BYTES", "OLDEST", "LANES", NULL };
	size_t i, all = json_array_size(list), most = room > 4 ? room - 3 : 1;
	json_t *w;
	if (all == 0)
		return;
	tctl_put_cell(c, TCTL_BOLD, name_width(c), false, "WORKER");
	tctl_put_cell(c, TCTL_BOLD, bar_width(c) + 9, false, "BUSY");
	headings(c, names);
	most = all <= most + 1 ? all : most;
	json_array_foreach(list, i, w)
		if (i < most)
			draw_worker(c, w);
	draw_more(c, most, all);
	tctl_newline(c);
}

static void draw_failures(struct tctl_canvas *c, const json_t *list)
{
	static const char *const names[] = { "PER s", "ALL", NULL };
	size_t i;
	json_t *f;
	if (json_array_size(list) == 0) {
		tctl_put(c, TCTL_DIM, "no request has failed since the data plane started");
		tctl_newline(c);
		return;
	}
	tctl_put_cell(c, TCTL_BOLD, name_width(c), false, "FAILURES");
	tctl_put_cell(c, TCTL_BOLD, 26, false, "PHASE/REASON");
	headings(c, names);
	json_array_foreach(list, i, f) {
		char why[64];
		snprintf(why, sizeof why, "%.30s/%.30s", tctl_text(f, "phase"), tctl_text(f, "reason"));
		tctl_put_cell(c, TCTL_PLAIN, name_width(c), false,
			      strcmp(tctl_text(f, "transport"), "unspec") == 0 ? "(none tried)"
									       : tctl_text(f, "transport"));
		tctl_put_cell(c, TCTL_PLAIN, 26, false, why);
		cell_failed(c, real(f, "per_s"));
		cell_count(c, f, "count", TCTL_PLAIN);
		tctl_newline(c);
	}
}

/* How many rows a table of n lines would like: heading, lines, blank. */
static unsigned wish(const json_t *list)
{
	size_t n = json_array_size(list);
	return n == 0 ? 0 : (unsigned)TN_MIN(n, (size_t)1000) + 2;
}

void tctl_top_draw(struct tctl_canvas *c, const json_t *v, const struct tctl_top_history *history, const char *hint)
{
	const json_t *peers = json_object_get(v, "peers"), *workers = json_object_get(v, "workers");
	const json_t *failures = json_object_get(v, "failures");
	unsigned bottom = hint != NULL && c->height > 1 ? 1 : 0;
	c->height -= bottom;
	draw_head(c, v);
	draw_totals(c, v, history);
	draw_transports(c, json_object_get(v, "transports"));
	unsigned left = tctl_rows_left(c), fails = TN_MIN(wish(failures), (unsigned)FAILURES_LEAST + 1);
	unsigned keep = fails + TN_MIN(wish(workers), (unsigned)WORKERS_LEAST + 2);
	draw_peers(c, peers, left > keep ? left - keep : 0);
	left = tctl_rows_left(c);
	draw_workers(c, workers, left > fails ? left - fails : 0);
	draw_failures(c, failures);
	c->height += bottom;
	if (bottom == 0)
		return;
	while (tctl_rows_left(c) > 1)
		tctl_newline(c);
	tctl_put(c, TCTL_DIM, "%s", hint);
	tctl_newline(c);
}
