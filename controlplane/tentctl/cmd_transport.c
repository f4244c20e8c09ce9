/* SPDX-License-Identifier: Apache-2.0
 * `tentctl transport disable|enable`: requests of this host leave a transport, or may use it again. */
#include <stdio.h>

#include "common/message.h"
#include "controlplane/tentctl/tentctl.h"

static int change(struct tctl *t, const char *kind, bool enable, bool force)
{
	json_t *answer, *body = json_object();
	tn_json_put_str(body, "transport", kind);
	tn_json_put_bool(body, "enable", enable);
	if (force)
		tn_json_put_bool(body, "force", true);
	if (tctl_ask(t, "transport", body, &answer) != TCTL_OK)
		return TCTL_FAILED;
	bool changed = json_is_true(json_object_get(answer, "changed"));
	if (t->json)
		tctl_print_json(answer);
	else if (!changed)
		printf("%s was %s already\n", kind, enable ? "on" : "off");
	else if (enable)
		printf("%s is on: requests may use it again\n", kind);
	else
		printf("%s is off: requests go other ways, or wait; a restart of the data plane ends that\n", kind);
	json_decref(answer);
	return TCTL_OK;
}

int tctl_cmd_transport_disable(struct tctl *t, int argc, char **argv)
{
	bool force = false;
	const struct tctl_option options[] = { { "force", 'f', TCTL_FLAG, &force }, { NULL, '\0', TCTL_FLAG, NULL } };
	return tctl_args(t, &argc, argv, options, 1, 1) ? change(t, argv[1], false, force) : t->exit_code;
}

int tctl_cmd_transport_enable(struct tctl *t, int argc, char **argv)
{
	return tctl_args(t, &argc, argv, NULL, 1, 1) ? change(t, argv[1], true, false) : t->exit_code;
}
