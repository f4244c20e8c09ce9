/* SPDX-License-Identifier: Apache-2.0
 * The way of a notification: it waits for its batch, goes to a local receiver (through the control thread) or to a
 * transport, and ends with the receiver's word. Data before notice: nothing is sent before the last member of the batch
 * is terminal, and nothing at all when one of them failed, or when the segment was published anew meanwhile: whoever
 * published it then has other memory than the data went to. Worker thread. */
#include <stdlib.h>
#include <string.h>

#include "common/assert.h"
#include "common/hook.h"
#include "dataplane/worker_state.h"

/* Numbers of notices: CLOCK_MONOTONIC ns (raised where two fall together) in the upper 58 bits, the worker below. So
 * they increase strictly per worker, and between the workers of a session in the order of sending. */
static uint64_t next_seq(struct dp_worker *w)
{
	w->note_clock = TN_MAX(w->note_clock + 1, w->now_ns);
	return w->note_clock << 6 | w->index;
}

static void retire(struct dp_worker *w, struct dp_request *r, enum tn_outcome outcome, tn_status status, uint8_t phase,
		   uint8_t reason, bool sent)
{
	struct dp_terminal t = {
		.status = status, .outcome = (uint8_t)outcome, .phase = phase, .reason = reason,
		.transport = r->note_transport, .attempts = r->state == DP_REQUEST_RUNNING,
	};
	dp_retire_note(&w->completion, r, &t, sent, w->now_ns);
	if (sent)
		tn_list_push_back(&w->orphans, &r->qp_link);
}

static void forget_remote(struct dp_worker *w, struct dp_request *r)
{
	if (r->note_remote)
		dp_apply_remote_unused(w, r->note_remote);
	r->note_remote = NULL;
}

void dp_notice_close_batch(struct dp_worker *w, struct dp_qp *qp, uint32_t number)
{
	struct dp_batch *b = dp_qp_batch(qp, number);
	if (!b)
		return;
	dp_qp_batch_close(qp, b);
	if (b->pending == 0)
		dp_batch_free(&w->pools, b);
}

void dp_notice_submit(struct dp_worker *w, struct dp_request *r)
{
	struct dp_batch *b = r->sqe.batch ? dp_qp_batch(r->qp, r->sqe.batch) : NULL;
	dp_accept_note(&w->completion, r);
	if (b) {
		dp_qp_batch_close(r->qp, b);
		b->notify = r;
		r->batch = b;
		if (b->pending > 0)
			return;
	}
	tn_list_push_back(&w->completion.notes, &r->owner_link);
}

static uint8_t reason_of(tn_status s)
{
	switch (s) {
	case TN_OK: return 0;
	case TN_LIMIT: case TN_AGAIN: case TN_BUSY: return TN_REASON_QUEUE_FULL;
	case TN_STALE: case TN_NOT_FOUND: case TN_PEER_STALE: case TN_CLIENT_GONE: return TN_REASON_STALE_GENERATION;
	case TN_TIMEOUT: case TN_PATH_TIMEOUT: return TN_REASON_TIMEOUT;
	case TN_CANCELED: return TN_REASON_CANCELED;
	case TN_PATH_DOWN: return TN_REASON_PEER_CLOSED;
	case TN_PATH_PROTOCOL: case TN_INVALID: case TN_TOO_BIG: case TN_PERMISSION: return TN_REASON_PROTOCOL;
	case TN_INTERNAL: return TN_REASON_INTERNAL;
	default: return TN_REASON_UNAVAILABLE;
	}
}

/* To a client of this data plane. AGAIN: the control thread's mailbox is full. */
static tn_status send_local(struct dp_worker *w, struct dp_request *r, const struct dp_remote *remote)
{
	if (!dp_view_segment(&w->view, remote->segment))
		return TN_STALE;
	/* The message is the control thread's once it is told: malloc'ed by the contract of apply.h. */
	struct dp_note_in *note = malloc(sizeof *note + r->sqe.note_len);
	if (!note)
		return TN_NO_MEMORY;
	*note = (struct dp_note_in){
		.seq = next_seq(w), .uid = r->qp->cfg.client_uid,
		.len = r->sqe.note_len,
	};
	if (r->sqe.note_len)
		memcpy(note->payload, r->note, r->sqe.note_len);
	uint64_t token = dp_note_token(TN_TRANSPORT_SHM, dp_request_serial(&w->pools, r));
	tn_status s = dp_worker_note_in(w, token, remote->segment, note);
	if (s == TN_AGAIN)
		free(note);
	r->note_transport = TN_TRANSPORT_SHM;
	return s;
}

static tn_status send_remote(struct dp_worker *w, struct dp_request *r, const struct dp_remote *remote)
{
	tn_status none = TN_PEER_DOWN;
	for (uint32_t i = 0; i < w->transport_cnt; i++) {
		struct dp_transport *t = w->transports[i];
		if (!t->up || !t->ops->note_send || t->ops->reach(t, remote) == DP_REACH_NO)
			continue;
		if (w->selector.off >> t->ops->kind & 1) {
			none = TN_AGAIN;
			continue;
		}
		r->note_transport = (uint8_t)t->ops->kind;
		tn_status s = t->ops->note_send(t, r, remote, next_seq(w));
		if (s == TN_OK)
			r->note_remote = remote;
		return s;
	}
	return none;
}

/* False: no room now, it stays in the list. */
static bool send_one(struct dp_worker *w, struct dp_request *r)
{
	if (r->batch && r->batch->failed) {
		retire(w, r, TN_OUTCOME_CANCELED, TN_CANCELED, TN_PHASE_NOTIFY, TN_REASON_CANCELED, false);
		return true;
	}
	const struct dp_remote_slot *slot = dp_view_remote_slot(&w->view, r->sqe.segment);
	const struct dp_remote *remote = slot->obj;
	if (r->sqe.batch != 0 && r->sqe.begin_ns < slot->republished_ns) {
		retire(w, r, TN_OUTCOME_FAILED, TN_STALE, TN_PHASE_NOTIFY, TN_REASON_STALE_GENERATION, false);
		return true;
	}
	tn_status s = remote->lost ? remote->lost_status :
		      remote->local ? send_local(w, r, remote) : send_remote(w, r, remote);
	if (s == TN_AGAIN)
		return false;
	if (s == TN_OK) {
		TN_HOOK(dp_note_handed);
		tn_list_unlink(&r->owner_link);
		dp_request_move(&w->pools.states, r, DP_REQUEST_RUNNING);
		return true;
	}
	retire(w, r, TN_OUTCOME_FAILED, s, TN_PHASE_NOTIFY, reason_of(s), false);
	return true;
}

uint32_t dp_notice_send_ready(struct dp_worker *w)
{
	uint32_t done = 0;
	if (w->mode == DP_MODE_PAUSE)
		return 0;
	/* One that finds no room stays in place; those behind it may have another target. */
	tn_list_foreach(node, &w->completion.notes)
		done += send_one(w, tn_list_entry(node, struct dp_request, owner_link));
	return done;
}

void dp_note_done(struct dp_worker *w, struct dp_request *r, tn_status status, uint8_t phase, uint8_t reason)
{
	forget_remote(w, r);
	if (r->state == DP_REQUEST_ZOMBIE) {
		tn_list_unlink(&r->qp_link);
		dp_retire_note_gone(&w->completion, r);
		return;
	}
	enum tn_outcome outcome = status == TN_OK ? TN_OUTCOME_COMPLETED : status == TN_TIMEOUT ? TN_OUTCOME_TIMEOUT :
				  status == TN_CANCELED ? TN_OUTCOME_CANCELED : TN_OUTCOME_FAILED;
	retire(w, r, outcome, status, phase, reason, false);
}

void dp_notice_end(struct dp_worker *w, struct dp_request *r, enum tn_outcome outcome)
{
	bool timeout = outcome == TN_OUTCOME_TIMEOUT, left = r->state == DP_REQUEST_RUNNING;
	tn_status status = left ? TN_AMBIGUOUS : timeout ? TN_TIMEOUT : TN_CANCELED;
	/* A local notice on its way is found again by number, or not at all; a transport is told to forget its pointer,
	 * or keeps it until it is done. */
	bool sent = left && r->note_transport != TN_TRANSPORT_SHM;
	if (sent) {
		struct dp_transport *t = w->selector.by_kind[r->note_transport];
		if (t->ops->note_cancel) {
			t->ops->note_cancel(t, r);
			sent = false;
		}
	}
	if (!sent)
		forget_remote(w, r);
	retire(w, r, outcome, status, TN_PHASE_NOTIFY, timeout ? TN_REASON_TIMEOUT : TN_REASON_CANCELED,
	       sent);
}

void dp_notice_verdict(struct dp_worker *w, uint64_t token, tn_status verdict)
{
	unsigned kind = (unsigned)(token >> 56);
	if (kind == TN_TRANSPORT_SHM) {
		struct dp_request *r = dp_request_by_serial(&w->pools, token & ((UINT64_C(1) << 56) - 1));
		if (r && r->sqe.opcode == SHR_OP_NOTIFY && r->state == DP_REQUEST_RUNNING)
			dp_note_done(w, r, verdict == TN_AGAIN ? TN_LIMIT : verdict, TN_PHASE_NOTIFY,
				     reason_of(verdict));
		return;
	}
	for (uint32_t i = 0; i < w->transport_cnt; i++) {
		struct dp_transport *t = w->transports[i];
		if (t->ops->note_verdict && (kind == TN_TRANSPORT_UNSPEC || kind == t->ops->kind)) {
			t->ops->note_verdict(t, token, verdict);
			return;
		}
	}
}
