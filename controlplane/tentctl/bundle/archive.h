/* SPDX-License-Identifier: Apache-2.0
 * The file of a bundle: a compressed tar with one folder, made for its owner alone. The only file that knows libarchive. One
 * thread. */
#ifndef TCTL_BUNDLE_ARCHIVE_H
#define TCTL_BUNDLE_ARCHIVE_H

#include <stdbool.h>
#include <stddef.h>

#include "common/status.h"

struct tctl_archive; /* opaque */

/* Make `path` (0600). Members go into the folder `folder`. EXISTS: there is such a file, which stays as it is. SYSTEM,
 * NO_MEMORY; err says why. */
tn_status tctl_archive_open(const char *path, const char *folder, struct tctl_archive **out, char *err, size_t err_bytes);
/* A member, mode 0600, of this second. SYSTEM: the file cannot be written. */
tn_status tctl_archive_add(struct tctl_archive *a, const char *name, const void *bytes, size_t n, char *err, size_t err_bytes);
/* Everything is on the disk, or (keep false, or SYSTEM) the file is gone. Frees in any case; NULL is nothing. */
tn_status tctl_archive_close(struct tctl_archive *a, bool keep, char *err, size_t err_bytes);

#endif
