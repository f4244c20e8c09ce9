/* SPDX-License-Identifier: Apache-2.0
 * The table of a queue pair's batches: a fixed array with hash chains over the open ones. An entry lives until its
 * notice is terminal. Applications may number batches and never notify: of the open ones whose members all completed,
 * the oldest goes when room is needed. */
#include "dataplane/libtent/batch.h"

#include <stdlib.h>

#include "common/assert.h"

static uint32_t chain_of(const struct lt_batches *t, uint32_t number)
{
	return number * 2654435761u >> 16 & (t->cap - 1); /* Knuth's multiplicative hash */
}

tn_status lt_batches_init(struct lt_batches *t, uint32_t cap)
{
	t->entries = calloc(cap, sizeof *t->entries);
	t->chains = malloc(cap * sizeof *t->chains);
	t->cap = cap;
	t->free = 0;
	t->idle_first = t->idle_last = LT_BATCH_NONE;
	t->evicted = false;
	if (t->entries == NULL || t->chains == NULL) {
		lt_batches_destroy(t);
		return TN_NO_MEMORY;
	}
	for (uint32_t i = 0; i < cap; i++) {
		t->entries[i].next = i + 1 < cap ? i + 1 : LT_BATCH_NONE;
		t->chains[i] = LT_BATCH_NONE;
	}
	return TN_OK;
}

void lt_batches_destroy(struct lt_batches *t)
{
	free(t->entries);
	free(t->chains);
	t->entries = NULL;
	t->chains = NULL;
}

/* Where the link to the open batch `number` stands; *link is LT_BATCH_NONE when there is none. */
static uint32_t *find_link(struct lt_batches *t, uint32_t number)
{
	uint32_t *link = &t->chains[chain_of(t, number)];

	while (*link != LT_BATCH_NONE && t->entries[*link].number != number)
		link = &t->entries[*link].next;
	return link;
}

static void unchain(struct lt_batches *t, uint32_t number)
{
	uint32_t *link = find_link(t, number);

	*link = t->entries[*link].next;
}

static void idle_push(struct lt_batches *t, uint32_t batch)
{
	struct lt_batch *b = &t->entries[batch];

	b->idle = true;
	b->idle_prev = t->idle_last;
	b->idle_next = LT_BATCH_NONE;
	*(t->idle_last == LT_BATCH_NONE ? &t->idle_first : &t->entries[t->idle_last].idle_next) = batch;
	t->idle_last = batch;
}

static void idle_remove(struct lt_batches *t, uint32_t batch)
{
	struct lt_batch *b = &t->entries[batch];

	if (!b->idle)
		return;
	b->idle = false;
	*(b->idle_prev == LT_BATCH_NONE ? &t->idle_first : &t->entries[b->idle_prev].idle_next) = b->idle_next;
	*(b->idle_next == LT_BATCH_NONE ? &t->idle_last : &t->entries[b->idle_next].idle_prev) = b->idle_prev;
}

static void give_entry(struct lt_batches *t, uint32_t batch)
{
	t->entries[batch].next = t->free;
	t->free = batch;
}

static void evict_oldest(struct lt_batches *t)
{
	uint32_t batch = t->idle_first;

	if (batch == LT_BATCH_NONE)
		return;
	idle_remove(t, batch);
	unchain(t, t->entries[batch].number);
	give_entry(t, batch);
	t->evicted = true;
}

/* A member or the notice ended: what is left to remember? */
static void settle(struct lt_batches *t, uint32_t batch)
{
	const struct lt_batch *b = &t->entries[batch];

	if (b->members != 0 || b->notice)
		return;
	if (b->closed)
		give_entry(t, batch);
	else if (!b->failed)
		idle_push(t, batch);
}

uint32_t lt_batch_join(struct lt_batches *t, uint32_t number, uint64_t now_ns)
{
	uint32_t batch = *find_link(t, number);

	if (batch == LT_BATCH_NONE) {
		if (t->free == LT_BATCH_NONE)
			evict_oldest(t);
		batch = t->free;
		if (batch == LT_BATCH_NONE)
			return LT_BATCH_NONE;
		uint32_t *chain = &t->chains[chain_of(t, number)];
		t->free = t->entries[batch].next;
		t->entries[batch] = (struct lt_batch){ .number = number, .next = *chain, .begin_ns = now_ns };
		*chain = batch;
	}
	idle_remove(t, batch);
	t->entries[batch].members++;
	return batch;
}

void lt_batch_leave(struct lt_batches *t, uint32_t batch, bool completed, bool seen)
{
	struct lt_batch *b = &t->entries[batch];

	tn_assert(b->members > 0);
	b->members--;
	if (!completed) {
		b->failed = true;
		b->failed_unseen |= !seen;
	}
	settle(t, batch);
}

uint32_t lt_batch_close(struct lt_batches *t, uint32_t number, uint64_t now_ns, uint64_t *begin_out)
{
	uint32_t batch = *find_link(t, number);

	if (batch == LT_BATCH_NONE) {
		*begin_out = t->evicted ? 0 : now_ns;
		return LT_BATCH_NONE;
	}
	idle_remove(t, batch);
	unchain(t, number);
	*begin_out = t->entries[batch].begin_ns;
	t->entries[batch].closed = true;
	t->entries[batch].notice = true;
	return batch;
}

void lt_batch_finish(struct lt_batches *t, uint32_t batch)
{
	t->entries[batch].notice = false;
	settle(t, batch);
}

void lt_batches_forget_dataplane(struct lt_batches *t)
{
	/* Unused entries are overwritten when they are taken, so touching them too is harmless. */
	for (uint32_t i = 0; i < t->cap; i++)
		t->entries[i].failed_unseen |= t->entries[i].failed;
}
