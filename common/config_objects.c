/* SPDX-License-Identifier: Apache-2.0
 * Peers and policies as structs, built from their checked values once, so that readers never touch JSON. Start-up and
 * control thread. */
#include "common/config_object.h"

#include <stdlib.h>

#include "common/assert.h"
#include "common/z85.h"

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

/* The choices of a policy's transports are the domain without unspec, in the same order. */
#define X(n, s) TN_CHOICE_PLACE_##n,
enum choice_place { TN_CONFIG_TRANSPORT_LIST(X) };
#undef X
#define X(n, s) TN_STATIC_ASSERT(TN_CHOICE_PLACE_##n + 1 == TN_TRANSPORT_##n, "order of transport words");
TN_CONFIG_TRANSPORT_LIST(X)
#undef X

tn_status tn_cfg_build_objects(struct tn_config *cfg)
{
	tn_status status = build_peers(cfg);

	return status == TN_OK ? build_policies(cfg) : status;
}
