/* SPDX-License-Identifier: Apache-2.0
 * Reaches the data plane: connect and HELLO, and waiting on its socket. Messages themselves are shm-ring/handshake.h.
 * Knows nothing of contexts or objects. Any thread; blocks to its deadline at most. */
#ifndef LT_ATTACH_IO_H
#define LT_ATTACH_IO_H

#include <stdbool.h>
#include <stdint.h>

#include "common/status.h"
#include "shm-ring/handshake.h"

/* Connects to the socket at `path`, says HELLO as `app` and takes the answer. TN_OK: *sock_out is the caller's.
 * TN_DATAPLANE_DOWN: nobody listens there, or it hung up; TN_ABI_MISMATCH: another major version, or no data plane of
 * ours; TN_PERMISSION, TN_TIMEOUT, TN_LIMIT, TN_SYSTEM; or the status that the data plane refused with.
 * *reached_out: somebody listened there, so TN_LIMIT is not of this process's descriptors. Other outputs untouched on
 * failure. */
tn_status lt_io_attach(const char *path, const char *app, uint64_t deadline_ns, int *sock_out,
		       struct shr_msg_hello_reply *hello_out, bool *reached_out);

/* Waits until one of two fds is readable or hung up; -1 is ignored, UINT64_MAX = for ever. False when the deadline
 * passed. */
bool lt_io_wait_readable(int fd, int other, uint64_t deadline_ns);

/* A pidfd of the process that listens behind a connected socket; -1 when the kernel or a pid namespace hides it, or
 * when it is this process. The caller's. */
int lt_io_peer_pidfd(int sock);

#endif
