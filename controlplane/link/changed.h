/* SPDX-License-Identifier: Apache-2.0
 * Things the control plane tells its data plane unasked, and questions it asks for a tentctl. Control-plane thread. */
#ifndef CP_LINK_CHANGED_H
#define CP_LINK_CHANGED_H

#include "controlplane/node.h"

/* A peer's segment changed (generation 0: withdrawn): handles that use it are refreshed. */
void cp_link_segment_changed(struct cp_node *node, const char *peer, const char *name, const struct tn_id128 *session,
			     uint64_t generation);
/* A peer is back, with this incarnation of its data plane: what waits for it need not wait any longer. */
void cp_link_peer_returned(struct cp_node *node, const char *peer, const struct tn_id128 *session);
/* Ask the data plane `type` with `body` (stolen) and pass its answer on to `rq`'s caller. */
void cp_link_forward(struct cp_node *node, const struct cp_request *rq, const char *type, json_t *body);

#endif
