/* SPDX-License-Identifier: Apache-2.0
 * Bounded writing to whatever stderr or the log file is. Pipes and terminals are opened again, so that non-blocking
 * mode is ours alone and does not change the shell's end; under log.c's lock. */
#include "common/log_sink.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/hook.h"

#define STALL_MS 20

static enum tn_log_sink_kind kind_of(int fd)
{
	struct stat st;
	if (fstat(fd, &st) != 0 || S_ISREG(st.st_mode))
		return TN_LOG_SINK_FILE;
	return S_ISSOCK(st.st_mode) ? TN_LOG_SINK_SOCKET : TN_LOG_SINK_STREAM;
}

tn_status tn_log_sink_open(const char *path, struct tn_log_sink *sink)
{
	int fd = -1;
	if (path != NULL) {
		fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0640);
	} else {
		/* A regular file behind stderr keeps its shared offset; a pipe or terminal gets a description of its own. */
		if (kind_of(STDERR_FILENO) == TN_LOG_SINK_STREAM)
			fd = open("/proc/self/fd/2", O_WRONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
		if (fd < 0)
			fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
	}
	if (fd < 0)
		return tn_status_from_errno(errno);
	*sink = (struct tn_log_sink){ .fd = fd, .kind = kind_of(fd) };
	return TN_OK;
}

void tn_log_sink_close(struct tn_log_sink *sink)
{
	if (sink->fd >= 0)
		close(sink->fd);
	*sink = (struct tn_log_sink){ .fd = -1 };
}

/* write(2) to a pipe without a reader raises SIGPIPE; the log must not end a process that did not ask to ignore it. */
static ssize_t write_quiet(int fd, const char *p, size_t len)
{
	sigset_t pipe_set, before, pending;
	sigemptyset(&pipe_set);
	sigaddset(&pipe_set, SIGPIPE);
	sigpending(&pending);
	bool was_pending = sigismember(&pending, SIGPIPE) == 1;
	pthread_sigmask(SIG_BLOCK, &pipe_set, &before);
	ssize_t n = write(fd, p, len);
	int err = errno;
	if (n < 0 && err == EPIPE && !was_pending) {
		const struct timespec none = { 0, 0 };
		while (sigtimedwait(&pipe_set, NULL, &none) < 0 && errno == EINTR) { }
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	errno = err;
	return n;
}

static ssize_t write_once(const struct tn_log_sink *sink, const char *p, size_t len)
{
	if (TN_HOOK_FAIL(log_write)) {
		errno = ENOSPC;
		return -1;
	}
	if (sink->kind == TN_LOG_SINK_SOCKET)
		return send(sink->fd, p, len, MSG_DONTWAIT | MSG_NOSIGNAL);
	return sink->kind == TN_LOG_SINK_STREAM ? write_quiet(sink->fd, p, len) : write(sink->fd, p, len);
}

bool tn_log_sink_write(struct tn_log_sink *sink, char *line, size_t len)
{
	line[len++] = '\n';
	if (sink->fd < 0)
		return false;
	if (sink->mid_line && write_once(sink, "\n", 1) != 1)
		return false;
	sink->mid_line = false;
	const char *p = line;
	int waits = sink->stalled ? 0 : 1;
	while (len > 0) {
		if (sink->kind != TN_LOG_SINK_FILE) {   /* also keeps a blocking duplicate of stderr from blocking */
			struct pollfd pfd = { .fd = sink->fd, .events = POLLOUT };
			if (poll(&pfd, 1, waits > 0 ? STALL_MS : 0) <= 0) {
				sink->stalled = true;
				break;
			}
		}
		ssize_t n = write_once(sink, p, len);
		if (n > 0) {
			p += n;
			len -= (size_t)n;
			continue;
		}
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN && waits-- > 0)
			continue;
		break;
	}
	sink->mid_line = len > 0 && p != line;
	if (len == 0)
		sink->stalled = false;
	return len == 0;
}
