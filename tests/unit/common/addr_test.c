/* SPDX-License-Identifier: Apache-2.0
 * Every accepted form reads and writes back the same; everything else is refused with a text that names it. */
#include "common/addr.h"

#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "tests/unit/cu.h"

static void accepted_forms(void)
{
	static const struct { const char *text; int default_port; const char *back; } t[] = {
		{ "192.0.2.7:7001", TN_ADDR_NEED_PORT, "192.0.2.7:7001" },
		{ "tcp://192.0.2.7:7001", TN_ADDR_NEED_PORT, "192.0.2.7:7001" },
		{ "192.0.2.7", 7001, "192.0.2.7:7001" },
		{ "0.0.0.0:0", TN_ADDR_NEED_PORT, "0.0.0.0:0" },
		{ "[::]:65535", TN_ADDR_NEED_PORT, "[::]:65535" },
		{ "[2001:DB8::1]:7001", TN_ADDR_NEED_PORT, "[2001:db8::1]:7001" },
		{ "tcp://[2001:db8::1]", 9, "[2001:db8::1]:9" },
		{ "2001:db8::1", 9, "[2001:db8::1]:9" },
		{ "::1", 0, "[::1]:0" },
		{ "[fe80::1%lo]:5", TN_ADDR_NEED_PORT, "[fe80::1%lo]:5" },
		{ "[fe80::1%4294967295]:5", TN_ADDR_NEED_PORT, "[fe80::1%4294967295]:5" },
		{ "[::ffff:192.0.2.7]:5", TN_ADDR_NEED_PORT, "[::ffff:192.0.2.7]:5" },
	};
	for (size_t i = 0; i < TN_ARRAY_LEN(t); i++) {
		struct tn_addr a, b;
		char err[TN_ERR_TEXT] = "", out[TN_ADDR_TEXT], url[TN_ADDR_TEXT];
		CU_ASSERT_EQUAL_FATAL(tn_addr_parse(t[i].text, t[i].default_port, &a, err), TN_OK);
		CU_ASSERT_STRING_EQUAL(tn_addr_format(&a, out), t[i].back);
		tn_addr_format_url(&a, url);
		CU_ASSERT_EQUAL(strncmp(url, "tcp://", 6), 0);
		CU_ASSERT_STRING_EQUAL(url + 6, out);
		CU_ASSERT_EQUAL_FATAL(tn_addr_parse(url, TN_ADDR_NEED_PORT, &b, err), TN_OK);
		CU_ASSERT_TRUE(tn_addr_eq(&a, &b));
		CU_ASSERT_EQUAL(a.len, b.len);
	}
}

static void refused_forms(void)
{
	static const struct { const char *text; const char *why; } t[] = {
		{ "", "missing" }, { ":7001", "address is missing" }, { "192.0.2.7", "port is missing" },
		{ "192.0.2.7:", "number" },
		{ "192.0.2.7:65536", "number" }, { "192.0.2.7:123456", "number" }, { "192.0.2.7:70x", "number" },
		{ "192.0.2.7:-1", "number" }, { "192.0.2.7: 1", "number" }, { "192.0.2:1", "numeric" },
		{ "example.org:7001", "numeric" },
		{ "*:7001", "numeric" }, { "2001:db8::1:7001", "brackets" }, { "[2001:db8::1:7001", "]" },
		{ "[2001:db8::1]7001", "]" },
		{ "[192.0.2.7]:7001", "IPv6" }, { "[]:7001", "missing" }, { "[fe80::1]:7001", "zone" },
		{ "udp://192.0.2.7:1", "tcp" },
		{ "192.0.2.7:1/path", "number" }, { "[::1%]:1", "zone" }, { "[::1%lo]:1", "only a link-local" },
		{ "[2001:db8::1%1]:1", "only a link-local" }, { "192.0.2.7%lo:1", "only an IPv6" }, { "[fe80::1%]:1", "zone" },
		{ "[fe80::1%0]:1", "zone" },
		{ "1111111111111111111111111111111111111111111111111111111111111111111111111111:1", "too long" },
	};
	for (size_t i = 0; i < TN_ARRAY_LEN(t); i++) {
		struct tn_addr a = { .len = 77 };
		char err[TN_ERR_TEXT] = "";
		CU_ASSERT_NOT_EQUAL(tn_addr_parse(t[i].text, TN_ADDR_NEED_PORT, &a, err), TN_OK);
		CU_ASSERT_PTR_NOT_NULL(strstr(err, t[i].why));
		CU_ASSERT_PTR_NOT_NULL(strstr(err, "address \""));
		CU_ASSERT_EQUAL(a.len, 77);
	}
	struct tn_addr a;
	char err[TN_ERR_TEXT];
	CU_ASSERT_EQUAL(tn_addr_parse("[fe80::1%nosuchif0]:1", TN_ADDR_NEED_PORT, &a, err), TN_NOT_FOUND);
}

static struct tn_addr must(const char *text)
{
	struct tn_addr a;
	char err[TN_ERR_TEXT];
	CU_ASSERT_EQUAL_FATAL(tn_addr_parse(text, 0, &a, err), TN_OK);
	return a;
}

static void comparisons(void)
{
	struct tn_addr a = must("192.0.2.7:1"), b = must("192.0.2.7:2"), c = must("[2001:db8::1]:1");
	struct tn_addr d = must("[fe80::1%1]:1"), e = must("[fe80::1%2]:1");
	CU_ASSERT_TRUE(tn_addr_host_eq(&a, &b));
	CU_ASSERT_FALSE(tn_addr_eq(&a, &b));
	tn_addr_set_port(&b, 1);
	CU_ASSERT_TRUE(tn_addr_eq(&a, &b));
	CU_ASSERT_FALSE(tn_addr_host_eq(&a, &c));
	CU_ASSERT_FALSE(tn_addr_host_eq(&d, &e));
	char out[TN_ADDR_TEXT];
	CU_ASSERT_STRING_EQUAL(tn_addr_format_host(&c, out), "2001:db8::1");
	struct tn_addr lo4 = must("127.3.2.1"), lo6 = must("::1"), any4 = must("0.0.0.0"), any6 = must("::");
	CU_ASSERT_TRUE(tn_addr_is_loopback(&lo4) && tn_addr_is_loopback(&lo6));
	CU_ASSERT_FALSE(tn_addr_is_loopback(&a) || tn_addr_is_loopback(&c) || tn_addr_is_loopback(&any4));
	CU_ASSERT_TRUE(tn_addr_is_any(&any4) && tn_addr_is_any(&any6));
	CU_ASSERT_FALSE(tn_addr_is_any(&lo4) || tn_addr_is_any(&lo6));
}

/* Texts of other hosts have no zone. */
static void zones(void)
{
	struct tn_addr a;
	char err[TN_ERR_TEXT], out[TN_ADDR_TEXT];
	CU_ASSERT_EQUAL_FATAL(tn_addr_parse_zoned("[fe80::1]:5", TN_ADDR_NEED_PORT, 1, &a, err), TN_OK);
	CU_ASSERT_EQUAL(tn_addr_zone(&a), 1);
	tn_addr_set_zone(&a, 0);
	CU_ASSERT_STRING_EQUAL(tn_addr_format(&a, out), "[fe80::1]:5");
	CU_ASSERT_TRUE(tn_addr_is_link_local(&a));
	CU_ASSERT_EQUAL_FATAL(tn_addr_parse_zoned("[fe80::1%7]:5", TN_ADDR_NEED_PORT, 1, &a, err), TN_OK);
	CU_ASSERT_EQUAL(tn_addr_zone(&a), 7);
	CU_ASSERT_EQUAL_FATAL(tn_addr_parse_zoned("[2001:db8::1]:5", TN_ADDR_NEED_PORT, 1, &a, err), TN_OK);
	CU_ASSERT_EQUAL(tn_addr_zone(&a), 0);
	tn_addr_set_zone(&a, 7);
	CU_ASSERT_EQUAL(tn_addr_zone(&a), 0);
}

static void sources(void)
{
	static const struct { const char *from, *to; bool may; } t[] = {
		{ "192.0.2.1", "198.51.100.1", true }, { "192.0.2.1", "127.0.0.1", true },
		{ "0.0.0.0", "198.51.100.1", false }, { "::", "2001:db8::1", false },
		{ "127.0.0.1", "198.51.100.1", false }, { "127.0.0.2", "127.0.0.1", true },
		{ "192.0.2.1", "2001:db8::1", false }, { "2001:db8::1", "192.0.2.1", false },
		{ "::1", "2001:db8::1", false }, { "::1", "::1", true }, { "2001:db8::2", "fe80::1%1", true },
		{ "fe80::1%1", "2001:db8::1", false }, { "fe80::1%1", "fe80::2%1", true },
		{ "fe80::1%1", "fe80::2%2", false },
	};
	for (size_t i = 0; i < TN_ARRAY_LEN(t); i++) {
		struct tn_addr from = must(t[i].from), to = must(t[i].to);
		CU_ASSERT_EQUAL(tn_addr_may_reach(&from, &to), t[i].may);
	}
}

static void from_the_kernel(void)
{
	struct tn_addr mapped = must("[::ffff:192.0.2.7]:5"), plain = must("192.0.2.7:5"), got;
	CU_ASSERT_EQUAL(tn_addr_from_sockaddr((struct sockaddr *)&mapped.ss, mapped.len, &got), TN_OK);
	CU_ASSERT_TRUE(tn_addr_eq(&got, &plain));
	CU_ASSERT_EQUAL(got.len, sizeof(struct sockaddr_in));
	CU_ASSERT_EQUAL(tn_addr_from_sockaddr((struct sockaddr *)&plain.ss, 4, &got), TN_UNSUPPORTED);
	CU_ASSERT_EQUAL(tn_addr_from_sockaddr((struct sockaddr *)&plain.ss, 1, &got), TN_UNSUPPORTED);
	plain.ss.ss_family = AF_UNIX;
	CU_ASSERT_EQUAL(tn_addr_from_sockaddr((struct sockaddr *)&plain.ss, plain.len, &got), TN_UNSUPPORTED);
}

TN_TEST_MAIN("common/addr", { "accepted forms", accepted_forms }, { "refused forms", refused_forms },
	{ "comparisons", comparisons }, { "zones", zones }, { "sources", sources },
	{ "from the kernel", from_the_kernel })
