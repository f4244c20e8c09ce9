/* SPDX-License-Identifier: Apache-2.0
 * Owner of the lane listener and of connections before a worker has them. Order of judgement: form, version,
 * receiver session, ticket (with peer and incarnation), address, draining, fence, room. Refusals carry no session.
 * Control thread. */
#include "dataplane/ingress/greet.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/hook.h"
#include "common/log.h"
#include "dataplane/control.h"

#define HELLO_NS UINT64_C(2000000000)
#define FENCE_NS UINT64_C(15000000000) /* a fenced lane may have to drain one frame first */
#define ACCEPTS_PER_TURN 32
#define ACCEPT_RETRY_NS UINT64_C(50000000)
#define BACKLOG 1024 /* all peers come back at once after a restart */

struct greet {
	struct tn_list link;
	struct dp_source source;
	struct dp_timer deadline;
	struct dp_control *ctl;
	struct tn_addr from;
	uint32_t peer_index; /* once judged */
	bool fencing;        /* in that list */
	uint32_t got;
	struct dp_hello hello;
	uint8_t buf[DP_HELLO_BYTES];
};

static void accept_ready(struct dp_source *s, uint32_t events);
static void accept_retry(struct dp_timer *t);
static void greet_judge(struct greet *w);

/* ---- life of the door ---- */

tn_status dp_greet_init(struct dp_greet *g, struct dp_control *ctl)
{
	g->ctl = ctl;
	g->listener = (struct dp_source){ .ready = accept_ready, .fd = -1 };
	dp_timer_init(&g->retry, accept_retry);
	tn_list_init(&g->pending);
	tn_list_init(&g->fencing);
	return dp_tickets_init(&g->tickets);
}

static tn_status listen_on(const struct tn_addr *addr, const char *congestion, int *fd_out)
{
	const int on = 1, off = 0;
	int fd = socket(addr->ss.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return tn_status_from_errno(errno);
	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
	if (addr->ss.ss_family == AF_INET6)
		(void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, tn_addr_is_any(addr) ? &off : &on, sizeof on);
	/* Accepted lanes inherit it; one that this kernel does not have is found out here, at start. */
	if (setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, congestion, (socklen_t)strlen(congestion)) != 0 ||
	    bind(fd, (const struct sockaddr *)&addr->ss, addr->len) != 0 || listen(fd, BACKLOG) != 0) {
		int err = errno;
		close(fd);
		errno = err;
		return tn_status_from_errno(err);
	}
	*fd_out = fd;
	return TN_OK;
}

tn_status dp_greet_listen(struct dp_greet *g, char *err, size_t err_bytes)
{
	const struct tn_config *cfg = g->ctl->config;
	const char *address = tn_config_str(cfg, TN_CFG_TCP_BIND_ADDRESS);
	const char *congestion = tn_config_str(cfg, TN_CFG_TCP_CONGESTION_CONTROL);
	uint16_t port = (uint16_t)tn_config_u64(cfg, TN_CFG_TCP_PORT);
	struct sockaddr_storage ss;
	socklen_t len = sizeof ss;
	char why[TN_ERR_TEXT];
	tn_status s;

	s = tn_addr_parse(address, port, &g->bound, why);
	if (s != TN_OK) {
		(void)snprintf(err, err_bytes, "transports/tcp/bind_address %s: %s", address, why);
		return s;
	}
	s = listen_on(&g->bound, congestion, &g->listener.fd);
	if (s != TN_OK && errno == ENOENT) {
		(void)snprintf(err, err_bytes, "transports/tcp/congestion_control: this kernel has no \"%s\" (see "
		               "net.ipv4.tcp_available_congestion_control)", congestion);
		return TN_CONFIG;
	}
	if (s != TN_OK) {
		(void)snprintf(err, err_bytes, "cannot listen on %s port %u (transports/tcp/bind_address, transports/tcp/port): %s",
		               address, port, strerror(errno));
		return s;
	}
	if (getsockname(g->listener.fd, (struct sockaddr *)&ss, &len) == 0)
		(void)tn_addr_from_sockaddr((const struct sockaddr *)&ss, len, &g->bound);
	s = dp_loop_add(&g->ctl->loop, &g->listener, EPOLLIN);
	if (s != TN_OK)
		(void)snprintf(err, err_bytes, "cannot watch the listener: %s", tn_status_meaning(s));
	return s;
}

static void greet_free(struct greet *w)
{
	dp_loop_del(&w->ctl->loop, &w->source);
	dp_timer_cancel(&w->deadline);
	tn_list_unlink(&w->link);
	w->ctl->greet.fencing_cnt -= w->fencing;
	if (w->source.fd >= 0)
		close(w->source.fd);
	explicit_bzero(&w->hello, sizeof w->hello);
	explicit_bzero(w->buf, sizeof w->buf);
	free(w);
}

/* One that is still reading its HELLO. */
static void pending_free(struct greet *w)
{
	w->ctl->greet.pending_cnt--;
	greet_free(w);
}

void dp_greet_close(struct dp_greet *g)
{
	if (g->ctl == NULL)
		return;
	dp_timer_cancel(&g->retry);
	dp_loop_del(&g->ctl->loop, &g->listener);
	if (g->listener.fd >= 0)
		close(g->listener.fd);
	g->listener.fd = -1;
	tn_list_foreach(node, &g->pending)
		pending_free(tn_list_entry(node, struct greet, link));
	tn_list_foreach(node, &g->fencing)
		greet_free(tn_list_entry(node, struct greet, link));
}

void dp_greet_fini(struct dp_greet *g)
{
	dp_greet_close(g);
	dp_tickets_fini(&g->tickets);
}

bool dp_greet_endpoint(const struct dp_greet *g, uint32_t i, char out[static TN_ADDR_TEXT])
{
	const struct tn_config *cfg = g->ctl->config;
	char why[TN_ERR_TEXT];
	struct tn_addr addr;

	if (g->listener.fd < 0 || i >= tn_config_list_cnt(cfg, TN_CFG_TCP_ADVERTISE_ADDRESSES))
		return false;
	if (tn_addr_parse(tn_config_list_str(cfg, TN_CFG_TCP_ADVERTISE_ADDRESSES, i), tn_addr_port(&g->bound), &addr, why) !=
	    TN_OK)
		return false;
	tn_addr_set_zone(&addr, 0); /* it would mean nothing on another host */
	(void)tn_addr_format(&addr, out);
	return true;
}

bool dp_greet_own_address(const struct dp_greet *g, struct tn_addr *out)
{
	char why[TN_ERR_TEXT];

	if (g->listener.fd < 0)
		return false;
	*out = g->bound;
	return !tn_addr_is_any(out) ||
	       tn_addr_parse(out->ss.ss_family == AF_INET6 ? "::1" : "127.0.0.1", tn_addr_port(&g->bound), out, why) == TN_OK;
}

/* ---- judgement ---- */

/* Only for who holds a good ticket: it may know how it looks from here. */
static void seen_put(const struct tn_addr *from, uint8_t out[static 16])
{
	if (from->ss.ss_family == AF_INET6) {
		memcpy(out, &((const struct sockaddr_in6 *)(const void *)&from->ss)->sin6_addr, 16);
		return;
	}
	out[10] = out[11] = 0xff;
	memcpy(out + 12, &((const struct sockaddr_in *)(const void *)&from->ss)->sin_addr, 4);
}

static void refuse(struct greet *w, enum dp_hello_status why)
{
	struct dp_hello_answer answer = {
		.version = why == DP_HELLO_NO_VERSION ? 0 : dp_hello_version_choose(&w->hello), .status = (uint16_t)why,
		.frame_bytes = DP_FRAME_BYTES_MIN };
	uint8_t bytes[DP_HELLO_ANSWER_BYTES];

	if (why == DP_HELLO_ADDRESS)
		seen_put(&w->from, answer.seen);
	dp_hello_answer_encode(&answer, bytes);
	/* 64 bytes into a fresh socket's buffer: it either takes them or is gone. */
	(void)!send(w->source.fd, bytes, sizeof bytes, MSG_DONTWAIT | MSG_NOSIGNAL);
	w->ctl->greet.refused_cnt++;
	if (why == DP_HELLO_NO_TICKET || why == DP_HELLO_TOO_MANY)
		dp_refused(w->ctl, TN_DP_DOOR_LANE, why == DP_HELLO_NO_TICKET ? TN_REFUSAL_STRANGER : TN_REFUSAL_CROWDED);
	greet_free(w);
}

static void count_error(struct dp_control *ctl, enum dp_frame_error e)
{
	tn_counter_add(&ctl->metrics,
	               TN_C3(HP_TCP_PROTOCOL_ERRORS_TOTAL, TN_STREAM_TCP, TN_SIDE_SERVER, (unsigned)e - 1), 1);
}

static uint64_t connections(const struct dp_control *ctl)
{
	const struct dp_peer_slot *self = ctl->peers.self;
	uint64_t cnt = self != NULL ? tn_load_relaxed32(&self->conn_cnt) : 0;

	for (uint32_t i = 0; i < ctl->peers.cnt; i++)
		cnt += tn_load_relaxed32(&ctl->peers.slots[i]->conn_cnt);
	return cnt;
}

static bool room_for(const struct dp_control *ctl, const struct dp_peer_slot *slot)
{
	return tn_load_relaxed32(&slot->conn_cnt) < tn_config_u64(ctl->config, TN_CFG_TCP_MAX_CONNECTIONS_PER_PEER) &&
	       connections(ctl) < tn_config_u64(ctl->config, TN_CFG_TCP_MAX_CONNECTIONS);
}

/* Right in everything but where it comes from: a matter of configuration, so both operators are told. */
static void refuse_stray(struct greet *w, const struct dp_ticket *ticket, struct dp_peer_slot *slot)
{
	char from[TN_ADDR_TEXT], one[TN_ADDR_NET_TEXT], bound[DP_TICKET_ADDRS_MAX * (TN_ADDR_NET_TEXT + 2)] = "";
	size_t used = 0;

	for (uint32_t i = 0; i < ticket->addr_cnt; i++)
		used += (size_t)snprintf(bound + used, sizeof bound - used, "%s%s", i > 0 ? ", " : "",
		                         tn_addr_net_format(&ticket->addrs[i], one));
	tn_log_warn("greet", "a lane of peer %s was refused: its ticket is good, but it comes from %s and may come from %s only; "
	            "set peers/%s/data_addresses here, or transports/tcp/bind_address on that host", slot->name,
	            tn_addr_format_host(&w->from, from), bound, slot->name);
	slot->stray = w->from;
	slot->stray_cnt++;
	slot->stray_ns = w->ctl->loop.now_ns;
	count_error(w->ctl, DP_FRAME_BAD_ADDRESS);
	refuse(w, DP_HELLO_ADDRESS);
}

/* All lanes of one path (sender incarnation, sender worker) are served by one worker. */
static uint32_t path_worker(const struct dp_hello *h, uint32_t worker_cnt)
{
	uint64_t seed;

	memcpy(&seed, h->sender_session.b, sizeof seed);
	return (uint32_t)((seed + h->worker) % worker_cnt);
}

static void adopt(struct greet *w, struct dp_peer_slot *slot)
{
	struct dp_control *ctl = w->ctl;
	struct dp_hello *hello = malloc(sizeof *hello);

	if (hello == NULL) {
		refuse(w, DP_HELLO_TOO_MANY);
		return;
	}
	TN_HOOK(dp_hello_judged);
	*hello = w->hello;
	explicit_bzero(&hello->ticket, sizeof hello->ticket); /* did its work */
	hello->peer_index = slot->index;
	memcpy(hello->peer_name, slot->name, sizeof hello->peer_name);
	hello->conn_cnt = &slot->conn_cnt;
	dp_loop_del(&ctl->loop, &w->source);
	(void)tn_fetch_add32(&slot->conn_cnt, 1);
	if (dp_crew_post(&ctl->crew, path_worker(hello, ctl->crew.cnt),
	                 (struct dp_cmd){ .kind = DP_CMD_LANE_ADOPT, .fd = w->source.fd, .ptr = hello, .len = TN_TRANSPORT_TCP })) {
		w->source.fd = -1;
		ctl->greet.accepted_cnt++;
	} else {
		(void)tn_fetch_add32(&slot->conn_cnt, UINT32_MAX);
		free(hello);
	}
	greet_free(w);
}

/* A new incarnation of a peer: nothing of the older one may land after this one's lanes are accepted. */
static void fence_begin(struct dp_control *ctl, struct dp_peer_slot *slot, const struct tn_id128 *session)
{
	slot->fencing = *session;
	dp_tickets_revoke_older(&ctl->greet.tickets, slot->index, session);
	struct dp_cmd fence = { .kind = DP_CMD_FENCE, .fd = -1, .num = slot->index, .session = *session };
	dp_crew_broadcast(&ctl->crew, fence, &slot->fence);
	TN_HOOK(dp_fence_begun);
	dp_control_event(ctl, SHR_EVENT_PEER_SESSION, TN_OK, slot->index);
}

/* A ticket admits one to wait here, so nobody makes room for a newcomer: it is told to come later. */
static bool room_to_wait(const struct dp_greet *g, const struct greet *one)
{
	uint32_t same_cnt = 0;

	tn_list_foreach(node, &g->fencing)
		same_cnt += tn_addr_host_eq(&tn_list_entry(node, struct greet, link)->from, &one->from);
	return g->fencing_cnt < DP_GREETS_MAX && same_cnt < DP_GREETS_PER_ADDRESS;
}

/* Judged again from the start when the fence is up: tickets may have changed, and lanes of a dead incarnation, which
 * nobody closed, make room only then. */
static void wait_for_fence(struct greet *w, struct dp_peer_slot *slot)
{
	struct dp_control *ctl = w->ctl;

	if (!room_to_wait(&ctl->greet, w)) {
		refuse(w, DP_HELLO_TOO_MANY);
		return;
	}
	w->peer_index = slot->index;
	w->fencing = true;
	ctl->greet.fencing_cnt++;
	tn_list_push_back(&ctl->greet.fencing, &w->link);
	dp_timer_set(&ctl->loop, &w->deadline, ctl->loop.now_ns + FENCE_NS);
	if (tn_id128_is_zero(&slot->fencing))
		fence_begin(ctl, slot, &w->hello.sender_session);
}

/* Form is good, and the socket is out of `pending`. May be called again after a fence. */
static void greet_judge(struct greet *w)
{
	struct dp_control *ctl = w->ctl;
	const struct dp_hello *h = &w->hello;
	const struct dp_ticket *ticket;
	struct dp_peer_slot *slot;
	bool from_ok;

	if (dp_hello_version_choose(h) == 0) {
		refuse(w, DP_HELLO_NO_VERSION);
		return;
	}
	if (!tn_id128_is_zero(&h->receiver_session) && !tn_id128_eq(&h->receiver_session, &ctl->cfg.env->session)) {
		refuse(w, DP_HELLO_SESSION);
		return;
	}
	ticket = dp_tickets_match(&ctl->greet.tickets, &h->ticket, &h->sender, &h->sender_session, &w->from,
	                          &from_ok);
	slot = ticket != NULL ? dp_peers_at(&ctl->peers, ticket->peer_index) : NULL;
	if (slot == NULL) {
		count_error(ctl, DP_FRAME_BAD_TICKET);
		refuse(w, DP_HELLO_NO_TICKET);
		return;
	}
	if (!from_ok) {
		refuse_stray(w, ticket, slot);
		return;
	}
	if (dp_control_drains(ctl) && slot != ctl->peers.self) { /* what our own applications asked before may still need a lane */
		refuse(w, DP_HELLO_DRAINING);
		return;
	}
	if (tn_id128_eq(&slot->incoming, &h->sender_session) && tn_id128_is_zero(&slot->fencing)) {
		if (room_for(ctl, slot))
			adopt(w, slot);
		else
			refuse(w, DP_HELLO_TOO_MANY);
		return;
	}
	wait_for_fence(w, slot);
}

void dp_greet_fenced(struct dp_flight *fence)
{
	struct dp_peer_slot *slot = tn_container_of(fence, struct dp_peer_slot, fence);
	struct dp_greet *g = &slot->ctl->greet;
	struct tn_list waiting;

	TN_HOOK(dp_fence_done);
	slot->incoming = slot->fencing;
	slot->fencing = (struct tn_id128){ { 0 } };
	tn_list_init(&waiting);
	tn_list_splice_back(&waiting, &g->fencing);
	for (struct tn_list *node; (node = tn_list_pop_front(&waiting)) != NULL;) {
		struct greet *w = tn_list_entry(node, struct greet, link);
		if (w->peer_index != slot->index) {
			tn_list_push_back(&g->fencing, node);
			continue;
		}
		w->fencing = false;
		g->fencing_cnt--;
		greet_judge(w);
	}
}

/* ---- reading ---- */

static void greet_ready(struct dp_source *s, uint32_t events)
{
	struct greet *w = tn_container_of(s, struct greet, source);
	struct dp_control *ctl = w->ctl;
	enum dp_frame_error e;
	ssize_t n;

	(void)events;
	/* Never a byte more: what follows belongs to the worker. */
	n = recv(s->fd, w->buf + w->got, sizeof w->buf - w->got, MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		pending_free(w);
		return;
	}
	w->got += (uint32_t)n;
	if (w->got < sizeof w->buf)
		return;
	e = dp_hello_decode(w->buf, sizeof w->buf, &w->hello);
	explicit_bzero(w->buf, sizeof w->buf);
	if (e != DP_FRAME_OK) {
		ctl->greet.malformed_cnt++;
		count_error(ctl, e);
		pending_free(w);
		return;
	}
	/* From here on it is no longer watched: the next bytes are not ours to read. */
	dp_loop_del(&ctl->loop, &w->source);
	tn_list_unlink(&w->link);
	ctl->greet.pending_cnt--;
	greet_judge(w);
}

static void greet_late(struct dp_timer *t)
{
	struct greet *w = tn_container_of(t, struct greet, deadline);

	w->ctl->greet.evicted_cnt++;
	if (w->source.added) {
		dp_refused(w->ctl, TN_DP_DOOR_LANE, TN_REFUSAL_SILENT);
		pending_free(w);
	} else {
		greet_free(w);
	}
}

static void evict(struct greet *w, enum tn_refusal why)
{
	w->ctl->greet.evicted_cnt++;
	dp_refused(w->ctl, TN_DP_DOOR_LANE, why);
	pending_free(w);
}

/* A flood takes room from its own address first, then the oldest goes: who means it has sent its HELLO by then. */
static void make_room(struct dp_greet *g, const struct tn_addr *from)
{
	struct greet *oldest_same = NULL;
	uint32_t same_cnt = 0;

	tn_list_foreach(node, &g->pending) {
		struct greet *w = tn_list_entry(node, struct greet, link);
		if (!tn_addr_host_eq(&w->from, from))
			continue;
		same_cnt++;
		if (oldest_same == NULL)
			oldest_same = w;
	}
	if (same_cnt >= DP_GREETS_PER_ADDRESS)
		evict(oldest_same, TN_REFUSAL_CROWDED);
	else if (g->pending_cnt >= DP_GREETS_MAX)
		evict(tn_list_first(&g->pending, struct greet, link), TN_REFUSAL_CROWDED);
}

static void greet_new(struct dp_greet *g, int fd, const struct tn_addr *from)
{
	struct greet *w = calloc(1, sizeof *w);

	if (w == NULL) {
		close(fd);
		return;
	}
	make_room(g, from);
	w->ctl = g->ctl;
	w->from = *from;
	w->source = (struct dp_source){ .ready = greet_ready, .fd = fd };
	dp_timer_init(&w->deadline, greet_late);
	tn_list_push_back(&g->pending, &w->link);
	g->pending_cnt++;
	if (dp_loop_add(&g->ctl->loop, &w->source, EPOLLIN) != TN_OK) {
		pending_free(w);
		return;
	}
	dp_timer_set(&g->ctl->loop, &w->deadline, g->ctl->loop.now_ns + HELLO_NS);
}

static void accept_ready(struct dp_source *s, uint32_t events)
{
	struct dp_greet *g = tn_container_of(s, struct dp_greet, listener);

	(void)events;
	for (int i = 0; i < ACCEPTS_PER_TURN; i++) {
		struct sockaddr_storage ss;
		socklen_t len = sizeof ss;
		struct tn_addr from;
		int fd = accept4(s->fd, (struct sockaddr *)&ss, &len, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (fd >= 0 && tn_addr_from_sockaddr((const struct sockaddr *)&ss, len, &from) == TN_OK) {
			greet_new(g, fd, &from);
			continue;
		}
		if (fd >= 0) {
			close(fd);
			continue;
		}
		if (errno == ECONNABORTED || errno == EINTR)
			continue;
		if ((errno == EMFILE || errno == ENFILE) && !tn_list_empty(&g->pending)) {
			/* Who has not said a word yet gives its descriptor to who comes now. */
			evict(tn_list_first(&g->pending, struct greet, link), TN_REFUSAL_DESCRIPTORS);
			continue;
		}
		if (errno != EAGAIN && errno != EWOULDBLOCK) {
			/* No descriptors or memory: the listener stays readable, so pause instead of spinning. */
			dp_loop_mod(&g->ctl->loop, s, 0);
			dp_timer_set(&g->ctl->loop, &g->retry, g->ctl->loop.now_ns + ACCEPT_RETRY_NS);
		}
		return;
	}
}

static void accept_retry(struct dp_timer *t)
{
	struct dp_greet *g = tn_container_of(t, struct dp_greet, retry);

	dp_loop_mod(&g->ctl->loop, &g->listener, EPOLLIN);
}
