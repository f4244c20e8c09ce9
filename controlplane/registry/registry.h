/* SPDX-License-Identifier: Apache-2.0
 * Where segments are found. The only registry here is p2p: the reference names the peer, the config names its address,
 * and the owner's control plane is asked. An external registry would only answer the first question (who owns it). */
#ifndef CP_REGISTRY_H
#define CP_REGISTRY_H

#include <stddef.h>
#include <stdint.h>

#include "common/config.h"
#include "common/ids.h"
#include "common/status.h"

/* "peer/name" -> index of the peer in the config, and the name. INVALID, PEER_UNKNOWN. Pure. */
tn_status cp_registry_resolve(const struct tn_config *config, const char *ref, uint32_t *peer_out,
			      char name_out[static TN_NAME_MAX], char *err, size_t err_bytes);

#endif
