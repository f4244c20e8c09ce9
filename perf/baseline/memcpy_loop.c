/* SPDX-License-Identifier: Apache-2.0
 * The yardstick of shm: memcpy() of one block after the other between two pools of shared memory, on one core. The same
 * kind of pages, the same order of blocks and the same window as tentbench; nothing that moves bytes between two
 * mappings with one core can be expected to do better. */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/compiler.h"
#include "perf/baseline/pool.h"
#include "perf/tentbench/report.h"
#include "perf/tentbench/walk.h"

static void measure(const struct tb_args *a, const struct tb_procs *procs, uint8_t *local, uint8_t *remote,
		    struct tb_result *r)
{
	const struct tb_spec *s = &r->spec;
	uint32_t blocks = (uint32_t)(s->pool_bytes / s->bytes);
	struct tb_walk from = { 0 }, to = { 0 };
	struct tb_window w;
	uint64_t ops = 0, begin_ops = 0;
	enum tb_edge edge = TB_EDGE_NONE;
	bool measuring = false;

	if (!tb_walk_init(&from, blocks, a->seed) || !tb_walk_init(&to, blocks, a->seed + 1)) {
		r->failed = true;
		(void)snprintf(r->why, sizeof r->why, "no memory for %u blocks", blocks);
	}
	tb_window_init(&w, a, 1, tn_now_ns());
	while (!r->failed && edge != TB_EDGE_CLOSE) {
		uint8_t *mine = local + tb_walk_next(&from) * s->bytes, *theirs = remote + tb_walk_next(&to) * s->bytes;
		uint64_t start_ns = tn_now_ns();

		memcpy(s->op == TB_OP_WRITE ? theirs : mine, s->op == TB_OP_WRITE ? mine : theirs, s->bytes);
		uint64_t now_ns = tn_now_ns();
		ops++;
		if (measuring)
			tn_loghist_add(&r->latency_ns, now_ns - start_ns);
		edge = tb_window_tick(&w, now_ns, ops);
		if (edge == TB_EDGE_OPEN) {
			measuring = true;
			begin_ops = ops;
			tb_procs_sample(procs, &r->begin);
		}
	}
	tb_procs_sample(procs, &r->end);
	r->ops = ops - begin_ops;
	r->bytes = r->ops * s->bytes;
	tb_walk_free(&from);
	tb_walk_free(&to);
}

static bool pin(const struct tb_args *a)
{
	cpu_set_t set;

	if (a->cpu_cnt == 0)
		return true;
	CPU_ZERO(&set);
	CPU_SET((size_t)a->cpus[0], &set);
	if (sched_setaffinity(0, sizeof set, &set) == 0)
		return true;
	perror("memcpy_loop: cannot pin");
	return false;
}

int main(int argc, char **argv)
{
	static struct tb_result result;
	static struct tb_procs procs;
	struct tb_report report;
	struct tb_args a;
	char err[200];
	int rc = tb_args_parse(&a, TB_MEMCPY, argc, argv);

	if (rc >= 0)
		return rc;
	uint8_t *local = tb_pool_map(tb_args_pool_max(&a), a.hugetlb, a.seed);
	uint8_t *remote = tb_pool_map(tb_args_pool_max(&a), a.hugetlb, a.seed + 1);
	if (local == NULL || remote == NULL || !pin(&a))
		return EXIT_FAILURE;
	if (!tb_procs_add(&procs, getpid(), err, sizeof err)) {
		fprintf(stderr, "memcpy_loop: %s\n", err);
		return EXIT_FAILURE;
	}
	memcpy(remote, local, tb_args_pool_max(&a)); /* like tentbench: everything once before anything is measured */
	tb_report_begin(&report, &a, &procs, NULL, argc, argv);
	for (unsigned o = 0; o < a.op_cnt; o++)
		for (unsigned s = 0; s < a.size_cnt; s++) {
			result = (struct tb_result){ .spec = { .op = a.ops[o], .bytes = a.sizes[s], .depth = 1,
							       .pool_bytes = tb_args_pool_bytes(&a, a.sizes[s], 1) } };
			measure(&a, &procs, local, remote, &result);
			tb_report_cell(&report, &result);
		}
	return tb_report_end(&report);
}
