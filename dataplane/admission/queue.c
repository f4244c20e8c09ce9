/* SPDX-License-Identifier: Apache-2.0
 * The admission queues of one worker. A flow is one (target, priority) queue; a flow that can run stands in the round
 * of its class. A target whose window is full, or whose transport has no room, is held: its flows leave the rounds until
 * the reason may be gone, so a slow peer costs the others nothing. Nothing here walks over targets. One worker. */
#include "dataplane/admission/queue.h"

#include <stdlib.h>

#include "common/assert.h"
#include "common/clock.h"

struct dp_flow {
	struct dp_drr_flow drr;
	struct tn_list owners;
	struct dp_target *target;
};

struct dp_target {
	struct dp_flow flows[TN_PRIORITY_CNT];
	struct dp_window window, express;
	struct tn_list room_link; /* in dp_admission.rooms */
	struct tn_list moving_link; /* in dp_admission.moving */
	struct tn_list express_link; /* in dp_admission.express_waits */
	uint64_t moved_ns;        /* while something is out: when it was answered last, or the first of it went */
	bool stalled;             /* silent for long: what is out counts in dp_admission.stalled */
	uint8_t held;             /* enum hold */
	uint8_t held_from;        /* flows of this class and lower ones stand in no round; TN_PRIORITY_CNT: all do */
	bool ready;               /* initialised: targets are touched only when used */
};

/* What only those need who asked for it; beside the targets, so that nobody else pays for it. */
struct dp_target_deadlines {
	struct dp_edf edf[TN_PRIORITY_CNT]; /* the owners of the queues once more, by deadline; while `edf` is set */
	struct dp_rate rate;                /* while `drop_infeasible` is set */
};

/* Why flows of it stand in no round, and what ends that: a release, or a transport that may have room again. */
enum hold { HOLD_NOT, HOLD_WINDOW, HOLD_ROOM };

static void set_express(struct dp_window *express, const struct dp_window *w)
{
	express->owners_max = TN_MAX(w->owners_max / DP_ADMISSION_EXPRESS, 1u);
	express->bytes_max = w->bytes_max / DP_ADMISSION_EXPRESS;
}

/* The own host has no peer behind it: only the worker's window bounds it. */
static void set_limits(struct dp_admission *a, struct dp_target *t)
{
	bool peer = t != a->targets;
	t->window.owners_max = peer ? a->cfg.peer_window_owners : a->cfg.window_owners;
	t->window.bytes_max = peer ? a->cfg.peer_window_bytes : a->cfg.window_bytes;
	set_express(&t->express, &t->window);
}

static struct dp_target *target_of(struct dp_admission *a, const struct dp_owner *o)
{
	uint32_t i = o->peer_index + 1u;
	tn_assert(i < a->cfg.targets);
	struct dp_target *t = &a->targets[i];
	if (tn_likely(t->ready))
		return t;
	for (unsigned p = 0; p < TN_PRIORITY_CNT; p++) {
		dp_drr_flow_init(&t->flows[p].drr);
		tn_list_init(&t->flows[p].owners);
		t->flows[p].target = t;
	}
	set_limits(a, t);
	tn_list_init(&t->room_link);
	tn_list_init(&t->moving_link);
	tn_list_init(&t->express_link);
	t->held_from = TN_PRIORITY_CNT;
	t->ready = true;
	return t;
}

static void set_window(struct dp_admission *a)
{
	a->window.owners_max = a->cfg.window_owners;
	a->window.bytes_max = a->cfg.window_bytes;
	set_express(&a->express, &a->window);
	for (unsigned kind = 0; kind < TN_WINDOW_CNT; kind++)
		tn_gauge_set(a->m, TN_G1(DISPATCH_WINDOW_OWNERS, kind), a->cfg.window_owners);
}

tn_status dp_admission_init(struct dp_admission *a, const struct dp_admission_cfg *cfg, const struct tn_metrics *m,
			    struct dp_tally *tally)
{
	struct dp_target *targets = calloc(cfg->targets, sizeof *targets);
	struct dp_target_deadlines *deadlines = calloc(cfg->targets, sizeof *deadlines); /* pages come when used */
	if (!targets || !deadlines) {
		free(targets);
		free(deadlines);
		return TN_NO_MEMORY;
	}
	*a = (struct dp_admission){ .cfg = *cfg, .targets = targets, .deadlines = deadlines, .m = m, .tally = tally };
	set_window(a);
	for (unsigned p = 0; p < TN_PRIORITY_CNT; p++)
		dp_drr_init(&a->rounds[p], cfg->quantum_bytes);
	for (unsigned kind = 0; kind < TN_TRANSPORT_CNT; kind++)
		tn_list_init(&a->rooms[kind]);
	tn_list_init(&a->moving);
	tn_list_init(&a->express_waits);
	dp_window_init(&a->stalled, UINT32_MAX, UINT64_MAX);
	return TN_OK;
}

void dp_admission_destroy(struct dp_admission *a)
{
	free(a->targets);
	free(a->deadlines);
	*a = (struct dp_admission){ 0 };
}

/* ---- one queue ---- */

static struct dp_target_deadlines *deadlines_of(const struct dp_admission *a, const struct dp_target *t)
{
	return &a->deadlines[t - a->targets];
}

static struct dp_edf *order_of(const struct dp_admission *a, const struct dp_flow *f)
{
	return &deadlines_of(a, f->target)->edf[f - f->target->flows];
}

static TN_COLD struct dp_owner *earliest(const struct dp_admission *a, const struct dp_flow *f)
{
	return order_of(a, f)->root;
}

TN_INLINE struct dp_owner *head_of(const struct dp_admission *a, const struct dp_flow *f)
{
	return tn_unlikely(a->cfg.edf) ? earliest(a, f) : tn_list_first(&f->owners, struct dp_owner, link);
}

TN_INLINE void dequeue(struct dp_admission *a, struct dp_flow *f, struct dp_owner *o)
{
	tn_list_unlink(&o->link);
	if (tn_unlikely(a->cfg.edf))
		dp_edf_remove(order_of(a, f), o);
}

/* It is ordered by deadline from now on, or not any more. */
static void reorder(struct dp_admission *a, struct dp_flow *f)
{
	struct dp_edf *order = order_of(a, f);
	order->root = NULL;
	if (a->cfg.edf)
		tn_list_foreach(node, &f->owners)
			dp_edf_push(order, tn_list_entry(node, struct dp_owner, link));
}

/* The queue has a (new) head: let the round know what it costs, unless the target is held. */
TN_INLINE void flow_refresh(struct dp_admission *a, struct dp_flow *f, unsigned priority)
{
	const struct dp_owner *head = head_of(a, f);
	if (!head)
		dp_drr_stop(&a->rounds[priority], &f->drr, false);
	else if (priority < f->target->held_from)
		dp_drr_run(&a->rounds[priority], &f->drr, head->bytes);
}

static void hold(struct dp_admission *a, struct dp_target *t, enum hold why, unsigned from)
{
	for (unsigned p = from; p < TN_PRIORITY_CNT; p++)
		dp_drr_stop(&a->rounds[p], &t->flows[p].drr, true);
	t->held = (uint8_t)why;
	t->held_from = (uint8_t)from;
}

/* True when there was something to let go. */
static bool unhold(struct dp_admission *a, struct dp_target *t)
{
	bool any = false;
	tn_list_unlink(&t->express_link);
	t->held = HOLD_NOT;
	t->held_from = TN_PRIORITY_CNT;
	for (unsigned p = 0; p < TN_PRIORITY_CNT; p++) {
		flow_refresh(a, &t->flows[p], p);
		any |= !tn_list_empty(&t->flows[p].owners);
	}
	return any;
}

/* The transport that its last selection chose. */
static unsigned kind_of(const struct dp_owner *o) { return o->candidates[o->candidate]; }

/* Whoever waits longest for room in this transport may ask. One only: if it is taken, the next one follows; if not, the
 * others need not ask. */
static void try_room(struct dp_admission *a, unsigned kind)
{
	struct tn_list *node;
	while ((node = tn_list_pop_front(&a->rooms[kind]))) {
		a->room_cnt--;
		if (unhold(a, tn_list_entry(node, struct dp_target, room_link)))
			return;
	}
}

/* The same for the highest class's part of the worker's window: one that can use it. */
static void try_express(struct dp_admission *a)
{
	struct tn_list *node;
	while ((node = tn_list_pop_front(&a->express_waits))) {
		struct dp_target *t = tn_list_entry(node, struct dp_target, express_link);
		(void)unhold(a, t);
		if (!t->stalled && !tn_list_empty(&t->flows[TN_PRIORITY_HIGH].owners))
			return;
	}
}

void dp_admission_tune(struct dp_admission *a, const struct dp_admission_cfg *cfg)
{
	uint32_t before = a->cfg.window_owners, targets = a->cfg.targets;
	uint64_t quantum = a->cfg.quantum_bytes;
	bool other_order = a->cfg.edf != cfg->edf;
	a->cfg = *cfg;
	a->cfg.targets = targets;
	a->cfg.quantum_bytes = quantum;
	if (cfg->window_owners != before)
		tn_counter_add(a->m, TN_C1(DISPATCH_WINDOW_CHANGES_TOTAL, cfg->window_owners > before ? TN_WINDOW_MOVE_UP :
												       TN_WINDOW_MOVE_DOWN), 1);
	set_window(a);
	for (uint32_t i = 0; i < targets; i++) {
		struct dp_target *t = &a->targets[i];
		if (!t->ready)
			continue;
		set_limits(a, t);
		for (unsigned p = 0; other_order && p < TN_PRIORITY_CNT; p++)
			reorder(a, &t->flows[p]);
		if (t->held != HOLD_ROOM)
			(void)unhold(a, t);
	}
}

static void count_event(struct dp_admission *a, unsigned owner_kind, enum tn_admission event)
{
	tn_counter_add(a->m, TN_C2(ADMISSION_EVENTS_TOTAL, owner_kind, event), 1);
}

void dp_admission_push(struct dp_admission *a, struct dp_owner *o, uint64_t now_ns, bool front)
{
	struct dp_target *t = o->target = target_of(a, o);
	struct dp_flow *f = &t->flows[o->priority];
	o->admit_ns = now_ns;
	a->queued++;
	dp_tally_admitted(a->tally, o->kind);
	if (a->rounds[o->priority].runnable == 0)
		a->served_ns[o->priority] = now_ns; /* its waiting starts now */
	if (front)
		tn_list_push_front(&f->owners, &o->link);
	else
		tn_list_push_back(&f->owners, &o->link);
	if (tn_unlikely(a->cfg.edf))
		dp_edf_push(order_of(a, f), o);
	if (head_of(a, f) == o)
		flow_refresh(a, f, o->priority);
}

/* May it go in the part of the windows that is the highest class's own? */
TN_INLINE bool is_express(const struct dp_admission *a, const struct dp_target *t, unsigned priority, uint64_t bytes)
{
	return priority == TN_PRIORITY_HIGH && dp_window_has_room(&t->express, bytes) &&
	       dp_window_has_room(&a->express, bytes) && !t->stalled;
}

/* The flow of a class that should go, after setting aside targets whose windows are full. Where a lower class waits for
 * its window, the highest one has only its own part: else it would pass the other by for ever. */
static struct dp_flow *pick_class(struct dp_admission *a, unsigned priority)
{
	for (;;) {
		struct dp_drr_flow *d = dp_drr_pick(&a->rounds[priority]);
		if (!d)
			return NULL;
		struct dp_flow *f = tn_container_of(d, struct dp_flow, drr);
		struct dp_target *t = f->target;
		if (t->held == HOLD_NOT && dp_window_fits(&t->window, d->cost))
			return f;
		if (is_express(a, t, priority, d->cost))
			return f;
		hold(a, t, HOLD_WINDOW, priority == TN_PRIORITY_HIGH ? 0 : 1);
		if (priority == TN_PRIORITY_HIGH && !t->stalled && dp_window_has_room(&t->express, d->cost))
			tn_list_push_back(&a->express_waits, &t->express_link); /* the worker's part is full, not the target's */
	}
}

struct dp_owner *dp_admission_next(struct dp_admission *a, uint64_t now_ns)
{
	if (a->queued == 0)
		return NULL;
	struct dp_flow *best = NULL, *first = NULL;
	for (unsigned p = 0; p < TN_PRIORITY_CNT; p++) {
		bool aged = now_ns - a->served_ns[p] >= DP_ADMISSION_AGE_NS;
		if (a->rounds[p].runnable == 0) {
			a->served_ns[p] = now_ns;
			continue;
		}
		if (best && !aged)
			continue;
		struct dp_flow *f = pick_class(a, p);
		if (f)
			best = f; /* an aged lower class goes before what was found above it */
		if (p == TN_PRIORITY_HIGH)
			first = f;
	}
	if (!best)
		return NULL;
	/* One that does not fit the worker's window stops all classes, but for what is the highest one's own: else small
	 * ones would pass it by for ever. */
	if (best->target->stalled || dp_window_fits(&a->window, best->drr.cost))
		return head_of(a, best);
	bool express = first && is_express(a, first->target, TN_PRIORITY_HIGH, first->drr.cost);
	return express ? head_of(a, first) : NULL;
}

/* ---- targets that do not answer ---- */

TN_INLINE uint32_t out_of(const struct dp_target *t) { return t->window.owners + t->express.owners; }

TN_INLINE struct dp_window *counted_in(struct dp_admission *a, const struct dp_target *t, bool express)
{
	return tn_unlikely(t->stalled) ? &a->stalled : tn_unlikely(express) ? &a->express : &a->window;
}

static void count_out(struct dp_window *in, const struct dp_window *what, bool on)
{
	in->owners += on ? what->owners : -what->owners;
	in->bytes += on ? what->bytes : -what->bytes;
}

/* All that is out changes from one window to the other. */
static void set_stalled(struct dp_admission *a, struct dp_target *t, bool on)
{
	count_out(&a->window, &t->window, !on);
	count_out(&a->express, &t->express, !on);
	count_out(&a->stalled, &t->window, on);
	count_out(&a->stalled, &t->express, on);
	t->stalled = on;
}

/* It moves: last of those that may stall. */
static void stamp(struct dp_admission *a, struct dp_target *t, uint64_t now_ns)
{
	tn_list_unlink(&t->moving_link);
	tn_list_push_back(&a->moving, &t->moving_link);
	t->moved_ns = now_ns;
}

void dp_admission_moved(struct dp_admission *a, uint32_t peer_index, uint64_t now_ns)
{
	if (peer_index >= a->cfg.targets - 1)
		return; /* this host, too */
	struct dp_target *t = &a->targets[peer_index + 1];
	if (out_of(t) == 0)
		return;
	if (t->stalled)
		set_stalled(a, t, false);
	else if (now_ns - t->moved_ns < a->cfg.stall_ns / 8)
		return; /* soon enough: most answers cost one comparison */
	stamp(a, t, now_ns);
}

static void sweep(struct dp_admission *a, uint64_t now_ns)
{
	struct dp_target *t;
	while ((t = tn_list_first(&a->moving, struct dp_target, moving_link)) &&
	       now_ns - t->moved_ns >= a->cfg.stall_ns) {
		tn_list_unlink(&t->moving_link);
		set_stalled(a, t, true);
		try_express(a); /* it gave its share back */
	}
}

uint64_t dp_admission_next_ns(const struct dp_admission *a)
{
	const struct dp_target *t = tn_list_first(&a->moving, struct dp_target, moving_link);
	return a->queued > 0 && t ? t->moved_ns + a->cfg.stall_ns : UINT64_MAX;
}

/* ---- can it be over in time? ---- */

void dp_admission_served(struct dp_admission *a, const struct dp_owner *o, uint64_t now_ns)
{
	dp_rate_served(&deadlines_of(a, o->target)->rate, o->bytes, o->dispatch_ns, now_ns);
}

uint32_t dp_admission_permille(struct dp_admission *a, const struct dp_owner *o, uint64_t now_ns)
{
	const struct dp_target *t = o->target;
	uint64_t bytes = t->window.bytes + t->express.bytes + o->bytes;
	return dp_rate_permille(&deadlines_of(a, t)->rate, bytes, tn_remaining_ns(o->deadline_ns, now_ns), now_ns);
}

/* ---- out of the queue ---- */

TN_INLINE void take_windows(struct dp_admission *a, struct dp_target *t, struct dp_owner *o, bool express)
{
	o->express = express;
	dp_window_take(tn_unlikely(express) ? &t->express : &t->window, o->bytes);
	dp_window_take(counted_in(a, t, express), o->bytes);
}

void dp_admission_dispatch(struct dp_admission *a, struct dp_owner *o, uint64_t now_ns)
{
	struct dp_target *t = o->target;
	struct dp_flow *f = &t->flows[o->priority];
	dequeue(a, f, o);
	dp_drr_charge(&f->drr);
	flow_refresh(a, f, o->priority);
	if (out_of(t) == 0 && t != a->targets) /* this host answers for itself */
		stamp(a, t, now_ns);
	take_windows(a, t, o, is_express(a, t, o->priority, o->bytes));
	a->served_ns[o->priority] = now_ns;
	o->dispatch_ns = now_ns;
	a->queued--;
	dp_tally_dispatched(a->tally, o->kind, o->bytes, now_ns - o->admit_ns);
	if (a->room_cnt > 0)
		try_room(a, kind_of(o));
	if (o->express)
		try_express(a);
}

void dp_admission_defer(struct dp_admission *a, struct dp_owner *o)
{
	struct dp_target *t = o->target;
	count_event(a, o->kind, TN_ADMISSION_DEFER);
	hold(a, t, HOLD_ROOM, 0);
	tn_list_push_back(&a->rooms[kind_of(o)], &t->room_link);
	a->room_cnt++;
}

void dp_admission_resume(struct dp_admission *a, uint64_t now_ns)
{
	sweep(a, now_ns);
	for (unsigned kind = 0; a->room_cnt > 0 && kind < TN_TRANSPORT_CNT; kind++)
		try_room(a, kind);
}

void dp_admission_drop(struct dp_admission *a, struct dp_owner *o, uint64_t now_ns, enum tn_admission_end why)
{
	static const uint8_t event[] = {
		[TN_ADMISSION_END_DEADLINE_DROP] = TN_ADMISSION_DEADLINE_DROP,
		[TN_ADMISSION_END_CANCEL] = TN_ADMISSION_CANCEL,
	};
	struct dp_flow *f = &o->target->flows[o->priority];
	dequeue(a, f, o);
	flow_refresh(a, f, o->priority);
	count_event(a, o->kind, event[why]);
	a->queued--;
	dp_tally_dropped(a->tally, o->kind);
	tn_hist_observe(a->m, TN_H2(ADMISSION_WAIT_US, o->kind, why), now_ns - o->admit_ns);
}

void dp_admission_release(struct dp_admission *a, struct dp_owner *o)
{
	struct dp_target *t = o->target;
	struct dp_window *own = tn_unlikely(o->express) ? &t->express : &t->window;
	dp_window_give(own, o->bytes);
	dp_window_give(counted_in(a, t, o->express), o->bytes);
	if (out_of(t) == 0) {
		tn_list_unlink(&t->moving_link);
		t->stalled = false;
	}
	if (t->held == HOLD_WINDOW)
		(void)unhold(a, t);
	if (o->express)
		try_express(a);
	dp_tally_released(a->tally, o->kind, o->bytes);
}

void dp_admission_reject(struct dp_admission *a, enum tn_owner_kind kind) { count_event(a, kind, TN_ADMISSION_REJECT); }
