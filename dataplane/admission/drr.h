/* SPDX-License-Identifier: Apache-2.0
 * Deficit round robin (Shreedhar, Varghese, "Efficient fair queueing using deficit round robin", 1995) over the flows
 * that may run now. Pure: a flow says only what its head costs; who owns the queue behind it is not known here.
 * A flow stands in a calendar under the round in which it can send its head, so nobody walks over those that cannot:
 * every call costs the same with one flow and with thousands. One owner thread. */
#ifndef DP_ADMISSION_DRR_H
#define DP_ADMISSION_DRR_H

#include <stdbool.h>
#include <stdint.h>

#include "common/list.h"

/* Rounds that the calendar sees ahead; a head that needs more is looked at again when they are over. */
#define DP_DRR_BUCKETS 256u

struct dp_drr_flow {
	struct tn_list link;  /* in the calendar while runnable */
	uint64_t cost;        /* bytes of its head */
	uint64_t deficit;     /* bytes it may send, as of round `since`; one quantum more for each round after that */
	uint64_t since, due;  /* due: the round under which it stands */
};

struct dp_drr {
	struct tn_list bucket[DP_DRR_BUCKETS]; /* by due % DP_DRR_BUCKETS */
	uint64_t marks[DP_DRR_BUCKETS / 64];   /* buckets that may hold a flow */
	uint64_t round;
	uint64_t quantum;                      /* bytes per round, > 0 */
	uint32_t runnable;
};

void dp_drr_init(struct dp_drr *d, uint64_t quantum);
void dp_drr_flow_init(struct dp_drr_flow *f);
/* Enters the round, or has a head of another cost from now on. */
void dp_drr_run(struct dp_drr *d, struct dp_drr_flow *f, uint64_t cost);
/* Leaves the round: empty (`keep` false: unused deficit is lost, as the paper has it) or held up by something else
 * (`keep` true: what it had saved stays). */
void dp_drr_stop(struct dp_drr *d, struct dp_drr_flow *f, bool keep);
/* The flow whose head is to be sent now; NULL when none is runnable. */
struct dp_drr_flow *dp_drr_pick(struct dp_drr *d);
/* The picked flow's head was sent; the caller then says what the next one costs, or stops the flow. */
void dp_drr_charge(struct dp_drr_flow *f);

#endif
