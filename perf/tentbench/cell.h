/* SPDX-License-Identifier: Apache-2.0
 * One cell of a sweep: what is measured (spec), when (window: warm-up, then a bound by time or count), what came out
 * (result). The window opens and closes at a completion, so that no part of an operation is counted; throughput is the
 * bytes completed inside it over its length. Owned by the conductor: the first thread of the cell. */
#ifndef TB_CELL_H
#define TB_CELL_H

#include <stdbool.h>
#include <stdint.h>

#include "common/hist.h"
#include "perf/tentbench/args.h"
#include "perf/tentbench/procs.h"

struct tb_spec {
	enum tb_op op;
	uint64_t bytes;      /* of one operation */
	uint32_t depth;      /* in flight, per thread */
	uint64_t pool_bytes; /* of each side, all threads */
};

enum tb_edge { TB_EDGE_NONE = 0, TB_EDGE_OPEN, TB_EDGE_CLOSE };

struct tb_window {
	uint64_t warmup_ns, duration_ns;  /* duration 0: bound by count */
	uint64_t warmup_ops, ops;         /* of the conductor; ops is a minimum when bound by time */
	uint64_t start_ns, open_ns, open_ops;
	bool open, closed;
};

/* The window that the arguments ask for. Bound by time it holds at least `depth` operations, however slow they are. */
void tb_window_init(struct tb_window *w, const struct tb_args *a, uint32_t depth, uint64_t now_ns);
/* After completions were counted: `ops` of the conductor so far, `now` their time. Each edge is returned once. */
enum tb_edge tb_window_tick(struct tb_window *w, uint64_t now_ns, uint64_t ops);

struct tb_result {
	struct tb_spec spec;
	bool failed;
	char why[400];
	uint64_t ops, bytes;              /* completed inside the window */
	uint64_t retried;                 /* of them, those that needed more than one attempt */
	uint64_t verified_bytes;          /* checked, in and outside the window */
	uint64_t background_bytes;        /* moved beside it meanwhile */
	uint32_t transports;              /* bit tent_transport: what carried them */
	struct tb_moment begin, end;
	struct tn_loghist latency_ns;     /* submit to completion taken */
	struct tn_loghist daemon_ns;      /* of that, inside the data plane: from ingress to terminal; empty for the loops */
};

/* Length of the window; 0 when the cell never got that far. */
uint64_t tb_result_window_ns(const struct tb_result *r);
double tb_result_gbps(const struct tb_result *r);       /* 1e9 bytes per second */
double tb_result_background_gbps(const struct tb_result *r);
double tb_result_ops_per_s(const struct tb_result *r);
/* CPU seconds per 1e9 bytes: of process i of the list, or of all (i < 0). Negative: not known. */
double tb_result_cpu_per_gb(const struct tb_result *r, const struct tb_procs *ps, int i);
/* CPUs that others kept busy meanwhile (0 = the machine was ours), hypervisor's stolen time included. */
double tb_result_other_cpus(const struct tb_result *r, const struct tb_procs *ps);

#endif
