/* SPDX-License-Identifier: Apache-2.0
 * The default directories; see the header for the rule. Root is asked first: a root shell has an XDG runtime directory
 * of its own, a daemon started by the service manager has none, and both must name the same place. Any thread. */
#include "common/paths.h"

#include <stdio.h>
#include <string.h>

const char *tn_env_find(const char *const *env, const char *name)
{
	size_t len = strlen(name);

	for (; *env != NULL; env++)
		if (strncmp(*env, name, len) == 0 && (*env)[len] == '=')
			return *env + len + 1;
	return NULL;
}

/* An absolute path from the environment; NULL when unset, empty or relative. */
static const char *absolute(const char *const *env, const char *name)
{
	const char *value = tn_env_find(env, name);

	return value != NULL && value[0] == '/' ? value : NULL;
}

static tn_status fits(int need, size_t out_bytes)
{
	return need >= 0 && (size_t)need < out_bytes ? TN_OK : TN_TOO_BIG;
}

tn_status tn_default_runtime_dir(const char *const *env, unsigned uid, char *out, size_t out_bytes)
{
	const char *xdg = absolute(env, "XDG_RUNTIME_DIR");

	if (uid == 0)
		return fits(snprintf(out, out_bytes, "/run/tent"), out_bytes);
	if (xdg != NULL)
		return fits(snprintf(out, out_bytes, "%s/tent", xdg), out_bytes);
	return fits(snprintf(out, out_bytes, "/dev/shm/tent-%u", uid), out_bytes);
}

tn_status tn_default_state_dir(const char *const *env, unsigned uid, char *out, size_t out_bytes)
{
	const char *xdg = absolute(env, "XDG_STATE_HOME"), *home = absolute(env, "HOME");

	if (uid == 0)
		return fits(snprintf(out, out_bytes, "/var/lib/tent"), out_bytes);
	if (xdg != NULL)
		return fits(snprintf(out, out_bytes, "%s/tent", xdg), out_bytes);
	if (home != NULL)
		return fits(snprintf(out, out_bytes, "%s/.local/state/tent", home), out_bytes);
	return fits(snprintf(out, out_bytes, "/dev/shm/tent-%u-state", uid), out_bytes);
}
