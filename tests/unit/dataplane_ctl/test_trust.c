/* SPDX-License-Identifier: Apache-2.0
 * Whom the control plane trusts: its list of peers, page by page, and what a peer loses that is no longer in it or has
 * another key there. */
#include "tests/unit/dataplane_ctl/link_rig.h"

#define OTHER_ID HEX32("0d")
#define ANSWER(total, peers) \
	"{\"self\":\"" SELF "\",\"control_session\":\"" SESSION "\",\"peers_total\":" total ",\"peers\":[" peers "]}"
#define ENTRY(name, id) "{\"index\":0,\"name\":\"" name "\",\"id\":\"" id "\"}"
#define INSTALL(peer, id) \
	"{\"ticket\":\"" TICKET "\",\"peer\":\"" peer "\",\"peer_id\":\"" id "\",\"session\":\"" SESSION \
	"\",\"addresses\":[\"127.0.0.1\"]}"

/* The rest of an attachment whose answer was given. */
static void snapshot(void)
{
	hear("snapshot");
	reply(TN_OK, "{}");
	CU_ASSERT_TRUE(turn_until(&b, b.ctl.link->state == DP_LINK_LIVE));
}

static void attach_with(const char *answer)
{
	hear("attach");
	reply(TN_OK, answer);
	snapshot();
}

static int opened_at_b(void)
{
	struct shr_msg_open_reply o;
	int sock = app_attach(&b);

	open_later(sock, "b/kv");
	hear("open");
	reply(TN_OK, FOUND(SESSION, "1"));
	CU_ASSERT_EQUAL(opened(sock, &o), TN_OK);
	return sock;
}

static void a_peer_that_is_gone_loses_everything(void)
{
	static struct shr_msg m;
	struct shr_msg_open_reply o;

	start();
	control_plane_up();
	attach();
	int sock = opened_at_b();
	CU_ASSERT_EQUAL(ask("install_ticket", INSTALL("b", PEER_ID)), TN_OK);
	CU_ASSERT_EQUAL(b.ctl.greet.tickets.entries[0].addr_cnt, 1);
	control_plane_down();
	control_plane_up();
	attach_with(ANSWER("0", ""));
	CU_ASSERT_EQUAL(b.ctl.greet.tickets.entries[0].addr_cnt, 0);
	for (unsigned w = 0; w < 2; w++) {
		const struct dp_cmd *fence = fake_last(w, DP_CMD_FENCE);
		CU_ASSERT_EQUAL_FATAL(fake_count(w, DP_CMD_FENCE), 1);
		CU_ASSERT_EQUAL(fence->num, dp_peers_find(&b.ctl.peers, "b")->index);
		CU_ASSERT_TRUE(tn_id128_is_zero(&fence->session)); /* keeps no incarnation */
		CU_ASSERT_TRUE(last_remote(w)->lost);
		CU_ASSERT_EQUAL(last_remote(w)->lost_status, TN_PEER_UNKNOWN);
	}
	/* Neither a late word of the control plane nor an application brings it back. */
	CU_ASSERT_EQUAL(ask("install_ticket", INSTALL("b", PEER_ID)), TN_PEER_UNKNOWN);
	open_later(sock, "b/kv");
	CU_ASSERT_EQUAL(app_recv(&b, sock, &m), TN_OK);
	CU_ASSERT_EQUAL(m.hdr.status, TN_PEER_UNKNOWN);
	/* Trusted again: what was opened is looked for, and a ticket may be given. */
	control_plane_down();
	control_plane_up();
	attach_with(ANSWER("1", ENTRY("b", PEER_ID)));
	hear("open");
	reply(TN_OK, FOUND(SESSION, "1"));
	CU_ASSERT_TRUE(turn_until(&b, !last_remote(0)->lost && !last_remote(1)->lost));
	CU_ASSERT_EQUAL(ask("install_ticket", INSTALL("b", PEER_ID)), TN_OK);
	open_later(sock, "b/kv");
	hear("open");
	reply(TN_OK, FOUND(SESSION, "1"));
	CU_ASSERT_EQUAL(opened(sock, &o), TN_OK);
	control_plane_down();
	bench_stop(&b);
	close(sock);
}

static void another_key_voids_what_the_old_one_had(void)
{
	start();
	control_plane_up();
	attach();
	int sock = opened_at_b();
	CU_ASSERT_EQUAL(ask("install_ticket", INSTALL("b", PEER_ID)), TN_OK);
	control_plane_down();
	control_plane_up();
	attach_with(ANSWER("1", ENTRY("b", OTHER_ID)));
	CU_ASSERT_EQUAL(b.ctl.greet.tickets.entries[0].addr_cnt, 0);
	CU_ASSERT_EQUAL(fake_count(0, DP_CMD_FENCE), 1);
	CU_ASSERT_EQUAL(fake_last(0, DP_CMD_FENCE)->num, dp_peers_find(&b.ctl.peers, "b")->index); /* also lanes of the old key */
	hear("peer_refresh");
	reply(TN_PEER_DOWN, NULL);
	CU_ASSERT_EQUAL(ask("install_ticket", INSTALL("b", PEER_ID)), TN_PEER_STALE);
	CU_ASSERT_EQUAL(ask("install_ticket", INSTALL("b", OTHER_ID)), TN_OK);
	control_plane_down();
	bench_stop(&b);
	close(sock);
}

static void the_same_list_changes_nothing(void)
{
	start();
	control_plane_up();
	attach();
	CU_ASSERT_EQUAL(ask("install_ticket", INSTALL("b", PEER_ID)), TN_OK);
	control_plane_down();
	control_plane_up();
	attach();
	CU_ASSERT_EQUAL(b.ctl.greet.tickets.entries[0].addr_cnt, 1);
	CU_ASSERT_EQUAL(fake_count(0, DP_CMD_FENCE), 0);
	control_plane_down();
	bench_stop(&b);
}

static void a_long_list_comes_in_pages(void)
{
	start();
	control_plane_up();
	hear("attach");
	reply(TN_OK, ANSWER("3", ENTRY("b", PEER_ID)));
	hear("peers");
	CU_ASSERT_EQUAL(json_integer_value(json_object_get(in.body, "first")), 1);
	reply(TN_OK, "{\"peers_total\":3,\"peers\":[" ENTRY("c", HEX32("0c")) "]}");
	hear("peers");
	CU_ASSERT_EQUAL(json_integer_value(json_object_get(in.body, "first")), 2);
	reply(TN_OK, "{\"peers_total\":3,\"peers\":[" ENTRY("d", HEX32("0d")) "]}");
	snapshot();
	CU_ASSERT_EQUAL(b.ctl.peers.cnt, 3);
	/* A page that brings nothing would go on for ever: attach anew. */
	control_plane_down();
	control_plane_up();
	hear("attach");
	reply(TN_OK, ANSWER("3", ENTRY("b", PEER_ID)));
	hear("peers");
	reply(TN_OK, "{\"peers_total\":3,\"peers\":[]}");
	hear("attach");
	CU_ASSERT_TRUE(dp_peers_find(&b.ctl.peers, "c")->trusted); /* half a list takes nothing away */
	reply(TN_OK, ANSWER("1", ENTRY("b", PEER_ID)));
	snapshot();
	CU_ASSERT_TRUE(dp_peers_find(&b.ctl.peers, "b")->trusted);
	CU_ASSERT_FALSE(dp_peers_find(&b.ctl.peers, "c")->trusted);
	control_plane_down();
	bench_stop(&b);
}

/* Names that come and go with restarts of the control plane fill the table; the rest goes on. */
static void names_beyond_the_table_are_ignored(void)
{
	static char body[512];

	start();
	control_plane_up();
	attach();
	for (unsigned i = 0; i < DP_PEERS_MAX + 2; i++) {
		struct tn_peer_id id = { { 1, (uint8_t)(i >> 8), (uint8_t)i } };
		char name[16];
		(void)snprintf(name, sizeof name, "p%u", i);
		CU_ASSERT_EQUAL(dp_peers_list_add(&b.ctl.peers, name, &id), i < DP_PEERS_MAX - 1 ? TN_OK : TN_LIMIT);
	}
	control_plane_down();
	control_plane_up();
	(void)snprintf(body, sizeof body, ANSWER("2", ENTRY("b", PEER_ID) "," ENTRY("%s", OTHER_ID)), "one-more");
	attach_with(body);
	CU_ASSERT_EQUAL(b.ctl.peers.cnt, DP_PEERS_MAX);
	CU_ASSERT_TRUE(dp_peers_find(&b.ctl.peers, "b")->trusted);
	CU_ASSERT_PTR_NULL(dp_peers_find(&b.ctl.peers, "one-more"));
	control_plane_down();
	bench_stop(&b);
}

TN_TEST_MAIN("trust", { "a peer that is gone loses everything", a_peer_that_is_gone_loses_everything },
             { "another key voids what the old one had", another_key_voids_what_the_old_one_had },
             { "the same list changes nothing", the_same_list_changes_nothing },
             { "a long list comes in pages", a_long_list_comes_in_pages },
             { "names beyond the table are ignored", names_beyond_the_table_are_ignored })
