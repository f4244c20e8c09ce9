/* SPDX-License-Identifier: Apache-2.0
 * The worker as a thread: it sleeps when idle, wakes by doorbell, by command and by timer, loses no wake-up while the
 * application sleeps between requests, and stops. Runs under the thread sanitizer. Every wait has a deadline. */
#include <poll.h>
#include <time.h>

#include "common/clock.h"
#include "tests/unit/dataplane/rig.h"

#define WAIT_MS 5000

/* Wait for the control thread's event fd and take events until `id` is acknowledged. */
static bool wait_ack(struct rig *g, uint64_t id)
{
	uint64_t until = tn_now_ns() + WAIT_MS * RIG_MS;
	while (g->acked != id && tn_now_ns() < until) {
		struct pollfd p = { .fd = dp_worker_event_fd(g->w), .events = POLLIN };
		poll(&p, 1, 100);
		uint64_t sink;
		(void)!read(p.fd, &sink, sizeof sink);
		rig_take_events(g);
	}
	return g->acked == id;
}

static void send_sqe(struct rig *g, const struct shr_sqe_shm *sqe, uint32_t cnt)
{
	rig_submit_on(&g->q, sqe, cnt);
	shr_doorbell_ring_if_armed(&g->q.view.qp->sq_armed.value, g->q.bells[1]);
}

/* The application's wait: arm, fence, look again, sleep on the doorbell. */
static bool wait_cqe(struct rig *g, struct shr_cqe_shm *out)
{
	uint64_t until = tn_now_ns() + WAIT_MS * RIG_MS;
	while (!rig_poll(g, out)) {
		if (tn_now_ns() > until)
			return false;
		tn_a32 *armed = &g->q.view.qp->cq_armed.value;
		shr_doorbell_arm(armed);
		shr_doorbell_arm_fence();
		if (!shr_cq_pending(&g->q.cq)) {
			struct pollfd p = { .fd = g->q.bells[1], .events = POLLIN };
			poll(&p, 1, WAIT_MS);
		}
		shr_doorbell_disarm(armed);
		shr_doorbell_drain(g->q.bells[1]);
	}
	return true;
}

static uint64_t thread_cpu_ns(const struct rig *g)
{
	clockid_t id;
	RIG_FATAL(pthread_getcpuclockid(g->w->thread, &id) == 0);
	return tn_clock_read_ns(id);
}

/* The rig was opened in virtual time; from here on time is real. */
static void go_live(struct rig *g)
{
	g->w->now_ns = 0;
	g->w->loop_ns = 0;
	RIG_FATAL(dp_worker_start(g->w, UINT32_MAX) == TN_OK);
}

static void stop(struct rig *g)
{
	uint64_t id = rig_post(g, (struct dp_cmd){ .kind = DP_CMD_STOP, .fd = -1 });
	CU_ASSERT_TRUE(wait_ack(g, id));
	dp_worker_join(g->w, tn_now_ns() + WAIT_MS * RIG_MS);
	CU_ASSERT_TRUE(g->w->stopped);
	CU_ASSERT_EQUAL(tn_load_relaxed32(&g->w->stats.block->alive), 0);
	g->now = g->w->now_ns;
	rig_close(g); /* stopping twice is fine */
}

static void test_traffic(void)
{
	struct rig g;
	struct shr_cqe_shm c;
	rig_open(&g, NULL, 0, NULL);
	go_live(&g);
	for (uint64_t i = 1; i <= 2000; i++) {
		struct shr_sqe_shm s = rig_sqe(i & 1 ? SHR_OP_WRITE : SHR_OP_READ, i, 0, 4096 * (i % 500), 4096);
		send_sqe(&g, &s, 1);
		CU_ASSERT_TRUE_FATAL(wait_cqe(&g, &c));
		CU_ASSERT_FATAL(c.token == i && c.status == TN_OK);
		if (i % 400 == 0) { /* long enough for the worker to fall asleep */
			struct timespec nap = { .tv_nsec = 2 * RIG_MS };
			nanosleep(&nap, NULL);
		}
	}
	stop(&g);
}

static void test_depth(void)
{
	struct rig g;
	struct shr_cqe_shm c;
	rig_open(&g, NULL, 0, NULL);
	go_live(&g);
	uint64_t token = 0, got = 0;
	while (got < 20000) {
		struct shr_sqe_shm s[16];
		uint32_t n = 0, room = 0;
		CU_ASSERT_EQUAL_FATAL(shr_sq_space(&g.q.sq, 16, &room), TN_OK);
		for (; n < TN_MIN(room, 16u) && token - got < 32; n++, token++)
			s[n] = rig_sqe(SHR_OP_WRITE, token, 0, 4096 * (token * 7 % 500), 4096);
		if (n)
			send_sqe(&g, s, n);
		CU_ASSERT_TRUE_FATAL(wait_cqe(&g, &c));
		do {
			CU_ASSERT_EQUAL_FATAL(c.status, TN_OK);
			got++;
		} while (rig_poll(&g, &c));
	}
	while (got < token) {
		CU_ASSERT_TRUE_FATAL(wait_cqe(&g, &c));
		got++;
	}
	stop(&g);
}

static void test_idle_cost(void)
{
	struct rig g;
	rig_open(&g, NULL, 0, NULL);
	go_live(&g);
	struct timespec nap = { .tv_nsec = 50 * RIG_MS };
	nanosleep(&nap, NULL);
	uint64_t cpu = thread_cpu_ns(&g), wall = tn_now_ns();
	nap.tv_nsec = 600 * RIG_MS;
	nanosleep(&nap, NULL);
	cpu = thread_cpu_ns(&g) - cpu;
	wall = tn_now_ns() - wall;
	CU_ASSERT(cpu * 100 < wall); /* < 1 % of a core */
	struct shr_sqe_shm s = rig_sqe(SHR_OP_WRITE, 1, 0, 0, 4096);
	struct shr_cqe_shm c;
	send_sqe(&g, &s, 1); /* wakes by doorbell */
	CU_ASSERT_TRUE(wait_cqe(&g, &c) && c.status == TN_OK);
	nanosleep(&nap, NULL);
	uint64_t id = rig_post(&g, (struct dp_cmd){ .kind = DP_CMD_MEM_DEL, .num = tn_handle_make(1, 1), .fd = -1 });
	CU_ASSERT_TRUE(wait_ack(&g, id)); /* wakes by command */
	stop(&g);
}

/* A sleeping worker keeps a deadline: nothing else wakes it. */
static void test_timer(void)
{
	struct rig g;
	rig_open(&g, NULL, 0, NULL);
	go_live(&g);
	CU_ASSERT_TRUE(wait_ack(&g, rig_post(&g, (struct dp_cmd){ .kind = DP_CMD_SEG_DEL, .num = tn_handle_make(1, 1), .fd = -1 })));
	struct shr_sqe_shm s = rig_sqe(SHR_OP_WRITE, 1, 0, 0, 4096); /* waits for a newer descriptor that never comes */
	uint64_t deadline = tn_now_ns() + 60 * RIG_MS;
	s.deadline_ns = deadline;
	struct shr_cqe_shm c = { 0 };
	send_sqe(&g, &s, 1);
	CU_ASSERT_TRUE(wait_cqe(&g, &c) && c.status == TN_TIMEOUT && c.phase == TN_PHASE_METADATA);
	CU_ASSERT(tn_now_ns() >= deadline);
	stop(&g);
}

/* Entries that wait for completion slots are found again although nobody rings when slots come free. */
static void test_blocked_ring(void)
{
	struct rig g;
	struct shr_cqe_shm c;
	rig_open(&g, NULL, 0, NULL);
	go_live(&g);
	uint64_t sent = 0, got = 0;
	struct timespec nap = { .tv_nsec = 5 * RIG_MS };
	/* More than all completion slots hold; none is taken. */
	for (int i = 0; i < 1000 && (i < 10 || sent <= 2 * RIG_SQ); i++) {
		uint32_t room = 0;
		CU_ASSERT_EQUAL_FATAL(shr_sq_space(&g.q.sq, RIG_SQ, &room), TN_OK);
		for (; room > 0; room--, sent++) {
			struct shr_sqe_shm s = rig_sqe(SHR_OP_WRITE, sent, 0, 0, 64);
			send_sqe(&g, &s, 1);
		}
		nanosleep(&nap, NULL);
	}
	CU_ASSERT(sent > 2 * RIG_SQ);
	uint64_t until = tn_now_ns() + WAIT_MS * RIG_MS;
	while (got < sent && tn_now_ns() < until) {
		if (rig_poll(&g, &c)) {
			CU_ASSERT_EQUAL(c.token, got);
			got++;
		}
	}
	CU_ASSERT_EQUAL(got, sent);
	stop(&g);
}

static void test_busy_mode(void)
{
	static const char *const sets[] = { "poll/mode=busy" };
	struct rig g;
	struct shr_cqe_shm c;
	rig_open(&g, sets, 1, NULL);
	go_live(&g);
	for (uint64_t i = 1; i <= 200; i++) {
		struct shr_sqe_shm s = rig_sqe(SHR_OP_WRITE, i, 0, 0, 64);
		send_sqe(&g, &s, 1);
		CU_ASSERT_TRUE_FATAL(wait_cqe(&g, &c) && c.status == TN_OK);
	}
	CU_ASSERT_EQUAL(tn_load_relaxed32(&g.q.view.qp->sq_armed.value), 0);
	stop(&g);
}

/* Pauses around the time after which a quiet pair turns cold: the ring of a busy worker is lost nowhere. */
static void test_busy_cooling(void)
{
	static const char *const sets[] = { "poll/mode=busy" };
	struct rig g;
	struct shr_cqe_shm c;
	rig_open(&g, sets, 1, NULL);
	go_live(&g);
	for (uint64_t i = 1; i <= 200; i++) {
		uint64_t until = tn_now_ns() + DP_HOT_NS - 2000 + i * 20;
		struct shr_sqe_shm s = rig_sqe(SHR_OP_WRITE, i, 0, 0, 64);
		while (tn_now_ns() < until)
			tn_cpu_relax();
		send_sqe(&g, &s, 1);
		CU_ASSERT_TRUE_FATAL(wait_cqe(&g, &c) && c.token == i && c.status == TN_OK);
	}
	stop(&g);
}

TN_TEST_MAIN("thread",
	{ "one request at a time, the application sleeps", test_traffic },
	{ "many requests in flight", test_depth },
	{ "an idle worker sleeps, wakes by ring and command, and is joined [D3] [W1]", test_idle_cost },
	{ "a sleeping worker keeps deadlines", test_timer },
	{ "a ring blocked by untaken completions recovers", test_blocked_ring },
	{ "busy mode", test_busy_mode },
	{ "a busy worker and pairs that just turn cold [D1]", test_busy_cooling },
)
