/* SPDX-License-Identifier: Apache-2.0
 * How answers look: JSON as it came, or tables for people. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controlplane/tentctl/tentctl.h"

#define COLUMNS_MAX 12u
#define CELL_MAX 96u

struct tctl_table {
	unsigned columns;
	size_t rows, room;
	char (*cells)[CELL_MAX];
};

void tctl_print_json(const json_t *j)
{
	json_dumpf(j, stdout, JSON_INDENT(2) | JSON_ENSURE_ASCII);
	putchar('\n');
}

struct tctl_table *tctl_table_new(unsigned columns, const char *const *headings)
{
	struct tctl_table *tb = calloc(1, sizeof *tb);
	if (tb == NULL || columns > COLUMNS_MAX)
		abort();
	tb->columns = columns;
	tctl_table_row(tb, headings);
	return tb;
}

void tctl_table_row(struct tctl_table *tb, const char *const *cells)
{
	if (tb->rows == tb->room) {
		tb->room = tb->room == 0 ? 16 : tb->room * 2;
		tb->cells = realloc(tb->cells, tb->room * tb->columns * sizeof *tb->cells);
		if (tb->cells == NULL)
			abort();
	}
	for (unsigned i = 0; i < tb->columns; i++) {
		char *to = tb->cells[tb->rows * tb->columns + i];
		snprintf(to, CELL_MAX, "%s", cells[i] != NULL ? cells[i] : "-");
		for (char *p = to; *p != '\0'; p++) /* names come from outside: keep the terminal safe */
			if ((unsigned char)*p < ' ' || *p == 127)
				*p = '?';
	}
	tb->rows++;
}

void tctl_table_print(const struct tctl_table *tb)
{
	size_t width[COLUMNS_MAX] = { 0 };
	for (size_t r = 0; r < tb->rows; r++)
		for (unsigned i = 0; i < tb->columns; i++)
			width[i] = TN_MAX(width[i], strlen(tb->cells[r * tb->columns + i]));
	for (size_t r = 0; r < tb->rows; r++) {
		for (unsigned i = 0; i < tb->columns; i++) {
			const char *c = tb->cells[r * tb->columns + i];
			if (i + 1 == tb->columns)
				printf("%s\n", c);
			else
				printf("%-*s  ", (int)width[i], c);
		}
	}
}

void tctl_table_free(struct tctl_table *tb)
{
	free(tb->cells);
	free(tb);
}

const char *tctl_text(const json_t *obj, const char *key)
{
	static char ring[16][CELL_MAX];
	static unsigned at;
	const json_t *v = json_object_get(obj, key);
	char *to = ring[at++ % TN_ARRAY_LEN(ring)];
	if (json_is_string(v))
		snprintf(to, CELL_MAX, "%s", json_string_value(v));
	else if (json_is_integer(v))
		snprintf(to, CELL_MAX, "%" JSON_INTEGER_FORMAT, json_integer_value(v));
	else if (json_is_boolean(v))
		snprintf(to, CELL_MAX, "%s", json_is_true(v) ? "yes" : "no");
	else
		snprintf(to, CELL_MAX, "-");
	return to;
}

uint64_t tctl_u64(const json_t *obj, const char *key)
{
	const json_t *v = json_object_get(obj, key);
	return json_is_string(v) ? strtoull(json_string_value(v), NULL, 10) : (uint64_t)json_integer_value(v);
}
