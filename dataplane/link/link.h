/* SPDX-License-Identifier: Apache-2.0
 * The link to this host's control plane: attach, snapshot, changes, heartbeat; questions and their answers; requests of
 * the control plane. The data plane works without it, on the tables it has; everything here heals by attaching again.
 * Control thread; nothing blocks. */
#ifndef DP_LINK_LINK_H
#define DP_LINK_LINK_H

#include "dataplane/link/call.h"

struct dp_control;
struct dp_link;

/* Starts connecting to <runtime_dir>/link.ipc; nobody needs to listen there. TN_TOO_BIG (path), NO_MEMORY, SYSTEM. */
tn_status dp_link_new(struct dp_control *ctl, const char *runtime_dir, struct dp_link **out);
/* Ends every call without an answer. NULL is fine. */
void dp_link_free(struct dp_link *l);
/* Once per turn of the loop: the library's fd is edge-triggered, so what it did not announce is looked for. True when
 * more waits than one turn takes. */
bool dp_link_poll(struct dp_link *l);

/* The control plane knows us: questions may be asked. NULL is "no". */
bool dp_link_attached(const struct dp_link *l);

/* Changes of the local tables. Sent in order, or left to the snapshot of the next attach. NULL is fine. */
void dp_link_segment_published(struct dp_link *l, const struct dp_segment *s);
void dp_link_segment_withdrawn(struct dp_link *l, const struct dp_segment *s);

/* Ask. `stale` NULL: any version will do; else one that is newer. TN_CONTROLPLANE_DOWN: not attached; TN_AGAIN: too
 * much outstanding; `done` then does not come. The call must not be waiting already. */
tn_status dp_link_open(struct dp_link *l, struct dp_open_call *call, const char *ref, const struct dp_remote *stale,
                       uint64_t deadline_ns);
tn_status dp_link_peer_refresh(struct dp_link *l, struct dp_peer_call *call, const struct dp_peer *stale,
                               uint64_t deadline_ns);
/* A control datagram that came over a lane; dropped when the link is down (the relay is best effort). */
void dp_link_datagram(struct dp_link *l, const char *peer, const void *bytes, uint32_t len);

#endif
