/* SPDX-License-Identifier: Apache-2.0
 * The other data planes as this process knows them: a slot per peer name whose index never changes, the version of its
 * session, ticket and endpoints that workers use, and the search for a newer one when lanes are refused. Also who is
 * trusted at all, and which of a peer's incarnations may have lanes into this host. Control thread. */
#ifndef DP_SEGMENT_PEER_H
#define DP_SEGMENT_PEER_H

#include "common/addr.h"
#include "common/atomic.h"
#include "dataplane/crew.h"
#include "dataplane/link/call.h"
#include "dataplane/segment/table.h"

struct dp_control;

struct dp_peer_slot {
	struct dp_control *ctl;
	uint32_t index;
	bool trusted;                  /* it is in the control plane's list */
	uint64_t listing;              /* the last list that had it */
	char name[TN_NAME_MAX];
	struct tn_peer_id id;
	/* Versions: workers may use `prev` until they acknowledge `cur`; `next` waits for that. NULL cur: not known yet. */
	struct dp_peer *prev, *cur, *next;
	struct dp_flight flight;
	struct dp_flight back;         /* PEER_BACK; nobody waits for it */
	bool refreshing;               /* a search is under way */
	struct dp_peer_call call;
	struct dp_timer retry;
	uint64_t backoff_ns, give_up_ns, answered_ns;
	/* Lanes into this host. */
	tn_a32 conn_cnt;               /* accepted and not yet closed; workers subtract */
	struct tn_id128 incoming;      /* incarnation that may have lanes here; zero = none yet */
	struct tn_id128 fencing;       /* incarnation that waits for the older one's lanes to be closed; zero = none */
	struct dp_flight fence;
	struct dp_flight shut;         /* FENCE of a key that is trusted no more; nobody waits for it */
	/* The last lane that came with a good ticket but from an address that it is not bound to; cnt 0 = none. */
	struct tn_addr stray;
	uint64_t stray_cnt, stray_ns;
};

struct dp_peers {
	struct dp_control *ctl;
	uint32_t cnt;
	struct dp_peer_slot **slots;   /* by index; slots never move or go */
	struct dp_peer_slot *self;     /* DP_PEER_SELF; in no list of peers. NULL: no lanes to ourselves */
	uint64_t listing;              /* counts lists */
};

void dp_peers_init(struct dp_peers *p, struct dp_control *ctl);
void dp_peers_fini(struct dp_peers *p);

/* NULL when no such name or index was ever told. */
struct dp_peer_slot *dp_peers_find(const struct dp_peers *p, const char *name);
TN_INLINE struct dp_peer_slot *dp_peers_at(const struct dp_peers *p, uint32_t index)
{
	return index == DP_PEER_SELF ? p->self : index < p->cnt ? p->slots[index] : NULL;
}
/* Makes ourselves a peer, with an id, a ticket and an address of our own listener that nobody else is told: the second way to
 * the segments of this host. The workers learn it now and connect when a request needs it. Nothing without a listener.
 * TN_NO_MEMORY, TN_SYSTEM (no randomness). */
tn_status dp_peers_meet_self(struct dp_control *ctl);

/* The control plane's list of whom it trusts, told anew with every attachment. Who is not in it, or is in it with another
 * key, loses what it had here: its tickets, its lanes into this host and (if it is gone) what was opened at it.
 * add: TN_LIMIT, TN_NO_MEMORY. */
void dp_peers_list_begin(struct dp_peers *p);
tn_status dp_peers_list_add(struct dp_peers *p, const char *name, const struct tn_peer_id *id);
void dp_peers_list_end(struct dp_peers *p);

/* A peer that the control plane speaks of: makes its slot if the name is new. TN_PEER_UNKNOWN: no longer trusted;
 * TN_PEER_STALE: not the key it is trusted with; TN_LIMIT, TN_NO_MEMORY. */
tn_status dp_peers_introduce(struct dp_peers *p, const char *name, const struct tn_peer_id *id,
                             struct dp_peer_slot **slot_out);
/* What the control plane says about a peer now; workers get it if it is news. `peer->index` is ignored: ours is
 * *index_out. TN_LIMIT, TN_NO_MEMORY. */
tn_status dp_peers_learn(struct dp_control *ctl, const struct dp_peer *peer, uint32_t *index_out);
/* Lanes to this peer were refused (DP_EVT_PEER_REFRESH): ask the control plane; always answered by a PEER_SET. Of ourselves
 * nothing newer exists. */
void dp_peers_refresh(struct dp_control *ctl, uint32_t index);
/* The control plane says that a peer is back with this incarnation. If another one is known here, or a search waits, it is
 * asked for at once. A name without a slot is nothing. */
void dp_peers_returned(struct dp_control *ctl, const char *name, const struct tn_id128 *session);
/* The link is up again: searches that wait go on at once. */
void dp_peers_link_up(struct dp_peers *p);

#endif
