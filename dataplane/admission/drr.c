/* SPDX-License-Identifier: Apache-2.0
 * The round. A head that costs many quanta would need many empty turns; they are given to everybody in one step, which
 * is the same arithmetic without the walking. Pure; one owner thread. */
#include "dataplane/admission/drr.h"

void dp_drr_init(struct dp_drr *d, uint64_t quantum)
{
	tn_list_init(&d->round);
	d->quantum = quantum ? quantum : 1;
}

void dp_drr_flow_init(struct dp_drr_flow *f)
{
	*f = (struct dp_drr_flow){ 0 };
	tn_list_init(&f->link);
}

void dp_drr_run(struct dp_drr *d, struct dp_drr_flow *f)
{
	if (!tn_list_linked(&f->link))
		tn_list_push_back(&d->round, &f->link);
}

void dp_drr_stop(struct dp_drr_flow *f, bool keep)
{
	tn_list_unlink(&f->link);
	if (!keep)
		f->deficit = 0;
}

/* Turns until this flow can send its head. */
static uint64_t turns_needed(const struct dp_drr *d, const struct dp_drr_flow *f)
{
	return f->deficit >= f->cost ? 0 : (f->cost - f->deficit + d->quantum - 1) / d->quantum;
}

struct dp_drr_flow *dp_drr_pick(struct dp_drr *d)
{
	struct dp_drr_flow *first = tn_list_first(&d->round, struct dp_drr_flow, link);
	if (!first || first->deficit >= first->cost)
		return first;
	if (first->served) { /* its turn is over: to the end of the round */
		tn_list_unlink(&first->link);
		tn_list_push_back(&d->round, &first->link);
	}
	/* Who can send after the fewest turns? */
	uint64_t turns = UINT64_MAX;
	tn_list_foreach(node, &d->round) {
		uint64_t n = turns_needed(d, tn_list_entry(node, struct dp_drr_flow, link));
		turns = n < turns ? n : turns;
	}
	struct dp_drr_flow *winner = NULL;
	tn_list_foreach(node, &d->round) {
		struct dp_drr_flow *f = tn_list_entry(node, struct dp_drr_flow, link);
		f->deficit += turns * d->quantum;
		f->served = false;
		if (!winner && f->deficit >= f->cost)
			winner = f;
	}
	/* The winner gets the turn; those before it wait for the next round. */
	while (d->round.next != &winner->link) {
		struct tn_list *node = tn_list_pop_front(&d->round);
		tn_list_push_back(&d->round, node);
	}
	return winner;
}

void dp_drr_charge(struct dp_drr_flow *f)
{
	f->deficit = f->deficit > f->cost ? f->deficit - f->cost : 0;
	f->served = true;
}
