/* SPDX-License-Identifier: Apache-2.0
 * Segments that clients of this host publish: names, registration ids, generations, and the walk through the workers
 * before a name can be found and before a withdrawal is answered. Control thread. */
#ifndef DP_SEGMENT_LOCAL_H
#define DP_SEGMENT_LOCAL_H

#include "dataplane/ingress/client.h"
#include "dataplane/segment/names.h"
#include "dataplane/segment/table.h"

struct dp_local_segment {
	struct dp_segment *s;      /* what workers see; the peers list is part of the same allocation */
	struct tn_list link;       /* the client's */
	struct dp_name by_name;
	struct dp_app *client;
	struct dp_control *ctl;
	struct dp_flight flight;
	uint8_t state;             /* enum dp_seg_state */
	bool announced;            /* the control plane was told, or will be by a snapshot */
	uint16_t answer;           /* request type to answer when the workers forgot it; 0 = none */
	tn_status result;          /* what PUBLISH is answered with then */
	uint32_t correlation;
};

void dp_local_on_publish(struct dp_app *c, struct shr_msg *m);
void dp_local_on_withdraw(struct dp_app *c, struct shr_msg *m);
/* The operator's withdrawal (link): the client is told, and its WITHDRAW waits for what still runs. NOT_FOUND. */
tn_status dp_local_withdraw_name(struct dp_control *ctl, const char *name);
/* A closing client: withdraw all it published, without answers. */
void dp_local_abandon(struct dp_app *c);
/* At the end of the process. */
void dp_local_destroy_all(struct dp_app *c);

/* By name among those that can be found, by handle among all that are not yet withdrawn; else NULL. */
struct dp_local_segment *dp_local_find(struct dp_control *ctl, const char *name);
struct dp_local_segment *dp_local_get(struct dp_control *ctl, tn_handle h);
/* May a process of this user on this host open it? And a peer of this name? */
bool dp_local_admits_uid(const struct dp_segment *s, uint32_t uid);
bool dp_local_admits_peer(const struct dp_segment *s, const char *peer);

#endif
