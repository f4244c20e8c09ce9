/* SPDX-License-Identifier: Apache-2.0
 * Name table: fixed buckets of intrusive lists, seeded FNV-1a with a final mix. Control thread. */
#include "dataplane/segment/names.h"

#include <string.h>

static uint64_t name_hash(uint64_t seed, const char *text)
{
	uint64_t h = seed ^ UINT64_C(0xcbf29ce484222325);

	for (const unsigned char *p = (const unsigned char *)text; *p != 0; p++)
		h = (h ^ *p) * UINT64_C(0x100000001b3);
	h ^= h >> 33;
	h *= UINT64_C(0xff51afd7ed558ccd) ^ (seed & ~UINT64_C(1));
	return h ^ h >> 29;
}

void dp_names_init(struct dp_names *t, uint64_t seed)
{
	t->seed = seed;
	for (uint32_t i = 0; i < DP_NAMES_BUCKETS; i++)
		tn_list_init(&t->buckets[i]);
}

void dp_names_add(struct dp_names *t, struct dp_name *n, const char *text)
{
	n->text = text;
	n->hash = name_hash(t->seed, text);
	tn_list_push_back(&t->buckets[n->hash % DP_NAMES_BUCKETS], &n->link);
}

void dp_names_remove(struct dp_name *n)
{
	tn_list_unlink(&n->link);
}

struct dp_name *dp_names_find(const struct dp_names *t, const char *text, const struct dp_name *prev)
{
	uint64_t hash = name_hash(t->seed, text);
	const struct tn_list *head = &t->buckets[hash % DP_NAMES_BUCKETS];
	struct tn_list *node = prev != NULL ? prev->link.next : head->next;

	for (; node != head; node = node->next) {
		struct dp_name *n = tn_list_entry(node, struct dp_name, link);
		if (n->hash == hash && strcmp(n->text, text) == 0)
			return n;
	}
	return NULL;
}
