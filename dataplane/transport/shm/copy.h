/* SPDX-License-Identifier: Apache-2.0
 * Copying large blocks between two mappings of this host: through the caches, for destinations that are in them, or past
 * them, for those that are not. Pure; any thread. */
#ifndef DP_SHM_COPY_H
#define DP_SHM_COPY_H

#include <stddef.h>
#include <stdint.h>

typedef void (*dp_copy_fn)(void *dst, const void *src, size_t bytes);

/* The best non-temporal copy of this CPU (AVX2, SSE2), or memcpy where there is none. The ranges do not overlap, or are
 * the same. All stores are ordered before later ones when it returns. Set-up time. */
dp_copy_fn dp_copy_nontemporal(void);
/* The best copy through the caches: the string instruction where it is fast, else memcpy. Same rules. */
dp_copy_fn dp_copy_cached(void);
/* A destination that was written fewer bytes of copies ago than this is better copied to through the caches. Depends on
 * the last-level cache. Set-up time. */
uint64_t dp_copy_near_bytes(void);
/* The name of the non-temporal one, for status output: "avx2", "sse2", "memcpy". */
const char *dp_copy_nontemporal_name(void);

#endif
