/* SPDX-License-Identifier: Apache-2.0
 * Policy: which transports may serve a request, best first. Pure: config and question in, ordered kinds out; whether
 * they can serve it now is the selector's question. Any thread. */
#ifndef DP_SELECTION_POLICY_H
#define DP_SELECTION_POLICY_H

#include <stdbool.h>

#include "common/config.h"

struct dp_policy_query {
	bool local;        /* the segment lives on this host */
	uint8_t priority;  /* enum tn_priority */
	uint8_t intent;
	uint16_t policy;   /* 0 = first that matches; else tn_config_policy.id */
	uint64_t bytes;
};

struct dp_policy_answer {
	uint8_t kinds[TN_TRANSPORT_CNT]; /* enum tn_transport, best first */
	uint8_t cnt;
	const struct tn_config_policy *matched; /* NULL: the default order */
	bool miss;         /* policies exist (or one was named) but none matched: the default order was taken */
};

/* A named policy is taken without matching; one that is not there (any more) is a miss. */
struct dp_policy_answer dp_policy_order(const struct tn_config *cfg, const struct dp_policy_query *q);
/* Can this kind serve a local / remote target at all? */
bool dp_policy_kind_serves(unsigned kind, bool local);

#endif
