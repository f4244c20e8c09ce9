/* SPDX-License-Identifier: Apache-2.0
 * Runs tentctl in the test's own process and keeps what it printed. */
#ifndef TCTL_TEST_RUN_H
#define TCTL_TEST_RUN_H

#include <fcntl.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "controlplane/tentctl/tentctl.h"
#include "tests/unit/cu.h"

enum { RUN_TEXT = 64 << 10, RUN_WORDS = 40 };

static struct { int rc; char out[RUN_TEXT], err[RUN_TEXT]; } ran;
static const char *run_stdout; /* a file instead: what is printed goes there */

static inline void run_keep(FILE *from, char *to)
{
	fflush(from);
	rewind(from);
	size_t n = fread(to, 1, RUN_TEXT - 1, from);
	to[n] = '\0';
	fclose(from);
}

/* run("put", "file", "segment", NULL): the exit code; texts in ran.out and ran.err. */
static inline int run(const char *first, ...)
{
	char *argv[RUN_WORDS] = { (char[]){ "tentctl" } };
	int argc = 1;
	va_list ap;
	va_start(ap, first);
	for (const char *w = first; w != NULL && argc < RUN_WORDS - 1; w = va_arg(ap, const char *))
		argv[argc++] = strdup(w);
	va_end(ap);
	char *const *mine = argv;
	char *kept[RUN_WORDS];
	memcpy(kept, mine, sizeof kept);
	FILE *out = tmpfile(), *err = tmpfile();
	fflush(stdout);
	fflush(stderr);
	int out_was = dup(1), err_was = dup(2);
	int elsewhere = run_stdout != NULL ? open(run_stdout, O_WRONLY | O_CLOEXEC) : -1;
	dup2(elsewhere >= 0 ? elsewhere : fileno(out), 1);
	dup2(fileno(err), 2);
	ran.rc = tctl_run(argc, argv);
	fflush(stdout);
	fflush(stderr);
	__fpurge(stdout); /* what could not be written stays behind, and must not come out later */
	clearerr(stdout);
	if (elsewhere >= 0)
		close(elsewhere);
	dup2(out_was, 1);
	dup2(err_was, 2);
	close(out_was);
	close(err_was);
	run_keep(out, ran.out);
	run_keep(err, ran.err);
	for (int i = 1; i < argc; i++)
		free(kept[i]);
	return ran.rc;
}

/* The one JSON object that was printed; NULL when it is none. The caller drops it. */
static inline json_t *run_json(void)
{
	return json_loads(ran.out, JSON_REJECT_DUPLICATES, NULL);
}

static inline bool run_json_is(const char *key, const char *value)
{
	json_t *j = run_json();
	const char *s = json_string_value(json_object_get(j, key));
	bool same = s != NULL && strcmp(s, value) == 0;
	json_decref(j);
	return same;
}

static inline long long run_json_number(const char *key)
{
	json_t *j = run_json();
	const json_t *v = json_object_get(j, key);
	long long n = json_is_integer(v) ? json_integer_value(v) : -1;
	json_decref(j);
	return n;
}

/* A folder of this process's own; also the runtime directory. Environment and configuration of the host do not count.
 */
static inline const char *run_dir(void)
{
	static char dir[64];
	if (dir[0] == '\0') {
		snprintf(dir, sizeof dir, "/tmp/tctl-test-XXXXXX");
		if (mkdtemp(dir) == NULL)
			abort();
		setenv("TENT_RUNTIME_DIR", dir, 1);
		setenv("TENT_STATE_DIR", dir, 1);
		setenv("TENT_HOST_NAME", "test-host", 1);
		unsetenv("TENT_CONFIG");
		if (chdir(dir) != 0)
			abort();
	}
	return dir;
}

static inline void run_dir_remove(void)
{
	char cmd[128];
	if (chdir("/") == 0) {
		snprintf(cmd, sizeof cmd, "rm -rf %s", run_dir());
		if (system(cmd) != 0)
			fputs("the test's folder could not be removed\n", stderr);
	}
}

static inline void write_file(const char *path, const void *bytes, size_t n)
{
	FILE *f = fopen(path, "w");
	if (f == NULL || fwrite(bytes, 1, n, f) != n || fclose(f) != 0)
		abort();
}

#endif
