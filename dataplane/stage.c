/* SPDX-License-Identifier: Apache-2.0
 * The way of a staged owner: its memory is out of our reach, so it moves in pieces through staging buffers, which the
 * application itself fills (WRITE) or empties (READ) when it is asked to. Each piece is an owner of its own kind while it
 * moves: it is admitted, retried and failed over like any other, and holds windows only then, not while the application
 * copies. An application that is slow, stopped or dead holds its own buffers and nothing else. What callbacks find out is
 * only noted (lists of struct dp_stage); dp_stage_step() acts on it. Worker thread. */
#include "common/assert.h"
#include "common/clock.h"
#include "common/hook.h"
#include "dataplane/worker_state.h"

#define STAGE_BUDGET 64u /* of each kind of thing that one turn does */
#define ASK_AGAIN_NS (100 * TN_NS_PER_US)

void dp_stage_init(struct dp_stage *s)
{
	tn_list_init(&s->areas);
	tn_list_init(&s->unasked);
	tn_list_init(&s->ready);
	tn_list_init(&s->moving);
	tn_list_init(&s->ending);
	tn_list_init(&s->leaving);
	tn_list_init(&s->quarantine);
}

static struct dp_stage_area *area_of(const struct dp_worker *w, tn_handle staging)
{
	const struct dp_memory_slot *s = dp_view_memory_slot(&w->view, staging);
	return s && s->obj->areas ? &s->obj->areas[w->index] : NULL;
}

static void something_moved(struct dp_worker *w)
{
	w->stage.progress_ns = w->now_ns;
	w->stage.changed = true;
}

static void may_start(struct dp_worker *w, struct dp_stage_area *a)
{
	if (!tn_list_linked(&a->link))
		tn_list_push_back(&w->stage.areas, &a->link);
}

void dp_stage_begin(struct dp_worker *w, struct dp_owner *o, tn_handle staging)
{
	struct dp_stage_task *t = dp_task_new(&w->pools);
	tn_assert(t); /* as many as requests */
	t->owner = o;
	t->area = area_of(w, staging);
	tn_assert(t->area); /* it outlives what was imported over it */
	o->task = t;
	dp_owner_move(&w->pools.states, o, DP_OWNER_STAGED);
	w->stage.task_cnt++;
	dp_stage_enter(t->area, t);
	may_start(w, t->area);
	something_moved(w);
}

/* ---- a task is over ---- */

static void set_end(struct dp_stage_task *t, uint8_t outcome, tn_status status, uint8_t phase, uint8_t reason)
{
	t->over = true;
	t->end_outcome = outcome;
	t->end_status = status;
	t->end_phase = phase;
	t->end_reason = reason;
}

/* Noted only: what found it out may stand in the middle of a transport. */
static void fail_task(struct dp_worker *w, struct dp_stage_task *t, uint8_t outcome, tn_status status, uint8_t phase,
		      uint8_t reason)
{
	if (t->over)
		return;
	set_end(t, outcome, status, phase, reason);
	tn_list_unlink(&t->link);
	tn_list_push_back(&w->stage.ending, &t->link);
}

/* The chunk is free; was it the last one? */
static void release(struct dp_worker *w, struct dp_stage_piece *p)
{
	struct dp_stage_task *t = p->task;
	struct dp_owner *o = t->owner;
	w->stage.bytes -= p->bytes;
	dp_stage_give(t->area, p);
	may_start(w, t->area);
	something_moved(w);
	if (t->held > 0)
		return;
	if (o->state == DP_OWNER_LEAVING) {
		tn_list_unlink(&t->link);
		tn_list_push_back(&w->stage.ending, &t->link);
	} else if (t->done_bytes == o->bytes) {
		fail_task(w, t, TN_OUTCOME_COMPLETED, TN_OK, 0, 0);
	}
}

/* What nobody else has is free at once; transports are told; applications are waited for. */
static void cancel_pieces(struct dp_worker *w, struct dp_stage_task *t)
{
	struct dp_stage_area *a = t->area;
	for (uint32_t i = 0; i < a->cnt && t->held > 0; i++) {
		struct dp_stage_piece *p = &a->pieces[i];
		if (p->task != t || p->asked)
			continue;
		if (p->state == DP_STAGE_MOVE) {
			dp_flow_stop_owner(w, p->owner, t->end_outcome == TN_OUTCOME_TIMEOUT ? TN_OUTCOME_TIMEOUT : TN_OUTCOME_CANCELED);
		} else {
			tn_list_unlink(&p->link);
			release(w, p);
		}
	}
}

static void free_task(struct dp_worker *w, struct dp_stage_task *t)
{
	dp_owner_free(&w->pools, t->owner);
	dp_task_free(&w->pools, t);
}

static void end_task(struct dp_worker *w, struct dp_stage_task *t)
{
	struct dp_owner *o = t->owner;
	tn_list_unlink(&t->link);
	cancel_pieces(w, t);
	struct dp_terminal e = {
		.status = t->end_status, .outcome = t->end_outcome, .phase = t->end_phase, .reason = t->end_reason,
		.transport = o->last_transport, .attempts = o->attempt_cnt, .failovers = o->failover_cnt, .busy = t->held > 0,
		.child_kept = o->child_kept, .dispatch_ns = o->dispatch_ns, .attempt_ns = o->attempt_ns,
	};
	dp_owner_end_requests(w, o, &e);
	w->stage.task_cnt--;
	something_moved(w);
	if (!e.busy) {
		free_task(w, t);
		return;
	}
	dp_owner_move(&w->pools.states, o, DP_OWNER_LEAVING);
	t->since_ns = w->now_ns;
	tn_list_push_back(&w->stage.leaving, &t->link);
	w->stage.leaving_cnt++;
}

/* Nothing of it is anywhere any more. */
static void let_go(struct dp_worker *w, struct dp_stage_task *t)
{
	const struct dp_terminal quiet = { 0 };
	tn_list_unlink(&t->link);
	w->stage.leaving_cnt -= !t->quarantined;
	w->stage.quarantine_cnt -= t->quarantined;
	something_moved(w);
	dp_owner_end_requests(w, t->owner, &quiet);
	free_task(w, t);
}

static uint32_t end_tasks(struct dp_worker *w)
{
	uint32_t done = 0;
	struct dp_stage_task *t;
	while (done < STAGE_BUDGET && (t = tn_list_first(&w->stage.ending, struct dp_stage_task, link))) {
		if (t->owner->state == DP_OWNER_LEAVING)
			let_go(w, t);
		else
			end_task(w, t);
		done++;
	}
	return done;
}

void dp_stage_end(struct dp_worker *w, struct dp_owner *o, enum tn_outcome outcome, tn_status status, uint8_t phase,
		  uint8_t reason)
{
	if (!o->task->over)
		set_end(o->task, (uint8_t)outcome, status, phase, reason);
	end_task(w, o->task);
}

/* ---- pieces ---- */

static void want_copy(struct dp_worker *w, struct dp_stage_piece *p)
{
	p->seq++;
	tn_list_push_back(&w->stage.unasked, &p->link);
}

static void start(struct dp_worker *w, struct dp_stage_piece *p)
{
	struct dp_owner *o = p->task->owner;
	if (p->off == 0) { /* from here on its memory is touched */
		tn_list_foreach(node, &o->requests) {
			struct dp_request *r = tn_list_entry(node, struct dp_request, owner_link);
			if (r->state != DP_REQUEST_ZOMBIE)
				dp_request_move(&w->pools.states, r, DP_REQUEST_RUNNING);
		}
	}
	w->stage.bytes += p->bytes;
	if (o->op == TN_OP_WRITE) {
		dp_stage_move(p, DP_STAGE_FILL);
		want_copy(w, p);
	} else {
		dp_stage_move(p, DP_STAGE_READY);
		tn_list_push_back(&w->stage.ready, &p->link);
	}
}

/* One piece of each application in turn. */
static uint32_t start_pieces(struct dp_worker *w)
{
	uint32_t done = 0;
	struct tn_list *node;
	while (done < STAGE_BUDGET && (node = tn_list_pop_front(&w->stage.areas))) {
		struct dp_stage_area *a = tn_list_entry(node, struct dp_stage_area, link);
		struct dp_stage_piece *p = dp_stage_take(a);
		if (!p)
			continue;
		start(w, p);
		may_start(w, a);
		something_moved(w);
		done++;
	}
	return done;
}

/* An owner for the piece; its windows are taken when it is dispatched, and are back before the application is asked. */
static void become_owner(struct dp_worker *w, struct dp_stage_piece *p)
{
	const struct dp_stage_area *a = p->task->area;
	const struct dp_owner *whole = p->task->owner;
	struct dp_owner *o = dp_owner_new(&w->pools);
	tn_assert(o); /* there are DP_STAGE_MOVING_MAX more than requests */
	o->kind = TN_OWNER_KIND_STAGING_INTERNAL;
	o->task = p->task;
	o->piece = p;
	o->op = whole->op;
	o->priority = whole->priority;
	o->hint = whole->hint;
	o->policy = whole->policy;
	o->peer_index = whole->peer_index;
	o->memory = a->memory;
	o->local_off = dp_stage_chunk_off(a, p);
	o->remote = whole->remote;
	o->remote_off = whole->remote_off + p->off;
	o->bytes = p->bytes;
	o->deadline_ns = whole->deadline_ns;
	p->owner = o;
	dp_stage_move(p, DP_STAGE_MOVE);
	tn_list_push_back(&w->stage.moving, &p->link);
	w->stage.moving_cnt++;
	dp_owner_move(&w->pools.states, o, DP_OWNER_QUEUED);
	dp_admission_push(&w->admission, o, w->now_ns, false);
}

static uint32_t move_ready(struct dp_worker *w)
{
	uint32_t done = 0;
	struct tn_list *node;
	while (done < STAGE_BUDGET && w->stage.moving_cnt < DP_STAGE_MOVING_MAX && (node = tn_list_pop_front(&w->stage.ready))) {
		become_owner(w, tn_list_entry(node, struct dp_stage_piece, link));
		done++;
	}
	return done;
}

/* What the whole is told of a part that ended. */
static void add_up(struct dp_owner *whole, const struct dp_owner *part, const struct dp_terminal *t)
{
	whole->attempt_cnt = (uint8_t)TN_MIN(whole->attempt_cnt + t->attempts, UINT8_MAX);
	whole->failover_cnt = (uint8_t)TN_MIN(whole->failover_cnt + t->failovers, UINT8_MAX);
	whole->last_transport = t->transport;
	whole->child_kept |= t->child_kept;
	whole->attempt_id = part->attempt_id;
	if (whole->dispatch_ns == 0)
		whole->dispatch_ns = t->dispatch_ns;
	if (t->attempt_ns != 0)
		whole->attempt_ns = t->attempt_ns;
	if (t->outcome == TN_OUTCOME_COMPLETED)
		return;
	whole->needed_permille = part->needed_permille;
	whole->last_status = part->last_status;
	whole->last_phase = part->last_phase;
	whole->last_reason = part->last_reason;
}

/* Was it moved to or from the memory that the others were? The publisher may have come back with other memory meanwhile: a
 * request that has a part in each is not completed. */
static bool fits(struct dp_stage_task *t, const struct dp_stage_piece *p)
{
	if (tn_id128_is_zero(&t->publication))
		t->publication = p->publication;
	return tn_id128_eq(&t->publication, &p->publication);
}

void dp_stage_moved(struct dp_worker *w, struct dp_stage_piece *p, const struct dp_terminal *t)
{
	struct dp_stage_task *task = p->task;
	add_up(task->owner, p->owner, t);
	p->owner = NULL;
	tn_list_unlink(&p->link);
	w->stage.moving_cnt--;
	bool good = t->outcome == TN_OUTCOME_COMPLETED;
	if (!good)
		fail_task(w, task, t->outcome, t->status, t->phase, t->reason);
	else if (!fits(task, p))
		fail_task(w, task, TN_OUTCOME_FAILED, TN_STALE, TN_PHASE_METADATA, TN_REASON_STALE_GENERATION);
	if (task->over || task->owner->op == TN_OP_WRITE) {
		task->done_bytes += good ? p->bytes : 0;
		release(w, p);
		return;
	}
	TN_HOOK(dp_stage_moved);
	dp_stage_move(p, DP_STAGE_DRAIN);
	want_copy(w, p);
}

/* ---- copies ---- */

static uint32_t ask(struct dp_worker *w)
{
	uint32_t done = 0;
	struct dp_stage_piece *p;
	while (done < STAGE_BUDGET && (p = tn_list_first(&w->stage.unasked, struct dp_stage_piece, link))) {
		const struct dp_owner *o = p->task->owner;
		struct dp_evt evt = {
			.id = dp_stage_tag(p->task->area, p, w->index), .kind = DP_EVT_COPY, .num = o->memory, .num2 = o->local_off + p->off,
			.len = (uint32_t)p->bytes, .status = p->state == DP_STAGE_DRAIN,
		};
		if (dp_worker_tell(w, &evt) != TN_OK)
			break; /* its mailbox is full */
		tn_list_unlink(&p->link);
		p->asked = true;
		done++;
	}
	return done;
}

bool dp_stage_copied(struct dp_worker *w, tn_handle staging, uint64_t tag, tn_status status)
{
	struct dp_stage_area *a = area_of(w, staging);
	struct dp_stage_piece *p = a ? dp_stage_asked(a, tag) : NULL;
	if (!p)
		return false;
	struct dp_stage_task *t = p->task;
	bool fill = p->state == DP_STAGE_FILL;
	p->asked = false;
	something_moved(w);
	if (status != TN_OK)
		fail_task(w, t, TN_OUTCOME_FAILED, status, fill ? TN_PHASE_POST : TN_PHASE_COMPLETION, TN_REASON_MR_ERROR);
	if (t->over || !fill) {
		t->done_bytes += status == TN_OK && !t->over ? p->bytes : 0;
		release(w, p);
		return true;
	}
	TN_HOOK(dp_stage_filled);
	dp_stage_move(p, DP_STAGE_READY);
	tn_list_push_back(&w->stage.ready, &p->link);
	return true;
}

void dp_stage_forget(struct dp_worker *w, uint32_t client_id)
{
	for (uint32_t m = 0; m < w->view.memory_top && w->stage.in_use; m++) {
		const struct dp_memory *mem = w->view.memories[m].obj;
		if (!mem || mem->client_id != client_id || !mem->areas)
			continue;
		struct dp_stage_area *a = &mem->areas[w->index];
		for (uint32_t i = 0; i < a->cnt; i++)
			if (a->pieces[i].asked)
				release(w, &a->pieces[i]);
	}
}

void dp_stage_forget_area(struct dp_worker *w, tn_handle memory)
{
	struct dp_stage_area *a = area_of(w, memory);
	if (a)
		tn_list_unlink(&a->link);
}

/* ---- cleanup ---- */

/* Its copies do not come back. They touch nothing but the application's own memory; what it holds is its own share of
 * requests and buffers, so it may hold that, apart from what is normal. */
static void set_aside(struct dp_worker *w, struct dp_stage_task *t)
{
	struct dp_stage_area *a = t->area;
	for (uint32_t i = 0; i < a->cnt; i++)
		if (a->pieces[i].task == t && a->pieces[i].asked)
			dp_stage_move(&a->pieces[i], DP_STAGE_QUARANTINE);
	t->quarantined = true;
	tn_list_unlink(&t->link);
	tn_list_push_back(&w->stage.quarantine, &t->link);
	w->stage.leaving_cnt--;
	w->stage.quarantine_cnt++;
	w->stage.changed = true;
	tn_counter_add(&w->stats.m, TN_C0(STAGING_CLEANUP_TIMEOUTS_TOTAL), 1);
}

static uint32_t clean_up(struct dp_worker *w)
{
	uint32_t done = 0;
	struct dp_stage_task *t;
	while ((t = tn_list_first(&w->stage.leaving, struct dp_stage_task, link)) &&
	       w->now_ns - t->since_ns >= w->stage.cleanup_ns) {
		set_aside(w, t);
		done++;
	}
	return done;
}

bool dp_stage_only_quarantine(const struct dp_worker *w)
{
	tn_list_foreach(qp_node, &w->qps) {
		const struct dp_qp *qp = tn_list_entry(qp_node, struct dp_qp, link);
		tn_list_foreach(node, &qp->requests) {
			const struct dp_owner *o = tn_list_entry(node, struct dp_request, qp_link)->owner;
			if (!o || o->state != DP_OWNER_LEAVING || !o->task->quarantined)
				return false;
		}
	}
	return true;
}

/* ---- the turn ---- */

static void set_gauges(struct dp_worker *w)
{
	const struct dp_stage *s = &w->stage;
	const struct tn_metrics *m = &w->stats.m;
	uint64_t chunks = 0;
	tn_list_foreach(node, &s->leaving)
		chunks += tn_list_entry(node, struct dp_stage_task, link)->held;
	tn_gauge_set(m, TN_G0(STAGING_INFLIGHT_TASKS), s->task_cnt);
	tn_gauge_set(m, TN_G0(STAGING_INFLIGHT_BYTES), s->bytes);
	tn_gauge_set(m, TN_G1(STAGING_DEFERRED_CLEANUPS, TN_CLEANUP_LOCAL_BUFFER), chunks);
	tn_gauge_set(m, TN_G1(STAGING_DEFERRED_CLEANUPS, TN_CLEANUP_BATCH), s->leaving_cnt);
	tn_gauge_set(m, TN_G0(QUARANTINED_BATCHES), s->quarantine_cnt);
	tn_gauge_set(m, TN_G1(WORKER_LAST_PROGRESS_TIMESTAMP_SECONDS, TN_WORKER_KIND_STAGING), s->progress_ns);
}

uint32_t dp_stage_step(struct dp_worker *w)
{
	uint32_t done = end_tasks(w);
	done += start_pieces(w);
	done += move_ready(w);
	done += ask(w);
	done += clean_up(w);
	if (w->stage.changed) {
		w->stage.changed = false;
		set_gauges(w);
	}
	return done;
}

uint64_t dp_stage_next_ns(const struct dp_worker *w)
{
	const struct dp_stage *s = &w->stage;
	bool can_move = !tn_list_empty(&s->ready) && s->moving_cnt < DP_STAGE_MOVING_MAX;
	if (can_move || !tn_list_empty(&s->ending) || !tn_list_empty(&s->areas))
		return w->now_ns;
	const struct dp_stage_task *t = tn_list_first(&s->leaving, struct dp_stage_task, link);
	uint64_t next = t ? t->since_ns + s->cleanup_ns : UINT64_MAX;
	return tn_list_empty(&s->unasked) ? next : TN_MIN(next, w->now_ns + ASK_AGAIN_NS);
}
