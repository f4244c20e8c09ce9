/* SPDX-License-Identifier: Apache-2.0
 * Words of the reasons. Pure. */
#include "common/reject.h"

#include <stdio.h>
#include <string.h>

#include "common/bits.h"

#define X(n, s, m) { #s, m },
static const struct { const char *name, *meaning; } reasons[] = { TN_REJECT_LIST(X) };
#undef X
TN_STATIC_ASSERT(TN_TRANSPORT_CNT <= 8, "a word has a byte for each transport");

const char *tn_reject_name(unsigned reason) { return reason < TN_ARRAY_LEN(reasons) ? reasons[reason].name : "invalid"; }
const char *tn_reject_meaning(unsigned reason) { return reason < TN_ARRAY_LEN(reasons) ? reasons[reason].meaning : ""; }

uint64_t tn_reject_pack(const uint8_t by_kind[static TN_TRANSPORT_CNT])
{
	uint64_t packed = 0;
	for (unsigned kind = 0; kind < TN_TRANSPORT_CNT; kind++)
		packed |= (uint64_t)by_kind[kind] << 8 * kind;
	return packed;
}

char *tn_reject_text(uint64_t packed, char out[static TN_REJECT_TEXT])
{
	out[0] = '\0';
	for (unsigned kind = TN_TRANSPORT_UNSPEC + 1; kind < TN_TRANSPORT_CNT; kind++) {
		unsigned reason = packed >> 8 * kind & 0xff;
		size_t at = strlen(out);
		if (reason != 0)
			(void)snprintf(out + at, TN_REJECT_TEXT - at, "%s%s %s", at > 0 ? ", " : "", tn_transport_name(kind),
			               tn_reject_name(reason));
	}
	return out;
}
