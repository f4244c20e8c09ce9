/* SPDX-License-Identifier: Apache-2.0
 * Addresses and sets of addresses as peers and files spell them: whatever is accepted has one text that reads back to
 * the same, and a set contains the address that it is written with. */
#include <string.h>

#include "common/addr_net.h"
#include "common/assert.h"
#include "tests/fuzz/fuzz.h"

static void net(const char *text)
{
	char out[TN_ADDR_NET_TEXT], err[TN_ERR_TEXT] = "";
	struct tn_addr_net a, b;
	if (tn_addr_net_parse(text, &a, err) != TN_OK) {
		tn_assert(err[0] != '\0');
		return;
	}
	tn_assert(tn_addr_net_has(&a, &a.addr));
	tn_assert(tn_addr_net_parse(tn_addr_net_format(&a, out), &b, err) == TN_OK);
	tn_assert(a.bits == b.bits && tn_addr_host_eq(&a.addr, &b.addr));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	char text[256], out[TN_ADDR_TEXT], err[TN_ERR_TEXT] = "";
	struct tn_addr a, b;
	if (len >= sizeof text)
		return 0;
	memcpy(text, data, len);
	text[len] = '\0';
	net(text);
	for (int default_port = TN_ADDR_NEED_PORT; default_port <= 1; default_port++) {
		if (tn_addr_parse(text, default_port, &a, err) != TN_OK) {
			tn_assert(err[0] != '\0');
			continue;
		}
		tn_assert(tn_addr_parse(tn_addr_format(&a, out), TN_ADDR_NEED_PORT, &b, err) == TN_OK);
		tn_assert(tn_addr_eq(&a, &b) && a.len == b.len);
		tn_assert(tn_addr_parse(tn_addr_format_url(&a, out), TN_ADDR_NEED_PORT, &b, err) == TN_OK);
		tn_assert(tn_addr_from_sockaddr((const struct sockaddr *)&a.ss, a.len, &b) == TN_OK);
	}
	return 0;
}
