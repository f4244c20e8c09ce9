/* SPDX-License-Identifier: Apache-2.0
 * Queue pairs as the control thread sees them: makes the shared region and the doorbell, chooses a worker, hands over,
 * and takes back when the worker has quiesced. Control thread. */
#ifndef DP_INGRESS_ATTACH_QP_H
#define DP_INGRESS_ATTACH_QP_H

#include "dataplane/ingress/client.h"

void dp_qp_on_create(struct dp_app *c, struct shr_msg *m);
void dp_qp_on_destroy(struct dp_app *c, struct shr_msg *m);
/* After the client's CLIENT_DEL (or the workers' end): nothing touches its queue pairs any more. */
void dp_qp_release_all(struct dp_app *c);

#endif
