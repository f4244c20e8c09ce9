/* SPDX-License-Identifier: Apache-2.0
 * Notices: order behind their batch, the inbox and its bound, and that the sender learns the outcome. */
#include <poll.h>
#include <string.h>

#include "common/clock.h"
#include "common/domain.h"
#include "tests/unit/libtent/rig.h"

static void a_notice_arrives_whole(void)
{
	struct rig r;
	struct app a;
	tent_completion c;
	tent_note note = TENT_NOTE_INIT;
	static uint8_t payload[TENT_NOTE_MAX + 1];

	rig_up(&r);
	app_up(&a, &r, 1000);
	for (size_t i = 0; i < sizeof payload; i++)
		payload[i] = (uint8_t)(i * 7);
	CU_ASSERT_EQUAL(tent_note_recv(a.ctx, &note, 0), TENT_AGAIN);
	tent_note unset = { .size = sizeof unset - 1 };
	CU_ASSERT_EQUAL(tent_note_recv(a.ctx, &unset, 0), TENT_INVALID);
	CU_ASSERT_PTR_NOT_NULL(strstr(tent_last_error(), "TENT_NOTE_INIT"));
	size_t sizes[] = { 0, 1, 7, 8, 9, 4095, TENT_NOTE_MAX };
	for (size_t i = 0; i < TN_ARRAY_LEN(sizes); i++) {
		CU_ASSERT_EQUAL(tent_notify(a.qp, a.seg, 0, payload, sizes[i], 40 + i, 0), TENT_OK);
		app_collect(&a, &c, 1);
		CU_ASSERT_EQUAL(c.status, TENT_OK);
		CU_ASSERT_EQUAL(c.kind, TENT_COMPLETION_NOTIFY);
		CU_ASSERT_EQUAL(c.user_data, 40 + i);
		CU_ASSERT_EQUAL(tent_note_recv(a.ctx, &note, TN_NS_PER_S), TENT_OK);
		CU_ASSERT_EQUAL(note.size, sizeof note);
		CU_ASSERT_EQUAL(note.kind, TENT_NOTE_DATA);
		CU_ASSERT_EQUAL(note.status, TENT_OK);
		CU_ASSERT_EQUAL(note.bytes, sizes[i]);
		CU_ASSERT_EQUAL(memcmp(note.payload, payload, sizes[i]), 0);
		CU_ASSERT_STRING_EQUAL(note.segment, "far");
		CU_ASSERT_STRING_EQUAL(note.from, "");
		CU_ASSERT_EQUAL(note.seq, i + 1);
	}
	CU_ASSERT_EQUAL(tent_notify(a.qp, a.seg, 0, payload, TENT_NOTE_MAX + 1, 1, 0), TENT_TOO_BIG);
	CU_ASSERT_EQUAL(tent_notify(a.qp, a.seg, 0, NULL, 1, 1, 0), TENT_INVALID);
	CU_ASSERT_EQUAL(tent_notify(a.qp, NULL, 0, NULL, 0, 1, 0), TENT_INVALID);
	app_down(&a);
	rig_down(&r);
}

static void the_inbox_is_bounded_and_can_be_watched(void)
{
	struct rig r;
	struct app a;
	tent_completion c;
	tent_note note = TENT_NOTE_INIT;

	rig_up(&r);
	app_up(&a, &r, 1000);
	struct pollfd p = { tent_note_fd(a.ctx), POLLIN, 0 };
	CU_ASSERT_EQUAL(poll(&p, 1, 0), 0);
	for (unsigned i = 0; i < STANDIN_NOTE_INBOX; i++) {
		CU_ASSERT_EQUAL(tent_notify(a.qp, a.seg, 0, "x", 1, i, 0), TENT_OK);
		app_collect(&a, &c, 1);
		CU_ASSERT_EQUAL(c.status, TENT_OK);
	}
	CU_ASSERT_EQUAL(tent_notify(a.qp, a.seg, 0, "x", 1, 9, 0), TENT_OK);
	app_collect(&a, &c, 1);
	CU_ASSERT_EQUAL(c.outcome, TENT_OUTCOME_FAILED);
	CU_ASSERT_EQUAL(c.reason, TN_REASON_QUEUE_FULL);
	CU_ASSERT_EQUAL(poll(&p, 1, 5000), 1);
	for (unsigned i = 0; i < STANDIN_NOTE_INBOX; i++)
		CU_ASSERT_EQUAL(tent_note_recv(a.ctx, &note, TN_NS_PER_S), TENT_OK);
	CU_ASSERT_EQUAL(tent_note_recv(a.ctx, &note, 0), TENT_AGAIN);
	CU_ASSERT_EQUAL(poll(&p, 1, 0), 0);
	rig_wait_for(&r.ctl->acks, STANDIN_NOTE_INBOX);
	for (unsigned i = 0; i < 3 * STANDIN_NOTE_INBOX; i++) {
		CU_ASSERT_EQUAL(tent_notify(a.qp, a.seg, 0, "x", 1, i, 0), TENT_OK);
		app_collect(&a, &c, 1);
		CU_ASSERT_EQUAL(c.status, TENT_OK);
		CU_ASSERT_EQUAL(tent_note_recv(a.ctx, &note, TN_NS_PER_S), TENT_OK);
		rig_wait_for(&r.ctl->acks, STANDIN_NOTE_INBOX + i + 1);
	}
	app_down(&a);
	rig_down(&r);
}

/* More of them than the inbox has room for. */
#define LOST_CNT (5 * STANDIN_NOTE_INBOX)

static tent_published *publish_and_lose(struct rig *r, struct app *a, unsigned i)
{
	tent_buffer b = { .memory = a->far };
	tent_published *pub;
	char name[8];
	uint64_t deadline_ns = tn_now_ns() + 5 * TN_NS_PER_S;

	(void)snprintf(name, sizeof name, "n%u", i);
	CU_ASSERT_EQUAL_FATAL(tent_segment_publish(a->ctx, name, &b, 1, NULL, &pub), TENT_OK);
	rig_set(r, &r->ctl->lose_segments, 1);
	while (tent_segment_published(pub) == TENT_OK && tn_now_ns() < deadline_ns)
		(void)poll(NULL, 0, 1);
	CU_ASSERT_EQUAL(tent_segment_published(pub), TENT_CANCELED);
	return pub;
}

/* What the library says of our own segments takes no room from what others send, and is about handles that are held. */
static void our_own_notices_take_no_room(void)
{
	struct rig r;
	struct app a;
	tent_completion c;
	tent_note note = TENT_NOTE_INIT;
	tent_published *lost[LOST_CNT];
	unsigned own = 0;

	rig_up(&r);
	app_up(&a, &r, 1000);
	for (unsigned i = 0; i < LOST_CNT; i++) /* and "far" is lost with the first */
		lost[i] = publish_and_lose(&r, &a, i);
	tent_buffer b = { .memory = a.far };
	CU_ASSERT_EQUAL(tent_segment_withdraw(a.pub), TENT_OK);
	CU_ASSERT_EQUAL_FATAL(tent_segment_publish(a.ctx, "far", &b, 1, NULL, &a.pub), TENT_OK);
	CU_ASSERT_EQUAL(tent_notify(a.qp, a.seg, 0, "x", 1, 1, 0), TENT_OK);
	app_collect(&a, &c, 1);
	CU_ASSERT_EQUAL(c.status, TENT_OK);
	while (tent_note_recv(a.ctx, &note, TN_NS_PER_S) == TENT_OK && note.kind == TENT_NOTE_SEGMENT_LOST) {
		CU_ASSERT_STRING_NOT_EQUAL(note.segment, "far"); /* the handle of that one is gone */
		CU_ASSERT_EQUAL(note.status, TENT_CANCELED);
		own++;
	}
	CU_ASSERT_EQUAL(own, LOST_CNT);
	CU_ASSERT_EQUAL(note.kind, TENT_NOTE_DATA);
	for (unsigned i = 0; i < LOST_CNT; i++)
		CU_ASSERT_EQUAL(tent_segment_withdraw(lost[i]), TENT_OK);

	tent_published *untold = publish_and_lose(&r, &a, 0);
	struct pollfd p = { .fd = tent_note_fd(a.ctx), .events = POLLIN };
	CU_ASSERT_EQUAL(poll(&p, 1, 0), 1);
	CU_ASSERT_EQUAL(tent_segment_withdraw(untold), TENT_OK);
	CU_ASSERT_EQUAL(tent_note_recv(a.ctx, &note, 0), TENT_OK); /* of the new "far" */
	CU_ASSERT_STRING_EQUAL(note.segment, "far");
	CU_ASSERT_EQUAL(poll(&p, 1, 0), 0);
	CU_ASSERT_EQUAL(tent_note_recv(a.ctx, &note, 0), TENT_AGAIN);
	app_down(&a);
	rig_down(&r);
}

static void a_notice_waits_for_its_batch(void)
{
	struct rig r;
	struct app a;
	tent_completion c[3];

	rig_up(&r);
	app_up(&a, &r, 1000);
	rig_set(&r, &r.ctl->may_finish, 0);
	tent_request rq = app_request(&a, TENT_WRITE, 0, 64, 1);
	rq.batch = 1;
	CU_ASSERT_EQUAL(app_submit(&a, rq), TENT_OK);
	CU_ASSERT_EQUAL(tent_notify(a.qp, a.seg, 1, "x", 1, 2, 0), TENT_OK);
	rig_wait_for(&r.ctl->taken, 2);
	rig_set(&r, &r.ctl->may_finish, 1);
	app_collect(&a, c, 1);
	CU_ASSERT_EQUAL(c[0].user_data, 1);
	app_expect_quiet(&a, 20);
	rig_set(&r, &r.ctl->may_finish, UINT32_MAX);
	app_collect(&a, c, 1);
	CU_ASSERT_EQUAL(c[0].user_data, 2);
	CU_ASSERT_EQUAL(c[0].status, TENT_OK);
	/* One member fails: the notice is not sent, and says so. */
	rig_set(&r, &r.ctl->fail_next, 1);
	CU_ASSERT_EQUAL(app_submit(&a, rq), TENT_OK);
	CU_ASSERT_EQUAL(tent_notify(a.qp, a.seg, 1, "x", 1, 2, 0), TENT_OK);
	app_collect(&a, c, 2);
	CU_ASSERT_EQUAL(app_find(c, 2, 1).outcome, TENT_OUTCOME_FAILED);
	CU_ASSERT_EQUAL(app_find(c, 2, 2).outcome, TENT_OUTCOME_CANCELED);
	CU_ASSERT_EQUAL(tn_load_acquire32(&r.ctl->notices), 1);
	app_down(&a);
	rig_down(&r);
}

static void only_so_many_at_once(void)
{
	struct rig r;
	struct app a;
	tent_completion c[40];
	int n = 0;

	rig_up(&r);
	app_up(&a, &r, 1000);
	tent_qp *wide;
	CU_ASSERT_EQUAL(tent_qp_create(a.ctx, NULL, &wide), TENT_OK);
	rig_set(&r, &r.ctl->may_finish, 0);
	while (tent_notify(wide, a.seg, 0, "x", 1, 1, 0) == TENT_OK)
		n++;
	CU_ASSERT_EQUAL(n, 16); /* payload slots, not requests, are the bound */
	CU_ASSERT_EQUAL(tent_notify(wide, a.seg, 0, NULL, 0, 1, 0), TENT_OK); /* needs none */
	rig_set(&r, &r.ctl->may_finish, UINT32_MAX);
	a.qp = wide;
	app_collect(&a, c, 17);
	CU_ASSERT_EQUAL(tent_notify(wide, a.seg, 0, "x", 1, 1, 0), TENT_OK);
	app_collect(&a, c, 1);
	app_down(&a);
	rig_down(&r);
}

/* The inbox took it, the sender knows: a death of the data plane does not lose it. */
static void notices_outlive_the_data_plane(void)
{
	struct rig r;
	struct app a;
	tent_completion c;
	tent_note note = TENT_NOTE_INIT;

	rig_up(&r);
	app_up(&a, &r, 5000);
	CU_ASSERT_EQUAL(tent_notify(a.qp, a.seg, 0, "kept", 5, 1, 0), TENT_OK);
	app_collect(&a, &c, 1);
	struct pollfd p = { tent_note_fd(a.ctx), POLLIN, 0 };
	CU_ASSERT_EQUAL(poll(&p, 1, 5000), 1);
	rig_kill(&r);
	rig_start(&r);
	rig_wait_for(&r.ctl->opens, 1);
	CU_ASSERT_EQUAL(tent_note_recv(a.ctx, &note, 0), TENT_OK);
	CU_ASSERT_STRING_EQUAL((char *)note.payload, "kept");
	for (unsigned i = 0; i < 2 * STANDIN_NOTE_INBOX; i++) { /* acknowledgements count from zero again */
		CU_ASSERT_EQUAL(tent_notify(a.qp, a.seg, 0, "x", 1, i, 0), TENT_OK);
		app_collect(&a, &c, 1);
		CU_ASSERT_EQUAL(c.status, TENT_OK);
		CU_ASSERT_EQUAL(tent_note_recv(a.ctx, &note, TN_NS_PER_S), TENT_OK);
		rig_wait_for(&r.ctl->acks, i + 1);
	}
	app_down(&a);
	rig_down(&r);
}

TN_TEST_MAIN("libtent notify",
	{ "a notice arrives whole", a_notice_arrives_whole },
	{ "the inbox is bounded and can be watched", the_inbox_is_bounded_and_can_be_watched },
	{ "our own notices take no room", our_own_notices_take_no_room },
	{ "a notice waits for its batch", a_notice_waits_for_its_batch },
	{ "only so many at once", only_so_many_at_once },
	{ "notices outlive the data plane", notices_outlive_the_data_plane })
