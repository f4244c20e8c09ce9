/* SPDX-License-Identifier: Apache-2.0
 * Runs the table, keeps the findings, shows them; and what several groups of checks ask. */
#include "controlplane/tentctl/doctor/doctor.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "common/message.h"
#include "controlplane/tentctl/style.h"

enum { FINDINGS_MOST = 4096 };

const char *tctl_grade_text(enum tctl_grade grade)
{
	static const char *const text[] = {
#define X(n, s) #s,
		TCTL_GRADE_LIST(X)
#undef X
	};
	return (unsigned)grade < TN_ARRAY_LEN(text) ? text[grade] : "invalid";
}

void tctl_doctor_run(struct tctl_doctor *d)
{
	for (const struct tctl_check *c = tctl_checks; c->group != NULL; c++) {
		d->running = c;
		if ((c->needs & TCTL_NEEDS_CONFIG) == 0 || d->config != NULL)
			c->run(d);
	}
	d->running = NULL;
}

void tctl_doctor_free(struct tctl_doctor *d)
{
	free(d->findings);
	d->findings = NULL;
	d->cnt = d->cap = 0;
}

unsigned tctl_doctor_count(const struct tctl_doctor *d, enum tctl_grade grade)
{
	unsigned n = 0;
	for (unsigned i = 0; i < d->cnt; i++)
		n += d->findings[i].grade == grade;
	return n;
}

/* ---- findings ---- */

void tctl_found(struct tctl_doctor *d, enum tctl_grade grade, const char *fmt, ...)
{
	if (d->cnt == d->cap) {
		unsigned cap = d->cap == 0 ? 64 : 2 * d->cap;
		struct tctl_finding *more = cap <= FINDINGS_MOST ? realloc(d->findings, cap * sizeof *more) : NULL;
		if (more == NULL) {
			d->dropped++;
			return;
		}
		d->findings = more;
		d->cap = cap;
	}
	struct tctl_finding *f = &d->findings[d->cnt++];
	*f = (struct tctl_finding){ .group = d->running->group, .check = d->running->name, .grade = grade };
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(f->what, sizeof f->what, fmt, ap);
	va_end(ap);
	tctl_clean(f->what);
}

void tctl_fix(struct tctl_doctor *d, const char *fmt, ...)
{
	if (d->cnt == 0 || d->dropped > 0)
		return;
	struct tctl_finding *f = &d->findings[d->cnt - 1];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(f->fix, sizeof f->fix, fmt, ap);
	va_end(ap);
	tctl_clean(f->fix);
}

/* ---- shared questions ---- */

const char *tctl_doctor_whose(const struct tctl_doctor *d, char out[static 16])
{
	if (d->pair->dataplane.held && d->pair->dataplane.pid != 0)
		snprintf(out, 16, "%u", d->pair->dataplane.pid);
	else
		snprintf(out, 16, "self");
	return out;
}

/* "0-3,8,10-11" */
static unsigned parse_cpus(const char *text, bool out[static 1024])
{
	unsigned cnt = 0;
	while (*text >= '0' && *text <= '9') {
		char *end;
		unsigned long from = strtoul(text, &end, 10), to = from;
		if (*end == '-')
			to = strtoul(end + 1, &end, 10);
		for (unsigned long c = from; c <= to && c < 1024; c++) {
			cnt += !out[c];
			out[c] = true;
		}
		text = *end == ',' ? end + 1 : end;
	}
	return cnt;
}

unsigned tctl_doctor_cpus(const struct tctl_doctor *d, bool out[static 1024])
{
	static const char key[] = "Cpus_allowed_list:";
	char path[64], who[16], text[8192];
	memset(out, 0, 1024 * sizeof *out);
	snprintf(path, sizeof path, "/proc/%s/status", tctl_doctor_whose(d, who));
	if (!tctl_host_read(d->host, path, text, sizeof text))
		return 0;
	const char *p = strstr(text, key);
	if (p == NULL)
		return 0;
	p += sizeof key - 1;
	return parse_cpus(p + strspn(p, " \t"), out);
}

unsigned tctl_doctor_workers(const struct tctl_doctor *d)
{
	bool cpus[1024];
	unsigned cnt = tctl_doctor_cpus(d, cpus);
	return tn_config_worker_cnt(d->config, cnt > 0 ? cnt : 1);
}

/* ---- the report ---- */

json_t *tctl_doctor_json(const struct tctl_doctor *d)
{
	json_t *j = json_object(), *counts = json_object(), *list = json_array();
	for (unsigned i = 0; i < d->cnt; i++) {
		const struct tctl_finding *f = &d->findings[i];
		json_t *item = json_object();
		tn_json_put_str(item, "group", f->group);
		tn_json_put_str(item, "check", f->check);
		tn_json_put_str(item, "grade", tctl_grade_text(f->grade));
		tn_json_put_str(item, "what", f->what);
		if (f->fix[0] != '\0')
			tn_json_put_str(item, "fix", f->fix);
		json_array_append_new(list, item);
	}
	tn_json_put_bool(j, "ok", tctl_doctor_count(d, TCTL_GRADE_FAIL) == 0);
	for (unsigned g = 0; g < TCTL_GRADE_CNT; g++)
		tn_json_put_u64(counts, tctl_grade_text(g), tctl_doctor_count(d, g));
	json_object_set_new(j, "counts", counts);
	json_object_set_new(j, "findings", list);
	return j;
}

static void print_finding(const struct tctl_finding *f, bool new_group, FILE *to)
{
	static const enum tctl_style styles[] = { TCTL_GOOD, TCTL_WARN, TCTL_BAD };
	static const char *const marks[] = { "ok  ", "WARN", "FAIL" };
	fprintf(to, "%-8s %s%s%s  %-14s %s\n", new_group ? f->group : "", tctl_style(to, styles[f->grade]),
		marks[f->grade], tctl_style(to, TCTL_PLAIN), f->check, f->what);
	if (f->fix[0] != '\0')
		fprintf(to, "%-8s       %-14s %sfix: %s%s\n", "", "", tctl_style(to, TCTL_BOLD), f->fix,
			tctl_style(to, TCTL_PLAIN));
}

void tctl_doctor_print(const struct tctl_doctor *d, bool quiet, FILE *to)
{
	const char *group = "";
	unsigned fail = tctl_doctor_count(d, TCTL_GRADE_FAIL), warn = tctl_doctor_count(d, TCTL_GRADE_WARN);
	for (unsigned i = 0; i < d->cnt; i++) {
		const struct tctl_finding *f = &d->findings[i];
		if (quiet && f->grade == TCTL_GRADE_OK)
			continue;
		print_finding(f, strcmp(group, f->group) != 0, to);
		group = f->group;
	}
	fprintf(to, "%s%u ok, %u warning%s, %u failure%s%s\n", group[0] != '\0' ? "\n" : "",
		tctl_doctor_count(d, TCTL_GRADE_OK), warn, tn_plural(warn), fail, tn_plural(fail), fail > 0 ? ": fix these first" : "");
	if (d->dropped > 0)
		fprintf(to, "(%u more finding%s did not fit)\n", d->dropped, tn_plural(d->dropped));
}
