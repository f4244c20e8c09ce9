/* SPDX-License-Identifier: Apache-2.0
 * Opening and closing a context: where the data plane is looked for, what is wrong when it is not there, and what a
 * child of fork() may still do. */
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/clock.h"
#include "tests/unit/libtent/rig.h"

static uint64_t patience_ms = 2000;

static tent_status open_in(const char *dir)
{
	tent_options o = TENT_OPTIONS_INIT;
	tent_context *ctx = NULL;

	o.runtime_dir = dir;
	o.timeout_ns = patience_ms * RIG_MS;
	tent_status s = tent_open(&o, &ctx);
	CU_ASSERT_EQUAL(ctx != NULL, s == TENT_OK);
	tent_close(ctx);
	return s;
}

static void nobody_there(void)
{
	CU_ASSERT_EQUAL(open_in("/nonexistent"), TENT_DATAPLANE_DOWN);
	CU_ASSERT_PTR_NOT_NULL(strstr(tent_last_error(), "/nonexistent/attach.sock"));
	CU_ASSERT_PTR_NOT_NULL(strstr(tent_last_error(), "start tent-dataplane"));
	struct rig r;
	rig_up(&r);
	rig_kill(&r); /* the socket file is left behind */
	CU_ASSERT_EQUAL(open_in(r.dir), TENT_DATAPLANE_DOWN);
	rig_down(&r);
}

/* Whose limit it is: room for all but the socket. */
static void no_descriptor_left(void)
{
	struct rig r;
	struct rlimit before, few;

	rig_up(&r);
	int one = dup(0), two = dup(0);
	CU_ASSERT_FATAL(one >= 0 && two >= 0 && getrlimit(RLIMIT_NOFILE, &before) == 0);
	(void)close(one);
	(void)close(two);
	few = (struct rlimit){ .rlim_cur = (rlim_t)two + 1, .rlim_max = before.rlim_max };
	CU_ASSERT_EQUAL(setrlimit(RLIMIT_NOFILE, &few), 0);
	CU_ASSERT_EQUAL(open_in(r.dir), TENT_LIMIT);
	CU_ASSERT_PTR_NOT_NULL(strstr(tent_last_error(), "this process has no file descriptor left"));
	CU_ASSERT_EQUAL(setrlimit(RLIMIT_NOFILE, &before), 0);
	CU_ASSERT_EQUAL(open_in(r.dir), TENT_OK);
	rig_down(&r);
}

static void bad_options(void)
{
	tent_context *ctx = NULL;
	tent_options o = TENT_OPTIONS_INIT;
	char longer[300];

	CU_ASSERT_EQUAL(tent_open(&o, NULL), TENT_INVALID);
	o.size = 3;
	CU_ASSERT_EQUAL(tent_open(&o, &ctx), TENT_INVALID);
	CU_ASSERT_PTR_NOT_NULL(strstr(tent_last_error(), "TENT_OPTIONS_INIT"));
	o = (tent_options)TENT_OPTIONS_INIT;
	o.app_name = "a name that is longer than what fits";
	CU_ASSERT_EQUAL(tent_open(&o, &ctx), TENT_TOO_BIG);
	memset(longer, 'x', sizeof longer);
	longer[sizeof longer - 1] = '\0';
	o = (tent_options)TENT_OPTIONS_INIT;
	o.runtime_dir = longer;
	CU_ASSERT_EQUAL(tent_open(&o, &ctx), TENT_TOO_BIG);
	CU_ASSERT_PTR_NULL(ctx);
	CU_ASSERT_EQUAL(tent_query(NULL, NULL), TENT_INVALID);
	CU_ASSERT_EQUAL(tent_close(NULL), TENT_OK);
}

/* A caller that was compiled with the first version of the struct. */
static void options_may_grow(void)
{
	struct rig r;
	tent_context *ctx = NULL;

	rig_up(&r);
	struct { size_t size; const char *runtime_dir; } old = { sizeof old, r.dir };
	CU_ASSERT_EQUAL(tent_open((const tent_options *)(const void *)&old, &ctx), TENT_OK);
	struct { size_t size; tent_state state; uint32_t canary; } small = { offsetof(tent_info, session), 0, 77 };
	CU_ASSERT_EQUAL(tent_query(ctx, (tent_info *)(void *)&small), TENT_OK);
	CU_ASSERT_EQUAL(small.state, TENT_STATE_ATTACHED);
	CU_ASSERT_EQUAL(small.canary, 77);
	small.size = 4;
	CU_ASSERT_EQUAL(tent_query(ctx, (tent_info *)(void *)&small), TENT_INVALID);
	CU_ASSERT_EQUAL(tent_close(ctx), TENT_OK);
	rig_down(&r);
}

/* A caller that was compiled with a later version: what it asks for beyond ours is refused, not ignored. */
static void newer_options_are_understood_or_refused(void)
{
	struct { tent_options o; uint64_t later[3]; } opt = { TENT_OPTIONS_INIT, { 0 } };
	struct { tent_qp_options o; uint64_t later[1]; } qp_opt = { TENT_QP_OPTIONS_INIT, { 0 } };
	struct { tent_access a; uint64_t later[2]; } access = { TENT_ACCESS_INIT, { 0 } };
	struct { tent_info i; uint64_t later[2]; } info = { TENT_INFO_INIT, { 77, 77 } };
	const tent_options *o = (const tent_options *)(const void *)&opt;
	const tent_qp_options *qo = (const tent_qp_options *)(const void *)&qp_opt;
	const tent_access *ac = (const tent_access *)(const void *)&access;
	struct rig r;
	tent_context *ctx = NULL;
	tent_qp *qp = NULL;
	tent_memory *m = NULL;
	tent_published *pub = NULL;

	rig_up(&r);
	opt.o.size = sizeof opt;
	opt.o.runtime_dir = r.dir;
	opt.later[2] = 1;
	CU_ASSERT_EQUAL(tent_open(o, &ctx), TENT_INVALID);
	CU_ASSERT_PTR_NOT_NULL(strstr(tent_last_error(), "asks for something that libtent"));
	opt.later[2] = 0;
	CU_ASSERT_EQUAL_FATAL(tent_open(o, &ctx), TENT_OK);
	qp_opt.o.size = sizeof qp_opt;
	qp_opt.later[0] = 1;
	CU_ASSERT_EQUAL(tent_qp_create(ctx, qo, &qp), TENT_INVALID);
	qp_opt.later[0] = 0;
	qp_opt.o.reserved = 1;
	CU_ASSERT_EQUAL(tent_qp_create(ctx, qo, &qp), TENT_INVALID);
	qp_opt.o.reserved = 0;
	CU_ASSERT_EQUAL(tent_qp_create(ctx, qo, &qp), TENT_OK);
	CU_ASSERT_EQUAL(tent_memory_alloc(ctx, 4096, TENT_RIGHT_REMOTE_READ, 0, &m), TENT_OK);
	tent_buffer b = { .memory = m };
	access.a.size = sizeof access;
	access.later[1] = 1;
	CU_ASSERT_EQUAL(tent_segment_publish(ctx, "n", &b, 1, ac, &pub), TENT_INVALID);
	access.later[1] = 0;
	CU_ASSERT_EQUAL(tent_segment_publish(ctx, "n", &b, 1, ac, &pub), TENT_OK);
	/* Output: the library says how much it knows, and leaves the rest alone. */
	info.i.size = sizeof info;
	CU_ASSERT_EQUAL(tent_query(ctx, (tent_info *)(void *)&info), TENT_OK);
	CU_ASSERT_EQUAL(info.i.size, sizeof(tent_info));
	CU_ASSERT_EQUAL(info.later[0], 77);
	CU_ASSERT_EQUAL(tent_api_version(), TENT_API_VERSION);
	CU_ASSERT_EQUAL(tent_close(ctx), TENT_OK);
	rig_down(&r);
}

/* A data plane that does not answer: whoever closes learns that its memory may still be touched. */
static void closing_tells_when_nobody_confirmed_it(void)
{
	struct rig r;

	rig_up(&r);
	tent_context *ctx = rig_open(&r, 1000);
	rig_set(&r, &r.ctl->silent, 1);
	CU_ASSERT_EQUAL(tent_close(ctx), TENT_TIMEOUT);
	CU_ASSERT_PTR_NOT_NULL(strstr(tent_last_error(), "tent_close"));
	rig_down(&r);
}

static void the_environment_names_the_place(void)
{
	struct rig r;

	rig_up(&r);
	setenv("TENT_RUNTIME_DIR", r.dir, 1);
	CU_ASSERT_EQUAL(open_in(NULL), TENT_OK);
	setenv("TENT_RUNTIME_DIR", "/nonexistent", 1);
	CU_ASSERT_EQUAL(open_in(NULL), TENT_DATAPLANE_DOWN);
	CU_ASSERT_EQUAL(open_in(r.dir), TENT_OK);
	unsetenv("TENT_RUNTIME_DIR");
	rig_down(&r);
}

/* Somebody else's socket, which answers something else. */
static void a_stranger_listens(void)
{
	char dir[] = "/tmp/libtent-stranger-XXXXXX";
	struct sockaddr_un a = { .sun_family = AF_UNIX };

	CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(dir));
	snprintf(a.sun_path, sizeof a.sun_path, "%s/attach.sock", dir);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	CU_ASSERT_EQUAL_FATAL(bind(fd, (struct sockaddr *)&a, sizeof a), 0);
	CU_ASSERT_EQUAL_FATAL(listen(fd, 4), 0);
	patience_ms = 50;
	CU_ASSERT_EQUAL(open_in(dir), TENT_TIMEOUT); /* silent */
	patience_ms = 2000;
	pid_t pid = fork();
	if (pid == 0) {
		/* The first connection is the one that gave up. */
		for (int i = 0; i < 2; i++) {
			int c = accept(fd, NULL, NULL);
			(void)!write(c, "HTTP/1.1 400", 12);
			(void)!read(c, dir, 1);
		}
		_exit(0);
	}
	CU_ASSERT_EQUAL(open_in(dir), TENT_ABI_MISMATCH);
	close(fd);
	waitpid(pid, NULL, 0);
	unlink(a.sun_path);
	rmdir(dir);
}

/* A child may open a context of its own. (Not under the thread sanitizer, which cannot follow a thread that starts
 * after the fork of a process with threads.) */
static int open_own(const struct rig *r, const struct app *a)
{
#ifdef __SANITIZE_THREAD__
	(void)r, (void)a;
	return 0;
#else
	tent_options o = TENT_OPTIONS_INIT;
	tent_context *own = NULL;
	int status;

	o.runtime_dir = r->dir;
	int bad = tent_open(&o, &own) != TENT_OK;
	bad += tent_query(a->ctx, NULL) != TENT_FORKED;
	pid_t grandchild = fork();
	if (grandchild == 0)
		_exit(tent_query(own, NULL) != TENT_FORKED);
	bad += waitpid(grandchild, &status, 0) != grandchild || !WIFEXITED(status) || WEXITSTATUS(status) != 0;
	tent_close(own);
	return bad;
#endif
}

static int child_of(struct app *a)
{
	tent_completion c;
	tent_note n = TENT_NOTE_INIT;
	tent_memory *m;
	tent_segment *s;
	tent_qp *q;
	tent_info i = TENT_INFO_INIT;
	tent_request rq = app_request(a, TENT_READ, 0, 64, 1);
	int bad = 0;

	bad += tent_submit(a->qp, &rq, 1, NULL) != TENT_FORKED;
	bad += tent_poll(a->qp, &c, 1) != TENT_FORKED;
	bad += tent_wait(a->qp, &c, 1, 0) != TENT_FORKED;
	bad += tent_arm(a->qp) != TENT_FORKED;
	bad += tent_cancel(a->qp, 1) != TENT_FORKED;
	bad += tent_notify(a->qp, a->seg, 0, NULL, 0, 0, 0) != TENT_FORKED;
	bad += tent_qp_fd(a->qp) != (int)TENT_FORKED;
	bad += tent_query(a->ctx, &i) != TENT_FORKED;
	bad += tent_note_recv(a->ctx, &n, 0) != TENT_FORKED;
	bad += tent_memory_alloc(a->ctx, 4096, TENT_RIGHT_LOCAL, 0, &m) != TENT_FORKED;
	bad += tent_memory_free(a->near) != TENT_FORKED;
	bad += tent_segment_open(a->ctx, "far", &s) != TENT_FORKED;
	bad += tent_segment_close(a->seg) != TENT_FORKED;
	bad += tent_segment_withdraw(a->pub) != TENT_FORKED;
	bad += tent_segment_published(a->pub) != TENT_FORKED;
	bad += tent_qp_create(a->ctx, NULL, &q) != TENT_FORKED;
	bad += strstr(tent_last_error(), "before fork") == NULL;
	bad += tent_qp_destroy(a->qp) != TENT_FORKED;
	return bad;
}

static void handles_are_dead_after_fork(void)
{
	struct rig r;
	struct app a;
	tent_completion c;
	int status;

	rig_up(&r);
	app_up(&a, &r, 1000);
	pid_t pid = fork();
	if (pid == 0) {
		int bad = child_of(&a) + open_own(&r, &a);
		bad += tent_close(a.ctx) != TENT_FORKED;
		_exit(bad);
	}
	CU_ASSERT_EQUAL(waitpid(pid, &status, 0), pid);
	CU_ASSERT_TRUE(WIFEXITED(status));
	CU_ASSERT_EQUAL(WEXITSTATUS(status), 0);
	/* The parent notices nothing. */
	CU_ASSERT_EQUAL(app_submit(&a, app_request(&a, TENT_WRITE, 0, 64, 1)), TENT_OK);
	app_collect(&a, &c, 1);
	CU_ASSERT_EQUAL(c.status, TENT_OK);
	app_down(&a);
	rig_down(&r);
}

static int open_fds(void)
{
	int n = 0;

	for (int fd = 0; fd < 256; fd++) {
		struct stat st;
		n += fstat(fd, &st) == 0;
	}
	return n;
}

static void closing_leaves_nothing(void)
{
	struct rig r;
	struct app a;

	rig_up(&r);
	int before = open_fds();
	for (int i = 0; i < 20; i++) {
		app_up(&a, &r, 1000);
		app_down(&a);
	}
	CU_ASSERT_EQUAL(open_fds(), before);
	rig_wait_zero(&r.ctl->clients);
	CU_ASSERT_EQUAL(tn_load_acquire32(&r.ctl->memories), 0);
	CU_ASSERT_EQUAL(tn_load_acquire32(&r.ctl->segments), 0);
	/* Also while there is no data plane, and while one is looked for. */
	app_up(&a, &r, 5000);
	rig_kill(&r);
	uint64_t start_ns = tn_now_ns();
	app_down(&a);
	CU_ASSERT_TRUE(tn_now_ns() - start_ns < 2 * TN_NS_PER_S);
	rig_down(&r);
}

TN_TEST_MAIN("libtent attach",
	{ "nobody there", nobody_there },
	{ "no descriptor left", no_descriptor_left },
	{ "bad options", bad_options },
	{ "options may grow", options_may_grow },
	{ "newer options are understood or refused", newer_options_are_understood_or_refused },
	{ "closing tells when nobody confirmed it", closing_tells_when_nobody_confirmed_it },
	{ "the environment names the place", the_environment_names_the_place },
	{ "a stranger listens", a_stranger_listens },
	{ "handles are dead after fork", handles_are_dead_after_fork },
	{ "closing leaves nothing", closing_leaves_nothing })
