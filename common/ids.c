/* SPDX-License-Identifier: Apache-2.0
 * Text forms and comparisons of identities. Only lower-case hexadecimal of the exact length is accepted, so that one
 * identity has one spelling and text comparison is sound. No state; any thread. */
#include "common/ids.h"

#include "common/bits.h"

static const char hex_digits[] = "0123456789abcdef";

static void to_hex(const uint8_t *b, size_t len, char *out)
{
	for (size_t i = 0; i < len; i++) {
		out[2 * i] = hex_digits[b[i] >> 4];
		out[2 * i + 1] = hex_digits[b[i] & 15];
	}
	out[2 * len] = '\0';
}

static int nibble(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return -1;
}

static tn_status from_hex(const char *hex, uint8_t *out, size_t len)
{
	uint8_t tmp[sizeof(struct tn_peer_id)];
	for (size_t i = 0; i < len; i++) {
		int hi = nibble(hex[2 * i]);
		int lo = hi < 0 ? -1 : nibble(hex[2 * i + 1]);   /* a NUL stops here, before the read goes past it */
		if (lo < 0)
			return TN_INVALID;
		tmp[i] = (uint8_t)(hi << 4 | lo);
	}
	if (hex[2 * len] != '\0')
		return TN_INVALID;
	memcpy(out, tmp, len);
	return TN_OK;
}

bool tn_id128_is_zero(const struct tn_id128 *a) { return tn_all_zero(a->b, sizeof a->b); }
bool tn_peer_id_is_zero(const struct tn_peer_id *a) { return tn_all_zero(a->b, sizeof a->b); }

bool tn_id128_eq_secret(const struct tn_id128 *a, const struct tn_id128 *b)
{
	uint8_t diff = 0;
	for (size_t i = 0; i < sizeof a->b; i++) {
		diff |= (uint8_t)(a->b[i] ^ b->b[i]);
		TN_OPAQUE(diff);   /* keeps the compiler from leaving the loop early */
	}
	return diff == 0;
}

void tn_id128_to_hex(const struct tn_id128 *id, char out[static TN_ID128_HEX]) { to_hex(id->b, sizeof id->b, out); }
tn_status tn_id128_from_hex(const char *hex, struct tn_id128 *out) { return from_hex(hex, out->b, sizeof out->b); }
void tn_peer_id_to_hex(const struct tn_peer_id *id, char out[static TN_PEER_ID_HEX])
{
	to_hex(id->b, sizeof id->b, out);
}
tn_status tn_peer_id_from_hex(const char *hex, struct tn_peer_id *out) { return from_hex(hex, out->b, sizeof out->b); }

static bool name_char(char c)
{
	return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-';
}

bool tn_name_valid(const char *name)
{
	if (name[0] == '.' || name[0] == '-')
		return false;
	size_t len = 0;
	for (; name[len] != '\0'; len++)
		if (len + 1 >= TN_NAME_MAX || !name_char(name[len]))
			return false;
	return len > 0;
}
