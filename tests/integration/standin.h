/* SPDX-License-Identifier: Apache-2.0
 * Many peers in one process, for the scale tests: what standin.c (control protocol, commands) and standin_lanes.c (data
 * lanes, both directions) share. One thread. */
#ifndef TESTS_INTEGRATION_STANDIN_H
#define TESTS_INTEGRATION_STANDIN_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/ids.h"
#include "tests/integration/content.h"

struct peer {
	char name[TN_NAME_MAX], segment[TN_NAME_MAX];
	char public_text[41], secret_text[41]; /* Z85 */
	struct tn_peer_id id;
	struct tn_id128 session, ticket;
	uint8_t content[CONTENT_BYTES];
	void *router;                /* asked by the daemon under test */
	void *dealer;                /* asks it */
	struct tn_id128 their_session, their_ticket;
	struct sockaddr_in their_door;
	uint64_t registration;       /* of a segment of theirs */
	uint32_t epoch;
};

extern struct peer *peers;
extern uint32_t peer_cnt;

_Noreturn void die(const char *what);
uint64_t now_ns(void);

/* ---- lanes into us: answered like a receiver would ---- */
/* Listens on loopback; returns an epoll fd that is readable when serve_lanes() has work. */
int lanes_listen(uint16_t *port_out);
void serve_lanes(void);
extern uint32_t served_lanes;    /* open now */
extern uint64_t served_requests; /* answered so far */

/* ---- lanes out of us ---- */
/* One lane of p, with its HELLO answered; false and nothing open when refused. */
bool lane_open(struct peer *p, uint16_t lane);
/* READ the segment behind p->registration on every lane, and look at each byte; how many lanes were good. */
uint32_t lanes_read(const char *segment);
/* Half of them politely, half with a reset. */
void lanes_close(void);
uint32_t lanes_held(void);

#endif
