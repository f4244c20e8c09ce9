/* SPDX-License-Identifier: Apache-2.0
 * `explain`: how requests to a peer or a segment would go. The control plane says what it knows - the peer's key and
 * ticket, what is cached of the segment, whether the peer's control plane answers right now and has a data plane (one
 * hello that tells nothing) - and puts the data plane's part beside it (link method of the same name). No secret is told. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/message.h"
#include "controlplane/bus/commands.h"
#include "controlplane/segment/local.h"
#include "controlplane/segment/remote.h"

#define PROBE_NS TN_NS_PER_S /* a living peer answers sooner; the operator waits for this */

struct explain {
	struct cp_reply_to to;
	uint64_t deadline_ns, probe_start_ns;
	struct cp_peer *peer;          /* NULL: this host */
	char segment[TN_NAME_MAX];     /* "": the peer as such */
	bool also_segment;             /* a segment of this host has the same name as the peer */
	json_t *query;                 /* for the data plane; owned */
	tn_status probe;
	uint64_t probe_rtt_ns;
	char probe_detail[240];
	char trouble[CP_TROUBLE_TEXT]; /* of the peer's data plane, as its control plane says; "": none */
};

static const char *const ticket_names[] = {
#define X(n, s) [CP_TICKET_##n] = #s,
	CP_TICKET_STATES(X)
#undef X
};

/* ---- what is known here ---- */

static json_t *peer_json(const struct cp_node *node, const struct explain *e)
{
	const struct cp_peer *p = e->peer;
	json_t *j = json_object();
	tn_json_put_str(j, "name", p->cfg->name);
	tn_json_put_str(j, "address", p->cfg->address);
	tn_json_put_peer_id(j, "id", &p->cfg->id);
	tn_json_put_bool(j, "answers", e->probe == TN_OK);
	if (e->probe == TN_OK) {
		tn_json_put_u64(j, "rtt_us", e->probe_rtt_ns / TN_NS_PER_US);
		if (e->trouble[0] != '\0')
			tn_json_put_str(j, "data_plane_trouble", e->trouble);
	} else {
		tn_json_put_str(j, "error", tn_status_name(e->probe));
		tn_json_put_str(j, "detail", e->probe_detail);
	}
	if (p->heard_ns != 0)
		tn_json_put_u64(j, "heard_ms_ago", (node->now_ns - p->heard_ns) / TN_NS_PER_MS);
	tn_json_put_str(j, "ticket", ticket_names[p->ticket_state]);
	if (p->ticket_state == CP_TICKET_FAILED) {
		tn_json_put_str(j, "ticket_error", tn_status_name(p->last_status));
		tn_json_put_str(j, "ticket_detail", p->last_detail);
		tn_json_put_u64(j, "ticket_retry_ms", tn_remaining_ns(p->retry_ns, node->now_ns) / TN_NS_PER_MS);
	}
	if (!tn_id128_is_zero(&p->session))
		tn_json_put_hex128(j, "session", &p->session);
	tn_json_put_bool(j, "holds_our_ticket", !tn_id128_is_zero(&p->issued_to));
	return j;
}

static json_t *remote_segment_json(const struct cp_node *node, const struct explain *e)
{
	struct cp_remote_view v;
	json_t *j = json_object();
	if (!cp_remote_peek(node->remote, e->peer->index, e->segment, &v)) {
		tn_json_put_str(j, "cache", "empty");
		return j;
	}
	tn_json_put_str(j, "cache", v.status == TN_OK ? "held" : v.status == TN_PENDING ? "fetching" : "refused");
	if (v.status == TN_OK) {
		tn_json_put_u64(j, "generation", v.generation);
		tn_json_put_u64(j, "bytes", (uint64_t)json_integer_value(json_object_get(v.segment, "bytes")));
		tn_json_put_bool(j, "current", tn_id128_eq(&v.session, &e->peer->session));
	} else if (v.status != TN_PENDING) {
		tn_json_put_str(j, "error", tn_status_name(v.status));
		tn_json_put_str(j, "detail", v.detail);
		tn_json_put_u64(j, "retry_ms", tn_remaining_ns(v.retry_ns, node->now_ns) / TN_NS_PER_MS);
	}
	return j;
}

static json_t *local_segment_json(const struct cp_node *node, const struct explain *e)
{
	const json_t *seg = cp_local_get(node->local, e->segment);
	static const char *const keys[] = { "generation", "bytes", "access", "peers", "uid" };
	json_t *j = json_object();
	tn_json_put_bool(j, "published", seg != NULL);
	for (size_t i = 0; seg != NULL && i < TN_ARRAY_LEN(keys); i++)
		if (json_object_get(seg, keys[i]) != NULL)
			json_object_set(j, keys[i], json_object_get(seg, keys[i]));
	return j;
}

static json_t *answer(const struct cp_node *node, const struct explain *e, const json_t *dp)
{
	json_t *b = json_object();
	tn_json_put_str(b, "host", node->name);
	tn_json_put_str(b, "target", e->peer == NULL ? "segment" : e->segment[0] != '\0' ? "remote_segment" : "peer");
	if (e->segment[0] != '\0') {
		tn_json_put_str(b, "segment", e->segment);
		json_object_set_new(b, "segment_state",
				    e->peer != NULL ? remote_segment_json(node, e) : local_segment_json(node, e));
	}
	if (e->peer != NULL)
		json_object_set_new(b, "peer", peer_json(node, e));
	if (e->also_segment)
		tn_json_put_bool(b, "also_segment_here", true);
	json_object_set_new(b, "data_plane", dp != NULL ? json_copy((json_t *)(uintptr_t)dp) : json_null());
	return b;
}

/* ---- the two questions, one after the other ---- */

static void finish(struct cp_node *node, struct explain *e, tn_status status, const char *detail, const json_t *dp)
{
	if (status == TN_INVALID) { /* the question itself is wrong */
		cp_node_reply(node, &e->to, status, detail, NULL);
	} else {
		json_t *b = answer(node, e, status == TN_OK ? dp : NULL);
		if (status != TN_OK)
			tn_json_put_str(b, "data_plane_error", detail);
		cp_node_reply(node, &e->to, TN_OK, NULL, b);
	}
	json_decref(e->query);
	free(e);
}

static void on_data_plane(struct cp_node *node, void *ctx, tn_status status, const char *detail, const json_t *body)
{
	finish(node, ctx, status, detail, body);
}

static void ask_data_plane(struct cp_node *node, struct explain *e)
{
	char text[CP_TROUBLE_TEXT];
	if (!node->link.attached) {
		finish(node, e, TN_DATAPLANE_DOWN, cp_node_link_trouble(node, text), NULL);
		return;
	}
	json_t *query = e->query;
	e->query = NULL;
	cp_exchange_call(node->exchange,
			 &(struct cp_call_opts){ .target = CP_TARGET_LINK,
						 .type = "explain",
						 .body = query,
						 .attempts = 1,
						 .deadline_ns = TN_MIN(e->deadline_ns, node->now_ns + TN_NS_PER_S),
						 .done = on_data_plane,
						 .ctx = e },
			 node->now_ns);
}

static void on_probed(struct cp_node *node, void *ctx, tn_status status, const char *detail, const json_t *body)
{
	struct explain *e = ctx;
	const char *trouble = json_string_value(json_object_get(body, "data_plane_trouble"));
	if (trouble != NULL)
		snprintf(e->trouble, sizeof e->trouble, "%s", trouble);
	e->probe = status;
	e->probe_rtt_ns = node->now_ns - e->probe_start_ns;
	snprintf(e->probe_detail, sizeof e->probe_detail, "%s",
		 detail != NULL && detail[0] != '\0' ? detail : tn_status_meaning(status));
	ask_data_plane(node, e);
}

static void probe(struct cp_node *node, struct explain *e)
{
	e->probe_start_ns = node->now_ns;
	cp_exchange_call(node->exchange,
			 &(struct cp_call_opts){ .target = e->peer->index,
						 .type = "hello",
						 .method = TN_RPC_METHOD_HELLO,
						 .attempts = 1,
						 .deadline_ns = TN_MIN(e->deadline_ns, node->now_ns + PROBE_NS),
						 .done = on_probed,
						 .ctx = e },
			 node->now_ns);
}

/* ---- the request ---- */

/* "PEER", "SEGMENT" or "PEER/SEGMENT". False: text says what is wrong with it. */
static bool resolve(struct cp_node *node, const char *target, struct explain *e, char *text, size_t text_bytes)
{
	char first[TN_NAME_MAX];
	const char *slash = strchr(target, '/');
	snprintf(first, sizeof first, "%.*s",
		 slash != NULL ? (int)TN_MIN(slash - target, TN_NAME_MAX - 1) : TN_NAME_MAX - 1, target);
	e->peer = cp_node_peer_by_name(node, first);
	if (slash != NULL) {
		snprintf(e->segment, sizeof e->segment, "%s", slash + 1);
		if (e->peer == NULL)
			snprintf(text, text_bytes, "no peer \"%s\" in the config", first);
		return e->peer != NULL;
	}
	bool published = cp_local_get(node->local, first) != NULL;
	if (e->peer != NULL) {
		e->also_segment = published;
		return true;
	}
	snprintf(e->segment, sizeof e->segment, "%s", first);
	if (!published)
		snprintf(text, text_bytes, "no peer in the config and no segment of this host is called \"%s\"", first);
	return published;
}

static bool valid_target(const char *target)
{
	char part[TN_NAME_MAX];
	const char *slash = strchr(target, '/');
	if (slash == NULL)
		return tn_name_valid(target);
	snprintf(part, sizeof part, "%.*s", (int)TN_MIN(slash - target, TN_NAME_MAX - 1), target);
	return slash - target < TN_NAME_MAX && tn_name_valid(part) && tn_name_valid(slash + 1);
}

void cp_bus_explain(struct cp_node *node, const struct cp_request *rq)
{
	static const char *const passed[] = { "bytes", "priority", "intent" }; /* the data plane checks them */
	struct tn_json_in in;
	const char *target = "";
	char text[192] = "";
	tn_json_in_init(&in, rq->body);
	if (tn_json_str(&in, "target", 2 * TN_NAME_MAX, &target) == TN_OK && !valid_target(target))
		tn_json_refuse(&in, "target", "is no PEER, SEGMENT or PEER/SEGMENT");
	struct explain *e = in.status == TN_OK ? calloc(1, sizeof *e) : NULL;
	if (e == NULL) {
		cp_node_reply(node, &rq->to, in.status != TN_OK ? in.status : TN_NO_MEMORY, in.err, NULL);
		return;
	}
	if (!resolve(node, target, e, text, sizeof text)) {
		cp_node_reply(node, &rq->to, strchr(target, '/') != NULL ? TN_PEER_UNKNOWN : TN_NOT_FOUND, text, NULL);
		free(e);
		return;
	}
	e->to = rq->to;
	e->deadline_ns = rq->deadline_ns;
	e->query = json_object();
	if (e->peer != NULL)
		tn_json_put_str(e->query, "peer", e->peer->cfg->name);
	if (e->segment[0] != '\0')
		tn_json_put_str(e->query, "segment", e->segment);
	for (size_t i = 0; i < TN_ARRAY_LEN(passed); i++)
		if (json_object_get(rq->body, passed[i]) != NULL)
			json_object_set(e->query, passed[i], json_object_get(rq->body, passed[i]));
	if (e->peer != NULL)
		probe(node, e);
	else
		ask_data_plane(node, e);
}
