/* SPDX-License-Identifier: Apache-2.0
 * Intrusive doubly linked list: the node lives inside the object, so adding and removing never allocates. The list does
 * not own its objects. One owner thread. An unlinked node points to itself, so unlinking twice is harmless. */
#ifndef TN_LIST_H
#define TN_LIST_H

#include <stdbool.h>
#include <stddef.h>

#include "common/compiler.h"

/* Both the head of a list and the node inside an object. */
struct tn_list { struct tn_list *next, *prev; };

TN_INLINE void tn_list_init(struct tn_list *l) { l->next = l->prev = l; }
TN_INLINE bool tn_list_empty(const struct tn_list *head) { return head->next == head; }
/* Is this node in some list? (It was initialised before.) */
TN_INLINE bool tn_list_linked(const struct tn_list *node) { return node->next != node; }

TN_INLINE void tn_list_insert_after(struct tn_list *at, struct tn_list *node)
{
	node->prev = at;
	node->next = at->next;
	at->next->prev = node;
	at->next = node;
}
TN_INLINE void tn_list_push_front(struct tn_list *head, struct tn_list *node) { tn_list_insert_after(head, node); }
TN_INLINE void tn_list_push_back(struct tn_list *head, struct tn_list *node) { tn_list_insert_after(head->prev, node); }

TN_INLINE void tn_list_unlink(struct tn_list *node)
{
	node->prev->next = node->next;
	node->next->prev = node->prev;
	tn_list_init(node);
}

/* First node, unlinked; NULL when empty. */
TN_INLINE struct tn_list *tn_list_pop_front(struct tn_list *head)
{
	struct tn_list *node = head->next;
	if (node == head)
		return NULL;
	tn_list_unlink(node);
	return node;
}

/* Appends all of `from` to `to` in order; `from` is empty afterwards. */
TN_INLINE void tn_list_splice_back(struct tn_list *to, struct tn_list *from)
{
	if (tn_list_empty(from))
		return;
	from->next->prev = to->prev;
	to->prev->next = from->next;
	from->prev->next = to;
	to->prev = from->prev;
	tn_list_init(from);
}

/* Object around a node; first object, or NULL when empty. */
#define tn_list_entry(node, type, member) tn_container_of(node, type, member)
#define tn_list_first(head, type, member) \
	(tn_list_empty(head) ? (type *)NULL : tn_list_entry((head)->next, type, member))

/* `node` may be unlinked (and its object freed) inside the loop; no other node may. */
#define tn_list_foreach(node, head) \
	for (struct tn_list *node = (head)->next, *node##_next_ = node->next; node != (head); \
	     node = node##_next_, node##_next_ = node->next)

#endif
