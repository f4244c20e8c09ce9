/* SPDX-License-Identifier: Apache-2.0
 * Whatever of the three descriptors a process was started without, the next file gets none of their numbers. */
#include "common/std_fds.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/cu.h"

/* In a child of its own: 0 when all is as it should be, else the number of the step. */
static int without(unsigned closed)
{
	int before[3];
	for (int fd = 0; fd < 3; fd++) {
		before[fd] = fcntl(fd, F_GETFL);
		if ((closed >> fd & 1) != 0)
			close(fd);
	}
	if (!tn_std_fds_open())
		return 1;
	for (int fd = 0; fd < 3; fd++) {
		char byte = 'x';
		int flags = fcntl(fd, F_GETFL);
		if (flags < 0)
			return 2;
		if ((closed >> fd & 1) == 0 && flags != before[fd])
			return 3;
		if ((closed >> fd & 1) != 0 && (write(fd, &byte, 1) >= 0 || errno != EBADF))
			return 4;
		if ((closed >> fd & 1) != 0 && read(fd, &byte, 1) != 0)
			return 5;
	}
	return open("/dev/null", O_RDONLY) > 2 ? 0 : 6;
}

static void any_of_them_closed(void)
{
	for (unsigned closed = 0; closed < 8; closed++) {
		int status = -1;
		pid_t pid = fork();
		if (pid == 0)
			_exit(without(closed));
		CU_ASSERT_EQUAL(waitpid(pid, &status, 0), pid);
		CU_ASSERT_TRUE(WIFEXITED(status));
		CU_ASSERT_EQUAL(WEXITSTATUS(status), 0);
	}
}

TN_TEST_MAIN("std_fds", { "any of them closed at start", any_of_them_closed })
