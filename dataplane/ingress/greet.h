/* SPDX-License-Identifier: Apache-2.0
 * The door for other hosts' lanes: listens, reads exactly one HELLO per connection, judges it, fences a peer's older
 * incarnation first, and hands socket and HELLO to the worker that serves the path. A stranger costs a bounded entry
 * for two seconds and learns nothing. Control thread. */
#ifndef DP_INGRESS_GREET_H
#define DP_INGRESS_GREET_H

#include "dataplane/ingress/ticket.h"
#include "dataplane/loop.h"
#include "dataplane/transport/stream/hello.h"

#define DP_GREETS_MAX 256u          /* connections whose HELLO is not judged yet; as many more wait for a fence */
#define DP_GREETS_PER_ADDRESS 64u

struct dp_control;
struct dp_flight;

struct dp_greet {
	struct dp_control *ctl;
	struct dp_source listener;
	struct dp_timer retry;       /* accept again after descriptors ran out */
	struct tn_addr bound;        /* address and real port */
	struct dp_tickets tickets;
	struct tn_list pending;      /* oldest first: reading a HELLO */
	struct tn_list fencing;      /* judged good; wait until the older incarnation's lanes are closed */
	uint32_t pending_cnt, fencing_cnt; /* of each no more than DP_GREETS_MAX, and DP_GREETS_PER_ADDRESS of one address */
	uint64_t accepted_cnt, refused_cnt, malformed_cnt, evicted_cnt;
};

/* NO_MEMORY. */
tn_status dp_greet_init(struct dp_greet *g, struct dp_control *ctl);
/* Listens where the config says. On failure err names address, port and reason. */
tn_status dp_greet_listen(struct dp_greet *g, char *err, size_t err_bytes);
/* Stops accepting; who waits is closed. */
void dp_greet_close(struct dp_greet *g);
void dp_greet_fini(struct dp_greet *g);

/* The peer's fence was acknowledged by all workers (struct dp_peer_slot.fence). */
void dp_greet_fenced(struct dp_flight *fence);
/* Where our own listener is reached from this host; false: there is none. */
bool dp_greet_own_address(const struct dp_greet *g, struct tn_addr *out);
/* Advertised address i as "ADDRESS:PORT"; false past the last. */
bool dp_greet_endpoint(const struct dp_greet *g, uint32_t i, char out[static TN_ADDR_TEXT]);

#endif
