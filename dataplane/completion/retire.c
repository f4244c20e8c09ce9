/* SPDX-License-Identifier: Apache-2.0
 * The terminal edge and its counterpart at the entrance. What dp_accept() adds - started, in flight, use counts, batch
 * membership, deadline, promised completion slots - dp_retire() and dp_release() take away; nobody else does.
 * Worker thread. */
#include "dataplane/completion/retire.h"

#include "common/assert.h"
#include "common/bits.h"
#include "common/clock.h"
#include "dataplane/completion/cq_post.h"

#define PATIENT_BYTES (256u * 1024u)
#define PATIENCE_NS (250 * TN_NS_PER_US)

void dp_completion_init(struct dp_completion *c, struct dp_pools *pools, struct dp_heap *deadlines,
			struct dp_view *view, struct dp_stats *stats)
{
	*c = (struct dp_completion){ .pools = pools, .deadlines = deadlines, .view = view, .stats = stats };
	tn_list_init(&c->dirty);
	tn_list_init(&c->notes);
}

static enum tn_op op_of(const struct dp_request *r) { return r->sqe.opcode == SHR_OP_READ ? TN_OP_READ : TN_OP_WRITE; }

static void use(struct dp_completion *c, const struct dp_request *r, int n)
{
	struct dp_remote_slot *remote = dp_view_remote_slot(c->view, r->sqe.segment);
	tn_assert(remote); /* a slot in use is never forgotten */
	remote->users += (uint32_t)n;
	if (r->sqe.opcode == SHR_OP_NOTIFY)
		return;
	struct dp_memory_slot *memory = dp_view_memory_slot(c->view, r->sqe.memory);
	tn_assert(memory);
	memory->users += (uint32_t)n;
}

void dp_accept(struct dp_completion *c, struct dp_request *r, struct dp_batch *b)
{
	dp_tally_started(&c->stats->tally, op_of(r));
	dp_request_move(&c->pools->states, r, DP_REQUEST_QUEUED);
	use(c, r, 1);
	dp_qp_enter(r->qp, r);
	dp_heap_set(c->deadlines, r, r->deadline_ns);
	r->qp->outstanding++;
	r->batch = b;
	if (b)
		b->pending++;
}

void dp_accept_note(struct dp_completion *c, struct dp_request *r)
{
	dp_request_move(&c->pools->states, r, DP_REQUEST_QUEUED);
	use(c, r, 1);
	dp_qp_enter(r->qp, r);
	dp_heap_set(c->deadlines, r, r->deadline_ns);
}

/* The batch learns how a member ended; the last one lets its notice go (or be canceled, by the caller of notes). */
static void leave_batch(struct dp_completion *c, struct dp_request *r, bool completed)
{
	struct dp_batch *b = r->batch;
	if (!b)
		return;
	r->batch = NULL;
	b->failed |= !completed;
	if (--b->pending > 0)
		return;
	if (b->notify)
		tn_list_push_back(&c->notes, &b->notify->owner_link);
	else if (!b->failed || !tn_list_linked(&b->link)) {
		/* Closed, or nothing to remember: a NOTIFY that finds no batch of its number knows that all is well. */
		dp_qp_batch_close(r->qp, b);
		dp_batch_free(c->pools, b);
	}
}

/* The share of its time that it used; of one that was given up because it had too little, what it would have used. */
static void count_deadline(const struct tn_metrics *m, const struct dp_request *r, const struct dp_terminal *t,
			   uint64_t now_ns)
{
	bool passed = t->outcome == TN_OUTCOME_TIMEOUT && r->deadline_ns <= r->ingress_ns;
	uint32_t used = r->owner->needed_permille;
	if (used != 0 || passed)
		tn_counter_add(m, TN_C1(DEADLINE_INFEASIBLE_TOTAL, t->transport), 1);
	if (used == 0)
		used = tn_permille(now_ns - r->ingress_ns, passed ? 0 : r->deadline_ns - r->ingress_ns);
	tn_hist_observe(m, TN_H1(DEADLINE_MLU_PERMILLE, t->transport), used);
}

static TN_COLD void count_uncompleted(struct dp_completion *c, const struct dp_request *r, const struct dp_terminal *t,
				      uint64_t now_ns)
{
	const struct tn_metrics m = c->stats->m;
	enum tn_op op = op_of(r);
	unsigned kind = t->transport;
	bool rd = op == TN_OP_READ;
	c->stats->tally.inflight[op]--;
	c->stats->tally.dirty = true;
	tn_counter_add(&m, TN_C3(LOGICAL_REQUEST_OUTCOMES_TOTAL, op, kind, t->outcome), 1);
	tn_counter_add(&m, rd ? TN_C1(READ_REQUESTS_TOTAL, kind) : TN_C1(WRITE_REQUESTS_TOTAL, kind), 1);
	if (t->outcome == TN_OUTCOME_FAILED)
		tn_counter_add(&m, rd ? TN_C1(READ_FAILURES_TOTAL, kind) : TN_C1(WRITE_FAILURES_TOTAL, kind), 1);
	tn_counter_add(&m, TN_C3(TERMINAL_FAILURES_TOTAL, kind, t->phase, t->reason), 1);
	count_deadline(&m, r, t, now_ns);
}

static void count_terminal(struct dp_completion *c, const struct dp_request *r, const struct dp_terminal *t,
			   uint64_t now_ns)
{
	if (tn_unlikely(t->outcome != TN_OUTCOME_COMPLETED)) {
		count_uncompleted(c, r, t, now_ns);
		return;
	}
	dp_tally_done(&c->stats->tally, &(struct dp_tally_done){
		.ingress_ns = r->ingress_ns, .dispatch_ns = t->dispatch_ns, .attempt_ns = t->attempt_ns, .end_ns = now_ns,
		.deadline_ns = r->deadline_ns, .bytes = r->sqe.length, .series = dp_tally_series(t->transport, op_of(r)) });
}

static struct shr_cqe_shm make_cqe(const struct dp_request *r, const struct dp_terminal *t, uint64_t latency_ns)
{
	uint64_t bytes = r->sqe.opcode == SHR_OP_NOTIFY ? r->sqe.note_len : r->sqe.length;
	return (struct shr_cqe_shm){
		.user_data = r->sqe.user_data,
		.token = r->sqe.token,
		.bytes = t->outcome == TN_OUTCOME_COMPLETED ? bytes : 0,
		.request_id = r->request_id,
		.latency_ns = latency_ns,
		.status = t->status,
		.kind = SHR_CQE_TERMINAL,
		.outcome = t->outcome,
		.phase = t->phase,
		.reason = t->reason,
		.transport = t->transport,
		.opcode = r->sqe.opcode,
		.flags = t->busy ? SHR_CQE_MEMORY_BUSY : 0,
		.attempts = t->attempts,
	};
}

static void tell_events(struct dp_completion *c, const struct dp_request *r, const struct dp_terminal *t,
			uint64_t now_ns)
{
	struct dp_ending e = {
		.status = t->status, .outcome = t->outcome, .phase = t->phase, .reason = t->reason,
		.transport = t->transport, .start_ns = r->ingress_ns, .end_ns = now_ns,
	};
	dp_stats_request_end(c->stats, r, &e, t->failovers, t->child_kept);
}

/* A large block may wait for company for a part of the time that it took itself; all else is told at once. */
static uint64_t ring_by(const struct dp_request *r, const struct dp_terminal *t, uint64_t latency_ns, uint64_t now_ns)
{
	bool large = t->outcome == TN_OUTCOME_COMPLETED && r->sqe.length >= PATIENT_BYTES;
	return large ? now_ns + TN_MIN(latency_ns / 4, PATIENCE_NS) : 0;
}

void dp_retire(struct dp_completion *c, struct dp_request *r, const struct dp_terminal *t, uint64_t now_ns)
{
	uint64_t latency_ns = now_ns - r->ingress_ns;
	count_terminal(c, r, t, now_ns);
	tell_events(c, r, t, now_ns);
	dp_heap_remove(c->deadlines, r);
	struct shr_cqe_shm cqe = make_cqe(r, t, latency_ns);
	r->qp->outstanding--;
	dp_cq_post(c, r->qp, &cqe, ring_by(r, t, latency_ns, now_ns));
	leave_batch(c, r, t->outcome == TN_OUTCOME_COMPLETED);
	if (t->busy) {
		dp_qp_renounce(r);
		dp_request_move(&c->pools->states, r, DP_REQUEST_ZOMBIE);
		return;
	}
	dp_cq_unreserve(r->qp, 1);
	use(c, r, -1);
	tn_list_unlink(&r->owner_link);
	dp_qp_leave(r);
	dp_request_free(c->pools, r);
}

void dp_release(struct dp_completion *c, struct dp_request *r)
{
	struct shr_cqe_shm cqe = {
		.user_data = r->sqe.user_data,
		.token = r->sqe.token,
		.request_id = r->request_id,
		.kind = SHR_CQE_RELEASE,
		.opcode = r->sqe.opcode,
	};
	dp_cq_post(c, r->qp, &cqe, 0);
	use(c, r, -1);
	tn_list_unlink(&r->owner_link);
	dp_qp_leave(r);
	dp_request_free(c->pools, r);
}

void dp_retire_note(struct dp_completion *c, struct dp_request *r, const struct dp_terminal *t, bool sent,
		    uint64_t now_ns)
{
	tn_counter_add(&c->stats->m, TN_C2(NOTIFY_OUTCOMES_TOTAL, t->transport, t->outcome), 1);
	dp_heap_remove(c->deadlines, r);
	struct shr_cqe_shm cqe = make_cqe(r, t, now_ns - r->ingress_ns);
	dp_cq_post(c, r->qp, &cqe, 0);
	if (r->note)
		r->qp->note_cnt--;
	if (r->batch) { /* it was closed when the notice came; members that still run keep it */
		r->batch->notify = NULL;
		if (r->batch->pending == 0)
			dp_batch_free(c->pools, r->batch);
		r->batch = NULL;
	}
	tn_list_unlink(&r->owner_link);
	dp_qp_leave(r);
	if (sent) {
		r->qp = NULL;
		dp_request_move(&c->pools->states, r, DP_REQUEST_ZOMBIE);
		return;
	}
	use(c, r, -1);
	dp_request_free(c->pools, r);
}

void dp_retire_note_gone(struct dp_completion *c, struct dp_request *r)
{
	use(c, r, -1);
	dp_request_free(c->pools, r);
}

void dp_refuse(struct dp_completion *c, struct dp_request *r, tn_status status, enum tn_reason reason)
{
	tn_counter_add(&c->stats->m, TN_C1(SUBMIT_REJECTIONS_TOTAL, reason), 1);
	struct shr_cqe_shm cqe = {
		.user_data = r->sqe.user_data,
		.token = r->sqe.token,
		.request_id = r->request_id,
		.status = status,
		.kind = SHR_CQE_TERMINAL,
		.outcome = TN_OUTCOME_FAILED,
		.phase = TN_PHASE_SUBMIT,
		.reason = (uint8_t)reason,
		.opcode = r->sqe.opcode,
		.flags = SHR_CQE_REFUSED,
	};
	dp_cq_post(c, r->qp, &cqe, 0);
	dp_request_discard(c->pools, r);
}
