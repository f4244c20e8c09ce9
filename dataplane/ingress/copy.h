/* SPDX-License-Identifier: Apache-2.0
 * The errand between a worker and an application that copies for it: COPY goes out, COPIED comes back. Nothing is kept
 * here: what is outstanding is the worker's to know, and is bounded by the application's staging buffers. Control thread. */
#ifndef DP_INGRESS_COPY_H
#define DP_INGRESS_COPY_H

#include "dataplane/ingress/client.h"

/* DP_EVT_COPY of this worker: asks the application. One that goes is not asked: the worker hears of its end. */
void dp_copy_ask(struct dp_control *ctl, uint32_t worker, const struct dp_evt *evt);
/* COPIED, on its way to the worker. */
void dp_copy_on_copied(struct dp_app *c, struct shr_msg *m);

#endif
