/* SPDX-License-Identifier: Apache-2.0
 * Arguments: wrong usage is exit code 2 with a text, and an object with -j; nothing else is done. */
#include "tests/unit/tentctl/run.h"

#include <sys/socket.h>
#include <sys/un.h>

static void usage_errors(void)
{
	static const struct { const char *words[6]; const char *text; } cases[] = {
		{ { "nosuch" }, "no command \"nosuch\"" },
		{ { "statsu" }, "no command \"statsu\" (did you mean status?)" },
		{ { "publish", "x" }, "no command \"publish\" (did you mean segment publish?)" },
		{ { "segment", "witdraw", "x" }, "publish withdraw (did you mean segment withdraw?)" },
		{ { "peer", "prob", "x" }, "only: list probe (did you mean peer probe?)" },
		{ { "peer", "xyzzy" }, "only: list probe\n" },
		{ { "xyzzy" }, "no command \"xyzzy\"\n" },
		{ { "put", "--stal=1s", "f", "x" }, "unknown option --stal (did you mean --stall?)" },
		{ { "status", "--jsn" }, "unknown option --jsn (did you mean --json?)" },
		{ { "segment" }, "needs one of: list show publish withdraw" },
		{ { "segment", "lst" }, "has no \"lst\"" },
		{ { "status", "now" }, "unexpected argument \"now\"" },
		{ { "status", "-q" }, "unknown option -q" },
		{ { "status", "--quick" }, "unknown option --quick" },
		{ { "--json=yes", "status" }, "--json takes no value" },
		{ { "-c" }, "-c needs a value" },
		{ { "--config=", "status" }, "the value is empty" },
		{ { "--timeout", "soon", "status" }, "not a duration" },
		{ { "--timeout", "0", "status" }, "not a duration" },
		{ { "segment", "show" }, "an argument is missing" },
		{ { "segment", "show", "a/b" }, "only segments of this host" },
		{ { "segment", "show", ".hidden" }, "no segment name" },
		{ { "segment", "list", "--count", "0" }, "--count from 1" },
		{ { "segment", "list", "--first", "-1" }, "not a number" },
		{ { "segment", "list", "--first", "99999999999" }, "--first counts from 0" },
		{ { "segment", "publish", "x" }, "say what to publish" },
		{ { "segment", "publish", "x", "--size", "many" }, "not a size" },
		{ { "segment", "publish", "x", "--size=18446744073709551615" }, "not a size" },
		{ { "segment", "publish", "x", "--size" }, "--size needs a value" },
		{ { "segment", "publish", "x", "--file=f", "--output=o" }, "it needs --writable" },
		{ { "segment", "publish", "x", "--size=1", "--peer=a/b" }, "no peer name" },
		{ { "put", "file" }, "an argument is missing behind \"file\"" },
		{ { "put", "file", "a/b/c" }, "names no segment" },
		{ { "put", "file", "/b" }, "before the slash is no name" },
		{ { "put", "", "x" }, "argument 1 is empty" },
		{ { "get", "x", "" }, "argument 2 is empty" },
		{ { "get", "--transport", "ib", "x", "f" }, "--transport ib: not one of" },
		{ { "get", "--stall", "0s", "x", "f" }, "not a duration" },
		{ { "peer", "probe", "a b" }, "no peer name" },
		{ { "keygen", "a", "b" }, "unexpected argument \"b\"" },
	};
	run_dir();
	for (size_t i = 0; i < TN_ARRAY_LEN(cases); i++) {
		const char *const *w = cases[i].words;
		CU_ASSERT_EQUAL(run(w[0], w[1], w[2], w[3], w[4], NULL), TCTL_USAGE);
		bool said = strstr(ran.err, cases[i].text) != NULL;
		CU_ASSERT_TRUE(said);
		if (!said)
			fprintf(stderr, "case %zu wanted \"%s\", got %s", i, cases[i].text, ran.err);
		CU_ASSERT_STRING_EQUAL(ran.out, "");
	}
}

static void json_errors(void)
{
	CU_ASSERT_EQUAL(run("segment", "show", "--bad", "-j", NULL), TCTL_USAGE); /* also behind the mistake */
	CU_ASSERT_TRUE(run_json_is("error", "usage"));
	CU_ASSERT_TRUE(run_json_is("detail", "unknown option --bad"));
	CU_ASSERT_EQUAL(run("status", "-j", NULL), TCTL_FAILED);
	CU_ASSERT_TRUE(run_json_is("error", "controlplane_down"));
	CU_ASSERT_EQUAL(run("-j", "put", "/nosuch", "x", NULL), TCTL_FAILED);
	CU_ASSERT_TRUE(run_json_is("error", "not_found"));
	CU_ASSERT_EQUAL(run("-j", "put", "--", "-j", "x", NULL), TCTL_FAILED); /* a file of that name */
	CU_ASSERT_PTR_NOT_NULL(strstr(ran.err, "-j: cannot be read"));
}

static void options_stand_anywhere(void)
{
	CU_ASSERT_EQUAL(run("version", "--json", NULL), 0);
	json_t *j = run_json();
	CU_ASSERT_TRUE(json_is_object(json_object_get(j, "tentctl")));
	CU_ASSERT_TRUE(json_is_null(json_object_get(j, "control_plane")));
	json_decref(j);
	CU_ASSERT_EQUAL(run("-jr/nosuch", "version", NULL), 0);
	CU_ASSERT_PTR_NOT_NULL(strstr(ran.out, "\"control_plane\": null"));
	CU_ASSERT_EQUAL(run("status", "--runtime-dir=/nosuch", "--timeout=1s", NULL), TCTL_FAILED);
	CU_ASSERT_PTR_NOT_NULL(strstr(ran.err, "no control plane serves /nosuch"));
}

static void help(void)
{
	CU_ASSERT_EQUAL(run("--help", NULL), 0);
	for (const struct tctl_verb *v = tctl_verbs; v->noun != NULL; v++)
		CU_ASSERT_PTR_NOT_NULL(strstr(ran.out, v->help));
	for (const struct tctl_verb *v = tctl_verbs; v->noun != NULL; v++) {
		char head[64];
		CU_ASSERT_EQUAL(v->verb != NULL ? run(v->noun, v->verb, "--help", NULL) : run(v->noun, "--help", NULL),
				0);
		snprintf(head, sizeof head, "usage: tentctl %s%s%s", v->noun, v->verb != NULL ? " " : "",
			 v->verb != NULL ? v->verb : "");
		CU_ASSERT_EQUAL(strncmp(ran.out, head, strlen(head)), 0);
	}
	CU_ASSERT_EQUAL(run("segment", "-h", NULL), 0);
	CU_ASSERT_PTR_NOT_NULL(strstr(ran.out, "segment withdraw NAME"));
	CU_ASSERT_EQUAL(run(NULL, NULL), TCTL_USAGE);
	CU_ASSERT_EQUAL(run("--version", NULL), 0);
	CU_ASSERT_EQUAL(strncmp(ran.out, "tentctl ", 8), 0);
	CU_ASSERT_EQUAL(run("list-verbs", NULL), 0);
	CU_ASSERT_EQUAL(strncmp(ran.out, "status\t\n", 8), 0);
}

static void dead_and_silent_sockets(void)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	snprintf(a.sun_path, sizeof a.sun_path, "%s/bus.ipc", run_dir());
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	CU_ASSERT_EQUAL_FATAL(bind(fd, (struct sockaddr *)&a, sizeof a), 0);
	CU_ASSERT_EQUAL(run("status", NULL), TCTL_FAILED); /* nobody listens: known at once */
	CU_ASSERT_PTR_NOT_NULL(strstr(ran.err, "Connection refused"));
	CU_ASSERT_EQUAL_FATAL(listen(fd, 8), 0);
	CU_ASSERT_EQUAL(run("-j", "--timeout", "200ms", "status", NULL), TCTL_FAILED);
	CU_ASSERT_TRUE(run_json_is("error", "timeout"));
	CU_ASSERT_EQUAL(run("--timeout", "200ms", "version", NULL), 0);
	CU_ASSERT_PTR_NOT_NULL(strstr(ran.out, "not asked: the control plane did not answer"));
	close(fd);
	run_dir_remove();
}

TN_TEST_MAIN("tentctl usage",
	{ "wrong usage is named and exits with 2", usage_errors },
	{ "errors are objects with -j", json_errors },
	{ "global options stand before or behind the verb", options_stand_anywhere },
	{ "help of everything", help },
	{ "a socket nobody serves, and one that never answers", dead_and_silent_sockets })
