/* SPDX-License-Identifier: Apache-2.0
 * The table of batches: what it remembers, for how long, and what happens when it is full. */
#include "dataplane/libtent/batch.h"

#include "tests/unit/cu.h"

static struct lt_batches t;

static void forgets_what_went_well(void)
{
	CU_ASSERT_EQUAL_FATAL(lt_batches_init(&t, 16), TN_OK);
	for (uint32_t i = 1; i < 1000; i++) {
		uint32_t b = lt_batch_join(&t, i);
		CU_ASSERT_NOT_EQUAL_FATAL(b, LT_BATCH_NONE);
		CU_ASSERT_EQUAL(lt_batch_join(&t, i), b);
		lt_batch_leave(&t, b, true, true);
		lt_batch_leave(&t, b, true, true);
		CU_ASSERT_EQUAL(lt_batch_close(&t, i), LT_BATCH_NONE);
	}
	lt_batches_destroy(&t);
}

static void remembers_failures_until_the_notice(void)
{
	CU_ASSERT_EQUAL_FATAL(lt_batches_init(&t, 4), TN_OK);
	for (uint32_t i = 1; i <= 4; i++)
		lt_batch_leave(&t, lt_batch_join(&t, i), false, true);
	CU_ASSERT_EQUAL(lt_batch_join(&t, 5), LT_BATCH_NONE);
	CU_ASSERT_NOT_EQUAL(lt_batch_join(&t, 3), LT_BATCH_NONE);
	uint32_t b = lt_batch_close(&t, 2);
	CU_ASSERT_NOT_EQUAL_FATAL(b, LT_BATCH_NONE);
	CU_ASSERT_TRUE(t.entries[b].failed);
	CU_ASSERT_FALSE(t.entries[b].failed_unseen);
	lt_batches_forget_dataplane(&t);
	CU_ASSERT_TRUE(t.entries[b].failed_unseen);
	lt_batch_finish(&t, b);
	CU_ASSERT_NOT_EQUAL(lt_batch_join(&t, 5), LT_BATCH_NONE);
	lt_batches_destroy(&t);
}

static void a_closed_number_starts_anew(void)
{
	CU_ASSERT_EQUAL_FATAL(lt_batches_init(&t, 8), TN_OK);
	uint32_t first = lt_batch_join(&t, 7);
	CU_ASSERT_EQUAL(lt_batch_close(&t, 7), first);
	uint32_t second = lt_batch_join(&t, 7);
	CU_ASSERT_NOT_EQUAL(first, second);
	lt_batch_finish(&t, first);           /* its notice ends before its member */
	lt_batch_leave(&t, first, false, false);
	CU_ASSERT_FALSE(t.entries[second].failed);
	lt_batch_leave(&t, second, true, true);
	for (uint32_t i = 0; i < 8; i++)      /* nothing leaked */
		CU_ASSERT_NOT_EQUAL(lt_batch_join(&t, 100 + i), LT_BATCH_NONE);
	CU_ASSERT_EQUAL(lt_batch_join(&t, 200), LT_BATCH_NONE);
	lt_batches_destroy(&t);
}

TN_TEST_MAIN("libtent batch",
	{ "forgets what went well", forgets_what_went_well },
	{ "remembers failures until the notice", remembers_failures_until_the_notice },
	{ "a closed number starts anew", a_closed_number_starts_anew })
