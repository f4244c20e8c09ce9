/* SPDX-License-Identifier: Apache-2.0
 * A regular file that is read from front to back, and must not change its length meanwhile. */
#ifndef TCTL_INFILE_H
#define TCTL_INFILE_H

#include <stddef.h>
#include <stdint.h>

#include "common/status.h"

struct tctl_infile {
	int fd;
	const char *path; /* borrowed */
	uint64_t bytes;   /* its length when it was opened */
	uint64_t at;      /* read so far */
};

/* INVALID: not a regular file. TOO_BIG: longer than max_bytes. Else of errno. err says why; nothing is left open. */
tn_status tctl_infile_open(struct tctl_infile *f, const char *path, uint64_t max_bytes, char *err, size_t err_bytes);
/* The next n bytes, n <= bytes - at. INVALID: the file became shorter. CANCELED: tctl_stopped(). */
tn_status tctl_infile_read(struct tctl_infile *f, void *to, size_t n, char *err, size_t err_bytes);
/* After the last read: INVALID when the file grew. */
tn_status tctl_infile_at_end(struct tctl_infile *f, char *err, size_t err_bytes);
void tctl_infile_close(struct tctl_infile *f);

#endif
