/* SPDX-License-Identifier: Apache-2.0
 * Tells parent and child apart after fork(), for one load per call: the kernel wipes one page of ours in every child,
 * also after a bare clone(). What was opened in the parent carries the parent's mark. Any thread. */
#ifndef LT_FORK_H
#define LT_FORK_H

#include <stdbool.h>
#include <stdint.h>

#include "common/atomic.h"
#include "common/status.h"

/* The wiped page; set by the first lt_fork_mark() of the process, before any object exists. */
extern const tn_a32 *lt_fork_page;

/* This process's mark, never 0. TN_OK, TN_NO_MEMORY. */
tn_status lt_fork_mark(uint32_t *mark_out);

/* True when the holder of `mark` was made in another process, before a fork. */
TN_INLINE bool lt_forked(uint32_t mark) { return tn_load_relaxed32(lt_fork_page) != mark; }

#endif
