/* SPDX-License-Identifier: Apache-2.0
 * Sockets: link and bus (ROUTER over ipc, same uid or root only), server (ROUTER over tcp with CURVE), one DEALER per peer
 * that was ever asked, with a monitor that tells refusals apart from silence. Hundreds of sockets cost nothing while they
 * are silent: the library's fds stand in one epoll set, and only sockets that fired, or that we used, are looked at. */
#include "controlplane/loop.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <zmq.h>

#include "common/clock.h"
#include "common/list.h"
#include "common/log.h"
#include "common/message.h"
#include "controlplane/gate.h"
#include "controlplane/peer/zap.h"
#include "shm-ring/lease.h"

#define DRAIN_MAX 256 /* messages of one socket per loop: no door starves another */
#define EVENTS_MAX 64
#define DENIED_EVENTS \
	(ZMQ_EVENT_HANDSHAKE_FAILED_AUTH | ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL | ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL)
#define CONTACT_EVENTS (DENIED_EVENTS | ZMQ_EVENT_HANDSHAKE_SUCCEEDED | ZMQ_EVENT_CLOSED | ZMQ_EVENT_DISCONNECTED)
/* The dealer, our end of its monitor, and the end that the library keeps for itself; and as many that it is about to
 * close after they were made anew. */
#define SOCKETS_PER_CLIENT 6u

enum watch_kind { WATCH_ZAP, WATCH_LINK, WATCH_BUS, WATCH_SERVER, WATCH_DEALER, WATCH_MONITOR };

/* A socket and whether it must be looked at. The library's fd is an edge that any call on the socket may swallow: it is
 * looked at until it has nothing more, and again after each message that we send through it. */
struct watch {
	struct tn_list ready;
	void *socket; /* NULL: not open */
	enum watch_kind kind;
	uint32_t peer;
};

struct client {
	struct watch dealer, monitor;
};

struct cp_loop {
	const struct tn_config *config;
	const struct cp_keys *keys;
	struct cp_node *node;
	void *ctx;
	struct watch link, bus, server, zap;
	struct shr_published link_name, bus_name; /* the library leaves its sockets' names behind */
	struct client *clients;
	uint32_t client_cnt;
	struct tn_list ready; /* struct watch.ready */
	int epoll, signal_fd;
	uint32_t monitors;    /* ever made: the library frees the name of a closed one later */
};

static int set_int(void *s, int option, int value)
{
	return zmq_setsockopt(s, option, &value, sizeof value);
}

static tn_status fail(char *err, size_t n, const char *what, const char *where)
{
	int e = zmq_errno();
	snprintf(err, n, "%s %s: %s", what, where, zmq_strerror(e));
	return e == EADDRINUSE ? TN_EXISTS : TN_SYSTEM;
}

static void *socket_new(struct cp_loop *l, int type)
{
	void *s = zmq_socket(l->ctx, type);
	if (s == NULL)
		return NULL;
	set_int(s, ZMQ_LINGER, 0);
	int64_t max = TN_MESSAGE_MAX;
	zmq_setsockopt(s, ZMQ_MAXMSGSIZE, &max, sizeof max);
	return s;
}

/* ---- readiness ---- */

static void touch(struct cp_loop *l, struct watch *w)
{
	if (!tn_list_linked(&w->ready))
		tn_list_push_back(&l->ready, &w->ready);
}

static int fd_of(void *s)
{
	int fd = -1;
	size_t len = sizeof fd;
	(void)zmq_getsockopt(s, ZMQ_FD, &fd, &len);
	return fd;
}

static void watch_init(struct watch *w, enum watch_kind kind, uint32_t peer)
{
	*w = (struct watch){ .kind = kind, .peer = peer };
	tn_list_init(&w->ready);
}

/* 0, or -1 with errno. What came before is looked at in the next turn. */
static int watch_start(struct cp_loop *l, struct watch *w)
{
	struct epoll_event ev = { .events = EPOLLIN | EPOLLET, .data.ptr = w };
	touch(l, w);
	return epoll_ctl(l->epoll, EPOLL_CTL_ADD, fd_of(w->socket), &ev);
}

static void watch_close(struct cp_loop *l, struct watch *w)
{
	if (w->socket == NULL)
		return;
	/* The library closes the fd later, in a thread of its own: until then it must not point here. */
	(void)epoll_ctl(l->epoll, EPOLL_CTL_DEL, fd_of(w->socket), NULL);
	tn_list_unlink(&w->ready);
	zmq_close(w->socket);
	w->socket = NULL;
}

/* ---- monitors ---- */

/* Receive one whole multipart message; keeps the first `max` frames, closes the rest. Frames, or -1 when none waits. */
static int receive(void *s, zmq_msg_t *frames, int max)
{
	int n = 0, more = 1;
	while (more) {
		zmq_msg_t m;
		zmq_msg_init(&m);
		if (zmq_msg_recv(&m, s, n == 0 ? ZMQ_DONTWAIT : 0) < 0) {
			zmq_msg_close(&m);
			break;
		}
		more = zmq_msg_more(&m);
		if (n < max) {
			zmq_msg_init(&frames[n]);
			zmq_msg_move(&frames[n], &m);
		}
		zmq_msg_close(&m);
		n++;
	}
	return n == 0 ? -1 : n;
}

/* A monitor's inbox, connected. Without a bound: the library's thread must never wait for us. */
static void *monitor_new(struct cp_loop *l, void *of, const char *name, int events)
{
	if (zmq_socket_monitor(of, name, events) != 0)
		return NULL;
	void *s = socket_new(l, ZMQ_PAIR);
	if (s != NULL && set_int(s, ZMQ_RCVHWM, 0) == 0 && zmq_connect(s, name) == 0)
		return s;
	if (s != NULL)
		zmq_close(s);
	return NULL;
}

/* One event: two frames, {event u16, value u32} in host order and the endpoint. False when none waits. */
static bool monitor_event(void *s, uint16_t *event_out, uint32_t *value_out)
{
	zmq_msg_t frames[2];
	int n = receive(s, frames, 2);
	*event_out = 0;
	*value_out = 0;
	if (n > 0 && zmq_msg_size(&frames[0]) >= sizeof *event_out + sizeof *value_out) {
		memcpy(event_out, zmq_msg_data(&frames[0]), sizeof *event_out);
		memcpy(value_out, (const uint8_t *)zmq_msg_data(&frames[0]) + sizeof *event_out, sizeof *value_out);
	}
	for (int k = 0; k < TN_MIN(n, 2); k++)
		zmq_msg_close(&frames[k]);
	return n > 0;
}

/* ---- doors ---- */

/* Bind, and tell the gate which descriptor listens: only a monitor knows it. */
static tn_status bind_door(struct cp_loop *l, void *s, const char *where, enum tn_door door)
{
	tn_status st = TN_SYSTEM;
	char name[48];
	uint16_t event;
	uint32_t value;
	set_int(s, ZMQ_HANDSHAKE_IVL, CP_GATE_HANDSHAKE_MS);
	snprintf(name, sizeof name, "inproc://door-%u", (unsigned)door);
	void *m = monitor_new(l, s, name, ZMQ_EVENT_LISTENING);
	int err = m != NULL && zmq_bind(s, where) == 0 ? ENOTSUP : zmq_errno();
	while (m != NULL && st != TN_OK && monitor_event(m, &event, &value)) /* sent before zmq_bind() returned */
		if (event == ZMQ_EVENT_LISTENING) {
			cp_gate_open(door, (int)value);
			st = TN_OK;
		}
	(void)zmq_socket_monitor(s, NULL, 0);
	if (m != NULL)
		zmq_close(m);
	errno = err;
	return st;
}

/* A local door: a ROUTER in the runtime directory that only our uid and root may enter. */
static tn_status bind_local(struct cp_loop *l, const char *name, enum tn_door door, struct watch *w,
			    struct shr_published *published, char *err, size_t n)
{
	char path[256];
	int len = snprintf(path, sizeof path, "ipc://%s/%s", tn_config_str(l->config, TN_CFG_RUNTIME_DIR), name);
	if (len >= 100) { /* sun_path */
		snprintf(err, n, "runtime_dir %s is too long for a socket in it", tn_config_str(l->config, TN_CFG_RUNTIME_DIR));
		return TN_CONFIG;
	}
	void *s = w->socket = socket_new(l, ZMQ_ROUTER);
	if (s == NULL)
		return fail(err, n, "cannot make the socket", name);
	uid_t uid = geteuid(), root = 0;
	set_int(s, ZMQ_ROUTER_MANDATORY, 1);
	set_int(s, ZMQ_SNDHWM, 0); /* bounded by the number of requests that are outstanding at all */
	if (zmq_setsockopt(s, ZMQ_IPC_FILTER_UID, &uid, sizeof uid) != 0 ||
	    (uid != root && zmq_setsockopt(s, ZMQ_IPC_FILTER_UID, &root, sizeof root) != 0))
		return fail(err, n, "cannot restrict", path);
	if (bind_door(l, s, path, door) != TN_OK || watch_start(l, w) != 0)
		return fail(err, n, "cannot bind", path);
	return shr_publish_note(path + strlen("ipc://"), published) == TN_OK ? TN_OK : fail(err, n, "cannot find", path);
}

static tn_status bind_server(struct cp_loop *l, char *err, size_t n)
{
	const char *where = tn_config_str(l->config, TN_CFG_CONTROL_BIND);
	void *s = l->server.socket = socket_new(l, ZMQ_ROUTER);
	if (s == NULL)
		return fail(err, n, "cannot make the socket", where);
	set_int(s, ZMQ_IPV6, 1);
	set_int(s, ZMQ_ROUTER_MANDATORY, 1);
	set_int(s, ZMQ_ROUTER_HANDOVER, 1); /* a restarted peer takes its name over from its dead connection */
	set_int(s, ZMQ_HEARTBEAT_IVL, 5000);
	set_int(s, ZMQ_HEARTBEAT_TIMEOUT, 15000);
	if (zmq_setsockopt(s, ZMQ_ZAP_DOMAIN, "tent", 4) != 0)
		return fail(err, n, "cannot protect", where);
	if (!tn_config_bool(l->config, TN_CFG_CONTROL_INSECURE) &&
	    (set_int(s, ZMQ_CURVE_SERVER, 1) != 0 ||
	     zmq_setsockopt(s, ZMQ_CURVE_SECRETKEY, l->keys->secret_text, CP_KEY_TEXT) != 0))
		return fail(err, n, "cannot set the key of", where);
	return bind_door(l, s, where, TN_DOOR_CONTROL) == TN_OK && watch_start(l, &l->server) == 0 ?
		       TN_OK : fail(err, n, "cannot bind control/bind", where);
}

static tn_status bind_zap(struct cp_loop *l, char *err, size_t n)
{
	return cp_zap_bind(l->ctx, &l->zap.socket) == TN_OK && watch_start(l, &l->zap) == 0 ?
		       TN_OK : fail(err, n, "cannot bind", "the ZAP door");
}

/* Nothing is open yet. */
static void init(struct cp_loop *l)
{
	tn_list_init(&l->ready);
	l->signal_fd = -1;
	watch_init(&l->zap, WATCH_ZAP, CP_NO_PEER);
	watch_init(&l->link, WATCH_LINK, CP_NO_PEER);
	watch_init(&l->bus, WATCH_BUS, CP_NO_PEER);
	watch_init(&l->server, WATCH_SERVER, CP_NO_PEER);
	for (uint32_t i = 0; l->clients != NULL && i < l->client_cnt; i++) {
		watch_init(&l->clients[i].dealer, WATCH_DEALER, i);
		watch_init(&l->clients[i].monitor, WATCH_MONITOR, i);
	}
}

tn_status cp_loop_new(const struct tn_config *config, const struct cp_keys *keys, struct cp_loop **out, char *err,
		      size_t err_bytes)
{
	struct cp_loop *l = calloc(1, sizeof *l);
	tn_status s = TN_NO_MEMORY;
	snprintf(err, err_bytes, "no memory");
	if (l == NULL)
		return s;
	l->config = config;
	l->keys = keys;
	l->client_cnt = tn_config_peer_cnt(config);
	l->clients = calloc(l->client_cnt + 1, sizeof *l->clients);
	init(l);
	l->epoll = epoll_create1(EPOLL_CLOEXEC);
	l->ctx = zmq_ctx_new();
	if (l->clients == NULL || l->epoll < 0 || l->ctx == NULL)
		goto undo;
	zmq_ctx_set(l->ctx, ZMQ_MAX_SOCKETS, (int)(16 + SOCKETS_PER_CLIENT * l->client_cnt));
	zmq_ctx_set(l->ctx, ZMQ_THREAD_NAME_PREFIX, 0);
	s = bind_zap(l, err, err_bytes);
	if (s == TN_OK)
		s = bind_local(l, "link.ipc", TN_DOOR_LINK, &l->link, &l->link_name, err, err_bytes);
	if (s == TN_OK)
		s = bind_local(l, "bus.ipc", TN_DOOR_BUS, &l->bus, &l->bus_name, err, err_bytes);
	if (s == TN_OK)
		s = bind_server(l, err, err_bytes);
	if (s != TN_OK)
		goto undo;
	*out = l;
	return TN_OK;
undo:
	cp_loop_free(l);
	return s;
}

static void client_close(struct cp_loop *l, struct client *c)
{
	/* First the reporting: the library's thread waits for ever to report to an end that is closed, and with it every
	 * socket of this process. */
	if (c->dealer.socket != NULL)
		(void)zmq_socket_monitor(c->dealer.socket, NULL, 0);
	watch_close(l, &c->dealer);
	watch_close(l, &c->monitor);
}

void cp_loop_free(struct cp_loop *l)
{
	if (l == NULL)
		return;
	for (uint32_t i = 0; l->clients != NULL && i < l->client_cnt; i++)
		client_close(l, &l->clients[i]);
	(void)shr_publish_remove(&l->link_name);
	(void)shr_publish_remove(&l->bus_name);
	struct watch *const doors[] = { &l->link, &l->bus, &l->server, &l->zap };
	for (size_t i = 0; i < TN_ARRAY_LEN(doors); i++)
		watch_close(l, doors[i]);
	if (l->ctx != NULL)
		zmq_ctx_term(l->ctx);
	if (l->epoll >= 0)
		close(l->epoll);
	free(l->clients);
	free(l);
}

void cp_loop_attach(struct cp_loop *l, struct cp_node *node)
{
	l->node = node;
}

/* ---- out ---- */

static int secure_client(struct cp_loop *l, void *s, const struct tn_config_peer *peer)
{
	char text[CP_KEY_TEXT];
	if (tn_config_bool(l->config, TN_CFG_CONTROL_INSECURE)) {
		const char *name = tn_config_str(l->config, TN_CFG_HOST_NAME); /* all the identity there is without keys */
		return zmq_setsockopt(s, ZMQ_ROUTING_ID, name, strlen(name));
	}
	cp_keys_public_text(&peer->id, text);
	return zmq_setsockopt(s, ZMQ_CURVE_SERVERKEY, text, CP_KEY_TEXT) != 0 ||
	       zmq_setsockopt(s, ZMQ_CURVE_PUBLICKEY, l->keys->public_text, CP_KEY_TEXT) != 0 ||
	       zmq_setsockopt(s, ZMQ_CURVE_SECRETKEY, l->keys->secret_text, CP_KEY_TEXT) != 0;
}

static void *dealer_new(struct cp_loop *l)
{
	void *s = socket_new(l, ZMQ_DEALER);
	if (s == NULL)
		return NULL;
	set_int(s, ZMQ_IPV6, 1);
	set_int(s, ZMQ_RECONNECT_IVL, 50);
	set_int(s, ZMQ_RECONNECT_IVL_MAX, 1000);
	set_int(s, ZMQ_HANDSHAKE_IVL, CP_GATE_HANDSHAKE_MS);
	set_int(s, ZMQ_HEARTBEAT_IVL, 5000);
	set_int(s, ZMQ_HEARTBEAT_TIMEOUT, 15000);
	return s;
}

static tn_status client_open(struct cp_loop *l, uint32_t i)
{
	const struct tn_config_peer *peer = tn_config_peer(l->config, i);
	struct watch *d = &l->clients[i].dealer, *m = &l->clients[i].monitor;
	char name[48];
	snprintf(name, sizeof name, "inproc://monitor-%u", l->monitors++);
	if ((d->socket = dealer_new(l)) == NULL || secure_client(l, d->socket, peer) != 0 ||
	    (m->socket = monitor_new(l, d->socket, name, CONTACT_EVENTS)) == NULL ||
	    watch_start(l, m) != 0 || watch_start(l, d) != 0 || zmq_connect(d->socket, peer->address) != 0) {
		tn_log_error("peer", "cannot connect to peer %s at %s: %s", peer->name, peer->address, zmq_strerror(zmq_errno()));
		client_close(l, &l->clients[i]);
		return TN_PEER_DOWN;
	}
	return TN_OK;
}

tn_status cp_loop_emit(void *loop, const struct cp_output *out)
{
	struct cp_loop *l = loop;
	struct watch *w = out->door == CP_DOOR_LINK ? &l->link : out->door == CP_DOOR_BUS ? &l->bus : &l->server;
	if (out->door == CP_DOOR_CLIENT) {
		if (out->peer >= l->client_cnt)
			return TN_PEER_UNKNOWN;
		w = &l->clients[out->peer].dealer;
		tn_status st = w->socket != NULL ? TN_OK : client_open(l, out->peer);
		if (st != TN_OK)
			return st;
	}
	touch(l, w);
	if (out->door != CP_DOOR_CLIENT &&
	    zmq_send(w->socket, out->route->bytes, out->route->len, ZMQ_SNDMORE | ZMQ_DONTWAIT) < 0)
		return TN_PEER_DOWN; /* the asker is gone */
	return zmq_send(w->socket, out->bytes, out->len, ZMQ_DONTWAIT) >= 0 ? TN_OK : TN_AGAIN;
}

/* The library waits up to a second before it tries an address again that refused, and much longer before it finds that
 * a host behind a silent network was replaced. */
void cp_loop_reconnect(void *loop, uint32_t peer)
{
	struct cp_loop *l = loop;
	client_close(l, &l->clients[peer]);
}

/* ---- in ---- */

static void deliver(struct cp_loop *l, enum cp_door door, uint32_t peer, zmq_msg_t *frames, int n)
{
	struct cp_input in = { .door = door, .peer = peer };
	int body = door == CP_DOOR_CLIENT ? 0 : 1;
	if (n != body + 1 || (body == 1 && zmq_msg_size(&frames[0]) > CP_ROUTE_MAX))
		return; /* not one of ours: no frame that could be answered */
	if (body == 1) {
		in.route.len = (uint8_t)zmq_msg_size(&frames[0]);
		memcpy(in.route.bytes, zmq_msg_data(&frames[0]), in.route.len);
	}
	if (door == CP_DOOR_SERVER) {
		const char *user = zmq_msg_gets(&frames[1], "User-Id");
		in.peer = user != NULL ? (uint32_t)strtoul(user, NULL, 10) : CP_NO_PEER;
		in.address = zmq_msg_gets(&frames[1], "Peer-Address");
		if (in.peer >= l->client_cnt)
			return; /* ZAP lets nobody else in */
	}
	in.bytes = zmq_msg_data(&frames[body]);
	in.len = zmq_msg_size(&frames[body]);
	cp_node_input(l->node, &in, tn_now_ns());
}

/* True when there may be more. */
static bool drain(struct cp_loop *l, void *s, enum cp_door door, uint32_t peer)
{
	for (int i = 0; i < DRAIN_MAX; i++) {
		zmq_msg_t frames[2];
		int n = receive(s, frames, 2);
		if (n < 0)
			return false;
		deliver(l, door, peer, frames, n);
		for (int k = 0; k < TN_MIN(n, 2); k++)
			zmq_msg_close(&frames[k]);
	}
	return true;
}

static enum cp_contact contact_of(uint16_t event)
{
	if ((event & DENIED_EVENTS) != 0)
		return CP_CONTACT_DENIED;
	if (event == ZMQ_EVENT_HANDSHAKE_SUCCEEDED)
		return CP_CONTACT_UP;
	return event == ZMQ_EVENT_CLOSED ? CP_CONTACT_UNREACHED : CP_CONTACT_BROKEN;
}

static bool drain_monitor(struct cp_loop *l, struct watch *w)
{
	uint16_t event;
	uint32_t value;
	while (w->socket != NULL && monitor_event(w->socket, &event, &value)) {
		cp_node_contact(l->node, w->peer, contact_of(event), tn_now_ns());
		/* The library never tries again after these: who asks next gets a new socket, and is told anew. */
		if ((event & (ZMQ_EVENT_HANDSHAKE_FAILED_AUTH | ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL)) != 0)
			client_close(l, &l->clients[w->peer]);
	}
	return false;
}

static bool serve(struct cp_loop *l, struct watch *w)
{
	switch (w->kind) {
	case WATCH_ZAP: return cp_zap_serve(w->socket, l->config);
	case WATCH_LINK: return drain(l, w->socket, CP_DOOR_LINK, CP_NO_PEER);
	case WATCH_BUS: return drain(l, w->socket, CP_DOOR_BUS, CP_NO_PEER);
	case WATCH_SERVER: return drain(l, w->socket, CP_DOOR_SERVER, CP_NO_PEER);
	case WATCH_DEALER: return drain(l, w->socket, CP_DOOR_CLIENT, w->peer);
	case WATCH_MONITOR: return drain_monitor(l, w);
	}
	return false;
}

void cp_loop_wait(struct cp_loop *l, int signal_fd, int timeout_ms)
{
	struct epoll_event evs[EVENTS_MAX];
	if (signal_fd != l->signal_fd) {
		struct epoll_event ev = { .events = EPOLLIN };
		if (epoll_ctl(l->epoll, EPOLL_CTL_ADD, signal_fd, &ev) == 0)
			l->signal_fd = signal_fd;
	}
	/* EINTR is as good as a timeout. */
	int n = epoll_wait(l->epoll, evs, EVENTS_MAX, tn_list_empty(&l->ready) ? timeout_ms : 0);
	for (int i = 0; i < n; i++)
		if (evs[i].data.ptr != NULL)
			touch(l, evs[i].data.ptr);
}

void cp_loop_drain(struct cp_loop *l)
{
	struct tn_list now;
	/* Those that are touched meanwhile come in the next turn: each has its share of every turn. */
	tn_list_init(&now);
	tn_list_splice_back(&now, &l->ready);
	for (struct tn_list *n; (n = tn_list_pop_front(&now)) != NULL;) {
		struct watch *w = tn_list_entry(n, struct watch, ready);
		if (serve(l, w))
			touch(l, w);
	}
}
