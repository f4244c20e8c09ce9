/* SPDX-License-Identifier: Apache-2.0
 * The heap of deadlines against a plain search, and the rate of a target: it follows what lasts, not what happens once. */
#include "dataplane/admission/deadline.h"

#include "common/clock.h"
#include "common/rand.h"
#include "tests/unit/cu.h"

#define OWNERS 300u
#define MBPS UINT64_C(1000000)

static bool earlier(const struct dp_owner *a, const struct dp_owner *b)
{
	return a->deadline_ns != b->deadline_ns ? a->deadline_ns < b->deadline_ns : a->owner_id < b->owner_id;
}

/* Random pushes, and removals of the first or of any: the root is always the earliest. */
static void test_heap(void)
{
	static struct dp_owner all[OWNERS];
	struct dp_owner *in[OWNERS];
	uint32_t in_cnt = 0, idle = OWNERS;
	struct dp_edf h = { 0 };
	struct tn_rand r;
	tn_rand_seed(&r, 5);
	struct dp_owner *out[OWNERS];
	for (uint32_t i = 0; i < OWNERS; i++)
		out[i] = &all[i];
	for (uint32_t i = 0; i < 40000; i++) {
		bool fills = i / 1000 % 2 == 0;
		if (idle > 0 && (in_cnt == 0 || tn_rand_below(&r, 10) < (fills ? 7 : 3))) {
			struct dp_owner *o = out[--idle];
			o->deadline_ns = tn_rand_below(&r, 100); /* many are equal */
			o->owner_id = i + 1;
			dp_edf_push(&h, o);
			in[in_cnt++] = o;
		} else if (in_cnt > 0) {
			uint32_t k = (uint32_t)tn_rand_below(&r, in_cnt);
			for (uint32_t j = 0; j < in_cnt && i % 2; j++)
				k = in[j] == h.root ? j : k;
			dp_edf_remove(&h, in[k]);
			out[idle++] = in[k];
			in[k] = in[--in_cnt];
		}
		struct dp_owner *first = NULL;
		for (uint32_t j = 0; j < in_cnt; j++)
			first = !first || earlier(in[j], first) ? in[j] : first;
		CU_ASSERT_PTR_EQUAL_FATAL(h.root, first);
	}
}

static void test_equal_deadlines(void)
{
	static struct dp_owner o[64];
	struct dp_edf h = { 0 };
	for (uint32_t i = 0; i < 64; i++) {
		o[i].deadline_ns = 9;
		o[i].owner_id = 100 + i;
	}
	for (uint32_t i = 0; i < 64; i++)
		dp_edf_push(&h, &o[i * 37 % 64]);
	for (uint32_t i = 0; i < 64; i++) {
		CU_ASSERT_PTR_EQUAL_FATAL(h.root, &o[i]);
		dp_edf_remove(&h, h.root);
	}
	CU_ASSERT_PTR_NULL(h.root);
}

static void feed(struct dp_rate *r, uint64_t bytes_per_s)
{
	dp_rate_feed(r, bytes_per_s / 1000, TN_NS_PER_MS, 1);
}

static uint64_t apart(uint64_t a, uint64_t b) { return a > b ? a - b : b - a; }

/* The new value weighs 1/8, not 7/8: what lasts is believed after 16 samples, from above and from below ... */
static void test_converges(void)
{
	static const uint64_t from[] = { 10 * MBPS, 5000 * MBPS };
	for (size_t i = 0; i < TN_ARRAY_LEN(from); i++) {
		struct dp_rate r = { 0 };
		uint64_t to = 500 * MBPS, start;
		feed(&r, from[i]);
		CU_ASSERT_EQUAL(r.bytes_per_s, from[i]);
		start = apart(from[i], to);
		for (int n = 0; n < 16; n++) {
			uint64_t before = apart(r.bytes_per_s, to);
			feed(&r, to);
			CU_ASSERT(apart(r.bytes_per_s, to) < before);
		}
		CU_ASSERT(apart(r.bytes_per_s, to) <= start / 8);
	}
	struct dp_rate r = { 0 };
	for (int n = 0; n < 16; n++)
		feed(&r, 500 * MBPS);
	CU_ASSERT_EQUAL(r.bytes_per_s, 500 * MBPS);
}

/* ... and what happens once moves it by an eighth of the way at most. */
static void test_outlier(void)
{
	static const uint64_t odd[] = { 0, 50 * MBPS, 1000 * MBPS, 100000 * MBPS };
	for (size_t i = 0; i < TN_ARRAY_LEN(odd); i++) {
		struct dp_rate r = { 0 };
		for (int n = 0; n < 20; n++)
			feed(&r, 500 * MBPS);
		feed(&r, odd[i]);
		CU_ASSERT(apart(r.bytes_per_s, 500 * MBPS) <= apart(odd[i], 500 * MBPS) / 8);
		CU_ASSERT(apart(r.bytes_per_s, 500 * MBPS) >= apart(odd[i], 500 * MBPS) / 8 - 1);
	}
}

/* Only the time in which something large was out counts, and many at once are not each as slow as all together. */
static void test_busy_time(void)
{
	struct dp_rate r = { 0 };
	uint64_t now = TN_NS_PER_S;
	for (int n = 0; n < 10; n++) { /* 1 MiB in 1 ms, then 99 ms of nothing */
		dp_rate_served(&r, 1 << 20, now, now + TN_NS_PER_MS);
		now += 100 * TN_NS_PER_MS;
	}
	CU_ASSERT(apart(r.bytes_per_s, 1000u << 20) < 1000);
	r = (struct dp_rate){ 0 };
	uint64_t began = now;
	for (int n = 1; n <= 16; n++) /* 16 at once, one ends each ms */
		dp_rate_served(&r, 1 << 20, began, began + (uint64_t)n * TN_NS_PER_MS);
	CU_ASSERT(apart(r.bytes_per_s, 1000u << 20) < 1000);
	r = (struct dp_rate){ 0 };
	for (int n = 0; n < 100; n++) {
		dp_rate_served(&r, 4096, now, now + 50000); /* says nothing about the rate */
		now += 100000;
	}
	CU_ASSERT_EQUAL(r.bytes_per_s, 0);
	dp_rate_served(&r, 1 << 20, now, now); /* in no time: with the next one */
	CU_ASSERT_EQUAL(r.bytes_per_s, 0);
	dp_rate_served(&r, 1 << 20, now, now + 2 * TN_NS_PER_MS);
	CU_ASSERT(apart(r.bytes_per_s, 1000u << 20) < 1000);
}

static void test_feasible(void)
{
	struct dp_rate r = { 0 };
	CU_ASSERT_EQUAL(dp_rate_permille(&r, 1 << 30, 1, 5), 0); /* nobody knows */
	dp_rate_feed(&r, 1000, 1000, 5);                         /* 1 byte/ns */
	CU_ASSERT_EQUAL(dp_rate_permille(&r, 500, 1000, 5), 500);
	CU_ASSERT_EQUAL(dp_rate_permille(&r, 1000, 1000, 5), 1000);
	CU_ASSERT(dp_rate_permille(&r, 1002, 1000, 5) > 1000);
	CU_ASSERT_EQUAL(dp_rate_permille(&r, 1000, 0, 5), UINT16_MAX);
	CU_ASSERT_EQUAL(dp_rate_permille(&r, UINT64_MAX, 1, 5), UINT16_MAX);
	CU_ASSERT(dp_rate_permille(&r, 5000, 1000, 5 + DP_RATE_FRESH_NS) > 1000);
	CU_ASSERT_EQUAL(dp_rate_permille(&r, 5000, 1000, 6 + DP_RATE_FRESH_NS), 0); /* too old to refuse anybody */
}

TN_TEST_MAIN("deadline",
	{ "the root is the earliest", test_heap },
	{ "equal deadlines keep their order", test_equal_deadlines },
	{ "a rate that lasts is believed after 16 samples", test_converges },
	{ "an outlier moves the rate by an eighth", test_outlier },
	{ "a rate counts busy time and large blocks", test_busy_time },
	{ "can it be over in time", test_feasible },
)
