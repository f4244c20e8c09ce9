/* SPDX-License-Identifier: Apache-2.0
 * Codec of file segments. The page carries a hash of itself: a READ that overlaps with the publisher's store may see
 * half of it, and must notice. */
#include "controlplane/tentctl/trailer.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const uint8_t page_magic[8] = { 'T', 'E', 'N', 'T', 'F', 'I', 'L', 'E' };
static const uint8_t notice_magic[8] = { 'T', 'E', 'N', 'T', 'P', 'U', 'T', '1' };

/* Offsets in the page; everything is little-endian. */
enum {
	AT_VERSION = 8, AT_CONTENT = 12, AT_CAPACITY = 16, AT_CONTENT_BYTES = 24, AT_SEQUENCE = 32, AT_SHA256 = 40,
	AT_VERDICTS = 72, VERDICT_BYTES = 16, AT_SEAL = TCTL_TRAILER_SEAL_OFF,
};

static void put_le(uint8_t *p, uint64_t v, unsigned bytes)
{
	for (unsigned i = 0; i < bytes; i++)
		p[i] = (uint8_t)(v >> (8 * i));
}

static uint64_t get_le(const uint8_t *p, unsigned bytes)
{
	uint64_t v = 0;
	for (unsigned i = 0; i < bytes; i++)
		v |= (uint64_t)p[i] << (8 * i);
	return v;
}

static uint64_t whole_pages(uint64_t bytes)
{
	return (bytes + TCTL_TRAILER_BYTES - 1) / TCTL_TRAILER_BYTES * TCTL_TRAILER_BYTES;
}

uint64_t tctl_trailer_segment_bytes(uint64_t capacity)
{
	return capacity <= TCTL_CAPACITY_MAX ? whole_pages(capacity) + TCTL_TRAILER_BYTES : 0;
}

bool tctl_trailer_offset(uint64_t segment_bytes, uint64_t *offset_out)
{
	if (segment_bytes < TCTL_TRAILER_BYTES || segment_bytes % TCTL_TRAILER_BYTES != 0)
		return false;
	*offset_out = segment_bytes - TCTL_TRAILER_BYTES;
	return true;
}

void tctl_trailer_encode(const struct tctl_trailer *t, uint8_t page[static TCTL_TRAILER_BYTES])
{
	memset(page, 0, TCTL_TRAILER_BYTES);
	memcpy(page, page_magic, sizeof page_magic);
	put_le(page + AT_VERSION, TCTL_TRAILER_VERSION, 4);
	put_le(page + AT_CONTENT, t->content, 4);
	put_le(page + AT_CAPACITY, t->capacity, 8);
	put_le(page + AT_CONTENT_BYTES, t->content_bytes, 8);
	put_le(page + AT_SEQUENCE, t->sequence, 8);
	memcpy(page + AT_SHA256, t->sha256, sizeof t->sha256);
	for (unsigned i = 0; i < TCTL_VERDICTS; i++) {
		uint8_t *at = page + AT_VERDICTS + i * VERDICT_BYTES;
		put_le(at, t->verdicts[i].nonce, 8);
		put_le(at + 8, t->verdicts[i].result, 4);
	}
	/* cannot fail once the process has hashed anything; a wrong seal reads as "changing" and never as good */
	(void)tctl_sha256_of(page, AT_SEAL, page + AT_SEAL);
}

static tn_status refuse(char err[static TN_ERR_TEXT], tn_status s, const char *what, uint64_t value)
{
	snprintf(err, TN_ERR_TEXT, "the segment's trailer is wrong: %s is %" PRIu64, what, value);
	return s;
}

tn_status tctl_trailer_decode(const uint8_t page[static TCTL_TRAILER_BYTES], uint64_t segment_bytes,
			      struct tctl_trailer *out, char err[static TN_ERR_TEXT])
{
	uint8_t seal[TCTL_SHA256_BYTES];
	struct tctl_trailer t;
	uint64_t version = get_le(page + AT_VERSION, 4), content = get_le(page + AT_CONTENT, 4);
	if (memcmp(page, page_magic, sizeof page_magic) != 0)
		return TN_NOT_FOUND;
	if (version != TCTL_TRAILER_VERSION) {
		snprintf(err, TN_ERR_TEXT, "the segment's trailer has version %" PRIu64 ", this tentctl knows %u",
			 version, TCTL_TRAILER_VERSION);
		return TN_UNSUPPORTED;
	}
	if (!tctl_sha256_of(page, AT_SEAL, seal)) {
		snprintf(err, TN_ERR_TEXT, "libcrypto cannot hash");
		return TN_INTERNAL;
	}
	if (memcmp(seal, page + AT_SEAL, sizeof seal) != 0) {
		snprintf(err, TN_ERR_TEXT, "the segment's trailer is being rewritten, or damaged");
		return TN_AGAIN;
	}
	t.capacity = get_le(page + AT_CAPACITY, 8);
	t.content_bytes = get_le(page + AT_CONTENT_BYTES, 8);
	t.sequence = get_le(page + AT_SEQUENCE, 8);
	memcpy(t.sha256, page + AT_SHA256, sizeof t.sha256);
	if (t.capacity > TCTL_CAPACITY_MAX || tctl_trailer_segment_bytes(t.capacity) != segment_bytes)
		return refuse(err, TN_INVALID, "capacity", t.capacity);
	if (t.content_bytes > t.capacity)
		return refuse(err, TN_INVALID, "content length", t.content_bytes);
	if (content >= TCTL_CONTENT_CNT)
		return refuse(err, TN_INVALID, "state", content);
	for (unsigned i = 0; i < TCTL_VERDICTS; i++) {
		const uint8_t *at = page + AT_VERDICTS + i * VERDICT_BYTES;
		uint64_t result = get_le(at + 8, 4);
		if (result >= TCTL_PUT_CNT)
			return refuse(err, TN_INVALID, "put result", result);
		t.verdicts[i] = (struct tctl_verdict){ get_le(at, 8), (enum tctl_put_result)result };
	}
	t.content = (enum tctl_content)content;
	*out = t;
	return TN_OK;
}

/* ---- verdicts ---- */

const struct tctl_verdict *tctl_trailer_verdict(const struct tctl_trailer *t, uint64_t nonce)
{
	for (unsigned i = 0; i < TCTL_VERDICTS; i++)
		if (t->verdicts[i].nonce == nonce)
			return &t->verdicts[i];
	return NULL;
}

void tctl_trailer_judge(struct tctl_trailer *t, uint64_t nonce, enum tctl_put_result result)
{
	const struct tctl_verdict *known = tctl_trailer_verdict(t, nonce);
	size_t place = known != NULL ? (size_t)(known - t->verdicts) : 0;
	if (known == NULL)
		memmove(t->verdicts + 1, t->verdicts, sizeof t->verdicts - sizeof t->verdicts[0]);
	t->verdicts[place] = (struct tctl_verdict){ nonce, result };
}

/* ---- notice: magic, nonce, content bytes, 8 zero bytes, SHA-256 ---- */

void tctl_put_notice_encode(const struct tctl_put_notice *n, uint8_t out[static TCTL_PUT_NOTICE_BYTES])
{
	memset(out, 0, TCTL_PUT_NOTICE_BYTES);
	memcpy(out, notice_magic, sizeof notice_magic);
	put_le(out + 8, n->nonce, 8);
	put_le(out + 16, n->content_bytes, 8);
	memcpy(out + 32, n->sha256, sizeof n->sha256);
}

bool tctl_put_notice_decode(const uint8_t *bytes, size_t n, struct tctl_put_notice *out)
{
	if (n != TCTL_PUT_NOTICE_BYTES || memcmp(bytes, notice_magic, sizeof notice_magic) != 0 ||
	    get_le(bytes + 8, 8) == 0 || get_le(bytes + 24, 8) != 0)
		return false;
	out->nonce = get_le(bytes + 8, 8);
	out->content_bytes = get_le(bytes + 16, 8);
	memcpy(out->sha256, bytes + 32, sizeof out->sha256);
	return true;
}
