/* SPDX-License-Identifier: Apache-2.0
 * The way of a request through the stages: ingress -> admission -> dispatch, the timers, and ending early. With owner.c
 * this is the only place that knows which stage follows which. Worker thread. */
#include "common/assert.h"
#include "common/hook.h"
#include "dataplane/admission/merge.h"
#include "dataplane/completion/cq_post.h"
#include "dataplane/worker_state.h"

/* Owners of one drain batch to which a neighbour may still be appended. */
#define MERGE_OPEN 4u
#define DISPATCH_BUDGET 64u

/* ---- ingress ---- */

struct merge_set { struct dp_owner *open[MERGE_OPEN]; uint32_t next; };

static struct dp_owner *merge_target(struct dp_worker *w, const struct merge_set *set, const struct dp_request *r)
{
	if (!w->merge)
		return NULL;
	const struct dp_remote *remote = dp_view_remote(&w->view, r->sqe.segment);
	for (uint32_t i = 0; i < MERGE_OPEN; i++) {
		struct dp_owner *o = set->open[i];
		if (o && dp_merge_fits(o, tn_list_first(&o->requests, struct dp_request, owner_link), r, remote,
				       w->merge_max_bytes))
			return o;
	}
	return NULL;
}

static struct dp_owner *new_owner(struct dp_worker *w, const struct dp_request *r)
{
	struct dp_owner *o = dp_owner_new(&w->pools);
	tn_assert(o); /* as many as requests */
	const struct dp_remote *remote = dp_view_remote(&w->view, r->sqe.segment);
	o->op = r->sqe.opcode == SHR_OP_READ ? TN_OP_READ : TN_OP_WRITE;
	o->priority = r->sqe.priority;
	o->hint = r->sqe.hint;
	o->policy = r->sqe.policy;
	o->peer_index = remote->local ? DP_PEER_SELF : remote->peer_index;
	o->memory = r->sqe.memory;
	o->remote = r->sqe.segment;
	o->local_off = r->sqe.local_off;
	o->remote_off = r->sqe.remote_off;
	o->deadline_ns = UINT64_MAX;
	return o;
}

static void join_owner(struct dp_owner *o, struct dp_request *r)
{
	r->owner = o;
	tn_list_push_back(&o->requests, &r->owner_link);
	o->request_cnt++;
	o->bytes += r->sqe.length;
	o->deadline_ns = TN_MIN(o->deadline_ns, r->deadline_ns);
}

/* The batch of a member; a new number opens one. False: too many are open. */
static bool batch_of(struct dp_worker *w, struct dp_qp *qp, const struct dp_request *r, struct dp_batch **out)
{
	*out = NULL;
	if (!(r->sqe.flags & SHR_SQE_BATCH))
		return true;
	*out = dp_qp_batch(qp, r->sqe.batch);
	if (*out)
		return true;
	if (qp->batch_cnt >= qp->sq.entries * 2)
		return false;
	struct dp_batch *b = dp_batch_new(&w->pools, dp_client_index(qp->cfg.client_id));
	if (!b)
		return false;
	b->number = r->sqe.batch;
	dp_qp_batch_add(qp, b);
	*out = b;
	return true;
}

/* A member that never started also keeps its batch's notice from being sent. */
static void refuse(struct dp_worker *w, struct dp_qp *qp, struct dp_request *r, tn_status status)
{
	struct dp_batch *b;
	bool member = r->sqe.opcode == SHR_OP_READ || r->sqe.opcode == SHR_OP_WRITE;
	if (member && r->sqe.batch != 0 && batch_of(w, qp, r, &b) && b)
		b->failed = true;
	if (r->sqe.opcode == SHR_OP_NOTIFY && r->sqe.batch != 0)
		dp_notice_close_batch(w, qp, r->sqe.batch);
	if (r->sqe.opcode == SHR_OP_CANCEL) {
		dp_request_discard(&w->pools, r); /* a CANCEL has no completion, also when it is malformed */
		return;
	}
	dp_refuse(&w->completion, r, status, dp_refusal_reason(status));
}

static void cancel_by_token(struct dp_worker *w, struct dp_qp *qp, struct dp_request *cancel)
{
	uint64_t token = cancel->sqe.token;
	dp_request_discard(&w->pools, cancel);
	struct dp_request *r = dp_qp_request(qp, token);
	if (r)
		dp_flow_end_request(w, r, TN_OUTCOME_CANCELED);
}

static void ingest_data(struct dp_worker *w, struct dp_qp *qp, struct dp_request *r, struct merge_set *set,
			struct tn_list *fresh)
{
	struct dp_batch *b;
	if (!batch_of(w, qp, r, &b)) {
		dp_cq_unreserve(qp, 1);
		dp_refuse(&w->completion, r, TN_LIMIT, TN_REASON_RESOURCE_EXHAUSTED);
		dp_admission_reject(&w->admission, TN_OWNER_KIND_USER);
		return;
	}
	dp_accept(&w->completion, r, b);
	struct dp_owner *o = merge_target(w, set, r);
	bool merged = o != NULL;
	if (!merged)
		o = new_owner(w, r);
	join_owner(o, r);
	dp_load_in(dp_load_of(&w->loads, o->peer_index), r->sqe.length);
	if (merged)
		return;
	set->open[set->next++ % MERGE_OPEN] = o;
	tn_list_push_back(fresh, &o->link);
}

/* Its deadline cannot be met, as far as the rate of its target is known: it ends now and moves nothing for nothing. */
static bool drop_infeasible(struct dp_worker *w, struct dp_owner *o)
{
	uint32_t permille = dp_admission_permille(&w->admission, o, w->now_ns);
	if (permille <= 1000)
		return false;
	o->needed_permille = (uint16_t)permille;
	dp_admission_drop(&w->admission, o, w->now_ns, TN_ADMISSION_END_DEADLINE_DROP);
	dp_owner_end(w, o, TN_OUTCOME_TIMEOUT, TN_TIMEOUT, TN_PHASE_ADMISSION, TN_REASON_RESOURCE_EXHAUSTED);
	return true;
}

static bool begin_staged(struct dp_worker *w, struct dp_owner *o)
{
	tn_handle staging = dp_view_memory_slot(&w->view, o->memory)->obj->staging;
	if (staging != 0)
		dp_stage_begin(w, o, staging);
	return staging != 0;
}

/* Owners enter the queue when the batch is over: until then they may still grow. */
static void admit(struct dp_worker *w, struct tn_list *fresh)
{
	bool judge = w->admission.cfg.drop_infeasible;
	struct tn_list *node;
	while ((node = tn_list_pop_front(fresh))) {
		struct dp_owner *o = tn_list_entry(node, struct dp_owner, link);
		if (tn_unlikely(w->stage.in_use) && begin_staged(w, o))
			continue;
		dp_owner_move(&w->pools.states, o, DP_OWNER_QUEUED);
		dp_admission_push(&w->admission, o, w->now_ns, false);
		if (tn_unlikely(judge))
			(void)drop_infeasible(w, o);
	}
}

uint32_t dp_flow_ingest(struct dp_worker *w, struct dp_qp *qp)
{
	struct dp_drained items[DP_DRAIN_BATCH];
	struct merge_set set = { 0 };
	struct tn_list fresh;
	tn_list_init(&fresh);
	uint32_t cnt = dp_sq_drain(qp, &w->pools, &w->view, &w->ingress, w->now_ns, items, DP_DRAIN_BATCH);
	for (uint32_t i = 0; i < cnt; i++) {
		struct dp_request *r = items[i].request;
		if (items[i].status != TN_OK) {
			refuse(w, qp, r, items[i].status);
			continue;
		}
		switch (r->sqe.opcode) {
		case SHR_OP_CANCEL:
			admit(w, &fresh); /* its victim may be in this very batch */
			set = (struct merge_set){ 0 };
			cancel_by_token(w, qp, r);
			break;
		case SHR_OP_NOTIFY:
			dp_notice_submit(w, r);
			break;
		default:
			ingest_data(w, qp, r, &set, &fresh);
		}
	}
	admit(w, &fresh);
	return cnt;
}

/* ---- dispatch ---- */

uint32_t dp_flow_dispatch(struct dp_worker *w)
{
	uint32_t done = 0;
	bool judge = w->admission.cfg.drop_infeasible;
	dp_admission_resume(&w->admission, w->now_ns);
	while (done < DISPATCH_BUDGET && w->mode != DP_MODE_PAUSE) {
		struct dp_owner *o = dp_admission_next(&w->admission, w->now_ns);
		if (!o)
			break;
		struct dp_result res;
		const struct dp_remote *remote = dp_view_remote_slot(&w->view, o->remote)->obj;
		if (remote->lost) {
			dp_admission_drop(&w->admission, o, w->now_ns, TN_ADMISSION_END_CANCEL);
			bool stale = remote->lost_status == TN_STALE;
			dp_owner_end(w, o, TN_OUTCOME_FAILED, remote->lost_status, TN_PHASE_METADATA,
				     stale ? TN_REASON_STALE_GENERATION : TN_REASON_UNAVAILABLE);
			done++;
			continue;
		}
		if (tn_unlikely(judge) && drop_infeasible(w, o)) {
			done++;
			continue;
		}
		TN_HOOK(dp_dispatch);
		tn_status s = dp_owner_try(w, o, &res);
		if (s == TN_AGAIN) {
			dp_admission_defer(&w->admission, o);
			continue;
		}
		TN_HOOK(dp_attempt_started);
		dp_admission_dispatch(&w->admission, o, w->now_ns);
		dp_owner_move(&w->pools.states, o, DP_OWNER_DISPATCHED);
		tn_list_foreach(node, &o->requests) {
			struct dp_request *r = tn_list_entry(node, struct dp_request, owner_link);
			if (r->state != DP_REQUEST_ZOMBIE)
				dp_request_move(&w->pools.states, r, DP_REQUEST_RUNNING);
		}
		if (s != TN_OK)
			dp_owner_failed(w, o, &res);
		done++;
	}
	return done;
}

/* ---- ending early ---- */

static uint8_t ending_phase(const struct dp_owner *o)
{
	switch (o->state) {
	case DP_OWNER_QUEUED: return TN_PHASE_ADMISSION;
	case DP_OWNER_WAITING: return o->wait <= DP_WAIT_RAIL ? TN_PHASE_RETRY : TN_PHASE_METADATA;
	case DP_OWNER_STAGED: return o->task->next_off == 0 ? TN_PHASE_ADMISSION : TN_PHASE_POLL;
	default: return TN_PHASE_POLL;
	}
}

/* That of its last attempt; of one that made none and waits for a rail, the best of those. */
static uint8_t transport_of(const struct dp_owner *o)
{
	bool waits = o->last_transport == TN_TRANSPORT_UNSPEC && o->wait == DP_WAIT_RAIL;
	return waits ? o->candidates[0] : o->last_transport;
}

enum tn_phase dp_flow_phase(const struct dp_request *r) { return r->owner ? ending_phase(r->owner) : TN_PHASE_NOTIFY; }

/* One of several requests of an owner ends; the others go on, so its memory stays busy until the owner ends. */
static void leave_owner(struct dp_worker *w, struct dp_request *r, enum tn_outcome outcome, tn_status status,
			uint8_t reason)
{
	struct dp_owner *o = r->owner;
	struct dp_terminal t = {
		.status = status, .outcome = (uint8_t)outcome, .phase = ending_phase(o), .reason = reason,
		.transport = transport_of(o), .attempts = o->attempt_cnt, .failovers = o->failover_cnt, .busy = true,
		.child_kept = o->child_kept,
	};
	o->request_cnt--;
	dp_owner_retire(w, o, r, &t);
}

/* Takes it from wherever it stands. True: it was done when we asked. */
static bool stop_owner(struct dp_worker *w, struct dp_owner *o, enum tn_outcome outcome)
{
	struct dp_attempt *a = o->attempt;
	switch (o->state) {
	case DP_OWNER_QUEUED:
		dp_admission_drop(&w->admission, o, w->now_ns, outcome == TN_OUTCOME_TIMEOUT ? TN_ADMISSION_END_DEADLINE_DROP :
											       TN_ADMISSION_END_CANCEL);
		return false;
	case DP_OWNER_WAITING:
		o->last_transport = transport_of(o); /* it ends */
		dp_owner_unwait(w, o);
		return false;
	default:
		if (!o->moving) /* else it was told already */
			dp_attempt_move(&w->pools.states, a, DP_ATTEMPT_CANCELING);
		o->moving = false;
		o->end_outcome = (uint8_t)outcome;
		a->transport->ops->cancel(a->transport, a);
		return !o->attempt && o->last_status == TN_OK;
	}
}

static tn_status early_status(enum tn_outcome outcome, uint8_t *reason_out)
{
	bool timeout = outcome == TN_OUTCOME_TIMEOUT;
	*reason_out = timeout ? TN_REASON_TIMEOUT : TN_REASON_CANCELED;
	return timeout ? TN_TIMEOUT : TN_CANCELED;
}

void dp_flow_stop_owner(struct dp_worker *w, struct dp_owner *o, enum tn_outcome outcome)
{
	uint8_t phase = ending_phase(o), reason;
	tn_status status = early_status(outcome, &reason);
	if (stop_owner(w, o, outcome))
		dp_owner_end(w, o, TN_OUTCOME_COMPLETED, TN_OK, 0, 0);
	else
		dp_owner_end(w, o, outcome, status, phase, reason);
}

void dp_flow_end_request(struct dp_worker *w, struct dp_request *r, enum tn_outcome outcome)
{
	if (r->sqe.opcode == SHR_OP_NOTIFY) {
		dp_notice_end(w, r, outcome);
		return;
	}
	uint8_t reason;
	tn_status status = early_status(outcome, &reason);
	struct dp_owner *o = r->owner;
	if (o->request_cnt > 1)
		leave_owner(w, r, outcome, status, reason);
	else if (o->state == DP_OWNER_STAGED)
		dp_stage_end(w, o, outcome, status, ending_phase(o), reason);
	else
		dp_flow_stop_owner(w, o, outcome);
}

/* A cancel may end other requests on its way (a lane closes), so victims are remembered by number, not by pointer. */
void dp_flow_cancel_qp(struct dp_worker *w, struct dp_qp *qp, tn_handle memory, tn_handle remote)
{
	uint64_t serials[64];
	uint32_t cnt;
	do {
		cnt = 0;
		tn_list_foreach(node, &qp->requests) {
			const struct dp_request *r = tn_list_entry(node, struct dp_request, qp_link);
			bool hit = (!memory || r->sqe.memory == memory) && (!remote || r->sqe.segment == remote);
			if (hit && r->state != DP_REQUEST_ZOMBIE && cnt < TN_ARRAY_LEN(serials))
				serials[cnt++] = dp_request_serial(&w->pools, r);
		}
		for (uint32_t i = 0; i < cnt; i++) {
			struct dp_request *r = dp_request_by_serial(&w->pools, serials[i]);
			if (r && r->state != DP_REQUEST_ZOMBIE)
				dp_flow_end_request(w, r, TN_OUTCOME_CANCELED);
		}
	} while (cnt == TN_ARRAY_LEN(serials));
}

/* ---- timers ---- */

uint32_t dp_flow_timers(struct dp_worker *w)
{
	uint32_t done = 0;
	struct dp_request *r;
	while ((r = dp_heap_due(&w->deadlines, w->now_ns))) {
		dp_flow_end_request(w, r, TN_OUTCOME_TIMEOUT);
		done++;
	}
	struct dp_owner *o;
	while ((o = dp_heap_due(&w->retries, w->now_ns))) {
		dp_owner_wake(w, o);
		done++;
	}
	return done;
}

void dp_flow_report_stuck(struct dp_worker *w)
{
	uint64_t after = w->stats.stuck_ns;
	if (after == 0)
		return;
	tn_list_foreach(qp_node, &w->hot.qps) {
		struct dp_qp *qp = tn_list_entry(qp_node, struct dp_qp, hot_link);
		tn_list_foreach(node, &qp->requests) {
			struct dp_request *r = tn_list_entry(node, struct dp_request, qp_link);
			if (w->now_ns - r->ingress_ns < after)
				break; /* in ingress order */
			if (r->stuck_reported || r->state == DP_REQUEST_ZOMBIE || r->sqe.opcode == SHR_OP_NOTIFY)
				continue;
			r->stuck_reported = true;
			uint8_t phase = ending_phase(r->owner), kind = transport_of(r->owner);
			tn_counter_add(&w->stats.m, TN_C3(STUCK_REQUESTS_TOTAL, phase, kind, r->owner->op), 1);
			dp_stats_request_stuck(&w->stats, r, phase, kind, w->now_ns);
		}
	}
}
