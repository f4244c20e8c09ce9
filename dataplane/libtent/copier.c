/* SPDX-License-Identifier: Apache-2.0
 * The copier: takes what the keeper queued, copies, answers. The context's lock is not held while it copies. */
#include "dataplane/libtent/copier.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <unistd.h>

#include "common/bits.h"
#include "common/hook.h"
#include "dataplane/libtent/context.h"
#include "dataplane/libtent/memory.h"

#define SEND_RETRY_NS TN_NS_PER_MS /* while the socket is full */

/* Through the kernel, which looks at each page first. */
static bool copy_bytes(const struct lt_copy *c)
{
	struct iovec staging = { .iov_base = c->staging, .iov_len = c->bytes };
	struct iovec memory = { .iov_base = c->memory, .iov_len = c->bytes };
	ssize_t n = c->to_memory ? process_vm_writev(getpid(), &staging, 1, &memory, 1, 0)
				 : process_vm_readv(getpid(), &staging, 1, &memory, 1, 0);

	return n >= 0 && (uint64_t)n == c->bytes;
}

/* Lock held, released while the socket is full. An attachment that is lost wants no answer. */
static void answer(tent_context *ctx, const struct lt_copy *c, tn_status status)
{
	struct shr_msg m;
	struct shr_msg_copied *body = shr_msg_begin(&m, SHR_MSG_COPIED, 0, sizeof *body);

	body->tag = c->tag;
	body->status = status;
	while (ctx->attachment == c->attachment && ctx->state == TENT_STATE_ATTACHED && !ctx->sock_shut &&
	       shr_msg_send(ctx->sock, &m) == TN_AGAIN)
		(void)lt_context_wait(ctx, tn_deadline_after(tn_now_ns(), SEND_RETRY_NS));
}

static void *copier_main(void *arg)
{
	tent_context *ctx = arg;
	struct lt_copier *k = &ctx->copier;

	(void)prctl(PR_SET_NAME, "tent-copier");
	(void)pthread_mutex_lock(&ctx->lock);
	while (!k->stop) {
		if (k->cnt == 0) {
			(void)pthread_cond_wait(&k->work, &ctx->lock);
			continue;
		}
		struct lt_copy c = k->queue[k->head];
		k->head = (k->head + 1) % LT_COPIES_MAX;
		k->cnt--;
		k->busy = true;
		(void)pthread_mutex_unlock(&ctx->lock);
		TN_HOOK(lt_copy_begun);
		bool good = copy_bytes(&c);
		TN_HOOK(lt_copy_done);
		(void)pthread_mutex_lock(&ctx->lock);
		k->busy = false;
		answer(ctx, &c, good ? TN_OK : TN_FAULT);
		(void)pthread_cond_broadcast(&ctx->cond);
	}
	bool orphaned = k->orphaned;
	(void)pthread_mutex_unlock(&ctx->lock);
	if (orphaned)
		lt_context_destroy(ctx);
	return NULL;
}

/* Containers may forbid these calls altogether; better to hear of it now. */
static tent_status check_kernel(const char *call)
{
	uint8_t from = 1, to = 0;
	struct lt_copy c = { .staging = &to, .memory = &from, .bytes = 1 };

	if (copy_bytes(&c))
		return TENT_OK;
	return lt_fail(TN_UNSUPPORTED, "%s: this process may not copy in its own memory (process_vm_readv: %s): allow "
		       "process_vm_readv and process_vm_writev in its seccomp filter, or use tent_memory_alloc()", call,
		       strerrordesc_np(errno));
}

tent_status lt_copier_start(tent_context *ctx, const char *call)
{
	struct lt_copier *k = &ctx->copier;

	if (k->started)
		return TENT_OK;
	tent_status s = check_kernel(call);
	if (s != TENT_OK)
		return s;
	if (k->queue == NULL && (k->queue = calloc(LT_COPIES_MAX, sizeof *k->queue)) == NULL)
		return lt_fail(TN_NO_MEMORY, "%s: no memory for the copier", call);
	if (pthread_cond_init(&k->work, NULL) != 0)
		return lt_fail(TN_NO_MEMORY, "%s: no memory for the copier", call);
	if (lt_thread_start(&k->thread, copier_main, ctx) != TN_OK) {
		(void)pthread_cond_destroy(&k->work);
		return lt_fail(TN_LIMIT, "%s: no thread for the copier (RLIMIT_NPROC?)", call);
	}
	k->started = true;
	return TENT_OK;
}

static const tent_memory *find_imported(const tent_context *ctx, uint64_t id)
{
	tn_list_foreach(node, &ctx->objects[LT_MEMORY]) {
		const tent_memory *mem = tn_list_entry(node, tent_memory, obj.link);

		if (mem->imported && tn_load_relaxed64(&mem->obj.id) == id)
			return mem;
	}
	return NULL;
}

bool lt_copier_asked(tent_context *ctx, const struct shr_msg *m)
{
	const struct shr_msg_copy *ask = shr_msg_body_ro(m);
	const tent_memory *mem = find_imported(ctx, ask->memory);
	struct lt_copier *k = &ctx->copier;

	if (mem == NULL || !k->started || k->cnt == LT_COPIES_MAX || !tn_range_within(ask->offset, ask->length, mem->bytes) ||
	    !tn_range_within(ask->staging_offset, ask->length, ctx->staging->bytes))
		return false;
	k->queue[(k->head + k->cnt++) % LT_COPIES_MAX] = (struct lt_copy){
		.staging = (uint8_t *)ctx->staging->addr + ask->staging_offset, .memory = (uint8_t *)mem->addr + ask->offset,
		.bytes = ask->length, .tag = ask->tag, .attachment = ctx->attachment, .to_memory = ask->to_memory != 0,
	};
	(void)pthread_cond_signal(&k->work);
	return true;
}

bool lt_copier_drop(tent_context *ctx)
{
	ctx->copier.cnt = 0;
	return !ctx->copier.busy;
}

bool lt_copier_settle(tent_context *ctx, uint64_t deadline_ns)
{
	while (!lt_copier_drop(ctx))
		if (!lt_context_wait(ctx, deadline_ns))
			return lt_copier_drop(ctx);
	return true;
}

bool lt_copier_end(tent_context *ctx, uint64_t deadline_ns)
{
	struct lt_copier *k = &ctx->copier;

	(void)pthread_mutex_lock(&ctx->lock);
	bool quiet = lt_copier_settle(ctx, deadline_ns);
	k->stop = true;
	k->orphaned = !quiet;
	if (k->started)
		(void)pthread_cond_signal(&k->work);
	(void)pthread_mutex_unlock(&ctx->lock);
	if (!quiet) {
		(void)pthread_detach(k->thread);
		return false;
	}
	if (k->started) {
		(void)pthread_join(k->thread, NULL);
		(void)pthread_cond_destroy(&k->work);
	}
	free(k->queue);
	return true;
}
