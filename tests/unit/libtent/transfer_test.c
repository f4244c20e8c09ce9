/* SPDX-License-Identifier: Apache-2.0
 * Submitting, taking, waiting and cancelling against a stand-in data plane that behaves. */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "common/clock.h"
#include "tests/unit/libtent/rig.h"

static void fill(tent_memory *m, unsigned seed)
{
	unsigned char *p = tent_memory_addr(m);

	for (size_t i = 0; i < tent_memory_bytes(m); i++)
		p[i] = (unsigned char)(i * 31 + seed + (i >> 8));
}

static void bytes_move_both_ways(void)
{
	struct rig r;
	struct app a;
	tent_completion c;

	rig_up(&r);
	app_up(&a, &r, 1000);
	CU_ASSERT_EQUAL(tent_segment_bytes(a.seg), RIG_BYTES);
	fill(a.near, 1);
	CU_ASSERT_EQUAL(app_submit(&a, app_request(&a, TENT_WRITE, 100, 5000, 7)), TENT_OK);
	CU_ASSERT_EQUAL(tent_qp_outstanding(a.qp), 1);
	app_collect(&a, &c, 1);
	CU_ASSERT_EQUAL(c.user_data, 7);
	CU_ASSERT_EQUAL(c.status, TENT_OK);
	CU_ASSERT_EQUAL(c.outcome, TENT_OUTCOME_COMPLETED);
	CU_ASSERT_EQUAL(c.kind, TENT_COMPLETION_REQUEST);
	CU_ASSERT_EQUAL(c.bytes, 5000);
	CU_ASSERT_EQUAL(c.transport, TENT_TRANSPORT_SHM);
	CU_ASSERT_EQUAL(c.opcode, TENT_WRITE);
	CU_ASSERT_EQUAL(c.memory_busy, 0);
	CU_ASSERT_EQUAL(tent_qp_outstanding(a.qp), 0);
	CU_ASSERT_EQUAL(memcmp((char *)tent_memory_addr(a.far) + 100, (char *)tent_memory_addr(a.near) + 100, 5000), 0);
	CU_ASSERT_EQUAL(((char *)tent_memory_addr(a.far))[99], 0);
	CU_ASSERT_EQUAL(((char *)tent_memory_addr(a.far))[5100], 0);
	fill(a.far, 9);
	CU_ASSERT_EQUAL(app_submit(&a, app_request(&a, TENT_READ, 0, RIG_BYTES, 8)), TENT_OK);
	app_collect(&a, &c, 1);
	CU_ASSERT_EQUAL(c.status, TENT_OK);
	CU_ASSERT_EQUAL(memcmp(tent_memory_addr(a.far), tent_memory_addr(a.near), RIG_BYTES), 0);
	app_down(&a);
	rig_wait_zero(&r.ctl->clients);
	CU_ASSERT_EQUAL(tn_load_acquire32(&r.ctl->memories), 0);
	rig_down(&r);
}

/* A ping-pong in which each side sleeps; a lost wake-up would cost the stand-in's 50 ms tick, or for ever. */
static void waiting_loses_no_wakeup(void)
{
	struct rig r;
	struct app a;
	tent_completion c;

	rig_up(&r);
	app_up(&a, &r, 1000);
	uint64_t start_ns = tn_now_ns();
	for (uint64_t i = 0; i < 300; i++) {
		CU_ASSERT_EQUAL_FATAL(app_submit(&a, app_request(&a, TENT_WRITE, 0, 8, i)), TENT_OK);
		CU_ASSERT_EQUAL_FATAL(tent_wait(a.qp, &c, 1, 5 * TN_NS_PER_S), 1);
		CU_ASSERT_EQUAL(c.user_data, i);
	}
	CU_ASSERT_TRUE(tn_now_ns() - start_ns < 5 * TN_NS_PER_S);
	app_expect_quiet(&a, 1);
	app_down(&a);
	rig_down(&r);
}

static void depth_bounds_what_is_outstanding(void)
{
	struct rig r;
	struct app a;
	tent_request rq[20];
	tent_completion c[20];
	size_t accepted;

	rig_up(&r);
	app_up(&a, &r, 1000);
	rig_set(&r, &r.ctl->may_finish, 0);
	for (int i = 0; i < 20; i++)
		rq[i] = app_request(&a, TENT_WRITE, (uint64_t)i * 64, 64, (uint64_t)i);
	CU_ASSERT_EQUAL(tent_submit(a.qp, rq, 20, &accepted), TENT_AGAIN);
	CU_ASSERT_EQUAL(accepted, 16);
	CU_ASSERT_EQUAL(tent_submit(a.qp, rq + 16, 4, &accepted), TENT_AGAIN);
	CU_ASSERT_EQUAL(accepted, 0);
	CU_ASSERT_EQUAL(tent_qp_outstanding(a.qp), 16);
	rig_set(&r, &r.ctl->may_finish, UINT32_MAX);
	app_collect(&a, c, 16);
	CU_ASSERT_EQUAL(tent_submit(a.qp, rq + 16, 4, &accepted), TENT_OK);
	app_collect(&a, c, 4);
	/* Many times around the ring. */
	for (int round = 0; round < 100; round++) {
		CU_ASSERT_EQUAL(tent_submit(a.qp, rq, 16, NULL), TENT_OK);
		app_collect(&a, c, 16);
	}
	app_down(&a);
	rig_down(&r);
}

static void malformed_requests_are_named(void)
{
	struct rig r;
	struct app a;
	struct { const char *field; tent_status want; tent_request rq; } t[18];
	size_t n = 0, accepted;

	rig_up(&r);
	app_up(&a, &r, 1000);
	tent_memory *remote_only = NULL;
	CU_ASSERT_EQUAL(tent_memory_alloc(a.ctx, 4096, TENT_RIGHT_REMOTE_READ, 0, &remote_only), TENT_OK);
	tent_published *pub;
	tent_segment *read_only;
	tent_buffer b = { .memory = remote_only };
	CU_ASSERT_EQUAL(tent_segment_publish(a.ctx, "read-only", &b, 1, NULL, &pub), TENT_OK);
	CU_ASSERT_EQUAL(tent_segment_open(a.ctx, "read-only", &read_only), TENT_OK);
	tent_request good = app_request(&a, TENT_WRITE, 0, 4096, 1);
#define CASE(text, status, ...) do { t[n].field = text; t[n].want = status; t[n].rq = good; \
	tent_request *rq = &t[n++].rq; __VA_ARGS__; } while (0)
	CASE("opcode", TENT_INVALID, rq->opcode = 3);
	CASE("priority", TENT_INVALID, rq->priority = 3);
	CASE("intent", TENT_INVALID, rq->intent = 7);
	CASE("hint", TENT_INVALID, rq->hint = 5);
	CASE("policy is 1: 0 for the first that matches, else what tent_policy_find() of this", TENT_INVALID, rq->policy = 1);
	CASE("policy is 65535", TENT_INVALID, rq->policy = UINT16_MAX);
	CASE("flags", TENT_INVALID, rq->flags = 2);
	CASE("reserved", TENT_INVALID, rq->reserved0 = 1);
	CASE("reserved", TENT_INVALID, rq->reserved[0] = 1);
	CASE("reserved", TENT_INVALID, rq->reserved[4] = 1);
	CASE("bytes", TENT_INVALID, rq->bytes = 0);
	CASE("bytes", TENT_TOO_BIG, rq->bytes = STANDIN_MAX_BYTES + 1);
	CASE("memory", TENT_INVALID, rq->memory = NULL);
	CASE("segment", TENT_INVALID, rq->segment = NULL);
	CASE("memory_offset", TENT_RANGE, rq->memory_offset = UINT64_MAX - 100);
	CASE("segment_offset", TENT_RANGE, rq->segment_offset = RIG_BYTES - 4095);
	CASE("RIGHT_LOCAL", TENT_PERMISSION, rq->memory = remote_only);
	CASE("remote WRITE", TENT_PERMISSION, rq->segment = read_only);
	for (size_t i = 0; i < n; i++) {
		tent_request two[2] = { good, t[i].rq };
		CU_ASSERT_EQUAL(tent_submit(a.qp, two, 2, &accepted), t[i].want);
		CU_ASSERT_EQUAL(accepted, 1);
		CU_ASSERT_PTR_NOT_NULL(strstr(tent_last_error(), t[i].field));
		CU_ASSERT_PTR_NOT_NULL(strstr(tent_last_error(), "requests[1]"));
		tent_completion c;
		app_collect(&a, &c, 1);
	}
	app_expect_quiet(&a, 20);
	app_down(&a);
	rig_down(&r);
}

static void stale_handles_are_errors(void)
{
	struct rig r;
	struct app a;
	tent_memory *m;

	rig_up(&r);
	app_up(&a, &r, 1000);
	CU_ASSERT_EQUAL(tent_memory_alloc(a.ctx, 4096, TENT_RIGHT_LOCAL, 0, &m), TENT_OK);
	CU_ASSERT_EQUAL(tent_memory_free(m), TENT_OK);
	tent_request rq = app_request(&a, TENT_READ, 0, 64, 1);
	rq.memory = m;
	CU_ASSERT_EQUAL(tent_submit(a.qp, &rq, 1, NULL), TENT_STALE);
	CU_ASSERT_EQUAL(tent_memory_free(m), TENT_STALE);
	CU_ASSERT_PTR_NULL(tent_memory_addr(m));
	tent_segment *seg = a.seg;
	CU_ASSERT_EQUAL(tent_segment_close(seg), TENT_OK);
	CU_ASSERT_EQUAL(tent_segment_close(seg), TENT_STALE);
	rq = app_request(&a, TENT_READ, 0, 64, 1);
	CU_ASSERT_EQUAL(tent_submit(a.qp, &rq, 1, NULL), TENT_STALE);
	rq.segment = (tent_segment *)(void *)a.near; /* a handle of another kind */
	CU_ASSERT_EQUAL(tent_submit(a.qp, &rq, 1, NULL), TENT_STALE);
	app_down(&a);
	rig_down(&r);
}

static void cancel_ends_a_request(void)
{
	struct rig r;
	struct app a;
	tent_completion c[4];

	rig_up(&r);
	app_up(&a, &r, 1000);
	rig_set(&r, &r.ctl->may_finish, 0);
	CU_ASSERT_EQUAL(app_submit(&a, app_request(&a, TENT_WRITE, 0, 64, 5)), TENT_OK);
	CU_ASSERT_EQUAL(app_submit(&a, app_request(&a, TENT_READ, 0, 64, 5)), TENT_OK);
	CU_ASSERT_EQUAL(app_submit(&a, app_request(&a, TENT_READ, 0, 64, 6)), TENT_OK);
	CU_ASSERT_EQUAL(tent_cancel(a.qp, 99), TENT_NOT_FOUND);
	CU_ASSERT_EQUAL(tent_cancel(a.qp, 5), TENT_OK);
	CU_ASSERT_EQUAL(tent_cancel(a.qp, 5), TENT_OK); /* twice is no harm, and asks once */
	app_collect(&a, c, 2);
	for (int i = 0; i < 2; i++) {
		CU_ASSERT_EQUAL(c[i].user_data, 5);
		CU_ASSERT_EQUAL(c[i].outcome, TENT_OUTCOME_CANCELED);
		CU_ASSERT_EQUAL(c[i].status, TENT_CANCELED);
	}
	CU_ASSERT_EQUAL(tn_load_acquire32(&r.ctl->cancels), 2);
	CU_ASSERT_EQUAL(tent_cancel(a.qp, 5), TENT_NOT_FOUND);
	/* A submission queue that nobody empties has no room for a cancel. */
	rig_set(&r, &r.ctl->may_take, 0);
	tent_request rq = app_request(&a, TENT_READ, 0, 64, 7);
	while (tent_submit(a.qp, &rq, 1, NULL) == TENT_OK)
		continue;
	CU_ASSERT_EQUAL(tent_cancel(a.qp, 6), TENT_OK); /* one slot was free: 15 of 16 were submitted */
	CU_ASSERT_EQUAL(tent_cancel(a.qp, 7), TENT_AGAIN);
	rig_set(&r, &r.ctl->may_take, UINT32_MAX);
	app_collect(&a, c, 1);
	CU_ASSERT_EQUAL(c[0].user_data, 6);
	app_down(&a);
	rig_down(&r);
}

static void busy_memory_is_released_later(void)
{
	struct rig r;
	struct app a;
	tent_completion c;

	rig_up(&r);
	app_up(&a, &r, 1000);
	rig_set(&r, &r.ctl->busy, 1);
	rig_set(&r, &r.ctl->may_finish, 0);
	tent_request rq = app_request(&a, TENT_READ, 0, 64, 3);
	rq.deadline_ns = tn_now_ns() + 30 * RIG_MS;
	CU_ASSERT_EQUAL(app_submit(&a, rq), TENT_OK);
	(void)poll(NULL, 0, 40);
	rig_kick(&r);
	app_collect(&a, &c, 1);
	CU_ASSERT_EQUAL(c.outcome, TENT_OUTCOME_TIMEOUT);
	CU_ASSERT_EQUAL(c.memory_busy, 1);
	CU_ASSERT_EQUAL(tent_qp_outstanding(a.qp), 0);
	CU_ASSERT_EQUAL(tent_cancel(a.qp, 3), TENT_NOT_FOUND);
	app_expect_quiet(&a, 10);
	rig_set(&r, &r.ctl->busy, 0);
	app_collect(&a, &c, 1);
	CU_ASSERT_EQUAL(c.kind, TENT_COMPLETION_RELEASE);
	CU_ASSERT_EQUAL(c.user_data, 3);
	app_down(&a);
	rig_down(&r);
}

static void an_event_loop_can_sleep_on_the_fd(void)
{
	struct rig r;
	struct app a;
	tent_completion c;
	struct pollfd p;

	rig_up(&r);
	app_up(&a, &r, 1000);
	p = (struct pollfd){ tent_qp_fd(a.qp), POLLIN, 0 };
	CU_ASSERT_EQUAL(tent_arm(a.qp), TENT_OK);
	CU_ASSERT_EQUAL(poll(&p, 1, 0), 0);
	CU_ASSERT_EQUAL(app_submit(&a, app_request(&a, TENT_WRITE, 0, 64, 1)), TENT_OK);
	CU_ASSERT_EQUAL(poll(&p, 1, 5000), 1);
	CU_ASSERT_EQUAL(tent_arm(a.qp), TENT_AGAIN);
	CU_ASSERT_EQUAL(tent_poll(a.qp, &c, 1), 1);
	CU_ASSERT_EQUAL(tent_poll(a.qp, &c, 1), 0);
	CU_ASSERT_EQUAL(tent_arm(a.qp), TENT_OK);
	CU_ASSERT_EQUAL(poll(&p, 1, 0), 0);
	/* The same fd tells that the data plane died. */
	rig_kill(&r);
	CU_ASSERT_EQUAL(poll(&p, 1, 5000), 1);
	app_down(&a);
	rig_down(&r);
}

static void deadlines_travel(void)
{
	struct rig r;
	struct app a;
	tent_completion c;

	rig_up(&r);
	app_up(&a, &r, 1000);
	CU_ASSERT_EQUAL(app_submit(&a, app_request(&a, TENT_READ, 0, 64, 1)), TENT_OK);
	app_collect(&a, &c, 1);
	CU_ASSERT_EQUAL(tn_load_acquire32(&r.ctl->last_deadline_set), 0); /* the default stays the config's */
	tent_request rq = app_request(&a, TENT_READ, 0, 64, 1);
	rq.deadline_ns = tn_now_ns() + TN_NS_PER_S;
	CU_ASSERT_EQUAL(app_submit(&a, rq), TENT_OK);
	app_collect(&a, &c, 1);
	CU_ASSERT_EQUAL(tn_load_acquire32(&r.ctl->last_deadline_set), 1);
	app_down(&a);
	rig_down(&r);
}

static void queue_pairs_come_and_go(void)
{
	struct rig r;
	struct app a;
	tent_qp *qp[4];
	tent_qp_options o = TENT_QP_OPTIONS_INIT;

	rig_up(&r);
	app_up(&a, &r, 1000);
	o.depth = 9;
	CU_ASSERT_EQUAL(tent_qp_create(a.ctx, &o, qp), TENT_INVALID);
	CU_ASSERT_PTR_NOT_NULL(strstr(tent_last_error(), "depth is 9"));
	o.depth = 8;
	for (int i = 0; i < 4; i++)
		CU_ASSERT_EQUAL(tent_qp_create(a.ctx, &o, &qp[i]), TENT_OK);
	rig_set(&r, &r.ctl->may_finish, 0);
	tent_request rq = app_request(&a, TENT_READ, 0, 64, 1);
	CU_ASSERT_EQUAL(tent_submit(qp[2], &rq, 1, NULL), TENT_OK);
	for (int i = 0; i < 4; i++)
		CU_ASSERT_EQUAL(tent_qp_destroy(qp[i]), TENT_OK);
	CU_ASSERT_EQUAL(tn_load_acquire32(&r.ctl->qps), 1);
	CU_ASSERT_EQUAL(tent_qp_destroy(NULL), TENT_OK);
	tent_completion none;
	CU_ASSERT_EQUAL(tent_poll(NULL, NULL, 0), TENT_INVALID);
	CU_ASSERT_PTR_NOT_NULL(strstr(tent_last_error(), "tent_poll: qp is NULL"));
	CU_ASSERT_EQUAL(tent_wait(NULL, &none, 1, 0), TENT_INVALID);
	CU_ASSERT_PTR_NOT_NULL(strstr(tent_last_error(), "tent_wait: qp is NULL"));
	app_down(&a);
	rig_down(&r);
}

/* The data plane does not say that it let go: the queue pair stays, for another try and nothing else. */
static void a_queue_pair_is_destroyed_when_it_is_let_go(void)
{
	struct rig r;
	struct app a;
	tent_completion c;

	rig_up(&r);
	app_up(&a, &r, 200);
	rig_set(&r, &r.ctl->silent, 1);
	CU_ASSERT_EQUAL(tent_qp_destroy(a.qp), TENT_TIMEOUT);
	CU_ASSERT_PTR_NOT_NULL(strstr(tent_last_error(), "let go"));
	CU_ASSERT_EQUAL(app_submit(&a, app_request(&a, TENT_READ, 0, 64, 1)), TENT_CLOSED);
	CU_ASSERT_EQUAL(tent_poll(a.qp, &c, 1), (int)TENT_CLOSED);
	rig_set(&r, &r.ctl->silent, 0);
	CU_ASSERT_EQUAL(tent_qp_destroy(a.qp), TENT_OK);
	CU_ASSERT_EQUAL(tn_load_acquire32(&r.ctl->qps), 0);
	app_down(&a);
	rig_down(&r);
}

/* A table of descriptors with room for what the library opens itself, and none for what the data plane sends. */
static void a_reply_without_room_for_its_descriptors_is_a_refusal(void)
{
	struct rig r;
	struct app a;
	tent_qp *qp = NULL;
	int fds[64], cnt = 0, fd;
	struct rlimit old, low;

	rig_up(&r);
	app_up(&a, &r, 5000);
	CU_ASSERT_EQUAL_FATAL(getrlimit(RLIMIT_NOFILE, &old), 0);
	low = (struct rlimit){ .rlim_cur = 48, .rlim_max = old.rlim_max };
	CU_ASSERT_EQUAL_FATAL(setrlimit(RLIMIT_NOFILE, &low), 0);
	while (cnt < (int)TN_ARRAY_LEN(fds) && (fd = dup(0)) >= 0)
		fds[cnt++] = fd;
	CU_ASSERT_TRUE_FATAL(cnt > 3);
	for (int spare = 2; spare <= 3; spare++) { /* none of the two, one of the two */
		(void)close(fds[--cnt]);
		if (spare == 2)
			(void)close(fds[--cnt]);
		uint64_t start_ns = tn_now_ns();
		CU_ASSERT_EQUAL(tent_qp_create(a.ctx, NULL, &qp), TENT_LIMIT);
		CU_ASSERT_PTR_NOT_NULL(strstr(tent_last_error(), "this process has no file descriptor left"));
		CU_ASSERT_TRUE(tn_now_ns() - start_ns < 900 * RIG_MS); /* not the time-out of 1 s */
	}
	while (cnt > 0)
		(void)close(fds[--cnt]);
	CU_ASSERT_EQUAL(setrlimit(RLIMIT_NOFILE, &old), 0);
	/* What it had made is given back there; nothing else is lost. */
	CU_ASSERT_EQUAL(tent_qp_create(a.ctx, NULL, &qp), TENT_OK);
	CU_ASSERT_EQUAL(tn_load_acquire32(&r.ctl->qps), 2);
	CU_ASSERT_EQUAL(tent_qp_destroy(qp), TENT_OK);
	app_down(&a);
	rig_down(&r);
}

/* The data plane's number for a policy travels, the application's does not. */
static void policies_have_names(void)
{
	struct rig r;
	struct app a;
	tent_completion c;
	uint16_t slow = 9, fast = 9, again = 9;

	rig_up(&r);
	app_up(&a, &r, 1000);
	CU_ASSERT_EQUAL(tent_policy_find(a.ctx, "slow", &slow), TENT_OK);
	CU_ASSERT_EQUAL(tent_policy_find(a.ctx, "fast", &fast), TENT_OK);
	CU_ASSERT_EQUAL(tent_policy_find(a.ctx, "slow", &again), TENT_OK);
	CU_ASSERT_TRUE(slow == 1 && fast == 2 && again == 1);
	CU_ASSERT_EQUAL(tent_policy_find(a.ctx, "none", &again), TENT_NOT_FOUND);
	CU_ASSERT_PTR_NOT_NULL(strstr(tent_last_error(), "has no policy none"));
	CU_ASSERT_EQUAL(tent_policy_find(a.ctx, "no name", &again), TENT_INVALID);
	CU_ASSERT_EQUAL(tent_policy_find(a.ctx, "slow", NULL), TENT_INVALID);
	CU_ASSERT_EQUAL(again, 1);
	for (uint16_t p = 0; p <= 2; p++) {
		tent_request rq = app_request(&a, TENT_WRITE, 0, 64, p);
		rq.policy = p;
		CU_ASSERT_EQUAL(app_submit(&a, rq), TENT_OK);
		app_collect(&a, &c, 1);
		CU_ASSERT_EQUAL(tn_load_acquire32(&r.ctl->last_policy), p == 0 ? 0 : STANDIN_POLICY_ID + p - 1u);
	}
	app_down(&a);
	rig_down(&r);
}

TN_TEST_MAIN("libtent transfer",
	{ "policies have names", policies_have_names },
	{ "bytes move both ways", bytes_move_both_ways },
	{ "waiting loses no wake-up", waiting_loses_no_wakeup },
	{ "depth bounds what is outstanding", depth_bounds_what_is_outstanding },
	{ "malformed requests are named", malformed_requests_are_named },
	{ "stale handles are errors", stale_handles_are_errors },
	{ "cancel ends a request", cancel_ends_a_request },
	{ "busy memory is released later", busy_memory_is_released_later },
	{ "an event loop can sleep on the fd", an_event_loop_can_sleep_on_the_fd },
	{ "deadlines travel", deadlines_travel },
	{ "queue pairs come and go", queue_pairs_come_and_go },
	{ "a queue pair is destroyed when it is let go", a_queue_pair_is_destroyed_when_it_is_let_go },
	{ "a reply without room for its descriptors is a refusal", a_reply_without_room_for_its_descriptors_is_a_refusal })
