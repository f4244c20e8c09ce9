/* SPDX-License-Identifier: Apache-2.0
 * Percentiles stay within the promised error of the sorted values, over the whole range, and merging loses nothing. */
#include "common/hist.h"

#include <stdlib.h>

#include "common/rand.h"
#include "tests/unit/cu.h"

static struct tn_loghist h, other;

static int by_value(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;
	return (*x > *y) - (*x < *y);
}

static void empty_and_single(void)
{
	tn_loghist_reset(&h);
	CU_ASSERT_EQUAL(tn_loghist_percentile(&h, 50), 0);
	CU_ASSERT_EQUAL(tn_loghist_mean(&h), 0);
	tn_loghist_add(&h, 1000003);
	CU_ASSERT_EQUAL(tn_loghist_percentile(&h, 0), 1000003);
	CU_ASSERT_EQUAL(tn_loghist_percentile(&h, 50), 1000003);
	CU_ASSERT_EQUAL(tn_loghist_percentile(&h, 100), 1000003);
	CU_ASSERT_EQUAL(tn_loghist_mean(&h), 1000003);
}

static void extremes(void)
{
	tn_loghist_reset(&h);
	tn_loghist_add(&h, 0);
	tn_loghist_add(&h, UINT64_MAX);
	CU_ASSERT_EQUAL(h.min, 0);
	CU_ASSERT_EQUAL(h.max, UINT64_MAX);
	CU_ASSERT_EQUAL(tn_loghist_percentile(&h, 50), 0);
	CU_ASSERT_EQUAL(tn_loghist_percentile(&h, 50.1), UINT64_MAX);
	for (unsigned bit = 0; bit < 64; bit++) {   /* the edge of each bucket row stays inside the array and in order */
		tn_loghist_reset(&h);
		uint64_t v = UINT64_C(1) << bit;
		tn_loghist_add(&h, v - 1);
		tn_loghist_add(&h, v);
		CU_ASSERT(tn_loghist_percentile(&h, 50) >= v - 1);
		CU_ASSERT_EQUAL(tn_loghist_percentile(&h, 100), v);
	}
}

static void within_the_error(void)
{
	enum { N = 20000 };
	static uint64_t v[N];
	static const double pcts[] = { 1, 10, 50, 90, 99, 99.9, 99.99 };
	struct tn_rand r;
	tn_rand_seed(&r, 11);
	tn_loghist_reset(&h);
	for (int i = 0; i < N; i++) {
		v[i] = tn_rand_u64(&r) >> tn_rand_below(&r, 60);
		tn_loghist_add(&h, v[i]);
	}
	qsort(v, N, sizeof v[0], by_value);
	CU_ASSERT_EQUAL(h.min, v[0]);
	CU_ASSERT_EQUAL(h.max, v[N - 1]);
	for (size_t i = 0; i < TN_ARRAY_LEN(pcts); i++) {
		double exact_rank = N * pcts[i] / 100;
		size_t rank = (size_t)exact_rank + ((double)(size_t)exact_rank < exact_rank);
		double exact = (double)v[rank - 1], got = (double)tn_loghist_percentile(&h, pcts[i]);
		CU_ASSERT(got >= exact);
		CU_ASSERT(got <= exact * 1.016 + 1);
	}
}

static void merging(void)
{
	tn_loghist_reset(&h);
	tn_loghist_reset(&other);
	tn_loghist_merge(&h, &other);
	CU_ASSERT_EQUAL(h.cnt, 0);
	for (uint64_t i = 1; i <= 100; i++)
		tn_loghist_add(i % 2 ? &h : &other, i);
	tn_loghist_merge(&h, &other);
	CU_ASSERT_EQUAL(h.cnt, 100);
	CU_ASSERT_EQUAL(h.min, 1);
	CU_ASSERT_EQUAL(h.max, 100);
	CU_ASSERT_EQUAL(tn_loghist_percentile(&h, 50), 50);
	CU_ASSERT_EQUAL(tn_loghist_percentile(&h, 99), 99);
	CU_ASSERT_EQUAL(tn_loghist_mean(&h), 50.5);
}

TN_TEST_MAIN("common/hist", { "empty and single", empty_and_single }, { "extremes", extremes },
	{ "percentiles are within the error", within_the_error }, { "merging", merging })
