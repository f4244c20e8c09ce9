/* SPDX-License-Identifier: Apache-2.0
 * The only owner of compiler attributes and language extensions: every other file uses these names.
 * No code, no state; any thread. */
#ifndef TN_COMPILER_H
#define TN_COMPILER_H

#include <stddef.h>
#include <stdint.h>

#define TN_CACHE_LINE 64

#define tn_likely(x)   __builtin_expect(!!(x), 1)
#define tn_unlikely(x) __builtin_expect(!!(x), 0)
#define TN_ALIGNED(n)  __attribute__((aligned(n)))
#define TN_CACHE_ALIGNED TN_ALIGNED(TN_CACHE_LINE)
#define TN_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#define TN_MUST_USE __attribute__((warn_unused_result))
#define TN_NORETURN __attribute__((noreturn))
#define TN_COLD __attribute__((cold, noinline))
#define TN_NOINLINE __attribute__((noinline))
#define TN_UNUSED __attribute__((unused))
#define TN_FALLTHROUGH __attribute__((fallthrough))
#define TN_INLINE static inline __attribute__((always_inline))

#define TN_ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))
#define TN_STATIC_ASSERT(cond, msg) _Static_assert(cond, msg)
#define TN_PREFETCH(p) __builtin_prefetch(p)
/* The compiler forgets what it knew about the value of lvalue `v` (constant-time loops, benchmarks). */
#define TN_OPAQUE(v) __asm__ __volatile__("" : "+r"(v))

/* The object that contains `member` at address `ptr`. */
#define tn_container_of(ptr, type, member) ((type *)(void *)((char *)(ptr) - offsetof(type, member)))

#define TN_MIN(a, b) ((a) < (b) ? (a) : (b))
#define TN_MAX(a, b) ((a) > (b) ? (a) : (b))

#endif
