/* SPDX-License-Identifier: Apache-2.0
 * The exposition as numbers. */
#include "controlplane/tentctl/samples.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/compiler.h"
#include "common/metrics.h"

/* ---- parse: every line is cut in place ---- */

/* "key="value"," of a label list; values of ours have no escapes but may come from anywhere. */
static char *cut_label(char *p, const char **key, const char **value)
{
	char *equals = strchr(p, '=');
	if (equals == NULL || equals[1] != '"')
		return NULL;
	*equals = '\0';
	*key = p;
	*value = equals + 2;
	for (p = equals + 2; *p != '"'; p++) {
		if (*p == '\0')
			return NULL;
		if (*p == '\\' && p[1] != '\0')
			p++;
	}
	*p++ = '\0';
	return p;
}

/* 1: a sample; 0: none of ours; -1: not an exposition. */
static int cut_line(char *line, struct tctl_sample *s)
{
	char *p = line + strcspn(line, "{ "), *end;
	*s = (struct tctl_sample){ .name = line };
	if (p == line || *p == '\0')
		return -1;
	bool labels = *p == '{';
	*p++ = '\0';
	while (labels && *p != '}') {
		const char *key, *value;
		p = cut_label(p, &key, &value);
		if (p == NULL)
			return -1;
		if (s->label_cnt < TCTL_LABELS_MAX) {
			s->labels[s->label_cnt].key = key;
			s->labels[s->label_cnt++].value = value;
		}
		if (*p == ',')
			p++;
	}
	p += labels ? 1 : 0;
	while (*p == ' ')
		p++;
	if (*p == '\0')
		return -1;
	errno = 0;
	s->value = strtoll(p, &end, 10);
	return errno == 0 && end != p && (*end == '\0' || *end == ' ') ? 1 : 0;
}

bool tctl_samples_parse(char *text, struct tctl_samples *out, char *err, size_t err_bytes)
{
	size_t lines = 1;
	char *save = NULL;
	for (const char *p = text; *p != '\0'; p++)
		lines += *p == '\n';
	struct tctl_samples s = { .text = text, .item = calloc(lines, sizeof *s.item) };
	if (s.item == NULL) {
		snprintf(err, err_bytes, "no memory");
		tctl_samples_free(&s);
		return false;
	}
	for (char *line = strtok_r(text, "\n", &save); line != NULL; line = strtok_r(NULL, "\n", &save)) {
		int got = line[0] == '#' ? 0 : cut_line(line, &s.item[s.cnt]);
		if (got < 0) {
			snprintf(err, err_bytes, "the metrics server sends \"%.60s\", which is no exposition", line);
			tctl_samples_free(&s);
			return false;
		}
		s.cnt += (size_t)got;
	}
	*out = s;
	return true;
}

void tctl_samples_free(struct tctl_samples *s)
{
	free(s->text);
	free(s->item);
	*s = (struct tctl_samples){ .text = NULL };
}

const char *tctl_sample_label(const struct tctl_sample *s, const char *key)
{
	for (unsigned i = 0; i < s->label_cnt; i++)
		if (strcmp(s->labels[i].key, key) == 0)
			return s->labels[i].value;
	return NULL;
}

/* ---- cells ---- */

static const struct tn_metric_family *find_family(const char *name)
{
	for (unsigned m = 0; m < TN_M_CNT; m++)
		if (!TN_MTYPE_IS_HIST(tn_metric_families[m].type) && strcmp(tn_metric_families[m].name, name) == 0)
			return &tn_metric_families[m];
	return NULL;
}

/* Mixed-radix number of the series; false when a label value is not in its domain. */
static bool find_series(const struct tn_metric_family *f, const struct tctl_sample *s, uint32_t *series_out)
{
	uint32_t series = 0;
	for (unsigned l = 0; l < f->label_cnt; l++) {
		const struct tn_metric_domain_info *d = &tn_metric_domains[f->label[l].domain];
		const char *value = tctl_sample_label(s, f->label[l].key);
		unsigned v = 0;
		while (v < d->cnt && (value == NULL || strcmp(d->values[v], value) != 0))
			v++;
		if (v == d->cnt)
			return false;
		series = series * d->cnt + v;
	}
	*series_out = series;
	return true;
}

bool tctl_samples_to_cells(const struct tctl_samples *s, uint64_t *cells, char *err, size_t err_bytes)
{
	memset(cells, 0, TN_METRIC_CELL_CNT * sizeof *cells);
	for (size_t i = 0; i < s->cnt; i++) {
		const struct tn_metric_family *f = find_family(s->item[i].name);
		uint32_t series;
		if (f == NULL)
			continue;
		if (!find_series(f, &s->item[i], &series)) {
			snprintf(err, err_bytes,
				 "%.80s has labels that this tentctl does not know: use the one of the control plane's "
				 "version",
				 s->item[i].name);
			return false;
		}
		cells[f->base + series] = (uint64_t)s->item[i].value;
	}
	return true;
}
