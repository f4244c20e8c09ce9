/* SPDX-License-Identifier: Apache-2.0
 * The trailer of a file segment and the notice of a put, as a peer may have written them: what is accepted is within
 * bounds and survives being written again. The first byte of the input says whether the page is sealed as it should be
 * (else nearly everything ends at the seal), the second the size of the segment. */
#include <string.h>

#include "common/assert.h"
#include "controlplane/tentctl/trailer.h"
#include "tests/fuzz/fuzz.h"

static void trailer(const uint8_t *data, size_t len, bool seal, uint64_t segment_bytes)
{
	uint8_t page[TCTL_TRAILER_BYTES] = { 0 };
	char err[TN_ERR_TEXT] = "";
	struct tctl_trailer t, again;
	memcpy(page, data, TN_MIN(len, sizeof page));
	if (seal)
		tn_assert(tctl_sha256_of(page, TCTL_TRAILER_SEAL_OFF, page + TCTL_TRAILER_SEAL_OFF));
	tn_status s = tctl_trailer_decode(page, segment_bytes, &t, err);
	if (s != TN_OK) {
		tn_assert(s == TN_NOT_FOUND || err[0] != '\0');
		return;
	}
	tn_assert(t.content_bytes <= t.capacity && t.capacity <= segment_bytes - TCTL_TRAILER_BYTES);
	tn_assert(t.content < TCTL_CONTENT_CNT);
	tctl_trailer_encode(&t, page);
	tn_assert(tctl_trailer_decode(page, segment_bytes, &again, err) == TN_OK);
	tn_assert(again.capacity == t.capacity && again.sequence == t.sequence);
	for (unsigned i = 0; i < TCTL_VERDICTS; i++)
		tn_assert(t.verdicts[i].result < TCTL_PUT_CNT && again.verdicts[i].nonce == t.verdicts[i].nonce &&
			  again.verdicts[i].result == t.verdicts[i].result);
}

static void notice(const uint8_t *data, size_t len)
{
	uint8_t out[TCTL_PUT_NOTICE_BYTES];
	struct tctl_put_notice n;
	if (!tctl_put_notice_decode(data, len, &n))
		return;
	tctl_put_notice_encode(&n, out);
	tn_assert(n.nonce != 0 && len == sizeof out && memcmp(out, data, len) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	if (len < 2)
		return 0;
	trailer(data + 2, len - 2, (data[0] & 1) != 0, TCTL_TRAILER_BYTES * (1 + (uint64_t)(data[1] & 7)));
	notice(data + 2, len - 2);
	return 0;
}
