/* SPDX-License-Identifier: Apache-2.0
 * Mailbox: order, full and empty, index wrap, and two threads at full speed. */
#include "shm-ring/mailbox.h"

#include <pthread.h>
#include <sched.h>

#include "common/clock.h"
#include "tests/unit/cu.h"

struct rec {
	uint64_t n, twin;
	uint8_t odd[5];
};

static void bounds(void)
{
	struct shr_mailbox mb = { 0 };
	CU_ASSERT_EQUAL(shr_mailbox_create(&mb, 0, 8), TN_INVALID);
	CU_ASSERT_EQUAL(shr_mailbox_create(&mb, 8, 0), TN_INVALID);
	CU_ASSERT_EQUAL(shr_mailbox_create(&mb, 8, 6), TN_INVALID);
	CU_ASSERT_EQUAL(shr_mailbox_create(&mb, 5000, 8), TN_INVALID);
	shr_mailbox_destroy(&mb);
}

static void full_and_empty_over_the_wrap(void)
{
	struct shr_mailbox mb;
	CU_ASSERT_EQUAL_FATAL(shr_mailbox_create(&mb, 4, 4), TN_OK);
	mb.tail = mb.head = UINT32_MAX - 1; /* both indices wrap during the test */
	mb.tail_seen = mb.head_seen = UINT32_MAX - 1;
	uint32_t v, next_in = 0, next_out = 0;
	for (int round = 0; round < 5; round++) {
		CU_ASSERT_FALSE(shr_mailbox_pending(&mb));
		CU_ASSERT_FALSE(shr_mailbox_pop(&mb, &v));
		for (int i = 0; i < 4; i++, next_in++)
			CU_ASSERT(shr_mailbox_push(&mb, &next_in));
		CU_ASSERT_FALSE(shr_mailbox_push(&mb, &next_in));
		CU_ASSERT(shr_mailbox_pending(&mb));
		for (int i = 0; i < 4; i++, next_out++) {
			CU_ASSERT(shr_mailbox_pop(&mb, &v));
			CU_ASSERT_EQUAL(v, next_out);
		}
	}
	shr_mailbox_destroy(&mb);
}

#define RECORDS 300000u
static void *producer(void *arg)
{
	struct shr_mailbox *mb = arg;
	for (uint64_t n = 0; n < RECORDS;) {
		struct rec r = { .n = n, .twin = ~n };
		if (shr_mailbox_push(mb, &r))
			n++;
		else
			sched_yield();
	}
	return NULL;
}

static void two_threads(void)
{
	struct shr_mailbox mb;
	CU_ASSERT_EQUAL_FATAL(shr_mailbox_create(&mb, sizeof(struct rec), 64), TN_OK);
	pthread_t t;
	CU_ASSERT_EQUAL_FATAL(pthread_create(&t, NULL, producer, &mb), 0);
	uint64_t deadline = tn_now_ns() + 20 * TN_NS_PER_S, n = 0, wrong = 0;
	while (n < RECORDS && tn_now_ns() < deadline) {
		struct rec r;
		if (!shr_mailbox_pop(&mb, &r)) {
			sched_yield();
			continue;
		}
		wrong += r.n != n || r.twin != ~n;
		n++;
	}
	CU_ASSERT_EQUAL(n, RECORDS);
	CU_ASSERT_EQUAL(wrong, 0);
	if (n != RECORDS)
		abort(); /* the producer would never end */
	pthread_join(t, NULL);
	shr_mailbox_destroy(&mb);
}

TN_TEST_MAIN("shm-ring/mailbox",
	{ "illegal shapes are refused", bounds },
	{ "full, empty, order, across the index wrap [X1] [X2]", full_and_empty_over_the_wrap },
	{ "two threads lose and tear nothing [X1] [X2]", two_threads })
