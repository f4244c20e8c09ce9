/* SPDX-License-Identifier: Apache-2.0
 * A pipe or a socket to its end: bounded in bytes and in time, since anything may be at the other side. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/clock.h"
#include "controlplane/tentctl/tentctl.h"

#define ROOM_FIRST ((size_t)65536)

/* Of one look: OK, whether there were bytes or not. *n_out 0 and *end_out: it ended. */
static tn_status read_some(int fd, char *to, size_t room, uint64_t deadline_ns, size_t *n_out, bool *end_out)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	uint64_t left = tn_remaining_ns(deadline_ns, tn_now_ns());
	*n_out = 0;
	if (tctl_stopped())
		return TN_CANCELED;
	if (left == 0)
		return TN_TIMEOUT;
	if (poll(&p, 1, tn_ns_to_poll_ms(left)) <= 0)
		return TN_OK;
	ssize_t n = read(fd, to, room);
	if (n < 0)
		return errno == EINTR || errno == EAGAIN ? TN_OK : tn_status_from_errno(errno);
	*end_out = n == 0;
	*n_out = (size_t)n;
	return TN_OK;
}

char *tctl_read_to_end(int fd, size_t most, uint64_t deadline_ns, tn_status *why_out)
{
	size_t len = 0, n, room = ROOM_FIRST;
	bool end = false;
	char *text = malloc(room + 1);
	tn_status s = text != NULL ? TN_OK : TN_NO_MEMORY;
	while (s == TN_OK && !end) {
		s = read_some(fd, text + len, room - len, deadline_ns, &n, &end);
		len += n;
		if (s != TN_OK || len < room)
			continue;
		char *more = room < most ? realloc(text, 2 * room + 1) : NULL;
		if (more == NULL) {
			s = room < most ? TN_NO_MEMORY : TN_TOO_BIG;
			continue;
		}
		room *= 2;
		text = more;
	}
	if (s == TN_OK) {
		text[len] = '\0';
		return text;
	}
	free(text);
	*why_out = s;
	return NULL;
}
