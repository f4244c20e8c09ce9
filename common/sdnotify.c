/* SPDX-License-Identifier: Apache-2.0
 * Owner of the NOTIFY_SOCKET protocol (sd_notify(3)): one datagram with newline-separated KEY=VALUE lines to a unix
 * socket that is a path, or with a leading '@' an abstract name. Slow threads; never blocks. */
#include "common/sdnotify.h"

#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

tn_status tn_sdnotify(const char *state)
{
	const char *path = getenv("NOTIFY_SOCKET");
	if (path == NULL || path[0] == '\0')
		return TN_UNSUPPORTED;
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	size_t len = strlen(path);
	if ((path[0] != '/' && path[0] != '@') || len < 2 || len >= sizeof sa.sun_path)
		return TN_INVALID;
	memcpy(sa.sun_path, path, len);
	if (path[0] == '@')
		sa.sun_path[0] = '\0';   /* abstract: the length says where the name ends */

	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return tn_status_from_errno(errno);
	socklen_t salen = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len);
	ssize_t n = sendto(fd, state, strlen(state), MSG_NOSIGNAL, (struct sockaddr *)&sa, salen);
	tn_status st = n < 0 ? tn_status_from_errno(errno) : TN_OK;
	close(fd);
	return st;
}

tn_status tn_sdnotifyf(const char *fmt, ...)
{
	char text[512];
	va_list ap;
	va_start(ap, fmt);
	int n = vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	if (n < 0 || (size_t)n >= sizeof text)
		return TN_TOO_BIG;
	return tn_sdnotify(text);
}

static bool parse_u64(const char *s, uint64_t *out)
{
	if (s == NULL || s[0] < '0' || s[0] > '9')
		return false;
	char *end;
	errno = 0;
	unsigned long long v = strtoull(s, &end, 10);
	if (errno != 0 || *end != '\0')
		return false;
	*out = v;
	return true;
}

uint64_t tn_sdnotify_watchdog_ns(void)
{
	uint64_t usec, pid;
	if (!parse_u64(getenv("WATCHDOG_USEC"), &usec) || usec > UINT64_MAX / 1000)
		return 0;
	if (getenv("WATCHDOG_PID") != NULL && (!parse_u64(getenv("WATCHDOG_PID"), &pid) || pid != (uint64_t)getpid()))
		return 0;
	return usec * 1000 / 2;
}
