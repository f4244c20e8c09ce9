/* SPDX-License-Identifier: Apache-2.0
 * The config object: its life, the O(1) getters, origins, diff. Getters run on any thread (the object is immutable once
 * load returned it); the rest at start-up and on the control thread. */
#include "common/config.h"

#include <stdlib.h>
#include <string.h>

#include "common/assert.h"
#include "common/clock.h"
#include "common/config_object.h"

#define WORKERS_AUTO_MAX 8u

/* ---- life ---- */

struct tn_config *tn_cfg_new(uint64_t generation)
{
	struct tn_config *cfg = calloc(1, sizeof *cfg);

	if (cfg != NULL)
		cfg->generation = generation;
	return cfg;
}

void tn_config_free(struct tn_config *cfg)
{
	if (cfg == NULL)
		return;
	free(cfg->peers);
	free(cfg->data_addresses);
	free(cfg->policies);
	tn_cfg_free_policy_names(cfg);
	for (unsigned k = 0; k < TN_CFG_KEY_CNT; k++) {
		json_decref(cfg->value[k].json);
		free(cfg->value[k].item_origin);
	}
	for (size_t i = 0; i < cfg->name_cnt; i++)
		free(cfg->names[i]);
	free(cfg->names);
	free(cfg);
}

const char *tn_cfg_intern(struct tn_config *cfg, const char *text)
{
	char **grown;

	for (size_t i = 0; i < cfg->name_cnt; i++)
		if (strcmp(cfg->names[i], text) == 0)
			return cfg->names[i];
	grown = realloc(cfg->names, (cfg->name_cnt + 1) * sizeof *grown);
	if (grown == NULL)
		return NULL;
	cfg->names = grown;
	grown[cfg->name_cnt] = strdup(text);
	return grown[cfg->name_cnt] != NULL ? grown[cfg->name_cnt++] : NULL;
}

tn_status tn_cfg_set(struct tn_config *cfg, enum tn_config_key key, json_t *json, struct tn_config_origin origin,
		     struct tn_config_origin *item_origin)
{
	struct tn_cfg_value *value = &cfg->value[key];

	if (origin.name != NULL) {
		origin.name = tn_cfg_intern(cfg, origin.name);
		if (origin.name == NULL) {
			json_decref(json);
			free(item_origin);
			return TN_NO_MEMORY;
		}
	}
	json_decref(value->json);
	free(value->item_origin);
	value->json = json;
	value->item_origin = item_origin;
	value->u64 = tn_cfg_value_number(&tn_cfg_rows[key], json);
	value->origin = origin;
	return TN_OK;
}

/* ---- getters ---- */

static const struct tn_cfg_value *value_of(const struct tn_config *cfg, enum tn_config_key key, enum tn_cfg_type type)
{
	tn_assert((unsigned)key < TN_CFG_KEY_CNT && tn_cfg_rows[key].type == type);
	return &cfg->value[key];
}

uint64_t tn_config_u64(const struct tn_config *cfg, enum tn_config_key key)
{
	return value_of(cfg, key, TN_CFG_TYPE_U64)->u64;
}

uint64_t tn_config_ns(const struct tn_config *cfg, enum tn_config_key key)
{
	uint64_t number = tn_config_u64(cfg, key);

	if (tn_cfg_rows[key].kind == TN_CFG_KIND_MS)
		return number * TN_NS_PER_MS;
	tn_assert(tn_cfg_rows[key].kind == TN_CFG_KIND_US);
	return number * TN_NS_PER_US;
}

bool tn_config_bool(const struct tn_config *cfg, enum tn_config_key key)
{
	return value_of(cfg, key, TN_CFG_TYPE_BOOL)->u64 != 0;
}

const char *tn_config_str(const struct tn_config *cfg, enum tn_config_key key)
{
	tn_assert((unsigned)key < TN_CFG_KEY_CNT);
	tn_assert(tn_cfg_rows[key].type == TN_CFG_TYPE_STR || tn_cfg_rows[key].type == TN_CFG_TYPE_ENUM);
	return json_string_value(cfg->value[key].json);
}

unsigned tn_config_enum(const struct tn_config *cfg, enum tn_config_key key)
{
	return (unsigned)value_of(cfg, key, TN_CFG_TYPE_ENUM)->u64;
}

unsigned tn_config_list_cnt(const struct tn_config *cfg, enum tn_config_key key)
{
	tn_assert((unsigned)key < TN_CFG_KEY_CNT);
	tn_assert(tn_cfg_rows[key].type == TN_CFG_TYPE_STR_LIST || tn_cfg_rows[key].type == TN_CFG_TYPE_U64_LIST);
	return (unsigned)json_array_size(cfg->value[key].json);
}

uint64_t tn_config_list_u64(const struct tn_config *cfg, enum tn_config_key key, unsigned i)
{
	const struct tn_cfg_value *value = value_of(cfg, key, TN_CFG_TYPE_U64_LIST);

	tn_assert(i < json_array_size(value->json));
	return (uint64_t)json_integer_value(json_array_get(value->json, i));
}

const char *tn_config_list_str(const struct tn_config *cfg, enum tn_config_key key, unsigned i)
{
	const struct tn_cfg_value *value = value_of(cfg, key, TN_CFG_TYPE_STR_LIST);

	tn_assert(i < json_array_size(value->json));
	return json_string_value(json_array_get(value->json, i));
}

unsigned tn_config_worker_cnt(const struct tn_config *cfg, unsigned cpu_cnt)
{
	unsigned count = (unsigned)tn_config_u64(cfg, TN_CFG_WORKERS_COUNT);
	unsigned listed = tn_config_list_cnt(cfg, TN_CFG_WORKERS_CPUS);

	if (count > 0 || listed > 0)
		return count > 0 ? count : listed;
	return cpu_cnt <= 2 ? 1 : TN_MIN(cpu_cnt - 1, WORKERS_AUTO_MAX);
}

unsigned tn_config_peer_cnt(const struct tn_config *cfg)
{
	return cfg->peer_cnt;
}

const struct tn_config_peer *tn_config_peer(const struct tn_config *cfg, unsigned i)
{
	tn_assert(i < cfg->peer_cnt);
	return &cfg->peers[i];
}

const struct tn_config_peer *tn_config_peer_by_name(const struct tn_config *cfg, const char *name)
{
	for (unsigned i = 0; i < cfg->peer_cnt; i++)
		if (strcmp(cfg->peers[i].name, name) == 0)
			return &cfg->peers[i];
	return NULL;
}

const struct tn_config_peer *tn_config_peer_by_id(const struct tn_config *cfg, const struct tn_peer_id *id)
{
	for (unsigned i = 0; i < cfg->peer_cnt; i++)
		if (!tn_peer_id_is_zero(id) && tn_peer_id_eq(&cfg->peers[i].id, id))
			return &cfg->peers[i];
	return NULL;
}

unsigned tn_config_policy_cnt(const struct tn_config *cfg)
{
	return cfg->policy_cnt;
}

const struct tn_config_policy *tn_config_policy(const struct tn_config *cfg, unsigned i)
{
	tn_assert(i < cfg->policy_cnt);
	return &cfg->policies[i];
}

const struct tn_config_policy *tn_config_policy_by_name(const struct tn_config *cfg, const char *name)
{
	for (unsigned i = 0; i < cfg->policy_cnt; i++)
		if (strcmp(cfg->policies[i].name, name) == 0)
			return &cfg->policies[i];
	return NULL;
}

const struct tn_config_policy *tn_config_policy_by_id(const struct tn_config *cfg, unsigned id)
{
	for (unsigned i = 0; i < cfg->policy_cnt; i++)
		if (cfg->policies[i].id == id)
			return &cfg->policies[i];
	return NULL;
}

unsigned tn_config_policy_id_end(const struct tn_config *cfg)
{
	return TN_CONFIG_POLICY_ID_FIRST + cfg->policy_name_cnt;
}

/* ---- origins and names ---- */

struct tn_config_origin tn_config_origin(const struct tn_config *cfg, enum tn_config_key key)
{
	tn_assert((unsigned)key < TN_CFG_KEY_CNT);
	return cfg->value[key].origin;
}

void tn_config_origin_text(struct tn_config_origin origin, char *out, size_t out_bytes)
{
	switch (origin.kind) {
	case TN_ORIGIN_DEFAULT:
		snprintf(out, out_bytes, "default");
		return;
	case TN_ORIGIN_FILE:
		snprintf(out, out_bytes, "%s:%u", origin.name, origin.line);
		return;
	case TN_ORIGIN_ENV:
		snprintf(out, out_bytes, "env %s", origin.name);
		return;
	case TN_ORIGIN_FLAG:
		snprintf(out, out_bytes, "--set");
		return;
	}
}

uint64_t tn_config_generation(const struct tn_config *cfg)
{
	return cfg->generation;
}

const char *tn_config_path(const struct tn_config *cfg)
{
	return cfg->path;
}

const char *tn_config_key_path(enum tn_config_key key)
{
	tn_assert((unsigned)key < TN_CFG_KEY_CNT);
	return tn_cfg_rows[key].path;
}

const char *tn_config_key_help(enum tn_config_key key)
{
	tn_assert((unsigned)key < TN_CFG_KEY_CNT);
	return tn_cfg_rows[key].help;
}

bool tn_config_key_is_hot(enum tn_config_key key)
{
	tn_assert((unsigned)key < TN_CFG_KEY_CNT);
	return tn_cfg_rows[key].hot;
}

/* ---- diff and reload ---- */

unsigned tn_config_diff(const struct tn_config *old_cfg, const struct tn_config *new_cfg,
			struct tn_config_change out[static TN_CFG_KEY_CNT])
{
	unsigned cnt = 0;

	for (unsigned k = 0; k < TN_CFG_KEY_CNT; k++) {
		if (json_equal(old_cfg->value[k].json, new_cfg->value[k].json))
			continue;
		out[cnt++] = (struct tn_config_change){ .key = (enum tn_config_key)k, .hot = tn_cfg_rows[k].hot };
	}
	return cnt;
}

/* Make key in cfg what it is in from. */
static tn_status carry(struct tn_config *cfg, const struct tn_config *from, enum tn_config_key key)
{
	const struct tn_cfg_value *value = &from->value[key];
	size_t item_cnt = value->item_origin != NULL ? json_array_size(value->json) : 0;
	struct tn_config_origin *item_origin = NULL;

	if (item_cnt > 0) {
		item_origin = malloc(item_cnt * sizeof *item_origin);
		if (item_origin == NULL)
			return TN_NO_MEMORY;
	}
	for (size_t i = 0; i < item_cnt; i++) {
		item_origin[i] = value->item_origin[i];
		if (item_origin[i].name == NULL)
			continue;
		item_origin[i].name = tn_cfg_intern(cfg, item_origin[i].name);
		if (item_origin[i].name == NULL) {
			free(item_origin);
			return TN_NO_MEMORY;
		}
	}
	return tn_cfg_set(cfg, key, json_incref(value->json), value->origin, item_origin);
}

tn_status tn_config_reload(const struct tn_config *running, const struct tn_config_opts *opts, struct tn_config **out,
			   struct tn_config_errors *errors, struct tn_config_change changes[static TN_CFG_KEY_CNT],
			   unsigned *change_cnt_out)
{
	struct tn_config *cfg = NULL;
	tn_status status = tn_config_load(opts, &cfg, errors);
	unsigned change_cnt;

	if (status != TN_OK)
		return status;
	cfg->generation = running->generation + 1;
	change_cnt = tn_config_diff(running, cfg, changes);
	for (unsigned i = 0; i < change_cnt && status == TN_OK; i++)
		if (!changes[i].hot)
			status = carry(cfg, running, changes[i].key);
	if (status == TN_OK)
		status = tn_cfg_build_objects(cfg, running);
	if (status != TN_OK) {
		tn_config_free(cfg);
		return status;
	}
	*change_cnt_out = change_cnt;
	*out = cfg;
	return TN_OK;
}
