/* SPDX-License-Identifier: Apache-2.0
 * `tentctl config check|dump`: the configuration as the daemons would read it; no daemon is asked. `config reload`: they do
 * read it. */
#include <stdlib.h>

#include "common/message.h"
#include "controlplane/tentctl/tentctl.h"

/* What is valid and most likely not meant: told, and no failure. */
static json_t *warnings_json(const struct tn_config_errors *w)
{
	json_t *list = json_array();
	for (unsigned i = 0; i < w->cnt; i++) {
		json_t *item = json_object();
		tn_json_put_str(item, "source", w->item[i].source);
		if (w->item[i].line > 0)
			tn_json_put_u64(item, "line", w->item[i].line);
		tn_json_put_str(item, "key", w->item[i].key);
		tn_json_put_str(item, "text", w->item[i].text);
		json_array_append_new(list, item);
	}
	return list;
}

static void print_check(const struct tctl *t, const struct tn_config *c, const struct tn_config_errors *w)
{
	const char *path = tn_config_path(c);
	if (t->json) {
		json_t *j = json_object();
		tn_json_put_bool(j, "ok", true);
		if (path != NULL)
			tctl_put_name(j, "file", path);
		else
			json_object_set_new(j, "file", json_null());
		tn_json_put_u64(j, "peers", tn_config_peer_cnt(c));
		json_object_set_new(j, "warnings", warnings_json(w));
		tctl_print_json(j);
		json_decref(j);
		return;
	}
	if (w->cnt > 0)
		fputs("warnings:\n", stderr);
	tn_config_errors_print(w, stderr);
	if (path != NULL)
		printf("%s: ok, %u peer%s", path, tn_config_peer_cnt(c), tn_plural(tn_config_peer_cnt(c)));
	else
		printf("there is no " TN_CONFIG_DEFAULT_PATH ": the built-in defaults are in effect");
	if (w->cnt > 0)
		printf(", %u warning%s", w->cnt, tn_plural(w->cnt));
	putchar('\n');
}

int tctl_cmd_config_check(struct tctl *t, int argc, char **argv)
{
	if (!tctl_args(t, &argc, argv, NULL, 0, 1))
		return t->exit_code;
	struct tn_config *c = tctl_config_load(t, argc > 1 ? argv[1] : NULL);
	if (c == NULL)
		return TCTL_FAILED;
	struct tn_config_errors *w = calloc(1, sizeof *w);
	if (w == NULL) {
		tn_config_free(c);
		return tctl_fail(t, TN_NO_MEMORY, "no memory");
	}
	tn_config_warnings(c, w);
	print_check(t, c, w);
	free(w);
	tn_config_free(c);
	return TCTL_OK;
}

int tctl_cmd_config_dump(struct tctl *t, int argc, char **argv)
{
	bool effective = false, origin = false;
	const struct tctl_option options[] = {
		{ "effective", 'e', TCTL_FLAG, &effective }, { "origin", 'o', TCTL_FLAG, &origin },
		{ NULL, '\0', TCTL_FLAG, NULL },
	};
	if (!tctl_args(t, &argc, argv, options, 0, 0))
		return t->exit_code;
	const struct tn_config *c = tctl_config(t);
	if (c == NULL)
		return TCTL_FAILED;
	tn_status s = tn_config_dump(c, stdout, (effective ? TN_CONFIG_DUMP_EFFECTIVE : 0u) |
				     (origin ? TN_CONFIG_DUMP_ORIGIN : 0u) | (t->json ? TN_CONFIG_DUMP_JSON : 0u));
	if (s == TN_SYSTEM)
		return TCTL_FAILED; /* stdout could not be written: tctl_run() says why */
	return s == TN_OK ? TCTL_OK : tctl_fail(t, s, "cannot print the configuration: %s", tn_status_meaning(s));
}

/* ---- reload ---- */

static bool is_refused(const json_t *report)
{
	return json_array_size(json_object_get(report, "errors")) > 0;
}

/* What one daemon did; `why`: it did nothing, and this is the reason. */
static void print_report(const char *daemon, const json_t *report, const char *why)
{
	size_t i;
	const json_t *item;
	if (!json_is_object(report)) {
		printf("%s: %s\n", daemon, why);
		return;
	}
	const json_t *changed = json_object_get(report, "changed"), *restart = json_object_get(report, "restart");
	if (is_refused(report)) {
		printf("%s: refused; what ran before stays (generation %s)\n", daemon, tctl_text(report, "generation"));
		json_array_foreach(json_object_get(report, "errors"), i, item)
			printf("  %s\n", json_is_string(item) ? json_string_value(item) : "?");
		return;
	}
	printf("%s: generation %s%s\n", daemon, tctl_text(report, "generation"),
	       json_array_size(changed) + json_array_size(restart) == 0 ? ", nothing changed" : "");
	json_array_foreach(changed, i, item)
		printf("  %s: %s -> %s\n", tctl_text(item, "key"), tctl_text(item, "old"), tctl_text(item, "new"));
	json_array_foreach(restart, i, item)
		printf("  %s: waits for a restart\n", json_is_string(item) ? json_string_value(item) : "?");
}

int tctl_cmd_config_reload(struct tctl *t, int argc, char **argv)
{
	json_t *body;
	if (!tctl_args(t, &argc, argv, NULL, 0, 0))
		return t->exit_code;
	if (tctl_ask(t, "config_reload", NULL, &body) != TCTL_OK)
		return TCTL_FAILED;
	const json_t *cp = json_object_get(body, "control_plane"), *dp = json_object_get(body, "data_plane");
	if (t->json) {
		tctl_print_json(body);
	} else {
		print_report("tent-controlplane", cp, "not enough memory");
		print_report("tent-dataplane", dp, tctl_text(body, "data_plane_error"));
	}
	bool good = json_is_object(cp) && !is_refused(cp) && json_is_object(dp) && !is_refused(dp);
	json_decref(body);
	return good ? TCTL_OK : TCTL_FAILED;
}
