/* SPDX-License-Identifier: Apache-2.0
 * The door for one value: whatever a file, the environment or a flag says is checked here against its row and turned
 * into canonical JSON, or refused with a text that says what would be right. Start-up and control thread. */
#include "common/config_object.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/units.h"

#define RANGE_TEXT 256
#define FOUND_TEXT 64
#define CPU_MAX 1023

/* ---- from a person's text ---- */

static json_t *number_from_text(const char *text)
{
	char *end;
	long long number;

	errno = 0;
	number = strtoll(text, &end, 10);
	if (errno != 0 || end == text || *end != '\0' || isspace((unsigned char)*text) || *text == '+')
		return json_string(text);
	return json_integer(number);
}

/* What an item of a list is by itself. */
static struct tn_cfg_row item_row(const struct tn_cfg_row *list)
{
	struct tn_cfg_row item = *list;

	if (list->type == TN_CFG_TYPE_U64_LIST)
		item.type = TN_CFG_TYPE_U64;
	else
		item.type = list->choices != NULL ? TN_CFG_TYPE_ENUM : TN_CFG_TYPE_STR;
	item.min = list->type == TN_CFG_TYPE_U64_LIST ? 0 : 1;
	item.max = list->type == TN_CFG_TYPE_U64_LIST ? CPU_MAX : 64;
	return item;
}

/* "a,b,c" -> ["a","b","c"]; blanks around items are dropped. */
static json_t *list_from_text(const struct tn_cfg_row *row, const char *text)
{
	struct tn_cfg_row item = item_row(row);
	json_t *list = json_array();
	char *copy = strdup(text), *rest = copy, *one;

	while (list != NULL && rest != NULL && *text != '\0' && (one = strsep(&rest, ",")) != NULL) {
		size_t len;

		one += strspn(one, " ");
		len = strlen(one);
		while (len > 0 && one[len - 1] == ' ')
			one[--len] = '\0';
		if (json_array_append_new(list, tn_cfg_value_from_text(&item, one)) != 0) {
			json_decref(list);
			list = NULL;
		}
	}
	if (copy == NULL) {
		json_decref(list);
		list = NULL;
	}
	free(copy);
	return list;
}

static json_t *json_from_text(const char *text)
{
	json_t *value = json_loads(text, JSON_REJECT_DUPLICATES, NULL);

	return value != NULL ? value : json_string(text);
}

json_t *tn_cfg_value_from_text(const struct tn_cfg_row *row, const char *text)
{
	switch (row->type) {
	case TN_CFG_TYPE_BOOL:
		if (strcmp(text, "true") == 0)
			return json_true();
		return strcmp(text, "false") == 0 ? json_false() : json_string(text);
	case TN_CFG_TYPE_U64:
		return number_from_text(text);
	case TN_CFG_TYPE_STR:
	case TN_CFG_TYPE_ENUM:
		return json_string(text);
	case TN_CFG_TYPE_STR_LIST:
	case TN_CFG_TYPE_U64_LIST:
		return text[0] == '[' ? json_from_text(text) : list_from_text(row, text);
	case TN_CFG_TYPE_OBJECTS:
		return json_from_text(text);
	}
	return NULL;
}

/* ---- refusals ---- */

/* The value as the person wrote it, short: "\"abc\"", "5.5", "an object". */
static void found_text(json_t *value, char out[static FOUND_TEXT])
{
	char *text;

	if (json_is_object(value) || json_is_array(value)) {
		snprintf(out, FOUND_TEXT, "%s", json_is_object(value) ? "an object" : "a list");
		return;
	}
	text = json_dumps(value, JSON_ENCODE_ANY | JSON_ENSURE_ASCII);
	snprintf(out, FOUND_TEXT, "%.*s%s", FOUND_TEXT - 8, text != NULL ? text : "?",
		 text != NULL && strlen(text) > FOUND_TEXT - 8 ? "..." : "");
	free(text);
}

static json_t *refuse_type(const struct tn_cfg_row *row, json_t *in, const char *path,
			   const struct tn_cfg_source *source)
{
	const char *type = tn_cfg_type_text(row->type);
	char range[RANGE_TEXT], found[FOUND_TEXT];

	tn_cfg_range_text(row, range, sizeof range);
	found_text(in, found);
	tn_cfg_fail(source, path, "expected %s %s (%s), found %s", strchr("aeiou", type[0]) != NULL ? "an" : "a", type,
		    range, found);
	return NULL;
}

static json_t *refuse_range(const struct tn_cfg_row *row, json_t *in, const char *path,
			    const struct tn_cfg_source *source)
{
	char range[RANGE_TEXT], found[FOUND_TEXT];

	tn_cfg_range_text(row, range, sizeof range);
	found_text(in, found);
	tn_cfg_fail(source, path, "%s is out of range; allowed: %s", found, range);
	return NULL;
}

/* ---- checks by type ---- */

static json_t *check_u64(const struct tn_cfg_row *row, json_t *in, const char *path, const struct tn_cfg_source *source)
{
	uint64_t number = 0;

	if (json_is_string(in) && row->kind == TN_CFG_KIND_BYTES) {
		tn_status status = tn_bytes_parse(json_string_value(in), &number);

		if (status == TN_RANGE)
			return refuse_range(row, in, path, source);
		if (status != TN_OK) {
			char range[RANGE_TEXT], found[FOUND_TEXT];

			tn_cfg_range_text(row, range, sizeof range);
			found_text(in, found);
			tn_cfg_fail(source, path,
				    "%s is not a size; write bytes (65536) or a unit (\"64KiB\", \"1GiB\"), %s", found,
				    range);
			return NULL;
		}
	} else if (json_is_integer(in)) {
		if (json_integer_value(in) < 0)
			return refuse_range(row, in, path, source);
		number = (uint64_t)json_integer_value(in);
	} else {
		return refuse_type(row, in, path, source);
	}
	if (number < row->min || number > row->max)
		return refuse_range(row, in, path, source);
	return json_integer((json_int_t)number);
}

static json_t *check_str(const struct tn_cfg_row *row, json_t *in, const char *path, const struct tn_cfg_source *source)
{
	char problem[TN_ERR_TEXT];

	if (!json_is_string(in))
		return refuse_type(row, in, path, source);
	if (json_string_length(in) < row->min || json_string_length(in) > row->max) {
		tn_cfg_fail(source, path, "has %zu characters; allowed: %" PRIu64 "..%" PRIu64, json_string_length(in),
			    row->min, row->max);
		return NULL;
	}
	if (json_string_length(in) > 0 && !tn_cfg_kind_check(row->kind, json_string_value(in), problem)) {
		tn_cfg_fail(source, path, "%s", problem);
		return NULL;
	}
	return json_incref(in);
}

static json_t *check_enum(const struct tn_cfg_row *row, json_t *in, const char *path,
			  const struct tn_cfg_source *source)
{
	char range[RANGE_TEXT], found[FOUND_TEXT], near[FOUND_TEXT];
	bool is_near;

	if (!json_is_string(in))
		return refuse_type(row, in, path, source);
	if (tn_cfg_choice_find(row, json_string_value(in), json_string_length(in)) >= 0)
		return json_incref(in);
	tn_cfg_range_text(row, range, sizeof range);
	found_text(in, found);
	is_near = tn_cfg_suggest_choice(row, json_string_value(in), near, sizeof near);
	tn_cfg_fail(source, path, "%s is not %s%s%s%s", found, range, is_near ? "; did you mean " : "",
		    is_near ? near : "", is_near ? "?" : "");
	return NULL;
}

static bool contains(json_t *list, const json_t *item)
{
	size_t i;
	json_t *one;

	json_array_foreach (list, i, one)
		if (json_equal(one, item))
			return true;
	return false;
}

static json_t *check_list(const struct tn_cfg_row *row, json_t *in, const char *path,
			  const struct tn_cfg_source *source)
{
	struct tn_cfg_row item = item_row(row);
	bool refused = false;
	json_t *out, *one;
	size_t i;

	if (!json_is_array(in))
		return refuse_type(row, in, path, source);
	if (json_array_size(in) < row->min || json_array_size(in) > row->max) {
		tn_cfg_fail(source, path, "has %zu items; allowed: %" PRIu64 "..%" PRIu64, json_array_size(in),
			    row->min, row->max);
		return NULL;
	}
	out = json_array();
	json_array_foreach (in, i, one) {
		char item_path[TN_CFG_PATH_MAX];
		json_t *value;

		snprintf(item_path, sizeof item_path, "%s/%zu", path, i);
		value = tn_cfg_value_check(&item, one, item_path, source);
		if (value != NULL && contains(out, value)) {
			tn_cfg_fail(source, item_path, "stands twice in the list; remove one");
			json_decref(value);
			value = NULL;
		}
		if (value == NULL || json_array_append_new(out, value) != 0)
			refused = true;
	}
	if (!refused)
		return out;
	json_decref(out);
	return NULL;
}

/* ---- objects ---- */

static int field_find(enum tn_config_key owner, const char *name)
{
	for (unsigned f = 0; f < TN_CFG_FIELD_CNT; f++)
		if (tn_cfg_field_owner[f] == owner && strcmp(tn_cfg_fields[f].path, name) == 0)
			return (int)f;
	return -1;
}

static bool refuse_unknown_fields(enum tn_config_key owner, json_t *in, const char *path,
				  const struct tn_cfg_source *source)
{
	bool refused = false;
	const char *name;
	json_t *unused;

	json_object_foreach (in, name, unused) {
		char field_path[TN_CFG_PATH_MAX], near[FOUND_TEXT];
		bool is_near;

		if (field_find(owner, name) >= 0)
			continue;
		tn_cfg_path_join(field_path, path, name);
		is_near = tn_cfg_suggest_field(owner, name, near, sizeof near);
		tn_cfg_fail(source, field_path, "unknown key%s%s%s", is_near ? "; did you mean " : "",
			    is_near ? near : "", is_near ? "?" : "");
		refused = true;
	}
	return refused;
}

/* The canonical value of one member: what in says, else its default. NULL: refused and reported. */
static json_t *check_field(const struct tn_cfg_row *field, json_t *in, const char *path,
			   const struct tn_cfg_source *source)
{
	json_t *given = json_object_get(in, field->path), *from_text, *value;
	char field_path[TN_CFG_PATH_MAX];

	tn_cfg_path_join(field_path, path, field->path);
	if (given != NULL)
		return tn_cfg_value_check(field, given, field_path, source);
	if (field->def == NULL) {
		tn_cfg_fail(source, field_path, "is missing. %s", field->help);
		return NULL;
	}
	from_text = tn_cfg_value_from_text(field, field->def);
	if (from_text == NULL)
		return NULL; /* a default is good text: memory is short, and nothing wrong is said of the file */
	value = tn_cfg_value_check(field, from_text, field_path, source);
	json_decref(from_text);
	return value;
}

static json_t *check_object(enum tn_config_key owner, json_t *in, const char *path, const struct tn_cfg_source *source)
{
	bool refused;
	json_t *out;

	if (!json_is_object(in)) {
		char found[FOUND_TEXT];

		found_text(in, found);
		tn_cfg_fail(source, path, "expected an object, found %s", found);
		return NULL;
	}
	refused = refuse_unknown_fields(owner, in, path, source);
	out = json_object();
	for (unsigned f = 0; f < TN_CFG_FIELD_CNT; f++) {
		json_t *value;

		if (tn_cfg_field_owner[f] != owner)
			continue;
		value = check_field(&tn_cfg_fields[f], in, path, source);
		if (value == NULL || json_object_set_new(out, tn_cfg_fields[f].path, value) != 0)
			refused = true;
	}
	if (!refused)
		return out;
	json_decref(out);
	return NULL;
}

static bool has_name(json_t *list, const char *name)
{
	size_t i;
	json_t *one;

	json_array_foreach (list, i, one)
		if (strcmp(json_string_value(json_object_get(one, "name")), name) == 0)
			return true;
	return false;
}

static json_t *check_objects(const struct tn_cfg_row *row, json_t *in, const char *path,
			     const struct tn_cfg_source *source)
{
	enum tn_config_key owner = (enum tn_config_key)(row - tn_cfg_rows);
	bool refused = false;
	json_t *out, *one;
	size_t i;

	if (!json_is_array(in))
		return refuse_type(row, in, path, source);
	if (json_array_size(in) > row->max) {
		tn_cfg_fail(source, path, "has %zu entries; at most %" PRIu64, json_array_size(in), row->max);
		return NULL;
	}
	out = json_array();
	json_array_foreach (in, i, one) {
		char item_path[TN_CFG_PATH_MAX];
		json_t *object;

		snprintf(item_path, sizeof item_path, "%s/%zu", path, i);
		object = check_object(owner, one, item_path, source);
		if (object != NULL && has_name(out, json_string_value(json_object_get(object, "name")))) {
			tn_cfg_fail(source, item_path, "a second entry named %s; names must differ",
				    json_string_value(json_object_get(object, "name")));
			json_decref(object);
			object = NULL;
		}
		if (object == NULL || json_array_append_new(out, object) != 0)
			refused = true;
	}
	if (!refused)
		return out;
	json_decref(out);
	return NULL;
}

/* ---- public ---- */

json_t *tn_cfg_value_check(const struct tn_cfg_row *row, json_t *in, const char *path,
			   const struct tn_cfg_source *source)
{
	if (in == NULL) {
		tn_cfg_fail(source, path, "is not valid UTF-8");
		return NULL;
	}
	switch (row->type) {
	case TN_CFG_TYPE_BOOL:
		return json_is_boolean(in) ? json_incref(in) : refuse_type(row, in, path, source);
	case TN_CFG_TYPE_U64:
		return check_u64(row, in, path, source);
	case TN_CFG_TYPE_STR:
		return check_str(row, in, path, source);
	case TN_CFG_TYPE_ENUM:
		return check_enum(row, in, path, source);
	case TN_CFG_TYPE_STR_LIST:
	case TN_CFG_TYPE_U64_LIST:
		return check_list(row, in, path, source);
	case TN_CFG_TYPE_OBJECTS:
		return check_objects(row, in, path, source);
	}
	return NULL;
}

uint64_t tn_cfg_value_number(const struct tn_cfg_row *row, const json_t *value)
{
	switch (row->type) {
	case TN_CFG_TYPE_BOOL:
		return json_is_true(value);
	case TN_CFG_TYPE_U64:
		return (uint64_t)json_integer_value(value);
	case TN_CFG_TYPE_ENUM:
		return (uint64_t)tn_cfg_choice_find(row, json_string_value(value), json_string_length(value));
	default:
		return 0;
	}
}
