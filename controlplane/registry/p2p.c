/* SPDX-License-Identifier: Apache-2.0
 * The p2p registry: nothing is stored anywhere, a reference says whom to ask. Pure. */
#include "controlplane/registry/registry.h"

#include <stdio.h>
#include <string.h>

tn_status cp_registry_resolve(const struct tn_config *config, const char *ref, uint32_t *peer_out,
			      char name_out[static TN_NAME_MAX], char *err, size_t err_bytes)
{
	char peer[TN_NAME_MAX];
	const char *slash = strchr(ref, '/');
	size_t n = slash != NULL ? (size_t)(slash - ref) : 0;
	if (slash == NULL || n == 0 || n >= sizeof peer || strlen(slash + 1) >= TN_NAME_MAX) {
		snprintf(err, err_bytes, "\"%.130s\" is not of the form peer/segment", ref);
		return TN_INVALID;
	}
	memcpy(peer, ref, n);
	peer[n] = '\0';
	if (!tn_name_valid(peer) || !tn_name_valid(slash + 1)) {
		snprintf(err, err_bytes, "\"%.130s\": names are 1 to 63 of [A-Za-z0-9._-], not starting with . or -", ref);
		return TN_INVALID;
	}
	for (uint32_t i = 0; i < tn_config_peer_cnt(config); i++) {
		if (strcmp(tn_config_peer(config, i)->name, peer) != 0)
			continue;
		*peer_out = i;
		snprintf(name_out, TN_NAME_MAX, "%s", slash + 1);
		return TN_OK;
	}
	snprintf(err, err_bytes, "no peer \"%s\" in the config; peers lists %u (tentctl peer list)", peer,
		 tn_config_peer_cnt(config));
	return TN_PEER_UNKNOWN;
}
