/* SPDX-License-Identifier: Apache-2.0
 * Z85 of keys: the vector of ZeroMQ RFC 32, round trips, refusals. */
#include "common/z85.h"

#include "tests/unit/cu.h"

/* The key that the CURVE manual pages print. */
#define DOC_KEY "Yne@$w-vo<fVvi]a<NY6T1ed:M$fCG*[IaLV{hID"

static void rfc_vector(void)
{
	/* "HelloWorld" is 86 4F D2 6F B5 59 F7 5B */
	static const uint8_t hello[8] = { 0x86, 0x4f, 0xd2, 0x6f, 0xb5, 0x59, 0xf7, 0x5b };
	struct tn_peer_id id = { { 0 } };
	char text[TN_PEER_ID_Z85];

	memcpy(id.b, hello, sizeof hello);
	tn_peer_id_to_z85(&id, text);
	CU_ASSERT_STRING_EQUAL(text, "HelloWorld000000000000000000000000000000");
}

static void round_trips(void)
{
	struct tn_peer_id id, back;
	char text[TN_PEER_ID_Z85], hex[TN_PEER_ID_HEX];

	CU_ASSERT_EQUAL(tn_peer_id_from_z85(DOC_KEY, &id), TN_OK);
	tn_peer_id_to_z85(&id, text);
	CU_ASSERT_STRING_EQUAL(text, DOC_KEY);
	for (unsigned i = 0; i < 200; i++) {
		for (unsigned b = 0; b < sizeof id.b; b++)
			id.b[b] = (uint8_t)(i * 37 + b * 101 + (i << (b & 3)));
		tn_peer_id_to_z85(&id, text);
		CU_ASSERT_EQUAL(tn_peer_id_from_text(text, &back), TN_OK);
		CU_ASSERT_TRUE(tn_peer_id_eq(&id, &back));
		tn_peer_id_to_hex(&id, hex);
		CU_ASSERT_EQUAL(tn_peer_id_from_text(hex, &back), TN_OK);
		CU_ASSERT_TRUE(tn_peer_id_eq(&id, &back));
	}
	memset(id.b, 0xff, sizeof id.b);
	tn_peer_id_to_z85(&id, text);
	CU_ASSERT_EQUAL(tn_peer_id_from_z85(text, &back), TN_OK);
	CU_ASSERT_TRUE(tn_peer_id_eq(&id, &back));
}

static void refusals(void)
{
	static const char *const wrong[] = {
		"", "abc", "Yne@$w-vo<fVvi]a<NY6T1ed:M$fCG*[IaLV{hI", "Yne@$w-vo<fVvi]a<NY6T1ed:M$fCG*[IaLV{hIDD",
		"Yne@$w-vo<fVvi]a<NY6T1ed:M$fCG*[IaLV{hI ", "Yne@$w-vo<fVvi]a<NY6T1ed:M$fCG*[IaLV{hI~",
		"#####00000000000000000000000000000000000", "%nSc100000000000000000000000000000000000",
		"g000000000000000000000000000000000000000000000000000000000000000",
	};
	struct tn_peer_id id = { { 7 } };

	for (size_t i = 0; i < TN_ARRAY_LEN(wrong); i++)
		CU_ASSERT_EQUAL(tn_peer_id_from_text(wrong[i], &id), TN_INVALID);
	CU_ASSERT_EQUAL(id.b[0], 7);
	CU_ASSERT_EQUAL(tn_peer_id_from_text("%nSc000000000000000000000000000000000000", &id), TN_OK);   /* 2^32-1 */
	CU_ASSERT_EQUAL(id.b[0], 255);
}

TN_TEST_MAIN("common_z85", { "RFC vector", rfc_vector }, { "round trips", round_trips }, { "refusals", refusals })
