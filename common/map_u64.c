/* SPDX-License-Identifier: Apache-2.0
 * The open-addressing map: linear probing from a seeded multiplicative hash, removal by shifting back. One owner. */
#include "common/map_u64.h"

#include <stdlib.h>
#include <string.h>

#include "common/bits.h"

#define CAPACITY_MAX (UINT32_C(1) << 30)

/* Both halves of a 128-bit product folded; without the seed's value its collisions cannot be computed ahead. */
static uint64_t home_of(const struct tn_map_u64 *map, uint64_t key)
{
	unsigned __int128 m = (unsigned __int128)(key ^ map->seed) * (UINT64_C(0x9e3779b97f4a7c15) ^ (map->seed << 1));
	uint64_t h = (uint64_t)m ^ (uint64_t)(m >> 64);
	return (h ^ h >> 32) & map->mask;
}

/* Place of a key other than 0, or the free place where it belongs. Ends: at least half of the places are free. */
static uint64_t place_of(const struct tn_map_u64 *map, uint64_t key)
{
	uint64_t i = home_of(map, key);
	while (map->entries[i].key != key && map->entries[i].key != 0)
		i = (i + 1) & map->mask;
	return i;
}

tn_status tn_map_u64_init(struct tn_map_u64 *map, uint32_t capacity, uint64_t seed)
{
	memset(map, 0, sizeof *map);
	if (capacity == 0 || capacity > CAPACITY_MAX)
		return TN_INVALID;
	uint64_t places = tn_pow2_ceil((uint64_t)capacity * 2);
	struct tn_map_u64_entry *entries = calloc(places, sizeof *entries);
	if (entries == NULL)
		return TN_NO_MEMORY;
	map->entries = entries;
	map->mask = places - 1;
	map->seed = seed;
	map->capacity = capacity;
	return TN_OK;
}

void tn_map_u64_fini(struct tn_map_u64 *map)
{
	free(map->entries);
	memset(map, 0, sizeof *map);
}

tn_status tn_map_u64_reserve(struct tn_map_u64 *map, uint32_t capacity)
{
	if (capacity <= map->capacity)
		return TN_OK;
	struct tn_map_u64 larger;
	tn_status st = tn_map_u64_init(&larger, capacity, map->seed);
	if (st != TN_OK)
		return st;
	for (uint64_t i = 0; map->entries != NULL && i <= map->mask; i++)
		if (map->entries[i].key != 0)
			larger.entries[place_of(&larger, map->entries[i].key)] = map->entries[i];
	larger.cnt = map->cnt;
	larger.has_zero = map->has_zero;
	larger.zero_value = map->zero_value;
	free(map->entries);
	*map = larger;
	return TN_OK;
}

tn_status tn_map_u64_insert(struct tn_map_u64 *map, uint64_t key, uint64_t value)
{
	uint64_t i = key != 0 ? place_of(map, key) : 0;
	if (key != 0 ? map->entries[i].key == key : map->has_zero)
		return TN_EXISTS;
	if (map->cnt == map->capacity)
		return TN_LIMIT;
	if (key != 0) {
		map->entries[i] = (struct tn_map_u64_entry){ key, value };
	} else {
		map->has_zero = true;
		map->zero_value = value;
	}
	map->cnt++;
	return TN_OK;
}

/* Where the value of a key is kept; NULL when absent. */
static const uint64_t *value_of(const struct tn_map_u64 *map, uint64_t key)
{
	if (key == 0)
		return map->has_zero ? &map->zero_value : NULL;
	uint64_t i = place_of(map, key);
	return map->entries[i].key == key ? &map->entries[i].value : NULL;
}

bool tn_map_u64_find(const struct tn_map_u64 *map, uint64_t key, uint64_t *value_out)
{
	const uint64_t *v = value_of(map, key);
	if (v != NULL && value_out != NULL)
		*value_out = *v;
	return v != NULL;
}

bool tn_map_u64_update(struct tn_map_u64 *map, uint64_t key, uint64_t value)
{
	if (key == 0) {
		if (map->has_zero)
			map->zero_value = value;
		return map->has_zero;
	}
	uint64_t i = place_of(map, key);
	if (map->entries[i].key != key)
		return false;
	map->entries[i].value = value;
	return true;
}

/* Frees place i and moves later entries of the run back over it, so that no lookup stops too early. */
static void shift_back(struct tn_map_u64 *map, uint64_t hole)
{
	for (uint64_t i = (hole + 1) & map->mask; map->entries[i].key != 0; i = (i + 1) & map->mask) {
		uint64_t home = home_of(map, map->entries[i].key);
		/* The entry may move unless its home lies behind the hole, on the way to where it is. */
		if (((i - home) & map->mask) >= ((i - hole) & map->mask)) {
			map->entries[hole] = map->entries[i];
			hole = i;
		}
	}
	map->entries[hole] = (struct tn_map_u64_entry){ 0, 0 };
}

bool tn_map_u64_remove(struct tn_map_u64 *map, uint64_t key, uint64_t *value_out)
{
	if (!tn_map_u64_find(map, key, value_out))
		return false;
	if (key == 0)
		map->has_zero = false;
	else
		shift_back(map, place_of(map, key));
	map->cnt--;
	return true;
}

bool tn_map_u64_next(const struct tn_map_u64 *map, uint64_t *cursor, uint64_t *key_out, uint64_t *value_out)
{
	if (*cursor == 0) {
		(*cursor)++;
		if (map->has_zero) {
			*key_out = 0;
			*value_out = map->zero_value;
			return true;
		}
	}
	while (map->entries != NULL && *cursor - 1 <= map->mask) {
		const struct tn_map_u64_entry *e = &map->entries[*cursor - 1];
		(*cursor)++;
		if (e->key != 0) {
			*key_out = e->key;
			*value_out = e->value;
			return true;
		}
	}
	return false;
}
