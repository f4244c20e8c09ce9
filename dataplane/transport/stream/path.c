/* SPDX-License-Identifier: Apache-2.0
 * Connections of the connecting side to one peer: which lanes are open, when to connect and when not (back-off, one
 * round over the peer's addresses, single-flight refresh of session and ticket), HELLO, and the path epoch: a broken
 * path closes all its lanes and comes back with a higher epoch, whose acceptance is the fence. Worker thread only. */
#include "common/assert.h"
#include "common/bits.h"
#include "common/clock.h"
#include "common/hook.h"
#include "dataplane/transport/stream/account.h"

#define BACKOFF_MIN_NS (10 * TN_NS_PER_MS)
#define BACKOFF_MAX_NS TN_NS_PER_S
#define REFRESH_MIN_NS (100 * TN_NS_PER_MS)
#define REFRESH_MAX_NS (5 * TN_NS_PER_S)

TN_INLINE struct dp_stream *stream_of(struct dp_transport *t) { return tn_container_of(t, struct dp_stream, base); }

struct dp_path *dp_path_of(const struct dp_stream *s, uint32_t peer_index)
{
	uint32_t row = peer_index + 1u;
	/* [P1] acquire: the control thread sees paths that are set up. */
	return row < tn_load_acquire32(&s->path_cnt) ? &s->paths[row] : NULL;
}

void dp_path_init(struct dp_path *p, struct dp_stream *s, uint32_t row)
{
	*p = (struct dp_path){ .stream = s, .peer_index = row - 1u, .ticket = &s->tickets[row], .epoch = 1,
	                       .wait_ns = UINT64_MAX };
	p->refresh_why = TN_PATH_DOWN;
	for (unsigned prio = 0; prio < TN_PRIORITY_CNT; prio++) {
		tn_list_init(&p->run[prio][0]);
		tn_list_init(&p->run[prio][1]);
	}
	tn_list_init(&p->parked);
	tn_list_init(&p->fencing);
	tn_list_init(&p->dirty_link);
}

uint32_t dp_stream_lane_cnt(const struct dp_transport *t, uint32_t peer_index)
{
	const struct dp_stream *s = tn_container_of((struct dp_transport *)(uintptr_t)t, struct dp_stream, base);
	const struct dp_path *p = dp_path_of(s, peer_index);
	return p == NULL ? 0 : p->ready_cnt;
}

/* ---- when ---- */

/* Exponential with jitter in its upper half. */
static uint64_t backoff(struct dp_stream *s, uint32_t failures, uint64_t min_ns, uint64_t max_ns)
{
	uint32_t shift = TN_MIN(failures > 0 ? failures - 1 : 0, 20u);
	uint64_t full = TN_MIN(min_ns << shift, max_ns);
	return tn_rand_range(&s->rand, full / 2, full);
}

static void ask_refresh(struct dp_path *p, tn_status why, bool hold)
{
	struct dp_stream *s = p->stream;
	uint64_t now = dp_stream_now(s);
	p->refresh_why = why;
	p->hold |= hold;
	if (now >= p->refresh_ns && s->base.up) {
		dp_worker_peer_refresh(s->base.worker, p->peer_index);
		p->refresh_ns = now + backoff(s, ++p->refresh_cnt, REFRESH_MIN_NS, REFRESH_MAX_NS);
	}
	if (p->hold && s->base.up)
		dp_stream_timer(s, p->refresh_ns);
	dp_path_board(p);
}

static void told_up(struct dp_path *p)
{
	bool up = p->ready_cnt > 0;
	if (up == p->up || !p->stream->base.up) /* not while the transport is taken down */
		return;
	p->up = up;
	dp_path_board_since(p);
	dp_worker_lane_state(p->stream->base.worker, p->stream->base.ops->kind, p->peer_index, up);
}

static bool data_wanted(const struct dp_path *p)
{
	if (p->open_cnt >= p->stream->cfg.lanes_per_peer || p->open_cnt > p->ready_cnt)
		return false; /* all open, or one is on its way */
	return p->open_cnt == 0 ? p->queued > 0 || p->probe_ns != 0 || !tn_list_empty(&p->fencing) :
				  p->queued > 0 && p->want_more;
}

/* Only beside others: it does without what it is for. */
static bool urgent_wanted(const struct dp_path *p)
{
	return p->want_urgent && p->ready_cnt > 0 && p->lanes[DP_PATH_URGENT] == NULL;
}

static bool control_wanted(const struct dp_path *p) { return p->control == NULL && p->small_next != p->small_tail; }

enum dp_reach dp_stream_probe(struct dp_transport *t, uint32_t peer_index, uint64_t until_ns)
{
	struct dp_stream *s = stream_of(t);
	struct dp_path *p = dp_path_of(s, peer_index);
	if (p == NULL || p->ready_cnt > 0)
		return p == NULL ? DP_REACH_NO : DP_REACH_READY;
	p->probe_ns = until_ns;
	dp_stream_timer(s, until_ns);
	dp_path_dirty(p);
	return DP_REACH_CONNECT;
}

static void probe_over(struct dp_path *p, bool ok)
{
	if (p->probe_ns == 0)
		return;
	p->probe_ns = 0;
	dp_worker_probed(p->stream->base.worker, p->stream->base.ops->kind, p->peer_index, ok);
}

/* A connection could not be made: the next address at once, after the last one a pause. */
static void connect_failed(struct dp_path *p, bool urgent, tn_status status)
{
	struct dp_stream *s = p->stream;
	uint64_t now = dp_stream_now(s);
	p->fail_cnt++;
	p->endpoint++;
	if (++p->round < p->endpoint_cnt) {
		p->next_try_ns = now;
	} else {
		p->round = 0;
		p->next_try_ns = now + backoff(s, p->fail_cnt, BACKOFF_MIN_NS, BACKOFF_MAX_NS);
		if (p->stray) /* every address was tried: the next ticket may be bound to others */
			ask_refresh(p, TN_PEER_ADDRESS, true);
		else if (!p->hold && status != TN_PATH_PROTOCOL) /* it may have moved: a restarted peer listens elsewhere */
			ask_refresh(p, TN_PATH_DOWN, false);
		p->stray = false;
		if (!urgent) /* a probe is about lanes for all requests */
			probe_over(p, false);
	}
	dp_path_dirty(p);
	dp_path_board(p);
}

enum lane_class { LANE_DATA, LANE_URGENT, LANE_CONTROL };

static void open_lane(struct dp_path *p, enum lane_class class, uint64_t now_ns)
{
	struct dp_stream *s = p->stream;
	struct dp_lane *l = dp_stream_lane_get(s, &dp_client_side, DP_LANE_CONNECTING);
	if (l == NULL) {
		connect_failed(p, class != LANE_DATA, TN_LIMIT);
		return;
	}
	uint32_t index = class == LANE_URGENT ? DP_PATH_URGENT : 0;
	while (class == LANE_DATA && p->lanes[index] != NULL)
		index++;
	l->path = p;
	l->endpoint = p->endpoint % p->endpoint_cnt;
	l->control = class == LANE_CONTROL;
	l->urgent = class != LANE_DATA;
	l->index = (uint16_t)index;
	l->epoch = p->epoch;
	l->limit_ns = now_ns + s->cfg.connect_timeout_ns;
	dp_stream_timer(s, l->limit_ns);
	tn_status st = s->bytes->connect(s->provider, &l->bytes, &p->endpoints[l->endpoint], l->urgent);
	if (st != TN_OK) {
		dp_lane_move(l, DP_LANE_CLOSED);
		dp_account_connections(s, -1);
		dp_account_event(s, TN_OP_WRITE, TN_STREAM_EVENT_CONNECT_ERROR);
		dp_path_board_outcome(p, l->endpoint, st, l->bytes.os_error);
		dp_stream_lane_put(l);
		connect_failed(p, class != LANE_DATA, st);
		return;
	}
	p->opening_cnt++;
	if (l->control)
		p->control = l;
	else
		p->lanes[index] = l;
	if (class == LANE_DATA) {
		p->open_cnt++;
		p->want_more = false;
	}
	p->want_urgent &= class != LANE_URGENT;
	dp_path_board(p);
}

void dp_path_connect(struct dp_path *p, uint64_t now_ns)
{
	struct dp_stream *s = p->stream;
	if (p->queued > 0 && p->ready_cnt == 0 && p->wait_ns == UINT64_MAX) {
		p->wait_ns = now_ns + s->cfg.connect_timeout_ns;
		dp_stream_timer(s, p->wait_ns);
	}
	if (!data_wanted(p) && !urgent_wanted(p) && !control_wanted(p))
		return;
	if (p->endpoint_cnt == 0 || tn_id128_is_zero(&p->session) || tn_id128_is_zero(p->ticket))
		ask_refresh(p, TN_PEER_DOWN, true);
	if (p->hold) {
		dp_stream_timer(s, p->refresh_ns);
		return;
	}
	if (now_ns < p->next_try_ns) {
		dp_stream_timer(s, p->next_try_ns);
		return;
	}
	if (data_wanted(p))
		open_lane(p, LANE_DATA, now_ns);
	if (urgent_wanted(p) && now_ns >= p->next_try_ns)
		open_lane(p, LANE_URGENT, now_ns);
	if (control_wanted(p) && now_ns >= p->next_try_ns)
		open_lane(p, LANE_CONTROL, now_ns);
}

/* ---- HELLO ---- */

/* To ourselves we go by a name that nobody else knows: our stable id is known only after the control plane told it. */
static const struct tn_peer_id *sender_of(const struct dp_path *p)
{
	const struct dp_worker *w = p->stream->base.worker;
	return p->peer_index == DP_PEER_SELF ? &dp_worker_peer(w, DP_PEER_SELF)->id : dp_worker_self(w);
}

static uint16_t wire_index(const struct dp_lane *l)
{
	return l->control ? DP_HELLO_LANE_CONTROL : l->urgent ? DP_HELLO_LANE_URGENT : l->index;
}

void dp_path_connected(struct dp_lane *l)
{
	struct dp_path *p = l->path;
	struct dp_stream *s = l->stream;
	struct dp_worker *w = s->base.worker;
	struct dp_hello h = {
		.version_min = DP_FRAME_VERSION, .version_max = DP_FRAME_VERSION, .features = DP_HELLO_FEATURE_NOTES,
		.sender_session = *dp_worker_session(w), .receiver_session = p->session, .sender = *sender_of(p),
		.ticket = *p->ticket, .path_epoch = l->epoch, .worker = (uint16_t)dp_worker_index(w), .lane = wire_index(l),
		.frame_bytes = s->cfg.frame_bytes,
	};
	uint8_t bytes[DP_HELLO_BYTES];
	dp_hello_encode(&h, bytes);
	dp_lane_preamble(l, bytes, sizeof bytes);
	explicit_bzero(&h, sizeof h); /* the ticket */
	explicit_bzero(bytes, sizeof bytes);
	TN_HOOK(dp_lane_connected);
	dp_lane_move(l, DP_LANE_HELLO_SENT);
}

static void refused(struct dp_lane *l, const struct dp_hello_answer *a)
{
	struct dp_path *p = l->path;
	tn_status why = TN_PEER_DOWN;
	switch (a->status) {
	case DP_HELLO_NO_VERSION: why = TN_PATH_PROTOCOL; break;
	case DP_HELLO_NO_TICKET: why = TN_PEER_DENIED; break;
	case DP_HELLO_SESSION: why = TN_PEER_STALE; break;
	case DP_HELLO_ADDRESS:
		why = TN_PEER_ADDRESS;
		p->stray = true;
		dp_path_board_seen(p, a->seen);
		break;
	case DP_HELLO_OLD_EPOCH: p->epoch++; break;
	default: break; /* too many, draining: later */
	}
	if (why == TN_PEER_DENIED || why == TN_PEER_STALE)
		ask_refresh(p, why, true);
	else
		p->refresh_why = why;
	dp_lane_close(l, why, DP_FRAME_OK, false);
}

enum dp_frame_error dp_path_answer(struct dp_lane *l, const uint8_t *bytes)
{
	struct dp_path *p = l->path;
	struct dp_stream *s = l->stream;
	struct dp_hello_answer a;
	enum dp_frame_error e = dp_hello_answer_decode(bytes, DP_HELLO_ANSWER_BYTES, &a);
	if (e != DP_FRAME_OK)
		return e;
	if (a.status != DP_HELLO_ACCEPTED) {
		refused(l, &a);
		return DP_FRAME_OK;
	}
	if (!tn_id128_eq(&a.session, &p->session) || a.path_epoch != l->epoch)
		return DP_FRAME_BAD_TICKET;
	dp_lane_agree_frames(l, a.frame_bytes);
	l->greeted = true;
	l->remembers = (a.features & DP_HELLO_FEATURE_NOTES) != 0;
	l->limit_ns = UINT64_MAX;
	dp_lane_move(l, DP_LANE_READY);
	dp_stream_timer(s, dp_stream_now(s) + s->cfg.idle_timeout_ns);
	dp_account_event(s, TN_OP_WRITE, TN_STREAM_EVENT_CONNECT_OK);
	p->opening_cnt--;
	p->round = 0;
	p->stray = false;
	p->refresh_cnt = 0;
	p->refresh_why = TN_PATH_DOWN;
	if (!l->urgent) {
		p->ready_cnt++;
		p->wait_ns = UINT64_MAX;
		told_up(p);
		probe_over(p, true);
	}
	TN_HOOK(dp_lane_ready);
	if (l->epoch == p->epoch)
		dp_client_fenced(p);
	dp_path_board_outcome(p, l->endpoint, TN_OK, 0);
	dp_path_board(p);
	dp_path_dirty(p);
	return DP_FRAME_OK;
}

/* ---- the end of a lane ---- */

/* Close every lane: what was sent on them is in doubt. The next ones carry a higher epoch; the first that is accepted
 * settles the doubt. */
static void break_path(struct dp_path *p, tn_status status)
{
	p->breaking = true;
	for (uint32_t i = 0; i < DP_PATH_PLACES; i++)
		if (p->lanes[i] != NULL)
			dp_lane_close(p->lanes[i], status, DP_FRAME_OK, true);
	if (p->control != NULL)
		dp_lane_close(p->control, status, DP_FRAME_OK, true);
	p->breaking = false;
	p->epoch++;
	dp_path_dirty(p);
}

static uint8_t reason_of(tn_status status)
{
	switch (status) {
	case TN_PATH_TIMEOUT: return TN_REASON_TIMEOUT;
	case TN_PATH_PROTOCOL: return TN_REASON_PROTOCOL;
	case TN_CANCELED: return TN_REASON_CANCELED;
	default: return TN_REASON_PEER_CLOSED;
	}
}

/* Out of the path's books; true when a WRITE on it is ambiguous. */
static bool take_out(struct dp_lane *l, tn_status status)
{
	struct dp_path *p = l->path;
	bool doubt = false;
	if (!l->greeted)
		p->opening_cnt--;
	if (l->control) {
		p->control = NULL;
		dp_note_lost(l, reason_of(status));
	} else {
		p->lanes[l->index] = NULL;
		p->open_cnt -= !l->urgent;
		p->ready_cnt -= l->greeted && !l->urgent;
		doubt = dp_client_lane_lost(l, status, reason_of(status));
	}
	return doubt;
}

void dp_path_closed(struct dp_lane *l, tn_status status, enum dp_frame_error error)
{
	struct dp_path *p = l->path;
	struct dp_stream *s = l->stream;
	bool greeted = l->greeted, retired = status == TN_OK;
	(void)error;
	if (greeted && status == TN_PATH_DOWN && l->head != l->tail)
		dp_account_event(s, l->ops[l->head & (DP_LANE_OPS - 1)].op == DP_FRAME_READ ? TN_OP_READ : TN_OP_WRITE,
		                 TN_STREAM_EVENT_PEER_CLOSED);
	bool doubt = take_out(l, status);
	if (!retired && !p->breaking)
		dp_path_board_outcome(p, l->endpoint, status, l->bytes.os_error);
	if (!greeted) {
		dp_account_event(s, TN_OP_WRITE, TN_STREAM_EVENT_CONNECT_ERROR);
		if (!p->breaking)
			connect_failed(p, l->urgent, status);
	} else if (!p->breaking && !retired) {
		p->next_try_ns = dp_stream_now(s) + backoff(s, ++p->fail_cnt, BACKOFF_MIN_NS, BACKOFF_MAX_NS);
	}
	dp_stream_lane_put(l);
	told_up(p);
	if (doubt && !p->breaking)
		break_path(p, status);
	dp_path_board(p);
	if (!retired)
		dp_path_dirty(p);
}

/* ---- what the control thread tells ---- */

void dp_stream_peer_set(struct dp_transport *t, const struct dp_peer *peer)
{
	struct dp_stream *s = stream_of(t);
	uint32_t row = peer->index + 1u;
	if (row > s->cfg.peer_cnt)
		return;
	for (uint32_t i = tn_load_relaxed32(&s->path_cnt); i <= row; i++) {
		dp_path_init(&s->paths[i], s, i);
		/* [P1] release: a path that can be found is set up. */
		tn_store_release32(&s->path_cnt, i + 1);
	}
	struct dp_path *p = &s->paths[row];
	const struct dp_endpoints *e = &peer->of[s->base.ops->kind];
	uint32_t cnt = TN_MIN(e->cnt, DP_ENDPOINTS_MAX);
	bool restarted = !tn_id128_eq(&p->session, &peer->session);
	bool moved = restarted || cnt != p->endpoint_cnt ||
	             memcmp(p->endpoints, e->at, cnt * sizeof p->endpoints[0]) != 0;
	/* A refusal for where we come from outlives a new ticket, which is bound by the same configuration: it stays on the
	 * board, and the pace stays slow, until a lane is accepted. */
	bool news = moved || (!tn_id128_eq(p->ticket, &peer->ticket) && p->refresh_why != TN_PEER_ADDRESS);
	if (restarted && (p->open_cnt > 0 || p->lanes[DP_PATH_URGENT] != NULL || p->control != NULL))
		break_path(p, TN_PATH_DOWN);
	p->session = peer->session;
	*p->ticket = peer->ticket;
	p->endpoint_cnt = cnt;
	memcpy(p->endpoints, e->at, cnt * sizeof p->endpoints[0]);
	p->hold = false;
	if (restarted)
		dp_note_forget(p);
	if (restarted && !tn_id128_is_zero(&peer->session))
		dp_client_fenced(p); /* a new incarnation: the old one is dead, nothing of it can land any more */
	if (news) {
		dp_path_board_clear(p);
		p->fail_cnt = p->refresh_cnt = p->round = p->endpoint = 0;
		p->next_try_ns = p->refresh_ns = 0;
	}
	dp_path_board(p);
	dp_path_dirty(p);
}

/* ---- timers ---- */

uint64_t dp_path_lane_sweep(struct dp_lane *l, uint64_t now_ns)
{
	const struct dp_stream_cfg *c = &l->stream->cfg;
	bool working = l->head != l->tail || l->pre_left > 0;
	if (l->state == DP_LANE_DRAINING && !working) {
		dp_lane_close(l, TN_OK, DP_FRAME_OK, false);
		return UINT64_MAX;
	}
	uint64_t due = TN_MIN(l->limit_ns,
			      l->moved_ns + (working || !l->greeted ? c->progress_timeout_ns : c->idle_timeout_ns));
	if (now_ns < due)
		return due;
	if (working || !l->greeted)
		dp_lane_close(l, TN_PATH_TIMEOUT, DP_FRAME_OK, true);
	else
		dp_lane_close(l, TN_OK, DP_FRAME_OK, false); /* unused for long: only this side may do that */
	return UINT64_MAX;
}

uint64_t dp_path_sweep(struct dp_path *p, uint64_t now_ns)
{
	if (now_ns >= p->wait_ns) {
		tn_status why = p->refresh_why;
		p->wait_ns = UINT64_MAX;
		dp_client_fail_queued(p, why, TN_PHASE_CONNECT,
				      why == TN_PATH_PROTOCOL ? TN_REASON_PROTOCOL : TN_REASON_UNAVAILABLE);
	}
	if (p->probe_ns != 0 && now_ns >= p->probe_ns)
		p->probe_ns = 0; /* nobody waits for it any more */
	uint64_t next = TN_MIN(dp_client_sweep(p, now_ns), dp_note_sweep(p, now_ns));
	if (p->hold && (data_wanted(p) || control_wanted(p)) && now_ns >= p->refresh_ns)
		ask_refresh(p, p->refresh_why, true);
	dp_path_connect(p, now_ns); /* sets its own timers */
	next = TN_MIN(next, p->probe_ns != 0 ? p->probe_ns : UINT64_MAX);
	return TN_MIN(next, p->wait_ns);
}
