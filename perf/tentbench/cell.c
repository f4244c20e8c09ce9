/* SPDX-License-Identifier: Apache-2.0
 * The window of a cell, and the arithmetic of its result. See cell.h. */
#include "perf/tentbench/cell.h"

#include "common/clock.h"
#include "common/compiler.h"

void tb_window_init(struct tb_window *w, const struct tb_args *a, uint32_t depth, uint64_t now_ns)
{
	*w = (struct tb_window){
		.warmup_ns = a->warmup_ns,
		.duration_ns = a->count != 0 ? 0 : a->duration_ns,
		.warmup_ops = a->count != 0 ? (a->count + 9) / 10 : 1,
		.ops = a->count != 0 ? a->count : depth,
		.start_ns = now_ns,
	};
}

enum tb_edge tb_window_tick(struct tb_window *w, uint64_t now_ns, uint64_t ops)
{
	if (!w->open) {
		if (now_ns - w->start_ns < w->warmup_ns || ops < w->warmup_ops)
			return TB_EDGE_NONE;
		w->open = true;
		w->open_ns = now_ns;
		w->open_ops = ops;
		return TB_EDGE_OPEN;
	}
	if (w->closed || now_ns - w->open_ns < w->duration_ns || ops - w->open_ops < w->ops)
		return TB_EDGE_NONE;
	w->closed = true;
	return TB_EDGE_CLOSE;
}

uint64_t tb_result_window_ns(const struct tb_result *r)
{
	return r->end.at_ns > r->begin.at_ns ? r->end.at_ns - r->begin.at_ns : 0;
}

double tb_result_gbps(const struct tb_result *r)
{
	uint64_t ns = tb_result_window_ns(r);

	return ns == 0 ? 0 : (double)r->bytes / (double)ns;
}

double tb_result_background_gbps(const struct tb_result *r)
{
	uint64_t ns = tb_result_window_ns(r);

	return ns == 0 ? 0 : (double)r->background_bytes / (double)ns;
}

double tb_result_ops_per_s(const struct tb_result *r)
{
	uint64_t ns = tb_result_window_ns(r);

	return ns == 0 ? 0 : (double)r->ops * 1e9 / (double)ns;
}

static double cpu_ns(const struct tb_result *r, const struct tb_procs *ps)
{
	double sum = 0;

	for (unsigned i = 0; i < ps->cnt; i++)
		sum += (double)(r->end.cpu_ns[i] - r->begin.cpu_ns[i]);
	return sum;
}

double tb_result_cpu_per_gb(const struct tb_result *r, const struct tb_procs *ps, int i)
{
	if (r->bytes == 0 || r->begin.gone || r->end.gone)
		return -1;
	return (i < 0 ? cpu_ns(r, ps) : (double)(r->end.cpu_ns[i] - r->begin.cpu_ns[i])) / (double)r->bytes;
}

double tb_result_other_cpus(const struct tb_result *r, const struct tb_procs *ps)
{
	uint64_t ns = tb_result_window_ns(r);
	double all = (double)(r->end.busy_ns - r->begin.busy_ns) + (double)(r->end.steal_ns - r->begin.steal_ns);

	if (ns == 0 || r->begin.gone || r->end.gone)
		return 0;
	return TN_MAX(0.0, (all - cpu_ns(r, ps)) / (double)ns);
}
