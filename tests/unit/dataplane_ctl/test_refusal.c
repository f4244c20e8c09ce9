/* SPDX-License-Identifier: Apache-2.0
 * What a worker refuses, or cannot be told for want of memory, is never taken for done: who asked is answered with the
 * reason, and nobody keeps half of an object. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "dataplane/segment/local.h"
#include "dataplane/segment/map.h"
#include "dataplane/segment/remote.h"
#include "tests/unit/cu.h"
#include "tests/unit/dataplane_ctl/bench.h"

#define BYTES 65536u

static struct bench b;
static struct shr_msg m;
static int sock, fd;

static void begin(unsigned worker_cnt)
{
	bench_start(&b, worker_cnt, NULL);
	sock = app_attach(&b);
	fd = memfd_of(BYTES, true);
}

static void end(void)
{
	close(sock);
	CU_ASSERT_TRUE(turn_until(&b, b.ctl.attach.clients.used == 0));
	CU_ASSERT_EQUAL(b.ctl.memories.used + b.ctl.segments.used + b.ctl.remotes.used + b.ctl.qps.used, 0);
	CU_ASSERT_EQUAL(b.ctl.memory_bytes, 0);
	bench_stop(&b);
	close(fd);
}

static void ask(uint16_t type, const void *body, uint32_t bytes, int with_fd)
{
	memcpy(shr_msg_begin(&m, type, 1, bytes), body, bytes);
	if (with_fd >= 0)
		m.fds[m.fd_cnt++] = with_fd;
	CU_ASSERT_EQUAL(shr_msg_send(sock, &m), TN_OK);
}

static bool unanswered(void)
{
	bench_turns(&b, 20);
	return shr_msg_recv(sock, SHR_FROM_DATAPLANE, &m) == TN_AGAIN;
}

static tn_status answer(void)
{
	CU_ASSERT_EQUAL(app_recv(&b, sock, &m), TN_OK);
	shr_msg_close_fds(&m);
	return m.hdr.status;
}

static tn_status call_id(uint16_t type, uint64_t id)
{
	struct shr_msg_id req = { .id = id };
	return app_call(&b, sock, type, &req, sizeof req, -1, &m);
}

/* In a build that records numbers. */
static bool counted(struct tn_counter_at at, uint64_t n)
{
	return !TENT_METRICS || tn_load_relaxed64(&b.ctl.metrics.cells[at.cell]) == n;
}
#define OPERATIONS(op, result) TN_C3(MEMORY_OPERATIONS_TOTAL, TN_TRANSPORT_SHM, op, result)

static void a_refused_queue_pair_is_no_queue_pair(void)
{
	struct shr_msg_qp_create qp = { .sq_entries = 8 };

	begin(2);
	fake_refuse(0, DP_CMD_QP_ADD, TN_LIMIT);
	fake_refuse(1, DP_CMD_QP_ADD, TN_LIMIT);
	CU_ASSERT_EQUAL(app_call(&b, sock, SHR_MSG_QP_CREATE, &qp, sizeof qp, -1, &m), TN_LIMIT);
	CU_ASSERT_EQUAL(m.fd_cnt, 0);
	CU_ASSERT_EQUAL(b.ctl.qps.used, 0);
	CU_ASSERT_EQUAL(b.ctl.crew.members[0].qp_cnt + b.ctl.crew.members[1].qp_cnt, 0);
	fake_refuse(0, DP_CMD_QP_ADD, TN_OK);
	fake_refuse(1, DP_CMD_QP_ADD, TN_OK);
	CU_ASSERT_EQUAL(app_call(&b, sock, SHR_MSG_QP_CREATE, &qp, sizeof qp, -1, &m), TN_OK);
	shr_msg_close_fds(&m);
	end();
}

/* The application died while the refusal was on its way. */
static void a_refused_queue_pair_of_a_dead_client_goes(void)
{
	struct shr_msg_qp_create qp = { .sq_entries = 8 };

	begin(1);
	fake_refuse(0, DP_CMD_QP_ADD, TN_LIMIT);
	fake_hold(true);
	ask(SHR_MSG_QP_CREATE, &qp, sizeof qp, -1);
	bench_turns(&b, 5);
	CU_ASSERT_EQUAL(b.ctl.qps.used, 1);
	close(sock);
	bench_turns(&b, 5);
	fake_hold(false);
	CU_ASSERT_TRUE(turn_until(&b, b.ctl.attach.clients.used == 0));
	sock = app_attach(&b);
	end();
}

static void a_memory_refused_by_one_is_taken_from_the_others(void)
{
	struct shr_msg_mem_register req = { .length = BYTES, .rights = SHR_RIGHT_ALL };

	begin(3);
	fake_refuse(1, DP_CMD_MEM_ADD, TN_LIMIT);
	fake_hold(true);
	ask(SHR_MSG_MEM_REGISTER, &req, sizeof req, fd);
	CU_ASSERT_TRUE(turn_until(&b, fake_count(2, DP_CMD_MEM_ADD) == 1));
	fake_hold(false);
	fake_hold(true);
	/* Mapped, and not answered, until those that know it forgot it. */
	CU_ASSERT_TRUE(unanswered());
	CU_ASSERT_EQUAL(b.ctl.memories.used, 1);
	for (unsigned i = 0; i < 3; i++)
		CU_ASSERT_EQUAL(fake_count(i, DP_CMD_MEM_DEL), i != 1);
	fake_hold(false);
	CU_ASSERT_EQUAL(answer(), TN_LIMIT);
	CU_ASSERT_EQUAL(m.hdr.type, SHR_MSG_MEM_REGISTER | SHR_MSG_REPLY);
	CU_ASSERT_EQUAL(b.ctl.memories.used, 0);
	CU_ASSERT_EQUAL(b.ctl.memory_bytes, 0);
	CU_ASSERT_TRUE(counted(OPERATIONS(TN_MEMOP_REGISTER, TN_RESULT_FAILURE), 1));
	CU_ASSERT_TRUE(counted(OPERATIONS(TN_MEMOP_REGISTER, TN_RESULT_SUCCESS), 0));
	CU_ASSERT_TRUE(counted(OPERATIONS(TN_MEMOP_UNREGISTER, TN_RESULT_SUCCESS), 0));
	fake_refuse(1, DP_CMD_MEM_ADD, TN_OK);
	uint64_t again = app_register(&b, sock, fd, BYTES, SHR_RIGHT_ALL);
	CU_ASSERT_NOT_EQUAL(again, 0);
	CU_ASSERT_EQUAL(call_id(SHR_MSG_MEM_UNREGISTER, again), TN_OK);
	end();
}

static void a_refused_memory_of_a_dead_client_goes(void)
{
	struct shr_msg_mem_register req = { .length = BYTES, .rights = SHR_RIGHT_ALL };

	begin(2);
	fake_refuse(1, DP_CMD_MEM_ADD, TN_LIMIT);
	for (unsigned after_del = 0; after_del < 2; after_del++) {
		unsigned adds = fake_count(1, DP_CMD_MEM_ADD);
		fake_hold(true);
		ask(SHR_MSG_MEM_REGISTER, &req, sizeof req, fd);
		CU_ASSERT_TRUE(turn_until(&b, fake_count(1, DP_CMD_MEM_ADD) > adds));
		if (after_del) {
			fake_hold(false);
			fake_hold(true);
			CU_ASSERT_TRUE(turn_until(&b, fake_count(0, DP_CMD_MEM_DEL) == 1));
		}
		close(sock);
		bench_turns(&b, 5);
		fake_hold(false);
		CU_ASSERT_TRUE(turn_until(&b, b.ctl.attach.clients.used == 0));
		CU_ASSERT_EQUAL(b.ctl.memories.used, 0);
		sock = app_attach(&b);
	}
	end();
}

static void a_segment_refused_by_one_is_taken_from_the_others(void)
{
	struct shr_msg_open_reply o;
	uint64_t id = 0;

	begin(2);
	uint64_t mem = app_register(&b, sock, fd, BYTES, SHR_RIGHT_ALL);
	fake_refuse(1, DP_CMD_SEG_ADD, TN_NO_MEMORY);
	CU_ASSERT_EQUAL(app_publish(&b, sock, "kv", mem, BYTES, SHR_ACCESS_SAME_UID, &id), TN_NO_MEMORY);
	CU_ASSERT_EQUAL(fake_count(0, DP_CMD_SEG_DEL), 1);
	CU_ASSERT_EQUAL(fake_count(1, DP_CMD_SEG_DEL), 0);
	CU_ASSERT_EQUAL(b.ctl.segments.used, 0);
	CU_ASSERT_EQUAL(app_open(&b, sock, "kv", &o), TN_NOT_FOUND);
	fake_refuse(1, DP_CMD_SEG_ADD, TN_OK);
	CU_ASSERT_EQUAL(app_publish(&b, sock, "kv", mem, BYTES, SHR_ACCESS_SAME_UID, &id), TN_OK);
	CU_ASSERT_EQUAL(call_id(SHR_MSG_WITHDRAW, id), TN_OK);
	CU_ASSERT_EQUAL(call_id(SHR_MSG_MEM_UNREGISTER, mem), TN_OK);
	end();
}

static void an_open_refused_by_one_is_taken_from_the_others(void)
{
	struct shr_msg_open_reply o;

	begin(2);
	uint64_t mem = app_register(&b, sock, fd, BYTES, SHR_RIGHT_ALL);
	CU_ASSERT_EQUAL(app_publish(&b, sock, "kv", mem, BYTES, SHR_ACCESS_SAME_UID, NULL), TN_OK);
	fake_refuse(0, DP_CMD_REMOTE_SET, TN_LIMIT);
	CU_ASSERT_EQUAL(app_open(&b, sock, "kv", &o), TN_LIMIT);
	CU_ASSERT_EQUAL(fake_count(1, DP_CMD_REMOTE_DEL), 1);
	CU_ASSERT_EQUAL(b.ctl.remotes.used, 0);
	fake_refuse(0, DP_CMD_REMOTE_SET, TN_OK);
	CU_ASSERT_EQUAL(app_open(&b, sock, "kv", &o), TN_OK);
	CU_ASSERT_EQUAL(call_id(SHR_MSG_CLOSE, o.id), TN_OK);
	end();
}

/* The worker that refused goes on with the version before: it lives until all forgot the handle. */
static void a_newer_version_refused_by_one_ends_the_handle(void)
{
	struct shr_msg_open_reply o;
	uint64_t id;

	begin(2);
	uint64_t mem = app_register(&b, sock, fd, BYTES, SHR_RIGHT_ALL);
	CU_ASSERT_EQUAL(app_publish(&b, sock, "kv", mem, BYTES, SHR_ACCESS_SAME_UID, &id), TN_OK);
	CU_ASSERT_EQUAL_FATAL(app_open(&b, sock, "kv", &o), TN_OK);
	const struct dp_remote *first = fake_last(1, DP_CMD_REMOTE_SET)->ptr;
	CU_ASSERT_EQUAL(call_id(SHR_MSG_WITHDRAW, id), TN_OK);
	fake_refuse(1, DP_CMD_REMOTE_SET, TN_LIMIT);
	CU_ASSERT_EQUAL(app_publish(&b, sock, "kv", mem, BYTES, SHR_ACCESS_SAME_UID, NULL), TN_OK);
	fake_hold(true);
	CU_ASSERT_TRUE(turn_until(&b, fake_count(1, DP_CMD_REMOTE_DEL) == 1));
	CU_ASSERT_EQUAL(first->bytes, BYTES); /* the address sanitizer knows whether it was freed */
	struct shr_msg_id close_id = { .id = o.id }; /* waits for the same end */
	memcpy(shr_msg_begin(&m, SHR_MSG_CLOSE, 77, sizeof close_id), &close_id, sizeof close_id);
	CU_ASSERT_EQUAL(shr_msg_send(sock, &m), TN_OK);
	bench_turns(&b, 5);
	CU_ASSERT_EQUAL(shr_msg_recv(sock, SHR_FROM_DATAPLANE, &m), TN_AGAIN);
	fake_hold(false);
	CU_ASSERT_EQUAL(app_recv(&b, sock, &m), TN_OK);
	CU_ASSERT_EQUAL(m.hdr.status, TN_OK);
	CU_ASSERT_TRUE(turn_until(&b, b.ctl.remotes.used == 0));
	end();
}

/* ---- no memory for the acknowledgement: what a command cannot be kept for ---- */

static struct dp_flight nobody;
static tn_handle taken[4096];
static uint32_t taken_cnt, taken_max;

/* All ids but `left` are in use until memory_back(). */
static void memory_short(uint32_t left)
{
	taken_max = b.ctl.crew.acks.max;
	b.ctl.crew.acks.max = b.ctl.crew.acks.cap;
	while (dp_handles_add(&b.ctl.crew.acks, &nobody, &taken[taken_cnt]) == TN_OK)
		taken_cnt++;
	for (; left > 0; left--)
		(void)dp_handles_remove(&b.ctl.crew.acks, taken[--taken_cnt]);
}

static void memory_back(void)
{
	b.ctl.crew.acks.max = taken_max;
	while (taken_cnt > 0)
		(void)dp_handles_remove(&b.ctl.crew.acks, taken[--taken_cnt]);
}

static void without_memory_what_adds_is_refused(void)
{
	struct shr_msg_mem_register req = { .length = BYTES, .rights = SHR_RIGHT_ALL };
	struct shr_msg_qp_create qp = { .sq_entries = 8 };
	int other = memfd_of(BYTES, true);

	begin(2);
	uint64_t mem = app_register(&b, sock, fd, BYTES, SHR_RIGHT_ALL);
	memory_short(0);
	CU_ASSERT_EQUAL(app_call(&b, sock, SHR_MSG_QP_CREATE, &qp, sizeof qp, -1, &m), TN_NO_MEMORY);
	CU_ASSERT_EQUAL(app_publish(&b, sock, "kv", mem, BYTES, SHR_ACCESS_SAME_UID, NULL), TN_NO_MEMORY);
	CU_ASSERT_EQUAL(app_call(&b, sock, SHR_MSG_MEM_REGISTER, &req, sizeof req, other, &m), TN_NO_MEMORY);
	CU_ASSERT_EQUAL(b.ctl.qps.used + b.ctl.segments.used, 0);
	CU_ASSERT_EQUAL(b.ctl.memories.used, 1);
	memory_back();
	CU_ASSERT_EQUAL(app_publish(&b, sock, "kv", mem, BYTES, SHR_ACCESS_SAME_UID, NULL), TN_OK);
	close(other);
	end();
}

/* Room for one of two workers: the one that learned of it is the one that forgets it. */
static void half_an_addition_is_undone(void)
{
	begin(2);
	uint64_t mem = app_register(&b, sock, fd, BYTES / 2, SHR_RIGHT_ALL);
	memory_short(1);
	struct shr_msg_mem_register req = { .offset = BYTES / 2, .length = BYTES / 2, .rights = SHR_RIGHT_ALL };
	CU_ASSERT_EQUAL(app_call(&b, sock, SHR_MSG_MEM_REGISTER, &req, sizeof req, fd, &m), TN_NO_MEMORY);
	CU_ASSERT_EQUAL(fake_count(0, DP_CMD_MEM_ADD), 2);
	CU_ASSERT_EQUAL(fake_count(0, DP_CMD_MEM_DEL), 1);
	CU_ASSERT_EQUAL(fake_count(1, DP_CMD_MEM_ADD), 1);
	CU_ASSERT_EQUAL(fake_count(1, DP_CMD_MEM_DEL), 0);
	CU_ASSERT_EQUAL(app_publish(&b, sock, "kv", mem, 4096, SHR_ACCESS_SAME_UID, NULL), TN_NO_MEMORY);
	CU_ASSERT_EQUAL(fake_count(0, DP_CMD_SEG_DEL), 1);
	CU_ASSERT_EQUAL(fake_count(1, DP_CMD_SEG_ADD), 0);
	CU_ASSERT_EQUAL(b.ctl.memories.used, 1);
	CU_ASSERT_EQUAL(b.ctl.segments.used, 0);
	memory_back();
	end();
}

/* Nothing is unmapped before every worker was told, and what waits for it is answered when there is memory again. */
static void without_memory_what_removes_is_late(void)
{
	struct shr_msg_qp_create qp = { .sq_entries = 8 };
	int other;

	begin(2);
	other = app_attach(&b);
	struct shr_msg_id mem = { .id = app_register(&b, sock, fd, BYTES, SHR_RIGHT_ALL) };
	memory_short(1);
	ask(SHR_MSG_MEM_UNREGISTER, &mem, sizeof mem, -1);
	CU_ASSERT_TRUE(turn_until(&b, fake_count(0, DP_CMD_MEM_DEL) == 1));
	CU_ASSERT_TRUE(turn_until(&b, fake_count(1, DP_CMD_MEM_DEL) == 1)); /* with the room that the first one left */
	CU_ASSERT_EQUAL(answer(), TN_OK);
	memory_back();
	mem.id = app_register(&b, sock, fd, BYTES, SHR_RIGHT_ALL);
	memory_short(0);
	ask(SHR_MSG_MEM_UNREGISTER, &mem, sizeof mem, -1);
	CU_ASSERT_TRUE(unanswered());
	CU_ASSERT_EQUAL(b.ctl.memories.used, 1);
	CU_ASSERT_EQUAL(app_call(&b, other, SHR_MSG_QP_CREATE, &qp, sizeof qp, -1, &m), TN_AGAIN);
	close(other);
	bench_turns(&b, 20);
	CU_ASSERT_EQUAL(b.ctl.attach.clients.used, 2);
	memory_back();
	CU_ASSERT_EQUAL(answer(), TN_OK);
	CU_ASSERT_TRUE(turn_until(&b, b.ctl.attach.clients.used == 1));
	CU_ASSERT_EQUAL(fake_count(0, DP_CMD_CLIENT_DEL), 1);
	CU_ASSERT_EQUAL(fake_count(1, DP_CMD_CLIENT_DEL), 1);
	end();
}

static unsigned done_cnt;
static tn_status done_status;

static void note_done(struct dp_flight *f)
{
	done_cnt++;
	done_status = f->status;
}

/* One that is owed holds up those behind it, and a newer command about the same object takes its place. */
static void order_holds_without_memory(void)
{
	struct dp_flight first = { .done = note_done }, second = { .done = note_done };
	struct dp_crew *crew = &b.ctl.crew;
	struct dp_cmd cmd = { .kind = DP_CMD_REMOTE_SET, .fd = -1, .num = 1 };

	begin(2);
	dp_crew_broadcast(crew, cmd, &first);
	CU_ASSERT_TRUE(turn_until(&b, first.waiting == 0));
	memory_short(0);
	done_cnt = 0;
	cmd.num = 2;
	dp_crew_broadcast(crew, cmd, &first);
	memory_back();
	cmd.num = 3;
	dp_crew_send(crew, 1, cmd, &second);
	CU_ASSERT_FALSE(dp_crew_post(crew, 1, (struct dp_cmd){ .kind = DP_CMD_TUNE, .fd = -1 }));
	CU_ASSERT_TRUE(dp_crew_congested(crew));
	memory_short(0);
	cmd.kind = DP_CMD_REMOTE_DEL;
	cmd.num = 4;
	dp_crew_broadcast(crew, cmd, &first);
	CU_ASSERT_EQUAL(first.waiting, 2);
	CU_ASSERT_EQUAL(done_cnt, 0);
	memory_back();
	CU_ASSERT_TRUE(turn_until(&b, done_cnt == 2));
	CU_ASSERT_EQUAL(done_status, TN_OK);
	CU_ASSERT_FALSE(dp_crew_congested(crew));
	for (unsigned i = 0; i < 2; i++) {
		CU_ASSERT_EQUAL(fake_last(i, DP_CMD_REMOTE_DEL)->num, 4);
		CU_ASSERT_EQUAL(fake_count(i, DP_CMD_REMOTE_SET), 1 + i);
	}
	const struct fake_cmds *posted = fake_posted(1);
	CU_ASSERT_EQUAL(posted->cmd[posted->cnt - 2].num, 4);
	CU_ASSERT_EQUAL(posted->cmd[posted->cnt - 1].num, 3);
	end();
}

/* Who sent the notice waits for it, however long. */
static void a_verdict_is_late_but_never_lost(void)
{
	struct dp_flight ahead = { .done = note_done };
	uint64_t id = 0;

	begin(2);
	uint64_t mem = app_register(&b, sock, fd, BYTES, SHR_RIGHT_ALL);
	CU_ASSERT_EQUAL(app_publish(&b, sock, "kv", mem, BYTES, SHR_ACCESS_SAME_UID, &id), TN_OK);
	memory_short(0);
	dp_crew_send(&b.ctl.crew, 1, (struct dp_cmd){ .kind = DP_CMD_FENCE, .fd = -1 }, &ahead);
	for (unsigned i = 0; i < 3; i++) {
		struct dp_note_in *note = calloc(1, sizeof *note);
		CU_ASSERT_PTR_NOT_NULL_FATAL(note);
		note->uid = getuid();
		fake_emit(1, &(struct dp_evt){ .kind = DP_EVT_NOTE, .num = 70 + i, .num2 = i < 2 ? id : id + 1, .ptr = note });
	}
	for (unsigned i = 0; i < 2; i++) {
		CU_ASSERT_EQUAL(app_recv(&b, sock, &m), TN_OK);
		CU_ASSERT_EQUAL(m.hdr.type, SHR_MSG_NOTE);
	}
	bench_turns(&b, 5);
	CU_ASSERT_EQUAL(fake_count(1, DP_CMD_NOTE_VERDICT), 0);
	memory_back();
	CU_ASSERT_TRUE(turn_until(&b, fake_count(1, DP_CMD_NOTE_VERDICT) == 3));
	const struct fake_cmds *posted = fake_posted(1);
	for (unsigned i = 0; i < 3 && posted->cnt >= 3; i++) {
		const struct dp_cmd *v = &posted->cmd[posted->cnt - 3 + i];
		CU_ASSERT_EQUAL(v->num, 70 + i);
		CU_ASSERT_EQUAL(v->status, i < 2 ? TN_OK : TN_STALE);
	}
	CU_ASSERT_EQUAL(fake_count(0, DP_CMD_NOTE_VERDICT), 0);
	end();
}

/* One whose key changes twice before a worker could be told: what it is told is about the peer, so lanes of neither old key
 * stay. */
static void an_owed_fence_is_not_forgotten(void)
{
	struct tn_peer_id keys[] = { { { 1 } }, { { 2 } }, { { 3 } } };

	begin(2);
	(void)app_register(&b, sock, fd, BYTES, SHR_RIGHT_ALL);
	CU_ASSERT_EQUAL(dp_peers_list_add(&b.ctl.peers, "x", &keys[0]), TN_OK);
	struct dp_peer_slot *slot = dp_peers_find(&b.ctl.peers, "x");
	memory_short(1); /* the first worker is told at once */
	CU_ASSERT_EQUAL(dp_peers_list_add(&b.ctl.peers, "x", &keys[1]), TN_OK);
	CU_ASSERT_EQUAL(fake_count(0, DP_CMD_FENCE), 1);
	CU_ASSERT_EQUAL_FATAL(fake_count(1, DP_CMD_FENCE), 0);
	CU_ASSERT_EQUAL(dp_peers_list_add(&b.ctl.peers, "x", &keys[2]), TN_OK);
	CU_ASSERT_TRUE(dp_peers_find(&b.ctl.peers, "x") == slot);
	memory_back();
	CU_ASSERT_TRUE(turn_until(&b, slot->shut.waiting == 0));
	CU_ASSERT_EQUAL(fake_count(1, DP_CMD_FENCE), 1);
	CU_ASSERT_EQUAL(fake_last(1, DP_CMD_FENCE)->num, slot->index);
	CU_ASSERT_TRUE(tn_id128_is_zero(&fake_last(1, DP_CMD_FENCE)->session)); /* of no incarnation any more */
	end();
}

TN_TEST_MAIN("refusal", { "a refused queue pair is no queue pair", a_refused_queue_pair_is_no_queue_pair },
             { "a refused queue pair of a dead client goes", a_refused_queue_pair_of_a_dead_client_goes },
             { "a memory refused by one is taken from the others", a_memory_refused_by_one_is_taken_from_the_others },
             { "a refused memory of a dead client goes", a_refused_memory_of_a_dead_client_goes },
             { "a segment refused by one is taken from the others", a_segment_refused_by_one_is_taken_from_the_others },
             { "an open refused by one is taken from the others", an_open_refused_by_one_is_taken_from_the_others },
             { "a newer version refused by one ends the handle", a_newer_version_refused_by_one_ends_the_handle },
             { "without memory what adds is refused", without_memory_what_adds_is_refused },
             { "half an addition is undone", half_an_addition_is_undone },
             { "without memory what removes is late", without_memory_what_removes_is_late },
             { "order holds without memory", order_holds_without_memory },
             { "a verdict is late but never lost", a_verdict_is_late_but_never_lost },
             { "an owed fence is not forgotten", an_owed_fence_is_not_forgotten })
