/* SPDX-License-Identifier: Apache-2.0
 * The stream transports' numbers (contract 3.6): which cell each happening counts in. Inline, owner thread only. */
#ifndef DP_STREAM_ACCOUNT_H
#define DP_STREAM_ACCOUNT_H

#include "dataplane/transport/stream/stream.h"

TN_STATIC_ASSERT((int)DP_FRAME_BAD_SIZE - 1 == (int)TN_FRAME_ERROR_INVALID_SIZE &&
			 (int)DP_FRAME_BAD_TICKET - 1 == (int)TN_FRAME_ERROR_TICKET &&
			 (int)DP_FRAME_BAD_ID - 1 == (int)TN_FRAME_ERROR_REQUEST_ID_MISMATCH &&
			 (int)DP_FRAME_ERROR_CNT - 1 == (int)TN_FRAME_ERROR_CNT,
		 "codec errors and the metric's label have the same order");

TN_INLINE void dp_account_event(struct dp_stream *s, unsigned op, unsigned event)
{
	tn_counter_add(s->metrics, TN_C3(STREAM_EVENTS_TOTAL, s->kind, op, event), 1);
}

TN_INLINE void dp_account_protocol(struct dp_stream *s, unsigned side, enum dp_frame_error error)
{
	tn_counter_add(s->metrics, TN_C3(HP_TCP_PROTOCOL_ERRORS_TOTAL, s->kind, side, (unsigned)error - 1), 1);
}

TN_INLINE void dp_account_connections(struct dp_stream *s, int64_t n)
{
	tn_gauge_add(s->metrics, TN_G1(STREAM_CONNECTIONS, s->kind), n);
}

TN_INLINE void dp_account_depth(struct dp_stream *s, int64_t n)
{
	tn_gauge_add(s->metrics, TN_G1(STREAM_QUEUE_DEPTH, s->kind), n);
}

/* A page of a client's memory could not be had. */
TN_INLINE void dp_account_fault(struct dp_stream *s)
{
	tn_counter_add(s->metrics, TN_C1(MEMORY_FAULTS_TOTAL, s->base.ops->kind), 1);
}

/* An attempt was accepted (n = 1) or ended (n = -1). */
TN_INLINE void dp_account_admitted(struct dp_stream *s, int n, uint64_t bytes)
{
	s->admitted += (uint32_t)n;
	tn_gauge_set(s->metrics, TN_G1(STREAM_BUSY_WORKERS, s->kind), s->admitted > 0);
	tn_gauge_set(s->metrics, TN_G1(STREAM_ADMITTED_TASKS, s->kind), s->admitted);
	tn_gauge_add(s->metrics, TN_G1(STREAM_ADMITTED_BYTES, s->kind), n > 0 ? (int64_t)bytes : -(int64_t)bytes);
}

#endif
