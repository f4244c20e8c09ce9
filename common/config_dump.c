/* SPDX-License-Identifier: Apache-2.0
 * Shows a configuration: lines for people, or JSON that is itself a valid config file, or JSON with origins. Any
 * thread; writes to the caller's stream only. */
#include "common/config_object.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/units.h"
#include "common/utf8.h"

#define ORIGIN_TEXT 512

static bool is_shown(const struct tn_config *cfg, enum tn_config_key key, unsigned flags)
{
	return (flags & TN_CONFIG_DUMP_EFFECTIVE) != 0 || cfg->value[key].origin.kind != TN_ORIGIN_DEFAULT;
}

/* ---- for people ---- */

/* "50", sizes with their unit. The caller frees it; NULL: no memory. */
static char *value_text(const struct tn_cfg_row *row, const json_t *value)
{
	char size[TN_UNITS_TEXT + 2] = "\"";

	if (row->kind != TN_CFG_KIND_BYTES || row->type != TN_CFG_TYPE_U64)
		return json_dumps(value, JSON_ENCODE_ANY);
	tn_bytes_format_exact((uint64_t)json_integer_value(value), size + 1);
	strcat(size, "\"");
	return strdup(size);
}

/* "poll/spin_us = 50" */
static bool print_value(const struct tn_cfg_row *row, const json_t *value, FILE *out)
{
	char *text = value_text(row, value);

	if (text != NULL)
		fputs(text, out);
	free(text);
	return text != NULL;
}

void tn_config_value_text(const struct tn_config *cfg, enum tn_config_key key, char *out, size_t out_bytes)
{
	char *text = value_text(&tn_cfg_rows[key], cfg->value[key].json);

	snprintf(out, out_bytes, "%s", text != NULL ? text : "?");
	free(text);
}

static void print_origin(struct tn_config_origin origin, unsigned flags, FILE *out)
{
	char text[ORIGIN_TEXT];

	if ((flags & TN_CONFIG_DUMP_ORIGIN) == 0)
		return;
	tn_config_origin_text(origin, text, sizeof text);
	fprintf(out, "   # %s", text);
}

/* A list of objects: one line per entry, each with its own origin. */
static bool print_objects(const struct tn_config *cfg, enum tn_config_key key, unsigned flags, FILE *out)
{
	const struct tn_cfg_value *value = &cfg->value[key];

	for (size_t i = 0; i < json_array_size(value->json); i++) {
		char *text = json_dumps(json_array_get(value->json, i), JSON_COMPACT);

		if (text == NULL)
			return false;
		fprintf(out, "%s[%zu] = %s", tn_cfg_rows[key].path, i, text);
		free(text);
		print_origin(value->item_origin[i], flags, out);
		fputc('\n', out);
	}
	return true;
}

static tn_status dump_text(const struct tn_config *cfg, FILE *out, unsigned flags)
{
	for (unsigned k = 0; k < TN_CFG_KEY_CNT; k++) {
		enum tn_config_key key = (enum tn_config_key)k;
		const struct tn_cfg_value *value = &cfg->value[k];

		if (!is_shown(cfg, key, flags))
			continue;
		if (tn_cfg_rows[k].type == TN_CFG_TYPE_OBJECTS && json_array_size(value->json) > 0) {
			if (!print_objects(cfg, key, flags, out))
				return TN_NO_MEMORY;
			continue;
		}
		fprintf(out, "%s = ", tn_cfg_rows[k].path);
		if (!print_value(&tn_cfg_rows[k], value->json, out))
			return TN_NO_MEMORY;
		print_origin(value->origin, flags, out);
		fputc('\n', out);
	}
	return TN_OK;
}

/* ---- JSON ---- */

bool tn_cfg_put_nested(json_t *root, const char *path, json_t *value)
{
	json_t *at = root;
	const char *slash;

	while ((slash = strchr(path, '/')) != NULL) {
		char part[TN_CFG_PATH_MAX];
		json_t *next;

		snprintf(part, sizeof part, "%.*s", (int)(slash - path), path);
		next = json_object_get(at, part);
		if (next == NULL) {
			next = json_object();
			if (json_object_set_new(at, part, next) != 0) {
				json_decref(value);
				return false;
			}
		}
		at = next;
		path = slash + 1;
	}
	return json_object_set_new(at, path, value) == 0;
}

static json_t *origin_json(struct tn_config_origin origin)
{
	char text[ORIGIN_TEXT];

	tn_config_origin_text(origin, text, sizeof text);
	tn_utf8_line(text, sizeof text, text);
	return json_string(text);
}

/* {"value":..., "origin":"...", "change":"hot"}; lists of objects also have the origin of each entry. */
static json_t *value_with_origin(const struct tn_config *cfg, enum tn_config_key key)
{
	const struct tn_cfg_value *value = &cfg->value[key];
	json_t *out = json_pack("{s:O, s:o, s:s}", "value", value->json, "origin", origin_json(value->origin), "change",
				tn_cfg_rows[key].hot ? "hot" : "cold");
	json_t *items;

	if (out == NULL || value->item_origin == NULL)
		return out;
	items = json_array();
	for (size_t i = 0; i < json_array_size(value->json); i++)
		json_array_append_new(items, origin_json(value->item_origin[i]));
	json_object_set_new(out, "item_origins", items);
	return out;
}

static tn_status dump_json(const struct tn_config *cfg, FILE *out, unsigned flags)
{
	json_t *root = json_object();
	bool failed = root == NULL;

	for (unsigned k = 0; k < TN_CFG_KEY_CNT && !failed; k++) {
		const char *path = tn_cfg_rows[k].path;

		if (!is_shown(cfg, (enum tn_config_key)k, flags))
			continue;
		if ((flags & TN_CONFIG_DUMP_ORIGIN) != 0)
			failed = json_object_set_new(root, path, value_with_origin(cfg, (enum tn_config_key)k)) != 0;
		else
			failed = !tn_cfg_put_nested(root, path, json_incref(cfg->value[k].json));
	}
	if (!failed)
		failed = json_dumpf(root, out, JSON_INDENT(2)) != 0 || fputc('\n', out) == EOF;
	json_decref(root);
	return !failed ? TN_OK : ferror(out) ? TN_SYSTEM : TN_NO_MEMORY;
}

tn_status tn_config_dump(const struct tn_config *cfg, FILE *out, unsigned flags)
{
	tn_status status = (flags & TN_CONFIG_DUMP_JSON) != 0 ? dump_json(cfg, out, flags) : dump_text(cfg, out, flags);

	if (status == TN_OK && (fflush(out) != 0 || ferror(out)))
		return TN_SYSTEM;
	return status;
}
