/* SPDX-License-Identifier: Apache-2.0
 * hello: a host whose data plane attached (again) tells its peers, so that those who gave up for a while try at once
 * instead of when their back-off is over. Control-plane thread. */
#ifndef CP_PEER_HELLO_H
#define CP_PEER_HELLO_H

#include "controlplane/node.h"

/* Our data plane is attached and its segments are known: begin a round over all peers, or another one after
 * that which is under way. At most one round per second begins, at most 8 peers are told every 10 ms. */
void cp_hello_begin(struct cp_node *node);
void cp_hello_tick(struct cp_node *node);
uint64_t cp_hello_next_ns(const struct cp_node *node);

/* Tell one peer now, if our data plane is attached: when it seems to have missed something. */
void cp_hello_say(struct cp_node *node, uint32_t peer);

/* Method hello of the peer door. A body without session and control_session is only a question who we are. */
void cp_hello_heard(struct cp_node *node, const struct cp_request *rq);

#endif
