/* SPDX-License-Identifier: Apache-2.0
 * Powers of two, alignment, sums that may not wrap, shares, bytes that must be zero. Arguments of the align functions are
 * powers of two.
 * No state; any thread. */
#ifndef TN_BITS_H
#define TN_BITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/compiler.h"

TN_INLINE bool tn_is_pow2(uint64_t v) { return v != 0 && (v & (v - 1)) == 0; }
/* Index of the highest set bit; v >= 1. */
TN_INLINE unsigned tn_log2_floor(uint64_t v) { return 63u - (unsigned)__builtin_clzll(v); }
/* Smallest n with 2^n >= v; v >= 1. */
TN_INLINE unsigned tn_log2_ceil(uint64_t v) { return v <= 1 ? 0 : tn_log2_floor(v - 1) + 1; }
/* Smallest power of two >= v; 1 for 0; v <= 2^63. */
TN_INLINE uint64_t tn_pow2_ceil(uint64_t v) { return UINT64_C(1) << tn_log2_ceil(v); }
/* Number of bits that v needs: 0 for 0, 64 for the highest values. */
TN_INLINE unsigned tn_bit_width(uint64_t v) { return v == 0 ? 0 : tn_log2_floor(v) + 1; }

TN_INLINE uint64_t tn_align_down(uint64_t v, uint64_t align) { return v & ~(align - 1); }
/* Wraps to 0 beyond the last multiple: check foreign values with tn_align_up_checked. */
TN_INLINE uint64_t tn_align_up(uint64_t v, uint64_t align) { return (v + align - 1) & ~(align - 1); }
TN_INLINE bool tn_is_aligned(uint64_t v, uint64_t align) { return (v & (align - 1)) == 0; }

/* False when the result does not fit; *out is then undefined. */
TN_INLINE bool tn_add_checked(uint64_t a, uint64_t b, uint64_t *out) { return !__builtin_add_overflow(a, b, out); }
TN_INLINE bool tn_mul_checked(uint64_t a, uint64_t b, uint64_t *out) { return !__builtin_mul_overflow(a, b, out); }
TN_INLINE bool tn_align_up_checked(uint64_t v, uint64_t align, uint64_t *out)
{
	bool fits = tn_add_checked(v, align - 1, out);
	*out &= ~(align - 1);
	return fits;
}

/* part of whole, in permille; at most UINT16_MAX, which also stands for whole = 0. */
TN_INLINE uint32_t tn_permille(uint64_t part, uint64_t whole)
{
	uint64_t scaled;
	if (whole == 0 || !tn_mul_checked(part, 1000, &scaled))
		return UINT16_MAX;
	scaled /= whole;
	return scaled < UINT16_MAX ? (uint32_t)scaled : UINT16_MAX;
}

/* Every byte is 0: reserved fields, ids that nobody set. Not for secrets' lengths, but in constant time for their bytes. */
TN_INLINE bool tn_all_zero(const void *at, size_t bytes)
{
	const uint8_t *b = at;
	uint8_t any = 0;
	for (size_t i = 0; i < bytes; i++)
		any |= b[i];
	return any == 0;
}

/* [off, off + len) lies inside [0, size), also for hostile values; an empty range may stand at the end. */
TN_INLINE bool tn_range_within(uint64_t off, uint64_t len, uint64_t size) { return off <= size && len <= size - off; }

#endif
