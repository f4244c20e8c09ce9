/* SPDX-License-Identifier: Apache-2.0
 * One consistent-enough picture of all numbers: the data plane's cells summed over its threads, the control plane's own
 * cells, /proc. Everything that renders or checks numbers works on such a snapshot, never on live cells.
 * Pure apart from reading the mapped region; any thread that keeps the region mapped meanwhile. */
#ifndef CP_OBSERVE_SCRAPE_H
#define CP_OBSERVE_SCRAPE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/metrics.h"
#include "controlplane/observe/cells.h"
#include "controlplane/observe/exemplar.h"
#include "controlplane/observe/process.h"
#include "shm-ring/telemetry.h"

struct cp_snapshot {
	uint64_t cell[TN_METRIC_CELL_CNT]; /* aggregated */
	bool full;        /* false: only section 1 may be served (recording compiled out, or another schema) */
	bool has_dp;      /* the data plane's families are in; otherwise they are not served at all, so that a restarted
	                     control plane never shows a zero that turns into a false increase */
	bool has_process[TN_PROCESS_CNT];
	uint64_t now_mono_ns, now_real_ns;
	struct cp_exemplars exemplars;
};

struct cp_scrape_in {
	const struct cp_cells *own;
	const struct shr_tele_ro *tele;        /* NULL = no region was ever attached */
	const struct cp_exemplars *exemplars;  /* NULL = none */
	const struct cp_process *process;      /* TN_PROCESS_CNT of them */
	bool dataplane_up;
	bool recording;                        /* shown as tent_metrics_runtime_enabled while no region is attached */
	uint64_t now_mono_ns, now_real_ns;
};

/* True when the cells of the region mean what our table says. */
bool cp_scrape_schema_ok(const struct shr_tele_ro *tele);

/* Fills *out (heap object, ~50 KB). Never fails: what is not there is marked as not there. */
void cp_scrape(const struct cp_scrape_in *in, struct cp_snapshot *out);

#endif
