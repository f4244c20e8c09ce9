/* SPDX-License-Identifier: Apache-2.0
 * See pool.h. */
#include "perf/baseline/pool.h"

#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "perf/tentbench/walk.h"

#define HUGE_BYTES (UINT64_C(2) << 20)

uint8_t *tb_pool_map(uint64_t bytes, bool hugetlb, uint64_t seed)
{
	int fd = memfd_create("tent-bench", MFD_CLOEXEC | (hugetlb ? MFD_HUGETLB : 0u));
	void *at = MAP_FAILED;

	if (hugetlb)
		bytes = (bytes + HUGE_BYTES - 1) / HUGE_BYTES * HUGE_BYTES;
	if (fd >= 0 && ftruncate(fd, (off_t)bytes) == 0)
		at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
	if (at == MAP_FAILED) {
		perror(hugetlb ? "cannot make a pool of huge pages (see /proc/sys/vm/nr_hugepages)" : "cannot make a pool");
		return NULL;
	}
	(void)close(fd);
	tb_pattern_fill(at, bytes, seed);
	return at;
}
