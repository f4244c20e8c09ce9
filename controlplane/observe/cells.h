/* SPDX-License-Identifier: Apache-2.0
 * The control plane's own metric cells: the layout of common/metrics.def in private memory. The sans-I/O logic gets a
 * `const struct tn_metrics *` and counts through the functions below, in the daemon and in the simulator alike.
 * Each cell has one writing thread: the loop, except the serialization families, which the HTTP thread writes. */
#ifndef CP_OBSERVE_CELLS_H
#define CP_OBSERVE_CELLS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/metrics.h"

struct cp_cells {
	tn_a64 cell[TN_METRIC_CELL_CNT];
	struct tn_metrics rec; /* what writers use; bound to cell */
};

/* Zeroes the cells and binds rec. About 50 KB: part of a heap object, never on a stack. */
TN_INLINE void cp_cells_init(struct cp_cells *c, bool recording)
{
	for (uint32_t i = 0; i < TN_METRIC_CELL_CNT; i++)
		tn_store_relaxed64(&c->cell[i], 0);
	tn_metrics_bind(&c->rec, c->cell, recording);
}

/* Families of section 1 exist also where recording is compiled out. */
TN_INLINE void cp_pipeline_add(struct cp_cells *c, struct tn_counter_at at, uint64_t n) { tn_count64(&c->cell[at.cell], n); }
TN_INLINE void cp_pipeline_set(struct cp_cells *c, struct tn_gauge_at at, uint64_t v)
{
	tn_store_relaxed64(&c->cell[at.cell], v);
}

/* One physical attempt of a call to a peer has ended. attempt: 1 for the first of its call, 2.. for retries that were
 * really issued. Counting call, retry and attempt at this one point makes attempts = calls + retries hold always.
 * An error inside a good reply is TN_RPC_OUTCOME_SUCCESS. */
TN_INLINE void cp_count_rpc(const struct tn_metrics *m, enum tn_rpc_method method, enum tn_rpc_outcome outcome,
			    uint64_t latency_ns, unsigned attempt)
{
	tn_counter_add(m, TN_C2(RPC_ATTEMPTS_TOTAL, method, outcome), 1);
	if (attempt <= 1)
		tn_counter_add(m, TN_C1(RPC_CALLS_TOTAL, method), 1);
	else
		tn_counter_add(m, TN_C1(RPC_RETRIES_TOTAL, method), 1);
	tn_hist_observe(m, TN_H2(RPC_ATTEMPT_LATENCY_US, method, outcome), latency_ns);
}

/* Something happened to a segment snapshot, the registry entry or the cache of remote segments. */
TN_INLINE void cp_count_segment(const struct tn_metrics *m, enum tn_segment_event event, bool success)
{
	tn_counter_add(m, TN_C2(SEGMENT_EVENTS_TOTAL, event, success ? TN_RESULT_SUCCESS : TN_RESULT_FAILURE), 1);
}

/* A pull of receiver credit has ended (sender side). */
TN_INLINE void cp_count_credit_pull(const struct tn_metrics *m, enum tn_credit_pull outcome, uint64_t latency_ns)
{
	tn_counter_add(m, TN_C1(CREDIT_PULLS_TOTAL, outcome), 1);
	tn_hist_observe(m, TN_H1(CREDIT_PULL_LATENCY_US, outcome), latency_ns);
}

#endif
