/* SPDX-License-Identifier: Apache-2.0
 * The three standard descriptors of a program. Whoever starts it may have closed some of them; the next file or socket that
 * is opened would take such a number, and what is printed would go into it. */
#ifndef TN_STD_FDS_H
#define TN_STD_FDS_H

#include <stdbool.h>

#include "common/compiler.h"

/* Opens /dev/null for reading where 0, 1 or 2 is closed, so that writing there still fails (EBADF) and a program notices
 * that its answer went nowhere. First thing in main(), before any thread. False: one is closed and cannot be opened. */
TN_MUST_USE bool tn_std_fds_open(void);

#endif
