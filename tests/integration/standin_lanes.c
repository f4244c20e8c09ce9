/* SPDX-License-Identifier: Apache-2.0
 * Data lanes of the peers that stand in: a receiver that answers HELLO, READ and WRITE of 4 KiB segments, and a sender
 * that opens lanes and reads. The bytes are the product's own codec; everything else is as plain as can be: sockets that
 * block, with a time limit, where the daemon under test is the one that must not. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "dataplane/transport/stream/hello.h"
#include "tests/integration/standin.h"

#define HELD_MAX 4096u

struct lane { int fd; struct peer *peer; uint64_t next_id; };

static int listener = -1, epoll = -1;
static struct lane held[HELD_MAX];
static uint32_t held_cnt;
uint32_t served_lanes;
uint64_t served_requests;

static void patience(int fd)
{
	struct timeval t = { .tv_sec = 10 };
	const int on = 1;
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
	(void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof t);
	(void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &t, sizeof t);
}

static bool get(int fd, void *to, size_t bytes)
{
	for (size_t got = 0; got < bytes;) {
		ssize_t n = recv(fd, (uint8_t *)to + got, bytes - got, 0);
		if (n <= 0)
			return false;
		got += (size_t)n;
	}
	return true;
}

static bool put(int fd, const void *from, size_t bytes)
{
	for (size_t sent = 0; sent < bytes;) {
		ssize_t n = send(fd, (const uint8_t *)from + sent, bytes - sent, MSG_NOSIGNAL);
		if (n <= 0)
			return false;
		sent += (size_t)n;
	}
	return true;
}

/* ---- receiver ---- */

int lanes_listen(uint16_t *port_out)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof a;
	struct epoll_event ev = { .events = EPOLLIN };
	listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	epoll = epoll_create1(EPOLL_CLOEXEC);
	if (listener < 0 || bind(listener, (struct sockaddr *)&a, sizeof a) != 0 || listen(listener, 1024) != 0 ||
	    getsockname(listener, (struct sockaddr *)&a, &len) != 0 ||
	    epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &ev) != 0)
		die("listen");
	*port_out = ntohs(a.sin_port);
	return epoll;
}

static struct peer *peer_by_session(const struct tn_id128 *session)
{
	for (uint32_t i = 0; i < peer_cnt; i++)
		if (tn_id128_eq(&peers[i].session, session))
			return &peers[i];
	return NULL;
}

/* False: close it. */
static bool serve_hello(struct lane *l)
{
	uint8_t in[DP_HELLO_BYTES], out[DP_HELLO_ANSWER_BYTES];
	struct dp_hello h;
	if (!get(l->fd, in, sizeof in) || dp_hello_decode(in, sizeof in, &h) != DP_FRAME_OK)
		return false;
	l->peer = peer_by_session(&h.receiver_session);
	bool good = l->peer != NULL && tn_id128_eq(&l->peer->ticket, &h.ticket);
	struct dp_hello_answer a = { .version = DP_FRAME_VERSION, .status = good ? DP_HELLO_ACCEPTED : DP_HELLO_NO_TICKET,
				     .frame_bytes = DP_FRAME_BYTES_MAX, .path_epoch = h.path_epoch };
	if (good)
		a.session = l->peer->session;
	dp_hello_answer_encode(&a, out);
	return put(l->fd, out, sizeof out) && good;
}

static bool serve_request(struct lane *l)
{
	static uint8_t sink[DP_FRAME_BYTES_MAX];
	uint8_t in[DP_FRAME_REQ_BYTES], out[DP_FRAME_RSP_BYTES];
	struct dp_frame_req_rule rule = { .id = l->next_id, .frame_bytes = DP_FRAME_BYTES_MAX };
	struct dp_frame_req rq;
	if (!get(l->fd, in, sizeof in) || dp_frame_req_decode(in, sizeof in, &rule, &rq) != DP_FRAME_OK)
		return false;
	l->next_id++;
	if (dp_frame_op_pushes(rq.op) && !get(l->fd, sink, rq.length))
		return false;
	bool good = rq.length <= CONTENT_BYTES && rq.offset <= CONTENT_BYTES - rq.length;
	struct dp_frame_rsp rsp = { .status = good ? DP_FRAME_ST_OK : DP_FRAME_ST_RANGE, .id = rq.id,
				    .committed = good ? rq.length : 0 };
	dp_frame_rsp_encode(&rsp, out);
	served_requests++;
	return put(l->fd, out, sizeof out) &&
	       (!good || rq.op != DP_FRAME_READ || put(l->fd, l->peer->content + rq.offset, rq.length));
}

static void accept_all(void)
{
	int fd;
	while ((fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
		struct lane *l = calloc(1, sizeof *l);
		struct epoll_event ev = { .events = EPOLLIN, .data.ptr = l };
		if (l == NULL || epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &ev) != 0)
			die("accept");
		*l = (struct lane){ .fd = fd, .next_id = 1 };
		patience(fd);
		served_lanes++;
	}
}

void serve_lanes(void)
{
	struct epoll_event evs[64];
	int n = epoll_wait(epoll, evs, 64, 0);
	for (int i = 0; i < n; i++) {
		struct lane *l = evs[i].data.ptr;
		if (l == NULL) {
			accept_all();
		} else if (!(l->peer == NULL ? serve_hello(l) : serve_request(l))) {
			close(l->fd);
			free(l);
			served_lanes--;
		}
	}
}

/* ---- sender ---- */

bool lane_open(struct peer *p, uint16_t lane)
{
	uint8_t out[DP_HELLO_BYTES], in[DP_HELLO_ANSWER_BYTES];
	struct dp_hello_answer a = { 0 };
	struct dp_hello h = { .version_min = DP_FRAME_VERSION, .version_max = DP_FRAME_VERSION, .sender_session = p->session,
			      .receiver_session = p->their_session, .sender = p->id, .ticket = p->their_ticket,
			      .path_epoch = p->epoch, .lane = lane, .frame_bytes = DP_FRAME_BYTES_MAX };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || held_cnt == HELD_MAX)
		die("socket");
	patience(fd);
	dp_hello_encode(&h, out);
	bool good = connect(fd, (struct sockaddr *)&p->their_door, sizeof p->their_door) == 0 && put(fd, out, sizeof out) &&
		    get(fd, in, sizeof in) && dp_hello_answer_decode(in, sizeof in, &a) == DP_FRAME_OK &&
		    a.status == DP_HELLO_ACCEPTED && tn_id128_eq(&a.session, &p->their_session);
	if (!good) {
		fprintf(stderr, "standin: a lane of %s was not accepted: answer status %u, %d\n", p->name, a.status, errno);
		close(fd);
		return false;
	}
	held[held_cnt++] = (struct lane){ .fd = fd, .peer = p, .next_id = 1 };
	return true;
}

static bool read_one(struct lane *l, const char *segment)
{
	uint8_t out[DP_FRAME_REQ_BYTES], in[DP_FRAME_RSP_BYTES], content[CONTENT_BYTES];
	struct dp_frame_req rq = { .op = DP_FRAME_READ, .id = l->next_id++, .registration = l->peer->registration,
				   .length = CONTENT_BYTES };
	struct dp_frame_rsp rsp;
	dp_frame_req_encode(&rq, out);
	return put(l->fd, out, sizeof out) && get(l->fd, in, sizeof in) &&
	       dp_frame_rsp_decode(in, sizeof in, rq.id, rq.length, &rsp) == DP_FRAME_OK && rsp.status == DP_FRAME_ST_OK &&
	       get(l->fd, content, sizeof content) && content_is(content, segment);
}

uint32_t lanes_read(const char *segment)
{
	uint32_t good = 0;
	for (uint32_t i = 0; i < held_cnt; i++)
		good += read_one(&held[i], segment);
	return good;
}

void lanes_close(void)
{
	const struct linger reset = { .l_onoff = 1 };
	for (uint32_t i = 0; i < held_cnt; i++) {
		if (i % 2 == 1)
			(void)setsockopt(held[i].fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
		close(held[i].fd);
	}
	held_cnt = 0;
}

uint32_t lanes_held(void) { return held_cnt; }
