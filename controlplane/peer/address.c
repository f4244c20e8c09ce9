/* SPDX-License-Identifier: Apache-2.0
 * Who says where lanes come from and go to; see address.h. No state; any thread. */
#include "controlplane/peer/address.h"

#include <stdio.h>
#include <string.h>

#include "common/addr.h"
#include "common/message.h"

static void add_once(json_t *list, const char *text)
{
	size_t i;
	const json_t *one;
	json_array_foreach(list, i, one)
		if (strcmp(json_string_value(one), text) == 0)
			return;
	json_array_append_new(list, json_string(text));
}

/* ---- ours ---- */

static void add_own(json_t *list, const char *text)
{
	char out[TN_ADDR_TEXT], unused[TN_ERR_TEXT];
	struct tn_addr a;
	if (tn_addr_parse(text, 0, &a, unused) != TN_OK || tn_addr_is_any(&a))
		return;
	tn_addr_set_zone(&a, 0);
	add_once(list, tn_addr_format_host(&a, out));
}

json_t *cp_address_own(const struct tn_config *config)
{
	json_t *list = json_array();
	unsigned cnt = tn_config_list_cnt(config, TN_CFG_TCP_ADVERTISE_ADDRESSES);
	add_own(list, tn_config_str(config, TN_CFG_TCP_BIND_ADDRESS));
	for (unsigned i = 0; i < cnt; i++)
		add_own(list, tn_config_list_str(config, TN_CFG_TCP_ADVERTISE_ADDRESSES, i));
	return list;
}

/* ---- the peer's, coming in ---- */

/* One address, never a prefix: only this host's operator may say so much at once. */
static tn_status add_named(json_t *list, const char *text, char *err)
{
	char out[TN_ADDR_TEXT];
	struct tn_addr a;
	tn_status st = tn_addr_parse_zoned(text, 0, 0, &a, err);
	if (st == TN_OK && !tn_addr_is_any(&a))
		add_once(list, tn_addr_format_host(&a, out));
	return st == TN_OK ? TN_OK : TN_INVALID;
}

tn_status cp_address_allowed(const struct tn_config_peer *peer, const json_t *named, const char *control, json_t **out,
			     char err[static TN_ERR_TEXT])
{
	json_t *list = json_array();
	tn_status st = TN_OK;
	size_t i;
	const json_t *one;
	for (unsigned k = 0; k < peer->data_address_cnt; k++)
		add_once(list, peer->data_addresses[k]);
	if (peer->data_address_cnt == 0) {
		json_array_foreach(named, i, one)
			if (st == TN_OK && json_is_string(one))
				st = add_named(list, json_string_value(one), err);
			else if (st == TN_OK)
				st = (snprintf(err, TN_ERR_TEXT, "an address is no string"), TN_INVALID);
		if (st == TN_OK && control != NULL)
			st = add_named(list, control, err);
	}
	if (st != TN_OK) {
		json_decref(list);
		return st;
	}
	*out = list;
	return TN_OK;
}

/* ---- the peer's, going out ---- */

static uint32_t zone_of(const char *text)
{
	char unused[TN_ERR_TEXT];
	struct tn_addr a;
	return tn_addr_parse(text, 0, &a, unused) == TN_OK ? tn_addr_zone(&a) : 0;
}

/* TN_NOT_FOUND: an address of a link that nobody named. */
static tn_status add_endpoint(json_t *list, const json_t *told, uint32_t zone, char *err)
{
	const char *transport = json_string_value(json_object_get(told, "transport"));
	const char *address = json_string_value(json_object_get(told, "address"));
	char out[TN_ADDR_TEXT], why[TN_ERR_TEXT];
	struct tn_addr a;
	if (transport == NULL || address == NULL) {
		snprintf(err, TN_ERR_TEXT, "an endpoint of the peer has no transport or address");
		return TN_PATH_PROTOCOL;
	}
	tn_status st = tn_addr_parse_zoned(address, TN_ADDR_NEED_PORT, zone, &a, why);
	if (st != TN_OK && st != TN_NOT_FOUND) {
		snprintf(err, TN_ERR_TEXT, "an endpoint of the peer is malformed: %.140s", why);
		return TN_PATH_PROTOCOL;
	}
	if (st == TN_NOT_FOUND || (tn_addr_is_link_local(&a) && tn_addr_zone(&a) == 0))
		return TN_NOT_FOUND;
	json_t *j = json_object();
	tn_json_put_str(j, "transport", transport);
	tn_json_put_str(j, "address", tn_addr_format(&a, out));
	json_array_append_new(list, j);
	return TN_OK;
}

tn_status cp_address_endpoints(const struct tn_config *config, const struct tn_config_peer *peer, const json_t *told,
			       json_t **out, char err[static TN_ERR_TEXT])
{
	uint32_t zone = zone_of(peer->address);
	json_t *list = json_array();
	tn_status st = TN_OK;
	size_t i;
	const json_t *one;
	if (zone == 0)
		zone = zone_of(tn_config_str(config, TN_CFG_TCP_BIND_ADDRESS));
	json_array_foreach(told, i, one)
		if ((st = add_endpoint(list, one, zone, err)) == TN_PATH_PROTOCOL)
			break;
	if (st == TN_NOT_FOUND && json_array_size(list) == 0)
		snprintf(err, TN_ERR_TEXT, "the peer names link-local addresses only; say on which interface it is: "
			 "peers/%.40s/address with a zone, tcp://[fe80::1%%eth0]:PORT", peer->name);
	else if (st != TN_PATH_PROTOCOL)
		st = TN_OK;
	if (st != TN_OK) {
		json_decref(list);
		return st == TN_NOT_FOUND ? TN_CONFIG : st;
	}
	*out = list;
	return TN_OK;
}
