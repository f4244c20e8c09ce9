/* SPDX-License-Identifier: Apache-2.0
 * The inside of a config, shared by the files that build it, check it and print it. Values are kept as canonical JSON
 * (sizes as numbers, members of objects filled in), so copy, compare and dump are jansson's; the number is cached.
 * Built by one thread, immutable afterwards. */
#ifndef TN_CONFIG_OBJECT_H
#define TN_CONFIG_OBJECT_H

#include <jansson.h>

#include "common/config.h"
#include "common/config_schema.h"

#define TN_CFG_FILE_MAX_BYTES (1u << 20)   /* of one file: far above any real one, bounds what a wrong path costs */
#define TN_CFG_PATH_MAX 128                /* key path with indices, with the NUL */

struct tn_cfg_value {
	json_t *json;                           /* canonical, owned */
	uint64_t u64;                           /* U64, BOOL, and the place of an ENUM's word */
	struct tn_config_origin origin;
	struct tn_config_origin *item_origin;   /* OBJECTS: one per item */
	bool refused;                           /* some source gave it a wrong value: skip rules that involve it */
};

struct tn_config {
	uint64_t generation;
	const char *path;                       /* in names, or NULL */
	struct tn_cfg_value value[TN_CFG_KEY_CNT];
	struct tn_config_peer *peers;
	unsigned peer_cnt;
	const char **data_addresses;            /* of all peers */
	struct tn_config_policy *policies;
	unsigned policy_cnt;
	char **policy_names;                    /* every one there ever was; its place is its number */
	unsigned policy_name_cnt;
	char **names;                           /* texts that origins point to */
	size_t name_cnt;
};

/* ---- building (config.c) ---- */

/* An empty config; NULL: no memory. */
struct tn_config *tn_cfg_new(uint64_t generation);
/* A copy of text that lives as long as cfg; NULL: no memory. */
const char *tn_cfg_intern(struct tn_config *cfg, const char *text);
/* Replace a value; takes over json and item_origin, also on failure. origin.name is copied. NO_MEMORY or OK. */
tn_status tn_cfg_set(struct tn_config *cfg, enum tn_config_key key, json_t *json, struct tn_config_origin origin,
		     struct tn_config_origin *item_origin);

/* ---- where an error is (config_error.c) ---- */

struct tn_cfg_lines;

/* The source being read: what an error text names. */
struct tn_cfg_source {
	struct tn_config_errors *errors;
	enum tn_config_origin_kind kind;
	const char *name;                       /* file, environment name, "--set"; "" for rules */
	const struct tn_cfg_lines *lines;       /* of a file; NULL else */
};

/* prefix/name, or name alone when prefix is "". False: cut to fit, which no path of the schema is. */
bool tn_cfg_path_join(char out[static TN_CFG_PATH_MAX], const char *prefix, const char *name);
/* Add an error about a key path; its line is looked up. path "" = the source as a whole. */
void tn_cfg_fail(const struct tn_cfg_source *source, const char *path, const char *fmt, ...) TN_PRINTF(3, 4);
void tn_cfg_fail_at(const struct tn_cfg_source *source, const char *path, unsigned line, const char *fmt, ...)
	TN_PRINTF(4, 5);
unsigned tn_cfg_error_cnt(const struct tn_config_errors *errors);

/* ---- lines of key paths in a JSON text (config_lines.c) ---- */

/* text is JSON that jansson accepted. NULL: no memory. */
struct tn_cfg_lines *tn_cfg_lines_new(const char *text, size_t text_bytes);
void tn_cfg_lines_free(struct tn_cfg_lines *lines);
/* Line of the key, or of its nearest enclosing one; 0 when unknown. */
unsigned tn_cfg_lines_find(const struct tn_cfg_lines *lines, const char *path);
/* Report every key that stands twice in one object; returns their number. */
unsigned tn_cfg_lines_report_duplicates(const struct tn_cfg_lines *lines, const struct tn_cfg_source *source);

/* ---- one value (config_value.c) ---- */

/* What a person wrote in a flag, the environment or the schema's default column, as JSON of the row's type. Text that
 * does not fit becomes a JSON string, which the check below then refuses. NULL: not UTF-8, or no memory. */
json_t *tn_cfg_value_from_text(const struct tn_cfg_row *row, const char *text);
/* Check in against the row and build its canonical form. path is for error texts. NULL: refused and reported. */
json_t *tn_cfg_value_check(const struct tn_cfg_row *row, json_t *in, const char *path,
			   const struct tn_cfg_source *source);
/* The cached number of a canonical value: U64, BOOL, ENUM; 0 for other types. */
uint64_t tn_cfg_value_number(const struct tn_cfg_row *row, const json_t *value);

/* ---- meaning of one text (config_text.c) ---- */

/* True when a STR of this kind may be text; else problem says what is wrong. */
bool tn_cfg_kind_check(enum tn_cfg_kind kind, const char *text, char problem[static TN_ERR_TEXT]);

enum tn_cfg_reach { TN_CFG_REACH_WILDCARD, TN_CFG_REACH_LOOPBACK, TN_CFG_REACH_OTHER };

/* How far a checked ADDRESS or ENDPOINT reaches. */
enum tn_cfg_reach tn_cfg_reach(const char *text);

/* ---- the finished whole (config_rules.c, config_objects.c) ---- */

/* Resolve the defaults that depend on the host or on other keys. env is searched for HOME and the XDG variables.
 * NO_MEMORY or OK; what cannot be used goes to errors. */
tn_status tn_cfg_resolve(struct tn_config *cfg, const char *const *env, struct tn_config_errors *errors);
/* Check the rules over several keys; what is broken goes to errors. */
void tn_cfg_check_rules(const struct tn_config *cfg, struct tn_config_errors *errors);
/* Build cfg->peers and cfg->policies from their values. `before`: whose policies keep their numbers; NULL: they are
 * numbered as they stand. OK, NO_MEMORY, LIMIT (too many names of policies). */
tn_status tn_cfg_build_objects(struct tn_config *cfg, const struct tn_config *before);

void tn_cfg_free_policy_names(struct tn_config *cfg);

/* ---- printing (config_dump.c) ---- */

/* Put value at path into nested objects; takes over value. False: no memory. */
bool tn_cfg_put_nested(json_t *root, const char *path, json_t *value);

#endif
