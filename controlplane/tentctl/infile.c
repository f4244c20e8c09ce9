/* SPDX-License-Identifier: Apache-2.0
 * Reading a file for a put or a publication. A file that changes its length under the reader is an error: its hash
 * would be that of nothing that ever existed. */
#include "controlplane/tentctl/infile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/units.h"
#include "controlplane/tentctl/tentctl.h"

tn_status tctl_infile_open(struct tctl_infile *f, const char *path, uint64_t max_bytes, char *err, size_t err_bytes)
{
	struct stat st;
	char is[TN_UNITS_TEXT], max[TN_UNITS_TEXT];
	*f = (struct tctl_infile){ .path = path };
	f->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe must not block before it is refused */
	if (f->fd < 0 || fstat(f->fd, &st) != 0) {
		int e = errno;
		snprintf(err, err_bytes, "%s: cannot be read: %s", path, strerror(e));
		tctl_infile_close(f);
		return tn_status_from_errno(e);
	}
	f->bytes = (uint64_t)st.st_size;
	tn_status s = TN_OK;
	if (!S_ISREG(st.st_mode)) {
		snprintf(err, err_bytes, "%s: is %s, not a regular file", path,
			 S_ISDIR(st.st_mode) ? "a directory" : "a device or pipe");
		s = TN_INVALID;
	} else if (f->bytes > max_bytes) {
		snprintf(err, err_bytes, "%s: has %s (%llu bytes); at most %s (%llu bytes) fit", path,
			 tn_bytes_format(f->bytes, is), (unsigned long long)f->bytes, tn_bytes_format(max_bytes, max),
			 (unsigned long long)max_bytes);
		s = TN_TOO_BIG;
	}
	if (s != TN_OK)
		tctl_infile_close(f);
	else
		(void)posix_fadvise(f->fd, 0, 0, POSIX_FADV_SEQUENTIAL);
	return s;
}

tn_status tctl_infile_read(struct tctl_infile *f, void *to, size_t n, char *err, size_t err_bytes)
{
	char *p = to;
	while (n > 0) {
		ssize_t got = read(f->fd, p, n);
		if (tctl_stopped()) {
			snprintf(err, err_bytes, "interrupted");
			return TN_CANCELED;
		}
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0) {
			int e = errno;
			snprintf(err, err_bytes, "%s: cannot be read: %s", f->path, strerror(e));
			return tn_status_from_errno(e);
		}
		if (got == 0) {
			snprintf(err, err_bytes, "%s: became shorter while it was read", f->path);
			return TN_INVALID;
		}
		p += got;
		n -= (size_t)got;
		f->at += (uint64_t)got;
	}
	return TN_OK;
}

tn_status tctl_infile_at_end(struct tctl_infile *f, char *err, size_t err_bytes)
{
	char byte;
	ssize_t got;
	do
		got = read(f->fd, &byte, 1);
	while (got < 0 && errno == EINTR);
	if (got == 0)
		return TN_OK;
	snprintf(err, err_bytes, "%s: %s while it was read", f->path,
		 got > 0 ? "became longer" : "could not be read any more");
	return TN_INVALID;
}

void tctl_infile_close(struct tctl_infile *f)
{
	if (f->fd >= 0)
		(void)close(f->fd);
	f->fd = -1;
}
