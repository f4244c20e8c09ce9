/* SPDX-License-Identifier: Apache-2.0
 * Order, unlinking (also twice, also inside the loop) and splicing of the intrusive list. */
#include "common/list.h"

#include "tests/unit/cu.h"

struct item { int value; struct tn_list node; };

static int digits(const struct tn_list *head)
{
	int sum = 0;
	for (const struct tn_list *n = head->next; n != head; n = n->next)
		sum = sum * 10 + ((const struct item *)(const void *)((const char *)n - offsetof(struct item, node)))->value;
	return sum;
}

static void order_and_unlink(void)
{
	struct tn_list head;
	struct item it[4];
	tn_list_init(&head);
	CU_ASSERT_TRUE(tn_list_empty(&head));
	CU_ASSERT_PTR_NULL(tn_list_pop_front(&head));
	CU_ASSERT_PTR_NULL(tn_list_first(&head, struct item, node));
	for (int i = 0; i < 4; i++) {
		it[i].value = i + 1;
		tn_list_init(&it[i].node);
		tn_list_push_back(&head, &it[i].node);
	}
	CU_ASSERT_EQUAL(digits(&head), 1234);
	tn_list_unlink(&it[1].node);
	tn_list_unlink(&it[1].node);
	CU_ASSERT_FALSE(tn_list_linked(&it[1].node));
	CU_ASSERT_TRUE(tn_list_linked(&it[0].node));
	CU_ASSERT_EQUAL(digits(&head), 134);
	tn_list_push_front(&head, &it[1].node);
	CU_ASSERT_EQUAL(digits(&head), 2134);
	CU_ASSERT_PTR_EQUAL(tn_list_first(&head, struct item, node), &it[1]);
	CU_ASSERT_PTR_EQUAL(tn_list_pop_front(&head), &it[1].node);
	CU_ASSERT_EQUAL(digits(&head), 134);
}

static void unlink_inside_loop(void)
{
	struct tn_list head;
	struct item it[6];
	tn_list_init(&head);
	for (int i = 0; i < 6; i++) {
		it[i].value = i + 1;
		tn_list_push_back(&head, &it[i].node);
	}
	int seen = 0;
	tn_list_foreach(n, &head) {
		struct item *i = tn_list_entry(n, struct item, node);
		seen++;
		if (i->value % 2 == 0)
			tn_list_unlink(n);
	}
	CU_ASSERT_EQUAL(seen, 6);
	CU_ASSERT_EQUAL(digits(&head), 135);
}

static void splice(void)
{
	struct tn_list a, b;
	struct item it[4];
	tn_list_init(&a);
	tn_list_init(&b);
	for (int i = 0; i < 4; i++) {
		it[i].value = i + 1;
		tn_list_push_back(i < 2 ? &a : &b, &it[i].node);
	}
	tn_list_splice_back(&a, &b);
	CU_ASSERT_EQUAL(digits(&a), 1234);
	CU_ASSERT_TRUE(tn_list_empty(&b));
	tn_list_splice_back(&a, &b);
	CU_ASSERT_EQUAL(digits(&a), 1234);
	tn_list_splice_back(&b, &a);
	CU_ASSERT_EQUAL(digits(&b), 1234);
	CU_ASSERT_TRUE(tn_list_empty(&a));
}

TN_TEST_MAIN("common/list", { "order and unlinking", order_and_unlink },
	{ "unlinking inside the loop", unlink_inside_loop },
	{ "splicing", splice })
