/* SPDX-License-Identifier: Apache-2.0
 * Z85 of public keys (ZeroMQ RFC 32): each 4 bytes, big-endian, are 5 digits of base 85. Pure; any thread. */
#include "common/z85.h"

#include <string.h>

static const char alphabet[] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#";

void tn_peer_id_to_z85(const struct tn_peer_id *id, char out[static TN_PEER_ID_Z85])
{
	for (size_t i = 0; i < sizeof id->b; i += 4) {
		uint32_t word = (uint32_t)id->b[i] << 24 | (uint32_t)id->b[i + 1] << 16 | (uint32_t)id->b[i + 2] << 8 |
				id->b[i + 3];
		char *digits = out + i / 4 * 5;

		for (unsigned d = 5; d-- > 0; word /= 85)
			digits[d] = alphabet[word % 85];
	}
	out[TN_PEER_ID_Z85 - 1] = '\0';
}

tn_status tn_peer_id_from_z85(const char *text, struct tn_peer_id *out)
{
	struct tn_peer_id id;

	if (strlen(text) != TN_PEER_ID_Z85 - 1)
		return TN_INVALID;
	for (size_t i = 0; i < sizeof id.b; i += 4) {
		uint64_t word = 0;

		for (unsigned d = 0; d < 5; d++) {
			const char *place = strchr(alphabet, text[i / 4 * 5 + d]);

			if (place == NULL)
				return TN_INVALID;
			word = word * 85 + (uint64_t)(place - alphabet);
		}
		if (word > UINT32_MAX)
			return TN_INVALID;
		for (unsigned b = 0; b < 4; b++)
			id.b[i + b] = (uint8_t)(word >> (24 - 8 * b));
	}
	*out = id;
	return TN_OK;
}

tn_status tn_peer_id_from_text(const char *text, struct tn_peer_id *out)
{
	return strlen(text) == TN_PEER_ID_HEX - 1 ? tn_peer_id_from_hex(text, out) : tn_peer_id_from_z85(text, out);
}
