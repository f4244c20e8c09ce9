/* SPDX-License-Identifier: Apache-2.0
 * Envelopes round-trip; foreign text is bounded and refused by name; bodies are read strictly and the first error
 * sticks. */
#include "common/message.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "tests/unit/cu.h"

static tn_status decode(const char *text, struct tn_message *m, char *err)
{
	err[0] = '\0';
	return tn_message_decode(text, strlen(text), m, err);
}

static void request_round_trip(void)
{
	struct tn_message m = { .type = "get_segment", .id = UINT64_MAX, .remaining_ms = 900 }, got;
	char buf[1024], err[TN_ERR_TEXT];
	size_t len;
	memset(&m.session, 0xab, sizeof m.session);
	m.body = json_pack("{s:s}", "name", "kv");
	CU_ASSERT_EQUAL_FATAL(tn_message_encode(&m, buf, sizeof buf, &len), TN_OK);
	CU_ASSERT_EQUAL_FATAL(tn_message_decode(buf, len, &got, err), TN_OK);
	CU_ASSERT_EQUAL(got.version, 1);
	CU_ASSERT_STRING_EQUAL(got.type, "get_segment");
	CU_ASSERT_EQUAL(got.id, UINT64_MAX);
	CU_ASSERT_EQUAL(got.remaining_ms, 900);
	CU_ASSERT_TRUE(tn_id128_eq(&got.session, &m.session));
	CU_ASSERT_FALSE(got.reply);
	CU_ASSERT_TRUE(json_equal(got.body, m.body));
	tn_message_clear(&got);
	CU_ASSERT_PTR_NULL(got.body);
	tn_message_clear(&got);
	tn_message_clear(&m);
}

static void reply_round_trip(void)
{
	struct tn_message m = { .type = "probe", .id = 7, .reply = true, .status = TN_PEER_STALE,
	                        .detail = "gone \"away\"" }, got;
	char buf[1024], err[TN_ERR_TEXT];
	size_t len;
	CU_ASSERT_EQUAL_FATAL(tn_message_encode(&m, buf, sizeof buf, &len), TN_OK);
	CU_ASSERT_EQUAL_FATAL(tn_message_decode(buf, len, &got, err), TN_OK);
	CU_ASSERT_TRUE(got.reply);
	CU_ASSERT_EQUAL(got.status, TN_PEER_STALE);
	CU_ASSERT_STRING_EQUAL(got.detail, "gone \"away\"");
	CU_ASSERT_PTR_NULL(got.body);
	CU_ASSERT_TRUE(tn_id128_is_zero(&got.session));
	CU_ASSERT_EQUAL(decode("{\"v\":1,\"type\":\"a\",\"id\":\"8\",\"reply\":true,\"status\":\"brand_new\","
	                       "\"detail\":\"x\"}", &got, err), TN_OK);
	CU_ASSERT_EQUAL(got.status, TN_UNSUPPORTED);
	CU_ASSERT_PTR_NOT_NULL(strstr(got.detail, "brand_new"));
	CU_ASSERT_EQUAL(got.id, 8);
}

static void unknown_fields_are_ignored(void)
{
	struct tn_message m;
	char err[TN_ERR_TEXT];
	CU_ASSERT_EQUAL(decode("{\"v\":1,\"type\":\"a\",\"id\":1,\"trace\":{\"x\":[1]},\"status\":5,"
	                       "\"body\":null,\"session\":null}", &m, err), TN_OK);
	CU_ASSERT_PTR_NULL(m.body);
}

static void refusals(void)
{
	static const struct { const char *text; tn_status st; const char *why; } t[] = {
		{ "", TN_INVALID, "JSON" }, { "{", TN_INVALID, "JSON" }, { "[1]", TN_INVALID, "not a JSON object" },
		{ "7", TN_INVALID, "JSON" },
		{ "{\"v\":2,\"type\":\"a\",\"id\":1}", TN_UNSUPPORTED, "version 2" },
		{ "{\"v\":0,\"type\":\"a\",\"id\":1}", TN_UNSUPPORTED, "version 0" },
		{ "{\"v\":\"x\",\"type\":\"a\",\"id\":1}", TN_INVALID, "\"v\"" },
		{ "{\"type\":\"a\",\"id\":1}", TN_INVALID, "\"v\" is missing" },
		{ "{\"v\":1,\"id\":1}", TN_INVALID, "\"type\" is missing" },
		{ "{\"v\":1,\"type\":\"a\"}", TN_INVALID, "\"id\" is missing" },
		{ "{\"v\":1,\"type\":\"\",\"id\":1}", TN_INVALID, "\"type\"" },
		{ "{\"v\":1,\"type\":\"A b\",\"id\":1}", TN_INVALID, "\"type\"" },
		{ "{\"v\":1,\"type\":5,\"id\":1}", TN_INVALID, "\"type\" must be a string" },
		{ "{\"v\":1,\"type\":\"abcdefghijklmnopqrstuvwxyzabcdefghijk\",\"id\":1}", TN_INVALID, "\"type\"" },
		{ "{\"v\":1,\"type\":\"a\",\"id\":-1}", TN_INVALID, "\"id\"" },
		{ "{\"v\":1,\"type\":\"a\",\"id\":1.5}", TN_INVALID, "\"id\"" },
		{ "{\"v\":1,\"type\":\"a\",\"id\":\"18446744073709551616\"}", TN_INVALID, "\"id\"" },
		{ "{\"v\":1,\"type\":\"a\",\"id\":1,\"session\":\"00\"}", TN_INVALID, "\"session\"" },
		{ "{\"v\":1,\"type\":\"a\",\"id\":1,\"remaining_ms\":86400001}", TN_INVALID, "\"remaining_ms\"" },
		{ "{\"v\":1,\"type\":\"a\",\"id\":1,\"reply\":1}", TN_INVALID, "\"reply\"" },
		{ "{\"v\":1,\"type\":\"a\",\"id\":1,\"reply\":true}", TN_INVALID, "\"status\" is missing" },
		{ "{\"v\":1,\"type\":\"a\",\"id\":1,\"body\":[]}", TN_INVALID, "\"body\" must be an object" },
		{ "{\"v\":1,\"type\":\"a\",\"id\":1,\"id\":2}", TN_INVALID, "duplicate" },
		{ "{\"v\":1,\"type\":\"a\",\"id\":1} x", TN_INVALID, "JSON" },
		{ "{\"v\":1,\"type\":\"a\\u0000b\",\"id\":1}", TN_INVALID, "JSON" },
		{ "[[[[[[[[[[[[[[[[[", TN_TOO_BIG, "deeper" },
	};
	for (size_t i = 0; i < TN_ARRAY_LEN(t); i++) {
		struct tn_message m;
		char err[TN_ERR_TEXT];
		memset(&m, 0x77, sizeof m);
		CU_ASSERT_EQUAL(decode(t[i].text, &m, err), t[i].st);
		CU_ASSERT_PTR_NOT_NULL(strstr(err, t[i].why));
		CU_ASSERT_PTR_NULL(m.body);
	}
}

static void an_error_reply_stays_possible(void)
{
	struct tn_message m;
	char err[TN_ERR_TEXT];
	CU_ASSERT_EQUAL(decode("{\"v\":9,\"type\":\"a\",\"id\":42}", &m, err), TN_UNSUPPORTED);
	CU_ASSERT_EQUAL(m.id, 42);
	CU_ASSERT_EQUAL(m.version, 9);
	CU_ASSERT_EQUAL(m.type[0], '\0');
}

static void secrets_stay_out_of_errors(void)
{
	struct tn_message m;
	char err[TN_ERR_TEXT];
	CU_ASSERT_EQUAL(decode("{\"v\":1,\"ticket\":\"s3cr3t\" \"s3cr3t\"}", &m, err), TN_INVALID);
	CU_ASSERT_PTR_NULL(strstr(err, "s3cr3t"));
	CU_ASSERT_EQUAL(decode("{\"v\":1,\"id\":1,\"type\":\"a\",\"session\":\"s3cr3t\"}", &m, err), TN_INVALID);
	CU_ASSERT_PTR_NULL(strstr(err, "s3cr3t"));
}

static void sizes_are_bounded(void)
{
	static char big[TN_MESSAGE_MAX + 2], out[2 * TN_MESSAGE_MAX];
	struct tn_message m;
	char err[TN_ERR_TEXT];
	memset(big, ' ', sizeof big);
	memcpy(big, "{\"v\":1,\"type\":\"a\",\"id\":1}", 26 - 1);
	CU_ASSERT_EQUAL(tn_message_decode(big, TN_MESSAGE_MAX, &m, err), TN_OK);
	CU_ASSERT_EQUAL(tn_message_decode(big, TN_MESSAGE_MAX + 1, &m, err), TN_TOO_BIG);

	size_t len = 12345;
	memset(big, 'x', sizeof big - 1);
	big[sizeof big - 1] = '\0';
	struct tn_message s = { .type = "a", .body = json_pack("{s:s}", "t", big) };
	CU_ASSERT_EQUAL(tn_message_encode(&s, out, sizeof out, &len), TN_TOO_BIG);
	tn_message_clear(&s);
	s = (struct tn_message){ .type = "probe" };
	CU_ASSERT_EQUAL(tn_message_encode(&s, out, 10, &len), TN_TOO_BIG);
	CU_ASSERT_EQUAL(len, 12345);
	s = (struct tn_message){ .type = "" };
	CU_ASSERT_EQUAL(tn_message_encode(&s, out, sizeof out, &len), TN_INVALID);
	s = (struct tn_message){ .type = "a", .body = json_array() };
	CU_ASSERT_EQUAL(tn_message_encode(&s, out, sizeof out, &len), TN_INVALID);
	tn_message_clear(&s);
}

static void a_cut_detail_stays_utf8(void)
{
	struct tn_message m;
	char text[1024], err[TN_ERR_TEXT], out[1024];
	size_t len;
	for (int pad = 0; pad < 4; pad++) {
		snprintf(text, sizeof text, "{\"v\":1,\"type\":\"a\",\"id\":1,\"reply\":true,\"status\":\"ok\","
		         "\"detail\":\"%.*s", pad, "xxxx");
		for (int i = 0; i < 80; i++)
			strcat(text, "\xf0\x9f\x98\x80");
		strcat(text, "\"}");
		CU_ASSERT_EQUAL_FATAL(decode(text, &m, err), TN_OK);
		CU_ASSERT(strlen(m.detail) < TN_MESSAGE_DETAIL && strlen(m.detail) >= TN_MESSAGE_DETAIL - 4);
		CU_ASSERT_EQUAL(strlen(m.detail) % 4, (size_t)pad);
		CU_ASSERT_EQUAL(tn_message_encode(&m, out, sizeof out, &len), TN_OK);
	}
}

static void strict_fields(void)
{
	json_t *b = json_pack("{s:i, s:s, s:b, s:s, s:s, s:o, s:n, s:[i,i,i], s:s}", "n", 5,
	                      "big", "18446744073709551615", "yes", 1,
	                      "name", "kv.0", "hex", "000102030405060708090a0b0c0d0e0f", "obj", json_object(), "null",
	                      "arr", 1, 2, 3, "op", "write");
	static const char *const ops[] = { "read", "write" };
	struct tn_json_in in;
	uint64_t n = 0;
	uint32_t n32 = 0;
	bool yes = false;
	char name[TN_NAME_MAX], copy[5];
	const char *s = NULL;
	struct tn_id128 id;
	const json_t *v = NULL;
	unsigned op = 9;
	tn_json_in_init(&in, b);
	CU_ASSERT_EQUAL(tn_json_u64(&in, "n", 0, 10, &n), TN_OK);
	CU_ASSERT_EQUAL(n, 5);
	CU_ASSERT_EQUAL(tn_json_u32(&in, "n", 5, 5, &n32), TN_OK);
	CU_ASSERT_EQUAL(tn_json_u64(&in, "big", 0, UINT64_MAX, &n), TN_OK);
	CU_ASSERT_EQUAL(n, UINT64_MAX);
	CU_ASSERT_EQUAL(tn_json_bool(&in, "yes", &yes), TN_OK);
	CU_ASSERT_TRUE(yes);
	CU_ASSERT_EQUAL(tn_json_name(&in, "name", name), TN_OK);
	CU_ASSERT_STRING_EQUAL(name, "kv.0");
	CU_ASSERT_EQUAL(tn_json_str(&in, "name", 4, &s), TN_OK);
	CU_ASSERT_EQUAL(tn_json_str_copy(&in, "name", copy, sizeof copy), TN_OK);
	CU_ASSERT_STRING_EQUAL(copy, "kv.0");
	CU_ASSERT_EQUAL(tn_json_hex128(&in, "hex", &id), TN_OK);
	CU_ASSERT_EQUAL(id.b[15], 15);
	CU_ASSERT_EQUAL(tn_json_object(&in, "obj", &v), TN_OK);
	CU_ASSERT_EQUAL(tn_json_array(&in, "arr", 3, &v), TN_OK);
	CU_ASSERT_EQUAL(json_array_size(v), 3);
	CU_ASSERT_EQUAL(tn_json_choice(&in, "op", ops, 2, &op), TN_OK);
	CU_ASSERT_EQUAL(op, 1);
	CU_ASSERT_FALSE(tn_json_has(&in, "null"));
	CU_ASSERT_FALSE(tn_json_has(&in, "none"));
	CU_ASSERT_EQUAL(in.status, TN_OK);
	json_decref(b);
}

#define REFUSED(call, why) do { \
		struct tn_json_in in; \
		tn_json_in_init(&in, b); \
		CU_ASSERT_EQUAL(call, TN_INVALID); \
		CU_ASSERT_PTR_NOT_NULL(strstr(in.err, why)); \
	} while (0)

static void refused_fields(void)
{
	json_t *b = json_pack("{s:i, s:s, s:s, s:[i,i]}", "neg", -1, "s", "abcdef", "lead", "007", "arr", 1, 2);
	static const char *const ops[] = { "read", "write" };
	uint64_t n = 99;
	const char *s;
	char name[TN_NAME_MAX], copy[6];
	bool flag;
	struct tn_id128 id;
	struct tn_peer_id peer;
	const json_t *v;
	unsigned op;
	REFUSED(tn_json_u64(&in, "neg", 0, 9, &n), "\"neg\" must be an unsigned integer");
	REFUSED(tn_json_u64(&in, "lead", 0, 9, &n), "unsigned integer");
	REFUSED(tn_json_u64(&in, "nope", 0, 9, &n), "\"nope\" is missing");
	REFUSED(tn_json_bool(&in, "s", &flag), "true or false");
	REFUSED(tn_json_str(&in, "s", 5, &s), "at most 5 bytes");
	REFUSED(tn_json_str_copy(&in, "s", copy, sizeof copy), "at most 5 bytes");
	REFUSED(tn_json_str(&in, "neg", 5, &s), "must be a string");
	REFUSED(tn_json_name(&in, "arr", name), "must be a string");
	REFUSED(tn_json_hex128(&in, "s", &id), "32 lower-case");
	REFUSED(tn_json_peer_id(&in, "s", &peer), "64 lower-case");
	REFUSED(tn_json_choice(&in, "s", ops, 2, &op), "one of: read write");
	REFUSED(tn_json_object(&in, "arr", &v), "must be an object");
	REFUSED(tn_json_array(&in, "arr", 1, &v), "at most 1 elements");
	REFUSED(tn_json_array(&in, "s", 1, &v), "must be an array");
	CU_ASSERT_EQUAL(n, 99);

	struct tn_json_in in;
	tn_json_in_init(&in, b);
	(void)tn_json_u64(&in, "first", 0, 9, &n);
	CU_ASSERT_EQUAL(tn_json_str(&in, "s", 10, &s), TN_INVALID);
	(void)tn_json_refuse(&in, "third", "is odd");
	CU_ASSERT_PTR_NOT_NULL(strstr(in.err, "first"));
	tn_json_in_init(&in, NULL);
	CU_ASSERT_EQUAL(tn_json_str(&in, "s", 10, &s), TN_INVALID);
	CU_ASSERT_PTR_NOT_NULL(strstr(in.err, "\"s\" is missing"));
	json_decref(b);
}

static void writers(void)
{
	json_t *b = json_object();
	struct tn_id128 id, id2;
	struct tn_peer_id peer, peer2;
	uint64_t n;
	bool flag;
	const char *s;
	memset(&id, 0x12, sizeof id);
	memset(&peer, 0x34, sizeof peer);
	CU_ASSERT_EQUAL(tn_json_put_u64(b, "small", INT64_MAX), TN_OK);
	CU_ASSERT_EQUAL(tn_json_put_u64(b, "large", UINT64_MAX - 1), TN_OK);
	CU_ASSERT_EQUAL(tn_json_put_bool(b, "flag", true), TN_OK);
	CU_ASSERT_EQUAL(tn_json_put_str(b, "text", "x"), TN_OK);
	CU_ASSERT_EQUAL(tn_json_put_hex128(b, "id", &id), TN_OK);
	CU_ASSERT_EQUAL(tn_json_put_peer_id(b, "peer", &peer), TN_OK);
	CU_ASSERT_EQUAL(tn_json_put_str(b, "bad", "\xff\xfe"), TN_NO_MEMORY);
	struct tn_json_in in;
	tn_json_in_init(&in, b);
	CU_ASSERT(tn_json_u64(&in, "small", 0, UINT64_MAX, &n) == TN_OK && n == INT64_MAX);
	CU_ASSERT(tn_json_u64(&in, "large", 0, UINT64_MAX, &n) == TN_OK && n == UINT64_MAX - 1);
	CU_ASSERT(tn_json_bool(&in, "flag", &flag) == TN_OK && flag);
	CU_ASSERT(tn_json_str(&in, "text", 1, &s) == TN_OK);
	CU_ASSERT(tn_json_hex128(&in, "id", &id2) == TN_OK && tn_id128_eq(&id, &id2));
	CU_ASSERT(tn_json_peer_id(&in, "peer", &peer2) == TN_OK && tn_peer_id_eq(&peer, &peer2));
	CU_ASSERT_FALSE(tn_json_has(&in, "bad"));
	json_decref(b);
}

#if defined(__SANITIZE_ADDRESS__)
/* Its allocator ends the process instead of saying that there is no memory, unless it is told otherwise. */
__attribute__((visibility("default"))) const char *__asan_default_options(void);
const char *__asan_default_options(void) { return "allocator_may_return_null=1"; }
#endif

/* Memory was short while a body was built: it may lack a part, and would be as well-formed as a whole one. */
static void what_lacks_a_part_is_not_sent(void)
{
	struct tn_message m = { .type = "attach", .id = 1, .body = json_object() };
	json_malloc_t alloc;
	json_free_t release;
	char buf[256];
	size_t len;
	tn_message_watch_memory();
	json_get_alloc_funcs(&alloc, &release);
	CU_ASSERT_EQUAL(tn_message_encode(&m, buf, sizeof buf, &len), TN_OK);
	CU_ASSERT_PTR_NULL(alloc(PTRDIFF_MAX));
	CU_ASSERT_EQUAL(tn_message_encode(&m, buf, sizeof buf, &len), TN_NO_MEMORY);
	CU_ASSERT_EQUAL(tn_message_encode(&m, buf, sizeof buf, &len), TN_OK);
	tn_message_clear(&m);
}

TN_TEST_MAIN("common/message", { "a request round-trips", request_round_trip },
	{ "a reply round-trips", reply_round_trip },
	{ "unknown fields are ignored", unknown_fields_are_ignored }, { "refusals name the field", refusals },
	{ "an error reply stays possible", an_error_reply_stays_possible },
	{ "secrets stay out of errors", secrets_stay_out_of_errors }, { "sizes are bounded", sizes_are_bounded },
	{ "a cut detail stays UTF-8", a_cut_detail_stays_utf8 }, { "strict fields", strict_fields },
	{ "refused fields", refused_fields }, { "writers", writers },
	{ "what lacks a part is not sent", what_lacks_a_part_is_not_sent })
