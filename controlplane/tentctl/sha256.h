/* SPDX-License-Identifier: Apache-2.0
 * SHA-256 of a stream. One owner thread per object. */
#ifndef TCTL_SHA256_H
#define TCTL_SHA256_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TCTL_SHA256_BYTES 32
#define TCTL_SHA256_HEX 65 /* with the NUL */

struct tctl_sha256; /* opaque */

/* NULL: no memory, or libcrypto refuses the algorithm. */
struct tctl_sha256 *tctl_sha256_new(void);
void tctl_sha256_add(struct tctl_sha256 *s, const void *bytes, size_t n);
/* The digest of all that was added; the object is freed. False: libcrypto failed, out is undefined. */
bool tctl_sha256_end(struct tctl_sha256 *s, uint8_t out[static TCTL_SHA256_BYTES]);
/* Gives up; NULL is fine. */
void tctl_sha256_free(struct tctl_sha256 *s);
/* Of one buffer. */
bool tctl_sha256_of(const void *bytes, size_t n, uint8_t out[static TCTL_SHA256_BYTES]);
void tctl_sha256_hex(const uint8_t digest[static TCTL_SHA256_BYTES], char out[static TCTL_SHA256_HEX]);

#endif
