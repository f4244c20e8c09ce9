/* SPDX-License-Identifier: Apache-2.0
 * The lease is an open-file-description lock: like flock() it lives and dies with the open file and works across
 * threads, and unlike flock() one can ask who holds it without taking it (a probe that takes a shared flock, even for
 * a moment, can make a starting daemon fail). tests/model/lease.pml is the model. Start and stop of a daemon only. */
#include "shm-ring/lease.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/clock.h"

#define TAKE_TRIES 16
/* A host that starts all its applications at once is not turned away; the kernel caps it (net.core.somaxconn). */
#define LISTEN_BACKLOG 1024

static tn_status lock_path(const char *dir, const char *name, char out[static SHR_LEASE_PATH_MAX])
{
	int n = snprintf(out, SHR_LEASE_PATH_MAX, "%s/%s.lock", dir, name);
	return n > 0 && (uint32_t)n < SHR_LEASE_PATH_MAX ? TN_OK : TN_TOO_BIG;
}

static struct flock whole_file(short type) { return (struct flock){ .l_type = type, .l_whence = SEEK_SET }; }

static bool same_file(int fd, const char *path)
{
	struct stat mine, there;
	return fstat(fd, &mine) == 0 && lstat(path, &there) == 0 && mine.st_dev == there.st_dev &&
	       mine.st_ino == there.st_ino;
}

/* One attempt: TN_AGAIN when the file was replaced between open and lock. */
static tn_status try_take(const char *path, int *fd_out)
{
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0640);
	if (fd < 0)
		return tn_status_from_errno(errno);
	struct flock lk = whole_file(F_WRLCK);
	tn_status s = TN_OK;
	if (fcntl(fd, F_OFD_SETLK, &lk) != 0)
		s = errno == EAGAIN || errno == EACCES ? TN_BUSY : tn_status_from_errno(errno);
	else if (!same_file(fd, path))
		s = TN_AGAIN;
	if (s != TN_OK) {
		int err = errno;
		close(fd);
		errno = err;
		return s;
	}
	*fd_out = fd;
	return TN_OK;
}

tn_status shr_lease_take(const char *dir, const char *name, const struct tn_id128 *session, struct shr_lease *out)
{
	struct shr_lease l = SHR_LEASE_NONE;
	tn_status s = lock_path(dir, name, l.path);
	if (s != TN_OK)
		return s;
	s = TN_AGAIN;
	for (int i = 0; i < TAKE_TRIES && s == TN_AGAIN; i++)
		s = try_take(l.path, &l.fd);
	if (s != TN_OK)
		return s == TN_AGAIN ? TN_BUSY : s;
	char hex[TN_ID128_HEX], note[64];
	tn_id128_to_hex(session, hex);
	int n = snprintf(note, sizeof note, "%ld %s\n", (long)getpid(), hex);
	/* The note is for people; a failure to write it (disk full) does not make the lease less ours. */
	if (ftruncate(l.fd, 0) == 0)
		(void)!pwrite(l.fd, note, (size_t)n, 0);
	*out = l;
	return TN_OK;
}

tn_status shr_lease_take_until(const char *dir, const char *name, const struct tn_id128 *session, uint64_t deadline_ns,
			       struct shr_lease *out)
{
	for (;;) {
		tn_status s = shr_lease_take(dir, name, session, out);
		if (s != TN_BUSY || tn_now_ns() >= deadline_ns)
			return s;
		(void)usleep(20000);
	}
}

void shr_lease_release(struct shr_lease *l)
{
	if (l->fd >= 0)
		close(l->fd);
	l->fd = -1;
}

bool shr_lease_intact(const struct shr_lease *l) { return l->fd >= 0 && same_file(l->fd, l->path); }

tn_status shr_lease_read(const char *dir, const char *name, struct shr_lease_info *out)
{
	char path[SHR_LEASE_PATH_MAX];
	tn_status s = lock_path(dir, name, path);
	if (s != TN_OK)
		return s;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0)
		return tn_status_from_errno(errno);
	struct flock lk = whole_file(F_RDLCK);
	if (fcntl(fd, F_OFD_GETLK, &lk) != 0) {
		s = tn_status_from_errno(errno);
		close(fd);
		return s;
	}
	struct shr_lease_info info = { .held = lk.l_type != F_UNLCK };
	char note[64] = { 0 }, hex[TN_ID128_HEX] = { 0 };
	uint32_t pid = 0;
	if (pread(fd, note, sizeof note - 1, 0) > 0 && sscanf(note, "%" SCNu32 " %32s", &pid, hex) == 2 &&
	    tn_id128_from_hex(hex, &info.session) == TN_OK)
		info.pid = pid;
	close(fd);
	*out = info;
	return TN_OK;
}

tn_status shr_publish_socket(const char *path, int type, mode_t mode, int *fd_out, struct shr_published *out)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	struct shr_published p;
	int n = snprintf(addr.sun_path, sizeof addr.sun_path, "%s.new", path);
	if (n < 0 || (size_t)n >= sizeof addr.sun_path)
		return TN_TOO_BIG;
	int fd = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return tn_status_from_errno(errno);
	tn_status s;
	/* Whatever is there was left by a process that died between bind and rename: we hold the lease. */
	if (unlink(addr.sun_path) != 0 && errno != ENOENT)
		goto undo_fd;
	/* The mode of the unbound socket becomes the file's (less the umask), so that it is never wider than asked. */
	if (fchmod(fd, mode) != 0 || bind(fd, (const struct sockaddr *)&addr, sizeof addr) != 0)
		goto undo_fd;
	if (chmod(addr.sun_path, mode) != 0 || listen(fd, LISTEN_BACKLOG) != 0 ||
	    shr_publish_note(addr.sun_path, &p) != TN_OK || rename(addr.sun_path, path) != 0)
		goto undo_name;
	snprintf(p.path, sizeof p.path, "%s", path);
	*fd_out = fd;
	*out = p;
	return TN_OK;
undo_name:
	s = tn_status_from_errno(errno);
	unlink(addr.sun_path);
	close(fd);
	return s;
undo_fd:
	s = tn_status_from_errno(errno);
	close(fd);
	return s;
}

tn_status shr_publish_note(const char *path, struct shr_published *out)
{
	struct shr_published p;
	struct stat st;
	int n = snprintf(p.path, sizeof p.path, "%s", path);
	if (n < 0 || (size_t)n >= sizeof p.path)
		return TN_TOO_BIG;
	if (lstat(path, &st) != 0)
		return tn_status_from_errno(errno);
	p.dev = st.st_dev;
	p.ino = st.st_ino;
	*out = p;
	return TN_OK;
}

bool shr_publish_remove(struct shr_published *p)
{
	struct stat st;
	bool mine = p->path[0] != '\0' && lstat(p->path, &st) == 0 && st.st_dev == p->dev && st.st_ino == p->ino;
	if (mine)
		mine = unlink(p->path) == 0;
	p->path[0] = '\0';
	return mine;
}
