/* SPDX-License-Identifier: Apache-2.0
 * Descriptors of simulated processes: numbers from SIM_FD_BASE up, each for an object of a kind (epoll set, event counter,
 * unix socket, TCP socket ...). Smaller numbers are the real kernel's: memfds and files are real. */
#ifndef SIM_FD_H
#define SIM_FD_H

#include <sys/socket.h>
#include <sys/types.h>

#include "common/list.h"
#include "tests/sim/kernel.h"

#define SIM_FD_BASE 1048576

struct sim_obj;

/* A NULL operation fails with EINVAL. Results as of the call of that name: -1 with errno. None of them blocks. */
struct sim_ops {
	const char *name;
	uint32_t (*ready)(const struct sim_obj *o);             /* EPOLL* bits */
	void (*closed)(struct sim_obj *o);                      /* the last descriptor is gone */
	ssize_t (*read)(struct sim_obj *o, void *to, size_t bytes);
	ssize_t (*write)(struct sim_obj *o, const void *from, size_t bytes);
	ssize_t (*recvmsg)(struct sim_obj *o, struct msghdr *m);
	ssize_t (*sendmsg)(struct sim_obj *o, const struct msghdr *m);
};

/* First member of every kind. Freed when the last reference goes; events that are on their way hold one. */
struct sim_obj {
	const struct sim_ops *ops;
	uint32_t refs, fds;
	struct tn_list watches;     /* epoll items that look at it */
};

/* The object whose first member this is. */
#define sim_of(obj, type) ((type *)(uintptr_t)(obj))

void sim_obj_init(struct sim_obj *o, const struct sim_ops *ops);
void sim_obj_get(struct sim_obj *o);
void sim_obj_put(struct sim_obj *o);
/* What it is ready for has changed: watching epoll sets and waiting tasks learn. */
void sim_obj_changed(struct sim_obj *o);

static inline bool sim_fd_is(int fd) { return fd >= SIM_FD_BASE; }
/* A new descriptor of the running process. */
int sim_fd_new(struct sim_obj *o);
/* NULL with EBADF. */
struct sim_obj *sim_fd_get(int fd);
/* NULL with ENOTSOCK when it is of another kind. */
struct sim_obj *sim_fd_get_as(int fd, const struct sim_ops *ops);
int sim_fd_close(int fd);
void sim_fd_close_all(const struct sim_proc *p);

/* ---- kinds ---- */
/* fd.c */
int sim_epoll_create(void);
int sim_epoll_ctl(int epfd, int op, int fd, const void *event);
int sim_epoll_wait(int epfd, void *events, int max, uint64_t timeout_ns);
int sim_eventfd(uint64_t start);
int sim_pipe(int fds_out[2]);
int sim_pidfd(uint32_t pid);        /* -1 with ESRCH */
void sim_pidfd_died(const struct sim_proc *p);
int sim_signalfd(void);
/* The process has asked for signals as a descriptor: it reads this one. False: it has not. */
bool sim_signal(struct sim_proc *p, int signo);
struct pollfd;
int sim_poll(struct pollfd *p, unsigned cnt, uint64_t timeout_ns);

/* unix.c */
int sim_unix_socket(void);
int sim_unix_pair(int fds_out[2]);
int sim_unix_listen(const char *path);
int sim_unix_connect(struct sim_obj *o, const char *path);
int sim_unix_accept(struct sim_obj *o);
int sim_unix_shutdown(struct sim_obj *o);
bool sim_unix_remove(const char *path, const struct sim_obj *o);
struct sim_obj *sim_unix_at(const char *path);
const struct sim_proc *sim_unix_peer(const struct sim_obj *o);
extern const struct sim_ops sim_unix_ops, sim_unix_door_ops;

/* tcp.c */
int sim_tcp_socket(int family);
int sim_tcp_bind(struct sim_obj *o, const struct sockaddr *a, socklen_t len);
int sim_tcp_listen(struct sim_obj *o);
int sim_tcp_connect(struct sim_obj *o, const struct sockaddr *a, socklen_t len);
int sim_tcp_accept(struct sim_obj *o, struct sockaddr *from, socklen_t *len);
int sim_tcp_name(const struct sim_obj *o, bool peer, struct sockaddr *a, socklen_t *len);
int sim_tcp_error(struct sim_obj *o);
void sim_tcp_option(struct sim_obj *o, int level, int name, const void *value);
extern const struct sim_ops sim_tcp_ops;

#endif
