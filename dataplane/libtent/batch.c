/* SPDX-License-Identifier: Apache-2.0
 * The table of a queue pair's batches: a fixed array with hash chains over the open ones. An entry lives while it is
 * open with something to remember, or while members or its notice are outstanding. */
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

/* Frees an entry that has nothing left to tell. */
static void drop_if_spent(struct lt_batches *t, uint32_t batch)
{
	struct lt_batch *b = &t->entries[batch];

	if (b->members != 0 || b->notice || (b->failed && !b->closed))
		return;
	if (!b->closed)
		unchain(t, b->number);
	b->next = t->free;
	t->free = batch;
}

uint32_t lt_batch_join(struct lt_batches *t, uint32_t number)
{
	uint32_t batch = *find_link(t, number);

	if (batch == LT_BATCH_NONE) {
		batch = t->free;
		if (batch == LT_BATCH_NONE)
			return LT_BATCH_NONE;
		uint32_t *chain = &t->chains[chain_of(t, number)];
		t->free = t->entries[batch].next;
		t->entries[batch] = (struct lt_batch){ .number = number, .next = *chain };
		*chain = batch;
	}
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
	drop_if_spent(t, batch);
}

uint32_t lt_batch_close(struct lt_batches *t, uint32_t number)
{
	uint32_t batch = *find_link(t, number);

	if (batch == LT_BATCH_NONE)
		return LT_BATCH_NONE;
	unchain(t, number);
	t->entries[batch].closed = true;
	t->entries[batch].notice = true;
	return batch;
}

void lt_batch_finish(struct lt_batches *t, uint32_t batch)
{
	t->entries[batch].notice = false;
	drop_if_spent(t, batch);
}

void lt_batches_forget_dataplane(struct lt_batches *t)
{
	/* Unused entries are overwritten when they are taken, so touching them too is harmless. */
	for (uint32_t i = 0; i < t->cap; i++)
		t->entries[i].failed_unseen |= t->entries[i].failed;
}
