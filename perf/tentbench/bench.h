/* SPDX-License-Identifier: Apache-2.0
 * tentbench's own objects: one attachment with one memory and one open segment for a whole sweep (bench), and the cells
 * that run over it. The main thread owns it; the threads of a cell live only while that cell runs. */
#ifndef TB_BENCH_H
#define TB_BENCH_H

#include <stdint.h>

#include <tent/tent.h>

#include "perf/tentbench/background.h"
#include "perf/tentbench/cell.h"

struct tb_bench {
	const struct tb_args *args;
	struct tb_procs procs;     /* [0] is this process */
	tent_context *ctx;
	tent_segment *segment;
	tent_memory *memory;       /* the local pool, behind it the place where verify mode reads back */
	uint8_t *base;
	uint64_t readback_off;
	struct tb_background *background; /* NULL: none */
};

/* Attach, find the processes to charge, open the segment, allocate. false: explained on standard error. */
bool tb_bench_open(struct tb_bench *b, const struct tb_args *args);
void tb_bench_close(struct tb_bench *b);

/* Measure one cell. Whatever goes wrong, r->failed and r->why say so; nothing of the cell is outstanding afterwards. */
void tb_cell_run(struct tb_bench *b, const struct tb_spec *spec, struct tb_result *r);

/* The first lap: every block of both pools is moved once, which is when the daemons' page tables are filled. It is
 * reported beside the cells and counts into none, so that a cell's place in the sweep does not decide its figure. */
void tb_first_lap(struct tb_bench *b, struct tb_result *r);

/* tentbench serve: publish until SIGTERM or SIGINT. Exit status. */
int tb_serve(const struct tb_args *args);

#endif
