/* SPDX-License-Identifier: Apache-2.0
 * What config dump shows: every value and its origin, only the changed ones when asked, and JSON that loads back to
 * the same config. */
#include <jansson.h>

#include "tests/unit/common/config_fixture.h"

static struct fixture fx;

/* The dump as a text for free(). */
static char *dump(unsigned flags)
{
	char *text = NULL;
	size_t bytes = 0;
	FILE *out = open_memstream(&text, &bytes);

	CU_ASSERT_EQUAL(tn_config_dump(fx.cfg, out, flags), TN_OK);
	fclose(out);
	return text;
}

static bool shows(unsigned flags, const char *needle)
{
	char *text = dump(flags);
	bool found = strstr(text, needle) != NULL;

	if (!found)
		fprintf(stderr, "no \"%s\" in:\n%s", needle, text);
	free(text);
	return found;
}

static void prepare(void)
{
	fx_open(&fx);
	fx_write(&fx, "tent.json",
		 "{ \"admission\": {\n\"window_bytes\": \"512MiB\" },\n"
		 "\"peers\": [ { \"name\": \"a\", \"address\": \"tcp://192.0.2.1:1\",\n"
		 "\"public_key\": \"0000000000000000000000000000000000000001\" } ] }");
	fx_write(&fx, "conf.d/b.json",
		 "{ \"peers\": [ {\n \"name\": \"b\", \"address\": \"tcp://192.0.2.2:1\","
		 "\"public_key\": \"0000000000000000000000000000000000000002\" } ] }");
	fx_env(&fx, "TENT_POLL_MODE=busy");
	fx_set(&fx, "log/level=debug");
	CU_ASSERT_FATAL(fx_good(&fx));
}

static void for_people(void)
{
	char *text;
	unsigned lines = 0;

	prepare();
	CU_ASSERT_TRUE(shows(TN_CONFIG_DUMP_EFFECTIVE, "poll/spin_us = 50\n"));
	CU_ASSERT_TRUE(shows(TN_CONFIG_DUMP_EFFECTIVE | TN_CONFIG_DUMP_ORIGIN, "poll/spin_us = 50   # default\n"));
	CU_ASSERT_TRUE(shows(TN_CONFIG_DUMP_ORIGIN, "admission/window_bytes = \"512MiB\"   # "));
	CU_ASSERT_TRUE(shows(TN_CONFIG_DUMP_ORIGIN, "/tent.json:2\n"));
	CU_ASSERT_TRUE(shows(TN_CONFIG_DUMP_ORIGIN, "poll/mode = \"busy\"   # env TENT_POLL_MODE\n"));
	CU_ASSERT_TRUE(shows(TN_CONFIG_DUMP_ORIGIN, "log/level = \"debug\"   # --set\n"));
	CU_ASSERT_TRUE(shows(TN_CONFIG_DUMP_ORIGIN, "/tent.json:3\npeers[1] = "));
	CU_ASSERT_TRUE(shows(TN_CONFIG_DUMP_ORIGIN, "/conf.d/b.json:1\n"));
	text = dump(0);
	for (const char *p = text; *p != '\0'; p++)
		lines += *p == '\n';
	CU_ASSERT_EQUAL(lines, 5); /* only what is not default */
	free(text);
	fx_close(&fx);
}

static void json_loads_back(void)
{
	struct tn_config_change changes[TN_CFG_KEY_CNT];
	struct tn_config *before;
	char *text;

	prepare();
	text = dump(TN_CONFIG_DUMP_EFFECTIVE | TN_CONFIG_DUMP_JSON);
	before = fx.cfg;
	fx.cfg = NULL;
	fx.env[0] = NULL;
	fx.set_cnt = 0;
	fx_write(&fx, "tent.json", text);
	fx_write(&fx, "conf.d/b.json", "{}");
	CU_ASSERT_FATAL(fx_good(&fx));
	CU_ASSERT_EQUAL(tn_config_diff(before, fx.cfg, changes), 0);
	tn_config_free(before);
	free(text);
	fx_close(&fx);
}

static void json_with_origins(void)
{
	json_t *root, *level, *peers;
	char *text;

	prepare();
	text = dump(TN_CONFIG_DUMP_EFFECTIVE | TN_CONFIG_DUMP_JSON | TN_CONFIG_DUMP_ORIGIN);
	root = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
	CU_ASSERT_PTR_NOT_NULL_FATAL(root);
	CU_ASSERT_EQUAL(json_object_size(root), TN_CFG_KEY_CNT);
	level = json_object_get(root, "log/level");
	CU_ASSERT_STRING_EQUAL(json_string_value(json_object_get(level, "value")), "debug");
	CU_ASSERT_STRING_EQUAL(json_string_value(json_object_get(level, "origin")), "--set");
	CU_ASSERT_STRING_EQUAL(json_string_value(json_object_get(level, "change")), "hot");
	peers = json_object_get(root, "peers");
	CU_ASSERT_EQUAL(json_array_size(json_object_get(peers, "value")), 2);
	CU_ASSERT_EQUAL(json_array_size(json_object_get(peers, "item_origins")), 2);
	json_decref(root);
	free(text);
	fx_close(&fx);
}

static void a_full_disk_is_seen(void)
{
	FILE *out = fopen("/dev/full", "w");

	prepare();
	CU_ASSERT_PTR_NOT_NULL_FATAL(out);
	CU_ASSERT_EQUAL(tn_config_dump(fx.cfg, out, TN_CONFIG_DUMP_EFFECTIVE), TN_SYSTEM);
	fclose(out);
	fx_close(&fx);
}

TN_TEST_MAIN("common_config_dump", { "for people", for_people }, { "JSON loads back", json_loads_back },
	     { "JSON with origins", json_with_origins }, { "a full disk is seen", a_full_disk_is_seen })
