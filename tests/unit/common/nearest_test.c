/* SPDX-License-Identifier: Apache-2.0
 * Edits between words, and which word is called near. */
#include <string.h>

#include "common/nearest.h"
#include "tests/unit/cu.h"

static void edit_distance(void)
{
	CU_ASSERT_EQUAL(tn_edit_distance("", ""), 0);
	CU_ASSERT_EQUAL(tn_edit_distance("abc", ""), 3);
	CU_ASSERT_EQUAL(tn_edit_distance("", "abc"), 3);
	CU_ASSERT_EQUAL(tn_edit_distance("abc", "abc"), 0);
	CU_ASSERT_EQUAL(tn_edit_distance("abc", "abd"), 1);
	CU_ASSERT_EQUAL(tn_edit_distance("abc", "acb"), 1);
	CU_ASSERT_EQUAL(tn_edit_distance("kitten", "sitting"), 3);
	CU_ASSERT_EQUAL(tn_edit_distance("ab", "bca"), 3);
	char a[400], b[400];
	memset(a, 'a', sizeof a);
	memset(b, 'b', sizeof b);
	a[399] = b[399] = '\0';
	CU_ASSERT_EQUAL(tn_edit_distance(a, b), 128);
}

static void nearest_within_a_limit(void)
{
	char near[16] = "";
	unsigned limit = tn_edit_limit(strlen("statsu")) + 1, best = limit;

	tn_keep_nearest("statsu", "segment", &best, near, sizeof near);
	CU_ASSERT_EQUAL(best, limit);
	tn_keep_nearest("statsu", "start", &best, near, sizeof near);
	tn_keep_nearest("statsu", "status", &best, near, sizeof near);
	CU_ASSERT_STRING_EQUAL(near, "status");
	tn_keep_nearest("statsu", "states", &best, near, sizeof near); /* not nearer */
	CU_ASSERT_STRING_EQUAL(near, "status");
	CU_ASSERT_EQUAL(best, 1);
}

TN_TEST_MAIN("nearest", { "edit distance", edit_distance }, { "the nearest within a limit", nearest_within_a_limit })
