/* SPDX-License-Identifier: Apache-2.0
 * Sets up what all cells of a sweep share, and serves the other side. Main thread. See bench.h. */
#include "perf/tentbench/bench.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/compiler.h"
#include "perf/tentbench/walk.h"

static bool complain(const char *what)
{
	fprintf(stderr, "tentbench: %s: %s\n", what, tent_last_error());
	return false;
}

static bool attach(const struct tb_args *args, tent_context **ctx_out)
{
	tent_options opt = TENT_OPTIONS_INIT;

	opt.runtime_dir = args->runtime_dir;
	opt.timeout_ns = 30 * TN_NS_PER_S; /* registering a large pool takes its time */
	return tent_open(&opt, ctx_out) == TENT_OK || complain("cannot attach");
}

/* ---- run ---- */

static bool find_procs(struct tb_bench *b)
{
	char err[600];
	bool good = tb_procs_add(&b->procs, getpid(), err, sizeof err);

	for (unsigned i = 0; good && i < b->args->pid_cnt; i++)
		good = tb_procs_add(&b->procs, b->args->pids[i], err, sizeof err);
	for (unsigned i = 0; good && i < b->args->dir_cnt; i++)
		good = tb_procs_add_daemons(&b->procs, b->args->dirs[i], err, sizeof err);
	if (!good)
		fprintf(stderr, "tentbench: %s\n", err);
	return good;
}

static uint64_t readback_bytes(const struct tb_args *a)
{
	uint64_t max = 0;

	for (unsigned s = 0; a->verify && s < a->size_cnt; s++)
		for (unsigned d = 0; d < a->depth_cnt; d++) {
			uint64_t bytes = a->sizes[s] * a->depths[d] * a->threads;
			max = TN_MAX(max, bytes);
		}
	return max;
}

static bool check_segment(const struct tb_bench *b)
{
	uint64_t have = tent_segment_bytes(b->segment), need = tb_args_pool_max(b->args);

	if (have >= need)
		return true;
	fprintf(stderr, "tentbench: segment %s has %" PRIu64 " bytes, this sweep walks %" PRIu64
		": serve more, or choose a smaller --pool\n", b->args->segment, have, need);
	return false;
}

bool tb_bench_open(struct tb_bench *b, const struct tb_args *args)
{
	*b = (struct tb_bench){ .args = args };
	if (!find_procs(b) || !attach(args, &b->ctx))
		return false;
	if (tent_segment_open(b->ctx, args->segment, &b->segment) != TENT_OK) {
		complain("cannot open the segment");
		goto undo_attach;
	}
	if (!check_segment(b))
		goto undo_attach;
	b->readback_off = (tb_args_pool_max(args) + 4095) & ~UINT64_C(4095);
	if (tent_memory_alloc(b->ctx, b->readback_off + readback_bytes(args), TENT_RIGHT_LOCAL,
			      args->hugetlb ? TENT_MEMORY_HUGETLB : 0, &b->memory) != TENT_OK) {
		complain("cannot allocate the local pool");
		goto undo_attach;
	}
	b->base = tent_memory_addr(b->memory);
	tb_pattern_fill(b->base, b->readback_off, args->seed); /* no page of zeros that could be special to anybody */
	return true;
undo_attach:
	tent_close(b->ctx);
	b->ctx = NULL;
	return false;
}

void tb_bench_close(struct tb_bench *b)
{
	tent_close(b->ctx);
	b->ctx = NULL;
}

void tb_first_lap(struct tb_bench *b, struct tb_result *r)
{
	const struct tb_args *real = b->args;
	uint64_t pool = tb_args_pool_max(real);
	struct tb_args lap = *real;
	struct tb_spec spec = { .op = real->op_cnt == 1 ? real->ops[0] : TB_OP_WRITE, .depth = 8, .pool_bytes = pool };

	spec.bytes = TN_MAX(TN_MIN(pool / spec.depth, UINT64_C(1) << 20), UINT64_C(1));
	if (pool < spec.depth)
		spec.depth = 1;
	lap.threads = 1;
	lap.count = pool / spec.bytes;
	lap.warmup_ns = 0;
	lap.verify = false;
	b->args = &lap;
	tb_cell_run(b, &spec, r);
	b->args = real;
}

/* ---- serve ---- */

int tb_serve(const struct tb_args *args)
{
	tent_context *ctx;
	tent_memory *memory;
	tent_published *published;
	sigset_t stop;
	int sig;

	(void)sigemptyset(&stop);
	(void)sigaddset(&stop, SIGTERM);
	(void)sigaddset(&stop, SIGINT);
	(void)sigprocmask(SIG_BLOCK, &stop, NULL); /* before any thread exists, so that all of them leave these to us */
	if (!attach(args, &ctx))
		return EXIT_FAILURE;
	bool good = tent_memory_alloc(ctx, args->serve_bytes, TENT_RIGHT_REMOTE_READ | TENT_RIGHT_REMOTE_WRITE,
				      args->hugetlb ? TENT_MEMORY_HUGETLB : 0, &memory) == TENT_OK || complain("cannot allocate");
	if (good) {
		tent_buffer buffer = { .memory = memory, .bytes = args->serve_bytes };

		tb_pattern_fill(tent_memory_addr(memory), args->serve_bytes, args->seed);
		good = tent_segment_publish(ctx, args->segment, &buffer, 1, NULL, &published) == TENT_OK ||
		       complain("cannot publish");
	}
	if (good) {
		printf("READY name=%s bytes=%" PRIu64 " pid=%d\n", args->segment, args->serve_bytes, (int)getpid());
		(void)fflush(stdout);
		(void)sigwait(&stop, &sig);
	}
	tent_close(ctx);
	return good ? EXIT_SUCCESS : EXIT_FAILURE;
}
