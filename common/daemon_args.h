/* SPDX-License-Identifier: Apache-2.0
 * What both daemons do the same way at start: read the command line, load the configuration, open the log, say clearly
 * what is wrong. Start-up and reload of a daemon. */
#ifndef TN_DAEMON_ARGS_H
#define TN_DAEMON_ARGS_H

#include "common/config.h"
#include "common/status.h"

#define TN_DAEMON_SETS_MAX 64

struct json_t;

struct tn_daemon_args {
	const char *program;   /* "tent-controlplane" */
	const char *purpose;   /* one line for --help */
	const char *config_path;
	const char *sets[TN_DAEMON_SETS_MAX];
	unsigned set_cnt;
	char runtime_dir_set[300]; /* --runtime-dir as a --set */
};

/* Parse argv. Returns -1 to go on, else the exit code (0 after --help and --version, 2 after a usage error, which is
 * explained on stderr). args->program and ->purpose must be set; argv outlives args. */
int tn_daemon_args_parse(struct tn_daemon_args *args, int argc, char **argv);
/* Load the configuration and open the log it names. On failure the reasons are on stderr and *out untouched. */
tn_status tn_daemon_config(const struct tn_daemon_args *args, struct tn_config **out);
/* Load again: hot keys take effect, cold ones are logged as waiting for a restart. On failure the running configuration
 * stays and the reasons are in the log. *report (new reference; report may be NULL) says the same to whoever asked, also on
 * failure: {"generation": of what is in effect now, "changed":[{"key","old","new"}], "restart":["key"], "errors":["line"]}. It
 * is untouched when nothing could be tried (NO_MEMORY). */
tn_status tn_daemon_reload(const struct tn_daemon_args *args, const struct tn_config *running, struct tn_config **out,
			   struct json_t **report);
/* The runtime directory: made 0700 when absent (its parents too), refused when it belongs to somebody else or others
 * may write to it; err says what to do. */
tn_status tn_daemon_runtime_dir(const char *dir, char *err, size_t err_bytes);

#endif
