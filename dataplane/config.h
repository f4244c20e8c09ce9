/* SPDX-License-Identifier: Apache-2.0
 * What the data plane derives from its configuration and the machine at start: how many workers, where they run, which
 * transports there are. Pure but for the affinity mask. Main thread. */
#ifndef DP_CONFIG_H
#define DP_CONFIG_H

#include "common/config.h"
#include "shm-ring/abi.h"

struct dp_plan {
	uint32_t worker_cnt;
	uint32_t cpus[SHR_WORKERS_MAX];   /* UINT32_MAX = not pinned */
	uint32_t event_slots, keep_slots; /* powers of two within the bounds of telemetry */
	uint32_t transports;              /* bit (1 << enum tn_transport): enabled */
};

/* CONFIG: workers/cpus names a CPU that this process may not use; err (512 bytes hold any) says where it stands and
 * which there are. */
tn_status dp_plan_make(const struct tn_config *cfg, struct dp_plan *out, char *err, size_t err_bytes);

#endif
