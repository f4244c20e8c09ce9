/* SPDX-License-Identifier: Apache-2.0
 * Entry of tentctl: global options, then the verb from the table. */
#include "controlplane/tentctl/tentctl.h"

#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/message.h"
#include "common/units.h"

const struct tctl_verb tctl_verbs[] = {
	{ "status", NULL, "", "the pair of daemons on this host at a glance", tctl_cmd_status },
	{ "segment", "list", "[--first N] [--count N]", "segments published on this host", tctl_cmd_segment_list },
	{ "segment", "show", "NAME", "one segment in full", tctl_cmd_segment_show },
	{ "segment", "publish", "NAME (--file FILE | --size BYTES) [--writable] [--output FILE] [--peer NAME]...",
	  "publish a file, or room for one; stays until SIGTERM", tctl_cmd_segment_publish },
	{ "segment", "withdraw", "NAME", "take a segment of this host away from its readers", tctl_cmd_segment_withdraw },
	{ "put", NULL, "[--transport KIND] FILE [PEER/]SEGMENT", "write a file into a segment and verify it there", tctl_cmd_put },
	{ "get", NULL, "[--transport KIND] [PEER/]SEGMENT FILE", "read a segment into a file and verify it", tctl_cmd_get },
	{ "peer", "list", "", "other hosts: reachable, ticket, lanes", tctl_cmd_peer_list },
	{ "peer", "probe", "PEER", "ask a peer's control plane for a sign of life", tctl_cmd_peer_probe },
	{ "config", "check", "[FILE]", "read a configuration and say what is wrong with it", tctl_cmd_config_check },
	{ "config", "dump", "[--effective] [--origin]", "the configuration as it counts", tctl_cmd_config_dump },
	{ "keygen", NULL, "[FILE]", "make the key of this host; prints the public half", tctl_cmd_keygen },
	{ "verify", NULL, "", "check that the counters of this host add up", tctl_cmd_verify },
	{ "version", NULL, "", "versions of tentctl and of the control plane", tctl_cmd_version },
	{ NULL, NULL, NULL, NULL, NULL },
};

static void help(FILE *to)
{
	fputs("usage: tentctl [-j] [-c FILE] [-r DIR] [-s KEY=VALUE]... [--timeout TIME] COMMAND [ARGUMENT]...\n\n", to);
	for (const struct tctl_verb *v = tctl_verbs; v->noun != NULL; v++)
		fprintf(to, "  %s%s%-*s %s\n", v->noun, v->verb != NULL ? " " : "",
			(int)(18 - strlen(v->noun) - (v->verb != NULL)), v->verb != NULL ? v->verb : "", v->help);
	fputs("\n  -j, --json              JSON instead of tables\n"
	      "  -c, --config FILE       configuration (default: $TENT_CONFIG, else " TN_CONFIG_DEFAULT_PATH " if it exists)\n"
	      "  -r, --runtime-dir DIR   which pair to ask, when there are several on this host\n"
	      "  -s, --set KEY=VALUE     override one configuration key\n"
	      "      --timeout TIME      for one question, e.g. 500ms (default 5s)\n"
	      "tentctl COMMAND --help shows its arguments. Exit code: 0 done, 1 failed, 2 wrong usage.\n",
	      to);
}

int tctl_usage(const struct tctl_verb *v)
{
	fprintf(stderr, "usage: tentctl %s%s%s %s\n%s\n", v->noun, v->verb != NULL ? " " : "", v->verb != NULL ? v->verb : "",
		v->args, v->help);
	return TCTL_USAGE;
}

const struct tctl_verb *tctl_find(const char *noun, const char *verb)
{
	for (const struct tctl_verb *v = tctl_verbs; v->noun != NULL; v++)
		if (strcmp(v->noun, noun) == 0 && (v->verb == NULL || (verb != NULL && strcmp(v->verb, verb) == 0)))
			return v;
	return NULL;
}

int tctl_fail(const struct tctl *t, tn_status status, const char *fmt, ...)
{
	char text[640];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	if (t->json) {
		json_t *j = json_object();
		tn_json_put_str(j, "error", tn_status_name(status));
		tn_json_put_str(j, "detail", text);
		tctl_print_json(j);
		json_decref(j);
	}
	fprintf(stderr, "tentctl: %s\n", text);
	return TCTL_FAILED;
}

const struct tn_config *tctl_config(struct tctl *t)
{
	static char dir_set[300];
	if (t->config != NULL)
		return t->config;
	if (t->runtime_dir != NULL && t->set_cnt < TN_ARRAY_LEN(t->sets)) {
		snprintf(dir_set, sizeof dir_set, "runtime_dir=%s", t->runtime_dir);
		t->sets[t->set_cnt++] = dir_set;
	}
	struct tn_config_opts opts = { .size = sizeof opts, .path = t->config_path, .sets = t->set_cnt > 0 ? t->sets : NULL,
				       .set_cnt = t->set_cnt };
	struct tn_config_errors *errors = calloc(1, sizeof *errors);
	if (errors != NULL && tn_config_load(&opts, &t->config, errors) != TN_OK)
		tn_config_errors_print(errors, stderr);
	free(errors);
	return t->config;
}

const char *tctl_runtime_dir(struct tctl *t)
{
	const struct tn_config *c = tctl_config(t);
	return c != NULL ? tn_config_str(c, TN_CFG_RUNTIME_DIR) : NULL;
}

/* Options before the command. -1 to go on, else the exit code. */
static int global_options(struct tctl *t, int argc, char **argv)
{
	enum { OPT_TIMEOUT = 256, OPT_VERSION };
	static const struct option options[] = {
		{ "json", no_argument, NULL, 'j' }, { "config", required_argument, NULL, 'c' },
		{ "runtime-dir", required_argument, NULL, 'r' }, { "set", required_argument, NULL, 's' },
		{ "timeout", required_argument, NULL, OPT_TIMEOUT }, { "version", no_argument, NULL, OPT_VERSION },
		{ "help", no_argument, NULL, 'h' }, { NULL, 0, NULL, 0 },
	};
	for (int o; (o = getopt_long(argc, argv, "+jc:r:s:h", options, NULL)) != -1;) {
		switch (o) {
		case 'j': t->json = true; break;
		case 'c': t->config_path = optarg; break;
		case 'r': t->runtime_dir = optarg; break;
		case 's':
			if (t->set_cnt + 1 >= TN_ARRAY_LEN(t->sets)) {
				fputs("tentctl: too many --set\n", stderr);
				return TCTL_USAGE;
			}
			t->sets[t->set_cnt++] = optarg;
			break;
		case OPT_TIMEOUT:
			if (tn_duration_parse(optarg, &t->timeout_ns) != TN_OK || t->timeout_ns == 0) {
				fprintf(stderr, "tentctl: --timeout %s: not a duration such as 500ms or 5s\n", optarg);
				return TCTL_USAGE;
			}
			break;
		case OPT_VERSION: return tctl_cmd_version(t, 0, NULL);
		case 'h': help(stdout); return TCTL_OK;
		default: fputs("Try tentctl --help.\n", stderr); return TCTL_USAGE;
		}
	}
	return -1;
}

static int unknown(int argc, char **argv, int at)
{
	bool noun_known = false;
	for (const struct tctl_verb *v = tctl_verbs; v->noun != NULL; v++)
		noun_known |= strcmp(v->noun, argv[at]) == 0;
	if (!noun_known) {
		fprintf(stderr, "tentctl: no command \"%s\". Try tentctl --help.\n", argv[at]);
		return TCTL_USAGE;
	}
	fprintf(stderr, "tentctl: %s %s; %s knows:", argv[at], at + 1 < argc ? argv[at + 1] : "needs a verb", argv[at]);
	for (const struct tctl_verb *v = tctl_verbs; v->noun != NULL; v++)
		if (strcmp(v->noun, argv[at]) == 0)
			fprintf(stderr, " %s", v->verb);
	fputc('\n', stderr);
	return TCTL_USAGE;
}

int main(int argc, char **argv)
{
	struct tctl t = { .timeout_ns = 5 * TN_NS_PER_S };
	int rc = global_options(&t, argc, argv), at = optind;
	if (rc >= 0)
		return rc;
	if (at >= argc) {
		help(stderr);
		return TCTL_USAGE;
	}
	const struct tctl_verb *v = tctl_find(argv[at], at + 1 < argc ? argv[at + 1] : NULL);
	if (v == NULL)
		return unknown(argc, argv, at);
	at += v->verb != NULL;
	for (int i = at + 1; i < argc; i++) {
		if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
			(void)tctl_usage(v);
			return TCTL_OK;
		}
		if (strcmp(argv[i], "-j") == 0 || strcmp(argv[i], "--json") == 0) { /* also behind the verb */
			t.json = true;
			memmove(&argv[i], &argv[i + 1], (size_t)(argc - i) * sizeof *argv);
			argc--;
			i--;
		}
	}
	optind = 0; /* the verbs scan their own options from the start */
	rc = v->run(&t, argc - at, argv + at);
	rc = rc == TCTL_USAGE ? tctl_usage(v) : rc;
	tn_config_free(t.config);
	if (fflush(stdout) != 0 || ferror(stdout)) {
		perror("tentctl: cannot write");
		rc = TCTL_FAILED;
	}
	return rc;
}
