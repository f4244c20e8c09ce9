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

#define DP_NOTE_SENDERS_MAX 4096u /* (incarnation, worker) pairs remembered; the longest silent one makes room */
#define DP_NOTE_WINDOW 128u       /* numbers remembered of each */

enum dp_note_seen { DP_NOTE_NEW, DP_NOTE_REPEAT, DP_NOTE_TOO_OLD };

struct dp_notes {
	struct tn_list lru;          /* senders, longest silent first */
	uint32_t sender_cnt;
	uint64_t seq;                /* last number given to a client: increasing over all senders and restarts */
	uint64_t delivered_cnt, repeat_cnt, full_cnt, orphan_cnt;
};

/* start: first number; the wall clock in us, so that numbers go on increasing after a restart. */
void dp_notes_init(struct dp_notes *n, uint64_t start);
void dp_notes_fini(struct dp_notes *n);

/* Was this number of this sender delivered before? TOO_OLD: older than all that is remembered, so nobody knows. */
enum dp_note_seen dp_notes_look(const struct dp_notes *n, const struct tn_id128 *session, uint64_t seq);
/* It has been delivered. NO_MEMORY: it cannot be remembered (then it must not be delivered either: call this first). */
tn_status dp_notes_remember(struct dp_notes *n, const struct tn_id128 *session, uint64_t seq);

/* DP_EVT_NOTE: delivers or not, and sends the verdict to that worker. Takes `note`. */
void dp_notes_deliver(struct dp_control *ctl, uint32_t worker, uint64_t token, tn_handle segment,
                      struct dp_note_in *note);

#endif
