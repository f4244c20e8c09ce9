/* SPDX-License-Identifier: Apache-2.0
 * The worker of the stand-in: takes submissions, moves the bytes, posts completions, and does wrong what it is ordered
 * to do wrong. */
#include "tests/unit/libtent/standin_parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/domain.h"

/* Takes one from a budget; UINT32_MAX is without end. */
static bool spend(tn_a32 *budget)
{
	uint32_t v = tn_load_acquire32(budget);

	while (v != UINT32_MAX && v != 0)
		if (tn_cas32(budget, &v, v - 1))
			return true;
	return v == UINT32_MAX;
}

/* ---- moving ---- */

/* One piece of a segment range: address of its first byte, bytes up to the end of its buffer. */
static uint8_t *segment_at(const struct segment *s, uint64_t off, uint64_t *room_out)
{
	for (uint32_t i = 0; i < s->buffer_cnt; i++) {
		const struct shr_msg_buffer *b = &s->buffers[i];
		const struct memory *m = find_memory(b->memory);

		if (off < b->length && m != NULL) {
			*room_out = b->length - off;
			return m->base + b->offset + off;
		}
		off -= b->length;
	}
	return NULL;
}

static const char *open_name(uint64_t id)
{
	for (int c = 0; c < CLIENTS; c++)
		for (int i = 0; id != 0 && i < OBJECTS; i++)
			if (clients[c].opens[i].id == id)
				return clients[c].opens[i].name;
	return NULL;
}

static tn_status move_bytes(const struct shr_sqe_shm *e)
{
	struct memory *local = find_memory(e->memory);
	const char *name = open_name(e->segment);
	struct client *owner;
	struct segment *s = name != NULL ? find_segment(name, &owner) : NULL;

	if (local == NULL || s == NULL)
		return TN_STALE;
	if (e->local_off + e->length > local->bytes || e->remote_off + e->length > s->bytes)
		return TN_RANGE;
	for (uint64_t done = 0; done < e->length;) {
		uint64_t room;
		uint8_t *far = segment_at(s, e->remote_off + done, &room), *near = local->base + e->local_off + done;
		uint64_t n = TN_MIN(room, e->length - done);

		if (far == NULL)
			return TN_STALE;
		if (e->opcode == SHR_OP_WRITE)
			memcpy(far, near, n);
		else
			memcpy(near, far, n);
		done += n;
	}
	return TN_OK;
}

static tn_status send_note(const struct qp *q, const struct shr_sqe_shm *e, uint64_t seq)
{
	const char *name = open_name(e->segment);
	struct client *owner;

	if (name == NULL || find_segment(name, &owner) == NULL)
		return TN_STALE;
	if (owner->notes_out >= STANDIN_NOTE_INBOX)
		return TN_LIMIT;
	struct shr_msg_note *n = shr_msg_begin(&msg, SHR_MSG_NOTE, 0, shr_msg_note_bytes(e->note_len));
	snprintf(n->segment, sizeof n->segment, "%s", name);
	n->seq = seq;
	n->payload_len = e->note_len;
	memcpy((uint8_t *)n + sizeof *n, shr_qp_note(&q->view, e->note_slot), e->note_len);
	if (shr_msg_send(owner->sock, &msg) != TN_OK)
		return TN_LIMIT;
	owner->notes_out++;
	count(&ctl->notices, 1);
	return TN_OK;
}

/* ---- completing ---- */

static void corrupt_cqe(struct shr_cqe_shm *c)
{
	switch (tn_exchange32(&ctl->corrupt, STANDIN_SOUND)) {
	case STANDIN_BAD_TOKEN: c->token += UINT64_C(1) << 32; break;
	case STANDIN_BAD_KIND: c->kind = 77; break;
	case STANDIN_BAD_OUTCOME: c->outcome = 99; break;
	case STANDIN_BAD_BYTES: c->bytes = UINT64_MAX; break;
	case STANDIN_EARLY_RELEASE: c->kind = SHR_CQE_RELEASE; break;
	default: break;
	}
}

static void post(struct qp *q, struct shr_cqe_shm *c)
{
	corrupt_cqe(c);
	q->cq.reserved++; /* this stand-in never runs out: cq_entries is twice what can be outstanding */
	shr_cq_put(&q->cq, c);
	shr_cq_publish(&q->cq);
	(void)shr_doorbell_ring_if_armed(&q->view.qp->cq_armed.value, q->doorbell);
}

static void finish(struct qp *q, uint32_t at, enum tn_outcome outcome, tn_status status, uint8_t reason)
{
	struct shr_sqe_shm e = q->pending[at].sqe;
	struct shr_cqe_shm c = {
	    .user_data = e.user_data,
	    .token = e.token,
	    .request_id = tn_load_relaxed32(&ctl->finished) + 1,
	    .latency_ns = 1000,
	    .bytes = outcome == TN_OUTCOME_COMPLETED ? e.length : 0,
	    .status = status,
	    .kind = SHR_CQE_TERMINAL,
	    .outcome = (uint8_t)outcome,
	    .phase = e.opcode == SHR_OP_NOTIFY ? TN_PHASE_NOTIFY : TN_PHASE_COMPLETION,
	    .reason = reason,
	    .transport = TN_TRANSPORT_SHM,
	    .opcode = e.opcode,
	    .attempts = 1,
	};

	if (outcome != TN_OUTCOME_COMPLETED && e.batch != 0 && e.opcode != SHR_OP_NOTIFY &&
	    q->failed_cnt < FAILED_BATCHES)
		q->failed[q->failed_cnt++] = e.batch;
	if (tn_load_acquire32(&ctl->busy) != 0 && e.opcode != SHR_OP_NOTIFY) {
		c.flags |= SHR_CQE_MEMORY_BUSY;
		q->release[q->release_cnt++] = e.token;
	}
	memmove(&q->pending[at], &q->pending[at + 1], (q->pending_cnt - at - 1) * sizeof *q->pending);
	q->pending_cnt--;
	count(&ctl->finished, 1);
	post(q, &c);
}

static bool batch_is_open(const struct qp *q, uint32_t before, uint32_t batch)
{
	for (uint32_t i = 0; i < before; i++)
		if (q->pending[i].sqe.batch == batch && q->pending[i].sqe.opcode != SHR_OP_NOTIFY)
			return true;
	return false;
}

static bool batch_has_failed(struct qp *q, uint32_t batch)
{
	bool failed = false;
	uint32_t kept = 0;

	for (uint32_t i = 0; i < q->failed_cnt; i++) {
		if (q->failed[i] == batch)
			failed = true;
		else
			q->failed[kept++] = q->failed[i];
	}
	q->failed_cnt = kept; /* the notice closes the number */
	return failed;
}

/* Finishes entry `at` if it may and can; true when it did. */
static bool try_finish(struct qp *q, uint32_t at, uint64_t now_ns)
{
	struct shr_sqe_shm *e = &q->pending[at].sqe;
	uint64_t deadline_ns = e->deadline_ns != 0 ? e->deadline_ns : now_ns + 1;

	if (deadline_ns <= now_ns) {
		finish(q, at, TN_OUTCOME_TIMEOUT, TN_TIMEOUT, TN_REASON_TIMEOUT);
		return true;
	}
	if (e->opcode == SHR_OP_NOTIFY && e->batch != 0 && batch_is_open(q, at, e->batch))
		return false;
	if (!spend(&ctl->may_finish))
		return false;
	tn_status s = TN_OK;
	if (e->opcode == SHR_OP_NOTIFY) {
		if (e->batch != 0 && batch_has_failed(q, e->batch)) {
			finish(q, at, TN_OUTCOME_CANCELED, TN_CANCELED, TN_REASON_CANCELED);
			return true;
		}
		s = send_note(q, e, tn_load_relaxed32(&ctl->notices) + 1);
	} else if (tn_load_relaxed32(&ctl->fail_next) != 0 && spend(&ctl->fail_next)) {
		s = TN_PATH_DOWN;
	} else {
		s = move_bytes(e);
	}
	finish(q, at, s == TN_OK ? TN_OUTCOME_COMPLETED : TN_OUTCOME_FAILED, s,
	       s == TN_LIMIT       ? TN_REASON_QUEUE_FULL
	       : s == TN_PATH_DOWN ? TN_REASON_PEER_CLOSED
				   : TN_REASON_STALE_GENERATION);
	return true;
}

static void cancel(struct qp *q, uint64_t token)
{
	count(&ctl->cancels, 1);
	for (uint32_t i = 0; i < q->pending_cnt; i++)
		if (q->pending[i].sqe.token == token) {
			finish(q, i, TN_OUTCOME_CANCELED, TN_CANCELED, TN_REASON_CANCELED);
			return;
		}
}

/* False: the client broke its ring. */
static bool take(struct qp *q)
{
	struct shr_sqe_shm e;
	uint32_t avail;

	if (shr_sq_peek(&q->sq, q->sq.entries, &avail) != TN_OK)
		return false;
	while (avail-- != 0 && spend(&ctl->may_take)) {
		shr_sq_copy(&q->sq, 0, &e);
		shr_sq_release(&q->sq, 1);
		if (shr_sqe_check_shape(&e, q->view.lay.note_slots) != TN_OK)
			return false;
		if (e.opcode == SHR_OP_CANCEL) {
			cancel(q, e.token);
			continue;
		}
		count(&ctl->taken, 1);
		if ((e.flags & SHR_SQE_REPLAY) != 0)
			count(&ctl->replays, 1);
		tn_store_relaxed32(&ctl->last_deadline_set, e.deadline_ns != 0);
		tn_store_relaxed32(&ctl->last_policy, e.policy);
		q->pending[q->pending_cnt++] = (struct pending){ .sqe = e };
	}
	return true;
}

/* Overwrites one index as a stray store would. The application sleeps, so ring. */
static void write_wild_index(struct qp *q, uint32_t which)
{
	struct shr_index_shm *line = which == 1   ? &q->view.qp->cq_tail
				     : which == 2 ? &q->view.qp->sq_head
						  : &q->view.qp->sq_tail;

	tn_store_release32(&line->value, tn_load_relaxed32(&line->value) + 100000);
	shr_doorbell_ring(q->doorbell);
}

bool qp_serve(struct qp *q, uint32_t wild)
{
	if (wild != 0)
		write_wild_index(q, wild);
	if (!take(q))
		return false;
	for (uint32_t i = 0; i < q->pending_cnt;)
		if (!try_finish(q, i, tn_now_ns()))
			i++;
		else
			i = 0; /* a member may have opened the way of an earlier notice */
	while (tn_load_acquire32(&ctl->busy) == 0 && q->release_cnt != 0) {
		struct shr_cqe_shm c = { .token = q->release[--q->release_cnt], .kind = SHR_CQE_RELEASE };
		post(q, &c);
	}
	return true;
}

/* ---- life ---- */

struct qp *qp_make(const struct shr_msg_qp_create *b, uint64_t id)
{
	struct shr_qp_layout lay;
	struct qp *q = calloc(1, sizeof *q);
	int ends[2] = { -1, -1 };

	if (q == NULL || shr_qp_layout(b->sq_entries, b->note_slots, &lay) != TN_OK ||
	    shr_doorbell_create(ends) != TN_OK || shr_region_create("standin", lay.region_bytes, &q->region) != TN_OK)
		exit(3);
	shr_qp_format(q->region.base, &lay, 1, &q->view);
	shr_sq_cons_init(&q->sq, &q->view);
	shr_cq_prod_init(&q->cq, &q->view);
	q->id = id;
	q->doorbell = ends[0];
	q->app_end = ends[1];
	q->pending = calloc(PENDING, sizeof *q->pending);
	count(&ctl->qps, 1);
	return q;
}

void qp_drop(struct qp *q)
{
	close(q->doorbell);
	shr_region_close(&q->region);
	free(q->pending);
	free(q);
	count(&ctl->qps, -1);
}
