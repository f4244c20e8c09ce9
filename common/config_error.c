/* SPDX-License-Identifier: Apache-2.0
 * The list of what is wrong with a configuration: filled while reading, bounded, printed one line per error. The only
 * place that formats the head of such a line. Any thread, one list per load. */
#include "common/config_object.h"

#include <stdarg.h>
#include <stdio.h>

#include "common/utf8.h"

TN_PRINTF(4, 0)
static void add(const struct tn_cfg_source *source, const char *path, unsigned line, const char *fmt, va_list args)
{
	struct tn_config_errors *errors = source->errors;
	struct tn_config_error *e;
	char text[sizeof e->text];

	if (errors->cnt == TN_CONFIG_ERRORS_MAX) {
		errors->dropped_cnt++;
		return;
	}
	e = &errors->item[errors->cnt++];
	vsnprintf(text, sizeof text, fmt, args);
	tn_utf8_line(e->text, sizeof e->text, text);
	tn_utf8_line(e->source, sizeof e->source, source->name);
	tn_utf8_line(e->key, sizeof e->key, path);
	e->line = line;
}

bool tn_cfg_path_join(char out[static TN_CFG_PATH_MAX], const char *prefix, const char *name)
{
	int need = snprintf(out, TN_CFG_PATH_MAX, "%s%s%s", prefix, *prefix != '\0' ? "/" : "", name);

	return need >= 0 && need < TN_CFG_PATH_MAX;
}

void tn_cfg_fail(const struct tn_cfg_source *source, const char *path, const char *fmt, ...)
{
	unsigned line = source->lines != NULL && *path != '\0' ? tn_cfg_lines_find(source->lines, path) : 0;
	va_list args;

	va_start(args, fmt);
	add(source, path, line, fmt, args);
	va_end(args);
}

void tn_cfg_fail_at(const struct tn_cfg_source *source, const char *path, unsigned line, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	add(source, path, line, fmt, args);
	va_end(args);
}

unsigned tn_cfg_error_cnt(const struct tn_config_errors *errors)
{
	return errors->cnt + errors->dropped_cnt;
}

void tn_config_error_line(const struct tn_config_error *e, char out[static TN_CONFIG_ERROR_LINE])
{
	char line[16] = "";

	if (e->line > 0)
		snprintf(line, sizeof line, ":%u", e->line);
	snprintf(out, TN_CONFIG_ERROR_LINE, "%s%s%s%s%s%s", e->source, line, *e->source != '\0' ? ": " : "", e->key,
		 *e->key != '\0' ? ": " : "", e->text);
}

void tn_config_errors_print(const struct tn_config_errors *errors, FILE *out)
{
	char line[TN_CONFIG_ERROR_LINE];

	for (unsigned i = 0; i < errors->cnt; i++) {
		tn_config_error_line(&errors->item[i], line);
		fprintf(out, "%s\n", line);
	}
	if (errors->dropped_cnt > 0)
		fprintf(out, "... and %u more\n", errors->dropped_cnt);
}
