/* SPDX-License-Identifier: Apache-2.0
 * Every status has its texts, names are unique and lead back, and errno values land in the right group. */
#include "common/status.h"

#include <errno.h>
#include <string.h>

#include "tests/unit/cu.h"

static const tn_status all[] = {
#define X(name, value, text, meaning, todo) TN_##name,
	TN_STATUS_LIST(X)
#undef X
};

static void texts(void)
{
	for (size_t i = 0; i < TN_ARRAY_LEN(all); i++) {
		CU_ASSERT_STRING_NOT_EQUAL(tn_status_name(all[i]), "unknown");
		CU_ASSERT(strlen(tn_status_meaning(all[i])) > 0);
		CU_ASSERT_PTR_NOT_NULL(tn_status_todo(all[i]));
		tn_status back = TN_INTERNAL;
		CU_ASSERT_TRUE(tn_status_from_name(tn_status_name(all[i]), &back));
		CU_ASSERT_EQUAL(back, all[i]);
	}
	CU_ASSERT_STRING_EQUAL(tn_status_name(TN_PEER_STALE), "peer_stale");
	CU_ASSERT_STRING_EQUAL(tn_status_name((tn_status)-9999), "unknown");
	CU_ASSERT_STRING_EQUAL(tn_status_meaning((tn_status)77), "unknown");
	CU_ASSERT_STRING_EQUAL(tn_status_todo((tn_status)77), "unknown");
	tn_status kept = TN_BUSY;
	CU_ASSERT_FALSE(tn_status_from_name("no such status", &kept));
	CU_ASSERT_EQUAL(kept, TN_BUSY);
}

static void errno_values(void)
{
	CU_ASSERT_EQUAL(tn_status_from_errno(0), TN_OK);
	CU_ASSERT_EQUAL(tn_status_from_errno(EAGAIN), TN_AGAIN);
	CU_ASSERT_EQUAL(tn_status_from_errno(ENOMEM), TN_NO_MEMORY);
	CU_ASSERT_EQUAL(tn_status_from_errno(ECONNRESET), TN_PATH_DOWN);
	CU_ASSERT_EQUAL(tn_status_from_errno(ETIMEDOUT), TN_PATH_TIMEOUT);
	CU_ASSERT_EQUAL(tn_status_from_errno(EACCES), TN_PERMISSION);
	CU_ASSERT_EQUAL(tn_status_from_errno(ENOENT), TN_NOT_FOUND);
	CU_ASSERT_EQUAL(tn_status_from_errno(EMFILE), TN_LIMIT);
	CU_ASSERT_EQUAL(tn_status_from_errno(EIO), TN_SYSTEM);
}

TN_TEST_MAIN("common/status", { "texts", texts }, { "errno values", errno_values })
