/* SPDX-License-Identifier: Apache-2.0
 * Which line of a JSON text a key path stands on; jansson keeps no lines. One pass over text that jansson has already
 * accepted, so the grammar is not checked again; whatever it is, the pass ends at the end of the text. Paths deeper
 * than the schema goes are not kept: errors below them name the nearest enclosing key. One thread per object. */
#include "common/config_object.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEPTH_MAX 6 /* the schema's deepest path, peers/N/data_addresses/N, has four parts */

struct entry {
	char *path;
	unsigned line;
};

struct tn_cfg_lines {
	struct entry *entry; /* sorted by path, then line */
	size_t cnt, cap;
};

struct level {
	bool is_object;
	unsigned idx;      /* of the next array item */
	size_t path_bytes; /* length of the path of this container */
};

struct scan {
	struct tn_cfg_lines *lines;
	const char *p, *end;
	unsigned line;
	unsigned depth; /* containers open; only the first DEPTH_MAX have a level */
	struct level level[DEPTH_MAX];
	char path[TN_CFG_PATH_MAX];
	bool no_memory;
};

static void keep(struct scan *s, unsigned line)
{
	struct tn_cfg_lines *lines = s->lines;

	if (lines->cnt == lines->cap) {
		size_t cap = lines->cap == 0 ? 64 : lines->cap * 2;
		struct entry *grown = realloc(lines->entry, cap * sizeof *grown);

		if (grown == NULL) {
			s->no_memory = true;
			return;
		}
		lines->entry = grown;
		lines->cap = cap;
	}
	lines->entry[lines->cnt].path = strdup(s->path);
	lines->entry[lines->cnt].line = line;
	if (lines->entry[lines->cnt].path == NULL)
		s->no_memory = true;
	else
		lines->cnt++;
}

/* Moves past the string that starts at p; returns its length with the quotes. */
static size_t skip_string(struct scan *s)
{
	const char *start = s->p++;

	while (s->p < s->end && *s->p != '"')
		s->p += *s->p == '\\' ? 2 : 1;
	s->p = s->p < s->end ? s->p + 1 : s->end;
	return (size_t)(s->p - start);
}

/* Keep the path of the innermost container followed by a name. One that does not fit is cut and not kept: the schema
 * has no such key, and two of them must not look like one. */
static void keep_name(struct scan *s, const char *name, unsigned line)
{
	size_t used = s->level[s->depth - 1].path_bytes, room = sizeof s->path - used;
	int need = snprintf(s->path + used, room, "%s%s", used > 0 ? "/" : "", name);

	if (need >= 0 && (size_t)need < room)
		keep(s, line);
}

/* A key of an object. jansson decodes it, so escapes compare as jansson compared them. */
static void take_key(struct scan *s)
{
	const char *start = s->p;
	unsigned line = s->line;
	size_t bytes = skip_string(s);
	json_t *name = json_loadb(start, bytes, JSON_DECODE_ANY, NULL);

	if (name == NULL) { /* jansson read this text before, so only memory can be missing */
		s->no_memory = true;
		return;
	}
	keep_name(s, json_string_value(name), line);
	json_decref(name);
}

/* Just before a value in an array: its path is the index. */
static void take_item(struct scan *s)
{
	char idx[16];

	snprintf(idx, sizeof idx, "%u", s->level[s->depth - 1].idx++);
	keep_name(s, idx, s->line);
}

static void open_container(struct scan *s, bool is_object)
{
	if (s->depth < DEPTH_MAX)
		s->level[s->depth] = (struct level){ .is_object = is_object, .path_bytes = strlen(s->path) };
	s->depth++;
}

static void close_container(struct scan *s)
{
	if (s->depth == 0)
		return;
	s->depth--;
	if (s->depth < DEPTH_MAX)
		s->path[s->level[s->depth].path_bytes] = '\0';
}

static bool is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* What stands in front of the next token: a key, an item of an array, or a value whose key was taken. */
enum place { PLACE_KEY, PLACE_ITEM, PLACE_VALUE };

static enum place place_of(const struct scan *s, bool after_colon)
{
	if (s->depth == 0 || s->depth > DEPTH_MAX)
		return PLACE_VALUE;
	if (!s->level[s->depth - 1].is_object)
		return PLACE_ITEM;
	return after_colon ? PLACE_VALUE : PLACE_KEY;
}

static void scan_text(struct scan *s)
{
	bool after_colon = false;

	while (s->p < s->end && !s->no_memory) {
		char c = *s->p;

		if (c == '\n')
			s->line++;
		if (is_space(c) || c == ',' || c == ':') {
			if (!is_space(c))
				after_colon = c == ':';
			s->p++;
			continue;
		}
		if (c == '}' || c == ']') {
			close_container(s);
			s->p++;
			after_colon = false;
			continue;
		}
		enum place place = place_of(s, after_colon);

		after_colon = false;
		if (place == PLACE_KEY && c == '"') {
			take_key(s);
			continue;
		}
		if (place == PLACE_ITEM)
			take_item(s);
		if (c == '{' || c == '[') {
			open_container(s, c == '{');
			s->p++;
		} else if (c == '"') {
			skip_string(s);
		} else {
			s->p++;
			while (s->p < s->end && strchr(",]} \t\r\n", *s->p) == NULL)
				s->p++;
		}
	}
}

static int compare(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;
	int order = strcmp(x->path, y->path);

	return order != 0 ? order : (x->line > y->line) - (x->line < y->line);
}

struct tn_cfg_lines *tn_cfg_lines_new(const char *text, size_t text_bytes)
{
	struct tn_cfg_lines *lines = calloc(1, sizeof *lines);
	struct scan scan = { .lines = lines, .p = text, .end = text + text_bytes, .line = 1 };

	if (lines == NULL)
		return NULL;
	scan_text(&scan);
	if (scan.no_memory) {
		tn_cfg_lines_free(lines);
		return NULL;
	}
	if (lines->cnt > 0)
		qsort(lines->entry, lines->cnt, sizeof *lines->entry, compare);
	return lines;
}

void tn_cfg_lines_free(struct tn_cfg_lines *lines)
{
	if (lines == NULL)
		return;
	for (size_t i = 0; i < lines->cnt; i++)
		free(lines->entry[i].path);
	free(lines->entry);
	free(lines);
}

unsigned tn_cfg_lines_find(const struct tn_cfg_lines *lines, const char *path)
{
	char part[TN_CFG_PATH_MAX];

	snprintf(part, sizeof part, "%s", path);
	for (;;) {
		struct entry key = { .path = part };
		size_t low = 0, high = lines->cnt;
		char *slash;

		while (low < high) {
			size_t mid = low + (high - low) / 2;

			if (compare(&lines->entry[mid], &key) < 0)
				low = mid + 1;
			else
				high = mid;
		}
		if (low < lines->cnt && strcmp(lines->entry[low].path, part) == 0)
			return lines->entry[low].line;
		slash = strrchr(part, '/');
		if (slash == NULL)
			return 0;
		*slash = '\0';
	}
}

unsigned tn_cfg_lines_report_duplicates(const struct tn_cfg_lines *lines, const struct tn_cfg_source *source)
{
	unsigned cnt = 0;

	for (size_t i = 1; i < lines->cnt; i++) {
		const struct entry *first = &lines->entry[i - 1], *again = &lines->entry[i];

		if (strcmp(first->path, again->path) != 0)
			continue;
		tn_cfg_fail_at(source, again->path, again->line, "the key stands twice, first on line %u; remove one",
			       first->line);
		cnt++;
	}
	return cnt;
}
