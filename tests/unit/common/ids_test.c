/* SPDX-License-Identifier: Apache-2.0
 * Identities survive the way to text and back; any other spelling is refused and leaves the output alone. */
#include "common/ids.h"

#include "tests/unit/cu.h"

static void round_trip(void)
{
	struct tn_id128 a, b = { { 0 } };
	struct tn_peer_id p, q = { { 0 } };
	for (size_t i = 0; i < sizeof a.b; i++)
		a.b[i] = (uint8_t)(i * 17 + 1);
	for (size_t i = 0; i < sizeof p.b; i++)
		p.b[i] = (uint8_t)(255 - i);
	char text[TN_ID128_HEX], ptext[TN_PEER_ID_HEX];
	tn_id128_to_hex(&a, text);
	tn_peer_id_to_hex(&p, ptext);
	CU_ASSERT_EQUAL(strlen(text), 32);
	CU_ASSERT_EQUAL(strlen(ptext), 64);
	CU_ASSERT_EQUAL(strncmp(text, "011223", 6), 0);
	CU_ASSERT_EQUAL(tn_id128_from_hex(text, &b), TN_OK);
	CU_ASSERT_EQUAL(tn_peer_id_from_hex(ptext, &q), TN_OK);
	CU_ASSERT_TRUE(tn_id128_eq(&a, &b));
	CU_ASSERT_TRUE(tn_id128_eq_secret(&a, &b));
	CU_ASSERT_TRUE(tn_peer_id_eq(&p, &q));
	b.b[15] ^= 1;
	CU_ASSERT_FALSE(tn_id128_eq(&a, &b));
	CU_ASSERT_FALSE(tn_id128_eq_secret(&a, &b));
	b.b[15] ^= 1;
	b.b[0] ^= 0x80;
	CU_ASSERT_FALSE(tn_id128_eq_secret(&a, &b));
}

static void other_spellings_are_refused(void)
{
	static const char *const wrong[] = { "", "0", "00112233445566778899aabbccddee", "00112233445566778899aabbccddeef",
	                                     "00112233445566778899aabbccddeeff0", "00112233445566778899AABBCCDDEEFF",
	                                     "00112233445566778899aabbccddeeg0", " 0112233445566778899aabbccddeeff" };
	struct tn_id128 id;
	memset(&id, 0x5a, sizeof id);
	struct tn_id128 before = id;
	for (size_t i = 0; i < TN_ARRAY_LEN(wrong); i++)
		CU_ASSERT_EQUAL(tn_id128_from_hex(wrong[i], &id), TN_INVALID);
	CU_ASSERT_TRUE(tn_id128_eq(&id, &before));
}

static void zero_means_none(void)
{
	struct tn_id128 id = { { 0 } };
	struct tn_peer_id p = { { 0 } };
	CU_ASSERT_TRUE(tn_id128_is_zero(&id));
	CU_ASSERT_TRUE(tn_peer_id_is_zero(&p));
	id.b[15] = 1;
	p.b[31] = 1;
	CU_ASSERT_FALSE(tn_id128_is_zero(&id));
	CU_ASSERT_FALSE(tn_peer_id_is_zero(&p));
}

static void names(void)
{
	char longest[TN_NAME_MAX + 1];
	memset(longest, 'a', sizeof longest);
	longest[TN_NAME_MAX] = '\0';
	CU_ASSERT_FALSE(tn_name_valid(longest));
	longest[TN_NAME_MAX - 1] = '\0';
	CU_ASSERT_TRUE(tn_name_valid(longest));
	CU_ASSERT_TRUE(tn_name_valid("kv-cache.0_b"));
	CU_ASSERT_TRUE(tn_name_valid("_x"));
	CU_ASSERT_FALSE(tn_name_valid(""));
	CU_ASSERT_FALSE(tn_name_valid(".hidden"));
	CU_ASSERT_FALSE(tn_name_valid("-flag"));
	CU_ASSERT_FALSE(tn_name_valid("a/b"));
	CU_ASSERT_FALSE(tn_name_valid("a b"));
	CU_ASSERT_FALSE(tn_name_valid("\xc3\xa4"));
}

static void handles(void)
{
	tn_handle h = tn_handle_make(7, 0x80000001u);
	CU_ASSERT_EQUAL(tn_handle_index(h), 7);
	CU_ASSERT_EQUAL(tn_handle_generation(h), 0x80000001u);
	CU_ASSERT_NOT_EQUAL(tn_handle_make(0, 1), 0);
}

TN_TEST_MAIN("common/ids", { "text and back", round_trip },
	{ "other spellings are refused", other_spellings_are_refused },
	{ "all zero means none", zero_means_none }, { "names", names }, { "handles", handles })
