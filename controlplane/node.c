/* SPDX-License-Identifier: Apache-2.0
 * The only owner of the control plane's state and of the way a message takes: decode, find the method in the door's
 * table, answer. What a method means is in the folders link/, bus/, peer/ and segment/. */
#include "controlplane/node.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sodium.h>

#include "common/assert.h"
#include "common/clock.h"
#include "common/message.h"
#include "controlplane/peer/hello.h"
#include "controlplane/segment/local.h"
#include "controlplane/segment/remote.h"

#define CALLS_MAX 16384u /* one peer alone gets half */
/* A request that names no time gets this much. */
#define DEFAULT_REMAINING_MS 5000u

static tn_status peers_new(struct cp_node *node)
{
	node->peer_cnt = tn_config_peer_cnt(node->config);
	node->peers = calloc(node->peer_cnt + 1, sizeof *node->peers);
	if (node->peers == NULL)
		return TN_NO_MEMORY;
	for (uint32_t i = 0; i < node->peer_cnt; i++) {
		node->peers[i].cfg = tn_config_peer(node->config, i);
		node->peers[i].index = i;
		tn_list_init(&node->peers[i].issue_waiting);
	}
	return TN_OK;
}

tn_status cp_node_new(const struct cp_node_cfg *cfg, struct cp_node **out)
{
	struct cp_node *node = calloc(1, sizeof *node);
	if (node == NULL)
		return TN_NO_MEMORY;
	node->config = cfg->config;
	node->self = cfg->self;
	node->control_session = cfg->control_session;
	node->emit = cfg->emit;
	node->reconnect = cfg->reconnect;
	node->emit_ctx = cfg->emit_ctx;
	node->reload = cfg->reload;
	node->reload_ctx = cfg->reload_ctx;
	node->metrics = cfg->metrics;
	node->recent = cfg->recent;
	tn_rand_seed(&node->rand, cfg->seed);
	tn_list_init(&node->opens);
	node->opens_next_ns = UINT64_MAX;
	snprintf(node->name, sizeof node->name, "%s", tn_config_str(node->config, TN_CFG_HOST_NAME));
	node->exchange = cp_exchange_new(node, CALLS_MAX);
	node->local = cp_local_new();
	node->remote = cp_remote_new((uint32_t)tn_config_u64(node->config, TN_CFG_CONTROL_CACHE_ENTRIES));
	if (node->exchange == NULL || node->local == NULL || node->remote == NULL || peers_new(node) != TN_OK) {
		cp_node_free(node);
		return TN_NO_MEMORY;
	}
	*out = node;
	return TN_OK;
}

void cp_node_free(struct cp_node *node)
{
	if (node == NULL)
		return;
	if (node->peers != NULL) {
		cp_opens_drop(node, "the control plane stops");
		cp_tickets_reset(node);
		for (uint32_t i = 0; i < node->peer_cnt; i++) {
			json_decref(node->peers[i].endpoints);
			json_decref(node->peers[i].updates.waiting);
		}
	}
	cp_exchange_free(node->exchange);
	cp_local_free(node->local);
	cp_remote_free(node->remote);
	json_decref(node->link.endpoints);
	free(node->peers);
	sodium_memzero(node, sizeof *node);
	free(node);
}

struct cp_peer *cp_node_peer_by_name(struct cp_node *node, const char *name)
{
	for (uint32_t i = 0; i < node->peer_cnt; i++)
		if (strcmp(node->peers[i].cfg->name, name) == 0)
			return &node->peers[i];
	return NULL;
}

/* ---- out ---- */

static tn_status emit(struct cp_node *node, struct cp_output *out, const struct tn_message *m)
{
	static _Thread_local char text[TN_MESSAGE_MAX];
	tn_status s = tn_message_encode(m, text, sizeof text, &out->len);
	if (s != TN_OK)
		return s;
	out->bytes = text;
	s = node->emit(node->emit_ctx, out);
	sodium_memzero(text, out->len); /* tickets and keys travel in bodies */
	return s;
}

tn_status cp_node_send(struct cp_node *node, uint32_t target, const char *type, uint64_t id, uint64_t remaining_ns,
		       const json_t *body)
{
	struct tn_message m = { .id = id, .session = node->link.session };
	struct cp_output out = { .door = CP_DOOR_CLIENT, .peer = target };
	snprintf(m.type, sizeof m.type, "%s", type);
	m.remaining_ms = TN_MIN(remaining_ns / TN_NS_PER_MS + 1, TN_MESSAGE_REMAINING_MAX_MS);
	m.body = (json_t *)(uintptr_t)body;
	if (target == CP_TARGET_LINK) {
		if (!node->link.attached)
			return TN_DATAPLANE_DOWN;
		out.door = CP_DOOR_LINK;
		out.route = &node->link.route;
	}
	return emit(node, &out, &m);
}

void cp_node_reply(struct cp_node *node, const struct cp_reply_to *to, tn_status status, const char *detail, json_t *body)
{
	struct tn_message m = { .reply = true, .id = to->id, .status = status, .session = node->link.session, .body = body };
	struct cp_output out = { .door = to->door, .route = &to->route, .peer = to->peer };
	snprintf(m.type, sizeof m.type, "%s", to->type);
	if (detail != NULL)
		snprintf(m.detail, sizeof m.detail, "%s", detail);
	else if (status != TN_OK)
		snprintf(m.detail, sizeof m.detail, "%s", tn_status_meaning(status));
	tn_status s = emit(node, &out, &m);
	if (s == TN_TOO_BIG) {
		m.body = NULL;
		m.status = TN_TOO_BIG;
		snprintf(m.detail, sizeof m.detail, "the answer is larger than one message; ask for fewer entries");
		(void)emit(node, &out, &m);
	}
	json_decref(body); /* a lost answer is asked for again: methods are idempotent */
}

/* ---- in ---- */

static const struct cp_method *find(const struct cp_method *table, const char *type)
{
	for (; table->type != NULL; table++)
		if (strcmp(table->type, type) == 0)
			return table;
	return NULL;
}

static void on_request(struct cp_node *node, const struct cp_input *in, const struct tn_message *m)
{
	static const struct cp_method *const tables[] = {
		[CP_DOOR_LINK] = cp_link_methods, [CP_DOOR_BUS] = cp_bus_methods, [CP_DOOR_SERVER] = cp_server_methods,
	};
	struct cp_request rq = { .to = { .door = in->door, .route = in->route, .peer = in->peer, .id = m->id } };
	json_t *empty = NULL;
	memcpy(rq.to.type, m->type, sizeof rq.to.type);
	const struct cp_method *method = in->door == CP_DOOR_CLIENT ? NULL : find(tables[in->door], m->type);
	if (method == NULL) {
		char text[96];
		node->messages_refused++;
		snprintf(text, sizeof text, "unknown method \"%s\"", m->type);
		if (in->door != CP_DOOR_CLIENT)
			cp_node_reply(node, &rq.to, TN_UNSUPPORTED, text, NULL);
		return;
	}
	rq.body = m->body != NULL ? m->body : (empty = json_object());
	rq.address = in->address;
	rq.session = m->session;
	rq.deadline_ns = tn_deadline_after(node->now_ns, (m->remaining_ms != 0 ? m->remaining_ms : DEFAULT_REMAINING_MS) *
								 TN_NS_PER_MS);
	if (rq.body != NULL)
		method->handle(node, &rq);
	json_decref(empty);
}

void cp_node_input(struct cp_node *node, const struct cp_input *in, uint64_t now_ns)
{
	struct tn_message m;
	char err[TN_ERR_TEXT];
	node->now_ns = now_ns;
	tn_status s = tn_message_decode(in->bytes, in->len, &m, err);
	bool from_dp = in->door == CP_DOOR_LINK && node->link.attached && in->route.len == node->link.route.len &&
		       memcmp(in->route.bytes, node->link.route.bytes, in->route.len) == 0;
	if (from_dp)
		node->link.heard_ns = now_ns;
	if (in->door == CP_DOOR_SERVER || in->door == CP_DOOR_CLIENT) {
		if (in->peer >= node->peer_cnt) { /* whoever is no peer gets no answer either */
			node->messages_refused++;
			tn_message_clear(&m);
			return;
		}
		if (s == TN_OK)
			node->peers[in->peer].heard_ns = now_ns;
	}
	if (s != TN_OK) {
		struct cp_reply_to to = { .door = in->door, .route = in->route, .peer = in->peer, .id = m.id, .type = "error" };
		node->messages_refused++;
		if (!m.reply && in->door != CP_DOOR_CLIENT)
			cp_node_reply(node, &to, s, err, NULL);
	} else if (!m.reply) {
		on_request(node, in, &m);
	} else if (in->door == CP_DOOR_CLIENT) {
		cp_exchange_reply(node->exchange, in->peer, m.id, m.status, m.detail, m.body, now_ns);
	} else if (from_dp) {
		cp_exchange_reply(node->exchange, CP_TARGET_LINK, m.id, m.status, m.detail, m.body, now_ns);
	} else {
		node->messages_refused++; /* an answer from somebody who was not asked */
	}
	tn_message_clear(&m);
}

/* The data plane is silent for this many heartbeats: the bus to it counts as down until it speaks again. */
#define LINK_SILENT_HEARTBEATS 3u

static void link_end(struct cp_node *node, bool silent)
{
	char text[CP_TROUBLE_TEXT];
	node->link.attached = false;
	node->link.silent = silent;
	cp_exchange_drop(node->exchange, CP_TARGET_LINK, TN_DATAPLANE_DOWN, cp_node_link_trouble(node, text));
	if (!silent)
		cp_opens_drop(node, text);
}

void cp_node_tick(struct cp_node *node, uint64_t now_ns)
{
	node->now_ns = now_ns;
	cp_exchange_tick(node->exchange, now_ns);
	cp_opens_tick(node);
	cp_hello_tick(node);
	uint64_t silent_ns = LINK_SILENT_HEARTBEATS * tn_config_ns(node->config, TN_CFG_CONTROL_HEARTBEAT_MS);
	if (node->link.attached && now_ns - node->link.heard_ns > silent_ns)
		link_end(node, true);
}

void cp_node_link_lost(struct cp_node *node, uint64_t now_ns)
{
	node->now_ns = now_ns;
	link_end(node, false);
}

const char *cp_node_link_trouble(const struct cp_node *node, char out[static CP_TROUBLE_TEXT])
{
	const struct cp_link *l = &node->link;
	unsigned long long s = (node->now_ns - TN_MIN(l->heard_ns, node->now_ns)) / TN_NS_PER_S;
	if (l->generation == 0)
		snprintf(out, CP_TROUBLE_TEXT, "no data plane of host %s has attached: is tent-dataplane running?", node->name);
	else if (l->silent)
		snprintf(out, CP_TROUBLE_TEXT, "the data plane of host %s does not answer: silent for %llu s (stopped, or "
			 "hanging)", node->name, s);
	else
		snprintf(out, CP_TROUBLE_TEXT, "the data plane of host %s is dead, last heard of %llu s ago, and none has "
			 "attached since", node->name, s);
	return out;
}

uint64_t cp_node_next_ns(const struct cp_node *node)
{
	uint64_t next = TN_MIN(cp_exchange_next_ns(node->exchange), cp_opens_next_ns(node));
	next = TN_MIN(next, cp_hello_next_ns(node));
	if (node->link.attached) {
		uint64_t t = node->link.heard_ns +
			     LINK_SILENT_HEARTBEATS * tn_config_ns(node->config, TN_CFG_CONTROL_HEARTBEAT_MS) + 1;
		next = TN_MIN(next, t);
	}
	return next;
}
