/* SPDX-License-Identifier: Apache-2.0
 * Segments that clients have opened, here or at a peer: the first version of each, newer versions as they appear, and
 * the search for one when a worker finds that its version is stale. Control thread. */
#ifndef DP_SEGMENT_REMOTE_H
#define DP_SEGMENT_REMOTE_H

#include "dataplane/ingress/client.h"
#include "dataplane/link/call.h"
#include "dataplane/segment/local.h"
#include "dataplane/segment/names.h"
#include "dataplane/segment/table.h"

struct dp_opened {
	tn_handle handle;
	struct tn_list link;        /* the client's */
	struct dp_app *client;
	struct dp_control *ctl;
	struct dp_name by_ref;
	char ref[SHR_SEGMENT_REF_MAX + 6]; /* "peer/name", or "name" on this host */
	bool local;
	uint8_t state;              /* enum dp_opened_state */
	/* Versions: workers may use `prev` until they acknowledge `cur`; `next` waits for that, the newest wins. */
	struct dp_remote *prev, *cur, *next;
	struct dp_flight flight;
	uint32_t correlation;
	uint16_t answer;            /* request type to answer when the workers forgot it; 0 = none */
	tn_status result;           /* what OPEN is answered with then */
	/* The search for a newer version; one at a time. */
	bool refreshing;
	struct dp_open_call call;
	struct dp_timer retry;
	uint64_t backoff_ns, give_up_ns;
};

void dp_remote_on_open(struct dp_app *c, struct shr_msg *m);
void dp_remote_on_close(struct dp_app *c, struct shr_msg *m);
/* A closing client: no more searches, no more answers; what no worker knows is freed. */
void dp_remote_abandon(struct dp_app *c);
/* After CLIENT_DEL. */
void dp_remote_release_all(struct dp_app *c);
/* At the end of the process. */
void dp_remote_destroy_all(struct dp_app *c);

/* A worker found this version stale (DP_EVT_REMOTE_REFRESH). Unknown handles and old versions are nothing. */
void dp_remote_refresh(struct dp_control *ctl, tn_handle h, uint64_t stale_generation);
/* The control plane says that a peer replaced its segment. */
void dp_remote_segment_changed(struct dp_control *ctl, const char *peer, const char *name,
                               const struct tn_id128 *session, uint64_t generation);
/* The control plane says that a peer is back: searches for its segments that wait go on at once. */
void dp_remote_peer_returned(struct dp_control *ctl, const char *peer);
/* The peer is trusted no more: what was opened at it is lost (PEER_UNKNOWN). And trusted again: it is looked for. */
void dp_remote_peer_gone(struct dp_control *ctl, const char *peer);
void dp_remote_peer_back(struct dp_control *ctl, const char *peer);
/* A segment of this host can be found now: who opened an earlier one of that name gets it. */
void dp_remote_segment_appeared(struct dp_control *ctl, const struct dp_local_segment *seg);

#endif
