/* SPDX-License-Identifier: Apache-2.0
 * The only file that includes <microhttpd.h>. The daemon runs in external-loop mode on our thread, because the time
 * bound of a client must hold also for one that sends or reads a byte now and then, which the library's own timeout
 * (of inactivity) does not cover: a client past its time gets its socket shut down, and the library cleans up. */
#include "controlplane/observe/http.h"

#include <errno.h>
#include <microhttpd.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/addr.h"
#include "common/atomic.h"
#include "common/clock.h"

struct client {
	int fd;
	uint64_t deadline_ns; /* 0 = free slot; UINT64_MAX = shut down, waiting for the library to notice */
};

struct cp_http {
	struct cp_http_ops ops;
	struct MHD_Daemon *daemon;
	pthread_t thread;
	int wake_fd, listen_fd; /* the listener is the library's */
	tn_a32 stop;
	bool closed_one; /* a client went since MHD_run() began */
	struct client client[CP_HTTP_CLIENTS_MAX];
};

/* ---- one request */

static enum MHD_Result answer(struct MHD_Connection *c, unsigned code, char *body, size_t len, const char *type)
{
	struct MHD_Response *r = MHD_create_response_from_buffer(len, body, MHD_RESPMEM_MUST_FREE);
	if (!r) {
		free(body);
		return MHD_NO;
	}
	enum MHD_Result ok = MHD_add_response_header(r, MHD_HTTP_HEADER_CONTENT_TYPE, type);
	/* One request per connection: idle keep-alive clients shall not hold the few places. */
	if (ok == MHD_YES)
		ok = MHD_add_response_header(r, MHD_HTTP_HEADER_CONNECTION, "close");
	if (ok == MHD_YES)
		ok = MHD_add_response_header(r, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
	if (ok == MHD_YES && code == MHD_HTTP_METHOD_NOT_ALLOWED)
		ok = MHD_add_response_header(r, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
	if (ok == MHD_YES)
		ok = MHD_queue_response(c, code, r);
	MHD_destroy_response(r);
	return ok;
}

static enum MHD_Result answer_text(struct MHD_Connection *c, unsigned code, const char *text)
{
	char *body = strdup(text);
	return body ? answer(c, code, body, strlen(body), "text/plain; charset=utf-8") : MHD_NO;
}

static enum MHD_Result on_request(void *cls, struct MHD_Connection *c, const char *url, const char *method,
				  const char *version, const char *upload, size_t *upload_size, void **con_cls)
{
	static const char *const paths[] = {
#define X(n, s) s,
		CP_HTTP_PATH_LIST(X)
#undef X
	};
	struct cp_http *h = cls;
	unsigned path = 0;

	(void)version, (void)upload, (void)upload_size, (void)con_cls;
	while (path < CP_HTTP_PATH_CNT && strcmp(url, paths[path]) != 0)
		path++;
	if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 && strcmp(method, MHD_HTTP_METHOD_HEAD) != 0)
		return answer_text(c, MHD_HTTP_METHOD_NOT_ALLOWED, "only GET and HEAD\n");
	if (path == CP_HTTP_PATH_CNT)
		return answer_text(c, MHD_HTTP_NOT_FOUND, "not found\n");

	struct tn_text text;
	const char *type = "text/plain; charset=utf-8";
	size_t len = 0;
	tn_text_init(&text, CP_HTTP_BODY_MAX);
	unsigned code = h->ops.render(h->ops.ctx, path, &text, &type);
	char *body = tn_text_take(&text, &len);
	tn_text_free(&text);
	if (!body)
		return answer_text(c, MHD_HTTP_INTERNAL_SERVER_ERROR, "the answer could not be rendered\n");
	return answer(c, code, body, len, type);
}

/* ---- clients and their time */

static void on_connection(void *cls, struct MHD_Connection *c, void **socket_context,
			  enum MHD_ConnectionNotificationCode toe)
{
	struct cp_http *h = cls;
	if (toe == MHD_CONNECTION_NOTIFY_CLOSED) {
		struct client *slot = *socket_context;
		h->closed_one = true;
		if (slot)
			slot->deadline_ns = 0;
		return;
	}
	const union MHD_ConnectionInfo *info = MHD_get_connection_info(c, MHD_CONNECTION_INFO_CONNECTION_FD);
	for (unsigned i = 0; info && i < CP_HTTP_CLIENTS_MAX; i++) {
		if (h->client[i].deadline_ns)
			continue;
		h->client[i] = (struct client){ info->connect_fd, tn_now_ns() + CP_HTTP_CLIENT_MS * TN_NS_PER_MS };
		*socket_context = &h->client[i];
		return;
	}
}

/* Shuts down clients past their time; returns the earliest deadline that is left, UINT64_MAX when none. */
static uint64_t expire_clients(struct cp_http *h, uint64_t now_ns)
{
	uint64_t next = UINT64_MAX;
	for (unsigned i = 0; i < CP_HTTP_CLIENTS_MAX; i++) {
		struct client *cl = &h->client[i];
		if (cl->deadline_ns == 0 || cl->deadline_ns == UINT64_MAX)
			continue;
		if (now_ns < cl->deadline_ns) {
			next = TN_MIN(next, cl->deadline_ns);
			continue;
		}
		(void)shutdown(cl->fd, SHUT_RDWR);
		cl->deadline_ns = UINT64_MAX;
	}
	return next;
}

static void *http_thread(void *arg)
{
	struct cp_http *h = arg;
	const union MHD_DaemonInfo *info = MHD_get_daemon_info(h->daemon, MHD_DAEMON_INFO_EPOLL_FD);
	struct pollfd fds[2] = { { .fd = info->epoll_fd, .events = POLLIN }, { .fd = h->wake_fd, .events = POLLIN } };

	while (!tn_load_relaxed32(&h->stop)) {
		uint64_t now = tn_now_ns();
		int wait_ms = tn_ns_to_poll_ms(tn_remaining_ns(expire_clients(h, now), now));
		MHD_UNSIGNED_LONG_LONG lib_ms;
		if (MHD_get_timeout(h->daemon, &lib_ms) == MHD_YES && lib_ms < (unsigned)wait_ms)
			wait_ms = (int)lib_ms;
		(void)poll(fds, 2, wait_ms);
		/* At its limit of clients the library takes the listener out of its epoll set and puts it back only at the
		 * start of a later run: without that run nobody would wake us for the next client. */
		do {
			h->closed_one = false;
			(void)MHD_run(h->daemon);
		} while (h->closed_one);
	}
	return NULL;
}

/* ---- life */

static tn_status fail(tn_status st, const char *host, uint16_t port, const char *what, const char *why,
		      char err[static TN_ERR_TEXT])
{
	(void)snprintf(err, TN_ERR_TEXT, "metrics http [%s]:%u: %s: %.96s", host, port, what, why);
	return st;
}

/* A bound, listening, non-blocking socket in *fd_out. */
static tn_status open_listener(const char *host, uint16_t port, int *fd_out, uint16_t *port_out,
			       char err[static TN_ERR_TEXT])
{
	struct tn_addr addr;
	char why[TN_ERR_TEXT] = "";
	tn_status st = tn_addr_parse(host, 1, &addr, why);
	if (st != TN_OK)
		return fail(TN_INVALID, host, port, "address", why, err);
	tn_addr_set_port(&addr, port);

	const char *what = "socket";
	int on = 1, fd = socket(addr.ss.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd >= 0 && (what = "bind", setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0) &&
	    bind(fd, (struct sockaddr *)&addr.ss, addr.len) == 0 && (what = "listen", listen(fd, CP_HTTP_CLIENTS_MAX) == 0) &&
	    getsockname(fd, (struct sockaddr *)&addr.ss, &addr.len) == 0) {
		*port_out = tn_addr_port(&addr);
		*fd_out = fd;
		return TN_OK;
	}
	int saved = errno;
	if (fd >= 0)
		(void)close(fd);
	st = saved == EADDRINUSE ? TN_EXISTS : saved == EACCES ? TN_PERMISSION : tn_status_from_errno(saved);
	return fail(st, host, port, what, strerror(saved), err);
}

tn_status cp_http_start(const char *host, uint16_t port, const struct cp_http_ops *ops, struct cp_http **out,
			uint16_t *port_out, char err[static TN_ERR_TEXT])
{
	int listen_fd = -1;
	uint16_t real_port = 0;
	struct cp_http *h = calloc(1, sizeof *h);
	if (!h)
		return fail(TN_NO_MEMORY, host, port, "start", strerror(ENOMEM), err);
	h->ops = *ops;
	h->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	tn_status st = open_listener(host, port, &listen_fd, &real_port, err);
	if (st != TN_OK)
		goto undo_handle;
	if (h->wake_fd < 0) {
		st = fail(TN_SYSTEM, host, port, "eventfd", strerror(errno), err);
		goto undo_listener;
	}
	h->listen_fd = listen_fd;
	h->daemon = MHD_start_daemon(MHD_USE_EPOLL, 0, NULL, NULL, on_request, h, MHD_OPTION_LISTEN_SOCKET, listen_fd,
				     MHD_OPTION_CONNECTION_LIMIT, (unsigned)CP_HTTP_CLIENTS_MAX,
				     MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)(CP_HTTP_CLIENT_MS / 1000),
				     MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CP_HTTP_REQUEST_BYTES,
				     MHD_OPTION_NOTIFY_CONNECTION, on_connection, h, MHD_OPTION_END);
	if (!h->daemon) {
		st = fail(TN_SYSTEM, host, port, "start", strerror(errno), err);
		goto undo_listener;
	}
	/* Signals are the main thread's: a handler must not run here. */
	sigset_t all, old;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	int rc = pthread_create(&h->thread, NULL, http_thread, h);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (rc != 0) {
		st = fail(TN_SYSTEM, host, port, "thread", strerror(rc), err);
		goto undo_daemon;
	}
	(void)pthread_setname_np(h->thread, "tent-http");
	*out = h;
	*port_out = real_port;
	return TN_OK;

undo_daemon:
	MHD_stop_daemon(h->daemon); /* closes the listener, which it owns */
	goto undo_handle;
undo_listener:
	(void)close(listen_fd);
undo_handle:
	if (h->wake_fd >= 0)
		(void)close(h->wake_fd);
	free(h);
	return st;
}

int cp_http_fd(const struct cp_http *h)
{
	return h->listen_fd;
}

void cp_http_stop(struct cp_http *h)
{
	if (!h)
		return;
	uint64_t one = 1;
	tn_store_relaxed32(&h->stop, 1); /* only itself: what follows is ordered by pthread_join */
	ssize_t woken = write(h->wake_fd, &one, sizeof one); /* cannot fail on an eventfd that nobody else writes */
	(void)woken;
	(void)pthread_join(h->thread, NULL);
	MHD_stop_daemon(h->daemon);
	(void)close(h->wake_fd);
	free(h);
}
