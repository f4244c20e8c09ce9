/* SPDX-License-Identifier: Apache-2.0
 * Which daemon of which host does not answer, and what to do: for verbs that move bytes, which hear only a status. */
#include <stdio.h>
#include <string.h>

#include "common/clock.h"
#include "common/message.h"
#include "controlplane/tentctl/tentctl.h"

#define WAIT_MOST_NS (3 * TN_NS_PER_S) /* the caller has waited long enough already */

static bool is(const json_t *j, const char *key, const char *want) { return strcmp(tctl_text(j, key), want) == 0; }

const char *tctl_peer_obstacle(const json_t *peer, char *out, size_t cap)
{
	const char *name = tctl_text(peer, "name");
	out[0] = '\0';
	if (peer == NULL)
		return out;
	if (is(peer, "error", "peer_denied"))
		snprintf(out, cap, "%s", tctl_text(peer, "detail"));
	else if (!json_is_true(json_object_get(peer, "answers")))
		snprintf(out, cap, "the control plane of host %s does not answer: %s", name, tctl_text(peer, "detail"));
	else if (json_object_get(peer, "data_plane_trouble") != NULL)
		snprintf(out, cap, "%s", tctl_text(peer, "data_plane_trouble"));
	else if (is(peer, "ticket", "failed"))
		snprintf(out, cap, "%s gave no ticket: %s (%s)", name, tctl_text(peer, "ticket_error"),
			 tctl_text(peer, "ticket_detail"));
	return out;
}

/* A sentence more. */
static void advise(char *out, size_t cap, const char *what, const char *where, const char *more)
{
	size_t at = strlen(out);
	if (at > 0)
		snprintf(out + at, cap - at, "%s%s%s%s", out[at - 1] == '?' ? " " : ". ", what, where, more);
}

static void about_peer(const json_t *peer, char *out, size_t cap)
{
	const char *name = tctl_text(peer, "name");
	tctl_peer_obstacle(peer, out, cap);
	if (json_object_get(peer, "data_plane_trouble") != NULL)
		advise(out, cap, "Start or restart tent-dataplane on host ", name, "; tentctl doctor there says more");
	else
		advise(out, cap, "Run tentctl doctor on host ", name, "");
}

static void about_this_host(const json_t *answer, char *out, size_t cap)
{
	static const char *const keys[] = { "data_plane_trouble", "data_plane_error" };
	for (size_t i = 0; i < TN_ARRAY_LEN(keys) && out[0] == '\0'; i++)
		if (json_is_string(json_object_get(answer, keys[i])))
			snprintf(out, cap, "%s", tctl_text(answer, keys[i]));
	advise(out, cap, "Start or restart tent-dataplane on this host", "", "; tentctl doctor says more");
}

void tctl_trouble(struct tctl *t, const char *ref, char *out, size_t cap)
{
	bool remote = ref != NULL && strchr(ref, '/') != NULL;
	uint64_t timeout_ns = t->timeout_ns;
	char err[256];
	json_t *answer = NULL, *body = NULL;
	out[0] = '\0';
	if (remote) {
		body = json_object();
		tn_json_put_str(body, "target", ref);
	}
	t->timeout_ns = TN_MIN(timeout_ns, WAIT_MOST_NS);
	tn_status s = tctl_query(t, remote ? "explain" : "status", body, &answer, err, sizeof err);
	t->timeout_ns = timeout_ns;
	if (s == TN_TIMEOUT)
		snprintf(out, cap, "the control plane of this host does not answer: is it stopped or overloaded? Restart "
				   "tent-controlplane; running transfers go on meanwhile");
	if (s != TN_OK)
		return;
	about_this_host(answer, out, cap);
	if (out[0] == '\0' && remote)
		about_peer(json_object_get(answer, "peer"), out, cap);
	json_decref(answer);
}
