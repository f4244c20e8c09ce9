/* SPDX-License-Identifier: Apache-2.0
 * What the control plane may ask of the data plane: one function per method, one table. Each fills an answer and
 * returns a status; the text of a refusal names what was wrong. Control thread. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/hook.h"
#include "common/log.h"
#include "dataplane/link/wire.h"
#include "dataplane/segment/local.h"
#include "dataplane/segment/remote.h"
#include "dataplane/transport/path_info.h"

#define LIST_MAX 64u
#define LIST_BYTES 60000u
#define DRAIN_GRACE_MS 30000u
#define DRAIN_GRACE_MAX_MS 3600000u

struct question {
	struct dp_control *ctl;
	uint64_t id;               /* correlation */
	struct tn_json_in in;      /* the body */
	json_t *answer;            /* NULL = none; owned */
	char detail[TN_ERR_TEXT];
};

/* ---- tickets ---- */

static void addresses_read(struct question *q, const json_t *list, struct dp_ticket *t)
{
	const json_t *a;
	size_t i;

	json_array_foreach(list, i, a) {
		char why[TN_ERR_TEXT];
		if (!json_is_string(a) || t->addr_cnt == DP_TICKET_ADDRS_MAX ||
		    tn_addr_net_parse(json_string_value(a), &t->addrs[t->addr_cnt], why) != TN_OK) {
			(void)tn_json_refuse(&q->in, "addresses", "is not a list of at most %u numeric addresses or prefixes",
			                     DP_TICKET_ADDRS_MAX);
			return;
		}
		t->addr_cnt++;
	}
}

static tn_status on_install_ticket(struct question *q)
{
	struct dp_ticket t;
	struct dp_peer_slot *slot;
	const json_t *addresses = NULL;
	char name[TN_NAME_MAX];
	tn_status s;

	memset(&t, 0, sizeof t);
	(void)tn_json_hex128(&q->in, "ticket", &t.ticket);
	(void)tn_json_name(&q->in, "peer", name);
	(void)tn_json_peer_id(&q->in, "peer_id", &t.peer);
	(void)tn_json_hex128(&q->in, "session", &t.session);
	(void)tn_json_array(&q->in, "addresses", 64, &addresses);
	if (q->in.status == TN_OK)
		addresses_read(q, addresses, &t);
	s = q->in.status;
	if (s == TN_OK)
		s = dp_peers_introduce(&q->ctl->peers, name, &t.peer, &slot);
	if (s == TN_OK) {
		t.peer_index = slot->index;
		s = dp_tickets_install(&q->ctl->greet.tickets, &t);
		if (s == TN_INVALID)
			(void)snprintf(q->detail, sizeof q->detail, "a ticket needs a peer, a session and an address");
	}
	explicit_bzero(&t, sizeof t);
	TN_HOOK(dp_ticket_installed);
	return s;
}

/* ---- segments ---- */

static tn_status on_segment_changed(struct question *q)
{
	char peer[TN_NAME_MAX], name[TN_NAME_MAX];
	struct tn_id128 session = { { 0 } };
	uint64_t generation = 0;

	(void)tn_json_name(&q->in, "peer", peer);
	(void)tn_json_name(&q->in, "name", name);
	(void)tn_json_hex128(&q->in, "session", &session);
	(void)tn_json_u64(&q->in, "generation", 0, UINT64_MAX, &generation);
	if (q->in.status == TN_OK)
		dp_remote_segment_changed(q->ctl, peer, name, &session, generation);
	return q->in.status;
}

static tn_status on_peer_returned(struct question *q)
{
	char peer[TN_NAME_MAX];
	struct tn_id128 session = { { 0 } };

	(void)tn_json_name(&q->in, "peer", peer);
	(void)tn_json_hex128(&q->in, "session", &session);
	if (q->in.status == TN_OK) {
		dp_peers_returned(q->ctl, peer, &session);
		dp_remote_peer_returned(q->ctl, peer);
	}
	return q->in.status;
}

static tn_status on_segment_list(struct question *q)
{
	struct dp_handles *table = &q->ctl->segments;
	json_t *list = json_array();
	uint32_t first = 0, count = LIST_MAX, seen = 0;
	size_t bytes = 0;

	if (tn_json_has(&q->in, "first"))
		(void)tn_json_u32(&q->in, "first", 0, UINT32_MAX, &first);
	if (tn_json_has(&q->in, "count"))
		(void)tn_json_u32(&q->in, "count", 1, LIST_MAX, &count);
	for (uint32_t i = 0; i < table->cap && q->in.status == TN_OK; i++) {
		const struct dp_local_segment *seg = dp_handles_at(table, i);
		if (seg == NULL || seg->state != DP_SEG_LIVE)
			continue;
		if (seen++ < first || json_array_size(list) == count || bytes > LIST_BYTES - 10000)
			continue;
		json_array_append_new(list, dp_link_segment_json(seg->s));
		bytes += dp_link_segment_text_max(seg->s);
	}
	q->answer = json_object();
	json_object_set_new(q->answer, "segments", list);
	(void)tn_json_put_u64(q->answer, "total", seen);
	return q->in.status;
}

static tn_status on_segment_withdraw(struct question *q)
{
	char name[TN_NAME_MAX];

	if (tn_json_name(&q->in, "name", name) != TN_OK)
		return q->in.status;
	return dp_local_withdraw_name(q->ctl, name);
}

/* ---- datagrams ---- */

static int hex_digit(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static uint8_t *payload_read(struct question *q, uint32_t *len_out)
{
	const char *hex = "";
	size_t len;
	uint8_t *bytes;

	if (tn_json_str(&q->in, "payload", 2 * DP_FRAME_DATAGRAM_MAX, &hex) != TN_OK)
		return NULL;
	len = strlen(hex) / 2;
	bytes = len > 0 && strlen(hex) % 2 == 0 ? malloc(len) : NULL;
	for (size_t i = 0; bytes != NULL && i < len; i++) {
		int hi = hex_digit(hex[2 * i]), lo = hex_digit(hex[2 * i + 1]);
		if (hi < 0 || lo < 0) {
			free(bytes);
			bytes = NULL;
			break;
		}
		bytes[i] = (uint8_t)(hi << 4 | lo);
	}
	if (bytes == NULL)
		(void)tn_json_refuse(&q->in, "payload", "is not hex of 1..%u bytes", DP_FRAME_DATAGRAM_MAX);
	*len_out = (uint32_t)len;
	return bytes;
}

/* Where the peer is, for a host that is asked and never asks itself: nothing else tells its data plane. */
static tn_status receiver_learn(struct question *q)
{
	const json_t *to = NULL;
	struct dp_peer peer;
	uint32_t index;
	tn_status s;

	if (!tn_json_has(&q->in, "to"))
		return TN_OK;
	s = tn_json_object(&q->in, "to", &to);
	if (s == TN_OK)
		s = dp_link_peer_read(to, &peer, q->detail);
	if (s != TN_OK)
		return s;
	s = dp_peers_learn(q->ctl, &peer, &index);
	explicit_bzero(&peer, sizeof peer);
	return s;
}

static tn_status on_datagram(struct question *q)
{
	struct dp_control *ctl = q->ctl;
	const struct dp_peer_slot *slot;
	char name[TN_NAME_MAX];
	uint32_t len = 0;
	uint8_t *bytes;
	tn_status s;

	(void)tn_json_name(&q->in, "peer", name);
	bytes = payload_read(q, &len);
	s = q->in.status == TN_OK ? receiver_learn(q) : q->in.status;
	if (s != TN_OK) {
		free(bytes);
		return s;
	}
	slot = dp_peers_find(&ctl->peers, name);
	if (slot == NULL || slot->cur == NULL || dp_crew_congested(&ctl->crew) ||
	    !dp_crew_post(&ctl->crew, slot->index % ctl->crew.cnt,
	                  (struct dp_cmd){ .kind = DP_CMD_DATAGRAM, .fd = -1, .ptr = bytes, .len = len, .num2 = slot->index })) {
		free(bytes);
		return slot == NULL ? TN_PEER_UNKNOWN : TN_AGAIN;
	}
	return TN_OK;
}

/* ---- state, for people ---- */

static json_t *worker_json(const struct dp_control *ctl, uint32_t i)
{
	const struct shr_worker_shm *w = shr_tele_worker(ctl->cfg.telemetry, i);
	uint32_t cpu = tn_load_relaxed32(&w->cpu);
	json_t *j = json_object();

	(void)tn_json_put_u64(j, "index", i);
	(void)tn_json_put_bool(j, "alive", tn_load_relaxed32(&w->alive) != 0);
	if (cpu != UINT32_MAX)
		(void)tn_json_put_u64(j, "cpu", cpu);
	(void)tn_json_put_u64(j, "queue_pairs", ctl->crew.members[i].qp_cnt);
	(void)tn_json_put_u64(j, "inflight", tn_load_relaxed32(&w->inflight));
	(void)tn_json_put_u64(j, "queued", tn_load_relaxed32(&w->queued));
	(void)tn_json_put_u64(j, "outstanding_bytes", tn_load_relaxed64(&w->outstanding_bytes));
	(void)tn_json_put_u64(j, "lanes", tn_load_relaxed32(&w->lanes));
	(void)tn_json_put_u64(j, "busy_ns", tn_load_relaxed64(&w->busy_ns));
	(void)tn_json_put_u64(j, "idle_ns", tn_load_relaxed64(&w->idle_ns));
	return j;
}

/* What the paths of all workers to one peer come to. */
struct paths_sum { uint32_t lanes, opening, failing; enum tn_transport best; };

static struct paths_sum sum_paths(const struct dp_control *ctl, const struct dp_peer_slot *slot)
{
	struct paths_sum sum = { .best = TN_TRANSPORT_UNSPEC };

	for (unsigned kind = 0; kind < TN_TRANSPORT_CNT; kind++) {
		for (uint32_t w = 0; w < ctl->crew.cnt; w++) {
			struct dp_path_info p;
			if (!dp_worker_path_info(ctl->crew.members[w].worker, (enum tn_transport)kind, slot->index, &p))
				continue;
			sum.lanes += p.lanes;
			sum.opening += p.opening;
			sum.failing += p.lanes == 0 && (p.fail_cnt > 0 || p.hold);
			if (sum.best == TN_TRANSPORT_UNSPEC && p.lanes > 0)
				sum.best = (enum tn_transport)kind;
		}
	}
	return sum;
}

/* No lane is no fault: they are opened by the first request and retired when idle. */
static const char *paths_state(const struct paths_sum *sum)
{
	return sum->lanes > 0 ? "up" : sum->failing > 0 ? "down" : sum->opening > 0 ? "connecting" : "idle";
}

static json_t *peer_json(const struct dp_control *ctl, const struct dp_peer_slot *slot)
{
	const struct paths_sum sum = sum_paths(ctl, slot);
	json_t *j = json_object();

	(void)tn_json_put_str(j, "name", slot->name);
	if (slot->cur != NULL)
		(void)tn_json_put_hex128(j, "session", &slot->cur->session);
	(void)tn_json_put_str(j, "state", paths_state(&sum));
	if (sum.best != TN_TRANSPORT_UNSPEC)
		(void)tn_json_put_str(j, "transport", tn_transport_name(sum.best));
	(void)tn_json_put_u64(j, "lanes", sum.lanes);
	(void)tn_json_put_u64(j, "lanes_in", tn_load_relaxed32(&slot->conn_cnt));
	return j;
}

/* How many are in which state. */
static json_t *peers_json(const struct dp_control *ctl)
{
	json_t *j = json_object();

	for (uint32_t i = 0; i < ctl->peers.cnt; i++) {
		const struct paths_sum sum = sum_paths(ctl, ctl->peers.slots[i]);
		const char *state = paths_state(&sum);
		if (ctl->peers.slots[i]->trusted)
			json_object_set_new(j, state, json_integer(json_integer_value(json_object_get(j, state)) + 1));
	}
	return j;
}

static tn_status on_status(struct question *q)
{
	struct dp_control *ctl = q->ctl;
	json_t *b = json_object(), *workers = json_array(), *off = json_array();

	(void)tn_json_put_u64(b, "clients", ctl->attach.attached_cnt);
	(void)tn_json_put_u64(b, "qps", ctl->qps.used);
	(void)tn_json_put_u64(b, "memories", ctl->memories.used);
	(void)tn_json_put_u64(b, "segments", ctl->segments.used);
	(void)tn_json_put_u64(b, "remotes", ctl->remotes.used);
	(void)tn_json_put_u64(b, "memory_bytes", ctl->memory_bytes);
	(void)tn_json_put_u64(b, "clients_refused", ctl->attach.refused_cnt);
	(void)tn_json_put_u64(b, "clients_broken", ctl->attach.broken_cnt);
	(void)tn_json_put_u64(b, "lanes_refused", ctl->greet.refused_cnt + ctl->greet.malformed_cnt + ctl->greet.evicted_cnt);
	(void)tn_json_put_u64(b, "notes_delivered", ctl->notes.delivered_cnt);
	(void)tn_json_put_str(b, "state", dp_control_state_name(DP_CONTROL_PAIR, ctl->pair));
	for (unsigned kind = 0; kind < TN_TRANSPORT_CNT; kind++)
		if (ctl->transports_off >> kind & 1)
			json_array_append_new(off, json_string(tn_transport_name(kind)));
	json_object_set_new(b, "transports_off", off);
	for (uint32_t i = 0; i < ctl->crew.cnt; i++)
		json_array_append_new(workers, worker_json(ctl, i));
	json_object_set_new(b, "workers", workers);
	json_object_set_new(b, "peers", peers_json(ctl));
	q->answer = b;
	return TN_OK;
}

/* Of those that are named, because there may be more peers than fit into a message. */
static tn_status on_peer_states(struct question *q)
{
	const json_t *names = NULL, *name;
	json_t *list;
	size_t i;

	if (tn_json_array(&q->in, "peers", LIST_MAX, &names) != TN_OK)
		return q->in.status;
	list = json_array();
	json_array_foreach(names, i, name) {
		const struct dp_peer_slot *slot =
			json_is_string(name) ? dp_peers_find(&q->ctl->peers, json_string_value(name)) : NULL;
		if (slot != NULL)
			json_array_append_new(list, peer_json(q->ctl, slot));
	}
	q->answer = json_object();
	json_object_set_new(q->answer, "peers", list);
	return TN_OK;
}

static tn_status on_peer_load(struct question *q)
{
	return dp_link_peer_load(q->ctl, &q->in, &q->answer);
}

static tn_status on_explain(struct question *q)
{
	return dp_link_explain(q->ctl, &q->in, &q->answer);
}

static tn_status on_request(struct question *q)
{
	uint64_t id = 0;

	if (tn_json_u64(&q->in, "request_id", 1, UINT64_MAX, &id) != TN_OK)
		return q->in.status;
	return dp_link_inspect(q->ctl->link, q->id, id);
}

/* ---- life ---- */

/* One value of the body as --set has it; NULL when it is no scalar or memory is short. */
static char *tune_text(const char *key, const json_t *value)
{
	char *text = NULL;
	int n = -1;

	if (json_is_string(value))
		n = asprintf(&text, "%s=%s", key, json_string_value(value));
	else if (json_is_integer(value))
		n = asprintf(&text, "%s=%" JSON_INTEGER_FORMAT, key, json_integer_value(value));
	else if (json_is_boolean(value))
		n = asprintf(&text, "%s=%s", key, json_is_true(value) ? "true" : "false");
	return n >= 0 ? text : NULL;
}

static tn_status on_tune(struct question *q)
{
	char *sets[TN_DAEMON_SETS_MAX];
	unsigned cnt = 0;
	const char *key;
	json_t *value;
	tn_status s = TN_OK;

	json_object_foreach((json_t *)(uintptr_t)q->in.obj, key, value) {
		char *text = cnt < TN_ARRAY_LEN(sets) ? tune_text(key, value) : NULL;
		if (text == NULL) {
			s = tn_json_refuse(&q->in, key, "is not a value that can be set");
			break;
		}
		sets[cnt++] = text;
	}
	if (s == TN_OK)
		s = dp_control_tune(q->ctl, (const char *const *)sets, cnt);
	if (s == TN_CONFIG)
		(void)snprintf(q->detail, sizeof q->detail, "not a hot key, or not a value for it (the data plane's log says which)");
	while (cnt > 0)
		free(sets[--cnt]);
	return s;
}

/* A refused configuration is an answer too: it says what was wrong. */
static tn_status on_reload(struct question *q)
{
	tn_status s = dp_control_reload(q->ctl, &q->answer);
	if (s == TN_AGAIN)
		(void)snprintf(q->detail, sizeof q->detail, "the workers have not taken over the configuration before this one: ask again");
	return q->answer != NULL ? TN_OK : s;
}

static tn_status pair_answer(struct question *q, tn_status s, bool changed)
{
	if (s != TN_OK) {
		(void)snprintf(q->detail, sizeof q->detail, "the data plane of this host %s",
		               s == TN_CLOSED ? "drains: it ends soon" : "starts");
		return s;
	}
	q->answer = json_object();
	(void)tn_json_put_str(q->answer, "state", dp_control_state_name(DP_CONTROL_PAIR, q->ctl->pair));
	(void)tn_json_put_bool(q->answer, "changed", changed);
	return TN_OK;
}

static tn_status on_pause(struct question *q)
{
	bool changed = false;
	tn_status s = dp_control_pause(q->ctl, true, &changed);
	return pair_answer(q, s, changed);
}

static tn_status on_resume(struct question *q)
{
	bool changed = false;
	tn_status s = dp_control_pause(q->ctl, false, &changed);
	return pair_answer(q, s, changed);
}

static tn_status on_transport(struct question *q)
{
	static const char *const kinds[] = {
#define X(n, s) #s,
		TN_TRANSPORT_LIST(X)
#undef X
	};
	unsigned kind = 0;
	bool enable = false, force = false, changed = false;

	/* Any but the first, which stands for none. */
	(void)tn_json_choice(&q->in, "transport", kinds + 1, TN_ARRAY_LEN(kinds) - 1, &kind);
	(void)tn_json_bool(&q->in, "enable", &enable);
	if (tn_json_has(&q->in, "force"))
		(void)tn_json_bool(&q->in, "force", &force);
	if (q->in.status != TN_OK)
		return q->in.status;
	kind++;
	tn_status s = dp_control_transport(q->ctl, kind, enable, force, &changed);
	if (s == TN_UNSUPPORTED)
		(void)snprintf(q->detail, sizeof q->detail, "%s is not in this build, or not enabled in the configuration",
		               tn_transport_name(kind));
	else if (s == TN_BUSY)
		(void)snprintf(q->detail, sizeof q->detail, "%s is one of observability/required_transports: without it this host is "
		               "not ready; --force switches it off all the same", tn_transport_name(kind));
	if (s != TN_OK)
		return s;
	q->answer = json_object();
	(void)tn_json_put_bool(q->answer, "changed", changed);
	return TN_OK;
}

/* The answer leaves before the end does: the link goes on meanwhile. */
static tn_status on_drain(struct question *q)
{
	uint64_t grace_ms = DRAIN_GRACE_MS;
	bool changed = !q->ctl->stop_asked && !dp_control_drains(q->ctl);

	if (tn_json_has(&q->in, "grace_ms") &&
	    tn_json_u64(&q->in, "grace_ms", 0, DRAIN_GRACE_MAX_MS, &grace_ms) != TN_OK)
		return q->in.status;
	if (changed)
		q->ctl->drain_ns = grace_ms * TN_NS_PER_MS;
	q->ctl->stop_asked = true;
	return pair_answer(q, TN_OK, changed);
}

/* PENDING: the answer follows. */
static const struct method { const char *type; tn_status (*fn)(struct question *q); } methods[] = {
	{ "install_ticket", on_install_ticket },
	{ "segment_changed", on_segment_changed },
	{ "peer_returned", on_peer_returned },
	{ "segment_list", on_segment_list },
	{ "segment_withdraw", on_segment_withdraw },
	{ "datagram", on_datagram },
	{ "status", on_status },
	{ "peer_states", on_peer_states },
	{ "peer_load", on_peer_load },
	{ "explain", on_explain },
	{ "request", on_request },
	{ "tune", on_tune },
	{ "reload", on_reload },
	{ "pause", on_pause },
	{ "resume", on_resume },
	{ "drain", on_drain },
	{ "transport", on_transport },
};

static tn_status answer(struct question *q, const char *type)
{
	for (size_t i = 0; i < TN_ARRAY_LEN(methods); i++)
		if (strcmp(methods[i].type, type) == 0)
			return methods[i].fn(q);
	(void)snprintf(q->detail, sizeof q->detail, "no such method");
	return TN_UNSUPPORTED;
}

void dp_link_request(struct dp_link *l, const struct tn_message *m)
{
	struct question q = { .ctl = l->ctl, .id = m->id };

	tn_json_in_init(&q.in, m->body);
	tn_status status = answer(&q, m->type);
	if (status == TN_PENDING)
		return;
	if (status != TN_OK) {
		json_decref(q.answer);
		q.answer = NULL;
	}
	dp_link_answer(l, m->type, m->id, status, q.answer,
	               q.detail[0] != '\0' ? q.detail : q.in.err[0] != '\0' ? q.in.err : tn_status_meaning(status));
}

void dp_link_answer(struct dp_link *l, const char *type, uint64_t id, tn_status status, json_t *body, const char *detail)
{
	struct tn_message reply = { .reply = true, .id = id, .session = l->ctl->cfg.env->session, .status = status, .body = body };

	(void)snprintf(reply.type, sizeof reply.type, "%s", type);
	if (status != TN_OK)
		(void)snprintf(reply.detail, sizeof reply.detail, "%s", detail);
	tn_status s = dp_link_send(l, &reply);
	if (s == TN_TOO_BIG) { /* the asker is told so at once, and does not wait for its timeout */
		reply.status = s;
		json_decref(reply.body);
		reply.body = NULL;
		(void)snprintf(reply.detail, sizeof reply.detail, "the answer is larger than a message may be");
		s = dp_link_send(l, &reply);
	}
	if (s != TN_OK)
		tn_log_warn("link", "an answer to %s could not be sent: %s", type, tn_status_meaning(s));
	tn_message_clear(&reply);
}
