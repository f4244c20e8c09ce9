/* SPDX-License-Identifier: Apache-2.0
 * Objects by name: published segments by segment name, opened ones by their reference. Intrusive, so adding never
 * fails; several objects may have one name. The hash is seeded per start: names come from outside. Control thread. */
#ifndef DP_SEGMENT_NAMES_H
#define DP_SEGMENT_NAMES_H

#include <stdint.h>

#include "common/list.h"

#define DP_NAMES_BUCKETS 4096u

struct dp_name {
	struct tn_list link;
	const char *text; /* lives in the object */
	uint64_t hash;
};

struct dp_names {
	uint64_t seed;
	struct tn_list buckets[DP_NAMES_BUCKETS];
};

void dp_names_init(struct dp_names *t, uint64_t seed);
void dp_names_add(struct dp_names *t, struct dp_name *n, const char *text);
/* Harmless when it is not in a table (but was initialised). */
void dp_names_remove(struct dp_name *n);
/* The first object of that name, or after `prev` the next one; NULL at the end. `prev` must still be in the table. */
struct dp_name *dp_names_find(const struct dp_names *t, const char *text, const struct dp_name *prev);

#endif
