/* SPDX-License-Identifier: Apache-2.0
 * Sets of addresses: what is accepted reads back the same, what is not is refused with the right form, and membership is
 * exact at every bit. */
#include "common/addr_net.h"

#include <stdio.h>
#include <string.h>

#include "tests/unit/cu.h"

static struct tn_addr_net must(const char *text)
{
	struct tn_addr_net net;
	char err[TN_ERR_TEXT] = "";
	CU_ASSERT_EQUAL_FATAL(tn_addr_net_parse(text, &net, err), TN_OK);
	return net;
}

/* `from` without a zone stands for what comes over any link. */
static bool has(const char *set, const char *from)
{
	struct tn_addr_net net = must(set);
	struct tn_addr a;
	char err[TN_ERR_TEXT];
	CU_ASSERT_EQUAL_FATAL(tn_addr_parse_zoned(from, 0, 0, &a, err), TN_OK);
	tn_addr_set_port(&a, 4711);
	return tn_addr_net_has(&net, &a);
}

static void accepted_forms(void)
{
	static const struct { const char *text, *back; } t[] = {
		{ "192.0.2.7", "192.0.2.7" }, { "192.0.2.7/32", "192.0.2.7" }, { "192.0.2.0/24", "192.0.2.0/24" },
		{ "192.0.2.6/31", "192.0.2.6/31" }, { "0.0.0.0/0", "0.0.0.0/0" }, { "::/0", "::/0" },
		{ "2001:DB8::/33", "2001:db8::/33" }, { "::1", "::1" }, { "[::1]", "::1" }, { "fe80::1", "fe80::1" },
		{ "fe80::1%lo", "fe80::1%lo" }, { "fe80::%lo/10", "fe80::%lo/10" }, { "fe80::/10", "fe80::/10" },
		{ "::ffff:192.0.2.7", "192.0.2.7" },
	};
	for (size_t i = 0; i < TN_ARRAY_LEN(t); i++) {
		struct tn_addr_net net = must(t[i].text), again;
		char out[TN_ADDR_NET_TEXT];
		CU_ASSERT_STRING_EQUAL(tn_addr_net_format(&net, out), t[i].back);
		again = must(out);
		CU_ASSERT_TRUE(tn_addr_host_eq(&net.addr, &again.addr) && net.bits == again.bits);
	}
}

static void refused_forms(void)
{
	static const struct { const char *text, *why; } t[] = {
		{ "", "missing" }, { "/24", "missing" }, { "192.0.2.7:1", "without" }, { "[::1]:1", "without" },
		{ "tcp://192.0.2.7", "without" }, { "tcp://192.0.2.7:1", "without" }, { "192.0.2.7/", "0 to 32" },
		{ "192.0.2.0/33", "0 to 32" }, { "192.0.2.0/2x", "0 to 32" }, { "192.0.2.0/ 8", "0 to 32" },
		{ "192.0.2.0/-8", "0 to 32" }, { "::/129", "0 to 128" }, { "::/1280", "0 to 128" },
		{ "192.0.2.7/24", "write 192.0.2.0/24" }, { "2001:db8::1/64", "write 2001:db8::/64" },
		{ "::ffff:192.0.2.0/120", "IPv4 prefix itself" }, { "0.0.0.0", "nobody" }, { "::", "nobody" },
		{ "2001:db8::1%lo", "link-local" }, { "192.0.2.7%lo", "link-local" }, { "host/8", "numeric" },
		{ "192.0.2.0/24/24", "numeric" }, { "[::1", "]" }, { "fe80::1%", "zone" },
	};
	for (size_t i = 0; i < TN_ARRAY_LEN(t); i++) {
		struct tn_addr_net net = { .bits = 77 };
		char err[TN_ERR_TEXT] = "";
		CU_ASSERT_EQUAL(tn_addr_net_parse(t[i].text, &net, err) == TN_OK, false);
		CU_ASSERT_PTR_NOT_NULL(strstr(err, t[i].why));
		CU_ASSERT_PTR_NOT_NULL(strstr(err, "address \""));
		CU_ASSERT_EQUAL(net.bits, 77);
	}
	struct tn_addr_net net;
	char err[TN_ERR_TEXT];
	CU_ASSERT_EQUAL(tn_addr_net_parse("fe80::1%nosuchif0", &net, err), TN_NOT_FOUND);
	char full[300];
	memset(full, '1', sizeof full - 1);
	full[sizeof full - 1] = '\0';
	CU_ASSERT_EQUAL(tn_addr_net_parse(full, &net, err), TN_INVALID);
}

static void membership(void)
{
	CU_ASSERT_TRUE(has("192.0.2.7", "192.0.2.7"));
	CU_ASSERT_FALSE(has("192.0.2.7", "192.0.2.6"));
	CU_ASSERT_TRUE(has("192.0.2.0/24", "192.0.2.255"));
	CU_ASSERT_FALSE(has("192.0.2.0/24", "192.0.3.0"));
	CU_ASSERT_FALSE(has("192.0.2.0/24", "192.0.1.255"));
	CU_ASSERT_TRUE(has("192.0.2.6/31", "192.0.2.7"));
	CU_ASSERT_FALSE(has("192.0.2.6/31", "192.0.2.8"));
	CU_ASSERT_TRUE(has("10.128.0.0/9", "10.255.0.1"));
	CU_ASSERT_FALSE(has("10.128.0.0/9", "10.127.255.255"));
	CU_ASSERT_TRUE(has("0.0.0.0/0", "203.0.113.9"));
	CU_ASSERT_FALSE(has("0.0.0.0/0", "2001:db8::1")); /* families are apart */
	CU_ASSERT_FALSE(has("::/0", "203.0.113.9"));
	CU_ASSERT_TRUE(has("2001:db8::/33", "2001:db8:7fff::1"));
	CU_ASSERT_FALSE(has("2001:db8::/33", "2001:db8:8000::1"));
	CU_ASSERT_TRUE(has("::ffff:192.0.2.7", "192.0.2.7"));
}

static void zones(void)
{
	CU_ASSERT_TRUE(has("fe80::1", "fe80::1%3"));
	CU_ASSERT_TRUE(has("fe80::1%3", "fe80::1%3"));
	CU_ASSERT_FALSE(has("fe80::1%3", "fe80::1%4"));
	CU_ASSERT_FALSE(has("fe80::1", "fe80::2%3"));
	CU_ASSERT_TRUE(has("fe80::/10", "fe80::2%3"));
	CU_ASSERT_FALSE(has("fe80::%4/10", "fe80::2%3"));
	struct tn_addr a;
	char err[TN_ERR_TEXT];
	CU_ASSERT_EQUAL_FATAL(tn_addr_parse("[fe80::1%3]:5", TN_ADDR_NEED_PORT, &a, err), TN_OK);
	struct tn_addr_net net = tn_addr_net_of(&a);
	CU_ASSERT_TRUE(net.bits == 128 && tn_addr_port(&net.addr) == 0 && tn_addr_net_has(&net, &a));
}

TN_TEST_MAIN("common/addr_net", { "accepted forms", accepted_forms }, { "refused forms", refused_forms },
	     { "membership", membership }, { "zones", zones })
