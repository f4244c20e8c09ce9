/* SPDX-License-Identifier: Apache-2.0
 * Which queue pairs a worker looks at. A hot one is looked at in every turn and its application need not ring; one that
 * was quiet for a while is cold: not looked at, its doorbell is armed, and its application's ring makes it hot again. So
 * a turn costs what is busy, not what is attached. Every pair with outstanding requests is hot. Worker thread. */
#ifndef DP_INGRESS_HOT_H
#define DP_INGRESS_HOT_H

#include "dataplane/ingress/qp.h"

/* A pair without work for this long turns cold. Its next request then costs its application one system call. */
#define DP_HOT_NS (2 * UINT64_C(1000000))

struct dp_hot {
	struct tn_list qps;      /* struct dp_qp.hot_link; rotated for fairness */
	uint32_t cold;           /* pairs with an armed doorbell that is not on the list */
};

void dp_hot_init(struct dp_hot *h);
/* A pair enters; it is hot first. Its `bell` becomes ready to be polled: serving it drains the bell and heats it. */
void dp_hot_add(struct dp_hot *h, struct dp_qp *qp, uint64_t now_ns);
/* It leaves for good. Accepts a pair that never entered. */
void dp_hot_remove(struct dp_qp *qp);

/* It had work at now_ns. */
TN_INLINE void dp_hot_worked(struct dp_qp *qp, uint64_t now_ns) { qp->work_ns = now_ns; }
/* It had none: maybe it turns cold now. */
void dp_hot_idle(struct dp_qp *qp, uint64_t now_ns);
/* The first one is the last one next time. */
void dp_hot_rotate(struct dp_hot *h);

/* Before and after the worker's sleep: arms the doorbells of the hot ones, too (the fence is the caller's), and takes
 * that back. */
void dp_hot_arm(struct dp_hot *h, bool on);
/* Submissions that came since the last look. *blocked_out: a pair has entries for which there is no room; they are no
 * reason to stay awake, but nobody rings when room comes (the application consumed completions). */
bool dp_hot_waits(const struct dp_hot *h, bool *blocked_out);

#endif
