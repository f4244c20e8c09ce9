/* SPDX-License-Identifier: Apache-2.0
 * Pages of applications' memory that cannot be had: no huge page is left, a memory limit is reached, the hardware lost
 * it. The kernel raises SIGBUS at the instruction that touches one. Here is the only place that lives through it, and
 * only inside of a range that a caller named for the length of one call; anywhere else the signal ends the process as
 * it should. Nothing here makes a system call or takes a lock. */
#ifndef DP_SEGMENT_FAULT_H
#define DP_SEGMENT_FAULT_H

#include <stdbool.h>
#include <stddef.h>

#include "common/compiler.h"
#include "common/status.h"

/* Take SIGBUS for this process; before threads are made. SYSTEM. Without it a bad page ends the process. */
TN_MUST_USE tn_status dp_fault_install(void);

/* Whose page it was. */
enum dp_fault { DP_FAULT_NONE = 0, DP_FAULT_DST, DP_FAULT_SRC };

/* copy(dst, src, bytes), or the side whose page cannot be had; then any part of dst may be written, nothing outside of
 * it. SIGBUS must not be blocked in the calling thread. `copy` leaves nothing behind when it is abandoned (no lock, no
 * memory, no state of its own). Any thread; not from inside of another guarded call. */
enum dp_fault dp_fault_copy(void (*copy)(void *dst, const void *src, size_t bytes), void *dst, const void *src,
                            size_t bytes);

/* Can every page of the range be read now? Touches each; a page that was never used is made. Same rules. */
bool dp_fault_readable(const void *at, size_t bytes);

#endif
