/* SPDX-License-Identifier: Apache-2.0
 * The only file that includes <stdatomic.h>. Each verb names the one job it does; the full fence is for the
 * doorbell's two sides only (docs/memory-model.md lists every pair by its tag). Any thread. */
#ifndef TN_ATOMIC_H
#define TN_ATOMIC_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/compiler.h"

typedef _Atomic uint8_t tn_a8;
typedef _Atomic uint32_t tn_a32;
typedef _Atomic uint64_t tn_a64;

TN_INLINE uint32_t tn_load_relaxed32(const tn_a32 *p) { return atomic_load_explicit(p, memory_order_relaxed); }
TN_INLINE uint64_t tn_load_relaxed64(const tn_a64 *p) { return atomic_load_explicit(p, memory_order_relaxed); }
TN_INLINE uint32_t tn_load_acquire32(const tn_a32 *p) { return atomic_load_explicit(p, memory_order_acquire); }
TN_INLINE uint64_t tn_load_acquire64(const tn_a64 *p) { return atomic_load_explicit(p, memory_order_acquire); }
TN_INLINE void tn_store_relaxed32(tn_a32 *p, uint32_t v) { atomic_store_explicit(p, v, memory_order_relaxed); }
TN_INLINE void tn_store_relaxed64(tn_a64 *p, uint64_t v) { atomic_store_explicit(p, v, memory_order_relaxed); }
TN_INLINE void tn_store_release32(tn_a32 *p, uint32_t v) { atomic_store_explicit(p, v, memory_order_release); }
TN_INLINE void tn_store_release64(tn_a64 *p, uint64_t v) { atomic_store_explicit(p, v, memory_order_release); }

/* One-writer counter: a load and a store, never a locked read-modify-write; readers may see it late, never torn.
 * Compilers do not fuse two relaxed atomics into the one instruction that x86-64 has for it (an aligned 64-bit add is
 * one load and one whole store there), and counters are most of what the hot path records. */
TN_INLINE void tn_count64(tn_a64 *p, uint64_t add)
{
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
	__asm__("addq %1, %0" : "+m"(*p) : "er"(add) : "cc");
#else
	tn_store_relaxed64(p, tn_load_relaxed64(p) + add);
#endif
}

/* Multi-writer words (handle tables, flags between threads of one process). */
TN_INLINE uint32_t tn_fetch_add32(tn_a32 *p, uint32_t v) { return atomic_fetch_add_explicit(p, v, memory_order_acq_rel); }
TN_INLINE uint64_t tn_fetch_add64(tn_a64 *p, uint64_t v) { return atomic_fetch_add_explicit(p, v, memory_order_acq_rel); }
TN_INLINE uint32_t tn_exchange32(tn_a32 *p, uint32_t v) { return atomic_exchange_explicit(p, v, memory_order_acq_rel); }
TN_INLINE bool tn_cas32(tn_a32 *p, uint32_t *expected, uint32_t desired)
{
	return atomic_compare_exchange_strong_explicit(p, expected, desired, memory_order_acq_rel, memory_order_acquire);
}

TN_INLINE void tn_fence_release(void) { atomic_thread_fence(memory_order_release); }
TN_INLINE void tn_fence_acquire(void) { atomic_thread_fence(memory_order_acquire); }
/* Between a thread and a signal handler that interrupts it: the compiler moves nothing across. */
TN_INLINE void tn_fence_signal(void) { atomic_signal_fence(memory_order_seq_cst); }
/* Store-load fence: doorbell arm and doorbell ring, nowhere else. */
TN_INLINE void tn_fence_full(void) { atomic_thread_fence(memory_order_seq_cst); }

TN_INLINE void tn_cpu_relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ __volatile__("yield");
#endif
}

#endif
