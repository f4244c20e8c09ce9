/* SPDX-License-Identifier: Apache-2.0
 * Which requests of one drain batch become one owner. Pure comparison of two private descriptor copies of the same
 * queue pair. One worker. */
#ifndef DP_ADMISSION_MERGE_H
#define DP_ADMISSION_MERGE_H

#include <stdbool.h>

#include "dataplane/request/request.h"

/* Deadlines this close may share an owner (its deadline is the earliest). */
#define DP_MERGE_SLACK_NS UINT64_C(1000000)

/* May `r` (not yet in an owner) be appended to `o`, whose first request is `first`? Same queue pair (given), memory,
 * remote, batch, opcode, hint, priority, policy, intent and flags; contiguous on both sides; inside one buffer of the
 * remote segment; at most max_bytes together; deadlines within the slack. */
bool dp_merge_fits(const struct dp_owner *o, const struct dp_request *first, const struct dp_request *r,
		   const struct dp_remote *remote, uint64_t max_bytes);

#endif
