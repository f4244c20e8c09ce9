/* SPDX-License-Identifier: Apache-2.0
 * The sources of a configuration and their order: default < file < conf.d/ *.json < environment < flags. Only this file
 * opens config files. Every source is read to its end and every problem reported, so that one run of config check
 * shows all there is to fix. Start-up and control thread; blocks on file reads. */
#include "common/config_object.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/assert.h"
#include "common/paths.h"
#include "common/utf8.h"

#define FILE_PATH_MAX 4096

struct loader {
	struct tn_config *cfg;
	struct tn_config_errors *errors;
	const char *const *env;
	bool without_peers;
};

/* Names that begin with TENT_ and are no keys: see docs/config.md. */
static const char *const other_env[] = { "TENT_CONFIG", "TENT_HOOK" };
#define TEST_ENV_PREFIX "TENT_TEST_"

/* ---- taking one value ---- */

/* files merge peers by name: entries of an earlier file stay unless the later one has the same name. Both lists are
 * checked; takes over the new list. */
static tn_status merge_peers(struct loader *l, json_t *added, struct tn_config_origin origin,
			     struct tn_config_origin *added_origin)
{
	const struct tn_cfg_value *old = &l->cfg->value[TN_CFG_PEERS];
	size_t old_cnt = json_array_size(old->json), added_cnt = json_array_size(added), cnt = old_cnt;
	struct tn_config_origin *item_origin = calloc(old_cnt + added_cnt + 1, sizeof *item_origin);
	json_t *merged = json_copy(old->json);
	bool no_memory = item_origin == NULL || merged == NULL;

	if (!no_memory && old_cnt > 0)
		memcpy(item_origin, old->item_origin, old_cnt * sizeof *item_origin);
	for (size_t a = 0; a < added_cnt && !no_memory; a++) {
		json_t *peer = json_array_get(added, a);
		const char *name = json_string_value(json_object_get(peer, "name"));
		size_t place = 0;

		while (place < old_cnt &&
		       strcmp(json_string_value(json_object_get(json_array_get(merged, place), "name")), name) != 0)
			place++;
		if (place < old_cnt)
			no_memory = json_array_set(merged, place, peer) != 0;
		else
			no_memory = json_array_append(merged, peer) != 0, place = cnt++;
		item_origin[place] = added_origin[a];
	}
	json_decref(added);
	free(added_origin);
	if (no_memory) {
		json_decref(merged);
		free(item_origin);
		return TN_NO_MEMORY;
	}
	return tn_cfg_set(l->cfg, TN_CFG_PEERS, merged, origin, item_origin);
}

/* One origin per entry of a checked list of objects. NULL: no memory. */
static struct tn_config_origin *origins_of(struct loader *l, enum tn_config_key key, const json_t *list,
					   struct tn_config_origin origin, const struct tn_cfg_lines *lines)
{
	size_t cnt = json_array_size(list);
	struct tn_config_origin *item_origin = calloc(cnt + 1, sizeof *item_origin);

	if (origin.name != NULL)
		origin.name = tn_cfg_intern(l->cfg, origin.name);
	for (size_t i = 0; i < cnt && item_origin != NULL; i++) {
		char path[TN_CFG_PATH_MAX];

		snprintf(path, sizeof path, "%s/%zu", tn_cfg_rows[key].path, i);
		item_origin[i] = origin;
		if (lines != NULL)
			item_origin[i].line = tn_cfg_lines_find(lines, path);
	}
	return item_origin;
}

/* Check a value and make it the effective one so far. A refused one is reported and leaves the earlier in place. */
static tn_status take(struct loader *l, enum tn_config_key key, json_t *in, const struct tn_cfg_source *source)
{
	const struct tn_cfg_row *row = &tn_cfg_rows[key];
	struct tn_cfg_value *value = &l->cfg->value[key];
	struct tn_config_origin origin = { .kind = source->kind }, *item_origin = NULL;
	unsigned before = tn_cfg_error_cnt(l->errors);
	json_t *checked;

	if (key == TN_CFG_PEERS && l->without_peers && source->kind != TN_ORIGIN_DEFAULT)
		return TN_OK;
	checked = tn_cfg_value_check(row, in, row->path, source);
	if (checked == NULL) {
		value->refused = true;
		return tn_cfg_error_cnt(l->errors) > before ? TN_OK : TN_NO_MEMORY;
	}
	if (source->kind == TN_ORIGIN_FILE || source->kind == TN_ORIGIN_ENV)
		origin.name = source->name;
	if (source->lines != NULL)
		origin.line = tn_cfg_lines_find(source->lines, row->path);
	if (row->type == TN_CFG_TYPE_OBJECTS) {
		item_origin = origins_of(l, key, checked, origin, source->lines);
		if (item_origin == NULL) {
			json_decref(checked);
			return TN_NO_MEMORY;
		}
		if (key == TN_CFG_PEERS && source->kind == TN_ORIGIN_FILE && value->origin.kind == TN_ORIGIN_FILE)
			return merge_peers(l, checked, origin, item_origin);
	}
	return tn_cfg_set(l->cfg, key, checked, origin, item_origin);
}

static tn_status take_text(struct loader *l, enum tn_config_key key, const char *text,
			   const struct tn_cfg_source *source)
{
	json_t *in = tn_cfg_value_from_text(&tn_cfg_rows[key], text);
	tn_status status;

	if (in == NULL && tn_utf8_valid(text))
		return TN_NO_MEMORY;
	status = take(l, key, in, source);
	json_decref(in);
	return status;
}

static tn_status take_defaults(struct loader *l)
{
	struct tn_cfg_source source = { .errors = l->errors, .kind = TN_ORIGIN_DEFAULT, .name = "default" };
	tn_status status = TN_OK;

	for (unsigned k = 0; k < TN_CFG_KEY_CNT && status == TN_OK; k++)
		status = take_text(l, (enum tn_config_key)k, tn_cfg_rows[k].def, &source);
	/* The schema does not refuse its own defaults (a test says so): where one seems wrong, memory was short. */
	return status == TN_OK && l->errors->cnt > 0 ? TN_NO_MEMORY : status;
}

/* ---- files ---- */

static void fail_unknown(const char *path, const struct tn_cfg_source *source)
{
	const char *near = tn_cfg_suggest_path(path);

	tn_cfg_fail(source, path, "unknown key%s%s%s", near != NULL ? "; did you mean " : "", near != NULL ? near : "",
		    near != NULL ? "?" : "");
}

static tn_status take_object(struct loader *l, json_t *object, const char *prefix, const struct tn_cfg_source *source)
{
	tn_status status = TN_OK;
	const char *name;
	json_t *member;

	json_object_foreach (object, name, member) {
		char path[TN_CFG_PATH_MAX];
		enum tn_config_key key;

		tn_cfg_path_join(path, prefix, name);
		key = tn_cfg_key_find(path);
		if (strchr(name, '/') != NULL)
			tn_cfg_fail(source, path,
				    "unknown key; in JSON a slash is a level: {\"a\": {\"b\": ...}} is a/b");
		else if (key != TN_CFG_KEY_CNT)
			status = take(l, key, member, source);
		else if (!tn_cfg_is_section(path))
			fail_unknown(path, source);
		else if (!json_is_object(member))
			tn_cfg_fail(source, path, "expected an object with the keys of this section");
		else
			status = take_object(l, member, path, source);
		if (status != TN_OK)
			return status;
	}
	return TN_OK;
}

/* The whole file, NUL-terminated, for free(). NULL: reported, or *missing_out when there is no such file. */
static char *read_file(const char *path, size_t *bytes_out, bool *missing_out, const struct tn_cfg_source *source)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	char *text = NULL;
	size_t used = 0, cap;
	struct stat st;
	ssize_t got;

	*missing_out = fd < 0 && (errno == ENOENT || errno == ENOTDIR);
	if (*missing_out)
		return NULL;
	if (fd < 0) {
		tn_cfg_fail(source, "", "cannot be read: %s", strerror(errno));
		return NULL;
	}
	if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
		tn_cfg_fail(source, "", "is not a regular file");
		goto undo_open;
	}
	if (st.st_size > TN_CFG_FILE_MAX_BYTES) {
		tn_cfg_fail(source, "", "is larger than %u bytes", TN_CFG_FILE_MAX_BYTES);
		goto undo_open;
	}
	cap = (size_t)st.st_size + 1; /* one more, to notice growth; the NUL takes it otherwise */
	text = malloc(cap);
	if (text == NULL) {
		tn_cfg_fail(source, "", "no memory to read it");
		goto undo_open;
	}
	while (used < cap && (got = read(fd, text + used, cap - used)) != 0) {
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0) {
			tn_cfg_fail(source, "", "cannot be read: %s", strerror(errno));
			goto undo_text;
		}
		used += (size_t)got;
	}
	if (used == cap) {
		tn_cfg_fail(source, "", "grew while it was read; try again");
		goto undo_text;
	}
	close(fd);
	text[used] = '\0';
	*bytes_out = used;
	return text;
undo_text:
	free(text);
undo_open:
	close(fd);
	return NULL;
}

/* Parse strictly; when a key stands twice, parse again so that the caller can report each of them with both lines.
 * NULL: reported; not reported: no memory. */
static json_t *parse(const char *text, size_t bytes, const struct tn_cfg_source *source)
{
	json_error_t error;
	json_t *root = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &error);

	if (root == NULL && json_error_code(&error) == json_error_duplicate_key)
		root = json_loadb(text, bytes, 0, &error);
	if (root == NULL && json_error_code(&error) == json_error_out_of_memory)
		return NULL;
	if (root == NULL) {
		tn_cfg_fail_at(source, "", error.line > 0 ? (unsigned)error.line : 0, "not valid JSON: column %d: %s",
			       error.column, error.text);
		return NULL;
	}
	if (json_is_object(root))
		return root;
	tn_cfg_fail_at(source, "", 1, "expected an object { ... } at the top");
	json_decref(root);
	return NULL;
}

static tn_status take_json(struct loader *l, const char *text, size_t bytes, struct tn_cfg_source *source)
{
	unsigned before = tn_cfg_error_cnt(l->errors);
	json_t *root = parse(text, bytes, source);
	struct tn_cfg_lines *lines;
	tn_status status;

	if (root == NULL)
		return tn_cfg_error_cnt(l->errors) > before ? TN_OK : TN_NO_MEMORY;
	lines = tn_cfg_lines_new(text, bytes);
	if (lines == NULL) {
		json_decref(root);
		return TN_NO_MEMORY;
	}
	source->lines = lines;
	tn_cfg_lines_report_duplicates(lines, source);
	status = take_object(l, root, "", source);
	source->lines = NULL;
	tn_cfg_lines_free(lines);
	json_decref(root);
	return status;
}

/* Read one file; *missing_out instead of an error when it does not exist. */
static tn_status take_file(struct loader *l, const char *path, bool *missing_out)
{
	struct tn_cfg_source source = { .errors = l->errors, .kind = TN_ORIGIN_FILE, .name = path };
	size_t bytes = 0;
	char *text = read_file(path, &bytes, missing_out, &source);
	tn_status status = TN_OK;

	if (text != NULL)
		status = take_json(l, text, bytes, &source);
	free(text);
	return status;
}

/* ---- drop-ins ---- */

static int is_drop_in(const struct dirent *entry)
{
	size_t len = strlen(entry->d_name);

	return entry->d_name[0] != '.' && len > 5 && strcmp(entry->d_name + len - 5, ".json") == 0;
}

/* Byte order: alphasort() would follow the locale. */
static int compare_entries(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

/* conf.d beside the main file. */
static tn_status take_drop_ins(struct loader *l, const char *main_path)
{
	const char *slash = strrchr(main_path, '/');
	char dir[FILE_PATH_MAX], path[FILE_PATH_MAX + 300];
	struct tn_cfg_source source = { .errors = l->errors, .kind = TN_ORIGIN_FILE, .name = dir };
	struct dirent **entries = NULL;
	tn_status status = TN_OK;
	bool missing;
	int cnt;

	snprintf(dir, sizeof dir, "%.*sconf.d", slash != NULL ? (int)(slash - main_path + 1) : 0, main_path);
	cnt = scandir(dir, &entries, is_drop_in, compare_entries);
	if (cnt < 0 && errno != ENOENT && errno != ENOTDIR)
		tn_cfg_fail(&source, "", "cannot be read: %s", strerror(errno));
	for (int i = 0; i < cnt; i++) {
		snprintf(path, sizeof path, "%s/%s", dir, entries[i]->d_name);
		if (status == TN_OK) {
			source.name = path;
			status = take_file(l, path, &missing);
			if (status == TN_OK && missing)
				tn_cfg_fail(&source, "",
					    "cannot be read: it is a link to nothing, or was removed just now");
		}
		free(entries[i]);
	}
	free(entries);
	return status;
}

static tn_status take_files(struct loader *l, const struct tn_config_opts *opts)
{
	const char *from_env = tn_env_find(l->env, "TENT_CONFIG"), *path = opts->path;
	struct tn_cfg_source source = { .errors = l->errors, .kind = TN_ORIGIN_FILE };
	bool is_explicit = true, missing;
	tn_status status;

	if (path == NULL && from_env != NULL && *from_env != '\0')
		path = from_env;
	if (path == NULL) {
		path = opts->default_path != NULL ? opts->default_path : TN_CONFIG_DEFAULT_PATH;
		is_explicit = false;
	}
	source.name = path;
	if (strlen(path) >= FILE_PATH_MAX - 16) {
		tn_cfg_fail(&source, "", "the path is too long");
		return TN_OK;
	}
	status = take_file(l, path, &missing);
	if (status != TN_OK)
		return status;
	if (missing && is_explicit) {
		tn_cfg_fail(&source, "", "there is no such file%s",
			    opts->path != NULL ? "" : " ($TENT_CONFIG in the environment names it)");
		return TN_OK;
	}
	if (!missing) {
		l->cfg->path = tn_cfg_intern(l->cfg, path);
		if (l->cfg->path == NULL)
			return TN_NO_MEMORY;
	}
	return take_drop_ins(l, path);
}

/* ---- environment and flags ---- */

static bool is_other_env(const char *name)
{
	for (size_t i = 0; i < TN_ARRAY_LEN(other_env); i++)
		if (strcmp(name, other_env[i]) == 0)
			return true;
	return strncmp(name, TEST_ENV_PREFIX, strlen(TEST_ENV_PREFIX)) == 0;
}

static tn_status take_env(struct loader *l)
{
	for (const char *const *e = l->env; *e != NULL; e++) {
		const char *equals = strchr(*e, '=');
		char name[TN_CFG_PATH_MAX], near[TN_CFG_PATH_MAX];
		struct tn_cfg_source source = { .errors = l->errors, .kind = TN_ORIGIN_ENV, .name = name };
		enum tn_config_key key;
		tn_status status;
		bool is_near;

		if (strncmp(*e, "TENT_", 5) != 0 || equals == NULL)
			continue;
		snprintf(name, sizeof name, "%.*s", (int)TN_MIN(equals - *e, TN_CFG_PATH_MAX), *e);
		if (is_other_env(name))
			continue;
		key = tn_cfg_key_by_env(name);
		if (key == TN_CFG_KEY_CNT) {
			is_near = tn_cfg_suggest_env(name, near, sizeof near);
			tn_cfg_fail(&source, "", "unknown variable%s%s%s", is_near ? "; did you mean " : "",
				    is_near ? near : "", is_near ? "?" : "; unset it, TENT_ is the configuration's");
			continue;
		}
		status = take_text(l, key, equals + 1, &source);
		if (status != TN_OK)
			return status;
	}
	return TN_OK;
}

static tn_status take_flags(struct loader *l, const struct tn_config_opts *opts)
{
	struct tn_cfg_source source = { .errors = l->errors, .kind = TN_ORIGIN_FLAG, .name = "--set" };

	for (size_t i = 0; i < opts->set_cnt; i++) {
		const char *set = opts->sets[i], *equals = strchr(set, '=');
		char path[TN_CFG_PATH_MAX];
		enum tn_config_key key;
		tn_status status;

		if (equals == NULL) {
			tn_cfg_fail(&source, set, "has no value; write --set key=value");
			continue;
		}
		snprintf(path, sizeof path, "%.*s", (int)TN_MIN(equals - set, TN_CFG_PATH_MAX), set);
		key = tn_cfg_key_find(path);
		if (key == TN_CFG_KEY_CNT) {
			if (tn_cfg_is_section(path))
				tn_cfg_fail(&source, path, "is a section; set one of its keys");
			else
				fail_unknown(path, &source);
			continue;
		}
		status = take_text(l, key, equals + 1, &source);
		if (status != TN_OK)
			return status;
	}
	return TN_OK;
}

/* ---- the whole ---- */

static tn_status take_all(struct loader *l, const struct tn_config_opts *opts)
{
	tn_status status = take_defaults(l);

	if (status == TN_OK)
		status = take_files(l, opts);
	if (status == TN_OK)
		status = take_env(l);
	if (status == TN_OK)
		status = take_flags(l, opts);
	if (status == TN_OK)
		status = tn_cfg_resolve(l->cfg, l->env, l->errors);
	if (status == TN_OK)
		status = tn_cfg_build_objects(l->cfg, NULL);
	if (status == TN_OK)
		tn_cfg_check_rules(l->cfg, l->errors);
	if (status == TN_OK && l->errors->cnt > 0)
		status = TN_CONFIG;
	return status;
}

tn_status tn_config_load(const struct tn_config_opts *opts, struct tn_config **out, struct tn_config_errors *errors)
{
	struct loader l = { .errors = errors, .env = opts->env, .without_peers = opts->without_peers };
	tn_status status;

	tn_assert(opts->size == sizeof *opts);
	errors->cnt = 0;
	errors->dropped_cnt = 0;
	if (l.env == NULL)
		l.env = (const char *const *)environ;
	l.cfg = tn_cfg_new(opts->generation != 0 ? opts->generation : 1);
	if (l.cfg == NULL)
		return TN_NO_MEMORY;
	status = take_all(&l, opts);
	if (status != TN_OK) {
		tn_config_free(l.cfg);
		return status;
	}
	*out = l.cfg;
	return TN_OK;
}
