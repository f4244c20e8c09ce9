/* SPDX-License-Identifier: Apache-2.0
 * A data plane that writes nonsense, throws us out, or says nothing: the application gets a clean end of everything
 * outstanding and never a crash, a hang, or a completion it did not earn. */
#include <poll.h>
#include <string.h>

#include "common/clock.h"
#include "tests/unit/libtent/rig.h"

static void expect_broken(struct app *a, int outstanding, const char *why)
{
	tent_completion c[8];

	app_collect(a, c, outstanding);
	for (int i = 0; i < outstanding; i++) {
		CU_ASSERT_EQUAL(c[i].status, TENT_CLIENT_BROKEN);
		CU_ASSERT_EQUAL(c[i].outcome, TENT_OUTCOME_FAILED);
	}
	CU_ASSERT_EQUAL(tent_wait(a->qp, c, 1, 5 * TN_NS_PER_S), TENT_CLIENT_BROKEN);
	CU_ASSERT_PTR_NOT_NULL(strstr(tent_last_error(), why));
	CU_ASSERT_EQUAL(tent_qp_outstanding(a->qp), 0);
}

static void ring_with(enum standin_corrupt what, const char *why)
{
	struct rig r;
	struct app a;

	rig_up(&r);
	app_up(&a, &r, 2000);
	tn_store_release32(&r.ctl->corrupt, what);
	rig_set(&r, &r.ctl->may_finish, 1);
	CU_ASSERT_EQUAL(app_submit(&a, app_request(&a, TENT_WRITE, 0, 64, 1)), TENT_OK);
	CU_ASSERT_EQUAL(app_submit(&a, app_request(&a, TENT_WRITE, 0, 64, 2)), TENT_OK);
	expect_broken(&a, 2, why);
	rig_wait_zero(&r.ctl->clients); /* we hung up on it */
	app_down(&a);
	rig_down(&r);
}

static void bad_token(void) { ring_with(STANDIN_BAD_TOKEN, "names no request"); }
static void bad_kind(void) { ring_with(STANDIN_BAD_KIND, "names no request"); }
static void bad_outcome(void) { ring_with(STANDIN_BAD_OUTCOME, "malformed"); }
static void bad_bytes(void) { ring_with(STANDIN_BAD_BYTES, "malformed"); }
static void early_release(void) { ring_with(STANDIN_EARLY_RELEASE, "names no request"); }

static void bad_completion_index(void)
{
	struct rig r;
	struct app a;

	rig_up(&r);
	app_up(&a, &r, 2000);
	rig_set(&r, &r.ctl->may_finish, 0);
	CU_ASSERT_EQUAL(app_submit(&a, app_request(&a, TENT_WRITE, 0, 64, 1)), TENT_OK);
	CU_ASSERT_EQUAL(app_submit(&a, app_request(&a, TENT_WRITE, 0, 64, 2)), TENT_OK);
	rig_wait_for(&r.ctl->taken, 2);
	rig_set(&r, &r.ctl->wild_index, 1);
	expect_broken(&a, 2, "completion queue is out of range");
	app_down(&a);
	rig_down(&r);
}

static void bad_submission_index(void)
{
	struct rig r;
	struct app a;
	size_t accepted = 0;

	rig_up(&r);
	app_up(&a, &r, 2000);
	rig_set(&r, &r.ctl->may_take, 0);
	tent_request rq = app_request(&a, TENT_WRITE, 0, 64, 0);
	for (int i = 0; i < 15; i++)
		CU_ASSERT_EQUAL(tent_submit(a.qp, &rq, 1, NULL), TENT_OK);
	rig_set(&r, &r.ctl->wild_index, 2);
	rig_wait_zero(&r.ctl->wild_index);
	/* The index is looked at when the known room is used up. */
	(void)tent_submit(a.qp, &rq, 1, &accepted);
	for (int i = 0; i < 3; i++)
		(void)tent_cancel(a.qp, 0);
	tent_completion c[16];
	app_collect(&a, c, 15 + (int)accepted);
	CU_ASSERT_EQUAL(c[0].status, TENT_CLIENT_BROKEN);
	CU_ASSERT_EQUAL(tent_wait(a.qp, c, 1, 5 * TN_NS_PER_S), TENT_CLIENT_BROKEN);
	CU_ASSERT_PTR_NOT_NULL(strstr(tent_last_error(), "submission queue is out of range"));
	app_down(&a);
	rig_down(&r);
}

static void nonsense_on_the_socket(void)
{
	struct rig r;
	struct app a;

	rig_up(&r);
	app_up(&a, &r, 2000);
	rig_set(&r, &r.ctl->may_finish, 0);
	CU_ASSERT_EQUAL(app_submit(&a, app_request(&a, TENT_WRITE, 0, 64, 1)), TENT_OK);
	rig_set(&r, &r.ctl->nonsense, 1);
	expect_broken(&a, 1, "not of the attach protocol");
	app_down(&a);
	rig_down(&r);
}

/* It says nonsense, and then not a word nor a hang-up, as one that is stopped. */
static void nonsense_then_silence(struct rig *r, struct app *a, uint64_t recover_ms)
{
	rig_up(r);
	app_up(a, r, recover_ms);
	tn_store_release32(&r->ctl->silent, 1);
	rig_set(r, &r->ctl->nonsense, 1);
}

/* Given up: nobody says that our memory is quiet. */
static void nobody_let_go(void)
{
	struct rig r;
	struct app a;

	nonsense_then_silence(&r, &a, 100);
	expect_broken(&a, 0, "not of the attach protocol");
	CU_ASSERT_EQUAL(tent_memory_free(a.near), TENT_CLIENT_BROKEN);
	CU_ASSERT_EQUAL(tent_qp_destroy(a.qp), TENT_CLIENT_BROKEN);
	CU_ASSERT_PTR_NOT_NULL(strstr(tent_last_error(), "let go"));
	CU_ASSERT_EQUAL(tent_close(a.ctx), TENT_CLIENT_BROKEN);
	CU_ASSERT_PTR_NOT_NULL(strstr(tent_last_error(), "let go"));
	rig_down(&r);
}

/* Closed while the library still waits for the hang-up. */
static void closed_before_anybody_let_go(void)
{
	struct rig r;
	struct app a;

	nonsense_then_silence(&r, &a, 500);
	rig_wait_zero(&r.ctl->nonsense);
	(void)poll(NULL, 0, 100);
	CU_ASSERT_EQUAL(tent_close(a.ctx), TENT_CLIENT_BROKEN);
	rig_down(&r);
}

/* Nonsense instead of the answer to our goodbye is no answer; the hang-up behind it is one. */
static void nonsense_is_no_goodbye(void)
{
	for (uint32_t stays = 0; stays <= 1; stays++) {
		struct rig r;

		rig_up(&r);
		tent_context *ctx = rig_open(&r, 300);
		rig_set(&r, &r.ctl->nonsense_to_bye, 1 + stays);
		CU_ASSERT_EQUAL(tent_close(ctx), stays ? TENT_CLIENT_BROKEN : TENT_OK);
		rig_down(&r);
	}
}

/* It lives on but wants us no more: attaching again by ourselves would only repeat what broke. */
static void being_thrown_out(void)
{
	struct rig r;
	struct app a;

	rig_up(&r);
	app_up(&a, &r, 3000);
	rig_set(&r, &r.ctl->may_finish, 0);
	CU_ASSERT_EQUAL(app_submit(&a, app_request(&a, TENT_WRITE, 0, 64, 1)), TENT_OK);
	rig_wait_for(&r.ctl->taken, 1);
	rig_set(&r, &r.ctl->drop_clients, 1);
	expect_broken(&a, 1, "dropped this attachment");
	app_down(&a);
	/* A new context is welcome. */
	rig_set(&r, &r.ctl->may_finish, UINT32_MAX);
	app_up(&a, &r, 1000);
	app_down(&a);
	rig_down(&r);
}

/* A stray write of the application into its own ring: the data plane drops it; nobody else notices. */
static void our_own_ring_scribbled_over(void)
{
	struct rig r;
	struct app a;

	rig_up(&r);
	app_up(&a, &r, 3000);
	tent_context *other = rig_open(&r, 1000);
	rig_set(&r, &r.ctl->wild_index, 3);
	expect_broken(&a, 0, "dropped this attachment");
	tent_info i = TENT_INFO_INIT;
	CU_ASSERT_EQUAL(tent_query(other, &i), TENT_OK);
	tent_close(other);
	app_down(&a);
	rig_down(&r);
}

/* Says nothing more: calls end with their time-out, and a late answer that made something is taken back. */
static void silence(void)
{
	struct rig r;
	tent_memory *m;

	rig_up(&r);
	tent_context *ctx = rig_open(&r, 1000);
	rig_set(&r, &r.ctl->silent, 1);
	uint64_t start_ns = tn_now_ns();
	CU_ASSERT_EQUAL(tent_memory_alloc(ctx, 4096, TENT_RIGHT_LOCAL, 0, &m), TENT_TIMEOUT);
	CU_ASSERT_TRUE(tn_now_ns() - start_ns < 3 * TN_NS_PER_S);
	CU_ASSERT_PTR_NOT_NULL(strstr(tent_last_error(), "tent_memory_alloc"));
	rig_set(&r, &r.ctl->silent, 0); /* now it answers what it had put off */
	rig_wait_for(&r.ctl->registers_seen, 1);
	rig_wait_zero(&r.ctl->memories);
	CU_ASSERT_EQUAL(tent_memory_alloc(ctx, 4096, TENT_RIGHT_LOCAL, 0, &m), TENT_OK);
	tent_close(ctx);
	rig_down(&r);
}

TN_TEST_MAIN("libtent corrupt",
	{ "a token of the past", bad_token },
	{ "an unknown kind", bad_kind },
	{ "an unknown outcome", bad_outcome },
	{ "more bytes than asked", bad_bytes },
	{ "a release before its terminal", early_release },
	{ "a wild completion index", bad_completion_index },
	{ "a wild submission index", bad_submission_index },
	{ "nonsense on the socket", nonsense_on_the_socket },
	{ "nobody let go", nobody_let_go },
	{ "closed before anybody let go", closed_before_anybody_let_go },
	{ "nonsense is no goodbye", nonsense_is_no_goodbye },
	{ "being thrown out", being_thrown_out },
	{ "our own ring scribbled over", our_own_ring_scribbled_over },
	{ "silence", silence })
