/* SPDX-License-Identifier: Apache-2.0
 * The calendar. All flows of the present round stand in its bucket; it is over when none of them can send any more.
 * Rounds in which nobody could send are skipped: what a flow earned in them follows from the number of the round.
 * Pure; one owner thread. */
#include "dataplane/admission/drr.h"

#include "common/assert.h"

#define MARK_WORDS (DP_DRR_BUCKETS / 64)

void dp_drr_init(struct dp_drr *d, uint64_t quantum)
{
	*d = (struct dp_drr){ .quantum = quantum ? quantum : 1 };
	for (uint32_t i = 0; i < DP_DRR_BUCKETS; i++)
		tn_list_init(&d->bucket[i]);
}

void dp_drr_flow_init(struct dp_drr_flow *f)
{
	*f = (struct dp_drr_flow){ 0 };
	tn_list_init(&f->link);
}

static void settle(const struct dp_drr *d, struct dp_drr_flow *f)
{
	f->deficit += (d->round - f->since) * d->quantum;
	f->since = d->round;
}

/* Under the round in which it can send its head, or as far ahead as the calendar goes. It is settled. */
static void file(struct dp_drr *d, struct dp_drr_flow *f)
{
	uint64_t rounds = f->deficit >= f->cost ? 0 : (f->cost - f->deficit - 1) / d->quantum + 1;
	f->due = d->round + TN_MIN(rounds, (uint64_t)DP_DRR_BUCKETS - 1);
	uint32_t i = f->due % DP_DRR_BUCKETS;
	tn_list_push_back(&d->bucket[i], &f->link);
	d->marks[i / 64] |= UINT64_C(1) << i % 64;
}

void dp_drr_run(struct dp_drr *d, struct dp_drr_flow *f, uint64_t cost)
{
	bool inside = tn_list_linked(&f->link), cheaper = cost < f->cost;
	f->cost = cost;
	if (inside && (!cheaper || f->due == d->round))
		return; /* where it stands it is looked at in time */
	if (inside) {
		settle(d, f);
		tn_list_unlink(&f->link);
	} else {
		f->since = d->round;
		d->runnable++;
	}
	file(d, f);
}

void dp_drr_stop(struct dp_drr *d, struct dp_drr_flow *f, bool keep)
{
	if (tn_list_linked(&f->link)) {
		settle(d, f);
		tn_list_unlink(&f->link);
		d->runnable--;
	}
	if (!keep)
		f->deficit = 0;
}

/* To the next round under which somebody may stand. */
static void next_round(struct dp_drr *d)
{
	uint32_t at = d->round % DP_DRR_BUCKETS, from = (at + 1) % DP_DRR_BUCKETS, word = from / 64;
	d->marks[at / 64] &= ~(UINT64_C(1) << at % 64);
	uint64_t marks = d->marks[word] >> from % 64;
	if (marks) {
		d->round += 1 + (uint64_t)__builtin_ctzll(marks);
		return;
	}
	uint64_t step = 1 + 64 - from % 64;
	for (uint32_t i = 1; i <= MARK_WORDS; i++, step += 64) {
		marks = d->marks[(word + i) % MARK_WORDS];
		if (!marks)
			continue;
		d->round += step + (uint64_t)__builtin_ctzll(marks);
		return;
	}
	tn_assert(false); /* somebody is runnable */
}

struct dp_drr_flow *dp_drr_pick(struct dp_drr *d)
{
	while (d->runnable > 0) {
		struct dp_drr_flow *f =
			tn_list_first(&d->bucket[d->round % DP_DRR_BUCKETS], struct dp_drr_flow, link);
		if (!f) {
			next_round(d);
			continue;
		}
		settle(d, f);
		if (f->deficit >= f->cost)
			return f;
		tn_list_unlink(&f->link); /* its turn is over */
		file(d, f);
	}
	return NULL;
}

void dp_drr_charge(struct dp_drr_flow *f) { f->deficit -= TN_MIN(f->deficit, f->cost); }
