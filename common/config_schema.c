/* SPDX-License-Identifier: Apache-2.0
 * Turns config_schema.def into tables and answers questions about rows: names, ranges, and which row a misspelt key
 * or word was meant to be. Static data, nothing allocated; any thread. */
#include "common/config_schema.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/nearest.h"
#include "common/units.h"

#define TN_KIB UINT64_C(1024)
#define TN_MIB (UINT64_C(1024) * TN_KIB)
#define TN_GIB (UINT64_C(1024) * TN_MIB)
#define TN_TIB (UINT64_C(1024) * TN_GIB)
#define TN_ANY NULL
#define TN_REQUIRED NULL
#define TN_CHOICE_TEXT(n, s) #s "|"
#define TN_CHOICES(list) list(TN_CHOICE_TEXT)
#define HOT true
#define COLD false

const struct tn_cfg_row tn_cfg_rows[TN_CFG_KEY_CNT] = {
#define TN_CFG(id, path, type, kind, min, max, def, choices, change, help) \
	{ path, TN_CFG_TYPE_##type, TN_CFG_KIND_##kind, min, max, def, choices, change, help },
#include "common/config_schema.def"
};

const struct tn_cfg_row tn_cfg_fields[TN_CFG_FIELD_CNT] = {
#define TN_CFG_FIELD(owner, id, name, type, kind, min, max, def, choices, help) \
	{ name, TN_CFG_TYPE_##type, TN_CFG_KIND_##kind, min, max, def, choices, COLD, help },
#include "common/config_schema.def"
};

const enum tn_config_key tn_cfg_field_owner[TN_CFG_FIELD_CNT] = {
#define TN_CFG_FIELD(owner, id, name, type, kind, min, max, def, choices, help) TN_CFG_##owner,
#include "common/config_schema.def"
};

const struct tn_cfg_section tn_cfg_sections[] = {
#define TN_CFG_SECTION(path, title) { path, title },
#include "common/config_schema.def"
};
const size_t tn_cfg_section_cnt = TN_ARRAY_LEN(tn_cfg_sections);

#define X(n, s) s,
static const char *const type_texts[] = { TN_CONFIG_TYPE_LIST(X) };
static const char *const kind_texts[] = { TN_CONFIG_KIND_LIST(X) };
#undef X

#define EDIT_MAX TN_EDIT_TEXT_MAX

const char *tn_cfg_type_text(enum tn_cfg_type type)
{
	return type_texts[type];
}

const char *tn_cfg_kind_text(enum tn_cfg_kind kind)
{
	return kind_texts[kind];
}

/* ---- finding rows ---- */

enum tn_config_key tn_cfg_key_find(const char *path)
{
	for (unsigned k = 0; k < TN_CFG_KEY_CNT; k++)
		if (strcmp(tn_cfg_rows[k].path, path) == 0)
			return (enum tn_config_key)k;
	return TN_CFG_KEY_CNT;
}

static bool is_below(const char *path, const char *section)
{
	size_t len = strlen(section);

	return len > 0 && strncmp(path, section, len) == 0 && path[len] == '/';
}

bool tn_cfg_is_section(const char *path)
{
	for (unsigned k = 0; k < TN_CFG_KEY_CNT; k++)
		if (is_below(tn_cfg_rows[k].path, path))
			return true;
	return false;
}

const struct tn_cfg_section *tn_cfg_section_of(enum tn_config_key key)
{
	const char *path = tn_cfg_rows[key].path;
	const struct tn_cfg_section *best = NULL;

	for (size_t i = 0; i < tn_cfg_section_cnt; i++) {
		const struct tn_cfg_section *s = &tn_cfg_sections[i];
		bool holds = s->path[0] == '\0' || strcmp(s->path, path) == 0 || is_below(path, s->path);

		if (holds && (best == NULL || strlen(s->path) > strlen(best->path)))
			best = s; /* the innermost one */
	}
	return best;
}

void tn_cfg_env_name(enum tn_config_key key, char *out, size_t out_bytes)
{
	snprintf(out, out_bytes, "TENT_%s", tn_cfg_rows[key].path);
	for (char *p = out; *p != '\0'; p++)
		*p = *p == '/' ? '_' : (char)toupper((unsigned char)*p);
}

enum tn_config_key tn_cfg_key_by_env(const char *name)
{
	char candidate[EDIT_MAX];

	for (unsigned k = 0; k < TN_CFG_KEY_CNT; k++) {
		tn_cfg_env_name((enum tn_config_key)k, candidate, sizeof candidate);
		if (strcmp(candidate, name) == 0)
			return (enum tn_config_key)k;
	}
	return TN_CFG_KEY_CNT;
}

/* ---- choices and ranges ---- */

int tn_cfg_choice_find(const struct tn_cfg_row *row, const char *word, size_t word_bytes)
{
	int idx = 0;

	for (const char *p = row->choices; p != NULL && *p != '\0'; idx++) {
		size_t len = strcspn(p, "|");

		if (len == word_bytes && memcmp(p, word, len) == 0)
			return idx;
		p += len + 1;
	}
	return -1;
}

bool tn_cfg_choice(const struct tn_cfg_row *row, unsigned i, char *out, size_t out_bytes)
{
	const char *p = row->choices;

	for (; p != NULL && *p != '\0'; i--) {
		size_t len = strcspn(p, "|");

		if (i == 0) {
			snprintf(out, out_bytes, "%.*s", (int)len, p);
			return true;
		}
		p += len + 1;
	}
	return false;
}

/* "one of busy, adaptive" */
static void choices_text(const struct tn_cfg_row *row, char *out, size_t out_bytes)
{
	size_t used = (size_t)snprintf(out, out_bytes, "one of ");

	for (const char *p = row->choices; *p != '\0' && used < out_bytes;) {
		size_t len = strcspn(p, "|");

		used += (size_t)snprintf(out + used, out_bytes - used, "%.*s%s", (int)len, p,
					 p[len + 1] != '\0' ? ", " : "");
		p += len + 1;
	}
}

/* "0..1000000 microseconds", "4KiB..1MiB" */
static void number_text(const struct tn_cfg_row *row, char *out, size_t out_bytes)
{
	bool is_quantity = row->kind != TN_CFG_KIND_PORT && row->kind != TN_CFG_KIND_CPU;
	const char *unit = is_quantity ? tn_cfg_kind_text(row->kind) : "";
	char min[TN_UNITS_TEXT], max[TN_UNITS_TEXT];

	if (row->kind == TN_CFG_KIND_BYTES)
		snprintf(out, out_bytes, "%s..%s", tn_bytes_format_exact(row->min, min),
			 tn_bytes_format_exact(row->max, max));
	else
		snprintf(out, out_bytes, "%" PRIu64 "..%" PRIu64 "%s%s", row->min, row->max, *unit != '\0' ? " " : "",
			 unit);
}

/* "at most 8 numeric addresses" */
static void list_text(const struct tn_cfg_row *row, char *out, size_t out_bytes)
{
	const char *item = row->type == TN_CFG_TYPE_OBJECTS ? "object" : tn_cfg_kind_text(row->kind);

	snprintf(out, out_bytes, "at most %" PRIu64 " %s%s", row->max, item,
		 row->kind == TN_CFG_KIND_ADDRESS || row->kind == TN_CFG_KIND_ADDRESS_SET ? "es" : "s");
}

void tn_cfg_range_text(const struct tn_cfg_row *row, char *out, size_t out_bytes)
{
	switch (row->type) {
	case TN_CFG_TYPE_BOOL:
		snprintf(out, out_bytes, "true or false");
		return;
	case TN_CFG_TYPE_U64:
		number_text(row, out, out_bytes);
		return;
	case TN_CFG_TYPE_ENUM:
		choices_text(row, out, out_bytes);
		return;
	case TN_CFG_TYPE_STR:
		snprintf(out, out_bytes, "%s%s, at most %" PRIu64 " characters", tn_cfg_kind_text(row->kind),
			 row->min == 0 ? " or empty" : "", row->max);
		return;
	case TN_CFG_TYPE_STR_LIST:
		if (row->choices != NULL) {
			choices_text(row, out, out_bytes);
			return;
		}
		TN_FALLTHROUGH;
	case TN_CFG_TYPE_U64_LIST:
	case TN_CFG_TYPE_OBJECTS:
		list_text(row, out, out_bytes);
		return;
	}
}

/* ---- suggestions ---- */

static const char *last_part(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash != NULL ? slash + 1 : path;
}

/* The only key whose last part is that of path (poll/spin_us for a spin_us at the top); NULL if none or several. */
static const char *same_last_part(const char *path)
{
	const char *found = NULL;

	for (unsigned k = 0; k < TN_CFG_KEY_CNT; k++) {
		if (strcmp(last_part(tn_cfg_rows[k].path), last_part(path)) != 0)
			continue;
		if (found != NULL)
			return NULL;
		found = tn_cfg_rows[k].path;
	}
	return found;
}

const char *tn_cfg_suggest_path(const char *path)
{
	unsigned best = tn_edit_limit(strlen(last_part(path))) + 1;
	const char *found = NULL;

	for (unsigned k = 0; k < TN_CFG_KEY_CNT; k++) {
		unsigned distance = tn_edit_distance(path, tn_cfg_rows[k].path);

		if (distance < best) {
			best = distance;
			found = tn_cfg_rows[k].path;
		}
	}
	for (size_t i = 0; i < tn_cfg_section_cnt; i++) {
		unsigned distance = tn_edit_distance(path, tn_cfg_sections[i].path);

		if (distance < best && tn_cfg_sections[i].path[0] != '\0') {
			best = distance;
			found = tn_cfg_sections[i].path;
		}
	}
	if (best > 0 && tn_edit_distance(path, "transports") < best)
		found = "transports";
	return found != NULL ? found : same_last_part(path);
}

bool tn_cfg_suggest_env(const char *name, char *out, size_t out_bytes)
{
	unsigned limit = tn_edit_limit(strlen(name)) + 1, best = limit;
	size_t len = strlen(name);
	char candidate[EDIT_MAX];

	tn_keep_nearest(name, "TENT_CONFIG", &best, out, out_bytes);
	for (unsigned k = 0; k < TN_CFG_KEY_CNT; k++) {
		tn_cfg_env_name((enum tn_config_key)k, candidate, sizeof candidate);
		tn_keep_nearest(name, candidate, &best, out, out_bytes);
	}
	for (unsigned k = 0; k < TN_CFG_KEY_CNT && best == limit; k++) {   /* TENT_LOG: the first key of log/ */
		tn_cfg_env_name((enum tn_config_key)k, candidate, sizeof candidate);
		if (strncmp(candidate, name, len) == 0 && candidate[len] == '_') {
			best = 0;
			snprintf(out, out_bytes, "%s", candidate);
		}
	}
	return best < limit;
}

bool tn_cfg_suggest_field(enum tn_config_key owner, const char *name, char *out, size_t out_bytes)
{
	unsigned limit = tn_edit_limit(strlen(name)) + 1, best = limit;

	for (unsigned f = 0; f < TN_CFG_FIELD_CNT; f++)
		if (tn_cfg_field_owner[f] == owner)
			tn_keep_nearest(name, tn_cfg_fields[f].path, &best, out, out_bytes);
	return best < limit;
}

bool tn_cfg_suggest_choice(const struct tn_cfg_row *row, const char *word, char *out, size_t out_bytes)
{
	unsigned limit = tn_edit_limit(strlen(word)) + 1, best = limit;
	char candidate[EDIT_MAX];

	for (unsigned i = 0; tn_cfg_choice(row, i, candidate, sizeof candidate); i++)
		tn_keep_nearest(word, candidate, &best, out, out_bytes);
	return best < limit;
}
