/* SPDX-License-Identifier: Apache-2.0
 * Owner of the numbers that clients see on notices. A sender sends each notice once, also when it lost the answer with
 * the lane, so nothing is remembered here about those that were delivered. Control thread. */
#include "dataplane/ingress/note.h"

#include <stdlib.h>
#include <string.h>

#include "common/hook.h"
#include "dataplane/control.h"
#include "dataplane/segment/local.h"

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

static tn_status count(struct dp_control *ctl, enum tn_note_event event, tn_status verdict)
{
	tn_counter_add(&ctl->metrics, TN_C1(NOTES_TOTAL, event), 1);
	return verdict;
}

/* OK: delivered. STALE: no receiver. LIMIT: inbox full. Also PERMISSION, TOO_BIG. */
static tn_status judge(struct dp_control *ctl, tn_handle segment, const struct dp_note_in *note)
{
	struct dp_local_segment *seg = dp_local_get(ctl, segment);

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

/* False: behind commands that the worker is yet to be told there is no room. */
static bool tell(struct dp_control *ctl, const struct dp_note_in *note)
{
	return dp_crew_post(&ctl->crew, note->worker, (struct dp_cmd){ .kind = DP_CMD_NOTE_VERDICT, .fd = -1, .num = note->token,
	                                                               .status = note->verdict });
}

void dp_notes_deliver(struct dp_control *ctl, uint32_t worker, uint64_t token, tn_handle segment,
                      struct dp_note_in *note)
{
	note->verdict = judge(ctl, segment, note);
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
