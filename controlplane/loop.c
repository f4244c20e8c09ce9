/* SPDX-License-Identifier: Apache-2.0
 * Sockets: link and bus (ROUTER over ipc, same uid or root only), server (ROUTER over tcp with CURVE), one DEALER per peer
 * that was ever asked, with a monitor that tells refusals apart from silence. */
#include "controlplane/loop.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <zmq.h>

#include "common/clock.h"
#include "common/log.h"
#include "common/message.h"
#include "controlplane/peer/zap.h"

#define DRAIN_MAX 256 /* messages of one socket per loop: no door starves another */

struct client {
	void *dealer, *monitor;
};

struct cp_loop {
	const struct tn_config *config;
	const struct cp_keys *keys;
	struct cp_node *node;
	void *ctx, *link, *bus, *server, *zap;
	struct client *clients;
	uint32_t client_cnt;
	zmq_pollitem_t *items;
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

/* A local door: a ROUTER in the runtime directory that only our uid and root may enter. */
static tn_status bind_local(struct cp_loop *l, const char *name, void **out, char *err, size_t n)
{
	char path[256];
	int len = snprintf(path, sizeof path, "ipc://%s/%s", tn_config_str(l->config, TN_CFG_RUNTIME_DIR), name);
	if (len >= 100) { /* sun_path */
		snprintf(err, n, "runtime_dir %s is too long for a socket in it", tn_config_str(l->config, TN_CFG_RUNTIME_DIR));
		return TN_CONFIG;
	}
	void *s = socket_new(l, ZMQ_ROUTER);
	if (s == NULL)
		return fail(err, n, "cannot make the socket", name);
	*out = s;
	uid_t uid = geteuid(), root = 0;
	set_int(s, ZMQ_ROUTER_MANDATORY, 1);
	set_int(s, ZMQ_SNDHWM, 0); /* bounded by the number of requests that are outstanding at all */
	if (zmq_setsockopt(s, ZMQ_IPC_FILTER_UID, &uid, sizeof uid) != 0 ||
	    (uid != root && zmq_setsockopt(s, ZMQ_IPC_FILTER_UID, &root, sizeof root) != 0))
		return fail(err, n, "cannot restrict", path);
	return zmq_bind(s, path) == 0 ? TN_OK : fail(err, n, "cannot bind", path);
}

static tn_status bind_server(struct cp_loop *l, char *err, size_t n)
{
	const char *where = tn_config_str(l->config, TN_CFG_CONTROL_BIND);
	l->server = socket_new(l, ZMQ_ROUTER);
	if (l->server == NULL)
		return fail(err, n, "cannot make the socket", where);
	set_int(l->server, ZMQ_IPV6, 1);
	set_int(l->server, ZMQ_ROUTER_MANDATORY, 1);
	set_int(l->server, ZMQ_ROUTER_HANDOVER, 1); /* a restarted peer takes its name over from its dead connection */
	set_int(l->server, ZMQ_HANDSHAKE_IVL, 3000);
	set_int(l->server, ZMQ_HEARTBEAT_IVL, 5000);
	set_int(l->server, ZMQ_HEARTBEAT_TIMEOUT, 15000);
	if (zmq_setsockopt(l->server, ZMQ_ZAP_DOMAIN, "tent", 4) != 0)
		return fail(err, n, "cannot protect", where);
	if (!tn_config_bool(l->config, TN_CFG_CONTROL_INSECURE) &&
	    (set_int(l->server, ZMQ_CURVE_SERVER, 1) != 0 ||
	     zmq_setsockopt(l->server, ZMQ_CURVE_SECRETKEY, l->keys->secret_text, CP_KEY_TEXT) != 0))
		return fail(err, n, "cannot set the key of", where);
	return zmq_bind(l->server, where) == 0 ? TN_OK : fail(err, n, "cannot bind control/bind", where);
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
	l->items = calloc(5 + 2 * (size_t)l->client_cnt, sizeof *l->items);
	l->ctx = zmq_ctx_new();
	if (l->clients == NULL || l->items == NULL || l->ctx == NULL)
		goto undo;
	zmq_ctx_set(l->ctx, ZMQ_MAX_SOCKETS, (int)(16 + 2 * l->client_cnt));
	zmq_ctx_set(l->ctx, ZMQ_THREAD_NAME_PREFIX, 0);
	s = cp_zap_bind(l->ctx, &l->zap) == TN_OK ? TN_OK : fail(err, err_bytes, "cannot bind", "the ZAP door");
	if (s == TN_OK)
		s = bind_local(l, "link.ipc", &l->link, err, err_bytes);
	if (s == TN_OK)
		s = bind_local(l, "bus.ipc", &l->bus, err, err_bytes);
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

static void client_close(struct client *c)
{
	if (c->dealer != NULL)
		zmq_close(c->dealer);
	if (c->monitor != NULL)
		zmq_close(c->monitor);
	*c = (struct client){ 0 };
}

void cp_loop_free(struct cp_loop *l)
{
	if (l == NULL)
		return;
	for (uint32_t i = 0; l->clients != NULL && i < l->client_cnt; i++)
		client_close(&l->clients[i]);
	void *const sockets[] = { l->link, l->bus, l->server, l->zap };
	for (size_t i = 0; i < TN_ARRAY_LEN(sockets); i++)
		if (sockets[i] != NULL)
			zmq_close(sockets[i]);
	if (l->ctx != NULL)
		zmq_ctx_term(l->ctx);
	free(l->clients);
	free(l->items);
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

static tn_status client_open(struct cp_loop *l, uint32_t i)
{
	const struct tn_config_peer *peer = tn_config_peer(l->config, i);
	struct client *c = &l->clients[i];
	char name[48];
	c->dealer = socket_new(l, ZMQ_DEALER);
	if (c->dealer == NULL)
		return TN_LIMIT;
	set_int(c->dealer, ZMQ_IPV6, 1);
	set_int(c->dealer, ZMQ_RECONNECT_IVL, 50);
	set_int(c->dealer, ZMQ_RECONNECT_IVL_MAX, 1000);
	set_int(c->dealer, ZMQ_HANDSHAKE_IVL, 3000);
	set_int(c->dealer, ZMQ_HEARTBEAT_IVL, 5000);
	set_int(c->dealer, ZMQ_HEARTBEAT_TIMEOUT, 15000);
	snprintf(name, sizeof name, "inproc://monitor-%u", i);
	if (secure_client(l, c->dealer, peer) != 0 ||
	    zmq_socket_monitor(c->dealer, name,
			       ZMQ_EVENT_HANDSHAKE_FAILED_AUTH | ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL |
				       ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL | ZMQ_EVENT_DISCONNECTED) != 0 ||
	    (c->monitor = socket_new(l, ZMQ_PAIR)) == NULL || zmq_connect(c->monitor, name) != 0 ||
	    zmq_connect(c->dealer, peer->address) != 0) {
		tn_log_error("peer", "cannot connect to peer %s at %s: %s", peer->name, peer->address, zmq_strerror(zmq_errno()));
		client_close(c);
		return TN_PEER_DOWN;
	}
	return TN_OK;
}

tn_status cp_loop_emit(void *loop, const struct cp_output *out)
{
	struct cp_loop *l = loop;
	void *s = out->door == CP_DOOR_LINK ? l->link : out->door == CP_DOOR_BUS ? l->bus : l->server;
	if (out->door == CP_DOOR_CLIENT) {
		if (out->peer >= l->client_cnt)
			return TN_PEER_UNKNOWN;
		tn_status st = l->clients[out->peer].dealer != NULL ? TN_OK : client_open(l, out->peer);
		if (st != TN_OK)
			return st;
		s = l->clients[out->peer].dealer;
	} else if (zmq_send(s, out->route->bytes, out->route->len, ZMQ_SNDMORE | ZMQ_DONTWAIT) < 0) {
		return TN_PEER_DOWN; /* the asker is gone */
	}
	return zmq_send(s, out->bytes, out->len, ZMQ_DONTWAIT) >= 0 ? TN_OK : TN_AGAIN;
}

/* ---- in ---- */

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

static void drain(struct cp_loop *l, void *s, enum cp_door door, uint32_t peer)
{
	for (int i = 0; i < DRAIN_MAX; i++) {
		zmq_msg_t frames[2];
		int n = receive(s, frames, 2);
		if (n < 0)
			return;
		deliver(l, door, peer, frames, n);
		for (int k = 0; k < TN_MIN(n, 2); k++)
			zmq_msg_close(&frames[k]);
	}
}

/* A monitor event is two frames: {event u16, value u32} in host order, and the endpoint. */
static void drain_monitor(struct cp_loop *l, uint32_t i)
{
	zmq_msg_t frames[2];
	int n;
	while (l->clients[i].monitor != NULL && (n = receive(l->clients[i].monitor, frames, 2)) >= 0) {
		uint16_t event = 0;
		if (zmq_msg_size(&frames[0]) >= sizeof event)
			memcpy(&event, zmq_msg_data(&frames[0]), sizeof event);
		for (int k = 0; k < TN_MIN(n, 2); k++)
			zmq_msg_close(&frames[k]);
		bool denied = (event & (ZMQ_EVENT_HANDSHAKE_FAILED_AUTH | ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL |
					ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL)) != 0;
		cp_node_peer_trouble(l->node, i, denied ? TN_PEER_DENIED : TN_PEER_DOWN, tn_now_ns());
	}
}

void cp_loop_wait(struct cp_loop *l, int signal_fd, int timeout_ms)
{
	int n = 0;
	void *const sockets[] = { l->zap, l->link, l->bus, l->server };
	for (size_t i = 0; i < TN_ARRAY_LEN(sockets); i++)
		l->items[n++] = (zmq_pollitem_t){ .socket = sockets[i], .events = ZMQ_POLLIN };
	l->items[n++] = (zmq_pollitem_t){ .fd = signal_fd, .events = ZMQ_POLLIN };
	for (uint32_t i = 0; i < l->client_cnt; i++) {
		if (l->clients[i].dealer == NULL)
			continue;
		l->items[n++] = (zmq_pollitem_t){ .socket = l->clients[i].dealer, .events = ZMQ_POLLIN };
		l->items[n++] = (zmq_pollitem_t){ .socket = l->clients[i].monitor, .events = ZMQ_POLLIN };
	}
	(void)zmq_poll(l->items, n, timeout_ms); /* EINTR is as good as a timeout */
}

void cp_loop_drain(struct cp_loop *l)
{
	cp_zap_serve(l->zap, l->config);
	drain(l, l->link, CP_DOOR_LINK, CP_NO_PEER);
	drain(l, l->bus, CP_DOOR_BUS, CP_NO_PEER);
	drain(l, l->server, CP_DOOR_SERVER, CP_NO_PEER);
	for (uint32_t i = 0; i < l->client_cnt; i++) {
		if (l->clients[i].dealer == NULL)
			continue;
		drain(l, l->clients[i].dealer, CP_DOOR_CLIENT, i);
		drain_monitor(l, i);
	}
}
