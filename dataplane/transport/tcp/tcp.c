/* SPDX-License-Identifier: Apache-2.0
 * Transport `tcp`: the framed protocol over kernel sockets. This file is the byte-stream provider (every socket call
 * of the data lanes is here) and the ops table; all else is transport/stream. Sockets are registered once, edge-
 * triggered: there is no epoll_ctl per operation. Worker thread only. */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/addr.h"
#include "common/clock.h"
#include "common/config.h"
#include "dataplane/transport/stream/stream.h"

#define URGENT_PRIORITY 6  /* SO_PRIORITY: the highest without a privilege */
#define URGENT_DSCP 0xb8   /* expedited forwarding */
#define LOCAL_BUFFER_BYTES (1 << 20)

struct tcp_provider {
	char congestion[16];
	int send_bytes, recv_bytes; /* 0: the kernel tunes */
	int local_send_bytes, local_recv_bytes; /* instead, between two addresses of this host; 0: the above holds */
	unsigned user_timeout_ms;
	struct tn_addr source; /* of our connections where it reaches, port 0; a wildcard: the kernel chooses */
};

static tn_status status_of(int err)
{
	switch (err) {
	case EAGAIN:
	case EINTR:
	case ENOBUFS:
	case ENOMEM: return TN_AGAIN;
	case EFAULT: return TN_FAULT;
	case ETIMEDOUT: return TN_PATH_TIMEOUT;
	default: return TN_PATH_DOWN;
	}
}

/* EAGAIN is no failure: nothing to remember. */
static tn_status failed(struct dp_bytes *b, int err)
{
	tn_status s = status_of(err);
	if (s != TN_AGAIN)
		b->os_error = err;
	return s;
}

static int set_int(int fd, int level, int name, int v) { return setsockopt(fd, level, name, &v, sizeof v); }

static int set_congestion(const struct tcp_provider *p, int fd)
{
	return setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, p->congestion, (socklen_t)strlen(p->congestion));
}

static void set_buffers(int fd, int send_bytes, int recv_bytes)
{
	if (send_bytes > 0)
		(void)set_int(fd, SOL_SOCKET, SO_SNDBUF, send_bytes);
	if (recv_bytes > 0)
		(void)set_int(fd, SOL_SOCKET, SO_RCVBUF, recv_bytes);
}

/* 0: one is configured, or the machine's limit is lower, and less than this is worse than the kernel's own tuning. */
static int local_bytes(int fd, int name, int configured)
{
	int got = 0;
	socklen_t len = sizeof got;
	bool may = configured == 0 && set_int(fd, SOL_SOCKET, name, LOCAL_BUFFER_BYTES) == 0 &&
		   getsockopt(fd, SOL_SOCKET, name, &got, &len) == 0 && got >= 2 * LOCAL_BUFFER_BYTES; /* it doubles */
	return may ? LOCAL_BUFFER_BYTES : 0;
}

/* Both ends on this host: nothing is ever on its way, and what the kernel's tuning would let pile up in between (several
 * MiB) leaves the caches before it is read. */
static void suit_local(const struct tcp_provider *p, int fd, const struct sockaddr_storage *peer)
{
	struct sockaddr_storage self;
	struct tn_addr here, there;
	socklen_t len = sizeof self;
	if (getsockname(fd, (struct sockaddr *)&self, &len) == 0 &&
	    tn_addr_from_sockaddr((const struct sockaddr *)&self, len, &here) == TN_OK &&
	    tn_addr_from_sockaddr((const struct sockaddr *)peer, sizeof *peer, &there) == TN_OK &&
	    (tn_addr_host_eq(&here, &there) || tn_addr_is_loopback(&there)))
		set_buffers(fd, p->local_send_bytes, p->local_recv_bytes);
}

/* Only what a missing privilege or an old kernel cannot refuse is checked; the rest is best effort. */
static bool set_options(const struct tcp_provider *p, int fd, int family, bool urgent)
{
	(void)set_congestion(p, fd); /* its availability was checked at start */
	(void)set_int(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, (int)p->user_timeout_ms);
	/* A lane that only waits for an answer sends nothing, so it would never meet the reset of a host that was replaced
	 * behind a silent network: a probe a second does. USER_TIMEOUT decides when silence is death. */
	(void)set_int(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
	(void)set_int(fd, IPPROTO_TCP, TCP_KEEPIDLE, 1);
	(void)set_int(fd, IPPROTO_TCP, TCP_KEEPINTVL, 1);
	set_buffers(fd, p->send_bytes, p->recv_bytes);
	if (urgent) {
		if (family == AF_INET6)
			(void)set_int(fd, IPPROTO_IPV6, IPV6_TCLASS, URGENT_DSCP);
		else
			(void)set_int(fd, IPPROTO_IP, IP_TOS, URGENT_DSCP);
		(void)set_int(fd, SOL_SOCKET, SO_PRIORITY, URGENT_PRIORITY);
	}
	return set_int(fd, IPPROTO_TCP, TCP_NODELAY, 1) == 0;
}

static void tcp_shut(void *provider) { free(provider); }

static tn_status tcp_open(struct dp_worker *w, void **provider_out)
{
	const struct tn_config *c = dp_worker_config(w);
	struct tcp_provider *p = calloc(1, sizeof *p);
	if (p == NULL)
		return TN_NO_MEMORY;
	strncpy(p->congestion, tn_config_str(c, TN_CFG_TCP_CONGESTION_CONTROL), sizeof p->congestion - 1);
	p->send_bytes = (int)tn_config_u64(c, TN_CFG_TCP_SEND_BUFFER_BYTES);
	p->recv_bytes = (int)tn_config_u64(c, TN_CFG_TCP_RECV_BUFFER_BYTES);
	p->user_timeout_ms = (unsigned)tn_config_u64(c, TN_CFG_TCP_PROGRESS_TIMEOUT_MS);
	char why[TN_ERR_TEXT];
	if (tn_addr_parse(tn_config_str(c, TN_CFG_TCP_BIND_ADDRESS), 0, &p->source, why) != TN_OK) {
		tcp_shut(p); /* the interface of its zone is gone */
		return TN_CONFIG;
	}
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
	bool known = fd >= 0 && set_congestion(p, fd) == 0;
	p->local_send_bytes = local_bytes(fd, SO_SNDBUF, p->send_bytes);
	p->local_recv_bytes = local_bytes(fd, SO_RCVBUF, p->recv_bytes);
	if (fd >= 0)
		close(fd);
	if (!known) {
		tcp_shut(p);
		return fd < 0 ? TN_UNSUPPORTED : TN_CONFIG; /* no such congestion control here */
	}
	*provider_out = p;
	return TN_OK;
}

static tn_status watch(struct dp_bytes *b, int fd)
{
	b->poll.fd = fd;
	tn_status st = dp_worker_poll_add(b->worker, &b->poll, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET);
	if (st != TN_OK) {
		close(fd);
		b->poll.fd = -1;
	}
	return st;
}

/* The receiver binds our ticket to addresses, and which one the kernel would choose is for the routes to say: ours is
 * the one that peers are told. The port is left to connect(2), which has more of them to choose from. */
static bool bind_source(const struct tcp_provider *p, int fd, const struct sockaddr_storage *to, socklen_t len)
{
	struct tn_addr dest = { .ss = *to, .len = len };
	if (!tn_addr_may_reach(&p->source, &dest))
		return true;
	(void)set_int(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1);
	return bind(fd, (const struct sockaddr *)&p->source.ss, p->source.len) == 0;
}

static tn_status tcp_connect(void *provider, struct dp_bytes *b, const struct sockaddr_storage *to, bool urgent)
{
	socklen_t len = to->ss_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
	int fd = socket(to->ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0) {
		b->os_error = errno;
		return TN_PATH_DOWN;
	}
	if (!set_options(provider, fd, to->ss_family, urgent) || !bind_source(provider, fd, to, len) ||
	    (connect(fd, (const struct sockaddr *)to, len) != 0 && errno != EINPROGRESS)) {
		tn_status st = failed(b, errno);
		close(fd);
		return st == TN_AGAIN ? TN_PATH_DOWN : st;
	}
	suit_local(provider, fd, to);
	return watch(b, fd);
}

static tn_status tcp_connected(struct dp_bytes *b)
{
	struct sockaddr_storage peer;
	int err = 0;
	socklen_t len = sizeof err;
	if (getsockopt(b->poll.fd, SOL_SOCKET, SO_ERROR, &err, &len) != 0 || err != 0) {
		b->os_error = err;
		return err == ETIMEDOUT ? TN_PATH_TIMEOUT : TN_PATH_DOWN;
	}
	len = sizeof peer;
	return getpeername(b->poll.fd, (struct sockaddr *)&peer, &len) == 0 ? TN_OK : TN_AGAIN;
}

static tn_status tcp_adopt(void *provider, struct dp_bytes *b, int fd, bool urgent)
{
	struct sockaddr_storage peer;
	socklen_t len = sizeof peer;
	int flags = fcntl(fd, F_GETFL);
	if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) != 0 ||
	    getpeername(fd, (struct sockaddr *)&peer, &len) != 0 ||
	    !set_options(provider, fd, peer.ss_family, urgent)) {
		close(fd);
		return TN_PATH_DOWN;
	}
	suit_local(provider, fd, &peer);
	return watch(b, fd);
}

static tn_status tcp_readv(struct dp_bytes *b, const struct iovec *iov, uint32_t cnt, size_t *moved_out)
{
	struct msghdr m = { .msg_iov = (struct iovec *)(uintptr_t)iov, .msg_iovlen = cnt };
	ssize_t n;
	do
		n = recvmsg(b->poll.fd, &m, MSG_DONTWAIT);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return failed(b, errno);
	if (n == 0)
		return TN_CLOSED;
	*moved_out = (size_t)n;
	return TN_OK;
}

static tn_status tcp_writev(struct dp_bytes *b, const struct iovec *iov, uint32_t cnt, size_t *moved_out)
{
	struct msghdr m = { .msg_iov = (struct iovec *)(uintptr_t)iov, .msg_iovlen = cnt };
	ssize_t n;
	do
		n = sendmsg(b->poll.fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return failed(b, errno);
	*moved_out = (size_t)n;
	return n > 0 ? TN_OK : TN_AGAIN;
}

static void tcp_close(struct dp_bytes *b, bool abort)
{
	if (b->poll.fd < 0)
		return;
	dp_worker_poll_del(b->worker, &b->poll);
	if (abort)
		(void)setsockopt(b->poll.fd, SOL_SOCKET, SO_LINGER, &(struct linger){ .l_onoff = 1 },
				 sizeof(struct linger));
	close(b->poll.fd);
	b->poll.fd = -1;
}

static bool tcp_info_get(const struct dp_bytes *b, struct dp_bytes_info *out)
{
	struct tcp_info ti = { 0 };
	socklen_t len = sizeof ti;
	if (b->poll.fd < 0 || getsockopt(b->poll.fd, IPPROTO_TCP, TCP_INFO, &ti, &len) != 0)
		return false;
	*out = (struct dp_bytes_info){ .retrans_total = ti.tcpi_total_retrans, .srtt_ns = ti.tcpi_rtt * TN_NS_PER_US,
	                               .cwnd_segments = ti.tcpi_snd_cwnd };
	return true;
}

static const struct dp_bytes_ops kernel_bytes = {
	.open = tcp_open, .shut = tcp_shut, .connect = tcp_connect, .connected = tcp_connected, .adopt = tcp_adopt,
	.readv = tcp_readv, .writev = tcp_writev, .close = tcp_close, .info = tcp_info_get,
};

static tn_status create(struct dp_worker *w, struct dp_transport **out)
{
	const struct tn_config *config = dp_worker_config(w);
	struct dp_stream_cfg cfg;
	if (!tn_config_bool(config, TN_CFG_TCP_ENABLE))
		return TN_UNSUPPORTED;
	dp_stream_cfg_tcp(config, &cfg);
	return dp_stream_new(w, &dp_tcp_ops, &kernel_bytes, &cfg, out);
}

const struct dp_transport_ops dp_tcp_ops = { .kind = TN_TRANSPORT_TCP, .create = create, DP_STREAM_OPS };
