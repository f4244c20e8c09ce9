/* SPDX-License-Identifier: Apache-2.0
 * Sending and receiving attach messages with SCM_RIGHTS. Whatever the peer sends along, no descriptor leaks: surplus
 * ones are closed, truncated control data refuses the message. The check itself is in msg_check.c. */
#include "shm-ring/handshake.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "common/clock.h"

/* Room for more descriptors than any message carries: a peer that sends a few too many is told so and loses them;
 * one that sends more than this shows as MSG_CTRUNC (the kernel drops the rest itself). */
#define FDS_ROOM 8u

union control {
	struct cmsghdr align;
	char bytes[CMSG_SPACE(FDS_ROOM * sizeof(int))];
};

void *shr_msg_begin(struct shr_msg *m, uint16_t type, uint32_t correlation, uint32_t body_bytes)
{
	m->len = (uint32_t)sizeof m->hdr + body_bytes;
	m->fd_cnt = 0;
	for (uint32_t i = 0; i < SHR_MSG_FDS_MAX; i++)
		m->fds[i] = -1;
	memset(m->bytes, 0, m->len);
	m->hdr = (struct shr_msg_hdr){
		.magic = SHR_MSG_MAGIC, .type = type, .length = m->len, .correlation = correlation
	};
	return shr_msg_body(m);
}

void shr_msg_begin_failure(struct shr_msg *m, uint16_t request_type, uint32_t correlation, tn_status status,
			   uint32_t detail)
{
	(void)shr_msg_begin(m, request_type | SHR_MSG_REPLY, correlation, 0);
	m->hdr.status = (int32_t)status;
	m->hdr.detail = detail;
}

void shr_msg_close_fds(struct shr_msg *m)
{
	for (uint32_t i = 0; i < m->fd_cnt; i++)
		if (m->fds[i] >= 0)
			close(m->fds[i]);
	m->fd_cnt = 0;
}

/* A socket whose peer is gone, whichever way the kernel says it. */
static tn_status socket_status(int err)
{
	switch (err) {
	case EAGAIN:
	case EINTR:
		return TN_AGAIN;
	case ENOBUFS:
		return TN_AGAIN; /* the kernel's memory for messages in flight; it drains as the peer reads */
	case ETOOMANYREFS:
		return TN_LIMIT;
	default:
		return tn_status_from_errno(err);
	}
}

tn_status shr_msg_send(int sock, const struct shr_msg *m)
{
	if (m->len < sizeof m->hdr || m->len > SHR_MSG_MAX || m->fd_cnt > SHR_MSG_FDS_MAX)
		return TN_TOO_BIG;
	struct iovec iov = { .iov_base = (void *)(uintptr_t)m->bytes, .iov_len = m->len };
	struct msghdr mh = { .msg_iov = &iov, .msg_iovlen = 1 };
	union control ctl;
	if (m->fd_cnt != 0) {
		memset(&ctl, 0, sizeof ctl);
		mh.msg_control = ctl.bytes;
		mh.msg_controllen = CMSG_SPACE(m->fd_cnt * sizeof(int));
		struct cmsghdr *c = CMSG_FIRSTHDR(&mh);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(m->fd_cnt * sizeof(int));
		memcpy(CMSG_DATA(c), m->fds, m->fd_cnt * sizeof(int));
	}
	ssize_t n = sendmsg(sock, &mh, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (n < 0)
		return socket_status(errno);
	return (uint32_t)n == m->len ? TN_OK : TN_SYSTEM; /* SEQPACKET sends all or nothing */
}

/* Takes every received descriptor; keeps up to SHR_MSG_FDS_MAX in the message, closes the others. Returns how many came. */
static uint32_t take_fds(struct msghdr *mh, struct shr_msg *m)
{
	uint32_t came = 0;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(mh); c != NULL; c = CMSG_NXTHDR(mh, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		size_t cnt = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (size_t i = 0; i < cnt; i++) {
			int fd;
			memcpy(&fd, CMSG_DATA(c) + i * sizeof fd, sizeof fd);
			if (came < SHR_MSG_FDS_MAX)
				m->fds[m->fd_cnt++] = fd;
			else
				close(fd);
			came++;
		}
	}
	return came;
}

tn_status shr_msg_recv(int sock, enum shr_msg_from from, struct shr_msg *m)
{
	union control ctl;
	struct iovec iov = { .iov_base = m->bytes, .iov_len = sizeof m->bytes };
	struct msghdr mh = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = ctl.bytes, .msg_controllen = sizeof ctl.bytes
	};
	m->len = 0;
	m->fd_cnt = 0;
	for (uint32_t i = 0; i < SHR_MSG_FDS_MAX; i++)
		m->fds[i] = -1;
	ssize_t n = recvmsg(sock, &mh, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	if (n < 0)
		return socket_status(errno);
	uint32_t came = take_fds(&mh, m);
	/* Hang-up reads as an empty datagram; so does an empty datagram, which the protocol does not have. */
	tn_status s = n == 0 ? TN_PATH_DOWN : TN_OK;
	struct shr_msg_hdr hdr;
	if (s == TN_OK && (mh.msg_flags & MSG_TRUNC) != 0)
		s = TN_CLIENT_BROKEN;
	/* Truncated with fewer than the room received: not the peer, our own descriptor table is full. */
	if (s == TN_OK && (mh.msg_flags & MSG_CTRUNC) != 0)
		s = came < FDS_ROOM ? TN_LIMIT : TN_CLIENT_BROKEN;
	if (s == TN_OK)
		s = shr_msg_check(m->bytes, (size_t)n, came, from, &hdr);
	if (s != TN_OK) {
		shr_msg_close_fds(m);
		if (s == TN_LIMIT && (size_t)n >= sizeof m->hdr)
			m->len = (uint32_t)n;
		return s;
	}
	m->len = (uint32_t)n;
	return TN_OK;
}

/* TN_OK when the socket may have become ready, TN_TIMEOUT when the deadline is over. */
static tn_status wait_ready(int sock, short events, uint64_t deadline_ns)
{
	uint64_t left = tn_remaining_ns(deadline_ns, tn_now_ns());
	if (left == 0)
		return TN_TIMEOUT;
	struct pollfd p = { .fd = sock, .events = events };
	if (poll(&p, 1, tn_ns_to_poll_ms(left)) < 0 && errno != EINTR)
		return tn_status_from_errno(errno);
	return TN_OK;
}

tn_status shr_msg_send_until(int sock, const struct shr_msg *m, uint64_t deadline_ns)
{
	for (;;) {
		tn_status s = shr_msg_send(sock, m);
		if (s != TN_AGAIN)
			return s;
		s = wait_ready(sock, POLLOUT, deadline_ns);
		if (s != TN_OK)
			return s;
	}
}

tn_status shr_msg_recv_until(int sock, enum shr_msg_from from, struct shr_msg *m, uint64_t deadline_ns)
{
	for (;;) {
		tn_status s = shr_msg_recv(sock, from, m);
		if (s != TN_AGAIN)
			return s;
		s = wait_ready(sock, POLLIN, deadline_ns);
		if (s != TN_OK)
			return s;
	}
}

/* One try; TN_AGAIN when the listener's queue is full. */
static tn_status try_connect(int sock, const struct sockaddr_un *addr)
{
	if (connect(sock, (const struct sockaddr *)addr, sizeof *addr) == 0)
		return TN_OK;
	switch (errno) {
	case EAGAIN:
	case EINTR:
		return TN_AGAIN;
	case ENOENT:
	case ENOTDIR:
	case ECONNREFUSED:
		return TN_DATAPLANE_DOWN;
	default:
		return tn_status_from_errno(errno);
	}
}

tn_status shr_attach_connect(const char *path, uint64_t deadline_ns, int *sock_out)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int n = snprintf(addr.sun_path, sizeof addr.sun_path, "%s", path);
	if (n < 0 || (size_t)n >= sizeof addr.sun_path)
		return TN_TOO_BIG;
	int sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (sock < 0)
		return tn_status_from_errno(errno);
	tn_status s;
	while ((s = try_connect(sock, &addr)) == TN_AGAIN) {
		/* A full listen queue has no event to wait for on a unix socket: look again each millisecond. */
		if (tn_now_ns() >= deadline_ns) {
			s = TN_TIMEOUT;
			break;
		}
		nanosleep(&(struct timespec){ .tv_nsec = (long)TN_NS_PER_MS }, NULL);
	}
	if (s != TN_OK) {
		close(sock);
		return s;
	}
	*sock_out = sock;
	return TN_OK;
}

tn_status shr_peer_cred(int sock, struct shr_peer_cred *out)
{
	struct ucred cred;
	socklen_t len = sizeof cred;
	if (getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &cred, &len) != 0 || len != sizeof cred)
		return TN_SYSTEM;
	*out = (struct shr_peer_cred){ .pid = cred.pid, .uid = cred.uid, .gid = cred.gid };
	return TN_OK;
}

#if !defined SO_PEERPIDFD && (defined __x86_64__ || defined __aarch64__)
#define SO_PEERPIDFD 77 /* headers may be older than the kernel */
#endif

/* Linux 6.5 says which process connected, whatever became of its number. */
static int pidfd_of_peer(int sock, pid_t pid)
{
#ifdef SO_PEERPIDFD
	int fd = -1;
	socklen_t len = sizeof fd;
	if (getsockopt(sock, SOL_SOCKET, SO_PEERPIDFD, &fd, &len) == 0)
		return fd;
	if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ESRCH)
		return -1;
#else
	(void)sock;
#endif
	/* By number: it may belong to another process by now. Then the one that connected is dead, and only what it left
	 * behind is watched too long; nobody is dropped who lives. */
	return (int)syscall(SYS_pidfd_open, pid, 0);
}

tn_status shr_peer_pidfd(int sock, pid_t pid, int *fd_out)
{
	int fd = pid > 0 ? pidfd_of_peer(sock, pid) : -1;
	if (fd < 0 && pid > 0 && errno == ESRCH)
		return TN_CLIENT_GONE;
	if (fd < 0 && pid > 0 && (errno == EMFILE || errno == ENFILE || errno == ENOMEM))
		return tn_status_from_errno(errno);
	*fd_out = fd;
	return TN_OK;
}
