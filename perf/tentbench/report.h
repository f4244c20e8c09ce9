/* SPDX-License-Identifier: Apache-2.0
 * Shows results: a table while the sweep runs, and one JSON document at its end (docs/performance.md describes it).
 * Both begin with the environment: a figure without it is a rumour. Main thread. */
#ifndef TB_REPORT_H
#define TB_REPORT_H

#include <stdio.h>

#include "common/json_out.h"
#include "common/text_buf.h"
#include "perf/tentbench/cell.h"

struct tb_report {
	const struct tb_args *args;
	const struct tb_procs *procs;
	FILE *table;
	struct tn_text text;
	struct tn_jout json;
	unsigned cells, failed;
};

/* argv becomes part of the environment; first_lap may be NULL. */
void tb_report_begin(struct tb_report *rep, const struct tb_args *args, const struct tb_procs *procs,
		     const struct tb_result *first_lap, int argc, char **argv);
void tb_report_cell(struct tb_report *rep, const struct tb_result *r);
/* Writes the JSON. The exit status of the tool: 0, or 1 when a cell failed or the file could not be written. */
int tb_report_end(struct tb_report *rep);

#endif
