/* SPDX-License-Identifier: Apache-2.0
 * Handle tables: slot array with an intrusive free list. A slot's generation advances when it is freed, so a handle
 * that outlives its object misses. Control thread. */
#include "dataplane/segment/handles.h"

#include <stdlib.h>

#define SLOTS_FIRST 64u
#define NO_SLOT UINT32_MAX

void dp_handles_init(struct dp_handles *t, uint32_t max)
{
	*t = (struct dp_handles){ .max = max, .free_head = NO_SLOT };
}

void dp_handles_fini(struct dp_handles *t)
{
	free(t->slots);
	dp_handles_init(t, 0);
}

static tn_status grow(struct dp_handles *t)
{
	uint32_t cap = t->cap == 0 ? TN_MIN(SLOTS_FIRST, t->max) : t->cap > t->max / 2 ? t->max : t->cap * 2;
	struct dp_handle_slot *slots;

	if (cap <= t->cap)
		return TN_LIMIT;
	slots = realloc(t->slots, cap * sizeof *slots);
	if (slots == NULL)
		return TN_NO_MEMORY;
	/* Chained so that the lowest index is handed out first. */
	for (uint32_t i = cap; i-- > t->cap;) {
		slots[i] = (struct dp_handle_slot){ .generation = 1, .next_free = t->free_head };
		t->free_head = i;
	}
	t->slots = slots;
	t->cap = cap;
	return TN_OK;
}

tn_status dp_handles_add(struct dp_handles *t, void *object, tn_handle *handle_out)
{
	struct dp_handle_slot *slot;
	uint32_t index;

	if (t->free_head == NO_SLOT) {
		tn_status s = grow(t);
		if (s != TN_OK)
			return s;
	}
	index = t->free_head;
	slot = &t->slots[index];
	t->free_head = slot->next_free;
	slot->object = object;
	t->used++;
	*handle_out = tn_handle_make(index, slot->generation);
	return TN_OK;
}

void *dp_handles_get(const struct dp_handles *t, tn_handle h)
{
	uint32_t index = tn_handle_index(h);

	if (index >= t->cap || t->slots[index].generation != tn_handle_generation(h))
		return NULL;
	return t->slots[index].object;
}

void *dp_handles_remove(struct dp_handles *t, tn_handle h)
{
	void *object = dp_handles_get(t, h);
	struct dp_handle_slot *slot;

	if (object == NULL)
		return NULL;
	slot = &t->slots[tn_handle_index(h)];
	slot->object = NULL;
	if (++slot->generation == 0)
		slot->generation = 1;
	slot->next_free = t->free_head;
	t->free_head = tn_handle_index(h);
	t->used--;
	return object;
}
