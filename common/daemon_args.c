/* SPDX-License-Identifier: Apache-2.0
 * Command line, configuration, log and runtime directory of a daemon at its start, once for both daemons. */
#include "common/daemon_args.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/log.h"
#include "common/message.h"
#include "common/version.h"

static void usage(const struct tn_daemon_args *a, FILE *to)
{
	fprintf(to,
		"usage: %s [--config FILE] [--set KEY=VALUE]... [--runtime-dir DIR]\n"
		"%s\n\n"
		"  -c, --config FILE       configuration (default: $TENT_CONFIG, else %s if it exists)\n"
		"  -s, --set KEY=VALUE     override one key, e.g. --set poll/mode=busy\n"
		"  -r, --runtime-dir DIR   where sockets and counters live (key runtime_dir)\n"
		"      --version           print the version and exit\n"
		"  -h, --help              print this and exit\n\n"
		"Stays in the foreground. SIGTERM drains and stops, SIGHUP reads the configuration again.\n",
		a->program, a->purpose, TN_CONFIG_DEFAULT_PATH);
}

static bool add_set(struct tn_daemon_args *a, const char *text)
{
	if (a->set_cnt == TN_DAEMON_SETS_MAX) {
		fprintf(stderr, "%s: more than %d --set\n", a->program, TN_DAEMON_SETS_MAX);
		return false;
	}
	a->sets[a->set_cnt++] = text;
	return true;
}

int tn_daemon_args_parse(struct tn_daemon_args *a, int argc, char **argv)
{
	enum { OPT_VERSION = 256 };
	static const struct option options[] = {
		{ "config", required_argument, NULL, 'c' }, { "set", required_argument, NULL, 's' },
		{ "runtime-dir", required_argument, NULL, 'r' }, { "version", no_argument, NULL, OPT_VERSION },
		{ "help", no_argument, NULL, 'h' }, { NULL, 0, NULL, 0 },
	};
	for (int o; (o = getopt_long(argc, argv, "c:s:r:h", options, NULL)) != -1;) {
		switch (o) {
		case 'c': a->config_path = optarg; break;
		case 's':
			if (!add_set(a, optarg))
				return 2;
			break;
		case 'r':
			if ((size_t)snprintf(a->runtime_dir_set, sizeof a->runtime_dir_set, "runtime_dir=%s", optarg) >=
				    sizeof a->runtime_dir_set || !add_set(a, a->runtime_dir_set)) {
				fprintf(stderr, "%s: --runtime-dir is too long\n", a->program);
				return 2;
			}
			break;
		case OPT_VERSION: printf("%s %s (%s, %s)\n", a->program, TN_VERSION, TN_COMMIT, TN_BUILD_TYPE); return 0;
		case 'h': usage(a, stdout); return 0;
		default: fprintf(stderr, "Try %s --help.\n", a->program); return 2;
		}
	}
	if (optind < argc) {
		fprintf(stderr, "%s: unexpected argument: %s\nTry %s --help.\n", a->program, argv[optind], a->program);
		return 2;
	}
	return -1;
}

static struct tn_config_opts load_opts(const struct tn_daemon_args *a)
{
	return (struct tn_config_opts){ .size = sizeof(struct tn_config_opts), .path = a->config_path,
					.sets = a->set_cnt > 0 ? a->sets : NULL, .set_cnt = a->set_cnt };
}

static enum tn_log_level log_level(const struct tn_config *cfg)
{
	enum tn_log_level level = TN_LOG_INFO;
	(void)tn_log_level_from_name(tn_config_str(cfg, TN_CFG_LOG_LEVEL), &level);
	return level;
}

static tn_status open_log(const struct tn_daemon_args *a, const struct tn_config *cfg)
{
	const char *file = tn_config_str(cfg, TN_CFG_LOG_FILE);
	struct tn_log_cfg log = { .path = file[0] != '\0' ? file : NULL, .process = a->program, .level = log_level(cfg),
				  .json = tn_config_enum(cfg, TN_CFG_LOG_FORMAT) == TN_CONFIG_LOG_FORMAT_JSON };
	tn_status s = tn_log_open(&log);
	if (s != TN_OK)
		fprintf(stderr, "%s: log/file %s: cannot open: %s\n", a->program, file, strerror(errno));
	return s;
}

static void log_warnings(const struct tn_config *cfg, struct tn_config_errors *scratch)
{
	char line[TN_CONFIG_ERROR_LINE];
	*scratch = (struct tn_config_errors){ .cnt = 0 };
	tn_config_warnings(cfg, scratch);
	for (unsigned i = 0; i < scratch->cnt; i++) {
		tn_config_error_line(&scratch->item[i], line);
		tn_log_warn("config", "%s", line);
	}
}

tn_status tn_daemon_config(const struct tn_daemon_args *a, struct tn_config **out)
{
	struct tn_config_opts opts = load_opts(a);
	struct tn_config_errors *errors = calloc(1, sizeof *errors);
	struct tn_config *cfg = NULL;
	if (errors == NULL)
		return TN_NO_MEMORY;
	tn_status s = tn_config_load(&opts, &cfg, errors);
	if (s != TN_OK) {
		tn_config_errors_print(errors, stderr);
		fprintf(stderr, "%s: the configuration is wrong; nothing was started (tentctl config check helps)\n", a->program);
	} else if ((s = open_log(a, cfg)) == TN_OK) {
		log_warnings(cfg, errors);
		*out = cfg;
		cfg = NULL;
	}
	tn_config_free(cfg);
	free(errors);
	return s;
}

/* What a reload found, into the log and for whoever asked. */
struct reload_report { json_t *changed, *restart, *errors; };

static void report_change(struct reload_report *r, const struct tn_config *old, const struct tn_config *now,
			  struct tn_config_change change)
{
	const char *key = tn_config_key_path(change.key);
	char was[256], is[256];
	if (!change.hot) {
		tn_log_warn("config", "%s differs; it takes effect after a restart", key);
		json_array_append_new(r->restart, json_string(key));
		return;
	}
	tn_config_value_text(old, change.key, was, sizeof was);
	tn_config_value_text(now, change.key, is, sizeof is);
	tn_log_info("config", "%s: %s -> %s", key, was, is);
	json_t *j = json_object();
	tn_json_put_str(j, "key", key);
	tn_json_put_str(j, "old", was);
	tn_json_put_str(j, "new", is);
	json_array_append_new(r->changed, j);
}

static void report_error(struct reload_report *r, const struct tn_config_error *e)
{
	char line[TN_CONFIG_ERROR_LINE];
	tn_config_error_line(e, line);
	tn_log_error("config", "reload refused: %s", line);
	json_array_append_new(r->errors, json_string(line));
}

static json_t *report_json(struct reload_report *r, const struct tn_config *in_effect)
{
	json_t *j = json_object();
	tn_json_put_u64(j, "generation", tn_config_generation(in_effect));
	json_object_set_new(j, "changed", r->changed);
	json_object_set_new(j, "restart", r->restart);
	json_object_set_new(j, "errors", r->errors);
	return j;
}

tn_status tn_daemon_reload(const struct tn_daemon_args *a, const struct tn_config *running, struct tn_config **out,
			   json_t **report)
{
	struct tn_config_opts opts = load_opts(a);
	struct tn_config_change changes[TN_CFG_KEY_CNT];
	struct tn_config_errors *errors = calloc(1, sizeof *errors);
	unsigned cnt = 0;
	if (errors == NULL)
		return TN_NO_MEMORY;
	struct reload_report r = { .changed = json_array(), .restart = json_array(), .errors = json_array() };
	tn_status s = tn_config_reload(running, &opts, out, errors, changes, &cnt);
	for (unsigned i = 0; s != TN_OK && i < errors->cnt; i++)
		report_error(&r, &errors->item[i]);
	for (unsigned i = 0; s == TN_OK && i < cnt; i++)
		report_change(&r, running, *out, changes[i]);
	if (s == TN_OK) {
		tn_log_set_level(log_level(*out));
		(void)tn_log_reopen();
	}
	json_t *j = report_json(&r, s == TN_OK ? *out : running);
	if (report != NULL)
		*report = json_incref(j);
	json_decref(j);
	free(errors);
	return s;
}

tn_status tn_daemon_runtime_dir(const char *dir, char *err, size_t err_bytes)
{
	char path[4096];
	struct stat st;
	size_t n = strlen(dir);
	if (n == 0 || n >= sizeof path || dir[0] != '/') {
		snprintf(err, err_bytes, "runtime_dir %s: not an absolute path", dir);
		return TN_CONFIG;
	}
	memcpy(path, dir, n + 1);
	for (char *p = path + 1;; p++) {
		if (*p != '/' && *p != '\0')
			continue;
		char keep = *p;
		*p = '\0';
		if (mkdir(path, keep == '\0' ? 0700 : 0755) != 0 && errno != EEXIST) {
			snprintf(err, err_bytes, "runtime_dir %s: cannot make %s: %s", dir, path, strerror(errno));
			return TN_PERMISSION;
		}
		*p = keep;
		if (keep == '\0')
			break;
	}
	if (lstat(dir, &st) != 0 || !S_ISDIR(st.st_mode)) {
		snprintf(err, err_bytes, "runtime_dir %s: is not a directory (links are not followed)", dir);
		return TN_CONFIG;
	}
	if (st.st_uid != geteuid()) {
		snprintf(err, err_bytes, "runtime_dir %s: belongs to uid %u, we are %u; choose another or chown it", dir,
			 (unsigned)st.st_uid, (unsigned)geteuid());
		return TN_PERMISSION;
	}
	if ((st.st_mode & 022) != 0) {
		snprintf(err, err_bytes, "runtime_dir %s: others may write to it (mode %03o); chmod 0700 it", dir,
			 (unsigned)st.st_mode & 0777);
		return TN_PERMISSION;
	}
	return TN_OK;
}
