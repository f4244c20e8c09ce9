/* SPDX-License-Identifier: Apache-2.0
 * The system calls of the code under test, sent here by the linker (--wrap; the list is in CMakeLists.txt): those of a task
 * about simulated things are answered by the simulator, all others go to the real kernel. A task may lose the processor in
 * any of them. One thread. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <jansson.h>

#include "common/hook.h"
#include "common/log.h"
#include "shm-ring/lease.h"
#include "tests/sim/cover.h"
#include "tests/sim/fd.h"
#include "tests/sim/kernel.h"
#include "tests/sim/trouble.h"

#define CLOCK_STEP_NS 60u /* what a look at the clock costs */

/* Each __wrap_ function is called for the name behind it, and reaches the real one as __real_. */
#define WRAP(ret, name, ...) \
	ret __real_##name(__VA_ARGS__); \
	ret __wrap_##name(__VA_ARGS__); \
	ret __wrap_##name(__VA_ARGS__)

static bool in_task(void) { return sim.cur != NULL; }

static uint64_t timeout_of(int ms) { return ms < 0 ? UINT64_MAX : (uint64_t)ms * TN_NS_PER_MS; }
static uint64_t timeout_of_ts(const struct timespec *ts)
{
	return ts == NULL ? UINT64_MAX : (uint64_t)ts->tv_sec * TN_NS_PER_S + (uint64_t)ts->tv_nsec;
}

/* ---- time and randomness ---- */

WRAP(int, clock_gettime, clockid_t id, struct timespec *ts)
{
	if (!in_task())
		return __real_clock_gettime(id, ts);
	sim.now_ns += CLOCK_STEP_NS;
	uint64_t now = sim.now_ns;
	if (id == CLOCK_REALTIME)
		now += UINT64_C(1700000000) * TN_NS_PER_S;
	*ts = (struct timespec){ .tv_sec = (time_t)(now / TN_NS_PER_S), .tv_nsec = (long)(now % TN_NS_PER_S) };
	sim_preempt();
	return 0;
}

WRAP(ssize_t, getrandom, void *to, size_t bytes, unsigned flags)
{
	if (!in_task())
		return __real_getrandom(to, bytes, flags);
	for (size_t i = 0; i < bytes; i++)
		((uint8_t *)to)[i] = (uint8_t)tn_rand_u64(&sim.rand);
	return (ssize_t)bytes;
}

WRAP(int, nanosleep, const struct timespec *ts, struct timespec *left)
{
	if (!in_task())
		return __real_nanosleep(ts, left);
	sim_sleep(timeout_of_ts(ts));
	return 0;
}

WRAP(pid_t, getpid, void) { return in_task() ? (pid_t)sim_self()->pid : __real_getpid(); }

/* ---- memory ---- */

/* libjansson (2.14) writes past its buffer when there is no memory in the middle of a token. */
static bool parsing;

WRAP(json_t *, json_loadb, const char *text, size_t len, size_t flags, json_error_t *error)
{
	parsing = true;
	json_t *j = __real_json_loadb(text, len, flags, error);
	parsing = false;
	return j;
}

static bool no_memory(void)
{
	struct sim_proc *p = sim_self();
	if (p == NULL || parsing || p->alloc_countdown == 0 || --p->alloc_countdown > 0)
		return false;
	sim_trace("%s finds no memory", p->name);
	errno = ENOMEM;
	return true;
}

WRAP(void *, malloc, size_t bytes) { return no_memory() ? NULL : __real_malloc(bytes); }
WRAP(void *, calloc, size_t n, size_t bytes) { return no_memory() ? NULL : __real_calloc(n, bytes); }
WRAP(void *, realloc, void *p, size_t bytes) { return no_memory() ? NULL : __real_realloc(p, bytes); }
WRAP(void *, aligned_alloc, size_t align, size_t bytes) { return no_memory() ? NULL : __real_aligned_alloc(align, bytes); }

static void *had(void *p)
{
	if (p == NULL)
		abort();
	return p;
}

void *sim_malloc(size_t bytes) { return had(__real_malloc(bytes)); }
void *sim_calloc(size_t n, size_t bytes) { return had(__real_calloc(n, bytes)); }
void *sim_realloc(void *p, size_t bytes) { return had(__real_realloc(p, bytes)); }

/* Megabytes that nobody wrote: to wipe them costs a page fault for each 4 KiB, and nobody reads them later here. */
WRAP(void, explicit_bzero, void *p, size_t bytes)
{
	if (bytes < (size_t)1 << 20)
		__real_explicit_bzero(p, bytes);
}

/* ---- descriptors of any kind ---- */

WRAP(int, close, int fd)
{
	if (!sim_fd_is(fd))
		return __real_close(fd);
	return sim_fd_close(fd);
}

WRAP(ssize_t, read, int fd, void *to, size_t bytes)
{
	if (!sim_fd_is(fd))
		return __real_read(fd, to, bytes);
	sim_preempt();
	struct sim_obj *o = sim_fd_get(fd);
	if (o == NULL || o->ops->read == NULL)
		return -1;
	return o->ops->read(o, to, bytes);
}

WRAP(ssize_t, write, int fd, const void *from, size_t bytes)
{
	if (!sim_fd_is(fd))
		return __real_write(fd, from, bytes);
	sim_preempt();
	struct sim_obj *o = sim_fd_get(fd);
	if (o == NULL || o->ops->write == NULL)
		return -1;
	return o->ops->write(o, from, bytes);
}

WRAP(int, fcntl, int fd, int cmd, ...)
{
	va_list ap;
	va_start(ap, cmd);
	void *arg = va_arg(ap, void *);
	va_end(ap);
	if (!sim_fd_is(fd))
		return __real_fcntl(fd, cmd, arg);
	return cmd == F_GETFL ? O_RDWR | O_NONBLOCK : 0;
}

WRAP(int, poll, struct pollfd *p, nfds_t cnt, int timeout_ms)
{
	bool simulated = false;
	for (nfds_t i = 0; i < cnt; i++)
		simulated |= sim_fd_is(p[i].fd);
	if (!in_task() || !simulated)
		return __real_poll(p, cnt, timeout_ms);
	return sim_poll(p, (unsigned)cnt, timeout_of(timeout_ms));
}

WRAP(int, ppoll, struct pollfd *p, nfds_t cnt, const struct timespec *ts, const sigset_t *mask)
{
	if (!in_task())
		return __real_ppoll(p, cnt, ts, mask);
	return sim_poll(p, (unsigned)cnt, timeout_of_ts(ts));
}

WRAP(int, epoll_create1, int flags) { return in_task() ? sim_epoll_create() : __real_epoll_create1(flags); }
WRAP(int, epoll_ctl, int epfd, int op, int fd, struct epoll_event *e)
{
	return sim_fd_is(epfd) ? sim_epoll_ctl(epfd, op, fd, e) : __real_epoll_ctl(epfd, op, fd, e);
}
WRAP(int, epoll_wait, int epfd, struct epoll_event *e, int max, int timeout_ms)
{
	if (!sim_fd_is(epfd))
		return __real_epoll_wait(epfd, e, max, timeout_ms);
	return sim_epoll_wait(epfd, e, max, timeout_of(timeout_ms));
}
WRAP(int, epoll_pwait2, int epfd, struct epoll_event *e, int max, const struct timespec *ts, const sigset_t *mask)
{
	if (!sim_fd_is(epfd))
		return __real_epoll_pwait2(epfd, e, max, ts, mask);
	return sim_epoll_wait(epfd, e, max, timeout_of_ts(ts));
}

WRAP(int, eventfd, unsigned start, int flags) { return in_task() ? sim_eventfd(start) : __real_eventfd(start, flags); }
WRAP(int, pipe2, int fds[2], int flags) { return in_task() ? sim_pipe(fds) : __real_pipe2(fds, flags); }
WRAP(int, signalfd, int fd, const sigset_t *set, int flags)
{
	return in_task() ? sim_signalfd() : __real_signalfd(fd, set, flags);
}

long __real_syscall(long number, ...);
long __wrap_syscall(long number, ...);
long __wrap_syscall(long number, ...)
{
	long a[5];
	va_list ap;
	va_start(ap, number);
	for (unsigned i = 0; i < TN_ARRAY_LEN(a); i++)
		a[i] = va_arg(ap, long);
	va_end(ap);
	if (in_task() && number == SYS_pidfd_open)
		return sim_pidfd((uint32_t)a[0]);
	return __real_syscall(number, a[0], a[1], a[2], a[3], a[4]);
}

/* ---- sockets ---- */

WRAP(int, socket, int family, int type, int protocol)
{
	if (!in_task())
		return __real_socket(family, type, protocol);
	return family == AF_UNIX ? sim_unix_socket() : sim_tcp_socket(family);
}

WRAP(int, socketpair, int family, int type, int protocol, int fds[2])
{
	return in_task() ? sim_unix_pair(fds) : __real_socketpair(family, type, protocol, fds);
}

WRAP(int, bind, int fd, const struct sockaddr *a, socklen_t len)
{
	if (!sim_fd_is(fd))
		return __real_bind(fd, a, len);
	struct sim_obj *o = sim_fd_get_as(fd, &sim_tcp_ops);
	return o != NULL ? sim_tcp_bind(o, a, len) : -1;
}

WRAP(int, listen, int fd, int backlog)
{
	if (!sim_fd_is(fd))
		return __real_listen(fd, backlog);
	struct sim_obj *o = sim_fd_get_as(fd, &sim_tcp_ops);
	return o != NULL ? sim_tcp_listen(o) : -1;
}

WRAP(int, accept4, int fd, struct sockaddr *from, socklen_t *len, int flags)
{
	if (!sim_fd_is(fd))
		return __real_accept4(fd, from, len, flags);
	sim_preempt();
	struct sim_obj *o = sim_fd_get(fd);
	if (o == NULL)
		return -1;
	return o->ops == &sim_tcp_ops ? sim_tcp_accept(o, from, len) : sim_unix_accept(o);
}

WRAP(int, connect, int fd, const struct sockaddr *a, socklen_t len)
{
	if (!sim_fd_is(fd))
		return __real_connect(fd, a, len);
	sim_preempt();
	struct sim_obj *o = sim_fd_get(fd);
	if (o == NULL)
		return -1;
	if (o->ops == &sim_tcp_ops)
		return sim_tcp_connect(o, a, len);
	return sim_unix_connect(o, ((const struct sockaddr_un *)(const void *)a)->sun_path);
}

static ssize_t send_message(int fd, const struct msghdr *m)
{
	sim_preempt();
	struct sim_obj *o = sim_fd_get(fd);
	return o != NULL ? o->ops->sendmsg(o, m) : -1;
}

static ssize_t receive_message(int fd, struct msghdr *m)
{
	sim_preempt();
	struct sim_obj *o = sim_fd_get(fd);
	return o != NULL ? o->ops->recvmsg(o, m) : -1;
}

WRAP(ssize_t, sendmsg, int fd, const struct msghdr *m, int flags)
{
	return sim_fd_is(fd) ? send_message(fd, m) : __real_sendmsg(fd, m, flags);
}

WRAP(ssize_t, recvmsg, int fd, struct msghdr *m, int flags)
{
	return sim_fd_is(fd) ? receive_message(fd, m) : __real_recvmsg(fd, m, flags);
}

WRAP(ssize_t, send, int fd, const void *from, size_t bytes, int flags)
{
	struct iovec iov = { (void *)(uintptr_t)from, bytes };
	return sim_fd_is(fd) ? send_message(fd, &(struct msghdr){ .msg_iov = &iov, .msg_iovlen = 1 })
			     : __real_send(fd, from, bytes, flags);
}

/* As of recv(): MSG_PEEK is not asked for by tent. */
WRAP(ssize_t, recv, int fd, void *to, size_t bytes, int flags)
{
	struct iovec iov = { to, bytes };
	return sim_fd_is(fd) ? receive_message(fd, &(struct msghdr){ .msg_iov = &iov, .msg_iovlen = 1 })
			     : __real_recv(fd, to, bytes, flags);
}

WRAP(int, recvmmsg, int fd, struct mmsghdr *m, unsigned cnt, int flags, struct timespec *timeout)
{
	if (!sim_fd_is(fd))
		return __real_recvmmsg(fd, m, cnt, flags, timeout);
	int n = 0;
	while ((unsigned)n < cnt) {
		ssize_t got = receive_message(fd, &m[n].msg_hdr);
		if (got < 0)
			break;
		m[n++].msg_len = (unsigned)got;
		if (got == 0)
			break;
	}
	return n > 0 ? n : -1;
}

WRAP(int, shutdown, int fd, int how)
{
	if (!sim_fd_is(fd))
		return __real_shutdown(fd, how);
	struct sim_obj *o = sim_fd_get_as(fd, &sim_unix_ops);
	return o != NULL ? sim_unix_shutdown(o) : -1;
}

static int peer_option(int fd, int name, void *value, socklen_t *len)
{
	struct sim_obj *o = sim_fd_get_as(fd, &sim_unix_ops);
	const struct sim_proc *p = o != NULL ? sim_unix_peer(o) : NULL;
	if (p == NULL) {
		errno = ENOTCONN;
		return -1;
	}
	if (name == SO_PEERCRED) {
		struct ucred cred = { .pid = (pid_t)p->pid, .uid = getuid(), .gid = getgid() };
		memcpy(value, &cred, TN_MIN((size_t)*len, sizeof cred));
		*len = sizeof cred;
		return 0;
	}
	int pidfd = sim_pidfd(p->pid);
	memcpy(value, &pidfd, sizeof pidfd);
	return pidfd >= 0 ? 0 : -1;
}

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

WRAP(int, getsockopt, int fd, int level, int name, void *value, socklen_t *len)
{
	if (!sim_fd_is(fd))
		return __real_getsockopt(fd, level, name, value, len);
	if (level == SOL_SOCKET && (name == SO_PEERCRED || name == SO_PEERPIDFD))
		return peer_option(fd, name, value, len);
	struct sim_obj *o = sim_fd_get_as(fd, &sim_tcp_ops);
	if (o == NULL)
		return -1;
	memset(value, 0, *len);
	if (level == SOL_SOCKET && name == SO_ERROR)
		*(int *)value = sim_tcp_error(o);
	return 0;
}

WRAP(int, setsockopt, int fd, int level, int name, const void *value, socklen_t len)
{
	if (!sim_fd_is(fd))
		return __real_setsockopt(fd, level, name, value, len);
	struct sim_obj *o = sim_fd_get_as(fd, &sim_tcp_ops);
	if (o == NULL)
		return -1;
	if (len >= sizeof(int))
		sim_tcp_option(o, level, name, value);
	return 0;
}

WRAP(int, getsockname, int fd, struct sockaddr *a, socklen_t *len)
{
	if (!sim_fd_is(fd))
		return __real_getsockname(fd, a, len);
	struct sim_obj *o = sim_fd_get_as(fd, &sim_tcp_ops);
	return o != NULL ? sim_tcp_name(o, false, a, len) : -1;
}

WRAP(int, getpeername, int fd, struct sockaddr *a, socklen_t *len)
{
	if (!sim_fd_is(fd))
		return __real_getpeername(fd, a, len);
	struct sim_obj *o = sim_fd_get_as(fd, &sim_tcp_ops);
	return o != NULL ? sim_tcp_name(o, true, a, len) : -1;
}

/* ---- a process's copies in its own memory: somebody else may run when half is done ---- */

static ssize_t copy_within(pid_t pid, const struct iovec *to, const struct iovec *from)
{
	size_t half = to->iov_len / 2;
	sim_check(pid == (pid_t)sim_self()->pid && to->iov_len == from->iov_len, "copies", "%s copies in another process", sim_self()->name);
	memcpy(to->iov_base, from->iov_base, half);
	if (sim_chance(200)) /* a page that takes its time */
		sim_sleep(sim_pick(1, 1500) * TN_NS_PER_MS);
	sim_preempt();
	memcpy((uint8_t *)to->iov_base + half, (const uint8_t *)from->iov_base + half, to->iov_len - half);
	sim_preempt();
	return (ssize_t)to->iov_len;
}

WRAP(ssize_t, process_vm_readv, pid_t pid, const struct iovec *to, unsigned long to_cnt, const struct iovec *from,
     unsigned long from_cnt, unsigned long flags)
{
	return in_task() ? copy_within(pid, to, from) : __real_process_vm_readv(pid, to, to_cnt, from, from_cnt, flags);
}

WRAP(ssize_t, process_vm_writev, pid_t pid, const struct iovec *from, unsigned long from_cnt, const struct iovec *to,
     unsigned long to_cnt, unsigned long flags)
{
	return in_task() ? copy_within(pid, to, from) : __real_process_vm_writev(pid, from, from_cnt, to, to_cnt, flags);
}

/* ---- threads ---- */

WRAP(int, pthread_create, pthread_t *out, const pthread_attr_t *attr, void *(*main)(void *), void *arg)
{
	if (!in_task())
		return __real_pthread_create(out, attr, main, arg);
	*out = (pthread_t)(uintptr_t)sim_spawn(sim_self(), "thread", main, arg);
	return 0;
}

WRAP(int, pthread_join, pthread_t thread, void **result)
{
	if (!in_task())
		return __real_pthread_join(thread, result);
	struct sim_task *t = (struct sim_task *)(uintptr_t)thread;
	while (!sim_task_done(t))
		(void)sim_wait((const void *const[]){ t }, 1, UINT64_MAX);
	return 0;
}

WRAP(int, pthread_detach, pthread_t thread) { return in_task() ? 0 : __real_pthread_detach(thread); }

WRAP(int, pthread_setname_np, pthread_t thread, const char *name)
{
	return in_task() ? 0 : __real_pthread_setname_np(thread, name);
}

/* A mutex of the code under test is a word that says who has it, in the memory of the real one. What the simulator itself
 * and libraries lock outside of tasks is the real one's; the two kinds never meet in one object. */
WRAP(int, pthread_mutex_lock, pthread_mutex_t *m)
{
	if (!in_task())
		return __real_pthread_mutex_lock(m);
	uint64_t *owner = (uint64_t *)(void *)m;
	sim_preempt();
	while (*owner != 0) {
		sim_check(*owner != sim_task_id(sim.cur), "locks", "a thread waits for a lock that it holds");
		(void)sim_wait((const void *const[]){ m }, 1, UINT64_MAX);
	}
	*owner = sim_task_id(sim.cur);
	return 0;
}

WRAP(int, pthread_mutex_trylock, pthread_mutex_t *m)
{
	if (!in_task())
		return __real_pthread_mutex_trylock(m);
	uint64_t *owner = (uint64_t *)(void *)m;
	if (*owner != 0)
		return EBUSY;
	*owner = sim_task_id(sim.cur);
	return 0;
}

WRAP(int, pthread_mutex_unlock, pthread_mutex_t *m)
{
	if (!in_task())
		return __real_pthread_mutex_unlock(m);
	uint64_t *owner = (uint64_t *)(void *)m;
	sim_check(*owner == sim_task_id(sim.cur), "locks", "a thread gives back a lock that it does not hold");
	*owner = 0;
	sim_notify(m);
	return 0;
}

WRAP(int, pthread_mutex_destroy, pthread_mutex_t *m)
{
	return in_task() ? 0 : __real_pthread_mutex_destroy(m);
}

static int cond_wait(pthread_cond_t *c, pthread_mutex_t *m, uint64_t until_ns)
{
	(void)__wrap_pthread_mutex_unlock(m);
	bool told = sim_wait((const void *const[]){ c }, 1, until_ns);
	(void)__wrap_pthread_mutex_lock(m);
	return told ? 0 : ETIMEDOUT;
}

WRAP(int, pthread_cond_wait, pthread_cond_t *c, pthread_mutex_t *m)
{
	return in_task() ? cond_wait(c, m, UINT64_MAX) : __real_pthread_cond_wait(c, m);
}

WRAP(int, pthread_cond_timedwait, pthread_cond_t *c, pthread_mutex_t *m, const struct timespec *until)
{
	return in_task() ? cond_wait(c, m, timeout_of_ts(until)) : __real_pthread_cond_timedwait(c, m, until);
}

WRAP(int, pthread_cond_signal, pthread_cond_t *c)
{
	if (!in_task())
		return __real_pthread_cond_signal(c);
	sim_notify(c);
	return 0;
}

WRAP(int, pthread_cond_broadcast, pthread_cond_t *c)
{
	if (!in_task())
		return __real_pthread_cond_broadcast(c);
	sim_notify(c);
	return 0;
}

WRAP(int, pthread_cond_destroy, pthread_cond_t *c) { return in_task() ? 0 : __real_pthread_cond_destroy(c); }

/* ---- names in the file system ---- */

struct lease { char key[SHR_LEASE_PATH_MAX]; struct sim_proc *holder; struct tn_id128 session; };
static struct lease leases[2 * SIM_HOSTS];

static struct lease *lease_at(const char *dir, const char *name)
{
	char key[SHR_LEASE_PATH_MAX];
	(void)snprintf(key, sizeof key, "%s/%s", dir, name);
	for (unsigned i = 0; i < TN_ARRAY_LEN(leases); i++) {
		if (leases[i].key[0] == '\0')
			memcpy(leases[i].key, key, sizeof key);
		if (strcmp(leases[i].key, key) == 0)
			return &leases[i];
	}
	abort();
}

static bool held(const struct lease *l) { return l->holder != NULL && l->holder->state != SIM_DEAD; }

WRAP(tn_status, shr_lease_take_until, const char *dir, const char *name, const struct tn_id128 *session, uint64_t deadline_ns,
     struct shr_lease *out)
{
	struct lease *l = lease_at(dir, name);
	while (held(l)) {
		if (sim.now_ns >= deadline_ns)
			return TN_BUSY;
		sim_sleep(20 * TN_NS_PER_MS);
	}
	l->holder = sim_self();
	l->session = *session;
	*out = (struct shr_lease){ .fd = (int)(l - leases) };
	return TN_OK;
}

WRAP(void, shr_lease_release, struct shr_lease *l)
{
	if (l->fd >= 0)
		leases[l->fd].holder = NULL;
	l->fd = -1;
}

WRAP(bool, shr_lease_intact, const struct shr_lease *l) { return l->fd >= 0; }

WRAP(tn_status, shr_lease_read, const char *dir, const char *name, struct shr_lease_info *out)
{
	const struct lease *l = lease_at(dir, name);
	*out = (struct shr_lease_info){ .held = held(l), .pid = l->holder != NULL ? l->holder->pid : 0, .session = l->session };
	return TN_OK;
}

WRAP(tn_status, shr_publish_socket, const char *path, int type, mode_t mode, int *fd_out, struct shr_published *out)
{
	(void)type;
	(void)mode;
	int fd = sim_unix_listen(path);
	if (fd < 0)
		return TN_LIMIT;
	(void)snprintf(out->path, sizeof out->path, "%s", path);
	out->ino = (ino_t)(uintptr_t)sim_fd_get(fd);
	*fd_out = fd;
	return TN_OK;
}

WRAP(bool, shr_publish_remove, struct shr_published *p)
{
	bool mine = p->path[0] != '\0' && sim_unix_remove(p->path, (const struct sim_obj *)(uintptr_t)p->ino);
	p->path[0] = '\0';
	return mine;
}

/* ---- fault points ---- */

bool __wrap_tn_hook_pass(enum tn_hook hook);
bool __wrap_tn_hook_pass(enum tn_hook hook)
{
	struct sim_proc *p = sim_self();
	if (p == NULL)
		return false;
	sim_cover_hook(hook);
	if (hook == TN_HOOK_dp_link_attached && sim_trouble_starves() && sim_chance(8))
		p->alloc_countdown = 1; /* of the snapshot */
	if (p->hook_countdown > 0 && --p->hook_countdown == 0) {
		sim_trace("%s dies at fault point %s", p->name, tn_hook_names(&(size_t){ 0 })[hook]);
		sim_kill(p);
	}
	sim_preempt();
	/* A page that cannot be had is the real kernel's to answer with EFAULT. */
	return p->failing && hook != TN_HOOK_rand_os && hook != TN_HOOK_dp_memory_hole && sim_chance(6);
}

bool __wrap_tn_hook_armed(enum tn_hook hook);
bool __wrap_tn_hook_armed(enum tn_hook hook)
{
	(void)hook;
	return false;
}

/* ---- the log: its lines are words of the trace ---- */

void __wrap_tn_log_emit(struct tn_log_site *site, enum tn_log_level level, const char *component, const char *fmt, ...)
	TN_PRINTF(4, 5);
void __wrap_tn_log_emit(struct tn_log_site *site, enum tn_log_level level, const char *component, const char *fmt, ...)
{
	char text[280];
	va_list ap;
	(void)site;
	if (level == TN_LOG_DEBUG)
		return;
	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	sim_trace("%s %s: %s: %s", sim_self() != NULL ? sim_self()->name : "", tn_log_level_name(level), component, text);
}

bool __wrap_tn_log_line(const char *line, size_t len);
bool __wrap_tn_log_line(const char *line, size_t len)
{
	(void)line;
	(void)len;
	return true;
}
