/* SPDX-License-Identifier: Apache-2.0
 * Allocates and registers memory. Pages are allocated with fallocate() before anything touches them: when there are
 * none left that is an error here, not a SIGBUS later. The data plane seals the object against shrinking. Application
 * threads; may block. */
#include "dataplane/libtent/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "common/bits.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif
#ifndef HUGETLBFS_MAGIC
#define HUGETLBFS_MAGIC 0x958458f6
#endif

static tent_status check_rights(const char *call, uint32_t rights)
{
	if (rights == 0 || (rights & ~SHR_RIGHT_ALL) != 0)
		return lt_fail(TN_INVALID, "%s: rights is 0x%x: one or more of TENT_RIGHT_*", call, rights);
	return TENT_OK;
}

/* ---- the memory object ---- */

/* Granule of the object: the system's page, or that of its huge pages. (st_blksize is no answer: it also tells of
 * transparent huge pages.) */
static uint64_t page_bytes(int fd)
{
	struct statfs fs;

	if (fstatfs(fd, &fs) == 0 && (unsigned long)fs.f_type == HUGETLBFS_MAGIC)
		return (uint64_t)fs.f_bsize;
	return (uint64_t)sysconf(_SC_PAGESIZE);
}

/* Bytes that this host could still give out: MemAvailable + SwapFree; UINT64_MAX when the kernel does not tell. */
static uint64_t bytes_available(void)
{
	FILE *f = fopen("/proc/meminfo", "re");
	unsigned long long kib, sum = 0;
	char line[128];

	if (f == NULL)
		return UINT64_MAX;
	while (fgets(line, sizeof line, f) != NULL)
		if (sscanf(line, "MemAvailable: %llu", &kib) == 1 || sscanf(line, "SwapFree: %llu", &kib) == 1)
			sum += kib;
	(void)fclose(f);
	return sum != 0 ? sum * 1024 : UINT64_MAX;
}

/* Asked before pages are: the kernel hands out those of a memfd one by one until it has to kill processes. */
static tent_status check_available(const char *call, uint64_t bytes)
{
	uint64_t available = bytes_available();

	if (bytes <= available)
		return TENT_OK;
	return lt_fail(TN_NO_MEMORY, "%s: %llu bytes of new pages are wanted, %llu are available", call,
		       (unsigned long long)bytes, (unsigned long long)available);
}

/* All pages of the range exist afterwards. */
static tent_status fill_pages(const char *call, int fd, uint64_t offset, uint64_t bytes, bool huge)
{
	int failed;

	do
		failed = fallocate(fd, FALLOC_FL_KEEP_SIZE, (off_t)offset, (off_t)bytes);
	while (failed && errno == EINTR);
	if (!failed)
		return TENT_OK;
	if (errno == ENOSPC || errno == ENOMEM)
		return lt_fail(TN_NO_MEMORY, "%s: no pages for %llu bytes%s", call, (unsigned long long)bytes,
			       huge
				   ? " of huge pages: raise /proc/sys/vm/nr_hugepages, or leave TENT_MEMORY_HUGETLB out"
				   : " (memory or cgroup limit)");
	return lt_fail_errno(errno, "%s: allocating pages of the memfd", call);
}

static tent_status make_object(tent_memory *mem, uint64_t bytes, uint32_t flags, const char *call)
{
	bool huge = (flags & TENT_MEMORY_HUGETLB) != 0;
	char name[48];
	struct stat st;
	uint64_t rounded;

	(void)snprintf(name, sizeof name, "tent:%s", mem->obj.ctx->app);
	mem->fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING | (huge ? MFD_HUGETLB : 0u));
	if (mem->fd < 0)
		return huge ? lt_fail(TN_NO_MEMORY, "%s: huge pages: %s", call, strerrordesc_np(errno)) :
			      lt_fail_errno(errno, "%s: memfd_create", call);
	if (fstat(mem->fd, &st) != 0)
		return lt_fail_errno(errno, "%s: fstat", call);
	if (!tn_align_up_checked(bytes, page_bytes(mem->fd), &rounded) || rounded > INT64_MAX)
		return lt_fail(TN_TOO_BIG, "%s: bytes is %llu", call, (unsigned long long)bytes);
	tent_status s = huge ? TENT_OK : check_available(call, rounded);
	if (s != TENT_OK)
		return s;
	if (ftruncate(mem->fd, (off_t)rounded) != 0)
		return lt_fail_errno(errno, "%s: sizing the memfd to %llu bytes", call,
				     (unsigned long long)rounded);
	mem->dev = st.st_dev;
	mem->ino = st.st_ino;
	mem->bytes = rounded;
	s = fill_pages(call, mem->fd, 0, rounded, huge);
	if (s != TENT_OK)
		return s;
	void *addr = mmap(NULL, rounded, PROT_READ | PROT_WRITE, MAP_SHARED, mem->fd, 0);
	if (addr == MAP_FAILED)
		return lt_fail(TN_NO_MEMORY, "%s: mapping %llu bytes: %s", call, (unsigned long long)rounded,
			       strerrordesc_np(errno));
	mem->addr = addr;
	/* Page tables now instead of in the first transfer. The pages exist, so not being able to is no error. */
	(void)madvise(addr, rounded, MADV_POPULATE_WRITE);
	return TENT_OK;
}

static const char *kind_of_file(mode_t mode)
{
	switch (mode & S_IFMT) {
	case S_IFREG: return "a regular file";
	case S_IFSOCK: return "a socket";
	case S_IFCHR: return "a device";
	case S_IFDIR: return "a directory";
	case S_IFIFO: return "a pipe";
	default: return "no memory object";
	}
}

/* Is the size a fact, or can the data plane make it one? Memory that shrinks under a transfer is no memory. */
static tent_status check_size_seal(int fd, int seals, bool writable, const struct stat *st)
{
	if ((seals & F_SEAL_SHRINK) != 0)
		return TENT_OK;
	if ((seals & F_SEAL_SEAL) != 0)
		return lt_fail(TN_UNSUPPORTED, "tent_memory_register: memfd %d can shrink and takes no more seals (%s)", fd,
			       st->st_nlink > 0 ? "it is a file, as those of /dev/shm: use memfd_create()" :
			       (seals & ~F_SEAL_SEAL) == 0 ? "create it with MFD_ALLOW_SEALING"
							   : "it carries F_SEAL_SEAL without F_SEAL_SHRINK");
	if (!writable)
		return lt_fail(TN_PERMISSION, "tent_memory_register: memfd %d is not open for writing, so F_SEAL_SHRINK "
			       "cannot be added: its owner adds it first", fd);
	return TENT_OK;
}

static tent_status check_object(int fd, uint32_t rights, const struct stat *st)
{
	int seals = fcntl(fd, F_GET_SEALS), mode = fcntl(fd, F_GETFL) & O_ACCMODE;
	const char *not_for_writing = NULL;

	if (seals < 0)
		return lt_fail(TN_UNSUPPORTED,
			       "tent_memory_register: memfd %d is %s that cannot be sealed; copy through "
			       "tent_memory_alloc() memory",
			       fd, kind_of_file(st->st_mode));
	if (mode == O_WRONLY)
		return lt_fail(TN_PERMISSION, "tent_memory_register: memfd %d is not open for reading", fd);
	tent_status s = check_size_seal(fd, seals, mode == O_RDWR, st);
	if (s != TENT_OK)
		return s;
	if ((seals & (F_SEAL_WRITE | F_SEAL_FUTURE_WRITE)) != 0)
		not_for_writing = "sealed against writing";
	else if (mode == O_RDONLY)
		not_for_writing = "open for reading only";
	if (not_for_writing != NULL && (rights & SHR_RIGHT_WRITING) != 0)
		return lt_fail(TN_PERMISSION, "tent_memory_register: memfd %d is %s: only TENT_RIGHT_LOCAL_READ and "
			       "TENT_RIGHT_REMOTE_READ fit", fd, not_for_writing);
	return TENT_OK;
}

/* Pages of the range that do not exist yet; a descriptor that is not for writing cannot make any. */
static tent_status make_pages(const tent_memory *mem, const struct stat *st, uint64_t page)
{
	bool huge = page > (uint64_t)sysconf(_SC_PAGESIZE);
	uint64_t there = (uint64_t)st->st_blocks * 512; /* at most so many of the range's pages exist already */
	tent_status s = TENT_OK;

	if ((fcntl(mem->fd, F_GETFL) & O_ACCMODE) != O_RDWR)
		return TENT_OK;
	if (!huge && mem->bytes > there)
		s = check_available("tent_memory_register", mem->bytes - there);
	return s == TENT_OK ? fill_pages("tent_memory_register", mem->fd, mem->offset, mem->bytes, huge) : s;
}

static tent_status adopt_object(tent_memory *mem, int fd)
{
	struct stat st;

	if (fstat(fd, &st) != 0)
		return lt_fail(TN_INVALID, "tent_memory_register: memfd %d: %s", fd, strerrordesc_np(errno));
	tent_status s = check_object(fd, mem->rights, &st);
	if (s != TENT_OK)
		return s;
	if (!tn_range_within(mem->offset, mem->bytes, (uint64_t)st.st_size))
		return lt_fail(
		    TN_RANGE, "tent_memory_register: offset %llu + bytes %llu is beyond the memfd's %llu bytes",
		    (unsigned long long)mem->offset, (unsigned long long)mem->bytes, (unsigned long long)st.st_size);
	uint64_t page = page_bytes(fd);
	if (mem->offset % page != 0)
		return lt_fail(TN_INVALID, "tent_memory_register: offset %llu is not a multiple of the page size %llu",
			       (unsigned long long)mem->offset, (unsigned long long)page);
	mem->fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	if (mem->fd < 0)
		return lt_fail_errno(errno, "tent_memory_register: duplicating memfd %d", fd);
	mem->dev = st.st_dev;
	mem->ino = st.st_ino;
	return make_pages(mem, &st, page);
}

static void release_object(tent_memory *mem)
{
	if (mem->addr != NULL && !mem->imported)
		(void)munmap(mem->addr, mem->bytes);
	if (mem->fd >= 0)
		(void)close(mem->fd);
	mem->addr = NULL;
	mem->fd = -1;
}

/* ---- registration ---- */

static uint32_t build_register(const void *arg, uint8_t body[static SHR_MSG_MAX])
{
	const tent_memory *mem = arg;
	struct shr_msg_mem_register m = { .offset = mem->offset, .length = mem->bytes, .rights = mem->rights };

	memcpy(body, &m, sizeof m);
	return sizeof m;
}

static uint32_t build_import(const void *arg, uint8_t body[static SHR_MSG_MAX])
{
	const tent_memory *mem = arg;
	struct shr_msg_mem_import m = { .staging = tn_load_relaxed64(&mem->obj.ctx->staging->obj.id), .length = mem->bytes,
					.rights = mem->rights };

	memcpy(body, &m, sizeof m);
	return sizeof m;
}

void lt_memory_register_call(const tent_memory *mem, uint64_t deadline_ns, struct lt_call *call_out)
{
	*call_out = (struct lt_call){ .type = mem->imported ? SHR_MSG_MEM_IMPORT : SHR_MSG_MEM_REGISTER,
				      .build = mem->imported ? build_import : build_register, .arg = mem, .fd = mem->fd,
				      .again = true, .deadline_ns = deadline_ns };
}

static bool overlaps(const tent_context *ctx, const tent_memory *mem)
{
	tn_list_foreach(node, &ctx->objects[LT_MEMORY]) {
		const tent_memory *other = tn_list_entry(node, tent_memory, obj.link);

		if (other->dev == mem->dev && other->ino == mem->ino && mem->offset < other->offset + other->bytes &&
		    other->offset < mem->offset + mem->bytes)
			return true;
	}
	return false;
}

/* Lock held. On success the memory is LIVE and the user's. */
static tent_status register_object(tent_memory *mem, const char *call)
{
	tent_context *ctx = mem->obj.ctx;
	struct lt_reply reply;
	struct lt_call c;
	uint64_t id;

	if (overlaps(ctx, mem))
		return lt_fail(TN_EXISTS, "%s: [%llu, %llu) overlaps a range of this %s already", call, (unsigned long long)mem->offset, (unsigned long long)(mem->offset + mem->bytes),
			       mem->imported ? "process's memory that is imported" : "memfd that is registered");
	lt_memory_register_call(mem, tn_deadline_after(tn_now_ns(), ctx->timeout_ns), &c);
	tn_status s = lt_call(ctx, &c, &reply);
	if (s == TN_OK)
		s = reply.status;
	else
		reply.detail = 0;
	if (s != TN_OK)
		return lt_call_fail(ctx, call, "registering memory", s, reply.detail);
	memcpy(&id, reply.body, sizeof id);
	lt_object_enlist(&mem->obj, id);
	return TENT_OK;
}

static tent_memory *new_memory(tent_context *ctx, uint32_t rights)
{
	tent_memory *mem = (tent_memory *)lt_object_new(ctx, LT_MEMORY, sizeof *mem);

	if (mem != NULL) {
		mem->fd = -1;
		mem->rights = rights;
	}
	return mem;
}

/* Registers a prepared memory, or takes it apart. */
static tent_status finish_memory(tent_memory *mem, tent_status prepared, const char *call, tent_memory **mem_out)
{
	tent_context *ctx = mem->obj.ctx;
	tent_status s = prepared;

	(void)pthread_mutex_lock(&ctx->lock);
	if (s == TENT_OK)
		s = register_object(mem, call);
	if (s != TENT_OK) {
		release_object(mem);
		lt_object_bury(&mem->obj);
	}
	(void)pthread_mutex_unlock(&ctx->lock);
	if (s == TENT_OK)
		*mem_out = mem;
	return s;
}

static tent_memory *take_memory(tent_context *ctx, uint32_t rights)
{
	(void)pthread_mutex_lock(&ctx->lock);
	tent_memory *mem = new_memory(ctx, rights);
	(void)pthread_mutex_unlock(&ctx->lock);
	return mem;
}

tent_status tent_memory_alloc(tent_context *ctx, size_t bytes, uint32_t rights, uint32_t flags, tent_memory **mem_out)
{
	tent_status s = lt_context_check(ctx, "tent_memory_alloc");

	if (s == TENT_OK)
		s = check_rights("tent_memory_alloc", rights);
	if (s != TENT_OK)
		return s;
	if (mem_out == NULL || bytes == 0 || (flags & ~TENT_MEMORY_HUGETLB) != 0)
		return lt_fail(TN_INVALID, "tent_memory_alloc: %s", mem_out == NULL ? "mem_out is NULL" :
			       bytes == 0 ? "bytes is 0" : "flags has a bit that is not TENT_MEMORY_*");
	tent_memory *mem = take_memory(ctx, rights);
	if (mem == NULL)
		return lt_fail(TN_NO_MEMORY, "tent_memory_alloc: no memory for the handle");
	return finish_memory(mem, make_object(mem, bytes, flags, "tent_memory_alloc"), "tent_memory_alloc", mem_out);
}

tent_status tent_memory_register(tent_context *ctx, int memfd, uint64_t offset, size_t bytes, uint32_t rights,
				 tent_memory **mem_out)
{
	tent_status s = lt_context_check(ctx, "tent_memory_register");

	if (s == TENT_OK)
		s = check_rights("tent_memory_register", rights);
	if (s != TENT_OK)
		return s;
	if (mem_out == NULL || bytes == 0)
		return lt_fail(TN_INVALID, "tent_memory_register: %s",
			       mem_out == NULL ? "mem_out is NULL" : "bytes is 0");
	tent_memory *mem = take_memory(ctx, rights);
	if (mem == NULL)
		return lt_fail(TN_NO_MEMORY, "tent_memory_register: no memory for the handle");
	mem->offset = offset;
	mem->bytes = bytes;
	return finish_memory(mem, adopt_object(mem, memfd), "tent_memory_register", mem_out);
}

/* ---- memory that cannot be shared ---- */

/* The staging buffers of the context, made by whoever imports first. */
static tent_status have_staging(tent_context *ctx, const char *call)
{
	uint64_t deadline_ns = tn_deadline_after(tn_now_ns(), ctx->timeout_ns);
	tent_status s = TENT_OK;

	(void)pthread_mutex_lock(&ctx->lock);
	while (ctx->staging_making && lt_context_wait(ctx, deadline_ns))
		;
	bool mine = ctx->staging == NULL && !ctx->staging_making;
	if (ctx->staging_making)
		s = lt_fail(TN_TIMEOUT, "%s: another thread is making the staging buffers", call);
	else if (ctx->hello.abi_minor < SHR_MINOR_IMPORT)
		s = lt_fail(TN_UNSUPPORTED, "%s: the data plane of this host is older than this call", call);
	else
		s = lt_copier_start(ctx, call);
	mine = mine && s == TENT_OK;
	ctx->staging_making |= mine;
	uint64_t bytes = (uint64_t)ctx->hello.stage_chunk_bytes * ctx->hello.stage_chunks;
	(void)pthread_mutex_unlock(&ctx->lock);
	if (!mine)
		return s;
	tent_memory *staging = NULL, *mem = take_memory(ctx, SHR_RIGHT_STAGING);
	s = mem == NULL ? lt_fail(TN_NO_MEMORY, "%s: no memory for the staging buffers", call) :
			  finish_memory(mem, make_object(mem, bytes, 0, call), call, &staging);
	(void)pthread_mutex_lock(&ctx->lock);
	ctx->staging = staging;
	ctx->staging_making = false;
	(void)pthread_cond_broadcast(&ctx->cond);
	(void)pthread_mutex_unlock(&ctx->lock);
	return s;
}

static tent_status check_import(const void *addr, size_t bytes, uint32_t rights, tent_memory *const *mem_out)
{
	const char *wrong = mem_out == NULL ? "mem_out is NULL" : addr == NULL ? "addr is NULL" : bytes == 0 ? "bytes is 0" :
			    (uintptr_t)addr > UINTPTR_MAX - bytes ? "addr + bytes is beyond the address space" : NULL;

	if (wrong != NULL)
		return lt_fail(TN_INVALID, "tent_memory_import: %s", wrong);
	if ((rights & (SHR_RIGHT_REMOTE_READ | SHR_RIGHT_REMOTE_WRITE)) != 0)
		return lt_fail(TN_UNSUPPORTED, "tent_memory_import: imported memory cannot be published: only TENT_RIGHT_LOCAL and "
			       "TENT_RIGHT_LOCAL_READ fit; use tent_memory_alloc() for what others reach");
	return TENT_OK;
}

tent_status tent_memory_import(tent_context *ctx, void *addr, size_t bytes, uint32_t rights, tent_memory **mem_out)
{
	tent_status s = lt_context_check(ctx, "tent_memory_import");

	if (s == TENT_OK)
		s = check_rights("tent_memory_import", rights);
	if (s == TENT_OK)
		s = check_import(addr, bytes, rights, mem_out);
	if (s == TENT_OK)
		s = have_staging(ctx, "tent_memory_import");
	if (s != TENT_OK)
		return s;
	tent_memory *mem = take_memory(ctx, rights);
	if (mem == NULL)
		return lt_fail(TN_NO_MEMORY, "tent_memory_import: no memory for the handle");
	mem->imported = true;
	mem->dev = (dev_t)-1;
	mem->offset = (uintptr_t)addr;
	mem->bytes = bytes;
	mem->addr = addr;
	return finish_memory(mem, TENT_OK, "tent_memory_import", mem_out);
}

void *tent_memory_addr(const tent_memory *mem)
{
	return mem != NULL && lt_object_is(&mem->obj, LT_MEMORY, NULL) ? mem->addr : NULL;
}

size_t tent_memory_bytes(const tent_memory *mem)
{
	return mem != NULL && lt_object_is(&mem->obj, LT_MEMORY, NULL) ? mem->bytes : 0;
}

/* ---- giving back ---- */

/* Lock held; state CLOSING. A time-out leaves it CLOSING, and the next free asks again. */
static tent_status unregister_object(tent_memory *mem)
{
	tent_context *ctx = mem->obj.ctx;
	uint64_t id = tn_load_relaxed64(&mem->obj.id);
	uint32_t life = tn_load_relaxed32(&mem->obj.generation);
	uint32_t detail = 0;
	tn_status s = lt_call_let_go(ctx, SHR_MSG_MEM_UNREGISTER, id, tn_deadline_after(tn_now_ns(), ctx->timeout_ns), &detail);

	if (lt_object_is_over(&mem->obj, life))
		return lt_fail(TN_STALE, "tent_memory_free: another thread freed the memory meanwhile");
	/* Another thread that asked as well: the answer to whoever asked last is the one that counts. */
	if ((s == TN_BUSY && detail == 0) || tn_load_relaxed32(&mem->obj.state) != LT_OBJECT_CLOSING)
		return lt_fail(TN_BUSY, "tent_memory_free: another thread frees this memory");
	if (s == TN_BUSY) { /* detail: how many */
		lt_object_move(&mem->obj, LT_OBJECT_LIVE);
		return lt_fail(s, "tent_memory_free: a published segment uses this memory");
	}
	return s == TN_OK ? TENT_OK : lt_call_fail(ctx, "tent_memory_free", "unregistering memory", s, detail);
}

static tent_status free_locked(tent_memory *mem)
{
	tent_context *ctx = mem->obj.ctx;
	uint64_t deadline_ns = tn_deadline_after(tn_now_ns(), ctx->timeout_ns);

	while (ctx->state == TENT_STATE_RECOVERING) /* the keeper walks the list */
		if (!lt_context_wait(ctx, deadline_ns))
			return lt_call_fail(ctx, "tent_memory_free", "unregistering memory", TN_TIMEOUT, 0);
	bool closing = tn_load_relaxed32(&mem->obj.state) == LT_OBJECT_CLOSING;
	if (!closing && !lt_object_is(&mem->obj, LT_MEMORY, NULL))
		return lt_fail(TN_STALE, "tent_memory_free: the memory was freed already");
	if (mem->used_by != 0)
		return lt_fail(TN_BUSY, "tent_memory_free: %u published segment(s) use this memory", mem->used_by);
	if (!closing)
		lt_object_move(&mem->obj, LT_OBJECT_CLOSING);
	tent_status s = unregister_object(mem);
	if (s != TENT_OK)
		return s;
	release_object(mem);
	lt_object_bury(&mem->obj);
	return TENT_OK;
}

tent_status tent_memory_free(tent_memory *mem)
{
	if (mem == NULL)
		return lt_fail(TN_INVALID, "tent_memory_free: mem is NULL");
	tent_context *ctx = mem->obj.ctx;
	tent_status s = lt_context_check(ctx, "tent_memory_free");
	if (s != TENT_OK)
		return s;
	if (mem->obj.kind != LT_MEMORY)
		return lt_fail(TN_INVALID, "tent_memory_free: mem is no memory handle");
	(void)pthread_mutex_lock(&ctx->lock);
	s = free_locked(mem);
	(void)pthread_mutex_unlock(&ctx->lock);
	return s;
}

void lt_memory_release_all(tent_context *ctx)
{
	tn_list_foreach(node, &ctx->objects[LT_MEMORY])
		release_object(tn_list_entry(node, tent_memory, obj.link));
}
