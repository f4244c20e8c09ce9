/* SPDX-License-Identifier: Apache-2.0
 * A folder of its own, an empty environment and a default path inside it: a config test sees nothing of this host. */
#ifndef TN_TEST_CONFIG_FIXTURE_H
#define TN_TEST_CONFIG_FIXTURE_H

#include <ftw.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/config.h"
#include "tests/unit/cu.h"

#define FX_TEXTS 16

struct fixture {
	char dir[64];
	char path[96];                      /* dir/tent.json */
	const char *env[FX_TEXTS + 1];
	const char *sets[FX_TEXTS];
	size_t set_cnt;
	struct tn_config_opts opts;
	struct tn_config *cfg;
	struct tn_config_errors errors;
};

static inline void fx_open(struct fixture *fx)
{
	memset(fx, 0, sizeof *fx);
	snprintf(fx->dir, sizeof fx->dir, "/tmp/tent-config-test.XXXXXX");
	if (mkdtemp(fx->dir) == NULL)
		abort();
	snprintf(fx->path, sizeof fx->path, "%s/tent.json", fx->dir);
	fx->opts.size = sizeof fx->opts;
	fx->opts.default_path = fx->path;
	fx->opts.env = fx->env;
	fx->opts.sets = fx->sets;
}

static inline int fx_remove(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st, (void)type, (void)ftw;
	return remove(path);
}

static inline void fx_close(struct fixture *fx)
{
	tn_config_free(fx->cfg);
	fx->cfg = NULL;
	nftw(fx->dir, fx_remove, 8, FTW_DEPTH | FTW_PHYS);
}

/* Write dir/name; conf.d is made when the name needs it. */
static inline void fx_write(struct fixture *fx, const char *name, const char *text)
{
	char path[200];
	FILE *f;

	snprintf(path, sizeof path, "%s/conf.d", fx->dir);
	if (strncmp(name, "conf.d/", 7) == 0)
		(void)mkdir(path, 0700);
	snprintf(path, sizeof path, "%s/%s", fx->dir, name);
	f = fopen(path, "w");
	if (f == NULL || fputs(text, f) < 0 || fclose(f) != 0)
		abort();
}

static inline void fx_env(struct fixture *fx, const char *text)
{
	size_t i = 0;

	while (fx->env[i] != NULL)
		i++;
	if (i == FX_TEXTS)
		abort();
	fx->env[i] = text;
}

static inline void fx_set(struct fixture *fx, const char *text)
{
	if (fx->set_cnt == FX_TEXTS)
		abort();
	fx->sets[fx->set_cnt++] = text;
}

/* Load again with what was written so far. */
static inline tn_status fx_load(struct fixture *fx)
{
	tn_config_free(fx->cfg);
	fx->cfg = NULL;
	fx->opts.set_cnt = fx->set_cnt;
	return tn_config_load(&fx->opts, &fx->cfg, &fx->errors);
}

/* Load and show the errors of a load that should have been good. */
static inline bool fx_good(struct fixture *fx)
{
	tn_status status = fx_load(fx);

	if (status != TN_OK)
		tn_config_errors_print(&fx->errors, stderr);
	return status == TN_OK;
}

/* Some error has this source suffix, line, key, and needle in its text. */
static inline bool fx_has_error(const struct fixture *fx, const char *source, unsigned line, const char *key,
				const char *needle)
{
	for (unsigned i = 0; i < fx->errors.cnt; i++) {
		const struct tn_config_error *e = &fx->errors.item[i];
		size_t have = strlen(e->source), want = strlen(source);

		if (have >= want && strcmp(e->source + have - want, source) == 0 && e->line == line &&
		    strcmp(e->key, key) == 0 && strstr(e->text, needle) != NULL)
			return true;
	}
	fprintf(stderr, "no error \"%s:%u: %s: ...%s...\" among:\n", source, line, key, needle);
	tn_config_errors_print(&fx->errors, stderr);
	return false;
}

#endif
