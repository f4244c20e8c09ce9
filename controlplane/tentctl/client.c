/* SPDX-License-Identifier: Apache-2.0
 * One question to the control plane over its local ZeroMQ door: the only file of tentctl that speaks ZeroMQ. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <zmq.h>

#include "common/clock.h"
#include "common/message.h"
#include "controlplane/tentctl/tentctl.h"

/* Of the time that we wait, this part is for the answer's way: why the control plane gave up says more than our own
 * time-out. */
#define ANSWER_SHARE 8u

struct question {
	const char *dir;
	char path[sizeof ((struct sockaddr_un *)0)->sun_path];
	char *err;
	size_t err_bytes;
	uint64_t deadline_ns;
};

static tn_status say(struct question *q, tn_status s, const char *fmt, ...) TN_PRINTF(3, 4);
static tn_status say(struct question *q, tn_status s, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(q->err, q->err_bytes, fmt, ap);
	va_end(ap);
	return s;
}

/* ZeroMQ connects in the background and never says that nobody listens; the kernel says it at once. */
static tn_status knock(struct question *q)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	if ((size_t)snprintf(q->path, sizeof q->path, "%s/bus.ipc", q->dir) >= sizeof q->path)
		return say(q, TN_CONFIG, "runtime directory %s: too long for a socket", q->dir);
	memcpy(a.sun_path, q->path, sizeof a.sun_path);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int failed = fd < 0 || connect(fd, (struct sockaddr *)&a, sizeof a) != 0 ? errno : 0;
	if (fd >= 0)
		close(fd);
	if (failed == EACCES || failed == EPERM)
		return say(q, TN_PERMISSION, "%s belongs to another user: ask as the user of the daemons, or as root",
			   q->path);
	if (failed != 0)
		return say(
		    q, TN_CONTROLPLANE_DOWN,
		    "no control plane serves %s (%s): start tent-controlplane, or name its directory with -r or its "
		    "configuration with -c",
		    q->dir, failed == ENOENT ? "no socket" : strerror(failed));
	return TN_OK;
}

/* The last frame of a message; others are envelopes. -1: nothing yet. */
static int receive(void *s, void *buf, size_t cap)
{
	int more, n;
	size_t more_bytes = sizeof more;
	do {
		n = zmq_recv(s, buf, cap, ZMQ_DONTWAIT);
		if (n < 0 || zmq_getsockopt(s, ZMQ_RCVMORE, &more, &more_bytes) != 0)
			return -1;
	} while (more != 0);
	return n;
}

static tn_status wait_answer(struct question *q, void *s, uint64_t id, json_t **body_out)
{
	static char buf[TN_MESSAGE_MAX];
	char text[TN_ERR_TEXT];
	for (uint64_t left; (left = tn_remaining_ns(q->deadline_ns, tn_now_ns())) > 0;) {
		zmq_pollitem_t item = { .socket = s, .events = ZMQ_POLLIN };
		struct tn_message m;
		if (zmq_poll(&item, 1, tn_ns_to_poll_ms(left)) < 0 && errno == EINTR && tctl_stopped())
			return say(q, TN_CANCELED, "interrupted");
		int n = receive(s, buf, sizeof buf);
		if (n < 0)
			continue;
		tn_status st = tn_message_decode(buf, TN_MIN((size_t)n, sizeof buf), &m, text);
		if (st != TN_OK)
			return say(q, st, "the control plane's answer makes no sense: %s", text);
		if (!m.reply || m.id != id) {
			tn_message_clear(&m);
			continue;
		}
		if (m.status != TN_OK) {
			const char *todo = tn_status_todo(m.status);
			st = say(q, m.status, "%s%s%s%s", m.detail[0] != '\0' ? m.detail : tn_status_meaning(m.status),
				 todo[0] != '\0' ? " (" : "", todo, todo[0] != '\0' ? ")" : "");
		} else {
			*body_out = m.body != NULL ? json_incref(m.body) : json_object();
		}
		tn_message_clear(&m);
		return st;
	}
	return say(q, TN_TIMEOUT, "the control plane did not answer in time (is it stopped or overloaded?)");
}

static tn_status exchange(struct question *q, const struct tn_message *m, json_t **body_out)
{
	char address[sizeof q->path + 8], text[8192];
	int zero = 0;
	size_t len;
	tn_status st = TN_SYSTEM;
	void *ctx = zmq_ctx_new(), *s = ctx != NULL ? zmq_socket(ctx, ZMQ_DEALER) : NULL;
	snprintf(address, sizeof address, "ipc://%s", q->path);
	if (s == NULL || zmq_setsockopt(s, ZMQ_LINGER, &zero, sizeof zero) != 0 || zmq_connect(s, address) != 0)
		say(q, st, "cannot connect to %s: %s", address, zmq_strerror(zmq_errno()));
	else if ((st = tn_message_encode(m, text, sizeof text, &len)) != TN_OK)
		say(q, st, "the question cannot be written: %s", tn_status_meaning(st));
	else if (zmq_send(s, text, len, ZMQ_DONTWAIT) < 0)
		st = say(q, TN_SYSTEM, "cannot ask %s: %s", address, zmq_strerror(zmq_errno()));
	else
		st = wait_answer(q, s, m->id, body_out);
	if (s != NULL)
		zmq_close(s);
	if (ctx != NULL)
		zmq_ctx_term(ctx);
	return st;
}

tn_status tctl_query(struct tctl *t, const char *type, json_t *body, json_t **body_out, char *err, size_t err_bytes)
{
	struct question q = { .err = err, .err_bytes = err_bytes, .dir = tctl_runtime_dir(t),
			      .deadline_ns = tn_deadline_after(tn_now_ns(), t->timeout_ns) };
	struct tn_message m = { .id = 1, .body = body,
				.remaining_ms = TN_MIN((t->timeout_ns - t->timeout_ns / ANSWER_SHARE) / TN_NS_PER_MS + 1,
						       TN_MESSAGE_REMAINING_MAX_MS) };
	tn_status st = TN_CONFIG;
	snprintf(m.type, sizeof m.type, "%s", type);
	if (q.dir == NULL)
		say(&q, st, "the configuration is wrong");
	else
		st = knock(&q);
	if (st == TN_OK)
		st = exchange(&q, &m, body_out);
	json_decref(body);
	return st;
}

int tctl_ask(struct tctl *t, const char *type, json_t *body, json_t **body_out)
{
	char err[512];
	if (tctl_runtime_dir(t) == NULL) { /* its errors were printed */
		json_decref(body);
		return TCTL_FAILED;
	}
	tn_status st = tctl_query(t, type, body, body_out, err, sizeof err);
	return st == TN_OK ? TCTL_OK : tctl_fail(t, st, "%s", err);
}
