/* SPDX-License-Identifier: Apache-2.0
 * hello: a host that is back is asked at once, and telling everybody makes no storm. Virtual time. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "controlplane/peer/hello.h"
#include "tests/unit/controlplane/net.h"
#include "tests/unit/cu.h"

#define PEERS 4u /* SHR_ACCESS_PEERS */
#define MANY 200u

/* ---- two hosts ---- */

static bool answered(struct net *n, int host, uint64_t id, tn_status want)
{
	struct tn_message m;
	bool found = false;
	while (net_link_take(n, host, &m)) {
		found |= m.reply && m.id == id && m.status == want;
		tn_message_clear(&m);
	}
	return found;
}

/* A uses a segment of B, and both have said hello. */
static struct net *in_use(void)
{
	struct net *n = net_new();
	net_attach(n, A, 0xa1, 1);
	net_attach(n, B, 0xb1, 1);
	net_pass(n, 30 * TN_NS_PER_MS);
	net_publish(n, B, "kv", 5, PEERS);
	net_link_say(n, A, "open", 50, false, TN_OK, json_pack("{s:s}", "ref", "b/kv"));
	net_settle(n);
	net_install(n, B);
	CU_ASSERT_TRUE(answered(n, A, 50, TN_OK));
	return n;
}

static void ask_again(struct net *n, uint64_t id)
{
	net_link_say(n, A, "open", id, false, TN_OK,
		     json_pack("{s:s,s:i,s:s}", "ref", "b/kv", "stale_generation", 5, "stale_session",
			       "b1000000000000000000000000000000"));
	net_settle(n);
}

/* B's data plane is away until everybody's back-off is long; 30 ms after it is back the open is answered. */
static void returning_data_plane_is_asked_at_once(void)
{
	struct net *n = in_use();
	cp_node_link_lost(n->host[B].node, n->now_ns);
	ask_again(n, 60);
	net_pass(n, 3500 * TN_NS_PER_MS);
	CU_ASSERT_FALSE(answered(n, A, 60, TN_OK));
	unsigned told = n->host[A].returned;
	net_attach(n, B, 0xb2, 2);
	net_publish(n, B, "kv", 9, PEERS);
	net_pass(n, 20 * TN_NS_PER_MS);
	net_install(n, B);
	net_pass(n, 10 * TN_NS_PER_MS);
	CU_ASSERT_TRUE(answered(n, A, 60, TN_OK));
	CU_ASSERT_EQUAL(n->host[A].returned, told + 1);
	CU_ASSERT_EQUAL(n->host[A].reconnects, 1); /* at the first hello only: the control plane is the same */
	net_free(n);
}

/* What was asked over a connection that leads nowhere is asked again over a new one as soon as a new control plane speaks. */
static void returning_control_plane_gets_a_new_connection(void)
{
	struct net *n = in_use();
	ask_again(n, 70);
	struct packet *p;
	net_link_say(n, A, "open", 71, false, TN_OK, json_pack("{s:s}", "ref", "b/other"));
	CU_ASSERT_PTR_NOT_NULL_FATAL(n->wire);
	while ((p = n->wire) != NULL) { /* lost with the old connection */
		n->wire = p->next;
		free(p);
	}
	unsigned before = n->host[A].reconnects;
	n->host[B].node->control_session = (struct tn_id128){ { 0x77 } };
	net_attach(n, B, 0xb1, 1);
	net_pass(n, 1100 * TN_NS_PER_MS); /* the second round within a second waits for its turn */
	CU_ASSERT_EQUAL(n->host[A].reconnects, before + 1);
	CU_ASSERT_TRUE(answered(n, A, 71, TN_NOT_FOUND));
	net_free(n);
}

/* ---- one of many ---- */

struct crowd { struct cp_node *node; struct tn_config *config; struct cp_cells cells; uint64_t now_ns; unsigned told[MANY], sum, answers; };

static tn_status count(void *ctx, const struct cp_output *out)
{
	struct crowd *c = ctx;
	if (out->door == CP_DOOR_CLIENT) {
		CU_ASSERT_PTR_NOT_NULL(memmem(out->bytes, out->len, "\"hello\"", 7));
		c->told[out->peer]++;
		c->sum++;
	}
	c->answers += out->door == CP_DOOR_SERVER;
	return TN_OK;
}

static struct crowd *crowd_new(void)
{
	struct crowd *c = calloc(1, sizeof *c);
	c->config = net_config_peers(MANY);
	c->now_ns = 1000 * TN_NS_PER_S;
	cp_cells_init(&c->cells, true);
	struct cp_node_cfg cfg = { .config = c->config, .self = { { 7 } }, .control_session = { { 9 } }, .seed = 42,
				   .metrics = &c->cells.rec, .emit = count, .emit_ctx = c };
	CU_ASSERT_EQUAL_FATAL(cp_node_new(&cfg, &c->node), TN_OK);
	return c;
}

static void crowd_free(struct crowd *c)
{
	cp_node_free(c->node);
	tn_config_free(c->config);
	free(c);
}

static void hear(struct crowd *c, enum cp_door door, uint32_t peer, const char *text)
{
	struct cp_input in = { .door = door, .peer = peer, .bytes = text, .len = strlen(text),
			       .route = { .len = 1, .bytes = { 'L' } } };
	cp_node_input(c->node, &in, c->now_ns);
}

static void attach(struct crowd *c)
{
	hear(c, CP_DOOR_LINK, CP_NO_PEER,
	     "{\"v\":1,\"type\":\"attach\",\"id\":1,\"session\":\"a1000000000000000000000000000000\",\"body\":{\"pid\":7,"
	     "\"generation\":1,\"telemetry\":\"dataplane-1.tele\",\"endpoints\":[],\"frame_bytes\":65536,\"sequence\":0}}");
	hear(c, CP_DOOR_LINK, CP_NO_PEER,
	     "{\"v\":1,\"type\":\"snapshot\",\"id\":2,\"session\":\"a1000000000000000000000000000000\",\"body\":{\"sequence\":1,"
	     "\"segments\":[],\"last\":true}}");
}

/* Ticks every millisecond; the most that went out in any 10 ms. */
static unsigned pass_ms(struct crowd *c, unsigned ms)
{
	unsigned most = 0, before = c->sum;
	for (unsigned i = 1; i <= ms; i++) {
		c->now_ns += TN_NS_PER_MS;
		cp_node_tick(c->node, c->now_ns);
		if (i % 10 != 0)
			continue;
		most = TN_MAX(most, c->sum - before);
		before = c->sum;
	}
	return most;
}

static void everybody_is_told_without_a_storm(void)
{
	struct crowd *c = crowd_new();
	attach(c);
	CU_ASSERT_TRUE(pass_ms(c, 300) <= 8);
	CU_ASSERT_EQUAL(c->sum, MANY);
	for (unsigned i = 0; i < MANY; i++)
		CU_ASSERT_EQUAL(c->told[i], 1);
	/* A data plane that attaches all the time: a round in a second, no more; and the last word is told to all. */
	for (unsigned i = 0; i < 60; i++) {
		attach(c);
		CU_ASSERT_TRUE(pass_ms(c, 50) <= 8);
	}
	unsigned rounds = c->sum / MANY;
	CU_ASSERT_TRUE(rounds >= 2 && rounds <= 5);
	attach(c);
	CU_ASSERT_TRUE(pass_ms(c, 5000) <= 8);
	for (unsigned i = 0; i < MANY; i++)
		CU_ASSERT_TRUE(c->told[i] >= 2 && c->told[i] <= 7);
	unsigned sum = c->sum;
	(void)pass_ms(c, 5000);
	CU_ASSERT_EQUAL(c->sum, sum); /* and silence afterwards */
	crowd_free(c);
}

static void gone_again_is_not_told(void)
{
	struct crowd *c = crowd_new();
	attach(c);
	(void)pass_ms(c, 50);
	cp_node_link_lost(c->node, c->now_ns);
	unsigned sum = c->sum;
	(void)pass_ms(c, 3000);
	CU_ASSERT_EQUAL(c->sum, sum);
	CU_ASSERT_EQUAL(cp_hello_next_ns(c->node), UINT64_MAX);
	crowd_free(c);
}

static void strangers_and_shouters(void)
{
	static const char hello[] = "{\"v\":1,\"type\":\"hello\",\"id\":5,\"body\":{\"name\":\"p3\","
				    "\"session\":\"b1000000000000000000000000000000\","
				    "\"control_session\":\"c1000000000000000000000000000000\"}}";
	static const char question[] = "{\"v\":1,\"type\":\"hello\",\"id\":6,\"body\":{}}";
	static const char bad[] = "{\"v\":1,\"type\":\"hello\",\"id\":7,\"body\":{\"session\":1,\"control_session\":[]}}";
	struct crowd *c = crowd_new();
	struct cp_peer *p = &c->node->peers[3];
	uint64_t refused = c->node->messages_refused;
	hear(c, CP_DOOR_SERVER, CP_NO_PEER, hello); /* no peer: nothing is done, nothing is answered */
	hear(c, CP_DOOR_SERVER, MANY, hello);
	CU_ASSERT_EQUAL(c->node->messages_refused, refused + 2);
	CU_ASSERT_EQUAL(c->answers, 0);
	hear(c, CP_DOOR_SERVER, 3, question);
	hear(c, CP_DOOR_SERVER, 3, bad);
	CU_ASSERT_EQUAL(c->answers, 2);
	CU_ASSERT_EQUAL(p->greeted_ns, 0);
	p->backoff_ns = p->retry_ns = UINT64_MAX;
	p->ticket_state = CP_TICKET_FAILED;
	hear(c, CP_DOOR_SERVER, 3, hello);
	CU_ASSERT_TRUE(p->greeted_ns == c->now_ns && p->retry_ns == 0 && p->ticket_state == CP_TICKET_NONE);
	p->retry_ns = UINT64_MAX;
	for (int i = 0; i < 1000; i++)
		hear(c, CP_DOOR_SERVER, 3, hello); /* answered, and nothing more */
	CU_ASSERT_EQUAL(p->retry_ns, UINT64_MAX);
	CU_ASSERT_EQUAL(c->answers, 1003);
	crowd_free(c);
}

TN_TEST_MAIN("controlplane/hello",
	{ "a data plane that is back is asked at once", returning_data_plane_is_asked_at_once },
	{ "a control plane that is back gets a new connection", returning_control_plane_gets_a_new_connection },
	{ "everybody is told, without a storm", everybody_is_told_without_a_storm },
	{ "gone again is not told", gone_again_is_not_told },
	{ "strangers are nobody, shouters are heard once", strangers_and_shouters })
