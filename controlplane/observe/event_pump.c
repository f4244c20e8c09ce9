/* SPDX-License-Identifier: Apache-2.0
 * The reader side of all event rings of one region. */
#include "controlplane/observe/event_pump.h"

#include <stdlib.h>
#include <string.h>

#include "common/log.h"

tn_status cp_event_pump_init(struct cp_event_pump *p, const char *mark_path)
{
	memset(p, 0, sizeof *p);
	p->mark.fd = -1;
	if (mark_path != NULL && cp_event_mark_open(&p->mark, mark_path) != TN_OK)
		tn_log_warn("events", "cannot keep %s: after a restart events are in the log twice", mark_path);
	p->round = calloc((size_t)CP_PUMP_RINGS_MAX * CP_PUMP_BATCH, sizeof *p->round);
	tn_text_init(&p->line, CP_PUMP_LINE_MAX);
	return p->round != NULL ? cp_recent_new(CP_RECENT_SLOTS, &p->recent) : TN_NO_MEMORY;
}

void cp_event_pump_close(struct cp_event_pump *p)
{
	free(p->round);
	cp_recent_free(p->recent);
	tn_text_free(&p->line);
	cp_event_mark_close(&p->mark);
	p->round = NULL;
	p->recent = NULL;
	p->reader_cnt = 0;
}

/* Goes on where a predecessor stopped in the same region. A mark beyond the ring's end is nonsense, and ignored. */
static void take_mark(struct cp_event_pump *p, uint32_t i)
{
	struct shr_event_reader *r = &p->reader[i];
	uint64_t at = p->mark.next[i];
	p->rendered[i] = 0;
	if (!tn_id128_eq(&p->mark.session, &p->session) || at > tn_load_relaxed64(&r->ring->tail))
		return;
	p->rendered[i] = at;
	r->next = TN_MIN(r->next, at); /* what was overwritten since then counts as missed */
}

void cp_event_pump_bind(struct cp_event_pump *p, const struct shr_tele_ro *tele, bool from_start)
{
	p->reader_cnt = 0;
	p->more = false;
	if (!tele)
		return;
	p->session = tele->hdr.session;
	p->generation = tele->hdr.generation;
	p->clock = (struct shr_event_clock){ tele->hdr.start_mono_ns, tele->hdr.start_real_ns };
	for (uint32_t t = 0; t <= tele->lay.worker_cnt; t++)
		for (unsigned keep = 0; keep < 2; keep++) {
			shr_event_reader_init(&p->reader[p->reader_cnt], tele, t, keep, from_start);
			take_mark(p, p->reader_cnt++);
		}
}

static int by_time(const void *a, const void *b)
{
	uint64_t x = ((const struct cp_pumped *)a)->ev.mono_ns, y = ((const struct cp_pumped *)b)->ev.mono_ns;
	return (x > y) - (x < y);
}

uint32_t cp_event_pump_read(struct cp_event_pump *p, struct cp_exemplars *exemplars, uint64_t missed_out[static 2])
{
	struct shr_event_shm batch[CP_PUMP_BATCH];
	uint32_t cnt = 0;
	p->more = false;
	missed_out[0] = missed_out[1] = 0;
	for (uint32_t i = 0; i < p->reader_cnt; i++) {
		struct shr_event_reader *r = &p->reader[i];
		uint64_t missed = r->missed;
		uint32_t got = shr_event_read(r, batch, CP_PUMP_BATCH);
		missed_out[i & 1] += r->missed - missed;
		p->more |= got == CP_PUMP_BATCH;
		for (uint32_t k = 0; k < got; k++) {
			cp_exemplar_offer(exemplars, &batch[k]);
			p->round[cnt++] = (struct cp_pumped){ batch[k], batch[k].seq / 2 - 1 < p->rendered[i] };
		}
	}
	cp_recent_lost(p->recent, missed_out[0] + missed_out[1]);
	return cnt;
}

static void remember(struct cp_event_pump *p)
{
	uint64_t next[CP_PUMP_RINGS_MAX] = { 0 };
	for (uint32_t i = 0; i < p->reader_cnt; i++)
		next[i] = TN_MAX(p->reader[i].next, p->rendered[i]);
	if (p->reader_cnt > 0)
		cp_event_mark_set(&p->mark, &p->session, next);
}

void cp_event_pump_render(struct cp_event_pump *p, uint32_t cnt, uint64_t now_ns, cp_line_sink sink, void *ctx)
{
	qsort(p->round, cnt, sizeof *p->round, by_time);
	for (uint32_t i = 0; i < cnt; i++) {
		const struct shr_event_shm *e = &p->round[i].ev;
		uint64_t suppressed;
		cp_recent_add(p->recent, e, &p->clock, p->generation);
		if (p->round[i].logged || !cp_log_limit_pass(&p->limit, e, now_ns, &suppressed))
			continue;
		tn_text_reset(&p->line);
		if (shr_event_json(e, &p->clock, suppressed, &p->line) && !p->line.failed)
			sink(ctx, p->line.p, p->line.len);
	}
	remember(p);
}
