/* SPDX-License-Identifier: Apache-2.0
 * One descriptor held back for the moment when none is left. Given up, it makes room to accept one connection and say no,
 * which would else keep its listener readable for ever. No locking: its owner's thread, or its owner's lock. */
#ifndef TN_SPARE_FD_H
#define TN_SPARE_FD_H

#include <stdbool.h>

struct tn_spare_fd { int fd; /* -1: not held */ };
#define TN_SPARE_FD_NONE { .fd = -1 }

/* Holds one, again if it was given up. False: none is to be had. */
bool tn_spare_fd_keep(struct tn_spare_fd *s);
/* Gives it up; also at the end. False: it was not held, so there is no more room than before. */
bool tn_spare_fd_give(struct tn_spare_fd *s);

#endif
