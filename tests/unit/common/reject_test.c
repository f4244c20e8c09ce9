/* SPDX-License-Identifier: Apache-2.0
 * Reasons in one word, and their words. */
#include "common/reject.h"

#include <string.h>

#include "tests/unit/cu.h"

#define X(n, s, m) n,
enum { TN_REJECT_LIST(X) CNT };
#undef X

static void test_text(void)
{
	char text[TN_REJECT_TEXT];
	uint8_t why[TN_TRANSPORT_CNT] = { [TN_TRANSPORT_SHM] = OFF, [TN_TRANSPORT_RDMA] = NOT_BUILT };
	CU_ASSERT_STRING_EQUAL(tn_reject_text(tn_reject_pack(why), text), "rdma not_built, shm off");
	CU_ASSERT_STRING_EQUAL(tn_reject_text(0, text), "");
	CU_ASSERT_STRING_EQUAL(tn_reject_name(CNT), "invalid");
	CU_ASSERT_STRING_EQUAL(tn_reject_meaning(CNT), "");
}

/* What a damaged record may hold, and the longest that a good one does. */
static void test_room(void)
{
	char text[TN_REJECT_TEXT];
	CU_ASSERT_STRING_EQUAL(tn_reject_text(UINT64_MAX, text), "rdma invalid, hp_tcp invalid, tcp invalid, shm invalid");
	for (unsigned reason = 0; reason < CNT; reason++) {
		uint8_t why[TN_TRANSPORT_CNT];
		memset(why, (int)reason, sizeof why);
		CU_ASSERT(strlen(tn_reject_text(tn_reject_pack(why), text)) < sizeof text - 1);
	}
}

TN_TEST_MAIN("reject", { "packed and read", test_text }, { "room for anything", test_room })
