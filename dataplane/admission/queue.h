/* SPDX-License-Identifier: Apache-2.0
 * Admission: who waits and who may go. One queue per (target, priority), deficit round robin between the targets of a
 * priority, strict priority between classes with an ageing rule, a dispatch window for the worker and one per peer.
 * What is out at a peer that answers nothing for a while leaves the worker's window: peers that are dead, but not yet
 * found so, bound themselves, not the others. An eighth more of each window is there for the highest class alone, so that
 * what lower classes have out does not keep it waiting. Inside a queue the order is that of arrival or, where asked for, of deadlines.
 * Every way into and out of a queue is one function here and counts its event exactly once (contract equation 4).
 * A waiting owner holds nothing. One worker; time is an argument. */
#ifndef DP_ADMISSION_QUEUE_H
#define DP_ADMISSION_QUEUE_H

#include "common/metrics.h"
#include "dataplane/admission/deadline.h"
#include "dataplane/admission/drr.h"
#include "dataplane/admission/window.h"
#include "dataplane/request/request.h"
#include "dataplane/stats/tally.h"

/* Of a window, what the highest class has besides: one part in ... */
#define DP_ADMISSION_EXPRESS 8u
/* A class that had work and was not served for this long gets one owner through before higher classes. */
#define DP_ADMISSION_AGE_NS UINT64_C(10000000)

struct dp_admission_cfg {
	uint32_t targets;                 /* peers + 1; target 0 is this host */
	uint64_t quantum_bytes;
	uint32_t window_owners, peer_window_owners;
	uint64_t window_bytes, peer_window_bytes;
	uint64_t stall_ns;                /* > 0; silent for so long, a peer is stalled */
	bool edf;                         /* inside a queue the earliest deadline goes first */
	bool drop_infeasible;             /* estimate rates, so that dp_admission_permille() has an answer */
};

struct dp_target;
struct dp_target_deadlines;

struct dp_admission {
	struct dp_admission_cfg cfg;
	struct dp_window window;          /* all that is out, but for what is in the next two */
	struct dp_window express;         /* of the highest class, in the part that is its own */
	struct dp_window stalled;         /* at stalled peers; bounded by the windows of these peers */
	struct tn_list express_waits;     /* targets that wait for room in `express`, longest first */
	struct tn_list moving;            /* peers with something out and not stalled, longest silent first */
	struct dp_drr rounds[TN_PRIORITY_CNT];
	uint64_t served_ns[TN_PRIORITY_CNT]; /* last time the class was served or had no runnable flow */
	struct dp_target *targets;
	struct dp_target_deadlines *deadlines; /* one for each of them */
	struct tn_list rooms[TN_TRANSPORT_CNT]; /* targets that wait for room in a transport, longest first */
	uint32_t room_cnt;                /* targets in all of them */
	uint32_t queued;                  /* owners in all queues */
	const struct tn_metrics *m;
	struct dp_tally *tally;           /* the usual way in and out, and the levels */
};

tn_status dp_admission_init(struct dp_admission *a, const struct dp_admission_cfg *cfg, const struct tn_metrics *m,
			    struct dp_tally *tally);
/* Other values from now on (targets and quantum stay). A window that got smaller lets nothing new go until what is out
 * fits. Walks over all targets and, to order them anew, over what is queued: for reloads only. */
void dp_admission_tune(struct dp_admission *a, const struct dp_admission_cfg *cfg);
void dp_admission_destroy(struct dp_admission *a); /* accepts a zeroed object */

/* All that is out. */
TN_INLINE uint64_t dp_admission_out_bytes(const struct dp_admission *a)
{
	return a->window.bytes + a->express.bytes + a->stalled.bytes;
}
TN_INLINE uint32_t dp_admission_out_owners(const struct dp_admission *a)
{
	return a->window.owners + a->express.owners + a->stalled.owners;
}

/* Enter the queue (state is the caller's): at its end, or at its front when the owner was there before. */
void dp_admission_push(struct dp_admission *a, struct dp_owner *o, uint64_t now_ns, bool front);
/* The next owner that may go now; NULL when none (empty, window full, or all held). It stays queued; the caller then
 * calls exactly one of dispatch, defer, drop. */
struct dp_owner *dp_admission_next(struct dp_admission *a, uint64_t now_ns);
/* A transport took it: leaves the queue and takes its windows. */
void dp_admission_dispatch(struct dp_admission *a, struct dp_owner *o, uint64_t now_ns);
/* No room in the transport that was selected for it: it stays queued, and its target rests until the transport takes
 * something of another one, or until its turn in dp_admission_resume(). */
void dp_admission_defer(struct dp_admission *a, struct dp_owner *o);
/* Once per loop: of the targets that rest, one per transport may try again; peers that are silent for long are stalled
 * from now on. */
void dp_admission_resume(struct dp_admission *a, uint64_t now_ns);
/* A peer (DP_PEER_SELF: this host) answered something of what is out there. */
void dp_admission_moved(struct dp_admission *a, uint32_t peer_index, uint64_t now_ns);
/* With drop_infeasible: one of its owners completed, just now. */
void dp_admission_served(struct dp_admission *a, const struct dp_owner *o, uint64_t now_ns);
/* What this owner and all that is out at its target need of the time that is left to it, in permille; more than 1000: its
 * deadline cannot be met; 0: not known. */
uint32_t dp_admission_permille(struct dp_admission *a, const struct dp_owner *o, uint64_t now_ns);
/* When dp_admission_resume() is due although nothing happens; UINT64_MAX = not. */
uint64_t dp_admission_next_ns(const struct dp_admission *a);
/* Leaves the queue without going: deadline or cancel (or a failure before any attempt: counted as cancel). */
void dp_admission_drop(struct dp_admission *a, struct dp_owner *o, uint64_t now_ns, enum tn_admission_end why);
/* A dispatched owner ended or waits: its windows come back. */
void dp_admission_release(struct dp_admission *a, struct dp_owner *o);
/* Refused before it could queue (no pool room, draining). */
void dp_admission_reject(struct dp_admission *a, enum tn_owner_kind kind);

#endif
