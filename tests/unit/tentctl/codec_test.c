/* SPDX-License-Identifier: Apache-2.0
 * SHA-256 against published vectors; the trailer and the put notice against hostile bytes. */
#include <stdlib.h>
#include <string.h>

#include "controlplane/tentctl/trailer.h"
#include "tests/unit/cu.h"

/* FIPS 180-4 examples. */
static void sha256_vectors(void)
{
	static const struct { const char *text, *hex; } cases[] = {
		{ "", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" },
		{ "abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" },
		{ "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
		  "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1" },
	};
	uint8_t d[TCTL_SHA256_BYTES];
	char hex[TCTL_SHA256_HEX];
	for (size_t i = 0; i < TN_ARRAY_LEN(cases); i++) {
		CU_ASSERT_TRUE(tctl_sha256_of(cases[i].text, strlen(cases[i].text), d));
		tctl_sha256_hex(d, hex);
		CU_ASSERT_STRING_EQUAL(hex, cases[i].hex);
	}
	struct tctl_sha256 *s = tctl_sha256_new();
	char block[1000];
	memset(block, 'a', sizeof block);
	for (int i = 0; i < 1000; i++) /* a million, in odd pieces */
		for (size_t at = 0, n = 1; at < sizeof block; at += n, n = TN_MIN(n + 7, sizeof block - at))
			tctl_sha256_add(s, block + at, n);
	CU_ASSERT_TRUE(tctl_sha256_end(s, d));
	tctl_sha256_hex(d, hex);
	CU_ASSERT_STRING_EQUAL(hex, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
	tctl_sha256_free(NULL);
}

static const struct tctl_trailer good = { .content = TCTL_CONTENT_READY, .capacity = 10000, .content_bytes = 9999,
					  .sequence = UINT64_MAX, .sha256 = { 1, 2, 3 },
					  .verdicts = { { 77, TCTL_PUT_DONE }, { 76, TCTL_PUT_MISMATCH } } };
enum { SEGMENT_BYTES = 12288 + 4096 };

static void trailer_round_trip(void)
{
	uint8_t page[TCTL_TRAILER_BYTES];
	char err[TN_ERR_TEXT];
	struct tctl_trailer t;
	tctl_trailer_encode(&good, page);
	CU_ASSERT_EQUAL_FATAL(tctl_trailer_decode(page, SEGMENT_BYTES, &t, err), TN_OK);
	CU_ASSERT_EQUAL(t.content, good.content);
	CU_ASSERT_EQUAL(t.capacity, good.capacity);
	CU_ASSERT_EQUAL(t.content_bytes, good.content_bytes);
	CU_ASSERT_EQUAL(t.sequence, good.sequence);
	for (unsigned i = 0; i < TCTL_VERDICTS; i++) {
		CU_ASSERT_EQUAL(t.verdicts[i].nonce, good.verdicts[i].nonce);
		CU_ASSERT_EQUAL(t.verdicts[i].result, good.verdicts[i].result);
	}
	CU_ASSERT_EQUAL(memcmp(t.sha256, good.sha256, sizeof t.sha256), 0);
}

static void trailer_torn(void)
{
	uint8_t page[TCTL_TRAILER_BYTES];
	char err[TN_ERR_TEXT];
	struct tctl_trailer t;
	for (unsigned i = 0; i < TCTL_TRAILER_SEAL_OFF + TCTL_SHA256_BYTES; i++) {
		tctl_trailer_encode(&good, page);
		page[i] ^= 0x40;
		tn_status want = i < 8 ? TN_NOT_FOUND : i < 12 ? TN_UNSUPPORTED : TN_AGAIN;
		CU_ASSERT_EQUAL(tctl_trailer_decode(page, SEGMENT_BYTES, &t, err), want);
	}
	memset(page, 0, sizeof page);
	CU_ASSERT_EQUAL(tctl_trailer_decode(page, SEGMENT_BYTES, &t, err), TN_NOT_FOUND);
	memset(page, 0xff, sizeof page);
	CU_ASSERT_EQUAL(tctl_trailer_decode(page, SEGMENT_BYTES, &t, err), TN_NOT_FOUND);
}

/* Rewrite a field and seal the page again, as a stranger could. */
static tn_status forged(unsigned at, uint64_t value, unsigned bytes, uint64_t segment_bytes)
{
	uint8_t page[TCTL_TRAILER_BYTES];
	char err[TN_ERR_TEXT] = "";
	struct tctl_trailer t;
	memcpy(&t, &good, sizeof t); /* padding too: it is compared */
	tctl_trailer_encode(&good, page);
	for (unsigned i = 0; i < bytes; i++)
		page[at + i] = (uint8_t)(value >> (8 * i));
	if (!tctl_sha256_of(page, TCTL_TRAILER_SEAL_OFF, page + TCTL_TRAILER_SEAL_OFF))
		abort();
	tn_status s = tctl_trailer_decode(page, segment_bytes, &t, err);
	if (s != TN_OK)
		CU_ASSERT_EQUAL(memcmp(&t, &good, sizeof t), 0); /* untouched */
	CU_ASSERT_TRUE(s == TN_OK || err[0] != '\0');
	return s;
}

/* The last eight are known, whatever order they end in. */
static void verdicts_are_remembered(void)
{
	struct tctl_trailer t = good;
	for (uint64_t nonce = 100; nonce < 100 + TCTL_VERDICTS + 1; nonce++)
		tctl_trailer_judge(&t, nonce, TCTL_PUT_NONE);
	CU_ASSERT_PTR_NULL(tctl_trailer_verdict(&t, 77));
	CU_ASSERT_PTR_NULL(tctl_trailer_verdict(&t, 100));
	CU_ASSERT_EQUAL(t.verdicts[0].nonce, 100 + TCTL_VERDICTS);
	tctl_trailer_judge(&t, 101, TCTL_PUT_MISMATCH);
	CU_ASSERT_EQUAL_FATAL(t.verdicts[TCTL_VERDICTS - 1].nonce, 101);
	CU_ASSERT_EQUAL(tctl_trailer_verdict(&t, 101)->result, TCTL_PUT_MISMATCH);
	CU_ASSERT_EQUAL(tctl_trailer_verdict(&t, 102)->result, TCTL_PUT_NONE);
}

static void trailer_hostile(void)
{
	CU_ASSERT_EQUAL(forged(12, TCTL_CONTENT_EMPTY, 4, SEGMENT_BYTES), TN_OK);
	CU_ASSERT_EQUAL(forged(12, TCTL_CONTENT_CNT, 4, SEGMENT_BYTES), TN_INVALID);
	CU_ASSERT_EQUAL(forged(12, UINT32_MAX, 4, SEGMENT_BYTES), TN_INVALID);
	CU_ASSERT_EQUAL(forged(16, UINT64_MAX, 8, SEGMENT_BYTES), TN_INVALID);
	CU_ASSERT_EQUAL(forged(16, UINT64_MAX - 4095, 8, SEGMENT_BYTES), TN_INVALID);
	CU_ASSERT_EQUAL(forged(16, TCTL_CAPACITY_MAX + 1, 8, SEGMENT_BYTES), TN_INVALID);
	CU_ASSERT_EQUAL(forged(16, 12288, 8, SEGMENT_BYTES), TN_OK);
	CU_ASSERT_EQUAL(forged(16, 12289, 8, SEGMENT_BYTES), TN_INVALID);
	CU_ASSERT_EQUAL(forged(16, 0, 8, SEGMENT_BYTES), TN_INVALID);
	CU_ASSERT_EQUAL(forged(24, 10000, 8, SEGMENT_BYTES), TN_OK);
	CU_ASSERT_EQUAL(forged(24, 10001, 8, SEGMENT_BYTES), TN_INVALID);
	CU_ASSERT_EQUAL(forged(24, UINT64_MAX, 8, SEGMENT_BYTES), TN_INVALID);
	for (unsigned i = 0; i < TCTL_VERDICTS; i++) {
		CU_ASSERT_EQUAL(forged(80 + 16 * i, TCTL_PUT_CNT, 4, SEGMENT_BYTES), TN_INVALID);
		CU_ASSERT_EQUAL(forged(80 + 16 * i, TCTL_PUT_CNT - 1, 4, SEGMENT_BYTES), TN_OK);
	}
	CU_ASSERT_EQUAL(forged(32, 0, 8, SEGMENT_BYTES + 4096), TN_INVALID);
}

static void sizes(void)
{
	uint64_t off = 7;
	CU_ASSERT_EQUAL(tctl_trailer_segment_bytes(0), 4096);
	CU_ASSERT_EQUAL(tctl_trailer_segment_bytes(1), 8192);
	CU_ASSERT_EQUAL(tctl_trailer_segment_bytes(4096), 8192);
	CU_ASSERT_EQUAL(tctl_trailer_segment_bytes(TCTL_CAPACITY_MAX), TCTL_CAPACITY_MAX + 4096);
	CU_ASSERT_EQUAL(tctl_trailer_segment_bytes(TCTL_CAPACITY_MAX + 1), 0);
	CU_ASSERT_EQUAL(tctl_trailer_segment_bytes(UINT64_MAX), 0);
	CU_ASSERT_FALSE(tctl_trailer_offset(0, &off));
	CU_ASSERT_FALSE(tctl_trailer_offset(4095, &off));
	CU_ASSERT_FALSE(tctl_trailer_offset(4097, &off));
	CU_ASSERT_EQUAL(off, 7);
	CU_ASSERT_TRUE(tctl_trailer_offset(4096, &off));
	CU_ASSERT_EQUAL(off, 0);
}

static void notices(void)
{
	uint8_t b[TCTL_PUT_NOTICE_BYTES + 1] = { 0 };
	const struct tctl_put_notice n = { .nonce = 0x0102030405060708, .content_bytes = 1u << 31, .sha256 = { 9 } };
	struct tctl_put_notice got;
	tctl_put_notice_encode(&n, b);
	CU_ASSERT_TRUE(tctl_put_notice_decode(b, TCTL_PUT_NOTICE_BYTES, &got));
	CU_ASSERT_EQUAL(got.nonce, n.nonce);
	CU_ASSERT_EQUAL(got.content_bytes, n.content_bytes);
	CU_ASSERT_EQUAL(memcmp(got.sha256, n.sha256, sizeof n.sha256), 0);
	for (size_t len = 0; len <= sizeof b; len++)
		CU_ASSERT_EQUAL(tctl_put_notice_decode(b, len, &got), len == TCTL_PUT_NOTICE_BYTES);
	b[24] = 1; /* reserved */
	CU_ASSERT_FALSE(tctl_put_notice_decode(b, TCTL_PUT_NOTICE_BYTES, &got));
	b[24] = 0;
	b[0] = 't';
	CU_ASSERT_FALSE(tctl_put_notice_decode(b, TCTL_PUT_NOTICE_BYTES, &got));
	b[0] = 'T';
	memset(b + 8, 0, 8); /* no nonce */
	CU_ASSERT_FALSE(tctl_put_notice_decode(b, TCTL_PUT_NOTICE_BYTES, &got));
}

TN_TEST_MAIN("tentctl codec",
	{ "SHA-256 of the published vectors", sha256_vectors },
	{ "a trailer comes back as it was", trailer_round_trip },
	{ "a trailer that is half another is noticed", trailer_torn },
	{ "the verdicts of the last puts are remembered", verdicts_are_remembered },
	{ "a sealed trailer with hostile values is refused", trailer_hostile },
	{ "sizes and places", sizes },
	{ "notices, whole and cut", notices })
