/* SPDX-License-Identifier: Apache-2.0
 * Two rings and their chains. A place is the number of an item within its ring, 0, 1, ...; each bucket of the index holds
 * the newest place of a chain plus one, each item the next older one. A chain ends where its next place was overwritten:
 * places only grow, so nothing is ever taken out of the index. */
#include "controlplane/observe/recent.h"

#include <stdlib.h>
#include <string.h>

#include "common/assert.h"
#include "common/trace.h"

enum { RARE, PLENTY, RINGS }; /* PLENTY: spans that were kept because they were sampled or slow */

struct ring {
	struct cp_recent_item *item;
	uint64_t *bucket[CP_RECENT_KEYS]; /* as many as items */
	uint64_t cnt;                     /* items ever added: the next place */
};

struct cp_recent {
	struct ring ring[RINGS];
	uint64_t mask;
	uint64_t last;
};

static tn_status ring_init(struct ring *g, uint32_t slots)
{
	g->item = calloc(slots, sizeof *g->item);
	bool ok = g->item != NULL;
	for (unsigned k = 0; k < CP_RECENT_KEYS; k++)
		ok &= (g->bucket[k] = calloc(slots, sizeof *g->bucket[k])) != NULL;
	return ok ? TN_OK : TN_NO_MEMORY;
}

tn_status cp_recent_new(uint32_t slots, struct cp_recent **out)
{
	tn_assert(slots > 0 && (slots & (slots - 1)) == 0);
	struct cp_recent *r = calloc(1, sizeof *r);
	if (r == NULL)
		return TN_NO_MEMORY;
	r->mask = slots - 1;
	for (unsigned i = 0; i < RINGS; i++)
		if (ring_init(&r->ring[i], slots) != TN_OK) {
			cp_recent_free(r);
			return TN_NO_MEMORY;
		}
	*out = r;
	return TN_OK;
}

void cp_recent_free(struct cp_recent *r)
{
	if (r == NULL)
		return;
	for (unsigned i = 0; i < RINGS; i++) {
		free(r->ring[i].item);
		for (unsigned k = 0; k < CP_RECENT_KEYS; k++)
			free(r->ring[i].bucket[k]);
	}
	free(r);
}

/* ---- the index ---- */

static uint64_t key_high(const struct shr_event_shm *ev, enum cp_recent_key key)
{
	return key == CP_RECENT_REQUEST ? ev->request_id : key == CP_RECENT_TASK ? ev->task_id : ev->trace_hi;
}

static uint64_t key_low(const struct shr_event_shm *ev, enum cp_recent_key key)
{
	return key == CP_RECENT_TRACE ? ev->trace_lo : 0;
}

static uint64_t bucket_of(const struct cp_recent *r, uint64_t a, uint64_t b)
{
	uint64_t h = a * UINT64_C(0x9e3779b97f4a7c15) ^ b;
	h = (h ^ h >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	return (h ^ h >> 31) & r->mask;
}

static bool is_plenty(const struct shr_event_shm *ev)
{
	return ev->retention == TN_RETENTION_HEAD_SAMPLED || ev->retention == TN_RETENTION_SLOW;
}

/* Item of a chain, NULL at its end. link: place + 1, or 0. */
static const struct cp_recent_item *at(const struct cp_recent *r, const struct ring *g, uint64_t link)
{
	return link != 0 && link + r->mask >= g->cnt ? &g->item[(link - 1) & r->mask] : NULL;
}

static const struct cp_recent_item *first(const struct cp_recent *r, const struct ring *g, enum cp_recent_key key,
					  uint64_t a, uint64_t b)
{
	return a | b ? at(r, g, g->bucket[key][bucket_of(r, a, b)]) : NULL;
}

static bool has(const struct cp_recent_item *i, enum cp_recent_key key, uint64_t a, uint64_t b)
{
	return key_high(&i->ev, key) == a && key_low(&i->ev, key) == b;
}

void cp_recent_add(struct cp_recent *r, const struct shr_event_shm *ev, const struct shr_event_clock *clock, uint64_t engine)
{
	struct ring *g = &r->ring[is_plenty(ev) ? PLENTY : RARE];
	struct cp_recent_item *i = &g->item[g->cnt & r->mask];
	*i = (struct cp_recent_item){
		.ev = *ev, .number = ++r->last, .engine = engine,
		.real_ns = clock->real_ns + (ev->mono_ns - clock->mono_ns),
	};
	g->cnt++;
	for (unsigned k = 0; k < CP_RECENT_KEYS; k++) {
		uint64_t *b = &g->bucket[k][bucket_of(r, key_high(ev, k), key_low(ev, k))];
		i->older[k] = *b;
		*b = g->cnt;
	}
}

void cp_recent_lost(struct cp_recent *r, uint64_t cnt)
{
	r->last += cnt;
}

/* ---- reading ---- */

uint64_t cp_recent_last(const struct cp_recent *r)
{
	return r->last;
}

static const struct cp_recent_item *ring_after(const struct cp_recent *r, const struct ring *g, uint64_t number)
{
	uint64_t low = g->cnt > r->mask + 1 ? g->cnt - r->mask - 1 : 0, high = g->cnt;
	while (low < high) { /* numbers grow with places */
		uint64_t middle = low + (high - low) / 2;
		if (g->item[middle & r->mask].number > number)
			high = middle;
		else
			low = middle + 1;
	}
	return low < g->cnt ? &g->item[low & r->mask] : NULL;
}

const struct cp_recent_item *cp_recent_after(const struct cp_recent *r, uint64_t number)
{
	const struct cp_recent_item *x = ring_after(r, &r->ring[RARE], number), *y = ring_after(r, &r->ring[PLENTY], number);
	return x == NULL || (y != NULL && y->number < x->number) ? y : x;
}

const struct cp_recent_item *cp_recent_newest(const struct cp_recent *r, enum cp_recent_key key, uint64_t a, uint64_t b)
{
	const struct cp_recent_item *newest = NULL;
	for (unsigned g = 0; g < RINGS; g++) {
		const struct cp_recent_item *i = first(r, &r->ring[g], key, a, b);
		while (i != NULL && !has(i, key, a, b))
			i = at(r, &r->ring[g], i->older[key]);
		if (i != NULL && (newest == NULL || i->number > newest->number))
			newest = i;
	}
	return newest;
}

/* Into its place among those collected; when there is no room, the one with the greatest number falls out. */
static void insert(struct cp_recent_set *set, const struct cp_recent_item *i)
{
	uint32_t place = set->cnt;
	while (place > 0 && set->item[place - 1]->number > i->number)
		place--;
	if (place > 0 && set->item[place - 1] == i)
		return;
	bool full = set->cnt == set->max;
	set->more |= full;
	if (place == set->max)
		return;
	memmove(&set->item[place + 1], &set->item[place], (set->cnt - place - full) * sizeof set->item[0]);
	set->item[place] = i;
	set->cnt += !full;
}

void cp_recent_collect(const struct cp_recent *r, enum cp_recent_key key, uint64_t a, uint64_t b, struct cp_recent_set *set)
{
	tn_assert(set->max <= CP_RECENT_SET_MAX);
	for (unsigned g = 0; g < RINGS; g++)
		for (const struct cp_recent_item *i = first(r, &r->ring[g], key, a, b); i != NULL;
		     i = at(r, &r->ring[g], i->older[key])) {
			bool fits = has(i, key, a, b) && i->number > set->after && (set->engine == 0 || i->engine == set->engine);
			if (fits && i->ev.kind < 64 && (set->kinds >> i->ev.kind & 1) != 0)
				insert(set, i);
		}
}
