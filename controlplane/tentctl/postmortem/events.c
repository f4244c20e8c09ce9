/* SPDX-License-Identifier: Apache-2.0
 * The last events of a region: of each ring the youngest, all merged by time. The rings may still be written. */
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/message.h"
#include "common/reject.h"
#include "controlplane/tentctl/postmortem/postmortem.h"
#include "shm-ring/event_json.h"
#include "shm-ring/events.h"

enum { BATCH = 64, LINE_MAX_BYTES = 8192 };

struct entry { struct shr_event_shm ev; uint32_t thread; bool keep; uint64_t order; };

struct collection {
	struct entry *item;      /* room for events_max per ring */
	size_t cnt;
	uint64_t written, overwritten;
};

static bool wanted(const struct shr_event_shm *ev, const struct tctl_postmortem_cfg *cfg)
{
	const struct shr_event_form *form = shr_event_form(ev->kind);
	return form != NULL && (cfg->spans || !(form->fields & SHR_EVF_SPAN));
}

/* The youngest events_max of one ring, in order, at c->item[c->cnt]. */
static void read_ring(struct collection *c, const struct tctl_region *r, const struct tctl_postmortem_cfg *cfg,
		      uint32_t thread, bool keep)
{
	struct shr_event_reader reader;
	struct shr_event_shm batch[BATCH];
	struct entry *base = c->item + c->cnt;
	size_t seen = 0;
	uint32_t got;
	shr_event_reader_init(&reader, &r->ro, thread, keep, false);
	c->overwritten += reader.next;
	while ((got = shr_event_read(&reader, batch, BATCH)) > 0)
		for (uint32_t i = 0; i < got; i++)
			if (wanted(&batch[i], cfg)) {
				base[seen % cfg->events_max] = (struct entry){ batch[i], thread, keep, seen };
				seen++;
			}
	c->overwritten += reader.missed;
	c->written += reader.next;
	c->cnt += TN_MIN(seen, (size_t)cfg->events_max);
}

static int by_time(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;
	if (x->ev.mono_ns != y->ev.mono_ns)
		return x->ev.mono_ns < y->ev.mono_ns ? -1 : 1;
	return x->order < y->order ? -1 : x->order > y->order;
}

static json_t *entry_json(const struct tctl_region *r, const struct entry *e, uint64_t end_ns, struct tn_text *line)
{
	const struct shr_event_clock clock = { r->ro.hdr.start_mono_ns, r->ro.hdr.start_real_ns };
	tn_text_reset(line);
	if (!shr_event_json(&e->ev, &clock, e->ev.suppressed, line) || line->failed)
		return NULL;
	json_t *j = json_loadb(line->p, line->len, 0, NULL);
	if (j == NULL)
		return NULL; /* a damaged record with numbers that JSON readers do not take */
	bool worker = e->thread < r->ro.lay.worker_cnt;
	json_object_set_new(j, "thread", worker ? json_sprintf("worker %u", e->thread) : json_string("control"));
	tn_json_put_str(j, "ring", e->keep ? "keep" : "log");
	json_object_set_new(j, "us_from_end",
			    json_integer((json_int_t)((int64_t)(e->ev.mono_ns - end_ns) / (int64_t)TN_NS_PER_US)));
	bool of_peer = e->ev.kind == SHR_EVENT_LANE_DOWN || e->ev.kind == SHR_EVENT_PEER_SESSION;
	if (of_peer && e->ev.arg == UINT32_MAX)
		tn_json_put_str(j, "peer", "this host");
	else if (of_peer)
		tn_json_put_u64(j, "peer_index", e->ev.arg);
	if (e->ev.kind == SHR_EVENT_SELECTION_FAILED) {
		char text[TN_REJECT_TEXT];
		tn_json_put_str(j, "rejected", tn_reject_text(e->ev.arg, text));
	}
	if (e->ev.kind == SHR_EVENT_STATE)
		tn_json_put_str(j, "state", tctl_tele_state_text((unsigned)TN_MIN(e->ev.arg, (uint64_t)UINT8_MAX)));
	return j;
}

json_t *tctl_postmortem_events(const struct tctl_region *r, const struct tctl_postmortem_cfg *cfg, uint64_t end_ns)
{
	json_t *doc = json_object(), *list = json_array();
	uint32_t rings = 2 * (r->ro.lay.worker_cnt + 1);
	struct collection c = { .item = cfg->events_max > 0 ? calloc((size_t)rings * cfg->events_max, sizeof *c.item)
							    : NULL };
	struct tn_text line;
	tn_text_init(&line, LINE_MAX_BYTES);
	if (c.item != NULL) {
		for (uint32_t t = 0; t <= r->ro.lay.worker_cnt; t++)
			for (unsigned keep = 0; keep < 2; keep++)
				read_ring(&c, r, cfg, t, keep != 0);
		qsort(c.item, c.cnt, sizeof *c.item, by_time);
	}
	for (size_t i = c.cnt > cfg->events_max ? c.cnt - cfg->events_max : 0; i < c.cnt; i++) {
		json_t *j = entry_json(r, &c.item[i], end_ns, &line);
		if (j != NULL)
			json_array_append_new(list, j);
	}
	tn_text_free(&line);
	free(c.item);
	tn_json_put_u64(doc, "written", c.written);
	tn_json_put_u64(doc, "overwritten", c.overwritten);
	json_object_set_new(doc, "last", list);
	return doc;
}
