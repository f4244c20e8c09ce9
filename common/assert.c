/* SPDX-License-Identifier: Apache-2.0
 * The last words of a process whose own reasoning failed. Any thread; write(2) only, so that a broken heap or a held
 * lock cannot swallow the message. */
#include "common/assert.h"

#include <execinfo.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

void tn_assert_fail(const char *file, int line, const char *function, const char *expr)
{
	char text[512];
	int n = snprintf(text, sizeof text, "%s:%d: %s: assertion failed: %s\n", file, line, function, expr);
	size_t len = n < 0 ? 0 : TN_MIN((size_t)n, sizeof text - 1);
	if (write(STDERR_FILENO, text, len) == (ssize_t)len) {
		void *frames[64];
		backtrace_symbols_fd(frames, backtrace(frames, TN_ARRAY_LEN(frames)), STDERR_FILENO);
	}
	abort();
}
