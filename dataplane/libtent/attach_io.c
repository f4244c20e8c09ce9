/* SPDX-License-Identifier: Apache-2.0
 * Reaches the data plane: the first two messages of every attachment, also of those after a restart. */
#include "dataplane/libtent/attach_io.h"

#include <poll.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/clock.h"

#define HELLO_CORRELATION 1

static tn_status say_hello(int sock, const char *app, uint64_t deadline_ns, struct shr_msg_hello_reply *hello_out)
{
	struct shr_msg m;
	struct shr_msg_hello *hello = shr_msg_begin(&m, SHR_MSG_HELLO, HELLO_CORRELATION, sizeof *hello);

	hello->abi_major = SHR_ABI_MAJOR;
	hello->abi_minor = SHR_ABI_MINOR;
	(void)strncpy(hello->app, app, sizeof hello->app - 1); /* the rest of the field stays zero */
	tn_status s = shr_msg_send_until(sock, &m, deadline_ns);
	if (s == TN_OK)
		s = shr_msg_recv_until(sock, SHR_FROM_DATAPLANE, &m, deadline_ns);
	if (s != TN_OK)
		return s == TN_PATH_DOWN ? TN_DATAPLANE_DOWN : s == TN_CLIENT_BROKEN ? TN_ABI_MISMATCH : s;
	if (m.hdr.type != (SHR_MSG_HELLO | SHR_MSG_REPLY) || m.hdr.correlation != HELLO_CORRELATION) {
		shr_msg_close_fds(&m);
		return TN_ABI_MISMATCH;
	}
	if (m.hdr.status != TN_OK)
		return m.hdr.status < 0 ? (tn_status)m.hdr.status : TN_BUSY;
	struct shr_msg_hello_reply reply;
	memcpy(&reply, shr_msg_body_ro(&m), sizeof reply);
	if (reply.abi_major != SHR_ABI_MAJOR)
		return TN_ABI_MISMATCH;
	*hello_out = reply;
	return TN_OK;
}

tn_status lt_io_attach(const char *path, const char *app, uint64_t deadline_ns, int *sock_out,
		       struct shr_msg_hello_reply *hello_out, bool *reached_out)
{
	int sock;
	tn_status s = shr_attach_connect(path, deadline_ns, &sock);

	*reached_out = s == TN_OK;
	if (s != TN_OK)
		return s;
	s = say_hello(sock, app, deadline_ns, hello_out);
	if (s != TN_OK) {
		(void)close(sock);
		return s;
	}
	*sock_out = sock;
	return TN_OK;
}

bool lt_io_wait_readable(int fd, int other, uint64_t deadline_ns)
{
	for (;;) {
		struct pollfd p[2] = { { .fd = fd, .events = POLLIN }, { .fd = other, .events = POLLIN } };
		uint64_t left = tn_remaining_ns(deadline_ns, tn_now_ns());
		struct timespec ts = { .tv_sec = (time_t)(left / TN_NS_PER_S), .tv_nsec = (long)(left % TN_NS_PER_S) };
		int n = ppoll(p, 2, deadline_ns == UINT64_MAX ? NULL : &ts, NULL);

		if (n > 0)
			return true;
		if (deadline_ns != UINT64_MAX && tn_now_ns() >= deadline_ns)
			return false;
	}
}

int lt_io_peer_pidfd(int sock)
{
	struct shr_peer_cred cred;

	if (shr_peer_cred(sock, &cred) != TN_OK || cred.pid <= 0 || cred.pid == getpid())
		return -1;
	return (int)syscall(SYS_pidfd_open, cred.pid, 0);
}
