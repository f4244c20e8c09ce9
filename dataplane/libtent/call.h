/* SPDX-License-Identifier: Apache-2.0
 * Requests to the data plane and their replies, matched by correlation. Any application thread calls; the keeper
 * delivers. A late reply that created something nobody waits for any more is undone, so nothing leaks there. */
#ifndef LT_CALL_H
#define LT_CALL_H

#include "dataplane/libtent/context.h"

#define LT_REPLY_BODY_MAX 96 /* the largest reply body: hello_reply */
#define LT_DETAIL_NO_FD UINT32_MAX /* detail of TN_LIMIT: of this process's descriptors, not of anything there */

struct lt_reply {
	tn_status status;
	uint32_t detail;                    /* errno or the offending number */
	uint8_t body[LT_REPLY_BODY_MAX];
	int fds[SHR_MSG_FDS_MAX];           /* owned by the receiver; -1 = none */
};

struct lt_call {
	uint16_t type;                      /* enum shr_msg_type */
	/* Writes the body, returns its size. Called under the lock, again for every attachment it is sent to, because
	 * the ids in it are those of the attachment. */
	uint32_t (*build)(const void *arg, uint8_t body[static SHR_MSG_MAX]);
	const void *arg;
	int fd;                             /* passed along; -1 = none */
	/* When the data plane dies first: false = what it asked for is done (the dead hold nothing), reply status OK
	 * with empty body; true = send it to the successor. */
	bool again;
	uint64_t deadline_ns;
};

struct lt_waiter {
	struct tn_list link;
	uint32_t correlation;
	uint16_t type;
	bool done, lost, abandoned;
	uint64_t deadline_ns;
	struct lt_reply reply;
	/* NULL: a thread sleeps on it. Else the keeper calls this once, lock held, with done or lost set, and the
	 * waiter is freed after it. */
	void (*finish)(tent_context *ctx, struct lt_waiter *w);
	void *arg;
};

/* Sends and waits. Lock held at entry and exit, released while waiting; on return with TN_OK the state is ATTACHED (or
 * the call was answered by a death, see `again`) and the ids in the reply are valid as long as the lock is not
 * released. TN_OK: reply->status is the answer. TN_TIMEOUT, TN_DATAPLANE_DOWN (dead), TN_CLIENT_BROKEN (not `again`:
 * given up before it hung up, so it may hold what it was to let go of), TN_NO_MEMORY, TN_SYSTEM: no answer. */
tn_status lt_call(tent_context *ctx, const struct lt_call *call, struct lt_reply *reply);
/* Asks it to give back object `id` (0: it gave none, or the one that did hung up) with a message that carries no more, and
 * waits as lt_call() does. TN_OK: nothing there touches what the object stands for any more. *detail_out: what the answer
 * says besides, unchanged without one. */
tn_status lt_call_let_go(tent_context *ctx, uint16_t type, uint64_t id, uint64_t deadline_ns, uint32_t *detail_out);
/* Sends without waiting; the keeper calls `finish`. Lock held. TN_AGAIN: the socket is full. */
tn_status lt_call_start(tent_context *ctx, const struct lt_call *call,
			void (*finish)(tent_context *, struct lt_waiter *), void *arg, struct lt_waiter **waiter_out);
/* Gives back by its id what a reply of `type` created; no reply is waited for. Lock held. */
void lt_call_undo(tent_context *ctx, uint16_t type, uint64_t id);

/* Keeper: a reply arrived. Lock held; takes the message's fds. False: it answers a question that nobody asked. */
bool lt_call_deliver(tent_context *ctx, struct shr_msg *m);
/* Keeper: a message arrived without its descriptors, because this process has no more. Its call ends with TN_LIMIT and
 * LT_DETAIL_NO_FD, and what it made is given back. `m` as shr_msg_recv() leaves it. Lock held. False: no sound reply. */
bool lt_call_deliver_bare(tent_context *ctx, struct shr_msg *m);
/* Keeper: the attachment is gone, so is every answer. Lock held. */
void lt_call_lose_all(tent_context *ctx);

/* Unpacks a checked reply to a request of `type` (fds move over). False: it is not one. */
bool lt_reply_parse(uint16_t type, struct shr_msg *m, struct lt_reply *out);
/* Starts the message of a call, fd included. */
void lt_call_message(const struct lt_call *call, uint32_t correlation, struct shr_msg *m_out);

void lt_reply_drop_fds(struct lt_reply *r);
/* The answer of a data plane whose workers are behind (AGAIN), or that drains (its successor is to be asked). */
TN_INLINE bool lt_reply_is_not_now(const struct lt_reply *r)
{
	return r->status == TN_AGAIN || r->status == TN_DATAPLANE_DOWN;
}

/* Body of the calls that name one id; arg = const uint64_t *. And of those without body. */
uint32_t lt_build_id(const void *arg, uint8_t body[static SHR_MSG_MAX]);
uint32_t lt_build_none(const void *arg, uint8_t body[static SHR_MSG_MAX]);

/* Failure of a control call in words: "<call>: <what>: the data plane refused: ..."; for lt_call()'s own statuses and
 * for reply statuses. Lock held. */
tent_status lt_call_fail(const tent_context *ctx, const char *call, const char *what, tn_status status,
			 uint32_t detail);

#endif
