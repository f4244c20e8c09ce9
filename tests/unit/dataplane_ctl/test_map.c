/* SPDX-License-Identifier: Apache-2.0
 * Client memory: what is refused and why, and what a good one becomes. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/dataplane_ctl/bench.h"
#include "common/clock.h"
#include "dataplane/segment/map.h"
#include "dataplane/segment/populate.h"
#include "tests/unit/cu.h"

#define MIB (1u << 20)

static tn_status map_of(int fd, uint64_t offset, uint64_t bytes, struct dp_map_req *req)
{
	*req = (struct dp_map_req){ .fd = fd, .offset = offset, .bytes = bytes, .write = true };
	return dp_map_run(req);
}

static void good_memfd_is_sealed_and_shared(void)
{
	int fd = memfd_of(MIB, true);
	struct dp_map_req req;
	uint8_t *mine = mmap(NULL, MIB, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	CU_ASSERT_EQUAL_FATAL(map_of(fd, 4096, MIB - 4096, &req), TN_OK);
	req.base[0] = 0x5a;
	CU_ASSERT_EQUAL(mine[4096], 0x5a);
	CU_ASSERT_NOT_EQUAL(ftruncate(fd, 4096), 0); /* cannot shrink under us any more */
	CU_ASSERT_EQUAL(errno, EPERM);
	dp_map_undo(&req);
	munmap(mine, MIB);
	close(fd);
}

static void refusals_have_their_reason(void)
{
	struct dp_map_req req;
	char path[] = "/tmp/dpctl-file-XXXXXX";
	int file = mkstemp(path), sealed = memfd_of(MIB, false), small = memfd_of(8192, true), fds[2];

	CU_ASSERT_EQUAL(ftruncate(file, MIB), 0);
	CU_ASSERT_EQUAL(map_of(file, 0, 4096, &req), TN_UNSUPPORTED);
	CU_ASSERT_EQUAL(map_of(sealed, 0, 4096, &req), TN_PERMISSION);
	CU_ASSERT_EQUAL(map_of(small, 0, 8193, &req), TN_RANGE);
	CU_ASSERT_EQUAL(map_of(small, 4096, 4097, &req), TN_RANGE);
	CU_ASSERT_PTR_NULL(req.base);
	CU_ASSERT_EQUAL_FATAL(pipe(fds), 0);
	CU_ASSERT_EQUAL(map_of(fds[0], 0, 4096, &req), TN_UNSUPPORTED);
	unlink(path);
	close(file), close(sealed), close(small), close(fds[0]), close(fds[1]);
}

/* Page-table entries of a range that this process really has (bit 63 of /proc/self/pagemap). */
static unsigned entries(const uint8_t *base, size_t bytes)
{
	int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	unsigned cnt = 0;

	for (size_t off = 0; off < bytes; off += 4096) {
		uint64_t e = 0;
		if (pread(fd, &e, sizeof e, (off_t)((uintptr_t)(base + off) / 4096 * 8)) == sizeof e)
			cnt += e >> 63;
	}
	close(fd);
	return cnt;
}

/* What the application faulted in is in our page table at once; what it did not is not allocated by us. */
static void resident_memory_is_entered_and_holes_stay(void)
{
	int fd = memfd_of(MIB, true), hole = memfd_of(MIB, true);
	struct dp_map_req req;
	struct stat st;
	uint8_t *mine = mmap(NULL, MIB, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	memset(mine, 1, MIB);
	CU_ASSERT_EQUAL_FATAL(map_of(fd, 0, MIB, &req), TN_OK);
	CU_ASSERT_EQUAL(entries(req.base, MIB), MIB / 4096);
	dp_map_undo(&req);
	CU_ASSERT_EQUAL_FATAL(map_of(hole, 0, MIB, &req), TN_OK);
	CU_ASSERT_EQUAL(fstat(hole, &st), 0);
	CU_ASSERT_EQUAL(st.st_blocks, 0);
	dp_map_undo(&req);
	munmap(mine, MIB);
	close(fd), close(hole);
}

/* In pieces, and exactly the resident pages, whatever pattern they make. */
static void populating_goes_on_where_it_stopped(void)
{
	const size_t bytes = 10 * MIB + 4096;
	int fd = memfd_of(bytes, true);
	uint8_t *mine = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	uint8_t *theirs = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	uint64_t at = 0;
	unsigned pages = 0, calls = 0;
	struct stat st;

	for (size_t off = 0; off < bytes; off += 3 * 4096, pages++)
		mine[off] = 1;
	for (; at < bytes && calls < 10; calls++)
		at = dp_populate(theirs, bytes, true, at, 0);
	CU_ASSERT_EQUAL(at, bytes);
	CU_ASSERT_EQUAL(calls, 3);
	CU_ASSERT_EQUAL(entries(theirs, bytes), pages);
	CU_ASSERT_EQUAL(fstat(fd, &st), 0);
	CU_ASSERT_EQUAL(st.st_blocks, (blkcnt_t)(pages * 8));
	munmap(mine, bytes);
	munmap(theirs, bytes);
	close(fd);
}

/* The kernel's word on the mapping that begins at `at`: "r--s", or "" when there is none. */
static void rights_of(const void *at, char out[static 5])
{
	FILE *f = fopen("/proc/self/maps", "re");
	char line[512];
	void *from;

	out[0] = '\0';
	while (f != NULL && out[0] == '\0' && fgets(line, sizeof line, f) != NULL)
		if (sscanf(line, "%p-%*p %4s", &from, out) != 2 || from != at)
			out[0] = '\0';
	if (f != NULL)
		(void)fclose(f);
}

static const struct { int seals; bool reopen; const char *rights; } read_only[] = {
	{ F_SEAL_WRITE, false, "r--p" },
	{ F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL, false, "r--p" },
	{ F_SEAL_WRITE | F_SEAL_SHRINK, true, "r--p" },
	{ F_SEAL_FUTURE_WRITE, false, "r--s" },
	{ F_SEAL_FUTURE_WRITE | F_SEAL_SHRINK, true, "r--s" },
	{ F_SEAL_SHRINK, true, "r--s" },
	{ 0, false, "r--s" }, /* it could be written, but nobody has the right to */
};

static int sealed_fd(size_t i, const uint8_t *content, uint8_t **theirs_out)
{
	int fd = memfd_of(MIB, true);
	char path[64];

	CU_ASSERT_EQUAL_FATAL(pwrite(fd, content, MIB, 0), MIB);
	if ((read_only[i].seals & F_SEAL_WRITE) == 0)
		*theirs_out = mmap(NULL, MIB, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	CU_ASSERT_EQUAL_FATAL(fcntl(fd, F_ADD_SEALS, read_only[i].seals), 0);
	if (!read_only[i].reopen)
		return fd;
	(void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	int again = open(path, O_RDONLY | O_CLOEXEC);
	close(fd);
	return again;
}

/* What its owner, or whom it came from, does not want written is mapped for reading, entered, and not written by us. */
static void what_nobody_may_write_is_mapped_for_reading(void)
{
	static uint8_t content[MIB];
	struct dp_map_req req;
	char rights[5];

	for (size_t i = 0; i < MIB; i++)
		content[i] = (uint8_t)(i * 7 + (i >> 12));
	for (size_t i = 0; i < TN_ARRAY_LEN(read_only); i++) {
		uint8_t *theirs = NULL;
		int fd = sealed_fd(i, content, &theirs);
		if (read_only[i].reopen || (read_only[i].seals & (F_SEAL_WRITE | F_SEAL_FUTURE_WRITE)) != 0)
			CU_ASSERT_EQUAL(map_of(fd, 0, MIB, &req), TN_PERMISSION);
		req = (struct dp_map_req){ .fd = fd, .offset = 4096, .bytes = MIB - 4096 };
		CU_ASSERT_EQUAL_FATAL(dp_map_run(&req), TN_OK);
		rights_of(req.base, rights);
		CU_ASSERT_STRING_EQUAL(rights, read_only[i].rights);
		CU_ASSERT_EQUAL(req.filled_bytes, req.map_bytes);
		CU_ASSERT_EQUAL(entries(req.base, MIB - 4096), MIB / 4096 - 1);
		CU_ASSERT_EQUAL(memcmp(req.base, content + 4096, MIB - 4096), 0);
		if (theirs != NULL) { /* who could write before still can, and is seen */
			theirs[8192] ^= 0xff;
			CU_ASSERT_EQUAL(req.base[4096], theirs[8192]);
			munmap(theirs, MIB);
		}
		dp_map_undo(&req);
		close(fd);
	}
}

/* Pages that a sealed object does not have are not made by looking for them. */
static void sealed_holes_stay(void)
{
	static const int seals[] = { F_SEAL_WRITE, F_SEAL_FUTURE_WRITE };

	for (size_t i = 0; i < 2; i++) {
		int fd = memfd_of(MIB, true);
		struct dp_map_req req = { .fd = fd, .bytes = MIB };
		struct stat st;
		CU_ASSERT_EQUAL(pwrite(fd, "x", 1, 12288), 1);
		CU_ASSERT_EQUAL_FATAL(fcntl(fd, F_ADD_SEALS, seals[i]), 0);
		CU_ASSERT_EQUAL_FATAL(dp_map_run(&req), TN_OK);
		CU_ASSERT_EQUAL(fstat(fd, &st), 0);
		CU_ASSERT_EQUAL(st.st_blocks, 8);
		CU_ASSERT_EQUAL(entries(req.base, MIB), 1);
		CU_ASSERT_EQUAL(req.base[12288], 'x');
		CU_ASSERT_EQUAL(req.base[0], 0);
		dp_map_undo(&req);
		close(fd);
	}
}

static tn_status reg(struct bench *b, int sock, int fd, uint64_t offset, uint64_t bytes, uint32_t rights)
{
	struct shr_msg_mem_register r = { .offset = offset, .length = bytes, .rights = rights };
	static struct shr_msg reply;

	return app_call(b, sock, SHR_MSG_MEM_REGISTER, &r, sizeof r, fd, &reply);
}

static void register_refuses_bad_ranges_and_overlap(void)
{
	static struct bench b;
	int sock, fd = memfd_of(MIB, true), other = memfd_of(MIB, true);

	bench_start(&b, 2, NULL);
	sock = app_attach(&b);
	CU_ASSERT_EQUAL(reg(&b, sock, fd, 100, 4096, SHR_RIGHT_ALL), TN_INVALID);
	CU_ASSERT_EQUAL(reg(&b, sock, fd, 0, 4096, 0), TN_INVALID);
	CU_ASSERT_EQUAL(reg(&b, sock, fd, UINT64_C(1) << 63, 8192, SHR_RIGHT_ALL), TN_RANGE);
	CU_ASSERT_EQUAL(reg(&b, sock, fd, 4096, UINT64_C(1) << 63, SHR_RIGHT_ALL), TN_RANGE);
	CU_ASSERT_EQUAL(reg(&b, sock, fd, 0, 2 * MIB, SHR_RIGHT_ALL), TN_RANGE);
	CU_ASSERT_EQUAL(reg(&b, sock, fd, 0, 8192, SHR_RIGHT_ALL), TN_OK);
	CU_ASSERT_EQUAL(reg(&b, sock, fd, 4096, 8192, SHR_RIGHT_ALL), TN_EXISTS);
	CU_ASSERT_EQUAL(reg(&b, sock, fd, 8192, 8192, SHR_RIGHT_ALL), TN_OK); /* beside it is fine */
	CU_ASSERT_EQUAL(reg(&b, sock, other, 0, 8192, SHR_RIGHT_ALL), TN_OK); /* another object is another range */
	CU_ASSERT_EQUAL(b.ctl.memories.used, 3);
	CU_ASSERT_EQUAL(fake_count(0, DP_CMD_MEM_ADD), 3);
	CU_ASSERT_EQUAL(fake_count(1, DP_CMD_MEM_ADD), 3);
	close(sock);
	CU_ASSERT_TRUE(turn_until(&b, b.ctl.attach.clients.used == 0));
	CU_ASSERT_EQUAL(b.ctl.memories.used, 0);
	CU_ASSERT_EQUAL(b.ctl.memory_bytes, 0);
	bench_stop(&b);
	close(fd), close(other);
}

/* A right that writes is refused; what reading needs is enough to publish, and no publication gets more. */
static void rights_decide_over_sealed_memory(void)
{
	static const uint32_t writing[] = { SHR_RIGHT_LOCAL, SHR_RIGHT_REMOTE_WRITE, SHR_RIGHT_LOCAL | SHR_RIGHT_REMOTE_READ,
		                            SHR_RIGHT_REMOTE_READ | SHR_RIGHT_REMOTE_WRITE, SHR_RIGHT_ALL };
	static struct bench b;
	int sock, fd = memfd_of(MIB, true);

	CU_ASSERT_EQUAL_FATAL(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE), 0);
	bench_start(&b, 1, NULL);
	sock = app_attach(&b);
	for (size_t i = 0; i < TN_ARRAY_LEN(writing); i++)
		CU_ASSERT_EQUAL(reg(&b, sock, fd, 0, MIB, writing[i]), TN_PERMISSION);
	uint64_t mem = app_register(&b, sock, fd, MIB, SHR_RIGHT_LOCAL_READ | SHR_RIGHT_REMOTE_READ);
	CU_ASSERT_NOT_EQUAL_FATAL(mem, 0);
	const struct dp_memory *known = fake_last(0, DP_CMD_MEM_ADD)->ptr;
	CU_ASSERT_EQUAL(known->rights, SHR_RIGHT_LOCAL_READ | SHR_RIGHT_REMOTE_READ);
	CU_ASSERT_EQUAL(app_publish(&b, sock, "w", mem, MIB, SHR_ACCESS_SAME_UID, NULL), TN_PERMISSION); /* READ | WRITE */
	CU_ASSERT_EQUAL(app_publish_as(&b, sock, "w", mem, MIB, SHR_RIGHT_LOCAL_READ), TN_INVALID);
	CU_ASSERT_EQUAL(app_publish_as(&b, sock, "w", mem, MIB, SHR_RIGHT_REMOTE_READ), TN_OK);
	close(sock);
	CU_ASSERT_TRUE(turn_until(&b, b.ctl.attach.clients.used == 0));
	bench_stop(&b);
	close(fd);
}

static void unregister_waits_for_the_workers(void)
{
	static struct bench b;
	static struct shr_msg m;
	struct shr_msg_id id;
	int sock, fd = memfd_of(MIB, true);
	tn_status s;

	bench_start(&b, 2, NULL);
	sock = app_attach(&b);
	id.id = app_register(&b, sock, fd, MIB, SHR_RIGHT_ALL);
	CU_ASSERT_NOT_EQUAL_FATAL(id.id, 0);
	fake_hold(true);
	memcpy(shr_msg_begin(&m, SHR_MSG_MEM_UNREGISTER, 9, sizeof id), &id, sizeof id);
	CU_ASSERT_EQUAL(shr_msg_send(sock, &m), TN_OK);
	bench_turns(&b, 20);
	CU_ASSERT_EQUAL(shr_msg_recv(sock, SHR_FROM_DATAPLANE, &m), TN_AGAIN);
	CU_ASSERT_EQUAL(b.ctl.memories.used, 1);
	fake_hold(false);
	s = app_recv(&b, sock, &m);
	CU_ASSERT_EQUAL(s, TN_OK);
	CU_ASSERT_EQUAL(m.hdr.status, TN_OK);
	CU_ASSERT_EQUAL(b.ctl.memories.used, 0);
	CU_ASSERT_EQUAL(app_call(&b, sock, SHR_MSG_MEM_UNREGISTER, &id, sizeof id, -1, &m), TN_STALE);
	close(sock);
	bench_stop(&b);
	close(fd);
}

#ifdef __SANITIZE_THREAD__
#define HUGE_HOLE (UINT64_C(64) << 30) /* it keeps shadows of what is mapped */
#else
#define HUGE_HOLE (UINT64_C(1) << 40) /* seconds of looking, on any machine */
#endif

static bool some_memory_fills(const struct bench *b)
{
	for (uint32_t i = 0; i < b->ctl.memories.cap; i++) {
		const struct dp_local_memory *mem = dp_handles_at(&b->ctl.memories, i);
		if (mem != NULL && mem->filling)
			return true;
	}
	return false;
}

/* Minutes of looking for pages do not hold up the registration, others, or the end of the memory or its client. */
static void endless_memory_holds_nobody_up(void)
{
	static struct bench b;
	static struct shr_msg m;
	struct shr_msg_id id;
	int fd = memfd_of(HUGE_HOLE, true), small = memfd_of(MIB, true), sock, other;

	bench_start(&b, 1, NULL);
	sock = app_attach(&b);
	other = app_attach(&b);
	id.id = app_register(&b, sock, fd, HUGE_HOLE, SHR_RIGHT_ALL);
	CU_ASSERT_NOT_EQUAL_FATAL(id.id, 0);
	CU_ASSERT_TRUE(some_memory_fills(&b));
	CU_ASSERT_EQUAL(reg(&b, other, small, 0, MIB, SHR_RIGHT_ALL), TN_OK);
	CU_ASSERT_EQUAL(app_call(&b, sock, SHR_MSG_MEM_UNREGISTER, &id, sizeof id, -1, &m), TN_OK);
	CU_ASSERT_TRUE(turn_until(&b, b.ctl.memories.used == 1));
	CU_ASSERT_NOT_EQUAL(app_register(&b, sock, fd, HUGE_HOLE, SHR_RIGHT_ALL), 0);
	CU_ASSERT_TRUE(some_memory_fills(&b));
	close(sock);
	CU_ASSERT_TRUE(turn_until(&b, b.ctl.attach.clients.used == 1));
	sock = app_attach(&b);
	CU_ASSERT_NOT_EQUAL(app_register(&b, sock, fd, HUGE_HOLE, SHR_RIGHT_ALL), 0);
	bench_stop(&b); /* in the middle of it */
	close(sock), close(other), close(fd), close(small);
}

TN_TEST_MAIN("map", { "a good memfd is sealed and shared", good_memfd_is_sealed_and_shared },
             { "resident memory is entered, holes stay", resident_memory_is_entered_and_holes_stay },
             { "populating goes on where it stopped", populating_goes_on_where_it_stopped },
             { "endless memory holds nobody up", endless_memory_holds_nobody_up },
             { "refusals have their reason", refusals_have_their_reason },
             { "what nobody may write is mapped for reading", what_nobody_may_write_is_mapped_for_reading },
             { "sealed holes stay", sealed_holes_stay },
             { "rights decide over sealed memory", rights_decide_over_sealed_memory },
             { "register refuses bad ranges and overlap", register_refuses_bad_ranges_and_overlap },
             { "unregister waits for the workers", unregister_waits_for_the_workers })
