/* SPDX-License-Identifier: Apache-2.0
 * Identities: stable peer id (a CURVE public key), session (one incarnation of a data plane), ticket, and the
 * {index, generation} handle. Nothing is ever recognised by address, port or pid alone. Any thread. */
#ifndef TN_IDS_H
#define TN_IDS_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "common/compiler.h"
#include "common/status.h"

struct tn_id128 { uint8_t b[16]; };           /* session, ticket, trace id; all zero = none */
struct tn_peer_id { uint8_t b[32]; };         /* CURVE public key; all zero = none */

#define TN_ID128_HEX 33                       /* text sizes, with the NUL */
#define TN_PEER_ID_HEX 65
#define TN_NAME_MAX 64                        /* peer or segment name with the NUL: [A-Za-z0-9._-], 1..63 bytes */

TN_INLINE bool tn_id128_eq(const struct tn_id128 *a, const struct tn_id128 *b) { return memcmp(a, b, sizeof *a) == 0; }
TN_INLINE bool tn_peer_id_eq(const struct tn_peer_id *a, const struct tn_peer_id *b)
{
	return memcmp(a, b, sizeof *a) == 0;
}
bool tn_id128_is_zero(const struct tn_id128 *a);
bool tn_peer_id_is_zero(const struct tn_peer_id *a);
/* Equal in time that does not depend on the content (tickets). */
bool tn_id128_eq_secret(const struct tn_id128 *a, const struct tn_id128 *b);

void tn_id128_to_hex(const struct tn_id128 *id, char out[static TN_ID128_HEX]);
tn_status tn_id128_from_hex(const char *hex, struct tn_id128 *out);
void tn_peer_id_to_hex(const struct tn_peer_id *id, char out[static TN_PEER_ID_HEX]);
tn_status tn_peer_id_from_hex(const char *hex, struct tn_peer_id *out);

/* Peer and segment names: 1..63 of [A-Za-z0-9._-], not starting with '.' or '-'. */
bool tn_name_valid(const char *name);

/* Handle: generation in the high half (never 0), index in the low half; 0 = none. */
typedef uint64_t tn_handle;
TN_INLINE tn_handle tn_handle_make(uint32_t index, uint32_t generation) { return (uint64_t)generation << 32 | index; }
TN_INLINE uint32_t tn_handle_index(tn_handle h) { return (uint32_t)h; }
TN_INLINE uint32_t tn_handle_generation(tn_handle h) { return (uint32_t)(h >> 32); }

#endif
