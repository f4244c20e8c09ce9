/* SPDX-License-Identifier: Apache-2.0
 * The context: one attachment to the data plane, its objects, and the lock over both. The keeper thread owns receiving
 * from the attach socket; application threads send. Lists of objects and queue pairs change only while the state is
 * ATTACHED or DEAD, so the keeper may walk them without the lock while it recovers. */
#ifndef LT_CONTEXT_H
#define LT_CONTEXT_H

#include <pthread.h>
#include <stdbool.h>

#include "common/clock.h"
#include "dataplane/libtent/attach_io.h"
#include "dataplane/libtent/copier.h"
#include "dataplane/libtent/error.h"
#include "dataplane/libtent/fork.h"
#include "dataplane/libtent/object.h"
#include "dataplane/libtent/policy.h"

#define LT_SOCKET_PATH_BYTES 108 /* sun_path */
#define LT_EARLY_LOSSES 8

struct tent_context {
	/* constant after tent_open() */
	uint32_t fork_mark;
	char socket_path[LT_SOCKET_PATH_BYTES];
	char app[32];
	uint64_t timeout_ns, recover_timeout_ns;
	int wake_fd;              /* eventfd: application threads wake the keeper */
	int note_fd;              /* eventfd: readable while notices wait, or when the context is dead */
	pthread_t keeper;
	struct shr_msg *incoming; /* keeper only */

	pthread_mutex_t lock;     /* over everything below */
	pthread_cond_t cond;      /* a reply arrived, the state changed, a notice arrived */
	int sock;                 /* -1 while there is no attachment */
	int pidfd;                /* of the data plane; -1 = not to be had */
	tent_state state;
	bool closing;             /* tent_close() runs: a hang-up ends the keeper */
	bool draining;            /* the data plane said that it shuts down */
	bool sock_shut;           /* by tent_close(): what looks like a hang-up from here on is none */
	bool broken;              /* given up, see lt_context_break(), and not hung up on since: our memory may be held there */
	tn_status dead_status;    /* DEAD: why, and in words */
	char dead_text[160];
	struct shr_msg_hello_reply hello;
	uint32_t reattach_cnt;    /* attachments that replaced a lost one */
	uint32_t attachment;      /* number of the present one, of tries too */
	uint32_t correlation;     /* last one used */
	uint64_t lost_ns;         /* when the last attachment was lost */
	struct tn_list waiters;
	struct tn_list objects[LT_KIND_CNT], graves[LT_KIND_CNT];
	uint32_t grave_cnt[LT_KIND_CNT];
	struct tn_list qps;
	/* Of this attachment: losses of publications that their publishing thread has not seen yet; oldest overwritten. */
	struct shr_msg_segment_lost early_losses[LT_EARLY_LOSSES];
	uint32_t early_loss_cnt;  /* ever noted */

	struct lt_policies policies;

	/* imported memory */
	tent_memory *staging;     /* its staging buffers, made with the first import, kept until tent_close(); in `objects` */
	bool staging_making;      /* a thread makes them */
	struct lt_copier copier;

	/* notices */
	struct tn_list notes;
	uint32_t note_sent_cnt;   /* in the list and sent by somebody */
	uint32_t note_inflight;   /* of this attachment: received and not acknowledged */
	uint32_t note_taken;      /* of this attachment: taken by the application and not acknowledged */
};

/* First check of every public call: NULL and fork. TENT_OK, or the failure with `call` named in the text. */
tent_status lt_context_check(const tent_context *ctx, const char *call);
/* Text and status of a dead context. Lock held. */
tent_status lt_context_fail_dead(const tent_context *ctx, const char *call);
/* Waits on cond until deadline_ns; false when it passed. Lock held. */
bool lt_context_wait(tent_context *ctx, uint64_t deadline_ns);
/* A thread that takes no signal: handlers of the application run on the application's threads. LIMIT. */
tn_status lt_thread_start(pthread_t *thread_out, void *(*main)(void *), tent_context *ctx);
/* The last step of tent_close(): frees the context; its threads have ended, or the last of them calls. */
void lt_context_destroy(tent_context *ctx);
void lt_context_wake_keeper(tent_context *ctx);
/* Checks the move against states.h (a forbidden one is our bug) and makes it. Lock held, or nobody else is there. */
void lt_context_move(tent_context *ctx, enum lt_context_state next);
/* A ring of this context, or a message, holds what the data plane never writes: give the attachment up. Takes the lock. */
void lt_context_break(tent_context *ctx, const char *why);

/* keeper.c: the thread. It ends when ctx->closing and the socket hung up (or `stop` below was asked for). */
void *lt_keeper_main(void *ctx);
/* One message from the data plane; lock held. Takes the message's fds. False: the data plane broke the protocol. */
bool lt_keeper_dispatch(tent_context *ctx, struct shr_msg *m);

/* recover.c: the attachment is lost; find the successor or give up. Keeper thread, no lock held. */
void lt_recover(tent_context *ctx);
/* Sends what is due of publications and opens that must be restored; returns when to call again (UINT64_MAX: not).
 * Keeper thread, lock held. */
uint64_t lt_restore_due(tent_context *ctx, uint64_t now_ns);
/* DEAD: final. Every queue pair completes what it has. Keeper thread, lock held. */
void lt_context_die(tent_context *ctx, tn_status status, const char *why);

/* notify.c: a notice arrived. Lock held. False: the data plane broke the protocol. */
bool lt_note_arrived(tent_context *ctx, const struct shr_msg *m);
/* Puts a notice of our own into the inbox: that publication is lost. Lock held. */
void lt_note_lost(tent_published *pub);
/* Its handle is given back: a notice that nobody took yet is about nothing, or about the next one of its name. Lock held. */
void lt_note_unlost(tent_published *pub);
void lt_note_drop_all(tent_context *ctx);

#endif
