/* SPDX-License-Identifier: Apache-2.0
 * The file of the event mark: one fixed record. */
#include "controlplane/observe/event_mark.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define MARK_MAGIC UINT64_C(0x314b52414d544e45) /* "ENTMARK1" */

struct record {
	uint64_t magic;
	struct tn_id128 session;
	uint64_t next[CP_MARK_RINGS];
};

tn_status cp_event_mark_open(struct cp_event_mark *m, const char *path)
{
	struct record r;
	*m = (struct cp_event_mark){ .fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600) };
	if (m->fd < 0)
		return tn_status_from_errno(errno);
	if (pread(m->fd, &r, sizeof r, 0) == (ssize_t)sizeof r && r.magic == MARK_MAGIC) {
		m->session = r.session;
		memcpy(m->next, r.next, sizeof m->next);
	}
	return TN_OK;
}

void cp_event_mark_close(struct cp_event_mark *m)
{
	if (m->fd >= 0)
		close(m->fd);
	m->fd = -1;
}

void cp_event_mark_set(struct cp_event_mark *m, const struct tn_id128 *session, const uint64_t next[static CP_MARK_RINGS])
{
	struct record r = { .magic = MARK_MAGIC, .session = *session };
	if (m->fd < 0 || (tn_id128_eq(&m->session, session) && memcmp(m->next, next, sizeof m->next) == 0))
		return;
	memcpy(r.next, next, sizeof r.next);
	if (pwrite(m->fd, &r, sizeof r, 0) != (ssize_t)sizeof r)
		return; /* tmpfs full: tried again with the next round */
	m->session = *session;
	memcpy(m->next, next, sizeof m->next);
}
