/* SPDX-License-Identifier: Apache-2.0
 * tentbench: serve a pool, or sweep over sizes, depths and operations against one and report. Main thread. */
#include <stdio.h>
#include <stdlib.h>

#include "perf/tentbench/bench.h"
#include "perf/tentbench/report.h"

static int run(const struct tb_args *a, int argc, char **argv)
{
	static struct tb_result result; /* large: it holds a histogram */
	struct tb_report report;
	struct tb_bench bench;

	if (!tb_bench_open(&bench, a))
		return EXIT_FAILURE;
	tb_first_lap(&bench, &result);
	if (!tb_background_start(&bench)) {
		tb_bench_close(&bench);
		return EXIT_FAILURE;
	}
	tb_report_begin(&report, a, &bench.procs, &result, argc, argv);
	for (unsigned o = 0; o < a->op_cnt; o++)
		for (unsigned d = 0; d < a->depth_cnt; d++)
			for (unsigned s = 0; s < a->size_cnt; s++) {
				struct tb_spec spec = { .op = a->ops[o], .bytes = a->sizes[s], .depth = a->depths[d],
							.pool_bytes = tb_args_pool_bytes(a, a->sizes[s], a->depths[d]) };

				tb_cell_run(&bench, &spec, &result);
				tb_report_cell(&report, &result);
			}
	tb_background_stop(&bench);
	int rc = tb_report_end(&report);
	tb_bench_close(&bench);
	return rc;
}

int main(int argc, char **argv)
{
	struct tb_args args;
	int rc = tb_args_parse(&args, TB_TENT, argc, argv);

	if (rc >= 0)
		return rc;
	return args.role == TB_SERVE ? tb_serve(&args) : run(&args, argc, argv);
}
