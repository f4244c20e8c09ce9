/* SPDX-License-Identifier: Apache-2.0
 * Notices on their way to clients of this host: each is delivered once, if the segment still exists, its sender may
 * write to it, and the receiver's inbox has room; the sender learns which. One that its sender sends again, because a lane
 * took the answer with it, gets the same answer. Control thread. */
#ifndef DP_INGRESS_NOTE_H
#define DP_INGRESS_NOTE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/ids.h"
#include "common/list.h"
#include "common/map_u64.h"
#include "dataplane/apply.h"

struct dp_control;

#define DP_NOTE_SEEN 64u /* notices of one worker of a peer that are remembered; more than it has unanswered at once */

/* What a worker of a peer sent last. Lives as long as the peer's session: longer than any lane. */
struct dp_note_seen {
	struct tn_id128 session;
	uint32_t next;
	uint64_t seq[DP_NOTE_SEEN];  /* 0 = none */
	tn_status verdict[DP_NOTE_SEEN];
};

struct dp_notes {
	struct tn_map_u64 seen;      /* peer index << 6 | worker: struct dp_note_seen, malloc'ed */
	uint64_t seq;                /* last number given to a client: increasing over all senders and restarts */
	uint64_t delivered_cnt;
	struct tn_list owed;         /* struct dp_note_in whose verdict the crew could not keep, oldest first */
};

/* start: first number; the wall clock in us, so that numbers go on increasing after a restart. */
void dp_notes_init(struct dp_notes *n, uint64_t start);
void dp_notes_fini(struct dp_notes *n);

/* DP_EVT_NOTE: delivers or not, and sends the verdict to that worker. Takes `note`, which keeps the verdict while there is
 * no room for it: none is ever lost. */
void dp_notes_deliver(struct dp_control *ctl, uint32_t worker, uint64_t token, tn_handle segment,
                      struct dp_note_in *note);
/* Once per turn of the loop, after dp_crew_flush(): verdicts that were kept move on. */
void dp_notes_flush(struct dp_control *ctl);

#endif
