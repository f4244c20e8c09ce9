/* SPDX-License-Identifier: Apache-2.0
 * Owner of what is remembered about delivered notices. A notice may arrive twice when its sender lost the answer with
 * the lane; the second one is answered like the first and not delivered. Control thread. */
#include "dataplane/ingress/note.h"

#include <stdlib.h>
#include <string.h>

#include "common/hook.h"
#include "dataplane/control.h"
#include "dataplane/segment/local.h"

struct sender {
	struct tn_list lru;
	struct tn_id128 session;
	uint32_t worker;              /* seq modulo 64 */
	uint32_t cnt;                 /* numbers ever delivered */
	uint64_t window[DP_NOTE_WINDOW];
};

void dp_notes_init(struct dp_notes *n, uint64_t start)
{
	*n = (struct dp_notes){ .seq = start };
	tn_list_init(&n->lru);
}

void dp_notes_fini(struct dp_notes *n)
{
	if (n->lru.next == NULL)
		return;
	tn_list_foreach(node, &n->lru)
		free(tn_list_entry(node, struct sender, lru));
	tn_list_init(&n->lru);
	n->sender_cnt = 0;
}

static struct sender *sender_find(const struct dp_notes *n, const struct tn_id128 *session, uint32_t worker)
{
	/* Newest first: a busy sender is found at once. */
	for (struct tn_list *node = n->lru.prev; node != &n->lru; node = node->prev) {
		struct sender *s = tn_list_entry(node, struct sender, lru);
		if (s->worker == worker && tn_id128_eq(&s->session, session))
			return s;
	}
	return NULL;
}

enum dp_note_seen dp_notes_look(const struct dp_notes *n, const struct tn_id128 *session, uint64_t seq)
{
	const struct sender *s = sender_find(n, session, (uint32_t)(seq % 64));
	uint64_t oldest = UINT64_MAX;

	if (s == NULL)
		return DP_NOTE_NEW;
	for (uint32_t i = 0; i < TN_MIN(s->cnt, DP_NOTE_WINDOW); i++) {
		if (s->window[i] == seq)
			return DP_NOTE_REPEAT;
		oldest = TN_MIN(oldest, s->window[i]);
	}
	return s->cnt >= DP_NOTE_WINDOW && seq < oldest ? DP_NOTE_TOO_OLD : DP_NOTE_NEW;
}

tn_status dp_notes_remember(struct dp_notes *n, const struct tn_id128 *session, uint64_t seq)
{
	uint32_t worker = (uint32_t)(seq % 64);
	struct sender *s = sender_find(n, session, worker);

	if (s == NULL && n->sender_cnt >= DP_NOTE_SENDERS_MAX) {
		s = tn_list_first(&n->lru, struct sender, lru);
		s->cnt = 0;
	} else if (s == NULL) {
		s = calloc(1, sizeof *s);
		if (s == NULL)
			return TN_NO_MEMORY;
		tn_list_init(&s->lru);
		n->sender_cnt++;
	}
	s->session = *session;
	s->worker = worker;
	s->window[s->cnt % DP_NOTE_WINDOW] = seq;
	/* Wraps to a full window, never to an empty one. */
	s->cnt = s->cnt == UINT32_MAX ? DP_NOTE_WINDOW : s->cnt + 1;
	tn_list_unlink(&s->lru);
	tn_list_push_back(&n->lru, &s->lru);
	return TN_OK;
}

static bool may_send(const struct dp_segment *s, const struct dp_note_in *note)
{
	return note->from[0] == '\0' ? dp_local_admits_uid(s, note->uid) : dp_local_admits_peer(s, note->from);
}

static void send_to_client(struct dp_control *ctl, struct dp_app *c, const struct dp_segment *s,
                           const struct dp_note_in *note)
{
	struct shr_msg *m = dp_app_tx(c);
	struct shr_msg_note *body = shr_msg_begin(m, SHR_MSG_NOTE, 0, shr_msg_note_bytes(note->len));

	memcpy(body->from, note->from, sizeof body->from);
	memcpy(body->segment, s->name, sizeof body->segment);
	body->seq = ++ctl->notes.seq;
	body->payload_len = note->len;
	memcpy(body + 1, note->payload, note->len);
	c->note_unacked++;
	ctl->notes.delivered_cnt++;
	dp_app_send(c, m);
}

/* OK: delivered, now or before. STALE: no receiver. LIMIT: inbox full. AMBIGUOUS: nobody knows. Also PERMISSION,
 * NO_MEMORY. */
static tn_status judge(struct dp_control *ctl, tn_handle segment, const struct dp_note_in *note)
{
	struct dp_local_segment *seg = dp_local_get(ctl, segment);
	enum dp_note_seen seen = dp_notes_look(&ctl->notes, &note->sender_session, note->seq);
	tn_status s;

	if (seen == DP_NOTE_REPEAT) {
		ctl->notes.repeat_cnt++;
		return TN_OK;
	}
	if (seen == DP_NOTE_TOO_OLD)
		return TN_AMBIGUOUS;
	if (seg == NULL || !dp_app_is_live(seg->client)) {
		ctl->notes.orphan_cnt++;
		return TN_STALE;
	}
	if (note->len > SHR_NOTE_BYTES)
		return TN_TOO_BIG;
	if (!may_send(seg->s, note))
		return TN_PERMISSION;
	if (seg->client->note_unacked >= tn_config_u64(ctl->config, TN_CFG_LIMITS_NOTE_INBOX)) {
		ctl->notes.full_cnt++;
		return TN_LIMIT;
	}
	s = dp_notes_remember(&ctl->notes, &note->sender_session, note->seq);
	if (s == TN_OK) {
		TN_HOOK(dp_note_remembered);
		send_to_client(ctl, seg->client, seg->s, note);
		TN_HOOK(dp_note_delivered);
	}
	return s;
}

void dp_notes_deliver(struct dp_control *ctl, uint32_t worker, uint64_t token, tn_handle segment,
                      struct dp_note_in *note)
{
	tn_status verdict = judge(ctl, segment, note);

	free(note);
	(void)dp_crew_post(&ctl->crew, worker,
	                   (struct dp_cmd){ .kind = DP_CMD_NOTE_VERDICT, .fd = -1, .num = token, .status = verdict }, NULL);
}
