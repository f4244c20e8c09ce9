/* SPDX-License-Identifier: Apache-2.0
 * The slow pool: a few threads for calls that may take long (sealing, mapping and unmapping gigabytes), so that the
 * control thread always answers. Jobs live in the objects they are about, so handing one over cannot fail. */
#ifndef DP_REAP_H
#define DP_REAP_H

#include <pthread.h>

#include "dataplane/loop.h"

#define DP_REAP_THREADS 2u

struct dp_job {
	struct tn_list link;
	void (*run)(struct dp_job *j);  /* on a pool thread; touches only what the job was given */
	void (*done)(struct dp_job *j); /* on the control thread; may free the job */
};

struct dp_reap {
	struct dp_loop *loop;
	struct dp_source finished;
	pthread_mutex_t lock;
	pthread_cond_t work;
	struct tn_list todo, ready; /* under lock */
	bool stop;                  /* under lock */
	uint32_t thread_cnt;
	pthread_t threads[DP_REAP_THREADS];
};

/* Starts the threads (signals blocked by the caller beforehand). TN_LIMIT, TN_NO_MEMORY, TN_SYSTEM. */
tn_status dp_reap_init(struct dp_reap *r, struct dp_loop *loop);
/* Runs what is queued, then joins; `done` of the last jobs runs here. */
void dp_reap_fini(struct dp_reap *r);
void dp_reap_submit(struct dp_reap *r, struct dp_job *j);

#endif
