/* SPDX-License-Identifier: Apache-2.0
 * Opens and closes an attachment: options, where the data plane listens, HELLO, the keeper thread. Application
 * threads; what happens between open and close is in keeper.c and recover.c. */
#include "dataplane/libtent/context.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/assert.h"
#include "common/paths.h"
#include "dataplane/libtent/call.h"
#include "dataplane/libtent/memory.h"
#include "dataplane/libtent/options.h"
#include "dataplane/libtent/queue.h"

#define DEFAULT_TIMEOUT_NS (5 * TN_NS_PER_S)
#define DEFAULT_RECOVER_NS (30 * TN_NS_PER_S)

/* ---- small things that every file uses ---- */

tent_status lt_context_check(const tent_context *ctx, const char *call)
{
	if (ctx == NULL)
		return lt_fail(TN_INVALID, "%s: ctx is NULL", call);
	if (lt_forked(ctx->fork_mark))
		return lt_fail(TN_FORKED, "%s: the context was opened before fork()", call);
	return TENT_OK;
}

tent_status lt_context_fail_dead(const tent_context *ctx, const char *call)
{
	return lt_fail(ctx->dead_status, "%s: %s", call, ctx->dead_text);
}

bool lt_context_wait(tent_context *ctx, uint64_t deadline_ns)
{
	struct timespec ts = { .tv_sec = (time_t)(deadline_ns / TN_NS_PER_S),
			      .tv_nsec = (long)(deadline_ns % TN_NS_PER_S) };

	if (deadline_ns == UINT64_MAX)
		return pthread_cond_wait(&ctx->cond, &ctx->lock) == 0;
	return pthread_cond_timedwait(&ctx->cond, &ctx->lock, &ts) != ETIMEDOUT;
}

#define X(from, to, when) | LT_MOVE_BIT(LT_CONTEXT_##from, LT_CONTEXT_##to)
static const uint64_t allowed = UINT64_C(0) LT_CONTEXT_MOVES(X);
#undef X
TN_STATIC_ASSERT((int)LT_CONTEXT_ATTACHED == (int)TENT_STATE_ATTACHED &&
			 (int)LT_CONTEXT_RECOVERING == (int)TENT_STATE_RECOVERING &&
			 (int)LT_CONTEXT_DEAD == (int)TENT_STATE_DEAD,
		 "states are those of the API");

#if TENT_HOOKS
void (*lt_move_seen)(enum lt_machine machine, unsigned from, unsigned to);
#endif

void lt_context_move(tent_context *ctx, enum lt_context_state next)
{
	tn_assert(lt_move_is_allowed(allowed, (uint32_t)ctx->state, next));
	LT_MOVE_SEEN(CONTEXT, (unsigned)ctx->state, next);
	ctx->state = (tent_state)next;
}

void lt_context_wake_keeper(tent_context *ctx)
{
	uint64_t one = 1;

	(void)!write(ctx->wake_fd, &one, sizeof one);
}

void lt_context_break(tent_context *ctx, const char *why)
{
	(void)pthread_mutex_lock(&ctx->lock);
	if (!ctx->broken && ctx->state != TENT_STATE_DEAD) {
		ctx->broken = true;
		(void)snprintf(ctx->dead_text, sizeof ctx->dead_text, "%s", why);
	}
	(void)pthread_mutex_unlock(&ctx->lock);
	lt_context_wake_keeper(ctx);
}

/* ---- options ---- */

/* A directory that anybody may make in anybody's name: it must really be ours, or somebody could wait there for our
 * memory. */
static tent_status check_shared_dir(const char *dir)
{
	struct stat st;

	if (strncmp(dir, "/dev/shm/", 9) != 0 || lstat(dir, &st) != 0)
		return TENT_OK; /* when there is none, connecting will say so */
	if (!S_ISDIR(st.st_mode) || (st.st_uid != geteuid() && st.st_uid != 0))
		return lt_fail(TN_PERMISSION, "tent_open: %s is not a directory of ours: it belongs to uid %u", dir,
			       (unsigned)st.st_uid);
	return TENT_OK;
}

static tent_status find_socket(const char *runtime_dir, char path_out[static LT_SOCKET_PATH_BYTES])
{
	/* A set-uid program does not believe its environment. */
	static const char *const nothing[] = { NULL };
	const char *const *env = getauxval(AT_SECURE) ? nothing : (const char *const *)environ;
	char dir[LT_SOCKET_PATH_BYTES];
	tn_status s = TN_OK;

	if (runtime_dir == NULL || *runtime_dir == '\0')
		runtime_dir = tn_env_find(env, TN_RUNTIME_DIR_ENV);
	if (runtime_dir == NULL || *runtime_dir == '\0') {
		s = tn_default_runtime_dir(env, (unsigned)geteuid(), dir, sizeof dir);
		runtime_dir = dir;
		if (s == TN_OK && check_shared_dir(dir) != TENT_OK)
			return TENT_PERMISSION;
	}
	if (s == TN_OK &&
	    snprintf(path_out, LT_SOCKET_PATH_BYTES, "%s/attach.sock", runtime_dir) >= LT_SOCKET_PATH_BYTES)
		s = TN_TOO_BIG;
	if (s != TN_OK)
		return lt_fail(s, "tent_open: the runtime directory's name is too long for a socket path of %d bytes",
			       LT_SOCKET_PATH_BYTES - 1);
	return TENT_OK;
}

static tent_status apply_options(tent_context *ctx, const tent_options *opt)
{
	tent_options o = TENT_OPTIONS_INIT;

	if (opt != NULL) {
		tent_status s = lt_options_take("tent_open: opt", "TENT_OPTIONS_INIT", opt,
						offsetof(tent_options, runtime_dir) + sizeof o.runtime_dir, &o, sizeof o);
		if (s != TENT_OK)
			return s;
	}
	const char *app = o.app_name != NULL ? o.app_name : program_invocation_short_name;
	if (o.app_name != NULL && strlen(app) >= sizeof ctx->app)
		return lt_fail(TN_TOO_BIG, "tent_open: app_name has %zu bytes, at most %zu", strlen(app),
			       sizeof ctx->app - 1);
	(void)snprintf(ctx->app, sizeof ctx->app, "%.31s", app);
	ctx->timeout_ns = o.timeout_ns != 0 ? o.timeout_ns : DEFAULT_TIMEOUT_NS;
	ctx->recover_timeout_ns = o.recover_timeout_ns != 0 ? o.recover_timeout_ns : DEFAULT_RECOVER_NS;
	return find_socket(o.runtime_dir, ctx->socket_path);
}

static tent_status attach(tent_context *ctx)
{
	uint64_t deadline_ns = tn_deadline_after(tn_now_ns(), ctx->timeout_ns);
	bool reached;
	tn_status s = lt_io_attach(ctx->socket_path, ctx->app, deadline_ns, &ctx->sock, &ctx->hello, &reached);

	if (s == TN_OK) {
		ctx->pidfd = lt_io_peer_pidfd(ctx->sock);
		lt_context_move(ctx, LT_CONTEXT_ATTACHED);
		return TENT_OK;
	}
	if (s == TN_DATAPLANE_DOWN)
		return lt_fail(s, "tent_open: nobody listens on %s", ctx->socket_path);
	if (s == TN_ABI_MISMATCH)
		return lt_fail(s, "tent_open: libtent %s speaks ABI %d, the data plane on %s does not", LT_VERSION,
			       SHR_ABI_MAJOR, ctx->socket_path);
	if (s == TN_LIMIT && !reached)
		return lt_fail(s, "tent_open: this process has no file descriptor left for it (RLIMIT_NOFILE)");
	if (s == TN_LIMIT)
		return lt_fail(s, "tent_open: the data plane on %s takes no more applications: limits/max_clients, or its limit of "
			       "open files (RLIMIT_NOFILE), is reached; its log says which", ctx->socket_path);
	return lt_fail(s, "tent_open: attaching on %s: %s", ctx->socket_path, tn_status_meaning(s));
}

/* ---- life ---- */

static tn_status init_sync(tent_context *ctx)
{
	pthread_condattr_t attr;

	if (pthread_mutex_init(&ctx->lock, NULL) != 0)
		return TN_NO_MEMORY;
	if (pthread_condattr_init(&attr) != 0)
		goto undo_lock;
	(void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	int failed = pthread_cond_init(&ctx->cond, &attr);
	(void)pthread_condattr_destroy(&attr);
	if (!failed)
		return TN_OK;
undo_lock:
	(void)pthread_mutex_destroy(&ctx->lock);
	return TN_NO_MEMORY;
}

tn_status lt_thread_start(pthread_t *thread_out, void *(*main)(void *), tent_context *ctx)
{
	sigset_t all, before;

	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &before);
	int failed = pthread_create(thread_out, NULL, main, ctx);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	return failed ? TN_LIMIT : TN_OK;
}

static void free_context(tent_context *ctx)
{
	for (int kind = 0; kind < LT_KIND_CNT; kind++) {
		struct tn_list *node;

		while ((node = tn_list_pop_front(&ctx->graves[kind])) != NULL)
			free(tn_list_entry(node, struct lt_object, link));
	}
	if (ctx->sock >= 0)
		(void)close(ctx->sock);
	if (ctx->pidfd >= 0)
		(void)close(ctx->pidfd);
	if (ctx->wake_fd >= 0)
		(void)close(ctx->wake_fd);
	if (ctx->note_fd >= 0)
		(void)close(ctx->note_fd);
	free(ctx->incoming);
	free(ctx);
}

static tent_status build_context(tent_context *ctx, const tent_options *opt)
{
	tn_list_init(&ctx->waiters);
	tn_list_init(&ctx->qps);
	tn_list_init(&ctx->notes);
	for (int kind = 0; kind < LT_KIND_CNT; kind++) {
		tn_list_init(&ctx->objects[kind]);
		tn_list_init(&ctx->graves[kind]);
	}
	tent_status s = apply_options(ctx, opt);
	if (s != TENT_OK)
		return s;
	if (lt_fork_mark(&ctx->fork_mark) != TN_OK || (ctx->incoming = malloc(sizeof *ctx->incoming)) == NULL)
		return lt_fail(TN_NO_MEMORY, "tent_open: no memory for the context");
	ctx->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	ctx->note_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (ctx->wake_fd < 0 || ctx->note_fd < 0)
		return lt_fail_errno(errno, "tent_open: eventfd");
	return TENT_OK;
}

tent_status tent_open(const tent_options *opt, tent_context **ctx_out)
{
	if (ctx_out == NULL)
		return lt_fail(TN_INVALID, "tent_open: ctx_out is NULL");
	tent_context *ctx = calloc(1, sizeof *ctx);
	if (ctx == NULL)
		return lt_fail(TN_NO_MEMORY, "tent_open: no memory for the context");
	ctx->sock = ctx->pidfd = ctx->wake_fd = ctx->note_fd = -1;

	tent_status s = build_context(ctx, opt);
	if (s != TENT_OK)
		goto undo_context;
	s = attach(ctx);
	if (s != TENT_OK)
		goto undo_context;
	if (init_sync(ctx) != TN_OK) {
		s = lt_fail(TN_NO_MEMORY, "tent_open: no memory for the context's lock");
		goto undo_context;
	}
	if (lt_thread_start(&ctx->keeper, lt_keeper_main, ctx) != TN_OK) {
		s = lt_fail(TN_LIMIT, "tent_open: no thread for the keeper (RLIMIT_NPROC?)");
		goto undo_sync;
	}
	*ctx_out = ctx;
	return TENT_OK;

undo_sync:
	(void)pthread_cond_destroy(&ctx->cond);
	(void)pthread_mutex_destroy(&ctx->lock);
undo_context:
	free_context(ctx);
	return s;
}

/* In a child nothing may be said to the data plane and no lock is to be trusted: let go of the fds and no more. */
static void close_in_child(tent_context *ctx)
{
	(void)close(ctx->sock);
	(void)close(ctx->wake_fd);
	(void)close(ctx->note_fd);
	ctx->sock = ctx->wake_fd = ctx->note_fd = -1;
}

/* Lock held. TENT_OK: the data plane said that it let go of our memory, or it hung up, which it does after that. */
static tent_status say_goodbye(tent_context *ctx)
{
	struct lt_reply reply = { .status = TN_OK };
	struct lt_call bye = { .type = SHR_MSG_BYE, .build = lt_build_none, .fd = -1,
			       .deadline_ns = tn_deadline_after(tn_now_ns(), ctx->timeout_ns) };

	/* The keeper waits for the hang-up. */
	while (ctx->state == TENT_STATE_ATTACHED && ctx->broken && lt_context_wait(ctx, bye.deadline_ns))
		;
	if (ctx->state != TENT_STATE_ATTACHED && !ctx->broken)
		return TENT_OK; /* a hang-up let go of it */
	tn_status s = ctx->broken ? TN_CLIENT_BROKEN : lt_call(ctx, &bye, &reply);
	if (s == TN_OK)
		s = reply.status;
	if (s == TN_CLIENT_BROKEN)
		return lt_fail(s, "tent_close: %s; the data plane did not say that it let go", ctx->dead_text);
	return s == TN_OK ? TENT_OK : lt_call_fail(ctx, "tent_close", "detaching", s, reply.detail);
}

tent_status tent_close(tent_context *ctx)
{
	if (ctx == NULL)
		return TENT_OK;
	if (lt_forked(ctx->fork_mark)) {
		close_in_child(ctx);
		return lt_fail(TN_FORKED, "tent_close: the context was opened before fork()");
	}
	(void)pthread_mutex_lock(&ctx->lock);
	ctx->closing = true;
	tent_status s = say_goodbye(ctx); /* quiesces everything at the data plane, or a hang-up did */
	ctx->sock_shut = true;
	if (ctx->sock >= 0)
		(void)shutdown(ctx->sock, SHUT_RDWR);
	(void)pthread_mutex_unlock(&ctx->lock);
	lt_context_wake_keeper(ctx);
	(void)pthread_join(ctx->keeper, NULL);
	if (!lt_copier_end(ctx, tn_deadline_after(tn_now_ns(), ctx->timeout_ns)))
		return lt_fail(TN_TIMEOUT, "tent_close: a copy in imported memory does not end");
	lt_context_destroy(ctx);
	return s;
}

void lt_context_destroy(tent_context *ctx)
{
	lt_call_lose_all(ctx);
	while (!tn_list_empty(&ctx->qps))
		lt_queue_free(tn_list_first(&ctx->qps, tent_qp, link));
	lt_memory_release_all(ctx);
	for (int kind = 0; kind < LT_KIND_CNT; kind++)
		tn_list_splice_back(&ctx->graves[kind], &ctx->objects[kind]);
	lt_note_drop_all(ctx);
	(void)pthread_cond_destroy(&ctx->cond);
	(void)pthread_mutex_destroy(&ctx->lock);
	free_context(ctx);
}

tent_status tent_query(tent_context *ctx, tent_info *info_inout)
{
	tent_info info = { 0 };
	tent_status s = lt_context_check(ctx, "tent_query");

	if (s != TENT_OK)
		return s;
	if (info_inout == NULL || !lt_struct_size_ok(info_inout->size, offsetof(tent_info, state) + sizeof info.state))
		return lt_fail(TN_INVALID, "tent_query: info is NULL, or was not set with TENT_INFO_INIT");
	size_t bytes = TN_MIN(info_inout->size, sizeof info);
	(void)pthread_mutex_lock(&ctx->lock);
	info.size = bytes;
	info.state = ctx->state;
	memcpy(info.session, ctx->hello.session.b, sizeof info.session);
	info.reattach_count = ctx->reattach_cnt;
	info.default_deadline_ns = ctx->hello.default_deadline_ns;
	info.max_deadline_ns = ctx->hello.max_deadline_ns;
	info.max_request_bytes = ctx->hello.max_request_bytes;
	(void)pthread_mutex_unlock(&ctx->lock);
	memcpy(info_inout, &info, bytes);
	return TENT_OK;
}
