/* SPDX-License-Identifier: Apache-2.0
 * The door for applications: the attach socket, who may come in, and the table of clients. Control thread. */
#ifndef DP_INGRESS_ATTACH_H
#define DP_INGRESS_ATTACH_H

#include "common/spare_fd.h"
#include "dataplane/ingress/client.h"
#include "dataplane/segment/handles.h"
#include "shm-ring/lease.h"

#define DP_ATTACH_SOCKET "attach.sock"

struct dp_attach {
	struct dp_control *ctl;
	struct dp_source listener;
	struct shr_published published;
	struct dp_handles clients;
	struct tn_list list;
	struct dp_timer retry;       /* accept again after descriptors ran out */
	struct tn_spare_fd spare;    /* given up to tell one client more that there is none */
	uint32_t new_cnt;            /* clients that have not said HELLO */
	struct shr_msg rx, tx;       /* one message at a time is enough: no handler blocks */
	uint32_t attached_cnt, attached_max;
	uint64_t refused_cnt, broken_cnt; /* strangers and connections without room; clients that broke the rules */
};

void dp_attach_init(struct dp_attach *a, struct dp_control *ctl, uint32_t client_max);
/* Publishes the socket: the last step of start, from here on clients come. TN_TOO_BIG, PERMISSION, LIMIT, SYSTEM. */
tn_status dp_attach_listen(struct dp_attach *a, const char *runtime_dir);
/* Stops accepting and removes the socket's name if it is still ours. */
void dp_attach_close(struct dp_attach *a);
/* SHUTDOWN event to every client. */
void dp_attach_announce_shutdown(struct dp_attach *a);
void dp_attach_fini(struct dp_attach *a);

/* The client with this id, or NULL: it is gone. */
struct dp_app *dp_attach_find(struct dp_attach *a, uint32_t client_id);
/* For dp_app_new and its end. TN_LIMIT, TN_NO_MEMORY. */
tn_status dp_attach_enter(struct dp_attach *a, struct dp_app *c);
void dp_attach_leave(struct dp_attach *a, struct dp_app *c);

#endif
