/* SPDX-License-Identifier: Apache-2.0
 * A file that appears whole or not at all: written beside its place under a temporary name, then renamed. One that it
 * replaces hands on its permissions, and its owner and group where the kernel lets us (not its ACL); a new one gets what
 * the umask leaves. A symbolic link stays one: the file that it leads to is replaced. */
#ifndef TCTL_OUTFILE_H
#define TCTL_OUTFILE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/status.h"

struct tctl_outfile {
	int fd;
	bool replaces;  /* there is a file already: */
	uid_t uid;
	gid_t gid;
	mode_t mode;
	char path[PATH_MAX];
	char temp[PATH_MAX + 32];
};

/* Checks the place (a regular file, a link to one, or nothing yet) and makes the temporary file with room for `bytes`.
 * On failure err says why and there is nothing to clean up. */
tn_status tctl_outfile_open(struct tctl_outfile *f, const char *path, uint64_t bytes, char *err, size_t err_bytes);
/* Could it be opened? Leaves nothing behind. */
tn_status tctl_outfile_check(const char *path, char *err, size_t err_bytes);
tn_status tctl_outfile_write(struct tctl_outfile *f, uint64_t offset, const void *bytes, size_t n, char *err,
			     size_t err_bytes);
/* Puts it in place, content and name safe from a crash of the host. On failure the temporary file is gone too; only if the
 * name alone could not be made safe, the file is in place. */
tn_status tctl_outfile_commit(struct tctl_outfile *f, char *err, size_t err_bytes);
/* Removes the temporary file; harmless after commit and on a struct whose fd is -1. */
void tctl_outfile_abandon(struct tctl_outfile *f);

#endif
