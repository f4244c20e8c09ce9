/* SPDX-License-Identifier: Apache-2.0
 * The only owner of tickets: asking a peer for the one that admits our lanes, and issuing the ones that admit a peer's
 * lanes here. A ticket belongs to (sender session -> receiver session); when either changes it is void. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sodium.h>

#include "common/clock.h"
#include "common/hook.h"
#include "common/log.h"
#include "common/message.h"
#include "controlplane/node.h"
#include "controlplane/peer/address.h"
#include "controlplane/peer/issue.h"
#include "controlplane/segment/remote.h"

#define BACKOFF_MIN_NS (50 * TN_NS_PER_MS)
#define BACKOFF_MAX_NS (2 * TN_NS_PER_S)

static tn_status read_ticket(const struct cp_node *node, struct cp_peer *p, const json_t *body, struct tn_id128 *session_out,
			     char *err, size_t err_bytes)
{
	struct tn_json_in in;
	struct tn_id128 session, ticket;
	const char *key_hex = "";
	const json_t *told = NULL;
	json_t *endpoints = NULL;
	char why[TN_ERR_TEXT];
	uint64_t frame_bytes = 0;
	size_t key_len = 0;
	uint8_t key[32];
	tn_json_in_init(&in, body);
	tn_json_hex128(&in, "session", &session);
	tn_json_hex128(&in, "ticket", &ticket);
	tn_json_str(&in, "datagram_key", 64, &key_hex);
	tn_json_array(&in, "endpoints", 16, &told);
	tn_json_u64(&in, "frame_bytes", 4096, 1 << 20, &frame_bytes);
	if (in.status == TN_OK && (sodium_hex2bin(key, sizeof key, key_hex, strlen(key_hex), NULL, &key_len, NULL) != 0 ||
				   key_len != sizeof key))
		tn_json_refuse(&in, "datagram_key", "is not 64 hex digits");
	if (in.status != TN_OK) {
		snprintf(err, err_bytes, "the peer's ticket answer is malformed: %.100s", in.err);
		return TN_PATH_PROTOCOL;
	}
	tn_status st = cp_address_endpoints(node->config, p->cfg, told, &endpoints, why);
	if (st != TN_OK) {
		snprintf(err, err_bytes, "%.159s", why);
		sodium_memzero(key, sizeof key);
		return st;
	}
	p->session = session;
	p->ticket = ticket;
	memcpy(p->datagram_key, key, sizeof key);
	sodium_memzero(key, sizeof key);
	json_decref(p->endpoints);
	p->endpoints = endpoints;
	p->frame_bytes = frame_bytes;
	*session_out = session;
	return TN_OK;
}

static void take_ticket(struct cp_node *node, struct cp_peer *p, const struct tn_id128 *session)
{
	p->ticket_state = CP_TICKET_HELD;
	p->renew = false;
	TN_HOOK(cp_ticket_held);
	p->backoff_ns = 0;
	cp_datagram_ready(node, p);
	cp_remote_invalidate_session(node, node->remote, p->index, session);
}

static void on_ticket(struct cp_node *node, void *ctx, tn_status status, const char *detail, const json_t *body)
{
	struct cp_peer *p = ctx;
	struct tn_id128 session;
	p->ask_call = 0;
	tn_status before = p->last_status;
	snprintf(p->last_detail, sizeof p->last_detail, "%s", detail[0] != '\0' ? detail : tn_status_meaning(status));
	if (status == TN_OK)
		status = read_ticket(node, p, body, &session, p->last_detail, sizeof p->last_detail);
	p->last_status = status;
	if (status != TN_OK && status != before && !p->error.now) /* silence is told already */
		tn_log_warn("peer", "%s gives no ticket for our lanes: %s (%s)", p->cfg->name, p->last_detail,
			    tn_status_name(status));
	if (status == TN_OK) {
		take_ticket(node, p, &session);
	} else {
		p->ticket_state = CP_TICKET_FAILED;
		p->backoff_ns = p->backoff_ns == 0 ? BACKOFF_MIN_NS : TN_MIN(p->backoff_ns * 2, BACKOFF_MAX_NS);
		p->retry_ns = node->now_ns + p->backoff_ns + tn_rand_below(&node->rand, p->backoff_ns / 4 + 1);
	}
	cp_opens_advance(node, p->index, NULL);
}

/* Nobody refused what is held: without an answer it stays as good as it was. */
static void on_rechecked(struct cp_node *node, void *ctx, tn_status status, const char *detail, const json_t *body)
{
	struct cp_peer *p = ctx;
	struct tn_id128 session;
	char why[sizeof p->last_detail];
	snprintf(why, sizeof why, "%s", detail[0] != '\0' ? detail : tn_status_meaning(status));
	p->ask_call = 0;
	if (status == TN_OK)
		status = read_ticket(node, p, body, &session, why, sizeof why);
	if (status != TN_OK) {
		tn_log_info("peer", "%s did not tell our ticket again, which stays: %s (%s)", p->cfg->name, why,
			    tn_status_name(status));
		return;
	}
	take_ticket(node, p, &session);
	cp_opens_advance(node, p->index, NULL);
}

static void send_question(struct cp_node *node, struct cp_peer *p, cp_call_done done)
{
	json_t *body = json_object();
	tn_json_put_hex128(body, "session", &node->link.session);
	tn_json_put_hex128(body, "control_session", &node->control_session);
	json_object_set_new(body, "addresses", cp_address_own(node->config));
	if (p->renew)
		tn_json_put_bool(body, "renew", true);
	p->ask_call = cp_exchange_call(
		node->exchange,
		&(struct cp_call_opts){
			.target = p->index, .type = "issue_ticket", .method = TN_RPC_METHOD_ISSUE_TICKET, .body = body,
			.attempts = (uint32_t)tn_config_u64(node->config, TN_CFG_CONTROL_RPC_ATTEMPTS),
			.deadline_ns = node->now_ns + tn_config_ns(node->config, TN_CFG_CONTROL_RPC_TIMEOUT_MS),
			.done = done, .ctx = p },
		node->now_ns);
}

static void ask(struct cp_node *node, struct cp_peer *p)
{
	if (p->ticket_state == CP_TICKET_ASKING || (p->ticket_state == CP_TICKET_FAILED && node->now_ns < p->retry_ns))
		return;
	if (!node->link.attached)
		return;
	cp_exchange_cancel(node->exchange, p->ask_call); /* a recheck: its answer would be what was refused */
	p->ticket_state = CP_TICKET_ASKING;
	send_question(node, p, on_ticket);
}

void cp_ticket_want(struct cp_node *node, struct cp_peer *p, bool stale)
{
	if (p->ticket_state == CP_TICKET_HELD && !stale)
		return;
	p->renew |= p->ticket_state == CP_TICKET_HELD;
	ask(node, p);
}

void cp_ticket_recheck(struct cp_node *node, struct cp_peer *p)
{
	if (p->ticket_state != CP_TICKET_HELD)
		ask(node, p);
	else if (p->ask_call == 0 && node->link.attached)
		send_question(node, p, on_rechecked);
}

void cp_ticket_forgive(struct cp_peer *p)
{
	if (p->ticket_state == CP_TICKET_FAILED)
		p->ticket_state = CP_TICKET_NONE;
	p->backoff_ns = p->retry_ns = 0;
}

void cp_tickets_reset(struct cp_node *node)
{
	for (uint32_t i = 0; i < node->peer_cnt; i++) {
		struct cp_peer *p = &node->peers[i];
		cp_exchange_cancel(node->exchange, p->ask_call);
		p->ask_call = 0;
		p->renew = false;
		p->ticket_state = CP_TICKET_NONE;
		p->backoff_ns = p->retry_ns = 0;
		sodium_memzero(&p->ticket, sizeof p->ticket);
		sodium_memzero(p->datagram_key, sizeof p->datagram_key);
		sodium_memzero(&p->issued_ticket, sizeof p->issued_ticket);
		sodium_memzero(p->issued_key, sizeof p->issued_key);
		memset(&p->issued_to, 0, sizeof p->issued_to);
		cp_issue_end(node, p, TN_DATAPLANE_DOWN, "the data plane here restarted");
	}
}

json_t *cp_peer_json(const struct cp_peer *p)
{
	if (p->ticket_state != CP_TICKET_HELD)
		return NULL;
	json_t *j = json_object();
	tn_json_put_str(j, "name", p->cfg->name);
	tn_json_put_u64(j, "index", p->index);
	tn_json_put_peer_id(j, "id", &p->cfg->id);
	tn_json_put_hex128(j, "session", &p->session);
	tn_json_put_hex128(j, "ticket", &p->ticket);
	tn_json_put_u64(j, "frame_bytes", p->frame_bytes);
	json_object_set(j, "endpoints", p->endpoints);
	return j;
}
