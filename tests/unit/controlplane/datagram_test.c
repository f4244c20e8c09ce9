/* SPDX-License-Identifier: Apache-2.0
 * The channel of relayed datagrams: keys and sequences stay in step when control planes restart, when questions are asked
 * again or overtake each other, and when one side never asks; nothing is ever good twice. Virtual time. */
#include <stdio.h>
#include <string.h>

#include "common/clock.h"
#include "tests/unit/controlplane/net.h"
#include "tests/unit/cu.h"

#define PEERS 4u /* SHR_ACCESS_PEERS */

static struct cp_peer *other_at(struct net *n, int host) { return &n->host[host].node->peers[0]; }

/* Attach again with the data plane that was there all the time, and let both say hello. */
static void back(struct net *n, int host)
{
	net_attach(n, host, host == A ? 0xa1 : 0xb1, 1);
	for (int i = 0; i < 130; i++) { /* a second round within a second waits for its turn */
		net_pass(n, 10 * TN_NS_PER_MS);
		net_relay(n);
	}
}

static bool probe(struct net *n, int host)
{
	struct cp_peer *p = other_at(n, host);
	uint64_t ok = p->probes_ok;
	cp_datagram_probe(n->host[host].node, p);
	net_relay(n);
	return p->probes_ok == ok + 1;
}

static bool both_ways(struct net *n)
{
	bool a = probe(n, A), b = probe(n, B);
	return a && b;
}

static struct net *in_use(void)
{
	struct net *n = net_new();
	net_attach(n, A, 0xa1, 1);
	net_attach(n, B, 0xb1, 1);
	net_pass(n, 30 * TN_NS_PER_MS);
	for (int i = 0; i < 20; i++)
		CU_ASSERT_TRUE(both_ways(n)); /* sequences that a new process does not know */
	net_pass(n, 200 * TN_NS_PER_MS); /* hello is not heard more often than 10 times a second */
	CU_ASSERT_EQUAL(n->host[A].node->datagrams_dropped, 0);
	CU_ASSERT_EQUAL(n->host[B].node->datagrams_dropped, 0);
	return n;
}

/* The payload that came to `host` once comes again. */
static void replayed(struct net *n, int host, const char *payload)
{
	uint64_t dropped = n->host[host].node->datagrams_dropped, ok = other_at(n, host)->probes_ok;
	unsigned carried = n->carried;
	net_link_say(n, host, "datagram", 0, false, TN_OK,
		     json_pack("{s:s,s:s}", "peer", host == A ? "b" : "a", "payload", payload));
	net_relay(n);
	CU_ASSERT_EQUAL(n->host[host].node->datagrams_dropped, dropped + 1);
	CU_ASSERT_EQUAL(other_at(n, host)->probes_ok, ok);
	CU_ASSERT_EQUAL(n->carried, carried); /* nothing was answered */
}

static void restarts(int first, int second)
{
	struct net *n = in_use();
	char at_a[4200], at_b[4200];
	memcpy(at_a, n->last[A], sizeof at_a);
	memcpy(at_b, n->last[B], sizeof at_b);
	for (uint8_t life = 1; life <= 3; life++) {
		net_restart(n, first, (uint8_t)(0x40 + life));
		if (second >= 0)
			net_restart(n, second, (uint8_t)(0x50 + life));
		back(n, first);
		if (second >= 0)
			back(n, second);
		CU_ASSERT_TRUE(both_ways(n));
		CU_ASSERT_TRUE(both_ways(n));
		replayed(n, A, at_a); /* of an older key */
		replayed(n, B, at_b);
		memcpy(at_a, n->last[A], sizeof at_a);
		memcpy(at_b, n->last[B], sizeof at_b);
		replayed(n, A, at_a); /* of this key */
		replayed(n, B, at_b);
	}
	net_free(n);
}

static void one_restarts(void) { restarts(A, -1); }
static void the_other_restarts(void) { restarts(B, -1); }
static void both_restart(void) { restarts(A, B); }

/* Then a probe finds out, and the next one works. */
static void hello_is_lost(void)
{
	for (int host = A; host <= B; host++) {
		struct net *n = in_use();
		net_restart(n, host, 0x60);
		n->host[1 - host].refuse = n->host[host].refuse = true;
		back(n, host);
		n->host[1 - host].refuse = n->host[host].refuse = false;
		net_pass(n, 3 * TN_NS_PER_S);
		net_relay(n);
		CU_ASSERT_FALSE(probe(n, 1 - host)); /* signed with what the new process never issued */
		CU_ASSERT_TRUE(probe(n, 1 - host)); /* with it hello is said again, which settles it */
		CU_ASSERT_TRUE(both_ways(n));
		net_free(n);
	}
}

/* A host that only asks gets its answer although the other one never used it; its data plane is told where. */
static void one_way(void)
{
	struct net *n = net_new();
	struct tn_message m;
	bool told = false;
	net_attach(n, A, 0xa1, 1);
	net_attach(n, B, 0xb1, 1);
	cp_datagram_probe(n->host[A].node, other_at(n, A));
	while (net_settle(n), net_link_take(n, B, &m)) { /* installs; then hears the probe from A's data plane by hand */
		net_link_say(n, B, m.type, m.id, true, TN_OK, NULL);
		tn_message_clear(&m);
	}
	while (net_settle(n), net_link_take(n, A, &m)) {
		told |= strcmp(m.type, "datagram") == 0 &&
			json_string_value(json_object_get(json_object_get(m.body, "to"), "ticket")) != NULL;
		net_link_say(n, A, m.type, m.id, true, TN_OK, NULL);
		tn_message_clear(&m);
	}
	CU_ASSERT_TRUE(told);
	CU_ASSERT_EQUAL(other_at(n, B)->ticket_state, CP_TICKET_NONE);
	CU_ASSERT_TRUE(probe(n, A));
	CU_ASSERT_EQUAL(other_at(n, A)->probes_lost, 1); /* the one above, which nobody carried */
	net_free(n);
}

/* ---- the questions behind it ---- */

static void ask_b(struct net *n, uint64_t id, const char *session, const char *control, bool renew)
{
	char text[512];
	struct cp_input in = { .door = CP_DOOR_SERVER, .peer = 0, .route = { .len = 1, .bytes = { 'r' } },
			       .address = "127.0.0.1", .bytes = text };
	in.len = (size_t)snprintf(text, sizeof text,
				  "{\"v\":1,\"type\":\"issue_ticket\",\"id\":%llu,\"remaining_ms\":2000,\"body\":{\"session\":\"%s\","
				  "\"control_session\":\"%s\",\"addresses\":[],\"renew\":%s}}",
				  (unsigned long long)id, session, control, renew ? "true" : "false");
	cp_node_input(n->host[B].node, &in, n->now_ns);
}

/* The ticket and the key of the next answer that B sent; false when there is none. */
static bool told(struct net *n, char ticket[33], char key[65])
{
	struct tn_message m;
	char err[TN_ERR_TEXT];
	struct packet *p = n->wire;
	if (p == NULL)
		return false;
	n->wire = p->next;
	CU_ASSERT_EQUAL_FATAL(tn_message_decode(p->bytes, p->len, &m, err), TN_OK);
	const char *t = json_string_value(json_object_get(m.body, "ticket")), *k = json_string_value(json_object_get(m.body, "datagram_key"));
	snprintf(ticket, 33, "%s", t != NULL ? t : tn_status_name(m.status));
	snprintf(key, 65, "%s", k != NULL ? k : "");
	tn_message_clear(&m);
	free(p);
	return true;
}

#define S1 "a1000000000000000000000000000000"
#define S2 "a2000000000000000000000000000000"
#define C1 "c1000000000000000000000000000000"
#define C2 "c2000000000000000000000000000000"

static void questions_asked_again(void)
{
	struct net *n = net_new();
	char t1[33], k1[65], t2[33], k2[65];
	net_attach(n, B, 0xb1, 1);
	ask_b(n, 5, S1, C1, false);
	CU_ASSERT_FALSE(told(n, t1, k1)); /* not before it is installed */
	net_link_say(n, B, "install_ticket", 1, true, TN_OK, NULL);
	CU_ASSERT_TRUE_FATAL(told(n, t1, k1));
	ask_b(n, 5, S1, C1, false); /* its answer was lost */
	CU_ASSERT_TRUE_FATAL(told(n, t2, k2));
	CU_ASSERT_TRUE(strcmp(t1, t2) == 0 && strcmp(k1, k2) == 0);
	ask_b(n, 7, S1, C1, true);
	net_link_say(n, B, "install_ticket", 2, true, TN_OK, NULL);
	CU_ASSERT_TRUE_FATAL(told(n, t2, k2));
	CU_ASSERT_TRUE(strcmp(t1, t2) != 0 && strcmp(k1, k2) == 0); /* the sequence goes on, and so does its key */
	for (uint64_t id = 5; id <= 7; id++) { /* asked a second time; and overtaken by a newer one */
		ask_b(n, id, S1, C1, true);
		CU_ASSERT_TRUE_FATAL(told(n, t1, k1));
		CU_ASSERT_TRUE(strcmp(t1, t2) == 0 && strcmp(k1, k2) == 0);
	}
	ask_b(n, 2, S1, C2, false); /* another control plane of the same data plane */
	CU_ASSERT_TRUE_FATAL(told(n, t1, k1));
	CU_ASSERT_TRUE(strcmp(t1, t2) == 0 && strcmp(k1, k2) != 0);
	net_free(n);
}

/* The data plane's answer about the ticket of an older session says nothing about the newer one's. */
static void late_installation(void)
{
	struct net *n = net_new();
	char t[33], k[65];
	net_attach(n, B, 0xb1, 1);
	ask_b(n, 5, S1, C1, false);
	ask_b(n, 6, S2, C1, false);
	CU_ASSERT_TRUE_FATAL(told(n, t, k));
	CU_ASSERT_STRING_EQUAL(t, tn_status_name(TN_PEER_STALE));
	net_link_say(n, B, "install_ticket", 1, true, TN_OK, NULL);
	CU_ASSERT_FALSE(told(n, t, k));
	net_link_say(n, B, "install_ticket", 2, true, TN_LIMIT, NULL);
	CU_ASSERT_TRUE_FATAL(told(n, t, k));
	CU_ASSERT_STRING_EQUAL(t, tn_status_name(TN_LIMIT));
	net_free(n);
}

/* Our data plane restarts while we ask: what comes for the old one is not taken for the new one's. */
static void late_answer(void)
{
	struct net *n = net_new();
	struct tn_message m;
	struct cp_peer *b;
	net_attach(n, A, 0xa1, 1);
	net_attach(n, B, 0xb1, 1);
	b = other_at(n, A);
	cp_ticket_want(n->host[A].node, b, false);
	net_settle(n);
	CU_ASSERT_TRUE_FATAL(net_link_take(n, B, &m));
	net_link_say(n, B, m.type, m.id, true, TN_OK, NULL); /* the answer is on the wire */
	tn_message_clear(&m);
	net_attach(n, A, 0xa2, 2);
	CU_ASSERT_EQUAL(b->ticket_state, CP_TICKET_NONE);
	cp_ticket_want(n->host[A].node, b, false);
	net_settle(n);
	CU_ASSERT_EQUAL(b->ticket_state, CP_TICKET_ASKING); /* B's data plane has not installed it yet */
	net_relay(n);
	CU_ASSERT_EQUAL_FATAL(b->ticket_state, CP_TICKET_HELD);
	CU_ASSERT_TRUE(tn_id128_eq(&b->ticket, &other_at(n, B)->issued_ticket));
	CU_ASSERT_TRUE(memcmp(b->datagram_key, other_at(n, B)->issued_key, 32) == 0);
	CU_ASSERT_TRUE(probe(n, A));
	net_free(n);
}

/* ---- asked again although one is held ---- */

static struct net *ticket_held(struct cp_peer **b, struct tn_id128 *ticket)
{
	struct net *n = net_new();
	net_attach(n, A, 0xa1, 1);
	net_attach(n, B, 0xb1, 1);
	*b = other_at(n, A);
	cp_ticket_want(n->host[A].node, *b, false);
	net_relay(n);
	CU_ASSERT_EQUAL_FATAL((*b)->ticket_state, CP_TICKET_HELD);
	*ticket = (*b)->ticket;
	return n;
}

/* The data plane of A says that the ticket it has was refused. */
static void refused(struct net *n)
{
	net_link_say(n, A, "peer_refresh", 90, false, TN_OK,
		     json_pack("{s:s,s:s}", "peer", "b", "stale_session", "b1000000000000000000000000000000"));
}

static void renewal_during_a_recheck(void)
{
	struct cp_peer *b;
	struct tn_id128 first;
	struct net *n = ticket_held(&b, &first);
	uint32_t before = cp_exchange_outstanding(n->host[A].node->exchange);
	cp_ticket_recheck(n->host[A].node, b);
	CU_ASSERT_EQUAL(cp_exchange_outstanding(n->host[A].node->exchange), before + 1);
	uint64_t recheck = b->ask_call;
	refused(n);
	CU_ASSERT_NOT_EQUAL(b->ask_call, recheck);
	CU_ASSERT_EQUAL(cp_exchange_outstanding(n->host[A].node->exchange), before + 1); /* in its place, not beside it */
	net_relay(n);
	CU_ASSERT_EQUAL(b->ticket_state, CP_TICKET_HELD);
	CU_ASSERT_FALSE(tn_id128_eq(&b->ticket, &first));
	CU_ASSERT_TRUE(tn_id128_eq(&b->ticket, &other_at(n, B)->issued_ticket));
	struct tn_id128 second = b->ticket;
	cp_ticket_recheck(n->host[A].node, b); /* of one that nobody refused */
	net_relay(n);
	CU_ASSERT_EQUAL(b->ask_call, 0);
	CU_ASSERT_TRUE(tn_id128_eq(&b->ticket, &second));
	net_free(n);
}

static void recheck_without_answer(void)
{
	struct cp_peer *b;
	struct tn_id128 first;
	struct net *n = ticket_held(&b, &first);
	n->host[B].refuse = true;
	cp_ticket_recheck(n->host[A].node, b);
	CU_ASSERT_NOT_EQUAL(b->ask_call, 0);
	CU_ASSERT_EQUAL(b->ticket_state, CP_TICKET_HELD); /* and of use meanwhile */
	net_pass(n, 10 * TN_NS_PER_S);
	CU_ASSERT_EQUAL(b->ask_call, 0);
	CU_ASSERT_EQUAL(b->ticket_state, CP_TICKET_HELD);
	CU_ASSERT_TRUE(tn_id128_eq(&b->ticket, &first));
	net_free(n);
}

/* The next question is for another one, too. */
static void renewal_without_answer(void)
{
	struct cp_peer *b;
	struct tn_id128 first;
	struct net *n = ticket_held(&b, &first);
	n->host[B].refuse = true;
	refused(n);
	net_pass(n, 10 * TN_NS_PER_S);
	CU_ASSERT_EQUAL(b->ticket_state, CP_TICKET_FAILED);
	n->host[B].refuse = false;
	cp_ticket_forgive(b);
	cp_ticket_want(n->host[A].node, b, false);
	for (int i = 0; i < 400 && b->ticket_state != CP_TICKET_HELD; i++) {
		net_pass(n, 10 * TN_NS_PER_MS);
		net_relay(n);
	}
	CU_ASSERT_EQUAL(b->ticket_state, CP_TICKET_HELD);
	CU_ASSERT_FALSE(tn_id128_eq(&b->ticket, &first));
	net_free(n);
}

TN_TEST_MAIN("controlplane/datagram",
	{ "one control plane restarts", one_restarts },
	{ "the other one restarts", the_other_restarts },
	{ "both restart", both_restart },
	{ "a hello is lost", hello_is_lost },
	{ "one way", one_way },
	{ "questions asked again", questions_asked_again },
	{ "a late installation is not the newer one's", late_installation },
	{ "a late answer is not the newer question's", late_answer },
	{ "a renewal during a recheck", renewal_during_a_recheck },
	{ "a recheck without an answer", recheck_without_answer },
	{ "a renewal without an answer", renewal_without_answer })
