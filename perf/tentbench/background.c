/* SPDX-License-Identifier: Apache-2.0
 * The thread behind background.h. Its first error ends it and fails the cells that run beside it. */
#include "perf/tentbench/background.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "common/clock.h"
#include "perf/tentbench/bench.h"

#define BATCH 16
#define NAP_NS (50 * TN_NS_PER_MS)
#define SILENCE_NS (60 * TN_NS_PER_S)

static void fail(struct tb_background *g, const char *what, const char *why)
{
	(void)snprintf(g->why, sizeof g->why, "in the background: %s: %s", what, why);
	tn_store_release32(&g->failed, 1);
}

static bool submit(struct tb_background *g, tent_qp *qp, uint64_t slot)
{
	const struct tb_args *a = g->b->args;
	tent_request rq = { .opcode = TENT_WRITE, .priority = (tent_priority)a->background.priority, .memory = g->memory,
			    .memory_offset = slot * a->background.bytes, .segment = g->b->segment,
			    .segment_offset = slot % g->blocks * a->background.bytes, .bytes = a->background.bytes,
			    .user_data = slot, .hint = (tent_transport)a->transport };
	size_t accepted = 0;

	if (tent_submit(qp, &rq, 1, &accepted) == TENT_OK)
		return true;
	fail(g, "tent_submit", tent_last_error());
	return false;
}

/* What completed goes again, until the end is asked for. False: an error. */
static bool take(struct tb_background *g, tent_qp *qp, uint64_t *heard_ns)
{
	tent_completion got[BATCH];
	int n = tent_wait(qp, got, BATCH, NAP_NS);
	char text[250];

	if (n < 0 && n != TENT_TIMEOUT) {
		fail(g, "taking completions", tent_last_error());
		return false;
	}
	if (n > 0)
		*heard_ns = tn_now_ns();
	else if (tn_now_ns() - *heard_ns > SILENCE_NS)
		fail(g, "silence", "no completion for a minute");
	for (int i = 0; i < n; i++) {
		if (got[i].kind == TENT_COMPLETION_RELEASE)
			continue;
		if (got[i].status != TENT_OK) {
			fail(g, "an operation", tent_completion_text(&got[i], text, sizeof text));
			return false;
		}
		tn_count64(&g->bytes, got[i].bytes);
		tn_count64(&g->done, 1);
		if (tn_load_relaxed32(&g->stop) == 0 && !submit(g, qp, got[i].user_data))
			return false;
	}
	return tn_load_relaxed32(&g->failed) == 0;
}

static void *background_main(void *arg)
{
	struct tb_background *g = arg;
	tent_qp_options opt = TENT_QP_OPTIONS_INIT;
	tent_qp *qp;
	uint64_t heard_ns = tn_now_ns();

	for (opt.depth = 8; opt.depth < g->b->args->background.depth; opt.depth *= 2)
		;
	if (tent_qp_create(g->b->ctx, &opt, &qp) != TENT_OK) {
		fail(g, "tent_qp_create", tent_last_error());
		return NULL;
	}
	bool good = true;
	for (uint64_t i = 0; i < g->b->args->background.depth && good; i++)
		good = submit(g, qp, i);
	while (good && (tn_load_relaxed32(&g->stop) == 0 || tent_qp_outstanding(qp) > 0))
		good = take(g, qp, &heard_ns);
	if (tent_qp_destroy(qp) != TENT_OK)
		fail(g, "tent_qp_destroy", tent_last_error());
	return NULL;
}

static bool prepare(struct tb_background *g)
{
	const struct tb_args *a = g->b->args;

	g->blocks = tent_segment_bytes(g->b->segment) / a->background.bytes;
	if (g->blocks == 0) {
		fprintf(stderr, "tentbench: --background: the segment is smaller than one operation\n");
		return false;
	}
	if (tent_memory_alloc(g->b->ctx, a->background.bytes * a->background.depth, TENT_RIGHT_LOCAL, 0, &g->memory) == TENT_OK)
		return true;
	fprintf(stderr, "tentbench: --background: %s\n", tent_last_error());
	return false;
}

bool tb_background_start(struct tb_bench *b)
{
	struct tb_background *g;

	if (b->args->background.bytes == 0)
		return true;
	g = calloc(1, sizeof *g);
	if (g == NULL)
		return false;
	g->b = b;
	if (!prepare(g) || pthread_create(&g->thread, NULL, background_main, g) != 0) {
		free(g);
		return false;
	}
	b->background = g;
	struct timespec nap = { .tv_nsec = TN_NS_PER_MS };
	while (tn_load_relaxed64(&g->done) < b->args->background.depth && !tb_background_failed(g))
		(void)nanosleep(&nap, NULL);
	if (!tb_background_failed(g))
		return true;
	fprintf(stderr, "tentbench: %s\n", g->why);
	tb_background_stop(b);
	return false;
}

void tb_background_stop(struct tb_bench *b)
{
	struct tb_background *g = b->background;

	if (g == NULL)
		return;
	tn_store_relaxed32(&g->stop, 1);
	(void)pthread_join(g->thread, NULL);
	free(g); /* its memory goes with the context */
	b->background = NULL;
}
