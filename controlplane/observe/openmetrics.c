/* SPDX-License-Identifier: Apache-2.0
 * OpenMetrics 1.0: the same series as the text format, float bounds, exemplars on the +Inf bucket of attempt
 * latencies, and the end marker. */
#include "controlplane/observe/prom_text.h"

#include <inttypes.h>

void cp_openmetrics_exemplar(const struct cp_snapshot *s, const struct tn_metric_family *f, uint32_t series,
			     struct tn_text *out)
{
	if (f != &tn_metric_families[TN_M_TRANSPORT_ATTEMPT_LATENCY_US])
		return;
	const struct cp_exemplar *x = &s->exemplars.slot[series / TN_OP_CNT][series % TN_OP_CNT];
	if ((x->trace_hi | x->trace_lo) == 0)
		return;
	tn_text_printf(out, " # {trace_id=\"%016" PRIx64 "%016" PRIx64 "\"} ", x->trace_hi, x->trace_lo);
	tn_text_fixed(out, x->duration_ns, 3);
	uint64_t age = s->now_mono_ns > x->mono_ns ? s->now_mono_ns - x->mono_ns : 0;
	tn_text_char(out, ' ');
	tn_text_fixed(out, s->now_real_ns > age ? s->now_real_ns - age : 0, 9);
}

void cp_openmetrics_render(const struct cp_snapshot *s, const struct cp_build *build, struct tn_text *out)
{
	static const struct cp_dialect openmetrics = { .openmetrics = true };
	cp_expose(s, build, &openmetrics, out);
	tn_text_str(out, "# EOF\n");
}
