/* SPDX-License-Identifier: Apache-2.0
 * The attempts of an owner: start one, account for its end, decide what follows (retry, fail over, refresh, give up),
 * and the owner's own end. Called by flow.c in dispatch order and by transports through dp_attempt_done().
 * Worker thread. */
#include "common/assert.h"
#include "common/clock.h"
#include "dataplane/completion/classify.h"
#include "dataplane/worker_state.h"

/* While a refresh is out: ask again after this long (the control thread flies single). */
#define REFRESH_AGAIN_NS (1 * TN_NS_PER_S)

static struct dp_request *first_request(const struct dp_owner *o)
{
	return tn_list_first(&dp_owner_whole(o)->requests, struct dp_request, owner_link);
}

static struct dp_result failure(tn_status status, uint8_t phase, uint8_t reason)
{
	return (struct dp_result){ .status = status, .phase = phase, .reason = reason, .nothing_left = true };
}

/* ---- attempts ---- */

static void count_attempt_start(struct dp_worker *w, const struct dp_attempt *a)
{
	w->remote_attempts += a->kind != TN_TRANSPORT_SHM;
	dp_tally_attempt_start(&w->stats.tally, a->kind, a->op);
}

void dp_owner_tell_rail(struct dp_worker *w, unsigned kind, uint32_t peer_index, tn_status status, uint64_t start_ns)
{
	if (dp_rails_ended(&w->selector.rails, kind, peer_index, status, start_ns, w->now_ns))
		dp_owner_rail_changed(w, peer_index);
}

static enum tn_outcome attempt_outcome(const struct dp_attempt *a, const struct dp_result *res)
{
	if (res->status == TN_OK)
		return TN_OUTCOME_COMPLETED;
	if (a->state == DP_ATTEMPT_CANCELING)
		return a->owner->end_outcome;
	return res->status == TN_TIMEOUT ? TN_OUTCOME_TIMEOUT :
	       res->status == TN_CANCELED ? TN_OUTCOME_CANCELED : TN_OUTCOME_FAILED;
}

static void count_attempt_end(struct dp_worker *w, struct dp_attempt *a, const struct dp_result *res)
{
	enum tn_outcome outcome = attempt_outcome(a, res);
	uint64_t took_ns = w->now_ns - a->start_ns;
	w->remote_attempts -= a->kind != TN_TRANSPORT_SHM;
	if (outcome == TN_OUTCOME_COMPLETED) {
		dp_tally_attempt_done(&w->stats.tally, a->kind, a->op, took_ns);
		if (tn_unlikely(w->selector.rails.sick_cnt > 0))
			dp_owner_tell_rail(w, a->kind, a->owner->peer_index, TN_OK, a->start_ns);
	} else {
		dp_owner_tell_rail(w, a->kind, a->owner->peer_index, res->status, a->start_ns);
		const struct tn_metrics m = w->stats.m;
		w->stats.tally.attempts_inflight[a->kind][a->op]--;
		dp_tally_attempt_moved(&w->stats.tally, a->kind, a->op);
		tn_counter_add(&m, TN_C3(TRANSPORT_ATTEMPT_OUTCOMES_TOTAL, a->kind, a->op, outcome), 1);
		if (outcome == TN_OUTCOME_FAILED)
			tn_counter_add(&m, TN_C2(TRANSPORT_ATTEMPT_FAILURES_TOTAL, a->kind, a->op), 1);
		tn_hist_observe(&m, TN_H2(TRANSPORT_ATTEMPT_LATENCY_US, a->kind, a->op), took_ns);
	}
	struct dp_ending e = {
		.status = res->status, .outcome = (uint8_t)outcome, .phase = res->phase, .reason = res->reason,
		.transport = a->kind, .start_ns = a->start_ns, .end_ns = w->now_ns,
	};
	a->owner->child_kept |= dp_stats_attempt_end(&w->stats, a, first_request(a->owner), &e);
}

/* Resolve what the attempt points at; a failure means that no transport was asked. */
static bool resolve(struct dp_worker *w, struct dp_owner *o, struct dp_attempt *a, struct dp_result *res_out)
{
	const struct dp_memory_slot *memory = dp_view_memory_slot(&w->view, o->memory);
	const struct dp_remote_slot *remote = dp_view_remote_slot(&w->view, o->remote);
	tn_assert(memory && remote); /* use counts keep both */
	o->outdated = false;
	a->owner = o;
	a->op = o->op;
	a->priority = o->priority;
	a->local = memory->obj->base + o->local_off;
	a->remote = remote->obj;
	a->remote_off = o->remote_off;
	a->bytes = o->bytes;
	a->deadline_ns = o->deadline_ns;
	a->start_ns = w->now_ns;
	if (!a->remote->local)
		return true;
	a->segment = dp_view_segment(&w->view, a->remote->segment);
	if (!a->segment) {
		*res_out = failure(TN_STALE, TN_PHASE_METADATA, TN_REASON_STALE_GENERATION);
		o->attempt_cnt++;
	}
	return a->segment != NULL;
}

static void note_failover(struct dp_worker *w, struct dp_owner *o, unsigned to)
{
	uint8_t from = o->last_transport;
	if (from == to || from == TN_TRANSPORT_UNSPEC)
		return;
	o->failover_cnt++;
	tn_counter_add(&w->stats.m, TN_C2(TRANSPORT_FAILOVER_TOTAL, from, to), 1);
	dp_stats_failover(&w->stats, first_request(o), o, from, (uint8_t)to, w->now_ns);
}

TN_COLD static struct dp_transport *select_other(struct dp_worker *w, struct dp_owner *o, const struct dp_attempt *a,
						 struct dp_result *res_out)
{
	struct dp_transport *t = dp_select(&w->selector, o, a->remote, w->now_ns);
	if (t)
		return t;
	/* Nothing registered can ever serve it, or everything that could is down or cools down. */
	tn_status status = o->candidate_cnt == 0 ? TN_UNSUPPORTED : TN_PEER_DOWN;
	*res_out = failure(status, TN_PHASE_SELECTION, TN_REASON_UNAVAILABLE);
	if (o->retry_ns == 0) {
		uint8_t why[TN_TRANSPORT_CNT];
		o->attempt_cnt++;
		dp_select_reasons(&w->selector, o, &first_request(o)->sqe, why);
		dp_stats_selection_failed(&w->stats, first_request(o), o, why, w->now_ns);
	}
	return NULL;
}

static struct dp_transport *select_transport(struct dp_worker *w, struct dp_owner *o, const struct dp_attempt *a,
					     struct dp_result *res_out)
{
	if (o->candidate_cnt == 0)
		dp_select_candidates(&w->selector, o, &first_request(o)->sqe, a->remote->local);
	struct dp_transport *t = dp_select_usual(&w->selector, o, a->remote);
	return tn_likely(t != NULL) ? t : select_other(w, o, a, res_out);
}

static void drop_attempt(struct dp_worker *w, struct dp_attempt *a)
{
	if (a->segment)
		dp_view_segment_slot(&w->view, a->remote->segment)->users--;
	dp_attempt_free(&w->pools, a);
}

tn_status dp_owner_try(struct dp_worker *w, struct dp_owner *o, struct dp_result *res_out)
{
	struct dp_attempt *a = dp_attempt_new(&w->pools);
	tn_assert(a); /* as many as requests, and an owner has at most one */
	struct dp_transport *t = resolve(w, o, a, res_out) ? select_transport(w, o, a, res_out) : NULL;
	if (!t) {
		dp_attempt_free(&w->pools, a);
		return res_out->status;
	}
	a->transport = t;
	a->kind = (uint8_t)t->ops->kind;
	if (t->ops->segment_busy)
		a->segment = NULL; /* it goes over a lane to ourselves, whose serving side guards that memory */
	if (a->segment)
		dp_view_segment_slot(&w->view, a->remote->segment)->users++;
	dp_attempt_move(&w->pools.states, a, DP_ATTEMPT_ACTIVE);
	o->attempt = a;
	o->attempt_cnt++;
	tn_status s = t->ops->submit(t, a, res_out);
	if (s == TN_AGAIN) { /* nothing happened */
		o->attempt_cnt--;
		o->attempt = NULL;
		if (w->selector.rails.sick_cnt > 0)
			dp_owner_tell_rail(w, a->kind, o->peer_index, s, a->start_ns);
		drop_attempt(w, a);
		return s;
	}
	if (tn_unlikely(o->attempt_cnt > 1))
		note_failover(w, o, a->kind);
	o->attempt_ns = w->now_ns;
	o->attempt_id = a->attempt_id;
	o->last_transport = a->kind;
	count_attempt_start(w, a);
	if (s != TN_OK) {
		o->attempt = NULL;
		res_out->status = s;
		count_attempt_end(w, a, res_out);
		drop_attempt(w, a);
	}
	return s;
}

void dp_attempt_done(struct dp_worker *w, struct dp_attempt *a, const struct dp_result *result)
{
	struct dp_owner *o = a->owner;
	struct dp_result res = *result; /* may live in the attempt */
	uint8_t kind = a->kind;
	bool canceling = a->state == DP_ATTEMPT_CANCELING && !o->moving;
	count_attempt_end(w, a, &res);
	if (o->moving && res.status != TN_OK)
		res.status = TN_PATH_DOWN; /* what follows is what follows a path that is lost */
	o->moving = false;
	if (tn_unlikely(o->task != NULL))
		o->piece->publication = a->remote->publication;
	o->outdated = dp_view_remote_slot(&w->view, o->remote)->obj != a->remote;
	dp_apply_remote_unused(w, a->remote);
	drop_attempt(w, a);
	o->attempt = NULL;
	if (o->state == DP_OWNER_DONE) {
		tn_counter_add(&w->stats.m, TN_C2(LATE_COMPLETIONS_TOTAL, kind, o->op), 1);
		dp_owner_end(w, o, TN_OUTCOME_CANCELED, TN_CANCELED, 0, 0); /* everything left in it is a zombie */
		return;
	}
	o->last_status = res.status;
	if (canceling)
		return; /* inside cancel(): its caller ends the owner */
	if (res.status == TN_OK) {
		dp_admission_moved(&w->admission, o->peer_index, w->now_ns);
		if (tn_unlikely(w->admission.cfg.drop_infeasible))
			dp_admission_served(&w->admission, o, w->now_ns);
		dp_owner_end(w, o, TN_OUTCOME_COMPLETED, TN_OK, 0, 0);
	} else {
		dp_owner_failed(w, o, &res);
	}
}

/* ---- waiting ---- */

static void set_requests(struct dp_worker *w, struct dp_owner *o, enum dp_request_state to)
{
	tn_list_foreach(node, &o->requests) {
		struct dp_request *r = tn_list_entry(node, struct dp_request, owner_link);
		if (r->state != DP_REQUEST_ZOMBIE)
			dp_request_move(&w->pools.states, r, to);
	}
}

static void owner_wait_until(struct dp_worker *w, struct dp_owner *o, enum dp_wait why, uint64_t until_ns)
{
	dp_admission_release(&w->admission, o);
	dp_owner_move(&w->pools.states, o, DP_OWNER_WAITING);
	set_requests(w, o, DP_REQUEST_QUEUED);
	o->wait = (uint8_t)why;
	o->retry_ns = until_ns;
	dp_heap_set(&w->retries, o, until_ns);
	tn_list_push_back(&w->waiting, &o->link);
}

static void owner_wait(struct dp_worker *w, struct dp_owner *o, enum dp_wait why, uint64_t delay_ns)
{
	owner_wait_until(w, o, why, w->now_ns + delay_ns);
}

void dp_owner_unwait(struct dp_worker *w, struct dp_owner *o)
{
	dp_heap_remove(&w->retries, o);
	tn_list_unlink(&o->link);
	o->wait = DP_WAIT_NONE;
}

void dp_owner_wake(struct dp_worker *w, struct dp_owner *o)
{
	if (o->wait == DP_WAIT_REMOTE && o->retry_ns <= w->now_ns) { /* no answer yet */
		dp_worker_remote_refresh(w, o->remote, o->stale_generation);
		o->retry_ns = w->now_ns + REFRESH_AGAIN_NS;
		dp_heap_set(&w->retries, o, o->retry_ns);
		return;
	}
	dp_owner_unwait(w, o);
	dp_owner_move(&w->pools.states, o, DP_OWNER_QUEUED);
	dp_admission_push(&w->admission, o, w->now_ns, true);
}

void dp_owner_remote_changed(struct dp_worker *w, const struct dp_remote *old, const struct dp_remote *now)
{
	bool restarted = !tn_id128_eq(&old->session, &now->session);
	tn_list_foreach(node, &w->waiting) {
		struct dp_owner *o = tn_list_entry(node, struct dp_owner, link);
		if (o->wait != DP_WAIT_REMOTE || o->remote != now->handle)
			continue;
		if (!restarted && !now->lost && now->generation == o->stale_generation)
			continue; /* the version we know to be stale, sent before our question arrived */
		if (restarted)
			o->stale_cnt = 0; /* what another incarnation refuses, it refuses for the first time */
		o->retry_ns = UINT64_MAX;
		dp_owner_wake(w, o);
	}
}

static void wake_all(struct dp_worker *w, enum dp_wait why, uint32_t peer_index)
{
	tn_list_foreach(node, &w->waiting) {
		struct dp_owner *o = tn_list_entry(node, struct dp_owner, link);
		if (o->wait == why && o->peer_index == peer_index)
			dp_owner_wake(w, o);
	}
}

void dp_owner_peer_changed(struct dp_worker *w, uint32_t peer_index) { wake_all(w, DP_WAIT_PEER, peer_index); }
void dp_owner_rail_changed(struct dp_worker *w, uint32_t peer_index) { wake_all(w, DP_WAIT_RAIL, peer_index); }

/* ---- what follows a failure ---- */

static struct dp_decision decide(struct dp_worker *w, struct dp_owner *o, const struct dp_result *res)
{
	const struct dp_remote *remote = dp_view_remote_slot(&w->view, o->remote)->obj;
	bool asked = res->phase != TN_PHASE_SELECTION; /* a transport was */
	struct dp_failure f = {
		.result = res,
		.op = o->op,
		.at_most_once = (first_request(o)->sqe.flags & SHR_SQE_AT_MOST_ONCE) != 0,
		.may_have_left = o->may_have_left,
		.stale_cnt = o->stale_cnt,
		.attempts = o->attempt_cnt,
		.attempts_max = w->tuning.attempts_max,
		.more_candidates = asked && dp_select_more(&w->selector, o, remote, w->now_ns),
		.failovers = o->failover_cnt,
		.failovers_max = w->selector.failovers_max,
		.cooling = !asked && o->retry_ns != 0,
	};
	struct dp_decision d = dp_classify(&f);
	o->may_have_left |= o->op == TN_OP_WRITE && !res->nothing_left;
	if (!f.cooling) { /* that tells nothing of an attempt */
		o->last_status = res->status;
		o->last_phase = res->phase;
		o->last_reason = res->reason;
	}
	if (w->stopping && d.action != DP_ACTION_END)
		d = (struct dp_decision){ DP_ACTION_END, TN_CANCELED, TN_PHASE_SHUTDOWN, TN_REASON_CANCELED, false };
	return d;
}

/* The next candidate, at once. OK: under way. AGAIN: it has no room. Else it failed too, with *res_out. */
static tn_status fail_over(struct dp_worker *w, struct dp_owner *o, struct dp_result *res_out)
{
	o->rejected[o->candidates[o->candidate++]] = DP_REJECT_FAILED;
	tn_status s = dp_owner_try(w, o, res_out);
	if (s == TN_OK)
		dp_owner_move(&w->pools.states, o, DP_OWNER_DISPATCHED);
	return s;
}

void dp_owner_move_away(struct dp_worker *w, struct dp_owner *o)
{
	struct dp_attempt *a = o->attempt;
	o->moving = true;
	o->end_outcome = TN_OUTCOME_CANCELED;
	dp_attempt_move(&w->pools.states, a, DP_ATTEMPT_CANCELING);
	a->transport->ops->cancel(a->transport, a);
}

static void select_anew(struct dp_owner *o)
{
	if (o->state == DP_OWNER_QUEUED || o->state == DP_OWNER_WAITING)
		o->candidate = o->candidate_cnt = 0;
}

void dp_owner_select_anew(struct dp_worker *w)
{
	tn_list_foreach(node, &w->stage.moving)
		select_anew(tn_list_entry(node, struct dp_stage_piece, link)->owner);
	tn_list_foreach(qp_node, &w->qps) {
		const struct dp_qp *qp = tn_list_entry(qp_node, struct dp_qp, link);
		tn_list_foreach(node, &qp->requests) {
			struct dp_owner *o = tn_list_entry(node, struct dp_request, qp_link)->owner;
			if (o)
				select_anew(o);
		}
	}
	tn_list_foreach(node, &w->waiting) {
		struct dp_owner *o = tn_list_entry(node, struct dp_owner, link);
		if (o->wait == DP_WAIT_RAIL)
			dp_owner_wake(w, o);
	}
}

static void end_failed(struct dp_worker *w, struct dp_owner *o, const struct dp_decision *d)
{
	bool stream = o->last_transport == TN_TRANSPORT_HP_TCP || o->last_transport == TN_TRANSPORT_TCP;
	if (d->exhausted && stream)
		tn_counter_add(&w->stats.m, TN_C3(STREAM_EVENTS_TOTAL, tn_stream_kind(o->last_transport), o->op,
						  TN_STREAM_EVENT_RETRY_EXHAUSTED), 1);
	enum tn_outcome outcome = d->status == TN_TIMEOUT ? TN_OUTCOME_TIMEOUT :
				  d->status == TN_CANCELED ? TN_OUTCOME_CANCELED : TN_OUTCOME_FAILED;
	dp_owner_end(w, o, outcome, d->status, d->phase, d->reason);
}

void dp_owner_failed(struct dp_worker *w, struct dp_owner *o, const struct dp_result *res)
{
	struct dp_result latest = *res;
	for (;;) {
		struct dp_decision d = decide(w, o, &latest);
		uint64_t delay = dp_backoff_ns(o->attempt_cnt, w->tuning.backoff_base_ns, w->tuning.backoff_max_ns,
					       tn_rand_u64(&w->rand));
		bool too_late = w->now_ns + delay >= o->deadline_ns;
		tn_status s;
		switch (d.action) {
		case DP_ACTION_FAILOVER:
			s = fail_over(w, o, &latest);
			if (s == TN_OK)
				return;
			if (s != TN_AGAIN)
				continue;
			owner_wait(w, o, DP_WAIT_BACKOFF, 0);
			return;
		case DP_ACTION_WAIT: /* to the deadline, if it must */
			owner_wait_until(w, o, DP_WAIT_RAIL, o->retry_ns);
			return;
		case DP_ACTION_RETRY:
			if (too_late)
				break; /* better the true reason now than a timeout later */
			owner_wait(w, o, DP_WAIT_BACKOFF, delay);
			return;
		case DP_ACTION_REFRESH_REMOTE:
			if (o->outdated) { /* the refusal is about the version before: the newer one is here already */
				owner_wait(w, o, DP_WAIT_BACKOFF, 0);
				return;
			}
			o->stale_cnt++;
			o->stale_generation = dp_view_remote_slot(&w->view, o->remote)->obj->generation;
			tn_counter_add(&w->stats.m, TN_C1(SELECTION_EVENTS_TOTAL, TN_SELECTION_METADATA_REFRESH), 1);
			dp_worker_remote_refresh(w, o->remote, o->stale_generation);
			owner_wait(w, o, DP_WAIT_REMOTE, REFRESH_AGAIN_NS);
			return;
		case DP_ACTION_REFRESH_PEER:
			if (too_late)
				break;
			dp_worker_peer_refresh(w, o->peer_index);
			owner_wait(w, o, DP_WAIT_PEER, TN_MAX(delay, w->tuning.backoff_base_ns));
			return;
		case DP_ACTION_END:
			break;
		}
		end_failed(w, o, &d);
		return;
	}
}

/* ---- the end ---- */

void dp_owner_retire(struct dp_worker *w, const struct dp_owner *o, struct dp_request *r, const struct dp_terminal *t)
{
	struct dp_load *load = dp_load_of(&w->loads, o->peer_index);
	if (t->outcome == TN_OUTCOME_COMPLETED)
		dp_load_completed(load, o->op, r->sqe.length, w->now_ns - r->ingress_ns);
	else
		dp_load_ended(load, r->sqe.length, t->outcome == TN_OUTCOME_CANCELED, t->status, t->transport, t->phase,
			      t->reason, w->now_ns);
	dp_retire(&w->completion, r, t, w->now_ns);
}

TN_INLINE void end_requests(struct dp_worker *w, struct dp_owner *o, const struct dp_terminal *t)
{
	tn_list_foreach(node, &o->requests) {
		struct dp_request *r = tn_list_entry(node, struct dp_request, owner_link);
		if (r->state != DP_REQUEST_ZOMBIE)
			dp_owner_retire(w, o, r, t);
		else if (!t->busy)
			dp_release(&w->completion, r);
	}
	o->request_cnt = 0;
}

void dp_owner_end_requests(struct dp_worker *w, struct dp_owner *o, const struct dp_terminal *t) { end_requests(w, o, t); }

void dp_owner_end(struct dp_worker *w, struct dp_owner *o, enum tn_outcome outcome, tn_status status, uint8_t phase,
		  uint8_t reason)
{
	bool busy = o->attempt != NULL;
	struct dp_terminal t = {
		.status = status, .outcome = (uint8_t)outcome, .phase = phase, .reason = reason,
		.transport = o->last_transport, .attempts = o->attempt_cnt, .failovers = o->failover_cnt, .busy = busy,
		.child_kept = o->child_kept, .dispatch_ns = o->dispatch_ns, .attempt_ns = o->attempt_ns,
	};
	end_requests(w, o, &t);
	if (busy) {
		dp_owner_move(&w->pools.states, o, DP_OWNER_DONE);
		return;
	}
	if (o->state == DP_OWNER_DISPATCHED || o->state == DP_OWNER_DONE)
		dp_admission_release(&w->admission, o);
	if (tn_unlikely(o->task != NULL))
		dp_stage_moved(w, o->piece, &t);
	dp_owner_free(&w->pools, o);
}
