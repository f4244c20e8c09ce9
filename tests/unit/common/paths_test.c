/* SPDX-License-Identifier: Apache-2.0
 * The default directories for root and for everybody else. */
#include "common/paths.h"

#include <string.h>

#include "tests/unit/cu.h"

static const char *const empty[] = { NULL };
static const char *const xdg[] = { "XDG_RUNTIME_DIR=/run/user/7", "XDG_STATE_HOME=/st", "HOME=/home/u", NULL };
static const char *const odd[] = { "XDG_RUNTIME_DIRECTORY=/x", "XDG_RUNTIME_DIR=rel", "XDG_STATE_HOME=", "HOME=/h",
				   NULL };

static void runtime_dir(void)
{
	char out[64];

	CU_ASSERT_EQUAL(tn_default_runtime_dir(xdg, 0, out, sizeof out), TN_OK);
	CU_ASSERT_STRING_EQUAL(out, "/run/tent");
	CU_ASSERT_EQUAL(tn_default_runtime_dir(xdg, 7, out, sizeof out), TN_OK);
	CU_ASSERT_STRING_EQUAL(out, "/run/user/7/tent");
	CU_ASSERT_EQUAL(tn_default_runtime_dir(empty, 7, out, sizeof out), TN_OK);
	CU_ASSERT_STRING_EQUAL(out, "/dev/shm/tent-7");
	CU_ASSERT_EQUAL(tn_default_runtime_dir(odd, 7, out, sizeof out), TN_OK);
	CU_ASSERT_STRING_EQUAL(out, "/dev/shm/tent-7");
	CU_ASSERT_EQUAL(tn_default_runtime_dir(xdg, 7, out, 16), TN_TOO_BIG);
	CU_ASSERT_EQUAL(tn_default_runtime_dir(xdg, 7, out, 17), TN_OK);
}

static void state_dir(void)
{
	char out[64];

	CU_ASSERT_EQUAL(tn_default_state_dir(xdg, 0, out, sizeof out), TN_OK);
	CU_ASSERT_STRING_EQUAL(out, "/var/lib/tent");
	CU_ASSERT_EQUAL(tn_default_state_dir(xdg, 7, out, sizeof out), TN_OK);
	CU_ASSERT_STRING_EQUAL(out, "/st/tent");
	CU_ASSERT_EQUAL(tn_default_state_dir(odd, 7, out, sizeof out), TN_OK);
	CU_ASSERT_STRING_EQUAL(out, "/h/.local/state/tent");
	CU_ASSERT_EQUAL(tn_default_state_dir(empty, 7, out, sizeof out), TN_OK);
	CU_ASSERT_STRING_EQUAL(out, "/dev/shm/tent-7-state");
}

TN_TEST_MAIN("common_paths", { "runtime directory", runtime_dir }, { "state directory", state_dir })
