/* SPDX-License-Identifier: Apache-2.0
 * The rules. Pure. */
#include "dataplane/selection/reject.h"

#include "dataplane/transport/registry.h"

static bool named(const struct dp_policy_answer *order, unsigned kind)
{
	for (unsigned i = 0; i < order->cnt; i++)
		if (order->kinds[i] == kind)
			return true;
	return false;
}

enum dp_reject dp_reject_by_rule(const struct tn_config *cfg, unsigned kind, bool local,
				 const struct dp_policy_answer *order, unsigned hint)
{
	enum tn_config_key enable;
	if (!dp_registry_built(kind, &enable))
		return DP_REJECT_NOT_BUILT;
	if (!tn_config_bool(cfg, enable))
		return DP_REJECT_DISABLED;
	if (!dp_policy_kind_serves(kind, local))
		return DP_REJECT_TARGET;
	if (!named(order, kind))
		return DP_REJECT_POLICY;
	return hint != TN_TRANSPORT_UNSPEC && hint != kind ? DP_REJECT_HINT : DP_REJECT_NONE;
}
