/* SPDX-License-Identifier: Apache-2.0
 * Copies between private memory and memory that another party may be writing at the same moment. Each 8-byte word is
 * read or written exactly once with a relaxed atomic: the compiler can neither read it a second time after a check
 * (a memcpy from shared memory gives no such promise) nor assume that nobody else touches it. Any thread. */
#ifndef SHR_WORDS_H
#define SHR_WORDS_H

#include <stdint.h>

#include "common/atomic.h"
#include "common/compiler.h"

/* dst private, src shared, both 8-byte aligned; words = number of 8-byte words. */
TN_INLINE void shr_words_load(void *dst, const void *src, uint32_t words)
{
	const tn_a64 *s = src;
	unsigned char *d = dst;
	for (uint32_t i = 0; i < words; i++) {
		uint64_t w = tn_load_relaxed64(&s[i]);
		__builtin_memcpy(d + 8 * (size_t)i, &w, 8);
	}
}

/* dst shared, src private, both 8-byte aligned; words = number of 8-byte words. */
TN_INLINE void shr_words_store(void *dst, const void *src, uint32_t words)
{
	tn_a64 *d = dst;
	const unsigned char *s = src;
	for (uint32_t i = 0; i < words; i++) {
		uint64_t w;
		__builtin_memcpy(&w, s + 8 * (size_t)i, 8);
		tn_store_relaxed64(&d[i], w);
	}
}

#endif
