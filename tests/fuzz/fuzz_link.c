/* SPDX-License-Identifier: Apache-2.0
 * What a control plane may say about peers and segments: whatever comes in, a table entry that was accepted is
 * sound. */
#include <stdlib.h>

#include "common/assert.h"
#include "dataplane/link/wire.h"
#include "tests/fuzz/fuzz.h"

static void check_remote(const json_t *j)
{
	struct tn_id128 session = { { 1 } };
	struct dp_remote *r = NULL;
	char err[TN_ERR_TEXT] = "";
	uint64_t bytes = 0;

	if (dp_link_remote_read(j, &session, &r, err) != TN_OK) {
		tn_assert(r == NULL);
		return;
	}
	tn_assert(r->generation != 0 && r->buffer_cnt > 0 && r->buffer_cnt <= SHR_SEGMENT_BUFFERS_MAX);
	for (uint32_t i = 0; i < r->buffer_cnt; i++) {
		tn_assert(r->buffers[i].registration != 0 && r->buffers[i].bytes > 0 && r->buffers[i].segment_off == bytes);
		bytes += r->buffers[i].bytes;
	}
	tn_assert(bytes == r->bytes && bytes <= INT64_MAX);
	free(r);
}

static void check_peer(const json_t *j)
{
	char err[TN_ERR_TEXT] = "";
	struct dp_peer peer;

	if (dp_link_peer_read(j, &peer, err) != TN_OK)
		return;
	tn_assert(tn_name_valid(peer.name) && peer.of[TN_TRANSPORT_TCP].cnt <= DP_ENDPOINTS_MAX);
	tn_assert(!tn_id128_is_zero(&peer.session) && !tn_id128_is_zero(&peer.ticket));
	for (uint32_t i = 0; i < peer.of[TN_TRANSPORT_TCP].cnt; i++)
		tn_assert(peer.of[TN_TRANSPORT_TCP].at[i].ss_family == AF_INET || peer.of[TN_TRANSPORT_TCP].at[i].ss_family == AF_INET6);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	json_t *j = json_loadb((const char *)data, len, JSON_REJECT_DUPLICATES, NULL);

	check_peer(j);
	check_remote(j);
	check_peer(json_object_get(j, "peer"));
	check_remote(json_object_get(j, "segment"));
	json_decref(j);
	return 0;
}
