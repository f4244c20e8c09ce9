/* SPDX-License-Identifier: Apache-2.0
 * The attach-message check: input = {who sent it, number of descriptors, datagram}. What it accepts has exactly its
 * type's size, terminated strings and arrays that lie inside the datagram. */
#include <string.h>

#include "common/assert.h"
#include "shm-ring/handshake.h"
#include "tests/fuzz/fuzz.h"

static void use_publish(const struct shr_msg *m)
{
	struct shr_publish_view v;
	shr_msg_publish_view(m, &v);
	tn_assert(v.fixed->buffer_cnt >= 1 && v.fixed->buffer_cnt <= SHR_SEGMENT_BUFFERS_MAX);
	tn_assert(v.fixed->peer_cnt <= SHR_SEGMENT_PEERS_MAX);
	tn_assert(strlen(v.fixed->name) < TN_NAME_MAX);
	for (uint32_t i = 0; i < v.fixed->buffer_cnt; i++)
		tn_assert(v.buffers[i].offset + v.buffers[i].length > v.buffers[i].offset);
	for (uint32_t i = 0; i < v.fixed->peer_cnt; i++)
		tn_assert(strlen(v.peers[i]) < TN_NAME_MAX);
	tn_assert((const uint8_t *)(v.peers + v.fixed->peer_cnt) == m->bytes + m->len);
}

static void use_note(const struct shr_msg *m)
{
	const struct shr_msg_note *n = shr_msg_body_ro(m);
	tn_assert(strlen(n->from) < TN_NAME_MAX && strlen(n->segment) < TN_NAME_MAX);
	tn_assert((const uint8_t *)(n + 1) + n->payload_len == m->bytes + m->len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static struct shr_msg m;
	if (len < 2)
		return 0;
	enum shr_msg_from from = (data[0] & 1) != 0 ? SHR_FROM_DATAPLANE : SHR_FROM_APPLICATION;
	struct shr_msg_hdr h;
	/* Judged where it lies, unaligned: the check must not care. */
	if (shr_msg_check(data + 2, len - 2, data[1], from, &h) != TN_OK)
		return 0;
	tn_assert(h.length == len - 2 && h.length <= SHR_MSG_MAX && data[1] <= SHR_MSG_FDS_MAX);
	tn_assert(((h.type & (SHR_MSG_REPLY | SHR_MSG_EVENT)) != 0) == (from == SHR_FROM_DATAPLANE));
	memcpy(m.bytes, data + 2, len - 2);
	m.len = (uint32_t)(len - 2);
	if (h.status != TN_OK)
		tn_assert(h.length == sizeof h);
	else if (h.type == SHR_MSG_PUBLISH)
		use_publish(&m);
	else if (h.type == SHR_MSG_NOTE)
		use_note(&m);
	return 0;
}
