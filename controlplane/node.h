/* SPDX-License-Identifier: Apache-2.0
 * The control plane's mind: what it knows (its data plane, local segments, peers, cached remote segments) and what it
 * answers. Sans-I/O: cp_node_input() takes one message and the time, cp_node_tick() takes the time; everything that
 * leaves goes through the emit callback. loop.c owns the sockets; the simulator runs this same code. One thread. */
#ifndef CP_NODE_H
#define CP_NODE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/config.h"
#include "common/ids.h"
#include "common/list.h"
#include "common/rand.h"
#include "controlplane/peer/exchange.h"

struct cp_local;
struct cp_recent;
struct cp_remote_cache;
struct tn_metrics;

/* Where a message came in or goes out. */
enum cp_door {
	CP_DOOR_LINK = 1,  /* the data plane's connection (route names it) */
	CP_DOOR_BUS,       /* a tentctl (route) */
	CP_DOOR_SERVER,    /* a peer that asks us (route; peer index proven by its key) */
	CP_DOOR_CLIENT     /* our own connection to peer `peer`: its answers */
};

#define CP_ROUTE_MAX 255u
#define CP_NO_PEER UINT32_MAX

struct cp_route { uint8_t len; uint8_t bytes[CP_ROUTE_MAX]; };

struct cp_input {
	enum cp_door door;
	struct cp_route route;   /* LINK, BUS, SERVER: answer there */
	uint32_t peer;           /* SERVER, CLIENT */
	const char *address;     /* SERVER: the ip the connection comes from; may be NULL */
	const void *bytes;
	size_t len;
};

struct cp_output {
	enum cp_door door;
	const struct cp_route *route; /* LINK, BUS, SERVER */
	uint32_t peer;                /* CLIENT */
	const void *bytes;
	size_t len;
};

/* OK, or PEER_DOWN / AGAIN when it could not be handed to the socket. Called from inside input and tick. */
typedef tn_status (*cp_emit)(void *ctx, const struct cp_output *out);
/* Our connection to that peer leads to a process that is gone, or waits to be tried again: the next message goes over a
 * new one. Messages that the old one still holds are lost. Called from inside input. */
typedef void (*cp_reconnect)(void *ctx, uint32_t peer);
/* Read the configuration of this process again: a new reference to what tn_daemon_reload() reports, or NULL (no memory).
 * Called from inside input. */
typedef json_t *(*cp_reload)(void *ctx);

/* Whom to answer later. */
struct cp_reply_to { enum cp_door door; struct cp_route route; uint32_t peer; uint64_t id; char type[32]; };

/* X(STATE, name) of the ticket that admits our lanes at a peer. */
#define CP_TICKET_STATES(X) X(NONE, none) X(ASKING, asking) X(HELD, held) X(FAILED, failed)
#define X(n, s) CP_TICKET_##n,
enum cp_ticket_state { CP_TICKET_STATES(X) CP_TICKET_STATE_CNT };
#undef X

/* What the sockets told last of our own connection to a peer's control plane. */
enum cp_contact {
	CP_CONTACT_NONE,      /* nothing yet */
	CP_CONTACT_UNREACHED, /* an attempt to connect failed */
	CP_CONTACT_UP,        /* connected, keys exchanged */
	CP_CONTACT_BROKEN,
	CP_CONTACT_DENIED     /* the keys do not fit */
};

/* The last call to a peer, or handshake with it, that failed for want of an answer. */
struct cp_peer_error {
	bool now;             /* nothing was answered since */
	tn_status status;     /* OK: there was none */
	uint64_t at_ns;
	char detail[240];
};

/* What a peer is to be told of our segments: segment/updates.c. */
struct cp_updates {
	json_t *waiting;      /* {name: generation}; NULL = nothing ever */
	uint32_t out;         /* calls under way */
	bool busy;
};

struct cp_peer {
	const struct tn_config_peer *cfg;
	uint32_t index;
	uint32_t calls;                /* outstanding to it: peer/exchange.c */
	enum cp_contact contact;
	char contact_text[240];
	struct cp_peer_error error;
	/* as a client of it */
	enum cp_ticket_state ticket_state;
	uint64_t ask_call;             /* the question under way, 0 = none; while HELD: a recheck */
	bool renew;                    /* the ticket told last was refused: every question is for another, until one came */
	struct tn_id128 session;       /* of its data plane, as last told */
	struct tn_id128 ticket;        /* secret */
	uint8_t datagram_key[32];      /* secret: for datagrams we send to it */
	json_t *endpoints;
	uint64_t frame_bytes;
	uint64_t retry_ns, backoff_ns; /* FAILED: not before */
	tn_status last_status;
	char last_detail[240];
	/* as a server for it */
	struct tn_id128 issued_to;     /* its session that the ticket below was issued for; zero = none */
	struct tn_id128 issued_ticket; /* secret */
	struct tn_id128 issued_control;/* its control plane that asked last: who counts the sequence of the key below */
	uint64_t issued_call;          /* the newest question of that control plane: an older one renews nothing */
	uint8_t issued_key[32];        /* secret: for datagrams it sends to us */
	uint64_t install_call;         /* the installation under way, 0 = none */
	struct tn_list issue_waiting;  /* struct cp_issue */
	struct cp_updates updates;
	/* datagrams: tx grows as long as we live; rx is the highest that came with the key issued last */
	uint64_t tx_sequence, rx_sequence;
	uint64_t probes_ok, probes_lost, probe_rtt_ns;
	uint64_t probe_ns;             /* when the one under way left, or was to leave; 0 = none */
	uint64_t owed_ns;              /* when it last probed us, 0 = never */
	uint8_t probe_nonce[8], owed_nonce[8];
	uint64_t heard_ns;             /* last time it answered or asked */
	/* as it greeted us last */
	struct tn_id128 control_session;
	uint64_t greeted_ns;
};

/* Peers are told that this host is back: a round over all of them, a few at a time. */
struct cp_hello {
	uint32_t left, next;           /* peers to tell, the first of them */
	bool again;                    /* there was news during this round: another one follows */
	uint64_t due_ns, round_ns;     /* when the next ones are told; when the round began */
};

struct cp_link {                       /* our data plane as it told us */
	bool attached;
	bool snapshot_done;
	struct cp_route route;
	struct tn_id128 session;
	uint32_t pid;
	uint64_t generation;           /* of its telemetry file */
	char telemetry[64];
	uint64_t sequence;
	uint64_t frame_bytes;
	json_t *endpoints;
	uint64_t heard_ns;
	bool silent;                   /* not attached because it says nothing; its process may be stopped */
};

struct cp_node {
	const struct tn_config *config;
	struct tn_peer_id self;
	struct tn_id128 control_session;
	char name[TN_NAME_MAX];
	cp_emit emit;
	cp_reconnect reconnect;
	void *emit_ctx;                /* of both */
	cp_reload reload;
	void *reload_ctx;
	struct tn_rand rand;
	uint64_t now_ns;               /* of the input or tick that runs */
	const struct tn_metrics *metrics; /* control-plane-owned cells */
	const struct cp_recent *recent;   /* events of the last while; NULL: nobody reads them */

	struct cp_exchange *exchange;
	struct cp_link link;
	struct cp_local *local;
	struct cp_remote_cache *remote;
	struct cp_peer *peers;
	uint32_t peer_cnt;
	struct cp_hello hello;
	struct tn_list opens;          /* struct cp_open: link opens that wait for a descriptor or a ticket */
	uint32_t open_cnt;
	uint64_t opens_next_ns;        /* none of them is due before: a bound that a tick makes exact */
	bool opens_busy, opens_missed; /* one is being advanced; something was heard meanwhile */
	uint64_t datagrams_dropped;
	uint64_t messages_refused;     /* malformed or not allowed */
	bool stopping;
};

struct cp_node_cfg {
	const struct tn_config *config; /* outlives the node */
	struct tn_peer_id self;
	struct tn_id128 control_session;
	uint64_t seed;
	const struct tn_metrics *metrics;
	const struct cp_recent *recent; /* may be NULL: nothing to tell of events */
	cp_emit emit;
	cp_reconnect reconnect;         /* may be NULL: connections need no help */
	void *emit_ctx;
	cp_reload reload;               /* may be NULL: this one cannot */
	void *reload_ctx;
};

tn_status cp_node_new(const struct cp_node_cfg *cfg, struct cp_node **out);
void cp_node_free(struct cp_node *node);

/* One message. Malformed or forbidden ones are counted and answered with an error where an answer is possible. */
void cp_node_input(struct cp_node *node, const struct cp_input *in, uint64_t now_ns);
void cp_node_tick(struct cp_node *node, uint64_t now_ns);
/* The data plane is dead: its calls end, and so does what it asked for. */
void cp_node_link_lost(struct cp_node *node, uint64_t now_ns);
/* News of our connection to a peer (peer/contact.c). When it broke or was refused, calls to it end at once instead of at
 * their deadline. */
void cp_node_contact(struct cp_node *node, uint32_t peer, enum cp_contact contact, uint64_t now_ns);
/* When tick() must run next; UINT64_MAX = never. */
uint64_t cp_node_next_ns(const struct cp_node *node);

/* ---- for the handlers in this room's folders ---- */

/* Send a request; the exchange does the bookkeeping. `body` borrowed. */
tn_status cp_node_send(struct cp_node *node, uint32_t target, const char *type, uint64_t id, uint64_t remaining_ns,
		       const json_t *body);
/* Answer. `body` is stolen (may be NULL); detail may be NULL when status is OK. */
void cp_node_reply(struct cp_node *node, const struct cp_reply_to *to, tn_status status, const char *detail, json_t *body);
struct cp_peer *cp_node_peer_by_name(struct cp_node *node, const char *name);
/* While no data plane is attached: which one is missing, since when, in a line for people here and on other hosts. */
#define CP_TROUBLE_TEXT 160u
const char *cp_node_link_trouble(const struct cp_node *node, char out[static CP_TROUBLE_TEXT]);

/* A request that came in through any door. */
struct cp_request {
	struct cp_reply_to to;
	const json_t *body;       /* an object, never NULL */
	const char *address;
	uint64_t deadline_ns;
	struct tn_id128 session;  /* sender's, as its envelope says */
};
typedef void (*cp_handler)(struct cp_node *node, const struct cp_request *rq);
struct cp_method { const char *type; cp_handler handle; };

extern const struct cp_method cp_link_methods[];   /* link/handlers.c; ends with a NULL type */
extern const struct cp_method cp_bus_methods[];    /* bus/methods.c */
extern const struct cp_method cp_server_methods[]; /* peer/methods.c */

/* ---- pieces (one file each) ---- */

/* peer/contact.c: why the peer does not answer, for people (in the peer; until the next call); a call ended without an
 * answer; it answered, whatever it said. */
const char *cp_contact_text(struct cp_peer *peer);
void cp_contact_failed(struct cp_node *node, struct cp_peer *peer, tn_status status, const char *detail);
void cp_contact_answered(struct cp_peer *peer);

/* peer/ticket.c: make sure a ticket for our data plane's session at `peer` is held or being asked for. `stale`: the one
 * held was refused. When something changes, cp_opens_advance() runs. */
void cp_ticket_want(struct cp_node *node, struct cp_peer *peer, bool stale);
/* Ask even if one is held: it may be as good as ever, but what came with it is not. It stays held meanwhile, also when no
 * answer comes; a question because it was refused takes the place of this one. */
void cp_ticket_recheck(struct cp_node *node, struct cp_peer *peer);
/* The peer is back: what it refused or left unanswered may be asked again at once. */
void cp_ticket_forgive(struct cp_peer *peer);
/* Everything granted for or by an old data plane of ours is void. */
void cp_tickets_reset(struct cp_node *node);
/* The PEER object of docs/protocol.md section 3; new reference, NULL while no ticket is held. */
json_t *cp_peer_json(const struct cp_peer *peer);

/* link/open.c */
void cp_open_start(struct cp_node *node, const struct cp_request *rq);
void cp_peer_refresh_start(struct cp_node *node, const struct cp_request *rq);
/* Of this peer; of this segment only, unless name is NULL. */
void cp_opens_advance(struct cp_node *node, uint32_t peer, const char *name);
void cp_opens_tick(struct cp_node *node);
/* All of them: the data plane that asked is gone, or asks anew. */
void cp_opens_drop(struct cp_node *node, const char *why);
uint64_t cp_opens_next_ns(const struct cp_node *node);

/* peer/datagram.c: the relay of control datagrams over the data planes. */
void cp_datagram_from_link(struct cp_node *node, const struct cp_request *rq);
/* AGAIN while no ticket is held: with it comes the key. */
tn_status cp_datagram_send(struct cp_node *node, struct cp_peer *peer, uint8_t kind, const void *bytes, size_t len);
/* Measure the control lane's round trip; without a key, as soon as one is here. One that is still unanswered is lost. */
void cp_datagram_probe(struct cp_node *node, struct cp_peer *peer);
/* A key for datagrams to the peer is here, maybe another one: what waits, or was not answered with the old one, is sent. */
void cp_datagram_ready(struct cp_node *node, struct cp_peer *peer);
/* Which key the peer signs with, as issued here, and whether we sign with the one it says it issued: told in hello, so that
 * neither goes on with a key that the other has forgotten. Fields of the hello objects; a peer that tells nothing is
 * believed. */
void cp_datagram_key_tell(const struct cp_peer *peer, json_t *hello);
void cp_datagram_key_check(struct cp_node *node, struct cp_peer *peer, const json_t *hello);

#endif
