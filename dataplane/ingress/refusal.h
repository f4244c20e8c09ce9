/* SPDX-License-Identifier: Apache-2.0
 * Connections to the doors of the data plane that were closed unheard: the counter, and a line in the log at most once
 * in ten seconds for each door. Control thread. */
#ifndef DP_INGRESS_REFUSAL_H
#define DP_INGRESS_REFUSAL_H

#include <stdint.h>

#include "common/metrics.h"

struct dp_control;

struct dp_refusals { /* zeroed: none */
	struct {
		uint64_t since[TN_REFUSAL_CNT]; /* the last line */
		uint64_t told_ns;
	} door[TN_DP_DOOR_CNT];
};

/* CROWDED: too many at once; DESCRIPTORS: none was left; STRANGER: no right to come in; SILENT: nothing came in time. */
void dp_refused(struct dp_control *ctl, enum tn_dp_door door, enum tn_refusal why);
/* The limit of open files, for texts and for the detail of a refusal. */
uint32_t dp_descriptor_limit(void);

#endif
