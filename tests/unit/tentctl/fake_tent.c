/* SPDX-License-Identifier: Apache-2.0
 * The libtent of the tests of put, get and publish. */
#include "tests/unit/tentctl/fake_tent.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/compiler.h"
#include "common/status.h"

enum { PUBLISHED_MOST = 4, BUFFERS_MOST = 4, QUEUE = 64 };

struct tent_memory { uint8_t *addr; size_t bytes; tent_memory *next; };
struct tent_published {
	char name[64];
	tent_buffer buffers[BUFFERS_MOST];
	size_t cnt;
	tent_context *owner;
};
struct tent_segment { struct tent_published *pub; unsigned epoch; tent_segment *next; };
struct tent_context { tent_memory *memories; tent_segment *segments; tent_qp *qp; };
struct tent_qp {
	tent_completion done[QUEUE];
	unsigned head, tail;
	uint64_t held_user_data;         /* 0: none */
	bool batch_failed;
};

struct fake_state fake;
static struct tent_published published[PUBLISHED_MOST];
static unsigned epoch = 1;
static char last_error[256];

void fake_reset(void)
{
	memset(&fake, 0, sizeof fake);
}

static tent_status fail(tent_status s, const char *text)
{
	snprintf(last_error, sizeof last_error, "%s: %s", text, tn_status_name((tn_status)s));
	return s;
}

const char *tent_last_error(void) { return last_error; }
const char *tent_version(void) { return "fake"; }
const char *tent_transport_name(tent_transport t)
{
	return t == TENT_TRANSPORT_TCP ? "tcp" : t == TENT_TRANSPORT_SHM ? "shm" : "any";
}

const char *tent_completion_text(const tent_completion *c, char *buf, size_t buf_bytes)
{
	snprintf(buf, buf_bytes, "fake: %s", tn_status_name((tn_status)c->status));
	return buf;
}

/* ---- context, memory ---- */

tent_status tent_open(const tent_options *opt, tent_context **ctx_out)
{
	(void)opt;
	*ctx_out = calloc(1, sizeof **ctx_out);
	return *ctx_out != NULL ? TENT_OK : fail(TENT_NO_MEMORY, "open");
}

tent_status tent_close(tent_context *ctx)
{
	if (ctx == NULL)
		return TENT_OK;
	for (unsigned i = 0; i < PUBLISHED_MOST; i++)
		if (published[i].owner == ctx)
			memset(&published[i], 0, sizeof published[i]);
	for (tent_memory *m = ctx->memories, *next; m != NULL; m = next) {
		next = m->next;
		free(m->addr);
		free(m);
	}
	for (tent_segment *s = ctx->segments, *next; s != NULL; s = next) {
		next = s->next;
		free(s);
	}
	free(ctx->qp);
	free(ctx);
	return TENT_OK;
}

tent_status tent_query(tent_context *ctx, tent_info *info)
{
	(void)ctx;
	info->state = TENT_STATE_ATTACHED;
	info->reattach_count = 0;
	return TENT_OK;
}

tent_status tent_memory_alloc(tent_context *ctx, size_t bytes, uint32_t rights, uint32_t flags, tent_memory **mem_out)
{
	tent_memory *m = calloc(1, sizeof *m);
	(void)rights, (void)flags;
	m->bytes = (bytes + 4095) / 4096 * 4096;
	m->addr = aligned_alloc(4096, m->bytes);
	memset(m->addr, 0, m->bytes);
	m->next = ctx->memories;
	ctx->memories = m;
	*mem_out = m;
	return TENT_OK;
}

void *tent_memory_addr(const tent_memory *mem) { return mem->addr; }

/* ---- segments ---- */

static struct tent_published *find(const char *name)
{
	for (unsigned i = 0; i < PUBLISHED_MOST; i++)
		if (strcmp(published[i].name, name) == 0)
			return &published[i];
	return NULL;
}

tent_status tent_segment_publish(tent_context *ctx, const char *name, const tent_buffer *buffers, size_t count,
				 const tent_access *access, tent_published **pub_out)
{
	struct tent_published *p = find("");
	(void)access;
	if (find(name) != NULL)
		return fail(TENT_EXISTS, name);
	if (p == NULL || count > BUFFERS_MOST)
		return fail(TENT_LIMIT, name);
	snprintf(p->name, sizeof p->name, "%s", name);
	memcpy(p->buffers, buffers, count * sizeof *buffers);
	p->cnt = count;
	p->owner = ctx;
	*pub_out = p;
	return TENT_OK;
}

tent_status tent_segment_open(tent_context *ctx, const char *ref, tent_segment **seg_out)
{
	const char *slash = strchr(ref, '/');
	fake.opens++;
	if (fake.opens_failed < fake.opens_fail) {
		fake.opens_failed++;
		return fail(fake.open_status, ref);
	}
	struct tent_published *p = find(slash != NULL ? slash + 1 : ref);
	if (p == NULL)
		return fail(TENT_NOT_FOUND, ref);
	if (fake.handles_stale) {
		epoch++;
		fake.handles_stale = false;
	}
	tent_segment *s = calloc(1, sizeof *s);
	*s = (tent_segment){ .pub = p, .epoch = epoch, .next = ctx->segments };
	ctx->segments = s;
	*seg_out = s;
	return TENT_OK;
}

uint64_t tent_segment_bytes(const tent_segment *seg)
{
	uint64_t bytes = 0;
	for (size_t i = 0; i < seg->pub->cnt; i++)
		bytes += seg->pub->buffers[i].bytes;
	return bytes;
}

tent_status tent_segment_close(tent_segment *seg)
{
	(void)seg; /* freed with its context */
	return TENT_OK;
}

/* ---- queue pair ---- */

tent_status tent_qp_create(tent_context *ctx, const tent_qp_options *opt, tent_qp **qp_out)
{
	(void)opt;
	ctx->qp = calloc(1, sizeof *ctx->qp);
	*qp_out = ctx->qp;
	return ctx->qp != NULL ? TENT_OK : fail(TENT_NO_MEMORY, "qp");
}

uint32_t tent_qp_outstanding(const tent_qp *qp) { return qp->tail - qp->head; }

static void complete(tent_qp *qp, const tent_completion *c)
{
	qp->done[qp->tail++ % QUEUE] = *c;
}

static tent_status copy(const tent_request *r)
{
	uint64_t off = r->segment_offset;
	if (r->segment->epoch != epoch || fake.handles_stale)
		return TENT_STALE;
	for (size_t i = 0; i < r->segment->pub->cnt; i++) {
		const tent_buffer *b = &r->segment->pub->buffers[i];
		if (off >= b->bytes) {
			off -= b->bytes;
			continue;
		}
		if (r->bytes > b->bytes - off)
			return TENT_RANGE;
		uint8_t *there = b->memory->addr + b->offset + off, *here = r->memory->addr + r->memory_offset;
		if ((b->rights & (r->opcode == TENT_WRITE ? TENT_RIGHT_REMOTE_WRITE : TENT_RIGHT_REMOTE_READ)) == 0)
			return TENT_PERMISSION;
		memcpy(r->opcode == TENT_WRITE ? there : here, r->opcode == TENT_WRITE ? here : there, r->bytes);
		return TENT_OK;
	}
	return TENT_RANGE;
}

static bool fault_hits(unsigned number)
{
	return fake.fault.at != 0 && number >= fake.fault.at && number < fake.fault.at + fake.fault.count;
}

tent_status tent_submit(tent_qp *qp, const tent_request *r, size_t count, size_t *accepted_out)
{
	tent_completion c = { .user_data = r->user_data, .bytes = r->bytes, .kind = TENT_COMPLETION_REQUEST,
			      .transport = TENT_TRANSPORT_TCP, .attempts = 1, .latency_ns = 1000 };
	unsigned number = ++fake.requests;
	bool hit = fault_hits(number);
	if (count != 1)
		abort();
	*accepted_out = 0;
	if (hit && fake.fault.refused)
		return fake.fault.status;
	if (hit && fake.fault.lost) {
		*accepted_out = 1;
		return TENT_OK;
	}
	if (fake.on_request != NULL)
		fake.on_request(number);
	c.status = hit && !fake.fault.landed ? fake.fault.status : copy(r);
	if (hit)
		c.status = fake.fault.status;
	c.outcome = c.status == TENT_OK ? TENT_OUTCOME_COMPLETED : TENT_OUTCOME_FAILED;
	if (c.status != TENT_OK && r->batch != 0)
		qp->batch_failed = true;
	if (hit && fake.fault.held) {
		c.memory_busy = 1;
		qp->held_user_data = r->user_data;
	}
	if (fake.after_request != NULL)
		fake.after_request(number);
	complete(qp, &c);
	*accepted_out = 1;
	return TENT_OK;
}

int tent_wait(tent_qp *qp, tent_completion *out, int max, uint64_t timeout_ns)
{
	int n = 0;
	for (; n < max && qp->head != qp->tail; qp->head++)
		out[n++] = qp->done[qp->head % QUEUE];
	if (n == 0 && qp->held_user_data != 0) {
		out[n++] = (tent_completion){ .user_data = qp->held_user_data, .kind = TENT_COMPLETION_RELEASE };
		qp->held_user_data = 0;
	}
	if (n == 0)
		usleep((useconds_t)TN_MIN(timeout_ns / 1000, 20000u));
	return n;
}

tent_status tent_notify(tent_qp *qp, tent_segment *segment, uint32_t batch, const void *payload, size_t bytes,
			uint64_t user_data, uint64_t deadline_ns)
{
	static tent_note note = TENT_NOTE_INIT;
	tent_completion c = {.user_data = user_data, .kind = TENT_COMPLETION_NOTIFY, .outcome = TENT_OUTCOME_COMPLETED};
	(void)deadline_ns;
	fake.notices++;
	if (batch != 0 && qp->batch_failed) {
		c.outcome = TENT_OUTCOME_CANCELED;
		c.status = TENT_CANCELED;
		qp->batch_failed = false;
	} else if (fake.note_fails > 0) {
		fake.note_fails--;
		c.outcome = TENT_OUTCOME_FAILED;
		c.status = TENT_LIMIT;
	} else {
		snprintf(note.segment, sizeof note.segment, "%s", segment->pub->name);
		snprintf(note.from, sizeof note.from, "%s", "somebody");
		note.kind = TENT_NOTE_DATA;
		note.bytes = bytes;
		memcpy(note.payload, payload, bytes);
		if (fake.on_note != NULL)
			fake.on_note(&note);
	}
	complete(qp, &c);
	return TENT_OK;
}

tent_status tent_note_recv(tent_context *ctx, tent_note *note_out, uint64_t timeout_ns)
{
	(void)ctx, (void)note_out, (void)timeout_ns;
	return TENT_AGAIN;
}

int tent_note_fd(tent_context *ctx)
{
	(void)ctx;
	return -1;
}
