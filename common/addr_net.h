/* SPDX-License-Identifier: Apache-2.0
 * Sets of addresses: one address, or all that share a prefix.
 *   192.0.2.7   192.0.2.0/24   2001:db8::/64   fe80::1   fe80::1%eth0   fe80::%eth0/10
 * Numeric only, no ports. No state; any thread. */
#ifndef TN_ADDR_NET_H
#define TN_ADDR_NET_H

#include "common/addr.h"

#define TN_ADDR_NET_TEXT (TN_ADDR_TEXT + 4)

struct tn_addr_net {
	struct tn_addr addr; /* port 0; bits beyond the prefix are zero */
	uint32_t bits;       /* of the prefix; 32 or 128: one address */
};

/* Reads `text` into net_out. A link-local address without a zone stands for that address on every link. Refused: a port,
 * a prefix with bits set behind it, a wildcard alone (0.0.0.0/0 means everybody), an IPv4 prefix in IPv6 clothes.
 * TN_INVALID, or TN_NOT_FOUND for a zone that does not exist here; err names what and shows what would be right. */
tn_status tn_addr_net_parse(const char *text, struct tn_addr_net *net_out, char err[static TN_ERR_TEXT]);

/* The set of one address, its port dropped. */
struct tn_addr_net tn_addr_net_of(const struct tn_addr *addr);

/* The text that reads back to it; returns out. */
char *tn_addr_net_format(const struct tn_addr_net *net, char out[static TN_ADDR_NET_TEXT]);

/* Is addr, as accept(2) gave it, in the set? Ports are not looked at; a zone of 0 on either side matches any. */
bool tn_addr_net_has(const struct tn_addr_net *net, const struct tn_addr *addr);

#endif
