/* SPDX-License-Identifier: Apache-2.0
 * Lines of key paths: nesting, arrays, escapes, every line ending, values that look like structure, and depths and
 * lengths that the schema never has. */
#include "common/config_object.h"

#include <string.h>

#include "tests/unit/cu.h"

static struct tn_cfg_lines *lines;

static void scan(const char *text)
{
	json_t *root = json_loads(text, 0, NULL);

	CU_ASSERT_PTR_NOT_NULL_FATAL(root); /* the scanner is only given what jansson took */
	json_decref(root);
	lines = tn_cfg_lines_new(text, strlen(text));
	CU_ASSERT_PTR_NOT_NULL_FATAL(lines);
}

static void nesting_and_arrays(void)
{
	scan("{\n \"a\": { \"b\":\n 1,\n \"c\": [ 1,\n 2, { \"d\": [] },\n [ 3 ] ] },\n \"e\": {},\n \"f\": \"g\" }");
	CU_ASSERT_EQUAL(tn_cfg_lines_find(lines, "a"), 2);
	CU_ASSERT_EQUAL(tn_cfg_lines_find(lines, "a/b"), 2);
	CU_ASSERT_EQUAL(tn_cfg_lines_find(lines, "a/c"), 4);
	CU_ASSERT_EQUAL(tn_cfg_lines_find(lines, "a/c/0"), 4);
	CU_ASSERT_EQUAL(tn_cfg_lines_find(lines, "a/c/1"), 5);
	CU_ASSERT_EQUAL(tn_cfg_lines_find(lines, "a/c/2/d"), 5);
	CU_ASSERT_EQUAL(tn_cfg_lines_find(lines, "a/c/3/0"), 6);
	CU_ASSERT_EQUAL(tn_cfg_lines_find(lines, "e"), 7);
	CU_ASSERT_EQUAL(tn_cfg_lines_find(lines, "f"), 8);
	tn_cfg_lines_free(lines);
}

static void nearest_enclosing(void)
{
	scan("{\n\"a\": {\n\"b\": [\n5 ] } }");
	CU_ASSERT_EQUAL(tn_cfg_lines_find(lines, "a/x/y"), 2);
	CU_ASSERT_EQUAL(tn_cfg_lines_find(lines, "a/b/7"), 3);
	CU_ASSERT_EQUAL(tn_cfg_lines_find(lines, "x"), 0);
	tn_cfg_lines_free(lines);
}

static void strings_that_look_like_structure(void)
{
	scan("{ \"x\": \"}]{[,:\\\"\\\\\",\n\"y\": [\"\\\\\", \"a\\\"b\",\n true, null, -1.5e3],\n \"z\": false}");
	CU_ASSERT_EQUAL(tn_cfg_lines_find(lines, "x"), 1);
	CU_ASSERT_EQUAL(tn_cfg_lines_find(lines, "y/1"), 2);
	CU_ASSERT_EQUAL(tn_cfg_lines_find(lines, "y/4"), 3);
	CU_ASSERT_EQUAL(tn_cfg_lines_find(lines, "z"), 4);
	tn_cfg_lines_free(lines);
}

static void escapes_and_line_endings(void)
{
	scan("{\r\n\"\\u0061\\u00fc\":\r\n1,\r\n\"b\\\\c\": 2 }");
	CU_ASSERT_EQUAL(tn_cfg_lines_find(lines, "a\xc3\xbc"), 2);
	CU_ASSERT_EQUAL(tn_cfg_lines_find(lines, "b\\c"), 4);
	tn_cfg_lines_free(lines);
}

static void duplicates(void)
{
	struct tn_config_errors errors = { 0 };
	struct tn_cfg_source source = { .errors = &errors, .kind = TN_ORIGIN_FILE, .name = "f" };

	scan("{ \"a\": 1, \"b\": [1, 1], \"c\": { \"a\": 1 },\n \"a\": 2,\n \"a\": 3 }");
	CU_ASSERT_EQUAL(tn_cfg_lines_report_duplicates(lines, &source), 2);
	CU_ASSERT_EQUAL(errors.item[0].line, 2);
	CU_ASSERT_EQUAL(errors.item[1].line, 3);
	tn_cfg_lines_free(lines);
}

/* Two long names that agree in what is kept of a path are not one key. */
static void long_names(void)
{
	struct tn_config_errors errors = { 0 };
	struct tn_cfg_source source = { .errors = &errors, .kind = TN_ORIGIN_FILE, .name = "f" };
	char text[1000], name[200];

	memset(name, 'n', sizeof name - 1);
	name[sizeof name - 1] = '\0';
	snprintf(text, sizeof text, "{ \"%s1\": { \"x\": 1 },\n \"%s2\": { \"x\": 1 },\n \"k\": 1 }", name, name);
	scan(text);
	CU_ASSERT_EQUAL(tn_cfg_lines_report_duplicates(lines, &source), 0);
	CU_ASSERT_EQUAL(tn_cfg_lines_find(lines, "k"), 3);
	tn_cfg_lines_free(lines);
}

static void deep_text(void)
{
	char text[6000] = "{ \"a\": ";

	for (unsigned i = 0; i < 900; i++)
		strcat(text, i % 2 ? "[" : "{\"x\":");
	strcat(text, "1");
	for (unsigned i = 900; i-- > 0;)
		strcat(text, i % 2 ? "]" : "}");
	strcat(text, ",\n\"b\": { \"c\": 1 } }");
	scan(text);
	CU_ASSERT_EQUAL(tn_cfg_lines_find(lines, "a/x/0/x/0/x/0/x"), 1);
	CU_ASSERT_EQUAL(tn_cfg_lines_find(lines, "b/c"), 2);
	tn_cfg_lines_free(lines);
}

TN_TEST_MAIN("common_config_lines", { "nesting and arrays", nesting_and_arrays },
	     { "nearest enclosing", nearest_enclosing },
	     { "strings that look like structure", strings_that_look_like_structure },
	     { "escapes and line endings", escapes_and_line_endings }, { "duplicates", duplicates },
	     { "long names", long_names }, { "deep text", deep_text })
