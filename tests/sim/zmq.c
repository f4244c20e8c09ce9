/* SPDX-License-Identifier: Apache-2.0
 * The part of ZeroMQ that the data plane's link uses, in place of the library: one DEALER to the control plane of the same
 * host and the PAIR that tells of its connection. Messages keep their order and are lost with the connection. One thread. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <zmq.h>

#include "tests/sim/fd.h"
#include "tests/sim/link.h"

#define QUEUE_MAX 8192u

struct frame { struct frame *next; size_t len; uint8_t bytes[]; };
struct queue { struct frame *head, **tail; unsigned cnt; };

struct socket {
	struct sim_obj o;
	struct context *context;
	int type, fd;
	struct queue in;
	bool edge;                  /* something happened that the descriptor must tell */
	/* DEALER */
	struct socket *monitor;
	uint32_t host;
	struct sim_proc *owner;
	uint64_t connection;        /* 0 = none */
	bool wants, closed;
};

struct context { struct socket *dealer; };
/* What zmq_msg_t holds here. */
struct message { uint8_t *bytes; size_t len; };

static struct socket *dealers[SIM_HOSTS];
static uint64_t connection_next;
static const struct sim_link_ends *ends;

void sim_link_attach(const struct sim_link_ends *to) { ends = to; }

static uint32_t socket_ready(const struct sim_obj *o)
{
	return sim_of(o, struct socket)->in.cnt > 0 ? EPOLLIN : 0;
}

static const struct sim_ops socket_ops = { .name = "zmq", .ready = socket_ready };

static void queue_put(struct queue *q, const void *bytes, size_t len)
{
	struct frame *f = sim_malloc(sizeof *f + len);
	f->next = NULL;
	f->len = len;
	memcpy(f->bytes, bytes, len);
	*q->tail = f;
	q->tail = &f->next;
	q->cnt++;
}

static struct frame *queue_take(struct queue *q)
{
	struct frame *f = q->head;
	if (f == NULL)
		return NULL;
	q->head = f->next;
	if (q->head == NULL)
		q->tail = &q->head;
	q->cnt--;
	return f;
}

static void queue_clear(struct queue *q)
{
	for (struct frame *f; (f = queue_take(q)) != NULL;)
		free(f);
}

static bool lives(const struct socket *s) { return s != NULL && !s->closed && s->owner->state != SIM_DEAD; }

static void tell(struct socket *dealer, uint16_t event)
{
	uint8_t head[6] = { 0 };
	memcpy(head, &event, sizeof event);
	if (dealer->monitor == NULL)
		return;
	queue_put(&dealer->monitor->in, head, sizeof head);
	sim_obj_changed(&dealer->monitor->o);
}

static void try_connect(void *arg, uint64_t num)
{
	struct socket *s = arg;
	(void)num;
	if (!lives(s) || s->connection != 0)
		return;
	if (!ends->lives(s->host)) {
		sim_after(sim_pick(50, 500) * TN_NS_PER_MS, try_connect, s, 0);
		return;
	}
	s->connection = ++connection_next;
	tell(s, ZMQ_EVENT_HANDSHAKE_SUCCEEDED);
}

void sim_link_controlplane_died(uint32_t host)
{
	struct socket *s = dealers[host];
	if (!lives(s) || s->connection == 0)
		return;
	s->connection = 0;
	queue_clear(&s->in);
	tell(s, ZMQ_EVENT_DISCONNECTED);
	sim_after(sim_pick(1, 100) * TN_NS_PER_MS, try_connect, s, 0);
}

struct delivery { uint32_t host; uint64_t connection; size_t len; uint8_t bytes[]; };

static struct delivery *packed(uint32_t host, uint64_t connection, const void *bytes, size_t len)
{
	struct delivery *d = sim_malloc(sizeof *d + len);
	d->host = host;
	d->connection = connection;
	d->len = len;
	memcpy(d->bytes, bytes, len);
	return d;
}

static void to_dataplane(void *arg, uint64_t num)
{
	struct delivery *d = arg;
	struct socket *s = dealers[d->host];
	(void)num;
	if (lives(s) && s->connection == d->connection && s->in.cnt < QUEUE_MAX) {
		queue_put(&s->in, d->bytes, d->len);
		sim_obj_changed(&s->o);
	}
	free(d);
}

static void to_controlplane(void *arg, uint64_t num)
{
	struct delivery *d = arg;
	(void)num;
	if (dealers[d->host]->connection == d->connection)
		ends->deliver(d->host, d->connection, d->bytes, d->len);
	free(d);
}

/* A fixed delay keeps the order: events of one instant run in the order in which they were asked for. */
#define HOP_NS 20000u

bool sim_link_send(uint32_t host, uint64_t connection, const void *bytes, size_t len)
{
	struct socket *s = dealers[host];
	if (!lives(s) || s->connection != connection)
		return false;
	sim_after(HOP_NS, to_dataplane, packed(host, connection, bytes, len), 0);
	return true;
}

/* ---- the library's names ---- */

void *zmq_ctx_new(void) { return sim_calloc(1, sizeof(struct context)); }
int zmq_ctx_term(void *context)
{
	free(context);
	return 0;
}

void *zmq_socket(void *context, int type)
{
	struct socket *s = sim_calloc(1, sizeof *s);
	sim_obj_init(&s->o, &socket_ops); /* its first reference stays until the seed ends */
	s->context = context;
	s->type = type;
	s->in.tail = &s->in.head;
	s->owner = sim_self();
	s->host = sim_self()->host;
	s->fd = sim_fd_new(&s->o);
	if (type == ZMQ_DEALER)
		s->context->dealer = s;
	return s;
}

int zmq_close(void *socket)
{
	struct socket *s = socket;
	s->closed = true;
	queue_clear(&s->in);
	return sim_fd_close(s->fd);
}

int zmq_setsockopt(void *socket, int option, const void *value, size_t bytes)
{
	(void)socket;
	(void)option;
	(void)value;
	(void)bytes;
	return 0;
}

int zmq_getsockopt(void *socket, int option, void *value, size_t *bytes)
{
	const struct socket *s = socket;
	if (option != ZMQ_FD || *bytes != sizeof s->fd)
		return -1;
	memcpy(value, &s->fd, sizeof s->fd);
	return 0;
}

int zmq_socket_monitor(void *socket, const char *address, int events)
{
	(void)socket;
	(void)address;
	(void)events;
	return 0;
}

int zmq_connect(void *socket, const char *address)
{
	struct socket *s = socket;
	if (strncmp(address, "inproc:", 7) == 0) {
		s->context->dealer->monitor = s;
		return 0;
	}
	dealers[s->host] = s;
	sim_after(sim_pick(10000, 2000000), try_connect, s, 0);
	return 0;
}

int zmq_send(void *socket, const void *bytes, size_t len, int flags)
{
	struct socket *s = socket;
	(void)flags;
	sim_preempt();
	if (s->connection == 0) {
		errno = EAGAIN;
		return -1;
	}
	sim_after(HOP_NS, to_controlplane, packed(s->host, s->connection, bytes, len), 0);
	return (int)len;
}

static struct message *held(const zmq_msg_t *m) { return (struct message *)(uintptr_t)m; }

int zmq_msg_init(zmq_msg_t *m)
{
	*held(m) = (struct message){ NULL, 0 };
	return 0;
}

int zmq_msg_recv(zmq_msg_t *m, void *socket, int flags)
{
	struct socket *s = socket;
	struct frame *f = queue_take(&s->in);
	(void)flags;
	if (f == NULL) {
		errno = EAGAIN;
		return -1;
	}
	*held(m) = (struct message){ sim_malloc(f->len + 1), f->len };
	memcpy(held(m)->bytes, f->bytes, f->len);
	free(f);
	return (int)held(m)->len;
}

int zmq_msg_close(zmq_msg_t *m)
{
	free(held(m)->bytes);
	return zmq_msg_init(m);
}

int zmq_msg_move(zmq_msg_t *to, zmq_msg_t *from)
{
	free(held(to)->bytes);
	*held(to) = *held(from);
	return zmq_msg_init(from);
}

void *zmq_msg_data(zmq_msg_t *m) { return held(m)->bytes; }
size_t zmq_msg_size(const zmq_msg_t *m) { return held(m)->len; }
int zmq_msg_more(const zmq_msg_t *m)
{
	(void)m;
	return 0; /* nothing that the link receives has a second frame that it reads */
}
