/* SPDX-License-Identifier: Apache-2.0
 * The rules of data addresses: what a host says of itself, where lanes of a peer may come from, and what becomes of the
 * endpoints that a peer names. */
#include "controlplane/peer/address.h"

#include <stdio.h>
#include <string.h>

#include "tests/unit/cu.h"

#define KEY "\"public_key\":\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\""

static struct tn_config *config_with(const char *bind, const char *advertise, const char *peer)
{
	static struct tn_config_errors errors;
	char sets[3][400];
	const char *const set[3] = { sets[0], sets[1], sets[2] };
	const char *const no_env[] = { "HOME=/nonexistent", NULL };
	struct tn_config_opts opts = { .size = sizeof opts, .sets = set, .set_cnt = 3, .env = no_env,
				       .default_path = "/nonexistent" };
	struct tn_config *cfg = NULL;
	snprintf(sets[0], sizeof sets[0], "transports/tcp/bind_address=%s", bind);
	snprintf(sets[1], sizeof sets[1], "transports/tcp/advertise_addresses=%s", advertise);
	snprintf(sets[2], sizeof sets[2], "peers=[{\"name\":\"b\"," KEY ",%s}]", peer);
	if (tn_config_load(&opts, &cfg, &errors) != TN_OK)
		tn_config_errors_print(&errors, stderr);
	CU_ASSERT_PTR_NOT_NULL_FATAL(cfg);
	return cfg;
}

static void list_is(json_t *list, const char *want)
{
	char *text = json_dumps(list, JSON_COMPACT);
	CU_ASSERT_STRING_EQUAL(text, want);
	free(text);
	json_decref(list);
}

static void own(const char *bind, const char *advertise, const char *want)
{
	struct tn_config *c = config_with(bind, advertise, "\"address\":\"tcp://192.0.2.9:1\"");
	list_is(cp_address_own(c), want);
	tn_config_free(c);
}

static void what_we_say(void)
{
	own("192.0.2.1", "", "[\"192.0.2.1\"]");
	own("192.0.2.1", "198.51.100.1,192.0.2.1", "[\"192.0.2.1\",\"198.51.100.1\"]");
	own("0.0.0.0", "198.51.100.1", "[\"198.51.100.1\"]"); /* nobody comes from a wildcard */
	own("::", "2001:db8::1,192.0.2.1", "[\"2001:db8::1\",\"192.0.2.1\"]");
	own("fe80::1%lo", "", "[\"fe80::1\"]"); /* our zone means nothing elsewhere */
}

static void allowed(const char *peer, const char *named, const char *control, const char *want)
{
	char text[400], err[TN_ERR_TEXT] = "";
	json_t *list = NULL, *in = json_loads(named, 0, NULL);
	snprintf(text, sizeof text, "\"address\":\"tcp://192.0.2.9:1\"%s", peer);
	struct tn_config *c = config_with("192.0.2.1", "", text);
	tn_status st = cp_address_allowed(tn_config_peer(c, 0), in, control, &list, err);
	if (want != NULL) {
		CU_ASSERT_EQUAL_FATAL(st, TN_OK);
		list_is(list, want);
	} else {
		CU_ASSERT_EQUAL(st, TN_INVALID);
		CU_ASSERT_TRUE(list == NULL && err[0] != '\0');
	}
	json_decref(in);
	tn_config_free(c);
}

static void where_lanes_may_come_from(void)
{
	/* what the peer names, and where its control connection comes from */
	allowed("", "[\"192.0.2.2\"]", "198.51.100.2", "[\"192.0.2.2\",\"198.51.100.2\"]");
	allowed("", "[\"192.0.2.2\"]", "192.0.2.2", "[\"192.0.2.2\"]");
	allowed("", "[]", "::ffff:192.0.2.2", "[\"::ffff:192.0.2.2\"]");
	allowed("", "[\"fe80::2\"]", "fe80::2%lo", "[\"fe80::2\",\"fe80::2%lo\"]");
	allowed("", "[\"0.0.0.0\",\"192.0.2.2\"]", NULL, "[\"192.0.2.2\"]");
	/* the operator of this host has the last word */
	allowed(",\"data_addresses\":[\"203.0.113.0/24\",\"fe80::7\"]", "[\"192.0.2.2\"]", "192.0.2.2",
		"[\"203.0.113.0/24\",\"fe80::7\"]");
	allowed(",\"data_addresses\":[\"203.0.113.7\"]", "[17]", NULL, "[\"203.0.113.7\"]");
	/* a peer names addresses, never all of them at once */
	allowed("", "[\"0.0.0.0/0\"]", NULL, NULL);
	allowed("", "[\"192.0.2.0/24\"]", "192.0.2.2", NULL);
	allowed("", "[\"host.example\"]", NULL, NULL);
	allowed("", "[7]", NULL, NULL);
}

static void endpoints(const char *bind, const char *address, const char *told, tn_status status, const char *want)
{
	char text[400], err[TN_ERR_TEXT] = "";
	json_t *list = NULL, *in = json_loads(told, 0, NULL);
	snprintf(text, sizeof text, "\"address\":\"%s\"", address);
	struct tn_config *c = config_with(bind, "127.0.0.1", text);
	CU_ASSERT_EQUAL(cp_address_endpoints(c, tn_config_peer(c, 0), in, &list, err), status);
	if (status == TN_OK)
		list_is(list, want);
	else
		CU_ASSERT_PTR_NOT_NULL(strstr(err, want));
	json_decref(in);
	tn_config_free(c);
}

#define EP(address) "[{\"transport\":\"tcp\",\"address\":\"" address "\"}]"

static void endpoints_get_our_zone(void)
{
	endpoints("192.0.2.1", "tcp://192.0.2.9:1", EP("192.0.2.9:7"), TN_OK, EP("192.0.2.9:7"));
	endpoints("192.0.2.1", "tcp://[fe80::9%lo]:1", EP("[fe80::9]:7"), TN_OK, EP("[fe80::9%lo]:7"));
	endpoints("fe80::1%lo", "tcp://192.0.2.9:1", EP("[fe80::9]:7"), TN_OK, EP("[fe80::9%lo]:7"));
	endpoints("192.0.2.1", "tcp://[fe80::9%lo]:1", EP("[2001:db8::9]:7"), TN_OK, EP("[2001:db8::9]:7"));
	endpoints("192.0.2.1", "tcp://192.0.2.9:1", EP("[fe80::9]:7"), TN_CONFIG, "peers/b/address");
	endpoints("192.0.2.1", "tcp://192.0.2.9:1",
		  "[{\"transport\":\"tcp\",\"address\":\"192.0.2.9:7\"},{\"transport\":\"tcp\",\"address\":\"[fe80::9]:7\"}]", TN_OK,
		  EP("192.0.2.9:7"));
	endpoints("192.0.2.1", "tcp://192.0.2.9:1", EP("[fe80::9%nosuchif0]:7"), TN_CONFIG, "peers/b/address");
	endpoints("192.0.2.1", "tcp://192.0.2.9:1", EP("192.0.2.9"), TN_PATH_PROTOCOL, "port");
	endpoints("192.0.2.1", "tcp://192.0.2.9:1", "[{\"transport\":\"tcp\"}]", TN_PATH_PROTOCOL, "no transport");
	endpoints("192.0.2.1", "tcp://192.0.2.9:1", "[7]", TN_PATH_PROTOCOL, "no transport");
	endpoints("192.0.2.1", "tcp://192.0.2.9:1", "[]", TN_OK, "[]");
}

TN_TEST_MAIN("controlplane/address", { "what we say", what_we_say },
	     { "where lanes may come from", where_lanes_may_come_from },
	     { "endpoints get our zone", endpoints_get_our_zone })
