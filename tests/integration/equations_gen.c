/* SPDX-License-Identifier: Apache-2.0
 * Build-time program, not installed: prints tests/integration/equations.promql, the equations of common/metrics_check.c as
 * PromQL. Nothing of an equation is written here: one cell at a time is set to 1, and what the two sides of every equation
 * then come to tells with which sign the cell stands in it. Equation 8 is a scenario, not a sum, and the only one that is
 * spelled out. Build the target equations_promql to write the file; the test check.equations_fresh compares. One thread. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/metrics_check.h"

enum { EQUATIONS_MOST = 256, KEYS_MOST = TN_METRIC_LABELS_MAX };

struct equation {
	struct tn_equation_breach shown;
	bool at_most; /* left <= right, not left = right */
	bool printed;
	int8_t sign[TN_METRIC_CELL_CNT];
};
static struct equation all[EQUATIONS_MOST];
static size_t cnt, at;
static uint64_t cells[TN_METRIC_CELL_CNT];
static uint32_t probed;

static void fail(const char *what, const struct equation *e)
{
	fprintf(stderr, "equations_gen: equation %u (%s) %s: teach this program to print it\n", e->shown.equation, e->shown.text,
		what);
	exit(1);
}

static void learn_names(void *ctx, const struct tn_equation_breach *sides, bool holds)
{
	(void)ctx;
	(void)holds;
	if (cnt == EQUATIONS_MOST)
		abort();
	all[cnt++].shown = *sides;
}

static void learn_sign(void *ctx, const struct tn_equation_breach *sides, bool holds)
{
	struct equation *e = &all[at++];
	int64_t sign = sides->left - sides->right;
	(void)ctx;
	if (sign < -1 || sign > 1)
		fail("weighs a cell", e);
	e->sign[probed] = (int8_t)sign;
	e->at_most |= sign < 0 && holds;
}

static bool same_equation(const struct equation *a, const struct equation *b)
{
	return a->shown.equation == b->shown.equation && strcmp(a->shown.text, b->shown.text) == 0;
}

/* Keys of "transport=tcp operation=read". */
static unsigned keys_of(const struct equation *e, char key[KEYS_MOST][32])
{
	unsigned n = 0;
	for (const char *p = e->shown.where; *p != '\0'; p += strcspn(p, " "), p += *p == ' ', n++)
		snprintf(key[n], sizeof key[n], "%.*s", (int)strcspn(p, "="), p);
	return n;
}

/* True when the label l of the series is what the equation's instance says of it, or the instance says nothing. */
static bool fits(const struct equation *e, const struct tn_metric_family *f, uint32_t series, unsigned l)
{
	char want[96], where[sizeof e->shown.where + 2];
	const char *key = f->label[l].key;
	snprintf(where, sizeof where, " %s ", e->shown.where);
	snprintf(want, sizeof want, " %s=", key);
	if (strstr(where, want) == NULL)
		return true;
	snprintf(want, sizeof want, " %s=%s ", key, tn_metric_label_text(f, series, l));
	return strstr(where, want) != NULL;
}

/* The series of family f that the equation holds with this sign, over all its instances. */
static uint32_t gather(const struct equation *first, const struct tn_metric_family *f, int sign, bool *in)
{
	uint32_t n = 0;
	memset(in, 0, f->series_cnt);
	for (struct equation *e = all; e < all + cnt; e++)
		for (uint32_t s = 0; same_equation(e, first) && s < f->series_cnt * f->width; s++) {
			if (e->sign[f->base + s] != sign)
				continue;
			if (f->width != 1 || in[s])
				fail("uses a histogram, or a cell twice", e);
			for (unsigned l = 0; l < f->label_cnt; l++)
				if (!fits(e, f, s, l))
					fail("uses a series of other labels than it names", e);
			in[s] = true;
			n++;
		}
	return n;
}

/* {label=~"a|b"} for the labels that are not free; the set must be the product of what its labels may be. */
static void print_matchers(const struct equation *e, const struct tn_metric_family *f, const bool *in, uint32_t n)
{
	uint32_t product = 1;
	bool open = false;
	for (unsigned l = 0; l < f->label_cnt; l++) {
		const struct tn_metric_domain_info *d = &tn_metric_domains[f->label[l].domain];
		char values[512] = "";
		unsigned used = 0;
		for (unsigned v = 0; v < d->cnt; v++) {
			bool found = false;
			for (uint32_t s = 0; s < f->series_cnt; s++)
				found |= in[s] && strcmp(tn_metric_label_text(f, s, l), d->values[v]) == 0;
			if (!found)
				continue;
			size_t len = strlen(values);
			snprintf(values + len, sizeof values - len, "%s%s", used++ > 0 ? "|" : "", d->values[v]);
		}
		product *= used;
		if (used < d->cnt) {
			printf("%s%s%s\"%s\"", open ? "," : "{", f->label[l].key, used > 1 ? "=~" : "=", values);
			open = true;
		}
	}
	if (product != n)
		fail("uses a set of series that is no product of label values", e);
	if (open)
		printf("}");
}

/* A series that never occurred is not exposed and counts as 0, so the terms are joined by "or" and summed, not subtracted
 * from each other: of a difference PromQL drops what only one side has. The label "term" keeps them apart until then. */
static void print_sum(const struct equation *e)
{
	static bool in[TN_METRIC_CELL_CNT];
	char key[KEYS_MOST][32];
	unsigned terms = 0;
	printf("sum by (job, instance");
	for (unsigned k = 0, n = keys_of(e, key); k < n; k++)
		printf(", %s", key[k]);
	printf(") (\n");
	for (int sign = 1; sign >= -1; sign -= 2)
		for (const struct tn_metric_family *f = tn_metric_families; f < tn_metric_families + TN_M_CNT; f++) {
			uint32_t n = gather(e, f, sign, in);
			if (n == 0)
				continue;
			printf("%s  label_replace(%s%s", terms > 0 ? " or\n" : "", sign < 0 ? "-" : "", f->name);
			print_matchers(e, f, in, n);
			printf(", \"term\", \"%u\", \"\", \"\")", terms++);
		}
	printf(")");
}

static void print_equation(struct equation *e)
{
	printf("\n# %u %s\n", e->shown.equation, e->shown.text);
	if (e->at_most)
		printf("clamp_min(");
	print_sum(e);
	printf("%s\n", e->at_most ? ", 0)" : "");
	for (struct equation *o = e; o < all + cnt; o++)
		o->printed |= same_equation(o, e);
}

int main(void)
{
	tn_metric_equations_walk(cells, learn_names, NULL);
	for (probed = 0; probed < TN_METRIC_CELL_CNT; probed++) {
		cells[probed] = 1;
		at = 0;
		tn_metric_equations_walk(cells, learn_sign, NULL);
		cells[probed] = 0;
	}
	printf("# Generated by equations_gen from common/metrics_check.c. Do not edit: build the target equations_promql.\n"
	       "# What is left of each equation: every sample of every result is 0 when nothing moves.\n");
	for (struct equation *e = all; e < all + cnt; e++)
		if (!e->printed)
			print_equation(e);
	printf("\n# 8 no more failovers from a transport than attempts on it that did not complete\n"
	       "clamp_min(sum by (job, instance, transport) (\n"
	       "  label_replace(label_replace(tent_transport_failover_total, \"transport\", \"$1\", \"from\", \"(.*)\"),"
	       " \"term\", \"0\", \"\", \"\") or\n"
	       "  label_replace(-tent_transport_attempt_outcomes_total{outcome!=\"completed\"}, \"term\", \"1\", \"\", \"\")), 0)\n");
	return 0;
}
