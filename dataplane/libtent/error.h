/* SPDX-License-Identifier: Apache-2.0
 * The only writer of this thread's error text, and the place where statuses and closed label domains become words.
 * A text says where (the public function), why (the argument or the answer), and what to do. It never holds an
 * address of payload. Internal names of this library start with lt_; tent_ is the public API. Any thread. */
#ifndef LT_ERROR_H
#define LT_ERROR_H

#include <tent/tent.h>

#include "common/compiler.h"
#include "common/status.h"

/* Enough for the longest text; what does not fit is cut. */
#define LT_ERROR_BYTES 512

/* Writes this thread's text as "<fmt> (<status name>): <what to do>" and returns the status, so that a failing path
 * reads `return lt_fail(TN_RANGE, "tent_submit: ...", ...)`. Statuses that are not failures (OK, AGAIN, PENDING) leave
 * the text alone. */
TN_COLD tent_status lt_fail(tn_status status, const char *fmt, ...) TN_PRINTF(2, 3);

/* Same, for a system call: the status follows from `err` and the text names the errno. */
TN_COLD tent_status lt_fail_errno(int err, const char *fmt, ...) TN_PRINTF(2, 3);

#endif
