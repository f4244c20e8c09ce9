/* SPDX-License-Identifier: Apache-2.0
 * The policy rule: first match wins, then kinds that cannot serve such a target are left out. Pure. */
#include "dataplane/selection/policy.h"

static const uint8_t default_local[] = { TN_TRANSPORT_SHM, TN_TRANSPORT_TCP };
static const uint8_t default_remote[] = { TN_TRANSPORT_RDMA, TN_TRANSPORT_HP_TCP, TN_TRANSPORT_TCP };

bool dp_policy_kind_serves(unsigned kind, bool local)
{
	switch (kind) {
	case TN_TRANSPORT_SHM: return local;
	case TN_TRANSPORT_RDMA: case TN_TRANSPORT_HP_TCP: return !local;
	case TN_TRANSPORT_TCP: return true; /* this host's own listener is a peer, too: docs/adr/0009-lanes-to-ourselves.md */
	default: return false;
	}
}

static bool matches(const struct tn_config_policy *p, const struct dp_policy_query *q)
{
	return (p->priority == TN_CONFIG_ANY || p->priority == q->priority) &&
	       (p->intent == TN_CONFIG_ANY || p->intent == q->intent) &&
	       q->bytes >= p->min_bytes && q->bytes <= p->max_bytes;
}

static const struct tn_config_policy *find(const struct tn_config *cfg, const struct dp_policy_query *q)
{
	unsigned cnt = tn_config_policy_cnt(cfg);
	if (q->policy != 0)
		return tn_config_policy_by_id(cfg, q->policy);
	for (unsigned i = 0; i < cnt; i++)
		if (matches(tn_config_policy(cfg, i), q))
			return tn_config_policy(cfg, i);
	return NULL;
}

struct dp_policy_answer dp_policy_order(const struct tn_config *cfg, const struct dp_policy_query *q)
{
	const struct tn_config_policy *p = find(cfg, q);
	struct dp_policy_answer a = { .matched = p, .miss = !p && (q->policy != 0 || tn_config_policy_cnt(cfg) != 0) };
	const uint8_t *kinds = p ? p->transports : q->local ? default_local : default_remote;
	unsigned cnt = p ? p->transport_cnt : q->local ? TN_ARRAY_LEN(default_local) : TN_ARRAY_LEN(default_remote);
	for (unsigned i = 0; i < cnt; i++)
		if (dp_policy_kind_serves(kinds[i], q->local))
			a.kinds[a.cnt++] = kinds[i];
	return a;
}
