/* SPDX-License-Identifier: Apache-2.0
 * `tentctl request show`: how one request stands now - where it is, what it waits for, which transport carries it and why
 * not the others - or how it ended. */
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/message.h"
#include "controlplane/tentctl/event_text.h"

static bool has(const json_t *j, const char *key) { return json_object_get(j, key) != NULL; }

static const char *us_text(const json_t *j, const char *key) { return tctl_time_text(tctl_u64(j, key) * TN_NS_PER_US); }

/* Sentences for the words of `waits_for`. */
static const char *wait_text(const json_t *j)
{
	static const char *const texts[][2] = {
		{ "backoff", "the next attempt" },
		{ "rail", "a way to its target: all fail too often and cool down" },
		{ "descriptor", "a newer descriptor of the segment" },
		{ "peer", "a newer session or ticket of the peer" },
	};
	const char *word = tctl_text(j, "waits_for");
	for (size_t i = 0; i < TN_ARRAY_LEN(texts); i++)
		if (strcmp(word, texts[i][0]) == 0)
			return texts[i][1];
	return word;
}

static void print_where(const json_t *j)
{
	printf("request %s: %s of %s at %s %s\n", tctl_text(j, "request_id"), tctl_text(j, "operation"),
	       tctl_bytes_text(tctl_u64(j, "bytes")), has(j, "peer") ? "host" : "this", has(j, "peer") ? tctl_text(j, "peer") : "host");
	printf("state      %s, phase %s\n", tctl_text(j, "state"), tctl_text(j, "phase"));
	if (has(j, "waits_for")) {
		printf("waits for  %s", wait_text(j));
		if (has(j, "wait_ms"))
			printf(", %s more", tctl_time_text(tctl_u64(j, "wait_ms") * TN_NS_PER_MS));
		putchar('\n');
	}
	printf("age        %s", us_text(j, "age_us"));
	printf(", %s to its deadline\n", us_text(j, "deadline_us"));
}

static void print_attempts(const json_t *j)
{
	const json_t *last = json_object_get(j, "last_failure");
	if (has(j, "attempt_id")) {
		printf("attempt    %s over %s for %s", tctl_text(j, "attempt_id"), tctl_text(j, "transport"), us_text(j, "attempt_us"));
		printf(", %s of ", tctl_bytes_text(tctl_u64(j, "moved_bytes")));
		printf("%s moved\n", tctl_bytes_text(tctl_u64(j, "task_bytes")));
	}
	printf("attempts   %s, failovers %s", tctl_text(j, "attempts"), tctl_text(j, "failovers"));
	if (last != NULL)
		printf("; the last failure: %s, %s/%s", tctl_text(last, "status"), tctl_text(last, "phase"), tctl_text(last, "reason"));
	putchar('\n');
}

static void print_live(const json_t *j)
{
	print_where(j);
	if (has(j, "task_id"))
		print_attempts(j);
	if (tctl_u64(j, "task_requests") > 1)
		printf("merged     %s requests, %s in all\n", tctl_text(j, "task_requests"), tctl_bytes_text(tctl_u64(j, "task_bytes")));
	printf("known as   task %s, batch %s, priority %s, trace %s\n", has(j, "task_id") ? tctl_text(j, "task_id") : "-",
	       has(j, "batch_id") ? tctl_text(j, "batch_id") : "-", tctl_text(j, "priority"), tctl_text(j, "trace_id"));
	if (has(j, "transports"))
		tctl_print_transports(json_object_get(j, "transports"));
}

static void print_ended(const json_t *j)
{
	char what[256];
	const json_t *end = json_object_get(j, "end");
	tctl_event_what(end, what, sizeof what);
	printf("request %s has ended: %s\n", tctl_text(j, "request_id"), tctl_text(end, "status"));
	printf("%s %s %s\n", tctl_text(end, "ts"), tctl_event_name(end), what);
	printf("tentctl trace %s says more\n", tctl_text(j, "request_id"));
}

int tctl_cmd_request_show(struct tctl *t, int argc, char **argv)
{
	json_t *answer, *body;
	if (!tctl_args(t, &argc, argv, NULL, 1, 1))
		return t->exit_code;
	size_t len = strlen(argv[1]);
	if (len == 0 || len > 19 || strspn(argv[1], "0123456789") != len || strtoull(argv[1], NULL, 10) == 0)
		return tctl_bad_usage(t, "%s: not the number of a request", argv[1]);
	body = json_object();
	tn_json_put_u64(body, "request_id", strtoull(argv[1], NULL, 10));
	if (tctl_ask(t, "request", body, &answer) != TCTL_OK)
		return TCTL_FAILED;
	if (t->json)
		tctl_print_json(answer);
	else if (json_is_true(json_object_get(answer, "live")))
		print_live(answer);
	else
		print_ended(answer);
	json_decref(answer);
	return TCTL_OK;
}
