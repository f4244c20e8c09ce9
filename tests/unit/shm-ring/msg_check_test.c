/* SPDX-License-Identifier: Apache-2.0
 * The pure message check: direction, exact sizes, descriptor counts, strings, flags, trailing arrays. */
#include "shm-ring/handshake.h"

#include <string.h>

#include "tests/unit/cu.h"

static struct shr_msg m;
static struct shr_msg_hdr h;

#define JUDGE(fds, from) shr_msg_check(m.bytes, m.len, fds, from, &h)
#define GOOD(fds, from) CU_ASSERT_EQUAL(JUDGE(fds, from), TN_OK)
#define BAD(fds, from) CU_ASSERT_EQUAL(JUDGE(fds, from), TN_CLIENT_BROKEN)
#define APP SHR_FROM_APPLICATION
#define DP SHR_FROM_DATAPLANE

static void sizes_and_directions(void)
{
	static const struct { uint16_t type; uint32_t body; uint32_t fds; enum shr_msg_from from; } plain[] = {
		{ SHR_MSG_HELLO, 64, 0, APP }, { SHR_MSG_QP_CREATE, 32, 0, APP }, { SHR_MSG_QP_DESTROY, 8, 0, APP },
		{ SHR_MSG_MEM_UNREGISTER, 8, 0, APP }, { SHR_MSG_WITHDRAW, 8, 0, APP }, { SHR_MSG_OPEN, 144, 0, APP },
		{ SHR_MSG_CLOSE, 8, 0, APP }, { SHR_MSG_BYE, 0, 0, APP },
		{ SHR_MSG_HELLO | SHR_MSG_REPLY, 96, 0, DP }, { SHR_MSG_QP_CREATE | SHR_MSG_REPLY, 32, 2, DP },
		{ SHR_MSG_QP_DESTROY | SHR_MSG_REPLY, 0, 0, DP }, { SHR_MSG_MEM_REGISTER | SHR_MSG_REPLY, 8, 0, DP },
		{ SHR_MSG_PUBLISH | SHR_MSG_REPLY, 8, 0, DP }, { SHR_MSG_OPEN | SHR_MSG_REPLY, 48, 0, DP },
		{ SHR_MSG_BYE | SHR_MSG_REPLY, 0, 0, DP }, { SHR_MSG_POLICY_FIND | SHR_MSG_REPLY, 8, 0, DP },
		{ SHR_MSG_MEM_IMPORT | SHR_MSG_REPLY, 8, 0, DP }, { SHR_MSG_COPIED, 16, 0, APP }, { SHR_MSG_SHUTDOWN, 0, 0, DP },
	};
	for (size_t i = 0; i < TN_ARRAY_LEN(plain); i++) {
		(void)shr_msg_begin(&m, plain[i].type, 5, plain[i].body);
		GOOD(plain[i].fds, plain[i].from);
		CU_ASSERT_EQUAL(h.correlation, 5);
		BAD(plain[i].fds, plain[i].from == APP ? DP : APP);
		BAD(plain[i].fds + 1, plain[i].from);
		(void)shr_msg_begin(&m, plain[i].type, 5, plain[i].body + 8);
		BAD(plain[i].fds, plain[i].from);
		if (plain[i].body != 0) {
			(void)shr_msg_begin(&m, plain[i].type, 5, plain[i].body - 1);
			BAD(plain[i].fds, plain[i].from);
		}
	}
}

static void headers(void)
{
	(void)shr_msg_begin(&m, SHR_MSG_BYE, 1, 0);
	GOOD(0, APP);
	m.hdr.magic ^= 1;
	BAD(0, APP);
	m.hdr.magic ^= 1;
	m.hdr.length++;
	BAD(0, APP);
	m.hdr.length--;
	m.hdr.reserved = 1;
	BAD(0, APP);
	m.hdr.reserved = 0;
	m.hdr.status = TN_BUSY; /* a request has no status */
	BAD(0, APP);
	m.hdr.status = 0;
	for (m.len = 0; m.len < sizeof m.hdr; m.len++)
		BAD(0, APP);
	static const uint16_t unknown[] = { 0, 12, 100, SHR_MSG_EVENT | 4, SHR_MSG_NOTE_ACK | SHR_MSG_REPLY, 0xffff };
	for (size_t i = 0; i < TN_ARRAY_LEN(unknown); i++) {
		(void)shr_msg_begin(&m, unknown[i], 1, 0);
		BAD(0, APP);
		BAD(0, DP);
	}
}

static void failures_are_bare(void)
{
	shr_msg_begin_failure(&m, SHR_MSG_QP_CREATE, 9, TN_LIMIT, 24);
	GOOD(0, DP);
	CU_ASSERT(h.status == TN_LIMIT && h.detail == 24 && h.type == (SHR_MSG_QP_CREATE | SHR_MSG_REPLY));
	BAD(2, DP);
	BAD(0, APP);
	(void)shr_msg_begin(&m, SHR_MSG_QP_CREATE | SHR_MSG_REPLY, 9, sizeof(struct shr_msg_qp_create_reply));
	m.hdr.status = TN_LIMIT;
	BAD(2, DP);
	BAD(0, DP);
}

static void strings_end(void)
{
	struct shr_msg_hello *hello = shr_msg_begin(&m, SHR_MSG_HELLO, 1, sizeof *hello);
	memset(hello->app, 'a', sizeof hello->app);
	BAD(0, APP);
	hello->app[31] = '\0';
	GOOD(0, APP);
	hello->app[3] = '\0'; /* bytes behind the end */
	BAD(0, APP);
	struct shr_msg_open *o = shr_msg_begin(&m, SHR_MSG_OPEN, 1, sizeof *o);
	memset(o->ref, 'r', sizeof o->ref);
	BAD(0, APP);
}

static void registration(void)
{
	struct shr_msg_mem_register *r = shr_msg_begin(&m, SHR_MSG_MEM_REGISTER, 1, sizeof *r);
	*r = (struct shr_msg_mem_register){ .offset = 4096, .length = 8192, .rights = SHR_RIGHT_ALL };
	GOOD(1, APP);
	BAD(0, APP);
	BAD(2, APP);
	r->rights = SHR_RIGHT_STAGING << 1;
	BAD(1, APP);
	r->rights = 0;
	r->offset = UINT64_MAX - 8190;
	BAD(1, APP);
	r->offset = 0;
	r->length = 0;
	BAD(1, APP);
	struct shr_msg_note_ack *a = shr_msg_begin(&m, SHR_MSG_NOTE_ACK, 0, sizeof *a);
	BAD(0, APP);
	a->count = 3;
	GOOD(0, APP);
}

static struct shr_msg_publish *publish(uint32_t buffers, uint32_t peers)
{
	struct shr_msg_publish *p = shr_msg_begin(&m, SHR_MSG_PUBLISH, 1, shr_msg_publish_bytes(buffers, peers));
	memcpy(p->name, "weights", 8);
	p->publication.b[15] = 1;
	p->buffer_cnt = buffers;
	p->peer_cnt = peers;
	struct shr_publish_view v;
	shr_msg_publish_view(&m, &v);
	for (uint32_t i = 0; i < buffers; i++)
		((struct shr_msg_buffer *)(uintptr_t)&v.buffers[i])->length = 4096;
	for (uint32_t i = 0; i < peers; i++)
		memcpy((char *)(uintptr_t)v.peers[i], "host-b", 7);
	return p;
}

static void publish_arrays(void)
{
	struct shr_publish_view v;
	struct shr_msg_publish *p = publish(SHR_SEGMENT_BUFFERS_MAX, SHR_SEGMENT_PEERS_MAX);
	GOOD(0, APP);
	shr_msg_publish_view(&m, &v);
	CU_ASSERT_STRING_EQUAL(v.peers[31], "host-b");
	CU_ASSERT_EQUAL(v.buffers[63].length, 4096);
	CU_ASSERT_PTR_EQUAL(v.peers[31] + TN_NAME_MAX, m.bytes + m.len);
	CU_ASSERT_EQUAL(shr_msg_publish_bytes(65, 0), 0);
	CU_ASSERT_EQUAL(shr_msg_publish_bytes(1, 33), 0);
	CU_ASSERT_EQUAL(shr_msg_publish_bytes(UINT32_MAX, UINT32_MAX), 0);
	/* Counts that do not fit the length, also by products that would wrap 32 bits. */
	static const uint32_t counts[] = { 0, 63, 65, 0x10000000u, 0x08000000u, UINT32_MAX };
	for (size_t i = 0; i < TN_ARRAY_LEN(counts); i++) {
		p = publish(64, 1);
		p->buffer_cnt = counts[i];
		BAD(0, APP);
		p = publish(64, 1);
		p->peer_cnt = counts[i];
		BAD(0, APP);
	}
	p = publish(0, 0);
	BAD(0, APP);
	p = publish(1, 0);
	GOOD(0, APP);
	p->access = 8;
	BAD(0, APP);
	p = publish(1, 0);
	p->reserved = 1;
	BAD(0, APP);
	p = publish(2, 1);
	shr_msg_publish_view(&m, &v);
	memset((char *)(uintptr_t)v.peers[0], 'p', TN_NAME_MAX);
	BAD(0, APP);
	p = publish(2, 1);
	struct shr_msg_buffer *b = (struct shr_msg_buffer *)(p + 1);
	b[1].length = 0;
	BAD(0, APP);
	b[1].length = 2;
	b[1].offset = UINT64_MAX;
	BAD(0, APP);
	b[1].offset = 0;
	b[1].rights = 16;
	BAD(0, APP);
}

static void notes(void)
{
	static const uint32_t lens[] = { 0, 1, 7, SHR_NOTE_BYTES };
	for (size_t i = 0; i < TN_ARRAY_LEN(lens); i++) {
		struct shr_msg_note *n = shr_msg_begin(&m, SHR_MSG_NOTE, 0, shr_msg_note_bytes(lens[i]));
		n->payload_len = lens[i];
		GOOD(0, DP);
		n->payload_len++;
		BAD(0, DP);
		n->payload_len = UINT32_MAX - 143;
		BAD(0, DP);
	}
	CU_ASSERT_EQUAL(shr_msg_note_bytes(SHR_NOTE_BYTES + 1), 0);
}

static void losses(void)
{
	struct shr_msg_segment_lost *l = shr_msg_begin(&m, SHR_MSG_SEGMENT_LOST, 0, sizeof *l);

	*l = (struct shr_msg_segment_lost){ .id = 5, .status = TN_CANCELED };
	GOOD(0, DP);
	BAD(0, APP);
	l->reserved = 1;
	BAD(0, DP);
	*l = (struct shr_msg_segment_lost){ .id = 5, .status = TN_OK };
	BAD(0, DP);
	*l = (struct shr_msg_segment_lost){ .id = 0, .status = TN_CANCELED };
	BAD(0, DP);
}

static void imports(void)
{
	struct shr_msg_mem_import *i = shr_msg_begin(&m, SHR_MSG_MEM_IMPORT, 1, sizeof *i);
	BAD(0, APP); /* length 0 */
	i->length = UINT64_MAX;
	BAD(0, APP); /* no right */
	i->rights = SHR_RIGHT_LOCAL_READ;
	GOOD(0, APP);
	BAD(1, APP);
	for (uint32_t bit = 1; bit != 0; bit <<= 1) {
		i->rights = bit;
		CU_ASSERT_EQUAL(JUDGE(0, APP) == TN_OK, bit == SHR_RIGHT_LOCAL || bit == SHR_RIGHT_LOCAL_READ);
	}
	i->rights = SHR_RIGHT_LOCAL;
	i->reserved = 1;
	BAD(0, APP);

	struct shr_msg_mem_register *r = shr_msg_begin(&m, SHR_MSG_MEM_REGISTER, 1, sizeof *r);
	r->length = 4096;
	r->rights = SHR_RIGHT_STAGING;
	GOOD(1, APP);
	r->rights |= SHR_RIGHT_LOCAL; /* it stands alone */
	BAD(1, APP);

	struct shr_msg_copy *c = shr_msg_begin(&m, SHR_MSG_COPY, 0, sizeof *c);
	BAD(0, DP); /* length 0 */
	c->length = 5;
	c->offset = UINT64_MAX - 5;
	c->staging_offset = UINT64_MAX - 5;
	c->to_memory = 1;
	GOOD(0, DP);
	BAD(0, APP);
	c->offset++;
	BAD(0, DP);
	c->offset = 0;
	c->staging_offset++;
	BAD(0, DP);
	c->staging_offset = 0;
	c->to_memory = 2;
	BAD(0, DP);
	c->to_memory = 0;
	c->reserved = 1;
	BAD(0, DP);

	struct shr_msg_copied *d = shr_msg_begin(&m, SHR_MSG_COPIED, 0, sizeof *d);
	GOOD(0, APP);
	d->status = TN_FAULT;
	GOOD(0, APP);
	d->status = TN_PENDING;
	BAD(0, APP);
	d->status = TN_TIMEOUT; /* it says whether it copied, not how its request ends */
	BAD(0, APP);
	d->status = TN_OK;
	d->reserved = 1;
	BAD(0, APP);
}

TN_TEST_MAIN("shm-ring/msg_check",
	{ "exact size, descriptors and direction of each type", sizes_and_directions },
	{ "headers", headers },
	{ "a failed reply is a bare header", failures_are_bare },
	{ "strings end inside their field", strings_end },
	{ "registration and acknowledgement", registration },
	{ "PUBLISH arrays match their counts", publish_arrays },
	{ "NOTE payload matches its length", notes },
	{ "SEGMENT_LOST names what and why", losses }, { "imports and copies", imports })
