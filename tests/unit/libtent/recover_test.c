/* SPDX-License-Identifier: Apache-2.0
 * The data plane is killed with -9 in the middle of things and started again. What must hold: handles stay valid,
 * every accepted request has exactly one terminal completion, and nothing that may have had an effect happens twice
 * unless the replay law allows it. */
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

#include "common/clock.h"
#include "common/domain.h"
#include "shm-ring/abi.h"
#include "tests/unit/libtent/rig.h"

static tent_state state_of(const struct app *a)
{
	tent_info i = TENT_INFO_INIT;

	CU_ASSERT_EQUAL(tent_query(a->ctx, &i), TENT_OK);
	return i.state;
}

static uint32_t reattached(const struct app *a)
{
	tent_info i = TENT_INFO_INIT;

	CU_ASSERT_EQUAL(tent_query(a->ctx, &i), TENT_OK);
	return i.reattach_count;
}

static void wait_reattached(const struct app *a, uint32_t cnt)
{
	uint64_t deadline_ns = tn_now_ns() + 5 * TN_NS_PER_S;

	while (reattached(a) < cnt && tn_now_ns() < deadline_ns)
		(void)poll(NULL, 0, 1);
	CU_ASSERT_EQUAL_FATAL(reattached(a), cnt);
}

static void up(struct rig *r, struct app *a)
{
	rig_up(r);
	app_up(a, r, 5000);
}

static void handles_survive(void)
{
	struct rig r;
	struct app a;
	tent_completion c;

	up(&r, &a);
	tent_info before = TENT_INFO_INIT, after = before;
	CU_ASSERT_EQUAL(tent_query(a.ctx, &before), TENT_OK);
	for (uint32_t i = 1; i <= 3; i++) {
		rig_kill(&r);
		rig_start(&r);
		wait_reattached(&a, i);
		memset(tent_memory_addr(a.near), (int)i, 4096);
		CU_ASSERT_EQUAL(app_submit(&a, app_request(&a, TENT_WRITE, 0, 4096, i)), TENT_OK);
		app_collect(&a, &c, 1);
		CU_ASSERT_EQUAL(c.status, TENT_OK);
		CU_ASSERT_EQUAL(((unsigned char *)tent_memory_addr(a.far))[4095], i);
	}
	CU_ASSERT_EQUAL(tent_query(a.ctx, &after), TENT_OK);
	CU_ASSERT_NOT_EQUAL(memcmp(before.session, after.session, 16), 0);
	CU_ASSERT_EQUAL(tn_load_acquire32(&r.ctl->replays), 0);
	CU_ASSERT_EQUAL(tent_segment_close(a.seg), TENT_OK);
	CU_ASSERT_EQUAL(tent_segment_withdraw(a.pub), TENT_OK);
	CU_ASSERT_EQUAL(tent_memory_free(a.far), TENT_OK);
	CU_ASSERT_EQUAL(tn_load_acquire32(&r.ctl->memories), 1);
	app_down(&a);
	rig_down(&r);
}

/* Taken by the dead: READ and WRITE are sent again, marked; AT_MOST_ONCE and a notice are ambiguous. */
static void the_replay_law(void)
{
	struct rig r;
	struct app a;
	tent_completion c[8];

	up(&r, &a);
	rig_set(&r, &r.ctl->may_finish, 0);
	CU_ASSERT_EQUAL(app_submit(&a, app_request(&a, TENT_READ, 0, 64, 1)), TENT_OK);
	CU_ASSERT_EQUAL(app_submit(&a, app_request(&a, TENT_WRITE, 0, 64, 2)), TENT_OK);
	tent_request once = app_request(&a, TENT_WRITE, 64, 64, 3);
	once.flags = TENT_REQUEST_AT_MOST_ONCE;
	CU_ASSERT_EQUAL(app_submit(&a, once), TENT_OK);
	CU_ASSERT_EQUAL(tent_notify(a.qp, a.seg, 0, "n", 1, 4, 0), TENT_OK);
	rig_wait_for(&r.ctl->taken, 4);
	/* These two are never taken by the first. */
	rig_set(&r, &r.ctl->may_take, 0);
	once.user_data = 5;
	CU_ASSERT_EQUAL(app_submit(&a, once), TENT_OK);
	CU_ASSERT_EQUAL(tent_notify(a.qp, a.seg, 0, "m", 1, 6, 0), TENT_OK);
	rig_kill(&r);
	tn_store_release32(&r.ctl->may_finish, UINT32_MAX);
	tn_store_release32(&r.ctl->may_take, UINT32_MAX);
	rig_start(&r);
	app_collect(&a, c, 6);
	for (uint64_t u = 1; u <= 6; u++) {
		tent_completion f = app_find(c, 6, u);
		bool ambiguous = u == 3 || u == 4;

		CU_ASSERT_EQUAL(f.status, ambiguous ? TENT_AMBIGUOUS : TENT_OK);
		CU_ASSERT_EQUAL(f.outcome, ambiguous ? TENT_OUTCOME_FAILED : TENT_OUTCOME_COMPLETED);
		CU_ASSERT_EQUAL(f.kind, u == 4 || u == 6 ? TENT_COMPLETION_NOTIFY : TENT_COMPLETION_REQUEST);
	}
	tent_completion note = app_find(c, 6, 4);
	CU_ASSERT_EQUAL(note.phase, TN_PHASE_NOTIFY);
	CU_ASSERT_EQUAL(note.reason, TN_REASON_UNAVAILABLE);
	CU_ASSERT_EQUAL(tn_load_acquire32(&r.ctl->replays), 2);
	CU_ASSERT_EQUAL(tn_load_acquire32(&r.ctl->notices), 1);
	CU_ASSERT_EQUAL(tent_qp_outstanding(a.qp), 0);
	app_expect_quiet(&a, 20);
	app_down(&a);
	rig_down(&r);
}

/* Completions that the dead had written are not lost and not repeated. */
static void the_old_ring_is_drained_first(void)
{
	struct rig r;
	struct app a;
	tent_completion c[8];

	up(&r, &a);
	rig_set(&r, &r.ctl->may_finish, 3);
	for (uint64_t u = 0; u < 5; u++)
		CU_ASSERT_EQUAL(app_submit(&a, app_request(&a, TENT_WRITE, u * 64, 64, u)), TENT_OK);
	rig_wait_for(&r.ctl->finished, 3);
	rig_wait_for(&r.ctl->taken, 5);
	rig_kill(&r);
	tn_store_release32(&r.ctl->may_finish, UINT32_MAX);
	rig_start(&r);
	wait_reattached(&a, 1);
	app_collect(&a, c, 5);
	for (uint64_t u = 0; u < 5; u++) {
		CU_ASSERT_EQUAL(app_find(c, 5, u).status, TENT_OK);
		CU_ASSERT_EQUAL(c[u].user_data, u); /* those of the dead come first */
	}
	CU_ASSERT_EQUAL(tn_load_acquire32(&r.ctl->replays), 2);
	CU_ASSERT_EQUAL(tn_load_acquire32(&r.ctl->finished), 5);
	app_down(&a);
	rig_down(&r);
}

static void busy_memory_is_released_by_death(void)
{
	struct rig r;
	struct app a;
	tent_completion c[4];

	up(&r, &a);
	rig_set(&r, &r.ctl->busy, 1);
	CU_ASSERT_EQUAL(app_submit(&a, app_request(&a, TENT_READ, 0, 64, 1)), TENT_OK);
	app_collect(&a, c, 1);
	CU_ASSERT_EQUAL(c[0].memory_busy, 1);
	/* A second one stays in the ring, its terminal completion not taken. */
	CU_ASSERT_EQUAL(app_submit(&a, app_request(&a, TENT_READ, 0, 64, 2)), TENT_OK);
	rig_wait_for(&r.ctl->finished, 2);
	rig_kill(&r);
	/* The second is found in the ring before its owner learns of the death, and released apart, or after, and
	 * final. */
	bool first_released = false, second_released = false;
	while (!first_released || !second_released) {
		app_collect(&a, c, 1);
		if (c[0].user_data == 1) {
			CU_ASSERT_EQUAL(c[0].kind, TENT_COMPLETION_RELEASE);
			CU_ASSERT_FALSE(first_released);
			first_released = true;
		} else {
			CU_ASSERT_FALSE(second_released);
			second_released = c[0].memory_busy == 0;
		}
	}
	rig_start(&r);
	app_expect_quiet(&a, 50);
	app_down(&a);
	rig_down(&r);
}

static void requests_are_accepted_while_there_is_no_data_plane(void)
{
	struct rig r;
	struct app a;
	tent_completion c[16];
	size_t n = 0;

	up(&r, &a);
	rig_kill(&r);
	while (app_submit(&a, app_request(&a, TENT_WRITE, 0, 64, n)) == TENT_OK)
		n++;
	CU_ASSERT_EQUAL(n, 16);
	/* The ring of the dead is full; the cancel has room when its owner has learned of the death. */
	while (tent_cancel(a.qp, 3) == TENT_AGAIN)
		CU_ASSERT_EQUAL(tent_wait(a.qp, c, 1, RIG_MS), 0);
	app_collect(&a, c, 1);
	CU_ASSERT_EQUAL(c[0].user_data, 3);
	CU_ASSERT_EQUAL(c[0].outcome, TENT_OUTCOME_CANCELED);
	rig_start(&r);
	app_collect(&a, c, 15);
	for (int i = 0; i < 15; i++)
		CU_ASSERT_EQUAL(c[i].status, TENT_OK);
	CU_ASSERT_EQUAL(tn_load_acquire32(&r.ctl->replays), 0);
	app_down(&a);
	rig_down(&r);
}

static void deadlines_hold_without_a_data_plane(void)
{
	struct rig r;
	struct app a;
	tent_completion c[4];

	rig_up(&r);
	app_up(&a, &r, 30000);
	rig_set(&r, &r.ctl->may_finish, 0);
	tent_request rq = app_request(&a, TENT_WRITE, 0, 64, 1);
	rq.deadline_ns = tn_now_ns() + 200 * RIG_MS;
	CU_ASSERT_EQUAL(app_submit(&a, rq), TENT_OK);
	rig_wait_for(&r.ctl->taken, 1);
	rig_kill(&r);
	/* Somebody who sleeps in his own loop is woken for it too. */
	struct pollfd p = { tent_qp_fd(a.qp), POLLIN, 0 };
	int n, woken = 1;
	while ((n = tent_poll(a.qp, c, 1)) == 0 && woken == 1)
		if (tent_arm(a.qp) == TENT_OK)
			woken = poll(&p, 1, 30000);
	/* By the deadline, not by the end of the sleep or that of recovery, which would have other words for it. */
	CU_ASSERT_EQUAL(woken, 1);
	CU_ASSERT_EQUAL_FATAL(n, 1);
	CU_ASSERT_EQUAL(state_of(&a), TENT_STATE_RECOVERING);
	CU_ASSERT_EQUAL(c[0].outcome, TENT_OUTCOME_TIMEOUT);
	CU_ASSERT_EQUAL(c[0].status, TENT_TIMEOUT);
	tn_store_release32(&r.ctl->may_finish, UINT32_MAX);
	rig_start(&r);
	wait_reattached(&a, 1);
	app_expect_quiet(&a, 30);
	app_down(&a);
	rig_down(&r);
}

static void when_none_comes_back_everything_ends(void)
{
	struct rig r;
	struct app a;
	tent_completion c[4];
	tent_note note = TENT_NOTE_INIT;

	rig_up(&r);
	app_up(&a, &r, 150);
	rig_set(&r, &r.ctl->may_finish, 0);
	CU_ASSERT_EQUAL(app_submit(&a, app_request(&a, TENT_READ, 0, 64, 1)), TENT_OK);
	CU_ASSERT_EQUAL(app_submit(&a, app_request(&a, TENT_WRITE, 0, 64, 2)), TENT_OK);
	rig_kill(&r);
	app_collect(&a, c, 2);
	for (int i = 0; i < 2; i++) {
		CU_ASSERT_EQUAL(c[i].status, TENT_DATAPLANE_DOWN);
		CU_ASSERT_EQUAL(c[i].outcome, TENT_OUTCOME_FAILED);
	}
	CU_ASSERT_EQUAL(state_of(&a), TENT_STATE_DEAD);
	CU_ASSERT_EQUAL(tent_wait(a.qp, c, 1, UINT64_MAX), TENT_DATAPLANE_DOWN);
	CU_ASSERT_EQUAL(app_submit(&a, app_request(&a, TENT_READ, 0, 64, 1)), TENT_DATAPLANE_DOWN);
	CU_ASSERT_EQUAL(tent_note_recv(a.ctx, &note, UINT64_MAX), TENT_DATAPLANE_DOWN);
	CU_ASSERT_PTR_NOT_NULL(strstr(tent_last_error(), "150 ms"));
	tent_memory *m;
	CU_ASSERT_EQUAL(tent_memory_alloc(a.ctx, 4096, TENT_RIGHT_LOCAL, 0, &m), TENT_DATAPLANE_DOWN);
	CU_ASSERT_EQUAL(tent_segment_close(a.seg), TENT_OK);
	CU_ASSERT_EQUAL(tent_segment_withdraw(a.pub), TENT_OK);
	CU_ASSERT_EQUAL(tent_memory_free(a.near), TENT_OK);
	tent_qp_destroy(a.qp);
	app_down(&a);
	rig_down(&r);
}

/* Data before notice, over a death: the members that are still to be written hold the notice back. */
static void a_batch_keeps_its_notice_behind_its_data(void)
{
	struct rig r;
	struct app a;
	tent_completion c[4];
	tent_note note = TENT_NOTE_INIT;

	up(&r, &a);
	rig_set(&r, &r.ctl->may_finish, 1);
	for (uint64_t u = 1; u <= 2; u++) {
		tent_request rq = app_request(&a, TENT_WRITE, u * 64, 64, u);
		rq.batch = 9;
		CU_ASSERT_EQUAL(app_submit(&a, rq), TENT_OK);
	}
	rig_wait_for(&r.ctl->taken, 2);
	rig_wait_for(&r.ctl->finished, 1);
	rig_set(&r, &r.ctl->may_take, 0);
	CU_ASSERT_EQUAL(tent_notify(a.qp, a.seg, 9, "done", 5, 3, 0), TENT_OK); /* not taken */
	rig_kill(&r);
	tn_store_release32(&r.ctl->may_take, UINT32_MAX);
	tn_store_release32(&r.ctl->may_finish, 0);
	rig_start(&r);
	app_collect(&a, c, 1);
	CU_ASSERT_EQUAL(c[0].user_data, 1);
	wait_reattached(&a, 1);
	app_quiet_until(&a, &r.ctl->taken, 4); /* the owner adopts the new ring in one of its next calls */
	CU_ASSERT_EQUAL(tn_load_acquire32(&r.ctl->replays), 1);
	rig_set(&r, &r.ctl->may_finish, 2);
	app_collect(&a, c, 2);
	CU_ASSERT_EQUAL(c[0].user_data, 2);
	CU_ASSERT_EQUAL(c[1].user_data, 3);
	CU_ASSERT_EQUAL(c[1].status, TENT_OK);
	CU_ASSERT_EQUAL(tent_note_recv(a.ctx, &note, TN_NS_PER_S), TENT_OK);
	CU_ASSERT_STRING_EQUAL((char *)note.payload, "done");
	app_down(&a);
	rig_down(&r);
}

/* A member failed before the death; the new data plane does not know, and the notice must not leave all the same. */
static void a_failure_before_death_still_cancels_the_notice(void)
{
	struct rig r;
	struct app a;
	tent_completion c[4];

	up(&r, &a);
	tn_store_release32(&r.ctl->fail_next, 1);
	tent_request rq = app_request(&a, TENT_WRITE, 0, 64, 1);
	rq.batch = 4;
	CU_ASSERT_EQUAL(app_submit(&a, rq), TENT_OK);
	app_collect(&a, c, 1);
	CU_ASSERT_EQUAL(c[0].status, TENT_PATH_DOWN);
	rig_kill(&r);
	rig_start(&r);
	wait_reattached(&a, 1);
	rq.user_data = 2;
	CU_ASSERT_EQUAL(app_submit(&a, rq), TENT_OK);
	CU_ASSERT_EQUAL(tent_notify(a.qp, a.seg, 4, NULL, 0, 3, 0), TENT_OK);
	app_collect(&a, c, 2);
	CU_ASSERT_EQUAL(app_find(c, 2, 2).status, TENT_OK);
	CU_ASSERT_EQUAL(app_find(c, 2, 3).outcome, TENT_OUTCOME_CANCELED);
	CU_ASSERT_EQUAL(tn_load_acquire32(&r.ctl->notices), 0);
	/* The number is free again. */
	rq.user_data = 5;
	CU_ASSERT_EQUAL(app_submit(&a, rq), TENT_OK);
	CU_ASSERT_EQUAL(tent_notify(a.qp, a.seg, 4, NULL, 0, 6, 0), TENT_OK);
	app_collect(&a, c, 2);
	CU_ASSERT_EQUAL(app_find(c, 2, 6).status, TENT_OK);
	app_down(&a);
	rig_down(&r);
}

/* The segment came back with other memory: what the batch wrote before is lost, and the notice would promise it. */
static void a_batch_of_another_publication_is_not_announced(void)
{
	for (uint32_t other = 0; other < 2; other++) {
		struct rig r;
		struct app a;
		tent_completion c[4];

		up(&r, &a);
		tent_request rq = app_request(&a, TENT_WRITE, 0, 64, 1);
		rq.batch = 4;
		CU_ASSERT_EQUAL(app_submit(&a, rq), TENT_OK);
		app_collect(&a, c, 1);
		CU_ASSERT_EQUAL(c[0].status, TENT_OK);
		rig_kill(&r);
		tn_store_release32(&r.ctl->republished, other);
		rig_start(&r);
		wait_reattached(&a, 1);
		rq.user_data = 2;
		CU_ASSERT_EQUAL(app_submit(&a, rq), TENT_OK);
		CU_ASSERT_EQUAL(tent_notify(a.qp, a.seg, 4, NULL, 0, 3, 0), TENT_OK);
		app_collect(&a, c, 2);
		CU_ASSERT_EQUAL(app_find(c, 2, 2).status, TENT_OK);
		CU_ASSERT_EQUAL(app_find(c, 2, 3).status, other ? TENT_STALE : TENT_OK);
		CU_ASSERT_TRUE(!other || app_find(c, 2, 3).phase == TN_PHASE_NOTIFY);
		CU_ASSERT_EQUAL(tn_load_acquire32(&r.ctl->notices), 1 - other);
		/* What begins afterwards is about the new memory. */
		rq.user_data = 5;
		CU_ASSERT_EQUAL(app_submit(&a, rq), TENT_OK);
		CU_ASSERT_EQUAL(tent_notify(a.qp, a.seg, 4, NULL, 0, 6, 0), TENT_OK);
		app_collect(&a, c, 2);
		CU_ASSERT_EQUAL(app_find(c, 2, 6).status, TENT_OK);
		app_down(&a);
		rig_down(&r);
	}
}

/* The notice was taken: it may have left, so its batch is not written again under a receiver that may use the data. */
static void a_batch_whose_notice_may_have_gone_is_not_replayed(void)
{
	struct rig r;
	struct app a;
	tent_completion c[4];

	up(&r, &a);
	rig_set(&r, &r.ctl->may_finish, 0);
	tent_request rq = app_request(&a, TENT_WRITE, 0, 64, 1);
	rq.batch = 4;
	CU_ASSERT_EQUAL(app_submit(&a, rq), TENT_OK);
	CU_ASSERT_EQUAL(tent_notify(a.qp, a.seg, 4, NULL, 0, 2, 0), TENT_OK);
	rig_wait_for(&r.ctl->taken, 2);
	rig_kill(&r);
	tn_store_release32(&r.ctl->may_finish, UINT32_MAX);
	rig_start(&r);
	app_collect(&a, c, 2);
	CU_ASSERT_EQUAL(c[0].status, TENT_AMBIGUOUS);
	CU_ASSERT_EQUAL(c[1].status, TENT_AMBIGUOUS);
	wait_reattached(&a, 1);
	app_expect_quiet(&a, 20);
	CU_ASSERT_EQUAL(tn_load_acquire32(&r.ctl->taken), 2);
	app_down(&a);
	rig_down(&r);
}

/* The publisher of a segment may come back later than its readers. */
static void an_open_is_repeated_until_the_segment_is_back(void)
{
	struct rig r;
	struct app a;
	tent_completion c[4];

	up(&r, &a);
	tn_store_release32(&r.ctl->refuse_open, (uint32_t)TENT_NOT_FOUND);
	tn_store_release32(&r.ctl->refuse_open_cnt, 3);
	rig_kill(&r);
	rig_start(&r);
	wait_reattached(&a, 1);
	CU_ASSERT_EQUAL(app_submit(&a, app_request(&a, TENT_WRITE, 0, 64, 1)), TENT_OK);
	app_collect(&a, c, 1);
	CU_ASSERT_EQUAL(c[0].status, TENT_OK);
	CU_ASSERT_EQUAL(tn_load_acquire32(&r.ctl->refuse_open), 0);
	app_down(&a);
	rig_down(&r);
}

/* The answer to the restoring PUBLISH needs longer than a control call may. The name is taken all the same, so a second
 * one would be refused, and the segment lost for good. */
static void a_slow_publish_is_waited_for(void)
{
	struct rig r;
	struct app a;
	tent_completion c[4];

	up(&r, &a);
	rig_kill(&r);
	tn_store_release32(&r.ctl->hold_publish, 1);
	rig_start(&r);
	wait_reattached(&a, 1);
	rig_wait_for(&r.ctl->publishes_seen, 2);
	(void)poll(NULL, 0, 1500); /* the context's time-out is 1 s */
	rig_set(&r, &r.ctl->hold_publish, 0);
	CU_ASSERT_EQUAL(app_submit(&a, app_request(&a, TENT_WRITE, 0, 64, 1)), TENT_OK);
	app_collect(&a, c, 1);
	CU_ASSERT_EQUAL(c[0].status, TENT_OK);
	CU_ASSERT_EQUAL(tn_load_acquire32(&r.ctl->publishes_seen), 2);
	CU_ASSERT_EQUAL(tn_load_acquire32(&r.ctl->segments), 1);
	CU_ASSERT_EQUAL(tent_segment_withdraw(a.pub), TENT_OK);
	CU_ASSERT_EQUAL(tn_load_acquire32(&r.ctl->segments), 0);
	app_down(&a);
	rig_down(&r);
}

static void expect_lost(struct app *a, tent_status why)
{
	tent_note note = TENT_NOTE_INIT;

	CU_ASSERT_EQUAL(tent_note_recv(a->ctx, &note, 5 * TN_NS_PER_S), TENT_OK);
	CU_ASSERT_EQUAL(note.kind, TENT_NOTE_SEGMENT_LOST);
	CU_ASSERT_EQUAL(note.status, why);
	CU_ASSERT_STRING_EQUAL(note.segment, "far");
	CU_ASSERT_STRING_EQUAL(note.from, "");
	CU_ASSERT_EQUAL(note.bytes, 0);
	CU_ASSERT_EQUAL(tent_segment_published(a->pub), why);
	CU_ASSERT_EQUAL(tent_note_recv(a->ctx, &note, 0), TENT_AGAIN);
}

/* What an operator took away does not come back by itself; its publisher may bring it back. */
static void a_withdrawn_segment_stays_withdrawn(void)
{
	struct rig r;
	struct app a;

	up(&r, &a);
	CU_ASSERT_EQUAL(tent_segment_published(a.pub), TENT_OK);
	rig_set(&r, &r.ctl->lose_segments, 1);
	expect_lost(&a, TENT_CANCELED);
	CU_ASSERT_PTR_NOT_NULL(strstr(tent_last_error(), "an operator withdrew it"));
	rig_kill(&r);
	rig_start(&r);
	wait_reattached(&a, 1);
	(void)poll(NULL, 0, 50);
	CU_ASSERT_EQUAL(tn_load_acquire32(&r.ctl->publishes_seen), 1);
	CU_ASSERT_EQUAL(tent_segment_published(a.pub), TENT_CANCELED);
	CU_ASSERT_EQUAL(tent_segment_withdraw(a.pub), TENT_OK);
	CU_ASSERT_EQUAL(tent_segment_published(a.pub), TENT_STALE);
	CU_ASSERT_EQUAL(tent_segment_published(NULL), TENT_INVALID);
	/* Behind the answer, perhaps before its publisher has seen that. */
	tent_buffer b = { .memory = a.far };
	for (int i = 0; i < 20; i++) {
		tn_store_release32(&r.ctl->lose_at_once, 1);
		CU_ASSERT_EQUAL(tent_segment_publish(a.ctx, "far", &b, 1, NULL, &a.pub), TENT_OK);
		expect_lost(&a, TENT_CANCELED);
		CU_ASSERT_EQUAL(tent_segment_withdraw(a.pub), TENT_OK);
	}
	CU_ASSERT_EQUAL(tent_segment_publish(a.ctx, "far", &b, 1, NULL, &a.pub), TENT_OK);
	CU_ASSERT_EQUAL(tent_segment_published(a.pub), TENT_OK);
	CU_ASSERT_EQUAL(tent_segment_withdraw(a.pub), TENT_OK);
	CU_ASSERT_EQUAL(tent_memory_free(a.far), TENT_OK);
	app_down(&a);
	rig_down(&r);
}

/* The successor refuses it: the publisher is told, once, and nobody publishes behind its back later. */
static void a_segment_that_is_refused_is_lost(void)
{
	struct rig r;
	struct app a;

	up(&r, &a);
	rig_kill(&r);
	tn_store_release32(&r.ctl->refuse_publish, (uint32_t)TENT_EXISTS);
	rig_start(&r);
	expect_lost(&a, TENT_EXISTS);
	CU_ASSERT_PTR_NOT_NULL(strstr(tent_last_error(), "could not be published again"));
	tn_store_release32(&r.ctl->refuse_publish, 0);
	rig_kill(&r);
	rig_start(&r);
	wait_reattached(&a, 2);
	(void)poll(NULL, 0, 50);
	CU_ASSERT_EQUAL(tn_load_acquire32(&r.ctl->publishes_seen), 2);
	CU_ASSERT_EQUAL(tent_segment_withdraw(a.pub), TENT_OK);
	app_down(&a);
	rig_down(&r);
}

/* A successor without memory has some later. */
static void a_segment_waits_for_memory_there(void)
{
	struct rig r;
	struct app a;
	tent_status s;
	uint64_t deadline_ns;

	up(&r, &a);
	rig_kill(&r);
	tn_store_release32(&r.ctl->refuse_publish, (uint32_t)TENT_NO_MEMORY);
	rig_start(&r);
	rig_wait_for(&r.ctl->publishes_seen, 3);
	CU_ASSERT_EQUAL(tent_segment_published(a.pub), TENT_PENDING);
	tn_store_release32(&r.ctl->refuse_publish, 0);
	deadline_ns = tn_now_ns() + 4 * TN_NS_PER_S;
	while ((s = tent_segment_published(a.pub)) == TENT_PENDING && tn_now_ns() < deadline_ns)
		(void)poll(NULL, 0, 1);
	CU_ASSERT_EQUAL(s, TENT_OK);
	app_down(&a);
	rig_down(&r);
}

/* The same for what the application has: its requests wait, they do not fail. */
static void memory_waits_for_memory_there(void)
{
	struct rig r;
	struct app a;
	tent_completion c[4];

	up(&r, &a);
	rig_set(&r, &r.ctl->may_finish, 0);
	CU_ASSERT_EQUAL(app_submit(&a, app_request(&a, TENT_READ, 0, 64, 1)), TENT_OK);
	rig_wait_for(&r.ctl->taken, 1);
	rig_kill(&r);
	tn_store_release32(&r.ctl->may_finish, UINT32_MAX);
	tn_store_release32(&r.ctl->refuse_register, (uint32_t)TENT_NO_MEMORY);
	rig_start(&r);
	(void)poll(NULL, 0, 100);
	tn_store_release32(&r.ctl->refuse_register, 0);
	app_collect(&a, c, 1);
	CU_ASSERT_EQUAL(c[0].status, TENT_OK);
	app_down(&a);
	rig_down(&r);
}

static void what_does_not_come_back_fails_alone(void)
{
	struct rig r;
	struct app a;
	tent_completion c[4];
	tent_memory *m;

	up(&r, &a);
	rig_set(&r, &r.ctl->may_finish, 0);
	CU_ASSERT_EQUAL(app_submit(&a, app_request(&a, TENT_READ, 0, 64, 1)), TENT_OK);
	rig_wait_for(&r.ctl->taken, 1);
	rig_kill(&r);
	tn_store_release32(&r.ctl->may_finish, UINT32_MAX);
	tn_store_release32(&r.ctl->refuse_register, (uint32_t)TENT_LIMIT);
	rig_start(&r);
	app_collect(&a, c, 1);
	CU_ASSERT_EQUAL(c[0].status, TENT_LIMIT);
	CU_ASSERT_EQUAL(c[0].phase, TN_PHASE_REGISTER);
	CU_ASSERT_EQUAL(app_submit(&a, app_request(&a, TENT_READ, 0, 64, 1)), TENT_LIMIT);
	/* The publication failed with its memory, so the open finds nothing and gives up with the recovery time. */
	rig_set(&r, &r.ctl->refuse_register, 0);
	CU_ASSERT_EQUAL(tent_memory_alloc(a.ctx, 4096, TENT_RIGHT_LOCAL | TENT_RIGHT_REMOTE_READ, 0, &m), TENT_OK);
	tent_buffer b = { .memory = m };
	tent_published *pub;
	tent_segment *seg;
	CU_ASSERT_EQUAL(tent_segment_publish(a.ctx, "other", &b, 1, NULL, &pub), TENT_OK);
	CU_ASSERT_EQUAL(tent_segment_open(a.ctx, "other", &seg), TENT_OK);
	tent_request rq = app_request(&a, TENT_READ, 0, 64, 2);
	rq.memory = m;
	rq.segment = seg;
	CU_ASSERT_EQUAL(app_submit(&a, rq), TENT_OK);
	app_collect(&a, c, 1);
	CU_ASSERT_EQUAL(c[0].status, TENT_OK);
	app_down(&a);
	rig_down(&r);
}

static void control_calls_wait_for_the_successor(void)
{
	struct rig r;
	struct app a;
	tent_memory *m;

	up(&r, &a);
	rig_kill(&r);
	while (state_of(&a) != TENT_STATE_RECOVERING)
		(void)poll(NULL, 0, 1);
	CU_ASSERT_EQUAL(tent_memory_alloc(a.ctx, 4096, TENT_RIGHT_LOCAL, 0, &m), TENT_DATAPLANE_DOWN);
	CU_ASSERT_PTR_NOT_NULL(strstr(tent_last_error(), "has not come back in time"));
	rig_start(&r);
	CU_ASSERT_EQUAL(tent_memory_alloc(a.ctx, 4096, TENT_RIGHT_LOCAL, 0, &m), TENT_OK);
	CU_ASSERT_EQUAL(tn_load_acquire32(&r.ctl->memories), 3);
	app_down(&a);
	rig_down(&r);
}

static void *close_it(void *ctx)
{
	tent_close(ctx);
	return NULL;
}

/* The successor answers when the application has already begun to close: nobody may be left in an attachment that
 * nobody ends. */
static void closing_meets_the_successor(void)
{
	struct rig r;
	pthread_t closer;
	struct timespec until;

	rig_up(&r);
	tent_context *ctx = rig_open(&r, 60000);
	rig_kill(&r);
	tn_store_release32(&r.ctl->silent, 1);
	rig_start(&r);
	(void)poll(NULL, 0, 300); /* the keeper has found it and waits for its HELLO */
	CU_ASSERT_EQUAL_FATAL(pthread_create(&closer, NULL, close_it, ctx), 0);
	(void)poll(NULL, 0, 50);
	rig_set(&r, &r.ctl->silent, 0);
	(void)clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += 5;
	CU_ASSERT_EQUAL_FATAL(pthread_timedjoin_np(closer, NULL, &until), 0);
	rig_wait_zero(&r.ctl->clients);
	rig_down(&r);
}

/* A goodbye that the dead data plane cannot answer must not wait for its time-out (1 s here). */
static void closing_meets_a_death(void)
{
	struct rig r;
	uint64_t longest_ns = 0;

	rig_up(&r);
	for (int i = 0; i < 60; i++) {
		tent_context *ctx = rig_open(&r, 60000);
		rig_kill(&r);
		for (int spin = 0; spin < i * 200; spin++)
			tn_cpu_relax();
		uint64_t start_ns = tn_now_ns();
		tent_close(ctx);
		longest_ns = TN_MAX(longest_ns, tn_now_ns() - start_ns);
		rig_start(&r);
	}
	CU_ASSERT_TRUE(longest_ns < 800 * RIG_MS);
	rig_down(&r);
}

/* Workers that are behind say "not now" to whoever makes objects; that is no failure, also not after a death. */
static void not_now_is_asked_again(void)
{
	struct rig r;
	struct app a;
	tent_completion c;

	rig_up(&r);
	tn_store_release32(&r.ctl->not_now, 4);
	app_up(&a, &r, 5000);
	CU_ASSERT_EQUAL(tn_load_acquire32(&r.ctl->not_now), 0);
	rig_kill(&r);
	tn_store_release32(&r.ctl->not_now, 7);
	rig_start(&r);
	wait_reattached(&a, 1);
	CU_ASSERT_EQUAL(app_submit(&a, app_request(&a, TENT_WRITE, 0, 64, 1)), TENT_OK);
	app_collect(&a, &c, 1);
	CU_ASSERT_EQUAL(c.status, TENT_OK);
	/* For ever is too long. */
	tent_memory *m;
	tn_store_release32(&r.ctl->not_now, UINT32_MAX);
	CU_ASSERT_EQUAL(tent_memory_alloc(a.ctx, 4096, TENT_RIGHT_LOCAL, 0, &m), TENT_BUSY);
	CU_ASSERT_PTR_NOT_NULL(strstr(tent_last_error(), "no room for it now"));
	app_down(&a);
	rig_down(&r);
}

/* Killed again and again while work flows; the sum must be right. */
static void many_deaths_under_load(void)
{
	struct rig r;
	struct app a;
	tent_completion c[16];
	uint64_t submitted = 0, done = 0, deaths = 0;

	rig_up(&r);
	app_up(&a, &r, 8000);
	uint64_t next_death_ns = tn_now_ns() + 20 * RIG_MS, deadline_ns = tn_now_ns() + 40 * TN_NS_PER_S;
	while ((deaths < 8 || done < submitted) && tn_now_ns() < deadline_ns) {
		if (deaths < 8 && app_submit(&a, app_request(&a, submitted % 2 ? TENT_READ : TENT_WRITE, 0, 256,
							     submitted)) == TENT_OK)
			submitted++;
		int n = tent_wait(a.qp, c, 16, tent_qp_outstanding(a.qp) < 12 ? 0 : 10 * RIG_MS);
		CU_ASSERT_FATAL(n >= 0);
		for (int i = 0; i < n; i++)
			CU_ASSERT_EQUAL(c[i].status, TENT_OK);
		done += (uint64_t)n;
		if (deaths < 8 && submitted > 16 * (deaths + 1) && tn_now_ns() > next_death_ns) {
			rig_kill(&r);
			rig_start(&r);
			deaths++;
			next_death_ns = tn_now_ns() + 20 * RIG_MS;
		}
	}
	CU_ASSERT_EQUAL(done, submitted);
	CU_ASSERT_TRUE(submitted > 100);
	app_expect_quiet(&a, 20);
	app_down(&a);
	rig_wait_zero(&r.ctl->clients);
	rig_down(&r);
}

/* After a restart a policy is asked for again: also requests from before name it by its new number, and one that is
 * gone matches nothing. */
static void policies_are_asked_for_again(void)
{
	struct rig r;
	struct app a;
	tent_completion c;
	uint16_t fast;

	up(&r, &a);
	CU_ASSERT_EQUAL(tent_policy_find(a.ctx, "fast", &fast), TENT_OK);
	tent_request rq = app_request(&a, TENT_WRITE, 0, 64, 1);
	rq.policy = fast;
	for (uint32_t shift = 10; shift != 0; shift = shift == 10 ? 1000 : shift == 1000 ? 20 : 0) {
		rig_set(&r, &r.ctl->may_finish, 0);
		uint32_t taken = tn_load_acquire32(&r.ctl->taken);
		CU_ASSERT_EQUAL(app_submit(&a, rq), TENT_OK);
		rig_wait_for(&r.ctl->taken, taken + 1);
		rig_kill(&r);
		tn_store_release32(&r.ctl->policy_shift, shift);
		tn_store_release32(&r.ctl->may_finish, UINT32_MAX);
		rig_start(&r);
		app_collect(&a, &c, 1);
		CU_ASSERT_EQUAL(c.status, TENT_OK);
		uint32_t want = shift == 1000 ? SHR_POLICY_GONE : STANDIN_POLICY_ID + shift + 1;
		CU_ASSERT_EQUAL(tn_load_acquire32(&r.ctl->last_policy), want);
	}
	app_down(&a);
	rig_down(&r);
}

TN_TEST_MAIN("libtent recover",
	{ "policies are asked for again", policies_are_asked_for_again },
	{ "handles survive", handles_survive },
	{ "the replay law", the_replay_law },
	{ "the old ring is drained first", the_old_ring_is_drained_first },
	{ "busy memory is released by death", busy_memory_is_released_by_death },
	{ "requests are accepted while there is no data plane", requests_are_accepted_while_there_is_no_data_plane },
	{ "deadlines hold without a data plane", deadlines_hold_without_a_data_plane },
	{ "when none comes back everything ends", when_none_comes_back_everything_ends },
	{ "a batch keeps its notice behind its data", a_batch_keeps_its_notice_behind_its_data },
	{ "a failure before death still cancels the notice", a_failure_before_death_still_cancels_the_notice },
	{ "a batch of another publication is not announced", a_batch_of_another_publication_is_not_announced },
	{ "a batch whose notice may have gone is not replayed", a_batch_whose_notice_may_have_gone_is_not_replayed },
	{ "an open is repeated until the segment is back", an_open_is_repeated_until_the_segment_is_back },
	{ "a slow publish is waited for", a_slow_publish_is_waited_for },
	{ "a withdrawn segment stays withdrawn", a_withdrawn_segment_stays_withdrawn },
	{ "a segment that is refused is lost", a_segment_that_is_refused_is_lost },
	{ "a segment waits for memory there", a_segment_waits_for_memory_there },
	{ "memory waits for memory there", memory_waits_for_memory_there },
	{ "memory waits for memory there", memory_waits_for_memory_there },
	{ "what does not come back fails alone", what_does_not_come_back_fails_alone },
	{ "control calls wait for the successor", control_calls_wait_for_the_successor },
	{ "closing meets the successor", closing_meets_the_successor },
	{ "closing meets a death", closing_meets_a_death },
	{ "not now is asked again", not_now_is_asked_again },
	{ "many deaths under load", many_deaths_under_load })
