/* SPDX-License-Identifier: Apache-2.0
 * The measured loop: keeps `depth` operations in flight on one queue pair per thread and takes the time from submit to
 * the moment at which the application has the completion. The first thread is the conductor: it alone opens and closes
 * the window. The first error ends the cell as failed; whatever was in flight is drained before anything is freed. */
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/atomic.h"
#include "common/clock.h"
#include "common/compiler.h"
#include "perf/tentbench/bench.h"
#include "perf/tentbench/walk.h"

#define BATCH 64
#define SILENCE_NS (60 * TN_NS_PER_S) /* no completion for this long (beyond the deadline): the cell is failed */
#define NAP_NS (50 * TN_NS_PER_MS)    /* longest sleep in tent_wait(), so that the end of the cell is seen */

enum phase { PHASE_WARMUP = 0, PHASE_MEASURE, PHASE_DONE };
enum slot_state { SLOT_FREE = 0, SLOT_MOVING, SLOT_READBACK };

struct slot {
	uint64_t submit_ns, key;
	uint32_t gen, local, remote; /* generation against doubled completions; block numbers */
	enum slot_state state;
};

struct cell;

/* One thread of a cell. Counters are read by the conductor. */
struct lane {
	TN_CACHE_ALIGNED tn_a64 ops;
	tn_a64 bytes, retried;
	TN_CACHE_ALIGNED struct cell *cell;
	unsigned index;
	pthread_t thread;
	tent_qp *qp;
	struct tb_walk local, remote;
	uint8_t *taken;           /* verify mode: blocks with an operation on them; remote ones, then local ones */
	struct slot *slots;
	uint32_t *free_slots, free_cnt;
	tent_request *pending;    /* built, not accepted yet */
	uint32_t pending_cnt;
	uint64_t part_off;        /* of this thread's share, in both pools */
	uint64_t serial, verified_bytes, heard_ns;
	uint32_t transports;
	bool presetting;          /* verify mode: writing what READs will find */
	struct tn_loghist latency_ns, daemon_ns;
};

struct cell {
	struct tb_bench *b;
	const struct tb_spec *spec;
	struct tb_result *r;
	struct lane *lanes;
	struct tb_window window;
	pthread_barrier_t start;
	tn_a32 phase, failing;
	uint64_t begin_ops, begin_bytes, begin_retried, begin_background;
};

TN_PRINTF(2, 3) static void fail(struct cell *c, const char *fmt, ...)
{
	if (tn_exchange32(&c->failing, 1) == 0) { /* the first one tells; the result is read after all have ended */
		va_list ap;

		va_start(ap, fmt);
		(void)vsnprintf(c->r->why, sizeof c->r->why, fmt, ap);
		va_end(ap);
		c->r->failed = true;
	}
	tn_store_relaxed32(&c->phase, PHASE_DONE);
}

static bool done(const struct cell *c) { return tn_load_relaxed32(&c->phase) == PHASE_DONE; }

/* ---- requests ---- */

static uint32_t next_block(struct tb_walk *w, uint8_t *taken)
{
	uint32_t block = tb_walk_next(w);

	while (taken != NULL && taken[block]) /* ends: there are at least `depth` blocks */
		block = tb_walk_next(w);
	if (taken != NULL)
		taken[block] = 1;
	return block;
}

/* What content number `number` of this thread looks like: a remote block's (READ), or an operation's (WRITE). */
static uint64_t key_of(const struct lane *l, uint64_t number)
{
	return l->cell->b->args->seed * UINT64_C(0xd1342543de82ef95) + ((uint64_t)l->index << 48) +
	       number * UINT64_C(0x2545f491);
}

static uint64_t local_off(const struct lane *l, uint32_t block) { return l->part_off + block * l->cell->spec->bytes; }

static uint64_t readback_off(const struct lane *l, uint32_t slot)
{
	const struct tb_spec *s = l->cell->spec;

	return l->cell->b->readback_off + ((uint64_t)l->index * s->depth + slot) * s->bytes;
}

static void push_request(struct lane *l, uint32_t slot, tent_opcode opcode, uint64_t memory_off, uint64_t now_ns)
{
	const struct tb_bench *b = l->cell->b;
	struct slot *s = &l->slots[slot];

	l->pending[l->pending_cnt++] = (tent_request){
		.opcode = opcode,
		.priority = (tent_priority)b->args->priority,
		.memory = b->memory,
		.memory_offset = memory_off,
		.segment = b->segment,
		.segment_offset = l->part_off + s->remote * l->cell->spec->bytes,
		.bytes = l->cell->spec->bytes,
		.user_data = (uint64_t)s->gen << 32 | slot,
		.deadline_ns = b->args->deadline_ns != 0 ? tn_deadline_after(now_ns, b->args->deadline_ns) : 0,
		.hint = (tent_transport)b->args->transport,
	};
}

/* Take a free slot for the next operation of the walk. */
static void start_operation(struct lane *l, bool write)
{
	uint32_t slot = l->free_slots[--l->free_cnt];
	struct slot *s = &l->slots[slot];

	s->gen++;
	s->state = SLOT_MOVING;
	s->remote = next_block(&l->remote, l->taken);
	s->local = next_block(&l->local, l->taken == NULL ? NULL : l->taken + l->remote.cnt);
	if (l->cell->b->args->verify) {
		uint8_t *at = l->cell->b->base + local_off(l, s->local);

		s->key = key_of(l, l->presetting || !write ? s->remote : UINT64_C(1) << 32 | l->serial++);
		if (write)
			tb_pattern_fill(at, l->cell->spec->bytes, s->key);
		else
			memset(at, 0xa5, l->cell->spec->bytes);
	}
	s->submit_ns = tn_now_ns();
	push_request(l, slot, write ? TENT_WRITE : TENT_READ, local_off(l, s->local), s->submit_ns);
}

static bool hand_over(struct lane *l)
{
	size_t accepted = 0;

	if (l->pending_cnt == 0)
		return true;
	tent_status st = tent_submit(l->qp, l->pending, l->pending_cnt, &accepted);
	if (st < 0) {
		fail(l->cell, "tent_submit: %s", tent_last_error());
		return false;
	}
	l->pending_cnt -= (uint32_t)accepted;
	memmove(l->pending, l->pending + accepted, l->pending_cnt * sizeof *l->pending);
	return true;
}

/* ---- completions ---- */

static void free_slot(struct lane *l, struct slot *s)
{
	s->state = SLOT_FREE;
	if (l->taken != NULL)
		l->taken[s->remote] = l->taken[l->remote.cnt + s->local] = 0;
	l->free_slots[l->free_cnt++] = (uint32_t)(s - l->slots);
}

static void check_bytes(struct lane *l, const struct slot *s, uint64_t off)
{
	uint64_t bytes = l->cell->spec->bytes;
	size_t at = tb_pattern_check(l->cell->b->base + off, bytes, s->key);

	l->verified_bytes += bytes;
	if (at != bytes)
		fail(l->cell, "WRONG DATA: byte %zu of %" PRIu64 " in segment block %" PRIu32, at, bytes, s->remote);
}

/* The slot that a completion belongs to; NULL after it was explained why there is none. */
static struct slot *slot_of(struct lane *l, const tent_completion *c)
{
	uint64_t slot = c->user_data & UINT32_MAX;

	if (slot < l->cell->spec->depth && l->slots[slot].gen == c->user_data >> 32 && l->slots[slot].state != SLOT_FREE)
		return &l->slots[slot];
	fail(l->cell, "completion of user data 0x%" PRIx64 ", which is not outstanding (doubled or stray)", c->user_data);
	return NULL;
}

static void count(struct lane *l, const struct slot *s, const tent_completion *c, uint64_t now_ns, bool measuring)
{
	tn_count64(&l->ops, 1);
	tn_count64(&l->bytes, c->bytes);
	if (c->attempts > 1)
		tn_count64(&l->retried, 1);
	l->transports |= 1u << (c->transport & 31);
	if (measuring) {
		tn_loghist_add(&l->latency_ns, now_ns - s->submit_ns);
		tn_loghist_add(&l->daemon_ns, c->latency_ns);
	}
}

/* Verify mode: read what a WRITE left in the segment. Not an operation of the sweep: nobody times it. */
static void read_back(struct lane *l, struct slot *s, uint64_t now_ns)
{
	uint32_t slot = (uint32_t)(s - l->slots);
	uint64_t off = readback_off(l, slot);

	memset(l->cell->b->base + off, 0xa5, l->cell->spec->bytes);
	s->state = SLOT_READBACK;
	push_request(l, slot, TENT_READ, off, now_ns);
}

static void take_completion(struct lane *l, const tent_completion *c, uint64_t now_ns, bool measuring, bool write)
{
	bool verify = l->cell->b->args->verify;
	struct slot *s;
	char text[300];

	if (c->kind == TENT_COMPLETION_RELEASE || (s = slot_of(l, c)) == NULL)
		return;
	if (c->status != TENT_OK) {
		fail(l->cell, "%s", tent_completion_text(c, text, sizeof text));
	} else if (c->bytes != l->cell->spec->bytes) {
		fail(l->cell, "a completion of %" PRIu64 " bytes for a request of %" PRIu64, c->bytes, l->cell->spec->bytes);
	} else if (s->state == SLOT_READBACK) {
		check_bytes(l, s, readback_off(l, (uint32_t)(s - l->slots)));
	} else if (!l->presetting) {
		count(l, s, c, now_ns, measuring);
		if (verify && write && !done(l->cell)) {
			read_back(l, s, now_ns);
			return;
		}
		if (verify && !write)
			check_bytes(l, s, local_off(l, s->local));
	}
	free_slot(l, s);
}

/* Take what is there (sleeping for the first one unless busy). Returns how many. */
static int take_batch(struct lane *l, bool write)
{
	tent_completion got[BATCH];
	const struct tb_args *a = l->cell->b->args;
	int n = a->busy ? tent_poll(l->qp, got, BATCH) : tent_wait(l->qp, got, BATCH, NAP_NS);
	uint64_t now_ns = tn_now_ns();

	if (n > 0) {
		bool measuring = tn_load_relaxed32(&l->cell->phase) == PHASE_MEASURE;

		l->heard_ns = now_ns;
		for (int i = 0; i < n; i++)
			take_completion(l, &got[i], now_ns, measuring, write);
	} else if (n < 0 && n != TENT_TIMEOUT) {
		fail(l->cell, "taking completions: %s", tent_last_error());
	} else if (now_ns - l->heard_ns > SILENCE_NS + a->deadline_ns) {
		fail(l->cell, "no completion for %" PRIu64 " s with %" PRIu32 " outstanding",
		     (uint64_t)((SILENCE_NS + a->deadline_ns) / TN_NS_PER_S), tent_qp_outstanding(l->qp));
	}
	return n == TENT_TIMEOUT ? 0 : n;
}

static void drain(struct lane *l, bool write)
{
	uint64_t end_ns = tn_deadline_after(tn_now_ns(), SILENCE_NS + l->cell->b->args->deadline_ns);

	while (tent_qp_outstanding(l->qp) > 0) {
		if (take_batch(l, write) < 0 || tn_now_ns() > end_ns) {
			fail(l->cell, "%" PRIu32 " operations never completed", tent_qp_outstanding(l->qp));
			return; /* tent_qp_destroy() waits until no buffer is touched any more */
		}
	}
}

/* ---- threads ---- */

/* A READ can be verified when it is known what it must find: write every block once. */
static void preset(struct lane *l)
{
	uint32_t started = 0;

	l->presetting = true;
	while (!done(l->cell) && (started < l->remote.cnt || l->free_cnt < l->cell->spec->depth)) {
		while (l->free_cnt > 0 && started < l->remote.cnt) {
			start_operation(l, true);
			started++;
		}
		if (hand_over(l))
			(void)take_batch(l, true);
	}
	drain(l, true);
	l->presetting = false;
}

static void sum_lanes(const struct cell *c, uint64_t *ops, uint64_t *bytes, uint64_t *retried)
{
	*ops = *bytes = *retried = 0;
	for (unsigned i = 0; i < c->b->args->threads; i++) {
		*ops += tn_load_relaxed64(&c->lanes[i].ops);
		*bytes += tn_load_relaxed64(&c->lanes[i].bytes);
		*retried += tn_load_relaxed64(&c->lanes[i].retried);
	}
}

static void conduct(struct cell *c)
{
	uint64_t ops, bytes, retried;

	switch (tb_window_tick(&c->window, tn_now_ns(), tn_load_relaxed64(&c->lanes[0].ops))) {
	case TB_EDGE_OPEN:
		sum_lanes(c, &c->begin_ops, &c->begin_bytes, &c->begin_retried);
		c->begin_background = tb_background_bytes(c->b->background);
		tb_procs_sample(&c->b->procs, &c->r->begin);
		tn_store_relaxed32(&c->phase, PHASE_MEASURE);
		break;
	case TB_EDGE_CLOSE:
		sum_lanes(c, &ops, &bytes, &retried);
		tb_procs_sample(&c->b->procs, &c->r->end);
		c->r->ops = ops - c->begin_ops;
		c->r->bytes = bytes - c->begin_bytes;
		c->r->retried = retried - c->begin_retried;
		c->r->background_bytes = tb_background_bytes(c->b->background) - c->begin_background;
		if (tb_background_failed(c->b->background))
			fail(c, "%s", c->b->background->why);
		if (c->r->begin.gone || c->r->end.gone)
			fail(c, "a process whose CPU time is charged ended meanwhile");
		tn_store_relaxed32(&c->phase, PHASE_DONE);
		break;
	default:
		break;
	}
}

static void pin(const struct lane *l)
{
	const struct tb_args *a = l->cell->b->args;
	cpu_set_t set;

	if (a->cpu_cnt == 0)
		return;
	CPU_ZERO(&set);
	CPU_SET((size_t)a->cpus[l->index % a->cpu_cnt], &set);
	if (pthread_setaffinity_np(pthread_self(), sizeof set, &set) != 0)
		fail(l->cell, "cannot pin thread %u to CPU %d", l->index, a->cpus[l->index % a->cpu_cnt]);
}

static void *lane_main(void *arg)
{
	struct lane *l = arg;
	struct cell *c = l->cell;
	bool write = c->spec->op == TB_OP_WRITE;

	pin(l);
	l->heard_ns = tn_now_ns();
	if (c->b->args->verify && !write)
		preset(l);
	(void)pthread_barrier_wait(&c->start);
	l->heard_ns = tn_now_ns();
	if (l->index == 0)
		tb_window_init(&c->window, c->b->args, c->spec->depth, l->heard_ns);
	while (!done(c)) {
		while (l->free_cnt > 0)
			start_operation(l, write);
		if (hand_over(l) && take_batch(l, write) > 0 && l->index == 0)
			conduct(c);
	}
	drain(l, write);
	return NULL;
}

/* ---- a cell ---- */

static bool lane_open(struct lane *l, struct cell *c, unsigned index)
{
	const struct tb_spec *s = c->spec;
	const struct tb_args *a = c->b->args;
	tent_qp_options opt = TENT_QP_OPTIONS_INIT;
	uint64_t blocks = s->pool_bytes / a->threads / s->bytes, seed = a->seed + index * UINT64_C(2);

	*l = (struct lane){ .cell = c, .index = index, .part_off = index * blocks * s->bytes };
	for (opt.depth = 8; opt.depth < s->depth; opt.depth *= 2)
		;
	l->slots = calloc(s->depth, sizeof *l->slots);
	l->free_slots = calloc(s->depth, sizeof *l->free_slots);
	l->pending = calloc(s->depth, sizeof *l->pending);
	l->taken = a->verify ? calloc(blocks, 2) : NULL;
	if (l->slots == NULL || l->free_slots == NULL || l->pending == NULL || (a->verify && l->taken == NULL) ||
	    !tb_walk_init(&l->local, (uint32_t)blocks, seed) || !tb_walk_init(&l->remote, (uint32_t)blocks, seed + 1)) {
		fail(c, "no memory for %" PRIu64 " blocks", blocks);
		return false;
	}
	while (l->free_cnt < s->depth) {
		l->free_slots[l->free_cnt] = l->free_cnt;
		l->free_cnt++;
	}
	if (tent_qp_create(c->b->ctx, &opt, &l->qp) != TENT_OK) {
		fail(c, "tent_qp_create: %s", tent_last_error());
		return false;
	}
	return true;
}

static void lane_close(struct lane *l)
{
	/* Buffers that are still touched would be another cell's, and its figures wrong. */
	if (tent_qp_destroy(l->qp) != TENT_OK)
		fail(l->cell, "tent_qp_destroy: %s", tent_last_error());
	tb_walk_free(&l->local);
	tb_walk_free(&l->remote);
	free(l->taken);
	free(l->pending);
	free(l->free_slots);
	free(l->slots);
}

/* The conductor runs on the caller's thread. All threads meet at the barrier, so all of them must exist. */
static void run_threads(struct cell *c)
{
	unsigned threads = c->b->args->threads;

	for (unsigned i = 1; i < threads; i++)
		if (pthread_create(&c->lanes[i].thread, NULL, lane_main, &c->lanes[i]) != 0) {
			fprintf(stderr, "tentbench: cannot start thread %u\n", i);
			exit(EXIT_FAILURE);
		}
	(void)lane_main(&c->lanes[0]);
	for (unsigned i = 1; i < threads; i++)
		(void)pthread_join(c->lanes[i].thread, NULL);
	for (unsigned i = 0; i < threads; i++) {
		tn_loghist_merge(&c->r->latency_ns, &c->lanes[i].latency_ns);
		tn_loghist_merge(&c->r->daemon_ns, &c->lanes[i].daemon_ns);
		c->r->transports |= c->lanes[i].transports;
		c->r->verified_bytes += c->lanes[i].verified_bytes;
	}
}

void tb_cell_run(struct tb_bench *b, const struct tb_spec *spec, struct tb_result *r)
{
	struct cell c = { .b = b, .spec = spec, .r = r };
	unsigned opened = 0;

	*r = (struct tb_result){ .spec = *spec };
	c.lanes = aligned_alloc(TN_CACHE_LINE, b->args->threads * sizeof *c.lanes);
	if (c.lanes == NULL || pthread_barrier_init(&c.start, NULL, b->args->threads) != 0) {
		fail(&c, "no memory for %u threads", b->args->threads);
		free(c.lanes);
		return;
	}
	bool good = true;
	while (good && opened < b->args->threads) {
		good = lane_open(&c.lanes[opened], &c, opened);
		opened++;
	}
	if (good)
		run_threads(&c);
	while (opened > 0)
		lane_close(&c.lanes[--opened]);
	(void)pthread_barrier_destroy(&c.start);
	free(c.lanes);
}
