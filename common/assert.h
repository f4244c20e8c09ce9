/* SPDX-License-Identifier: Apache-2.0
 * Checks of our own reasoning. What a client, peer, file or config says is never asserted: it is checked and refused.
 * A failed check prints where, what and a backtrace to stderr, then aborts. Any thread. */
#ifndef TN_ASSERT_H
#define TN_ASSERT_H

#include "common/compiler.h"

/* Prints "file:line: function: assertion failed: expr" and a backtrace; aborts. Takes no lock. */
TN_NORETURN TN_COLD void tn_assert_fail(const char *file, int line, const char *function, const char *expr);

/* Stays on in every build: for checks that are cheap beside the work they guard. */
#define tn_assert(cond) (tn_likely(cond) ? (void)0 : tn_assert_fail(__FILE__, __LINE__, __func__, #cond))

/* Off with NDEBUG; the expression is still compiled, but never evaluated. */
#ifdef NDEBUG
#define tn_assert_debug(cond) ((void)sizeof(!(cond)))
#else
#define tn_assert_debug(cond) tn_assert(cond)
#endif

/* A place that cannot be reached, such as the end of a switch over an enum of ours. */
#define tn_unreachable() tn_assert_fail(__FILE__, __LINE__, __func__, "unreachable")

#endif
