/* SPDX-License-Identifier: Apache-2.0
 * The rules of data addresses between hosts (docs/protocol.md 4.1): which addresses we say our lanes come from, where
 * lanes of a peer may come from, and what an address that a peer names means here. Zones never leave their host.
 * Functions of their arguments; any thread. */
#ifndef CP_PEER_ADDRESS_H
#define CP_PEER_ADDRESS_H

#include <jansson.h>

#include "common/config.h"

#define CP_ADDRESSES_NAMED_MAX 10 /* that one peer may name */

/* Where our lanes come from when nothing translates them: bind_address unless it is a wildcard, and advertise_addresses.
 * A list of texts without ports and zones; new reference. */
json_t *cp_address_own(const struct tn_config *config);

/* Where lanes of `peer` may come from: its data_addresses when there are any; else what it names and `control`, where its
 * control connection comes from (NULL: not known). A new list in *out.
 * TN_INVALID: the peer names what is no address; err says what. */
tn_status cp_address_allowed(const struct tn_config_peer *peer, const json_t *named, const char *control, json_t **out,
			     char err[static TN_ERR_TEXT]);

/* The peer's endpoints [{transport, address}] as this host can use them: link-local ones get the zone of peers/NAME/address,
 * else that of bind_address. A new list in *out.
 * TN_PATH_PROTOCOL: an entry is malformed. TN_CONFIG: there are only link-local ones and nothing here names a zone. */
tn_status cp_address_endpoints(const struct tn_config *config, const struct tn_config_peer *peer, const json_t *told,
			       json_t **out, char err[static TN_ERR_TEXT]);

#endif
