/* SPDX-License-Identifier: Apache-2.0
 * Arguments: global options, which may stand before or behind the verb, and the options of a verb. Every mistake has a
 * text that names the option, on stderr for people and in JSON with -j. */
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/nearest.h"
#include "common/units.h"
#include "controlplane/tentctl/tentctl.h"

struct scan {
	struct tctl *t;
	const struct tctl_option *own;      /* of the verb */
	const struct tctl_option *global;
	int argc;
	char **argv;
	int at;
};

void tctl_verb_usage(const struct tctl_verb *v, FILE *to)
{
	fprintf(to, "usage: tentctl %s%s%s%s%s\n", v->noun, v->verb != NULL ? " " : "", v->verb != NULL ? v->verb : "",
		v->args[0] != '\0' ? " " : "", v->args);
}

void tctl_help(FILE *to)
{
	fputs("usage: tentctl [-j] [-c FILE] [-r DIR] [-s KEY=VALUE]... [--timeout TIME] COMMAND [ARGUMENT]...\n\n",
	      to);
	for (const struct tctl_verb *v = tctl_verbs; v->noun != NULL; v++)
		fprintf(to, "  %s%s%-*s %s\n", v->noun, v->verb != NULL ? " " : "",
			(int)(18 - strlen(v->noun) - (v->verb != NULL)), v->verb != NULL ? v->verb : "", v->help);
	fputs("\n  -j, --json              JSON instead of tables\n"
	      "  -c, --config FILE       configuration (default: $TENT_CONFIG, else " TN_CONFIG_DEFAULT_PATH
	      " if it exists)\n"
	      "  -r, --runtime-dir DIR   which pair to ask, when there are several on this host\n"
	      "  -s, --set KEY=VALUE     override one configuration key\n"
	      "      --timeout TIME      for one question, e.g. 500ms (default 5s)\n"
	      "      --version           print the version and exit\n"
	      "tentctl COMMAND --help shows its arguments. Exit code: 0 done, 1 failed, 2 wrong usage.\n",
	      to);
}

static const struct tctl_option *find_long(const struct tctl_option *list, const char *name, size_t len)
{
	for (; list != NULL && list->name != NULL; list++)
		if (strlen(list->name) == len && strncmp(list->name, name, len) == 0)
			return list;
	return NULL;
}

static const struct tctl_option *find_letter(const struct tctl_option *list, char letter)
{
	for (; list != NULL && list->name != NULL; list++)
		if (list->letter == letter)
			return list;
	return NULL;
}

static bool over(struct tctl *t, int exit_code)
{
	t->exit_code = exit_code;
	return false;
}

static bool parse_count(const char *text, uint64_t *out)
{
	char *end;
	if (text[0] < '0' || text[0] > '9' || strlen(text) > 18)
		return false;
	*out = strtoull(text, &end, 10);
	return *end == '\0';
}

static bool store(struct scan *s, const struct tctl_option *o, const char *value)
{
	struct tctl *t = s->t;
	struct tctl_texts *texts = o->to;
	switch (o->kind) {
	case TCTL_FLAG:
		*(bool *)o->to = true;
		return true;
	case TCTL_TEXT:
		if (value[0] == '\0')
			return over(t, tctl_bad_usage(t, "--%s: the value is empty", o->name));
		*(const char **)o->to = value;
		return true;
	case TCTL_TEXTS:
		if (texts->cnt == TCTL_TEXTS_MAX)
			return over(t, tctl_bad_usage(t, "more than %d times --%s", TCTL_TEXTS_MAX, o->name));
		texts->item[texts->cnt++] = value;
		return true;
	case TCTL_BYTES:
		if (tn_bytes_parse(value, o->to) != TN_OK || *(uint64_t *)o->to == UINT64_MAX)
			return over(t,
				    tctl_bad_usage(t, "--%s %s: not a size such as 4096, 64KiB or 1G", o->name, value));
		return true;
	case TCTL_COUNT:
		if (!parse_count(value, o->to))
			return over(t, tctl_bad_usage(t, "--%s %s: not a number", o->name, value));
		return true;
	case TCTL_TIME:
		if (tn_duration_parse(value, o->to) != TN_OK || *(uint64_t *)o->to == 0)
			return over(t,
				    tctl_bad_usage(t, "--%s %s: not a duration such as 500ms or 5s", o->name, value));
		return true;
	}
	return false;
}

/* An unknown option, with the nearest of those that would do here. */
static bool refuse_long(struct scan *s, const char *name, size_t len)
{
	char word[TN_EDIT_TEXT_MAX], near[32] = "";
	snprintf(word, sizeof word, "%.*s", (int)TN_MIN(len, sizeof word - 1), name);
	unsigned limit = tn_edit_limit(strlen(word)) + 1, best = limit;
	for (const struct tctl_option *o = s->own; o != NULL && o->name != NULL; o++)
		tn_keep_nearest(word, o->name, &best, near, sizeof near);
	for (const struct tctl_option *o = s->global; o != NULL && o->name != NULL; o++)
		tn_keep_nearest(word, o->name, &best, near, sizeof near);
	bool is_near = best < limit;
	return over(s->t, tctl_bad_usage(s->t, "unknown option --%.*s%s%s%s", (int)len, name,
					 is_near ? " (did you mean --" : "", is_near ? near : "", is_near ? "?)" : ""));
}

/* argv[at] is "--name" or "--name=value". */
static bool take_long(struct scan *s)
{
	const char *name = s->argv[s->at] + 2, *value = strchr(name, '=');
	size_t len = value != NULL ? (size_t)(value - name) : strlen(name);
	const struct tctl_option *o = find_long(s->own, name, len);
	if (o == NULL)
		o = find_long(s->global, name, len);
	if (o == NULL)
		return refuse_long(s, name, len);
	if (o->kind == TCTL_FLAG && value != NULL)
		return over(s->t, tctl_bad_usage(s->t, "--%s takes no value", o->name));
	if (o->kind != TCTL_FLAG && value == NULL && ++s->at >= s->argc)
		return over(s->t, tctl_bad_usage(s->t, "--%s needs a value", o->name));
	return store(s, o, value != NULL ? value + 1 : s->argv[s->at]);
}

/* argv[at] is "-j", "-rDIR", "-r" with its value behind, or a run of flags. */
static bool take_letters(struct scan *s)
{
	for (const char *p = s->argv[s->at] + 1; *p != '\0'; p++) {
		const struct tctl_option *o = find_letter(s->own, *p);
		if (o == NULL)
			o = find_letter(s->global, *p);
		if (o == NULL)
			return over(s->t, tctl_bad_usage(s->t, "unknown option -%c", *p >= ' ' && *p < 127 ? *p : '?'));
		if (o->kind == TCTL_FLAG) {
			if (!store(s, o, NULL))
				return false;
			continue;
		}
		if (p[1] != '\0')
			return store(s, o, p + 1);
		if (++s->at >= s->argc)
			return over(s->t, tctl_bad_usage(s->t, "-%c needs a value", *p));
		return store(s, o, s->argv[s->at]);
	}
	return true;
}

/* Reads options from argv[first]; the words that are none move to the front. *kept_out: how many; with `leading` the
 * scan ends at the first of them and s->at tells where. */
static bool scan_words(struct scan *s, int first, bool leading, int *kept_out)
{
	int kept = 0;
	bool only_words = false;
	for (s->at = first; s->at < s->argc; s->at++) {
		char *a = s->argv[s->at];
		if (only_words || a[0] != '-' || a[1] == '\0') {
			if (leading)
				break;
			s->argv[first + kept++] = a;
		} else if (strcmp(a, "--") == 0) {
			only_words = true;
		} else if (!(a[1] == '-' ? take_long(s) : take_letters(s))) {
			return false;
		}
	}
	*kept_out = kept;
	return true;
}

static bool scan_with_globals(struct scan *s, int first, bool leading, int *kept_out)
{
	struct tctl *t = s->t;
	bool help = false, version = false;
	const struct tctl_option global[] = {
		{ "json", 'j', TCTL_FLAG, &t->json },
		{ "config", 'c', TCTL_TEXT, &t->config_path },
		{ "runtime-dir", 'r', TCTL_TEXT, &t->runtime_dir },
		{ "set", 's', TCTL_TEXTS, &t->sets },
		{ "timeout", '\0', TCTL_TIME, &t->timeout_ns },
		{ "help", 'h', TCTL_FLAG, &help },
		{ leading ? "version" : "help", '\0', TCTL_FLAG, &version }, /* only before a verb */
		{ NULL, '\0', TCTL_FLAG, NULL },
	};
	s->global = global;
	bool ok = scan_words(s, first, leading, kept_out);
	s->global = NULL;
	if (ok && help) {
		if (t->verb == NULL) {
			tctl_help(stdout);
		} else {
			tctl_verb_usage(t->verb, stdout);
			printf("%s\n", t->verb->help);
		}
		return over(t, TCTL_OK);
	}
	if (ok && version) {
		char *words[] = { (char[]){ "version" }, NULL };
		return over(t, tctl_cmd_version(t, 1, words));
	}
	return ok;
}

bool tctl_args(struct tctl *t, int *argc, char **argv, const struct tctl_option *options, int min, int max)
{
	struct scan s = { .t = t, .own = options, .argc = *argc, .argv = argv };
	int kept;
	if (!scan_with_globals(&s, 1, false, &kept))
		return false;
	if (kept < min)
		return over(
		    t, tctl_bad_usage(t, kept == 0 ? "an argument is missing" : "an argument is missing behind \"%s\"",
				      argv[kept]));
	if (kept > max)
		return over(t, tctl_bad_usage(t, "unexpected argument \"%s\"", argv[max + 1]));
	for (int i = 1; i <= kept; i++)
		if (argv[i][0] == '\0')
			return over(t, tctl_bad_usage(t, "argument %d is empty", i));
	*argc = kept + 1;
	return true;
}

bool tctl_global_args(struct tctl *t, int argc, char **argv, int *at)
{
	struct scan s = { .t = t, .argc = argc, .argv = argv };
	int kept;
	if (!scan_with_globals(&s, 1, true, &kept))
		return false;
	*at = s.at;
	return true;
}
