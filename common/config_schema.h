/* SPDX-License-Identifier: Apache-2.0
 * The rows of config_schema.def as data, for the parser, the checks, the dump and the generator of the documents; not
 * for users of a config. Also what can be said about a row without a value: its range, its environment name, the
 * nearest row to a misspelt one. Static data; any thread. */
#ifndef TN_CONFIG_SCHEMA_H
#define TN_CONFIG_SCHEMA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/config.h"

#define TN_CONFIG_TYPE_LIST(X) \
	X(BOOL, "boolean") X(U64, "integer") X(STR, "string") X(ENUM, "word") \
	X(STR_LIST, "list of strings") X(U64_LIST, "list of integers") X(OBJECTS, "list of objects")

/* X(NAME, "unit or meaning as the documents say it") */
#define TN_CONFIG_KIND_LIST(X) \
	X(NONE, "") X(COUNT, "") X(BYTES, "bytes") X(MS, "milliseconds") X(US, "microseconds") \
	X(PPM, "parts per million") \
	X(PORT, "port number") X(CPU, "CPU number") X(NAME, "name") X(PATH, "absolute path") X(WORD, "word") \
	X(ADDRESS, "numeric address") X(ENDPOINT, "tcp://ADDRESS:PORT") X(BIND_ENDPOINT, "tcp://ADDRESS:PORT") \
	X(PUBLIC_KEY, "public key") X(ADDRESS_SET, "numeric prefix")

#define X(n, s) TN_CFG_TYPE_##n,
enum tn_cfg_type { TN_CONFIG_TYPE_LIST(X) };
#undef X
#define X(n, s) TN_CFG_KIND_##n,
enum tn_cfg_kind { TN_CONFIG_KIND_LIST(X) };
#undef X

/* One key, or one member of the objects in a list. */
struct tn_cfg_row {
	const char *path;      /* "poll/spin_us"; of a member: its name */
	enum tn_cfg_type type;
	enum tn_cfg_kind kind;
	uint64_t min, max;
	const char *def;       /* NULL: required member */
	const char *choices;   /* "busy|adaptive|": each word is followed by a bar; NULL: any */
	bool hot;
	const char *help;
};

struct tn_cfg_section {
	const char *path;      /* "poll"; "" = keys at the top level */
	const char *title;
};

/* Every member row of the object lists, in schema order: TN_CFG_FIELD_PEERS_NAME ... */
enum tn_cfg_field {
#define TN_CFG_FIELD(owner, id, name, type, kind, min, max, def, choices, help) TN_CFG_FIELD_##owner##_##id,
#include "common/config_schema.def"
	TN_CFG_FIELD_CNT
};

extern const struct tn_cfg_row tn_cfg_rows[TN_CFG_KEY_CNT];
extern const struct tn_cfg_row tn_cfg_fields[TN_CFG_FIELD_CNT];
extern const enum tn_config_key tn_cfg_field_owner[TN_CFG_FIELD_CNT];
extern const struct tn_cfg_section tn_cfg_sections[];
extern const size_t tn_cfg_section_cnt;

const char *tn_cfg_type_text(enum tn_cfg_type type);
const char *tn_cfg_kind_text(enum tn_cfg_kind kind);

/* The key with this path; TN_CFG_KEY_CNT when there is none. */
enum tn_config_key tn_cfg_key_find(const char *path);
/* True when some key lies below path ("transports" and "transports/tcp" do). */
bool tn_cfg_is_section(const char *path);
/* The section that a key's documentation belongs to. */
const struct tn_cfg_section *tn_cfg_section_of(enum tn_config_key key);

/* "TENT_POLL_SPIN_US", cut to fit. */
void tn_cfg_env_name(enum tn_config_key key, char *out, size_t out_bytes);
/* The key of an environment name; TN_CFG_KEY_CNT when there is none. */
enum tn_config_key tn_cfg_key_by_env(const char *name);

/* Place of a word among a row's choices; -1 when it is none of them. */
int tn_cfg_choice_find(const struct tn_cfg_row *row, const char *word, size_t word_bytes);
/* Word i of the choices, copied; false past the last. */
bool tn_cfg_choice(const struct tn_cfg_row *row, unsigned i, char *out, size_t out_bytes);
/* What is allowed, for documents and error texts: "0..1000000 microseconds", "one of busy, adaptive". */
void tn_cfg_range_text(const struct tn_cfg_row *row, char *out, size_t out_bytes);

/* Nearest key or section to a misspelt path; also finds a key that was written under the wrong section. NULL when
 * nothing is near. */
const char *tn_cfg_suggest_path(const char *path);
/* Nearest environment name, copied; false when nothing is near. */
bool tn_cfg_suggest_env(const char *name, char *out, size_t out_bytes);
/* Nearest member of an object list, nearest word of a row's choices; false when nothing is near. */
bool tn_cfg_suggest_field(enum tn_config_key owner, const char *name, char *out, size_t out_bytes);
bool tn_cfg_suggest_choice(const struct tn_cfg_row *row, const char *word, char *out, size_t out_bytes);

#endif
