/* SPDX-License-Identifier: Apache-2.0
 * What a single row cannot say: defaults that come from the host or from other keys, and the rules over several keys.
 * A rule is skipped when a key of it was refused already, so that one mistake is reported once. Start-up and control
 * thread. */
#include "common/config_object.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/paths.h"
#include "common/utf8.h"
#include "common/z85.h"

#define PATH_TEXT 1024

/* ---- errors that name the key and where its value came from ---- */

static struct tn_cfg_source source_of(struct tn_config_origin origin, struct tn_config_errors *errors)
{
	const char *name = origin.kind == TN_ORIGIN_FLAG ? "--set" : origin.name;

	return (struct tn_cfg_source){ .errors = errors, .kind = origin.kind, .name = name != NULL ? name : "default" };
}

/* fail(cfg, errors, key, fmt...): one error about the effective value of key. */
#define fail(cfg, errors, key, ...) \
	do { \
		struct tn_config_origin origin_ = (cfg)->value[key].origin; \
		struct tn_cfg_source source_ = source_of(origin_, errors); \
		tn_cfg_fail_at(&source_, tn_cfg_rows[key].path, origin_.line, __VA_ARGS__); \
	} while (0)

/* The same for entry i of a list of objects. */
#define fail_item(cfg, errors, key, i, ...) \
	do { \
		struct tn_config_origin origin_ = (cfg)->value[key].item_origin[i]; \
		struct tn_cfg_source source_ = source_of(origin_, errors); \
		tn_cfg_fail_at(&source_, tn_cfg_rows[key].path, origin_.line, __VA_ARGS__); \
	} while (0)

static bool usable(const struct tn_config *cfg, enum tn_config_key key)
{
	return !cfg->value[key].refused;
}

/* ---- defaults that depend ---- */

static bool is_empty(const struct tn_config *cfg, enum tn_config_key key)
{
	const json_t *json = cfg->value[key].json;

	return json_is_array(json) ? json_array_size(json) == 0 : json_string_length(json) == 0;
}

/* Give an empty key its text; the origin stays (it says who left it empty). */
static tn_status fill(struct tn_config *cfg, enum tn_config_key key, const char *text, struct tn_config_errors *errors)
{
	json_t *json = json_string(text);

	if (json == NULL && !tn_utf8_valid(text)) {
		fail(cfg, errors, key, "its default is not valid UTF-8; set it");
		return TN_OK;
	}
	if (json != NULL && tn_cfg_rows[key].type == TN_CFG_TYPE_STR_LIST)
		json = json_pack("[o]", json);
	if (json == NULL)
		return TN_NO_MEMORY;
	return tn_cfg_set(cfg, key, json, cfg->value[key].origin, NULL);
}

/* The kernel's host name as a tent name. */
static void host_name(char out[static TN_NAME_MAX])
{
	size_t used = 0;
	char kernel[256] = "";

	gethostname(kernel, sizeof kernel - 1);
	for (const char *p = kernel; *p != '\0' && used < TN_NAME_MAX - 1; p++) {
		char one[2] = { *p, '\0' };
		bool keep = used > 0 ? (*p == '.' || *p == '-' || tn_name_valid(one)) : tn_name_valid(one);

		if (keep || used > 0)
			out[used++] = keep ? *p : '-';
	}
	out[used] = '\0';
	if (used == 0)
		snprintf(out, TN_NAME_MAX, "localhost");
}

static tn_status resolve_directories(struct tn_config *cfg, const char *const *env, struct tn_config_errors *errors)
{
	unsigned uid = (unsigned)geteuid();
	tn_status status = TN_OK;
	char path[PATH_TEXT];

	if (is_empty(cfg, TN_CFG_RUNTIME_DIR)) {
		if (tn_default_runtime_dir(env, uid, path, sizeof path) != TN_OK)
			fail(cfg, errors, TN_CFG_RUNTIME_DIR, "$XDG_RUNTIME_DIR is too long; set runtime_dir");
		else
			status = fill(cfg, TN_CFG_RUNTIME_DIR, path, errors);
	}
	if (status == TN_OK && is_empty(cfg, TN_CFG_STATE_DIR)) {
		if (tn_default_state_dir(env, uid, path, sizeof path) != TN_OK)
			fail(cfg, errors, TN_CFG_STATE_DIR, "$XDG_STATE_HOME or $HOME is too long; set state_dir");
		else
			status = fill(cfg, TN_CFG_STATE_DIR, path, errors);
	}
	return status;
}

tn_status tn_cfg_resolve(struct tn_config *cfg, const char *const *env, struct tn_config_errors *errors)
{
	tn_status status = resolve_directories(cfg, env, errors);
	char text[PATH_TEXT + 16], unused[TN_ERR_TEXT];

	if (status == TN_OK && is_empty(cfg, TN_CFG_HOST_NAME)) {
		host_name(text);
		status = fill(cfg, TN_CFG_HOST_NAME, text, errors);
	}
	if (status == TN_OK && is_empty(cfg, TN_CFG_CONTROL_KEY_FILE)) {
		snprintf(text, sizeof text, "%s/curve.key", json_string_value(cfg->value[TN_CFG_STATE_DIR].json));
		status = fill(cfg, TN_CFG_CONTROL_KEY_FILE, text, errors);
	}
	if (status == TN_OK && is_empty(cfg, TN_CFG_CONTROL_ADVERTISE) &&
	    tn_cfg_kind_check(TN_CFG_KIND_ENDPOINT, tn_config_str(cfg, TN_CFG_CONTROL_BIND), unused))
		status = fill(cfg, TN_CFG_CONTROL_ADVERTISE, tn_config_str(cfg, TN_CFG_CONTROL_BIND), errors);
	if (status == TN_OK && is_empty(cfg, TN_CFG_TCP_ADVERTISE_ADDRESSES))
		status = fill(cfg, TN_CFG_TCP_ADVERTISE_ADDRESSES, tn_config_str(cfg, TN_CFG_TCP_BIND_ADDRESS), errors);
	return status;
}

/* ---- rules over several keys ---- */

/* The value of small must not exceed that of large. */
struct order_rule {
	enum tn_config_key small, large;
};

static const struct order_rule order_rules[] = {
	{ TN_CFG_DEADLINE_DEFAULT_MS, TN_CFG_DEADLINE_MAX_MS },
	{ TN_CFG_RETRY_BASE_DELAY_MS, TN_CFG_RETRY_MAX_DELAY_MS },
	{ TN_CFG_ADMISSION_PEER_WINDOW_BYTES, TN_CFG_ADMISSION_WINDOW_BYTES },
	{ TN_CFG_ADMISSION_PEER_WINDOW_OWNERS, TN_CFG_ADMISSION_WINDOW_OWNERS },
	{ TN_CFG_ADMISSION_MERGE_MAX_BYTES, TN_CFG_ADMISSION_PEER_WINDOW_BYTES },
	{ TN_CFG_CONTROL_NEGATIVE_CACHE_MS, TN_CFG_CONTROL_NEGATIVE_CACHE_MAX_MS },
	{ TN_CFG_TCP_FRAME_BYTES, TN_CFG_TCP_LANE_WINDOW_BYTES },
	{ TN_CFG_TCP_LANES_PER_PEER, TN_CFG_TCP_MAX_CONNECTIONS_PER_PEER },
	{ TN_CFG_TCP_MAX_CONNECTIONS_PER_PEER, TN_CFG_TCP_MAX_CONNECTIONS },
};

/* Blame the one of the two that somebody wrote; the smaller when both or none were. */
static void check_order(const struct tn_config *cfg, struct tn_config_errors *errors)
{
	for (size_t i = 0; i < TN_ARRAY_LEN(order_rules); i++) {
		enum tn_config_key small = order_rules[i].small, large = order_rules[i].large;
		uint64_t low = cfg->value[small].u64, high = cfg->value[large].u64;

		if (low <= high || !usable(cfg, small) || !usable(cfg, large))
			continue;
		if (cfg->value[small].origin.kind == TN_ORIGIN_DEFAULT &&
		    cfg->value[large].origin.kind != TN_ORIGIN_DEFAULT)
			fail(cfg, errors, large, "%" PRIu64 " is less than %s (%" PRIu64 "); raise it or lower that",
			     high, tn_cfg_rows[small].path, low);
		else
			fail(cfg, errors, small, "%" PRIu64 " is more than %s (%" PRIu64 "); lower it or raise that",
			     low, tn_cfg_rows[large].path, high);
	}
}

static void check_workers(const struct tn_config *cfg, struct tn_config_errors *errors)
{
	uint64_t count = cfg->value[TN_CFG_WORKERS_COUNT].u64;
	size_t listed = json_array_size(cfg->value[TN_CFG_WORKERS_CPUS].json);

	if (!usable(cfg, TN_CFG_WORKERS_COUNT) || !usable(cfg, TN_CFG_WORKERS_CPUS) || count == 0 || listed == 0)
		return;
	if (count != listed)
		fail(cfg, errors, TN_CFG_WORKERS_CPUS,
		     "names %zu CPUs for workers/count %" PRIu64 "; name one per worker, or none", listed, count);
}

static void check_directories(const struct tn_config *cfg, struct tn_config_errors *errors)
{
	size_t len = json_string_length(cfg->value[TN_CFG_RUNTIME_DIR].json);

	if (usable(cfg, TN_CFG_RUNTIME_DIR) && len > tn_cfg_rows[TN_CFG_RUNTIME_DIR].max)
		fail(cfg, errors, TN_CFG_RUNTIME_DIR,
		     "the default from $XDG_RUNTIME_DIR has %zu characters; at most %" PRIu64
		     " fit a socket's path; set runtime_dir",
		     len, tn_cfg_rows[TN_CFG_RUNTIME_DIR].max);
}

static void check_transports(const struct tn_config *cfg, struct tn_config_errors *errors)
{
	const json_t *required = cfg->value[TN_CFG_OBS_REQUIRED_TRANSPORTS].json;
	static const struct {
		const char *word;
		enum tn_config_key enable;
	} switches[] = {
		{ "shm", TN_CFG_SHM_ENABLE },
		{ "tcp", TN_CFG_TCP_ENABLE },
	};
	unsigned enabled_cnt = 0;

	for (size_t i = 0; i < TN_ARRAY_LEN(switches); i++) {
		enabled_cnt += cfg->value[switches[i].enable].u64 != 0 || !usable(cfg, switches[i].enable);
		for (size_t r = 0; r < json_array_size(required); r++)
			if (strcmp(json_string_value(json_array_get(required, r)), switches[i].word) == 0 &&
			    cfg->value[switches[i].enable].u64 == 0)
				fail(cfg, errors, TN_CFG_OBS_REQUIRED_TRANSPORTS, "requires %s, but %s is false",
				     switches[i].word, tn_cfg_rows[switches[i].enable].path);
	}
	if (enabled_cnt == 0)
		fail(cfg, errors, TN_CFG_TCP_ENABLE, "every transport is disabled; enable one");
}

static void check_addresses(const struct tn_config *cfg, struct tn_config_errors *errors)
{
	const json_t *advertised = cfg->value[TN_CFG_TCP_ADVERTISE_ADDRESSES].json;

	if (usable(cfg, TN_CFG_CONTROL_BIND) && usable(cfg, TN_CFG_CONTROL_ADVERTISE) &&
	    is_empty(cfg, TN_CFG_CONTROL_ADVERTISE) &&
	    tn_cfg_reach(tn_config_str(cfg, TN_CFG_CONTROL_BIND)) == TN_CFG_REACH_WILDCARD)
		fail(cfg, errors, TN_CFG_CONTROL_ADVERTISE,
		     "control/bind is a wildcard, to which nobody can connect; say where peers reach this host");
	for (size_t i = 0; i < json_array_size(advertised); i++) {
		const char *text = json_string_value(json_array_get(advertised, i));

		if (!usable(cfg, TN_CFG_TCP_BIND_ADDRESS) || !usable(cfg, TN_CFG_TCP_ADVERTISE_ADDRESSES))
			break;
		if (cfg->value[TN_CFG_TCP_ENABLE].u64 != 0 && tn_cfg_reach(text) == TN_CFG_REACH_WILDCARD)
			fail(cfg, errors, TN_CFG_TCP_ADVERTISE_ADDRESSES,
			     "%s is a wildcard, to which nobody can connect; list the addresses of this host", text);
	}
}

static void check_security(const struct tn_config *cfg, struct tn_config_errors *errors)
{
	bool insecure = cfg->value[TN_CFG_CONTROL_INSECURE].u64 != 0;

	if (!usable(cfg, TN_CFG_CONTROL_INSECURE))
		return;
	if (insecure && usable(cfg, TN_CFG_CONTROL_BIND) &&
	    tn_cfg_reach(tn_config_str(cfg, TN_CFG_CONTROL_BIND)) != TN_CFG_REACH_LOOPBACK)
		fail(cfg, errors, TN_CFG_CONTROL_INSECURE,
		     "only allowed when control/bind is a loopback address, and it is %s; bind to tcp://127.0.0.1:PORT "
		     "or set this to false",
		     tn_config_str(cfg, TN_CFG_CONTROL_BIND));
	for (unsigned i = 0; i < cfg->peer_cnt; i++) {
		const struct tn_config_peer *peer = &cfg->peers[i];

		if (insecure && tn_cfg_reach(peer->address) != TN_CFG_REACH_LOOPBACK)
			fail_item(cfg, errors, TN_CFG_PEERS, i,
				  "peer %s: control/insecure is true, so only loopback addresses, not %s", peer->name,
				  peer->address);
		if (!insecure && peer->public_key[0] == '\0')
			fail_item(cfg, errors, TN_CFG_PEERS, i,
				  "peer %s: public_key is missing; ask its operator for: tentctl keygen", peer->name);
	}
}

/* qsort order of peers by id, then place. */
static int compare_ids(const void *a, const void *b)
{
	const struct tn_config_peer *x = *(const struct tn_config_peer *const *)a;
	const struct tn_config_peer *y = *(const struct tn_config_peer *const *)b;
	int order = memcmp(&x->id, &y->id, sizeof x->id);

	return order != 0 ? order : (x > y) - (x < y);
}

static void check_peers(const struct tn_config *cfg, struct tn_config_errors *errors)
{
	const struct tn_config_peer **sorted = calloc(cfg->peer_cnt + 1u, sizeof *sorted);

	if (sorted == NULL) {
		fail(cfg, errors, TN_CFG_PEERS, "no memory to compare the keys of %u peers", cfg->peer_cnt);
		return;
	}
	if (cfg->peer_cnt > tn_cfg_rows[TN_CFG_PEERS].max)
		fail(cfg, errors, TN_CFG_PEERS, "%u peers in all files; at most %" PRIu64, cfg->peer_cnt,
		     tn_cfg_rows[TN_CFG_PEERS].max);
	for (unsigned i = 0; i < cfg->peer_cnt; i++)
		sorted[i] = &cfg->peers[i];
	qsort(sorted, cfg->peer_cnt, sizeof *sorted, compare_ids);
	for (unsigned i = 1; i < cfg->peer_cnt; i++)
		if (!tn_peer_id_is_zero(&sorted[i]->id) && tn_peer_id_eq(&sorted[i]->id, &sorted[i - 1]->id))
			fail_item(cfg, errors, TN_CFG_PEERS, sorted[i] - cfg->peers,
				  "peer %s has the same public_key as peer %s; a key is one host's identity",
				  sorted[i]->name, sorted[i - 1]->name);
	free(sorted);
}

static void check_policies(const struct tn_config *cfg, struct tn_config_errors *errors)
{
	for (unsigned i = 0; i < cfg->policy_cnt; i++) {
		const struct tn_config_policy *policy = &cfg->policies[i];

		if (policy->min_bytes > policy->max_bytes)
			fail_item(cfg, errors, TN_CFG_POLICIES, i,
				  "policy %s can match nothing: min_bytes is more than max_bytes", policy->name);
	}
}

void tn_cfg_check_rules(const struct tn_config *cfg, struct tn_config_errors *errors)
{
	check_directories(cfg, errors);
	check_workers(cfg, errors);
	check_order(cfg, errors);
	check_transports(cfg, errors);
	check_addresses(cfg, errors);
	check_security(cfg, errors);
	check_peers(cfg, errors);
	check_policies(cfg, errors);
}
