/* SPDX-License-Identifier: Apache-2.0
 * Tickets that admit lanes into this data plane: installed by the control plane for (a peer's incarnation -> this
 * incarnation), bound to sets of addresses, reusable, revoked as a whole. Pure table; control thread. */
#ifndef DP_INGRESS_TICKET_H
#define DP_INGRESS_TICKET_H

#include "common/addr_net.h"
#include "common/ids.h"

#define DP_TICKETS_MAX 2048u
#define DP_TICKETS_PER_PEER 8u
#define DP_TICKET_ADDRS_MAX 12u

struct dp_ticket {
	struct tn_id128 ticket;     /* secret; zero = free entry */
	struct tn_peer_id peer;     /* stable id of who may use it */
	struct tn_id128 session;    /* the peer's incarnation */
	uint32_t peer_index;
	uint32_t addr_cnt;
	uint64_t order;             /* of installation; a later one displaces the oldest of its peer */
	struct tn_addr_net addrs[DP_TICKET_ADDRS_MAX]; /* where its lanes may come from */
};

struct dp_tickets {
	struct dp_ticket *entries;  /* DP_TICKETS_MAX, in secret memory */
	uint32_t used_end;          /* entries from here on were never used */
	uint64_t order;
};

tn_status dp_tickets_init(struct dp_tickets *t); /* NO_MEMORY */
void dp_tickets_fini(struct dp_tickets *t);      /* wipes */

/* Adds, or replaces the entry with the same ticket. INVALID: zero ticket, peer or session, no address. LIMIT. */
tn_status dp_tickets_install(struct dp_tickets *t, const struct dp_ticket *ticket);
/* All of this peer; how many. */
uint32_t dp_tickets_revoke(struct dp_tickets *t, uint32_t peer_index);
/* All of this peer but those of one incarnation. */
void dp_tickets_revoke_older(struct dp_tickets *t, uint32_t peer_index, const struct tn_id128 *keep_session);
/* The entry of this ticket, peer and session, or NULL. Takes the same time whichever entry matches, or none. The lane is
 * admitted only when *from_ok_out: `from` is an address that the ticket is bound to. */
const struct dp_ticket *dp_tickets_match(const struct dp_tickets *t, const struct tn_id128 *ticket,
                                         const struct tn_peer_id *peer, const struct tn_id128 *session,
                                         const struct tn_addr *from, bool *from_ok_out);

#endif
