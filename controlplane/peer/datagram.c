/* SPDX-License-Identifier: Apache-2.0
 * Control datagrams that the data planes relay on their protected control lane: framing, authentication, replay check.
 *   0 version (1) | 1 kind | 2 sequence, big-endian | 10 payload | last 32: HMAC-SHA-256 of all before it
 * The key belongs to (sender's data plane and control plane, receiver's) and came with the ticket; hello tells which one
 * that is, and so does a probe that gets no answer. Kinds: 1 probe, 2 probe answer. */
#include <stdio.h>
#include <string.h>

#include <sodium.h>

#include "common/message.h"
#include "controlplane/node.h"
#include "controlplane/peer/hello.h"

#define DATAGRAM_MAX 2048u
#define HEAD 10u
#define TAG crypto_auth_hmacsha256_BYTES
#define VERSION 1u
#define KEY_ID "datagram_key_id"

enum { KIND_PROBE = 1, KIND_PROBE_ANSWER = 2 };

TN_STATIC_ASSERT(crypto_auth_hmacsha256_KEYBYTES == 32, "the datagram key is an HMAC key");

static uint64_t ttl_ns(const struct cp_node *node)
{
	return tn_config_ns(node->config, TN_CFG_CONTROL_DATAGRAM_TTL_MS);
}

static void ignore_answer(struct cp_node *node, void *ctx, tn_status status, const char *detail, const json_t *body)
{
	(void)ctx, (void)detail, (void)body;
	node->datagrams_dropped += status != TN_OK; /* full control lane, no data plane: a datagram may be lost */
}

tn_status cp_datagram_send(struct cp_node *node, struct cp_peer *p, uint8_t kind, const void *bytes, size_t len)
{
	uint8_t d[DATAGRAM_MAX];
	char hex[2 * DATAGRAM_MAX + 1];
	if (p->ticket_state != CP_TICKET_HELD)
		return TN_AGAIN;
	if (len > sizeof d - HEAD - TAG)
		return TN_TOO_BIG;
	uint64_t seq = ++p->tx_sequence;
	d[0] = VERSION;
	d[1] = kind;
	for (unsigned i = 0; i < 8; i++)
		d[2 + i] = (uint8_t)(seq >> (56 - 8 * i));
	memcpy(d + HEAD, bytes, len);
	crypto_auth_hmacsha256(d + HEAD + len, d, HEAD + len, p->datagram_key);
	sodium_bin2hex(hex, sizeof hex, d, HEAD + len + TAG);
	json_t *b = json_object();
	tn_json_put_str(b, "peer", p->cfg->name);
	tn_json_put_str(b, "payload", hex);
	json_object_set_new(b, "to", cp_peer_json(p)); /* our data plane may never have used this peer */
	cp_exchange_call(node->exchange,
			 &(struct cp_call_opts){
				 .target = CP_TARGET_LINK, .type = "datagram", .body = b, .attempts = 1, .done = ignore_answer,
				 .deadline_ns = node->now_ns + ttl_ns(node) },
			 node->now_ns);
	return TN_OK;
}

/* Without a key they wait for cp_datagram_ready(). */
static void send_or_ask(struct cp_node *node, struct cp_peer *p, uint8_t kind, const uint8_t nonce[static 8])
{
	if (cp_datagram_send(node, p, kind, nonce, 8) == TN_AGAIN)
		cp_ticket_want(node, p, false);
}

/* A nonce for each time it is sent: the answer to an earlier one is not measured from a later one's departure. */
static void probe_send(struct cp_node *node, struct cp_peer *p)
{
	uint64_t nonce = tn_rand_u64(&node->rand);
	memcpy(p->probe_nonce, &nonce, sizeof nonce);
	p->probe_ns = node->now_ns;
	send_or_ask(node, p, KIND_PROBE, p->probe_nonce);
}

void cp_datagram_ready(struct cp_node *node, struct cp_peer *p)
{
	if (p->owed_ns != 0 && node->now_ns - p->owed_ns < ttl_ns(node))
		(void)cp_datagram_send(node, p, KIND_PROBE_ANSWER, p->owed_nonce, sizeof p->owed_nonce);
	if (p->probe_ns != 0 && node->now_ns - p->probe_ns < ttl_ns(node))
		probe_send(node, p);
}

static void on_payload(struct cp_node *node, struct cp_peer *p, uint8_t kind, const uint8_t *bytes, size_t len)
{
	switch (kind) {
	case KIND_PROBE:
		if (len != sizeof p->owed_nonce)
			break;
		memcpy(p->owed_nonce, bytes, len);
		p->owed_ns = node->now_ns;
		send_or_ask(node, p, KIND_PROBE_ANSWER, p->owed_nonce);
		break;
	case KIND_PROBE_ANSWER:
		if (len == 8 && memcmp(bytes, p->probe_nonce, 8) == 0 && p->probe_ns != 0) {
			p->probes_ok++;
			p->probe_rtt_ns = node->now_ns - p->probe_ns;
			p->probe_ns = 0;
		}
		break;
	default: /* a newer peer's kind: authenticated, not understood, no harm */
		node->datagrams_dropped++;
	}
}

void cp_datagram_from_link(struct cp_node *node, const struct cp_request *rq)
{
	struct tn_json_in in;
	uint8_t d[DATAGRAM_MAX];
	char name[TN_NAME_MAX];
	const char *hex = "";
	size_t len = 0;
	uint64_t seq = 0;
	tn_json_in_init(&in, rq->body);
	tn_json_name(&in, "peer", name);
	tn_json_str(&in, "payload", 2 * DATAGRAM_MAX, &hex);
	struct cp_peer *p = in.status == TN_OK ? cp_node_peer_by_name(node, name) : NULL;
	if (p == NULL || sodium_hex2bin(d, sizeof d, hex, strlen(hex), NULL, &len, NULL) != 0 || len < HEAD + TAG ||
	    d[0] != VERSION || tn_id128_is_zero(&p->issued_to) ||
	    crypto_auth_hmacsha256_verify(d + len - TAG, d, len - TAG, p->issued_key) != 0) {
		node->datagrams_dropped++;
		return;
	}
	for (unsigned i = 0; i < 8; i++)
		seq = seq << 8 | d[2 + i];
	if (seq <= p->rx_sequence) {
		node->datagrams_dropped++;
		return;
	}
	p->rx_sequence = seq;
	p->heard_ns = node->now_ns;
	on_payload(node, p, d[1], d + HEAD, len - HEAD - TAG);
}

void cp_datagram_probe(struct cp_node *node, struct cp_peer *p)
{
	if (p->probe_ns != 0) {
		p->probes_lost++;
		cp_hello_say(node, p->index); /* one of the two keys may be lost */
	}
	probe_send(node, p);
}

/* ---- which key it is ---- */

/* Tells keys apart and nothing about them; zero: there is none. */
static struct tn_id128 key_id(bool any, const uint8_t key[static 32])
{
	static const char what[] = "tent " KEY_ID;
	struct tn_id128 id = { { 0 } };
	if (any)
		crypto_generichash(id.b, sizeof id.b, (const uint8_t *)what, sizeof what - 1, key, 32);
	return id;
}

void cp_datagram_key_tell(const struct cp_peer *p, json_t *hello)
{
	struct tn_id128 id = key_id(!tn_id128_is_zero(&p->issued_to), p->issued_key);
	tn_json_put_hex128(hello, KEY_ID, &id);
}

void cp_datagram_key_check(struct cp_node *node, struct cp_peer *p, const json_t *hello)
{
	struct tn_json_in in;
	struct tn_id128 issued, held = key_id(p->ticket_state == CP_TICKET_HELD, p->datagram_key);
	tn_json_in_init(&in, hello);
	if (tn_json_has(&in, KEY_ID) && tn_json_hex128(&in, KEY_ID, &issued) == TN_OK && !tn_id128_eq(&issued, &held))
		cp_ticket_recheck(node, p);
}
