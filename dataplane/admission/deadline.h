/* SPDX-License-Identifier: Apache-2.0
 * Deadlines in admission: a queue that is ordered by them (an intrusive pairing heap: Fredman, Sedgewick, Sleator,
 * Tarjan, "The pairing heap", 1986), and whether one can be met at all, from a smoothed rate of the target. Both serve
 * only where the configuration asks for them. Pure: time is an argument; one owner thread. */
#ifndef DP_ADMISSION_DEADLINE_H
#define DP_ADMISSION_DEADLINE_H

#include "dataplane/request/request.h"

/* ---- earliest deadline first ---- */

/* Owners by (deadline, owner_id): of equal deadlines the one that was made first. NULL root: empty. */
struct dp_edf { struct dp_owner *root; };

/* O(1). `o` is in no heap; its deadline must not change while it is in one. */
void dp_edf_push(struct dp_edf *h, struct dp_owner *o);
/* Takes out any owner of this heap; O(log n) amortised. */
void dp_edf_remove(struct dp_edf *h, struct dp_owner *o);

/* ---- feasibility ---- */

/* What is smaller says more about latency than about the rate, and is no sample. */
#define DP_RATE_OWNER_BYTES (UINT64_C(256) << 10)
#define DP_RATE_SAMPLE_BYTES (UINT64_C(1) << 20)
/* An older estimate is not believed: whoever is let through then makes a new one. */
#define DP_RATE_FRESH_NS UINT64_C(1000000000)

/* How fast a target takes bytes while it has some to take. Zeroed: unknown. */
struct dp_rate {
	uint64_t bytes_per_s;
	uint64_t at_ns;             /* of the last sample */
	uint64_t end_ns;            /* of the last owner that counted */
	uint64_t bytes, busy_ns;    /* since the last sample */
};

/* One sample. The first is taken as it is; then the new value weighs 1/8. took_ns > 0. */
void dp_rate_feed(struct dp_rate *r, uint64_t bytes, uint64_t took_ns, uint64_t now_ns);
/* An owner of `bytes` that was dispatched at began_ns completed now; times in which nothing was out do not count. */
void dp_rate_served(struct dp_rate *r, uint64_t bytes, uint64_t began_ns, uint64_t now_ns);

/* How much of the time that is left these bytes need, in permille (as tn_permille()): above 1000 the deadline cannot be
 * met. 0: no fresh estimate, nobody knows. */
uint32_t dp_rate_permille(const struct dp_rate *r, uint64_t bytes, uint64_t left_ns, uint64_t now_ns);

#endif
