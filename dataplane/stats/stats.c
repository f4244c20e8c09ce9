/* SPDX-License-Identifier: Apache-2.0
 * Binding of a worker to its cells, state block and rings, and the hot thresholds. Set-up by the control thread before
 * the worker starts; everything else by the worker. */
#include "dataplane/stats/stats.h"

#include <stdlib.h>
#include <string.h>

#include "shm-ring/telemetry.h"

static tn_status bind_private(struct dp_stats *s)
{
	size_t cell_bytes = (TN_METRIC_CELL_CNT * sizeof(tn_a64) + TN_CACHE_LINE - 1) / TN_CACHE_LINE * TN_CACHE_LINE;
	size_t bytes = cell_bytes + sizeof(struct shr_worker_shm);
	char *mem = calloc(1, bytes);
	if (!mem)
		return TN_NO_MEMORY;
	s->private_mem = mem;
	tn_metrics_bind(&s->m, (tn_a64 *)(void *)mem, true);
	s->block = (struct shr_worker_shm *)(void *)(mem + cell_bytes);
	return TN_OK;
}

tn_status dp_stats_init(struct dp_stats *s, const struct shr_tele *tele, uint32_t worker, const struct tn_config *cfg,
			uint64_t trace_seed)
{
	*s = (struct dp_stats){ .trace_seed = trace_seed };
	if (tele) {
		tn_metrics_bind(&s->m, shr_tele_cells(tele, worker), true);
		s->block = shr_tele_worker(tele, worker);
		s->recording = &tele->hdr->recording;
		shr_event_writer_init(&s->log, tele, worker, false);
		shr_event_writer_init(&s->keep, tele, worker, true);
		s->events = true;
	} else if (bind_private(s) != TN_OK) {
		return TN_NO_MEMORY;
	}
	dp_tally_init(&s->tally, &s->m);
	dp_stats_tune(s, cfg);
	return TN_OK;
}

void dp_stats_destroy(struct dp_stats *s)
{
	free(s->private_mem);
	*s = (struct dp_stats){ 0 };
}

void dp_stats_tune(struct dp_stats *s, const struct tn_config *cfg)
{
	s->slow_ns = tn_config_ns(cfg, TN_CFG_OBS_SLOW_REQUEST_THRESHOLD_US);
	s->stuck_ns = tn_config_ns(cfg, TN_CFG_OBS_STUCK_REQUEST_THRESHOLD_US);
	s->trace_slow_ns = tn_config_ns(cfg, TN_CFG_OBS_TRACE_SLOW_THRESHOLD_US);
	s->sample_ppm = (uint32_t)tn_config_u64(cfg, TN_CFG_OBS_TRACE_SAMPLE_RATE_PPM);
	s->config_generation = (uint32_t)tn_config_generation(cfg);
}

void dp_stats_follow_switch(struct dp_stats *s)
{
	if (s->recording)
		tn_metrics_switch(&s->m, tn_load_relaxed32(s->recording) != 0);
}
