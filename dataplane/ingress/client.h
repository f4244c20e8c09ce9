/* SPDX-License-Identifier: Apache-2.0
 * One attached application: its socket, its state, and the lists of what it owns. Requests are dispatched here to the
 * rooms that own the objects; those answer with the dp_app_* calls below, now or later. Control thread. */
#ifndef DP_INGRESS_CLIENT_H
#define DP_INGRESS_CLIENT_H

#include "dataplane/control_state.h"
#include "dataplane/crew.h"
#include "shm-ring/handshake.h"

struct dp_control;
struct dp_local_memory;

struct dp_app {
	struct dp_control *ctl;
	struct tn_list link;            /* all clients */
	struct dp_source source;
	struct dp_source life;          /* pidfd of the process: a forked child may keep the socket open; fd -1: unknown */
	struct dp_timer timer;          /* HELLO's deadline; later: end of a turn (the client is freed from here only) */
	tn_handle handle;
	uint32_t id;                    /* in queue pairs and events: generation << 12 | index */
	uint8_t state;                  /* enum dp_app_state */
	uint16_t abi_minor;             /* agreed in HELLO: what it may be sent */
	struct shr_peer_cred cred;
	char app[32];

	struct tn_list qps, memories, segments, remotes; /* what it owns; each room has its own type */
	uint32_t qp_cnt, memory_cnt, segment_cnt, remote_cnt;
	struct dp_local_memory *staging; /* its staging buffers; NULL: none */
	uint32_t note_unacked;          /* notices sent and not yet acknowledged */

	struct tn_list sendq;           /* answers that the socket would not take yet */
	uint32_t sendq_cnt;
	size_t sendq_bytes;
	bool bye;                       /* answer BYE when everything is quiesced */
	uint32_t bye_correlation;
	struct dp_flight del;           /* CLIENT_DEL */
	bool del_done;
	bool no_room;                   /* no descriptor is left for it: its HELLO is answered with LIMIT */
};

/* Takes the socket. The first message must come within 2 s. no_room: it came in on the last descriptor and is told so; so
 * is one whose process cannot be watched for want of a descriptor. NULL when there is no room at all (fd closed). */
struct dp_app *dp_app_new(struct dp_control *ctl, int fd, const struct shr_peer_cred *cred, bool no_room);
/* Ends the attachment: everything it owns is withdrawn, quiesced and released, then the client is freed (later, from
 * the loop, never inside this call). Why: CLIENT_GONE (hang-up), CLIENT_BROKEN, LIMIT (does not read), TIMEOUT (no
 * HELLO), CLOSED (BYE). Harmless on a closing one. */
void dp_app_drop(struct dp_app *c, tn_status why);
/* Something it owned is gone: a closing client that owns nothing more ends (freed later, from the loop). */
void dp_app_settle(struct dp_app *c);
/* Frees it and whatever is left, at the end of the process. */
void dp_app_destroy(struct dp_app *c);

/* Answers. A closing client's answers go nowhere. May drop the client, which stays readable until the turn ends. */
void dp_app_fail(struct dp_app *c, uint16_t type, uint32_t correlation, tn_status status, uint32_t detail);
void dp_app_reply(struct dp_app *c, uint16_t type, uint32_t correlation); /* no body */
void dp_app_reply_id(struct dp_app *c, uint16_t type, uint32_t correlation, uint64_t id);
/* The client asks again to end what is ending already. The earlier request, if there was one (*answer_io != 0), is told
 * BUSY; the end will answer this one. False: it ends as the answer to something else. */
bool dp_app_asks_again(struct dp_app *c, const struct shr_msg *m, uint16_t *answer_io, uint32_t *correlation_io);
/* Any message, built in dp_app_tx(). Takes its fds: they are closed once it is away (or nowhere). */
void dp_app_send(struct dp_app *c, struct shr_msg *m);
struct shr_msg *dp_app_tx(struct dp_app *c);

TN_INLINE bool dp_app_is_live(const struct dp_app *c) { return c->state == DP_APP_ATTACHED; }

#endif
