/* SPDX-License-Identifier: Apache-2.0
 * Life of a stream transport, its round of progress (receive, cut slices, send, report) and its timers; see stream.h.
 * All memory is reserved here, at set-up, and only touched as lanes come into use. Worker thread only. */
#include "dataplane/transport/stream/stream.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/assert.h"
#include "common/bits.h"
#include "common/config.h"
#include "dataplane/transport/stream/account.h"

#define BULK_BYTES (16u * 1024u) /* moved by one call: parts of large blocks */
#define ROUNDS 4u /* receive-cut-send rounds of one progress call */
#define TURN_BYTES (512u * 1024u) /* that bulk moves in one direction before urgent ones are looked at, while there are any */

TN_INLINE struct dp_stream *stream_of(struct dp_transport *t) { return tn_container_of(t, struct dp_stream, base); }

void dp_stream_cfg_tcp(const struct tn_config *config, struct dp_stream_cfg *out)
{
	*out = (struct dp_stream_cfg){
		.lanes_per_peer = (uint32_t)tn_config_u64(config, TN_CFG_TCP_LANES_PER_PEER),
		.frame_bytes = (uint32_t)tn_config_u64(config, TN_CFG_TCP_FRAME_BYTES),
		.peer_cnt = DP_PEERS_MAX,
		.server_lanes = (uint32_t)tn_config_u64(config, TN_CFG_TCP_MAX_CONNECTIONS),
		.xfers = (uint32_t)tn_config_u64(config, TN_CFG_LIMITS_MAX_REQUESTS_PER_WORKER),
		.lane_window_bytes = tn_config_u64(config, TN_CFG_TCP_LANE_WINDOW_BYTES),
		.connect_timeout_ns = tn_config_ns(config, TN_CFG_TCP_CONNECT_TIMEOUT_MS),
		.progress_timeout_ns = tn_config_ns(config, TN_CFG_TCP_PROGRESS_TIMEOUT_MS),
		.idle_timeout_ns = tn_config_ns(config, TN_CFG_TCP_IDLE_TIMEOUT_MS),
	};
}

/* Zeroed address space that costs memory only where it is used; NULL when there is none. */
static void *reserve(size_t bytes, int prot)
{
	void *p = mmap(NULL, TN_MAX(bytes, (size_t)1), prot, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	return p == MAP_FAILED ? NULL : p;
}

static void release(const void *p, size_t bytes)
{
	if (p != NULL)
		munmap((void *)(uintptr_t)p, TN_MAX(bytes, (size_t)1));
}

/* Tickets are secrets: not in a core dump, not in a forked child, gone before the pages are given back. */
static struct tn_id128 *reserve_tickets(size_t cnt)
{
	size_t bytes = TN_MAX(cnt * sizeof(struct tn_id128), (size_t)1);
	void *p = reserve(bytes, PROT_READ | PROT_WRITE);
	if (p != NULL) {
		(void)madvise(p, bytes, MADV_DONTDUMP);
		(void)madvise(p, bytes, MADV_WIPEONFORK);
	}
	return p;
}

static void release_tickets(struct tn_id128 *p, size_t cnt)
{
	if (p != NULL)
		explicit_bzero(p, cnt * sizeof *p);
	release(p, cnt * sizeof *p);
}

/* One for each peer, and one for ourselves. */
static uint32_t path_rows(const struct dp_stream_cfg *c) { return c->peer_cnt + 1; }

static bool reserve_all(struct dp_stream *s)
{
	const struct dp_stream_cfg *c = &s->cfg;
	size_t rows = path_rows(c);
	s->lanes = reserve((size_t)s->lane_cap * sizeof *s->lanes, PROT_READ | PROT_WRITE);
	s->small = reserve(rows * DP_STREAM_SMALL_BYTES, PROT_READ | PROT_WRITE);
	s->paths = reserve(rows * sizeof *s->paths, PROT_READ | PROT_WRITE);
	s->tickets = reserve_tickets(rows);
	s->sender_pool = reserve((size_t)c->server_lanes * sizeof *s->sender_pool, PROT_READ | PROT_WRITE);
	s->xfers = reserve((size_t)c->xfers * sizeof *s->xfers, PROT_READ | PROT_WRITE);
	s->scratch = reserve(DP_STREAM_SCRATCH_BYTES, PROT_READ | PROT_WRITE);
	s->zeros = reserve(DP_FRAME_BYTES_MAX, PROT_READ);
	return s->lanes && s->small && s->paths && s->tickets && s->sender_pool && s->xfers && s->scratch && s->zeros;
}

static void release_all(struct dp_stream *s)
{
	const struct dp_stream_cfg *c = &s->cfg;
	size_t rows = path_rows(c);
	release(s->lanes, (size_t)s->lane_cap * sizeof *s->lanes);
	release(s->small, rows * DP_STREAM_SMALL_BYTES);
	release(s->paths, rows * sizeof *s->paths);
	release_tickets(s->tickets, rows);
	release(s->sender_pool, (size_t)c->server_lanes * sizeof *s->sender_pool);
	release(s->xfers, (size_t)c->xfers * sizeof *s->xfers);
	release(s->scratch, DP_STREAM_SCRATCH_BYTES);
	release(s->zeros, DP_FRAME_BYTES_MAX);
}

static void init_lists(struct dp_stream *s)
{
	struct tn_list *heads[] = { &s->free_lanes, &s->live, &s->rx[0], &s->rx[1], &s->tx[0], &s->tx[1], &s->dirty,
	                            &s->senders, &s->free_senders, &s->canceling, &s->done };
	for (size_t i = 0; i < TN_ARRAY_LEN(heads); i++)
		tn_list_init(heads[i]);
}

tn_status dp_stream_new(struct dp_worker *w, const struct dp_transport_ops *ops, const struct dp_bytes_ops *bytes,
                        const struct dp_stream_cfg *cfg, struct dp_transport **out)
{
	struct dp_stream *s = calloc(1, sizeof *s);
	if (s == NULL)
		return TN_NO_MEMORY;
	s->base = (struct dp_transport){ .ops = ops, .worker = w };
	s->bytes = bytes;
	s->cfg = *cfg;
	s->cfg.lanes_per_peer = TN_MIN(TN_MAX(cfg->lanes_per_peer, 1u), DP_PATH_LANES_MAX);
	s->metrics = dp_worker_metrics(w);
	s->kind = tn_stream_kind(ops->kind);
	s->timer_ns = UINT64_MAX;
	s->spill[0] = s->spill[1] = -1;
	init_lists(s);
	tn_rand_seed(&s->rand, tn_rand_u64(dp_worker_rand(w)));
	s->lane_cap = path_rows(&s->cfg) * (s->cfg.lanes_per_peer + 2) + s->cfg.server_lanes;
	tn_status st = s->lane_cap > DP_STREAM_LANES_MAX ? TN_LIMIT : TN_OK;
	if (st == TN_OK && !reserve_all(s))
		st = TN_NO_MEMORY;
	if (st == TN_OK && pipe2(s->spill, O_NONBLOCK | O_CLOEXEC) != 0)
		st = TN_SYSTEM;
	if (st == TN_OK)
		st = bytes->open(w, &s->provider);
	if (st != TN_OK) {
		dp_stream_destroy(&s->base);
		return st;
	}
	s->base.up = true;
	*out = &s->base;
	return TN_OK;
}

void dp_stream_destroy(struct dp_transport *t)
{
	if (t == NULL)
		return;
	struct dp_stream *s = stream_of(t);
	s->base.up = false;
	while (!tn_list_empty(&s->live))
		dp_lane_close(tn_list_first(&s->live, struct dp_lane, live_link), TN_CANCELED, DP_FRAME_OK, false);
	dp_client_flush(s);
	if (s->provider != NULL)
		s->bytes->shut(s->provider);
	for (int i = 0; i < 2; i++)
		if (s->spill[i] >= 0)
			close(s->spill[i]);
	release_all(s);
	free(s);
}

bool dp_stream_spill(struct dp_stream *s, uint8_t *to, const uint8_t *from, size_t len)
{
	uint8_t rest[DP_LANE_RX_BYTES];
	tn_assert(len <= sizeof rest);
	if (write(s->spill[1], from, len) != (ssize_t)len)
		return false;
	if (read(s->spill[0], to, len) == (ssize_t)len)
		return true;
	while (read(s->spill[0], rest, sizeof rest) > 0) {} /* a page of `to` cannot be had: empty the pipe */
	return false;
}

/* ---- lanes ---- */

static void lane_ready(struct dp_pollable *p, uint32_t events)
{
	struct dp_lane *l = tn_container_of(tn_container_of(p, struct dp_bytes, poll), struct dp_lane, bytes);
	if (!dp_lane_open(l))
		return;
	if (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR))
		l->hangup = true;
	if (events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR))
		l->readable = true;
	if (events & (EPOLLOUT | EPOLLERR | EPOLLHUP))
		l->writable = true;
	dp_lane_kick(l);
}

struct dp_lane *dp_stream_lane_get(struct dp_stream *s, const struct dp_lane_side *side, enum dp_lane_state state)
{
	struct dp_lane *l = tn_list_first(&s->free_lanes, struct dp_lane, live_link);
	if (l != NULL)
		tn_list_unlink(&l->live_link);
	else if (s->lane_fresh < s->lane_cap)
		l = &s->lanes[s->lane_fresh++];
	else
		return NULL;
	uint32_t serial = l->serial + 1;
	memset(l, 0, offsetof(struct dp_lane, ops)); /* ring entries are cleared as they are pushed */
	l->serial = serial;
	l->bytes.poll.ready = lane_ready;
	l->bytes.poll.fd = -1;
	l->bytes.worker = s->base.worker;
	l->stream = s;
	l->side = side;
	l->limit_ns = l->revoke_ns = UINT64_MAX;
	l->open_ns = l->moved_ns = dp_stream_now(s);
	l->next_id = 1;
	l->frame_bytes = s->cfg.frame_bytes;
	tn_list_init(&l->rx_link);
	tn_list_init(&l->tx_link);
	tn_list_init(&l->sender_link);
	dp_lane_move(l, state);
	tn_list_push_back(&s->live, &l->live_link);
	dp_account_connections(s, 1);
	return l;
}

void dp_stream_lane_put(struct dp_lane *l)
{
	tn_list_unlink(&l->live_link);
	tn_list_push_back(&l->stream->free_lanes, &l->live_link); /* at the end: late events meet a closed lane */
}

/* ---- progress ---- */

/* Urgent requests come and go: bulk moves in small pieces, which costs it some of its speed. */
static bool rushes(const struct dp_stream *s) { return dp_stream_now(s) < s->urgent_until_ns; }

/* Every lane that was on the list when the round began, once each; later ones wait for the next round, and so does, before
 * them, whom this turn has no bytes left for. */
static uint32_t serve_lanes(struct dp_stream *s, struct tn_list *from, bool rx)
{
	struct tn_list round;
	uint32_t calls = 0;
	tn_list_init(&round);
	tn_list_splice_back(&round, from);
	s->turn_left = rushes(s) ? TURN_BYTES : SIZE_MAX;
	for (struct tn_list *node; s->turn_left > 0 && (node = tn_list_pop_front(&round)) != NULL;) {
		struct dp_lane *l = rx ? tn_list_entry(node, struct dp_lane, rx_link)
				       : tn_list_entry(node, struct dp_lane, tx_link);
		struct dp_path *p = l->path;
		calls += rx ? dp_lane_receive(l) : dp_lane_transmit(l);
		dp_lane_kick(l);
		if (p != NULL && p->queued > 0)
			dp_path_dirty(p);
	}
	tn_list_splice_back(&round, from);
	tn_list_splice_back(from, &round);
	return calls;
}

static void serve_paths(struct dp_stream *s, uint64_t now_ns)
{
	struct tn_list round;
	tn_list_init(&round);
	tn_list_splice_back(&round, &s->dirty);
	for (struct tn_list *node; (node = tn_list_pop_front(&round)) != NULL;) {
		struct dp_path *p = tn_list_entry(node, struct dp_path, dirty_link);
		dp_slice_pump(p);
		dp_note_pump(p);
		dp_path_connect(p, now_ns);
	}
}

/* Lanes of one class: what they received, what paths make of it, what they send. */
static uint32_t serve_class(struct dp_stream *s, unsigned class, uint64_t now_ns)
{
	uint32_t moved = serve_lanes(s, &s->rx[class], true);
	serve_paths(s, now_ns);
	return moved + serve_lanes(s, &s->tx[class], false);
}

static void sweep(struct dp_stream *s, uint64_t now_ns)
{
	s->timer_ns = UINT64_MAX;
	dp_client_sweep_canceled(s, now_ns);
	for (struct tn_list *node = s->live.next; node != &s->live;) {
		struct dp_lane *l = tn_list_entry(node, struct dp_lane, live_link);
		uint32_t serial = l->serial;
		uint64_t next = l->path != NULL ? dp_path_lane_sweep(l, now_ns) : dp_server_sweep(l, now_ns);
		dp_stream_timer(s, next);
		/* closing one lane may close others of its path: then begin again, there are fewer now */
		node = dp_lane_open(l) && l->serial == serial ? l->live_link.next : s->live.next;
	}
	for (uint32_t i = 0; i < tn_load_relaxed32(&s->path_cnt); i++)
		dp_stream_timer(s, dp_path_sweep(&s->paths[i], now_ns));
}

uint32_t dp_stream_progress(struct dp_transport *t, uint64_t now_ns, uint32_t budget)
{
	struct dp_stream *s = stream_of(t);
	uint32_t calls = 0, round = 0, moved;
	do {
		moved = serve_class(s, 0, now_ns);
		/* Whoever waits for these hears of it before bulk moves; then it is the turn of bulk, whatever comes. */
		s->bulk_owed = moved > 0 && !s->bulk_owed && rushes(s);
		if (!s->bulk_owed)
			moved += serve_class(s, 1, now_ns);
		calls += moved;
	} while (moved > 0 && ++round < ROUNDS && calls < budget && !rushes(s));
	if (now_ns >= s->timer_ns)
		sweep(s, now_ns);
	dp_client_flush(s);
	return calls;
}

uint64_t dp_stream_next_timer_ns(const struct dp_transport *t)
{
	return tn_container_of((struct dp_transport *)(uintptr_t)t, struct dp_stream, base)->timer_ns;
}

bool dp_stream_busy(const struct dp_transport *t)
{
	const struct dp_stream *s = tn_container_of((struct dp_transport *)(uintptr_t)t, struct dp_stream, base);
	const struct tn_list *waits[] = { &s->rx[0], &s->rx[1], &s->tx[0], &s->tx[1], &s->dirty, &s->done };
	for (size_t i = 0; i < TN_ARRAY_LEN(waits); i++)
		if (!tn_list_empty(waits[i]))
			return true;
	return false;
}

bool dp_stream_bulk(const struct dp_transport *t)
{
	return tn_container_of((struct dp_transport *)(uintptr_t)t, struct dp_stream, base)->call_bytes >= BULK_BYTES;
}

bool dp_stream_urgent(const struct dp_transport *t)
{
	return rushes(tn_container_of((struct dp_transport *)(uintptr_t)t, struct dp_stream, base));
}
