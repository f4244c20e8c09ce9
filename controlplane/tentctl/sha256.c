/* SPDX-License-Identifier: Apache-2.0
 * The only file of tentctl that knows libcrypto: its SHA-256 uses the CPU's instructions where there are any, which is
 * the difference between hashing at the speed of the network and waiting for the hash. */
#include "controlplane/tentctl/sha256.h"

#include <stdio.h>
#include <stdlib.h>

#include <openssl/evp.h>

struct tctl_sha256 {
	EVP_MD_CTX *md;
	bool failed;
};

struct tctl_sha256 *tctl_sha256_new(void)
{
	struct tctl_sha256 *s = calloc(1, sizeof *s);
	if (s == NULL)
		return NULL;
	s->md = EVP_MD_CTX_new();
	if (s->md == NULL || EVP_DigestInit_ex(s->md, EVP_sha256(), NULL) != 1) {
		tctl_sha256_free(s);
		return NULL;
	}
	return s;
}

void tctl_sha256_add(struct tctl_sha256 *s, const void *bytes, size_t n)
{
	if (EVP_DigestUpdate(s->md, bytes, n) != 1)
		s->failed = true;
}

bool tctl_sha256_end(struct tctl_sha256 *s, uint8_t out[static TCTL_SHA256_BYTES])
{
	unsigned n = 0;
	bool ok = !s->failed && EVP_DigestFinal_ex(s->md, out, &n) == 1 && n == TCTL_SHA256_BYTES;
	tctl_sha256_free(s);
	return ok;
}

void tctl_sha256_free(struct tctl_sha256 *s)
{
	if (s == NULL)
		return;
	EVP_MD_CTX_free(s->md);
	free(s);
}

bool tctl_sha256_of(const void *bytes, size_t n, uint8_t out[static TCTL_SHA256_BYTES])
{
	struct tctl_sha256 *s = tctl_sha256_new();
	if (s == NULL)
		return false;
	tctl_sha256_add(s, bytes, n);
	return tctl_sha256_end(s, out);
}

void tctl_sha256_hex(const uint8_t digest[static TCTL_SHA256_BYTES], char out[static TCTL_SHA256_HEX])
{
	for (unsigned i = 0; i < TCTL_SHA256_BYTES; i++)
		snprintf(out + 2 * i, 3, "%02x", digest[i]);
}
