/* SPDX-License-Identifier: Apache-2.0
 * Regions: our own cannot be resized by anybody, foreign memory is taken only if it can be made so. */
#include "shm-ring/region.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/memfd.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/unit/cu.h"

static int memfd(unsigned flags, off_t bytes)
{
	int fd = memfd_create("tent-test", MFD_CLOEXEC | flags);
	if (fd < 0 || ftruncate(fd, bytes) != 0)
		abort();
	return fd;
}

static void own_region_is_sealed(void)
{
	struct shr_region r = SHR_REGION_NONE;
	CU_ASSERT_EQUAL_FATAL(shr_region_create("tent-test", 8192, &r), TN_OK);
	CU_ASSERT_EQUAL(ftruncate(r.fd, 4096), -1);
	CU_ASSERT_EQUAL(ftruncate(r.fd, 16384), -1);
	CU_ASSERT_EQUAL(fcntl(r.fd, F_ADD_SEALS, F_SEAL_WRITE), -1);
	CU_ASSERT_EQUAL(fcntl(r.fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
	unsigned char *p = r.base;
	CU_ASSERT(p[0] == 0 && p[8191] == 0);

	struct shr_region peer = SHR_REGION_NONE;
	CU_ASSERT_EQUAL_FATAL(shr_region_map(dup(r.fd), 8192, true, &peer), TN_OK);
	p[100] = 42;
	CU_ASSERT_EQUAL(((unsigned char *)peer.base)[100], 42);
	shr_region_close(&peer);
	shr_region_close(&peer);
	shr_region_close(&r);
	CU_ASSERT_EQUAL(r.fd, -1);
}

static void create_refuses_sizes(void)
{
	struct shr_region r = SHR_REGION_NONE;
	CU_ASSERT_EQUAL(shr_region_create("tent-test", 0, &r), TN_INVALID);
	CU_ASSERT_EQUAL(shr_region_create("tent-test", 100, &r), TN_INVALID);
	CU_ASSERT_EQUAL(shr_region_create("tent-test", SIZE_MAX - 4095, &r), TN_INVALID);
	CU_ASSERT_EQUAL(r.fd, -1);
}

static void map_refuses_other_objects(void)
{
	struct shr_region r = SHR_REGION_NONE;
	int fd = memfd(MFD_ALLOW_SEALING, 8192);
	CU_ASSERT_EQUAL(shr_region_map(fd, 8192, true, &r), TN_PERMISSION); /* may still shrink */
	CU_ASSERT_EQUAL_FATAL(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK), 0);
	CU_ASSERT_EQUAL(shr_region_map(fd, 4096, true, &r), TN_ABI_MISMATCH);
	CU_ASSERT_EQUAL(shr_region_map(fd, 16384, true, &r), TN_ABI_MISMATCH);
	close(fd);
	int pair[2];
	CU_ASSERT_EQUAL_FATAL(pipe(pair), 0);
	CU_ASSERT_EQUAL(shr_region_map(pair[0], 4096, true, &r), TN_INVALID);
	close(pair[0]);
	close(pair[1]);
	CU_ASSERT_EQUAL(r.fd, -1);
}

static void foreign_memfd_is_sealed(void)
{
	struct shr_foreign f;
	int fd = memfd(MFD_ALLOW_SEALING, 12288);
	CU_ASSERT_EQUAL_FATAL(shr_region_seal_foreign(fd, 12288, &f), TN_OK);
	CU_ASSERT_EQUAL(f.bytes, 12288);
	CU_ASSERT(f.writable && !f.hugetlb);
	CU_ASSERT_EQUAL(ftruncate(fd, 4096), -1);
	CU_ASSERT_EQUAL(errno, EPERM);
	CU_ASSERT_EQUAL(shr_region_seal_foreign(fd, 1, &f), TN_OK); /* a second registration of it */
	CU_ASSERT_EQUAL(shr_region_seal_foreign(fd, 12289, &f), TN_RANGE);
	close(fd);
}

static void foreign_refusals(void)
{
	struct shr_foreign f = { .bytes = 99 };
	int fd = memfd(0, 4096); /* no MFD_ALLOW_SEALING: F_SEAL_SEAL from the start */
	CU_ASSERT_EQUAL(shr_region_seal_foreign(fd, 1, &f), TN_PERMISSION);
	close(fd);
	fd = memfd(MFD_ALLOW_SEALING, 4096);
	CU_ASSERT_EQUAL_FATAL(fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL), 0);
	CU_ASSERT_EQUAL(shr_region_seal_foreign(fd, 1, &f), TN_PERMISSION);
	close(fd);
	fd = memfd(MFD_ALLOW_SEALING, 4096);
	char path[64];
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	int ro = open(path, O_RDONLY | O_CLOEXEC);
	CU_ASSERT_FATAL(ro >= 0);
	CU_ASSERT_EQUAL(shr_region_seal_foreign(ro, 1, &f), TN_PERMISSION);
	/* Sealed by its owner, then handed in read-only: safe to map, for reading. */
	CU_ASSERT_EQUAL_FATAL(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK), 0);
	struct shr_foreign g;
	CU_ASSERT_EQUAL_FATAL(shr_region_seal_foreign(ro, 1, &g), TN_OK);
	CU_ASSERT_FALSE(g.writable);
	close(ro);
	close(fd);

	FILE *file = tmpfile();
	CU_ASSERT_PTR_NOT_NULL_FATAL(file);
	tn_status s = shr_region_seal_foreign(fileno(file), 0, &f);
	CU_ASSERT(s == TN_UNSUPPORTED || s == TN_PERMISSION); /* a tmpfs file has seals, and F_SEAL_SEAL set */
	fclose(file);
	int pair[2];
	CU_ASSERT_EQUAL_FATAL(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	CU_ASSERT_EQUAL(shr_region_seal_foreign(pair[0], 0, &f), TN_UNSUPPORTED);
	close(pair[0]);
	close(pair[1]);
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	CU_ASSERT_EQUAL(shr_region_seal_foreign(null, 0, &f), TN_UNSUPPORTED);
	close(null);
	CU_ASSERT_EQUAL(shr_region_seal_foreign(null, 0, &f), TN_INVALID);
	CU_ASSERT_EQUAL(f.bytes, 99);
}

static void write_seal_is_seen(void)
{
	struct shr_foreign f;
	int fd = memfd(MFD_ALLOW_SEALING, 4096);
	CU_ASSERT_EQUAL_FATAL(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE), 0);
	CU_ASSERT_EQUAL_FATAL(shr_region_seal_foreign(fd, 4096, &f), TN_OK);
	CU_ASSERT(!f.writable && f.constant);
	close(fd);
	fd = memfd(MFD_ALLOW_SEALING, 4096); /* mappings that exist may still write */
	CU_ASSERT_EQUAL_FATAL(fcntl(fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE | F_SEAL_SHRINK | F_SEAL_SEAL), 0);
	CU_ASSERT_EQUAL_FATAL(shr_region_seal_foreign(fd, 4096, &f), TN_OK);
	CU_ASSERT(!f.writable && !f.constant);
	close(fd);
}

/* Sealing needs no huge page to be there; only touching one does. */
static void hugetlb_is_recognised(void)
{
	int fd = memfd_create("tent-test", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_HUGETLB);
	if (fd < 0) {
		printf("(no hugetlb on this kernel: errno %d) ", errno);
		return;
	}
	CU_ASSERT_EQUAL_FATAL(ftruncate(fd, 2 << 20), 0);
	struct shr_foreign f;
	CU_ASSERT_EQUAL_FATAL(shr_region_seal_foreign(fd, 2 << 20, &f), TN_OK);
	CU_ASSERT(f.hugetlb);
	CU_ASSERT(f.page_bytes >= 65536);
	CU_ASSERT_EQUAL(ftruncate(fd, 0), -1);
	close(fd);
}

TN_TEST_MAIN("shm-ring/region",
	{ "our region cannot be resized or resealed, and two mappings share it", own_region_is_sealed },
	{ "unusable sizes are refused", create_refuses_sizes },
	{ "a joiner refuses what can shrink, has another size or is no memory", map_refuses_other_objects },
	{ "a client's memfd can no longer shrink", foreign_memfd_is_sealed },
	{ "what cannot be sealed is refused with its reason", foreign_refusals },
	{ "write-sealed memory is reported read-only", write_seal_is_seen },
	{ "hugetlb memory is recognised", hugetlb_is_recognised })
