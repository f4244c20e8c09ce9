/* SPDX-License-Identifier: Apache-2.0
 * Takes requests: checks them, remembers each in a slot, and publishes the whole batch with one store. Also cancel.
 * Owner thread; never blocks, never allocates. */
#include <string.h>

#include "common/bits.h"
#include "common/domain.h"
#include "common/hook.h"
#include "dataplane/libtent/queue.h"

#define FLAGS_ALL TENT_REQUEST_AT_MOST_ONCE

/* ---- checks: local, so that the text can name the argument; the data plane checks its own copy again ---- */

#define REFUSE(status, fmt, ...) lt_fail(status, "tent_submit: requests[%zu]" fmt, i, __VA_ARGS__)

static TN_COLD tent_status refuse_object(size_t i, const struct lt_object *o, const char *field)
{
	if (o == NULL)
		return REFUSE(TN_INVALID, ".%s is NULL", field);
	if (tn_load_relaxed32(&o->state) == LT_OBJECT_FAILED) {
		tn_status s = (tn_status)tn_load_relaxed32(&o->fail_status);
		return REFUSE(s, ".%s did not come back after the data plane restarted: %s", field,
			      tn_status_meaning(s));
	}
	return REFUSE(TN_STALE, ".%s is freed, or of another context", field);
}

static tent_status check_objects(const tent_qp *qp, size_t i, const tent_request *r)
{
	const tent_memory *mem = r->memory;
	const tent_segment *seg = r->segment;

	if (tn_unlikely(mem == NULL || !lt_object_is(&mem->obj, LT_MEMORY, qp->ctx) ||
			tn_load_relaxed32(&mem->obj.state) == LT_OBJECT_FAILED))
		return refuse_object(i, mem != NULL ? &mem->obj : NULL, "memory");
	if (tn_unlikely(seg == NULL || !lt_object_is(&seg->obj, LT_SEGMENT, qp->ctx) ||
			tn_load_relaxed32(&seg->obj.state) == LT_OBJECT_FAILED))
		return refuse_object(i, seg != NULL ? &seg->obj : NULL, "segment");
	if (tn_unlikely(!tn_range_within(r->memory_offset, r->bytes, mem->bytes)))
		return REFUSE(TN_RANGE, ": memory_offset %llu + bytes %llu leaves the memory's %llu",
			      (unsigned long long)r->memory_offset, (unsigned long long)r->bytes,
			      (unsigned long long)mem->bytes);
	uint64_t seg_bytes = tn_load_relaxed64(&seg->bytes);
	if (tn_unlikely(!tn_range_within(r->segment_offset, r->bytes, seg_bytes)))
		return REFUSE(TN_RANGE, ": segment_offset %llu + bytes %llu leaves the segment's %llu",
			      (unsigned long long)r->segment_offset, (unsigned long long)r->bytes,
			      (unsigned long long)seg_bytes);
	uint32_t here = r->opcode == TENT_READ ? TENT_RIGHT_LOCAL : TENT_RIGHT_LOCAL | TENT_RIGHT_LOCAL_READ;
	if (tn_unlikely((mem->rights & here) == 0))
		return REFUSE(TN_PERMISSION, ".memory was registered without TENT_RIGHT_LOCAL%s",
			      r->opcode == TENT_READ ? ", so nothing is read into it" : "");
	uint32_t need = r->opcode == TENT_READ ? TENT_RIGHT_REMOTE_READ : TENT_RIGHT_REMOTE_WRITE;
	if (tn_unlikely((tn_load_relaxed32(&seg->rights) & need) == 0))
		return REFUSE(TN_PERMISSION, ".segment does not allow remote %s",
			      r->opcode == TENT_READ ? "READ" : "WRITE");
	return TENT_OK;
}

static tent_status check_request(const tent_qp *qp, size_t i, const tent_request *r)
{
	if (tn_unlikely(r->opcode != TENT_READ && r->opcode != TENT_WRITE))
		return REFUSE(TN_INVALID, ".opcode is %u: TENT_READ or TENT_WRITE", r->opcode);
	if (tn_unlikely(r->priority >= TN_PRIORITY_CNT))
		return REFUSE(TN_INVALID, ".priority is %u", r->priority);
	if (tn_unlikely(r->intent >= SHR_INTENT_CNT))
		return REFUSE(TN_INVALID, ".intent is %u", r->intent);
	if (tn_unlikely(r->hint >= TN_TRANSPORT_CNT))
		return REFUSE(TN_INVALID, ".hint is %u", r->hint);
	if (tn_unlikely(r->policy != 0 && !lt_policy_is_known(&qp->ctx->policies, r->policy)))
		return REFUSE(TN_INVALID, ".policy is %u: 0 for the first that matches, else what tent_policy_find() of this "
			      "context said", r->policy);
	if (tn_unlikely((r->flags & ~FLAGS_ALL) != 0))
		return REFUSE(TN_INVALID, ".flags is 0x%x: only TENT_REQUEST_* bits", r->flags);
	if (tn_unlikely((r->reserved0 | r->reserved[0] | r->reserved[1] | r->reserved[2] | r->reserved[3] | r->reserved[4]) != 0))
		return REFUSE(TN_INVALID, ".%s is not zero", "reserved0 or .reserved");
	if (tn_unlikely(r->bytes == 0))
		return REFUSE(TN_INVALID, ".%s is 0: a transfer moves at least one byte", "bytes");
	if (tn_unlikely(r->bytes > qp->max_request_bytes && qp->max_request_bytes != 0))
		return REFUSE(TN_TOO_BIG, ".bytes is %llu: at most %llu", (unsigned long long)r->bytes,
			      (unsigned long long)qp->max_request_bytes);
	return check_objects(qp, i, r);
}

/* ---- one accepted request ---- */

static void fill_slot(const tent_qp *qp, struct lt_slot *slot, const tent_request *r, uint64_t now_ns)
{
	struct shr_sqe_shm *e = &slot->sqe;

	*e = (struct shr_sqe_shm){
		.user_data = r->user_data,
		.remote_off = r->segment_offset,
		.local_off = r->memory_offset,
		.length = r->bytes,
		.deadline_ns = r->deadline_ns,
		.batch = r->batch,
		.flags = (uint16_t)((r->flags & TENT_REQUEST_AT_MOST_ONCE ? SHR_SQE_AT_MOST_ONCE : 0) |
				    (r->batch != 0 ? SHR_SQE_BATCH : 0)),
		.opcode = r->opcode,
		.priority = r->priority,
		.intent = r->intent,
		.hint = r->hint,
	};
	memcpy(&e->trace_hi, r->trace_id, 8);
	memcpy(&e->trace_lo, r->trace_id + 8, 8);
	slot->memory = r->memory;
	slot->segment = r->segment;
	slot->policy = r->policy;
	slot->memory_generation = tn_load_relaxed32(&r->memory->obj.generation);
	slot->segment_generation = tn_load_relaxed32(&r->segment->obj.generation);
	lt_slot_date(qp, slot, now_ns);
}

/* Room for one more in the ring; without a ring there is as much as there are slots. */
static bool has_room(tent_qp *qp)
{
	uint32_t room = 0;

	if (qp->ring == NULL || qp->ring_broken)
		return true;
	if (tn_unlikely(shr_sq_space(&qp->ring->sq, 1, &room) != TN_OK)) {
		lt_queue_break(qp, "the data plane's index of a submission queue is out of range");
		return true;
	}
	return room != 0;
}

static tent_status accept_one(tent_qp *qp, size_t i, const tent_request *r, uint64_t now_ns)
{
	uint32_t batch = LT_BATCH_NONE;
	tent_status s = check_request(qp, i, r);

	if (tn_unlikely(s != TENT_OK))
		return s;
	if (tn_unlikely(qp->free_cnt == 0 || !has_room(qp)))
		return TENT_AGAIN;
	if (r->batch != 0) {
		batch = lt_batch_join(&qp->batches, r->batch, now_ns);
		if (tn_unlikely(batch == LT_BATCH_NONE))
			return REFUSE(TN_LIMIT, ".batch: %u failed batches are open: close them with tent_notify()",
				      qp->batches.cap);
	}
	struct lt_slot *slot = lt_slot_take(qp);
	fill_slot(qp, slot, r, now_ns);
	slot->batch = batch;
	lt_slot_dispatch(qp, slot);
	return TENT_OK;
}

tent_status tent_submit(tent_qp *qp, const tent_request *requests, size_t count, size_t *accepted_out)
{
	tent_status s = TENT_OK;
	size_t i = 0;

	if (accepted_out != NULL)
		*accepted_out = 0; /* a caller that loops over the rest may rely on it */
	if (tn_unlikely(!lt_queue_enter(qp) || qp->dead_status != TN_OK))
		return lt_queue_refuse(qp, "tent_submit");
	if (tn_unlikely(requests == NULL && count != 0))
		return lt_fail(TN_INVALID, "tent_submit: requests is NULL");
	uint64_t now_ns = tn_now_ns();
	while (i < count) {
		s = accept_one(qp, i, &requests[i], now_ns);
		if (s != TENT_OK)
			break;
		i++;
	}
	TN_HOOK(lt_submit_put);
	if (qp->ring != NULL && !qp->ring_broken)
		lt_queue_publish(qp);
	if (accepted_out != NULL)
		*accepted_out = i;
	return s;
}

/* ---- cancel ---- */

/* Asks the data plane to end a posted request. TN_AGAIN: no room to ask. */
static tn_status ask_cancel(tent_qp *qp, struct lt_slot *slot)
{
	struct shr_sqe_shm e = {
	    .opcode = SHR_OP_CANCEL, .token = lt_slot_token(qp, slot), .priority = slot->sqe.priority };

	if (slot->cancel_asked)
		return TN_OK;
	if (qp->ring_broken)
		return TN_OK; /* everything ends soon */
	if (!has_room(qp))
		return TN_AGAIN;
	if (!qp->ring_broken) {
		shr_sq_put(&qp->ring->sq, &e);
		qp->ring->put_cnt++;
		slot->cancel_asked = true;
	}
	return TN_OK;
}

tent_status tent_cancel(tent_qp *qp, uint64_t user_data)
{
	tn_status s = TN_OK;
	bool found = false, held = false;

	if (tn_unlikely(!lt_queue_enter(qp)))
		return lt_queue_refuse(qp, "tent_cancel");
	for (uint32_t i = 0; i < qp->depth && s == TN_OK; i++) {
		struct lt_slot *slot = &qp->slots[i];

		if (slot->sqe.user_data != user_data || (slot->state != LT_SLOT_POSTED && slot->state != LT_SLOT_HELD))
			continue;
		found = true;
		if (slot->state == LT_SLOT_POSTED)
			s = ask_cancel(qp, slot);
		else
			held = slot->cancel_asked = true;
	}
	if (qp->ring != NULL && !qp->ring_broken)
		lt_queue_publish(qp);
	if (held)
		lt_queue_push_held(qp);
	if (!found)
		return lt_fail(TN_NOT_FOUND, "tent_cancel: nothing outstanding has user_data %llu",
			       (unsigned long long)user_data);
	return (tent_status)s;
}
