/* SPDX-License-Identifier: Apache-2.0
 * One guard per thread says which ranges may fault and where to go on then; the handler leaves the copy for that place.
 * The exception drains what non-temporal stores left in the core's buffers, so nothing of an abandoned copy lands later.
 * Any thread. */
#include "dataplane/segment/fault.h"

#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <unistd.h>

#include "common/atomic.h"

#define PAGE_BYTES_MIN 4096u

struct guard {
	sigjmp_buf go_on;
	uintptr_t dst, src;
	size_t bytes;
	volatile sig_atomic_t armed;
	volatile sig_atomic_t fault; /* enum dp_fault */
};
static _Thread_local struct guard guard;

/* [from, from + len) meets [at, at + bytes). */
static bool meets(uintptr_t from, uintptr_t len, uintptr_t at, size_t bytes)
{
	return from < at ? at - from < len : from - at < bytes;
}

/* The kernel names the byte that was touched; for a page that the hardware lost it names the page. */
static enum dp_fault guarded(const siginfo_t *si)
{
	uintptr_t at = (uintptr_t)si->si_addr, len = 1;
	if (si->si_code == BUS_MCEERR_AR) {
		len = (uintptr_t)1 << si->si_addr_lsb;
		at &= ~(len - 1);
	}
	if (meets(at, len, guard.dst, guard.bytes))
		return DP_FAULT_DST;
	return meets(at, len, guard.src, guard.bytes) ? DP_FAULT_SRC : DP_FAULT_NONE;
}

static void on_bus_error(int sig, siginfo_t *si, void *context)
{
	static const char text[] = "SIGBUS outside of applications' memory: a bug in tent, a damaged program file, or "
				   "memory that the hardware lost (see the kernel's log)\n";
	(void)context;
	if (si->si_code == BUS_MCEERR_AO)
		return; /* a page was lost that nobody touched yet: whoever does hears of it then */
	bool ours = si->si_code > 0; /* not sent by a process */
	if (ours && guard.armed) {
		guard.fault = (sig_atomic_t)guarded(si);
		if (guard.fault != DP_FAULT_NONE) {
			guard.armed = 0;
			siglongjmp(guard.go_on, 1);
		}
	}
	/* Die as if there had been no handler: the same instruction again, with a core file that shows it. */
	if (ours)
		(void)!write(STDERR_FILENO, text, sizeof text - 1);
	(void)signal(sig, SIG_DFL);
	if (!ours)
		(void)raise(sig);
}

tn_status dp_fault_install(void)
{
	/* NODEFER: leaving by a jump restores no mask, and saving one would be a system call per copy. */
	struct sigaction sa = { .sa_sigaction = on_bus_error, .sa_flags = SA_SIGINFO | SA_NODEFER };
	(void)sigemptyset(&sa.sa_mask);
	return sigaction(SIGBUS, &sa, NULL) == 0 ? TN_OK : TN_SYSTEM;
}

enum dp_fault dp_fault_copy(void (*copy)(void *dst, const void *src, size_t bytes), void *dst, const void *src,
                            size_t bytes)
{
	guard.dst = (uintptr_t)dst;
	guard.src = (uintptr_t)src;
	guard.bytes = bytes;
	if (sigsetjmp(guard.go_on, 0) != 0)
		return (enum dp_fault)guard.fault;
	tn_fence_signal();
	guard.armed = 1;
	tn_fence_signal();
	copy(dst, src, bytes);
	tn_fence_signal();
	guard.armed = 0;
	return DP_FAULT_NONE;
}

static void touch(void *dst, const void *src, size_t bytes)
{
	const volatile unsigned char *at = src;
	(void)dst;
	for (size_t off = 0; off < bytes; off += PAGE_BYTES_MIN)
		(void)at[off];
	(void)at[bytes - 1];
}

bool dp_fault_readable(const void *at, size_t bytes)
{
	return bytes == 0 || dp_fault_copy(touch, NULL, at, bytes) == DP_FAULT_NONE;
}
