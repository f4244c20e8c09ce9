/* SPDX-License-Identifier: Apache-2.0
 * Copying between two mappings of this host: plain, or past the caches for blocks that nobody will read soon here.
 * Pure; any thread. */
#ifndef DP_SHM_COPY_H
#define DP_SHM_COPY_H

#include <stddef.h>

typedef void (*dp_copy_fn)(void *dst, const void *src, size_t bytes);

/* The best non-temporal copy of this CPU (AVX2, SSE2), or memcpy where there is none. The ranges do not overlap, or are
 * the same. All stores are ordered before later ones when it returns. Set-up time. */
dp_copy_fn dp_copy_nontemporal(void);
/* Its name, for status output: "avx2", "sse2", "memcpy". */
const char *dp_copy_nontemporal_name(void);

#endif
