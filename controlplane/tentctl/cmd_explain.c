/* SPDX-License-Identifier: Apache-2.0
 * `tentctl explain PEER|SEGMENT|PEER/SEGMENT`: which transports would carry a request, in order, why not the others,
 * and everything that stands between here and there. The conclusion comes first. */
#include <string.h>

#include "common/clock.h"
#include "common/message.h"
#include "controlplane/tentctl/style.h"
#include "controlplane/tentctl/tentctl.h"

static const char *ms_text(const json_t *j, const char *key)
{
	return tctl_time_text(tctl_u64(j, key) * TN_NS_PER_MS);
}

static bool is(const json_t *j, const char *key, const char *value)
{
	const char *s = json_string_value(json_object_get(j, key));
	return s != NULL && strcmp(s, value) == 0;
}

static bool yes(const json_t *j, const char *key) { return json_is_true(json_object_get(j, key)); }

/* The first transport of this verdict; NULL: none. */
static const json_t *judged(const json_t *dp, const char *verdict)
{
	size_t i;
	json_t *t;
	json_array_foreach(json_object_get(dp, "transports"), i, t)
		if (is(t, "verdict", verdict))
			return t;
	return NULL;
}

/* ---- the conclusion ---- */

static const char *segment_obstacle(const json_t *a, char *out, size_t cap)
{
	const json_t *s = json_object_get(a, "segment_state");
	out[0] = '\0';
	if (is(s, "cache", "refused"))
		snprintf(out, cap, "%s says of segment %s: %s (asked again in %s)",
			 tctl_text(json_object_get(a, "peer"), "name"), tctl_text(a, "segment"), tctl_text(s, "detail"),
			 ms_text(s, "retry_ms"));
	return out;
}

static void print_conclusion(const json_t *a)
{
	const json_t *dp = json_object_get(a, "data_plane"), *t = judged(dp, "use"), *wait = judged(dp, "wait"), *peer = json_object_get(a, "peer");
	char stop[400], gone[400];
	bool ready = t != NULL && is(t, "why", "ready");
	tctl_peer_obstacle(peer, stop, sizeof stop); /* what stops one that has no lanes yet */
	segment_obstacle(a, gone, sizeof gone);
	enum tctl_style style = ready && gone[0] == '\0' ? TCTL_GOOD : t != NULL && stop[0] == '\0' && gone[0] == '\0' ?
								    TCTL_WARN : TCTL_BAD;
	if (is(dp, "state", "paused"))
		printf("%spaused: requests wait until tentctl resume; then%s\n", tctl_style(stdout, TCTL_WARN), tctl_style(stdout, TCTL_PLAIN));
	fputs(tctl_style(stdout, style), stdout);
	if (!json_is_object(dp))
		printf("no data plane: nothing moves (%s)", tctl_text(a, "data_plane_error"));
	else if (t == NULL && wait != NULL)
		printf("requests wait for %s: %s", tctl_text(wait, "transport"), tctl_text(wait, "detail"));
	else if (t == NULL)
		printf("no transport would carry it");
	else if (ready)
		printf("%s carries it: %s", tctl_text(t, "transport"), tctl_text(t, "detail"));
	else
		printf("%s would carry it: %s", tctl_text(t, "transport"), tctl_text(t, "detail"));
	fputs(tctl_style(stdout, TCTL_PLAIN), stdout);
	putchar('\n');
	if (stop[0] != '\0')
		printf("%s%s%s%s\n", tctl_style(stdout, ready ? TCTL_WARN : TCTL_BAD),
		       ready ? "but new opens fail: " : "but ", stop, tctl_style(stdout, TCTL_PLAIN));
	if (t != NULL && is(t, "why", "address_refused"))
		printf("the ticket is good, so this is no matter of keys: over there, add that address to data_addresses of this\n"
		       "host's entry in peers, or here, let lanes come from an allowed one with transports/tcp/bind_address\n");
	if (gone[0] != '\0')
		printf("%sbut %s%s\n", tctl_style(stdout, TCTL_BAD), gone, tctl_style(stdout, TCTL_PLAIN));
	if (yes(a, "also_segment_here"))
		printf("(a segment of this host has the same name; this is about the peer)\n");
}

/* ---- the parts ---- */

void tctl_print_transports(const json_t *list)
{
	static const char *const headings[] = { "TRANSPORT", "VERDICT", "WHY", "DETAIL" };
	struct tctl_table *tb = tctl_table_new(TN_ARRAY_LEN(headings), headings);
	size_t i;
	json_t *t;
	json_array_foreach(list, i, t)
		tctl_table_row(tb, (const char *[]){ tctl_text(t, "transport"), tctl_text(t, "verdict"),
						     tctl_text(t, "why"), tctl_text(t, "detail") });
	putchar('\n');
	tctl_table_print(tb, stdout);
	tctl_table_free(tb);
}

static void print_policy(const json_t *dp)
{
	const json_t *p = json_object_get(dp, "policy"), *w = json_object_get(dp, "windows");
	size_t i;
	json_t *v;
	printf("\npolicy     %s for %s, priority %s, intent %s:", tctl_text(p, "name"),
	       tctl_bytes_text(tctl_u64(p, "bytes")), tctl_text(p, "priority"), tctl_text(p, "intent"));
	json_array_foreach(json_object_get(p, "order"), i, v)
		printf("%s %s", i > 0 ? "," : "", json_string_value(v));
	printf("%s\n", yes(p, "none_matched") ? " (no configured policy matched)" : "");
	printf("windows    per worker %s and %s owners to one target, %s and %s to all; %s",
	       tctl_bytes_text(tctl_u64(w, "target_bytes")), tctl_text(w, "target_owners"),
	       tctl_bytes_text(tctl_u64(w, "worker_bytes")), tctl_text(w, "worker_owners"), 
	       tctl_count_text(w, "workers", "worker", "workers"));
	if (json_object_get(w, "inflight") != NULL)
		printf("; in flight there: %s (%s)", tctl_text(w, "inflight"),
		       tctl_bytes_text(tctl_u64(w, "inflight_bytes")));
	putchar('\n');
}

static void print_peer(const json_t *p, const json_t *dp)
{
	const json_t *known = json_object_get(dp, "peer");
	size_t i;
	json_t *v;
	printf("\npeer       %s, control plane at %s ", tctl_text(p, "name"), tctl_text(p, "address"));
	if (yes(p, "answers"))
		printf("answers in %s\n", tctl_time_text(tctl_u64(p, "rtt_us") * TN_NS_PER_US));
	else
		printf("does not answer (%s; last heard %s%s)\n", tctl_text(p, "error"),
		       json_object_get(p, "heard_ms_ago") != NULL ? ms_text(p, "heard_ms_ago") : "never",
		       json_object_get(p, "heard_ms_ago") != NULL ? " ago" : "");
	printf("session    %s%s\n", tctl_text(p, "session"),
	       json_object_get(p, "session") != NULL ? "" : " (no data plane of it is known)");
	if (is(p, "ticket", "failed"))
		printf("tickets    it gave us none: %s (%s); asked again in %s", tctl_text(p, "ticket_error"),
		       tctl_text(p, "ticket_detail"), ms_text(p, "ticket_retry_ms"));
	else
		printf("tickets    %s", is(p, "ticket", "held")     ? "it admits our lanes"
					: is(p, "ticket", "asking") ? "being asked for"
								    : "none asked for yet (the first open does)");
	printf("; %s\n", yes(p, "holds_our_ticket") ? "we admit its lanes" : "it has none of ours");
	printf("addresses ");
	json_array_foreach(json_object_get(known, "endpoints"), i, v)
		printf("%s %s", i > 0 ? "," : "", json_string_value(v));
	printf("%s\n", json_array_size(json_object_get(known, "endpoints")) > 0 ? "" : " none known");
	if (tctl_u64(known, "lanes_in") > 0)
		printf("incoming   %s from it (lanes, and control lanes)\n",
		       tctl_count_text(known, "lanes_in", "connection", "connections"));
	if ((v = json_object_get(known, "refused_in")) != NULL)
		printf("refused    %s of it, the last one %s ago: its ticket is good, but it came from %s; if that is "
		       "right, add it to peers/%s/data_addresses here\n",
		       tctl_count_text(v, "count", "lane", "lanes"), ms_text(v, "ms_ago"), tctl_text(v, "address"), tctl_text(p, "name"));
}

static void print_path(const json_t *p)
{
	size_t i;
	json_t *a;
	printf("worker %-3s %s: %s of %s", tctl_text(p, "worker"), tctl_text(p, "transport"),
	       tctl_text(p, "lanes"), tctl_count_text(p, "lanes_most", "lane", "lanes"));
	if (json_object_get(p, "up_ms") != NULL)
		printf(", up for %s", ms_text(p, "up_ms"));
	if (json_object_get(p, "down_ms") != NULL)
		printf(", down for %s", ms_text(p, "down_ms"));
	if (tctl_u64(p, "opening") > 0)
		printf(", %s being opened", tctl_text(p, "opening"));
	if (yes(p, "control_lane"))
		printf(", control lane up");
	if (yes(p, "waits_for_peer"))
		printf(", waits for a newer session or ticket");
	if (tctl_u64(p, "failed_in_a_row") > 0)
		printf(", %s in a row", tctl_count_text(p, "failed_in_a_row", "failure", "failures"));
	const char *rail = json_string_value(json_object_get(p, "rail"));
	if (rail != NULL && strcmp(rail, "up") != 0)
		printf(", rail %s", rail);
	if (json_object_get(p, "rail_ms") != NULL)
		printf(" for %s", ms_text(p, "rail_ms"));
	if (json_object_get(p, "next_try_ms") != NULL)
		printf(", next try in %s", ms_text(p, "next_try_ms"));
	putchar('\n');
	json_array_foreach(json_object_get(p, "addresses"), i, a) {
		if (json_object_get(a, "status") == NULL)
			continue;
		printf("           %s: %s, %s ago\n", tctl_text(a, "address"),
		       is(a, "status", "ok") ? "connected" : tctl_text(a, "meaning"), ms_text(a, "ms_ago"));
	}
}

static void print_segment(const json_t *a)
{
	const json_t *s = json_object_get(a, "segment_state"),
		     *o = json_object_get(json_object_get(a, "data_plane"), "opened");
	printf("\nsegment    %s: ", tctl_text(a, "segment"));
	if (is(a, "target", "segment"))
		printf("published here, %s, generation %s, of user %s", tctl_bytes_text(tctl_u64(s, "bytes")),
		       tctl_text(s, "generation"), tctl_text(s, "uid"));
	else if (is(s, "cache", "held"))
		printf("descriptor cached, %s, generation %s%s", tctl_bytes_text(tctl_u64(s, "bytes")),
		       tctl_text(s, "generation"),
		       yes(s, "current") ? "" : " (of another session of the peer: it will be fetched again)");
	else if (is(s, "cache", "refused"))
		printf("the peer says %s: %s", tctl_text(s, "error"), tctl_text(s, "detail"));
	else
		printf("%s", is(s, "cache", "fetching") ? "being fetched" : "not fetched yet (the first open does)");
	printf("\n           %s open on this host",
	       o != NULL ? tctl_count_text(o, "handles", "handle", "handles") : "0 handles");
	if (tctl_u64(o, "refreshing") > 0)
		printf(", %s look for a newer version", tctl_text(o, "refreshing"));
	if (tctl_u64(o, "lost") > 0)
		printf(", %s lost it", tctl_text(o, "lost"));
	putchar('\n');
}

static void print_answer(const json_t *a)
{
	const json_t *dp = json_object_get(a, "data_plane");
	size_t i;
	json_t *p;
	print_conclusion(a);
	if (json_is_object(dp)) {
		tctl_print_transports(json_object_get(dp, "transports"));
		print_policy(dp);
	}
	if (json_object_get(a, "peer") != NULL)
		print_peer(json_object_get(a, "peer"), dp);
	json_array_foreach(json_object_get(dp, "paths"), i, p)
		print_path(p);
	if (json_object_get(a, "segment") != NULL)
		print_segment(a);
}

int tctl_cmd_explain(struct tctl *t, int argc, char **argv)
{
	const char *priority = NULL, *intent = NULL;
	uint64_t bytes = 0;
	const struct tctl_option options[] = {
		{ "bytes", 'b', TCTL_BYTES, &bytes },
		{ "priority", 'p', TCTL_TEXT, &priority },
		{ "intent", '\0', TCTL_TEXT, &intent },
		{ NULL, '\0', TCTL_FLAG, NULL },
	};
	json_t *answer, *body;
	if (!tctl_args(t, &argc, argv, options, 1, 1))
		return t->exit_code;
	if (strlen(argv[1]) >= TCTL_REF_MAX)
		return tctl_bad_usage(t, "\"%.60s...\" is too long for PEER, SEGMENT or PEER/SEGMENT", argv[1]);
	body = json_object();
	if (tn_json_put_str(body, "target", argv[1]) != TN_OK) {
		json_decref(body);
		return tctl_bad_usage(t, "the name is not UTF-8");
	}
	if (bytes > 0)
		tn_json_put_u64(body, "bytes", bytes);
	if (priority != NULL)
		tn_json_put_str(body, "priority", priority);
	if (intent != NULL)
		tn_json_put_str(body, "intent", intent);
	if (tctl_ask(t, "explain", body, &answer) != TCTL_OK)
		return TCTL_FAILED;
	if (t->json)
		tctl_print_json(answer);
	else
		print_answer(answer);
	json_decref(answer);
	return TCTL_OK;
}
