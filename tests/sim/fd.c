/* SPDX-License-Identifier: Apache-2.0
 * The descriptor table and the kinds without a peer. One thread. */
#include "tests/sim/fd.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#define FDS_MAX 4096

static struct { struct sim_obj *obj; struct sim_proc *owner; } table[FDS_MAX];

/* ---- objects and numbers ---- */

void sim_obj_init(struct sim_obj *o, const struct sim_ops *ops)
{
	*o = (struct sim_obj){ .ops = ops, .refs = 1 };
	tn_list_init(&o->watches);
}

void sim_obj_get(struct sim_obj *o) { o->refs++; }

void sim_obj_put(struct sim_obj *o)
{
	if (--o->refs == 0)
		free(o);
}

int sim_fd_new(struct sim_obj *o)
{
	for (int i = 0; i < FDS_MAX; i++) {
		if (table[i].obj != NULL)
			continue;
		table[i].obj = o;
		table[i].owner = sim_self();
		o->fds++;
		sim_obj_get(o);
		return SIM_FD_BASE + i;
	}
	errno = EMFILE;
	return -1;
}

struct sim_obj *sim_fd_get(int fd)
{
	int i = fd - SIM_FD_BASE;
	if (i >= 0 && i < FDS_MAX && table[i].obj != NULL) {
		sim_check(table[i].owner == sim_self(), "descriptors", "%s uses descriptor %d of %s", sim_self()->name, i,
			  table[i].owner->name);
		return table[i].obj;
	}
	errno = EBADF;
	return NULL;
}

struct sim_obj *sim_fd_get_as(int fd, const struct sim_ops *ops)
{
	struct sim_obj *o = sim_fd_get(fd);
	if (o == NULL || o->ops == ops)
		return o;
	errno = ENOTSOCK;
	return NULL;
}

/* ---- epoll ---- */

struct item {
	struct tn_list in_set, in_watches;
	struct epoll_set *set;
	struct sim_obj *obj;
	int fd;
	struct epoll_event event;
	bool edge;                  /* something happened since it was reported last */
};

struct epoll_set { struct sim_obj o; struct tn_list items; };

static uint32_t set_ready(const struct sim_obj *o);
static void set_closed(struct sim_obj *o);
static const struct sim_ops epoll_ops = { .name = "epoll", .ready = set_ready, .closed = set_closed };

static uint32_t item_ready(const struct item *it)
{
	uint32_t now = it->obj->ops->ready(it->obj) & (it->event.events | EPOLLERR | EPOLLHUP);
	return (it->event.events & EPOLLET) != 0 && !it->edge ? 0 : now;
}

static uint32_t set_ready(const struct sim_obj *o)
{
	const struct epoll_set *s = sim_of(o, struct epoll_set);
	tn_list_foreach(node, &s->items)
		if (item_ready(tn_list_entry(node, struct item, in_set)) != 0)
			return EPOLLIN;
	return 0;
}

static void item_free(struct item *it)
{
	tn_list_unlink(&it->in_set);
	tn_list_unlink(&it->in_watches);
	free(it);
}

static void set_closed(struct sim_obj *o)
{
	struct epoll_set *s = sim_of(o, struct epoll_set);
	while (!tn_list_empty(&s->items))
		item_free(tn_list_first(&s->items, struct item, in_set));
}

void sim_obj_changed(struct sim_obj *o)
{
	tn_list_foreach(node, &o->watches) {
		struct item *it = tn_list_entry(node, struct item, in_watches);
		it->edge = true;
		sim_obj_changed(&it->set->o);
	}
	sim_notify(o);
}

int sim_epoll_create(void)
{
	struct epoll_set *s = sim_calloc(1, sizeof *s);
	sim_obj_init(&s->o, &epoll_ops);
	tn_list_init(&s->items);
	int fd = sim_fd_new(&s->o);
	sim_obj_put(&s->o);
	return fd;
}

static struct item *item_find(struct epoll_set *s, int fd)
{
	tn_list_foreach(node, &s->items) {
		struct item *it = tn_list_entry(node, struct item, in_set);
		if (it->fd == fd)
			return it;
	}
	return NULL;
}

int sim_epoll_ctl(int epfd, int op, int fd, const void *event)
{
	struct sim_obj *so = sim_fd_get_as(epfd, &epoll_ops), *o = sim_fd_get(fd);
	if (so == NULL || o == NULL)
		return -1;
	struct epoll_set *s = sim_of(so, struct epoll_set);
	struct item *it = item_find(s, fd);
	if ((it != NULL) == (op == EPOLL_CTL_ADD)) {
		errno = it != NULL ? EEXIST : ENOENT;
		return -1;
	}
	if (op == EPOLL_CTL_DEL) {
		item_free(it);
		return 0;
	}
	if (op == EPOLL_CTL_ADD) {
		it = sim_calloc(1, sizeof *it);
		it->set = s;
		it->obj = o;
		it->fd = fd;
		tn_list_push_back(&s->items, &it->in_set);
		tn_list_init(&it->in_watches);
		tn_list_push_back(&o->watches, &it->in_watches);
	}
	it->event = *(const struct epoll_event *)event;
	it->edge = true;
	sim_notify(so);
	return 0;
}

static int collect(struct epoll_set *s, struct epoll_event *out, int max)
{
	int n = 0;
	/* Whom the kernel names first is not for anybody to count on. */
	if (!tn_list_empty(&s->items) && sim_chance(3)) {
		struct tn_list *first = tn_list_pop_front(&s->items);
		tn_list_push_back(&s->items, first);
	}
	tn_list_foreach(node, &s->items) {
		struct item *it = tn_list_entry(node, struct item, in_set);
		uint32_t now = item_ready(it);
		if (now == 0 || n == max)
			continue;
		it->edge = false;
		out[n].events = now;
		out[n++].data = it->event.data;
	}
	return n;
}

int sim_epoll_wait(int epfd, void *events, int max, uint64_t timeout_ns)
{
	struct sim_obj *so = sim_fd_get_as(epfd, &epoll_ops);
	if (so == NULL)
		return -1;
	uint64_t until_ns = tn_deadline_after(sim.now_ns, timeout_ns);
	for (;;) {
		int n = collect(sim_of(so, struct epoll_set), events, max);
		if (n > 0 || sim.now_ns >= until_ns)
			return n;
		(void)sim_wait((const void *const[]){ so }, 1, until_ns);
	}
}

/* ---- closing ---- */

int sim_fd_close(int fd)
{
	struct sim_obj *o = sim_fd_get(fd);
	if (o == NULL)
		return -1;
	tn_list_foreach(node, &o->watches) {
		struct item *it = tn_list_entry(node, struct item, in_watches);
		if (it->fd == fd)
			item_free(it);
	}
	table[fd - SIM_FD_BASE].obj = NULL;
	if (--o->fds == 0 && o->ops->closed != NULL)
		o->ops->closed(o);
	sim_obj_put(o);
	return 0;
}

void sim_fd_close_all(const struct sim_proc *p)
{
	struct sim_task *cur = sim.cur;
	for (int i = 0; i < FDS_MAX; i++) {
		struct sim_obj *o = table[i].obj;
		if (o == NULL || table[i].owner != p)
			continue;
		table[i].obj = NULL;
		tn_list_foreach(node, &o->watches) {
			struct item *it = tn_list_entry(node, struct item, in_watches);
			if (it->fd == SIM_FD_BASE + i)
				item_free(it);
		}
		if (--o->fds == 0 && o->ops->closed != NULL)
			o->ops->closed(o);
		sim_obj_put(o);
	}
	sim.cur = cur;
}

/* ---- event counter ---- */

struct counter { struct sim_obj o; uint64_t value; };

static uint32_t counter_ready(const struct sim_obj *o)
{
	return EPOLLOUT | (sim_of(o, struct counter)->value > 0 ? EPOLLIN : 0u);
}

static ssize_t counter_read(struct sim_obj *o, void *to, size_t bytes)
{
	struct counter *c = sim_of(o, struct counter);
	if (c->value == 0 || bytes < sizeof c->value) {
		errno = EAGAIN;
		return -1;
	}
	memcpy(to, &c->value, sizeof c->value);
	c->value = 0;
	return sizeof c->value;
}

static ssize_t counter_write(struct sim_obj *o, const void *from, size_t bytes)
{
	struct counter *c = sim_of(o, struct counter);
	uint64_t add;
	memcpy(&add, from, sizeof add);
	c->value += add;
	sim_obj_changed(o);
	return (ssize_t)bytes;
}

static const struct sim_ops counter_ops = { .name = "eventfd", .ready = counter_ready, .read = counter_read,
					    .write = counter_write };

int sim_eventfd(uint64_t start)
{
	struct counter *c = sim_calloc(1, sizeof *c);
	sim_obj_init(&c->o, &counter_ops);
	c->value = start;
	int fd = sim_fd_new(&c->o);
	sim_obj_put(&c->o);
	return fd;
}

/* ---- pipe: one object, read by one end and written by the other ---- */

#define PIPE_BYTES 65536u

struct pipe_end { struct sim_obj o; struct pipe_end *other; size_t len; uint8_t bytes[PIPE_BYTES]; };

static uint32_t pipe_ready(const struct sim_obj *o)
{
	return EPOLLOUT | (sim_of(o, struct pipe_end)->len > 0 ? EPOLLIN : 0u);
}

static ssize_t pipe_read(struct sim_obj *o, void *to, size_t bytes)
{
	struct pipe_end *p = sim_of(o, struct pipe_end);
	size_t n = TN_MIN(bytes, p->len);
	if (n == 0) {
		errno = EAGAIN;
		return -1;
	}
	memcpy(to, p->bytes, n);
	memmove(p->bytes, p->bytes + n, p->len -= n);
	return (ssize_t)n;
}

static ssize_t pipe_write(struct sim_obj *o, const void *from, size_t bytes)
{
	struct pipe_end *p = sim_of(o, struct pipe_end)->other;
	size_t n = TN_MIN(bytes, sizeof p->bytes - p->len);
	memcpy(p->bytes + p->len, from, n);
	p->len += n;
	return (ssize_t)n;
}

static const struct sim_ops pipe_ops = { .name = "pipe", .ready = pipe_ready, .read = pipe_read, .write = pipe_write };

int sim_pipe(int fds_out[2])
{
	struct pipe_end *ends[2];
	for (int i = 0; i < 2; i++) {
		ends[i] = sim_calloc(1, sizeof *ends[i]);
		sim_obj_init(&ends[i]->o, &pipe_ops);
		fds_out[i] = sim_fd_new(&ends[i]->o);
	}
	ends[1]->other = ends[0]; /* kept: both hold their first reference until the seed ends */
	ends[0]->other = ends[0];
	return 0;
}

/* ---- a process as a descriptor ---- */

struct life { struct sim_obj o; struct sim_proc *who; struct life *next; };

static uint32_t life_ready(const struct sim_obj *o)
{
	return sim_of(o, struct life)->who->state == SIM_DEAD ? EPOLLIN : 0;
}

static const struct sim_ops life_ops = { .name = "pidfd", .ready = life_ready };

static struct life *lives;

void sim_pidfd_died(const struct sim_proc *p)
{
	for (struct life *l = lives; l != NULL; l = l->next)
		if (l->who == p)
			sim_obj_changed(&l->o);
}

int sim_pidfd(uint32_t pid)
{
	struct sim_proc *p = sim.procs;
	while (p != NULL && p->pid != pid)
		p = p->next;
	if (p == NULL || p->state == SIM_DEAD) {
		errno = ESRCH;
		return -1;
	}
	struct life *l = sim_calloc(1, sizeof *l); /* stays until the seed ends */
	sim_obj_init(&l->o, &life_ops);
	l->who = p;
	l->next = lives;
	lives = l;
	return sim_fd_new(&l->o);
}

/* ---- signals as a descriptor ---- */

struct signals { struct sim_obj o; struct sim_proc *owner; uint64_t waiting; /* a bit for each signal */ struct signals *next; };
static struct signals *all_signals;

static uint32_t signals_ready(const struct sim_obj *o)
{
	return sim_of(o, struct signals)->waiting != 0 ? EPOLLIN : 0;
}

static ssize_t signals_read(struct sim_obj *o, void *to, size_t bytes)
{
	struct signals *s = sim_of(o, struct signals);
	struct signalfd_siginfo si = { 0 };
	if (s->waiting == 0 || bytes < sizeof si) {
		errno = EAGAIN;
		return -1;
	}
	si.ssi_signo = (uint32_t)__builtin_ctzll(s->waiting);
	s->waiting &= s->waiting - 1;
	memcpy(to, &si, sizeof si);
	return sizeof si;
}

static const struct sim_ops signals_ops = { .name = "signalfd", .ready = signals_ready, .read = signals_read };

int sim_signalfd(void)
{
	struct signals *s = sim_calloc(1, sizeof *s); /* stays until the seed ends */
	sim_obj_init(&s->o, &signals_ops);
	s->owner = sim_self();
	s->next = all_signals;
	all_signals = s;
	return sim_fd_new(&s->o);
}

bool sim_signal(struct sim_proc *p, int signo)
{
	for (struct signals *s = all_signals; s != NULL; s = s->next) {
		if (s->owner != p || s->o.fds == 0)
			continue;
		s->waiting |= UINT64_C(1) << signo;
		sim_obj_changed(&s->o);
		return true;
	}
	return false;
}

/* ---- poll ---- */

int sim_poll(struct pollfd *p, unsigned cnt, uint64_t timeout_ns)
{
	const void *things[SIM_TASK_WAITS];
	uint64_t until_ns = tn_deadline_after(sim.now_ns, timeout_ns);
	tn_assert(cnt <= SIM_TASK_WAITS);
	for (;;) {
		int n = 0;
		unsigned waits = 0;
		for (unsigned i = 0; i < cnt; i++) {
			p[i].revents = 0;
			if (!sim_fd_is(p[i].fd))
				continue;
			struct sim_obj *o = sim_fd_get(p[i].fd);
			uint32_t now = o != NULL ? o->ops->ready(o) : (uint32_t)POLLNVAL;
			p[i].revents = (short)(now & ((uint32_t)p[i].events | POLLERR | POLLHUP | POLLNVAL));
			n += p[i].revents != 0;
			if (o != NULL)
				things[waits++] = o;
		}
		if (n > 0 || sim.now_ns >= until_ns)
			return n;
		(void)sim_wait(things, waits, until_ns);
	}
}
