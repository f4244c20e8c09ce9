/* SPDX-License-Identifier: Apache-2.0
 * The reader side of all event rings of one region. */
#include "controlplane/observe/event_pump.h"

#include <stdlib.h>
#include <string.h>

tn_status cp_event_pump_init(struct cp_event_pump *p)
{
	memset(p, 0, sizeof *p);
	p->round = calloc((size_t)CP_PUMP_RINGS_MAX * CP_PUMP_BATCH, sizeof *p->round);
	tn_text_init(&p->line, CP_PUMP_LINE_MAX);
	return p->round ? TN_OK : TN_NO_MEMORY;
}

void cp_event_pump_close(struct cp_event_pump *p)
{
	free(p->round);
	tn_text_free(&p->line);
	p->round = NULL;
	p->reader_cnt = 0;
}

void cp_event_pump_bind(struct cp_event_pump *p, const struct shr_tele_ro *tele, bool from_start)
{
	p->reader_cnt = 0;
	if (!tele)
		return;
	p->clock = (struct shr_event_clock){ tele->hdr.start_mono_ns, tele->hdr.start_real_ns };
	for (uint32_t t = 0; t <= tele->lay.worker_cnt; t++)
		for (unsigned keep = 0; keep < 2; keep++)
			shr_event_reader_init(&p->reader[p->reader_cnt++], tele, t, keep, from_start);
}

static int by_time(const void *a, const void *b)
{
	uint64_t x = ((const struct shr_event_shm *)a)->mono_ns, y = ((const struct shr_event_shm *)b)->mono_ns;
	return (x > y) - (x < y);
}

uint32_t cp_event_pump_read(struct cp_event_pump *p, struct cp_exemplars *exemplars, uint64_t missed_out[static 2])
{
	uint32_t cnt = 0;
	missed_out[0] = missed_out[1] = 0;
	for (uint32_t i = 0; i < p->reader_cnt; i++) {
		struct shr_event_reader *r = &p->reader[i];
		uint64_t missed = r->missed;
		cnt += shr_event_read(r, p->round + cnt, CP_PUMP_BATCH);
		missed_out[i & 1] += r->missed - missed;
	}
	for (uint32_t i = 0; i < cnt; i++)
		cp_exemplar_offer(exemplars, &p->round[i]);
	return cnt;
}

void cp_event_pump_render(struct cp_event_pump *p, uint32_t cnt, uint64_t now_ns, cp_line_sink sink, void *ctx)
{
	qsort(p->round, cnt, sizeof *p->round, by_time);
	for (uint32_t i = 0; i < cnt; i++) {
		uint64_t suppressed;
		if (!cp_log_limit_pass(&p->limit, &p->round[i], now_ns, &suppressed))
			continue;
		tn_text_reset(&p->line);
		if (shr_event_json(&p->round[i], &p->clock, suppressed, &p->line) && !p->line.failed)
			sink(ctx, p->line.p, p->line.len);
	}
}
