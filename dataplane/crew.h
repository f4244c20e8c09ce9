/* SPDX-License-Identifier: Apache-2.0
 * The control thread's side of the workers' mailboxes: posts commands in order, keeps what a full mailbox refused, and
 * turns the workers' acknowledgements into one callback per operation. The only caller of dp_worker_post/take. */
#ifndef DP_CREW_H
#define DP_CREW_H

#include "dataplane/apply.h"
#include "dataplane/loop.h"
#include "dataplane/segment/handles.h"
#include "dataplane/worker.h"

/* Something that waits for workers. Lives in the object that it is about; zeroed memory is one at rest. `done` (NULL:
 * nothing to do) runs once `waiting` falls to zero - from inside an event callback or dp_crew_flush(), never from inside a
 * send - and may free the object. No answer is ever lost: see dp_crew_send(). */
struct dp_flight {
	void (*done)(struct dp_flight *f);
	uint32_t waiting;    /* workers that did not answer yet, those of `refused` and `owed` included */
	tn_status status;    /* for `done`: TN_OK, or the first refusal since `waiting` was 0 */
	uint64_t took;       /* a bit per worker that answered TN_OK since then */
	uint32_t refused;    /* workers in whose name the crew itself refused; counted off by the next dp_crew_flush() */
	uint64_t owed;       /* a bit per worker that is yet to be told `cmd` */
	struct dp_cmd cmd;
	struct tn_list link; /* crew's, valid while refused or owed are not 0 */
};

struct dp_crew_member {
	struct dp_source events;
	struct dp_crew *crew;
	struct dp_worker *worker;
	struct dp_cmd *backlog; /* ring; commands that found the mailbox full, oldest first */
	uint32_t backlog_cap, backlog_head, backlog_cnt;
	uint32_t owed_cnt;      /* flights that owe it a command; while there are any, others queue behind them */
	uint32_t qp_cnt;        /* load, for the choice of a worker */
};

struct dp_crew {
	struct dp_loop *loop;
	/* Every event but acknowledgements; `worker` is the sender's index. */
	void (*on_event)(void *arg, uint32_t worker, const struct dp_evt *evt);
	void *arg;
	struct dp_handles acks;
	struct tn_list owing, refused; /* flights, oldest first */
	uint32_t cnt;
	struct dp_crew_member members[SHR_WORKERS_MAX];
};

void dp_crew_init(struct dp_crew *crew, struct dp_loop *loop,
                  void (*on_event)(void *arg, uint32_t worker, const struct dp_evt *evt), void *arg);
/* Adds a worker and watches its event fd; the worker stays the caller's. */
tn_status dp_crew_add(struct dp_crew *crew, struct dp_worker *worker);
/* The one added last never ran: nothing is posted to it, nothing waits for it. */
void dp_crew_drop(struct dp_crew *crew);
void dp_crew_fini(struct dp_crew *crew);

/* Queue one command for one worker; never blocks. False when it could not be kept: what it owns is still the caller's. */
bool dp_crew_post(struct dp_crew *crew, uint32_t worker, struct dp_cmd cmd);
/* The same, and the worker's answer goes to `flight`. For want of memory the commands that add something of a client
 * (QP_ADD, MEM_ADD, SEG_ADD) are answered with TN_NO_MEMORY in the worker's name; all others are kept in the flight and go
 * out when there is memory again. A flight keeps one: a newer one replaces what was not told. */
void dp_crew_send(struct dp_crew *crew, uint32_t worker, struct dp_cmd cmd, struct dp_flight *flight);
/* The same for every worker: for commands that own nothing. */
void dp_crew_broadcast(struct dp_crew *crew, struct dp_cmd cmd, struct dp_flight *flight);
/* `done` saw a refusal: cmd, which takes the refused one back, goes to the workers that took it, and `done` runs again when
 * they answered. False: there are none. */
bool dp_crew_undo(struct dp_crew *crew, struct dp_cmd cmd, struct dp_flight *flight);
/* Once per turn of the loop: what was kept moves on. */
void dp_crew_flush(struct dp_crew *crew);
/* Much is kept, or memory was short: refuse new work of clients with TN_AGAIN. */
bool dp_crew_congested(const struct dp_crew *crew);

/* Least queue pairs first, ties in turn. */
uint32_t dp_crew_least_loaded(const struct dp_crew *crew, uint32_t turn);

#endif
