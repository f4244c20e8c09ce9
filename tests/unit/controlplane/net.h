/* SPDX-License-Identifier: Apache-2.0
 * Two control planes in one process, without sockets: what one emits is queued and handed to the other with its time.
 * The data planes are the tests' own words on the link door. One thread. */
#ifndef TEST_CP_NET_H
#define TEST_CP_NET_H

#include "common/config.h"
#include "common/message.h"
#include "controlplane/node.h"
#include "controlplane/observe/cells.h"

enum { A = 0, B = 1 };

struct packet { struct packet *next; int from; enum cp_door door; uint32_t peer; struct cp_route route; size_t len; char bytes[]; };

struct host {
	struct tn_config *config;
	struct cp_cells cells;
	struct cp_node *node;
	struct packet *link_out, *bus_out; /* what the data plane and tentctl would have received, oldest first */
	bool refuse;                       /* its peers cannot reach it */
	unsigned returned;                 /* peer_returned that its data plane was told; net_link_take() skips them */
	unsigned reconnects;               /* times its connection to the other one was made anew */
};

struct net {
	struct host host[2];
	struct packet *wire;               /* between the control planes, oldest first */
	uint64_t now_ns;
	unsigned wire_cnt;                 /* messages ever sent between them */
	unsigned carried;
	char last[2][4200];                /* the last datagram to each host */
};

/* The config that this text is; it must be one. */
struct tn_config *net_config(const char *text);
/* Of host "me", which has `cnt` peers "p0", "p1", ... */
struct tn_config *net_config_peers(unsigned cnt);
/* Two hosts "a" and "b" that know each other. */
struct net *net_new(void);
void net_free(struct net *n);
/* Deliver until nothing is on the wire. */
void net_settle(struct net *n);
/* Let time pass in steps of at most 10 ms, settling after each. */
void net_pass(struct net *n, uint64_t ns);

/* The data plane of `host` says something; body stolen. Its replies appear with net_link_take(). */
void net_link_say(struct net *n, int host, const char *type, uint64_t id, bool reply, tn_status status, json_t *body);
void net_bus_say(struct net *n, int host, const char *type, uint64_t id, json_t *body);
/* Next message to the data plane (or tentctl) of `host`; false when none. Clear it with tn_message_clear(). */
bool net_link_take(struct net *n, int host, struct tn_message *out);
bool net_bus_take(struct net *n, int host, struct tn_message *out);
/* The answer with `status` to question `id` of the tentctl of `host`, which must be there; the caller clears it. */
struct tn_message net_bus_answer(struct net *n, int host, uint64_t id, tn_status status);

/* Attach a data plane with `session` byte and an empty snapshot; takes and checks the replies. */
void net_attach(struct net *n, int host, uint8_t session_byte, uint64_t generation);
/* Publish a segment of 1 MiB on `host`. */
void net_publish(struct net *n, int host, const char *name, uint64_t generation, unsigned access);
/* Answer the install_ticket that waits at `host` with OK. */
void net_install(struct net *n, int host);
/* Both data planes do what real ones would until nothing is left: install tickets, carry datagrams to the other host. What
 * else they are told is thrown away. Datagrams carried so far are in net->carried, the last of them in net->last. */
void net_relay(struct net *n);
/* The control plane of `host` dies, with all that it had on the wire, and another one starts; its data plane has not
 * attached yet. */
void net_restart(struct net *n, int host, uint8_t control_byte);

#endif
