/* SPDX-License-Identifier: Apache-2.0
 * "explain": which transports would carry a request to a peer or to this host, in which order, and for each other one
 * why not; what each worker knows of its paths. Nothing is tried and no secret is told. Control thread. */
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "common/addr.h"
#include "common/clock.h"
#include "common/units.h"
#include "dataplane/link/wire.h"
#include "dataplane/segment/local.h"
#include "dataplane/segment/remote.h"
#include "dataplane/selection/rail.h"
#include "dataplane/selection/reject.h"
#include "dataplane/stats/load.h"
#include "dataplane/transport/path_info.h"
#include "dataplane/transport/registry.h"

#define BYTES_DEFAULT (UINT64_C(1) << 20)
#define DETAIL_MAX 160

struct inquiry {
	struct dp_control *ctl;
	char peer[TN_NAME_MAX], segment[TN_NAME_MAX]; /* peer "": this host */
	bool local;
	struct dp_policy_query query;
	struct dp_policy_answer order;
	const struct dp_peer_slot *slot;
	bool chosen;                 /* a transport that serves was found */
};

/* ---- one transport ---- */

static bool usable_here(const struct inquiry *q, unsigned kind)
{
	for (uint32_t w = 0; w < q->ctl->crew.cnt; w++)
		if (tn_load_relaxed32(&shr_tele_worker(q->ctl->cfg.telemetry, w)->transports_up) >> kind & 1)
			return true;
	return false;
}

static bool in_order(const struct inquiry *q, unsigned kind)
{
	for (unsigned i = 0; i < q->order.cnt; i++)
		if (q->order.kinds[i] == kind)
			return true;
	return false;
}

struct verdict { const char *why; char detail[DETAIL_MAX]; bool serves, waits; };

static bool refuse(struct verdict *v, const char *why, const char *detail)
{
	v->why = why;
	(void)snprintf(v->detail, sizeof v->detail, "%s", detail);
	return false;
}

static bool reject(struct verdict *v, enum dp_reject why)
{
	return refuse(v, tn_reject_name(why), tn_reject_meaning(why));
}

/* No worker would use it now, because it fails too often. */
static bool rails_closed(const struct inquiry *q, unsigned kind, tn_status why, struct verdict *v)
{
	uint64_t now_ns = q->ctl->loop.now_ns, next_ns = UINT64_MAX;
	uint32_t cooling = 0, index = q->slot != NULL ? q->slot->index : DP_PEER_SELF;

	for (uint32_t w = 0; w < q->ctl->crew.cnt; w++) {
		uint64_t until_ns;
		enum dp_rail_state state = dp_worker_rail(q->ctl->crew.members[w].worker, kind, index, &until_ns);
		if (state != DP_RAIL_COOLING && state != DP_RAIL_PROBING)
			continue;
		cooling++;
		next_ns = TN_MIN(next_ns, until_ns);
	}
	if (cooling == 0 || cooling < q->ctl->crew.cnt)
		return false;
	v->serves = reject(v, DP_REJECT_COOLING);
	v->waits = true;
	int n = snprintf(v->detail, sizeof v->detail, "it failed too often%s%s%s, and is tried again ", why != TN_OK ? " (" : "",
			 why != TN_OK ? tn_status_meaning(why) : "", why != TN_OK ? ")" : "");
	if (n > 0 && (size_t)n < sizeof v->detail && next_ns > now_ns)
		(void)snprintf(v->detail + n, sizeof v->detail - (size_t)n, "in %llu ms",
			       (unsigned long long)((next_ns - now_ns) / TN_NS_PER_MS + 1));
	else if (n > 0 && (size_t)n < sizeof v->detail)
		(void)snprintf(v->detail + n, sizeof v->detail - (size_t)n, "with the next request");
	return true;
}

/* Lanes are refused for where they come from. Who is told this holds a good ticket of that peer. */
static void judge_stray(const uint8_t seen[static 16], struct verdict *v)
{
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6 };
	char text[TN_ADDR_TEXT] = "another address";
	struct tn_addr a;

	memcpy(&in6.sin6_addr, seen, sizeof in6.sin6_addr);
	if (tn_addr_from_sockaddr((const struct sockaddr *)&in6, sizeof in6, &a) == TN_OK && !tn_addr_is_any(&a))
		(void)tn_addr_format_host(&a, text);
	v->why = "address_refused";
	(void)snprintf(v->detail, sizeof v->detail,
	               "lanes come from %.48s, not allowed there: set data_addresses there or bind_address here", text);
}

/* What the paths of all workers come to. */
static void judge_paths(const struct inquiry *q, unsigned kind, struct verdict *v)
{
	uint64_t now_ns = q->ctl->loop.now_ns, next_ns = UINT64_MAX;
	uint32_t lanes = 0, opening = 0, holding = 0, failing = 0, workers = 0;
	tn_status why = TN_OK;
	uint8_t seen[16] = { 0 };

	for (uint32_t w = 0; w < q->ctl->crew.cnt; w++) {
		struct dp_path_info p;
		if (!dp_worker_path_info(q->ctl->crew.members[w].worker, (enum tn_transport)kind, q->slot->index, &p))
			continue;
		workers++;
		lanes += p.lanes;
		opening += p.opening;
		holding += p.hold;
		failing += p.fail_cnt > 0 && p.lanes == 0;
		why = p.why != TN_OK ? p.why : why;
		if (p.why == TN_PEER_ADDRESS)
			memcpy(seen, p.seen, sizeof seen);
		if (p.lanes == 0 && p.next_try_ns > now_ns)
			next_ns = TN_MIN(next_ns, p.next_try_ns);
	}
	v->serves = true;
	if (lanes == 0 && why == TN_PEER_ADDRESS) {
		judge_stray(seen, v);
	} else if (lanes == 0 && holding > 0) {
		v->why = "waits_for_peer";
		(void)snprintf(v->detail, sizeof v->detail,
			       "the last lane was refused (%s): a newer session or ticket is asked for",
			       tn_status_meaning(why));
	} else if (rails_closed(q, kind, why, v)) {
		return;
	} else if (lanes > 0) {
		v->why = "ready";
		(void)snprintf(v->detail, sizeof v->detail, "%u lane%s up", lanes, tn_plural(lanes));
	} else if (failing > 0) {
		v->why = "lanes_down";
		if (next_ns != UINT64_MAX)
			(void)snprintf(v->detail, sizeof v->detail, "%s; the next connection is tried in %llu ms",
				       tn_status_meaning(why),
				       (unsigned long long)((next_ns - now_ns) / TN_NS_PER_MS + 1));
		else
			(void)snprintf(v->detail, sizeof v->detail, "%s; connects again with the next request",
				       tn_status_meaning(why));
	} else if (opening > 0) {
		v->why = "connecting";
		(void)snprintf(v->detail, sizeof v->detail, "%u lane%s being opened", opening, tn_plural(opening));
	} else {
		v->why = "on_demand";
		(void)snprintf(v->detail, sizeof v->detail, "no lane is open; the first request opens one");
	}
}

/* What the control thread must know of a peer before a worker may connect. */
static bool peer_ready(const struct inquiry *q, unsigned kind, struct verdict *v)
{
	const struct dp_peer *p = q->slot != NULL ? q->slot->cur : NULL;

	if (p == NULL && !q->local) {
		v->serves = true;
		(void)refuse(v, "first_open",
			     "nothing was opened at this peer yet: the first open asks for its session, ticket and "
			     "addresses");
		return false;
	}
	if (p == NULL || p->of[kind].cnt == 0)
		return reject(v, DP_REJECT_NO_ENDPOINT);
	if (tn_id128_is_zero(&p->session))
		return refuse(v, "session_unknown", "the peer has no data plane that we know of");
	if (tn_id128_is_zero(&p->ticket))
		return refuse(v, "no_ticket", "the peer gave no ticket for our lanes");
	return true;
}

/* What the meaning of a rule's reason leaves open. */
static void name_rule(const struct inquiry *q, unsigned kind, enum dp_reject why, struct verdict *v)
{
	enum tn_config_key enable;

	(void)reject(v, why);
	if (why == DP_REJECT_DISABLED && dp_registry_built(kind, &enable))
		(void)snprintf(v->detail, sizeof v->detail, "%s is false", tn_config_key_path(enable));
	else if (why == DP_REJECT_TARGET)
		(void)snprintf(v->detail, sizeof v->detail, "only %s", q->local ? "between hosts" : "within one host");
	else if (why == DP_REJECT_POLICY)
		(void)snprintf(v->detail, sizeof v->detail, "policy \"%s\" does not name it",
			       q->order.matched != NULL ? q->order.matched->name : "default");
}

static void judge(const struct inquiry *q, unsigned kind, struct verdict *v)
{
	enum dp_reject why = dp_reject_by_rule(q->ctl->config, kind, q->local, &q->order, TN_TRANSPORT_UNSPEC);

	*v = (struct verdict){ .serves = false };
	if (why != DP_REJECT_NONE) {
		name_rule(q, kind, why, v);
	} else if (q->ctl->transports_off >> kind & 1) {
		(void)reject(v, DP_REJECT_OFF);
		v->waits = true;
	} else if (!usable_here(q, kind)) {
		(void)reject(v, DP_REJECT_DOWN);
	} else if (kind == TN_TRANSPORT_SHM && !rails_closed(q, kind, TN_OK, v)) {
		v->serves = true;
		(void)snprintf(v->detail, sizeof v->detail, "one copy between two mappings");
		v->why = "ready";
	} else if (kind != TN_TRANSPORT_SHM && peer_ready(q, kind, v)) {
		judge_paths(q, kind, v);
	}
}

static json_t *transport_json(struct inquiry *q, unsigned kind)
{
	struct verdict v;
	json_t *j = json_object();

	judge(q, kind, &v);
	(void)tn_json_put_str(j, "transport", tn_transport_name(kind));
	(void)tn_json_put_str(j, "verdict", v.waits ? "wait" : !v.serves ? "no" : q->chosen ? "standby" : "use");
	(void)tn_json_put_str(j, "why", v.why);
	(void)tn_json_put_str(j, "detail", v.detail);
	q->chosen |= v.serves;
	return j;
}

/* Those of the order first, the others behind. */
static json_t *transports_json(struct inquiry *q)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < q->order.cnt; i++)
		json_array_append_new(list, transport_json(q, q->order.kinds[i]));
	for (unsigned kind = TN_TRANSPORT_UNSPEC + 1; kind < TN_TRANSPORT_CNT; kind++)
		if (!in_order(q, kind))
			json_array_append_new(list, transport_json(q, kind));
	return list;
}

/* ---- policy, windows ---- */

static json_t *policy_json(const struct inquiry *q)
{
	json_t *j = json_object(), *order = json_array();

	(void)tn_json_put_str(j, "name", q->order.matched != NULL ? q->order.matched->name : "default");
	(void)tn_json_put_bool(j, "none_matched", q->order.miss);
	for (unsigned i = 0; i < q->order.cnt; i++)
		json_array_append_new(order, json_string(tn_transport_name(q->order.kinds[i])));
	json_object_set_new(j, "order", order);
	(void)tn_json_put_u64(j, "bytes", q->query.bytes);
	(void)tn_json_put_str(j, "priority", tn_priority_name(q->query.priority));
	(void)tn_json_put_str(j, "intent", tn_intent_name(q->query.intent));
	return j;
}

static json_t *windows_json(const struct inquiry *q)
{
	const struct tn_config *c = q->ctl->config;
	struct dp_load_sum s = { 0 };
	json_t *j = json_object();
	uint64_t ended;

	for (uint32_t w = 0; w < q->ctl->crew.cnt; w++)
		dp_worker_load_add(q->ctl->crew.members[w].worker, q->slot != NULL ? q->slot->index : DP_PEER_SELF, &s);
	ended = s.moved[TN_OP_READ] + s.moved[TN_OP_WRITE] + s.lost_bytes;
	(void)tn_json_put_u64(j, "workers", q->ctl->crew.cnt);
	(void)tn_json_put_u64(j, "worker_bytes", tn_config_u64(c, TN_CFG_ADMISSION_WINDOW_BYTES));
	(void)tn_json_put_u64(j, "worker_owners", tn_config_u64(c, TN_CFG_ADMISSION_WINDOW_OWNERS));
	(void)tn_json_put_u64(j, "target_bytes", tn_config_u64(c, TN_CFG_ADMISSION_PEER_WINDOW_BYTES));
	(void)tn_json_put_u64(j, "target_owners", tn_config_u64(c, TN_CFG_ADMISSION_PEER_WINDOW_OWNERS));
	if (!q->local && q->slot == NULL)
		return j;
	(void)tn_json_put_u64(j, "inflight", s.in_cnt > s.out_cnt ? s.in_cnt - s.out_cnt : 0);
	(void)tn_json_put_u64(j, "inflight_bytes", s.in_bytes > ended ? s.in_bytes - ended : 0);
	return j;
}

/* ---- the peer and its paths ---- */

static void put_endpoints(json_t *list, const struct dp_endpoints *e)
{
	for (uint32_t i = 0; i < e->cnt; i++) {
		struct tn_addr a;
		char text[TN_ADDR_TEXT];
		if (tn_addr_from_sockaddr((const struct sockaddr *)&e->at[i], sizeof e->at[i], &a) == TN_OK)
			json_array_append_new(list, json_string(tn_addr_format(&a, text)));
	}
}

static json_t *peer_json(const struct inquiry *q)
{
	const struct dp_peer_slot *slot = q->slot;
	const struct dp_peer *p = slot != NULL ? slot->cur : NULL;
	json_t *j = json_object(), *endpoints = json_array();

	(void)tn_json_put_bool(j, "known", p != NULL);
	(void)tn_json_put_str(j, "ticket", p != NULL && !tn_id128_is_zero(&p->ticket) ? "held" : "none");
	if (p != NULL && !tn_id128_is_zero(&p->session))
		(void)tn_json_put_hex128(j, "session", &p->session);
	for (unsigned kind = 0; p != NULL && kind < TN_TRANSPORT_CNT; kind++)
		put_endpoints(endpoints, &p->of[kind]);
	json_object_set_new(j, "endpoints", endpoints);
	if (slot != NULL) {
		(void)tn_json_put_bool(j, "refreshing", slot->refreshing);
		(void)tn_json_put_u64(j, "lanes_in", tn_load_relaxed32(&slot->conn_cnt));
	}
	if (slot != NULL && slot->stray_cnt > 0) { /* lanes of it that were refused here for where they came from */
		char text[TN_ADDR_TEXT];
		json_t *stray = json_object();
		(void)tn_json_put_str(stray, "address", tn_addr_format_host(&slot->stray, text));
		(void)tn_json_put_u64(stray, "count", slot->stray_cnt);
		(void)tn_json_put_u64(stray, "ms_ago", (q->ctl->loop.now_ns - slot->stray_ns) / TN_NS_PER_MS);
		json_object_set_new(j, "refused_in", stray);
	}
	return j;
}

static json_t *address_json(const struct inquiry *q, unsigned kind, const struct dp_path_info *p, uint32_t i)
{
	const struct sockaddr_storage *ss = &q->slot->cur->of[kind].at[i];
	char text[TN_ADDR_TEXT];
	struct tn_addr a;
	json_t *j = json_object();

	if (tn_addr_from_sockaddr((const struct sockaddr *)ss, sizeof *ss, &a) == TN_OK)
		(void)tn_json_put_str(j, "address", tn_addr_format(&a, text));
	if (p->endpoints[i].tried_ns == 0)
		return j;
	(void)tn_json_put_str(j, "status", tn_status_name(p->endpoints[i].status));
	(void)tn_json_put_str(j, "meaning", p->endpoints[i].os_error != 0 ? strerror(p->endpoints[i].os_error) :
	                                    tn_status_meaning(p->endpoints[i].status));
	(void)tn_json_put_u64(
	    j, "ms_ago", (q->ctl->loop.now_ns - TN_MIN(p->endpoints[i].tried_ns, q->ctl->loop.now_ns)) / TN_NS_PER_MS);
	return j;
}

static json_t *path_json(const struct inquiry *q, uint32_t worker, unsigned kind, const struct dp_path_info *p)
{
	uint64_t now_ns = q->ctl->loop.now_ns, until_ns;
	json_t *j = json_object(), *addresses = json_array();

	(void)tn_json_put_u64(j, "worker", worker);
	(void)tn_json_put_str(j, "transport", tn_transport_name(kind));
	(void)tn_json_put_u64(j, "lanes", p->lanes);
	(void)tn_json_put_u64(j, "lanes_most", tn_config_u64(q->ctl->config, TN_CFG_TCP_LANES_PER_PEER));
	(void)tn_json_put_u64(j, "opening", p->opening);
	(void)tn_json_put_bool(j, "control_lane", p->control);
	(void)tn_json_put_bool(j, "waits_for_peer", p->hold);
	(void)tn_json_put_u64(j, "failed_in_a_row", p->fail_cnt);
	if (p->since_ns != 0)
		(void)tn_json_put_u64(j, p->lanes > 0 ? "up_ms" : "down_ms",
				      (now_ns - TN_MIN(p->since_ns, now_ns)) / TN_NS_PER_MS);
	if (p->next_try_ns > now_ns)
		(void)tn_json_put_u64(j, "next_try_ms", (p->next_try_ns - now_ns) / TN_NS_PER_MS + 1);
	enum dp_rail_state rail = dp_worker_rail(q->ctl->crew.members[worker].worker, kind, q->slot->index, &until_ns);
	(void)tn_json_put_str(j, "rail", dp_rail_state_name(rail));
	if ((rail == DP_RAIL_COOLING || rail == DP_RAIL_PROBING) && until_ns > now_ns)
		(void)tn_json_put_u64(j, "rail_ms", (until_ns - now_ns) / TN_NS_PER_MS + 1);
	for (uint32_t i = 0; q->slot->cur != NULL && i < q->slot->cur->of[kind].cnt; i++)
		json_array_append_new(addresses, address_json(q, kind, p, i));
	json_object_set_new(j, "addresses", addresses);
	return j;
}

static json_t *paths_json(const struct inquiry *q)
{
	json_t *list = json_array();

	for (uint32_t w = 0; q->slot != NULL && w < q->ctl->crew.cnt; w++)
		for (unsigned kind = 0; kind < TN_TRANSPORT_CNT; kind++) {
			struct dp_path_info p;
			if (dp_worker_path_info(q->ctl->crew.members[w].worker, (enum tn_transport)kind, q->slot->index,
						&p))
				json_array_append_new(list, path_json(q, w, kind, &p));
		}
	return list;
}

/* ---- the segment ---- */

/* Handles that applications of this host have on it. */
static json_t *opened_json(const struct inquiry *q)
{
	char ref[2 * TN_NAME_MAX + 2];
	uint32_t handles = 0, lost = 0, refreshing = 0;
	json_t *j = json_object();

	(void)snprintf(ref, sizeof ref, "%s%s%s", q->peer, q->local ? "" : "/", q->segment);
	for (struct dp_name *n = NULL; (n = dp_names_find(&q->ctl->remote_refs, ref, n)) != NULL;) {
		const struct dp_opened *o = tn_container_of(n, struct dp_opened, by_ref);
		handles++;
		refreshing += o->refreshing;
		lost += o->cur != NULL && o->cur->lost;
	}
	(void)tn_json_put_u64(j, "handles", handles);
	(void)tn_json_put_u64(j, "lost", lost);
	(void)tn_json_put_u64(j, "refreshing", refreshing);
	return j;
}

/* ---- the question ---- */

static void read_inquiry(struct tn_json_in *in, struct inquiry *q)
{
	static const char *const priorities[] = {
#define X(n, s) #s,
		TN_PRIORITY_LIST(X)
#undef X
	};
	static const char *const intents[] = {
#define X(n, s) #s,
		TN_INTENT_LIST(X)
#undef X
	};
	unsigned priority = TN_PRIORITY_MEDIUM, intent = TN_INTENT_UNSPECIFIED;

	q->query.bytes = BYTES_DEFAULT;
	if (tn_json_has(in, "peer"))
		(void)tn_json_name(in, "peer", q->peer);
	if (tn_json_has(in, "segment"))
		(void)tn_json_name(in, "segment", q->segment);
	if (tn_json_has(in, "bytes"))
		(void)tn_json_u64(in, "bytes", 1, UINT64_MAX, &q->query.bytes);
	if (tn_json_has(in, "priority"))
		(void)tn_json_choice(in, "priority", priorities, TN_ARRAY_LEN(priorities), &priority);
	if (tn_json_has(in, "intent"))
		(void)tn_json_choice(in, "intent", intents, TN_ARRAY_LEN(intents), &intent);
	q->query.priority = (uint8_t)priority;
	q->query.intent = (uint8_t)intent;
	q->query.local = q->local = q->peer[0] == '\0';
}

tn_status dp_link_explain(struct dp_control *ctl, struct tn_json_in *in, json_t **answer_out)
{
	struct inquiry q = { .ctl = ctl };
	json_t *b;

	read_inquiry(in, &q);
	if (in->status != TN_OK)
		return in->status;
	q.slot = q.local ? dp_peers_at(&ctl->peers, DP_PEER_SELF) : dp_peers_find(&ctl->peers, q.peer);
	q.order = dp_policy_order(ctl->config, &q.query);
	b = json_object();
	(void)tn_json_put_bool(b, "local", q.local);
	(void)tn_json_put_str(b, "state", dp_control_state_name(DP_CONTROL_PAIR, ctl->pair));
	json_object_set_new(b, "transports", transports_json(&q));
	json_object_set_new(b, "policy", policy_json(&q));
	json_object_set_new(b, "windows", windows_json(&q));
	if (!q.local)
		json_object_set_new(b, "peer", peer_json(&q));
	json_object_set_new(b, "paths", paths_json(&q));
	if (q.segment[0] != '\0')
		json_object_set_new(b, "opened", opened_json(&q));
	*answer_out = b;
	return TN_OK;
}
