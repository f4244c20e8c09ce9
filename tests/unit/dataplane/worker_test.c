/* SPDX-License-Identifier: Apache-2.0
 * The worker end to end, in one thread and virtual time, over a real queue-pair region and the real shm transport. */
#include "tests/unit/dataplane/rig.h"

static void test_write_then_read(void)
{
	struct rig g;
	rig_open(&g, NULL, 0, NULL);
	for (uint32_t i = 0; i < RIG_BYTES; i++)
		g.local.base[i] = (uint8_t)(i * 7 + i / 251);
	static const uint64_t sizes[] = { 1, 7, 4096, 65537, 262144, 262145, 2000000 };
	uint64_t token = 1;
	for (size_t i = 0; i < TN_ARRAY_LEN(sizes); i++) {
		struct shr_cqe_shm c = rig_run(&g, rig_sqe(SHR_OP_WRITE, token++, 13, 4097, sizes[i]));
		CU_ASSERT_EQUAL(c.status, TN_OK);
		CU_ASSERT_EQUAL(c.bytes, sizes[i]);
		CU_ASSERT_EQUAL(c.transport, TN_TRANSPORT_SHM);
		CU_ASSERT_EQUAL(c.attempts, 1);
		CU_ASSERT_EQUAL(c.kind, SHR_CQE_TERMINAL);
		CU_ASSERT_EQUAL(memcmp(g.target.base + 4097, g.local.base + 13, sizes[i]), 0);
		memset(g.local.base + 13, 0, sizes[i]);
		c = rig_run(&g, rig_sqe(SHR_OP_READ, token++, 13, 4097, sizes[i]));
		CU_ASSERT_EQUAL(c.status, TN_OK);
		CU_ASSERT_EQUAL(memcmp(g.target.base + 4097, g.local.base + 13, sizes[i]), 0);
	}
	rig_close(&g);
}

TN_TEST_MAIN("worker",
	{ "WRITE, then READ back, many sizes", test_write_then_read },
)
