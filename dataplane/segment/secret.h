/* SPDX-License-Identifier: Apache-2.0
 * Memory for tickets: pages of their own that stay out of core dumps and are wiped before they are given back. For
 * set-up objects only (a page at least per object). Any thread. */
#ifndef DP_SEGMENT_SECRET_H
#define DP_SEGMENT_SECRET_H

#include <stddef.h>

/* Zeroed; NULL when memory is short. */
void *dp_secret_alloc(size_t bytes);
/* `bytes` as at alloc. NULL is fine. */
void dp_secret_free(void *p, size_t bytes);

#endif
