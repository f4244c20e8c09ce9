/* SPDX-License-Identifier: Apache-2.0
 * Starts, kills and talks to the stand-in, and builds the application that most tests need. */
#include "tests/unit/libtent/rig.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/clock.h"

#define PATIENCE_NS (20 * TN_NS_PER_S) /* sanitizers and whoever else uses the machine included */

extern char **environ;

static void give_up(const char *what)
{
	fprintf(stderr, "rig: \"%s\" waited too long for %s\n", CU_get_current_test()->pName, what);
	abort();
}

void rig_wait_for(const tn_a32 *counter, uint32_t value)
{
	uint64_t deadline_ns = tn_now_ns() + PATIENCE_NS;

	while (tn_load_acquire32(counter) < value) {
		if (tn_now_ns() > deadline_ns)
			give_up("a counter of the stand-in");
		(void)poll(NULL, 0, 1);
	}
}

void rig_wait_zero(const tn_a32 *counter)
{
	uint64_t deadline_ns = tn_now_ns() + PATIENCE_NS;

	while (tn_load_acquire32(counter) != 0) {
		if (tn_now_ns() > deadline_ns)
			give_up("a counter of the stand-in to become zero");
		(void)poll(NULL, 0, 1);
	}
}

static void control_path(const struct rig *r, char out[static 96])
{
	snprintf(out, 96, "%s/control", r->dir);
}

void rig_start(struct rig *r)
{
	char control[96];
	char *argv[] = { (char *)(uintptr_t)STANDIN_PATH, r->dir, control, NULL };
	uint32_t starts = tn_load_acquire32(&r->ctl->starts);
	posix_spawn_file_actions_t fa;
	int p[2];

	control_path(r, control);
	if (pipe2(p, O_CLOEXEC) != 0)
		abort();
	posix_spawn_file_actions_init(&fa);
	posix_spawn_file_actions_adddup2(&fa, p[0], 0);
	if (posix_spawn(&r->pid, STANDIN_PATH, &fa, NULL, argv, environ) != 0)
		abort();
	posix_spawn_file_actions_destroy(&fa);
	close(p[0]);
	r->kick_fd = p[1];
	rig_wait_for(&r->ctl->starts, starts + 1);
}

void rig_up(struct rig *r)
{
	char control[96];

	*r = (struct rig){ .pid = -1, .kick_fd = -1 };
	snprintf(r->dir, sizeof r->dir, "/tmp/libtent-test-XXXXXX");
	if (mkdtemp(r->dir) == NULL)
		abort();
	control_path(r, control);
	int fd = open(control, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0 || ftruncate(fd, sizeof *r->ctl) != 0)
		abort();
	r->ctl = mmap(NULL, sizeof *r->ctl, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (r->ctl == MAP_FAILED)
		abort();
	tn_store_relaxed32(&r->ctl->may_take, UINT32_MAX);
	tn_store_relaxed32(&r->ctl->may_finish, UINT32_MAX);
	rig_start(r);
}

void rig_kill(struct rig *r)
{
	if (r->pid <= 0)
		return;
	kill(r->pid, SIGKILL);
	waitpid(r->pid, NULL, 0);
	close(r->kick_fd);
	r->pid = -1;
}

void rig_down(struct rig *r)
{
	char path[96];

	rig_kill(r);
	munmap(r->ctl, sizeof *r->ctl);
	control_path(r, path);
	unlink(path);
	snprintf(path, sizeof path, "%s/attach.sock", r->dir);
	unlink(path);
	rmdir(r->dir);
}

void rig_kick(struct rig *r) { (void)!write(r->kick_fd, "k", 1); }

void rig_set(struct rig *r, tn_a32 *knob, uint32_t value)
{
	tn_store_release32(knob, value);
	rig_kick(r);
}

tent_context *rig_open(struct rig *r, uint64_t recover_ms)
{
	tent_options o = TENT_OPTIONS_INIT;
	tent_context *ctx = NULL;

	o.runtime_dir = r->dir;
	o.app_name = "libtent-test";
	o.timeout_ns = TN_NS_PER_S;
	o.recover_timeout_ns = recover_ms * RIG_MS;
	CU_ASSERT_EQUAL(tent_open(&o, &ctx), TENT_OK);
	if (ctx == NULL) {
		fprintf(stderr, "rig: %s\n", tent_last_error());
		abort();
	}
	return ctx;
}

static void must(tent_status s)
{
	if (s != TENT_OK) {
		fprintf(stderr, "rig: %s\n", tent_last_error());
		abort();
	}
}

void app_up(struct app *a, struct rig *r, uint64_t recover_ms)
{
	*a = (struct app){ .ctx = rig_open(r, recover_ms) };
	uint32_t rights = TENT_RIGHT_LOCAL | TENT_RIGHT_REMOTE_READ | TENT_RIGHT_REMOTE_WRITE;
	must(tent_memory_alloc(a->ctx, RIG_BYTES, rights, 0, &a->near));
	must(tent_memory_alloc(a->ctx, RIG_BYTES, rights, 0, &a->far));
	tent_buffer b = { .memory = a->far };
	must(tent_segment_publish(a->ctx, "far", &b, 1, NULL, &a->pub));
	must(tent_segment_open(a->ctx, "far", &a->seg));
	tent_qp_options o = TENT_QP_OPTIONS_INIT;
	o.depth = 16;
	must(tent_qp_create(a->ctx, &o, &a->qp));
}

void app_down(struct app *a) { tent_close(a->ctx); }

tent_request app_request(const struct app *a, tent_opcode op, uint64_t offset, uint64_t bytes, uint64_t user_data)
{
	return (tent_request){ .opcode = op,
			      .priority = TENT_PRIORITY_MEDIUM,
			      .memory = a->near,
			      .memory_offset = offset,
			      .segment = a->seg,
			      .segment_offset = offset,
			      .bytes = bytes,
			      .user_data = user_data };
}

tent_status app_submit(struct app *a, tent_request rq)
{
	size_t accepted = 99;
	tent_status s = tent_submit(a->qp, &rq, 1, &accepted);

	CU_ASSERT_EQUAL(accepted, s == TENT_OK ? 1 : 0);
	return s;
}

void app_collect(struct app *a, tent_completion *out, int cnt)
{
	uint64_t deadline_ns = tn_now_ns() + PATIENCE_NS;
	int got = 0;

	while (got < cnt) {
		uint64_t now_ns = tn_now_ns();
		if (now_ns >= deadline_ns)
			give_up("completions");
		int n = tent_wait(a->qp, out + got, cnt - got, deadline_ns - now_ns);
		if (n < 0) {
			fprintf(stderr, "rig: %s\n", tent_last_error());
			give_up("completions");
		}
		got += n;
	}
}

tent_completion app_find(const tent_completion *c, int cnt, uint64_t user_data)
{
	for (int i = 0; i < cnt; i++)
		if (c[i].user_data == user_data)
			return c[i];
	CU_FAIL("no completion with that user data");
	return (tent_completion){ 0 };
}

void app_expect_quiet(struct app *a, uint64_t ms)
{
	tent_completion c;

	CU_ASSERT_EQUAL(tent_wait(a->qp, &c, 1, ms * RIG_MS), 0);
}

void app_quiet_until(struct app *a, const tn_a32 *counter, uint32_t value)
{
	uint64_t deadline_ns = tn_now_ns() + PATIENCE_NS;

	while (tn_load_acquire32(counter) < value) {
		if (tn_now_ns() > deadline_ns)
			give_up("a counter of the stand-in, asking all the while");
		app_expect_quiet(a, 5);
	}
}
