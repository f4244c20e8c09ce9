/* SPDX-License-Identifier: Apache-2.0
 * text_buf, json_out and trace: bounds stick, numbers are exact, strings are always valid JSON, sampling is fair. */
#include "common/json_out.h"
#include "common/text_buf.h"
#include "common/trace.h"

#include <jansson.h>
#include <string.h>

#include "tests/unit/cu.h"

static void failure_sticks(void)
{
	struct tn_text t;
	size_t len = 99;
	tn_text_init(&t, 8);
	tn_text_str(&t, "12345678");
	CU_ASSERT_FALSE(t.failed);
	tn_text_char(&t, '9');
	CU_ASSERT_TRUE(t.failed);
	CU_ASSERT_EQUAL(t.len, 8);
	tn_text_add(&t, "", 0);
	CU_ASSERT_TRUE(t.failed);
	CU_ASSERT_PTR_NULL(tn_text_take(&t, &len));
	tn_text_reset(&t);
	tn_text_printf(&t, "%d-%s", 42, "ab");
	CU_ASSERT_STRING_EQUAL(t.p, "42-ab");
	tn_text_printf(&t, "%s", "too long for it");
	CU_ASSERT_TRUE(t.failed);
	tn_text_free(&t);
	char *p = tn_text_take(&t, &len);
	CU_ASSERT_PTR_NOT_NULL_FATAL(p);
	CU_ASSERT_EQUAL(len, 0);
	free(p);
}

static void number_is(uint64_t v, unsigned decimals, const char *want)
{
	struct tn_text t;
	tn_text_init(&t, 100);
	tn_text_fixed(&t, v, decimals);
	CU_ASSERT_STRING_EQUAL(t.p, want);
	tn_text_free(&t);
}

static void numbers_are_exact(void)
{
	number_is(0, 0, "0");
	number_is(0, 9, "0");
	number_is(1500, 3, "1.5");
	number_is(1000, 3, "1");
	number_is(5, 3, "0.005");
	number_is(1, 9, "0.000000001");
	number_is(123456789, 9, "0.123456789");
	number_is(UINT64_MAX, 0, "18446744073709551615");
	number_is(UINT64_MAX, 9, "18446744073.709551615");
	struct tn_text t;
	tn_text_init(&t, 100);
	tn_text_i64(&t, INT64_MIN);
	tn_text_i64(&t, 7);
	CU_ASSERT_STRING_EQUAL(t.p, "-92233720368547758087");
	tn_text_free(&t);
}

static void json_nests_and_escapes(void)
{
	struct tn_text t;
	struct tn_jout j;
	tn_text_init(&t, 4096);
	tn_jout_begin(&j, &t);
	tn_jout_str(&j, "a\"b", "x\\y\n\x01\x7f\xc3\xa9");
	tn_jout_array(&j, "list");
	tn_jout_u64(&j, NULL, 1);
	tn_jout_object(&j, NULL);
	tn_jout_close_object(&j);
	tn_jout_i64(&j, NULL, -1);
	tn_jout_close_array(&j);
	tn_jout_bool(&j, "t", true);
	tn_jout_str(&j, "none", NULL);
	tn_jout_fixed(&j, "f", 1500, 3);
	tn_jout_end(&j);
	CU_ASSERT_STRING_EQUAL(t.p, "{\"a\\\"b\":\"x\\\\y\\u000a\\u0001\\u007f\xc3\xa9\",\"list\":[1,{},-1],\"t\":true,"
				    "\"none\":null,\"f\":1.5}");
	tn_text_free(&t);
}

static void any_bytes_give_valid_json(void)
{
	/* every pair of bytes, and shapes that look like UTF-8 and are not */
	static const char *const odd[] = { "\xc0\x80", "\xe0\x80\x80", "\xed\xa0\x80", "\xf0\x80\x80\x80", "\xf4\x90\x80\x80",
		"\xf5\x80\x80\x80", "\xe2\x82", "\xf0\x9f\x98", "\xf0\x9f\x98\x80", "\xef\xbf\xbf" };
	for (unsigned i = 0; i < 65536 + TN_ARRAY_LEN(odd); i++) {
		char s[3] = { (char)(i >> 8), (char)i, 0 };
		struct tn_text t;
		struct tn_jout j;
		tn_text_init(&t, 256);
		tn_jout_begin(&j, &t);
		tn_jout_str(&j, "k", i < 65536 ? s : odd[i - 65536]);
		tn_jout_end(&j);
		json_t *doc = json_loadb(t.p, t.len, 0, NULL);
		if (!doc)
			CU_FAIL("not JSON");
		json_decref(doc);
		tn_text_free(&t);
	}
}

static void too_deep_fails(void)
{
	struct tn_text t;
	struct tn_jout j;
	tn_text_init(&t, 4096);
	tn_jout_begin(&j, &t);
	for (unsigned i = 1; i < TN_JOUT_DEPTH_MAX; i++)
		tn_jout_object(&j, "o");
	CU_ASSERT_FALSE(t.failed);
	tn_jout_object(&j, "o");
	CU_ASSERT_TRUE(t.failed);
	tn_text_free(&t);
}

static void sampling_is_fair_and_monotone(void)
{
	static const uint32_t rates[] = { 0, 1000, 50000, 500000, 1000000 };
	for (unsigned r = 0; r < TN_ARRAY_LEN(rates); r++) {
		unsigned kept = 0;
		for (uint64_t id = 0; id < 100000; id++) { /* counters as ids: the worst case */
			bool k = tn_trace_sampled(0, id, rates[r]);
			kept += k;
			if (r > 0 && tn_trace_sampled(0, id, rates[r - 1]) && !k)
				CU_FAIL("a larger rate lost an id");
			if (tn_trace_sampled(0, id, rates[r]) != k)
				CU_FAIL("not deterministic");
		}
		double want = 100000.0 * rates[r] / 1e6;
		CU_ASSERT_TRUE(kept >= want * 0.8 && kept <= want * 1.2);
	}
	CU_ASSERT_TRUE(tn_trace_sampled(UINT64_MAX, UINT64_MAX, TN_TRACE_PPM_MAX));
}

static void retention_prefers_the_strongest_reason(void)
{
	CU_ASSERT_EQUAL(tn_trace_retention(true, true, 9, 1, true), TN_RETENTION_TIMEOUT);
	CU_ASSERT_EQUAL(tn_trace_retention(false, true, 9, 1, true), TN_RETENTION_ERROR);
	CU_ASSERT_EQUAL(tn_trace_retention(false, false, 9, 9, true), TN_RETENTION_SLOW);
	CU_ASSERT_EQUAL(tn_trace_retention(false, false, 9, 0, true), TN_RETENTION_HEAD_SAMPLED);
	CU_ASSERT_EQUAL(tn_trace_retention(false, false, 9, 0, false), TN_RETENTION_NONE);
}

TN_TEST_MAIN("common/text", { "failure sticks", failure_sticks }, { "numbers are exact", numbers_are_exact },
	{ "JSON nests and escapes", json_nests_and_escapes }, { "any bytes give valid JSON", any_bytes_give_valid_json },
	{ "too deep fails", too_deep_fails }, { "sampling is fair and monotone", sampling_is_fair_and_monotone },
	{ "retention prefers the strongest reason", retention_prefers_the_strongest_reason })
