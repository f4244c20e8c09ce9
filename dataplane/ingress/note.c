/* SPDX-License-Identifier: Apache-2.0
 * Owner of the numbers that clients see on notices, and of what is remembered of those that were judged. A sender that lost
 * an answer with its lane sends the notice again with the number that it had; it has few of them unanswered, so a short
 * memory per worker of a peer is enough. Control thread. */
#include "dataplane/ingress/note.h"

#include <stdlib.h>
#include <string.h>

#include "common/hook.h"
#include "dataplane/control.h"
#include "dataplane/segment/local.h"

#define SEEN_FIRST 64u /* workers of peers that there is room for at first */

void dp_notes_init(struct dp_notes *n, uint64_t start)
{
	*n = (struct dp_notes){ .seq = start };
	tn_list_init(&n->owed);
}

static struct dp_note_in *owed_first(const struct dp_notes *n)
{
	return tn_list_first(&n->owed, struct dp_note_in, link);
}

static void let_go(struct dp_note_in *note)
{
	tn_list_unlink(&note->link);
	free(note);
}

void dp_notes_fini(struct dp_notes *n)
{
	for (struct dp_note_in *note; (note = owed_first(n)) != NULL;)
		let_go(note);
	uint64_t at = 0, key, seen;
	while (n->seen.entries != NULL && tn_map_u64_next(&n->seen, &at, &key, &seen))
		free((void *)(uintptr_t)seen);
	tn_map_u64_fini(&n->seen);
}

/* ---- memory ---- */

static struct dp_note_seen *seen_new(struct dp_notes *n, uint64_t key)
{
	struct dp_note_seen *s = calloc(1, sizeof *s);
	uint32_t room = n->seen.cnt + 1;
	tn_status st = s == NULL ? TN_NO_MEMORY :
		       n->seen.entries == NULL ? tn_map_u64_init(&n->seen, SEEN_FIRST, key ^ n->seq) :
		       room > n->seen.capacity ? tn_map_u64_reserve(&n->seen, 2 * room) : TN_OK;
	if (st == TN_OK)
		st = tn_map_u64_insert_ptr(&n->seen, key, s);
	if (st != TN_OK) {
		free(s);
		return NULL;
	}
	return s;
}

/* Of the worker that sent it; NULL: no memory. */
static struct dp_note_seen *seen_of(struct dp_notes *n, const struct dp_note_in *note)
{
	uint64_t key = (uint64_t)note->peer_index << 6 | (note->seq & 63);
	struct dp_note_seen *s = n->seen.entries != NULL ? tn_map_u64_find_ptr(&n->seen, key) : NULL;
	if (s == NULL)
		s = seen_new(n, key);
	/* All lanes of the old incarnation were closed, and what they had brought was judged, before one of the new one was
	 * accepted. */
	if (s != NULL && !tn_id128_eq(&s->session, &note->session))
		*s = (struct dp_note_seen){ .session = note->session };
	return s;
}

static bool is_known(const struct dp_note_seen *s, uint64_t seq, tn_status *verdict_out)
{
	for (uint32_t i = 0; i < DP_NOTE_SEEN; i++)
		if (s->seq[i] == seq) {
			*verdict_out = s->verdict[i];
			return true;
		}
	return false;
}

static void remember(struct dp_note_seen *s, uint64_t seq, tn_status verdict)
{
	uint32_t i = s->next++ % DP_NOTE_SEEN;
	s->seq[i] = seq;
	s->verdict[i] = verdict;
}

/* ---- judgement ---- */

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

static tn_status count(struct dp_control *ctl, enum tn_note_event event, tn_status verdict)
{
	tn_counter_add(&ctl->metrics, TN_C1(NOTES_TOTAL, event), 1);
	return verdict;
}

/* OK: delivered. STALE: no receiver. LIMIT: inbox full. Also PERMISSION, TOO_BIG. */
static tn_status judge(struct dp_control *ctl, tn_handle segment, const struct dp_note_in *note)
{
	struct dp_local_segment *seg = dp_local_get(ctl, segment);

	if (note->refused == TN_PERMISSION)
		return count(ctl, TN_NOTE_EVENT_DENIED, TN_PERMISSION);
	if (seg == NULL || !dp_app_is_live(seg->client))
		return count(ctl, TN_NOTE_EVENT_DROPPED_ORPHAN, TN_STALE);
	if (note->len > SHR_NOTE_BYTES)
		return count(ctl, TN_NOTE_EVENT_DENIED, TN_TOO_BIG);
	if (!may_send(seg->s, note))
		return count(ctl, TN_NOTE_EVENT_DENIED, TN_PERMISSION);
	if (seg->client->note_unacked >= tn_config_u64(ctl->config, TN_CFG_LIMITS_NOTE_INBOX))
		return count(ctl, TN_NOTE_EVENT_DROPPED_FULL, TN_LIMIT);
	send_to_client(ctl, seg->client, seg->s, note);
	TN_HOOK(dp_note_delivered);
	return count(ctl, TN_NOTE_EVENT_DELIVERED, TN_OK);
}

/* Once, however often it comes. */
static tn_status judge_once(struct dp_control *ctl, tn_handle segment, const struct dp_note_in *note)
{
	tn_status verdict;

	if (tn_id128_is_zero(&note->session)) /* of this host: on no lane that could be lost */
		return judge(ctl, segment, note);
	struct dp_note_seen *seen = seen_of(&ctl->notes, note);
	if (seen == NULL)
		return TN_NO_MEMORY; /* what cannot be remembered is not delivered */
	if (is_known(seen, note->seq, &verdict))
		return count(ctl, TN_NOTE_EVENT_DUPLICATE, verdict);
	verdict = judge(ctl, segment, note);
	remember(seen, note->seq, verdict);
	return verdict;
}

/* False: behind commands that the worker is yet to be told there is no room. */
static bool tell(struct dp_control *ctl, const struct dp_note_in *note)
{
	return dp_crew_post(&ctl->crew, note->worker, (struct dp_cmd){ .kind = DP_CMD_NOTE_VERDICT, .fd = -1, .num = note->token,
	                                                               .status = note->verdict });
}

void dp_notes_deliver(struct dp_control *ctl, uint32_t worker, uint64_t token, tn_handle segment,
                      struct dp_note_in *note)
{
	note->verdict = judge_once(ctl, segment, note);
	note->worker = worker;
	note->token = token;
	tn_list_push_back(&ctl->notes.owed, &note->link);
	dp_notes_flush(ctl);
}

void dp_notes_flush(struct dp_control *ctl)
{
	for (struct dp_note_in *note; (note = owed_first(&ctl->notes)) != NULL && tell(ctl, note);)
		let_go(note);
}
