/* SPDX-License-Identifier: Apache-2.0
 * Issuing tickets to peers: install in our data plane first, hand out afterwards. Control-plane thread. */
#ifndef CP_PEER_ISSUE_H
#define CP_PEER_ISSUE_H

#include "controlplane/node.h"

/* Method issue_ticket of the peer door. */
void cp_issue_ticket(struct cp_node *node, const struct cp_request *rq);
/* The installation under way is over, or nobody wants it any more: answer everybody who waits for it. */
void cp_issue_end(struct cp_node *node, struct cp_peer *peer, tn_status status, const char *detail);

#endif
