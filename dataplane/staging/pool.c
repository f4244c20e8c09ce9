/* SPDX-License-Identifier: Apache-2.0
 * Chunks and turns. Nothing here knows what a copy or a transport is. One worker, but for init. */
#include "dataplane/staging/pool.h"

#include "common/assert.h"
#include "shm-ring/layout.h"

bool dp_stage_split(uint64_t bytes, uint64_t chunk_bytes, uint32_t workers, uint64_t *chunk_out, uint32_t *cnt_out)
{
	uint64_t share = bytes / workers / SHR_PAGE * SHR_PAGE;
	uint64_t chunk = TN_MIN(chunk_bytes / SHR_PAGE * SHR_PAGE, share);
	if (chunk == 0)
		return false;
	*chunk_out = chunk;
	*cnt_out = (uint32_t)TN_MIN(share / chunk, (uint64_t)DP_STAGE_CHUNKS_MAX);
	return true;
}

void dp_stage_area_init(struct dp_stage_area *a, tn_handle memory, uint64_t chunk_bytes, uint32_t first, uint32_t cnt)
{
	*a = (struct dp_stage_area){ .memory = memory, .chunk_bytes = chunk_bytes, .first = first, .cnt = cnt };
	a->free = cnt == 64 ? UINT64_MAX : (UINT64_C(1) << cnt) - 1;
	tn_list_init(&a->link);
	for (unsigned p = 0; p < TN_PRIORITY_CNT; p++)
		tn_list_init(&a->tasks[p]);
	for (uint32_t i = 0; i < cnt; i++)
		tn_list_init(&a->pieces[i].link);
}

/* ---- turns ---- */

static uint32_t free_cnt(const struct dp_stage_area *a) { return (uint32_t)__builtin_popcountll(a->free); }

static bool wants(const struct dp_stage_task *t) { return !t->over && t->next_off < t->owner->bytes; }

void dp_stage_enter(struct dp_stage_area *a, struct dp_stage_task *t)
{
	if (wants(t) && !tn_list_linked(&t->link))
		tn_list_push_back(&a->tasks[t->owner->priority], &t->link);
}

/* Who is passed over because it holds many comes back with the first of them. */
static struct dp_stage_task *next_task(struct dp_stage_area *a)
{
	for (unsigned p = 0; p < TN_PRIORITY_CNT; p++) {
		struct tn_list *node;
		while ((node = tn_list_pop_front(&a->tasks[p]))) {
			struct dp_stage_task *t = tn_list_entry(node, struct dp_stage_task, link);
			if (t->held == 0 || t->held < free_cnt(a))
				return t;
		}
	}
	return NULL;
}

struct dp_stage_piece *dp_stage_take(struct dp_stage_area *a)
{
	struct dp_stage_task *t = a->free ? next_task(a) : NULL;
	if (!t)
		return NULL;
	unsigned i = (unsigned)__builtin_ctzll(a->free);
	struct dp_stage_piece *p = &a->pieces[i];
	a->free &= ~(UINT64_C(1) << i);
	p->task = t;
	p->off = t->next_off;
	p->bytes = TN_MIN(a->chunk_bytes, t->owner->bytes - t->next_off);
	t->next_off += p->bytes;
	t->held++;
	dp_stage_enter(a, t);
	return p;
}

void dp_stage_give(struct dp_stage_area *a, struct dp_stage_piece *p)
{
	struct dp_stage_task *t = p->task;
	tn_assert(!tn_list_linked(&p->link) && t->held > 0);
	dp_stage_move(p, DP_STAGE_FREE);
	p->task = NULL;
	p->asked = false;
	a->free |= UINT64_C(1) << (p - a->pieces);
	t->held--;
	dp_stage_enter(a, t);
}

/* ---- copies ---- */

uint64_t dp_stage_tag(const struct dp_stage_area *a, const struct dp_stage_piece *p, uint32_t worker)
{
	return (uint64_t)worker << 56 | (uint64_t)(a->first + (uint32_t)(p - a->pieces)) << 32 | p->seq;
}

struct dp_stage_piece *dp_stage_asked(struct dp_stage_area *a, uint64_t tag)
{
	uint32_t chunk = dp_stage_tag_chunk(tag);
	if (chunk < a->first || chunk - a->first >= a->cnt)
		return NULL;
	struct dp_stage_piece *p = &a->pieces[chunk - a->first];
	return p->asked && p->seq == (uint32_t)tag ? p : NULL;
}

uint64_t dp_stage_chunk_off(const struct dp_stage_area *a, const struct dp_stage_piece *p)
{
	return (a->first + (uint64_t)(p - a->pieces)) * a->chunk_bytes;
}

/* ---- states ---- */

#define X(n, s) #s,
static const char *const names[] = { DP_STAGE_STATES(X) };
#undef X
#define X(f, t, when) { DP_STAGE_##f, DP_STAGE_##t, when },
static const struct dp_move_row moves[] = { DP_STAGE_MOVES(X) };
#undef X
#define X(f, t, when) | UINT64_C(1) << (DP_STAGE_##f * 8 + DP_STAGE_##t)
static const uint64_t allowed = UINT64_C(0) DP_STAGE_MOVES(X);
#undef X

void dp_stage_move(struct dp_stage_piece *p, enum dp_stage_state to)
{
	tn_assert(allowed >> (p->state * 8u + to) & 1);
	DP_MOVE_SEEN(&dp_stage_machine, p->state, to);
	p->state = (uint8_t)to;
}

const struct dp_machine dp_stage_machine = {
	"piece", "A part of a staged owner and the staging buffer that it passes through.", names, TN_ARRAY_LEN(names), moves,
	TN_ARRAY_LEN(moves),
};
