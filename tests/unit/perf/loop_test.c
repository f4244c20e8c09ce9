/* SPDX-License-Identifier: Apache-2.0
 * The measured loop against a libtent that lies: what is right is counted, and each lie makes the cell failed with its
 * reason, because a benchmark that overlooks an error flatters. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "perf/tentbench/bench.h"
#include "tests/unit/cu.h"
#include "tests/unit/perf/fake_tent.h"

#define BLOCK 1000u /* no multiple of a word */
#define DEPTH 5u
#define POOL (BLOCK * 16)
#define READBACK (64u << 10)

static struct tb_result result;

static struct tb_background *beside;

static void run(struct tb_args *a, enum tb_op op, enum fake_lie lie, uint64_t lie_at)
{
	static uint8_t local[READBACK + BLOCK * DEPTH], remote[POOL];
	struct tb_bench b = { .args = a, .ctx = fake_context(), .segment = fake_segment(), .base = local,
			      .readback_off = READBACK, .background = beside };
	struct tb_spec spec = { .op = op, .bytes = BLOCK, .depth = DEPTH, .pool_bytes = POOL };
	char err[200];
	uint32_t accept_max = fake.accept_max;

	fake = (struct fake){ .lie = lie, .lie_at = lie_at, .remote = remote, .remote_bytes = sizeof remote,
			      .accept_max = accept_max };
	b.memory = fake_memory(local, sizeof local);
	CU_ASSERT_FATAL(tb_procs_add(&b.procs, getpid(), err, sizeof err));
	tb_cell_run(&b, &spec, &result);
}

static struct tb_args args(bool verify)
{
	return (struct tb_args){ .tool = TB_TENT, .threads = 1, .count = 2000, .warmup_ns = TN_NS_PER_MS, .verify = verify,
				 .transport = TENT_TRANSPORT_SHM, .seed = 9 };
}

static void counts_what_is_right(void)
{
	for (int verify = 0; verify < 2; verify++)
		for (int op = TB_OP_READ; op <= TB_OP_WRITE; op++) {
			struct tb_args a = args(verify != 0);

			run(&a, (enum tb_op)op, FAKE_HONEST, 0);
			CU_ASSERT_FALSE(result.failed);
			CU_ASSERT(result.ops >= 2000);
			CU_ASSERT_EQUAL(result.bytes, result.ops * BLOCK);
			CU_ASSERT_EQUAL(result.latency_ns.cnt, result.ops);
			CU_ASSERT_EQUAL(result.daemon_ns.cnt, result.ops);
			CU_ASSERT_EQUAL(result.daemon_ns.max, 123);
			CU_ASSERT_EQUAL(result.transports, 1u << TENT_TRANSPORT_SHM);
			CU_ASSERT_EQUAL(fake.hint_seen, 1u << TENT_TRANSPORT_SHM);
			CU_ASSERT_EQUAL(fake.deepest, DEPTH);
			CU_ASSERT(verify == 0 || (result.verified_bytes >= result.bytes && fake.overlaps == 0));
			CU_ASSERT(tb_result_gbps(&result) > 0);
			CU_ASSERT(tb_result_cpu_per_gb(&result, &(struct tb_procs){ .cnt = 1 }, -1) > 0);
		}
}

static void goes_on_when_the_queue_is_full(void)
{
	struct tb_args a = args(true);

	fake.accept_max = 2;
	run(&a, TB_OP_WRITE, FAKE_HONEST, 0);
	fake.accept_max = 0;
	CU_ASSERT_FALSE(result.failed);
	CU_ASSERT(result.ops >= 2000 && result.bytes == result.ops * BLOCK);
}

static void spins_when_busy(void)
{
	struct tb_args a = args(false);

	a.busy = true;
	run(&a, TB_OP_WRITE, FAKE_BREAKS, 1); /* only tent_wait() breaks: a busy application never calls it */
	CU_ASSERT_FALSE(result.failed);
}

static void overlooks_nothing(void)
{
	static const struct { enum fake_lie lie; bool verify_only; const char *says; } rows[] = {
		{ FAKE_FAILS, false, "fake failure -8" },
		{ FAKE_CANCELS, false, "fake failure -9" },
		{ FAKE_FLIPS, true, "WRONG DATA: byte 999 of 1000" },
		{ FAKE_SKIPS, true, "WRONG DATA: byte 0" },
		{ FAKE_DOUBLES, false, "doubled or stray" },
		{ FAKE_STRAY, false, "doubled or stray" },
		{ FAKE_SHORT, false, "a completion of 999 bytes" },
		{ FAKE_REFUSES, false, "tent_submit: the fake says no" },
		{ FAKE_BREAKS, false, "taking completions: the fake says no" },
	};

	for (size_t i = 0; i < TN_ARRAY_LEN(rows); i++)
		for (int verify = rows[i].verify_only; verify < 2; verify++)
			for (int op = TB_OP_READ; op <= TB_OP_WRITE; op++) {
				struct tb_args a = args(verify != 0);

				run(&a, (enum tb_op)op, rows[i].lie, rows[i].lie == FAKE_BREAKS ? 77 : 777);
				bool good = result.failed && strstr(result.why, rows[i].says) != NULL;
				CU_ASSERT(good);
				if (!good)
					fprintf(stderr, "lie %u %s verify %d: \"%s\"\n", rows[i].lie, tb_op_name((enum tb_op)op), verify,
						result.why);
			}
}

/* What runs beside a cell is counted with it, and fails it. */
static void the_background_counts(void)
{
	static struct tb_background g;
	struct tb_args a = args(false);

	beside = &g;
	tn_store_relaxed64(&g.bytes, 12345);
	run(&a, TB_OP_WRITE, FAKE_HONEST, 0);
	CU_ASSERT(!result.failed && result.background_bytes == 0); /* of this cell */
	(void)snprintf(g.why, sizeof g.why, "in the background: it rains");
	tn_store_relaxed32(&g.failed, 1);
	run(&a, TB_OP_WRITE, FAKE_HONEST, 0);
	CU_ASSERT(result.failed && strcmp(result.why, "in the background: it rains") == 0);
	beside = NULL;
}

TN_TEST_MAIN("perf loop", { "the background counts", the_background_counts },
	     { "what is right is counted", counts_what_is_right },
	     { "a full queue is no error", goes_on_when_the_queue_is_full }, { "busy means spinning", spins_when_busy },
	     { "no lie is overlooked", overlooks_nothing })
