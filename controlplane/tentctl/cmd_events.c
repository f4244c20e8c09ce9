/* SPDX-License-Identifier: Apache-2.0
 * `tentctl events`: the records that the control plane keeps, and those that come, through a filter. Records have numbers:
 * what is missing between two is told where it is missing. */
#include <string.h>

#include "common/clock.h"
#include "common/message.h"
#include "controlplane/tentctl/event_text.h"

#define COUNT_DEFAULT 50u
#define POLL_NS (200 * TN_NS_PER_MS)   /* --follow: between two questions when nothing more waits */
#define AWAY_NS (1 * TN_NS_PER_S)      /* ... while the control plane is away */

struct events {
	struct tctl *t;
	struct tctl_event_filter filter;
	uint64_t count, after;
	char session[TN_ID128_HEX];    /* of the control plane whose numbers these are; "": not asked yet */
	uint64_t engine, mono_ns;      /* of the youngest record shown */
	bool away;
};

static void show(struct events *v, const json_t *e)
{
	char what[256];
	v->engine = tctl_u64(e, "engine");
	v->mono_ns = tctl_u64(e, "mono_ns");
	if (v->t->json) {
		tctl_print_json_line(e);
		return;
	}
	tctl_event_what(e, what, sizeof what);
	const char *trace = json_string_value(json_object_get(e, "trace_id"));
	printf("%s %-5s %s %s%s%s\n", tctl_text(e, "ts"), tctl_text(e, "level"), tctl_event_name(e), what,
	       trace != NULL ? " trace " : "", trace != NULL ? tctl_text(e, "trace_id") : "");
}

static void tell_missed(const struct events *v, uint64_t missed, const char *text)
{
	if (missed == 0)
		return;
	if (v->t->json)
		printf("{\"missed\":%llu}\n", (unsigned long long)missed);
	else
		printf("-- %llu %s\n", (unsigned long long)missed, text);
}

/* One page; new reference. */
static tn_status ask(struct events *v, json_t **page_out, char *err, size_t cap)
{
	json_t *body = json_object();
	tn_json_put_u64(body, "after", v->after);
	return tctl_query(v->t, "events", body, page_out, err, cap);
}

/* Another control plane: its numbers are others. True: the page is void. */
static bool restarted(struct events *v, const json_t *page)
{
	const char *session = tctl_text(page, "session");
	bool other = v->session[0] != '\0' && strcmp(v->session, session) != 0;
	snprintf(v->session, sizeof v->session, "%s", session);
	if (other)
		v->after = 0;
	return other;
}

/* To the next page. False: there is none now. */
static bool turn(struct events *v, const json_t *page)
{
	uint64_t before = v->after;
	v->after = tctl_u64(page, "next");
	return json_is_true(json_object_get(page, "more")) && v->after > before;
}

/* All that is kept; of what is wanted the last `count` are shown. */
static int history(struct events *v)
{
	json_t *last = json_array(), *page, *e;
	uint64_t missed = 0;
	char err[512];
	bool more = true;
	size_t i;
	while (more && !tctl_stopped()) {
		tn_status st = ask(v, &page, err, sizeof err);
		if (st != TN_OK) {
			json_decref(last);
			return tctl_fail(v->t, st, "%s", err);
		}
		if (restarted(v, page)) {
			json_array_clear(last);
			missed = 0;
			json_decref(page);
			continue;
		}
		json_array_foreach(json_object_get(page, "records"), i, e) {
			if (tctl_event_wanted(&v->filter, e))
				json_array_append(last, e);
			if (json_array_size(last) > v->count)
				json_array_remove(last, 0);
		}
		missed += tctl_u64(page, "missed");
		more = turn(v, page);
		json_decref(page);
	}
	tell_missed(v, missed, "older records are no longer kept, or were lost before they were read");
	json_array_foreach(last, i, e)
		show(v, e);
	json_decref(last);
	return TCTL_OK;
}

/* A control plane that started anew reads what its data plane still has: that is known here up to the last one shown. */
static bool shown_before(const struct events *v, const json_t *e)
{
	return tctl_u64(e, "engine") == v->engine && tctl_u64(e, "mono_ns") <= v->mono_ns;
}

static void show_page(struct events *v, const json_t *page, bool anew)
{
	size_t i;
	json_t *e;
	if (!anew)
		tell_missed(v, tctl_u64(page, "missed"), "records were lost here");
	json_array_foreach(json_object_get(page, "records"), i, e)
		if (tctl_event_wanted(&v->filter, e) && !(anew && shown_before(v, e)))
			show(v, e);
}

static void follow(struct events *v)
{
	bool anew = false;
	char err[512];
	while (tctl_flush(v->t) && !tctl_stopped()) {
		json_t *page;
		if (ask(v, &page, err, sizeof err) != TN_OK) {
			if (!v->away && !tctl_stopped())
				fprintf(stderr, "tentctl: %s; waiting\n", err);
			v->away = true;
			tctl_stop_sleep(-1, AWAY_NS);
			continue;
		}
		v->away = false;
		if (restarted(v, page)) {
			fputs("tentctl: the control plane was started anew; records may be missing here\n", stderr);
			anew = true;
			json_decref(page);
			continue;
		}
		show_page(v, page, anew);
		bool more = turn(v, page);
		anew &= more;
		json_decref(page);
		if (!more)
			tctl_stop_sleep(-1, POLL_NS);
	}
}

int tctl_cmd_events(struct tctl *t, int argc, char **argv)
{
	struct events v = { .t = t, .count = COUNT_DEFAULT };
	struct tctl_event_filter *f = &v.filter;
	bool following = false;
	const struct tctl_option options[] = {
		{ "follow", 'f', TCTL_FLAG, &following },
		{ "count", 'n', TCTL_COUNT, &v.count },
		{ "since", '\0', TCTL_TIME, &f->since_ns },
		{ "spans", '\0', TCTL_FLAG, &f->spans },
		{ "event", '\0', TCTL_TEXT, &f->event },
		{ "transport", '\0', TCTL_TEXT, &f->transport },
		{ "operation", '\0', TCTL_TEXT, &f->operation },
		{ "phase", '\0', TCTL_TEXT, &f->phase },
		{ "reason", '\0', TCTL_TEXT, &f->reason },
		{ "status", '\0', TCTL_TEXT, &f->status },
		{ "request", '\0', TCTL_TEXT, &f->request },
		{ "trace", '\0', TCTL_TEXT, &f->trace },
		{ NULL, '\0', TCTL_FLAG, NULL },
	};
	if (!tctl_args(t, &argc, argv, options, 0, 0) || !tctl_event_filter_check(t, f))
		return t->exit_code;
	if (tctl_runtime_dir(t) == NULL)
		return TCTL_FAILED;
	tctl_stop_catch();
	int rc = history(&v);
	f->since_ns = 0; /* what comes is young */
	if (rc == TCTL_OK && following)
		follow(&v);
	return rc;
}
