/* SPDX-License-Identifier: Apache-2.0
 * The clocks of a host. All deadlines and durations inside tent are CLOCK_MONOTONIC nanoseconds; real time is for texts
 * that people read. On the wire only remaining time travels. Any thread; vDSO, no system call on common hosts. */
#ifndef TN_CLOCK_H
#define TN_CLOCK_H

#include <stdint.h>
#include <time.h>

#include "common/compiler.h"

#define TN_NS_PER_US UINT64_C(1000)
#define TN_NS_PER_MS UINT64_C(1000000)
#define TN_NS_PER_S  UINT64_C(1000000000)

TN_INLINE uint64_t tn_clock_read_ns(clockid_t id)
{
	struct timespec ts;
	(void)clock_gettime(id, &ts);   /* cannot fail for the clocks named below */
	return (uint64_t)ts.tv_sec * TN_NS_PER_S + (uint64_t)ts.tv_nsec;
}

/* Monotonic ns since an arbitrary start; the same for all processes of a host (and of a time namespace). */
TN_INLINE uint64_t tn_now_ns(void) { return tn_clock_read_ns(CLOCK_MONOTONIC); }
/* ns since 1970-01-01 UTC; may jump. */
TN_INLINE uint64_t tn_real_ns(void) { return tn_clock_read_ns(CLOCK_REALTIME); }
/* CPU time that this process used, all threads. */
TN_INLINE uint64_t tn_cpu_ns(void) { return tn_clock_read_ns(CLOCK_PROCESS_CPUTIME_ID); }

/* now + delta, saturating; UINT64_MAX means never. */
TN_INLINE uint64_t tn_deadline_after(uint64_t now_ns, uint64_t delta_ns)
{
	return delta_ns > UINT64_MAX - now_ns ? UINT64_MAX : now_ns + delta_ns;
}

/* What is left until the deadline; 0 when it passed. */
TN_INLINE uint64_t tn_remaining_ns(uint64_t deadline_ns, uint64_t now_ns)
{
	return deadline_ns > now_ns ? deadline_ns - now_ns : 0;
}

/* ns to the milliseconds of poll(2): rounded up, so that a wait never ends early and spins; at most INT32_MAX. */
TN_INLINE int tn_ns_to_poll_ms(uint64_t ns)
{
	uint64_t ms = ns / TN_NS_PER_MS + (ns % TN_NS_PER_MS != 0);
	return ms > INT32_MAX ? INT32_MAX : (int)ms;
}

#endif
