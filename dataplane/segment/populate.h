/* SPDX-License-Identifier: Apache-2.0
 * Enters pages that exist already into this process's page table, a stretch at a time, so that workers do not take a
 * fault for each page of a first transfer. Pure system calls on one mapping; any thread. */
#ifndef DP_SEGMENT_POPULATE_H
#define DP_SEGMENT_POPULATE_H

#include <stdbool.h>
#include <stdint.h>

/* Goes on from byte `from` (0, or what it returned) of the mapping for about budget_ns (at least one piece of 4 MiB,
 * about 2 ms) and returns where it got to: `bytes` when there is nothing more to do, also where the kernel does not
 * offer it. Only what is resident is entered: a hole stays a hole, nothing is allocated in our name.
 * write: the mapping is writable, and so are the entries. Nothing is ever written. */
uint64_t dp_populate(uint8_t *base, uint64_t bytes, bool write, uint64_t from, uint64_t budget_ns);

#endif
