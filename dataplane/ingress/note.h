/* SPDX-License-Identifier: Apache-2.0
 * Notices on their way to clients of this host: each is delivered once, if the segment still exists, its sender may
 * write to it, and the receiver's inbox has room; the sender learns which. Control thread. */
#ifndef DP_INGRESS_NOTE_H
#define DP_INGRESS_NOTE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/ids.h"
#include "common/list.h"
#include "dataplane/apply.h"

struct dp_control;

struct dp_notes {
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
