/* SPDX-License-Identifier: Apache-2.0
 * The HTTP server over real loopback sockets, port 0: paths, methods, bounds of size, clients and time, bind errors.
 * Each socket has a receive deadline of its own. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "common/clock.h"
#include "controlplane/observe/http.h"
#include "tests/unit/cu.h"

enum { WAIT_S = 20 };

static unsigned answer_with = 200;
static size_t pad_bytes;

static unsigned render(void *ctx, enum cp_http_path path, struct tn_text *out, const char **content_type_out)
{
	(void)ctx;
	*content_type_out = "text/x-test";
	tn_text_printf(out, "path %u\n", (unsigned)path);
	for (size_t i = 0; i < pad_bytes; i++)
		tn_text_char(out, 'x');
	return answer_with;
}

static const struct cp_http_ops ops = { render, NULL };

static int dial_at(uint32_t addr, uint16_t port)
{
	struct sockaddr_in sa = { .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(addr) };
	struct timeval tv = { .tv_sec = WAIT_S };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof tv);
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &tv, sizeof tv);
	if (connect(fd, (struct sockaddr *)&sa, sizeof sa) == 0)
		return fd;
	close(fd);
	return -1;
}

static int dial(uint16_t port) { return dial_at(INADDR_LOOPBACK, port); }

/* Sends text, reads to the end; NUL-terminated answer in buf; returns its length, -1 when the peer did not close. */
static ssize_t ask(uint16_t port, const char *text, char *buf, size_t size)
{
	size_t n = 0;
	ssize_t got = 0;
	int fd = dial(port);
	CU_ASSERT_TRUE_FATAL(fd >= 0);
	(void)!send(fd, text, strlen(text), MSG_NOSIGNAL);
	while (n < size - 1 && (got = recv(fd, buf + n, size - 1 - n, 0)) > 0)
		n += (size_t)got;
	close(fd);
	buf[n] = '\0';
	return got == 0 || errno == ECONNRESET ? (ssize_t)n : -1;
}

static struct cp_http *start(const char *host, uint16_t *port)
{
	struct cp_http *h = NULL;
	char err[TN_ERR_TEXT] = "";
	answer_with = 200;
	pad_bytes = 0;
	tn_status st = cp_http_start(host, 0, &ops, &h, port, err);
	if (st != TN_OK)
		printf("\n%s\n", err);
	CU_ASSERT_EQUAL_FATAL(st, TN_OK);
	CU_ASSERT_NOT_EQUAL(*port, 0);
	return h;
}

static void expect(uint16_t port, const char *request, const char *status, const char *part)
{
	char buf[4096];
	CU_ASSERT_TRUE(ask(port, request, buf, sizeof buf) >= 0);
	if (strncmp(buf, status, strlen(status)) != 0)
		printf("\nwant %s got %.60s\n", status, buf);
	CU_ASSERT_TRUE(strncmp(buf, status, strlen(status)) == 0);
	CU_ASSERT_PTR_NOT_NULL(strstr(buf, part));
}

static void paths_and_methods(void)
{
	uint16_t port;
	char buf[4096];
	struct cp_http *h = start("127.0.0.1", &port);
	expect(port, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP/1.1 200", "\r\n\r\npath 0\n");
	expect(port, "GET /metrics?x=1 HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP/1.1 200", "path 0\n");
	expect(port, "GET /metrics/openmetrics HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP/1.1 200", "path 1\n");
	expect(port, "GET /health HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP/1.1 200", "path 2\n");
	expect(port, "GET /diagnostics HTTP/1.0\r\n\r\n", "HTTP/1.", "path 5\n");
	expect(port, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP/1.1 200", "Content-Type: text/x-test\r\n");
	expect(port, "GET /nothing HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP/1.1 404", "not found");
	expect(port, "GET /metrics/ HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP/1.1 404", "not found");
	expect(port, "POST /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello", "HTTP/1.1 405", "Allow: GET, HEAD\r\n");
	expect(port, "DELETE /metrics HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP/1.1 405", "Allow: GET, HEAD\r\n");
	expect(port, "HEAD /metrics HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP/1.1 200", "Content-Length: 7\r\n");
	CU_ASSERT_TRUE(ask(port, "HEAD /metrics HTTP/1.1\r\nHost: x\r\n\r\n", buf, sizeof buf) > 0);
	CU_ASSERT_PTR_NULL(strstr(buf, "path 0"));
	answer_with = 503;
	expect(port, "GET /ready HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP/1.1 503", "path 4\n");
	cp_http_stop(h);
	CU_ASSERT_EQUAL(dial(port), -1);
}

/* The host of the configuration is the only address that listens. */
static void bound_to_its_address_only(void)
{
	uint16_t port;
	struct cp_http *h = start("127.0.0.2", &port);
	int there = dial_at(INADDR_LOOPBACK + 1, port);
	CU_ASSERT_TRUE(there >= 0);
	close(there);
	CU_ASSERT_EQUAL(dial(port), -1);
	cp_http_stop(h);
}

static void a_failed_rendering_is_500(void)
{
	uint16_t port;
	struct cp_http *h = start("127.0.0.1", &port);
	pad_bytes = CP_HTTP_BODY_MAX;
	expect(port, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP/1.1 500", "rendered");
	cp_http_stop(h);
}

static void a_huge_or_broken_head_is_refused(void)
{
	static char big[CP_HTTP_REQUEST_BYTES * 4];
	uint16_t port;
	char buf[4096];
	struct cp_http *h = start("127.0.0.1", &port);
	int n = snprintf(big, sizeof big, "GET /metrics HTTP/1.1\r\nHost: x\r\nX: ");
	memset(big + n, 'a', sizeof big - (size_t)n - 1);
	CU_ASSERT_TRUE(ask(port, big, buf, sizeof buf) >= 0);
	CU_ASSERT_PTR_NULL(strstr(buf, "path 0"));
	CU_ASSERT_TRUE(ask(port, "\x16\x03\x01 garbage\r\n\r\n", buf, sizeof buf) >= 0);
	CU_ASSERT_PTR_NULL(strstr(buf, "path 0"));
	expect(port, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP/1.1 200", "path 0");
	cp_http_stop(h);
}

static void a_slow_client_loses_its_place(void)
{
	uint16_t port;
	char c = 0;
	struct cp_http *h = start("127.0.0.1", &port);
	int fd = dial(port);
	CU_ASSERT_TRUE_FATAL(fd >= 0);
	struct timeval tv = { .tv_usec = 300000 };
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof tv);
	uint64_t start_ns = tn_now_ns(), took_ms = 0;
	bool closed = false;
	/* a byte every 300 ms: never idle for long enough to be called inactive */
	while (!closed && took_ms < WAIT_S * 1000) {
		(void)!send(fd, "G", 1, MSG_NOSIGNAL);
		ssize_t got = recv(fd, &c, 1, 0);
		closed = got == 0 || (got < 0 && errno != EAGAIN);
		took_ms = (tn_now_ns() - start_ns) / TN_NS_PER_MS;
	}
	close(fd);
	CU_ASSERT_TRUE(closed);
	CU_ASSERT_TRUE(took_ms >= CP_HTTP_CLIENT_MS - 500 && took_ms < CP_HTTP_CLIENT_MS + 4000);
	cp_http_stop(h);
}

static void the_number_of_clients_is_bounded(void)
{
	uint16_t port;
	int fds[CP_HTTP_CLIENTS_MAX];
	struct cp_http *h = start("127.0.0.1", &port);
	for (unsigned i = 0; i < CP_HTTP_CLIENTS_MAX; i++)
		fds[i] = dial(port);
	/* all places are taken by silent clients: one more waits until they lose their places, then it is served */
	uint64_t start_ns = tn_now_ns();
	expect(port, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP/1.1 200", "path 0");
	uint64_t took_ms = (tn_now_ns() - start_ns) / TN_NS_PER_MS;
	CU_ASSERT_TRUE(took_ms > CP_HTTP_CLIENT_MS / 2 && took_ms < CP_HTTP_CLIENT_MS + 4000);
	for (unsigned i = 0; i < CP_HTTP_CLIENTS_MAX; i++)
		if (fds[i] >= 0)
			close(fds[i]);
	cp_http_stop(h);
}

static void bind_errors_reach_the_caller(void)
{
	uint16_t port, other;
	struct cp_http *second = NULL;
	char err[TN_ERR_TEXT] = "";
	struct cp_http *h = start("127.0.0.1", &port);
	CU_ASSERT_EQUAL(cp_http_start("127.0.0.1", port, &ops, &second, &other, err), TN_EXISTS);
	CU_ASSERT_PTR_NOT_NULL(strstr(err, "127.0.0.1"));
	CU_ASSERT_EQUAL(cp_http_start("metrics.example", 0, &ops, &second, &other, err), TN_INVALID);
	CU_ASSERT_NOT_EQUAL(cp_http_start("203.0.113.1", 0, &ops, &second, &other, err), TN_OK); /* not ours */
	CU_ASSERT_PTR_NULL(second);
	cp_http_stop(h);
	CU_ASSERT_EQUAL(cp_http_start("127.0.0.1", port, &ops, &second, &other, err), TN_OK); /* free again, also in TIME_WAIT */
	CU_ASSERT_EQUAL(other, port);
	cp_http_stop(second);
	cp_http_stop(NULL);
}

static void ipv6_is_honoured(void)
{
	uint16_t port;
	struct sockaddr_in6 sa = { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	int probe = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (probe < 0 || bind(probe, (struct sockaddr *)&sa, sizeof sa) != 0) {
		printf(" (no IPv6 here) ");
		if (probe >= 0)
			close(probe);
		return;
	}
	close(probe);
	struct cp_http *h = start("::1", &port);
	int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
	sa.sin6_port = htons(port);
	CU_ASSERT_EQUAL(connect(fd, (struct sockaddr *)&sa, sizeof sa), 0);
	close(fd);
	CU_ASSERT_EQUAL(dial(port), -1); /* not on IPv4 */
	cp_http_stop(h);
}

TN_TEST_MAIN("observe/http", { "paths and methods", paths_and_methods },
	{ "bound to its address only", bound_to_its_address_only }, { "a failed rendering is 500", a_failed_rendering_is_500 },
	{ "a huge or broken head is refused", a_huge_or_broken_head_is_refused },
	{ "a slow client loses its place", a_slow_client_loses_its_place },
	{ "the number of clients is bounded", the_number_of_clients_is_bounded },
	{ "bind errors reach the caller", bind_errors_reach_the_caller }, { "IPv6 is honoured", ipv6_is_honoured })
