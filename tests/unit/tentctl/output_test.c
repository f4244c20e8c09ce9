/* SPDX-License-Identifier: Apache-2.0
 * Tables and texts of answers. */
#include <string.h>

#include "controlplane/tentctl/tentctl.h"
#include "tests/unit/cu.h"

static void print(const struct tctl_table *tb, char *out, size_t out_bytes)
{
	FILE *f = tmpfile();
	tctl_table_print(tb, f);
	rewind(f);
	out[fread(out, 1, out_bytes - 1, f)] = '\0';
	fclose(f);
}

static void columns_fit_their_widest_cell(void)
{
	char text[512];
	struct tctl_table *tb = tctl_table_new(3, (const char *[]){ "NAME", "N", "LAST" });
	tctl_table_row(tb, (const char *[]){ "a-long-name", "1", "x" });
	tctl_table_row(tb, (const char *[]){ "b", "12345", NULL });
	tctl_table_row(tb, (const char *[]){ "", "2", "no blanks behind" });
	print(tb, text, sizeof text);
	CU_ASSERT_STRING_EQUAL(text, "NAME         N      LAST\n"
				     "a-long-name  1      x\n"
				     "b            12345  -\n"
				     "-            2      no blanks behind\n");
	tctl_table_free(tb);
}

static void nothing_steers_the_terminal(void)
{
	char text[512];
	struct tctl_table *tb = tctl_table_new(1, (const char *[]){ "X" });
	tctl_table_row(tb, (const char *[]){ "\033[2Ja\nb\x7f\xc2\x9b" });
	print(tb, text, sizeof text);
	CU_ASSERT_STRING_EQUAL(text, "X\n?[2Ja?b???\n");
	tctl_table_free(tb);
}

static void long_and_many(void)
{
	static char text[64 << 10];
	char cell[400];
	memset(cell, 'x', sizeof cell - 1);
	cell[sizeof cell - 1] = '\0';
	struct tctl_table *tb = tctl_table_new(1, (const char *[]){ "X" });
	for (int i = 0; i < 100; i++)
		tctl_table_row(tb, (const char *[]){ cell });
	print(tb, text, sizeof text);
	CU_ASSERT_EQUAL(strlen(text), 2 + 100 * 256); /* cut, not overrun */
	tctl_table_free(tb);
}

static void members(void)
{
	json_t *j = json_loads(
	    "{\"s\":\"t\",\"n\":-5,\"b\":true,\"f\":false,\"o\":{},\"big\":\"18446744073709551615\",\"nul\":null}", 0,
	    NULL);
	CU_ASSERT_STRING_EQUAL(tctl_text(j, "s"), "t");
	CU_ASSERT_STRING_EQUAL(tctl_text(j, "n"), "-5");
	CU_ASSERT_STRING_EQUAL(tctl_text(j, "b"), "yes");
	CU_ASSERT_STRING_EQUAL(tctl_text(j, "f"), "no");
	CU_ASSERT_STRING_EQUAL(tctl_text(j, "o"), "-");
	CU_ASSERT_STRING_EQUAL(tctl_text(j, "nul"), "-");
	CU_ASSERT_STRING_EQUAL(tctl_text(j, "absent"), "-");
	CU_ASSERT_STRING_EQUAL(tctl_text(NULL, "absent"), "-");
	CU_ASSERT_EQUAL(tctl_u64(j, "big"), UINT64_MAX);
	CU_ASSERT_EQUAL(tctl_u64(j, "absent"), 0);
	CU_ASSERT_EQUAL(tctl_u64(j, "o"), 0);
	CU_ASSERT_STRING_EQUAL(tctl_bytes_text(1536), "1.50KiB");
	CU_ASSERT_STRING_EQUAL(tctl_time_text(1500000), "1.50ms");
	json_decref(j);
}

TN_TEST_MAIN("tentctl output",
	{ "columns are as wide as their widest cell", columns_fit_their_widest_cell },
	{ "control characters do not reach the terminal", nothing_steers_the_terminal },
	{ "long cells are cut, many rows are kept", long_and_many },
	{ "members of answers as text and number", members })
