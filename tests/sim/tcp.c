/* SPDX-License-Identifier: Apache-2.0
 * TCP as its users see it: ordered bytes that arrive late, in pieces of any size, or not at all; a close that may be a
 * reset; bytes of a connection that one end gave up long ago and that the other still has to read. One thread. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "tests/sim/fd.h"
#include "tests/sim/net.h"

#define BACKLOG 64u

enum state { IDLE, BOUND, LISTENING, CONNECTING, UP, OVER };

struct chunk { struct chunk *next; size_t len, at; uint64_t arrives_ns; bool fin, reset; uint8_t bytes[]; };

struct tcp {
	struct sim_obj o;
	struct tn_list all;
	enum state state;
	uint32_t host, peer_host;
	struct sockaddr_in self, other;
	struct tcp *peer;           /* a reference */
	int error;                  /* told once, by SO_ERROR or by a call */
	bool end_of_input, linger;
	struct chunk *rx, **rx_tail, *way, **way_tail; /* readable here; sent by us and still on its way */
	size_t rx_bytes, way_bytes;
	uint64_t last_arrival_ns, user_timeout_ns;
	bool delivering;
	struct tcp *backlog[BACKLOG];
	unsigned backlog_cnt;
};

static struct tn_list sockets = { &sockets, &sockets };
static struct sim_link links[SIM_HOSTS][SIM_HOSTS];
static uint16_t port_next = 30000;

/* ---- links ---- */

struct sim_link *sim_link(uint32_t from, uint32_t to) { return &links[TN_MIN(from, to)][TN_MAX(from, to)]; }

void sim_link_init(void)
{
	for (uint32_t a = 0; a < SIM_HOSTS; a++) {
		for (uint32_t b = a; b < SIM_HOSTS; b++)
			*sim_link(a, b) = (struct sim_link){
				.delay_ns = a == b ? 5000 : sim_pick(10000, 400000), .jitter_ns = a == b ? 2000 : sim_pick(0, 300000),
				.bytes_per_s = sim_pick(50, 4000) << 20, .write_max = (uint32_t)sim_pick(64, 32768),
				.pipe_max = (uint32_t)sim_pick(4096, 262144) };
	}
}

uint64_t sim_link_delay(uint32_t from, uint32_t to, size_t bytes)
{
	const struct sim_link *l = sim_link(from, to);
	return l->delay_ns + sim_pick(0, l->jitter_ns) + bytes * TN_NS_PER_S / l->bytes_per_s;
}

const char *sim_host_address(uint32_t host)
{
	static const char *const text[] = { "10.0.0.1", "10.0.0.2" };
	return text[host];
}

static uint32_t host_of(const struct sockaddr_in *a)
{
	return (ntohl(a->sin_addr.s_addr) & 0xff) - 1;
}

/* ---- bytes on their way ---- */

static void give_up(struct tcp *t, int error)
{
	if (t->state == OVER)
		return;
	t->state = OVER;
	t->error = error;
	sim_obj_changed(&t->o);
}

static void drop_chunks(struct chunk **head, struct chunk ***tail)
{
	for (struct chunk *c; (c = *head) != NULL;) {
		*head = c->next;
		free(c);
	}
	*tail = head;
}

static void deliver(void *arg, uint64_t num);

static void schedule(struct tcp *t)
{
	if (t->way == NULL || t->delivering)
		return;
	t->delivering = true;
	sim_obj_get(&t->o);
	sim_after(tn_remaining_ns(t->way->arrives_ns, sim.now_ns), deliver, t, 0);
}

static void arrive(struct tcp *to, struct chunk *c)
{
	if (c->reset) {
		if (sim_chance(2)) {
			drop_chunks(&to->rx, &to->rx_tail);
			to->rx_bytes = 0;
		}
		give_up(to, ECONNRESET);
		free(c);
		return;
	}
	if (c->fin) {
		to->end_of_input = true;
		free(c);
	} else {
		c->next = NULL;
		*to->rx_tail = c;
		to->rx_tail = &c->next;
		to->rx_bytes += c->len;
	}
	sim_obj_changed(&to->o);
}

/* Who waits longer than TCP_USER_TIMEOUT for an acknowledgement gives up; the other end hears nothing of it. */
static bool waited_too_long(const struct tcp *t, const struct chunk *c)
{
	return sim.now_ns - c->arrives_ns > t->user_timeout_ns;
}

static void deliver(void *arg, uint64_t num)
{
	struct tcp *t = arg;
	(void)num;
	t->delivering = false;
	struct chunk *c = t->way;
	if (c != NULL && c->arrives_ns > sim.now_ns) { /* it was held up */
		schedule(t);
	} else if (c != NULL && sim_link(t->host, t->peer_host)->cut) {
		if (waited_too_long(t, c)) {
			drop_chunks(&t->way, &t->way_tail);
			give_up(t, ETIMEDOUT);
		} else {
			t->delivering = true;
			sim_obj_get(&t->o);
			sim_after(20 * TN_NS_PER_MS, deliver, t, 0);
		}
	} else if (c != NULL) {
		t->way = c->next;
		if (t->way == NULL)
			t->way_tail = &t->way;
		t->way_bytes -= c->len;
		struct tcp *to = t->peer;
		if (to != NULL && (to->state == UP || c->reset) && to->o.fds > 0)
			arrive(to, c);
		else if (to != NULL && to->o.fds == 0 && !c->fin && !c->reset) {
			free(c);
			give_up(t, ECONNRESET); /* nobody is there any more */
		} else {
			free(c);
		}
		schedule(t);
	}
	sim_obj_put(&t->o);
}

static void send_chunk(struct tcp *t, struct chunk *c)
{
	uint64_t at = sim.now_ns + sim_link_delay(t->host, t->peer_host, c->len);
	c->arrives_ns = t->last_arrival_ns = TN_MAX(at, t->last_arrival_ns);
	c->next = NULL;
	*t->way_tail = c;
	t->way_tail = &c->next;
	t->way_bytes += c->len;
	schedule(t);
}

static void send_sign(struct tcp *t, bool reset)
{
	struct chunk *c = sim_calloc(1, sizeof *c);
	c->fin = !reset;
	c->reset = reset;
	send_chunk(t, c);
}

/* What is on its way arrives later than what goes over other connections from now on. */
static void hold_up(struct tcp *t)
{
	uint64_t ns = sim_chance(2) ? sim_pick(1, 1500) * TN_NS_PER_MS : sim_pick(0, 20) * TN_NS_PER_MS;
	for (struct chunk *c = t->way; c != NULL; c = c->next)
		c->arrives_ns += ns;
	t->last_arrival_ns += ns;
}

static void break_off(void *arg, uint64_t num)
{
	struct tcp *t = arg;
	(void)num;
	if (t->state == UP && t->peer != NULL) {
		sim_trace("reset of a connection %u-%u, %zu bytes on their way", t->host, t->peer_host, t->way_bytes);
		hold_up(t);
		send_sign(t, true);
		give_up(t, ECONNRESET);
	}
	sim_obj_put(&t->o);
}

static size_t room(const struct tcp *t)
{
	const struct sim_link *l = sim_link(t->host, t->peer_host);
	size_t used = t->way_bytes + (t->peer != NULL ? t->peer->rx_bytes : 0);
	return used < l->pipe_max ? l->pipe_max - used : 0;
}

/* ---- operations ---- */

static uint32_t tcp_ready(const struct sim_obj *o)
{
	const struct tcp *t = sim_of(o, struct tcp);
	switch (t->state) {
	case LISTENING: return t->backlog_cnt > 0 ? EPOLLIN : 0;
	case CONNECTING: return 0;
	case UP:
		return (t->rx != NULL || t->end_of_input ? EPOLLIN : 0u) | (t->end_of_input ? EPOLLRDHUP : 0u) |
		       (room(t) > 0 ? EPOLLOUT : 0u);
	case OVER: return EPOLLIN | EPOLLOUT | EPOLLERR | EPOLLHUP | EPOLLRDHUP;
	default: return EPOLLHUP | EPOLLOUT;
	}
}

static void tcp_closed(struct sim_obj *o)
{
	struct tcp *t = sim_of(o, struct tcp);
	for (unsigned i = 0; i < t->backlog_cnt; i++) {
		send_sign(t->backlog[i], true);
		t->backlog[i]->state = OVER;
	}
	t->backlog_cnt = 0;
	if (t->state == UP && t->peer != NULL) {
		if (t->host != t->peer_host && sim_chance(2))
			hold_up(t);
		send_sign(t, t->linger || t->rx != NULL);
	}
	t->state = OVER;
	drop_chunks(&t->rx, &t->rx_tail);
	t->rx_bytes = 0;
}

static ssize_t tcp_recvmsg(struct sim_obj *o, struct msghdr *h)
{
	struct tcp *t = sim_of(o, struct tcp);
	size_t got = 0;
	h->msg_controllen = 0;
	h->msg_flags = 0;
	if (t->rx == NULL && t->state == OVER && t->error != 0) {
		errno = t->error;
		t->error = 0;
		return -1;
	}
	if (t->rx == NULL) {
		errno = t->state == UP || t->state == OVER ? EAGAIN : ENOTCONN;
		return t->end_of_input || t->state == OVER ? 0 : -1;
	}
	bool was_full = t->peer != NULL && room(t->peer) == 0;
	for (size_t i = 0; i < h->msg_iovlen; i++) {
		size_t done = 0;
		while (t->rx != NULL && done < h->msg_iov[i].iov_len) {
			struct chunk *c = t->rx;
			size_t n = TN_MIN(c->len - c->at, h->msg_iov[i].iov_len - done);
			memcpy((uint8_t *)h->msg_iov[i].iov_base + done, c->bytes + c->at, n);
			c->at += n;
			done += n;
			t->rx_bytes -= n;
			if (c->at < c->len)
				continue;
			t->rx = c->next;
			if (t->rx == NULL)
				t->rx_tail = &t->rx;
			free(c);
		}
		got += done;
	}
	if (was_full && room(t->peer) > 0)
		sim_obj_changed(&t->peer->o);
	return (ssize_t)got;
}

static void writable_again(void *arg, uint64_t num)
{
	struct tcp *t = arg;
	(void)num;
	sim_obj_changed(&t->o);
}

static ssize_t tcp_sendmsg(struct sim_obj *o, const struct msghdr *h)
{
	struct tcp *t = sim_of(o, struct tcp);
	const struct sim_link *l = sim_link(t->host, t->peer_host);
	if (t->state != UP) {
		errno = t->error != 0 ? t->error : EPIPE;
		t->error = 0;
		return -1;
	}
	size_t may = TN_MIN(room(t), (size_t)sim_pick(1, l->write_max)), total = 0;
	for (size_t i = 0; i < h->msg_iovlen; i++)
		total += h->msg_iov[i].iov_len;
	may = TN_MIN(may, total);
	if (may == 0) {
		errno = EAGAIN;
		return -1;
	}
	struct chunk *c = sim_calloc(1, sizeof *c + may);
	for (size_t i = 0; i < h->msg_iovlen && c->len < may; i++) {
		size_t n = TN_MIN(h->msg_iov[i].iov_len, may - c->len);
		memcpy(c->bytes + c->len, h->msg_iov[i].iov_base, n);
		c->len += n;
	}
	send_chunk(t, c);
	if (l->reset_next) {
		sim_link(t->host, t->peer_host)->reset_next = false;
		sim_obj_get(o);
		sim_after(sim_pick(0, l->delay_ns), break_off, t, 0);
	}
	if (may < total)
		sim_after(sim_pick(200, 20000), writable_again, t, 0);
	return (ssize_t)may;
}

const struct sim_ops sim_tcp_ops = { .name = "tcp", .ready = tcp_ready, .closed = tcp_closed, .recvmsg = tcp_recvmsg,
				     .sendmsg = tcp_sendmsg };

/* ---- set-up ---- */

static struct tcp *tcp_new(uint32_t host)
{
	struct tcp *t = sim_calloc(1, sizeof *t);
	sim_obj_init(&t->o, &sim_tcp_ops); /* its first reference stays until the seed ends: peers and events point here */
	t->host = host;
	t->rx_tail = &t->rx;
	t->way_tail = &t->way;
	t->user_timeout_ns = 10 * TN_NS_PER_S;
	t->self = (struct sockaddr_in){ .sin_family = AF_INET };
	(void)inet_pton(AF_INET, sim_host_address(host), &t->self.sin_addr);
	tn_list_push_back(&sockets, &t->all);
	return t;
}

int sim_tcp_socket(int family)
{
	if (family != AF_INET) {
		errno = EAFNOSUPPORT;
		return -1;
	}
	return sim_fd_new(&tcp_new(sim_self()->host)->o);
}

static struct tcp *listener_at(uint32_t host, uint16_t port)
{
	tn_list_foreach(node, &sockets) {
		struct tcp *t = tn_list_entry(node, struct tcp, all);
		if (t->state == LISTENING && t->host == host && t->self.sin_port == port)
			return t;
	}
	return NULL;
}

int sim_tcp_bind(struct sim_obj *o, const struct sockaddr *a, socklen_t len)
{
	struct tcp *t = sim_of(o, struct tcp);
	struct sockaddr_in in;
	if (len < sizeof in || a->sa_family != AF_INET) {
		errno = EINVAL;
		return -1;
	}
	memcpy(&in, a, sizeof in);
	if (in.sin_port != 0 && listener_at(t->host, in.sin_port) != NULL) {
		errno = EADDRINUSE;
		return -1;
	}
	t->self = in;
	t->state = BOUND;
	return 0;
}

int sim_tcp_listen(struct sim_obj *o)
{
	struct tcp *t = sim_of(o, struct tcp);
	if (t->self.sin_port == 0)
		t->self.sin_port = htons(port_next++);
	t->state = LISTENING;
	return 0;
}

static void joined(void *arg, uint64_t num)
{
	struct tcp *t = arg;
	(void)num;
	if (t->state == CONNECTING && t->o.fds > 0) {
		t->state = UP;
		sim_obj_changed(&t->o);
	}
	sim_obj_put(&t->o);
}

static void knock(void *arg, uint64_t tries)
{
	struct tcp *t = arg;
	struct tcp *door = listener_at(t->peer_host, t->other.sin_port);
	if (t->state != CONNECTING || t->o.fds == 0) {
		sim_obj_put(&t->o);
	} else if (sim_link(t->host, t->peer_host)->cut) {
		if (tries >= 40) {
			give_up(t, ETIMEDOUT);
			sim_obj_put(&t->o);
		} else {
			sim_after(100 * TN_NS_PER_MS, knock, t, tries + 1);
		}
	} else if (door == NULL || door->backlog_cnt == BACKLOG) {
		give_up(t, ECONNREFUSED);
		sim_obj_put(&t->o);
	} else {
		struct tcp *end = tcp_new(t->peer_host);
		end->self = door->self;
		end->other = t->self;
		end->peer_host = t->host;
		end->peer = t;
		t->peer = end;
		end->state = UP;
		end->user_timeout_ns = t->user_timeout_ns;
		door->backlog[door->backlog_cnt++] = end;
		sim_obj_changed(&door->o);
		sim_after(sim_link_delay(t->peer_host, t->host, 0), joined, t, 0);
	}
}

int sim_tcp_connect(struct sim_obj *o, const struct sockaddr *a, socklen_t len)
{
	struct tcp *t = sim_of(o, struct tcp);
	if (len < sizeof t->other || a->sa_family != AF_INET) {
		errno = EINVAL;
		return -1;
	}
	memcpy(&t->other, a, sizeof t->other);
	t->peer_host = host_of(&t->other);
	if (t->peer_host >= SIM_HOSTS) {
		errno = ENETUNREACH;
		return -1;
	}
	if (t->self.sin_port == 0)
		t->self.sin_port = htons(port_next++);
	t->state = CONNECTING;
	sim_obj_get(o);
	sim_after(sim_link_delay(t->host, t->peer_host, 0), knock, t, 0);
	errno = EINPROGRESS;
	return -1;
}

int sim_tcp_accept(struct sim_obj *o, struct sockaddr *from, socklen_t *len)
{
	struct tcp *t = sim_of(o, struct tcp);
	if (t->state != LISTENING || t->backlog_cnt == 0) {
		errno = t->state == LISTENING ? EAGAIN : EINVAL;
		return -1;
	}
	struct tcp *end = t->backlog[0];
	memmove(t->backlog, t->backlog + 1, --t->backlog_cnt * sizeof *t->backlog);
	memcpy(from, &end->other, TN_MIN((size_t)*len, sizeof end->other));
	*len = sizeof end->other;
	return sim_fd_new(&end->o);
}

int sim_tcp_name(const struct sim_obj *o, bool peer, struct sockaddr *a, socklen_t *len)
{
	const struct tcp *t = sim_of(o, struct tcp);
	if (peer && t->state != UP) {
		errno = ENOTCONN;
		return -1;
	}
	memcpy(a, peer ? &t->other : &t->self, TN_MIN((size_t)*len, sizeof t->self));
	*len = sizeof t->self;
	return 0;
}

int sim_tcp_error(struct sim_obj *o)
{
	struct tcp *t = sim_of(o, struct tcp);
	int e = t->error;
	t->error = 0;
	return e;
}

void sim_tcp_option(struct sim_obj *o, int level, int name, const void *value)
{
	struct tcp *t = sim_of(o, struct tcp);
	int v;
	memcpy(&v, value, sizeof v);
	if (level == SOL_SOCKET && name == SO_LINGER)
		t->linger = v != 0;
	else if (level == IPPROTO_TCP && name == TCP_USER_TIMEOUT)
		t->user_timeout_ns = (uint64_t)v * TN_NS_PER_MS;
}

/* ---- what goes wrong ---- */

void sim_link_cut(uint32_t a, uint32_t b)
{
	sim_trace("link %u-%u is cut", a, b);
	sim_link(a, b)->cut = true;
}

void sim_link_heal(uint32_t a, uint32_t b)
{
	sim_trace("link %u-%u is whole", a, b);
	sim_link(a, b)->cut = false;
}

void sim_tcp_reset_next(uint32_t a, uint32_t b) { sim_link(a, b)->reset_next = true; }
