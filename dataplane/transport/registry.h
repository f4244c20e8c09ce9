/* SPDX-License-Identifier: Apache-2.0
 * The transports of this build that the config enables, fastest first. Set-up time. */
#ifndef DP_TRANSPORT_REGISTRY_H
#define DP_TRANSPORT_REGISTRY_H

#include "common/config.h"
#include "dataplane/transport/transport.h"

/* X(KIND, name) of every transport of this build: TN_TRANSPORT_<KIND>, the table dp_<name>_ops, the switch
 * TN_CFG_<KIND>_ENABLE. The one list; a new transport is an entry here. Fastest first. */
#define DP_TRANSPORTS_BUILT(X) X(SHM, shm) X(TCP, tcp)

/* Is the kind in this build? Then *enable_out = its switch. */
TN_INLINE bool dp_registry_built(unsigned kind, enum tn_config_key *enable_out)
{
	switch (kind) {
#define X(n, s) case TN_TRANSPORT_##n: *enable_out = TN_CFG_##n##_ENABLE; return true;
	DP_TRANSPORTS_BUILT(X)
#undef X
	default: return false;
	}
}
/* Fills out[] with up to TN_TRANSPORT_CNT tables; returns how many. */
uint32_t dp_registry_list(const struct tn_config *cfg, const struct dp_transport_ops *out[static TN_TRANSPORT_CNT]);
/* Bits (1 << enum tn_transport) of the same, for the telemetry header. */
TN_INLINE uint32_t dp_registry_mask(const struct tn_config *cfg)
{
	uint32_t mask = 0;
#define X(n, s) mask |= (uint32_t)tn_config_bool(cfg, TN_CFG_##n##_ENABLE) << TN_TRANSPORT_##n;
	DP_TRANSPORTS_BUILT(X)
#undef X
	return mask;
}

#endif
