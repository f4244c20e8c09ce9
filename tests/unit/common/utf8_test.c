/* SPDX-License-Identifier: Apache-2.0
 * Characters, and what is none. */
#include "common/utf8.h"

#include <string.h>

#include "tests/unit/cu.h"

static void characters(void)
{
	static const struct { const char *text; size_t len; } cases[] = {
		{ "a", 1 }, { "", 1 }, { "\x1b", 1 }, { "\xc3\xa9", 2 }, { "\xe2\x82\xac", 3 }, { "\xf0\x9f\x90\xaa", 4 },
		{ "\x80", 0 }, { "\xff", 0 }, { "\xc3", 0 }, { "\xe2\x82", 0 }, { "\xf0\x9f\x90", 0 }, { "\xc3z", 0 },
		{ "\xc0\x80", 0 }, { "\xc1\xbf", 0 }, { "\xe0\x80\x80", 0 }, { "\xf0\x80\x80\x80", 0 }, /* overlong */
		{ "\xed\x9f\xbf", 3 }, { "\xed\xa0\x80", 0 }, /* surrogates */
		{ "\xf4\x8f\xbf\xbf", 4 }, { "\xf4\x90\x80\x80", 0 }, { "\xf5\x80\x80\x80", 0 }, /* the end of Unicode */
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
		CU_ASSERT_EQUAL(tn_utf8_len(cases[i].text), cases[i].len);
	CU_ASSERT(tn_utf8_valid("") && tn_utf8_valid("a\xc3\xa4\xe2\x82\xac") && !tn_utf8_valid("a\xc3") && !tn_utf8_valid("a\xffz"));
}

static void lines(void)
{
	char out[16];
	tn_utf8_line(out, sizeof out, "a\nb\tc\x1b[2J");
	CU_ASSERT_STRING_EQUAL(out, "a?b?c?[2J");
	tn_utf8_line(out, sizeof out, "\xc2\x9b|\xe2\x82\xac|\xff\xed\xa0\x80");
	CU_ASSERT_STRING_EQUAL(out, "?|\xe2\x82\xac|????");
	tn_utf8_line(out, 5, "abc\xe2\x82\xac"); /* cut between characters */
	CU_ASSERT_STRING_EQUAL(out, "abc");
	tn_utf8_line(out, 1, "abc");
	CU_ASSERT_STRING_EQUAL(out, "");
	strcpy(out, "\xff\xc2\x9b\xc3\xa9z");
	tn_utf8_line(out, sizeof out, out); /* in place */
	CU_ASSERT_STRING_EQUAL(out, "??\xc3\xa9z");
}

TN_TEST_MAIN("utf8", { "characters and what is none", characters }, { "foreign text as one line", lines })
