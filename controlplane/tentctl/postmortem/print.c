/* SPDX-License-Identifier: Apache-2.0
 * The document as a page: the verdict first, then what an operator asks next, the events last (they are what scrolls).
 */
#include <inttypes.h>
#include <string.h>

#include "common/clock.h"
#include "controlplane/tentctl/event_text.h"
#include "controlplane/tentctl/postmortem/postmortem.h"
#include "controlplane/tentctl/style.h"
#include "controlplane/tentctl/tentctl.h"

static const char *verdict_text(const char *verdict)
{
	static const struct { const char *verdict, *text; } all[] = {
		{ "running", "runs now" },
		{ "hung", "lives, but its control thread gives no sign: stopped, swapped out or stuck" },
		{ "stopped", "was stopped in order" },
		{ "died", "died: it ran and ended without a word (killed, crashed, out of memory)" },
		{ "died_starting", "died while it started" },
		{ "died_draining", "died while it drained: it had been asked to stop" },
	};
	for (size_t i = 0; i < TN_ARRAY_LEN(all); i++)
		if (strcmp(all[i].verdict, verdict) == 0)
			return all[i].text;
	return "may live or not: its lock cannot be looked at from here";
}

static const char *age_text(const json_t *j, const char *key)
{
	return json_object_get(j, key) != NULL ? tctl_time_text(tctl_u64(j, key) * TN_NS_PER_US) : "-";
}

/* "tcp shm", "-" when there is none. */
static const char *words(const json_t *list, char *out, size_t out_bytes)
{
	size_t i, at = 0;
	json_t *v;
	snprintf(out, out_bytes, "-");
	json_array_foreach(list, i, v)
		if (json_is_string(v) && at < out_bytes)
			at +=
			    (size_t)snprintf(out + at, out_bytes - at, "%s%s", i > 0 ? " " : "", json_string_value(v));
	return out;
}

static void heading(FILE *to, const char *text)
{
	fprintf(to, "\n%s%s%s\n", tctl_style(to, TCTL_BOLD), text, tctl_style(to, TCTL_PLAIN));
}

static void print_who(const json_t *doc, FILE *to)
{
	char up[96];
	const char *verdict = tctl_text(doc, "verdict");
	bool good = strcmp(verdict, "running") == 0 || strcmp(verdict, "stopped") == 0;
	fprintf(to, "%sdata plane, generation %s: %s%s\n\n", tctl_style(to, good ? TCTL_GOOD : TCTL_BAD),
		tctl_text(doc, "generation"), verdict_text(verdict), tctl_style(to, TCTL_PLAIN));
	fprintf(to, "process    pid %s, session %s\n", tctl_text(doc, "pid"), tctl_text(doc, "session"));
	fprintf(to, "build      %s, ABI %s\n", tctl_text(doc, "build"), tctl_text(doc, "abi"));
	fprintf(to, "started    %s\n", tctl_text(doc, "started"));
	fprintf(to, "last sign  %s, %s after the start, %s ago\n", tctl_text(doc, "last_sign"),
		age_text(doc, "lived_us"), age_text(doc, "last_sign_us_ago"));
	fprintf(to, "state      %s, config generation %s, recording %s, transports %s\n", tctl_text(doc, "state"),
		tctl_text(doc, "config_generation"), json_is_true(json_object_get(doc, "recording")) ? "on" : "off",
		words(json_object_get(doc, "transports_loaded"), up, sizeof up));
	fprintf(to, "file       %s\n", tctl_text(doc, "file"));
	if (!json_is_true(json_object_get(doc, "numbers")))
		fprintf(to, "%snumbers    not readable: another version's counters, or a build without metrics%s\n",
			tctl_style(to, TCTL_WARN), tctl_style(to, TCTL_PLAIN));
}

static void print_others(const json_t *list, FILE *to)
{
	size_t i;
	json_t *o;
	json_array_foreach(list, i, o)
		fprintf(to, "%s generation %s (%s)", i == 0 ? "also here  " : ",", tctl_text(o, "generation"),
			tctl_text(o, "verdict"));
	if (json_array_size(list) > 0)
		fputc('\n', to);
}

static void print_workers(const json_t *list, bool alive, FILE *to)
{
	static const char *const headings[] = { "WORKER",  "CPU",    "THREAD",  ">IN-FLIGHT",
						">QUEUED", ">BYTES", ">OLDEST", ">PROGRESS",
						">LANES",  ">BUSY",  "UP",      "WORK IS WITH" };
	struct tctl_table *tb = tctl_table_new(TN_ARRAY_LEN(headings), headings);
	size_t i;
	json_t *w;
	json_array_foreach(list, i, w) {
		char up[96], busy[16];
		snprintf(busy, sizeof busy, "%.1f%%", (double)tctl_u64(w, "busy_permille") / 10);
		tctl_table_row(
		    tb, (const char *[]){
			    tctl_text(w, "index"), tctl_text(w, "cpu"),
			    json_is_true(json_object_get(w, "thread")) ? "up" : "ended", tctl_text(w, "inflight"),
			    tctl_text(w, "queued"), tctl_bytes_text(tctl_u64(w, "outstanding_bytes")),
			    age_text(w, "oldest_work_us"), age_text(w, "last_progress_us"), tctl_text(w, "lanes"), busy,
			    words(json_object_get(w, "transports_up"), up, sizeof up), tctl_text(w, "work") });
	}
	heading(to, alive ? "workers now" : "workers at the end (ages before it)");
	tctl_table_print(tb, to);
	tctl_table_free(tb);
}

static void print_requests(const json_t *list, FILE *to)
{
	static const char *const headings[] = { "REQUESTS", ">STARTED",  ">COMPLETED", ">FAILED",
						">TIMEOUT", ">CANCELED", ">IN-FLIGHT", ">MOVED" };
	struct tctl_table *tb = tctl_table_new(TN_ARRAY_LEN(headings), headings);
	size_t i;
	json_t *r;
	json_array_foreach(list, i, r)
		tctl_table_row(tb, (const char *[]){ tctl_text(r, "operation"), tctl_text(r, "started"),
						     tctl_text(r, "completed"), tctl_text(r, "failed"),
						     tctl_text(r, "timeout"), tctl_text(r, "canceled"),
						     tctl_text(r, "inflight"), tctl_bytes_text(tctl_u64(r, "bytes")) });
	heading(to, "what it had done");
	tctl_table_print(tb, to);
	tctl_table_free(tb);
}

static void print_attempts(const json_t *list, FILE *to)
{
	static const char *const headings[] = { "ATTEMPTS", "OPERATION", ">MADE",     ">COMPLETED",
						">FAILED",  ">TIMEOUT",  ">CANCELED", ">IN-FLIGHT",
						">MOVED",   ">P50",      ">P99" };
	struct tctl_table *tb = tctl_table_new(TN_ARRAY_LEN(headings), headings);
	size_t i;
	json_t *a;
	json_array_foreach(list, i, a)
		tctl_table_row(
		    tb, (const char *[]){ tctl_text(a, "transport"), tctl_text(a, "operation"),
					  tctl_text(a, "attempts"), tctl_text(a, "completed"), tctl_text(a, "failed"),
					  tctl_text(a, "timeout"), tctl_text(a, "canceled"), tctl_text(a, "inflight"),
					  tctl_bytes_text(tctl_u64(a, "bytes")), tctl_time_text(tctl_u64(a, "p50_ns")),
					  tctl_time_text(tctl_u64(a, "p99_ns")) });
	if (json_array_size(list) > 0) {
		fputc('\n', to);
		tctl_table_print(tb, to);
	}
	tctl_table_free(tb);
}

static void print_inflight(const json_t *doc, bool alive, FILE *to)
{
	const json_t *a = json_object_get(doc, "admission"), *streams = json_object_get(doc, "streams");
	size_t i;
	json_t *s;
	heading(to, alive ? "in flight" : "in flight at the end");
	fprintf(to, "admission  %s queued, %s with transports (%s)\n",
		tctl_count_text(a, "queued_owners", "owner", "owners"),
		tctl_text(a, "dispatched_owners"), tctl_bytes_text(tctl_u64(a, "dispatched_bytes")));
	json_array_foreach(streams, i, s)
		fprintf(to,
			"%-9s  %s, %s (%s), %s waiting for a lane; %s sent again in its life\n",
			tctl_text(s, "transport"), tctl_count_text(s, "connections", "connection", "connections"),
			tctl_count_text(s, "operations", "operation", "operations"),
			tctl_bytes_text(tctl_u64(s, "bytes")), tctl_text(s, "queued"),
			tctl_count_text(s, "retransmissions", "segment", "segments"));
}

static void print_failures(const json_t *doc, FILE *to)
{
	static const char *const headings[] = { ">FAILED", "TRANSPORT", "PHASE", "REASON" };
	const json_t *list = json_object_get(doc, "failures");
	struct tctl_table *tb = tctl_table_new(TN_ARRAY_LEN(headings), headings);
	const char *key;
	size_t i;
	json_t *f, *v;
	json_array_foreach(list, i, f)
		tctl_table_row(tb, (const char *[]){ tctl_text(f, "count"), tctl_text(f, "transport"),
						     tctl_text(f, "phase"), tctl_text(f, "reason") });
	if (json_array_size(list) > 0) {
		heading(to, "why requests did not complete");
		tctl_table_print(tb, to);
	}
	tctl_table_free(tb);
	json_object_foreach((json_t *)(uintptr_t)json_object_get(doc, "rejections"), key, v)
		fprintf(to, "%" JSON_INTEGER_FORMAT " requests refused at submit: %s\n", json_integer_value(v), key);
}

static void print_equations(const json_t *eq, FILE *to)
{
	static const char *const headings[] = { "NO", "EQUATION", "OF", ">LEFT", ">RIGHT" };
	size_t i;
	json_t *b;
	heading(to, "counters");
	if (tctl_u64(eq, "wrong") == 0) {
		fputs("every equation between them holds\n", to);
		return;
	}
	struct tctl_table *tb = tctl_table_new(TN_ARRAY_LEN(headings), headings);
	json_array_foreach(json_object_get(eq, "breaches"), i, b)
		tctl_table_row(tb, (const char *[]){ tctl_text(b, "number"), tctl_text(b, "equation"),
						     tctl_text(b, "of"), tctl_text(b, "left"), tctl_text(b, "right") });
	fprintf(to, "%s%s wrong%s (off by a few: it died between two counts; by more: a bug in tent)\n",
		tctl_style(to, TCTL_WARN), tctl_count_text(eq, "wrong", "equation", "equations"), tctl_style(to, TCTL_PLAIN));
	tctl_table_print(tb, to);
	tctl_table_free(tb);
}

/* ---- events ---- */

static const char *from_end(const json_t *e, char *out, size_t cap)
{
	int64_t us = json_integer_value(json_object_get(e, "us_from_end"));
	char sign = us < 0 ? '-' : '+';
	uint64_t size = us < 0 ? 0 - (uint64_t)us : (uint64_t)us;
	snprintf(out, cap, "%c%s", sign, tctl_time_text(size * TN_NS_PER_US));
	return out;
}

static void print_events(const json_t *events, FILE *to)
{
	static const char *const headings[] = { "TIME (UTC)", ">FROM END", "THREAD", "LEVEL", "EVENT", "WHAT" };
	struct tctl_table *tb = tctl_table_new(TN_ARRAY_LEN(headings), headings);
	const json_t *list = json_object_get(events, "last");
	size_t i;
	json_t *e;
	json_array_foreach(list, i, e) {
		char what[128], distance[40];
		const char *ts = tctl_text(e, "ts"), *clock = strchr(ts, 'T');
		tctl_event_what(e, what, sizeof what);
		tctl_table_row(tb,
			       (const char *[]){ clock != NULL ? clock + 1 : ts, from_end(e, distance, sizeof distance),
						 tctl_text(e, "thread"), tctl_text(e, "level"),
						 tctl_event_name(e), what });
	}
	heading(to, "last events");
	if (json_array_size(list) > 0)
		tctl_table_print(tb, to);
	fprintf(to, "%zu shown of %s written; %s were overwritten by later ones\n", json_array_size(list),
		tctl_text(events, "written"), tctl_text(events, "overwritten"));
	tctl_table_free(tb);
}

void tctl_postmortem_print(const json_t *doc, FILE *to)
{
	bool alive = json_is_true(json_object_get(doc, "alive"));
	print_who(doc, to);
	print_others(json_object_get(doc, "others"), to);
	print_workers(json_object_get(doc, "workers"), alive, to);
	if (json_is_true(json_object_get(doc, "numbers"))) {
		print_requests(json_object_get(doc, "requests"), to);
		print_attempts(json_object_get(doc, "attempts"), to);
		print_inflight(doc, alive, to);
		print_failures(doc, to);
		print_equations(json_object_get(doc, "equations"), to);
	}
	print_events(json_object_get(doc, "events"), to);
}
