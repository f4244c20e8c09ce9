/* SPDX-License-Identifier: Apache-2.0
 * `tentctl version`: always answers, whatever runs or does not. */
#include <string.h>

#include <tent/tent.h>

#include "common/message.h"
#include "common/version.h"
#include "controlplane/tentctl/tentctl.h"

static void print_text(const json_t *control_plane, const char *why)
{
	printf("tentctl %s (%s, %s)\nlibtent %s\n", TN_VERSION, TN_COMMIT, TN_BUILD_TYPE, tent_version());
	if (control_plane != NULL)
		printf("tent-controlplane %s (%s, %s)\n", tctl_text(control_plane, "version"),
		       tctl_text(control_plane, "commit"), tctl_text(control_plane, "build_type"));
	else if (why != NULL)
		printf("tent-controlplane not asked: %s\n", why);
}

static void print_json(json_t *control_plane)
{
	json_t *j = json_object(), *own = json_object();
	tn_json_put_str(own, "version", TN_VERSION);
	tn_json_put_str(own, "commit", TN_COMMIT);
	tn_json_put_str(own, "build_type", TN_BUILD_TYPE);
	json_object_set_new(j, "tentctl", own);
	tn_json_put_str(j, "libtent", tent_version());
	json_object_set_new(j, "control_plane", control_plane != NULL ? json_incref(control_plane) : json_null());
	tctl_print_json(j);
	json_decref(j);
}

int tctl_cmd_version(struct tctl *t, int argc, char **argv)
{
	char err[512];
	json_t *answer = NULL;
	if (!tctl_args(t, &argc, argv, NULL, 0, 0))
		return t->exit_code;
	tn_status s = t->verb != NULL ? tctl_query(t, "version", NULL, &answer, err, sizeof err) : TN_OK;
	if (t->json)
		print_json(answer);
	else
		print_text(answer, s != TN_OK ? err : NULL);
	json_decref(answer);
	return TCTL_OK;
}
