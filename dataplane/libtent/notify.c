/* SPDX-License-Identifier: Apache-2.0
 * Notices, both ways. Outgoing ones are requests of a queue pair whose payload is kept until they are terminal.
 * Incoming ones are kept by the keeper in a bounded inbox; the sender learned that the inbox took them, so they
 * survive a restart of the data plane here. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/domain.h"
#include "common/hook.h"
#include "dataplane/libtent/call.h"
#include "dataplane/libtent/options.h"
#include "dataplane/libtent/queue.h"
#include "dataplane/libtent/segment.h"

/* While an acknowledgement could not be sent. */
#define ACK_RETRY_NS (10 * TN_NS_PER_MS)
/* Notices of earlier attachments that nobody took, in inboxes. */
#define LEFTOVER_INBOXES 4u

/* ---- outgoing ---- */

static tent_status check_notice(const tent_qp *qp, const tent_segment *seg, const void *payload, size_t bytes)
{
	if (seg == NULL || !lt_object_is(&seg->obj, LT_SEGMENT, qp->ctx))
		return lt_fail(seg == NULL ? TN_INVALID : TN_STALE, "tent_notify: segment is %s",
			       seg == NULL ? "NULL" : "closed, or of another context");
	if (bytes > TENT_NOTE_MAX)
		return lt_fail(TN_TOO_BIG, "tent_notify: bytes is %zu: a notice has at most %u", bytes, TENT_NOTE_MAX);
	if (payload == NULL && bytes != 0)
		return lt_fail(TN_INVALID, "tent_notify: payload is NULL");
	return TENT_OK;
}

static bool has_room(tent_qp *qp, size_t bytes)
{
	uint32_t room = 1;

	if (qp->free_cnt == 0 || (bytes != 0 && qp->note_free == 0))
		return false;
	if (qp->ring != NULL && !qp->ring_broken && shr_sq_space(&qp->ring->sq, 1, &room) != TN_OK) {
		lt_queue_break(qp, "the data plane's index of a submission queue is out of range");
		return true;
	}
	return room != 0;
}

static void keep_payload(tent_qp *qp, struct lt_slot *slot, const void *payload, size_t bytes)
{
	if (bytes == 0)
		return;
	slot->note = (uint32_t)__builtin_ctzll(qp->note_free);
	qp->note_free &= qp->note_free - 1;
	memcpy(qp->notes[slot->note], payload, bytes);
	memset(qp->notes[slot->note] + bytes, 0, (8 - bytes % 8) % 8); /* the ring is written in words */
}

tent_status tent_notify(tent_qp *qp, tent_segment *segment, uint32_t batch, const void *payload, size_t bytes,
			uint64_t user_data, uint64_t deadline_ns)
{
	if (!lt_queue_enter(qp) || qp->dead_status != TN_OK)
		return lt_queue_refuse(qp, "tent_notify");
	tent_status s = check_notice(qp, segment, payload, bytes);
	if (s != TENT_OK)
		return s;
	if (!has_room(qp, bytes))
		return TENT_AGAIN;
	struct lt_slot *slot = lt_slot_take(qp);
	keep_payload(qp, slot, payload, bytes);
	slot->sqe = (struct shr_sqe_shm){
		.user_data = user_data,
		.deadline_ns = deadline_ns,
		.batch = batch,
		.note_len = (uint32_t)bytes,
		.note_slot = slot->note != LT_NO_NOTE ? slot->note : 0,
		.flags = batch != 0 ? SHR_SQE_BATCH : 0,
		.opcode = SHR_OP_NOTIFY,
		.priority = TN_PRIORITY_MEDIUM,
	};
	slot->segment = segment;
	slot->segment_generation = tn_load_relaxed32(&segment->obj.generation);
	lt_slot_date(qp, slot, tn_now_ns());
	if (batch != 0)
		slot->batch = lt_batch_close(&qp->batches, batch, slot->accept_ns, &slot->sqe.begin_ns);
	lt_slot_dispatch(qp, slot);
	if (qp->ring != NULL && !qp->ring_broken)
		lt_queue_publish(qp);
	return TENT_OK;
}

/* ---- incoming ---- */

struct kept_note {
	struct tn_list link;
	tent_published *lost; /* SEGMENT_LOST: of it; NULL: somebody sent this */
	uint32_t attachment; /* that it came by: only notices of the present one are acknowledged */
	struct shr_msg_note head;
	uint8_t payload[];
};

static void signal_inbox(const tent_context *ctx)
{
	uint64_t one = 1;

	(void)!write(ctx->note_fd, &one, sizeof one);
}

static void keep(tent_context *ctx, struct kept_note *note)
{
	if (tn_list_empty(&ctx->notes))
		signal_inbox(ctx);
	tn_list_push_back(&ctx->notes, &note->link);
	(void)pthread_cond_broadcast(&ctx->cond);
}

/* Lock held. Out of the inbox; the caller frees it. */
static void unkeep(tent_context *ctx, struct kept_note *note)
{
	uint64_t sink;

	tn_list_unlink(&note->link);
	if (note->lost != NULL)
		note->lost->lost_note = NULL;
	else
		ctx->note_sent_cnt--;
	if (tn_list_empty(&ctx->notes) && ctx->state != TENT_STATE_DEAD)
		(void)!read(ctx->note_fd, &sink, sizeof sink);
}

bool lt_note_arrived(tent_context *ctx, const struct shr_msg *m)
{
	struct shr_msg_note head;
	uint32_t inbox = TN_MAX(ctx->hello.note_inbox, 1u);

	memcpy(&head, shr_msg_body_ro(m), sizeof head);
	ctx->note_inflight++;
	/* More than the data plane may send, or more than anybody will ever read. */
	struct kept_note *note = NULL;
	if (ctx->note_inflight <= inbox && ctx->note_sent_cnt < inbox * LEFTOVER_INBOXES)
		note = malloc(sizeof *note + head.payload_len);
	if (note == NULL) {
		ctx->note_taken++;
		return true;
	}
	note->lost = NULL;
	note->attachment = ctx->attachment;
	note->head = head;
	memcpy(note->payload, (const uint8_t *)shr_msg_body_ro(m) + sizeof head, head.payload_len);
	ctx->note_sent_cnt++;
	keep(ctx, note);
	return true;
}

/* Not counted against the inbox: there is one at most for each handle of a publication. */
void lt_note_lost(tent_published *pub)
{
	struct kept_note *note = calloc(1, sizeof *note);

	if (note == NULL)
		return; /* tent_segment_published() still tells */
	note->lost = pub;
	pub->lost_note = note;
	(void)snprintf(note->head.segment, sizeof note->head.segment, "%s", pub->name);
	keep(pub->obj.ctx, note);
}

void lt_note_unlost(tent_published *pub)
{
	struct kept_note *note = pub->lost_note;

	if (note == NULL)
		return;
	unkeep(pub->obj.ctx, note);
	free(note);
}

void lt_note_drop_all(tent_context *ctx)
{
	struct tn_list *node;

	while ((node = tn_list_pop_front(&ctx->notes)) != NULL)
		free(tn_list_entry(node, struct kept_note, link));
}

/* Tells the data plane about room in the inbox: not for every single notice, but before it could run full. */
static void acknowledge(tent_context *ctx)
{
	struct shr_msg m;

	if (ctx->note_taken == 0 || ctx->state != TENT_STATE_ATTACHED)
		return;
	if (!tn_list_empty(&ctx->notes) && ctx->note_taken * 2 < ctx->hello.note_inbox)
		return;
	struct shr_msg_note_ack *ack = shr_msg_begin(&m, SHR_MSG_NOTE_ACK, 0, sizeof *ack);
	ack->count = ctx->note_taken;
	if (shr_msg_send(ctx->sock, &m) == TN_OK) {
		ctx->note_inflight -= TN_MIN(ctx->note_inflight, ctx->note_taken);
		ctx->note_taken = 0;
	}
}

/* Lock held. */
static void take_note(tent_context *ctx, tent_note *out)
{
	struct kept_note *note = tn_list_entry(ctx->notes.next, struct kept_note, link); /* there is one */
	const tent_published *lost = note->lost;

	unkeep(ctx, note);
	out->size = sizeof *out; /* at most what it was: see tent_note_recv() */
	memcpy(out->from, note->head.from, sizeof out->from);
	memcpy(out->segment, note->head.segment, sizeof out->segment);
	out->seq = note->head.seq;
	out->kind = lost != NULL ? TENT_NOTE_SEGMENT_LOST : TENT_NOTE_DATA;
	out->status = lost != NULL ? (tent_status)tn_load_relaxed32(&lost->obj.fail_status) : TENT_OK;
	out->bytes = note->head.payload_len;
	memcpy(out->payload, note->payload, note->head.payload_len);
	TN_HOOK(lt_note_taken);
	if (lost == NULL && note->attachment == ctx->attachment)
		ctx->note_taken++;
	free(note);
}

tent_status tent_note_recv(tent_context *ctx, tent_note *note_inout, uint64_t timeout_ns)
{
	tent_status s = lt_context_check(ctx, "tent_note_recv");

	if (s != TENT_OK)
		return s;
	if (note_inout == NULL || !lt_struct_size_ok(note_inout->size, sizeof *note_inout))
		return lt_fail(TN_INVALID, "tent_note_recv: note is NULL, or was not set with TENT_NOTE_INIT");
	uint64_t deadline_ns = tn_deadline_after(tn_now_ns(), timeout_ns);
	(void)pthread_mutex_lock(&ctx->lock);
	for (;;) {
		if (!tn_list_empty(&ctx->notes)) {
			take_note(ctx, note_inout);
			acknowledge(ctx);
			break;
		}
		if (ctx->state == TENT_STATE_DEAD) {
			s = lt_context_fail_dead(ctx, "tent_note_recv");
			break;
		}
		acknowledge(ctx);
		uint64_t now_ns = tn_now_ns();
		if (now_ns >= deadline_ns) {
			s = TENT_AGAIN;
			break;
		}
		(void)lt_context_wait(ctx, ctx->note_taken == 0 ? deadline_ns :
				      TN_MIN(deadline_ns, tn_deadline_after(now_ns, ACK_RETRY_NS)));
	}
	(void)pthread_mutex_unlock(&ctx->lock);
	return s;
}

int tent_note_fd(tent_context *ctx)
{
	tent_status s = lt_context_check(ctx, "tent_note_fd");

	return s == TENT_OK ? ctx->note_fd : (int)s;
}
