/* SPDX-License-Identifier: Apache-2.0
 * With the last descriptor gone, the spare one makes room for exactly one, and comes back when there is one again. */
#include "common/spare_fd.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "tests/unit/cu.h"

#define FDS 64

static void it_makes_room_for_one(void)
{
	struct tn_spare_fd spare = TN_SPARE_FD_NONE;
	struct rlimit before, few;
	int used[FDS], cnt = 0, one;

	CU_ASSERT_EQUAL_FATAL(getrlimit(RLIMIT_NOFILE, &before), 0);
	few = before;
	few.rlim_cur = FDS;
	CU_ASSERT_EQUAL_FATAL(setrlimit(RLIMIT_NOFILE, &few), 0);
	CU_ASSERT_FALSE(tn_spare_fd_give(&spare));
	CU_ASSERT_TRUE(tn_spare_fd_keep(&spare));
	one = spare.fd;
	CU_ASSERT_TRUE(tn_spare_fd_keep(&spare)); /* one is enough */
	CU_ASSERT_EQUAL(spare.fd, one);
	CU_ASSERT_NOT_EQUAL(fcntl(one, F_GETFD) & FD_CLOEXEC, 0);
	while (cnt < FDS && (used[cnt] = dup(one)) >= 0)
		cnt++;
	CU_ASSERT_EQUAL(errno, EMFILE);
	CU_ASSERT_TRUE(tn_spare_fd_give(&spare));
	CU_ASSERT_FALSE(tn_spare_fd_give(&spare));
	one = dup(used[0]);
	CU_ASSERT_TRUE(one >= 0);
	CU_ASSERT_TRUE(dup(used[0]) < 0);
	CU_ASSERT_FALSE(tn_spare_fd_keep(&spare));
	close(one);
	CU_ASSERT_TRUE(tn_spare_fd_keep(&spare));
	CU_ASSERT_TRUE(dup(used[0]) < 0);
	while (cnt > 0)
		close(used[--cnt]);
	CU_ASSERT_TRUE(tn_spare_fd_give(&spare));
	CU_ASSERT_EQUAL(setrlimit(RLIMIT_NOFILE, &before), 0);
}

TN_TEST_MAIN("spare_fd", { "it makes room for one", it_makes_room_for_one })
