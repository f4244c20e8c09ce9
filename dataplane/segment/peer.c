/* SPDX-License-Identifier: Apache-2.0
 * Owner of the peer slots. Each change is a new immutable struct dp_peer under the same index (PEER_SET); the one
 * before is wiped when every worker has let go of it. Ourselves are a slot beside them. Control thread. */
#include "dataplane/segment/peer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/log.h"
#include "common/rand.h"
#include "dataplane/control.h"
#include "dataplane/segment/remote.h"
#include "dataplane/segment/secret.h"

#define CALL_NS UINT64_C(5000000000)
#define BACKOFF_FIRST_NS UINT64_C(20000000)
#define BACKOFF_MAX_NS UINT64_C(2000000000)
#define GIVE_UP_NS UINT64_C(60000000000)
#define CALM_NS UINT64_C(5000000000) /* a peer that was quiet this long starts with the first back-off again */

static void peer_acked(struct dp_flight *f);
static void peer_found(struct dp_peer_call *call, tn_status s, const struct dp_peer *peer);
static void peer_retry(struct dp_timer *t);

void dp_peers_init(struct dp_peers *p, struct dp_control *ctl)
{
	*p = (struct dp_peers){ .ctl = ctl };
}

static void peer_free(struct dp_peer *peer)
{
	dp_secret_free(peer, sizeof *peer);
}

static void slot_free(struct dp_peer_slot *slot)
{
	dp_call_cancel(&slot->call.call);
	dp_timer_cancel(&slot->retry);
	peer_free(slot->prev);
	peer_free(slot->cur);
	peer_free(slot->next);
	free(slot);
}

void dp_peers_fini(struct dp_peers *p)
{
	for (uint32_t i = 0; i < p->cnt; i++)
		slot_free(p->slots[i]);
	free(p->slots);
	if (p->self != NULL)
		slot_free(p->self);
	*p = (struct dp_peers){ .ctl = NULL };
}

struct dp_peer_slot *dp_peers_find(const struct dp_peers *p, const char *name)
{
	for (uint32_t i = 0; i < p->cnt; i++)
		if (strcmp(p->slots[i]->name, name) == 0)
			return p->slots[i];
	return NULL;
}

static struct dp_peer_slot *slot_make(const struct dp_peers *p, uint32_t index, const char *name,
                                      const struct tn_peer_id *id)
{
	struct dp_peer_slot *slot = calloc(1, sizeof *slot);

	if (slot == NULL)
		return NULL;
	slot->ctl = p->ctl;
	slot->index = index;
	slot->trusted = true;
	slot->listing = p->listing;
	slot->id = *id;
	(void)snprintf(slot->name, sizeof slot->name, "%s", name);
	slot->flight.done = peer_acked;
	slot->fence.done = dp_greet_fenced;
	slot->call.done = peer_found;
	dp_call_init(&slot->call.call);
	dp_timer_init(&slot->retry, peer_retry);
	return slot;
}

static tn_status slot_new(struct dp_peers *p, const char *name, const struct tn_peer_id *id,
                          struct dp_peer_slot **slot_out)
{
	struct dp_peer_slot **slots, *slot;

	if (p->cnt == DP_PEERS_MAX)
		return TN_LIMIT;
	slots = realloc(p->slots, (p->cnt + 1) * sizeof(struct dp_peer_slot *));
	if (slots == NULL)
		return TN_NO_MEMORY;
	p->slots = slots;
	slot = slot_make(p, p->cnt, name, id);
	if (slot == NULL)
		return TN_NO_MEMORY;
	p->slots[p->cnt++] = slot;
	*slot_out = slot;
	return TN_OK;
}

tn_status dp_peers_introduce(struct dp_peers *p, const char *name, const struct tn_peer_id *id,
                             struct dp_peer_slot **slot_out)
{
	struct dp_peer_slot *slot = dp_peers_find(p, name);

	if (slot == NULL)
		return slot_new(p, name, id, slot_out);
	if (!slot->trusted)
		return TN_PEER_UNKNOWN;
	if (!tn_peer_id_eq(&slot->id, id))
		return TN_PEER_STALE;
	*slot_out = slot;
	return TN_OK;
}

/* ---- whom the control plane trusts ---- */

/* What the holder of this key had here: no ticket admits it any more, and its lanes are closed. */
static void shut_out(struct dp_peer_slot *slot)
{
	struct dp_control *ctl = slot->ctl;

	(void)dp_tickets_revoke(&ctl->greet.tickets, slot->index);
	slot->incoming = (struct tn_id128){ { 0 } };
	dp_crew_broadcast(&ctl->crew, (struct dp_cmd){ .kind = DP_CMD_FENCE, .fd = -1, .num = slot->index }, &slot->shut);
}

void dp_peers_list_begin(struct dp_peers *p)
{
	p->listing++;
}

tn_status dp_peers_list_add(struct dp_peers *p, const char *name, const struct tn_peer_id *id)
{
	struct dp_peer_slot *slot = dp_peers_find(p, name);

	if (slot == NULL)
		return slot_new(p, name, id, &slot);
	slot->listing = p->listing;
	if (!tn_peer_id_eq(&slot->id, id)) {
		tn_log_warn("peer", "%s has another key now: lanes and tickets of the old one are void", name);
		shut_out(slot);
		slot->id = *id;
		if (slot->trusted)
			dp_peers_refresh(p->ctl, slot->index);
	}
	if (!slot->trusted) {
		slot->trusted = true;
		dp_remote_peer_back(p->ctl, slot->name);
	}
	return TN_OK;
}

void dp_peers_list_end(struct dp_peers *p)
{
	for (uint32_t i = 0; i < p->cnt; i++) {
		struct dp_peer_slot *slot = p->slots[i];
		if (slot->listing == p->listing || !slot->trusted)
			continue;
		tn_log_warn("peer", "%s is no longer among the peers of this host: its lanes and tickets are void", slot->name);
		slot->trusted = false;
		shut_out(slot);
		dp_remote_peer_gone(p->ctl, slot->name);
	}
}

/* ---- versions ---- */

static void version_send(struct dp_peer_slot *slot, struct dp_peer *peer)
{
	slot->prev = slot->cur;
	slot->cur = peer;
	dp_crew_broadcast(&slot->ctl->crew, (struct dp_cmd){ .kind = DP_CMD_PEER_SET, .fd = -1, .ptr = peer },
	                  &slot->flight);
}

static tn_status version_set(struct dp_peer_slot *slot, const struct dp_peer *news)
{
	struct dp_peer *peer = dp_secret_alloc(sizeof *peer);

	if (peer == NULL)
		return TN_NO_MEMORY;
	*peer = *news;
	peer->index = slot->index;
	peer->id = slot->id;
	memcpy(peer->name, slot->name, sizeof peer->name);
	if (slot->flight.waiting == 0) {
		version_send(slot, peer);
		return TN_OK;
	}
	peer_free(slot->next);
	slot->next = peer;
	return TN_OK;
}

static void peer_acked(struct dp_flight *f)
{
	struct dp_peer_slot *slot = tn_container_of(f, struct dp_peer_slot, flight);
	struct dp_peer *next = slot->next;

	/* A worker that refused goes on with `prev`, which then stays: its table has room for every slot, so this is our bug. */
	if (f->status == TN_OK)
		peer_free(slot->prev);
	else
		tn_log_error("peer", "a worker refused to learn of %s: %s", slot->name, tn_status_meaning(f->status));
	slot->prev = NULL;
	slot->next = NULL;
	if (next != NULL)
		version_send(slot, next);
}

static bool same_version(const struct dp_peer *a, const struct dp_peer *b)
{
	if (a == NULL || !tn_id128_eq(&a->session, &b->session) || !tn_id128_eq_secret(&a->ticket, &b->ticket) ||
	    a->frame_bytes != b->frame_bytes)
		return false;
	return dp_peer_same_endpoints(a, b);
}

tn_status dp_peers_learn(struct dp_control *ctl, const struct dp_peer *peer, uint32_t *index_out)
{
	struct dp_peer_slot *slot;
	tn_status s = dp_peers_introduce(&ctl->peers, peer->name, &peer->id, &slot);

	if (s != TN_OK)
		return s;
	if (!same_version(slot->next != NULL ? slot->next : slot->cur, peer))
		s = version_set(slot, peer);
	if (s == TN_OK)
		*index_out = slot->index;
	return s;
}

/* ---- ourselves ---- */

static tn_status self_draw(struct dp_peer *peer, const struct tn_addr *at, const struct tn_id128 *session)
{
	memset(peer, 0, sizeof *peer);
	peer->session = *session;
	peer->frame_bytes = DP_FRAME_BYTES_MAX;
	peer->of[TN_TRANSPORT_TCP] = (struct dp_endpoints){ .cnt = 1, .at[0] = at->ss };
	tn_status s = tn_rand_os(&peer->id, sizeof peer->id);
	return s == TN_OK ? tn_rand_id128(&peer->ticket) : s;
}

/* The ticket admits from this one address: a connection to ourselves is bound to the address that it goes to. */
static tn_status self_admit(struct dp_control *ctl, const struct dp_peer *peer, const struct tn_addr *at)
{
	struct dp_ticket t = { .ticket = peer->ticket, .peer = peer->id, .session = peer->session, .peer_index = DP_PEER_SELF,
	                       .addr_cnt = 1 };

	t.addrs[0] = tn_addr_net_of(at);
	tn_status s = dp_tickets_install(&ctl->greet.tickets, &t);
	explicit_bzero(&t, sizeof t);
	return s;
}

tn_status dp_peers_meet_self(struct dp_control *ctl)
{
	struct dp_peers *p = &ctl->peers;
	struct dp_peer news;
	struct tn_addr at;

	if (!dp_greet_own_address(&ctl->greet, &at))
		return TN_OK;
	tn_status s = self_draw(&news, &at, &ctl->cfg.env->session);
	if (s == TN_OK)
		s = self_admit(ctl, &news, &at);
	if (s == TN_OK) {
		p->self = slot_make(p, DP_PEER_SELF, tn_config_str(ctl->config, TN_CFG_HOST_NAME), &news.id);
		s = p->self != NULL ? TN_OK : TN_NO_MEMORY;
	}
	if (s == TN_OK) {
		p->self->incoming = news.session; /* there is no older one to be fenced */
		s = version_set(p->self, &news);
	}
	explicit_bzero(&news, sizeof news);
	return s;
}

/* ---- search for a newer version ---- */

static void refresh_end(struct dp_peer_slot *slot, const struct dp_peer *news)
{
	dp_timer_cancel(&slot->retry);
	/* Workers wait for a PEER_SET, also for one that says the same again. */
	if (version_set(slot, news != NULL ? news : slot->next != NULL ? slot->next : slot->cur) != TN_OK) {
		dp_timer_set(&slot->ctl->loop, &slot->retry, slot->ctl->loop.now_ns + BACKOFF_MAX_NS);
		return;
	}
	slot->refreshing = false;
	slot->answered_ns = slot->ctl->loop.now_ns;
}

static void refresh_later(struct dp_peer_slot *slot)
{
	struct dp_control *ctl = slot->ctl;

	if (ctl->loop.now_ns >= slot->give_up_ns) {
		refresh_end(slot, NULL);
		return;
	}
	uint64_t wait_ns = slot->backoff_ns - tn_rand_below(&ctl->rand, slot->backoff_ns / 4);
	slot->backoff_ns = TN_MIN(slot->backoff_ns * 2, BACKOFF_MAX_NS);
	dp_timer_set(&ctl->loop, &slot->retry, ctl->loop.now_ns + wait_ns);
}

static void refresh_try(struct dp_peer_slot *slot)
{
	uint64_t deadline_ns = slot->ctl->loop.now_ns + CALL_NS;

	if (slot->index == DP_PEER_SELF) {
		refresh_end(slot, NULL);
		return;
	}
	if (dp_link_peer_refresh(slot->ctl->link, &slot->call, slot->cur, deadline_ns) != TN_OK)
		refresh_later(slot);
}

static void peer_retry(struct dp_timer *t)
{
	refresh_try(tn_container_of(t, struct dp_peer_slot, retry));
}

static void peer_found(struct dp_peer_call *call, tn_status s, const struct dp_peer *peer)
{
	struct dp_peer_slot *slot = tn_container_of(call, struct dp_peer_slot, call);

	if (s != TN_OK) {
		refresh_later(slot);
		return;
	}
	refresh_end(slot, peer);
}

void dp_peers_refresh(struct dp_control *ctl, uint32_t index)
{
	struct dp_peer_slot *slot = dp_peers_at(&ctl->peers, index);
	uint64_t now_ns = ctl->loop.now_ns;

	if (slot == NULL || slot->cur == NULL || slot->refreshing)
		return;
	slot->refreshing = true;
	slot->give_up_ns = now_ns + GIVE_UP_NS;
	if (now_ns - slot->answered_ns > CALM_NS || slot->backoff_ns == 0)
		slot->backoff_ns = BACKOFF_FIRST_NS;
	/* Asked again right after an answer: that answer did not help, so not in a hurry. */
	if (now_ns - slot->answered_ns < slot->backoff_ns)
		refresh_later(slot);
	else
		refresh_try(slot);
}

void dp_peers_returned(struct dp_control *ctl, const char *name, const struct tn_id128 *session)
{
	struct dp_peer_slot *slot = dp_peers_find(&ctl->peers, name);

	if (slot == NULL || slot->cur == NULL)
		return; /* nobody here ever used it */
	const struct dp_peer *newest = slot->next != NULL ? slot->next : slot->cur;
	slot->backoff_ns = BACKOFF_FIRST_NS;
	dp_crew_broadcast(&ctl->crew, (struct dp_cmd){ .kind = DP_CMD_PEER_BACK, .fd = -1, .num = slot->index }, &slot->back);
	if (slot->refreshing && dp_timer_armed(&slot->retry)) {
		dp_timer_set(&ctl->loop, &slot->retry, ctl->loop.now_ns);
	} else if (!slot->refreshing && !tn_id128_eq(&newest->session, session)) {
		slot->answered_ns = 0; /* what was answered before says nothing about this one */
		dp_peers_refresh(ctl, slot->index);
	}
}

void dp_peers_link_up(struct dp_peers *p)
{
	for (uint32_t i = 0; i < p->cnt; i++)
		if (p->slots[i]->refreshing && dp_timer_armed(&p->slots[i]->retry))
			dp_timer_set(&p->ctl->loop, &p->slots[i]->retry, p->ctl->loop.now_ns);
}
