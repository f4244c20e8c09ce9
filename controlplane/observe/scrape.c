/* SPDX-License-Identifier: Apache-2.0
 * Folds the cells of all writers into one snapshot. */
#include "controlplane/observe/scrape.h"

#include <string.h>

bool cp_scrape_schema_ok(const struct shr_tele_ro *tele)
{
	return tele->lay.cell_cnt == TN_METRIC_CELL_CNT && tele->hdr.schema_hash == tn_metric_schema_hash();
}

/* The worker threads' own progress comes from their functional blocks: the worst worker that has work, and when none
 * has, the latest of all. A plain maximum would hide one stalled worker behind its busy neighbours. */
static uint64_t progress_of_workers(const struct shr_tele_ro *tele)
{
	uint64_t worst = UINT64_MAX, latest = 0;
	for (uint32_t w = 0; w < tele->lay.worker_cnt; w++) {
		const struct shr_worker_shm *b = shr_tele_ro_worker(tele, w);
		uint64_t progress = tn_load_relaxed64(&b->last_progress_ns);
		latest = TN_MAX(latest, progress);
		if (tn_load_relaxed64(&b->oldest_work_ns))
			worst = TN_MIN(worst, progress);
	}
	return worst != UINT64_MAX ? worst : latest;
}

static void set_cell(struct cp_snapshot *out, struct tn_gauge_at at, uint64_t v)
{
	out->cell[at.cell] = v;
}

static void add_process(struct cp_snapshot *out, enum tn_process p, const struct cp_process *stat)
{
	out->has_process[p] = stat->known;
	if (!stat->known)
		return;
	out->cell[TN_C1(PROCESS_CPU_SECONDS_TOTAL, p).cell] = stat->cpu_ns;
	set_cell(out, TN_G1(PROCESS_RESIDENT_MEMORY_BYTES, p), stat->resident_bytes);
	set_cell(out, TN_G1(PROCESS_VIRTUAL_MEMORY_BYTES, p), stat->virtual_bytes);
	set_cell(out, TN_G1(PROCESS_OPEN_FDS, p), stat->open_fds);
	set_cell(out, TN_G1(PROCESS_MAX_FDS, p), stat->max_fds);
	set_cell(out, TN_G1(PROCESS_START_TIME_SECONDS, p), stat->start_real_ns);
}

void cp_scrape(const struct cp_scrape_in *in, struct cp_snapshot *out)
{
	const struct shr_tele_ro *tele = in->tele;
	bool schema_ok = tele && cp_scrape_schema_ok(tele);

	memset(out, 0, sizeof *out);
	out->now_mono_ns = in->now_mono_ns;
	out->now_real_ns = in->now_real_ns;
	out->full = TENT_METRICS && (!tele || schema_ok);
	out->has_dp = out->full && schema_ok && tele->hdr.metrics_compiled;
	if (in->exemplars) /* before the cells: see exemplar.h */
		out->exemplars = *in->exemplars;

	tn_metric_fold(out->cell, in->own->cell, TN_OWNER_CP);
	if (out->has_dp) {
		for (uint32_t t = 0; t <= tele->lay.worker_cnt; t++)
			tn_metric_fold(out->cell, shr_tele_ro_cells(tele, t), TN_OWNER_DP);
		set_cell(out, TN_G1(WORKER_LAST_PROGRESS_TIMESTAMP_SECONDS, TN_WORKER_KIND_PROGRESS),
			 progress_of_workers(tele));
	}
	for (unsigned p = 0; p < TN_PROCESS_CNT; p++)
		add_process(out, p, &in->process[p]);

	set_cell(out, TN_G0(METRICS_BUILD_INFO), 1);
	set_cell(out, TN_G0(DATAPLANE_UP), in->dataplane_up);
	set_cell(out, TN_G0(METRICS_RUNTIME_ENABLED),
		 tele ? tn_load_relaxed32(&tele->live->recording) != 0 : in->recording);
}
