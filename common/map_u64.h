/* SPDX-License-Identifier: Apache-2.0
 * Hash map from uint64_t to uint64_t (or a pointer) for keys that others choose: the hash is seeded, so that nobody can
 * prepare colliding keys. Open addressing at most half full; removal leaves no tombstones. Lookup, insert and remove
 * never allocate; only init and reserve do. One owner thread per map. */
#ifndef TN_MAP_U64_H
#define TN_MAP_U64_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/compiler.h"
#include "common/status.h"

struct tn_map_u64_entry { uint64_t key, value; };

struct tn_map_u64 {
	struct tn_map_u64_entry *entries;   /* mask + 1 places; key 0 = free */
	uint64_t mask, seed, zero_value;    /* key 0 itself lives in zero_value, so every key is allowed */
	uint32_t cnt, capacity;
	bool has_zero;
};

/* Room for capacity entries (1 .. 2^30). seed: random bits for keys that others choose, fixed ones in the simulator.
 * TN_INVALID, TN_NO_MEMORY; the map is zeroed on failure. */
TN_MUST_USE tn_status tn_map_u64_init(struct tn_map_u64 *map, uint32_t capacity, uint64_t seed);
/* Frees; harmless on a zeroed map. Does not look at the values. */
void tn_map_u64_fini(struct tn_map_u64 *map);

/* Raises the capacity, moving all entries; does nothing when it is already as large. Outside the hot path.
 * TN_INVALID, TN_NO_MEMORY; the map is unchanged on failure. */
TN_MUST_USE tn_status tn_map_u64_reserve(struct tn_map_u64 *map, uint32_t capacity);

/* TN_EXISTS: the key is there (its value stays); TN_LIMIT: capacity reached. */
TN_MUST_USE tn_status tn_map_u64_insert(struct tn_map_u64 *map, uint64_t key, uint64_t value);
/* False when absent; value_out is then untouched, and may be NULL. */
bool tn_map_u64_find(const struct tn_map_u64 *map, uint64_t key, uint64_t *value_out);
bool tn_map_u64_remove(struct tn_map_u64 *map, uint64_t key, uint64_t *value_out);
/* Replaces the value of a key that is there; false when absent. */
bool tn_map_u64_update(struct tn_map_u64 *map, uint64_t key, uint64_t value);

/* Walks all entries in no particular order: start with *cursor = 0; false at the end. The map may not change
 * meanwhile. */
bool tn_map_u64_next(const struct tn_map_u64 *map, uint64_t *cursor, uint64_t *key_out, uint64_t *value_out);

/* Pointer values. Absent and NULL look the same to find_ptr. */
TN_INLINE tn_status tn_map_u64_insert_ptr(struct tn_map_u64 *map, uint64_t key, void *ptr)
{
	return tn_map_u64_insert(map, key, (uint64_t)(uintptr_t)ptr);
}
TN_INLINE void *tn_map_u64_find_ptr(const struct tn_map_u64 *map, uint64_t key)
{
	uint64_t v = 0;
	(void)tn_map_u64_find(map, key, &v);
	return (void *)(uintptr_t)v;
}

#endif
