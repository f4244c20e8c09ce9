/* SPDX-License-Identifier: Apache-2.0
 * Between the two files of the accepting side: server.c (lanes, senders, fences, timers) and serve.c (requests). */
#ifndef DP_STREAM_SERVE_H
#define DP_STREAM_SERVE_H

#include "dataplane/transport/stream/stream.h"

/* Names an unanswered notice so that its verdict finds it, or finds that it is gone. */
uint64_t dp_serve_token(const struct dp_lane *l, uint32_t slot);
/* Frame status of what the receiver's inbox said. */
uint16_t dp_serve_verdict(tn_status verdict);

#endif
