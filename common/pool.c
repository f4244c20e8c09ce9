/* SPDX-License-Identifier: Apache-2.0
 * Set-up and tear-down of fixed pools; everything on the hot path is in pool.h. Slow threads, at start and stop. */
#include "common/pool.h"

#include <stdlib.h>
#include <string.h>

#include "common/bits.h"
#include "common/hook.h"

tn_status tn_pool_init(struct tn_pool *pool, uint32_t capacity, size_t object_bytes)
{
	*pool = (struct tn_pool){ .free_head = TN_POOL_NONE };
	uint64_t stride, bytes;
	if (capacity == 0 || capacity == TN_POOL_NONE || object_bytes == 0 ||
	    !tn_align_up_checked(object_bytes, TN_CACHE_LINE, &stride) || !tn_mul_checked(stride, capacity, &bytes) ||
	    bytes > PTRDIFF_MAX)
		return TN_INVALID;
	if (TN_HOOK_FAIL(pool_init))
		return TN_NO_MEMORY;
	struct tn_pool_slot *slots = calloc(capacity, sizeof *slots);
	uint8_t *objects = slots != NULL ? aligned_alloc(TN_CACHE_LINE, bytes) : NULL;
	if (objects == NULL) {
		free(slots);
		return TN_NO_MEMORY;
	}
	memset(objects, 0, bytes);   /* also faults every page in, so that no later get does */
	for (uint32_t i = 0; i < capacity; i++)
		slots[i].next_free = i + 1 < capacity ? i + 1 : TN_POOL_NONE;
	*pool = (struct tn_pool){ .objects = objects, .slots = slots, .stride_bytes = stride, .capacity = capacity };
	return TN_OK;
}

void tn_pool_fini(struct tn_pool *pool)
{
	free(pool->objects);
	free(pool->slots);
	*pool = (struct tn_pool){ .free_head = TN_POOL_NONE };
}
