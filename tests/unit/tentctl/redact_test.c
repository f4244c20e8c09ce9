/* SPDX-License-Identifier: Apache-2.0
 * What a bundle may show: names that were learned anywhere are gone everywhere, forms that name a host or a key are gone
 * without having been learned, and what explains a failure is still there. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controlplane/tentctl/bundle/redact.h"
#include "tests/unit/cu.h"

#define KEY "JTd$V1/$b!)mYTBMaKBXw.([5mK*=rewxzI^?Q{}"
#define TRACE "0af7651916cd43dd8448eb211c80319c"

static struct tctl_redactor *learned(enum tctl_redact_mode mode)
{
	static const char doc[] = "{\"host\":{\"name\":\"node7\"},\"peers\":[{\"name\":\"gpu-b.rack3\",\"address\":\"tcp://gpu-b.example.com:9816\"},"
				  "{\"name\":\"a\"},{\"name\":\"42\"},{\"name\":\"tcp\"}],\"segment\":\"a/kv_7\",\"bind\":\"tcp://0.0.0.0:9816\"}";
	struct tctl_redactor *r = tctl_redactor_new(mode);
	json_t *j = json_loads(doc, 0, NULL);
	CU_ASSERT_TRUE_FATAL(r != NULL && j != NULL);
	CU_ASSERT_TRUE(tctl_redactor_learn(r, j));
	json_decref(j);
	return r;
}

/* {text, what it becomes}; {text, NULL}: it stays. */
static const struct { const char *text, *want; } texts[] = {
	{ "host node7 does not answer", "host name-1 does not answer" },
	{ "the host is node7.", "the host is name-1." },
	{ "(node7)", "(name-1)" },
	{ "node77 anode7 node7_x", NULL },
	{ "gpu-b.rack3 and gpu-b.example.com", "name-2 and address-1" },
	{ "tcp://gpu-b.example.com:9816", "tcp://address-1:9816" },
	{ "a/kv_7", "name-3/segment-1" },
	{ "carried by tcp", NULL },
	{ "42 of 420", "name-4 of 420" },
	{ "10.1.2.3", "<ip>" },
	{ "10.1.2.3:9817, then 10.1.2.4", "<ip>, then <ip>" },
	{ "10.1.0.0/16", "<ip>" },
	{ "tcp://10.1.2.3:9816", "tcp://<ip>" },
	{ "[fe80::1%eth0]:9817", "<ip>" },
	{ "fe80::1%eth0", "<ip>" },
	{ "2001:db8::7", "<ip>" },
	{ "from 2001:db8::7.", "from <ip>." },
	{ "version 1.2.3", NULL },
	{ "at 19:30:51", NULL },
	{ "2026-11-30T18:47:20.129140Z", NULL },
	{ "/var/lib/tent/curve.key: no such file", "<path>: no such file" },
	{ "edit \"/etc/tent/x y\"", "edit \"<path> y\"" },
	{ "file=/etc/passwd", "file=<path>" },
	{ "log/level and/or 4/5", NULL },
	{ "http://127.0.0.1:9815/metrics", "http://<ip>/metrics" },
	{ "key " KEY ", and", "key <key>, and" },
	{ "session " TRACE, "session <hex>" },
	{ "commit 52931257e243, 1234567890123456789", NULL },
	{ "tent_requests_total{peer=\"a\",transport=\"tcp\"} 5", "tent_requests_total{peer=\"name-3\",transport=\"tcp\"} 5" },
	{ "", NULL },
};

static void words_and_forms(void)
{
	struct tctl_redactor *r = learned(TCTL_REDACT_DEFAULT);
	for (size_t i = 0; i < TN_ARRAY_LEN(texts); i++) {
		char *got = tctl_redactor_text(r, texts[i].text);
		CU_ASSERT_PTR_NOT_NULL_FATAL(got);
		const char *want = texts[i].want != NULL ? texts[i].want : texts[i].text;
		if (strcmp(got, want) != 0)
			fprintf(stderr, "\"%s\" became \"%s\", not \"%s\"\n", texts[i].text, got, want);
		CU_ASSERT_STRING_EQUAL(got, want);
		free(got);
	}
	tctl_redactor_free(r);
}

static char *rewritten(enum tctl_redact_mode mode, const char *doc)
{
	struct tctl_redactor *r = learned(mode);
	json_t *j = json_loads(doc, 0, NULL), *out;
	CU_ASSERT_PTR_NOT_NULL_FATAL(j);
	CU_ASSERT_TRUE(tctl_redactor_learn(r, j));
	out = tctl_redactor_json(r, j);
	CU_ASSERT_PTR_NOT_NULL_FATAL(out);
	char *text = json_dumps(out, JSON_COMPACT | JSON_SORT_KEYS);
	json_decref(out);
	json_decref(j);
	tctl_redactor_free(r);
	return text;
}

static void documents(void)
{
	static const char doc[] = "{\"node7\":1,\"trace_id\":\"" TRACE "\",\"session\":\"" TRACE "\",\"uid\":1000,\"why\":\"peer a is away\","
				  "\"status\":\"peer_down\",\"list\":[true,null,1.5,\"a\"]}";
	char *text = rewritten(TCTL_REDACT_DEFAULT, doc);
	CU_ASSERT_STRING_EQUAL(text, "{\"list\":[true,null,1.5,\"name-3\"],\"name-1\":1,\"session\":\"<hex>\",\"status\":\"peer_down\","
				     "\"trace_id\":\"" TRACE "\",\"uid\":1000,\"why\":\"peer name-3 is away\"}");
	free(text);
	text = rewritten(TCTL_REDACT_STRICT, doc);
	CU_ASSERT_STRING_EQUAL(text, "{\"list\":[true,null,1.5,\"name-3\"],\"name-1\":1,\"session\":\"<hex>\",\"status\":\"peer_down\","
				     "\"trace_id\":\"<hex>\",\"uid\":null,\"why\":\"<text>\"}");
	free(text);
}

/* Nothing may be handed out when not everything could be learned. */
static void too_much_to_learn(void)
{
	struct tctl_redactor *r = tctl_redactor_new(TCTL_REDACT_DEFAULT);
	json_t *list = json_array(), *deep = json_object();
	for (int i = 0; i <= TCTL_REDACT_NAMES_MAX; i++) {
		char name[32];
		snprintf(name, sizeof name, "host-%d", i);
		json_array_append_new(list, json_pack("{s:s}", "name", name));
	}
	CU_ASSERT_FALSE(tctl_redactor_learn(r, list));
	json_decref(list);
	tctl_redactor_free(r);
	r = tctl_redactor_new(TCTL_REDACT_DEFAULT);
	for (int i = 0; i < 100; i++)
		deep = json_pack("{s:o}", "in", deep);
	CU_ASSERT_FALSE(tctl_redactor_learn(r, deep));
	json_decref(deep);
	tctl_redactor_free(r);
}

TN_TEST_MAIN("tentctl redact", { "words and forms", words_and_forms }, { "documents", documents },
	     { "too much to learn", too_much_to_learn })
