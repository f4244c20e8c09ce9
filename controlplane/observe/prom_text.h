/* SPDX-License-Identifier: Apache-2.0
 * Exposition of a snapshot: Prometheus text 0.0.4 (prom_text.c) and OpenMetrics 1.0 (openmetrics.c). Which series are
 * shown is decided here, by the contract's section 1: every series of section 1, of gauges, and of families of at most
 * CP_EXPOSE_ALWAYS_CELLS cells; elsewhere only series that have occurred. Pure; any thread. */
#ifndef CP_OBSERVE_PROM_TEXT_H
#define CP_OBSERVE_PROM_TEXT_H

#include "common/text_buf.h"
#include "controlplane/observe/scrape.h"

#define CP_PROM_CONTENT_TYPE "text/plain; version=0.0.4; charset=utf-8"
#define CP_OPENMETRICS_CONTENT_TYPE "application/openmetrics-text; version=1.0.0; charset=utf-8"
enum { CP_EXPOSE_ALWAYS_CELLS = 16, CP_EXPOSE_BYTES_MAX = 4 << 20 };

/* Identity of this build; texts not owned. */
struct cp_build { const char *version, *commit, *build_type; };

/* Appends the whole exposition; out->failed says whether it is complete. */
void cp_prom_text_render(const struct cp_snapshot *s, const struct cp_build *build, struct tn_text *out);
void cp_openmetrics_render(const struct cp_snapshot *s, const struct cp_build *build, struct tn_text *out);

/* What the two formats do differently; shared by the two files, nobody else's business. */
struct cp_dialect {
	bool openmetrics; /* counter families without _total, bounds with a fraction, exemplars */
};
void cp_expose(const struct cp_snapshot *s, const struct cp_build *build, const struct cp_dialect *d, struct tn_text *out);

/* Appends " # {trace_id=...} value time" when the +Inf bucket of this attempt-latency series has an exemplar. */
void cp_openmetrics_exemplar(const struct cp_snapshot *s, const struct tn_metric_family *f, uint32_t series,
			     struct tn_text *out);

#endif
