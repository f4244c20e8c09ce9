/* SPDX-License-Identifier: Apache-2.0
 * The copies of large blocks: every alignment and length around its block sizes, and nothing outside. */
#include "dataplane/transport/shm/copy.h"

#include <stdint.h>
#include <string.h>

#include "tests/unit/cu.h"

#define MAX 1200u

static void all_alignments(dp_copy_fn copy)
{
	static uint8_t src[MAX + 512], dst[MAX + 512], want[MAX + 512];
	for (size_t i = 0; i < sizeof src; i++)
		src[i] = (uint8_t)(i * 31 + 7);
	for (size_t soff = 0; soff < 66; soff += 13) {
		for (size_t doff = 0; doff < 66; doff++) {
			for (size_t len = 0; len <= MAX; len += len < 300 ? 1 : 97) {
				memset(dst, 0xee, sizeof dst);
				memset(want, 0xee, sizeof want);
				memcpy(want + doff, src + soff, len);
				copy(dst + doff, src + soff, len);
				CU_ASSERT_FATAL(memcmp(dst, want, sizeof dst) == 0);
			}
		}
	}
}

static void test_nontemporal(void)
{
	CU_ASSERT_PTR_NOT_NULL(dp_copy_nontemporal_name());
	all_alignments(dp_copy_nontemporal());
}

static void test_cached(void)
{
	CU_ASSERT_TRUE(dp_copy_near_bytes() > 0);
	all_alignments(dp_copy_cached());
}

TN_TEST_MAIN("copy", { "past the caches", test_nontemporal }, { "through the caches", test_cached }, )
