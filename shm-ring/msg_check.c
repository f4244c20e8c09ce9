/* SPDX-License-Identifier: Apache-2.0
 * The pure check of attach messages: a table of types with who sends them, exact body size and number of descriptors,
 * and one small body check where a type has strings, enums, flags or trailing arrays. No system call, no state; any
 * thread; fuzzed. */
#include "shm-ring/handshake.h"

#include <string.h>

#include "common/bits.h"

#define HDR sizeof(struct shr_msg_hdr)
#define ACCESS_ALL ((uint32_t)(SHR_ACCESS_SAME_UID | SHR_ACCESS_LOCAL_ALL | SHR_ACCESS_PEERS))

TN_STATIC_ASSERT(HDR % 8 == 0, "bodies stay 8-byte aligned");
TN_STATIC_ASSERT(HDR + sizeof(struct shr_msg_publish) + SHR_SEGMENT_BUFFERS_MAX * sizeof(struct shr_msg_buffer) +
			 SHR_SEGMENT_PEERS_MAX * TN_NAME_MAX <= SHR_MSG_MAX, "the largest PUBLISH fits a message");
TN_STATIC_ASSERT(HDR + sizeof(struct shr_msg_note) + SHR_NOTE_BYTES <= SHR_MSG_MAX, "the largest NOTE fits a message");

/* The string ends inside its field and nothing follows the end. */
static bool string_ends(const char *s, size_t room)
{
	const char *end = memchr(s, '\0', room);
	return end != NULL && tn_all_zero(end, room - (size_t)(end - s));
}

uint32_t shr_msg_publish_bytes(uint32_t buffer_cnt, uint32_t peer_cnt)
{
	if (buffer_cnt > SHR_SEGMENT_BUFFERS_MAX || peer_cnt > SHR_SEGMENT_PEERS_MAX)
		return 0;
	return (uint32_t)(sizeof(struct shr_msg_publish) + buffer_cnt * sizeof(struct shr_msg_buffer)) +
	       peer_cnt * TN_NAME_MAX;
}

uint32_t shr_msg_note_bytes(uint32_t payload_len)
{
	return payload_len > SHR_NOTE_BYTES ? 0 : (uint32_t)sizeof(struct shr_msg_note) + payload_len;
}

void shr_msg_publish_view(const struct shr_msg *m, struct shr_publish_view *out)
{
	const uint8_t *b = shr_msg_body_ro(m);
	const struct shr_msg_publish *fixed = (const void *)b;
	const uint8_t *buffers = b + sizeof *fixed;
	*out = (struct shr_publish_view){
		.fixed = fixed,
		.buffers = (const void *)buffers,
		.peers = (const void *)(buffers + fixed->buffer_cnt * sizeof(struct shr_msg_buffer)),
	};
}

/* Body checks get exactly the body, whose fixed part is complete. They copy it: the buffer may be unaligned. */

static bool check_hello(const uint8_t *body, size_t len)
{
	struct shr_msg_hello b;
	(void)len;
	memcpy(&b, body, sizeof b);
	/* features and reserved may carry what a later minor version says; the smaller version ignores it. */
	return string_ends(b.app, sizeof b.app);
}

static bool check_qp_create(const uint8_t *body, size_t len)
{
	struct shr_msg_qp_create b;
	(void)len;
	memcpy(&b, body, sizeof b);
	return tn_all_zero(b.reserved, sizeof b.reserved);
}

static bool check_mem_register(const uint8_t *body, size_t len)
{
	struct shr_msg_mem_register b;
	(void)len;
	memcpy(&b, body, sizeof b);
	bool rights = b.rights == SHR_RIGHT_STAGING || (b.rights & ~SHR_RIGHT_ALL) == 0;
	return b.length != 0 && b.offset + b.length >= b.length && rights && b.reserved == 0;
}

static bool check_mem_import(const uint8_t *body, size_t len)
{
	struct shr_msg_mem_import b;
	(void)len;
	memcpy(&b, body, sizeof b);
	return b.length != 0 && b.rights != 0 && (b.rights & ~(SHR_RIGHT_LOCAL | SHR_RIGHT_LOCAL_READ)) == 0 && b.reserved == 0;
}

static bool check_copy(const uint8_t *body, size_t len)
{
	struct shr_msg_copy b;
	(void)len;
	memcpy(&b, body, sizeof b);
	return b.length != 0 && b.offset + b.length >= b.length && b.staging_offset + b.length >= b.length && b.to_memory <= 1 &&
	       b.reserved == 0;
}

static bool check_copied(const uint8_t *body, size_t len)
{
	struct shr_msg_copied b;
	(void)len;
	memcpy(&b, body, sizeof b);
	return (b.status == TN_OK || b.status == TN_FAULT) && b.reserved == 0;
}

static bool check_publish(const uint8_t *body, size_t len)
{
	struct shr_msg_publish b;
	memcpy(&b, body, sizeof b);
	/* Bounded counts first: only then is their product a size. */
	uint32_t want = shr_msg_publish_bytes(b.buffer_cnt, b.peer_cnt);
	if (want == 0 || want != len || b.buffer_cnt == 0)
		return false;
	if (!string_ends(b.name, sizeof b.name) || tn_id128_is_zero(&b.publication) || (b.access & ~ACCESS_ALL) != 0 ||
	    b.reserved != 0)
		return false;
	const uint8_t *p = body + sizeof b;
	for (uint32_t i = 0; i < b.buffer_cnt; i++, p += sizeof(struct shr_msg_buffer)) {
		struct shr_msg_buffer buf;
		memcpy(&buf, p, sizeof buf);
		if (buf.length == 0 || buf.offset + buf.length < buf.length || (buf.rights & ~SHR_RIGHT_ALL) != 0 ||
		    buf.reserved != 0)
			return false;
	}
	for (uint32_t i = 0; i < b.peer_cnt; i++, p += TN_NAME_MAX)
		if (!string_ends((const char *)p, TN_NAME_MAX))
			return false;
	return true;
}

static bool check_open(const uint8_t *body, size_t len)
{
	struct shr_msg_open b;
	(void)len;
	memcpy(&b, body, sizeof b);
	return string_ends(b.ref, sizeof b.ref);
}

static bool check_policy_find(const uint8_t *body, size_t len)
{
	struct shr_msg_policy_find b;
	(void)len;
	memcpy(&b, body, sizeof b);
	return b.name[0] != '\0' && string_ends(b.name, sizeof b.name);
}

static bool check_note_ack(const uint8_t *body, size_t len)
{
	struct shr_msg_note_ack b;
	(void)len;
	memcpy(&b, body, sizeof b);
	return b.count != 0 && b.reserved == 0;
}

static bool check_note(const uint8_t *body, size_t len)
{
	struct shr_msg_note b;
	memcpy(&b, body, sizeof b);
	uint32_t want = shr_msg_note_bytes(b.payload_len);
	return want != 0 && want == len && string_ends(b.from, sizeof b.from) &&
	       string_ends(b.segment, sizeof b.segment) && b.reserved == 0;
}

static bool check_segment_lost(const uint8_t *body, size_t len)
{
	struct shr_msg_segment_lost b;
	(void)len;
	memcpy(&b, body, sizeof b);
	return b.id != 0 && b.status < TN_OK && b.reserved == 0;
}

struct shape {
	uint16_t type;
	enum shr_msg_from from;
	uint16_t body;  /* exact bytes; of the fixed part when `grows` */
	bool grows;     /* a trailing array follows; the body check computes the exact size */
	uint8_t fds;    /* exact number */
	bool (*check)(const uint8_t *body, size_t len); /* NULL = any content */
};

#define REPLY(t) ((t) | SHR_MSG_REPLY)
static const struct shape shapes[] = {
	{ SHR_MSG_HELLO, SHR_FROM_APPLICATION, sizeof(struct shr_msg_hello), false, 0, check_hello },
	{ SHR_MSG_QP_CREATE, SHR_FROM_APPLICATION, sizeof(struct shr_msg_qp_create), false, 0, check_qp_create },
	{ SHR_MSG_QP_DESTROY, SHR_FROM_APPLICATION, sizeof(struct shr_msg_id), false, 0, NULL },
	{ SHR_MSG_MEM_REGISTER, SHR_FROM_APPLICATION, sizeof(struct shr_msg_mem_register), false, 1, check_mem_register },
	{ SHR_MSG_MEM_UNREGISTER, SHR_FROM_APPLICATION, sizeof(struct shr_msg_id), false, 0, NULL },
	{ SHR_MSG_PUBLISH, SHR_FROM_APPLICATION, sizeof(struct shr_msg_publish), true, 0, check_publish },
	{ SHR_MSG_WITHDRAW, SHR_FROM_APPLICATION, sizeof(struct shr_msg_id), false, 0, NULL },
	{ SHR_MSG_OPEN, SHR_FROM_APPLICATION, sizeof(struct shr_msg_open), false, 0, check_open },
	{ SHR_MSG_CLOSE, SHR_FROM_APPLICATION, sizeof(struct shr_msg_id), false, 0, NULL },
	{ SHR_MSG_NOTE_ACK, SHR_FROM_APPLICATION, sizeof(struct shr_msg_note_ack), false, 0, check_note_ack },
	{ SHR_MSG_BYE, SHR_FROM_APPLICATION, 0, false, 0, NULL },
	{ SHR_MSG_POLICY_FIND, SHR_FROM_APPLICATION, sizeof(struct shr_msg_policy_find), false, 0, check_policy_find },
	{ SHR_MSG_MEM_IMPORT, SHR_FROM_APPLICATION, sizeof(struct shr_msg_mem_import), false, 0, check_mem_import },
	{ SHR_MSG_COPIED, SHR_FROM_APPLICATION, sizeof(struct shr_msg_copied), false, 0, check_copied },
	{ REPLY(SHR_MSG_HELLO), SHR_FROM_DATAPLANE, sizeof(struct shr_msg_hello_reply), false, 0, NULL },
	{ REPLY(SHR_MSG_QP_CREATE), SHR_FROM_DATAPLANE, sizeof(struct shr_msg_qp_create_reply), false, 2, NULL },
	{ REPLY(SHR_MSG_QP_DESTROY), SHR_FROM_DATAPLANE, 0, false, 0, NULL },
	{ REPLY(SHR_MSG_MEM_REGISTER), SHR_FROM_DATAPLANE, sizeof(struct shr_msg_id), false, 0, NULL },
	{ REPLY(SHR_MSG_MEM_UNREGISTER), SHR_FROM_DATAPLANE, 0, false, 0, NULL },
	{ REPLY(SHR_MSG_PUBLISH), SHR_FROM_DATAPLANE, sizeof(struct shr_msg_id), false, 0, NULL },
	{ REPLY(SHR_MSG_WITHDRAW), SHR_FROM_DATAPLANE, 0, false, 0, NULL },
	{ REPLY(SHR_MSG_OPEN), SHR_FROM_DATAPLANE, sizeof(struct shr_msg_open_reply), false, 0, NULL },
	{ REPLY(SHR_MSG_CLOSE), SHR_FROM_DATAPLANE, 0, false, 0, NULL },
	{ REPLY(SHR_MSG_BYE), SHR_FROM_DATAPLANE, 0, false, 0, NULL },
	{ REPLY(SHR_MSG_POLICY_FIND), SHR_FROM_DATAPLANE, sizeof(struct shr_msg_id), false, 0, NULL },
	{ REPLY(SHR_MSG_MEM_IMPORT), SHR_FROM_DATAPLANE, sizeof(struct shr_msg_id), false, 0, NULL },
	{ SHR_MSG_NOTE, SHR_FROM_DATAPLANE, sizeof(struct shr_msg_note), true, 0, check_note },
	{ SHR_MSG_SHUTDOWN, SHR_FROM_DATAPLANE, 0, false, 0, NULL },
	{ SHR_MSG_SEGMENT_LOST, SHR_FROM_DATAPLANE, sizeof(struct shr_msg_segment_lost), false, 0, check_segment_lost },
	{ SHR_MSG_COPY, SHR_FROM_DATAPLANE, sizeof(struct shr_msg_copy), false, 0, check_copy },
};

static const struct shape *find_shape(uint16_t type, enum shr_msg_from from)
{
	for (size_t i = 0; i < TN_ARRAY_LEN(shapes); i++)
		if (shapes[i].type == type && shapes[i].from == from)
			return &shapes[i];
	return NULL;
}

tn_status shr_msg_check(const void *buf, size_t len, uint32_t fd_cnt, enum shr_msg_from from, struct shr_msg_hdr *hdr_out)
{
	struct shr_msg_hdr h;
	if (len < HDR || len > SHR_MSG_MAX)
		return TN_CLIENT_BROKEN;
	memcpy(&h, buf, HDR);
	const struct shape *sh = find_shape(h.type, from);
	if (h.magic != SHR_MSG_MAGIC || h.reserved != 0 || h.length != len || sh == NULL)
		return TN_CLIENT_BROKEN;
	size_t body = len - HDR;
	bool reply = (h.type & SHR_MSG_REPLY) != 0;
	if (reply && h.status != TN_OK) {
		if (body != 0 || fd_cnt != 0)
			return TN_CLIENT_BROKEN;
		*hdr_out = h;
		return TN_OK;
	}
	if (!reply && (h.status != 0 || h.detail != 0))
		return TN_CLIENT_BROKEN;
	if (fd_cnt != sh->fds || (sh->grows ? body < sh->body : body != sh->body))
		return TN_CLIENT_BROKEN;
	if (sh->check != NULL && !sh->check((const uint8_t *)buf + HDR, body))
		return TN_CLIENT_BROKEN;
	*hdr_out = h;
	return TN_OK;
}
