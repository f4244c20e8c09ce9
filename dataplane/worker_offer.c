/* SPDX-License-Identifier: Apache-2.0
 * What a worker offers its transports (transport.h): lookups, questions to the control thread, polling, time.
 * Worker thread. */
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "dataplane/worker_state.h"

/* A refresh that was asked for is not asked again within this time. */
#define ASK_AGAIN_NS (500 * TN_NS_PER_MS)

const struct dp_segment *dp_worker_segment(const struct dp_worker *w, tn_handle h)
{
	return dp_view_segment(&w->view, h);
}

const struct dp_peer *dp_worker_peer(const struct dp_worker *w, uint32_t index)
{
	return dp_view_peer(&w->view, index);
}

const struct dp_buffer *dp_worker_registration(const struct dp_worker *w, uint64_t registration,
					       const struct dp_segment **segment_out)
{
	return dp_view_registration(&w->view, registration, segment_out);
}

/* True when it is time to ask (again). */
static bool ask(const struct dp_worker *w, uint64_t asked_ns)
{
	return asked_ns == 0 || w->now_ns - asked_ns >= ASK_AGAIN_NS;
}

void dp_worker_remote_refresh(struct dp_worker *w, tn_handle remote, uint64_t stale_generation)
{
	struct dp_remote_slot *s = dp_view_remote_slot(&w->view, remote);
	struct dp_evt evt = { .kind = DP_EVT_REMOTE_REFRESH, .num = remote, .num2 = stale_generation };
	if (s && ask(w, s->asked_ns) && dp_worker_tell(w, &evt) == TN_OK)
		s->asked_ns = w->now_ns;
}

void dp_worker_peer_refresh(struct dp_worker *w, uint32_t peer_index)
{
	struct dp_evt evt = { .kind = DP_EVT_PEER_REFRESH, .num = peer_index };
	struct dp_view_peer *s = dp_view_peer_slot(&w->view, peer_index);
	if (s && ask(w, s->asked_ns) && dp_worker_tell(w, &evt) == TN_OK)
		s->asked_ns = w->now_ns;
}

void dp_worker_answered(struct dp_worker *w, enum tn_transport kind, uint32_t peer_index)
{
	dp_admission_moved(&w->admission, peer_index, w->now_ns);
	if (tn_unlikely(w->selector.rails.sick_cnt > 0))
		dp_owner_tell_rail(w, kind, peer_index, TN_OK, w->now_ns);
}

void dp_worker_probed(struct dp_worker *w, enum tn_transport kind, uint32_t peer_index, bool ok)
{
	if (dp_rails_probed(&w->selector.rails, kind, peer_index, ok, w->now_ns))
		dp_owner_rail_changed(w, peer_index);
}

tn_status dp_worker_note_in(struct dp_worker *w, uint64_t token, tn_handle segment, struct dp_note_in *note)
{
	struct dp_evt evt = { .kind = DP_EVT_NOTE, .num = token, .num2 = segment, .ptr = note };
	return dp_worker_tell(w, &evt);
}

tn_status dp_worker_datagram_in(struct dp_worker *w, uint32_t peer_index, const void *bytes, uint32_t len)
{
	void *copy = malloc(len ? len : 1); /* the control thread's, by the contract of apply.h */
	if (!copy)
		return TN_AGAIN;
	memcpy(copy, bytes, len);
	struct dp_evt evt = { .kind = DP_EVT_DATAGRAM, .num2 = peer_index, .ptr = copy, .len = len };
	tn_status s = dp_worker_tell(w, &evt);
	if (s != TN_OK)
		free(copy);
	return s;
}

void dp_worker_lane_state(struct dp_worker *w, enum tn_transport kind, uint32_t peer_index, bool up)
{
	struct dp_evt evt = { .kind = DP_EVT_LANE_STATE, .num = up, .num2 = peer_index, .len = kind };
	(void)dp_worker_tell(w, &evt); /* for status output only: a full mailbox may lose it */
}

tn_status dp_worker_poll_add(struct dp_worker *w, struct dp_pollable *p, uint32_t events)
{
	return dp_poller_add(&w->poller, p, events, true);
}

void dp_worker_poll_mod(struct dp_worker *w, struct dp_pollable *p, uint32_t events)
{
	dp_poller_mod(&w->poller, p, events);
}

void dp_worker_poll_del(struct dp_worker *w, struct dp_pollable *p) { dp_poller_del(&w->poller, p, true); }

uint64_t dp_worker_now(const struct dp_worker *w) { return w->now_ns; }
void dp_worker_refresh_now(struct dp_worker *w)
{
	if (w->real_time)
		w->now_ns = tn_now_ns();
}
uint32_t dp_worker_index(const struct dp_worker *w) { return w->index; }
const struct tn_config *dp_worker_config(const struct dp_worker *w) { return w->config; }
const struct tn_id128 *dp_worker_session(const struct dp_worker *w) { return &w->env->session; }
const struct tn_peer_id *dp_worker_self(const struct dp_worker *w) { return &w->env->self; }
struct tn_metrics *dp_worker_metrics(struct dp_worker *w) { return &w->stats.m; }
struct tn_rand *dp_worker_rand(struct dp_worker *w) { return &w->rand; }
