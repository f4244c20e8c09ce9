/* SPDX-License-Identifier: Apache-2.0
 * Copies of large blocks. A store past the caches saves the read of the destination line (a third of the memory traffic
 * of a large copy) and leaves the caches to those who work in them; where the line is cached, it throws that away and
 * costs half the speed. Each variant is compiled for its instruction set and chosen once by cpuid. Pure. */
#include "dataplane/transport/shm/copy.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "common/compiler.h"

/* What one core can count on of the last cache. Processors report that of the whole package to a guest, and neighbours
 * have the rest. */
#define L3_BYTES_MAX (UINT64_C(32) << 20)

static void copy_plain(void *dst, const void *src, size_t bytes) { memcpy(dst, src, bytes); }

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>

#define LINE 64u
#define PAGE 4096u
/* Measured on pools larger than all caches: 512 is a tenth slower, 4096 no faster. */
#define AHEAD 2048u /* bytes that the source is fetched ahead of the stores */

/* Bytes up to the next cache line of dst. */
static size_t head_bytes(const void *dst, size_t bytes)
{
	size_t head = (LINE - ((uintptr_t)dst & (LINE - 1))) & (LINE - 1);
	return head < bytes ? head : bytes;
}

/* Nothing fetches what is only stored past the caches, so each page of it would begin with a walk of the page tables that
 * everything waits for. One line of the next page, once per page, has the walk done in time: a tenth of a large copy. */
static inline void translate_ahead(const char *d, size_t step)
{
	if (((uintptr_t)d & (PAGE - 1)) < step)
		_mm_prefetch(d + PAGE, _MM_HINT_T0); /* never faults */
}

__attribute__((target("avx2"))) static void copy_avx2(void *dst, const void *src, size_t bytes)
{
	size_t head = head_bytes(dst, bytes);
	memcpy(dst, src, head);
	char *d = (char *)dst + head;
	const char *s = (const char *)src + head;
	bytes -= head;
	for (; bytes >= 2 * LINE; bytes -= 2 * LINE, d += 2 * LINE, s += 2 * LINE) {
		translate_ahead(d, 2 * LINE);
		_mm_prefetch(s + AHEAD, _MM_HINT_NTA);
		_mm_prefetch(s + AHEAD + LINE, _MM_HINT_NTA);
		__m256i a = _mm256_loadu_si256((const __m256i *)(const void *)s);
		__m256i b = _mm256_loadu_si256((const __m256i *)(const void *)(s + 32));
		__m256i c = _mm256_loadu_si256((const __m256i *)(const void *)(s + 64));
		__m256i e = _mm256_loadu_si256((const __m256i *)(const void *)(s + 96));
		_mm256_stream_si256((__m256i *)(void *)d, a);
		_mm256_stream_si256((__m256i *)(void *)(d + 32), b);
		_mm256_stream_si256((__m256i *)(void *)(d + 64), c);
		_mm256_stream_si256((__m256i *)(void *)(d + 96), e);
	}
	_mm_sfence();
	memcpy(d, s, bytes);
}

static void copy_sse2(void *dst, const void *src, size_t bytes)
{
	size_t head = head_bytes(dst, bytes);
	memcpy(dst, src, head);
	char *d = (char *)dst + head;
	const char *s = (const char *)src + head;
	bytes -= head;
	for (; bytes >= LINE; bytes -= LINE, d += LINE, s += LINE) {
		translate_ahead(d, LINE);
		_mm_prefetch(s + AHEAD, _MM_HINT_NTA);
		__m128i a = _mm_loadu_si128((const __m128i *)(const void *)s);
		__m128i b = _mm_loadu_si128((const __m128i *)(const void *)(s + 16));
		__m128i c = _mm_loadu_si128((const __m128i *)(const void *)(s + 32));
		__m128i e = _mm_loadu_si128((const __m128i *)(const void *)(s + 48));
		_mm_stream_si128((__m128i *)(void *)d, a);
		_mm_stream_si128((__m128i *)(void *)(d + 16), b);
		_mm_stream_si128((__m128i *)(void *)(d + 32), c);
		_mm_stream_si128((__m128i *)(void *)(d + 48), e);
	}
	_mm_sfence();
	memcpy(d, s, bytes);
}

static bool has_avx2(void) { return __builtin_cpu_supports("avx2"); }

/* Enhanced REP MOVSB, as old as 2012: whole lines, without reading those that it overwrites when the copy is large. */
static bool has_erms(void)
{
	unsigned a, b, c, d;
	return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (b & UINT32_C(1) << 9) != 0;
}

static void copy_string(void *dst, const void *src, size_t bytes)
{
	__asm__ volatile("rep movsb" : "+D"(dst), "+S"(src), "+c"(bytes) : : "memory");
}

dp_copy_fn dp_copy_cached(void) { return has_erms() ? copy_string : copy_plain; }
dp_copy_fn dp_copy_nontemporal(void) { return has_avx2() ? copy_avx2 : copy_sse2; }
const char *dp_copy_nontemporal_name(void) { return has_avx2() ? "avx2" : "sse2"; }

#else

dp_copy_fn dp_copy_cached(void) { return copy_plain; }
dp_copy_fn dp_copy_nontemporal(void) { return copy_plain; }
const char *dp_copy_nontemporal_name(void) { return "memcpy"; }

#endif

/* Sources and destinations must both fit: measured, beyond that a store past the caches is at least as fast. */
uint64_t dp_copy_near_bytes(void)
{
	long l3 = sysconf(_SC_LEVEL3_CACHE_SIZE);
	return (l3 > 0 ? TN_MIN((uint64_t)l3, L3_BYTES_MAX) : L3_BYTES_MAX) / 2;
}
