/* SPDX-License-Identifier: Apache-2.0
 * The spare one is /dev/null: it is always there and means nothing. Any thread, one at a time. */
#include "common/spare_fd.h"

#include <fcntl.h>
#include <unistd.h>

bool tn_spare_fd_keep(struct tn_spare_fd *s)
{
	if (s->fd < 0)
		s->fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	return s->fd >= 0;
}

bool tn_spare_fd_give(struct tn_spare_fd *s)
{
	if (s->fd < 0)
		return false;
	close(s->fd);
	s->fd = -1;
	return true;
}
