/* SPDX-License-Identifier: Apache-2.0
 * One question to the control plane over its local ZeroMQ door: the only file of tentctl that speaks ZeroMQ. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <zmq.h>

#include "common/clock.h"
#include "common/message.h"
#include "controlplane/tentctl/tentctl.h"

static void *connect_bus(void *ctx, const char *path)
{
	char address[320];
	int zero = 0;
	void *s = zmq_socket(ctx, ZMQ_DEALER);
	if (s == NULL)
		return NULL;
	snprintf(address, sizeof address, "ipc://%s", path);
	zmq_setsockopt(s, ZMQ_LINGER, &zero, sizeof zero);
	if (zmq_connect(s, address) != 0) {
		zmq_close(s);
		return NULL;
	}
	return s;
}

/* Wait for the answer to `id`. */
static int answer(struct tctl *t, void *s, uint64_t id, json_t **body_out)
{
	static char buf[TN_MESSAGE_MAX];
	char err[TN_ERR_TEXT];
	uint64_t deadline = tn_deadline_after(tn_now_ns(), t->timeout_ns);
	for (uint64_t left; (left = tn_remaining_ns(deadline, tn_now_ns())) > 0;) {
		zmq_pollitem_t item = { .socket = s, .events = ZMQ_POLLIN };
		if (zmq_poll(&item, 1, tn_ns_to_poll_ms(left)) <= 0)
			continue;
		int n = zmq_recv(s, buf, sizeof buf, ZMQ_DONTWAIT);
		struct tn_message m;
		if (n < 0)
			continue;
		tn_status st = tn_message_decode(buf, TN_MIN((size_t)n, sizeof buf), &m, err);
		if (st != TN_OK)
			return tctl_fail(t, st, "the control plane's answer makes no sense: %s", err);
		if (!m.reply || m.id != id) {
			tn_message_clear(&m);
			continue;
		}
		if (m.status != TN_OK) {
			int rc = tctl_fail(t, m.status, "%s (%s%s%s)", m.detail, tn_status_name(m.status),
					   tn_status_todo(m.status)[0] != '\0' ? ": " : "", tn_status_todo(m.status));
			tn_message_clear(&m);
			return rc;
		}
		*body_out = m.body != NULL ? json_incref(m.body) : json_object();
		tn_message_clear(&m);
		return TCTL_OK;
	}
	return tctl_fail(t, TN_TIMEOUT, "the control plane did not answer in time (is it stopped or overloaded?)");
}

int tctl_ask(struct tctl *t, const char *type, json_t *body, json_t **body_out)
{
	char path[300], text[8192];
	struct stat st;
	size_t len;
	const char *dir = tctl_runtime_dir(t);
	struct tn_message m = { .id = 1, .remaining_ms = t->timeout_ns / TN_NS_PER_MS + 1, .body = body };
	int rc = TCTL_FAILED;
	snprintf(m.type, sizeof m.type, "%s", type);
	if (dir == NULL)
		goto out;
	snprintf(path, sizeof path, "%s/bus.ipc", dir);
	if (stat(path, &st) != 0) {
		rc = tctl_fail(t, TN_CONTROLPLANE_DOWN,
			       "no control plane serves %s: start tent-controlplane, or name its directory with -r or -c", dir);
		goto out;
	}
	void *ctx = zmq_ctx_new(), *s = ctx != NULL ? connect_bus(ctx, path) : NULL;
	if (s == NULL || tn_message_encode(&m, text, sizeof text, &len) != TN_OK)
		rc = tctl_fail(t, TN_SYSTEM, "cannot ask %s", path);
	else if (zmq_send(s, text, len, 0) < 0)
		rc = tctl_fail(t, TN_SYSTEM, "cannot ask %s: %s", path, zmq_strerror(zmq_errno()));
	else
		rc = answer(t, s, m.id, body_out);
	if (s != NULL)
		zmq_close(s);
	if (ctx != NULL)
		zmq_ctx_term(ctx);
out:
	json_decref(body);
	return rc;
}
