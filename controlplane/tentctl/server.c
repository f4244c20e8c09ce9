/* SPDX-License-Identifier: Apache-2.0
 * See server.h. HTTP/1.0, so that the answer comes plain and ends with the connection. */
#include "controlplane/tentctl/server.h"

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/compiler.h"

tn_status tctl_server_address(struct tctl *t, char out[static TCTL_SERVER_TEXT], char *err, size_t err_bytes)
{
	char path[4200];
	const char *dir = tctl_runtime_dir(t);
	if (dir == NULL) {
		snprintf(err, err_bytes, "the runtime directory is not known");
		return TN_CONFIG;
	}
	snprintf(path, sizeof path, "%s/http.port", dir);
	FILE *f = fopen(path, "re");
	bool ok = f != NULL && fgets(out, TCTL_SERVER_TEXT, f) != NULL;
	if (f != NULL)
		fclose(f);
	if (ok)
		out[strcspn(out, "\n")] = '\0';
	if (ok && out[0] != '\0')
		return TN_OK;
	snprintf(err, err_bytes, "%s is missing: is tent-controlplane running there, with metrics/http_enabled?", path);
	return TN_CONTROLPLANE_DOWN;
}

static bool split_address(const char *where, char *host, size_t host_bytes, char *port, size_t port_bytes)
{
	const char *colon = strrchr(where, ':');
	bool bracket = where[0] == '[';
	if (colon == NULL || (bracket && colon[-1] != ']'))
		return false;
	int len = (int)(colon - where) - (bracket ? 2 : 0);
	return len > 0 && snprintf(host, host_bytes, "%.*s", len, where + bracket) < (int)host_bytes &&
	       snprintf(port, port_bytes, "%s", colon + 1) < (int)port_bytes;
}

static int connect_to(const char *where, char *err, size_t err_bytes)
{
	char host[128], port[16];
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV }, *ai;
	if (!split_address(where, host, sizeof host, port, sizeof port) || getaddrinfo(host, port, &hints, &ai) != 0) {
		snprintf(err, err_bytes, "\"%s\" is no address of an HTTP server", where);
		return -1;
	}
	int fd = socket(ai->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || connect(fd, ai->ai_addr, ai->ai_addrlen) != 0) {
		snprintf(err, err_bytes, "http://%s: %s", where, strerror(errno));
		if (fd >= 0)
			close(fd);
		fd = -1;
	}
	freeaddrinfo(ai);
	return fd;
}

static void say_why(tn_status s, char *err, size_t err_bytes)
{
	if (s == TN_TIMEOUT)
		snprintf(err, err_bytes, "the HTTP server did not answer in time");
	else if (s == TN_TOO_BIG)
		snprintf(err, err_bytes, "the HTTP server sends more than %d bytes", TCTL_PAGE_MAX);
	else
		snprintf(err, err_bytes, "the HTTP server broke off: %s", tn_status_meaning(s));
}

/* The status in the first line of an answer, 0: it is none. */
static int status_of(const char *answer)
{
	return strncmp(answer, "HTTP/1.", 7) == 0 && strlen(answer) > 12 && answer[8] == ' ' ? atoi(answer + 9) : 0;
}

char *tctl_page_fetch(const char *where, const char *page, uint64_t timeout_ns, int *status_out, char *err, size_t err_bytes)
{
	char ask[512];
	uint64_t deadline_ns = tn_deadline_after(tn_now_ns(), timeout_ns);
	snprintf(err, err_bytes, "no memory");
	int fd = connect_to(where, err, err_bytes);
	if (fd < 0)
		return NULL;
	int n = snprintf(ask, sizeof ask, "GET %.100s HTTP/1.0\r\nHost: %.200s\r\n\r\n", page, where);
	char *answer = NULL;
	tn_status s = TN_OK;
	if (send(fd, ask, (size_t)n, MSG_NOSIGNAL) != n)
		snprintf(err, err_bytes, "http://%s%s: %s", where, page, strerror(errno));
	else if ((answer = tctl_read_to_end(fd, TCTL_PAGE_MAX, deadline_ns, &s)) == NULL)
		say_why(s, err, err_bytes);
	close(fd);
	if (answer == NULL)
		return NULL;
	char *body = strstr(answer, "\r\n\r\n");
	int status = status_of(answer);
	if (status == 0 || body == NULL) {
		snprintf(err, err_bytes, "http://%s%s answers \"%.*s\"", where, page, (int)TN_MIN(strcspn(answer, "\r\n"), 80u), answer);
		free(answer);
		return NULL;
	}
	*status_out = status;
	memmove(answer, body + 4, strlen(body + 4) + 1);
	return answer;
}
