/* SPDX-License-Identifier: Apache-2.0
 * A look at one request and all that it hangs on. Changes nothing. Worker thread. */
#include "dataplane/inspect.h"

#include "common/clock.h"
#include "dataplane/worker_state.h"

static void fill_owner(const struct dp_worker *w, const struct dp_request *r, struct dp_inspect *out)
{
	const struct dp_owner *o = r->owner;
	const struct dp_request *first = tn_list_first(&o->requests, struct dp_request, owner_link);
	const struct dp_attempt *a = o->attempt;
	out->owner_id = o->owner_id;
	out->owner_bytes = o->bytes;
	out->owner_requests = o->request_cnt;
	out->peer_index = o->peer_index;
	out->owner_state = o->state;
	out->wait = o->wait;
	if (o->wait != DP_WAIT_NONE)
		out->wait_ns = o->retry_ns == UINT64_MAX ? UINT64_MAX : tn_remaining_ns(o->retry_ns, w->now_ns);
	out->attempts = o->attempt_cnt;
	out->failovers = o->failover_cnt;
	out->transport = o->last_transport;
	dp_select_reasons(&w->selector, o, &first->sqe, out->rejected);
	out->last_status = o->last_status;
	out->last_phase = o->last_phase;
	out->last_reason = o->last_reason;
	if (o->state == DP_OWNER_STAGED)
		out->moved_bytes = o->task->done_bytes;
	if (!a)
		return;
	out->attempt_id = a->attempt_id;
	out->attempt_ns = w->now_ns - a->start_ns;
	out->moved_bytes = a->t_done;
	out->attempt_state = a->state;
}

void dp_inspect_fill(const struct dp_worker *w, const struct dp_request *r, struct dp_inspect *out)
{
	bool note = r->sqe.opcode == SHR_OP_NOTIFY;
	*out = (struct dp_inspect){
		.request_id = r->request_id, .batch_id = r->batch ? r->batch->batch_id : 0,
		.bytes = note ? r->sqe.note_len : r->sqe.length, .age_ns = w->now_ns - r->ingress_ns,
		.left_ns = tn_remaining_ns(r->deadline_ns, w->now_ns), .opcode = r->sqe.opcode, .state = r->state,
		.phase = (uint8_t)dp_flow_phase(r), .priority = r->sqe.priority, .transport = r->note_transport,
		.peer_index = DP_PEER_SELF,
	};
	dp_stats_trace_id(&w->stats, r, &out->trace_hi, &out->trace_lo);
	if (r->owner)
		fill_owner(w, r, out);
	else if (r->note_remote && !r->note_remote->local)
		out->peer_index = r->note_remote->peer_index;
}
