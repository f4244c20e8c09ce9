/* SPDX-License-Identifier: Apache-2.0
 * Unix sockets that keep messages apart (SOCK_SEQPACKET), with descriptors that travel along: the attach socket of a data
 * plane and the doorbells. Delivery is at once; who reads it runs when the scheduler says so. One thread. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "tests/sim/fd.h"

#define MESSAGES_MAX 64u
#define FDS_MAX 8u
#define BACKLOG 16u

struct message { struct message *next; size_t len; unsigned fd_cnt; struct { struct sim_obj *obj; int real; } fds[FDS_MAX]; uint8_t bytes[]; };

struct end {
	struct sim_obj o;
	struct end *peer;           /* NULL: never connected, or hung up */
	struct sim_proc *owner;     /* who made it: the kernel's note for SO_PEERCRED */
	const struct sim_proc *peer_owner;
	struct message *in, **in_tail;
	unsigned in_cnt;
	bool connected, no_more;    /* no_more: the peer will not send again */
};

struct door { struct sim_obj o; char path[128]; struct end *waiting[BACKLOG]; unsigned cnt; struct door *next; };
static struct door *doors;

static uint32_t end_ready(const struct sim_obj *o)
{
	const struct end *e = sim_of(o, struct end);
	uint32_t now = e->in != NULL ? EPOLLIN : 0;
	if (!e->connected)
		return EPOLLOUT | EPOLLHUP;
	if (e->peer == NULL)
		return now | EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLOUT;
	if (e->no_more)
		now |= EPOLLIN | EPOLLRDHUP;
	return now | (e->peer->in_cnt < MESSAGES_MAX ? EPOLLOUT : 0u);
}

static void message_free(struct message *m)
{
	for (unsigned i = 0; i < m->fd_cnt; i++) {
		struct sim_obj *o = m->fds[i].obj;
		if (o == NULL) {
			(void)close(m->fds[i].real);
			continue;
		}
		if (--o->fds == 0 && o->ops->closed != NULL)
			o->ops->closed(o);
		sim_obj_put(o);
	}
	free(m);
}

static void end_closed(struct sim_obj *o)
{
	struct end *e = sim_of(o, struct end);
	for (struct message *m; (m = e->in) != NULL;) {
		e->in = m->next;
		message_free(m);
	}
	e->in_tail = &e->in;
	e->in_cnt = 0;
	if (e->peer != NULL) {
		e->peer->peer = NULL;
		sim_obj_changed(&e->peer->o);
		e->peer = NULL;
	}
}

/* What travels is the object; its number in the receiving process is made when it arrives. */
static void take_fds(struct message *m, const struct msghdr *h)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(h); c != NULL; c = CMSG_NXTHDR((struct msghdr *)(uintptr_t)h, c)) {
		size_t cnt = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (size_t i = 0; i < cnt && m->fd_cnt < FDS_MAX; i++) {
			int fd;
			memcpy(&fd, CMSG_DATA(c) + i * sizeof fd, sizeof fd);
			if (!sim_fd_is(fd)) {
				m->fds[m->fd_cnt++].real = fcntl(fd, F_DUPFD_CLOEXEC, 3);
				continue;
			}
			struct sim_obj *o = sim_fd_get(fd);
			tn_assert(o != NULL);
			o->fds++;
			sim_obj_get(o);
			m->fds[m->fd_cnt++].obj = o;
		}
	}
}

static ssize_t end_sendmsg(struct sim_obj *o, const struct msghdr *h)
{
	struct end *e = sim_of(o, struct end);
	size_t len = 0;
	if (e->peer == NULL || e->peer->in_cnt >= MESSAGES_MAX) {
		errno = e->peer == NULL ? EPIPE : EAGAIN;
		return -1;
	}
	for (size_t i = 0; i < h->msg_iovlen; i++)
		len += h->msg_iov[i].iov_len;
	struct message *m = sim_calloc(1, sizeof *m + len);
	for (size_t i = 0; i < h->msg_iovlen; i++) {
		memcpy(m->bytes + m->len, h->msg_iov[i].iov_base, h->msg_iov[i].iov_len);
		m->len += h->msg_iov[i].iov_len;
	}
	if (h->msg_control != NULL)
		take_fds(m, h);
	*e->peer->in_tail = m;
	e->peer->in_tail = &m->next;
	e->peer->in_cnt++;
	sim_obj_changed(&e->peer->o);
	return (ssize_t)len;
}

static void give_fds(struct message *m, struct msghdr *h)
{
	size_t room = h->msg_control != NULL ? h->msg_controllen : 0;
	h->msg_controllen = 0;
	if (m->fd_cnt == 0)
		return;
	tn_assert(room >= CMSG_SPACE(m->fd_cnt * sizeof(int)));
	h->msg_controllen = CMSG_SPACE(m->fd_cnt * sizeof(int));
	struct cmsghdr *c = CMSG_FIRSTHDR(h);
	*c = (struct cmsghdr){ .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(m->fd_cnt * sizeof(int)) };
	for (unsigned i = 0; i < m->fd_cnt; i++) {
		struct sim_obj *o = m->fds[i].obj;
		int fd = o != NULL ? sim_fd_new(o) : m->fds[i].real;
		if (o != NULL) {
			o->fds--;
			sim_obj_put(o);
		}
		memcpy(CMSG_DATA(c) + i * sizeof fd, &fd, sizeof fd);
	}
	m->fd_cnt = 0;
}

static ssize_t end_recvmsg(struct sim_obj *o, struct msghdr *h)
{
	struct end *e = sim_of(o, struct end);
	struct message *m = e->in;
	h->msg_flags = 0;
	if (m == NULL) {
		h->msg_controllen = 0;
		if (e->connected && (e->peer == NULL || e->no_more))
			return 0;
		errno = e->connected ? EAGAIN : ENOTCONN;
		return -1;
	}
	size_t at = 0;
	for (size_t i = 0; i < h->msg_iovlen; i++) {
		size_t n = TN_MIN(h->msg_iov[i].iov_len, m->len - at);
		memcpy(h->msg_iov[i].iov_base, m->bytes + at, n);
		at += n;
	}
	if (at < m->len)
		h->msg_flags |= MSG_TRUNC;
	e->in = m->next;
	if (e->in == NULL)
		e->in_tail = &e->in;
	if (e->in_cnt-- == MESSAGES_MAX && e->peer != NULL)
		sim_obj_changed(&e->peer->o);
	give_fds(m, h);
	message_free(m);
	return (ssize_t)at;
}

const struct sim_ops sim_unix_ops = { .name = "unix", .ready = end_ready, .closed = end_closed, .recvmsg = end_recvmsg,
				      .sendmsg = end_sendmsg };

static struct end *end_new(void)
{
	struct end *e = sim_calloc(1, sizeof *e);
	sim_obj_init(&e->o, &sim_unix_ops); /* its first reference stays until the seed ends: peers point here */
	e->in_tail = &e->in;
	e->owner = sim_self();
	return e;
}

static void join(struct end *a, struct end *b)
{
	a->peer = b;
	b->peer = a;
	a->connected = b->connected = true;
	a->peer_owner = b->owner;
	b->peer_owner = a->owner;
}

int sim_unix_socket(void) { return sim_fd_new(&end_new()->o); }

int sim_unix_pair(int fds_out[2])
{
	struct end *a = end_new(), *b = end_new();
	join(a, b);
	fds_out[0] = sim_fd_new(&a->o);
	fds_out[1] = sim_fd_new(&b->o);
	return 0;
}

static uint32_t door_ready(const struct sim_obj *o) { return sim_of(o, struct door)->cnt > 0 ? EPOLLIN : 0; }

static void door_closed(struct sim_obj *o)
{
	struct door *d = sim_of(o, struct door);
	for (unsigned i = 0; i < d->cnt; i++)
		end_closed(&d->waiting[i]->o);
	d->cnt = 0;
	(void)sim_unix_remove(d->path, o); /* the name of a killed one would stay, and refuse; to who connects it is the same */
}

const struct sim_ops sim_unix_door_ops = { .name = "unix listener", .ready = door_ready, .closed = door_closed };

int sim_unix_listen(const char *path)
{
	struct door *d = sim_calloc(1, sizeof *d);
	sim_obj_init(&d->o, &sim_unix_door_ops);
	(void)snprintf(d->path, sizeof d->path, "%s", path);
	d->next = doors;
	doors = d;
	return sim_fd_new(&d->o);
}

struct sim_obj *sim_unix_at(const char *path)
{
	for (struct door *d = doors; d != NULL; d = d->next)
		if (strcmp(d->path, path) == 0)
			return &d->o;
	return NULL;
}

bool sim_unix_remove(const char *path, const struct sim_obj *o)
{
	for (struct door **at = &doors; *at != NULL; at = &(*at)->next) {
		if (&(*at)->o != o || strcmp((*at)->path, path) != 0)
			continue;
		*at = (*at)->next;
		return true;
	}
	return false;
}

int sim_unix_connect(struct sim_obj *o, const char *path)
{
	struct sim_obj *at = sim_unix_at(path);
	if (at == NULL) {
		errno = ECONNREFUSED;
		return -1;
	}
	struct door *d = sim_of(at, struct door);
	if (d->cnt == BACKLOG) {
		errno = EAGAIN;
		return -1;
	}
	struct end *mine = sim_of(o, struct end), *theirs = end_new();
	join(mine, theirs);
	d->waiting[d->cnt++] = theirs;
	sim_obj_changed(at);
	return 0;
}

int sim_unix_accept(struct sim_obj *o)
{
	struct door *d = sim_of(o, struct door);
	if (d->cnt == 0) {
		errno = EAGAIN;
		return -1;
	}
	struct end *e = d->waiting[0];
	memmove(d->waiting, d->waiting + 1, --d->cnt * sizeof *d->waiting);
	e->owner = sim_self();
	if (e->peer != NULL)
		e->peer->peer_owner = e->owner;
	return sim_fd_new(&e->o);
}

int sim_unix_shutdown(struct sim_obj *o)
{
	struct end *e = sim_of(o, struct end);
	if (e->peer == NULL)
		return 0;
	e->peer->no_more = true;
	sim_obj_changed(&e->peer->o);
	return 0;
}

const struct sim_proc *sim_unix_peer(const struct sim_obj *o) { return sim_of(o, struct end)->peer_owner; }
