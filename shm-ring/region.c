/* SPDX-License-Identifier: Apache-2.0
 * memfd creation, sealing and mapping. errno is converted to a status here and nowhere else in the room for these
 * calls. The order is the point: allocate pages while growing is allowed, then seal, then hand out. Set-up only. */
#include "shm-ring/region.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/memfd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "shm-ring/layout.h"

#define SEALS_OWN (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

static tn_status map_fd(int fd, size_t bytes, bool writable, void **base_out)
{
	void *base = mmap(NULL, bytes, PROT_READ | (writable ? PROT_WRITE : 0), MAP_SHARED, fd, 0);
	if (base == MAP_FAILED)
		return tn_status_from_errno(errno);
	*base_out = base;
	return TN_OK;
}

tn_status shr_region_create(const char *name, size_t bytes, struct shr_region *out)
{
	if (bytes == 0 || bytes % SHR_PAGE != 0 || bytes > INT64_MAX / 2)
		return TN_INVALID;
	int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return tn_status_from_errno(errno);
	tn_status s;
	void *base = NULL;
	/* fallocate, not ftruncate: a full memory is an error here instead of a SIGBUS in the worker later. */
	int rc;
	do {
		rc = fallocate(fd, 0, 0, (off_t)bytes);
	} while (rc != 0 && errno == EINTR);
	if (rc != 0) {
		s = errno == ENOSPC ? TN_NO_MEMORY : tn_status_from_errno(errno);
		goto undo_fd;
	}
	s = map_fd(fd, bytes, true, &base);
	if (s != TN_OK)
		goto undo_fd;
	if (fcntl(fd, F_ADD_SEALS, SEALS_OWN) != 0) {
		s = tn_status_from_errno(errno);
		goto undo_map;
	}
	*out = (struct shr_region){ .fd = fd, .base = base, .bytes = bytes };
	return TN_OK;
undo_map:
	munmap(base, bytes);
undo_fd:
	close(fd);
	return s;
}

tn_status shr_region_map(int fd, size_t bytes, bool writable, struct shr_region *out)
{
	struct stat st;
	if (fstat(fd, &st) != 0)
		return tn_status_from_errno(errno);
	int seals = fcntl(fd, F_GET_SEALS);
	if (!S_ISREG(st.st_mode) || seals < 0 || bytes == 0)
		return TN_INVALID;
	if (!(seals & F_SEAL_SHRINK))
		return TN_PERMISSION;
	if ((uint64_t)st.st_size != bytes)
		return TN_ABI_MISMATCH;
	void *base = NULL;
	tn_status s = map_fd(fd, bytes, writable, &base);
	if (s != TN_OK)
		return s;
	*out = (struct shr_region){ .fd = fd, .base = base, .bytes = bytes };
	return TN_OK;
}

void shr_region_close(struct shr_region *r)
{
	if (r->base != NULL)
		munmap(r->base, r->bytes);
	if (r->fd >= 0)
		close(r->fd);
	*r = SHR_REGION_NONE;
}

tn_status shr_region_seal_foreign(int fd, uint64_t min_bytes, struct shr_foreign *out)
{
	int seals = fcntl(fd, F_GET_SEALS);
	if (seals < 0)
		return errno == EBADF ? TN_INVALID : TN_UNSUPPORTED;
	if (!(seals & F_SEAL_SHRINK)) {
		/* EBUSY is for write seals only; here every failure means that the owner kept the right to shrink. */
		if (fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK) != 0)
			return TN_PERMISSION;
		seals = fcntl(fd, F_GET_SEALS);
		if (seals < 0 || !(seals & F_SEAL_SHRINK))
			return TN_PERMISSION;
	}
	/* Only now is the size a fact and not a snapshot. */
	struct stat st;
	struct statfs fs;
	if (fstat(fd, &st) != 0 || fstatfs(fd, &fs) != 0)
		return tn_status_from_errno(errno);
	if (!S_ISREG(st.st_mode))
		return TN_UNSUPPORTED;
	if ((uint64_t)st.st_size < min_bytes)
		return TN_RANGE;
	int no_write = F_SEAL_WRITE;
#ifdef F_SEAL_FUTURE_WRITE
	no_write |= F_SEAL_FUTURE_WRITE;
#endif
	int mode = fcntl(fd, F_GETFL);
	*out = (struct shr_foreign){
		.bytes = (uint64_t)st.st_size,
		.page_bytes = (uint32_t)fs.f_bsize,
		.hugetlb = (uint32_t)fs.f_type == (uint32_t)HUGETLBFS_MAGIC,
		.constant = (seals & F_SEAL_WRITE) != 0,
		.writable = !(seals & no_write) && mode >= 0 && (mode & O_ACCMODE) == O_RDWR,
	};
	return TN_OK;
}
