/* SPDX-License-Identifier: Apache-2.0
 * `tentctl config check|dump`: the configuration as the daemons would read it. No daemon is asked. */
#include "common/message.h"
#include "controlplane/tentctl/tentctl.h"

int tctl_cmd_config_check(struct tctl *t, int argc, char **argv)
{
	if (!tctl_args(t, &argc, argv, NULL, 0, 1))
		return t->exit_code;
	struct tn_config *c = tctl_config_load(t, argc > 1 ? argv[1] : NULL);
	if (c == NULL)
		return TCTL_FAILED;
	const char *path = tn_config_path(c);
	if (t->json) {
		json_t *j = json_object();
		tn_json_put_bool(j, "ok", true);
		if (path == NULL || tn_json_put_str(j, "file", path) != TN_OK)
			json_object_set_new(j, "file", json_null());
		tn_json_put_u64(j, "peers", tn_config_peer_cnt(c));
		tctl_print_json(j);
		json_decref(j);
	} else {
		printf("%s: ok\n", path != NULL ? path : "(no file: built-in defaults)");
	}
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
	return s == TN_OK ? TCTL_OK : tctl_fail(t, s, "cannot write the configuration: %s", tn_status_meaning(s));
}
