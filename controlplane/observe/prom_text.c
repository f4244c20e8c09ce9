/* SPDX-License-Identifier: Apache-2.0
 * The exposition writer: families in table order, HELP and TYPE once, series in label order. */
#include "controlplane/observe/prom_text.h"

#include <string.h>

static bool family_served(const struct cp_snapshot *s, const struct tn_metric_family *f)
{
	if (f->section == TN_METRIC_SECTION_PIPELINE)
		return true;
	return s->full && (f->owner != TN_OWNER_DP || s->has_dp);
}

static bool series_shown(const struct cp_snapshot *s, const struct tn_metric_family *f, uint32_t series)
{
	if (f->section == TN_METRIC_SECTION_PROCESS)
		return s->has_process[series];
	if (f->section == TN_METRIC_SECTION_PIPELINE || f->type == TN_MTYPE_GAUGE ||
	    f->series_cnt * f->width <= CP_EXPOSE_ALWAYS_CELLS)
		return true;
	const uint64_t *cell = &s->cell[f->base + series * f->width];
	for (uint32_t i = 0; i < f->width; i++)
		if (cell[i])
			return true;
	return false;
}

/* Value of one cell in the unit that the sample has. */
static void put_value(const struct cp_snapshot *s, const struct tn_metric_family *f, uint64_t v, struct tn_text *out)
{
	switch (f->unit) {
	case TN_UNIT_NS_US:
		tn_text_fixed(out, v, 3);
		break;
	case TN_UNIT_NS_S:
		tn_text_fixed(out, v, 9);
		break;
	case TN_UNIT_MONO_S: { /* a clock may have been set since: age counts, not the stored instant */
		uint64_t age = s->now_mono_ns > v ? s->now_mono_ns - v : 0;
		tn_text_fixed(out, v && s->now_real_ns > age ? s->now_real_ns - age : 0, 9);
		break;
	}
	default:
		if (f->type == TN_MTYPE_GAUGE)
			tn_text_i64(out, (int64_t)v);
		else
			tn_text_u64(out, v);
	}
}

static void put_label(struct tn_text *out, bool first, const char *key, const char *value)
{
	tn_text_str(out, first ? "{" : ",");
	tn_text_str(out, key);
	tn_text_str(out, "=\"");
	for (const char *p = value; *p; p++) {
		if (*p == '\\' || *p == '"')
			tn_text_char(out, '\\');
		if (*p == '\n')
			tn_text_str(out, "\\n");
		else
			tn_text_char(out, *p);
	}
	tn_text_char(out, '"');
}

static void put_bound(const struct tn_metric_family *f, uint64_t bound, const struct cp_dialect *d, struct tn_text *out)
{
	size_t at = out->len;
	tn_text_fixed(out, bound, f->unit == TN_UNIT_NS_US ? 3 : 0);
	if (d->openmetrics && !out->failed && !memchr(out->p + at, '.', out->len - at))
		tn_text_str(out, ".0"); /* canonical numbers of OpenMetrics are floats */
}

/* Name, suffix, labels and the blank before the value. le_bound: NULL = no le label, UINT64_MAX = +Inf. */
static void put_name(const struct tn_metric_family *f, uint32_t series, const char *suffix, const uint64_t *le_bound,
		     const struct cp_dialect *d, struct tn_text *out)
{
	tn_text_str(out, f->name);
	tn_text_str(out, suffix);
	for (unsigned l = 0; l < f->label_cnt; l++)
		put_label(out, l == 0, f->label[l].key, tn_metric_label_text(f, series, l));
	if (le_bound) {
		tn_text_str(out, f->label_cnt ? ",le=\"" : "{le=\"");
		if (*le_bound == UINT64_MAX)
			tn_text_str(out, "+Inf");
		else
			put_bound(f, *le_bound, d, out);
		tn_text_char(out, '"');
	}
	tn_text_str(out, f->label_cnt || le_bound ? "} " : " ");
}

static void put_histogram(const struct cp_snapshot *s, const struct tn_metric_family *f, uint32_t series,
			  const struct cp_dialect *d, struct tn_text *out)
{
	const struct tn_buckets *set = &tn_bucket_sets[f->type - TN_MTYPE_LATENCY];
	const uint64_t *cell = &s->cell[f->base + series * f->width];
	uint64_t cumulative = 0;

	for (uint32_t b = 0; b <= set->cnt; b++) {
		cumulative += cell[b];
		put_name(f, series, "_bucket", &set->bound[b], d, out); /* bound[cnt] is UINT64_MAX */
		tn_text_u64(out, cumulative);
		if (d->openmetrics && b == set->cnt)
			cp_openmetrics_exemplar(s, f, series, out);
		tn_text_char(out, '\n');
	}
	put_name(f, series, "_sum", NULL, d, out);
	put_value(s, f, cell[set->cnt + 1], out);
	tn_text_char(out, '\n');
	put_name(f, series, "_count", NULL, d, out);
	tn_text_u64(out, cumulative);
	tn_text_char(out, '\n');
}

static void put_series(const struct cp_snapshot *s, const struct cp_build *build, const struct tn_metric_family *f,
		       uint32_t series, const struct cp_dialect *d, struct tn_text *out)
{
	if (f == &tn_metric_families[TN_M_METRICS_BUILD_INFO]) { /* the one family with labels from build identity */
		tn_text_str(out, f->name);
		put_label(out, true, "version", build->version);
		put_label(out, false, "commit", build->commit);
		put_label(out, false, "build_type", build->build_type);
		tn_text_str(out, "} 1\n");
		return;
	}
	if (TN_MTYPE_IS_HIST(f->type)) {
		put_histogram(s, f, series, d, out);
		return;
	}
	put_name(f, series, "", NULL, d, out);
	put_value(s, f, s->cell[f->base + series], out);
	tn_text_char(out, '\n');
}

static void put_header(const struct tn_metric_family *f, const struct cp_dialect *d, struct tn_text *out)
{
	size_t n = strlen(f->name);
	if (d->openmetrics && f->type == TN_MTYPE_COUNTER)
		n -= strlen("_total"); /* the metric family is named without the suffix of its samples */
	tn_text_printf(out, "# HELP %.*s %s\n", (int)n, f->name, f->help);
	tn_text_printf(out, "# TYPE %.*s %s\n", (int)n, f->name, tn_metric_type_text(f->type));
}

void cp_expose(const struct cp_snapshot *s, const struct cp_build *build, const struct cp_dialect *d, struct tn_text *out)
{
	for (uint32_t m = 0; m < TN_M_CNT && !out->failed; m++) {
		const struct tn_metric_family *f = &tn_metric_families[m];
		if (!family_served(s, f))
			continue;
		bool header = false;
		for (uint32_t series = 0; series < f->series_cnt; series++) {
			if (!series_shown(s, f, series))
				continue;
			if (!header)
				put_header(f, d, out);
			header = true;
			put_series(s, build, f, series, d, out);
		}
	}
}

void cp_prom_text_render(const struct cp_snapshot *s, const struct cp_build *build, struct tn_text *out)
{
	static const struct cp_dialect text = { .openmetrics = false };
	cp_expose(s, build, &text, out);
}
