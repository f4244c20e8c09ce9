/* SPDX-License-Identifier: Apache-2.0
 * See stream.h. */
#include "perf/baseline/stream.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "common/compiler.h"

#define GATHER 16 /* messages per send */

static void watch(struct tb_stream *s, int op)
{
	struct epoll_event e = { .events = EPOLLIN | (s->wants_write ? EPOLLOUT : 0) };

	if (epoll_ctl(s->epoll, op, s->fd, &e) != 0) {
		perror("tcp_loop: epoll");
		exit(EXIT_FAILURE);
	}
}

void tb_stream_init(struct tb_stream *s, int fd, uint32_t out_head_bytes, const struct tb_stream_ops *ops, void *ctx)
{
	memset(s, 0, sizeof *s);
	s->fd = fd;
	s->ops = ops;
	s->ctx = ctx;
	s->out_head_bytes = out_head_bytes;
	s->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK) != 0) {
		perror("tcp_loop: non-blocking");
		exit(EXIT_FAILURE);
	}
	watch(s, EPOLL_CTL_ADD);
}

void tb_stream_send(struct tb_stream *s, const void *head, const void *payload, uint64_t payload_bytes)
{
	uint32_t at = (s->out_first + s->out_cnt) % TB_QUEUE;

	if (s->out_cnt == TB_QUEUE)
		abort();
	memcpy(s->out[at].head, head, s->out_head_bytes);
	s->out[at].payload = payload;
	s->out[at].payload_bytes = payload_bytes;
	s->out_cnt++;
}

static unsigned gather(struct tb_stream *s, struct iovec iov[2 * GATHER])
{
	unsigned cnt = 0;
	uint64_t skip = s->out_off;

	for (uint32_t i = 0; i < s->out_cnt && i < GATHER; i++) {
		uint32_t at = (s->out_first + i) % TB_QUEUE;
		uint64_t head_skip = TN_MIN(skip, s->out_head_bytes), skip_payload = skip - head_skip;

		if (head_skip < s->out_head_bytes)
			iov[cnt++] = (struct iovec){ s->out[at].head + head_skip, s->out_head_bytes - head_skip };
		if (skip_payload < s->out[at].payload_bytes) {
			iov[cnt].iov_base = (void *)((uintptr_t)s->out[at].payload + skip_payload);
			iov[cnt++].iov_len = s->out[at].payload_bytes - skip_payload;
		}
		skip = 0;
	}
	return cnt;
}

/* true: the socket takes no more now (or the connection is over, which the next receive tells). */
static bool send_some(struct tb_stream *s)
{
	struct iovec iov[2 * GATHER];
	struct msghdr m = { .msg_iov = iov, .msg_iovlen = gather(s, iov) };
	uint64_t offered = 0;

	for (unsigned i = 0; i < m.msg_iovlen; i++)
		offered += iov[i].iov_len;
	ssize_t n = sendmsg(s->fd, &m, MSG_NOSIGNAL);
	if (n <= 0)
		return true;
	s->out_off += (uint64_t)n;
	while (s->out_cnt > 0 && s->out_off >= s->out_head_bytes + s->out[s->out_first].payload_bytes) {
		s->out_off -= s->out_head_bytes + s->out[s->out_first].payload_bytes;
		s->out_first = (s->out_first + 1) % TB_QUEUE;
		s->out_cnt--;
	}
	return (uint64_t)n < offered;
}

/* 1: something came; 0: nothing now; -1: over. */
static int receive_some(struct tb_stream *s)
{
	uint32_t head = s->ops->head_bytes;
	uint64_t payload = s->in_off < head ? 0 : s->ops->payload_bytes(s->head);
	uint8_t *to = s->in_off < head ? s->head + s->in_off :
					 (uint8_t *)s->ops->payload(s->ctx, s->head) + (s->in_off - head);
	ssize_t n = recv(s->fd, to, s->in_off < head ? head - s->in_off : head + payload - s->in_off, 0);

	if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
		return -1;
	if (n < 0)
		return 0;
	s->in_off += (uint64_t)n;
	if (s->in_off >= head && s->in_off == head + s->ops->payload_bytes(s->head)) {
		s->in_off = 0;
		s->ops->done(s->ctx, s->head);
	}
	return 1;
}

bool tb_stream_step(struct tb_stream *s)
{
	struct epoll_event e;
	bool full = false;
	int got = 1;

	while (s->out_cnt > 0 && !full)
		full = send_some(s);
	if (full != s->wants_write) {
		s->wants_write = full;
		watch(s, EPOLL_CTL_MOD);
	}
	if (epoll_wait(s->epoll, &e, 1, -1) < 0)
		return errno == EINTR;
	for (int i = 0; i < 2 * GATHER && got > 0; i++)
		got = receive_some(s);
	return got >= 0;
}
