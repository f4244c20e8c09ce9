/* SPDX-License-Identifier: Apache-2.0
 * Z85 (ZeroMQ RFC 32) of a 32-byte public key: 40 printable characters, the notation in which CURVE keys are written
 * in configs and by tentctl keygen. Pure; any thread. */
#ifndef TN_Z85_H
#define TN_Z85_H

#include "common/ids.h"

#define TN_PEER_ID_Z85 41   /* with the NUL */

void tn_peer_id_to_z85(const struct tn_peer_id *id, char out[static TN_PEER_ID_Z85]);
/* Exactly 40 characters of the alphabet, each five at most 2^32-1; else TN_INVALID and *out untouched. */
tn_status tn_peer_id_from_z85(const char *text, struct tn_peer_id *out);
/* Either notation by its length: 40 characters Z85 or 64 hexadecimal digits. */
tn_status tn_peer_id_from_text(const char *text, struct tn_peer_id *out);

#endif
