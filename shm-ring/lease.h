/* SPDX-License-Identifier: Apache-2.0
 * Who owns a runtime directory. One exclusive lock on `<dir>/<name>.lock` per daemon, held by the kernel for exactly
 * as long as the process lives (also while it is stopped): a second daemon can never start beside a living one, and a
 * lock file left by a dead one means nothing. Also the two rules for names that others find us by: publish by rename
 * under the lease, and remove only what is still ours, before the lease goes. Start and stop of a daemon only. */
#ifndef SHR_LEASE_H
#define SHR_LEASE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/compiler.h"
#include "common/ids.h"
#include "common/status.h"

#define SHR_LEASE_PATH_MAX 256u

struct shr_lease {
	int fd; /* -1 = not held */
	char path[SHR_LEASE_PATH_MAX];
};
#define SHR_LEASE_NONE ((struct shr_lease){ .fd = -1 })

/* Takes the lease at once or not at all, and notes pid and session in the file for people to read.
 * TN_BUSY: another process holds it (shr_lease_read says which). TN_NOT_FOUND (dir), TN_PERMISSION, TN_TOO_BIG (path),
 * TN_SYSTEM. *out untouched on failure. The lock belongs to the open file: a child of fork() that keeps the
 * descriptor keeps the lease; exec closes it. */
TN_MUST_USE tn_status shr_lease_take(const char *dir, const char *name, const struct tn_id128 *session,
				     struct shr_lease *out);
/* The same, trying again until CLOCK_MONOTONIC deadline_ns: a process that was just killed holds its lease until the
 * kernel has taken it apart, and its supervisor may be faster. TN_BUSY then. Blocks (sleeps). */
TN_MUST_USE tn_status shr_lease_take_until(const char *dir, const char *name, const struct tn_id128 *session,
					   uint64_t deadline_ns, struct shr_lease *out);
/* Gives it up; the file stays. Accepts SHR_LEASE_NONE. */
void shr_lease_release(struct shr_lease *l);
/* False when the lock file was removed or replaced behind our back: somebody else may start; the holder should say so. */
bool shr_lease_intact(const struct shr_lease *l);

struct shr_lease_info {
	bool held;                /* by a living process, now */
	uint32_t pid;             /* as noted; 0 = nothing noted. For messages, never for decisions */
	struct tn_id128 session;
};
/* Looks without taking or disturbing. TN_NOT_FOUND: never taken here. TN_PERMISSION, TN_TOO_BIG, TN_SYSTEM. */
TN_MUST_USE tn_status shr_lease_read(const char *dir, const char *name, struct shr_lease_info *out);

/* A name in the file system that we published: remembered by inode, so that a late exit can tell it from the one
 * that a successor put in its place. */
struct shr_published {
	char path[SHR_LEASE_PATH_MAX]; /* empty = nothing */
	dev_t dev;
	ino_t ino;
};

/* Creates a listening unix socket (close-on-exec, non-blocking) that appears at `path` in one step, already
 * accepting, with exactly `mode`; replaces what a dead predecessor left. Call under the lease. type: SOCK_SEQPACKET or
 * SOCK_STREAM. TN_TOO_BIG: path over what a socket address holds (107 bytes with a 4-byte suffix).
 * TN_NOT_FOUND, TN_PERMISSION, TN_LIMIT, TN_SYSTEM. Outputs untouched on failure. */
TN_MUST_USE tn_status shr_publish_socket(const char *path, int type, mode_t mode, int *fd_out, struct shr_published *out);
/* Remembers a name that something else published for us (a message library's socket). TN_NOT_FOUND, TN_TOO_BIG. */
TN_MUST_USE tn_status shr_publish_note(const char *path, struct shr_published *out);
/* Removes the name if it still leads to what we published; true when it did. Call before shr_lease_release(): the
 * look and the removal are two steps, and only the lease keeps a successor out between them. */
bool shr_publish_remove(struct shr_published *p);

#endif
