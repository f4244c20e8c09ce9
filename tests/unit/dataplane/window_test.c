/* SPDX-License-Identifier: Apache-2.0
 * Window arithmetic: bounds in owners and bytes, the oversized owner that goes alone, no wrap-around. */
#include "dataplane/admission/window.h"
#include "tests/unit/cu.h"

static void test_bounds(void)
{
	struct dp_window w;
	dp_window_init(&w, 2, 100);
	CU_ASSERT_TRUE(dp_window_fits(&w, 100));
	dp_window_take(&w, 60);
	CU_ASSERT_TRUE(dp_window_fits(&w, 40));
	CU_ASSERT_FALSE(dp_window_fits(&w, 41));
	CU_ASSERT_FALSE(dp_window_fits(&w, UINT64_MAX));
	dp_window_take(&w, 40);
	CU_ASSERT_FALSE(dp_window_fits(&w, 0)); /* both owners are out */
	dp_window_give(&w, 60);
	CU_ASSERT_TRUE(dp_window_fits(&w, 60));
	dp_window_give(&w, 40);
	CU_ASSERT_EQUAL(w.bytes, 0);
	CU_ASSERT_EQUAL(w.owners, 0);
}

static void test_oversized_goes_alone(void)
{
	struct dp_window w;
	dp_window_init(&w, 8, 100);
	CU_ASSERT_TRUE(dp_window_fits(&w, 5000));
	dp_window_take(&w, 5000);
	CU_ASSERT_FALSE(dp_window_fits(&w, 1));
	dp_window_give(&w, 5000);
	dp_window_take(&w, 1);
	CU_ASSERT_FALSE(dp_window_fits(&w, 5000));
}

TN_TEST_MAIN("window", { "owners and bytes bound it", test_bounds }, { "an oversized owner goes alone", test_oversized_goes_alone }, )
