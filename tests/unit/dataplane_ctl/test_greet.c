/* SPDX-License-Identifier: Apache-2.0
 * The lane door with fake peers over loopback: strangers learn nothing, tickets admit, an older incarnation is fenced
 * before a newer one is adopted, rooms are bounded. */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/clock.h"
#include "tests/unit/cu.h"
#include "tests/unit/dataplane_ctl/bench.h"

static struct bench b;
static struct dp_peer_slot *slot;
static struct tn_peer_id peer_id;

static void start(const char *const *sets)
{
	bench_start(&b, 2, sets);
	memset(&peer_id, 0x41, sizeof peer_id);
	CU_ASSERT_EQUAL_FATAL(dp_peers_introduce(&b.ctl.peers, "b", &peer_id, &slot), TN_OK);
}

static struct dp_hello hello_of(uint8_t ticket, uint8_t session)
{
	struct dp_hello h = { .version_min = 1, .version_max = 1, .sender = peer_id, .path_epoch = 1, .worker = 0,
	                      .frame_bytes = 65536, .receiver_session = b.env.session };

	memset(&h.ticket, ticket, sizeof h.ticket);
	memset(&h.sender_session, session, sizeof h.sender_session);
	return h;
}

static void install(uint8_t ticket, uint8_t session, const char *address)
{
	struct dp_ticket t = { .peer = peer_id, .peer_index = slot->index, .addr_cnt = 1 };
	char err[TN_ERR_TEXT];

	memset(&t.ticket, ticket, sizeof t.ticket);
	memset(&t.session, session, sizeof t.session);
	CU_ASSERT_EQUAL(tn_addr_net_parse(address, &t.addrs[0], err), TN_OK);
	CU_ASSERT_EQUAL(dp_tickets_install(&b.ctl.greet.tickets, &t), TN_OK);
}

static int knock(void)
{
	int fd = socket(b.ctl.greet.bound.ss.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	CU_ASSERT_EQUAL_FATAL(connect(fd, (const struct sockaddr *)&b.ctl.greet.bound.ss, b.ctl.greet.bound.len), 0);
	bench_turns(&b, 1);
	return fd;
}

static void say(int fd, const struct dp_hello *h)
{
	uint8_t bytes[DP_HELLO_BYTES];

	dp_hello_encode(h, bytes);
	CU_ASSERT_EQUAL(send(fd, bytes, sizeof bytes, MSG_NOSIGNAL), sizeof bytes);
}

/* Status of the answer; -1: closed without one. */
static int answer(int fd)
{
	uint8_t bytes[DP_HELLO_ANSWER_BYTES];
	struct dp_hello_answer a;
	ssize_t n = -1;

	(void)turn_until(&b, (n = recv(fd, bytes, sizeof bytes, MSG_DONTWAIT)) >= 0);
	if (n == 0)
		return -1;
	CU_ASSERT_EQUAL_FATAL(n, sizeof bytes);
	CU_ASSERT_EQUAL(dp_hello_answer_decode(bytes, sizeof bytes, &a), DP_FRAME_OK);
	CU_ASSERT_TRUE(a.status == DP_HELLO_ACCEPTED || tn_id128_is_zero(&a.session));
	return a.status;
}

static int answer_to(const struct dp_hello *h)
{
	int fd = knock(), status;

	say(fd, h);
	status = answer(fd);
	close(fd);
	return status;
}

static unsigned adopted(void)
{
	return fake_count(0, DP_CMD_LANE_ADOPT) + fake_count(1, DP_CMD_LANE_ADOPT);
}

/* What a worker does with a lane at its end. */
static void lanes_end(void)
{
	for (unsigned w = 0; w < 2; w++) {
		for (unsigned i = 0; i < fake_posted(w)->cnt; i++) {
			struct dp_cmd *cmd = &fake_posted(w)->cmd[i];
			struct dp_hello *h = cmd->ptr;
			if (cmd->kind != DP_CMD_LANE_ADOPT || h == NULL)
				continue;
			(void)tn_fetch_add32(h->conn_cnt, UINT32_MAX);
			close(cmd->fd);
			free(h);
			cmd->ptr = NULL;
		}
	}
}

static void strangers_learn_nothing(void)
{
	struct dp_hello h;
	uint8_t junk[DP_HELLO_BYTES];
	int fd;

	start(NULL);
	install(1, 10, "127.0.0.1");
	fd = knock();
	memset(junk, 0x55, sizeof junk);
	(void)!send(fd, junk, sizeof junk, MSG_NOSIGNAL);
	CU_ASSERT_EQUAL(answer(fd), -1);
	close(fd);
	h = hello_of(2, 10);
	CU_ASSERT_EQUAL(answer_to(&h), DP_HELLO_NO_TICKET);
	h = hello_of(1, 10);
	h.sender.b[0] ^= 1;
	CU_ASSERT_EQUAL(answer_to(&h), DP_HELLO_NO_TICKET);
	h = hello_of(1, 11);
	CU_ASSERT_EQUAL(answer_to(&h), DP_HELLO_NO_TICKET);
	h = hello_of(1, 10);
	h.receiver_session.b[0] ^= 1;
	CU_ASSERT_EQUAL(answer_to(&h), DP_HELLO_SESSION);
	h = hello_of(1, 10);
	h.version_min = h.version_max = 9;
	CU_ASSERT_EQUAL(answer_to(&h), DP_HELLO_NO_VERSION);
	CU_ASSERT_EQUAL(adopted(), 0);
	CU_ASSERT_EQUAL(b.ctl.greet.pending_cnt, 0);
	bench_stop(&b);
}

static uint64_t refused_for(enum dp_frame_error e)
{
	struct tn_counter_at at = TN_C3(HP_TCP_PROTOCOL_ERRORS_TOTAL, TN_STREAM_TCP, TN_SIDE_SERVER, (unsigned)e - 1);

	return tn_load_relaxed64(&b.ctl.metrics.cells[at.cell]);
}

/* Good ticket, wrong address: a refusal of its own, which says where the lane came from; a stranger gets no such thing. */
static void a_stray_lane_is_told_where_it_comes_from(void)
{
	static const uint8_t from[16] = { [10] = 0xff, 0xff, 127, 0, 0, 1 }, none[16];
	struct dp_hello h;
	struct dp_hello_answer a;
	uint8_t bytes[DP_HELLO_ANSWER_BYTES];

	start(NULL);
	install(3, 10, "127.0.0.9");
	h = hello_of(3, 10);
	for (int i = 0; i < 2; i++) {
		int fd = knock();
		ssize_t n = -1;
		h.ticket.b[0] ^= i == 0 ? 0 : 1;
		say(fd, &h);
		CU_ASSERT_TRUE(turn_until(&b, (n = recv(fd, bytes, sizeof bytes, MSG_DONTWAIT)) >= 0));
		CU_ASSERT_EQUAL_FATAL(dp_hello_answer_decode(bytes, (size_t)n, &a), DP_FRAME_OK);
		CU_ASSERT_EQUAL(a.status, i == 0 ? DP_HELLO_ADDRESS : DP_HELLO_NO_TICKET);
		CU_ASSERT_EQUAL(memcmp(a.seen, i == 0 ? from : none, sizeof a.seen), 0);
		CU_ASSERT_TRUE(tn_id128_is_zero(&a.session));
		close(fd);
	}
	CU_ASSERT_EQUAL(slot->stray_cnt, 1);
	CU_ASSERT_TRUE(tn_addr_is_loopback(&slot->stray));
	if (TENT_METRICS) {
		CU_ASSERT_EQUAL(refused_for(DP_FRAME_BAD_ADDRESS), 1);
		CU_ASSERT_EQUAL(refused_for(DP_FRAME_BAD_TICKET), 1);
	}
	CU_ASSERT_EQUAL(adopted(), 0);
	install(4, 10, "127.0.0.0/8");
	h = hello_of(4, 10);
	int fd = knock();
	say(fd, &h);
	CU_ASSERT_TRUE(turn_until(&b, adopted() == 1));
	close(fd);
	lanes_end();
	bench_stop(&b);
}

static void a_ticket_admits_after_the_fence(void)
{
	struct dp_hello h;
	int fd, second;

	start(NULL);
	install(1, 10, "127.0.0.1");
	fake_hold(true);
	h = hello_of(1, 10);
	fd = knock();
	say(fd, &h);
	(void)!send(fd, "payload", 7, MSG_NOSIGNAL); /* pipelined: must be left in the socket */
	CU_ASSERT_TRUE(turn_until(&b, fake_count(1, DP_CMD_FENCE) == 1));
	second = knock();
	h.lane = 1;
	say(second, &h);
	bench_turns(&b, 10);
	CU_ASSERT_EQUAL(adopted(), 0);
	CU_ASSERT_EQUAL(fake_count(0, DP_CMD_FENCE), 1); /* one fence for both */
	fake_hold(false);
	CU_ASSERT_TRUE(turn_until(&b, adopted() == 2));
	unsigned w = fake_count(0, DP_CMD_LANE_ADOPT) > 0 ? 0 : 1;
	CU_ASSERT_EQUAL(fake_count(w, DP_CMD_LANE_ADOPT), 2); /* one path, one worker */
	const struct dp_hello *got = fake_last(w, DP_CMD_LANE_ADOPT)->ptr;
	CU_ASSERT_STRING_EQUAL(got->peer_name, "b");
	CU_ASSERT_EQUAL(got->peer_index, slot->index);
	CU_ASSERT_TRUE(tn_id128_is_zero(&got->ticket));
	CU_ASSERT_EQUAL(tn_load_relaxed32(&slot->conn_cnt), 2);
	char text[16] = "";
	for (unsigned i = 0; i < fake_posted(w)->cnt; i++) {
		const struct dp_cmd *cmd = &fake_posted(w)->cmd[i];
		if (cmd->kind == DP_CMD_LANE_ADOPT && ((const struct dp_hello *)cmd->ptr)->lane == 0)
			(void)!recv(cmd->fd, text, sizeof text, MSG_DONTWAIT);
	}
	CU_ASSERT_STRING_EQUAL(text, "payload");
	lanes_end();
	CU_ASSERT_EQUAL(tn_load_relaxed32(&slot->conn_cnt), 0);
	close(fd), close(second);
	bench_stop(&b);
}

static void a_new_incarnation_displaces_the_old_one(void)
{
	struct dp_hello old, young;
	int fd;

	start(NULL);
	install(1, 10, "127.0.0.1");
	old = hello_of(1, 10);
	fd = knock();
	say(fd, &old);
	CU_ASSERT_TRUE(turn_until(&b, adopted() == 1));
	close(fd);
	install(2, 20, "127.0.0.1");
	young = hello_of(2, 20);
	fd = knock();
	say(fd, &young);
	CU_ASSERT_TRUE(turn_until(&b, adopted() == 2));
	close(fd);
	const struct dp_cmd *fence = fake_last(0, DP_CMD_FENCE);
	CU_ASSERT_EQUAL(fake_count(0, DP_CMD_FENCE), 2);
	CU_ASSERT_TRUE(tn_id128_eq(&fence->session, &young.sender_session));
	CU_ASSERT_EQUAL(fence->num, slot->index);
	CU_ASSERT_EQUAL(answer_to(&old), DP_HELLO_NO_TICKET); /* a late lane of the dead incarnation */
	CU_ASSERT_EQUAL(fake_count(0, DP_CMD_FENCE), 2);
	lanes_end();
	bench_stop(&b);
}

/* While a fence runs, who holds a ticket cannot stack connections without end. */
static void waiters_for_a_fence_are_bounded(void)
{
	struct dp_hello h;
	int fd[DP_GREETS_PER_ADDRESS];

	start(NULL);
	install(1, 10, "127.0.0.1");
	h = hello_of(1, 10);
	fake_hold(true);
	for (unsigned i = 0; i < DP_GREETS_PER_ADDRESS; i++) {
		fd[i] = knock();
		say(fd[i], &h);
		CU_ASSERT_TRUE(turn_until(&b, b.ctl.greet.fencing_cnt == i + 1));
	}
	CU_ASSERT_EQUAL(answer_to(&h), DP_HELLO_TOO_MANY);
	CU_ASSERT_EQUAL(b.ctl.greet.refused_cnt, 1);
	CU_ASSERT_EQUAL(fake_count(0, DP_CMD_FENCE), 1);
	fake_hold(false);
	CU_ASSERT_TRUE(turn_until(&b, b.ctl.greet.fencing_cnt == 0 && adopted() > 0));
	lanes_end();
	for (unsigned i = 0; i < DP_GREETS_PER_ADDRESS; i++)
		close(fd[i]);
	bench_stop(&b);
}

static void connections_are_bounded(void)
{
	const char *const sets[] = { "transports/tcp/max_connections_per_peer=2", NULL };
	struct dp_hello h;
	int fd[3];

	start(sets);
	install(1, 10, "127.0.0.1");
	h = hello_of(1, 10);
	for (unsigned i = 0; i < 2; i++) {
		fd[i] = knock();
		say(fd[i], &h);
		CU_ASSERT_TRUE(turn_until(&b, adopted() == i + 1));
	}
	CU_ASSERT_EQUAL(answer_to(&h), DP_HELLO_TOO_MANY);
	/* The peer died without a word and comes back: its old lanes must not keep it out. */
	install(2, 20, "127.0.0.1");
	h = hello_of(2, 20);
	fake_hold(true);
	fd[2] = knock();
	say(fd[2], &h);
	CU_ASSERT_TRUE(turn_until(&b, fake_count(0, DP_CMD_FENCE) == 2));
	lanes_end(); /* the fence closes them */
	fake_hold(false);
	CU_ASSERT_TRUE(turn_until(&b, adopted() == 3));
	b.ctl.pair = DP_PAIR_DRAINING;
	CU_ASSERT_EQUAL(answer_to(&h), DP_HELLO_DRAINING);
	lanes_end();
	for (int i = 0; i < 3; i++)
		close(fd[i]);
	bench_stop(&b);
}

static bool closed(int fd)
{
	char c;

	return recv(fd, &c, 1, MSG_DONTWAIT) == 0;
}

/* Connections that say nothing: bounded, gone after two seconds, and no obstacle for one that speaks. */
static void silent_connections_do_not_block_the_door(void)
{
	enum { CNT = DP_GREETS_PER_ADDRESS + 20 };
	struct dp_hello h;
	int fd[CNT], good;

	start(NULL);
	install(1, 10, "127.0.0.1");
	for (int i = 0; i < CNT; i++)
		fd[i] = knock();
	bench_turns(&b, 5);
	CU_ASSERT_EQUAL(b.ctl.greet.pending_cnt, DP_GREETS_PER_ADDRESS);
	CU_ASSERT_TRUE(closed(fd[0]));
	CU_ASSERT_FALSE(closed(fd[CNT - 1]));
	good = knock();
	h = hello_of(1, 10);
	say(good, &h);
	CU_ASSERT_TRUE(turn_until(&b, adopted() == 1));
	CU_ASSERT_TRUE(turn_until(&b, b.ctl.greet.pending_cnt == 0));
	CU_ASSERT_TRUE(closed(fd[CNT - 1]));
	for (int i = 0; i < CNT; i++)
		close(fd[i]);
	close(good);
	lanes_end();
	bench_stop(&b);
}

static void a_hello_in_pieces_is_put_together(void)
{
	uint8_t bytes[DP_HELLO_BYTES];
	struct dp_hello h;
	int fd;

	start(NULL);
	install(1, 10, "127.0.0.1");
	h = hello_of(1, 10);
	dp_hello_encode(&h, bytes);
	fd = knock();
	for (size_t i = 0; i < sizeof bytes; i += 32) {
		CU_ASSERT_EQUAL(send(fd, bytes + i, 32, MSG_NOSIGNAL), 32);
		bench_turns(&b, 2);
	}
	CU_ASSERT_TRUE(turn_until(&b, adopted() == 1));
	close(fd);
	lanes_end();
	bench_stop(&b);
}

/* The door's settings with one more on top, without touching the running door. */
static tn_status listen_again(const char *set, char *err, size_t err_bytes)
{
	static struct tn_config_errors errors;
	const char *const no_env[] = { "HOME=/nonexistent", NULL };
	struct tn_config_opts opts = { .size = sizeof opts, .sets = &set, .set_cnt = 1, .env = no_env,
	                               .default_path = "/nonexistent" };
	struct tn_config *keep = b.ctl.config;
	struct dp_greet g = { 0 };
	tn_status s;

	CU_ASSERT_EQUAL_FATAL(tn_config_load(&opts, &b.ctl.config, &errors), TN_OK);
	CU_ASSERT_EQUAL_FATAL(dp_greet_init(&g, &b.ctl), TN_OK);
	s = dp_greet_listen(&g, err, err_bytes);
	dp_greet_fini(&g);
	tn_config_free(b.ctl.config);
	b.ctl.config = keep;
	return s;
}

static void what_cannot_be_listened_on_is_named(void)
{
	char err[512] = "", set[64];

	start(NULL);
	(void)snprintf(set, sizeof set, "transports/tcp/port=%u", tn_addr_port(&b.ctl.greet.bound));
	CU_ASSERT_NOT_EQUAL(listen_again(set, err, sizeof err), TN_OK);
	CU_ASSERT_PTR_NOT_NULL(strstr(err, strchr(set, '=') + 1));
	CU_ASSERT_PTR_NOT_NULL(strstr(err, "127.0.0.1"));
	CU_ASSERT_EQUAL(listen_again("transports/tcp/congestion_control=nonesuch", err, sizeof err), TN_CONFIG);
	CU_ASSERT_PTR_NOT_NULL(strstr(err, "nonesuch"));
	CU_ASSERT_EQUAL(listen_again("transports/tcp/port=0", err, sizeof err), TN_OK);
	bench_stop(&b);
}

/* The second way inside the host: drawn here, told to the workers only, bound to where our own listener is. */
static void we_admit_ourselves(void)
{
	struct dp_hello h;
	struct dp_peer_slot *self;
	const struct dp_peer *me;
	int fd;

	start(NULL);
	CU_ASSERT_EQUAL_FATAL(dp_peers_meet_self(&b.ctl), TN_OK);
	self = dp_peers_at(&b.ctl.peers, DP_PEER_SELF);
	CU_ASSERT_PTR_NOT_NULL_FATAL(self);
	me = fake_last(0, DP_CMD_PEER_SET)->ptr;
	CU_ASSERT_PTR_EQUAL(fake_last(1, DP_CMD_PEER_SET)->ptr, me);
	CU_ASSERT(me->index == DP_PEER_SELF && tn_id128_eq(&me->session, &b.env.session));
	CU_ASSERT(b.ctl.peers.cnt == 1 && dp_peers_find(&b.ctl.peers, self->name) == NULL); /* no peer's name leads to it */
	CU_ASSERT(me->of[TN_TRANSPORT_TCP].cnt == 1 && memcmp(&me->of[TN_TRANSPORT_TCP].at[0], &b.ctl.greet.bound.ss, b.ctl.greet.bound.len) == 0);
	h = (struct dp_hello){ .version_min = 1, .version_max = 1, .sender = me->id, .sender_session = me->session, .path_epoch = 1,
	                       .receiver_session = me->session, .ticket = me->ticket, .frame_bytes = 65536 };
	struct dp_hello other = h;
	other.sender = peer_id;
	CU_ASSERT_EQUAL(answer_to(&other), DP_HELLO_NO_TICKET); /* a peer with our ticket is not us */
	other = h;
	other.ticket.b[3] ^= 1;
	CU_ASSERT_EQUAL(answer_to(&other), DP_HELLO_NO_TICKET);
	other = h;
	memset(&other.sender_session, 10, sizeof other.sender_session);
	CU_ASSERT_EQUAL(answer_to(&other), DP_HELLO_NO_TICKET);
	install(1, 10, "127.0.0.1");
	other = hello_of(1, 10);
	other.sender = me->id;
	CU_ASSERT_EQUAL(answer_to(&other), DP_HELLO_NO_TICKET); /* nor is one that calls itself by our name */
	fd = knock();
	say(fd, &h);
	CU_ASSERT_TRUE(turn_until(&b, adopted() == 1));
	unsigned w = fake_count(0, DP_CMD_LANE_ADOPT) > 0 ? 0 : 1;
	CU_ASSERT_EQUAL(((const struct dp_hello *)fake_last(w, DP_CMD_LANE_ADOPT)->ptr)->peer_index, DP_PEER_SELF);
	CU_ASSERT(fake_count(0, DP_CMD_FENCE) == 0 && tn_load_relaxed32(&self->conn_cnt) == 1);
	close(fd);
	b.ctl.pair = DP_PAIR_DRAINING; /* what was accepted before may still need a lane */
	fd = knock();
	say(fd, &h);
	CU_ASSERT_TRUE(turn_until(&b, adopted() == 2));
	close(fd);
	/* There is no newer version of us, but whoever asks is answered. */
	unsigned sets = fake_count(0, DP_CMD_PEER_SET);
	dp_peers_refresh(&b.ctl, DP_PEER_SELF);
	CU_ASSERT_TRUE(turn_until(&b, fake_count(0, DP_CMD_PEER_SET) == sets + 1));
	CU_ASSERT(tn_id128_eq(&((const struct dp_peer *)fake_last(0, DP_CMD_PEER_SET)->ptr)->ticket, &h.ticket));
	lanes_end();
	bench_stop(&b);
}

static void we_listen_everywhere(void)
{
	const char *const sets[] = { "transports/tcp/bind_address=0.0.0.0",
	                             "transports/tcp/advertise_addresses=[\"127.0.0.1\"]", NULL };

	start(sets);
	CU_ASSERT_EQUAL_FATAL(dp_peers_meet_self(&b.ctl), TN_OK);
	const struct dp_peer *me = fake_last(0, DP_CMD_PEER_SET)->ptr;
	struct sockaddr_in at;
	memcpy(&at, &me->of[TN_TRANSPORT_TCP].at[0], sizeof at);
	CU_ASSERT(at.sin_family == AF_INET && at.sin_addr.s_addr == htonl(INADDR_LOOPBACK));
	CU_ASSERT_EQUAL(ntohs(at.sin_port), tn_addr_port(&b.ctl.greet.bound));
	bench_stop(&b);
}

static void ipv6_too(void)
{
	const char *const sets[] = { "transports/tcp/bind_address=::1", NULL };
	struct sockaddr_in6 loop6 = { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	int fd, probe = socket(AF_INET6, SOCK_STREAM, 0);
	char text[TN_ADDR_TEXT];
	struct dp_hello h;

	if (probe < 0 || bind(probe, (const struct sockaddr *)&loop6, sizeof loop6) != 0) {
		fprintf(stderr, "no IPv6 loopback here: this case checked nothing\n");
		if (probe >= 0)
			close(probe);
		return;
	}
	close(probe);
	start(sets);
	CU_ASSERT_TRUE(dp_greet_endpoint(&b.ctl.greet, 0, text));
	CU_ASSERT_EQUAL(strncmp(text, "[::1]:", 6), 0);
	CU_ASSERT_FALSE(dp_greet_endpoint(&b.ctl.greet, 1, text));
	install(1, 10, "::1");
	h = hello_of(1, 10);
	fd = knock();
	say(fd, &h);
	CU_ASSERT_TRUE(turn_until(&b, adopted() == 1));
	close(fd);
	lanes_end();
	bench_stop(&b);
}

TN_TEST_MAIN("greet", { "strangers learn nothing", strangers_learn_nothing },
             { "waiters for a fence are bounded", waiters_for_a_fence_are_bounded },
             { "a stray lane is told where it comes from", a_stray_lane_is_told_where_it_comes_from },
             { "a ticket admits, after the fence", a_ticket_admits_after_the_fence },
             { "a new incarnation displaces the old one", a_new_incarnation_displaces_the_old_one },
             { "connections are bounded", connections_are_bounded },
             { "silent connections do not block the door", silent_connections_do_not_block_the_door },
             { "a HELLO in pieces is put together", a_hello_in_pieces_is_put_together },
             { "what cannot be listened on is named", what_cannot_be_listened_on_is_named }, { "IPv6 too", ipv6_too },
             { "we admit ourselves", we_admit_ourselves }, { "we listen everywhere", we_listen_everywhere })
