/* SPDX-License-Identifier: Apache-2.0
 * The state tables of request, owner and attempt, and the only functions that change a state: they check the move
 * against the table, and keep the number of objects in each state. docs/state-machines.md is generated from here. */
#ifndef DP_REQUEST_STATE_H
#define DP_REQUEST_STATE_H

#include "dataplane/request/request.h"

/* X(from, to, "when") */
#define DP_REQUEST_MOVES(X) \
	X(FREE, QUEUED, "validated; its owner is queued, or it is a NOTIFY waiting for its batch") \
	X(QUEUED, RUNNING, "its owner was dispatched, or the notice was sent") \
	X(RUNNING, QUEUED, "its owner waits for another attempt") \
	X(QUEUED, FREE, "terminal before any attempt holds its memory") \
	X(RUNNING, FREE, "terminal, memory quiet") \
	X(QUEUED, ZOMBIE, "ended alone (deadline, cancel) while the rest of its merged owner goes on") \
	X(RUNNING, ZOMBIE, "terminal posted, an attempt may still touch the memory") \
	X(ZOMBIE, FREE, "released: nothing touches the memory any more")
#define DP_OWNER_MOVES(X) \
	X(FREE, QUEUED, "admitted") \
	X(QUEUED, DISPATCHED, "window taken; a transport accepted the attempt, or none did and what follows is decided") \
	X(QUEUED, FREE, "deadline drop, cancel, or a failure that ends it before dispatch") \
	X(DISPATCHED, WAITING, "the attempt failed and another may follow (back-off, refresh)") \
	X(DISPATCHED, DISPATCHED, "failed over: the next candidate accepted at once") \
	X(WAITING, QUEUED, "the wait is over: admitted again") \
	X(WAITING, FREE, "deadline or cancel while waiting") \
	X(DISPATCHED, FREE, "terminal, memory quiet") \
	X(DISPATCHED, DONE, "terminal posted, the attempt has not let go") \
	X(DONE, FREE, "the attempt let go") \
	X(FREE, STAGED, "its memory is imported: it waits for staging buffers, its pieces are owners of their own") \
	X(STAGED, FREE, "terminal, no piece of it is under way") \
	X(STAGED, LEAVING, "terminal posted, the application or a transport has pieces of it") \
	X(LEAVING, FREE, "these let go")
#define DP_ATTEMPT_MOVES(X) \
	X(FREE, ACTIVE, "a transport accepted it") \
	X(ACTIVE, FREE, "the transport reported its end") \
	X(ACTIVE, CANCELING, "deadline, cancel, or its transport was switched off: the transport was told to end it") \
	X(CANCELING, FREE, "the transport reported its end")

/* How many objects are in each state; FREE stays 0. */
struct dp_states {
	uint32_t request[DP_REQUEST_STATE_CNT];
	uint32_t owner[DP_OWNER_STATE_CNT];
	uint32_t attempt[DP_ATTEMPT_STATE_CNT];
};

/* Moves outside the table are our own bug and assert. The objects' worker only. */
void dp_request_move(struct dp_states *s, struct dp_request *r, enum dp_request_state to);
void dp_owner_move(struct dp_states *s, struct dp_owner *o, enum dp_owner_state to);
void dp_attempt_move(struct dp_states *s, struct dp_attempt *a, enum dp_attempt_state to);

const char *dp_request_state_name(unsigned state);
const char *dp_owner_state_name(unsigned state);
const char *dp_attempt_state_name(unsigned state);
const char *dp_wait_name(unsigned wait);

/* The tables as data, for the generated page and for tests. */
struct dp_move_row { uint8_t from, to; const char *when; };
struct dp_machine {
	const char *name, *what;
	const char *const *states;
	uint32_t state_cnt;
	const struct dp_move_row *moves;
	uint32_t move_cnt;
};
extern const struct dp_machine dp_machines[]; /* request, owner, attempt */
extern const uint32_t dp_machine_cnt;

/* Builds with TENT_HOOKS: told each allowed move of every machine of the data plane, by the thread that owns the object,
 * before it is made. For coverage in tests. Set it before any thread runs; NULL = nobody. */
#if TENT_HOOKS
extern void (*dp_move_seen)(const struct dp_machine *m, unsigned from, unsigned to);
#define DP_MOVE_SEEN(m, from, to) (tn_unlikely(dp_move_seen != NULL) ? dp_move_seen(m, from, to) : (void)0)
#else
#define DP_MOVE_SEEN(m, from, to) ((void)0)
#endif

#endif
