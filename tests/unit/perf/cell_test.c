/* SPDX-License-Identifier: Apache-2.0
 * The window of a cell opens after the warm-up and closes at its bound; figures are what the definition says; the CPU
 * clocks of processes advance with their work. */
#include "perf/tentbench/cell.h"

#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/clock.h"
#include "tests/unit/cu.h"

static void bound_by_time(void)
{
	struct tb_args a = { .duration_ns = 1000, .warmup_ns = 200 };
	struct tb_window w;

	tb_window_init(&w, &a, 8, 5000);
	CU_ASSERT_EQUAL(tb_window_tick(&w, 5199, 50), TB_EDGE_NONE);
	CU_ASSERT_EQUAL(tb_window_tick(&w, 5200, 60), TB_EDGE_OPEN);
	CU_ASSERT_EQUAL(tb_window_tick(&w, 6199, 80), TB_EDGE_NONE);
	CU_ASSERT_EQUAL(tb_window_tick(&w, 6200, 67), TB_EDGE_NONE); /* not yet as many as are in flight */
	CU_ASSERT_EQUAL(tb_window_tick(&w, 6300, 68), TB_EDGE_CLOSE);
	CU_ASSERT_EQUAL(tb_window_tick(&w, 9999, 99), TB_EDGE_NONE);
}

static void bound_by_count(void)
{
	struct tb_args a = { .count = 100, .duration_ns = 1000, .warmup_ns = 200 };
	struct tb_window w;

	tb_window_init(&w, &a, 8, 0);
	CU_ASSERT_EQUAL(tb_window_tick(&w, 300, 9), TB_EDGE_NONE);
	CU_ASSERT_EQUAL(tb_window_tick(&w, 301, 10), TB_EDGE_OPEN);
	CU_ASSERT_EQUAL(tb_window_tick(&w, 302, 109), TB_EDGE_NONE);
	CU_ASSERT_EQUAL(tb_window_tick(&w, 303, 112), TB_EDGE_CLOSE);
}

static void arithmetic(void)
{
	static struct tb_result r;
	struct tb_procs ps = { .cnt = 2 };

	r.bytes = 3000000000;
	r.ops = 3000;
	r.begin.at_ns = 1000000000;
	r.end.at_ns = 3000000000;
	r.end.cpu_ns[0] = 1200000000;
	r.end.cpu_ns[1] = 300000000;
	r.end.busy_ns = 2500000000;
	CU_ASSERT_DOUBLE_EQUAL(tb_result_gbps(&r), 1.5, 1e-9);
	CU_ASSERT_DOUBLE_EQUAL(tb_result_ops_per_s(&r), 1500, 1e-9);
	CU_ASSERT_DOUBLE_EQUAL(tb_result_cpu_per_gb(&r, &ps, -1), 0.5, 1e-9);
	CU_ASSERT_DOUBLE_EQUAL(tb_result_cpu_per_gb(&r, &ps, 1), 0.1, 1e-9);
	CU_ASSERT_DOUBLE_EQUAL(tb_result_other_cpus(&r, &ps), 0.5, 1e-9);
	r.end.gone = true;
	CU_ASSERT(tb_result_cpu_per_gb(&r, &ps, -1) < 0);
}

static void clocks_of_processes(void)
{
	static struct tb_procs ps;
	struct tb_moment before, after;
	char err[200];
	pid_t child = fork();

	if (child == 0)
		for (;;)
			(void)tn_now_ns();
	CU_ASSERT_FATAL(child > 0);
	CU_ASSERT_FATAL(tb_procs_add(&ps, getpid(), err, sizeof err));
	CU_ASSERT_FATAL(tb_procs_add(&ps, child, err, sizeof err));
	CU_ASSERT_FATAL(tb_procs_add(&ps, child, err, sizeof err)); /* counted once */
	CU_ASSERT_EQUAL(ps.cnt, 2);
	CU_ASSERT(strcmp(ps.p[1].name, "?") != 0 && strcmp(ps.p[1].cpus, "?") != 0);
	tb_procs_sample(&ps, &before);
	uint64_t end_ns = tn_deadline_after(tn_now_ns(), 10 * TN_NS_PER_S);
	do { /* the child gets its turn, whatever the load */
		(void)usleep(20000);
		tb_procs_sample(&ps, &after);
	} while (after.cpu_ns[1] - before.cpu_ns[1] < 5 * TN_NS_PER_MS && tn_now_ns() < end_ns);
	CU_ASSERT(after.cpu_ns[1] - before.cpu_ns[1] >= 5 * TN_NS_PER_MS);
	CU_ASSERT(after.cpu_ns[0] - before.cpu_ns[0] < after.at_ns - before.at_ns);
	CU_ASSERT_FALSE(after.gone);
	(void)kill(child, SIGKILL);
	CU_ASSERT_EQUAL(waitpid(child, NULL, 0), child);
	tb_procs_sample(&ps, &after);
	CU_ASSERT_TRUE(after.gone);
	CU_ASSERT_FALSE(tb_procs_add(&(struct tb_procs){ .cnt = 0 }, child, err, sizeof err));
	CU_ASSERT_PTR_NOT_NULL(strstr(err, "process"));
}

TN_TEST_MAIN("perf cell", { "window bound by time", bound_by_time }, { "window bound by count", bound_by_count },
	     { "arithmetic", arithmetic }, { "clocks of processes", clocks_of_processes })
