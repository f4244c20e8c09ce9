/* SPDX-License-Identifier: Apache-2.0
 * See fake_tent.h. Requests are kept until polled, then copied and completed, newest first (order is no promise). */
#include "tests/unit/perf/fake_tent.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct fake fake;

struct tent_context { int unused; };
struct tent_segment { int unused; };
struct tent_memory { uint8_t *base; size_t bytes; };
struct tent_qp { tent_request *held; uint32_t cnt, depth; };

static struct tent_context the_context;
static struct tent_segment the_segment;
static struct tent_memory the_memory;

tent_context *fake_context(void) { return &the_context; }
tent_segment *fake_segment(void) { return &the_segment; }

tent_memory *fake_memory(void *base, size_t bytes)
{
	the_memory = (struct tent_memory){ .base = base, .bytes = bytes };
	return &the_memory;
}

const char *tent_last_error(void) { return "the fake says no"; }

const char *tent_completion_text(const tent_completion *c, char *buf, size_t buf_bytes)
{
	(void)snprintf(buf, buf_bytes, "fake failure %d", c->status);
	return buf;
}

tent_status tent_qp_create(tent_context *ctx, const tent_qp_options *opt, tent_qp **qp_out)
{
	tent_qp *qp = calloc(1, sizeof *qp);

	if (qp == NULL || ctx != &the_context)
		abort();
	qp->depth = opt->depth;
	qp->held = calloc(opt->depth, sizeof *qp->held);
	if (qp->held == NULL)
		abort();
	*qp_out = qp;
	return TENT_OK;
}

tent_status tent_qp_destroy(tent_qp *qp)
{
	if (qp != NULL)
		free(qp->held);
	free(qp);
	return TENT_OK;
}

uint32_t tent_qp_outstanding(const tent_qp *qp) { return qp->cnt; }

static void note_overlap(const tent_qp *qp, const tent_request *r)
{
	for (uint32_t i = 0; i < qp->cnt; i++) {
		const tent_request *o = &qp->held[i];
		bool remote = r->segment_offset < o->segment_offset + o->bytes && o->segment_offset < r->segment_offset + r->bytes;
		bool local = r->memory_offset < o->memory_offset + o->bytes && o->memory_offset < r->memory_offset + r->bytes;

		fake.overlaps += remote || local;
	}
}

tent_status tent_submit(tent_qp *qp, const tent_request *requests, size_t count, size_t *accepted_out)
{
	size_t take = fake.accept_max != 0 && count > fake.accept_max ? fake.accept_max : count;

	for (size_t i = 0; i < take; i++) {
		const tent_request *r = &requests[i];

		if (qp->cnt == qp->depth || r->segment_offset + r->bytes > fake.remote_bytes ||
		    r->memory_offset + r->bytes > the_memory.bytes)
			abort();
		if (fake.lie == FAKE_REFUSES && fake.submitted + 1 == fake.lie_at) {
			*accepted_out = i;
			return TENT_INVALID;
		}
		note_overlap(qp, r);
		qp->held[qp->cnt++] = *r;
		fake.submitted++;
		fake.hint_seen |= 1u << r->hint;
		fake.deepest = qp->cnt > fake.deepest ? qp->cnt : fake.deepest;
	}
	*accepted_out = take;
	return take == count ? TENT_OK : TENT_AGAIN;
}

static void copy(const tent_request *r, bool lie)
{
	uint8_t *local = the_memory.base + r->memory_offset, *remote = fake.remote + r->segment_offset;
	uint8_t *to = r->opcode == TENT_READ ? local : remote;

	if (lie && (fake.lie == FAKE_SKIPS || fake.lie == FAKE_FAILS || fake.lie == FAKE_CANCELS))
		return;
	memcpy(to, r->opcode == TENT_READ ? remote : local, r->bytes);
	if (lie && fake.lie == FAKE_FLIPS)
		to[r->bytes - 1] ^= 1;
}

int tent_poll(tent_qp *qp, tent_completion *out, int max)
{
	int n = 0;

	while (qp->cnt > 0 && n < max) {
		const tent_request *r = &qp->held[--qp->cnt];
		bool lie = fake.lie != FAKE_HONEST && ++fake.completed == fake.lie_at;

		copy(r, lie);
		out[n++] = (tent_completion){ .user_data = r->user_data, .bytes = r->bytes, .latency_ns = 123,
					      .kind = TENT_COMPLETION_REQUEST, .outcome = TENT_OUTCOME_COMPLETED,
					      .transport = TENT_TRANSPORT_SHM, .attempts = 1 };
		if (lie && fake.lie == FAKE_FAILS) {
			out[n - 1].status = TENT_TIMEOUT;
			out[n - 1].outcome = TENT_OUTCOME_TIMEOUT;
		}
		if (lie && fake.lie == FAKE_CANCELS) {
			out[n - 1].status = TENT_CANCELED;
			out[n - 1].outcome = TENT_OUTCOME_CANCELED;
		}
		if (lie && fake.lie == FAKE_SHORT)
			out[n - 1].bytes--;
		if (lie && (fake.lie == FAKE_DOUBLES || fake.lie == FAKE_STRAY) && n < max) {
			out[n] = out[n - 1];
			out[n++].user_data += fake.lie == FAKE_STRAY ? 1000 : 0;
		}
	}
	return n;
}

int tent_wait(tent_qp *qp, tent_completion *out, int max, uint64_t timeout_ns)
{
	(void)timeout_ns;
	if (fake.lie == FAKE_BREAKS && ++fake.waits == fake.lie_at)
		return TENT_CLIENT_BROKEN;
	return tent_poll(qp, out, max);
}
