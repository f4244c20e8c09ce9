/* SPDX-License-Identifier: Apache-2.0
 * Commands of the control thread as the worker carries them out. A removal hides the object at once, ends the work that
 * uses it, and is acknowledged when nothing of this worker can touch it any more; until then it stands in the list of
 * quiescing commands. Worker thread. */
#include "dataplane/apply.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/assert.h"
#include "common/clock.h"
#include "common/hook.h"
#include "dataplane/inspect.h"
#include "dataplane/worker_state.h"

#define COMMAND_BUDGET 16u
#define INSPECT_BUDGET 2048u     /* places of the pool that one turn looks at */
#define SERVE_OUT_NS TN_NS_PER_S /* for the operations of peers that are under way when we stop */

static struct dp_qp *qp_by_id(const struct dp_worker *w, uint64_t id)
{
	tn_list_foreach(node, &w->qps) {
		struct dp_qp *qp = tn_list_entry(node, struct dp_qp, link);
		if (qp->cfg.id == id)
			return qp;
	}
	return NULL;
}

/* ---- queue pairs ---- */

static tn_status qp_add(struct dp_worker *w, struct dp_qp *qp)
{
	dp_hot_add(&w->hot, qp, w->now_ns);
	/* Edge-triggered: a peer that hung up, or rings without pause, does not keep us awake. */
	tn_status s = TN_HOOK_FAIL(dp_qp_watch) ? TN_LIMIT : dp_poller_add(&w->poller, &qp->bell, EPOLLIN | EPOLLET, false);
	if (s == TN_OK)
		tn_list_push_back(&w->qps, &qp->link);
	else
		dp_hot_remove(qp);
	return s;
}

static void qp_close(struct dp_worker *w, struct dp_qp *qp)
{
	qp->closing = true;
	dp_flow_cancel_qp(w, qp, 0, 0);
}

static void qp_remove(struct dp_worker *w, struct dp_qp *qp)
{
	dp_poller_del(&w->poller, &qp->bell, false);
	for (uint32_t i = 0; i <= qp->batch_mask; i++)
		tn_list_foreach(node, &qp->batches[i])
			dp_batch_free(&w->pools, tn_list_entry(node, struct dp_batch, link));
	tn_list_unlink(&qp->dirty_link);
	dp_hot_remove(qp);
	tn_list_unlink(&qp->link);
}

/* ---- counting who still uses a replaced remote ---- */

static uint32_t uses_in(const struct tn_list *requests, const struct dp_remote *version)
{
	uint32_t n = 0;
	tn_list_foreach(node, requests) {
		const struct dp_request *r = tn_list_entry(node, struct dp_request, qp_link);
		n += r->note_remote == version;
		const struct dp_owner *o = r->owner;
		/* An owner's attempt counts once, at its first request. */
		if (o && o->attempt && o->attempt->remote == version && o->requests.next == &r->owner_link)
			n++;
	}
	return n;
}

static uint32_t uses_of(const struct dp_worker *w, const struct dp_remote *version)
{
	uint32_t n = uses_in(&w->orphans, version);
	tn_list_foreach(node, &w->stage.moving) {
		const struct dp_attempt *a = tn_list_entry(node, struct dp_stage_piece, link)->owner->attempt;
		n += a && a->remote == version;
	}
	tn_list_foreach(node, &w->qps) {
		const struct dp_qp *qp = tn_list_entry(node, struct dp_qp, link);
		if (qp->cfg.client_id == version->client_id)
			n += uses_in(&qp->requests, version);
	}
	return n;
}

void dp_apply_remote_unused(struct dp_worker *w, const struct dp_remote *version)
{
	tn_list_foreach(node, &w->quiescing) {
		struct dp_quiesce *q = tn_list_entry(node, struct dp_quiesce, link);
		if (q->cmd.kind == DP_CMD_REMOTE_SET && q->cmd.ptr == (const void *)version && q->refs > 0)
			q->refs--;
	}
}

/* ---- commands: start ---- */

static tn_status remote_set(struct dp_worker *w, struct dp_quiesce *q)
{
	const struct dp_remote *now = q->cmd.ptr, *old;
	TN_HOOK(dp_remote_set);
	tn_status s = dp_view_remote_set(&w->view, now, w->now_ns, &old);
	if (s != TN_OK)
		return s;
	q->cmd.ptr = NULL;
	if (!old)
		return TN_OK;
	memcpy(&q->cmd.ptr, &old, sizeof old); /* only compared from here on */
	q->refs = uses_of(w, old);
	dp_owner_remote_changed(w, old, now);
	return TN_OK;
}

static void peer_back(struct dp_worker *w, uint32_t index)
{
	if (dp_rails_renewed(&w->selector.rails, index, w->now_ns))
		dp_owner_rail_changed(w, index);
}

static tn_status peer_set(struct dp_worker *w, const struct dp_peer *peer)
{
	const struct dp_peer *old = dp_view_peer(&w->view, peer->index);
	bool renewed = old && (!tn_id128_eq(&old->session, &peer->session) || !dp_peer_same_endpoints(old, peer));
	tn_status s = dp_view_peer_set(&w->view, peer);
	if (s != TN_OK)
		return s;
	if (renewed)
		peer_back(w, peer->index);
	for (uint32_t i = 0; i < w->transport_cnt; i++)
		if (w->transports[i]->ops->peer_set)
			w->transports[i]->ops->peer_set(w->transports[i], peer);
	dp_owner_peer_changed(w, peer->index);
	return TN_OK;
}

static void client_close(struct dp_worker *w, uint32_t client_id)
{
	tn_list_foreach(node, &w->qps) {
		struct dp_qp *qp = tn_list_entry(node, struct dp_qp, link);
		if (qp->cfg.client_id == client_id)
			qp_close(w, qp);
	}
	dp_stage_forget(w, client_id);
	for (uint32_t i = 0; i < w->view.memory_top; i++) {
		const struct dp_memory *m = w->view.memories[i].obj;
		if (m && m->client_id == client_id)
			(void)dp_view_memory_hide(&w->view, m->handle);
	}
	for (uint32_t i = 0; i < w->view.remote_top; i++) {
		const struct dp_remote *r = w->view.remotes[i].obj;
		if (r && r->client_id == client_id)
			(void)dp_view_remote_hide(&w->view, r->handle);
	}
}

static void segment_close(struct dp_worker *w, tn_handle h)
{
	if (!dp_view_segment_hide(&w->view, h))
		return;
	for (uint32_t i = 0; i < w->transport_cnt; i++)
		if (w->transports[i]->ops->segment_revoke)
			w->transports[i]->ops->segment_revoke(w->transports[i], h);
}

/* Requests of the handle's owner that use it end CANCELED. */
static void cancel_users(struct dp_worker *w, uint32_t client_id, tn_handle memory, tn_handle remote)
{
	tn_list_foreach(node, &w->qps) {
		struct dp_qp *qp = tn_list_entry(node, struct dp_qp, link);
		if (qp->cfg.client_id == client_id)
			dp_flow_cancel_qp(w, qp, memory, remote);
	}
}

static tn_status memory_add(struct dp_worker *w, const struct dp_memory *m)
{
	w->stage.in_use |= m->staging != 0;
	return dp_view_memory_add(&w->view, m);
}

static void memory_close(struct dp_worker *w, tn_handle h)
{
	if (dp_view_memory_hide(&w->view, h))
		cancel_users(w, dp_view_memory_slot(&w->view, h)->obj->client_id, h, 0);
}

static void remote_close(struct dp_worker *w, tn_handle h)
{
	if (dp_view_remote_hide(&w->view, h))
		cancel_users(w, dp_view_remote_slot(&w->view, h)->obj->client_id, 0, h);
}

static tn_status lane_adopt(struct dp_worker *w, const struct dp_cmd *cmd)
{
	struct dp_transport *t = cmd->len < TN_TRANSPORT_CNT ? w->selector.by_kind[cmd->len] : NULL;
	if (t && t->ops->lane_adopt) { /* also when it stops: the transport answers so */
		t->ops->lane_adopt(t, cmd->fd, cmd->ptr);
		return TN_OK;
	}
	close(cmd->fd);
	free(cmd->ptr);
	return TN_UNSUPPORTED;
}

static tn_status datagram(struct dp_worker *w, const struct dp_cmd *cmd)
{
	const struct dp_peer *peer = dp_view_peer(&w->view, (uint32_t)cmd->num2);
	tn_status s = TN_UNSUPPORTED; /* not in vain where the peer has no address */
	for (uint32_t i = 0; i < w->transport_cnt && s == TN_UNSUPPORTED; i++) {
		struct dp_transport *t = w->transports[i];
		if (t->ops->datagram_send && peer && peer->of[t->ops->kind].cnt > 0)
			s = t->ops->datagram_send(t, (uint32_t)cmd->num2, cmd->ptr, cmd->len);
	}
	free(cmd->ptr);
	return s;
}

/* An answer to what was not asked: the client lies. If the mailbox is full it may go on; it only fools itself. */
static void copied(struct dp_worker *w, const struct dp_cmd *cmd)
{
	struct dp_evt evt = { .kind = DP_EVT_CLIENT_BROKEN, .num = cmd->len };
	if (!dp_stage_copied(w, cmd->num2, cmd->num, (tn_status)cmd->status))
		(void)dp_worker_tell(w, &evt);
}

/* ---- a transport off or on ---- */

static bool runs_on(const struct dp_worker *w, unsigned kind)
{
	const uint32_t *inflight = w->stats.tally.attempts_inflight[kind];
	return inflight[TN_OP_READ] + inflight[TN_OP_WRITE] > 0;
}

static tn_status transport_switch(struct dp_worker *w, struct dp_quiesce *q)
{
	unsigned kind = (unsigned)q->cmd.num;
	if (kind >= TN_TRANSPORT_CNT || !w->selector.by_kind[kind])
		return TN_UNSUPPORTED;
	w->selector.off &= ~(UINT32_C(1) << kind);
	w->selector.off |= (uint32_t)(q->cmd.num2 == 0) << kind;
	q->until_ns = w->now_ns + q->cmd.len * TN_NS_PER_MS;
	dp_owner_select_anew(w);
	return TN_OK;
}

/* A cancel may end other requests on its way (a lane closes), so victims are remembered by number, not by pointer. */
static void take_away(struct dp_worker *w, const struct dp_qp *qp, unsigned kind)
{
	uint64_t serials[64];
	uint32_t cnt = 0;
	tn_list_foreach(node, &qp->requests) {
		const struct dp_request *r = tn_list_entry(node, struct dp_request, qp_link);
		const struct dp_attempt *a = r->owner ? r->owner->attempt : NULL;
		if (a && a->kind == kind && a->state == DP_ATTEMPT_ACTIVE && cnt < TN_ARRAY_LEN(serials))
			serials[cnt++] = dp_request_serial(&w->pools, r);
	}
	for (uint32_t i = 0; i < cnt; i++) {
		const struct dp_request *r = dp_request_by_serial(&w->pools, serials[i]);
		struct dp_owner *o = r ? r->owner : NULL; /* of a merged one, its first request did it */
		if (o && o->attempt && o->attempt->kind == kind && o->attempt->state == DP_ATTEMPT_ACTIVE)
			dp_owner_move_away(w, o);
	}
}

/* The same for pieces of staged owners. */
static void take_away_pieces(struct dp_worker *w, unsigned kind)
{
	struct dp_owner *o;
	do {
		o = NULL;
		tn_list_foreach(node, &w->stage.moving) {
			struct dp_owner *each = tn_list_entry(node, struct dp_stage_piece, link)->owner;
			const struct dp_attempt *a = each->attempt;
			if (!o && a && a->kind == kind && a->state == DP_ATTEMPT_ACTIVE)
				o = each;
		}
		if (o)
			dp_owner_move_away(w, o);
	} while (o);
}

static bool switched(struct dp_worker *w, const struct dp_quiesce *q)
{
	unsigned kind = (unsigned)q->cmd.num;
	if (q->cmd.num2 != 0 || !runs_on(w, kind) || !(w->selector.off >> kind & 1))
		return true;
	if (w->now_ns >= q->until_ns) {
		tn_list_foreach(node, &w->qps)
			take_away(w, tn_list_entry(node, struct dp_qp, link), kind);
		take_away_pieces(w, kind);
	}
	return !runs_on(w, kind);
}

/* True when nothing that peers asked for is under way any more, or was given time enough. */
static bool served_out(struct dp_worker *w)
{
	bool all = true;
	for (uint32_t i = 0; i < w->transport_cnt; i++)
		if (w->transports[i]->ops->drain)
			all &= w->transports[i]->ops->drain(w->transports[i]);
	return all || w->now_ns >= w->serve_until_ns;
}

static void stop(struct dp_worker *w)
{
	if (!w->stopping)
		w->serve_until_ns = w->now_ns + SERVE_OUT_NS;
	w->stopping = w->ingress.draining = true;
	(void)served_out(w); /* from here on they refuse */
	tn_list_foreach(node, &w->qps)
		dp_flow_cancel_qp(w, tn_list_entry(node, struct dp_qp, link), 0, 0);
}

static tn_status begin(struct dp_worker *w, struct dp_quiesce *q)
{
	const struct dp_cmd *c = &q->cmd;
	struct dp_qp *qp;
	switch ((enum dp_cmd_kind)c->kind) {
	case DP_CMD_QP_ADD: return qp_add(w, c->ptr);
	case DP_CMD_QP_DEL:
		if ((qp = qp_by_id(w, c->num)))
			qp_close(w, qp);
		return TN_OK;
	case DP_CMD_CLIENT_DEL: client_close(w, (uint32_t)c->num); return TN_OK;
	case DP_CMD_MEM_ADD: return memory_add(w, c->ptr);
	case DP_CMD_MEM_DEL: memory_close(w, c->num); return TN_OK;
	case DP_CMD_SEG_ADD: return dp_view_segment_add(&w->view, c->ptr);
	case DP_CMD_SEG_DEL: segment_close(w, c->num); return TN_OK;
	case DP_CMD_REMOTE_SET: return remote_set(w, q);
	case DP_CMD_REMOTE_DEL: remote_close(w, c->num); return TN_OK;
	case DP_CMD_PEER_SET: return peer_set(w, c->ptr);
	case DP_CMD_PEER_BACK: peer_back(w, (uint32_t)c->num); return TN_OK;
	case DP_CMD_LANE_ADOPT: return lane_adopt(w, c);
	case DP_CMD_FENCE: return TN_OK; /* asked until done */
	case DP_CMD_NOTE_VERDICT: dp_notice_verdict(w, c->num, (tn_status)c->status); return TN_OK;
	case DP_CMD_COPIED: copied(w, c); return TN_OK;
	case DP_CMD_DATAGRAM: return datagram(w, c);
	case DP_CMD_TUNE: dp_worker_tune(w, c->ptr); return TN_OK;
	case DP_CMD_MODE:
		w->mode = (uint8_t)c->num;
		w->ingress.draining = w->stopping || c->num == DP_MODE_DRAIN;
		return TN_OK;
	case DP_CMD_TRANSPORT: return transport_switch(w, q);
	case DP_CMD_INSPECT: return TN_OK; /* searched until found */
	case DP_CMD_STOP: stop(w); return TN_OK;
	}
	return TN_INVALID;
}

/* ---- commands: is it complete? ---- */

static bool client_quiet(struct dp_worker *w, uint32_t client_id)
{
	tn_list_foreach(node, &w->qps) {
		const struct dp_qp *qp = tn_list_entry(node, struct dp_qp, link);
		if (qp->cfg.client_id == client_id && !dp_qp_quiet(qp))
			return false;
	}
	for (uint32_t i = 0; i < w->view.remote_top; i++) { /* a notice on its way may still use one */
		const struct dp_remote_slot *s = &w->view.remotes[i];
		if (s->obj && s->obj->client_id == client_id && s->users)
			return false;
	}
	return true;
}

static void memory_forget(struct dp_worker *w, tn_handle h)
{
	dp_stage_forget_area(w, h);
	dp_view_memory_forget(&w->view, h);
}

static void client_forget(struct dp_worker *w, uint32_t client_id)
{
	tn_list_foreach(node, &w->qps) {
		struct dp_qp *qp = tn_list_entry(node, struct dp_qp, link);
		if (qp->cfg.client_id == client_id)
			qp_remove(w, qp);
	}
	for (uint32_t i = 0; i < w->view.memory_top; i++) {
		const struct dp_memory *m = w->view.memories[i].obj;
		if (m && m->client_id == client_id) {
			(void)dp_view_memory_hide(&w->view, m->handle); /* one that was added meanwhile */
			memory_forget(w, m->handle);
		}
	}
	for (uint32_t i = 0; i < w->view.remote_top; i++) {
		const struct dp_remote *r = w->view.remotes[i].obj;
		if (r && r->client_id == client_id) {
			(void)dp_view_remote_hide(&w->view, r->handle);
			dp_view_remote_forget(&w->view, r->handle);
		}
	}
}

static bool segment_quiet(struct dp_worker *w, tn_handle h)
{
	if (dp_view_segment_slot(&w->view, h)->users)
		return false;
	for (uint32_t i = 0; i < w->transport_cnt; i++)
		if (w->transports[i]->ops->segment_busy && w->transports[i]->ops->segment_busy(w->transports[i], h))
			return false;
	return true;
}

static bool fenced(struct dp_worker *w, const struct dp_cmd *c)
{
	bool all = true;
	for (uint32_t i = 0; i < w->transport_cnt; i++)
		if (w->transports[i]->ops->fence)
			all &= w->transports[i]->ops->fence(w->transports[i], (uint32_t)c->num, &c->session);
	return all;
}

static bool all_quiet(const struct dp_worker *w)
{
	tn_list_foreach(node, &w->qps)
		if (!dp_qp_quiet(tn_list_entry(node, struct dp_qp, link)))
			return false;
	return true;
}

/* True when it was found, or is nowhere. */
static bool inspected(const struct dp_worker *w, struct dp_quiesce *q)
{
	const struct dp_request *r = dp_request_find(&w->pools, q->cmd.num, &q->refs, INSPECT_BUDGET);
	if (r)
		dp_inspect_fill(w, r, q->cmd.ptr);
	else if (q->refs == UINT32_MAX)
		q->cmd.status = TN_NOT_FOUND;
	return r || q->cmd.status != TN_OK;
}

/* True when the command's effect is complete; what was removed is then forgotten. */
static bool complete(struct dp_worker *w, struct dp_quiesce *q)
{
	const struct dp_cmd *c = &q->cmd;
	const struct dp_memory_slot *mem;
	const struct dp_remote_slot *remote;
	struct dp_qp *qp;
	if (c->status != TN_OK)
		return true;
	switch ((enum dp_cmd_kind)c->kind) {
	case DP_CMD_QP_DEL:
		if ((qp = qp_by_id(w, c->num)) && dp_qp_quiet(qp))
			qp_remove(w, qp);
		return !qp || !tn_list_linked(&qp->link);
	case DP_CMD_CLIENT_DEL:
		if (!client_quiet(w, (uint32_t)c->num))
			return false;
		client_forget(w, (uint32_t)c->num);
		return true;
	case DP_CMD_MEM_DEL:
		if (!(mem = dp_view_memory_slot(&w->view, c->num)))
			return true;
		if (mem->users)
			return false;
		memory_forget(w, c->num);
		return true;
	case DP_CMD_SEG_DEL:
		if (!dp_view_segment_slot(&w->view, c->num))
			return true;
		if (!segment_quiet(w, c->num))
			return false;
		dp_view_segment_forget(&w->view, c->num);
		return true;
	case DP_CMD_REMOTE_DEL:
		if (!(remote = dp_view_remote_slot(&w->view, c->num)))
			return true;
		if (remote->users)
			return false;
		dp_view_remote_forget(&w->view, c->num);
		return true;
	case DP_CMD_REMOTE_SET: return q->refs == 0;
	case DP_CMD_FENCE: return fenced(w, c);
	case DP_CMD_MODE: return c->num != DP_MODE_DRAIN || all_quiet(w);
	case DP_CMD_TRANSPORT: return switched(w, q);
	case DP_CMD_INSPECT: return inspected(w, q);
	case DP_CMD_STOP: return (all_quiet(w) || dp_stage_only_quarantine(w)) && served_out(w);
	default: return true;
	}
}

/* ---- the two entries of the loop ---- */

static bool finish(struct dp_worker *w, struct dp_quiesce *q)
{
	struct dp_evt ack = { .id = q->cmd.id, .kind = DP_EVT_ACK, .status = q->cmd.status };
	if (q->cmd.id != 0 && dp_worker_tell(w, &ack) != TN_OK)
		return false; /* mailbox full: the record stays and is asked again */
	w->stopped |= q->cmd.kind == DP_CMD_STOP;
	tn_list_unlink(&q->link);
	tn_list_push_back(&w->quiesce_free, &q->link);
	return true;
}

uint32_t dp_apply_commands(struct dp_worker *w)
{
	uint32_t done = 0;
	while (done < COMMAND_BUDGET && !tn_list_empty(&w->quiesce_free)) {
		struct dp_quiesce *q = tn_list_entry(w->quiesce_free.next, struct dp_quiesce, link);
		if (!shr_mailbox_pop(&w->cmds, &q->cmd))
			break;
		tn_list_unlink(&q->link);
		tn_list_push_back(&w->quiescing, &q->link);
		bool verdict = q->cmd.kind == DP_CMD_NOTE_VERDICT || q->cmd.kind == DP_CMD_COPIED; /* status: an argument, no answer */
		q->refs = 0;
		q->done = false;
		tn_status s = begin(w, q);
		q->cmd.status = verdict ? TN_OK : s;
		done++;
	}
	return done;
}

uint32_t dp_apply_quiesce(struct dp_worker *w)
{
	uint32_t done = 0;
	tn_list_foreach(node, &w->quiescing) {
		struct dp_quiesce *q = tn_list_entry(node, struct dp_quiesce, link);
		/* Forgetting happens once; a full mailbox only repeats the acknowledgement. */
		if (!q->done && !(q->done = complete(w, q)))
			continue;
		done += finish(w, q);
	}
	return done;
}
