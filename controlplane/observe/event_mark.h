/* SPDX-License-Identifier: Apache-2.0
 * How far the events of the present data plane are rendered, kept in a small file in the runtime directory so that a
 * restarted control plane goes on there and the log has each event once. The rings themselves are mapped read-only and
 * never learn who reads. Nobody but the control plane, under its lease, touches the file. Loop thread. */
#ifndef CP_OBSERVE_EVENT_MARK_H
#define CP_OBSERVE_EVENT_MARK_H

#include <stdbool.h>
#include <stdint.h>

#include "common/ids.h"
#include "common/status.h"
#include "shm-ring/abi.h"

enum { CP_MARK_RINGS = 2 * (SHR_WORKERS_MAX + 1) };

struct cp_event_mark {
	int fd;                       /* -1: none, nothing survives */
	struct tn_id128 session;      /* of the data plane whose rings these are; zero: none yet */
	uint64_t next[CP_MARK_RINGS]; /* number of the first record that is not rendered */
};

/* Opens or makes the file (0600) and reads what it says; anything that is not a whole mark of this version counts as
 * none. TN_PERMISSION, TN_NOT_FOUND, TN_SYSTEM: *m has no file then, which is no reason not to start. */
tn_status cp_event_mark_open(struct cp_event_mark *m, const char *path);
void cp_event_mark_close(struct cp_event_mark *m);
/* Remembers: one write, whole for whoever is killed before or after it. Nothing to do when nothing changed. */
void cp_event_mark_set(struct cp_event_mark *m, const struct tn_id128 *session, const uint64_t next[static CP_MARK_RINGS]);

#endif
