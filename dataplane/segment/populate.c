/* SPDX-License-Identifier: Apache-2.0
 * mincore() tells what is in the page cache, madvise() enters it. In small pieces: each holds the lock of the address
 * space, for which mapping and unmapping wait. Slow pool. */
#include "dataplane/segment/populate.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/bits.h"
#include "common/clock.h"
#include "common/compiler.h"

#ifndef MADV_POPULATE_WRITE /* Linux 5.14; older kernels say EINVAL and pay page by page as they go */
#define MADV_POPULATE_READ  22
#define MADV_POPULATE_WRITE 23
#endif
#define PAGE_BYTES_MIN 4096u
#define PIECE_BYTES    (UINT64_C(4) << 20)

/* A huge page that only the application mapped is not seen by mincore(); at one fault for 2 MiB it need not be. */
static bool piece(uint8_t *base, size_t bytes, size_t page, int advice)
{
	unsigned char resident[PIECE_BYTES / PAGE_BYTES_MIN];
	size_t cnt = (bytes + page - 1) / page;
	if (mincore(base, bytes, resident) != 0)
		return false;
	for (size_t i = 0, run; i < cnt; i += run) {
		bool here = (resident[i] & 1) != 0;
		for (run = 1; i + run < cnt && ((resident[i + run] & 1) != 0) == here; run++) {}
		if (here && madvise(base + i * page, TN_MIN(run * page, bytes - i * page), advice) != 0)
			return false;
	}
	return true;
}

uint64_t dp_populate(uint8_t *base, uint64_t bytes, bool write, uint64_t from, uint64_t budget_ns)
{
	const int advice = write ? MADV_POPULATE_WRITE : MADV_POPULATE_READ;
	const long page = sysconf(_SC_PAGESIZE);
	const uint64_t end_ns = tn_deadline_after(tn_now_ns(), budget_ns);
	if (page < (long)PAGE_BYTES_MIN || page > (long)PIECE_BYTES)
		return bytes;
	do {
		uint64_t len = TN_MIN(PIECE_BYTES, bytes - from);
		if (!piece(base + from, (size_t)len, (size_t)page, advice))
			return bytes;
		from += len;
	} while (from < bytes && tn_now_ns() < end_ns);
	return from;
}
