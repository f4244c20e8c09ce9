/* SPDX-License-Identifier: Apache-2.0
 * "request": one live request, as its worker sees it now. The number of a request names its worker, which is asked with
 * DP_CMD_INSPECT; the answer goes out when it has looked. Control thread. */
#include <stdio.h>
#include <stdlib.h>

#include "common/clock.h"
#include "dataplane/inspect.h"
#include "dataplane/link/wire.h"
#include "dataplane/selection/reject.h"

#define ASKED_MAX 64u

/* A question that its worker has not answered yet. */
struct asked {
	struct tn_list link;
	struct dp_link *owner;
	struct dp_flight flight;
	uint64_t id; /* correlation */
	struct dp_inspect box;
};

/* ---- the answer ---- */

static json_t *transport_json(const struct dp_inspect *i, unsigned kind)
{
	unsigned why = i->rejected[kind];
	bool used = i->attempt_id != 0 && kind == i->transport;
	json_t *j = json_object();

	(void)tn_json_put_str(j, "transport", tn_transport_name(kind));
	(void)tn_json_put_str(j, "verdict", used ? "use" : why == DP_REJECT_NONE ? "standby" : dp_reject_is_wait(why) ? "wait" : "no");
	(void)tn_json_put_str(j, "why", used ? dp_attempt_state_name(i->attempt_state) : tn_reject_name(why));
	(void)tn_json_put_str(j, "detail", used ? "" : tn_reject_meaning(why));
	return j;
}

static json_t *failure_json(const struct dp_inspect *i)
{
	json_t *j = json_object();

	(void)tn_json_put_str(j, "status", tn_status_name(i->last_status));
	(void)tn_json_put_str(j, "phase", tn_phase_name(i->last_phase));
	(void)tn_json_put_str(j, "reason", tn_reason_name(i->last_reason));
	return j;
}

static void put_owner(json_t *j, const struct dp_inspect *i)
{
	json_t *list = json_array();

	(void)tn_json_put_u64(j, "task_id", i->owner_id);
	(void)tn_json_put_str(j, "task_state", dp_owner_state_name(i->owner_state));
	(void)tn_json_put_u64(j, "task_requests", i->owner_requests);
	(void)tn_json_put_u64(j, "task_bytes", i->owner_bytes);
	if (i->wait != DP_WAIT_NONE)
		(void)tn_json_put_str(j, "waits_for", dp_wait_name(i->wait));
	if (i->wait != DP_WAIT_NONE && i->wait_ns != UINT64_MAX)
		(void)tn_json_put_u64(j, "wait_ms", i->wait_ns / TN_NS_PER_MS);
	(void)tn_json_put_u64(j, "attempts", i->attempts);
	(void)tn_json_put_u64(j, "failovers", i->failovers);
	if (i->last_status != TN_OK)
		json_object_set_new(j, "last_failure", failure_json(i));
	for (unsigned kind = TN_TRANSPORT_UNSPEC + 1; kind < TN_TRANSPORT_CNT; kind++)
		json_array_append_new(list, transport_json(i, kind));
	json_object_set_new(j, "transports", list);
	if (i->attempt_id == 0)
		return;
	(void)tn_json_put_u64(j, "attempt_id", i->attempt_id);
	(void)tn_json_put_u64(j, "attempt_us", i->attempt_ns / TN_NS_PER_US);
	(void)tn_json_put_u64(j, "moved_bytes", i->moved_bytes);
}

static const char *operation_name(unsigned opcode)
{
	return opcode == SHR_OP_NOTIFY ? "notify" : tn_op_name(opcode == SHR_OP_READ ? TN_OP_READ : TN_OP_WRITE);
}

static json_t *request_json(const struct dp_control *ctl, const struct dp_inspect *i)
{
	const struct dp_peer_slot *peer = i->peer_index != DP_PEER_SELF ? dp_peers_at(&ctl->peers, i->peer_index) : NULL;
	char trace[33];
	json_t *j = json_object();

	(void)tn_json_put_u64(j, "request_id", i->request_id);
	(void)tn_json_put_str(j, "operation", operation_name(i->opcode));
	(void)tn_json_put_str(j, "state", dp_request_state_name(i->state));
	(void)tn_json_put_str(j, "phase", tn_phase_name(i->phase));
	(void)tn_json_put_str(j, "priority", tn_priority_name(i->priority));
	(void)tn_json_put_u64(j, "bytes", i->bytes);
	(void)tn_json_put_u64(j, "age_us", i->age_ns / TN_NS_PER_US);
	(void)tn_json_put_u64(j, "deadline_us", i->left_ns / TN_NS_PER_US);
	if (peer != NULL)
		(void)tn_json_put_str(j, "peer", peer->name);
	if (i->transport != TN_TRANSPORT_UNSPEC)
		(void)tn_json_put_str(j, "transport", tn_transport_name(i->transport));
	if (i->batch_id != 0)
		(void)tn_json_put_u64(j, "batch_id", i->batch_id);
	(void)snprintf(trace, sizeof trace, "%016llx%016llx", (unsigned long long)i->trace_hi, (unsigned long long)i->trace_lo);
	(void)tn_json_put_str(j, "trace_id", trace);
	if (i->owner_id != 0)
		put_owner(j, i);
	return j;
}

static void looked(struct dp_flight *f)
{
	struct asked *a = tn_container_of(f, struct asked, flight);
	struct dp_link *l = a->owner;
	bool found = f->status == TN_OK;

	dp_link_answer(l, "request", a->id, f->status, found ? request_json(l->ctl, &a->box) : NULL,
	               found ? "" : "no such live request");
	tn_list_unlink(&a->link);
	l->asked_cnt--;
	free(a);
}

/* ---- the question ---- */

tn_status dp_link_inspect(struct dp_link *l, uint64_t id, uint64_t request_id)
{
	uint32_t worker = (uint32_t)(request_id & (SHR_WORKERS_MAX - 1)); /* as dp_request_id_next() made it */
	struct asked *a;

	if (worker >= l->ctl->crew.cnt)
		return TN_NOT_FOUND;
	if (l->asked_cnt == ASKED_MAX)
		return TN_LIMIT;
	a = calloc(1, sizeof *a);
	if (a == NULL)
		return TN_NO_MEMORY;
	a->owner = l;
	a->id = id;
	a->flight.done = looked;
	tn_list_push_back(&l->asked, &a->link);
	l->asked_cnt++;
	dp_crew_send(&l->ctl->crew, worker, (struct dp_cmd){ .kind = DP_CMD_INSPECT, .fd = -1, .num = request_id, .ptr = &a->box },
	             &a->flight);
	return TN_PENDING;
}

void dp_link_inspect_fini(struct dp_link *l)
{
	tn_list_foreach(node, &l->asked)
		free(tn_list_entry(node, struct asked, link));
	tn_list_init(&l->asked);
}
