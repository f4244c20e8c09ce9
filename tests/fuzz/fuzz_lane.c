/* SPDX-License-Identifier: Apache-2.0
 * A hostile peer against the state machines of both ends, over memory links: the input is a script of what it sends,
 * how its bytes are cut, when it hangs up and how time passes. Promises: nothing outside the published range (server)
 * or the READ's range (client) is ever written, ended operations touch nothing, everything ends, counts come back to
 * zero. */
#include <stdlib.h>
#include <string.h>

#include "common/assert.h"
#include "common/clock.h"
#include "tests/fuzz/fuzz.h"
#include "tests/unit/stream/mem_net.h"
#include "tests/unit/stream/rig.h"

#define MEMORY 16384u
#define FIRST 4096u  /* the part that may be touched: [FIRST, FIRST + PART) */
#define PART 4096u
#define FILL 0x3c
#define LINKS 3
#define ATTEMPTS 6

struct script { const uint8_t *p; size_t left; };

static uint8_t next(struct script *s)
{
	if (s->left == 0)
		return 0;
	s->left--;
	return *s->p++;
}

static void check_memory(const struct rig_memory *m)
{
	tn_assert(rig_guards_intact(m));
	for (size_t i = 0; i < MEMORY; i++)
		tn_assert(m->base[i] == FILL || (i >= FIRST && i < FIRST + PART));
}

static void pass_time(struct script *s)
{
	rig.virtual_ns += (uint64_t)next(s) * 20 * TN_NS_PER_MS;
	rig_steps(2);
}

/* ---- against the accepting end ---- */

static int dial(struct script *s)
{
	struct dp_hello *h = calloc(1, sizeof *h);
	*h = (struct dp_hello){ .version_min = 1, .version_max = 1, .path_epoch = 1u + (next(s) & 1), .worker = 1,
	                        .frame_bytes = DP_FRAME_BYTES_MIN, .conn_cnt = &rig.conn_cnt };
	h->sender_session.b[0] = 1 + (next(s) & 1);
	h->sender.b[0] = 1;
	h->lane = next(s) & 1 ? DP_HELLO_LANE_CONTROL : 0;
	strcpy(h->peer_name, "fuzz");
	int link = mem_open();
	tn_fetch_add32(&rig.conn_cnt, 1);
	rig.b.t->ops->lane_adopt(rig.b.t, link, h);
	return link;
}

/* A request that is right but for what the script spoils. */
static void send_request(struct script *s, int link, uint64_t *id, const struct dp_segment *seg)
{
	static const uint64_t lengths[] = { 1, 48, 100, 512, 4096, 4097, 0, UINT64_MAX };
	uint8_t b[DP_FRAME_REQ_BYTES];
	uint8_t spoil = next(s);
	struct dp_frame_req q = { .op = 1 + next(s) % 4, .id = ++*id, .registration = seg->buffers[0].registration };
	q.offset = next(s) * 16u;
	q.length = lengths[next(s) % TN_ARRAY_LEN(lengths)];
	if (spoil & 1)
		q.offset = UINT64_MAX - next(s);
	if (spoil & 2)
		q.registration += next(s);
	dp_frame_req_encode(&q, b);
	if (spoil >= 0xf0)
		b[next(s) % sizeof b] ^= next(s);
	mem_push(link, 0, b, sizeof b);
}

static void send_bytes(struct script *s, int link, int end)
{
	uint8_t bytes[4096];
	size_t len = (size_t)next(s) * 16;
	memset(bytes, next(s), sizeof bytes);
	mem_push(link, end, bytes, len);
}

static void send_raw(struct script *s, int link, int end)
{
	size_t len = next(s) % 64u;
	len = len < s->left ? len : s->left;
	mem_push(link, end, s->p, len);
	s->p += len;
	s->left -= len;
}

static void swallow(int link, int end)
{
	uint8_t bytes[1024];
	while (mem_pull(link, end, bytes, sizeof bytes) > 0) {}
}

static void server_step(struct script *s, int *link, uint64_t *id, struct dp_segment *seg)
{
	static const size_t cuts[] = { 0, 1, 7, 48, 49, 1000 };
	unsigned k = next(s) % LINKS;
	tn_handle h = seg->handle;
	if (link[k] < 0 || !mem_is_open(link[k], 1)) {
		link[k] = dial(s);
		id[k] = 0;
		rig_steps(1);
		return;
	}
	switch (next(s) % 10) {
	case 0: case 1: case 2: send_request(s, link[k], &id[k], seg); break;
	case 3: case 4: send_bytes(s, link[k], 0); break;
	case 5: send_raw(s, link[k], 0); break;
	case 6: mem.read_max = cuts[next(s) % 6]; mem.write_max = cuts[next(s) % 6]; break;
	case 7: swallow(link[k], 0); break;
	case 8: pass_time(s); break;
	default:
		if (next(s) & 1) {
			mem_hang_up(link[k], 0, next(s) & 1);
			link[k] = -1;
		} else {
			rig.b.t->ops->segment_revoke(rig.b.t, h);
			(void)rig.b.t->ops->segment_busy(rig.b.t, h);
		}
	}
	rig_steps(1 + next(s) % 3);
}

static void fuzz_server(struct script *s)
{
	int link[LINKS] = { -1, -1, -1 };
	uint64_t id[LINKS] = { 0 };
	struct rig_memory m = rig_memory(MEMORY, FILL);
	struct dp_segment *seg =
		rig_publish(&rig.b, 0, &m, 1, SHR_RIGHT_REMOTE_READ | SHR_RIGHT_REMOTE_WRITE, SHR_ACCESS_PEERS);
	seg->buffers[0].base = m.base + FIRST;
	seg->buffers[0].bytes = PART;
	rig.b.verdict_later = next(s) & 1;
	rig.b.note_in_status = TN_AGAIN; /* notices go nowhere: the rig keeps only a few */
	while (s->left > 0)
		server_step(s, link, id, seg);
	check_memory(&m);
	struct tn_id128 none = { { 0 } };
	rig.b.t->ops->fence(rig.b.t, 0, &none); /* the index in the HELLO */
	tn_assert(!rig.b.t->ops->segment_busy(rig.b.t, seg->handle));
	tn_assert(tn_load_relaxed32(&rig.conn_cnt) == 0 && tn_list_empty(&rig_stream(&rig.b)->live));
	rig_memory_free(&m);
}

/* ---- against the connecting end ---- */

static void greet(struct script *s, int link)
{
	uint8_t b[DP_HELLO_ANSWER_BYTES];
	struct dp_hello_answer a = { .version = 1, .session = rig.b.session, .frame_bytes = DP_FRAME_BYTES_MIN,
	                             .path_epoch = rig_stream(&rig.a)->paths[0].epoch };
	uint8_t spoil = next(s);
	a.status = spoil < 8 ? spoil : 0;
	dp_hello_answer_encode(&a, b);
	if (spoil > 0xf0)
		b[next(s) % sizeof b] ^= next(s);
	swallow(link, 1);
	mem_push(link, 1, b, sizeof b);
}

static void send_answer(struct script *s, int link, uint64_t *id)
{
	uint8_t b[DP_FRAME_RSP_BYTES];
	uint8_t spoil = next(s);
	struct dp_frame_rsp r = { .id = ++*id, .status = spoil & 1 ? next(s) % 12 : 0 };
	r.committed = r.status == 0 ? 64u * (1u + next(s) % 64u) : 0;
	dp_frame_rsp_encode(&r, b);
	if (spoil >= 0xf8)
		b[next(s) % sizeof b] ^= next(s);
	mem_push(link, 1, b, sizeof b);
}

struct client {
	struct rig_attempt ra[ATTEMPTS];
	bool live[ATTEMPTS];
	struct rig_memory memory;
	struct dp_remote *remote;
};

static void reap(struct client *c)
{
	for (unsigned i = 0; i < ATTEMPTS; i++) {
		if (!c->live[i] || !c->ra[i].done)
			continue;
		tn_assert(c->ra[i].done_cnt == 1);
		c->live[i] = false;
	}
}

static void client_step(struct script *s, struct client *c, int *link, uint64_t *id)
{
	unsigned i = next(s) % ATTEMPTS;
	if (*link < 0 || !mem_is_open(*link, 0)) {
		*link = mem_next_unaccepted();
		if (*link >= 0) {
			mem.link[*link].accepted = true;
			*id = 0;
			greet(s, *link);
		}
	}
	switch (next(s) % 9) {
	case 0: case 1:
		if (c->live[i])
			break;
		rig_attempt(&c->ra[i], next(s) & 1, c->remote, 0, c->memory.base + FIRST, 64u * (1u + next(s) % 64u));
		c->live[i] = rig_submit(&c->ra[i]) == TN_OK;
		break;
	case 2: case 3: if (*link >= 0) send_answer(s, *link, id); break;
	case 4: if (*link >= 0) send_bytes(s, *link, 1); break;
	case 5: if (*link >= 0) send_raw(s, *link, 1); break;
	case 6: pass_time(s); break;
	case 7: if (c->live[i]) rig.a.t->ops->cancel(rig.a.t, &c->ra[i].a); break;
	default:
		if (*link >= 0 && next(s) & 1) {
			mem_hang_up(*link, 1, next(s) & 1);
			*link = -1;
		} else {
			mem.read_max = next(s);
		}
	}
	rig_steps(1 + next(s) % 3);
	reap(c);
}

static void fuzz_client(struct script *s)
{
	static struct client c;
	int link = -1;
	uint64_t id = 0;
	memset(&c, 0, sizeof c);
	c.memory = rig_memory(MEMORY, FILL);
	struct rig_memory far = rig_memory(MEMORY, 0);
	c.remote = rig_remote(rig_publish(&rig.b, 0, &far, 1, SHR_RIGHT_REMOTE_READ, SHR_ACCESS_PEERS));
	while (s->left > 0)
		client_step(s, &c, &link, &id);
	rig.virtual_ns += 40 * TN_NS_PER_S;
	for (unsigned i = 0; i < ATTEMPTS; i++) /* past every deadline the worker cancels; all must end by then */
		if (c.live[i] && !c.ra[i].done)
			rig.a.t->ops->cancel(rig.a.t, &c.ra[i].a);
	rig_steps(3);
	rig.virtual_ns += TN_NS_PER_S;
	rig_steps(3);
	reap(&c);
	for (unsigned i = 0; i < ATTEMPTS; i++)
		tn_assert(!c.live[i]);
	check_memory(&c.memory);
	memset(c.memory.base, FILL, MEMORY); /* nothing is in flight any more: nothing may be written */
	if (link >= 0 && mem_is_open(link, 0)) {
		uint8_t bytes[2048];
		memset(bytes, 0x99, sizeof bytes);
		mem_push(link, 1, bytes, sizeof bytes);
		rig_steps(3);
	}
	for (size_t i = 0; i < MEMORY; i++)
		tn_assert(c.memory.base[i] == FILL);
	tn_assert(rig_stream(&rig.a)->admitted == 0);
	free(c.remote);
	rig_memory_free(&c.memory);
	rig_memory_free(&far);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct script s = { data, len };
	struct dp_stream_cfg cfg = rig_cfg();
	if (len < 2 || len > 4096)
		return 0;
	cfg.frame_bytes = DP_FRAME_BYTES_MIN;
	cfg.lanes_per_peer = 1;
	rig_start(&cfg);
	rig.manual = true;
	rig.virtual_time = true;
	rig.virtual_ns = TN_NS_PER_S;
	if (next(&s) & 1)
		fuzz_server(&s);
	else
		fuzz_client(&s);
	rig_stop();
	return 0;
}
