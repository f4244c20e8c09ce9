/* SPDX-License-Identifier: Apache-2.0
 * Owner of the ticket table. Every look-up compares with every entry in constant time, so its duration tells a
 * stranger nothing. Control thread. */
#include "dataplane/ingress/ticket.h"

#include <string.h>

#include "dataplane/segment/secret.h"

tn_status dp_tickets_init(struct dp_tickets *t)
{
	*t = (struct dp_tickets){ .entries = dp_secret_alloc(DP_TICKETS_MAX * sizeof(struct dp_ticket)) };
	return t->entries != NULL ? TN_OK : TN_NO_MEMORY;
}

void dp_tickets_fini(struct dp_tickets *t)
{
	dp_secret_free(t->entries, DP_TICKETS_MAX * sizeof(struct dp_ticket));
	t->entries = NULL;
	t->used_end = 0;
}

static bool entry_used(const struct dp_ticket *e)
{
	return e->addr_cnt != 0;
}

static void entry_wipe(struct dp_ticket *e)
{
	explicit_bzero(e, sizeof *e);
}

/* The entry to write: the same ticket's, else the oldest of a peer that has its fill, else a free one; else NULL. */
static struct dp_ticket *entry_for(struct dp_tickets *t, const struct dp_ticket *ticket)
{
	struct dp_ticket *same = NULL, *oldest = NULL, *free_entry = NULL;
	uint32_t of_peer_cnt = 0;

	for (uint32_t i = 0; i < t->used_end; i++) {
		struct dp_ticket *e = &t->entries[i];
		if (!entry_used(e)) {
			free_entry = e;
			continue;
		}
		if (tn_id128_eq_secret(&e->ticket, &ticket->ticket))
			same = e;
		if (e->peer_index != ticket->peer_index)
			continue;
		of_peer_cnt++;
		if (oldest == NULL || e->order < oldest->order)
			oldest = e;
	}
	if (same != NULL)
		return same;
	if (of_peer_cnt >= DP_TICKETS_PER_PEER)
		return oldest;
	if (free_entry == NULL && t->used_end < DP_TICKETS_MAX)
		free_entry = &t->entries[t->used_end++];
	return free_entry;
}

tn_status dp_tickets_install(struct dp_tickets *t, const struct dp_ticket *ticket)
{
	struct dp_ticket *e;

	if (tn_id128_is_zero(&ticket->ticket) || tn_peer_id_is_zero(&ticket->peer) || tn_id128_is_zero(&ticket->session) ||
	    ticket->addr_cnt == 0 || ticket->addr_cnt > DP_TICKET_ADDRS_MAX)
		return TN_INVALID;
	e = entry_for(t, ticket);
	if (e == NULL)
		return TN_LIMIT;
	*e = *ticket;
	e->order = ++t->order;
	return TN_OK;
}

uint32_t dp_tickets_revoke(struct dp_tickets *t, uint32_t peer_index)
{
	uint32_t cnt = 0;

	for (uint32_t i = 0; i < t->used_end; i++) {
		struct dp_ticket *e = &t->entries[i];
		if (!entry_used(e) || e->peer_index != peer_index)
			continue;
		entry_wipe(e);
		cnt++;
	}
	return cnt;
}

void dp_tickets_revoke_older(struct dp_tickets *t, uint32_t peer_index, const struct tn_id128 *keep_session)
{
	for (uint32_t i = 0; i < t->used_end; i++) {
		struct dp_ticket *e = &t->entries[i];
		if (entry_used(e) && e->peer_index == peer_index && !tn_id128_eq(&e->session, keep_session))
			entry_wipe(e);
	}
}

static bool from_allowed(const struct dp_ticket *e, const struct tn_addr *from)
{
	for (uint32_t i = 0; i < e->addr_cnt; i++)
		if (tn_addr_net_has(&e->addrs[i], from))
			return true;
	return false;
}

const struct dp_ticket *dp_tickets_match(const struct dp_tickets *t, const struct tn_id128 *ticket,
                                         const struct tn_peer_id *peer, const struct tn_id128 *session,
                                         const struct tn_addr *from, bool *from_ok_out)
{
	const struct dp_ticket *found = NULL;

	for (uint32_t i = 0; i < t->used_end; i++) {
		const struct dp_ticket *e = &t->entries[i];
		bool equal = tn_id128_eq_secret(&e->ticket, ticket);
		found = equal && entry_used(e) ? e : found;
	}
	*from_ok_out = false;
	/* Only who holds the ticket comes this far. */
	if (found == NULL || !tn_peer_id_eq(&found->peer, peer) || !tn_id128_eq(&found->session, session))
		return NULL;
	*from_ok_out = from_allowed(found, from);
	return found;
}
