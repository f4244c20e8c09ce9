/* SPDX-License-Identifier: Apache-2.0
 * Questions to the control plane that somebody waits for: one struct per waiter, embedded in the object it is about,
 * so asking never allocates for the waiter and cancelling is a flag. Typed answers for the two questions other rooms
 * ask; JSON stays inside link/. Control thread. */
#ifndef DP_LINK_CALL_H
#define DP_LINK_CALL_H

#include "common/ids.h"
#include "dataplane/loop.h"
#include "dataplane/segment/table.h"

struct dp_link;
struct json_t;

struct dp_call {
	struct tn_list link;      /* outstanding calls; linked = somebody waits */
	struct dp_link *owner;
	uint64_t id;              /* correlation on the wire: a handle */
	struct dp_timer deadline;
	/* Exactly once per accepted call, unless cancelled; never from inside the asking function. `body` is borrowed; NULL
	 * unless status is OK. `detail` is text for people, never NULL. */
	void (*answered)(struct dp_call *call, tn_status status, const char *detail, const struct json_t *body);
};

void dp_call_init(struct dp_call *call);
TN_INLINE bool dp_call_waits(const struct dp_call *call) { return tn_list_linked(&call->link); }
/* No answer will come any more. Harmless when none was expected. */
void dp_call_cancel(struct dp_call *call);

/* `open`: where a segment of a peer is, and how to reach the peer. `found` is the receiver's to free on TN_OK; handle,
 * client, ref and peer_index in it are not filled. */
struct dp_open_call {
	struct dp_call call;
	void (*done)(struct dp_open_call *call, tn_status status, const struct dp_peer *peer, struct dp_remote *found);
};

/* `peer_refresh`: session, ticket and endpoints of a peer whose lanes were refused. */
struct dp_peer_call {
	struct dp_call call;
	void (*done)(struct dp_peer_call *call, tn_status status, const struct dp_peer *peer);
};

#endif
