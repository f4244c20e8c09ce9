/* SPDX-License-Identifier: Apache-2.0
 * open() gives the lowest number that is free: those below are open already when one is looked at. */
#include "common/std_fds.h"

#include <fcntl.h>
#include <unistd.h>

bool tn_std_fds_open(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDONLY | O_NOCTTY) != fd)
			return false;
	return true;
}
