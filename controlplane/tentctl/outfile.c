/* SPDX-License-Identifier: Apache-2.0
 * Whole files only: temporary name in the same folder, exclusive creation, rename. */
#include "controlplane/tentctl/outfile.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static tn_status say(char *err, size_t err_bytes, const char *path, const char *what, int e)
{
	snprintf(err, err_bytes, "%s: %s%s%s", path, what, e != 0 ? ": " : "", e != 0 ? strerror(e) : "");
	return e != 0 ? tn_status_from_errno(e) : TN_INVALID;
}

/* /dev/stdout, /proc/self/fd/3 and what leads there: the file behind it is somebody's open descriptor, and would be another
 * file after the rename. A kernel before 5.6 does not tell. */
static bool is_descriptor(const char *path)
{
	char dir[PATH_MAX];
	const struct open_how how = { .flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_NO_MAGICLINKS };
	const char *slash = strrchr(path, '/');
	/* what leads to the folder does not matter */
	(void)snprintf(dir, sizeof dir, "%.*s", slash != NULL ? (int)(slash - path + 1) : 1, slash != NULL ? path : ".");
	int at = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	int fd = at < 0 ? -1 : (int)syscall(SYS_openat2, at, slash != NULL ? slash + 1 : path, &how, sizeof how);
	bool is = at >= 0 && fd < 0 && errno == ELOOP; /* it is no loop: stat() got through */
	if (fd >= 0)
		(void)close(fd);
	if (at >= 0)
		(void)close(at);
	return is;
}

/* Follows a link to its file, so that the link stays one. */
static tn_status find_place(struct tctl_outfile *f, const char *path, char *err, size_t err_bytes)
{
	struct stat st;
	f->replaces = false;
	if (strlen(path) >= sizeof f->path)
		return say(err, err_bytes, "file name", "too long", ENAMETOOLONG);
	if (stat(path, &st) != 0) {
		if (errno != ENOENT)
			return say(err, err_bytes, path, "cannot be written", errno);
		if (lstat(path, &st) == 0)
			return say(err, err_bytes, path, "is a link to nothing", 0);
		memcpy(f->path, path, strlen(path) + 1);
		return TN_OK;
	}
	if (!S_ISREG(st.st_mode))
		return say(err, err_bytes, path, S_ISDIR(st.st_mode) ? "is a directory; name a file in it" :
			   "exists and is no regular file", 0);
	if (is_descriptor(path))
		return say(err, err_bytes, path, "is an open descriptor; name the file itself", 0);
	f->replaces = true;
	f->uid = st.st_uid;
	f->gid = st.st_gid;
	f->mode = st.st_mode & 07777;
	return realpath(path, f->path) != NULL ? TN_OK : say(err, err_bytes, path, "cannot be resolved", errno);
}

static void name_temp(struct tctl_outfile *f, unsigned number)
{
	const char *slash = strrchr(f->path, '/');
	int dir = slash != NULL ? (int)(slash - f->path + 1) : 0;
	/* long names are cut: the temporary one must fit where the real one does */
	snprintf(f->temp, sizeof f->temp, "%.*s.%.200s.%ld.%u", dir, f->path, f->path + dir, (long)getpid(), number);
}

/* Of the file that will be replaced: its owner and group as far as we may, then its mode. Bits that meant another owner
 * or group are not handed to ours. */
static bool take_over(const struct tctl_outfile *f)
{
	mode_t mode = f->mode;
	if (fchown(f->fd, f->uid, f->gid) != 0) {
		mode &= ~(mode_t)S_ISUID;
		if (fchown(f->fd, (uid_t)-1, f->gid) != 0) {
			mode &= ~(mode_t)S_ISGID;
			mode &= ~(mode_t)S_IRWXG | (mode & S_IRWXO) << 3;
		}
	}
	return fchmod(f->fd, mode) == 0;
}

tn_status tctl_outfile_open(struct tctl_outfile *f, const char *path, uint64_t bytes, char *err, size_t err_bytes)
{
	f->fd = -1;
	tn_status s = find_place(f, path, err, err_bytes);
	if (s != TN_OK)
		return s;
	for (unsigned number = 0; f->fd < 0; number++) {
		name_temp(f, number);
		f->fd = open(f->temp, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, f->replaces ? 0600 : 0666);
		if (f->fd < 0 && (errno != EEXIST || number == 100))
			return say(err, err_bytes, path, "cannot create a file beside it", errno);
	}
	if (f->replaces && !take_over(f)) {
		s = say(err, err_bytes, path, "its permissions cannot be kept", errno);
		tctl_outfile_abandon(f);
		return s;
	}
	/* "no space" now instead of after the transfer; file systems without fallocate just go on */
	if (bytes > 0 && fallocate(f->fd, 0, 0, (off_t)bytes) != 0 &&
	    (errno == ENOSPC || errno == EFBIG || errno == EDQUOT)) {
		s = say(err, err_bytes, path, "there is no room for it", errno);
		tctl_outfile_abandon(f);
		return s;
	}
	return TN_OK;
}

tn_status tctl_outfile_check(const char *path, char *err, size_t err_bytes)
{
	struct tctl_outfile f;
	tn_status s = tctl_outfile_open(&f, path, 0, err, err_bytes);
	tctl_outfile_abandon(&f);
	return s;
}

tn_status tctl_outfile_write(struct tctl_outfile *f, uint64_t offset, const void *bytes, size_t n, char *err,
			     size_t err_bytes)
{
	const char *p = bytes;
	while (n > 0) {
		ssize_t done = pwrite(f->fd, p, n, (off_t)offset);
		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return say(err, err_bytes, f->path, "cannot write", done < 0 ? errno : ENOSPC);
		p += done;
		offset += (uint64_t)done;
		n -= (size_t)done;
	}
	return TN_OK;
}

/* 0, or errno. A file system that knows no fsync (EINVAL) gives what it can. */
static int sync_fd(int fd)
{
	return fsync(fd) == 0 || errno == EINVAL ? 0 : errno;
}

/* The new name, too. A directory that we may not read cannot be synced; that is no failure of ours. */
static int sync_dir(const struct tctl_outfile *f)
{
	char dir[PATH_MAX];
	const char *slash = strrchr(f->path, '/');
	(void)snprintf(dir, sizeof dir, "%.*s", slash != NULL ? (int)(slash - f->path + 1) : 1, slash != NULL ? f->path : ".");
	int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	int e = sync_fd(fd);
	(void)close(fd);
	return e;
}

tn_status tctl_outfile_commit(struct tctl_outfile *f, char *err, size_t err_bytes)
{
	int fd = f->fd, e = sync_fd(fd); /* else a crash may leave the new name on no content */
	f->fd = -1;
	if (close(fd) != 0 && e == 0)
		e = errno; /* some file systems tell of failed writes only here */
	if (e == 0 && rename(f->temp, f->path) != 0)
		e = errno;
	if (e != 0) {
		(void)unlink(f->temp);
		return say(err, err_bytes, f->path, "cannot be put in place", e);
	}
	e = sync_dir(f);
	return e == 0 ? TN_OK : say(err, err_bytes, f->path, "is in place, but a crash may undo that", e);
}

void tctl_outfile_abandon(struct tctl_outfile *f)
{
	if (f->fd < 0)
		return;
	(void)close(f->fd);
	(void)unlink(f->temp);
	f->fd = -1;
}
