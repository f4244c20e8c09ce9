/* SPDX-License-Identifier: Apache-2.0
 * One run of tentctl: finds the verb, runs it, and says what went wrong in the two forms (text, JSON). Also the
 * configuration that the verbs share. */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/message.h"
#include "common/nearest.h"
#include "common/utf8.h"
#include "controlplane/tentctl/tentctl.h"

static void print_error_json(const char *error, const char *detail)
{
	json_t *j = json_object();
	tn_json_put_str(j, "error", error);
	tn_json_put_str(j, "detail", detail);
	tctl_print_json(j);
	json_decref(j);
}

int tctl_fail(const struct tctl *t, tn_status status, const char *fmt, ...)
{
	char text[1024];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	tn_utf8_line(text, sizeof text, text); /* names of files and peers may be in it */
	if (t->json)
		print_error_json(tn_status_name(status), text);
	fprintf(stderr, "tentctl: %s\n", text);
	return TCTL_FAILED;
}

/* -j counts also when it stands behind the mistake. */
static bool json_asked(const struct tctl *t)
{
	for (char *const *a = t->argv; a != NULL && *a != NULL && strcmp(*a, "--") != 0; a++)
		if (strcmp(*a, "-j") == 0 || strcmp(*a, "--json") == 0)
			return true;
	return t->json;
}

int tctl_bad_usage(struct tctl *t, const char *fmt, ...)
{
	char text[512];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	tn_utf8_line(text, sizeof text, text); /* arguments may be in it */
	if (json_asked(t))
		print_error_json("usage", text);
	fprintf(stderr, "tentctl: %s\n", text);
	if (t->verb != NULL)
		tctl_verb_usage(t->verb, stderr);
	else
		fputs("Try tentctl --help.\n", stderr);
	return TCTL_USAGE;
}

/* ---- configuration ---- */

static void config_errors_json(const struct tn_config_errors *errors)
{
	json_t *j = json_object(), *list = json_array();
	tn_json_put_str(j, "error", tn_status_name(TN_CONFIG));
	tn_json_put_str(j, "detail", "the configuration is wrong");
	for (unsigned i = 0; i < errors->cnt; i++) {
		const struct tn_config_error *e = &errors->item[i];
		json_t *item = json_object();
		tn_json_put_str(item, "source", e->source);
		if (e->line > 0)
			tn_json_put_u64(item, "line", e->line);
		tn_json_put_str(item, "key", e->key);
		tn_json_put_str(item, "text", e->text);
		json_array_append_new(list, item);
	}
	json_object_set_new(j, "errors", list);
	tn_json_put_u64(j, "errors_not_shown", errors->dropped_cnt);
	tctl_print_json(j);
	json_decref(j);
}

tn_status tctl_config_try(struct tctl *t, const char *path, struct tn_config **out, struct tn_config_errors *errors)
{
	char dir_set[4200];
	struct tctl_texts sets = t->sets;
	if (t->runtime_dir != NULL) {
		if (sets.cnt == TCTL_TEXTS_MAX ||
		    (size_t)snprintf(dir_set, sizeof dir_set, "runtime_dir=%s", t->runtime_dir) >= sizeof dir_set)
			return TN_TOO_BIG;
		sets.item[sets.cnt++] = dir_set;
	}
	struct tn_config_opts opts = { .size = sizeof opts, .path = path != NULL ? path : t->config_path,
				       .sets = sets.cnt > 0 ? sets.item : NULL, .set_cnt = sets.cnt,
				       .without_peers = t->without_peers };
	return tn_config_load(&opts, out, errors);
}

struct tn_config *tctl_config_load(struct tctl *t, const char *path)
{
	struct tn_config *config = NULL;
	struct tn_config_errors *errors = calloc(1, sizeof *errors);
	tn_status s = errors != NULL ? tctl_config_try(t, path, &config, errors) : TN_NO_MEMORY;
	if (s == TN_CONFIG) {
		if (t->json)
			config_errors_json(errors);
		tn_config_errors_print(errors, stderr);
	} else if (s == TN_TOO_BIG) {
		tctl_fail(t, s, "--runtime-dir: too long, or too many --set");
	} else if (s != TN_OK) {
		tctl_fail(t, s, "cannot read the configuration: %s", tn_status_meaning(s));
	}
	free(errors);
	return config;
}

const struct tn_config *tctl_config(struct tctl *t)
{
	if (t->config == NULL)
		t->config = tctl_config_load(t, NULL);
	return t->config;
}

const char *tctl_runtime_dir(struct tctl *t)
{
	const struct tn_config *c = tctl_config(t);
	return c != NULL ? tn_config_str(c, TN_CFG_RUNTIME_DIR) : NULL;
}

/* ---- run ---- */

static const struct tctl_verb *find_verb(const char *noun, const char *verb)
{
	for (const struct tctl_verb *v = tctl_verbs; v->noun != NULL; v++)
		if (strcmp(v->noun, noun) == 0 && (v->verb == NULL || (verb != NULL && strcmp(v->verb, verb) == 0)))
			return v;
	return NULL;
}

/* What the bash completion asks: "segment list<TAB>arguments". */
static int print_verbs(void)
{
	for (const struct tctl_verb *v = tctl_verbs; v->noun != NULL; v++)
		printf("%s%s%s\t%s\n", v->noun, v->verb != NULL ? " " : "", v->verb != NULL ? v->verb : "", v->args);
	return TCTL_OK;
}

/* " (did you mean ...?)": the command nearest to a misspelt noun, or the verb of `noun` nearest to a misspelt one; ""
 * when none is near. */
static const char *meant(const char *noun, const char *word, char *out, size_t out_bytes)
{
	char near[32] = "";
	unsigned limit = tn_edit_limit(strlen(word)) + 1, best = limit;
	for (const struct tctl_verb *v = tctl_verbs; v->noun != NULL; v++)
		if (noun == NULL)
			tn_keep_nearest(word, v->noun, &best, near, sizeof near);
		else if (strcmp(v->noun, noun) == 0)
			tn_keep_nearest(word, v->verb, &best, near, sizeof near);
	/* "list" and "show" belong to a noun: who leaves that out gets it */
	for (const struct tctl_verb *v = tctl_verbs; v->noun != NULL && noun == NULL && best > 0; v++)
		if (v->verb != NULL && strcmp(v->verb, word) == 0) {
			best = 0;
			snprintf(near, sizeof near, "%s %s", v->noun, v->verb);
		}
	out[0] = '\0';
	if (best < limit)
		snprintf(out, out_bytes, " (did you mean %s%s%s?)", noun != NULL ? noun : "", noun != NULL ? " " : "", near);
	return out;
}

/* A noun without a known verb: what it knows. */
static int unknown(struct tctl *t, int argc, char **argv, int at)
{
	char knows[256] = "", hint[96];
	const char *word = at + 1 < argc ? argv[at + 1] : NULL;
	bool help = word != NULL && (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0);
	for (const struct tctl_verb *v = tctl_verbs; v->noun != NULL; v++) {
		if (strcmp(v->noun, argv[at]) != 0)
			continue;
		if (help)
			tctl_verb_usage(v, stdout);
		snprintf(knows + strlen(knows), sizeof knows - strlen(knows), " %s", v->verb);
	}
	if (knows[0] == '\0')
		return tctl_bad_usage(t, "no command \"%s\"%s", argv[at], meant(NULL, argv[at], hint, sizeof hint));
	if (help)
		return TCTL_OK;
	if (word == NULL || word[0] == '-')
		return tctl_bad_usage(t, "%s needs one of:%s", argv[at], knows);
	return tctl_bad_usage(t, "%s has no \"%s\", only:%s%s", argv[at], word, knows,
			      meant(argv[at], word, hint, sizeof hint));
}

static int dispatch(struct tctl *t, int argc, char **argv)
{
	int at;
	if (!tctl_global_args(t, argc, argv, &at))
		return t->exit_code;
	if (at >= argc) {
		tctl_help(stderr);
		return TCTL_USAGE;
	}
	if (strcmp(argv[at], "help") == 0) {
		tctl_help(stdout);
		return TCTL_OK;
	}
	if (strcmp(argv[at], "list-verbs") == 0)
		return print_verbs();
	t->verb = find_verb(argv[at], at + 1 < argc ? argv[at + 1] : NULL);
	if (t->verb == NULL)
		return unknown(t, argc, argv, at);
	at += t->verb->verb != NULL;
	return t->verb->run(t, argc - at, argv + at);
}

int tctl_run(int argc, char **argv)
{
	struct tctl t = { .timeout_ns = 5 * TN_NS_PER_S };
	/* the words move while options are read: keep them as they came */
	char **as_started = calloc((size_t)argc + 1, sizeof *as_started);
	if (as_started != NULL)
		memcpy(as_started, argv, (size_t)argc * sizeof *argv);
	t.argv = as_started;
	int rc = dispatch(&t, argc, argv);
	if (!tctl_flush(&t) && rc == TCTL_OK)
		rc = TCTL_FAILED;
	tn_config_free(t.config);
	free(as_started);
	return rc;
}
