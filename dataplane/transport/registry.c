/* SPDX-License-Identifier: Apache-2.0
 * From the list of built-in transports to what the config enables. */
#include "dataplane/transport/registry.h"

struct row { const struct dp_transport_ops *ops; enum tn_config_key enable; };

static const struct row rows[] = {
#define X(n, s) { &dp_##s##_ops, TN_CFG_##n##_ENABLE },
	DP_TRANSPORTS_BUILT(X)
#undef X
};
TN_STATIC_ASSERT(TN_ARRAY_LEN(rows) <= TN_TRANSPORT_CNT, "one transport per kind");

uint32_t dp_registry_list(const struct tn_config *cfg, const struct dp_transport_ops *out[static TN_TRANSPORT_CNT])
{
	uint32_t cnt = 0;
	for (unsigned i = 0; i < TN_ARRAY_LEN(rows); i++)
		if (tn_config_bool(cfg, rows[i].enable))
			out[cnt++] = rows[i].ops;
	return cnt;
}
