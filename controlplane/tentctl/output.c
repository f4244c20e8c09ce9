/* SPDX-License-Identifier: Apache-2.0
 * How answers look: JSON as it came, or tables for people. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/message.h"
#include "common/units.h"
#include "common/utf8.h"
#include "controlplane/tentctl/style.h"
#include "controlplane/tentctl/tentctl.h"

#define COLUMNS_MAX 12u
#define CELL_MAX 256u

struct tctl_table {
	unsigned columns;
	bool right[COLUMNS_MAX];
	size_t rows, room;
	char (*cells)[CELL_MAX];
};

void tctl_print_json(const json_t *j)
{
	json_dumpf(j, stdout, JSON_INDENT(2) | JSON_ENSURE_ASCII | JSON_REAL_PRECISION(9));
	putchar('\n');
}

void tctl_print_json_line(const json_t *j)
{
	json_dumpf(j, stdout, JSON_COMPACT | JSON_ENSURE_ASCII | JSON_REAL_PRECISION(9));
	putchar('\n');
}

bool tctl_flush(struct tctl *t)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return true;
	if (!t->answer_lost) /* errno is still that of the write: calls that work leave it alone */
		fprintf(stderr, "tentctl: cannot write the answer: %s\n", strerror(errno));
	t->answer_lost = true;
	return false;
}

void tctl_put_name(json_t *obj, const char *key, const char *name)
{
	char line[PATH_MAX];
	if (tn_json_put_str(obj, key, name) == TN_OK)
		return;
	tn_utf8_line(line, sizeof line, name);
	(void)tn_json_put_str(obj, key, line);
}

static TN_NORETURN void out_of_memory(void)
{
	fputs("tentctl: out of memory\n", stderr);
	exit(TCTL_FAILED);
}

struct tctl_table *tctl_table_new(unsigned columns, const char *const *headings)
{
	struct tctl_table *tb = calloc(1, sizeof *tb);
	if (tb == NULL)
		out_of_memory();
	const char *plain[COLUMNS_MAX];
	tb->columns = TN_MIN(columns, COLUMNS_MAX);
	for (unsigned i = 0; i < tb->columns; i++) {
		tb->right[i] = headings[i][0] == '>';
		plain[i] = headings[i] + tb->right[i];
	}
	tctl_table_row(tb, plain);
	return tb;
}

/* Names and texts come from outside: nothing of them may steer a terminal. */
static void copy_cell(char to[static CELL_MAX], const char *text)
{
	snprintf(to, CELL_MAX, "%s", text != NULL && text[0] != '\0' ? text : "-");
	tctl_clean(to);
}

void tctl_table_row(struct tctl_table *tb, const char *const *cells)
{
	if (tb->rows == tb->room) {
		size_t room = tb->room == 0 ? 16 : tb->room * 2;
		void *more = realloc(tb->cells, room * tb->columns * sizeof *tb->cells);
		if (more == NULL)
			out_of_memory();
		tb->cells = more;
		tb->room = room;
	}
	for (unsigned i = 0; i < tb->columns; i++)
		copy_cell(tb->cells[tb->rows * tb->columns + i], cells[i]);
	tb->rows++;
}

void tctl_table_print(const struct tctl_table *tb, FILE *to)
{
	size_t width[COLUMNS_MAX] = { 0 };
	for (size_t r = 0; r < tb->rows; r++)
		for (unsigned i = 0; i < tb->columns; i++)
			width[i] = TN_MAX(width[i], strlen(tb->cells[r * tb->columns + i]));
	for (size_t r = 0; r < tb->rows; r++) {
		for (unsigned i = 0; i < tb->columns; i++) {
			const char *c = tb->cells[r * tb->columns + i];
			if (tb->right[i])
				fprintf(to, "%*s%s", (int)width[i], c, i + 1 == tb->columns ? "\n" : "  ");
			else if (i + 1 == tb->columns)
				fprintf(to, "%s\n", c);
			else
				fprintf(to, "%-*s  ", (int)width[i], c);
		}
	}
}

void tctl_table_free(struct tctl_table *tb)
{
	free(tb->cells);
	free(tb);
}

/* A row of a table needs several texts at once: enough buffers for the widest. */
static char *next_text(void)
{
	static char ring[16][CELL_MAX];
	static unsigned at;
	return ring[at++ % TN_ARRAY_LEN(ring)];
}

const char *tctl_text(const json_t *obj, const char *key)
{
	const json_t *v = json_object_get(obj, key);
	char *to = next_text();
	if (json_is_string(v))
		snprintf(to, CELL_MAX, "%s", json_string_value(v));
	else if (json_is_integer(v))
		snprintf(to, CELL_MAX, "%" JSON_INTEGER_FORMAT, json_integer_value(v));
	else if (json_is_boolean(v))
		snprintf(to, CELL_MAX, "%s", json_is_true(v) ? "yes" : "no");
	else
		snprintf(to, CELL_MAX, "-");
	return tctl_clean(to);
}

uint64_t tctl_u64(const json_t *obj, const char *key)
{
	const json_t *v = json_object_get(obj, key);
	return json_is_string(v) ? strtoull(json_string_value(v), NULL, 10) : (uint64_t)json_integer_value(v);
}

const char *tctl_count_text(const json_t *obj, const char *key, const char *one, const char *many)
{
	char *to = next_text();
	uint64_t n = tctl_u64(obj, key);
	snprintf(to, CELL_MAX, "%llu %s", (unsigned long long)n, n == 1 ? one : many);
	return to;
}

const char *tctl_bytes_text(uint64_t bytes)
{
	return tn_bytes_format(bytes, next_text());
}

const char *tctl_time_text(uint64_t ns)
{
	return tn_duration_format(ns, next_text());
}
