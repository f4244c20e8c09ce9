/* SPDX-License-Identifier: Apache-2.0
 * See archive.h. The file is opened here and not by libarchive, which would follow a link and overwrite. */
#include "controlplane/tentctl/bundle/archive.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct tctl_archive {
	struct archive *out;
	int fd;
	char path[4096], folder[128];
};

static tn_status fail(struct tctl_archive *a, char *err, size_t err_bytes)
{
	const char *why = archive_error_string(a->out);
	snprintf(err, err_bytes, "%s: %s", a->path, why != NULL ? why : "cannot be written");
	return TN_SYSTEM;
}

tn_status tctl_archive_open(const char *path, const char *folder, struct tctl_archive **out, char *err, size_t err_bytes)
{
	struct tctl_archive *a = calloc(1, sizeof *a);
	snprintf(err, err_bytes, "no memory");
	if (a == NULL)
		return TN_NO_MEMORY;
	a->fd = -1;
	if (snprintf(a->path, sizeof a->path, "%s", path) >= (int)sizeof a->path) {
		snprintf(err, err_bytes, "the name of the file is too long");
		free(a);
		return TN_TOO_BIG;
	}
	snprintf(a->folder, sizeof a->folder, "%s", folder);
	a->fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (a->fd < 0) {
		tn_status s = errno == EEXIST ? TN_EXISTS : TN_SYSTEM;
		snprintf(err, err_bytes, "%s: %s", path, strerror(errno));
		free(a);
		return s;
	}
	tn_status s = TN_NO_MEMORY;
	a->out = archive_write_new();
	if (a->out != NULL) {
		s = archive_write_add_filter_gzip(a->out) == ARCHIVE_OK && archive_write_set_format_pax_restricted(a->out) == ARCHIVE_OK &&
		    archive_write_open_fd(a->out, a->fd) == ARCHIVE_OK ? TN_OK : fail(a, err, err_bytes);
	}
	if (s != TN_OK) {
		char ignored[256];
		(void)tctl_archive_close(a, false, ignored, sizeof ignored);
		return s;
	}
	*out = a;
	return TN_OK;
}

tn_status tctl_archive_add(struct tctl_archive *a, const char *name, const void *bytes, size_t n, char *err, size_t err_bytes)
{
	char path[256];
	struct archive_entry *e = archive_entry_new();
	if (e == NULL) {
		snprintf(err, err_bytes, "no memory");
		return TN_NO_MEMORY;
	}
	snprintf(path, sizeof path, "%s/%s", a->folder, name);
	archive_entry_set_pathname(e, path);
	archive_entry_set_filetype(e, AE_IFREG);
	archive_entry_set_perm(e, 0600);
	archive_entry_set_size(e, (la_int64_t)n);
	archive_entry_set_mtime(e, time(NULL), 0);
	bool good = archive_write_header(a->out, e) == ARCHIVE_OK && archive_write_data(a->out, bytes, n) == (la_ssize_t)n;
	archive_entry_free(e);
	return good ? TN_OK : fail(a, err, err_bytes);
}

tn_status tctl_archive_close(struct tctl_archive *a, bool keep, char *err, size_t err_bytes)
{
	tn_status s = TN_OK;
	if (a == NULL)
		return TN_OK;
	if (a->out != NULL && keep && archive_write_close(a->out) != ARCHIVE_OK)
		s = fail(a, err, err_bytes);
	if (a->out != NULL)
		archive_write_free(a->out);
	if (s == TN_OK && keep && fsync(a->fd) != 0) {
		snprintf(err, err_bytes, "%s: %s", a->path, strerror(errno));
		s = TN_SYSTEM;
	}
	close(a->fd);
	if (!keep || s != TN_OK)
		unlink(a->path);
	free(a);
	return s;
}
