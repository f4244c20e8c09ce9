/* SPDX-License-Identifier: Apache-2.0
 * What one worker has done for each target (peer, or this host): functional counters without labels, for tentctl top
 * and explain. Metrics may not name peers, so these words are kept beside them and never exported. One writer, the
 * worker; the control thread reads at any time (relaxed: each word is true by itself, sums may be one request apart).
 * A line is the worker's own until somebody looks. */
#ifndef DP_STATS_LOAD_H
#define DP_STATS_LOAD_H

#include "common/atomic.h"
#include "common/metrics.h"
#include "common/status.h"

struct dp_load {
	tn_a64 in_cnt, in_bytes;     /* requests that entered */
	tn_a64 out_cnt;              /* that ended, whatever the outcome */
	tn_a64 moved[TN_OP_CNT];     /* bytes of completed ones */
	tn_a64 lost_bytes;           /* of those that did not complete */
	tn_a64 failed_cnt;           /* failed or timed out */
	tn_a64 failure;              /* the last of them: one word, so that two are never mixed */
	tn_a64 failure_ns;           /* when */
	tn_a32 latency[TN_BUCKETS_LATENCY_CNT + 1]; /* of completed ones, by tn_bucket(); +Inf last */
	uint8_t pad[TN_CACHE_LINE - (9 * 8 + (TN_BUCKETS_LATENCY_CNT + 1) * 4) % TN_CACHE_LINE];
};
TN_STATIC_ASSERT(sizeof(struct dp_load) % TN_CACHE_LINE == 0, "loads do not share lines");

struct dp_loads {
	struct dp_load *of;          /* of[0]: this host; of[i + 1]: peer i */
	uint32_t cnt;
};

/* Several workers' loads of one target, added up. */
struct dp_load_sum {
	uint64_t in_cnt, in_bytes, out_cnt, moved[TN_OP_CNT], lost_bytes, failed_cnt;
	uint64_t latency[TN_BUCKETS_LATENCY_CNT + 1];
	uint64_t failure_ns;         /* of the latest failure; 0 = none */
	tn_status failure_status;
	uint8_t failure_transport, failure_phase, failure_reason;
};

/* Room for peer_cap peers; pages are touched when used. TN_NO_MEMORY. */
tn_status dp_loads_init(struct dp_loads *l, uint32_t peer_cap);
void dp_loads_destroy(struct dp_loads *l); /* accepts a zeroed object */

/* The load of a target; peer_index DP_PEER_SELF = this host. Worker. */
TN_INLINE struct dp_load *dp_load_of(const struct dp_loads *l, uint32_t peer_index) { return &l->of[peer_index + 1u]; }

TN_INLINE void dp_load_in(struct dp_load *d, uint64_t bytes)
{
	tn_count64(&d->in_cnt, 1);
	tn_count64(&d->in_bytes, bytes);
}
TN_INLINE void dp_load_completed(struct dp_load *d, enum tn_op op, uint64_t bytes, uint64_t latency_ns)
{
	tn_a32 *bucket = &d->latency[tn_bucket(TN_MTYPE_LATENCY, latency_ns)];
	tn_count64(&d->out_cnt, 1);
	tn_count64(&d->moved[op], bytes);
	tn_store_relaxed32(bucket, tn_load_relaxed32(bucket) + 1);
}
/* It ended, but not completed; `canceled`: no failure. */
void dp_load_ended(struct dp_load *d, uint64_t bytes, bool canceled, tn_status status, uint8_t transport, uint8_t phase,
		   uint8_t reason, uint64_t now_ns);

/* Any thread. Nothing for a target that does not exist. */
void dp_load_add(const struct dp_loads *l, uint32_t peer_index, struct dp_load_sum *sum);

#endif
