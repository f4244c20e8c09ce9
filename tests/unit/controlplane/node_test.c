/* SPDX-License-Identifier: Apache-2.0
 * The control plane's mind, two of them talking in virtual time. */
#include <string.h>

#include "common/clock.h"
#include "common/rand.h"
#include "controlplane/segment/remote.h"
#include "tests/unit/controlplane/net.h"
#include "tests/unit/cu.h"

#define PEERS 4u /* SHR_ACCESS_PEERS */

static void ask_open(struct net *n, uint64_t id, const char *ref)
{
	net_link_say(n, A, "open", id, false, TN_OK, json_pack("{s:s}", "ref", ref));
	net_settle(n);
}

/* The reply to `id` that the data plane of A got; its status. */
static tn_status reply_of(struct net *n, int host, uint64_t id, struct tn_message *keep)
{
	struct tn_message m;
	tn_status s = TN_PENDING;
	while (s == TN_PENDING && net_link_take(n, host, &m)) {
		if (m.reply && m.id == id) {
			s = m.status;
			if (keep != NULL) {
				*keep = m;
				return s;
			}
		}
		tn_message_clear(&m);
	}
	return s;
}

static struct net *pair(void)
{
	struct net *n = net_new();
	net_attach(n, A, 0xa1, 1);
	net_attach(n, B, 0xb1, 1);
	net_publish(n, B, "kv", 5, PEERS);
	return n;
}

static void open_gives_descriptor_and_ticket(void)
{
	struct net *n = pair();
	struct tn_message m;
	ask_open(n, 50, "b/kv");
	CU_ASSERT_EQUAL(reply_of(n, A, 50, NULL), TN_PENDING); /* not before the ticket is installed */
	net_install(n, B);
	CU_ASSERT_EQUAL_FATAL(reply_of(n, A, 50, &m), TN_OK);
	json_t *peer = json_object_get(m.body, "peer"), *seg = json_object_get(m.body, "segment");
	CU_ASSERT_EQUAL(strlen(json_string_value(json_object_get(peer, "ticket"))), 32);
	CU_ASSERT_STRING_EQUAL(json_string_value(json_object_get(peer, "name")), "b");
	CU_ASSERT_EQUAL(json_integer_value(json_object_get(seg, "generation")), 5);
	CU_ASSERT_PTR_NULL(json_object_get(seg, "uid"));
	tn_message_clear(&m);
	/* the second open is answered from cache: nothing goes over the wire */
	unsigned before = n->wire_cnt;
	ask_open(n, 51, "b/kv");
	CU_ASSERT_EQUAL(reply_of(n, A, 51, NULL), TN_OK);
	CU_ASSERT_EQUAL(n->wire_cnt, before);
	net_free(n);
}

static void fetch_is_single_flight(void)
{
	struct net *n = pair();
	for (uint64_t id = 100; id < 150; id++)
		net_link_say(n, A, "open", id, false, TN_OK, json_pack("{s:s}", "ref", "b/kv"));
	CU_ASSERT_EQUAL(n->wire_cnt, 1);
	net_settle(n);
	net_install(n, B);
	unsigned done = 0;
	struct tn_message m;
	while (net_link_take(n, A, &m)) {
		done += m.reply && m.status == TN_OK;
		tn_message_clear(&m);
	}
	CU_ASSERT_EQUAL(done, 50);
	CU_ASSERT_EQUAL(n->wire_cnt, 4); /* get_segment and issue_ticket, and their answers */
	net_free(n);
}

static void refusals_are_answers(void)
{
	struct net *n = pair();
	net_publish(n, B, "private", 6, 1); /* same uid only */
	ask_open(n, 60, "b/absent");
	CU_ASSERT_EQUAL(reply_of(n, A, 60, NULL), TN_NOT_FOUND);
	ask_open(n, 61, "b/private");
	CU_ASSERT_EQUAL(reply_of(n, A, 61, NULL), TN_NOT_FOUND);
	ask_open(n, 62, "nobody/kv");
	CU_ASSERT_EQUAL(reply_of(n, A, 62, NULL), TN_PEER_UNKNOWN);
	ask_open(n, 63, "no-slash");
	CU_ASSERT_EQUAL(reply_of(n, A, 63, NULL), TN_INVALID);
	ask_open(n, 64, "b/.hidden");
	CU_ASSERT_EQUAL(reply_of(n, A, 64, NULL), TN_INVALID);
	/* negative answers are cached with back-off: asking again at once stays local */
	unsigned before = n->wire_cnt;
	ask_open(n, 65, "b/absent");
	CU_ASSERT_EQUAL(reply_of(n, A, 65, NULL), TN_NOT_FOUND);
	CU_ASSERT_EQUAL(n->wire_cnt, before);
	net_pass(n, TN_NS_PER_S);
	ask_open(n, 66, "b/absent");
	CU_ASSERT_TRUE(n->wire_cnt > before);
	net_free(n);
}

static void unreachable_peer_ends_by_deadline_and_heals(void)
{
	struct net *n = pair();
	n->host[B].refuse = true;
	ask_open(n, 70, "b/kv");
	net_pass(n, 3 * TN_NS_PER_S);
	CU_ASSERT_EQUAL(reply_of(n, A, 70, NULL), TN_PENDING);
	net_pass(n, 2 * TN_NS_PER_S);
	CU_ASSERT_EQUAL(reply_of(n, A, 70, NULL), TN_PEER_DOWN);
	CU_ASSERT_EQUAL(n->host[A].node->open_cnt, 0);
	ask_open(n, 71, "b/kv");
	n->host[B].refuse = false;
	net_pass(n, 6 * TN_NS_PER_S / 10);
	for (int i = 0; i < 300; i++) {
		struct tn_message m;
		net_pass(n, 10 * TN_NS_PER_MS);
		if (n->host[B].link_out != NULL && net_link_take(n, B, &m)) {
			net_link_say(n, B, m.type, m.id, true, TN_OK, NULL);
			tn_message_clear(&m);
		}
	}
	CU_ASSERT_EQUAL(reply_of(n, A, 71, NULL), TN_OK);
	net_free(n);
}

/* What waits for a data plane that is gone, or says nothing, does not keep the loop awake. */
static void wait_without(bool silent)
{
	struct net *n = pair();
	struct cp_node *a = n->host[A].node;
	cp_node_link_lost(n->host[B].node, n->now_ns); /* no ticket from there: it is asked for again and again */
	ask_open(n, 72, "b/kv");
	net_pass(n, 300 * TN_NS_PER_MS);
	CU_ASSERT_EQUAL(a->open_cnt, 1);
	if (silent)
		a->link.attached = false, a->link.silent = true;
	else
		cp_node_link_lost(a, n->now_ns);
	CU_ASSERT_EQUAL(a->open_cnt, silent);
	net_pass(n, 500 * TN_NS_PER_MS);
	CU_ASSERT_TRUE(cp_node_next_ns(a) > n->now_ns);
	net_free(n);
}

static void nothing_spins_for_a_lost_data_plane(void)
{
	wait_without(false);
	wait_without(true);
}

/* On the link STALE is about the attachment: what a peer says of its segment is told in another word. */
static void a_stale_segment_does_not_end_the_attachment(void)
{
	struct net *n = pair();
	net_link_say(n, A, "open", 73, false, TN_OK,
		     json_pack("{s:s,s:i,s:s}", "ref", "b/kv", "stale_generation", 5, "stale_session",
			       "b1000000000000000000000000000000"));
	net_settle(n);
	net_pass(n, 5 * TN_NS_PER_S);
	CU_ASSERT_EQUAL(reply_of(n, A, 73, NULL), TN_NOT_FOUND);
	net_free(n);
}

static void peer_restart_renews_everything(void)
{
	struct net *n = pair();
	struct tn_message m;
	ask_open(n, 80, "b/kv");
	net_install(n, B);
	CU_ASSERT_EQUAL(reply_of(n, A, 80, NULL), TN_OK);
	net_attach(n, B, 0xb2, 2); /* B's data plane restarted; its segment is published again with a new generation */
	net_settle(n);
	net_publish(n, B, "kv", 9, PEERS);
	net_link_say(n, A, "open", 81, false, TN_OK,
		     json_pack("{s:s,s:i,s:s}", "ref", "b/kv", "stale_generation", 5, "stale_session",
			       "b1000000000000000000000000000000"));
	net_settle(n);
	net_install(n, B);
	CU_ASSERT_EQUAL_FATAL(reply_of(n, A, 81, &m), TN_OK);
	json_t *peer = json_object_get(m.body, "peer");
	CU_ASSERT_STRING_EQUAL(json_string_value(json_object_get(peer, "session")), "b2000000000000000000000000000000");
	CU_ASSERT_EQUAL(json_integer_value(json_object_get(json_object_get(m.body, "segment"), "generation")), 9);
	CU_ASSERT_STRING_EQUAL(json_string_value(json_object_get(json_object_get(m.body, "segment"), "publication")),
			       "00112233445566778899aabbccddeeff");
	tn_message_clear(&m);
	net_free(n);
}

static void own_restart_voids_tickets(void)
{
	struct net *n = pair();
	ask_open(n, 90, "b/kv");
	net_install(n, B);
	CU_ASSERT_EQUAL(reply_of(n, A, 90, NULL), TN_OK);
	net_attach(n, A, 0xa2, 2);
	CU_ASSERT_EQUAL(n->host[A].node->peers[0].ticket_state, CP_TICKET_NONE);
	ask_open(n, 91, "b/kv");
	net_install(n, B); /* a new ticket for the new session, installed anew */
	CU_ASSERT_EQUAL(reply_of(n, A, 91, NULL), TN_OK);
	/* a late old incarnation is turned away */
	n->now_ns += 1;
	net_link_say(n, A, "attach", 92, false, TN_OK,
		     json_pack("{s:i,s:i,s:s,s:[],s:i,s:i}", "pid", 3, "generation", 1, "telemetry", "dataplane-1.tele",
			       "endpoints", "frame_bytes", 1 << 20, "sequence", 0));
	CU_ASSERT_EQUAL(reply_of(n, A, 92, NULL), TN_STALE);
	net_free(n);
}

static void cache_of_remote_segments_is_bounded(void)
{
	struct net *n = pair();
	struct cp_node *node = n->host[A].node;
	char name[8], ref[16];
	cp_remote_free(node->remote);
	node->remote = cp_remote_new(16);
	ask_open(n, 200, "b/kv");
	net_install(n, B);
	CU_ASSERT_EQUAL(reply_of(n, A, 200, NULL), TN_OK);
	for (unsigned i = 0; i < 64; i++) {
		snprintf(name, sizeof name, "s%u", i);
		snprintf(ref, sizeof ref, "b/s%u", i);
		net_publish(n, B, name, 100 + i, PEERS);
		ask_open(n, 300 + i, ref);
		CU_ASSERT_EQUAL(reply_of(n, A, 300 + i, NULL), TN_OK);
		ask_open(n, 400 + i, "b/kv"); /* is used all the time */
		CU_ASSERT_EQUAL(reply_of(n, A, 400 + i, NULL), TN_OK);
		CU_ASSERT_TRUE(cp_remote_cnt(node->remote) <= 16);
	}
	CU_ASSERT_EQUAL(cp_remote_cnt(node->remote), 16);
	static const struct { const char *ref; bool kept; } rows[] = { { "b/kv", true }, { "b/s63", true }, { "b/s49", true },
								       { "b/s48", false }, { "b/s0", false } };
	for (size_t i = 0; i < TN_ARRAY_LEN(rows); i++) {
		unsigned before = n->wire_cnt;
		ask_open(n, 500 + i, rows[i].ref);
		CU_ASSERT_EQUAL(reply_of(n, A, 500 + i, NULL), TN_OK);
		CU_ASSERT_EQUAL(n->wire_cnt == before, rows[i].kept);
	}
	net_free(n);
}

static void withdrawal_reaches_readers(void)
{
	struct net *n = pair();
	struct tn_message m;
	ask_open(n, 110, "b/kv");
	net_install(n, B);
	CU_ASSERT_EQUAL(reply_of(n, A, 110, NULL), TN_OK);
	net_link_say(n, B, "segment_withdrawn", 111, false, TN_OK,
		     json_pack("{s:i,s:s,s:i}", "sequence", 3, "name", "kv", "generation", 5));
	net_settle(n);
	CU_ASSERT_TRUE_FATAL(net_link_take(n, A, &m));
	CU_ASSERT_STRING_EQUAL(m.type, "segment_changed");
	CU_ASSERT_EQUAL(json_integer_value(json_object_get(m.body, "generation")), 0);
	tn_message_clear(&m);
	ask_open(n, 112, "b/kv");
	CU_ASSERT_EQUAL(reply_of(n, A, 112, NULL), TN_NOT_FOUND);
	net_free(n);
}

static json_t *stale_open(const char *session, json_int_t generation)
{
	return json_pack("{s:s,s:I,s:s}", "ref", "b/kv", "stale_generation", generation, "stale_session", session);
}

/* The owner repeats what was found stale (it has not heard yet that its data plane withdrew it): asked again with back-off,
 * not in a circle, and answered when there is a newer one. */
static void owner_that_repeats_itself(void)
{
	struct net *n = pair();
	struct tn_message m;
	ask_open(n, 140, "b/kv");
	net_install(n, B);
	CU_ASSERT_EQUAL(reply_of(n, A, 140, NULL), TN_OK);
	net_pass(n, 20 * TN_NS_PER_MS); /* both say hello */
	unsigned before = n->wire_cnt;
	net_link_say(n, A, "open", 141, false, TN_OK, stale_open("b1000000000000000000000000000000", 5));
	net_settle(n);
	CU_ASSERT_EQUAL(reply_of(n, A, 141, NULL), TN_PENDING);
	net_pass(n, TN_NS_PER_S);
	CU_ASSERT_TRUE(n->wire_cnt - before <= 10);
	CU_ASSERT_EQUAL(reply_of(n, A, 141, NULL), TN_PENDING);
	net_publish(n, B, "kv", 6, PEERS);
	net_settle(n);
	CU_ASSERT_EQUAL_FATAL(reply_of(n, A, 141, &m), TN_OK);
	CU_ASSERT_EQUAL(json_integer_value(json_object_get(json_object_get(m.body, "segment"), "generation")), 6);
	tn_message_clear(&m);
	net_free(n);
}

static void withdraw_kv(struct net *n)
{
	struct tn_message m;
	net_link_say(n, B, "segment_withdrawn", 150, false, TN_OK,
		     json_pack("{s:i,s:s,s:i}", "sequence", 3, "name", "kv", "generation", 6));
	net_settle(n);
	while (net_link_take(n, B, &m))
		tn_message_clear(&m);
}

/* A publisher that stays away for long is found at once when it is back, whatever the back-off of those who wait. */
static void publisher_that_comes_back(void)
{
	struct net *n = pair();
	ask_open(n, 151, "b/kv");
	net_install(n, B);
	CU_ASSERT_EQUAL(reply_of(n, A, 151, NULL), TN_OK);
	withdraw_kv(n);
	net_pass(n, 3 * TN_NS_PER_S);
	net_link_say(n, A, "open", 152, false, TN_OK, stale_open("b1000000000000000000000000000000", 5));
	net_settle(n);
	net_pass(n, 3 * TN_NS_PER_S);
	CU_ASSERT_EQUAL(reply_of(n, A, 152, NULL), TN_PENDING);
	net_publish(n, B, "kv", 6, PEERS);
	net_settle(n);
	CU_ASSERT_EQUAL(reply_of(n, A, 152, NULL), TN_OK);
	/* one that is not for us does not wake us */
	withdraw_kv(n);
	struct tn_message m;
	while (net_link_take(n, A, &m))
		tn_message_clear(&m);
	ask_open(n, 153, "b/later");
	CU_ASSERT_EQUAL(reply_of(n, A, 153, NULL), TN_NOT_FOUND);
	unsigned before = n->wire_cnt;
	net_publish(n, B, "later", 9, 1);
	net_settle(n);
	CU_ASSERT_EQUAL(n->wire_cnt, before);
	net_free(n);
}

/* The only peer in the answer to peer_list, as a new reference. */
static json_t *listed(struct net *n, uint64_t id)
{
	struct tn_message m;
	net_bus_say(n, A, "peer_list", id, NULL);
	if (net_link_take(n, A, &m)) { /* the data plane's part */
		net_link_say(n, A, m.type, m.id, true, TN_OK, json_object());
		tn_message_clear(&m);
	}
	CU_ASSERT_TRUE_FATAL(net_bus_take(n, A, &m));
	json_t *p = json_incref(json_array_get(json_object_get(m.body, "peers"), 0));
	tn_message_clear(&m);
	return p;
}

static bool says(const json_t *obj, const char *key, const char *part)
{
	const char *s = json_string_value(json_object_get(obj, key));
	return s != NULL && strstr(s, part) != NULL;
}

/* Every failed call leaves its reason behind, and the next answer ends it; what failed last stays told. */
static void last_failure_is_told(void)
{
	struct net *n = pair();
	json_t *p = listed(n, 1);
	CU_ASSERT_TRUE(says(p, "connection", "none") && says(p, "state", "idle"));
	CU_ASSERT_PTR_NULL(json_object_get(p, "error"));
	CU_ASSERT_PTR_NULL(json_object_get(p, "last_failure"));
	json_decref(p);
	n->host[B].refuse = true;
	ask_open(n, 70, "b/kv");
	cp_node_contact(n->host[A].node, 0, CP_CONTACT_UNREACHED, n->now_ns);
	net_pass(n, 6 * TN_NS_PER_S);
	CU_ASSERT_EQUAL(reply_of(n, A, 70, NULL), TN_PEER_DOWN);
	p = listed(n, 2);
	CU_ASSERT_TRUE(says(p, "connection", "unreached") && says(p, "error", "timeout"));
	CU_ASSERT_TRUE(says(p, "detail", "no connection to tcp://"));
	json_decref(p);
	/* the end of a refused connection says nothing new */
	cp_node_contact(n->host[A].node, 0, CP_CONTACT_DENIED, n->now_ns);
	cp_node_contact(n->host[A].node, 0, CP_CONTACT_BROKEN, n->now_ns);
	p = listed(n, 3);
	CU_ASSERT_TRUE(says(p, "connection", "denied") && says(p, "error", "peer_denied") && says(p, "detail", "refused our key"));
	json_decref(p);
	n->host[B].refuse = false;
	net_pass(n, TN_NS_PER_S);
	ask_open(n, 71, "b/kv");
	net_install(n, B);
	CU_ASSERT_EQUAL(reply_of(n, A, 71, NULL), TN_OK);
	p = listed(n, 4);
	CU_ASSERT_PTR_NULL(json_object_get(p, "error"));
	CU_ASSERT_TRUE(says(p, "connection", "up") && says(json_object_get(p, "last_failure"), "error", "peer_denied"));
	json_decref(p);
	net_free(n);
}

static uint64_t counted(struct net *n, int host, unsigned event, unsigned result)
{
	return tn_load_relaxed64(&n->host[host].cells.cell[TN_C2(SEGMENT_EVENTS_TOTAL, event, result).cell]);
}

static void segment_events_are_counted(void)
{
	enum { OK = TN_RESULT_SUCCESS, BAD = TN_RESULT_FAILURE };
	static const struct { int host; unsigned event, result; uint64_t cnt; } rows[] = {
		{ B, TN_SEGMENT_EVENT_SNAPSHOT_PUBLISHED, OK, 2 }, /* by each of its data planes */
		{ B, TN_SEGMENT_EVENT_SNAPSHOT_PUBLISHED, BAD, 1 },
		{ B, TN_SEGMENT_EVENT_SNAPSHOT_MUTATED, OK, 2 },   /* republished, hidden */
		{ B, TN_SEGMENT_EVENT_REGISTRY_PUBLISH, OK, 3 },
		{ B, TN_SEGMENT_EVENT_REGISTRY_DELETE, OK, 1 },
		{ B, TN_SEGMENT_EVENT_GENERATION_ADVANCE, OK, 1 },
		{ A, TN_SEGMENT_EVENT_REMOTE_FETCH, OK, 2 },
		{ A, TN_SEGMENT_EVENT_CACHE_MISS, OK, 2 },
		{ A, TN_SEGMENT_EVENT_CACHE_INVALIDATE, OK, 2 },
		{ A, TN_SEGMENT_EVENT_GENERATION_ADVANCE, OK, 1 },
		{ A, TN_SEGMENT_EVENT_CACHE_RESET, OK, 1 },
		{ A, TN_SEGMENT_EVENT_REGISTRY_PUBLISH, OK, 0 },
	};
	struct net *n = pair();
	struct tn_message m;
	for (uint64_t id = 160; id < 162; id++) { /* a miss, then a hit */
		ask_open(n, id, "b/kv");
		if (id == 160)
			net_install(n, B);
		CU_ASSERT_EQUAL(reply_of(n, A, id, NULL), TN_OK);
	}
	net_publish(n, B, "kv", 6, PEERS);
	net_settle(n);
	ask_open(n, 162, "b/kv");
	CU_ASSERT_EQUAL(reply_of(n, A, 162, NULL), TN_OK);
	net_restart(n, B, 0x77); /* both daemons of B are new: A learns of it from their hello */
	net_attach(n, B, 0xb2, 2);
	net_pass(n, TN_NS_PER_S);
	while (net_link_take(n, B, &m))
		tn_message_clear(&m);
	net_publish(n, B, "kv", 9, PEERS);
	net_publish(n, B, "kv", 9, 1); /* from now on for its own user only */
	net_link_say(n, B, "segment_published", 170, false, TN_OK, json_pack("{s:i,s:{s:s}}", "sequence", 4, "segment", "name", "kv"));
	while (net_link_take(n, B, &m))
		tn_message_clear(&m);
	CU_ASSERT_TRUE(!TENT_METRICS || counted(n, A, TN_SEGMENT_EVENT_CACHE_HIT, OK) > 0);
	for (unsigned i = 0; TENT_METRICS && i < TN_ARRAY_LEN(rows); i++) {
		uint64_t cnt = counted(n, rows[i].host, rows[i].event, rows[i].result);
		if (cnt != rows[i].cnt)
			fprintf(stderr, "row %u: %llu\n", i, (unsigned long long)cnt);
		CU_ASSERT_EQUAL(cnt, rows[i].cnt);
	}
	net_free(n);
}

static void denied_key_is_told_at_once(void)
{
	struct net *n = pair();
	net_link_say(n, A, "open", 120, false, TN_OK, json_pack("{s:s}", "ref", "b/kv"));
	cp_node_contact(n->host[A].node, 0, CP_CONTACT_DENIED, n->now_ns);
	CU_ASSERT_EQUAL(reply_of(n, A, 120, NULL), TN_PEER_DENIED);
	net_free(n);
}

static void datagrams_are_authentic(void)
{
	struct net *n = pair();
	struct tn_message m;
	ask_open(n, 130, "b/kv");
	net_install(n, B);
	CU_ASSERT_EQUAL(reply_of(n, A, 130, NULL), TN_OK);
	net_publish(n, A, "back", 3, PEERS);
	net_link_say(n, B, "open", 131, false, TN_OK, json_pack("{s:s}", "ref", "a/back"));
	net_settle(n);
	net_install(n, A);
	CU_ASSERT_EQUAL(reply_of(n, B, 131, NULL), TN_OK);
	struct cp_peer *b_at_a = &n->host[A].node->peers[0];
	cp_datagram_probe(n->host[A].node, b_at_a);
	CU_ASSERT_TRUE_FATAL(net_link_take(n, A, &m));
	CU_ASSERT_STRING_EQUAL(m.type, "datagram");
	const char *payload = json_string_value(json_object_get(m.body, "payload"));
	char bad[4200];
	snprintf(bad, sizeof bad, "%s", payload);
	bad[30] = bad[30] == '0' ? '1' : '0';
	net_link_say(n, B, "datagram", 0, false, TN_OK, json_pack("{s:s,s:s}", "peer", "a", "payload", bad));
	CU_ASSERT_EQUAL(n->host[B].node->datagrams_dropped, 1);
	net_link_say(n, B, "datagram", 0, false, TN_OK, json_pack("{s:s,s:s}", "peer", "a", "payload", payload));
	CU_ASSERT_EQUAL(n->host[B].node->datagrams_dropped, 1);
	net_link_say(n, B, "datagram", 0, false, TN_OK, json_pack("{s:s,s:s}", "peer", "a", "payload", payload)); /* replay */
	CU_ASSERT_EQUAL(n->host[B].node->datagrams_dropped, 2);
	tn_message_clear(&m);
	CU_ASSERT_TRUE_FATAL(net_link_take(n, B, &m)); /* the probe's answer on its way back */
	payload = json_string_value(json_object_get(m.body, "payload"));
	net_link_say(n, A, "datagram", 0, false, TN_OK, json_pack("{s:s,s:s}", "peer", "b", "payload", payload));
	CU_ASSERT_EQUAL(b_at_a->probes_ok, 1);
	tn_message_clear(&m);
	net_free(n);
}

static void bus_answers_without_a_data_plane(void)
{
	struct net *n = net_new();
	struct tn_message m;
	net_bus_say(n, A, "status", 1, NULL);
	CU_ASSERT_TRUE_FATAL(net_bus_take(n, A, &m));
	CU_ASSERT_EQUAL(m.status, TN_OK);
	CU_ASSERT_TRUE(json_is_false(json_object_get(m.body, "data_plane_attached")));
	tn_message_clear(&m);
	net_bus_say(n, A, "nonsense", 2, NULL);
	CU_ASSERT_TRUE_FATAL(net_bus_take(n, A, &m));
	CU_ASSERT_EQUAL(m.status, TN_UNSUPPORTED);
	tn_message_clear(&m);
	net_free(n);
}

static void bus_never_shows_registrations(void)
{
	struct net *n = pair();
	struct tn_message m;
	net_bus_say(n, B, "segment_show", 1, json_pack("{s:s}", "name", "kv"));
	CU_ASSERT_TRUE_FATAL(net_bus_take(n, B, &m));
	char *text = json_dumps(m.body, 0);
	CU_ASSERT_PTR_NULL(strstr(text, "registration"));
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "\"kv\""));
	free(text);
	tn_message_clear(&m);
	net_free(n);
}

/* Random and mutated messages on every door: nothing crashes, nothing leaks, the node still works afterwards. */
static void garbage_does_no_harm(void)
{
	struct net *n = pair();
	struct tn_rand r;
	static const char *const types[] = { "attach", "snapshot", "open", "datagram", "issue_ticket", "get_segment", "probe",
					     "segment_updated", "segment_published", "peer_refresh", "status", "hello", "x" };
	static const char *const values[] = { "null", "1", "-1", "\"\"", "\"b/kv\"", "[]", "{}", "[{}]", "18446744073709551615",
					      "\"18446744073709551616\"", "true", "[[],[null]]" };
	static const char *const keys[] = { "ref", "name", "session", "segment", "segments", "peer", "payload", "addresses",
					    "pid", "generation", "endpoints", "last", "nonce", "sequence" };
	tn_rand_seed(&r, 7);
	for (int i = 0; i < 20000; i++) {
		char text[600];
		size_t at = (size_t)snprintf(text, sizeof text, "{\"v\":1,\"type\":\"%s\",\"id\":%d,\"body\":{",
					     types[tn_rand_below(&r, TN_ARRAY_LEN(types))], i + 1);
		size_t first = tn_rand_below(&r, TN_ARRAY_LEN(keys)), cnt = tn_rand_below(&r, 6);
		for (size_t k = 0; k < cnt; k++)
			at += (size_t)snprintf(text + at, sizeof text - at, "%s\"%s\":%s", k > 0 ? "," : "",
					       keys[(first + k) % TN_ARRAY_LEN(keys)],
					       values[tn_rand_below(&r, TN_ARRAY_LEN(values))]);
		at += (size_t)snprintf(text + at, sizeof text - at, "}}");
		if (tn_rand_chance_ppm(&r, 200000))
			text[tn_rand_below(&r, at)] = (char)tn_rand_below(&r, 256);
		struct cp_input in = { .door = (enum cp_door)(1 + tn_rand_below(&r, 4)), .peer = 0, .address = "127.0.0.1",
				       .route = { .len = 1, .bytes = { 'z' } }, .bytes = text, .len = tn_rand_below(&r, 10) == 0 ?
				       tn_rand_below(&r, at) : at };
		cp_node_input(n->host[A].node, &in, n->now_ns);
	}
	struct packet *p;
	while ((p = n->host[A].link_out) != NULL) {
		n->host[A].link_out = p->next;
		free(p);
	}
	while ((p = n->wire) != NULL) {
		n->wire = p->next;
		free(p);
	}
	net_pass(n, 10 * TN_NS_PER_S);
	CU_ASSERT_EQUAL(n->host[A].node->open_cnt, 0);
	CU_ASSERT_EQUAL(cp_exchange_outstanding(n->host[A].node->exchange), 0);
	net_free(n);
}

static void attempts_are_calls_plus_retries(void)
{
	struct net *n = pair();
	n->host[B].refuse = true;
	for (uint64_t id = 1; id <= 5; id++)
		ask_open(n, 200 + id, "b/kv");
	net_pass(n, 5 * TN_NS_PER_S);
	n->host[B].refuse = false;
	ask_open(n, 210, "b/kv");
	net_pass(n, 20 * TN_NS_PER_S);
	const tn_a64 *c = n->host[A].cells.cell;
	uint64_t attempts = 0, calls = 0, retries = 0;
	for (unsigned m = 0; m < TN_RPC_METHOD_CNT; m++) {
		calls += tn_load_relaxed64(&c[TN_C1(RPC_CALLS_TOTAL, m).cell]);
		retries += tn_load_relaxed64(&c[TN_C1(RPC_RETRIES_TOTAL, m).cell]);
		for (unsigned o = 0; o < TN_RPC_OUTCOME_CNT; o++)
			attempts += tn_load_relaxed64(&c[TN_C2(RPC_ATTEMPTS_TOTAL, m, o).cell]);
	}
	CU_ASSERT_TRUE(retries > 0 || !TENT_METRICS);
	CU_ASSERT_EQUAL(attempts, calls + retries);
	net_free(n);
}

static void ignore_answer(struct cp_node *node, void *ctx, tn_status status, const char *detail, const json_t *body)
{
	(void)node, (void)status, (void)detail, (void)body;
	++*(unsigned *)ctx;
}

static void fill_calls(struct net *n, uint32_t cnt, unsigned *ended)
{
	for (uint32_t i = 0; i < cnt; i++)
		cp_exchange_call(n->host[A].node->exchange,
				 &(struct cp_call_opts){ .target = 0, .type = "probe", .method = TN_RPC_METHOD_PROBE,
							 .body = json_object(), .attempts = 1 + i % 3, .done = ignore_answer,
							 .deadline_ns = n->now_ns + TN_NS_PER_S, .ctx = ended },
				 n->now_ns);
}

/* How many replies to requests at A there are, by one status. */
static unsigned replies(struct net *n, tn_status status)
{
	struct tn_message m;
	unsigned cnt = 0;
	while (net_link_take(n, A, &m)) {
		cnt += m.reply && m.status == status;
		tn_message_clear(&m);
	}
	return cnt;
}

/* Refused from inside its own question: it is answered once, and so are those that wait for the same name. */
static void no_room_for_a_call(void)
{
	struct net *n = pair();
	unsigned ended = 0;
	fill_calls(n, 8192, &ended);
	CU_ASSERT_EQUAL(ended, 0);
	for (uint64_t id = 1; id <= 3; id++)
		net_link_say(n, A, "open", id, false, TN_OK, json_pack("{s:s}", "ref", "b/kv"));
	CU_ASSERT_EQUAL(replies(n, TN_LIMIT), 3);
	CU_ASSERT_EQUAL(n->host[A].node->open_cnt, 0);
	net_pass(n, 3 * TN_NS_PER_S);
	CU_ASSERT_EQUAL(ended, 8192);
	CU_ASSERT_EQUAL(cp_exchange_outstanding(n->host[A].node->exchange), 0);
	net_pass(n, 4 * TN_NS_PER_S); /* what was refused is remembered for a while */
	ask_open(n, 9, "b/kv");
	net_install(n, B);
	CU_ASSERT_EQUAL(replies(n, TN_OK), 1);
	net_free(n);
}

/* All that are outstanding end at once, each once. */
static void thousands_end_at_once(void)
{
	struct net *n = pair();
	unsigned ended = 0;
	char ref[32];
	for (unsigned i = 0; i < 4000; i++) {
		snprintf(ref, sizeof ref, "b/s-%u", i);
		net_link_say(n, A, "open", 100 + i, false, TN_OK, json_pack("{s:s}", "ref", ref));
	}
	fill_calls(n, 4000, &ended);
	CU_ASSERT_EQUAL(n->host[A].node->open_cnt, 4000);
	CU_ASSERT_EQUAL(cp_exchange_outstanding(n->host[A].node->exchange), 8000);
	CU_ASSERT_TRUE(cp_node_next_ns(n->host[A].node) <= n->now_ns + TN_NS_PER_S);
	cp_node_contact(n->host[A].node, 0, CP_CONTACT_DENIED, n->now_ns);
	CU_ASSERT_EQUAL(ended, 4000);
	CU_ASSERT_EQUAL(cp_exchange_outstanding(n->host[A].node->exchange), 0);
	CU_ASSERT_EQUAL(replies(n, TN_PEER_DENIED), 4000);
	CU_ASSERT_EQUAL(n->host[A].node->open_cnt, 0);
	net_free(n);
}

TN_TEST_MAIN("controlplane/node",
	{ "open gives descriptor and ticket", open_gives_descriptor_and_ticket },
	{ "fetch is single flight", fetch_is_single_flight },
	{ "refusals are answers", refusals_are_answers },
	{ "unreachable peer ends by the deadline and heals", unreachable_peer_ends_by_deadline_and_heals },
	{ "peer restart renews everything", peer_restart_renews_everything },
	{ "nothing spins for a lost data plane", nothing_spins_for_a_lost_data_plane },
	{ "a stale segment does not end the attachment", a_stale_segment_does_not_end_the_attachment },
	{ "nothing spins for a lost data plane", nothing_spins_for_a_lost_data_plane },
	{ "a stale segment does not end the attachment", a_stale_segment_does_not_end_the_attachment },
	{ "own restart voids tickets", own_restart_voids_tickets },
	{ "the cache of remote segments is bounded", cache_of_remote_segments_is_bounded },
	{ "withdrawal reaches readers", withdrawal_reaches_readers },
	{ "an owner that repeats itself is not asked in a circle", owner_that_repeats_itself },
	{ "a publisher that comes back is found at once", publisher_that_comes_back },
	{ "segment events are counted", segment_events_are_counted },
	{ "denied key is told at once", denied_key_is_told_at_once },
	{ "the last failure is told", last_failure_is_told },
	{ "datagrams are authentic", datagrams_are_authentic },
	{ "bus answers without a data plane", bus_answers_without_a_data_plane },
	{ "bus never shows registrations", bus_never_shows_registrations },
	{ "garbage does no harm", garbage_does_no_harm },
	{ "attempts are calls plus retries", attempts_are_calls_plus_retries },
	{ "no room for a call", no_room_for_a_call },
	{ "thousands end at once", thousands_end_at_once })
