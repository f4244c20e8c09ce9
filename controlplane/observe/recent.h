/* SPDX-License-Identifier: Apache-2.0
 * The events and spans that came lately, for whoever asks afterwards: two bounded rings, so that sampled spans, which may
 * be many, never push failures out, and an index by request, by task (the owner that carried it) and by trace. Every
 * record gets a number; numbers also count what was lost before it came here, so a reader who goes by number knows how
 * many it did not get. Loop thread only. */
#ifndef CP_OBSERVE_RECENT_H
#define CP_OBSERVE_RECENT_H

#include <stdbool.h>
#include <stdint.h>

#include "common/status.h"
#include "shm-ring/abi.h"
#include "shm-ring/event_json.h"

#define CP_RECENT_SLOTS 8192u /* of each ring: 1.5 MiB, touched as they fill */

enum cp_recent_key { CP_RECENT_REQUEST, CP_RECENT_TASK, CP_RECENT_TRACE, CP_RECENT_KEYS };

struct cp_recent_item {
	struct shr_event_shm ev;
	uint64_t number;                /* 1, 2, ... as they came */
	uint64_t real_ns;               /* ev.mono_ns as real time */
	uint64_t engine;                /* generation of the data plane it is from: request ids are unique in one */
	uint64_t older[CP_RECENT_KEYS]; /* of the same bucket; recent.c */
};

struct cp_recent;

/* slots: of each ring, a power of two. TN_OK or TN_NO_MEMORY. */
TN_MUST_USE tn_status cp_recent_new(uint32_t slots, struct cp_recent **out);
void cp_recent_free(struct cp_recent *r); /* accepts NULL */

/* One more; clock and engine are of the region it was read from. */
void cp_recent_add(struct cp_recent *r, const struct shr_event_shm *ev, const struct shr_event_clock *clock, uint64_t engine);
/* So many were overwritten before they could be read. */
void cp_recent_lost(struct cp_recent *r, uint64_t cnt);

/* The number given last, lost ones included; 0: none yet. */
uint64_t cp_recent_last(const struct cp_recent *r);
/* The oldest that is still here with a greater number; NULL: none. Valid until the next add. */
const struct cp_recent_item *cp_recent_after(const struct cp_recent *r, uint64_t number);
/* The newest with this key (b: only of traces, whose low half it is); NULL: none. */
const struct cp_recent_item *cp_recent_newest(const struct cp_recent *r, enum cp_recent_key key, uint64_t a, uint64_t b);

/* What a search collects: the oldest `max` of what fits, in the order of their numbers. */
#define CP_RECENT_SET_MAX 64u
struct cp_recent_set {
	uint64_t after;                 /* only greater numbers */
	uint64_t engine;                /* only of this one; 0: of any */
	uint64_t kinds;                 /* bits (1 << enum shr_event_kind) */
	uint32_t max, cnt;              /* max <= CP_RECENT_SET_MAX */
	bool more;                      /* others fit, with numbers above those collected */
	const struct cp_recent_item *item[CP_RECENT_SET_MAX];
};
/* Adds what has this key to the set; what is in it already is not added twice. */
void cp_recent_collect(const struct cp_recent *r, enum cp_recent_key key, uint64_t a, uint64_t b, struct cp_recent_set *set);

#endif
