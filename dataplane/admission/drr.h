/* SPDX-License-Identifier: Apache-2.0
 * Deficit round robin (Shreedhar, Varghese, "Efficient fair queueing using deficit round robin", 1995) over the flows
 * that may run now. Pure: a flow says only what its head costs; who owns the queue behind it is not known here.
 * One owner thread. */
#ifndef DP_ADMISSION_DRR_H
#define DP_ADMISSION_DRR_H

#include <stdbool.h>
#include <stdint.h>

#include "common/list.h"

struct dp_drr_flow {
	struct tn_list link;  /* in the round while runnable */
	uint64_t cost;        /* bytes of its head; set by the caller before it runs */
	uint64_t deficit;     /* bytes it may still send in this turn */
	bool served;          /* sent something in this turn */
};

struct dp_drr {
	struct tn_list round; /* runnable flows; the first one has the turn */
	uint64_t quantum;     /* bytes per turn, > 0 */
};

void dp_drr_init(struct dp_drr *d, uint64_t quantum);
void dp_drr_flow_init(struct dp_drr_flow *f);
/* Enters the round at its end (nothing happens when already inside). */
void dp_drr_run(struct dp_drr *d, struct dp_drr_flow *f);
/* Leaves the round: empty (`keep` false: unused deficit is lost, as the paper has it) or held up by something else
 * (`keep` true: what it had saved stays). */
void dp_drr_stop(struct dp_drr_flow *f, bool keep);
/* The flow whose head is to be sent now; NULL when none is runnable. Costs of all runnable flows must be current. */
struct dp_drr_flow *dp_drr_pick(struct dp_drr *d);
/* The picked flow's head was sent; the caller then sets the new cost or stops the flow. */
void dp_drr_charge(struct dp_drr_flow *f);

#endif
