/* SPDX-License-Identifier: Apache-2.0
 * Durations and sizes as people write them: exact values, refusals, and texts that parse back. */
#include "common/units.h"

#include "common/rand.h"
#include "tests/unit/cu.h"

static void durations(void)
{
	static const struct { const char *text; tn_status st; uint64_t ns; } t[] = {
		{ "0", TN_OK, 0 }, { "0s", TN_OK, 0 }, { "10ms", TN_OK, 10000000 }, { "2s", TN_OK, 2000000000 },
		{ "500us", TN_OK, 500000 }, { "1.5s", TN_OK, 1500000000 }, { "0.1s", TN_OK, 100000000 },
		{ "0.3ms", TN_OK, 300000 }, { "1.0000000019s", TN_OK, 1000000001 }, { "7ns", TN_OK, 7 }, { "0.9ns", TN_OK, 0 },
		{ "2m", TN_OK, UINT64_C(120000000000) }, { "1h", TN_OK, UINT64_C(3600000000000) },
		{ "1d", TN_OK, UINT64_C(86400000000000) }, { "18446744073709551615ns", TN_OK, UINT64_MAX },
		{ "18446744073709551616ns", TN_RANGE, 0 }, { "99999999999999999999d", TN_RANGE, 0 }, { "300000d", TN_RANGE, 0 },
		{ "", TN_INVALID, 0 }, { "10", TN_INVALID, 0 }, { "ms", TN_INVALID, 0 }, { "10 ms", TN_INVALID, 0 },
		{ "-1s", TN_INVALID, 0 }, { "+1s", TN_INVALID, 0 }, { "1.s", TN_INVALID, 0 }, { ".5s", TN_INVALID, 0 },
		{ "1S", TN_INVALID, 0 }, { "1e3s", TN_INVALID, 0 }, { "10msx", TN_INVALID, 0 }, { "1.2.3s", TN_INVALID, 0 },
	};
	for (size_t i = 0; i < TN_ARRAY_LEN(t); i++) {
		uint64_t ns = 12345;
		CU_ASSERT_EQUAL(tn_duration_parse(t[i].text, &ns), t[i].st);
		CU_ASSERT_EQUAL(ns, t[i].st == TN_OK ? t[i].ns : 12345);
	}
}

static void sizes(void)
{
	static const struct { const char *text; tn_status st; uint64_t bytes; } t[] = {
		{ "0", TN_OK, 0 }, { "4096", TN_OK, 4096 }, { "64K", TN_OK, 65536 }, { "64KB", TN_OK, 65536 },
		{ "64KiB", TN_OK, 65536 }, { "1M", TN_OK, 1 << 20 }, { "1.5MiB", TN_OK, 3 << 19 },
		{ "2G", TN_OK, UINT64_C(2) << 30 },
		{ "1T", TN_OK, UINT64_C(1) << 40 }, { "9B", TN_OK, 9 }, { "20000000T", TN_RANGE, 0 }, { "k", TN_INVALID, 0 },
		{ "1k", TN_INVALID, 0 }, { "1KiBs", TN_INVALID, 0 }, { "0x10", TN_INVALID, 0 }, { "", TN_INVALID, 0 },
	};
	for (size_t i = 0; i < TN_ARRAY_LEN(t); i++) {
		uint64_t bytes = 12345;
		CU_ASSERT_EQUAL(tn_bytes_parse(t[i].text, &bytes), t[i].st);
		CU_ASSERT_EQUAL(bytes, t[i].st == TN_OK ? t[i].bytes : 12345);
	}
}

static void texts_for_people(void)
{
	char b[TN_UNITS_TEXT];
	CU_ASSERT_STRING_EQUAL(tn_duration_format(0, b), "0s");
	CU_ASSERT_STRING_EQUAL(tn_duration_format(850, b), "850ns");
	CU_ASSERT_STRING_EQUAL(tn_duration_format(1500, b), "1.50us");
	CU_ASSERT_STRING_EQUAL(tn_duration_format(12345678, b), "12.3ms");
	CU_ASSERT_STRING_EQUAL(tn_duration_format(999999999, b), "1000ms");
	CU_ASSERT_STRING_EQUAL(tn_duration_format(UINT64_C(12300000000), b), "12.3s");
	CU_ASSERT_STRING_EQUAL(tn_duration_format(UINT64_C(245000000000), b), "4m05s");
	CU_ASSERT_STRING_EQUAL(tn_duration_format(UINT64_C(12000000000000), b), "3h20m");
	CU_ASSERT_STRING_EQUAL(tn_duration_format(UINT64_C(183600000000000), b), "2d03h");
	CU_ASSERT_STRING_EQUAL(tn_bytes_format(0, b), "0B");
	CU_ASSERT_STRING_EQUAL(tn_bytes_format(512, b), "512B");
	CU_ASSERT_STRING_EQUAL(tn_bytes_format(1536, b), "1.50KiB");
	CU_ASSERT_STRING_EQUAL(tn_bytes_format(UINT64_C(123) << 30, b), "123GiB");
	CU_ASSERT(strlen(tn_bytes_format(UINT64_MAX, b)) < TN_UNITS_TEXT);
	CU_ASSERT(strlen(tn_duration_format(UINT64_MAX, b)) < TN_UNITS_TEXT);
	CU_ASSERT(*tn_plural(1) == '\0' && strcmp(tn_plural(0), "s") == 0 && strcmp(tn_plural(2), "s") == 0);
}

static void exact_texts_parse_back(void)
{
	char b[TN_UNITS_TEXT];
	CU_ASSERT_STRING_EQUAL(tn_duration_format_exact(10000000, b), "10ms");
	CU_ASSERT_STRING_EQUAL(tn_duration_format_exact(1500000, b), "1500us");
	CU_ASSERT_STRING_EQUAL(tn_duration_format_exact(0, b), "0s");
	CU_ASSERT_STRING_EQUAL(tn_bytes_format_exact(65536, b), "64KiB");
	CU_ASSERT_STRING_EQUAL(tn_bytes_format_exact(1000, b), "1000B");
	struct tn_rand r;
	tn_rand_seed(&r, 7);
	for (int i = 0; i < 2000; i++) {
		uint64_t v = tn_rand_u64(&r) >> tn_rand_below(&r, 64), w = 0;
		v &= ~UINT64_C(0) << tn_rand_below(&r, 64);
		CU_ASSERT_EQUAL(tn_duration_parse(tn_duration_format_exact(v, b), &w), TN_OK);
		CU_ASSERT_EQUAL(v, w);
		CU_ASSERT_EQUAL(tn_bytes_parse(tn_bytes_format_exact(v, b), &w), TN_OK);
		CU_ASSERT_EQUAL(v, w);
	}
}

TN_TEST_MAIN("common/units", { "durations", durations }, { "sizes", sizes },
	{ "texts for people", texts_for_people },
	{ "exact texts parse back", exact_texts_parse_back })
