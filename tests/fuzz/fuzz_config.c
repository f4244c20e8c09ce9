/* SPDX-License-Identifier: Apache-2.0
 * The configuration's door. Input: the file, then NUL-separated texts, each an environment entry (TENT_...) or a --set
 * argument. No input crashes or leaks; a refusal always says something in one line; what was accepted and dumped as
 * JSON loads back to the same configuration. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/assert.h"
#include "common/config.h"
#include "tests/fuzz/fuzz.h"

#define TEXTS 8

struct input {
	const char *file;
	size_t file_len;
	const char *env[TEXTS + 1], *sets[TEXTS];
	size_t env_cnt, set_cnt;
};

/* text is a NUL-terminated copy of the input. */
static void split(const char *text, size_t len, struct input *in)
{
	size_t at = strlen(text);
	*in = (struct input){ .file = text, .file_len = at };
	for (at++; at < len; at += strlen(text + at) + 1) {
		const char *one = text + at;
		if (strncmp(one, "TENT_CONFIG=", 12) == 0)
			continue;   /* would read files of this host */
		if (strncmp(one, "TENT_", 5) == 0 && in->env_cnt < TEXTS)
			in->env[in->env_cnt++] = one;
		else if (strncmp(one, "TENT_", 5) != 0 && in->set_cnt < TEXTS)
			in->sets[in->set_cnt++] = one;
	}
}

static tn_status load(const char *file, size_t len, const struct input *in, struct tn_config **out,
		      struct tn_config_errors *errors)
{
	char path[64];
	int fd = memfd_create("config", MFD_CLOEXEC);
	tn_assert(fd >= 0 && write(fd, file, len) == (ssize_t)len);
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	struct tn_config_opts opts = {
		.size = sizeof opts, .path = path, .sets = in->sets, .set_cnt = in->set_cnt, .env = in->env,
	};
	tn_status st = tn_config_load(&opts, out, errors);
	close(fd);
	return st;
}

static void check_errors(const struct tn_config_errors *errors)
{
	tn_assert(errors->cnt > 0 && errors->cnt <= TN_CONFIG_ERRORS_MAX);
	for (unsigned i = 0; i < errors->cnt; i++) {
		const struct tn_config_error *e = &errors->item[i];
		tn_assert(e->text[0] != '\0' && e->source[0] != '\0');
		tn_assert(strpbrk(e->text, "\n\r\033") == NULL && strpbrk(e->key, "\n\r\033") == NULL);
	}
}

static void check_round_trip(const struct tn_config *cfg)
{
	static struct tn_config_errors errors;
	struct tn_config_change changes[TN_CFG_KEY_CNT];
	struct tn_config *again = NULL;
	const struct input nothing = { 0 };
	char *text = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);
	tn_assert(out != NULL);
	tn_assert(tn_config_dump(cfg, out, TN_CONFIG_DUMP_EFFECTIVE | TN_CONFIG_DUMP_JSON) == TN_OK);
	fclose(out);
	tn_assert(load(text, len, &nothing, &again, &errors) == TN_OK);
	tn_assert(tn_config_diff(cfg, again, changes) == 0);
	tn_config_free(again);
	free(text);
	out = fopen("/dev/null", "w");
	tn_assert(out != NULL && tn_config_dump(cfg, out, TN_CONFIG_DUMP_EFFECTIVE | TN_CONFIG_DUMP_ORIGIN) == TN_OK);
	fclose(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static struct tn_config_errors errors;
	struct tn_config *cfg = NULL;
	struct input in;
	char *text = malloc(len + 1);
	if (text == NULL)
		return 0;
	memcpy(text, data, len);
	text[len] = '\0';
	split(text, len, &in);
	if (load(in.file, in.file_len, &in, &cfg, &errors) == TN_OK)
		check_round_trip(cfg);
	else
		check_errors(&errors);
	tn_config_free(cfg);
	free(text);
	return 0;
}
