/* SPDX-License-Identifier: Apache-2.0
 * Copies between imported memory and the staging buffers, when the data plane asks for them: one thread per context that
 * imported something, one copy at a time. It touches the application's memory through the kernel, so memory that is not
 * there any more fails a copy and not the process, and a page that does not come keeps this thread waiting and nobody else. */
#ifndef LT_COPIER_H
#define LT_COPIER_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include <tent/tent.h>

struct shr_msg;

/* As many as there are staging buffers; the data plane asks for each once at a time. 64 workers with 64 each. */
#define LT_COPIES_MAX 4096u

struct lt_copy {
	uint8_t *staging, *memory;
	uint64_t bytes, tag;
	uint32_t attachment; /* that asked */
	bool to_memory;
};

/* Part of the context, under its lock. */
struct lt_copier {
	pthread_t thread;
	pthread_cond_t work;
	bool started, busy, stop, orphaned;
	struct lt_copy *queue; /* ring of LT_COPIES_MAX */
	uint32_t head, cnt;
};

/* Starts the thread unless it runs. Lock held. UNSUPPORTED: this process may not do that to itself; NO_MEMORY, LIMIT. */
tent_status lt_copier_start(tent_context *ctx, const char *call);
/* Keeper: COPY arrived. Lock held. False: the data plane broke the protocol. */
bool lt_copier_asked(tent_context *ctx, const struct shr_msg *m);
/* What is queued is forgotten. True: nothing is being copied now. Lock held. */
bool lt_copier_drop(tent_context *ctx);
/* The same, waiting for the copy that runs. Lock held at entry and exit. False: it did not end by deadline_ns. */
bool lt_copier_settle(tent_context *ctx, uint64_t deadline_ns);
/* Ends the thread; the keeper has ended. False: a copy did not end by deadline_ns; the thread destroys the context when it
 * does. No lock held. */
bool lt_copier_end(tent_context *ctx, uint64_t deadline_ns);

#endif
