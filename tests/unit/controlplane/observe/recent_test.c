/* SPDX-License-Identifier: Apache-2.0
 * The memory of recent records: numbers and gaps, what a flood of sampled spans may push out and what not, the index
 * after everything in it was overwritten many times, and the set that a search collects. */
#include "controlplane/observe/recent.h"

#include "common/rand.h"
#include "common/trace.h"
#include "tests/unit/cu.h"

enum { SLOTS = 64, ALL_KINDS = -1 };
static const struct shr_event_clock wall = { 1000, 5000 };

static struct cp_recent *make(void)
{
	struct cp_recent *r = NULL;
	CU_ASSERT_EQUAL_FATAL(cp_recent_new(SLOTS, &r), TN_OK);
	return r;
}

static void add(struct cp_recent *r, unsigned kind, uint64_t request, uint64_t task, uint64_t trace, unsigned retention)
{
	struct shr_event_shm ev = { .kind = (uint8_t)kind, .mono_ns = 1200, .request_id = request, .task_id = task,
				    .trace_hi = trace * 7, .trace_lo = trace, .retention = (uint8_t)retention };
	cp_recent_add(r, &ev, &wall, 3);
}

static void failed(struct cp_recent *r, uint64_t request) { add(r, SHR_EVENT_REQUEST_FAILED, request, 0, request, 0); }
static void sampled(struct cp_recent *r, uint64_t request)
{
	add(r, SHR_EVENT_SPAN_TRANSFER, request, 0, request, TN_RETENTION_HEAD_SAMPLED);
}

static void numbers_tell_of_gaps(void)
{
	struct cp_recent *r = make();
	CU_ASSERT_PTR_NULL(cp_recent_after(r, 0));
	CU_ASSERT_EQUAL(cp_recent_last(r), 0);
	failed(r, 11);
	cp_recent_lost(r, 5);
	failed(r, 12);
	const struct cp_recent_item *i = cp_recent_after(r, 0);
	CU_ASSERT_TRUE_FATAL(i != NULL && i->number == 1 && i->ev.request_id == 11);
	CU_ASSERT_TRUE(i->real_ns == 5200 && i->engine == 3);
	i = cp_recent_after(r, 1);
	CU_ASSERT_TRUE_FATAL(i != NULL && i->number == 7 && i->ev.request_id == 12);
	CU_ASSERT_PTR_NULL(cp_recent_after(r, 7));
	cp_recent_lost(r, 1);
	CU_ASSERT_EQUAL(cp_recent_last(r), 8);
	cp_recent_free(r);
	cp_recent_free(NULL);
}

/* Whatever the two rings hold comes in the order of numbers, the youngest of each without a hole. */
static void read_in_order(void)
{
	struct cp_recent *r = make();
	for (uint64_t n = 1; n <= 1000; n++)
		n % 10 == 0 ? failed(r, n) : sampled(r, n);
	uint64_t at = 0, failures = 0, spans = 0;
	for (const struct cp_recent_item *i; (i = cp_recent_after(r, at)) != NULL; at = i->number) {
		CU_ASSERT_TRUE(i->number > at && i->number == i->ev.request_id);
		failures += i->ev.kind == SHR_EVENT_REQUEST_FAILED;
		spans += i->ev.kind == SHR_EVENT_SPAN_TRANSFER;
	}
	CU_ASSERT_TRUE(at == 1000 && failures == SLOTS && spans == SLOTS);
	const struct cp_recent_item *oldest = cp_recent_after(r, 0);
	CU_ASSERT_EQUAL(oldest->number, 1000 - 10 * (SLOTS - 1)); /* of the failures: many spans did not push it out */
	cp_recent_free(r);
}

static uint32_t find(const struct cp_recent *r, enum cp_recent_key key, uint64_t a, uint64_t b, struct cp_recent_set *set)
{
	*set = (struct cp_recent_set){ .max = CP_RECENT_SET_MAX, .kinds = UINT64_MAX };
	cp_recent_collect(r, key, a, b, set);
	return set->cnt;
}

/* Against a list of all that was ever added. */
static void index_finds_what_is_there(void)
{
	enum { N = 4000 };
	static uint64_t request[N + 1];
	struct cp_recent *r = make();
	struct tn_rand rand;
	struct cp_recent_set set;
	tn_rand_seed(&rand, 7);
	for (uint64_t n = 1; n <= N; n++) {
		request[n] = tn_rand_below(&rand, 40);
		add(r, SHR_EVENT_REQUEST_FAILED, request[n], request[n] / 4, request[n] / 2, 0);
		if (n % 97 != 0)
			continue;
		for (uint64_t key = 0; key < 40; key++) {
			uint32_t by_request = 0, by_task = 0, by_trace = 0;
			for (uint64_t o = n > SLOTS ? n - SLOTS + 1 : 1; o <= n; o++) {
				by_request += request[o] == key;
				by_task += request[o] / 4 == key;
				by_trace += request[o] / 2 == key;
			}
			CU_ASSERT_EQUAL(find(r, CP_RECENT_REQUEST, key, 0, &set), key == 0 ? 0 : by_request); /* 0 is nobody */
			for (uint32_t i = 1; i < set.cnt; i++)
				CU_ASSERT_TRUE(set.item[i - 1]->number < set.item[i]->number);
			CU_ASSERT_EQUAL(find(r, CP_RECENT_TASK, key, 0, &set), key == 0 ? 0 : by_task);
			CU_ASSERT_EQUAL(find(r, CP_RECENT_TRACE, key * 7, key, &set), key == 0 ? 0 : by_trace);
			CU_ASSERT_EQUAL(find(r, CP_RECENT_TRACE, key * 7 + 1, key, &set), 0);
		}
	}
	cp_recent_free(r);
}

static void sets_are_bounded_and_unique(void)
{
	struct cp_recent *r = make();
	struct cp_recent_set set = { .max = 4, .kinds = UINT64_MAX };
	for (unsigned n = 1; n <= 10; n++)
		add(r, n % 2 ? SHR_EVENT_ATTEMPT_FAILED : SHR_EVENT_SPAN_ATTEMPT, 21, 31, 41, n % 2 ? 0 : TN_RETENTION_SLOW);
	cp_recent_collect(r, CP_RECENT_REQUEST, 21, 0, &set);
	CU_ASSERT_TRUE(set.cnt == 4 && set.more && set.item[0]->number == 1 && set.item[3]->number == 4);
	cp_recent_collect(r, CP_RECENT_TASK, 31, 0, &set); /* the same ones */
	CU_ASSERT_TRUE(set.cnt == 4 && set.item[0]->number == 1 && set.item[3]->number == 4);
	set = (struct cp_recent_set){ .max = 4, .kinds = UINT64_MAX, .after = 8 };
	cp_recent_collect(r, CP_RECENT_REQUEST, 21, 0, &set);
	CU_ASSERT_TRUE(set.cnt == 2 && !set.more && set.item[0]->number == 9);
	set = (struct cp_recent_set){ .max = 64, .kinds = 1u << SHR_EVENT_SPAN_ATTEMPT };
	cp_recent_collect(r, CP_RECENT_TASK, 31, 0, &set);
	CU_ASSERT_EQUAL(set.cnt, 5);
	cp_recent_collect(r, CP_RECENT_REQUEST, 21, 0, &set);
	CU_ASSERT_TRUE(set.cnt == 5 && !set.more);
	set = (struct cp_recent_set){ .max = 64, .kinds = UINT64_MAX, .engine = 2 };
	cp_recent_collect(r, CP_RECENT_REQUEST, 21, 0, &set);
	CU_ASSERT_EQUAL(set.cnt, 0);
	CU_ASSERT_EQUAL(cp_recent_newest(r, CP_RECENT_REQUEST, 21, 0)->number, 10);
	CU_ASSERT_PTR_NULL(cp_recent_newest(r, CP_RECENT_REQUEST, 22, 0));
	cp_recent_free(r);
}

TN_TEST_MAIN("observe/recent", { "numbers tell of gaps", numbers_tell_of_gaps }, { "read in order", read_in_order },
	{ "the index finds what is there", index_finds_what_is_there },
	{ "sets are bounded and unique", sets_are_bounded_and_unique })
