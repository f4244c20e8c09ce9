/* SPDX-License-Identifier: Apache-2.0
 * `explain` through the control plane: what it knows itself, the probe of the peer, the data plane's part beside it, and
 * what is said when one of the three is missing. */
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "tests/unit/controlplane/net.h"
#include "tests/unit/cu.h"

#define PEERS 4u /* SHR_ACCESS_PEERS */

static void ask(struct net *n, const char *target)
{
	net_bus_say(n, A, "explain", 9, json_pack("{s:s,s:i,s:s}", "target", target, "bytes", 4096, "intent", "migration"));
	net_settle(n);
}

/* The question that A's data plane gets; the caller answers m.id. */
static struct tn_message question(struct net *n)
{
	struct tn_message m;
	CU_ASSERT_TRUE_FATAL(net_link_take(n, A, &m));
	CU_ASSERT_STRING_EQUAL_FATAL(m.type, "explain");
	CU_ASSERT_FALSE(m.reply);
	CU_ASSERT_EQUAL(json_integer_value(json_object_get(m.body, "bytes")), 4096);
	CU_ASSERT_STRING_EQUAL(json_string_value(json_object_get(m.body, "intent")), "migration");
	CU_ASSERT_PTR_NULL(json_object_get(m.body, "target"));
	return m;
}

static void data_plane_answers(struct net *n)
{
	struct tn_message m = question(n);
	net_link_say(n, A, "explain", m.id, true, TN_OK, json_pack("{s:[{s:s}]}", "candidates", "transport", "tcp"));
	tn_message_clear(&m);
}

static const char *text_at(const json_t *o, const char *first, const char *second)
{
	const char *s = json_string_value(json_object_get(second != NULL ? json_object_get(o, first) : o,
							  second != NULL ? second : first));
	return s != NULL ? s : "";
}

static json_t *at(const json_t *o, const char *first, const char *second)
{
	return json_object_get(json_object_get(o, first), second);
}

static void a_segment_of_this_host(void)
{
	struct net *n = net_new();
	net_attach(n, A, 0xa1, 1);
	net_publish(n, A, "own", 5, PEERS);
	ask(n, "own");
	data_plane_answers(n);
	struct tn_message m = net_bus_answer(n, A, 9, TN_OK);
	CU_ASSERT_STRING_EQUAL(text_at(m.body, "target", NULL), "segment");
	CU_ASSERT_TRUE(json_is_true(at(m.body, "segment_state", "published")));
	CU_ASSERT_EQUAL(json_integer_value(at(m.body, "segment_state", "generation")), 5);
	CU_ASSERT_EQUAL(json_array_size(at(m.body, "data_plane", "candidates")), 1);
	CU_ASSERT_PTR_NULL(json_object_get(m.body, "peer"));
	CU_ASSERT_EQUAL(n->wire_cnt, 0); /* nobody else is asked */
	tn_message_clear(&m);
	net_free(n);
}

static void a_peer_is_probed_first(void)
{
	struct net *n = net_new();
	net_attach(n, A, 0xa1, 1);
	net_attach(n, B, 0xb1, 1);
	ask(n, "b");
	data_plane_answers(n);
	struct tn_message m = net_bus_answer(n, A, 9, TN_OK);
	CU_ASSERT_STRING_EQUAL(text_at(m.body, "target", NULL), "peer");
	CU_ASSERT_STRING_EQUAL(text_at(m.body, "peer", "name"), "b");
	CU_ASSERT_TRUE(json_is_true(at(m.body, "peer", "answers")));
	CU_ASSERT_TRUE(json_is_integer(at(m.body, "peer", "rtt_us")));
	CU_ASSERT_STRING_EQUAL(text_at(m.body, "peer", "ticket"), "none");
	CU_ASSERT_TRUE(json_is_false(at(m.body, "peer", "holds_our_ticket")));
	tn_message_clear(&m);
	/* a segment of the peer's name is mentioned, the peer is meant */
	net_publish(n, A, "b", 6, PEERS);
	ask(n, "b");
	data_plane_answers(n);
	m = net_bus_answer(n, A, 9, TN_OK);
	CU_ASSERT_STRING_EQUAL(text_at(m.body, "target", NULL), "peer");
	CU_ASSERT_TRUE(json_is_true(json_object_get(m.body, "also_segment_here")));
	tn_message_clear(&m);
	net_free(n);
}

static void a_peer_that_does_not_answer(void)
{
	struct net *n = net_new();
	net_attach(n, A, 0xa1, 1);
	n->host[B].refuse = true;
	ask(n, "b");
	for (int i = 0; i < 200 && n->host[A].link_out == NULL; i++) /* the probe's own bound is 1 s */
		net_pass(n, 10 * TN_NS_PER_MS);
	data_plane_answers(n);
	struct tn_message m = net_bus_answer(n, A, 9, TN_OK);
	CU_ASSERT_TRUE(json_is_false(at(m.body, "peer", "answers")));
	CU_ASSERT_STRING_NOT_EQUAL(text_at(m.body, "peer", "error"), "");
	CU_ASSERT_STRING_NOT_EQUAL(text_at(m.body, "peer", "detail"), "");
	CU_ASSERT_TRUE(json_is_object(json_object_get(m.body, "data_plane"))); /* told all the same */
	tn_message_clear(&m);
	net_free(n);
}

/* "held" as soon as it was opened; nothing secret is in what tentctl gets. */
static void the_cache_of_a_remote_segment(void)
{
	struct net *n = net_new();
	struct tn_message m, opened;
	net_attach(n, A, 0xa1, 1);
	net_attach(n, B, 0xb1, 1);
	net_publish(n, B, "kv", 5, PEERS);
	ask(n, "b/kv");
	data_plane_answers(n);
	m = net_bus_answer(n, A, 9, TN_OK);
	CU_ASSERT_STRING_EQUAL(text_at(m.body, "target", NULL), "remote_segment");
	CU_ASSERT_STRING_EQUAL(text_at(m.body, "segment_state", "cache"), "empty");
	tn_message_clear(&m);
	net_link_say(n, A, "open", 50, false, TN_OK, json_pack("{s:s}", "ref", "b/kv"));
	net_settle(n);
	net_install(n, B);
	CU_ASSERT_TRUE_FATAL(net_link_take(n, A, &opened));
	CU_ASSERT_EQUAL_FATAL(opened.status, TN_OK);
	const char *ticket = json_string_value(at(opened.body, "peer", "ticket"));
	CU_ASSERT_EQUAL_FATAL(strlen(ticket), 32);
	ask(n, "b/kv");
	data_plane_answers(n);
	m = net_bus_answer(n, A, 9, TN_OK);
	CU_ASSERT_STRING_EQUAL(text_at(m.body, "segment_state", "cache"), "held");
	CU_ASSERT_EQUAL(json_integer_value(at(m.body, "segment_state", "bytes")), 1 << 20);
	CU_ASSERT_TRUE(json_is_true(at(m.body, "segment_state", "current")));
	CU_ASSERT_STRING_EQUAL(text_at(m.body, "peer", "ticket"), "held");
	char *all = json_dumps(m.body, JSON_COMPACT);
	CU_ASSERT_PTR_NULL(strstr(all, ticket));
	CU_ASSERT_PTR_NULL(strstr(all, "registration"));
	CU_ASSERT_PTR_NULL(strstr(all, "key"));
	free(all);
	tn_message_clear(&m);
	tn_message_clear(&opened);
	net_free(n);
}

static void a_segment_that_the_peer_does_not_have(void)
{
	struct net *n = net_new();
	net_attach(n, A, 0xa1, 1);
	net_attach(n, B, 0xb1, 1);
	net_link_say(n, A, "open", 50, false, TN_OK, json_pack("{s:s}", "ref", "b/nosuch"));
	net_settle(n);
	net_pass(n, 100 * TN_NS_PER_MS);
	struct tn_message m;
	while (net_link_take(n, A, &m))
		tn_message_clear(&m);
	ask(n, "b/nosuch");
	data_plane_answers(n);
	m = net_bus_answer(n, A, 9, TN_OK);
	CU_ASSERT_STRING_EQUAL(text_at(m.body, "segment_state", "cache"), "refused");
	CU_ASSERT_STRING_EQUAL(text_at(m.body, "segment_state", "error"), "not_found");
	CU_ASSERT_TRUE(json_is_integer(at(m.body, "segment_state", "retry_ms")));
	tn_message_clear(&m);
	net_free(n);
}

static void refusals_say_what_is_wrong(void)
{
	static const struct { const char *target; tn_status status; const char *text; } cases[] = {
		{ "nosuch", TN_NOT_FOUND, "no peer in the config and no segment of this host is called \"nosuch\"" },
		{ "x/kv", TN_PEER_UNKNOWN, "no peer \"x\" in the config" },
		{ "b/", TN_INVALID, "is no PEER, SEGMENT or PEER/SEGMENT" },
		{ "/kv", TN_INVALID, "is no PEER" },
		{ "b/kv/more", TN_INVALID, "is no PEER" },
		{ "", TN_INVALID, "target" },
	};
	struct net *n = net_new();
	struct tn_message m;
	net_attach(n, A, 0xa1, 1);
	for (size_t i = 0; i < TN_ARRAY_LEN(cases); i++) {
		ask(n, cases[i].target);
		m = net_bus_answer(n, A, 9, cases[i].status);
		CU_ASSERT_PTR_NOT_NULL(strstr(m.detail, cases[i].text));
		tn_message_clear(&m);
	}
	net_bus_say(n, A, "explain", 9, NULL);
	m = net_bus_answer(n, A, 9, TN_INVALID);
	CU_ASSERT_PTR_NOT_NULL(strstr(m.detail, "target"));
	tn_message_clear(&m);
	CU_ASSERT_FALSE(net_link_take(n, A, &m)); /* nobody was asked */
	net_free(n);
}

static void without_the_data_plane(void)
{
	struct net *n = net_new();
	struct tn_message m;
	ask(n, "b");
	net_pass(n, 2 * TN_NS_PER_S);
	m = net_bus_answer(n, A, 9, TN_OK);
	CU_ASSERT_TRUE(json_is_null(json_object_get(m.body, "data_plane")));
	CU_ASSERT_PTR_NOT_NULL(strstr(text_at(m.body, "data_plane_error", NULL), "no data plane of host a has attached"));
	tn_message_clear(&m);
	/* it refuses */
	net_attach(n, A, 0xa1, 1);
	net_publish(n, A, "own", 5, PEERS);
	ask(n, "own");
	m = question(n);
	struct tn_message r;
	net_link_say(n, A, "explain", m.id, true, TN_INVALID, NULL);
	tn_message_clear(&m);
	r = net_bus_answer(n, A, 9, TN_INVALID); /* what was asked: a priority that is none */
	tn_message_clear(&r);
	ask(n, "own");
	m = question(n);
	net_link_say(n, A, "explain", m.id, true, TN_NO_MEMORY, NULL);
	tn_message_clear(&m);
	r = net_bus_answer(n, A, 9, TN_OK);
	CU_ASSERT_TRUE(json_is_null(json_object_get(r.body, "data_plane")));
	CU_ASSERT_TRUE(json_is_string(json_object_get(r.body, "data_plane_error")));
	tn_message_clear(&r);
	/* it says nothing: bounded, and not by the caller's 4 s */
	ask(n, "own");
	m = question(n);
	tn_message_clear(&m);
	net_pass(n, 1100 * TN_NS_PER_MS);
	m = net_bus_answer(n, A, 9, TN_OK);
	CU_ASSERT_TRUE(json_is_null(json_object_get(m.body, "data_plane")));
	tn_message_clear(&m);
	net_free(n);
}

/* Stopped, not dead: who asks here or from another host learns which process it is, and since when. */
static void a_silent_data_plane_is_named(void)
{
	struct net *n = net_new();
	struct tn_message m;
	net_attach(n, A, 0xa1, 1);
	net_publish(n, A, "own", 5, PEERS);
	net_pass(n, 60 * TN_NS_PER_S);
	ask(n, "own");
	m = net_bus_answer(n, A, 9, TN_OK);
	CU_ASSERT_PTR_NOT_NULL(strstr(text_at(m.body, "data_plane_error", NULL),
				      "the data plane of host a does not answer: silent for 60 s"));
	tn_message_clear(&m);
	net_bus_say(n, A, "status", 9, NULL);
	m = net_bus_answer(n, A, 9, TN_OK);
	CU_ASSERT_PTR_NOT_NULL(strstr(text_at(m.body, "data_plane_trouble", NULL), "silent for 60 s"));
	tn_message_clear(&m);
	net_attach(n, B, 0xb1, 1); /* asked there */
	net_bus_say(n, B, "explain", 9, json_pack("{s:s}", "target", "a/own"));
	net_settle(n);
	CU_ASSERT_TRUE_FATAL(net_link_take(n, B, &m));
	net_link_say(n, B, m.type, m.id, true, TN_OK, NULL);
	tn_message_clear(&m);
	CU_ASSERT_TRUE_FATAL(net_bus_take(n, B, &m));
	CU_ASSERT_TRUE(json_is_true(at(m.body, "peer", "answers")));
	CU_ASSERT_PTR_NOT_NULL(strstr(text_at(m.body, "peer", "data_plane_trouble"),
				      "the data plane of host a does not answer: silent for 60 s"));
	tn_message_clear(&m);
	cp_node_link_lost(n->host[A].node, n->now_ns); /* now it is dead */
	net_bus_say(n, A, "status", 9, NULL);
	m = net_bus_answer(n, A, 9, TN_OK);
	CU_ASSERT_PTR_NOT_NULL(strstr(text_at(m.body, "data_plane_trouble", NULL), "the data plane of host a is dead"));
	tn_message_clear(&m);
	net_free(n);
}

TN_TEST_MAIN("controlplane explain", { "a segment of this host", a_segment_of_this_host },
	     { "a peer is probed first", a_peer_is_probed_first },
	     { "a peer that does not answer", a_peer_that_does_not_answer },
	     { "the cache of a remote segment", the_cache_of_a_remote_segment },
	     { "a segment that the peer does not have", a_segment_that_the_peer_does_not_have },
	     { "refusals say what is wrong", refusals_say_what_is_wrong },
	     { "without the data plane", without_the_data_plane },
	     { "a silent data plane is named", a_silent_data_plane_is_named })
