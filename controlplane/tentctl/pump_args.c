/* SPDX-License-Identifier: Apache-2.0
 * The arguments that put and get share: the name of a segment and how to reach it. */
#include <string.h>

#include "controlplane/tentctl/pump.h"

int tctl_pump_cfg_check(struct tctl *t, struct tctl_pump_cfg *cfg)
{
	static const struct { const char *name; tent_transport hint; } kinds[] = {
		{ "any", TENT_TRANSPORT_ANY }, { "rdma", TENT_TRANSPORT_RDMA }, { "hp_tcp", TENT_TRANSPORT_HP_TCP },
		{ "tcp", TENT_TRANSPORT_TCP }, { "shm", TENT_TRANSPORT_SHM },
	};
	for (size_t i = 0; cfg->transport != NULL && i < TN_ARRAY_LEN(kinds); i++) {
		if (strcmp(cfg->transport, kinds[i].name) == 0) {
			cfg->hint = kinds[i].hint;
			return TCTL_OK;
		}
	}
	return cfg->transport == NULL ? TCTL_OK :
	       tctl_bad_usage(t, "--transport %s: not one of any, rdma, hp_tcp, tcp, shm", cfg->transport);
}

int tctl_ref_check(struct tctl *t, const char *ref)
{
	char peer[TN_NAME_MAX];
	const char *slash = strchr(ref, '/'), *segment = slash != NULL ? slash + 1 : ref;
	size_t peer_len = slash != NULL ? (size_t)(slash - ref) : 0;
	if (slash != NULL) {
		snprintf(peer, sizeof peer, "%.*s", (int)TN_MIN(peer_len, sizeof peer), ref);
		if (peer_len >= sizeof peer || !tn_name_valid(peer))
			return tctl_bad_usage(
			    t, "\"%.200s\": the peer before the slash is no name (1 to 63 of A-Z a-z 0-9 . _ -)", ref);
	}
	if (!tn_name_valid(segment))
		return tctl_bad_usage(
		    t, "\"%.200s\" names no segment: NAME or PEER/NAME, each 1 to 63 of A-Z a-z 0-9 . _ -", ref);
	return TCTL_OK;
}
