/* SPDX-License-Identifier: Apache-2.0
 * What a byte-stream provider offers to lanes: kernel sockets (transport/tcp), later tent's own TCP, a memory pipe in
 * tests. The only thing lanes know about the network; resolved once at set-up. One instance per worker, all calls
 * from its thread, nothing blocks.
 *
 * Readiness is edge-like: after a short or refused read or write the provider calls poll.ready once that direction
 * can move again (EPOLLIN, EPOLLOUT), and when the other end closed or the connection died (EPOLLRDHUP, EPOLLHUP,
 * EPOLLERR). Extra calls are harmless. There is no per-operation change of interest. */
#ifndef DP_STREAM_BYTES_H
#define DP_STREAM_BYTES_H

#include <sys/uio.h>

#include "dataplane/transport/transport.h"

#define DP_BYTES_IOV_MAX 64u

struct dp_bytes { /* one connection; embedded in its lane */
	struct dp_pollable poll;  /* poll.ready is set by the lane before connect or adopt; poll.fd is the provider's */
	struct dp_worker *worker;
	void *conn;               /* the provider's own */
	int os_error;             /* errno behind its last failure; 0 = none */
};

struct dp_bytes_info { uint64_t retrans_total, srtt_ns; uint32_t cwnd_segments; };

struct dp_bytes_ops {
	/* Per-worker state from the config; TN_UNSUPPORTED: cannot work on this host. */
	tn_status (*open)(struct dp_worker *w, void **provider_out);
	void (*shut)(void *provider);
	/* Begin a connection (urgent: mark it for strict priority). OK: b is open, connected or on its way. */
	tn_status (*connect)(void *provider, struct dp_bytes *b, const struct sockaddr_storage *to, bool urgent);
	/* After EPOLLOUT or EPOLLERR: OK connected, AGAIN still on its way, failed: PATH_DOWN, PATH_TIMEOUT. */
	tn_status (*connected)(struct dp_bytes *b);
	/* Take over an accepted socket; fd is the provider's from here, also on failure (then closed). */
	tn_status (*adopt)(void *provider, struct dp_bytes *b, int fd, bool urgent);
	/* Move bytes; cnt <= DP_BYTES_IOV_MAX. OK: *moved_out >= 1. AGAIN: nothing now. CLOSED (readv): the other end
	 * will send no more. PATH_DOWN: reset. PATH_TIMEOUT: the connection gave up. FAULT: a page of the caller's
	 * buffer cannot be had; nothing moved. */
	tn_status (*readv)(struct dp_bytes *b, const struct iovec *iov, uint32_t cnt, size_t *moved_out);
	tn_status (*writev)(struct dp_bytes *b, const struct iovec *iov, uint32_t cnt, size_t *moved_out);
	/* abort: drop what is unsent (RST); else what was written is still delivered. No ready() afterwards. */
	void (*close)(struct dp_bytes *b, bool abort);
	/* False: no figures. */
	bool (*info)(const struct dp_bytes *b, struct dp_bytes_info *out);
};

#endif
