/* SPDX-License-Identifier: Apache-2.0
 * How the control plane comes to know this data plane: attach, a snapshot in chunks, then numbered changes and a
 * heartbeat. Whatever goes wrong ends in attaching again, which repairs everything. Control thread. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/hook.h"
#include "common/log.h"
#include "common/units.h"
#include "dataplane/link/wire.h"
#include "dataplane/segment/local.h"

#define ATTACH_NS UINT64_C(1000000000)
#define HEARTBEAT_NS UINT64_C(5000000000) /* longest wait for the answer */
#define CHANGE_NS UINT64_C(1000000000) /* the other end is on this host: silence means it was replaced */
#define BACKOFF_FIRST_NS UINT64_C(100000000)
#define BACKOFF_MAX_NS UINT64_C(2000000000)
#define CHUNK_SEGMENTS 64u
#define CHUNK_BYTES 56000u  /* of segments' text, below the bound of a message */
#define CHANGES_MAX 65536u

struct change { /* one change of the local tables, in order */
	struct tn_list link;
	struct dp_call call;       /* once sent */
	bool withdrawn;
	tn_handle segment;         /* published: looked up when it is sent; gone by then = its withdrawal follows */
	uint64_t generation, sequence;
	char name[TN_NAME_MAX];
};

static void attach_try(struct dp_link *l);
static void snapshot_next(struct dp_link *l);
static void peers_next(struct dp_link *l);

bool dp_link_attached(const struct dp_link *l)
{
	return l != NULL && l->state >= DP_LINK_SNAPSHOT;
}

/* ---- changes ---- */

static void changes_free(struct tn_list *list)
{
	for (struct tn_list *node; (node = tn_list_pop_front(list)) != NULL;)
		free(tn_list_entry(node, struct change, link));
}

/* Those not yet sent: a snapshot takes their place. */
static void changes_clear(struct dp_link *l)
{
	changes_free(&l->changes);
	l->change_cnt = 0;
}

static void change_answered(struct dp_call *call, tn_status status, const char *detail, const json_t *body)
{
	struct change *ch = tn_container_of(call, struct change, call);
	struct dp_link *l = call->owner;

	(void)body;
	tn_list_unlink(&ch->link);
	free(ch);
	if (status == TN_OK || status == TN_CONTROLPLANE_DOWN)
		return;
	/* The two must not differ for longer than a moment, whatever was wrong with this one (memory was short when it was
	 * told, say): a snapshot tells everything anew. */
	if (status != TN_TIMEOUT && status != TN_STALE)
		tn_log_error("link", "the control plane refused a segment change: %s: %s", tn_status_name(status), detail);
	dp_link_restart(l, detail);
}

static void change_add(struct dp_link *l, const struct dp_segment *s, bool withdrawn)
{
	struct change *ch;

	if (l == NULL)
		return;
	l->sequence++;
	if (!dp_link_attached(l))
		return; /* the next attach tells all */
	ch = l->change_cnt < CHANGES_MAX ? calloc(1, sizeof *ch) : NULL;
	if (ch == NULL) {
		dp_link_restart(l, "too many changes wait");
		return;
	}
	*ch = (struct change){ .withdrawn = withdrawn, .segment = s->handle, .generation = s->generation,
	                       .sequence = l->sequence };
	memcpy(ch->name, s->name, sizeof ch->name);
	dp_call_init(&ch->call);
	ch->call.answered = change_answered;
	tn_list_push_back(&l->changes, &ch->link);
	l->change_cnt++;
	dp_link_flush_changes(l);
}

void dp_link_segment_published(struct dp_link *l, const struct dp_segment *s)
{
	change_add(l, s, false);
}

void dp_link_segment_withdrawn(struct dp_link *l, const struct dp_segment *s)
{
	change_add(l, s, true);
}

static tn_status change_send(struct dp_link *l, struct change *ch)
{
	const struct dp_local_segment *seg = ch->withdrawn ? NULL : dp_local_get(l->ctl, ch->segment);
	json_t *body = json_object();

	(void)tn_json_put_u64(body, "sequence", ch->sequence);
	if (ch->withdrawn) {
		(void)tn_json_put_str(body, "name", ch->name);
		(void)tn_json_put_u64(body, "generation", ch->generation);
	} else {
		json_object_set_new(body, "segment", dp_link_segment_json(seg->s));
	}
	return dp_link_ask(l, &ch->call, ch->withdrawn ? "segment_withdrawn" : "segment_published", body,
	                   l->ctl->loop.now_ns + CHANGE_NS);
}

void dp_link_flush_changes(struct dp_link *l)
{
	while (l->state == DP_LINK_LIVE && !tn_list_empty(&l->changes)) {
		struct change *ch = tn_list_first(&l->changes, struct change, link);
		bool gone = !ch->withdrawn && dp_local_get(l->ctl, ch->segment) == NULL;
		if (!gone && change_send(l, ch) != TN_OK)
			return; /* stays first; tried again each turn */
		tn_list_unlink(&ch->link);
		l->change_cnt--;
		if (gone)
			free(ch);
		else
			tn_list_push_back(&l->changes_sent, &ch->link);
	}
}

/* ---- life of the attachment ---- */

static void forget(struct dp_link *l)
{
	bool was_attached = dp_link_attached(l);

	dp_timer_cancel(&l->timer);
	changes_clear(l);
	free(l->snapshot);
	l->snapshot = NULL;
	dp_control_move(DP_CONTROL_LINK, &l->state, DP_LINK_DOWN);
	dp_link_fail_calls(l, TN_CONTROLPLANE_DOWN, "the control plane went away");
	if (was_attached)
		tn_log_warn("link", "the control plane is away; transfers go on with what is known");
}

void dp_link_connected(struct dp_link *l)
{
	if (l->state != DP_LINK_DOWN)
		forget(l);
	dp_control_move(DP_CONTROL_LINK, &l->state, DP_LINK_CONNECTED);
	l->backoff_ns = BACKOFF_FIRST_NS;
	attach_try(l);
}

void dp_link_disconnected(struct dp_link *l)
{
	if (l->state != DP_LINK_DOWN)
		forget(l);
}

static void attach_later(struct dp_link *l)
{
	if (l->state != DP_LINK_CONNECTED)
		dp_control_move(DP_CONTROL_LINK, &l->state, DP_LINK_CONNECTED);
	dp_timer_set(&l->ctl->loop, &l->timer, l->ctl->loop.now_ns + l->backoff_ns);
	l->backoff_ns = TN_MIN(l->backoff_ns * 2, BACKOFF_MAX_NS);
}

void dp_link_restart(struct dp_link *l, const char *why)
{
	if (l->state < DP_LINK_SNAPSHOT)
		return;
	tn_log_warn("link", "attaching again: %s", why);
	forget(l);
	l->backoff_ns = BACKOFF_FIRST_NS;
	attach_later(l);
}

static json_t *endpoints_json(const struct dp_control *ctl)
{
	json_t *list = json_array();
	char text[TN_ADDR_TEXT];

	for (uint32_t i = 0; dp_greet_endpoint(&ctl->greet, i, text); i++) {
		json_t *e = json_object();
		(void)tn_json_put_str(e, "transport", tn_transport_name(TN_TRANSPORT_TCP));
		(void)tn_json_put_str(e, "address", text);
		json_array_append_new(list, e);
	}
	return list;
}

static void attach_try(struct dp_link *l)
{
	struct dp_control *ctl = l->ctl;
	char telemetry[SHR_TELE_NAME_MAX];
	json_t *body = json_object();

	shr_tele_name(ctl->cfg.telemetry->generation, telemetry);
	(void)tn_json_put_str(body, "host", tn_config_str(ctl->config, TN_CFG_HOST_NAME));
	(void)tn_json_put_u64(body, "pid", (uint64_t)getpid());
	(void)tn_json_put_u64(body, "generation", ctl->cfg.telemetry->generation);
	(void)tn_json_put_str(body, "telemetry", telemetry);
	json_object_set_new(body, "endpoints", endpoints_json(ctl));
	(void)tn_json_put_u64(body, "frame_bytes", tn_config_u64(ctl->config, TN_CFG_TCP_FRAME_BYTES));
	(void)tn_json_put_u64(body, "sequence", l->sequence);
	if (dp_link_ask(l, &l->attach, "attach", body, ctl->loop.now_ns + ATTACH_NS) != TN_OK)
		attach_later(l);
}

/* One page of the control plane's list of peers, which get their slots in that order. */
static tn_status peers_read(struct dp_link *l, const json_t *body)
{
	const json_t *p, *peers = NULL;
	struct tn_json_in in;
	size_t i;

	tn_json_in_init(&in, body);
	(void)tn_json_array(&in, "peers", DP_PEERS_MAX, &peers);
	(void)tn_json_u32(&in, "peers_total", 0, DP_PEERS_MAX, &l->peers_total);
	json_array_foreach(peers, i, p) {
		char name[TN_NAME_MAX];
		struct tn_peer_id id;
		struct tn_json_in one;
		tn_json_in_init(&one, p);
		(void)tn_json_name(&one, "name", name);
		(void)tn_json_peer_id(&one, "id", &id);
		if (one.status != TN_OK) {
			(void)tn_json_refuse(&in, "peers", "has a malformed entry: %.80s", one.err);
			break;
		}
		tn_status s = dp_peers_list_add(&l->ctl->peers, name, &id);
		if (s == TN_LIMIT)
			tn_log_error("link", "peer %s is ignored: %u names of peers came and went since the data plane started; "
				     "restart tent-dataplane", name, DP_PEERS_MAX);
		else if (s != TN_OK)
			return s;
		l->peers_got++;
	}
	if (in.status != TN_OK)
		tn_log_error("link", "the control plane's list of peers is malformed: %s", in.err);
	else if (l->peers_got < l->peers_total && json_array_size(peers) == 0)
		in.status = TN_PATH_PROTOCOL;
	return in.status;
}

static tn_status attach_read(struct dp_link *l, const json_t *body)
{
	struct dp_worker_env *env = l->ctl->cfg.env;
	struct tn_peer_id self;
	struct tn_json_in in;

	tn_json_in_init(&in, body);
	(void)tn_json_peer_id(&in, "self", &self);
	(void)tn_json_hex128(&in, "control_session", &l->control_session);
	if (in.status != TN_OK) {
		tn_log_error("link", "the control plane's answer to attach is malformed: %s", in.err);
		return in.status;
	}
	if (tn_peer_id_is_zero(&env->self))
		env->self = self; /* before the first PEER_SET: workers read it only after one */
	if (!tn_peer_id_eq(&env->self, &self)) {
		tn_log_error("link", "the key of this host changed while the data plane runs: restart tent-dataplane");
		return TN_CONFIG;
	}
	l->peers_got = 0;
	dp_peers_list_begin(&l->ctl->peers);
	return peers_read(l, body);
}

static void snapshot_begin(struct dp_link *l)
{
	struct dp_handles *segments = &l->ctl->segments;

	l->snapshot_cnt = l->snapshot_at = 0;
	l->snapshot_sequence = l->sequence;
	l->snapshot = calloc(segments->used + 1, sizeof *l->snapshot);
	if (l->snapshot == NULL) {
		attach_later(l);
		return;
	}
	for (uint32_t i = 0; i < segments->cap; i++) {
		const struct dp_local_segment *seg = dp_handles_at(segments, i);
		if (seg != NULL && seg->announced && seg->state == DP_SEG_LIVE)
			l->snapshot[l->snapshot_cnt++] = seg->s->handle;
	}
	snapshot_next(l);
}

static void attach_answered(struct dp_call *call, tn_status status, const char *detail, const json_t *body)
{
	struct dp_link *l = tn_container_of(call, struct dp_link, attach);

	if (l->state != DP_LINK_CONNECTED)
		return;
	if (status == TN_OK)
		status = attach_read(l, body);
	else
		tn_log_warn("link", "the control plane refused to attach us: %s: %s", tn_status_name(status), detail);
	if (status != TN_OK)
		attach_later(l);
	else
		peers_next(l);
}

/* The rest of the list, then the snapshot. */
static void peers_next(struct dp_link *l)
{
	if (l->peers_got < l->peers_total) {
		json_t *body = json_object();
		(void)tn_json_put_u64(body, "first", l->peers_got);
		if (dp_link_ask(l, &l->peers, "peers", body, l->ctl->loop.now_ns + ATTACH_NS) != TN_OK)
			attach_later(l);
		return;
	}
	dp_peers_list_end(&l->ctl->peers);
	dp_control_move(DP_CONTROL_LINK, &l->state, DP_LINK_SNAPSHOT);
	TN_HOOK(dp_link_attached);
	snapshot_begin(l);
}

static void peers_answered(struct dp_call *call, tn_status status, const char *detail, const json_t *body)
{
	struct dp_link *l = tn_container_of(call, struct dp_link, peers);

	if (l->state != DP_LINK_CONNECTED)
		return;
	if (status == TN_OK)
		status = peers_read(l, body);
	else
		tn_log_warn("link", "the control plane gave no list of peers: %s: %s", tn_status_name(status), detail);
	if (status != TN_OK)
		attach_later(l);
	else
		peers_next(l);
}

static void heartbeat_later(struct dp_link *l)
{
	uint64_t interval_ns = tn_config_ns(l->ctl->config, TN_CFG_CONTROL_HEARTBEAT_MS);

	dp_timer_set(&l->ctl->loop, &l->timer, l->ctl->loop.now_ns + interval_ns);
}

/* ---- snapshot ---- */

static void snapshot_next(struct dp_link *l)
{
	json_t *body = json_object(), *list = json_array();
	size_t bytes = 0;
	uint32_t cnt = 0;

	while (l->snapshot_at < l->snapshot_cnt && cnt < CHUNK_SEGMENTS) {
		const struct dp_local_segment *seg = dp_local_get(l->ctl, l->snapshot[l->snapshot_at]);
		size_t more = seg != NULL ? dp_link_segment_text_max(seg->s) : 0;
		if (cnt > 0 && bytes + more > CHUNK_BYTES)
			break;
		l->snapshot_at++;
		if (seg == NULL)
			continue; /* withdrawn meanwhile; that change follows */
		json_array_append_new(list, dp_link_segment_json(seg->s));
		bytes += more;
		cnt++;
	}
	(void)tn_json_put_u64(body, "sequence", l->snapshot_sequence);
	json_object_set_new(body, "segments", list);
	(void)tn_json_put_bool(body, "last", l->snapshot_at == l->snapshot_cnt);
	if (dp_link_ask(l, &l->chunk, "snapshot", body, l->ctl->loop.now_ns + ATTACH_NS) != TN_OK)
		dp_link_restart(l, "the snapshot could not be sent");
}

static void chunk_answered(struct dp_call *call, tn_status status, const char *detail, const json_t *body)
{
	struct dp_link *l = tn_container_of(call, struct dp_link, chunk);

	(void)body;
	if (l->state != DP_LINK_SNAPSHOT)
		return;
	if (status != TN_OK && status != TN_INVALID) {
		dp_link_restart(l, detail);
		return;
	}
	if (status != TN_OK)
		tn_log_error("link", "the control plane refused a segment of the snapshot: %s", detail);
	if (l->snapshot_at < l->snapshot_cnt) {
		snapshot_next(l);
		return;
	}
	free(l->snapshot);
	l->snapshot = NULL;
	dp_control_move(DP_CONTROL_LINK, &l->state, DP_LINK_LIVE);
	TN_HOOK(dp_link_live);
	l->backoff_ns = BACKOFF_FIRST_NS;
	tn_log_info("link", "attached to the control plane with %u segment%s", l->snapshot_cnt, tn_plural(l->snapshot_cnt));
	heartbeat_later(l);
	dp_link_flush_changes(l);
	dp_peers_link_up(&l->ctl->peers);
}

/* ---- heartbeat ---- */

static void heartbeat_send(struct dp_link *l)
{
	json_t *body = json_object();
	uint64_t now_ns = l->ctl->loop.now_ns;

	(void)tn_json_put_u64(body, "sequence", l->sequence);
	if (dp_link_ask(l, &l->heartbeat, "heartbeat", body, now_ns + HEARTBEAT_NS) != TN_OK)
		dp_link_restart(l, "a heartbeat could not be sent");
}

static void heartbeat_answered(struct dp_call *call, tn_status status, const char *detail, const json_t *body)
{
	struct dp_link *l = tn_container_of(call, struct dp_link, heartbeat);
	struct tn_id128 session = l->control_session;
	struct tn_json_in in;

	if (l->state != DP_LINK_LIVE)
		return;
	if (status == TN_OK) {
		tn_json_in_init(&in, body);
		if (tn_json_has(&in, "control_session"))
			(void)tn_json_hex128(&in, "control_session", &session);
	}
	if (status != TN_OK || !tn_id128_eq(&session, &l->control_session)) {
		dp_link_restart(l, status != TN_OK ? detail : "the control plane restarted");
		return;
	}
	heartbeat_later(l);
}

static void link_timer(struct dp_timer *t)
{
	struct dp_link *l = tn_container_of(t, struct dp_link, timer);

	if (l->state == DP_LINK_LIVE)
		heartbeat_send(l);
	else if (l->state == DP_LINK_CONNECTED)
		attach_try(l);
}

void dp_link_attach_init(struct dp_link *l)
{
	tn_list_init(&l->changes);
	tn_list_init(&l->changes_sent);
	dp_timer_init(&l->timer, link_timer);
	dp_call_init(&l->attach);
	dp_call_init(&l->peers);
	dp_call_init(&l->heartbeat);
	dp_call_init(&l->chunk);
	l->attach.answered = attach_answered;
	l->peers.answered = peers_answered;
	l->heartbeat.answered = heartbeat_answered;
	l->chunk.answered = chunk_answered;
	l->backoff_ns = BACKOFF_FIRST_NS;
}

void dp_link_attach_fini(struct dp_link *l)
{
	dp_timer_cancel(&l->timer);
	changes_clear(l);
	changes_free(&l->changes_sent);
	free(l->snapshot);
	l->snapshot = NULL;
}
