/* SPDX-License-Identifier: Apache-2.0
 * Every class of wrong configuration is refused with source, line, key and what would be right; all of them in one
 * run; nothing of a refused config comes out. */
#include <jansson.h>

#include "tests/unit/common/config_fixture.h"

#define KEY_A "\"public_key\": \"0000000000000000000000000000000000000001\""

static struct fixture fx;

struct wrong_file {
	const char *text;
	unsigned line;
	const char *key;
	const char *needle;
};

static void check_files(const struct wrong_file *t, size_t cnt)
{
	for (size_t i = 0; i < cnt; i++) {
		fx_open(&fx);
		fx_write(&fx, "tent.json", t[i].text);
		CU_ASSERT_EQUAL(fx_load(&fx), TN_CONFIG);
		CU_ASSERT_PTR_NULL(fx.cfg);
		CU_ASSERT_TRUE(fx_has_error(&fx, "/tent.json", t[i].line, t[i].key, t[i].needle));
		CU_ASSERT_EQUAL(fx.errors.cnt, 1); /* one mistake, one error */
		fx_close(&fx);
	}
}

static void unknown_keys(void)
{
	static const struct wrong_file t[] = {
		{ "{\n\"poll\": {\n \"spin_uss\": 1 } }", 3, "poll/spin_uss", "did you mean poll/spin_us?" },
		{ "{ \"spin_us\": 1 }", 1, "spin_us", "did you mean poll/spin_us?" },
		{ "{\n\n\"pol\": { \"spin_us\": 1 } }", 3, "pol", "did you mean poll?" },
		{ "{ \"transports\": { \"tpc\": {} } }", 1, "transports/tpc", "did you mean transports/tcp?" },
		{ "{ \"transport\": {} }", 1, "transport", "did you mean transports?" },
		{ "{ \"zebra\": 1 }", 1, "zebra", "unknown key" },
		{ "{ \"poll/spin_us\": 1 }", 1, "poll/spin_us", "a slash is a level" },
		{ "{ \"peers\": [\n{ \"name\": \"a\", \"address\": \"tcp://192.0.2.1:1\",\n \"adress\": 1, " KEY_A
		  " } ] }",
		  3, "peers/0/adress", "did you mean address?" },
	};
	check_files(t, TN_ARRAY_LEN(t));
}

static void wrong_types(void)
{
	static const struct wrong_file t[] = {
		{ "{ \"poll\":\n 5 }", 1, "poll", "expected an object" },
		{ "{ \"poll\": { \"spin_us\":\n \"50us\" } }", 1, "poll/spin_us",
		  "expected an integer (0..1000000 microseconds), found \"50us\"" },
		{ "{ \"poll\": { \"spin_us\": 5.0 } }", 1, "poll/spin_us", "found 5.0" },
		{ "{ \"poll\": { \"spin_us\": null } }", 1, "poll/spin_us", "found null" },
		{ "{ \"poll\": { \"mode\": true } }", 1, "poll/mode", "one of busy, adaptive" },
		{ "{ \"admission\": { \"merge\": 1 } }", 1, "admission/merge", "true or false" },
		{ "{ \"admission\": { \"merge\": \"true\" } }", 1, "admission/merge", "true or false" },
		{ "{ \"host\": { \"name\": 5 } }", 1, "host/name", "expected a string" },
		{ "{ \"workers\": { \"cpus\": 1 } }", 1, "workers/cpus", "expected a list" },
		{ "{ \"workers\": { \"cpus\": [0,\n\"1\"] } }", 2, "workers/cpus/1", "expected an integer" },
		{ "{ \"peers\": {} }", 1, "peers", "expected a list of objects" },
		{ "{ \"peers\": [\n1 ] }", 2, "peers/0", "expected an object, found 1" },
		{ "{ \"log\": { \"file\": [] } }", 1, "log/file", "found a list" },
	};
	check_files(t, TN_ARRAY_LEN(t));
}

static void wrong_values(void)
{
	static const struct wrong_file t[] = {
		{ "{ \"limits\": { \"max_clients\": 0 } }", 1, "limits/max_clients",
		  "0 is out of range; allowed: 1..4096" },
		{ "{ \"limits\": { \"max_clients\": -1 } }", 1, "limits/max_clients", "-1 is out of range" },
		{ "{ \"transports\": { \"tcp\": {\n \"port\": 65536 } } }", 2, "transports/tcp/port",
		  "allowed: 0..65535" },
		{ "{ \"limits\": { \"max_request_bytes\": \"65GiB\" } }", 1, "limits/max_request_bytes",
		  "4KiB..64GiB" },
		{ "{ \"limits\": { \"max_request_bytes\": \"99999999999GiB\" } }", 1, "limits/max_request_bytes",
		  "4KiB..64GiB" },
		{ "{ \"limits\": { \"max_request_bytes\": \"4 gigs\" } }", 1, "limits/max_request_bytes",
		  "is not a size" },
		{ "{ \"poll\": { \"mode\": \"bussy\" } }", 1, "poll/mode", "did you mean busy?" },
		{ "{ \"workers\": { \"cpus\": [1, 2, 1] } }", 1, "workers/cpus/2", "stands twice" },
		{ "{ \"workers\": { \"cpus\": [1024] } }", 1, "workers/cpus/0", "0..1023" },
		{ "{ \"observability\": { \"required_transports\": [\"udp\"] } }", 1,
		  "observability/required_transports/0", "one of rdma, hp_tcp, tcp, shm" },
		{ "{ \"host\": { \"name\": \"-x\" } }", 1, "host/name", "a name has 1..63" },
		{ "{ \"host\": { \"name\": \"0123456789012345678901234567890123456789012345678901234567890123\" } }", 1,
		  "host/name", "has 64 characters" },
		{ "{ \"runtime_dir\": \"run/tent\" }", 1, "runtime_dir", "not an absolute path" },
		{ "{ \"log\": { \"file\": \"/a\\nb\" } }", 1, "log/file", "control characters" },
		{ "{ \"transports\": { \"tcp\": { \"congestion_control\": \"a b\" } } }", 1,
		  "transports/tcp/congestion_control", "only letters" },
		{ "{ \"transports\": { \"tcp\": { \"bind_address\": \"localhost\" } } }", 1,
		  "transports/tcp/bind_address", "not a numeric address" },
		{ "{ \"transports\": { \"tcp\": { \"bind_address\": \"127.0.0.1:80\" } } }", 1,
		  "transports/tcp/bind_address", "without tcp:// and port" },
		{ "{ \"transports\": { \"tcp\": { \"bind_address\": \"fe80::1\" } } }", 1,
		  "transports/tcp/bind_address", "zone" },
		{ "{ \"transports\": { \"tcp\": { \"bind_address\": \"2001:db8::1%lo\" } } }", 1,
		  "transports/tcp/bind_address", "only a link-local" },
		{ "{ \"transports\": { \"tcp\": { \"bind_address\": \"fe80::1%nosuchif0\" } } }", 1,
		  "transports/tcp/bind_address", "no network interface" },
		{ "{ \"transports\": { \"tcp\": { \"advertise_addresses\": [ \"[::1\" ] } } }", 1,
		  "transports/tcp/advertise_addresses/0", "closing ]" },
		{ "{ \"metrics\": { \"http_host\": \"::1%lo\" } }", 1, "metrics/http_host", "only a link-local" },
		{ "{ \"metrics\": { \"http_host\": \"fe80::1\" } }", 1, "metrics/http_host", "zone" },
		{ "{ \"control\": { \"bind\": \"tcp://::1:9816\" } }", 1, "control/bind", "brackets" },
		{ "{ \"control\": { \"bind\": \"tcp://[::1:9816\" } }", 1, "control/bind", "closing ]" },
		{ "{ \"control\": { \"bind\": \"tcp://[fe80::1]:9816\" } }", 1, "control/bind", "zone" },
		{ "{ \"control\": { \"bind\": \"tcp://[fe80::1%nosuchif0]:9816\" } }", 1, "control/bind",
		  "no network interface" },
		{ "{ \"control\": { \"bind\": \"tcp://192.0.2.1%lo:9816\" } }", 1, "control/bind", "link-local" },
		{ "{ \"control\": { \"bind\": \"127.0.0.1:9816\" } }", 1, "control/bind", "write tcp://" },
		{ "{ \"control\": { \"bind\": \"tcp://127.0.0.1\" } }", 1, "control/bind", "port is missing" },
		{ "{ \"control\": { \"advertise\": \"tcp://192.0.2.1:0\" } }", 1, "control/advertise", "port 0" },
		{ "{ \"control\": { \"advertise\": \"tcp://0.0.0.0:1\" } }", 1, "control/advertise", "wildcard" },
	};
	check_files(t, TN_ARRAY_LEN(t));
}

static void wrong_objects(void)
{
	static const struct wrong_file t[] = {
		{ "{ \"peers\": [\n{ \"name\": \"a\", " KEY_A " } ] }", 2, "peers/0/address", "is missing" },
		{ "{ \"peers\": [ { \"name\": \"a\", \"address\": \"tcp://192.0.2.1:1\" } ] }", 1, "peers",
		  "public_key is missing" },
		{ "{ \"peers\": [ { \"name\": \"a\", \"address\": \"tcp://192.0.2.1:1\",\n\"public_key\": \"abc\" } ] "
		  "}",
		  2, "peers/0/public_key", "not a public key" },
		{ "{ \"peers\": [ { \"name\": \"a\", \"address\": \"tcp://192.0.2.1:1\",\n\"public_key\": "
		  "\"0000000000000000000000000000000000000000\" } ] }",
		  2, "peers/0/public_key", "nobody's" },
		{ "{ \"peers\": [ { \"name\": \"a\", \"address\": \"tcp://192.0.2.1:1\", " KEY_A " },\n"
		  "{ \"name\": \"a\", \"address\": \"tcp://192.0.2.2:1\", " KEY_A " } ] }",
		  2, "peers/1", "a second entry named a" },
		{ "{ \"peers\": [ { \"name\": \"a\", \"address\": \"tcp://192.0.2.1:1\", " KEY_A " },\n"
		  "{ \"name\": \"b\", \"address\": \"tcp://192.0.2.2:1\", " KEY_A " } ] }",
		  2, "peers", "same public_key as peer a" },
		{ "{ \"policies\": [ { \"name\": \"p\", \"transports\": [] } ] }", 1, "policies/0/transports",
		  "has 0 items" },
		{ "{ \"policies\": [\n{ \"name\": \"p\", \"transports\": [\"tcp\"], \"min_bytes\": 2, \"max_bytes\": 1 "
		  "} ] }",
		  2, "policies", "can match nothing" },
	};
	check_files(t, TN_ARRAY_LEN(t));
}

static void broken_rules(void)
{
	static const struct wrong_file t[] = {
		{ "{ \"deadline\": {\n\"default_ms\": 100, \"max_ms\": 50 } }", 2, "deadline/default_ms",
		  "more than deadline/max_ms (50)" },
		{ "{ \"deadline\": {\n\"max_ms\": 50 } }", 2, "deadline/max_ms",
		  "less than deadline/default_ms (30000)" },
		{ "{ \"retry\": { \"base_delay_ms\": 2000 } }", 1, "retry/base_delay_ms", "retry/max_delay_ms" },
		{ "{ \"workers\": { \"count\": 3,\n\"cpus\": [1, 2] } }", 2, "workers/cpus",
		  "names 2 CPUs for workers/count 3" },
		{ "{ \"transports\": { \"tcp\": { \"enable\": false },\n\"shm\": { \"enable\": false } } }", 1,
		  "transports/tcp/enable", "every transport is disabled" },
		{ "{ \"transports\": { \"shm\": { \"enable\": false } },\n\"observability\": { "
		  "\"required_transports\": [\"shm\"] } }",
		  2, "observability/required_transports", "requires shm" },
		{ "{ \"control\": { \"bind\": \"tcp://0.0.0.0:9816\" } }", 0, "control/advertise", "wildcard" },
		{ "{ \"control\": { \"bind\": \"tcp://192.0.2.1:9816\",\n\"insecure\": true } }", 2, "control/insecure",
		  "loopback" },
		{ "{ \"control\": { \"insecure\": true },\n\"peers\": [ { \"name\": \"a\", \"address\": "
		  "\"tcp://192.0.2.1:1\" } ] }",
		  2, "peers", "only loopback addresses" },
	};
	static const struct wrong_file *const last = &t[6];
	fx_open(&fx); /* this one is about a default, so no file is named */
	fx_write(&fx, "tent.json", last->text);
	CU_ASSERT_EQUAL(fx_load(&fx), TN_CONFIG);
	CU_ASSERT_TRUE(fx_has_error(&fx, "default", 0, last->key, last->needle));
	fx_close(&fx);
	check_files(t, 6);
	check_files(t + 7, TN_ARRAY_LEN(t) - 7);
}

static void broken_text(void)
{
	static const struct wrong_file t[] = {
		{ "", 1, "", "not valid JSON" },
		{ "{\n\"poll\": {\n", 3, "", "not valid JSON" },
		{ "{ \"poll\": { \"spin_us\": 1 }, }", 1, "", "not valid JSON" },
		{ "{ \"poll\": { \"spin_us\": 99999999999999999999 } }", 1, "", "too big" },
		{ "[]", 1, "", "expected an object" },
		{ "{ \"poll\": { \"spin_us\": 1,\n\n \"spin_us\": 2 } }", 3, "poll/spin_us",
		  "stands twice, first on line 1" },
		{ "{ \"poll\": {},\n \"p\\u006fll\": {} }", 2, "poll", "stands twice, first on line 1" },
	};
	check_files(t, TN_ARRAY_LEN(t));
}

static void duplicates_in_many_places_are_all_reported(void)
{
	fx_open(&fx);
	fx_write(&fx, "tent.json",
		 "{ \"poll\": { \"spin_us\": 1, \"spin_us\": 2 },\n\"log\": { \"level\": \"info\" },\n"
		 "\"log\": { \"level\": \"loud\" } }");
	CU_ASSERT_EQUAL(fx_load(&fx), TN_CONFIG);
	CU_ASSERT_TRUE(fx_has_error(&fx, "/tent.json", 1, "poll/spin_us", "stands twice"));
	CU_ASSERT_TRUE(fx_has_error(&fx, "/tent.json", 3, "log", "stands twice"));
	CU_ASSERT_TRUE(fx_has_error(&fx, "/tent.json", 3, "log/level", "stands twice"));
	fx_close(&fx);
}

static void all_problems_in_one_run(void)
{
	fx_open(&fx);
	fx_write(&fx, "tent.json", "{ \"poll\": { \"mode\": 1,\n\"spin_us\": -1 } }");
	fx_write(&fx, "conf.d/1.json", "{ \"log\": { \"levle\": 1 } }");
	fx_write(&fx, "conf.d/2.json", "{");
	fx_env(&fx, "TENT_LOG_LEVEL=loud");
	fx_set(&fx, "nonsense");
	CU_ASSERT_EQUAL(fx_load(&fx), TN_CONFIG);
	CU_ASSERT_TRUE(fx_has_error(&fx, "/tent.json", 1, "poll/mode", "word"));
	CU_ASSERT_TRUE(fx_has_error(&fx, "/tent.json", 2, "poll/spin_us", "out of range"));
	CU_ASSERT_TRUE(fx_has_error(&fx, "/conf.d/1.json", 1, "log/levle", "did you mean log/level?"));
	CU_ASSERT_TRUE(fx_has_error(&fx, "/conf.d/2.json", 1, "", "not valid JSON"));
	CU_ASSERT_TRUE(fx_has_error(&fx, "TENT_LOG_LEVEL", 0, "log/level", "\"loud\" is not one of"));
	CU_ASSERT_TRUE(fx_has_error(&fx, "--set", 0, "nonsense", "write --set key=value"));
	CU_ASSERT_EQUAL(fx.errors.cnt, 6);
	fx_close(&fx);
}

static void more_than_fit_are_counted(void)
{
	char text[2000] = "{";

	for (unsigned i = 0; i < 30; i++)
		snprintf(text + strlen(text), sizeof text - strlen(text), "%s\"zebra%u\": 1", i > 0 ? ",\n" : "", i);
	strcat(text, "}");
	fx_open(&fx);
	fx_write(&fx, "tent.json", text);
	CU_ASSERT_EQUAL(fx_load(&fx), TN_CONFIG);
	CU_ASSERT_EQUAL(fx.errors.cnt, TN_CONFIG_ERRORS_MAX);
	CU_ASSERT_EQUAL(fx.errors.dropped_cnt, 30 - TN_CONFIG_ERRORS_MAX);
	fx_close(&fx);
}

static void wrong_flags(void)
{
	fx_open(&fx);
	fx_set(&fx, "poll/spin_usec=1");
	fx_set(&fx, "poll.spin_us=1");
	fx_set(&fx, "poll=1");
	fx_set(&fx, "poll/spin_us=");
	fx_set(&fx, "poll/spin_us= 5");
	fx_set(&fx, "admission/merge=yes");
	fx_set(&fx, "peers=[{]");
	fx_set(&fx, "host/name=\xff");
	CU_ASSERT_EQUAL(fx_load(&fx), TN_CONFIG);
	CU_ASSERT_TRUE(fx_has_error(&fx, "--set", 0, "poll/spin_usec", "did you mean poll/spin_us?"));
	CU_ASSERT_TRUE(fx_has_error(&fx, "--set", 0, "poll.spin_us", "did you mean poll/spin_us?"));
	CU_ASSERT_TRUE(fx_has_error(&fx, "--set", 0, "poll", "is a section"));
	CU_ASSERT_TRUE(fx_has_error(&fx, "--set", 0, "poll/spin_us", "found \"\""));
	CU_ASSERT_TRUE(fx_has_error(&fx, "--set", 0, "poll/spin_us", "found \" 5\""));
	CU_ASSERT_TRUE(fx_has_error(&fx, "--set", 0, "admission/merge", "found \"yes\""));
	CU_ASSERT_TRUE(fx_has_error(&fx, "--set", 0, "peers", "expected a list of objects"));
	CU_ASSERT_TRUE(fx_has_error(&fx, "--set", 0, "host/name", "UTF-8"));
	fx_close(&fx);
}

static void wrong_environment(void)
{
	fx_open(&fx);
	fx_env(&fx, "TENT_POLL_SPIN=1");
	fx_env(&fx, "TENT_CONFG=/x");
	fx_env(&fx, "TENT_SOMETHING_ELSE_ALTOGETHER=1");
	fx_env(&fx, "TENT_WORKERS_CPUS=0,,1");
	CU_ASSERT_EQUAL(fx_load(&fx), TN_CONFIG);
	CU_ASSERT_TRUE(fx_has_error(&fx, "TENT_POLL_SPIN", 0, "", "did you mean TENT_POLL_SPIN_US?"));
	CU_ASSERT_TRUE(fx_has_error(&fx, "TENT_CONFG", 0, "", "did you mean TENT_CONFIG?"));
	CU_ASSERT_TRUE(fx_has_error(&fx, "TENT_SOMETHING_ELSE_ALTOGETHER", 0, "", "unknown variable"));
	CU_ASSERT_TRUE(fx_has_error(&fx, "TENT_WORKERS_CPUS", 0, "workers/cpus/1", "expected an integer"));
	fx_close(&fx);
}

static void unreadable_files(void)
{
	char dir[160], link_path[160];

	fx_open(&fx);
	fx.opts.path = "/nonexistent/tent.json";
	CU_ASSERT_EQUAL(fx_load(&fx), TN_CONFIG);
	CU_ASSERT_TRUE(fx_has_error(&fx, "/nonexistent/tent.json", 0, "", "there is no such file"));
	fx.opts.path = NULL;
	fx_env(&fx, "TENT_CONFIG=/nonexistent/tent.json");
	CU_ASSERT_EQUAL(fx_load(&fx), TN_CONFIG);
	CU_ASSERT_TRUE(fx_has_error(&fx, "/nonexistent/tent.json", 0, "", "$TENT_CONFIG"));
	fx.opts.path = fx.dir;
	CU_ASSERT_EQUAL(fx_load(&fx), TN_CONFIG);
	CU_ASSERT_TRUE(fx_has_error(&fx, fx.dir, 0, "", "not a regular file"));
	fx.opts.path = "/dev/zero";
	CU_ASSERT_EQUAL(fx_load(&fx), TN_CONFIG);
	CU_ASSERT_TRUE(fx_has_error(&fx, "/dev/zero", 0, "", "not a regular file"));
	fx.opts.path = NULL;
	fx.env[0] = NULL;
	fx_write(&fx, "conf.d/ok.json", "{}");
	snprintf(link_path, sizeof link_path, "%s/conf.d/gone.json", fx.dir);
	snprintf(dir, sizeof dir, "%s/nothing", fx.dir);
	CU_ASSERT_EQUAL(symlink(dir, link_path), 0);
	CU_ASSERT_EQUAL(fx_load(&fx), TN_CONFIG);
	CU_ASSERT_TRUE(fx_has_error(&fx, "/conf.d/gone.json", 0, "", "link to nothing"));
	fx_close(&fx);
}

static void too_large_a_file(void)
{
	static char text[(1 << 20) + 100];

	memset(text, ' ', sizeof text - 1);
	text[0] = '{';
	text[sizeof text - 2] = '}';
	fx_open(&fx);
	fx_write(&fx, "tent.json", text);
	CU_ASSERT_EQUAL(fx_load(&fx), TN_CONFIG);
	CU_ASSERT_TRUE(fx_has_error(&fx, "/tent.json", 0, "", "larger than 1048576 bytes"));
	fx_close(&fx);
}

/* A secret key pasted into the wrong place must not come out of a log. */
static void a_pasted_key_is_not_repeated(void)
{
	const char *secret = "JTKVSB%%)wK0E.X)V>+}o?pNmC{O&4W4b!Ni{Lh6XYZ";

	fx_open(&fx);
	fx_write(&fx, "tent.json",
		 "{ \"peers\": [ { \"name\": \"a\", \"address\": \"tcp://192.0.2.1:1\", \"public_key\": "
		 "\"JTKVSB%%)wK0E.X)V>+}o?pNmC{O&4W4b!Ni{Lh6XYZ\" } ] }");
	CU_ASSERT_EQUAL(fx_load(&fx), TN_CONFIG);
	CU_ASSERT_EQUAL(fx.errors.cnt, 1);
	CU_ASSERT_PTR_NULL(strstr(fx.errors.item[0].text, "JTKV"));
	CU_ASSERT_PTR_NULL(strstr(fx.errors.item[0].text, secret));
	fx_close(&fx);
}

static void texts_stay_one_clean_line(void)
{
	char shown[4000] = "";
	FILE *out = fmemopen(shown, sizeof shown, "w");

	fx_open(&fx);
	fx_write(&fx, "tent.json", "{ \"a\\u001b[31m\\nb\\u00fc\": 1 }");
	fx_env(&fx, "TENT_\xff\x1b=1");
	CU_ASSERT_EQUAL(fx_load(&fx), TN_CONFIG);
	tn_config_errors_print(&fx.errors, out);
	fclose(out);
	CU_ASSERT_PTR_NOT_NULL(strstr(shown, "tent.json:1: a?[31m?b\xc3\xbc: unknown key"));
	CU_ASSERT_PTR_NOT_NULL(strstr(shown, "TENT_\?\?: unknown variable"));
	CU_ASSERT_PTR_NULL(strchr(shown, '\x1b'));
	fx_close(&fx);
}

/* ---- no memory ---- */

static unsigned allocs_left;

static void *scarce_malloc(size_t bytes)
{
	if (allocs_left == 0)
		return NULL;
	allocs_left--;
	return malloc(bytes);
}

/* Fail the n-th allocation of the JSON library, for every n: never a crash, a leak or half a config. */
static void no_memory_at_any_point(void)
{
	tn_status status = TN_NO_MEMORY;
	unsigned n;

	fx_open(&fx);
	fx_write(&fx, "tent.json",
		 "{ \"poll\": { \"spin_us\": 3 }, \"workers\": { \"count\": 1, \"cpus\": [1] },\n"
		 "\"policies\": [ { \"name\": \"p\", \"transports\": [\"tcp\"] } ],\n"
		 "\"peers\": [ { \"name\": \"a\", \"address\": \"tcp://192.0.2.1:1\", " KEY_A " } ] }");
	fx_write(&fx, "conf.d/1.json",
		 "{ \"peers\": [ { \"name\": \"b\", \"address\": \"tcp://192.0.2.1:1\", \"public_key\": "
		 "\"0000000000000000000000000000000000000002\" } ] }");
	for (n = 0; n < 20000 && status != TN_OK; n++) {
		allocs_left = n;
		json_set_alloc_funcs(scarce_malloc, free);
		status = fx_load(&fx);
		json_set_alloc_funcs(malloc, free);
		CU_ASSERT_TRUE(status == TN_OK ? fx.cfg != NULL : fx.cfg == NULL);
		CU_ASSERT_TRUE(status == TN_OK || status == TN_NO_MEMORY || (status == TN_CONFIG && fx.errors.cnt > 0));
		for (unsigned i = 0; status != TN_OK && i < fx.errors.cnt; i++) /* good text is never called bad */
			CU_ASSERT_PTR_NULL(strstr(fx.errors.item[i].text, "UTF-8"));
	}
	CU_ASSERT_EQUAL(status, TN_OK);
	CU_ASSERT_TRUE(n > 100);
	fx_close(&fx);
}

TN_TEST_MAIN("common_config_errors", { "unknown keys", unknown_keys }, { "wrong types", wrong_types },
	     { "wrong values", wrong_values }, { "wrong objects", wrong_objects },
	     { "rules over several keys", broken_rules }, { "broken text and duplicates", broken_text },
	     { "all duplicates", duplicates_in_many_places_are_all_reported },
	     { "all problems in one run", all_problems_in_one_run }, { "a bounded list", more_than_fit_are_counted },
	     { "wrong flags", wrong_flags }, { "wrong environment", wrong_environment },
	     { "unreadable files", unreadable_files }, { "too large a file", too_large_a_file },
	     { "a pasted key is not repeated", a_pasted_key_is_not_repeated },
	     { "texts stay one clean line", texts_stay_one_clean_line },
	     { "no memory at any point", no_memory_at_any_point })
