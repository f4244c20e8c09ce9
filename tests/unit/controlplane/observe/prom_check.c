/* SPDX-License-Identifier: Apache-2.0
 * The exposition checker. One pass over the lines, then a sort of all series to find duplicates. */
#include "tests/unit/controlplane/observe/prom_check.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/compiler.h"

enum { SERIES_MAX = 65536, FAMILY_MAX = 1024, TEXT_MAX = 256 };

struct state {
	bool openmetrics;
	unsigned line;
	char *err;
	size_t err_size;
	/* family being read */
	char family[TEXT_MAX], type[16];
	bool have_help, have_type;
	/* histogram series being read: its labels without le, last bucket, whether +Inf, sum and count came */
	char hist[1024];
	double last_le, last_value;
	bool in_hist, have_inf, have_sum;
	char **series;
	size_t series_cnt;
	char *families[FAMILY_MAX];
	size_t family_cnt;
};

static bool TN_PRINTF(2, 3) bad(struct state *s, const char *fmt, ...)
{
	va_list ap;
	int n = snprintf(s->err, s->err_size, "line %u: ", s->line);
	va_start(ap, fmt);
	if (n >= 0 && (size_t)n < s->err_size)
		(void)vsnprintf(s->err + n, s->err_size - (size_t)n, fmt, ap);
	va_end(ap);
	return false;
}

static size_t name_len(const char *p)
{
	size_t n = strspn(p, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_:0123456789");
	return n && (*p < '0' || *p > '9') ? n : 0;
}

static bool comment(struct state *s, const char *line)
{
	bool help = strncmp(line, "# HELP ", 7) == 0, type = strncmp(line, "# TYPE ", 7) == 0;
	if (!help && !type)
		return bad(s, "a comment that is neither HELP nor TYPE");
	const char *name = line + 7;
	size_t n = name_len(name);
	if (n == 0 || n >= TEXT_MAX || name[n] != ' ' || name[n + 1] == '\0')
		return bad(s, "malformed HELP or TYPE");
	if (help) {
		if (s->in_hist)
			return bad(s, "the histogram before is incomplete");
		(void)snprintf(s->family, sizeof s->family, "%.*s", (int)n, name);
		for (size_t i = 0; i < s->family_cnt; i++)
			if (strcmp(s->families[i], s->family) == 0)
				return bad(s, "family %s appears twice", s->family);
		if (s->family_cnt == FAMILY_MAX)
			return bad(s, "too many families");
		s->families[s->family_cnt++] = strdup(s->family);
		s->have_help = true;
		s->have_type = false;
		return true;
	}
	if (!s->have_help || s->have_type || strlen(s->family) != n || strncmp(s->family, name, n) != 0)
		return bad(s, "TYPE does not follow its HELP");
	(void)snprintf(s->type, sizeof s->type, "%s", name + n + 1);
	s->have_type = true;
	if (strcmp(s->type, "counter") != 0 && strcmp(s->type, "gauge") != 0 && strcmp(s->type, "histogram") != 0)
		return bad(s, "unknown type %s", s->type);
	size_t f = strlen(s->family);
	bool total = f > 6 && strcmp(s->family + f - 6, "_total") == 0;
	if (strcmp(s->type, "counter") == 0 && total == s->openmetrics)
		return bad(s, "counter family %s is named for the other format", s->family);
	return true;
}

/* Parses {a="b",...} at *p; le (if any) goes to le_out, all other labels to rest. */
static bool labels(struct state *s, const char **p, char *le_out, char *rest, size_t rest_size)
{
	size_t used = 0;
	*le_out = *rest = '\0';
	if (**p != '{')
		return true;
	for (const char *q = *p + 1;;) {
		size_t n = name_len(q);
		const char *key = q;
		if (n == 0 || q[n] != '=' || q[n + 1] != '"')
			return bad(s, "malformed label");
		const char *value = q + n + 2, *end = value;
		for (; *end && *end != '"'; end++)
			if (*end == '\\' && (end[1] == '\\' || end[1] == '"' || end[1] == 'n'))
				end++;
			else if (*end == '\\')
				return bad(s, "bad escape in a label value");
		if (*end != '"')
			return bad(s, "unterminated label value");
		if (n == 2 && strncmp(key, "le", 2) == 0)
			(void)snprintf(le_out, 64, "%.*s", (int)(end - value), value);
		else if (used + (size_t)(end - key) + 2 < rest_size)
			used += (size_t)snprintf(rest + used, rest_size - used, "%.*s,", (int)(end - key) + 1, key);
		else
			return bad(s, "labels too long");
		q = end + 1;
		if (*q == '}') {
			*p = q + 1;
			return true;
		}
		if (*q++ != ',')
			return bad(s, "labels are not separated by a comma");
	}
}

static bool bucket(struct state *s, const char *le, const char *rest, double value)
{
	char *end;
	double bound = strcmp(le, "+Inf") == 0 ? INFINITY : strtod(le, &end);
	if (*le == '\0' || (isfinite(bound) && *end))
		return bad(s, "bucket without a bound");
	if (s->openmetrics && isfinite(bound) && !strchr(le, '.'))
		return bad(s, "bound %s is not a canonical float", le);
	if (!s->in_hist) {
		(void)snprintf(s->hist, sizeof s->hist, "%s", rest);
		s->in_hist = true;
		s->have_inf = s->have_sum = false;
		s->last_le = -INFINITY;
		s->last_value = 0;
	}
	if (strcmp(s->hist, rest) != 0)
		return bad(s, "buckets of two series are mixed");
	if (bound <= s->last_le || value < s->last_value)
		return bad(s, "buckets are not ascending or not cumulative");
	s->last_le = bound;
	s->last_value = value;
	s->have_inf = isinf(bound);
	return true;
}

static bool histogram_sample(struct state *s, const char *suffix, const char *le, const char *rest, double value)
{
	if (strcmp(suffix, "_bucket") == 0)
		return bucket(s, le, rest, value);
	if (!s->in_hist || strcmp(s->hist, rest) != 0 || !s->have_inf || *le)
		return bad(s, "%s without all its buckets", suffix);
	if (strcmp(suffix, "_sum") == 0) {
		s->have_sum = true;
		return value >= 0 || bad(s, "negative sum");
	}
	if (strcmp(suffix, "_count") != 0 || !s->have_sum)
		return bad(s, "unexpected sample of a histogram");
	if (value != s->last_value)
		return bad(s, "count differs from the +Inf bucket");
	s->in_hist = false;
	return true;
}

/* " # {trace_id="..."} value [time]" */
static bool exemplar(struct state *s, const char *p, const char *suffix)
{
	char le[64], rest[1024], *end;
	if (!s->openmetrics || strcmp(suffix, "_bucket") != 0 || strncmp(p, " # {", 4) != 0)
		return bad(s, "text after the value");
	p += 3;
	if (!labels(s, &p, le, rest, sizeof rest))
		return false;
	if (*p != ' ' || (strtod(p + 1, &end), end == p + 1))
		return bad(s, "exemplar without a value");
	if (*end == ' ') {
		p = end + 1;
		(void)strtod(p, &end);
	}
	return *end == '\0' || bad(s, "text after the exemplar");
}

static bool sample(struct state *s, char *line)
{
	char le[64], rest[1024], *end;
	size_t n = name_len(line), f = strlen(s->family);
	const char *p = line + n;
	if (n == 0)
		return bad(s, "a sample has no name");
	if (!s->have_type || n < f || strncmp(line, s->family, f) != 0)
		return bad(s, "sample outside its family %s", s->family);
	char suffix[TEXT_MAX];
	(void)snprintf(suffix, sizeof suffix, "%.*s", (int)(n - f), line + f);
	if (!labels(s, &p, le, rest, sizeof rest))
		return false;
	if (*p++ != ' ')
		return bad(s, "no blank before the value");
	const char *series_end = p - 1;
	double value = strtod(p, &end);
	if (end == p || isnan(value))
		return bad(s, "the value is not a number");
	if (*end && !exemplar(s, end, suffix))
		return false;
	if (s->series_cnt == SERIES_MAX)
		return bad(s, "too many series");
	s->series[s->series_cnt++] = strndup(line, (size_t)(series_end - line));
	if (strcmp(s->type, "histogram") == 0)
		return histogram_sample(s, suffix, le, rest, value);
	const char *want = s->openmetrics && strcmp(s->type, "counter") == 0 ? "_total" : "";
	if (strcmp(suffix, want) != 0)
		return bad(s, "suffix '%s' does not fit a %s", suffix, s->type);
	return strcmp(s->type, "counter") != 0 || value >= 0 || bad(s, "negative counter");
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool check_lines(struct state *s, const char *text, size_t len)
{
	bool eof = false;
	for (const char *p = text, *stop = text + len; p < stop;) {
		const char *nl = memchr(p, '\n', (size_t)(stop - p));
		s->line++;
		if (!nl)
			return bad(s, "the last line does not end");
		if (eof)
			return bad(s, "text after # EOF");
		char *line = strndup(p, (size_t)(nl - p));
		bool good;
		if (s->openmetrics && strcmp(line, "# EOF") == 0)
			good = eof = true;
		else
			good = line[0] == '#' ? comment(s, line) : sample(s, line);
		free(line);
		if (!good)
			return false;
		p = nl + 1;
	}
	if (s->in_hist)
		return bad(s, "the last histogram is incomplete");
	return eof == s->openmetrics || bad(s, "# EOF is missing");
}

bool prom_check(const char *text, size_t len, bool openmetrics, size_t *samples_out, char *err, size_t err_size)
{
	struct state s = { .openmetrics = openmetrics, .err = err, .err_size = err_size };
	s.series = calloc(SERIES_MAX, sizeof *s.series);
	bool good = s.series && check_lines(&s, text, len);
	if (good) {
		qsort(s.series, s.series_cnt, sizeof *s.series, by_text);
		for (size_t i = 1; good && i < s.series_cnt; i++)
			if (strcmp(s.series[i - 1], s.series[i]) == 0)
				good = bad(&s, "series %s appears twice", s.series[i]);
	}
	if (samples_out)
		*samples_out = s.series_cnt;
	for (size_t i = 0; i < s.series_cnt; i++)
		free(s.series[i]);
	for (size_t i = 0; i < s.family_cnt; i++)
		free(s.families[i]);
	free(s.series);
	return good;
}
