/* SPDX-License-Identifier: Apache-2.0
 * `peer_list`, `peer_probe`: the peers of the config, what was heard of them, and the lanes the data plane has. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/message.h"
#include "controlplane/bus/commands.h"
#include "controlplane/link/changed.h"

#define LIST_MAX 64u /* a page; one that is too large all the same says so */

static const char *const ticket_names[] = {
#define X(n, s) [CP_TICKET_##n] = #s,
	CP_TICKET_STATES(X)
#undef X
};

static const char *const contact_names[] = {
	[CP_CONTACT_NONE] = "none", [CP_CONTACT_UNREACHED] = "unreached", [CP_CONTACT_UP] = "up",
	[CP_CONTACT_BROKEN] = "broken", [CP_CONTACT_DENIED] = "denied",
};

static json_t *find_lanes(const json_t *dp, const char *peer)
{
	size_t i;
	json_t *p;
	json_array_foreach(json_object_get(dp, "peers"), i, p)
		if (json_is_string(json_object_get(p, "name")) && strcmp(json_string_value(json_object_get(p, "name")), peer) == 0)
			return p;
	return NULL;
}

/* What is wrong now: no answer, or no ticket. And when a call last failed, also if it is over. */
static void error_json(const struct cp_node *node, const struct cp_peer *p, json_t *j)
{
	bool ticket = !p->error.now && p->ticket_state == CP_TICKET_FAILED;
	if (p->error.now || ticket) {
		tn_json_put_str(j, "error", tn_status_name(ticket ? p->last_status : p->error.status));
		tn_json_put_str(j, "detail", ticket ? p->last_detail : p->error.detail);
	}
	if (p->error.status == TN_OK)
		return;
	json_t *last = json_object();
	tn_json_put_str(last, "error", tn_status_name(p->error.status));
	tn_json_put_str(last, "detail", p->error.detail);
	tn_json_put_u64(last, "ms_ago", (node->now_ns - p->error.at_ns) / TN_NS_PER_MS);
	json_object_set_new(j, "last_failure", last);
}

static json_t *peer_json(const struct cp_node *node, const struct cp_peer *p, const json_t *dp)
{
	json_t *j = json_object(), *lanes = find_lanes(dp, p->cfg->name);
	tn_json_put_str(j, "name", p->cfg->name);
	tn_json_put_str(j, "address", p->cfg->address);
	tn_json_put_peer_id(j, "id", &p->cfg->id);
	tn_json_put_str(j, "ticket", ticket_names[p->ticket_state]);
	if (!tn_id128_is_zero(&p->session))
		tn_json_put_hex128(j, "session", &p->session);
	if (p->heard_ns != 0)
		tn_json_put_u64(j, "heard_ms_ago", (node->now_ns - p->heard_ns) / TN_NS_PER_MS);
	tn_json_put_str(j, "connection", contact_names[p->contact]);
	error_json(node, p, j);
	if (p->probes_ok > 0)
		tn_json_put_u64(j, "control_lane_rtt_us", p->probe_rtt_ns / TN_NS_PER_US);
	if (p->probes_ok > 0 || p->probes_lost > 0) {
		tn_json_put_u64(j, "probes_answered", p->probes_ok);
		tn_json_put_u64(j, "probes_lost", p->probes_lost);
	}
	/* A peer that the data plane was never asked for has no lanes, which is no fault. */
	tn_json_put_str(j, "state", dp == NULL ? "unknown" : "idle");
	static const char *const keys[] = { "state", "transport", "lanes", "lanes_in" };
	for (size_t i = 0; lanes != NULL && i < TN_ARRAY_LEN(keys); i++)
		if (json_object_get(lanes, keys[i]) != NULL)
			json_object_set(j, keys[i], json_object_get(lanes, keys[i]));
	return j;
}

/* A page of the peers. */
struct listing { struct cp_reply_to to; uint32_t first, end; };

static void answer(struct cp_node *node, const struct listing *l, const json_t *dp)
{
	json_t *b = json_object(), *list = json_array();
	for (uint32_t i = l->first; i < l->end; i++)
		json_array_append_new(list, peer_json(node, &node->peers[i], dp));
	json_object_set_new(b, "peers", list);
	tn_json_put_u64(b, "total", node->peer_cnt);
	cp_node_reply(node, &l->to, TN_OK, NULL, b);
}

static void on_states(struct cp_node *node, void *ctx, tn_status status, const char *detail, const json_t *body)
{
	(void)status, (void)detail; /* without a data plane there are no lanes to show */
	answer(node, ctx, body);
	free(ctx);
}

static tn_status listing_read(struct cp_node *node, const struct cp_request *rq, struct listing *l, char err[static TN_ERR_TEXT])
{
	struct tn_json_in in;
	uint32_t count;
	*l = (struct listing){ .to = rq->to };
	tn_json_in_init(&in, rq->body);
	(void)tn_json_page(&in, LIST_MAX, &l->first, &count);
	l->first = TN_MIN(l->first, node->peer_cnt);
	l->end = l->first + TN_MIN(count, node->peer_cnt - l->first);
	snprintf(err, TN_ERR_TEXT, "%s", in.err);
	return in.status;
}

void cp_bus_peer_list(struct cp_node *node, const struct cp_request *rq)
{
	struct listing page, *l;
	char err[TN_ERR_TEXT];
	tn_status s = listing_read(node, rq, &page, err);
	if (s != TN_OK) {
		cp_node_reply(node, &rq->to, s, err, NULL);
		return;
	}
	l = node->link.attached ? malloc(sizeof *l) : NULL;
	if (l == NULL) {
		answer(node, &page, NULL);
		return;
	}
	*l = page;
	json_t *body = json_object(), *names = json_array();
	for (uint32_t i = l->first; i < l->end; i++)
		json_array_append_new(names, json_string(node->peers[i].cfg->name));
	json_object_set_new(body, "peers", names);
	cp_exchange_call(node->exchange,
			 &(struct cp_call_opts){ .target = CP_TARGET_LINK, .type = "peer_states", .attempts = 1, .body = body,
						 .deadline_ns = TN_MIN(rq->deadline_ns, node->now_ns + TN_NS_PER_S),
						 .done = on_states, .ctx = l },
			 node->now_ns);
}

struct probe { struct cp_reply_to to; uint64_t start_ns, rtt_ns, deadline_ns; struct cp_peer *peer; };

static void probe_answer(struct cp_node *node, struct probe *pr, const json_t *lanes, const json_t *refused_in)
{
	json_t *b = json_object();
	tn_json_put_u64(b, "control_plane_rtt_us", pr->rtt_ns / TN_NS_PER_US);
	if (lanes != NULL)
		json_object_set(b, "lanes", (json_t *)(uintptr_t)lanes);
	if (refused_in != NULL)
		json_object_set(b, "refused_in", (json_t *)(uintptr_t)refused_in);
	cp_node_reply(node, &pr->to, TN_OK, NULL, b);
	free(pr);
}

/* The data plane's word on the lanes is a part of the answer, not a condition of it. */
static void on_explained(struct cp_node *node, void *ctx, tn_status status, const char *detail, const json_t *body)
{
	size_t i;
	const json_t *t, *lanes = NULL;
	(void)detail;
	if (status != TN_OK)
		body = NULL;
	json_array_foreach(json_object_get(body, "transports"), i, t) {
		const char *verdict = json_string_value(json_object_get(t, "verdict"));
		if (lanes == NULL && verdict != NULL && strcmp(verdict, "use") == 0)
			lanes = t;
	}
	probe_answer(node, ctx, lanes, json_object_get(json_object_get(body, "peer"), "refused_in"));
}

static void on_probed(struct cp_node *node, void *ctx, tn_status status, const char *detail, const json_t *body)
{
	struct probe *pr = ctx;
	(void)body;
	if (status != TN_OK) {
		cp_node_reply(node, &pr->to, status, detail, NULL);
		free(pr);
		return;
	}
	pr->rtt_ns = node->now_ns - pr->start_ns;
	if (!node->link.attached) {
		probe_answer(node, pr, NULL, NULL);
		return;
	}
	json_t *query = json_object();
	tn_json_put_str(query, "peer", pr->peer->cfg->name);
	cp_exchange_call(node->exchange,
			 &(struct cp_call_opts){ .target = CP_TARGET_LINK, .type = "explain", .body = query, .attempts = 1,
						 .deadline_ns = TN_MIN(pr->deadline_ns, node->now_ns + TN_NS_PER_S),
						 .done = on_explained, .ctx = pr },
			 node->now_ns);
}

/* Asks the peer's control plane over its own connection, and the control lane of the data planes when there is one: the
 * lane's answer shows in the next peer_list. What the data plane found when it last connected is told, too. */
void cp_bus_peer_probe(struct cp_node *node, const struct cp_request *rq)
{
	struct tn_json_in in;
	char name[TN_NAME_MAX], text[128];
	struct cp_peer *p = NULL;
	tn_json_in_init(&in, rq->body);
	tn_json_name(&in, "peer", name);
	if (in.status == TN_OK && (p = cp_node_peer_by_name(node, name)) == NULL) {
		snprintf(text, sizeof text, "no peer \"%s\" in the config", name);
		cp_node_reply(node, &rq->to, TN_PEER_UNKNOWN, text, NULL);
		return;
	}
	struct probe *pr = in.status == TN_OK ? malloc(sizeof *pr) : NULL;
	if (pr == NULL) {
		cp_node_reply(node, &rq->to, in.status != TN_OK ? in.status : TN_NO_MEMORY, in.err, NULL);
		return;
	}
	(void)cp_datagram_probe(node, p);
	*pr = (struct probe){ .to = rq->to, .start_ns = node->now_ns, .deadline_ns = rq->deadline_ns, .peer = p };
	json_t *body = json_object();
	tn_json_put_u64(body, "nonce", tn_rand_u64(&node->rand) >> 1);
	cp_exchange_call(node->exchange,
			 &(struct cp_call_opts){
				 .target = p->index, .type = "probe", .method = TN_RPC_METHOD_PROBE, .body = body, .attempts = 1,
				 .deadline_ns = rq->deadline_ns, .done = on_probed, .ctx = pr },
			 node->now_ns);
}

/* Who moved what is the data plane's to say; it checks the arguments. */
void cp_bus_peer_load(struct cp_node *node, const struct cp_request *rq)
{
	char text[CP_TROUBLE_TEXT];
	if (!node->link.attached) {
		cp_node_reply(node, &rq->to, TN_DATAPLANE_DOWN, cp_node_link_trouble(node, text), NULL);
		return;
	}
	cp_link_forward(node, rq, "peer_load", json_copy((json_t *)(uintptr_t)rq->body));
}
