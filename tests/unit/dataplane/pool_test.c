/* SPDX-License-Identifier: Apache-2.0
 * Shares of the pools: one client alone, several greedy ones, and whoever comes later; everything comes back. */
#include "dataplane/request/pool.h"

#include "tests/unit/cu.h"

#define CAP 1024u

static struct dp_pools p;
static struct dp_request *taken[CAP];
static uint32_t cnt;

static uint32_t take_all(uint32_t client)
{
	uint32_t before = cnt;
	for (struct dp_request *r; (r = dp_request_new(&p, client)) != NULL;)
		taken[cnt++] = r;
	return cnt - before;
}

static void give_all(void)
{
	while (cnt > 0)
		dp_request_discard(&p, taken[--cnt]);
	CU_ASSERT_EQUAL(p.requests.live, 0);
}

static void nobody_takes_everything(void)
{
	CU_ASSERT_EQUAL_FATAL(dp_pools_init(&p, 0, CAP, 8), TN_OK);
	CU_ASSERT_EQUAL(take_all(7), CAP / 2);
	CU_ASSERT_EQUAL(take_all(9), CAP / 4); /* it came late, and found room */
	CU_ASSERT_TRUE(take_all(4095) > 0);
	give_all();
	for (uint32_t i = 0; i < 3 * CAP / 2; i++) { /* all at once: a quarter each, and a quarter is left */
		struct dp_request *r = dp_request_new(&p, i % 3);
		if (r != NULL)
			taken[cnt++] = r;
	}
	for (uint32_t c = 0; c < 3; c++)
		CU_ASSERT_TRUE(p.requests.held[c] >= CAP / 4 - 1 && p.requests.held[c] <= CAP / 4 + 1);
	CU_ASSERT_TRUE(dp_pool_room(&p.requests) >= CAP / 4 - 3);
	give_all();
	for (uint32_t c = 0; c < 3; c++)
		CU_ASSERT_EQUAL(p.requests.held[c], 0);
	dp_pools_destroy(&p);
}

static void batches_and_payloads_too(void)
{
	struct dp_batch *b[CAP];
	uint32_t batches = 0;

	CU_ASSERT_EQUAL_FATAL(dp_pools_init(&p, 0, CAP, 8), TN_OK);
	while ((b[batches] = dp_batch_new(&p, 1)) != NULL)
		batches++;
	CU_ASSERT_EQUAL(batches, CAP / 2);
	struct dp_batch *other = dp_batch_new(&p, 2);
	CU_ASSERT_PTR_NOT_NULL_FATAL(other);
	dp_batch_free(&p, other);
	while (batches > 0)
		dp_batch_free(&p, b[--batches]);
	CU_ASSERT_EQUAL(p.batches.live, 0);
	for (uint32_t i = 0; i < 5; i++) {
		struct dp_request *r = dp_request_new(&p, 3);
		taken[cnt++] = r;
		r->note = dp_note_new(&p, r);
		CU_ASSERT_TRUE((r->note != NULL) == (i < 4));
	}
	struct dp_request *r = taken[cnt++] = dp_request_new(&p, 4);
	CU_ASSERT_PTR_NOT_NULL(r->note = dp_note_new(&p, r));
	give_all();
	CU_ASSERT_EQUAL(p.notes.live, 0);
	dp_pools_destroy(&p);
}

TN_TEST_MAIN("pool", { "nobody takes everything", nobody_takes_everything },
	     { "batches and payloads too", batches_and_payloads_too })
