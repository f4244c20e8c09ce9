/* SPDX-License-Identifier: Apache-2.0
 * Where requests, owners, attempts, batches and notice payloads of one worker live: fixed arrays sized at start by
 * limits/max_requests_per_worker, whose pages are touched only when used. Taking and giving back is a few instructions
 * and never allocates. What applications fill is shared out: a client may hold as many as are left. So one alone gets
 * half of a pool, n greedy ones get 1/(n+1) each, and whoever comes next finds room. One worker. */
#ifndef DP_REQUEST_POOL_H
#define DP_REQUEST_POOL_H

#include "dataplane/request/state.h"

/* Pieces of staged owners that may be on their way to or from a target at once; each is an owner. */
#define DP_STAGE_MOVING_MAX 1024u

/* Objects of one size. A free object's first word links to the next free one. */
struct dp_slab {
	char *base;
	size_t bytes;
	uint32_t cap, used /* ever taken from the array */, live;
	void *free;
	uint32_t *held;                    /* of each client, by index; NULL where clients have no shares */
};

struct dp_pools {
	struct dp_slab requests, owners, attempts, batches, notes, tasks;
	struct dp_states states;
	uint32_t worker;                   /* low 6 bits of every id, so that ids of a process differ */
	uint64_t request_seq, owner_seq, attempt_seq, batch_seq; /* last number given out */
};

/* `requests`: how many requests the worker may hold; `notes`: payload buffers. TN_NO_MEMORY. */
tn_status dp_pools_init(struct dp_pools *p, uint32_t worker, uint32_t requests, uint32_t notes);
void dp_pools_destroy(struct dp_pools *p); /* accepts a zeroed object */

/* NULL when the pool is empty, or when `client` (index) holds its share of it. New objects are zeroed, lists initialised, heap slots empty, state FREE. */
struct dp_request *dp_request_new(struct dp_pools *p, uint32_t client);
struct dp_owner *dp_owner_new(struct dp_pools *p);
struct dp_attempt *dp_attempt_new(struct dp_pools *p);
struct dp_stage_task *dp_task_new(struct dp_pools *p);
struct dp_batch *dp_batch_new(struct dp_pools *p, uint32_t client);
uint8_t *dp_note_new(struct dp_pools *p, const struct dp_request *r); /* SHR_NOTE_BYTES, not zeroed; for r->note */

/* Give back. Requests, owners and attempts move to FREE here. A request's note goes with it. */
void dp_request_free(struct dp_pools *p, struct dp_request *r);
void dp_request_discard(struct dp_pools *p, struct dp_request *r); /* one that never left state FREE */
void dp_owner_free(struct dp_pools *p, struct dp_owner *o);
void dp_attempt_free(struct dp_pools *p, struct dp_attempt *a);
void dp_task_free(struct dp_pools *p, struct dp_stage_task *t);
void dp_batch_free(struct dp_pools *p, struct dp_batch *b);

/* The next request id (also for a request that is refused before it gets an object). */
TN_INLINE uint64_t dp_request_id_next(struct dp_pools *p) { return ++p->request_seq << 6 | p->worker; }

/* A number that finds a living request again (24 bits of index, 32 of its id); the request, or NULL when it ended. */
uint64_t dp_request_serial(const struct dp_pools *p, const struct dp_request *r);
struct dp_request *dp_request_by_serial(const struct dp_pools *p, uint64_t serial);

/* The living request of this id among the next `most` places of the pool, from *place on, which moves. NULL: not among
 * them; *place is then UINT32_MAX when it was the end. */
struct dp_request *dp_request_find(const struct dp_pools *p, uint64_t request_id, uint32_t *place, uint32_t most);

TN_INLINE uint32_t dp_client_index(uint32_t client_id) { return client_id % DP_CLIENTS_MAX; }

TN_INLINE uint32_t dp_pool_room(const struct dp_slab *s) { return s->cap - s->live; }

#endif
