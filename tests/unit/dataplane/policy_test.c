/* SPDX-License-Identifier: Apache-2.0
 * Policy: default orders, first match, named policies, misses. */
#include "dataplane/selection/policy.h"

#include "tests/unit/dataplane/rig.h"

static void test_defaults(void)
{
	struct tn_config *c = rig_config(NULL, 0);
	struct dp_policy_answer a = dp_policy_order(c, &(struct dp_policy_query){ .local = true, .bytes = 1 });
	CU_ASSERT_EQUAL(a.cnt, 2);
	CU_ASSERT(a.kinds[0] == TN_TRANSPORT_SHM && a.kinds[1] == TN_TRANSPORT_TCP);
	CU_ASSERT_FALSE(a.miss);
	a = dp_policy_order(c, &(struct dp_policy_query){ .bytes = 1 });
	CU_ASSERT_EQUAL(a.cnt, 3);
	CU_ASSERT_EQUAL(a.kinds[0], TN_TRANSPORT_RDMA);
	CU_ASSERT_EQUAL(a.kinds[1], TN_TRANSPORT_HP_TCP);
	CU_ASSERT_EQUAL(a.kinds[2], TN_TRANSPORT_TCP);
	a = dp_policy_order(c, &(struct dp_policy_query){ .bytes = 1, .policy = TN_CONFIG_POLICY_ID_FIRST });
	CU_ASSERT_TRUE(a.miss);
	tn_config_free(c);
}

static void test_match(void)
{
	static const char *const sets[] = {
		"policies=[{\"name\":\"bulk\",\"transports\":[\"tcp\",\"rdma\"],\"min_bytes\":1048576},"
		"{\"name\":\"urgent\",\"transports\":[\"rdma\",\"shm\"],\"priority\":\"high\"}]",
	};
	struct tn_config *c = rig_config(sets, 1);
	struct dp_policy_answer a = dp_policy_order(c, &(struct dp_policy_query){ .bytes = 1 << 20, .priority = TN_PRIORITY_HIGH });
	CU_ASSERT_EQUAL(a.cnt, 2);
	CU_ASSERT_EQUAL(a.kinds[0], TN_TRANSPORT_TCP);
	a = dp_policy_order(c, &(struct dp_policy_query){ .bytes = 10, .priority = TN_PRIORITY_HIGH });
	CU_ASSERT_EQUAL(a.cnt, 1); /* shm cannot serve a remote target */
	CU_ASSERT_EQUAL(a.kinds[0], TN_TRANSPORT_RDMA);
	a = dp_policy_order(c, &(struct dp_policy_query){ .bytes = 10, .priority = TN_PRIORITY_HIGH, .local = true });
	CU_ASSERT_EQUAL(a.cnt, 1); /* a policy without tcp keeps it away from this host's segments, too */
	CU_ASSERT_EQUAL(a.kinds[0], TN_TRANSPORT_SHM);
	a = dp_policy_order(c, &(struct dp_policy_query){ .bytes = 10, .priority = TN_PRIORITY_LOW });
	CU_ASSERT_TRUE(a.miss);
	CU_ASSERT_EQUAL(a.cnt, 3);
	a = dp_policy_order(c, &(struct dp_policy_query){ .bytes = 10, .priority = TN_PRIORITY_LOW,
							       .policy = TN_CONFIG_POLICY_ID_FIRST });
	CU_ASSERT_FALSE(a.miss); /* named: taken without matching */
	CU_ASSERT_EQUAL(a.kinds[0], TN_TRANSPORT_TCP);
	CU_ASSERT_TRUE(dp_policy_order(c, &(struct dp_policy_query){ .bytes = 10, .policy = TN_CONFIG_POLICY_ID_FIRST + 2 }).miss);
	CU_ASSERT_TRUE(dp_policy_order(c, &(struct dp_policy_query){ .bytes = 10, .policy = SHR_POLICY_GONE }).miss);
	tn_config_free(c);
}

TN_TEST_MAIN("policy", { "default orders", test_defaults }, { "first match and named policies", test_match }, )
