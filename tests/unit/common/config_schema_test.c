/* SPDX-License-Identifier: Apache-2.0
 * The schema table is sound (names, ranges, sections, environment names that cannot collide), and what is said about a
 * misspelt key is helpful. */
#include "common/config_schema.h"

#include "tests/unit/cu.h"

static void rows_are_sound(void)
{
	for (unsigned k = 0; k < TN_CFG_KEY_CNT; k++) {
		const struct tn_cfg_row *row = &tn_cfg_rows[k];
		size_t help = strlen(row->help);

		CU_ASSERT_EQUAL(tn_cfg_key_find(row->path), k);
		CU_ASSERT_TRUE(row->min <= row->max && row->max <= INT64_MAX); /* JSON's integers */
		CU_ASSERT_PTR_NOT_NULL(row->def);
		CU_ASSERT_TRUE(help > 10 && row->help[help - 1] == '.');
		CU_ASSERT_PTR_NOT_NULL(tn_cfg_section_of((enum tn_config_key)k));
		CU_ASSERT_EQUAL(row->type == TN_CFG_TYPE_ENUM,
				row->choices != NULL && row->type != TN_CFG_TYPE_STR_LIST);
		CU_ASSERT_EQUAL(strspn(row->path, "abcdefghijklmnopqrstuvwxyz_/"), strlen(row->path));
		CU_ASSERT_FALSE(tn_cfg_is_section(row->path));
	}
	CU_ASSERT_STRING_EQUAL(tn_cfg_section_of(TN_CFG_TCP_PORT)->path, "transports/tcp"); /* not the one around it */
	CU_ASSERT_STRING_EQUAL(tn_cfg_section_of(TN_CFG_TRANSPORTS_DISABLE_GRACE_MS)->path, "transports");
	CU_ASSERT_STRING_EQUAL(tn_cfg_section_of(TN_CFG_RUNTIME_DIR)->path, "");
}

/* The unit stands in the name, so that a reader of a config needs no manual. */
static void units_are_in_names(void)
{
	static const struct {
		enum tn_cfg_kind kind;
		const char *suffix;
	} t[] = {
		{ TN_CFG_KIND_MS, "_ms" },
		{ TN_CFG_KIND_US, "_us" },
		{ TN_CFG_KIND_BYTES, "_bytes" },
		{ TN_CFG_KIND_PPM, "_ppm" },
	};
	for (unsigned k = 0; k < TN_CFG_KEY_CNT; k++)
		for (size_t i = 0; i < TN_ARRAY_LEN(t); i++) {
			const char *path = tn_cfg_rows[k].path;
			size_t len = strlen(path), want = strlen(t[i].suffix);
			bool has = len > want && strcmp(path + len - want, t[i].suffix) == 0;

			CU_ASSERT_EQUAL(has, tn_cfg_rows[k].kind == t[i].kind);
		}
}

static void environment_names_are_unique(void)
{
	char name[128], other[128];

	tn_cfg_env_name(TN_CFG_POLL_SPIN_US, name, sizeof name);
	CU_ASSERT_STRING_EQUAL(name, "TENT_POLL_SPIN_US");
	for (unsigned k = 0; k < TN_CFG_KEY_CNT; k++) {
		tn_cfg_env_name((enum tn_config_key)k, name, sizeof name);
		CU_ASSERT_EQUAL(tn_cfg_key_by_env(name), k);
		for (unsigned o = 0; o < k; o++) {
			tn_cfg_env_name((enum tn_config_key)o, other, sizeof other);
			CU_ASSERT_STRING_NOT_EQUAL(name, other);
		}
	}
	CU_ASSERT_EQUAL(tn_cfg_key_by_env("TENT_CONFIG"), TN_CFG_KEY_CNT);
	CU_ASSERT_EQUAL(tn_cfg_key_by_env("TENT_HOOK"), TN_CFG_KEY_CNT);
}

static void suggestions(void)
{
	char near[64];

	CU_ASSERT_STRING_EQUAL(tn_cfg_suggest_path("poll/spin_su"), "poll/spin_us");
	CU_ASSERT_STRING_EQUAL(tn_cfg_suggest_path("poll.mode"), "poll/mode");
	CU_ASSERT_STRING_EQUAL(tn_cfg_suggest_path("congestion_control"), "transports/tcp/congestion_control");
	CU_ASSERT_STRING_EQUAL(tn_cfg_suggest_path("tcp/lanes_per_peer"), "transports/tcp/lanes_per_peer");
	CU_ASSERT_STRING_EQUAL(tn_cfg_suggest_path("observabilty"), "observability");
	CU_ASSERT_STRING_EQUAL(tn_cfg_suggest_path("peer"), "peers");
	CU_ASSERT_PTR_NULL(tn_cfg_suggest_path("enable")); /* several transports have one: none is nearer */
	CU_ASSERT_PTR_NULL(tn_cfg_suggest_path("zebra"));
	CU_ASSERT_PTR_NULL(tn_cfg_suggest_path(""));
	CU_ASSERT_TRUE(tn_cfg_suggest_env("TENT_LOG_LEVLE", near, sizeof near));
	CU_ASSERT_STRING_EQUAL(near, "TENT_LOG_LEVEL");
	CU_ASSERT_TRUE(tn_cfg_suggest_env("TENT_LOG", near, sizeof near));
	CU_ASSERT_STRING_EQUAL(near, "TENT_LOG_LEVEL");
	CU_ASSERT_FALSE(tn_cfg_suggest_env("TENT_ZEBRA_STRIPES", near, sizeof near));
	CU_ASSERT_TRUE(tn_cfg_suggest_field(TN_CFG_PEERS, "pubic_key", near, sizeof near));
	CU_ASSERT_STRING_EQUAL(near, "public_key");
	CU_ASSERT_FALSE(tn_cfg_suggest_field(TN_CFG_POLICIES, "public_key", near, sizeof near));
	CU_ASSERT_TRUE(tn_cfg_suggest_choice(&tn_cfg_rows[TN_CFG_LOG_LEVEL], "warning", near, sizeof near));
	CU_ASSERT_STRING_EQUAL(near, "warn");
	CU_ASSERT_FALSE(tn_cfg_suggest_choice(&tn_cfg_rows[TN_CFG_LOG_LEVEL], "verbose", near, sizeof near));
	CU_ASSERT_TRUE(tn_cfg_suggest_choice(&tn_cfg_rows[TN_CFG_LOG_LEVEL], "eror", near, sizeof near));
	CU_ASSERT_STRING_EQUAL(near, "error");
}

static void ranges(void)
{
	char text[256];

	tn_cfg_range_text(&tn_cfg_rows[TN_CFG_POLL_SPIN_US], text, sizeof text);
	CU_ASSERT_STRING_EQUAL(text, "0..1000000 microseconds");
	tn_cfg_range_text(&tn_cfg_rows[TN_CFG_TCP_FRAME_BYTES], text, sizeof text);
	CU_ASSERT_STRING_EQUAL(text, "4KiB..1MiB");
	tn_cfg_range_text(&tn_cfg_rows[TN_CFG_POLL_MODE], text, sizeof text);
	CU_ASSERT_STRING_EQUAL(text, "one of busy, adaptive");
	tn_cfg_range_text(&tn_cfg_rows[TN_CFG_TCP_ADVERTISE_ADDRESSES], text, sizeof text);
	CU_ASSERT_STRING_EQUAL(text, "at most 8 numeric addresses");
	char small[8]; /* cut, never past the end */
	tn_cfg_range_text(&tn_cfg_fields[TN_CFG_FIELD_POLICIES_INTENT], small, sizeof small);
	CU_ASSERT_EQUAL(strlen(small), 7);
}

static void words_agree_with_the_domains(void)
{
	char word[64];

	for (unsigned i = 0; i < TN_INTENT_CNT; i++) {
		CU_ASSERT_TRUE(tn_cfg_choice(&tn_cfg_fields[TN_CFG_FIELD_POLICIES_INTENT], i + 1, word, sizeof word));
		CU_ASSERT_STRING_EQUAL(word, tn_intent_name(i));
	}
	for (unsigned i = 1; i < TN_TRANSPORT_CNT; i++) {
		CU_ASSERT_TRUE(
			tn_cfg_choice(&tn_cfg_fields[TN_CFG_FIELD_POLICIES_TRANSPORTS], i - 1, word, sizeof word));
		CU_ASSERT_STRING_EQUAL(word, tn_transport_name(i));
	}
	CU_ASSERT_FALSE(tn_cfg_choice(&tn_cfg_rows[TN_CFG_POLL_MODE], 2, word, sizeof word));
}

TN_TEST_MAIN("common_config_schema", { "rows are sound", rows_are_sound }, { "units are in names", units_are_in_names },
	     { "environment names are unique", environment_names_are_unique },
	     { "suggestions", suggestions }, { "ranges", ranges },
	     { "words agree with the domains", words_agree_with_the_domains })
