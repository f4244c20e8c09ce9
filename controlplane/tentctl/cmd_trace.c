/* SPDX-License-Identifier: Apache-2.0
 * `tentctl trace`: everything that is kept of one request, or of all requests of one trace: the span of the transfer, under
 * it its attempts where they began and the events where they happened, in the order of time. */
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/message.h"
#include "controlplane/tentctl/event_text.h"

#define RECORDS_MAX 4096u /* of a trace of very many requests the oldest */

/* A record and where it stands: a span where it began. */
struct row { uint64_t at_ns; json_t *record; };

struct group { /* of one request */
	uint64_t engine, request;
	json_t *root;      /* its span; NULL: not kept. Borrowed, like all records */
	struct row *row;
	size_t cnt;
};

static bool is_attempt(const json_t *e) { return json_object_get(e, "parent_span_id") != NULL; }

static uint64_t took_ns(const json_t *e)
{
	return (uint64_t)(json_number_value(json_object_get(e, "duration_us")) * 1000);
}

static uint64_t at_ns(const json_t *e)
{
	uint64_t end = tctl_u64(e, "mono_ns");
	return tctl_event_is_span(e) ? end - TN_MIN(end, took_ns(e)) : end;
}

/* All records of the id; new reference, NULL: printed. */
static json_t *collect(struct tctl *t, const char *id, bool *cut_out)
{
	json_t *all = json_array(), *page;
	uint64_t after = 0;
	bool more = true;
	while (more && json_array_size(all) < RECORDS_MAX) {
		json_t *body = json_object();
		tn_json_put_str(body, "id", id);
		tn_json_put_u64(body, "after", after);
		if (tctl_ask(t, "trace", body, &page) != TCTL_OK) {
			json_decref(all);
			return NULL;
		}
		json_array_extend(all, json_object_get(page, "records"));
		more = json_is_true(json_object_get(page, "more")) && tctl_u64(page, "next") > after;
		after = tctl_u64(page, "next");
		json_decref(page);
	}
	*cut_out = more;
	return all;
}

/* ---- groups ---- */

static int by_time(const void *a, const void *b)
{
	const struct row *x = a, *y = b;
	if (x->at_ns != y->at_ns)
		return x->at_ns < y->at_ns ? -1 : 1;
	uint64_t n = tctl_u64(x->record, "number"), m = tctl_u64(y->record, "number");
	return (n > m) - (n < m);
}

static struct group *group_of(struct group *groups, size_t *cnt, uint64_t engine, uint64_t request, size_t records)
{
	for (size_t i = *cnt; i > 0; i--)
		if (groups[i - 1].engine == engine && groups[i - 1].request == request)
			return &groups[i - 1];
	struct group *g = &groups[(*cnt)++];
	*g = (struct group){ .engine = engine, .request = request, .row = calloc(records, sizeof *g->row) };
	return g;
}

/* request: 0, each record under its own; else all of them are that one's, also where it was merged into another. */
static size_t make_groups(const json_t *all, uint64_t request, struct group *groups)
{
	size_t cnt = 0, i, records = json_array_size(all);
	json_t *e;
	json_array_foreach(all, i, e) {
		uint64_t own = tctl_u64(e, "request_id");
		struct group *g = group_of(groups, &cnt, tctl_u64(e, "engine"), request != 0 ? request : own, records);
		if (g->row == NULL)
			break;
		if (tctl_event_is_span(e) && !is_attempt(e) && own == g->request)
			g->root = e;
		else
			g->row[g->cnt++] = (struct row){ at_ns(e), e };
	}
	for (i = 0; i < cnt; i++)
		if (groups[i].row != NULL)
			qsort(groups[i].row, groups[i].cnt, sizeof *groups[i].row, by_time);
	return cnt;
}

/* ---- JSON ---- */

static json_t *group_json(const struct group *g)
{
	json_t *j = json_object(), *attempts = json_array(), *events = json_array();
	tn_json_put_u64(j, "request_id", g->request);
	tn_json_put_u64(j, "engine", g->engine);
	if (g->root != NULL)
		json_object_set(j, "span", g->root);
	else
		json_object_set_new(j, "span", json_null());
	for (size_t i = 0; i < g->cnt; i++)
		json_array_append(tctl_event_is_span(g->row[i].record) ? attempts : events, g->row[i].record);
	json_object_set_new(j, "attempts", attempts);
	json_object_set_new(j, "events", events);
	return j;
}

static void print_as_json(const struct group *groups, size_t cnt, bool cut)
{
	json_t *doc = json_object(), *list = json_array();
	for (size_t i = 0; i < cnt; i++)
		json_array_append_new(list, group_json(&groups[i]));
	json_object_set_new(doc, "requests", list);
	tn_json_put_bool(doc, "complete", !cut);
	tctl_print_json(doc);
	json_decref(doc);
}

/* ---- for people ---- */

/* "path_timeout after 3s, post/timeout" */
static void print_end(const json_t *e)
{
	printf("%s after %s", tctl_text(e, "status"), tctl_time_text(took_ns(e)));
	if (json_object_get(e, "phase") != NULL)
		printf(", %s/%s", tctl_text(e, "phase"), tctl_text(e, "reason"));
}

static void print_row(const struct row *r, uint64_t start_ns)
{
	char what[256], when[40];
	const json_t *e = r->record;
	bool before = r->at_ns < start_ns;
	snprintf(when, sizeof when, "%c%s", before ? '-' : '+', tctl_time_text(before ? start_ns - r->at_ns : r->at_ns - start_ns));
	if (is_attempt(e)) {
		printf("  %-10s |- attempt %s over %s: ", when, tctl_text(e, "attempt_id"), tctl_text(e, "transport"));
		print_end(e);
		printf(" (kept: %s)\n", tctl_text(e, "retention"));
		return;
	}
	json_t *brief = json_copy((json_t *)(uintptr_t)e);
	json_object_del(brief, "request_id"); /* stands above */
	tctl_event_what(brief, what, sizeof what);
	json_decref(brief);
	bool of_attempt = strcmp(tctl_event_name(e), "transport.attempt_failed") == 0;
	printf("  %-10s %s %s %s\n", when, of_attempt ? "|   " : "|-", tctl_event_name(e), what);
}

static void print_group(const struct group *g)
{
	const json_t *any = g->root != NULL ? g->root : g->row[0].record;
	uint64_t start_ns = g->root != NULL ? at_ns(g->root) : g->row[0].at_ns;
	printf("request %llu, batch %s, task %s, trace %s\n", (unsigned long long)g->request, tctl_text(any, "batch_id"),
	       tctl_text(any, "task_id"), tctl_text(any, "trace_id"));
	if (g->root != NULL) {
		printf("  %s  %s over %s: ", tctl_text(g->root, "start"), tctl_text(g->root, "operation"),
		       tctl_text(g->root, "transport"));
		print_end(g->root);
		printf(" (kept: %s)\n", tctl_text(g->root, "retention"));
	} else {
		printf("  %s  not ended, or its span was not kept (no failure, not slow, not sampled)\n", tctl_text(any, "ts"));
	}
	for (size_t i = 0; i < g->cnt; i++)
		print_row(&g->row[i], start_ns);
}

static void print_for_people(const struct group *groups, size_t cnt, bool cut)
{
	for (size_t i = 0; i < cnt; i++) {
		if (i > 0)
			putchar('\n');
		print_group(&groups[i]);
	}
	if (cut)
		printf("\nand more: the first %u records are shown\n", RECORDS_MAX);
}

static int tell(struct tctl *t, const json_t *all, uint64_t request, bool cut)
{
	size_t records = json_array_size(all), cnt;
	struct group *groups = calloc(records, sizeof *groups);
	int rc = TCTL_OK;
	cnt = groups != NULL ? make_groups(all, request, groups) : 0;
	if (cnt == 0 || groups[cnt - 1].row == NULL)
		rc = tctl_fail(t, TN_NO_MEMORY, "no memory");
	else if (t->json)
		print_as_json(groups, cnt, cut);
	else
		print_for_people(groups, cnt, cut);
	for (size_t i = 0; i < cnt; i++)
		free(groups[i].row);
	free(groups);
	return rc;
}

int tctl_cmd_trace(struct tctl *t, int argc, char **argv)
{
	bool cut = false;
	if (!tctl_args(t, &argc, argv, NULL, 1, 1))
		return t->exit_code;
	const char *id = argv[1];
	size_t len = strlen(id);
	bool trace = len == 32 && strspn(id, "0123456789abcdef") == len;
	if (!trace && (len > 19 || strspn(id, "0123456789") != len))
		return tctl_bad_usage(t, "%s: neither the number of a request nor the 32 hexadecimal digits of a trace", id);
	json_t *all = collect(t, id, &cut);
	if (all == NULL)
		return TCTL_FAILED;
	int rc;
	if (json_array_size(all) == 0)
		rc = tctl_fail(t, TN_NOT_FOUND,
			       "nothing is kept of %s %s: only of requests that failed, were slow, hung or were sampled, and of the "
			       "latest of them",
			       trace ? "trace" : "request", id);
	else
		rc = tell(t, all, trace ? 0 : strtoull(id, NULL, 10), cut);
	json_decref(all);
	return rc;
}
