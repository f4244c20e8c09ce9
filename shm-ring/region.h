/* SPDX-License-Identifier: Apache-2.0
 * The only place that creates, sizes, seals and maps shared memory objects: queue-pair regions of our own and memory
 * that a client hands in. A region can never shrink under its mapping, so touching it inside its size cannot raise
 * SIGBUS. Set-up time only: control thread, slow pool, or the application's thread; calls may fault in pages. */
#ifndef SHR_REGION_H
#define SHR_REGION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/compiler.h"
#include "common/status.h"

struct shr_region {
	int fd;      /* owned; -1 = none */
	void *base;  /* mapping; NULL = none */
	size_t bytes;
};
#define SHR_REGION_NONE ((struct shr_region){ .fd = -1 })

/* Creates a memfd of `bytes` (multiple of SHR_PAGE), allocates its pages, maps it read-write and seals its size
 * (SHRINK, GROW, SEAL). name: what /proc shows, <= 200 bytes, no secret in it. The content is zero.
 * TN_INVALID (bytes), TN_NO_MEMORY, TN_LIMIT (fds), TN_SYSTEM (errno is set). On failure *out is untouched. */
TN_MUST_USE tn_status shr_region_create(const char *name, size_t bytes, struct shr_region *out);

/* Maps an existing region of exactly `bytes`; takes ownership of fd on success only. TN_ABI_MISMATCH when fstat shows
 * another size, TN_INVALID when it is no regular memory object, TN_PERMISSION when it can still shrink,
 * TN_NO_MEMORY, TN_SYSTEM. */
TN_MUST_USE tn_status shr_region_map(int fd, size_t bytes, bool writable, struct shr_region *out);

/* Unmaps and closes; accepts SHR_REGION_NONE, a half-built object, and a second call. */
void shr_region_close(struct shr_region *r);

/* What a client's memory object turned out to be. */
struct shr_foreign {
	uint64_t bytes;      /* size now; it cannot get smaller any more */
	uint32_t page_bytes; /* mapping granularity: the huge page size for hugetlb */
	bool hugetlb;
	bool writable;       /* the fd is open for writing and no write seal forbids it */
	bool constant;       /* F_SEAL_WRITE: its content never changes any more, not through any mapping */
};

/* Makes a client's fd safe to map: adds F_SEAL_SHRINK ourselves and looks that it sticks. The fd stays the caller's.
 * TN_UNSUPPORTED: not a memfd (file, device, socket ...). TN_PERMISSION: it has no F_SEAL_SHRINK and none can
 * be added (created without MFD_ALLOW_SEALING, sealed against more seals, or the fd is read-only). TN_RANGE: smaller than min_bytes.
 * TN_SYSTEM: fstat failed. *out is untouched on failure. */
TN_MUST_USE tn_status shr_region_seal_foreign(int fd, uint64_t min_bytes, struct shr_foreign *out);

#endif
