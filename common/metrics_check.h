/* SPDX-License-Identifier: Apache-2.0
 * The conservation equations of the contract's section 4 as code, over one aggregated cell array. Used by unit tests,
 * by the simulator at every step, and by tentctl verify. Exact when nothing moves; on a live pair the cells are read one
 * by one, so a caller looks again before it believes a difference. Pure; any thread. */
#ifndef TN_METRICS_CHECK_H
#define TN_METRICS_CHECK_H

#include <stdbool.h>
#include <stdint.h>

#include "common/metrics.h"

/* One equation for one set of labels: broken ones from the check, all of them from the walk. */
struct tn_equation_breach {
	unsigned equation;   /* number in the contract: 1..7, 9 */
	const char *text;    /* the equation, static */
	char where[64];      /* labels: "transport=tcp operation=read"; empty when it has none */
	int64_t left, right; /* what its two sides came to */
};

/* Checks all equations on cells[TN_METRIC_CELL_CNT] (aggregated over writers). Writes at most max breaches to out
 * (NULL when max is 0) and returns how many there are; 0 = all hold. */
unsigned tn_metric_equations_check(const uint64_t *cells, struct tn_equation_breach *out, unsigned max);

/* Shows every equation with its two sides, in a fixed order, whether it holds or not. */
typedef void tn_equation_fn(void *ctx, const struct tn_equation_breach *sides, bool holds);
void tn_metric_equations_walk(const uint64_t *cells, tn_equation_fn *fn, void *ctx);

#endif
