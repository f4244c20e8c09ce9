/* SPDX-License-Identifier: Apache-2.0
 * Fixed number of objects of one size behind {index, generation} handles. All memory is taken and touched at start; get
 * and put are O(1) and never allocate. A handle from before a put is stale: lookup says NULL, also for handles that a
 * stranger made up. One owner thread per pool. */
#ifndef TN_POOL_H
#define TN_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/assert.h"
#include "common/compiler.h"
#include "common/ids.h"
#include "common/status.h"

#define TN_POOL_NONE UINT32_MAX

/* Generations count gets and puts: a live slot's is odd (never 0), a free slot's is even and matches no handle. */
struct tn_pool_slot { uint32_t generation, next_free; };

struct tn_pool {
	uint8_t *objects;
	struct tn_pool_slot *slots;
	size_t stride_bytes;
	uint32_t capacity, live_cnt, free_head;
};

/* capacity: 1 .. 2^32-2 objects of object_bytes >= 1, each starting on a cache line, zeroed once.
 * TN_INVALID: a zero or too large argument; TN_NO_MEMORY. The pool is then empty: get and lookup give NULL. */
TN_MUST_USE tn_status tn_pool_init(struct tn_pool *pool, uint32_t capacity, size_t object_bytes);
/* Frees everything, live objects too; harmless on a zeroed pool. */
void tn_pool_fini(struct tn_pool *pool);

/* The object at an index below capacity, live or not. */
TN_INLINE void *tn_pool_at(const struct tn_pool *pool, uint32_t index)
{
	return pool->objects + index * pool->stride_bytes;
}

/* A free object and its handle, or NULL when all are in use. The content is what its last user left. */
TN_INLINE void *tn_pool_get(struct tn_pool *pool, tn_handle *handle_out)
{
	uint32_t index = pool->free_head;
	if (tn_unlikely(index == TN_POOL_NONE))
		return NULL;
	struct tn_pool_slot *slot = &pool->slots[index];
	pool->free_head = slot->next_free;
	pool->live_cnt++;
	slot->generation++;
	*handle_out = tn_handle_make(index, slot->generation);
	return tn_pool_at(pool, index);
}

/* The live object of a handle; NULL when stale, free or made up. */
TN_INLINE void *tn_pool_lookup(const struct tn_pool *pool, tn_handle handle)
{
	uint32_t index = tn_handle_index(handle), generation = tn_handle_generation(handle);
	if (tn_unlikely(index >= pool->capacity || pool->slots[index].generation != generation || (generation & 1) == 0))
		return NULL;
	return tn_pool_at(pool, index);
}

/* Gives a live object back; its handle is stale from here on. A stale handle is our own bug. */
TN_INLINE void tn_pool_put(struct tn_pool *pool, tn_handle handle)
{
	uint32_t index = tn_handle_index(handle);
	tn_assert(tn_pool_lookup(pool, handle) != NULL);
	pool->slots[index].generation++;
	pool->slots[index].next_free = pool->free_head;
	pool->free_head = index;
	pool->live_cnt--;
}

/* The index and handle of an object of this pool; it is live. */
TN_INLINE uint32_t tn_pool_index_of(const struct tn_pool *pool, const void *object)
{
	return (uint32_t)((size_t)((const uint8_t *)object - pool->objects) / pool->stride_bytes);
}
TN_INLINE tn_handle tn_pool_handle_of(const struct tn_pool *pool, const void *object)
{
	uint32_t index = tn_pool_index_of(pool, object);
	return tn_handle_make(index, pool->slots[index].generation);
}

/* Walks the live objects in index order: start with *cursor = 0; NULL at the end. Objects may be put meanwhile. */
TN_INLINE void *tn_pool_next(const struct tn_pool *pool, uint32_t *cursor)
{
	while (*cursor < pool->capacity) {
		uint32_t index = (*cursor)++;
		if (pool->slots[index].generation & 1)
			return tn_pool_at(pool, index);
	}
	return NULL;
}

#endif
