/* SPDX-License-Identifier: Apache-2.0
 * `tentctl pause|resume|drain`: the data plane of this host rests, goes on, or ends when it has done what it took. */
#include <string.h>

#include "common/clock.h"
#include "common/message.h"
#include "controlplane/tentctl/tentctl.h"

#define GRACE_DEFAULT_NS (30 * TN_NS_PER_S)
#define GRACE_MOST_NS (3600 * TN_NS_PER_S)
#define LOOK_NS (200 * TN_NS_PER_MS)
#define END_NS (15 * TN_NS_PER_S) /* after the grace: the drain of a stop, and the exit */

static int change(struct tctl *t, int argc, char **argv, const char *verb, const char *done, const char *before)
{
	json_t *answer;
	if (!tctl_args(t, &argc, argv, NULL, 0, 0))
		return t->exit_code;
	if (tctl_ask(t, verb, NULL, &answer) != TCTL_OK)
		return TCTL_FAILED;
	if (t->json)
		tctl_print_json(answer);
	else
		puts(json_is_true(json_object_get(answer, "changed")) ? done : before);
	json_decref(answer);
	return TCTL_OK;
}

int tctl_cmd_pause(struct tctl *t, int argc, char **argv)
{
	return change(t, argc, argv, "pause", "paused: requests wait until tentctl resume, what is under way ends",
		      "it was paused already");
}

int tctl_cmd_resume(struct tctl *t, int argc, char **argv)
{
	return change(t, argc, argv, "resume", "resumed", "it was not paused");
}

/* ---- drain ---- */

/* The incarnation that is attached now; "" = none. */
static int session_now(struct tctl *t, char out[static 64])
{
	json_t *answer;
	if (tctl_ask(t, "status", NULL, &answer) != TCTL_OK)
		return TCTL_FAILED;
	const json_t *d = json_object_get(answer, "data_plane");
	snprintf(out, 64, "%s", d != NULL ? tctl_text(d, "session") : "");
	json_decref(answer);
	return TCTL_OK;
}

/* Until the one that was asked is gone, whether another one came or not. */
static int wait_gone(struct tctl *t, const char *session, uint64_t deadline_ns)
{
	char now[64];
	for (;;) {
		if (session_now(t, now) != TCTL_OK)
			return TCTL_FAILED;
		if (strcmp(now, session) != 0)
			return TCTL_OK;
		if (tn_now_ns() >= deadline_ns)
			return tctl_fail(t, TN_TIMEOUT, "the data plane did not end in time; its log says what it waits for");
		if (tctl_stopped())
			return tctl_fail(t, TN_CANCELED, "interrupted; the data plane goes on draining");
		tctl_stop_sleep(-1, LOOK_NS);
	}
}

int tctl_cmd_drain(struct tctl *t, int argc, char **argv)
{
	uint64_t grace_ns = GRACE_DEFAULT_NS, start_ns = tn_now_ns();
	const struct tctl_option options[] = { { "grace", 'g', TCTL_TIME, &grace_ns }, { NULL, '\0', TCTL_FLAG, NULL } };
	json_t *answer, *body;
	char session[64];
	if (!tctl_args(t, &argc, argv, options, 0, 0))
		return t->exit_code;
	if (grace_ns > GRACE_MOST_NS)
		return tctl_bad_usage(t, "--grace of at most 1h");
	tctl_stop_catch();
	if (session_now(t, session) != TCTL_OK)
		return TCTL_FAILED;
	body = json_object();
	tn_json_put_u64(body, "grace_ms", grace_ns / TN_NS_PER_MS);
	if (tctl_ask(t, "drain", body, &answer) != TCTL_OK)
		return TCTL_FAILED;
	int code = wait_gone(t, session, tn_deadline_after(start_ns, grace_ns + END_NS));
	if (code == TCTL_OK && t->json)
		tctl_print_json(answer);
	else if (code == TCTL_OK)
		printf("drained in %s; the data plane ended\n", tctl_time_text(tn_now_ns() - start_ns));
	json_decref(answer);
	return code;
}
