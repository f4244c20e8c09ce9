/* SPDX-License-Identifier: Apache-2.0
 * Peers and policies as structs, built from their checked values once, so that readers never touch JSON. Start-up and
 * control thread. */
#include "common/config_object.h"

#include <stdlib.h>
#include <string.h>

#include "common/assert.h"
#include "common/z85.h"

#define POLICY_NAMES_MAX (UINT16_MAX - TN_CONFIG_POLICY_ID_FIRST) /* the largest number is nobody's */

static const char *member_text(const json_t *object, enum tn_cfg_field field)
{
	return json_string_value(json_object_get(object, tn_cfg_fields[field].path));
}

static uint64_t member_number(const json_t *object, enum tn_cfg_field field)
{
	const struct tn_cfg_row *row = &tn_cfg_fields[field];

	return tn_cfg_value_number(row, json_object_get(object, row->path));
}

static const json_t *member_list(const json_t *object, enum tn_cfg_field field)
{
	return json_object_get(object, tn_cfg_fields[field].path);
}

/* ---- peers ---- */

/* Returns the number of addresses written to addresses. */
static unsigned build_peer(struct tn_config_peer *peer, const json_t *object, const char **addresses)
{
	const json_t *list = member_list(object, TN_CFG_FIELD_PEERS_DATA_ADDRESSES);
	unsigned cnt = (unsigned)json_array_size(list);

	*peer = (struct tn_config_peer){
		.name = member_text(object, TN_CFG_FIELD_PEERS_NAME),
		.address = member_text(object, TN_CFG_FIELD_PEERS_ADDRESS),
		.public_key = member_text(object, TN_CFG_FIELD_PEERS_PUBLIC_KEY),
		.data_addresses = addresses,
		.data_address_cnt = cnt,
	};
	if (peer->public_key[0] != '\0') {
		tn_status status = tn_peer_id_from_text(peer->public_key, &peer->id);

		tn_assert(status == TN_OK); /* the value was checked */
	}
	for (unsigned i = 0; i < cnt; i++)
		addresses[i] = json_string_value(json_array_get(list, i));
	return cnt;
}

static tn_status build_peers(struct tn_config *cfg)
{
	const json_t *list = cfg->value[TN_CFG_PEERS].json;
	unsigned cnt = (unsigned)json_array_size(list), address_cnt = 0, used = 0;
	struct tn_config_peer *peers;
	const char **addresses;

	for (unsigned i = 0; i < cnt; i++)
		address_cnt += (unsigned)json_array_size(
			member_list(json_array_get(list, i), TN_CFG_FIELD_PEERS_DATA_ADDRESSES));
	peers = calloc(cnt + 1u, sizeof *peers);
	addresses = calloc(address_cnt + 1u, sizeof *addresses);
	if (peers == NULL || addresses == NULL) {
		free(peers);
		free(addresses);
		return TN_NO_MEMORY;
	}
	for (unsigned i = 0; i < cnt; i++)
		used += build_peer(&peers[i], json_array_get(list, i), addresses + used);
	free(cfg->peers);
	free(cfg->data_addresses);
	cfg->peers = peers;
	cfg->peer_cnt = cnt;
	cfg->data_addresses = addresses;
	return TN_OK;
}

/* ---- policies ---- */

/* The words of these lists are "any" and then the domain's own, in its order. */
static uint8_t any_or_value(uint64_t place)
{
	return place == 0 ? TN_CONFIG_ANY : (uint8_t)(place - 1);
}

static void build_policy(struct tn_config_policy *policy, const json_t *object)
{
	const struct tn_cfg_row *row = &tn_cfg_fields[TN_CFG_FIELD_POLICIES_TRANSPORTS];
	const json_t *list = member_list(object, TN_CFG_FIELD_POLICIES_TRANSPORTS);

	*policy = (struct tn_config_policy){
		.name = member_text(object, TN_CFG_FIELD_POLICIES_NAME),
		.priority = any_or_value(member_number(object, TN_CFG_FIELD_POLICIES_PRIORITY)),
		.intent = any_or_value(member_number(object, TN_CFG_FIELD_POLICIES_INTENT)),
		.min_bytes = member_number(object, TN_CFG_FIELD_POLICIES_MIN_BYTES),
		.max_bytes = member_number(object, TN_CFG_FIELD_POLICIES_MAX_BYTES),
		.transport_cnt = (uint8_t)json_array_size(list),
	};
	tn_assert(policy->transport_cnt <= TN_ARRAY_LEN(policy->transports)); /* items differ, see check_list() */
	for (unsigned i = 0; i < policy->transport_cnt; i++) {
		const json_t *word = json_array_get(list, i);
		int place = tn_cfg_choice_find(row, json_string_value(word), json_string_length(word));

		policy->transports[i] = (uint8_t)(place + TN_TRANSPORT_UNSPEC + 1);
	}
}

static tn_status build_policies(struct tn_config *cfg)
{
	const json_t *list = cfg->value[TN_CFG_POLICIES].json;
	unsigned cnt = (unsigned)json_array_size(list);
	struct tn_config_policy *policies = calloc(cnt + 1u, sizeof *policies);

	if (policies == NULL)
		return TN_NO_MEMORY;
	for (unsigned i = 0; i < cnt; i++)
		build_policy(&policies[i], json_array_get(list, i));
	free(cfg->policies);
	cfg->policies = policies;
	cfg->policy_cnt = cnt;
	return TN_OK;
}

/* ---- numbers of policies ---- */

void tn_cfg_free_policy_names(struct tn_config *cfg)
{
	for (unsigned i = 0; i < cfg->policy_name_cnt; i++)
		free(cfg->policy_names[i]);
	free(cfg->policy_names);
	cfg->policy_names = NULL;
	cfg->policy_name_cnt = 0;
}

/* The place of a name that is there already, or a new one. */
static tn_status policy_place(struct tn_config *cfg, const char *name, unsigned *place_out)
{
	unsigned i = 0;

	while (i < cfg->policy_name_cnt && strcmp(cfg->policy_names[i], name) != 0)
		i++;
	*place_out = i;
	if (i < cfg->policy_name_cnt)
		return TN_OK;
	cfg->policy_names[i] = strdup(name);
	if (cfg->policy_names[i] == NULL)
		return TN_NO_MEMORY;
	cfg->policy_name_cnt++;
	return TN_OK;
}

/* Names are never forgotten: who asked for one when it was there has its number, and must not get another policy by it. */
static tn_status number_policies(struct tn_config *cfg, const struct tn_config *before)
{
	unsigned old_cnt = before != NULL ? before->policy_name_cnt : 0, place;
	tn_status s = TN_OK;

	if (old_cnt + cfg->policy_cnt > POLICY_NAMES_MAX)
		return TN_LIMIT;
	tn_cfg_free_policy_names(cfg);
	cfg->policy_names = calloc(old_cnt + cfg->policy_cnt + 1u, sizeof *cfg->policy_names);
	if (cfg->policy_names == NULL)
		return TN_NO_MEMORY;
	for (unsigned i = 0; i < old_cnt && s == TN_OK; i++)
		s = policy_place(cfg, before->policy_names[i], &place);
	for (unsigned i = 0; i < cfg->policy_cnt && s == TN_OK; i++) {
		s = policy_place(cfg, cfg->policies[i].name, &place);
		cfg->policies[i].id = (uint16_t)(TN_CONFIG_POLICY_ID_FIRST + place);
	}
	return s;
}

/* The choices of a policy's transports are the domain without unspec, in the same order. */
#define X(n, s) TN_CHOICE_PLACE_##n,
enum choice_place { TN_CONFIG_TRANSPORT_LIST(X) };
#undef X
#define X(n, s) TN_STATIC_ASSERT(TN_CHOICE_PLACE_##n + 1 == TN_TRANSPORT_##n, "order of transport words");
TN_CONFIG_TRANSPORT_LIST(X)
#undef X

tn_status tn_cfg_build_objects(struct tn_config *cfg, const struct tn_config *before)
{
	tn_status status = build_peers(cfg);

	if (status == TN_OK)
		status = build_policies(cfg);
	return status == TN_OK ? number_policies(cfg, before) : status;
}
