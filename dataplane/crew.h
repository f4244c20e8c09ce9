/* SPDX-License-Identifier: Apache-2.0
 * The control thread's side of the workers' mailboxes: posts commands in order, keeps what a full mailbox refused, and
 * turns the workers' acknowledgements into one callback per operation. The only caller of dp_worker_post/take. */
#ifndef DP_CREW_H
#define DP_CREW_H

#include "dataplane/apply.h"
#include "dataplane/loop.h"
#include "dataplane/segment/handles.h"
#include "dataplane/worker.h"

/* Something that waits for workers. Lives in the object that it is about; zeroed memory is one at rest. `done` runs
 * once `waiting` falls to zero - from inside an event callback, never from inside a post - and may free the object. */
struct dp_flight {
	void (*done)(struct dp_flight *f);
	uint32_t waiting;
	bool lost; /* a command could not be kept (no memory): `done` never runs, so nothing is freed too early */
};

struct dp_crew_member {
	struct dp_source events;
	struct dp_crew *crew;
	struct dp_worker *worker;
	struct dp_cmd *backlog; /* ring; commands that found the mailbox full, oldest first */
	uint32_t backlog_cap, backlog_head, backlog_cnt;
	uint32_t qp_cnt;        /* load, for the choice of a worker */
};

struct dp_crew {
	struct dp_loop *loop;
	/* Every event but acknowledgements; `worker` is the sender's index. */
	void (*on_event)(void *arg, uint32_t worker, const struct dp_evt *evt);
	void *arg;
	struct dp_handles acks;
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

/* Queue one command for one worker; never blocks. `flight` NULL: no acknowledgement wanted. False when the command
 * could not be kept: what it owns is still the caller's. */
bool dp_crew_post(struct dp_crew *crew, uint32_t worker, struct dp_cmd cmd, struct dp_flight *flight);
/* The same for every worker: for commands that own nothing. */
void dp_crew_broadcast(struct dp_crew *crew, struct dp_cmd cmd, struct dp_flight *flight);
/* Once per turn of the loop: backlogs move on. */
void dp_crew_flush(struct dp_crew *crew);
/* Backlogs are long: refuse new work of clients with TN_AGAIN. */
bool dp_crew_congested(const struct dp_crew *crew);

/* Least queue pairs first, ties in turn. */
uint32_t dp_crew_least_loaded(const struct dp_crew *crew, uint32_t turn);

#endif
