/* SPDX-License-Identifier: Apache-2.0
 * The attach door: HELLO first, limits with their numbers, garbage ends one client only, a dead client's objects go
 * in order, a client that does not read is not read from. */
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/dataplane_ctl/bench.h"
#include "common/clock.h"
#include "common/rand.h"
#include "tests/unit/cu.h"

static bool hung_up(int sock)
{
	struct pollfd p = { .fd = sock, .events = POLLIN };

	return poll(&p, 1, 0) == 1 && (p.revents & POLLHUP) != 0;
}

static void hello_first(void)
{
	static struct bench b;
	static struct shr_msg m;
	struct shr_msg_hello hello = { .abi_major = SHR_ABI_MAJOR + 1, .app = "future" };
	struct shr_msg_qp_create qp = { .sq_entries = 8 };
	int a, c, d;

	bench_start(&b, 1, NULL);
	a = app_connect(&b);
	memcpy(shr_msg_begin(&m, SHR_MSG_QP_CREATE, 1, sizeof qp), &qp, sizeof qp);
	CU_ASSERT_EQUAL(shr_msg_send(a, &m), TN_OK);
	CU_ASSERT_TRUE(turn_until(&b, hung_up(a)));
	c = app_connect(&b);
	CU_ASSERT_EQUAL(app_call(&b, c, SHR_MSG_HELLO, &hello, sizeof hello, -1, &m), TN_ABI_MISMATCH);
	CU_ASSERT_EQUAL(m.hdr.detail, SHR_ABI_MAJOR);
	CU_ASSERT_TRUE(turn_until(&b, hung_up(c)));
	d = app_connect(&b); /* says nothing */
	uint64_t begin_ns = tn_now_ns();
	CU_ASSERT_TRUE(turn_until(&b, hung_up(d)));
	CU_ASSERT_TRUE(tn_now_ns() - begin_ns >= UINT64_C(1500000000));
	CU_ASSERT_TRUE(turn_until(&b, b.ctl.attach.clients.used == 0));
	bench_stop(&b);
	close(a), close(c), close(d);
}

static tn_status find_policy(struct bench *b, int sock, const char *name, uint64_t *id_out)
{
	static struct shr_msg m;
	struct shr_msg_policy_find find = { 0 };
	struct shr_msg_id id = { 0 };

	(void)snprintf(find.name, sizeof find.name, "%s", name);
	tn_status s = app_call(b, sock, SHR_MSG_POLICY_FIND, &find, sizeof find, -1, &m);
	if (s == TN_OK)
		memcpy(&id, shr_msg_body_ro(&m), sizeof id);
	*id_out = id.id;
	return s;
}

/* A policy's number is told by its name, and while a new configuration is on its way to the workers nobody gets one. */
static void policies_have_numbers(void)
{
	static struct bench b;
	const char *const sets[] = { "policies=[{\"name\":\"p\",\"transports\":[\"shm\"]},{\"name\":\"q\",\"transports\":[\"tcp\"]}]", NULL };
	uint64_t id;

	bench_start(&b, 1, sets);
	int a = app_attach(&b);
	CU_ASSERT_EQUAL(find_policy(&b, a, "q", &id), TN_OK);
	CU_ASSERT_EQUAL(id, TN_CONFIG_POLICY_ID_FIRST + 1);
	CU_ASSERT_EQUAL(find_policy(&b, a, "p", &id), TN_OK);
	CU_ASSERT_EQUAL(id, TN_CONFIG_POLICY_ID_FIRST);
	CU_ASSERT_EQUAL(find_policy(&b, a, "r", &id), TN_NOT_FOUND);
	b.ctl.config_old = b.ctl.config;
	CU_ASSERT_EQUAL(find_policy(&b, a, "p", &id), TN_AGAIN);
	b.ctl.config_old = NULL;
	close(a);
	bench_stop(&b);
}

static void limits_say_their_number(void)
{
	static struct bench b;
	static struct shr_msg m;
	const char *const sets[] = { "limits/max_clients=2", "limits/max_qps_per_client=1", NULL };
	struct shr_msg_hello hello = { .abi_major = SHR_ABI_MAJOR };
	struct shr_msg_qp_create qp = { .sq_entries = 16, .note_slots = 4 }, odd = { .sq_entries = 17 };
	int a, c, third;

	bench_start(&b, 1, sets);
	a = app_attach(&b);
	c = app_attach(&b);
	third = app_connect(&b);
	CU_ASSERT_EQUAL(app_call(&b, third, SHR_MSG_HELLO, &hello, sizeof hello, -1, &m), TN_LIMIT);
	CU_ASSERT_EQUAL(m.hdr.detail, 2);
	CU_ASSERT_EQUAL(app_call(&b, a, SHR_MSG_QP_CREATE, &odd, sizeof odd, -1, &m), TN_INVALID);
	CU_ASSERT_EQUAL(app_call(&b, a, SHR_MSG_QP_CREATE, &qp, sizeof qp, -1, &m), TN_OK);
	CU_ASSERT_EQUAL(m.fd_cnt, 2);
	shr_msg_close_fds(&m);
	CU_ASSERT_EQUAL(app_call(&b, a, SHR_MSG_QP_CREATE, &qp, sizeof qp, -1, &m), TN_LIMIT);
	CU_ASSERT_EQUAL(m.hdr.detail, 1);
	CU_ASSERT_EQUAL(b.ctl.qps.used, 1);
	close(a);
	CU_ASSERT_TRUE(turn_until(&b, b.ctl.attach.attached_cnt == 1 && b.ctl.qps.used == 0));
	CU_ASSERT_EQUAL(app_call(&b, c, SHR_MSG_QP_CREATE, &qp, sizeof qp, -1, &m), TN_OK);
	shr_msg_close_fds(&m);
	bench_stop(&b);
	close(c), close(third);
}

/* Leaves `room` free descriptors below a small limit; let_go() undoes it. */
static int held[1024];
static unsigned held_cnt;
static struct rlimit held_limit;

static void use_up(unsigned room)
{
	struct rlimit low;
	CU_ASSERT_EQUAL_FATAL(getrlimit(RLIMIT_NOFILE, &held_limit), 0);
	low = (struct rlimit){ 256, held_limit.rlim_max };
	CU_ASSERT_EQUAL_FATAL(setrlimit(RLIMIT_NOFILE, &low), 0);
	while (held_cnt < TN_ARRAY_LEN(held) && (held[held_cnt] = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0)
		held_cnt++;
	while (room-- > 0)
		close(held[--held_cnt]);
}

static void let_go(void)
{
	while (held_cnt > 0)
		close(held[--held_cnt]);
	CU_ASSERT_EQUAL_FATAL(setrlimit(RLIMIT_NOFILE, &held_limit), 0);
}

/* A client is told, and what came without its descriptor is answered; both go on when there are some again. */
static void descriptors_run_out(void)
{
	static struct bench b;
	static struct shr_msg m;
	struct shr_msg_hello hello = { .abi_major = SHR_ABI_MAJOR };
	int a, c, d, mem = memfd_of(4096, true);

	bench_start(&b, 1, NULL);
	a = app_attach(&b);
	use_up(1); /* for our own end of the next connection */
	c = app_connect(&b);
	CU_ASSERT_EQUAL(app_call(&b, c, SHR_MSG_HELLO, &hello, sizeof hello, -1, &m), TN_LIMIT);
	CU_ASSERT_EQUAL(m.hdr.detail, 256);
	CU_ASSERT_TRUE(turn_until(&b, hung_up(c)));
	CU_ASSERT_TRUE(turn_until(&b, b.ctl.attach.spare.fd >= 0));
	close(c);
	let_go();
	use_up(0);
	struct shr_msg_mem_register reg = { .length = 4096, .rights = SHR_RIGHT_ALL };
	CU_ASSERT_EQUAL(app_call(&b, a, SHR_MSG_MEM_REGISTER, &reg, sizeof reg, mem, &m), TN_LIMIT);
	CU_ASSERT_EQUAL(m.hdr.detail, 256);
	let_go();
	CU_ASSERT_TRUE(app_register(&b, a, mem, 4096, SHR_RIGHT_ALL) != 0);
	d = app_attach(&b);
	CU_ASSERT_EQUAL(b.ctl.attach.attached_cnt, 2);
	bench_stop(&b);
	close(a), close(d), close(mem);
}

/* Silent connections neither fill the table nor keep those out that speak. */
static void silent_crowd(void)
{
	static struct bench b;
	int crowd[120], a;

	bench_start(&b, 1, NULL);
	for (unsigned i = 0; i < TN_ARRAY_LEN(crowd); i++)
		crowd[i] = app_connect(&b);
	CU_ASSERT_TRUE(b.ctl.attach.refused_cnt >= 80);
	CU_ASSERT_TRUE(b.ctl.attach.new_cnt < 40);
	a = app_attach(&b);
	CU_ASSERT_EQUAL(b.ctl.attach.attached_cnt, 1);
	bench_stop(&b);
	for (unsigned i = 0; i < TN_ARRAY_LEN(crowd); i++)
		close(crowd[i]);
	close(a);
}

static void queue_pairs_go_to_the_least_loaded_worker(void)
{
	static struct bench b;
	static struct shr_msg m;
	struct shr_msg_qp_create qp = { .sq_entries = 8 };
	struct shr_msg_id id = { 0 };
	int sock;

	bench_start(&b, 2, NULL);
	sock = app_attach(&b);
	for (int i = 0; i < 4; i++) {
		CU_ASSERT_EQUAL_FATAL(app_call(&b, sock, SHR_MSG_QP_CREATE, &qp, sizeof qp, -1, &m), TN_OK);
		const struct shr_msg_qp_create_reply *r = shr_msg_body_ro(&m);
		if (r->worker == 0)
			id.id = r->id;
		shr_msg_close_fds(&m);
	}
	CU_ASSERT_EQUAL(b.ctl.crew.members[0].qp_cnt, 2);
	CU_ASSERT_EQUAL(b.ctl.crew.members[1].qp_cnt, 2);
	CU_ASSERT_EQUAL(app_call(&b, sock, SHR_MSG_QP_DESTROY, &id, sizeof id, -1, &m), TN_OK);
	CU_ASSERT_EQUAL(app_call(&b, sock, SHR_MSG_QP_DESTROY, &id, sizeof id, -1, &m), TN_STALE);
	CU_ASSERT_EQUAL(app_call(&b, sock, SHR_MSG_QP_CREATE, &qp, sizeof qp, -1, &m), TN_OK);
	CU_ASSERT_EQUAL(((const struct shr_msg_qp_create_reply *)shr_msg_body_ro(&m))->worker, 0);
	shr_msg_close_fds(&m);
	close(sock);
	CU_ASSERT_TRUE(turn_until(&b, b.ctl.qps.used == 0));
	bench_stop(&b);
}

static void another_clients_handles_are_stale(void)
{
	static struct bench b;
	static struct shr_msg m;
	int a, c, fd = memfd_of(65536, true);
	struct shr_msg_id id;

	bench_start(&b, 1, NULL);
	a = app_attach(&b);
	c = app_attach(&b);
	id.id = app_register(&b, a, fd, 65536, SHR_RIGHT_ALL);
	CU_ASSERT_EQUAL(app_call(&b, c, SHR_MSG_MEM_UNREGISTER, &id, sizeof id, -1, &m), TN_STALE);
	CU_ASSERT_EQUAL(app_publish(&b, c, "mine", id.id, 65536, SHR_ACCESS_SAME_UID, NULL), TN_STALE);
	bench_stop(&b);
	close(a), close(c), close(fd);
}

/* Garbage of every length, after HELLO and before: only the sender goes. */
static void garbage_ends_one_client(void)
{
	static struct bench b;
	static struct shr_msg m;
	struct shr_msg_qp_create qp = { .sq_entries = 8 };
	uint8_t junk[512];
	struct tn_rand rand;
	int good;

	bench_start(&b, 1, NULL);
	good = app_attach(&b);
	tn_rand_seed(&rand, 7);
	for (int round = 0; round < 200; round++) {
		int bad = round % 2 == 0 ? app_attach(&b) : app_connect(&b);
		size_t len = 1 + tn_rand_below(&rand, sizeof junk);
		for (size_t i = 0; i < len; i++)
			junk[i] = (uint8_t)tn_rand_u64(&rand);
		if (round % 3 == 0 && len >= sizeof(struct shr_msg_hdr)) { /* a plausible header */
			struct shr_msg_hdr h = { .magic = SHR_MSG_MAGIC, .type = (uint16_t)(1 + tn_rand_below(&rand, 12)),
			                         .length = (uint32_t)len };
			memcpy(junk, &h, sizeof h);
		}
		(void)!send(bad, junk, len, MSG_NOSIGNAL);
		bench_turns(&b, 2);
		close(bad);
	}
	CU_ASSERT_TRUE(turn_until(&b, b.ctl.attach.clients.used == 1));
	CU_ASSERT_TRUE(b.ctl.attach.broken_cnt > 50);
	CU_ASSERT_EQUAL(app_call(&b, good, SHR_MSG_QP_CREATE, &qp, sizeof qp, -1, &m), TN_OK);
	shr_msg_close_fds(&m);
	bench_stop(&b);
	close(good);
}

static void death_withdraws_quiesces_then_unmaps(void)
{
	static struct bench b;
	int sock, fd = memfd_of(65536, true);
	uint64_t mem;
	unsigned at_seg_del = 0, at_client_del = 0;

	bench_start(&b, 2, NULL);
	sock = app_attach(&b);
	mem = app_register(&b, sock, fd, 65536, SHR_RIGHT_ALL);
	CU_ASSERT_EQUAL(app_publish(&b, sock, "kv", mem, 65536, SHR_ACCESS_SAME_UID, NULL), TN_OK);
	fake_hold(true);
	close(sock);
	CU_ASSERT_TRUE(turn_until(&b, fake_count(1, DP_CMD_CLIENT_DEL) == 1));
	for (unsigned i = 0; i < fake_posted(0)->cnt; i++) {
		at_seg_del = fake_posted(0)->cmd[i].kind == DP_CMD_SEG_DEL ? i : at_seg_del;
		at_client_del = fake_posted(0)->cmd[i].kind == DP_CMD_CLIENT_DEL ? i : at_client_del;
	}
	CU_ASSERT_TRUE(at_seg_del > 0 && at_seg_del < at_client_del);
	bench_turns(&b, 20);
	CU_ASSERT_EQUAL(b.ctl.memory_bytes, 65536); /* still mapped: nobody said that it is quiesced */
	CU_ASSERT_EQUAL(b.ctl.attach.clients.used, 1);
	CU_ASSERT_PTR_NULL(dp_names_find(&b.ctl.segment_names, "kv", NULL)); /* but not to be found any more */
	fake_hold(false);
	CU_ASSERT_TRUE(turn_until(&b, b.ctl.attach.clients.used == 0));
	CU_ASSERT_EQUAL(b.ctl.memory_bytes, 0);
	CU_ASSERT_EQUAL(b.ctl.segments.used, 0);
	bench_stop(&b);
	close(fd);
}

static void bye_is_answered_when_quiesced(void)
{
	static struct bench b;
	static struct shr_msg m;
	int sock, fd = memfd_of(65536, true);

	bench_start(&b, 1, NULL);
	sock = app_attach(&b);
	CU_ASSERT_NOT_EQUAL(app_register(&b, sock, fd, 65536, SHR_RIGHT_ALL), 0);
	CU_ASSERT_EQUAL(app_call(&b, sock, SHR_MSG_BYE, NULL, 0, -1, &m), TN_OK);
	CU_ASSERT_EQUAL(b.ctl.memory_bytes, 0);
	CU_ASSERT_TRUE(turn_until(&b, hung_up(sock)));
	CU_ASSERT_TRUE(turn_until(&b, b.ctl.attach.clients.used == 0));
	bench_stop(&b);
	close(sock), close(fd);
}

static void worker_can_drop_a_client(void)
{
	static struct bench b;
	int a, c;

	bench_start(&b, 1, NULL);
	a = app_attach(&b);
	c = app_attach(&b);
	struct dp_app *first = tn_list_first(&b.ctl.attach.list, struct dp_app, link);
	struct dp_evt evt = { .kind = DP_EVT_CLIENT_BROKEN, .num = first->id };
	fake_emit(0, &evt);
	CU_ASSERT_TRUE(turn_until(&b, hung_up(a)));
	CU_ASSERT_TRUE(turn_until(&b, b.ctl.attach.clients.used == 1));
	fake_emit(0, &evt); /* late: it is gone */
	fake_emit(0, &(struct dp_evt){ .kind = DP_EVT_ACK, .id = 123456789 });
	fake_emit(0, &(struct dp_evt){ .kind = 250 });
	bench_turns(&b, 5);
	CU_ASSERT_EQUAL(b.ctl.attach.clients.used, 1);
	CU_ASSERT_FALSE(hung_up(c));
	bench_stop(&b);
	close(a), close(c);
}

/* Asks without reading: it is paused, not served without bound; once it reads, every answer comes, in order. */
static void unread_answers_pause_the_asker(void)
{
	static struct bench b;
	static struct shr_msg m;
	struct shr_msg_id id = { .id = 77 };
	unsigned sent = 0, got = 0;
	int sock;

	bench_start(&b, 1, NULL);
	sock = app_attach(&b);
	for (int stalls = 0; sent < 20000 && stalls < 50;) {
		memcpy(shr_msg_begin(&m, SHR_MSG_CLOSE, sent + 1, sizeof id), &id, sizeof id);
		if (shr_msg_send(sock, &m) == TN_OK) {
			sent++;
			stalls = 0;
		} else {
			stalls++;
			bench_turns(&b, 1);
		}
	}
	CU_ASSERT_TRUE(sent < 20000); /* back-pressure reached the asker */
	uint64_t until_ns = tn_now_ns() + 5 * TN_NS_PER_S;
	while (got < sent && tn_now_ns() < until_ns) {
		if (shr_msg_recv(sock, SHR_FROM_DATAPLANE, &m) != TN_OK) {
			bench_turns(&b, 1);
			continue;
		}
		got++;
		CU_ASSERT_EQUAL_FATAL(m.hdr.correlation, got);
		CU_ASSERT_EQUAL_FATAL(m.hdr.status, TN_STALE);
	}
	CU_ASSERT_EQUAL(got, sent);
	bench_stop(&b);
	close(sock);
}

static void a_full_mailbox_delays_and_congestion_refuses(void)
{
	static struct bench b;
	static struct shr_msg m;
	struct shr_msg_qp_create qp = { .sq_entries = 8 };
	int sock, fd = memfd_of(65536, true);

	bench_start(&b, 1, NULL);
	sock = app_attach(&b);
	fake_mailbox_room(0);
	memcpy(shr_msg_begin(&m, SHR_MSG_QP_CREATE, 5, sizeof qp), &qp, sizeof qp);
	CU_ASSERT_EQUAL(shr_msg_send(sock, &m), TN_OK);
	bench_turns(&b, 10);
	CU_ASSERT_EQUAL(b.ctl.crew.members[0].backlog_cnt, 1);
	fake_mailbox_room(UINT32_MAX);
	CU_ASSERT_EQUAL(app_recv(&b, sock, &m), TN_OK);
	CU_ASSERT_EQUAL(m.hdr.status, TN_OK);
	shr_msg_close_fds(&m);
	fake_mailbox_room(0);
	for (int i = 0; i < 5000; i++)
		(void)dp_crew_post(&b.ctl.crew, 0, (struct dp_cmd){ .kind = DP_CMD_TUNE, .fd = -1 });
	CU_ASSERT_EQUAL(app_call(&b, sock, SHR_MSG_QP_CREATE, &qp, sizeof qp, -1, &m), TN_AGAIN);
	fake_mailbox_room(UINT32_MAX);
	fake_posted(0)->cnt = 0;
	bench_turns(&b, 2);
	CU_ASSERT_EQUAL(b.ctl.crew.members[0].backlog_cnt, 0);
	CU_ASSERT_EQUAL(app_call(&b, sock, SHR_MSG_QP_CREATE, &qp, sizeof qp, -1, &m), TN_OK);
	shr_msg_close_fds(&m);
	bench_stop(&b);
	close(sock), close(fd);
}

/* One request of an application in another process. */
static bool far_call(int sock, uint16_t type, const void *body, uint32_t body_bytes, int fd, struct shr_msg *m)
{
	uint64_t until_ns = tn_now_ns() + 5 * TN_NS_PER_S;

	memcpy(shr_msg_begin(m, type, type, body_bytes), body, body_bytes);
	if (fd >= 0)
		m->fds[m->fd_cnt++] = fd;
	return shr_msg_send_until(sock, m, until_ns) == TN_OK &&
	       shr_msg_recv_until(sock, SHR_FROM_DATAPLANE, m, until_ns) == TN_OK && m->hdr.status == TN_OK;
}

/* Publishes "kv", leaves its socket to a child, and dies. The child says 'x' into the pipe when the socket hangs up. */
static void publish_and_die(struct bench *b, int to_parent)
{
	static struct shr_msg m;
	struct shr_msg_hello hello = { .abi_major = SHR_ABI_MAJOR, .abi_minor = SHR_ABI_MINOR, .app = "mother" };
	struct shr_msg_mem_register reg = { .length = 65536, .rights = SHR_RIGHT_ALL };
	struct { struct shr_msg_publish fixed; struct shr_msg_buffer buffer; } pub;
	char path[128];
	int sock = -1;

	(void)snprintf(path, sizeof path, "%s/" DP_ATTACH_SOCKET, b->dir);
	if (shr_attach_connect(path, tn_now_ns() + 5 * TN_NS_PER_S, &sock) != TN_OK ||
	    !far_call(sock, SHR_MSG_HELLO, &hello, sizeof hello, -1, &m) ||
	    !far_call(sock, SHR_MSG_MEM_REGISTER, &reg, sizeof reg, memfd_of(65536, true), &m))
		_exit(1);
	memset(&pub, 0, sizeof pub);
	(void)snprintf(pub.fixed.name, sizeof pub.fixed.name, "kv");
	pub.fixed.publication.b[0] = 1;
	pub.fixed.access = SHR_ACCESS_SAME_UID;
	pub.fixed.buffer_cnt = 1;
	pub.buffer = (struct shr_msg_buffer){ .memory = ((const struct shr_msg_id *)shr_msg_body_ro(&m))->id,
	                                      .length = 65536, .rights = SHR_RIGHT_REMOTE_READ };
	if (!far_call(sock, SHR_MSG_PUBLISH, &pub, sizeof pub, -1, &m))
		_exit(2);
	if (fork() != 0)
		_exit(0);
	struct pollfd p = { .fd = sock };
	if (poll(&p, 1, 10000) == 1 && (p.revents & POLLHUP) != 0)
		(void)!write(to_parent, "x", 1);
	_exit(0);
}

static bool has_ended(pid_t pid)
{
	siginfo_t info = { 0 };

	return waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == pid;
}

/* A forked child that lives on holds the socket of the dead one open. */
static void death_counts_while_a_child_holds_the_socket(void)
{
	static struct bench b;
	int end[2], status = -1;
	char said = 0;

	bench_start(&b, 1, NULL);
	CU_ASSERT_EQUAL_FATAL(pipe(end), 0);
	pid_t pid = fork();
	if (pid == 0)
		publish_and_die(&b, end[1]);
	close(end[1]);
	CU_ASSERT_TRUE(turn_until(&b, dp_names_find(&b.ctl.segment_names, "kv", NULL) != NULL || has_ended(pid)));
	CU_ASSERT_TRUE(turn_until(&b, has_ended(pid)));
	CU_ASSERT_EQUAL(waitpid(pid, &status, 0), pid);
	CU_ASSERT_EQUAL(status, 0);
	CU_ASSERT_TRUE(turn_until(&b, b.ctl.attach.clients.used == 0));
	CU_ASSERT_PTR_NULL(dp_names_find(&b.ctl.segment_names, "kv", NULL));
	CU_ASSERT_EQUAL(b.ctl.memory_bytes, 0);
	struct pollfd p = { .fd = end[0], .events = POLLIN };
	CU_ASSERT_EQUAL(poll(&p, 1, 10000), 1);
	CU_ASSERT_EQUAL(read(end[0], &said, 1), 1); /* the child lived all the time, and learnt it */
	CU_ASSERT_EQUAL(said, 'x');
	bench_stop(&b);
	close(end[0]);
}

TN_TEST_MAIN("attach", { "HELLO comes first, of the right version, in time", hello_first },
	{ "policies have numbers", policies_have_numbers },
             { "limits say their number", limits_say_their_number },
             { "descriptors run out", descriptors_run_out },
             { "a silent crowd", silent_crowd },
             { "queue pairs go to the least loaded worker", queue_pairs_go_to_the_least_loaded_worker },
             { "another client's handles are stale", another_clients_handles_are_stale },
             { "garbage ends one client", garbage_ends_one_client },
             { "death withdraws, quiesces, then unmaps", death_withdraws_quiesces_then_unmaps },
             { "death counts while a child holds the socket", death_counts_while_a_child_holds_the_socket },
             { "BYE is answered when all is quiesced", bye_is_answered_when_quiesced },
             { "a worker can drop a client", worker_can_drop_a_client },
             { "unread answers pause the asker", unread_answers_pause_the_asker },
             { "a full mailbox delays, congestion refuses", a_full_mailbox_delays_and_congestion_refuses })
