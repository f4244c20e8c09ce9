/* SPDX-License-Identifier: Apache-2.0
 * The table of batches: what it remembers, for how long, and what happens when it is full. */
#include "dataplane/libtent/batch.h"

#include "dataplane/libtent/queue.h"
#include "tests/unit/cu.h"

static struct lt_batches t;

static uint64_t begin;

/* Applications may number batches and never notify. */
static void the_oldest_that_went_well_makes_room(void)
{
	CU_ASSERT_EQUAL_FATAL(lt_batches_init(&t, 16), TN_OK);
	for (uint32_t i = 1; i <= 1000; i++) {
		uint32_t b = lt_batch_join(&t, i, i);
		CU_ASSERT_NOT_EQUAL_FATAL(b, LT_BATCH_NONE);
		CU_ASSERT_EQUAL(lt_batch_join(&t, i, 5000), b);
		lt_batch_leave(&t, b, true, true);
		lt_batch_leave(&t, b, true, true);
	}
	/* The last 16 are known by when they began, however long they have been over. */
	for (uint32_t i = 985; i <= 1000; i++) {
		uint32_t b = lt_batch_close(&t, i, 6000, &begin);
		CU_ASSERT_NOT_EQUAL_FATAL(b, LT_BATCH_NONE);
		CU_ASSERT_EQUAL(begin, i);
		lt_batch_finish(&t, b);
	}
	CU_ASSERT_EQUAL(lt_batch_close(&t, 984, 6000, &begin), LT_BATCH_NONE);
	CU_ASSERT_EQUAL(begin, 0); /* may be as old as anything */
	lt_batches_destroy(&t);
}

static void an_unknown_number_begins_now(void)
{
	CU_ASSERT_EQUAL_FATAL(lt_batches_init(&t, 4), TN_OK);
	CU_ASSERT_EQUAL(lt_batch_close(&t, 9, 70, &begin), LT_BATCH_NONE);
	CU_ASSERT_EQUAL(begin, 70);
	lt_batches_destroy(&t);
}

static void a_member_more_keeps_its_batch(void)
{
	CU_ASSERT_EQUAL_FATAL(lt_batches_init(&t, 4), TN_OK);
	for (uint32_t i = 1; i <= 4; i++)
		lt_batch_leave(&t, lt_batch_join(&t, i, i), true, true);
	uint32_t b = lt_batch_join(&t, 2, 90); /* runs again; 1 is the oldest idle one, then 3 */
	CU_ASSERT_NOT_EQUAL(lt_batch_join(&t, 5, 91), LT_BATCH_NONE);
	CU_ASSERT_NOT_EQUAL(lt_batch_join(&t, 6, 92), LT_BATCH_NONE);
	CU_ASSERT_NOT_EQUAL(lt_batch_join(&t, 7, 93), LT_BATCH_NONE);
	CU_ASSERT_EQUAL(lt_batch_join(&t, 8, 94), LT_BATCH_NONE); /* all run */
	CU_ASSERT_EQUAL(lt_batch_close(&t, 2, 95, &begin), b);
	CU_ASSERT_EQUAL(begin, 2);
	lt_batches_destroy(&t);
}

static void remembers_failures_until_the_notice(void)
{
	CU_ASSERT_EQUAL_FATAL(lt_batches_init(&t, 4), TN_OK);
	for (uint32_t i = 1; i <= 4; i++)
		lt_batch_leave(&t, lt_batch_join(&t, i, 0), false, true);
	CU_ASSERT_EQUAL(lt_batch_join(&t, 5, 0), LT_BATCH_NONE);
	CU_ASSERT_NOT_EQUAL(lt_batch_join(&t, 3, 0), LT_BATCH_NONE);
	uint32_t b = lt_batch_close(&t, 2, 0, &begin);
	CU_ASSERT_NOT_EQUAL_FATAL(b, LT_BATCH_NONE);
	CU_ASSERT_TRUE(t.entries[b].failed);
	CU_ASSERT_FALSE(t.entries[b].failed_unseen);
	lt_batches_forget_dataplane(&t);
	CU_ASSERT_TRUE(t.entries[b].failed_unseen);
	lt_batch_finish(&t, b);
	CU_ASSERT_NOT_EQUAL(lt_batch_join(&t, 5, 0), LT_BATCH_NONE);
	lt_batches_destroy(&t);
}

static void a_closed_number_starts_anew(void)
{
	CU_ASSERT_EQUAL_FATAL(lt_batches_init(&t, 8), TN_OK);
	uint32_t first = lt_batch_join(&t, 7, 0);
	CU_ASSERT_EQUAL(lt_batch_close(&t, 7, 0, &begin), first);
	uint32_t second = lt_batch_join(&t, 7, 0);
	CU_ASSERT_NOT_EQUAL(first, second);
	lt_batch_finish(&t, first);           /* its notice ends before its member */
	lt_batch_leave(&t, first, false, false);
	CU_ASSERT_FALSE(t.entries[second].failed);
	lt_batch_leave(&t, second, true, true);
	for (uint32_t i = 0; i < 8; i++)      /* nothing leaked */
		CU_ASSERT_NOT_EQUAL(lt_batch_join(&t, 100 + i, 0), LT_BATCH_NONE);
	CU_ASSERT_EQUAL(lt_batch_join(&t, 200, 0), LT_BATCH_NONE);
	lt_batches_destroy(&t);
}

#if TENT_HOOKS
static uint32_t seen;
static void see(enum lt_machine m, unsigned from, unsigned to)
{
	seen += m == LT_MACHINE_SLOT && from == LT_SLOT_FREE && to == LT_SLOT_HELD;
}
#endif

static void an_observer_sees_the_moves(void)
{
#if TENT_HOOKS
	struct lt_slot slot = { .state = LT_SLOT_FREE };
	lt_move_seen = see;
	lt_slot_move(&slot, LT_SLOT_HELD);
	lt_move_seen = NULL;
	CU_ASSERT_EQUAL(seen, 1);
#endif
}

TN_TEST_MAIN("libtent batch",
	{ "an observer sees the moves", an_observer_sees_the_moves },
	{ "the oldest that went well makes room", the_oldest_that_went_well_makes_room },
	{ "an unknown number begins now", an_unknown_number_begins_now },
	{ "a member more keeps its batch", a_member_more_keeps_its_batch },
	{ "remembers failures until the notice", remembers_failures_until_the_notice },
	{ "a closed number starts anew", a_closed_number_starts_anew })
