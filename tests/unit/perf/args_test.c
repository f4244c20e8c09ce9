/* SPDX-License-Identifier: Apache-2.0
 * Arguments of tentbench and the comparison loops: what is understood, and that nonsense is refused with its reason. */
#include "perf/tentbench/args.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "tests/unit/cu.h"

#define WORDS_MAX 24

/* Parses a command line given as one text; the complaint ends up in err. */
static int parse(struct tb_args *a, enum tb_tool tool, const char *line, char err[600])
{
	static char copies[64][500]; /* the strings of tb_args point into them */
	static unsigned next;
	char *copy = copies[next++ % 64], *words[WORDS_MAX + 1] = { NULL }, *rest = copy;
	FILE *f = tmpfile();
	int cnt = 0, saved = dup(STDERR_FILENO);

	CU_ASSERT_FATAL(f != NULL && saved >= 0 && strlen(line) < sizeof copies[0]);
	(void)snprintf(copy, sizeof copies[0], "tool %s", line);
	while (rest != NULL && cnt < WORDS_MAX) {
		char *w = strsep(&rest, " ");
		if (*w != '\0')
			words[cnt++] = w;
	}
	(void)fflush(stderr);
	CU_ASSERT_FATAL(dup2(fileno(f), STDERR_FILENO) >= 0);
	int rc = tb_args_parse(a, tool, cnt, words);
	(void)fflush(stderr);
	(void)dup2(saved, STDERR_FILENO);
	(void)close(saved);
	rewind(f);
	size_t n = fread(err, 1, 599, f);
	err[n] = '\0';
	(void)fclose(f);
	return rc;
}

static void takes_a_sweep(void)
{
	struct tb_args a;
	char err[600];

	CU_ASSERT_EQUAL(parse(&a, TB_TENT, "run b/kv -s 4K..64M,8 -d 1,32 -o read -t tcp -T 1.5s -j 2 -b -S 7 -D /x,/y", err),
			-1);
	CU_ASSERT_STRING_EQUAL(err, "");
	CU_ASSERT_STRING_EQUAL(a.segment, "b/kv");
	CU_ASSERT_EQUAL(a.size_cnt, 9);
	CU_ASSERT_EQUAL(a.sizes[0], 4096);
	CU_ASSERT_EQUAL(a.sizes[7], 64 << 20);
	CU_ASSERT_EQUAL(a.sizes[8], 8);
	CU_ASSERT_EQUAL(a.depth_cnt, 2);
	CU_ASSERT_EQUAL(a.depths[1], 32);
	CU_ASSERT_EQUAL(a.op_cnt, 1);
	CU_ASSERT_EQUAL(a.ops[0], TB_OP_READ);
	CU_ASSERT_EQUAL(a.transport, 3);
	CU_ASSERT_EQUAL(a.duration_ns, 1500 * TN_NS_PER_MS);
	CU_ASSERT_EQUAL(a.warmup_ns, 200 * TN_NS_PER_MS);
	CU_ASSERT_EQUAL(a.threads, 2);
	CU_ASSERT(a.busy && !a.verify);
	CU_ASSERT_EQUAL(a.seed, 7);
	CU_ASSERT_EQUAL(a.dir_cnt, 2);
	CU_ASSERT_STRING_EQUAL(a.dirs[1], "/y");
	CU_ASSERT(a.priority == 1 && a.background.bytes == 0);
	CU_ASSERT_EQUAL(parse(&a, TB_TENT, "run kv -y high --background low:64M:4", err), -1);
	CU_ASSERT(a.priority == 0 && a.background.priority == 2);
	CU_ASSERT(a.background.bytes == 64 << 20 && a.background.depth == 4);
	CU_ASSERT_EQUAL(parse(&a, TB_TENT, "run kv --time 10s", err), -1);
	CU_ASSERT_EQUAL(a.warmup_ns, TN_NS_PER_S);
	CU_ASSERT_EQUAL(a.op_cnt, 2);
	CU_ASSERT_EQUAL(parse(&a, TB_TENT, "serve kv 512M", err), -1);
	CU_ASSERT_EQUAL(a.role, TB_SERVE);
	CU_ASSERT_EQUAL(a.serve_bytes, TB_COLD_BYTES);
}

static void sizes_the_pools(void)
{
	struct tb_args a;
	char err[600];

	CU_ASSERT_EQUAL(parse(&a, TB_TENT, "run kv -s 4K,64M -d 1,16 -j 2", err), -1);
	CU_ASSERT_EQUAL(tb_args_pool_bytes(&a, 4096, 1), TB_COLD_BYTES);
	CU_ASSERT_EQUAL(tb_args_pool_bytes(&a, 64 << 20, 16), UINT64_C(2) << 30);
	CU_ASSERT_EQUAL(tb_args_pool_max(&a), UINT64_C(2) << 30);
	CU_ASSERT_EQUAL(parse(&a, TB_TENT, "run kv -s 4K -d 16 -j 2 -p hot", err), -1);
	CU_ASSERT_EQUAL(tb_args_pool_bytes(&a, 4096, 16), 4096 * 32);
	CU_ASSERT_EQUAL(parse(&a, TB_TENT, "run kv -s 4K -d 16 -p 64K", err), -1);
	CU_ASSERT_EQUAL(tb_args_pool_max(&a), 65536);
}

static void refuses_nonsense(void)
{
	static const struct { enum tb_tool tool; const char *line, *says; } rows[] = {
		{ TB_TENT, "", "say what to do" },
		{ TB_TENT, "fly kv", "\"fly\" is neither serve nor run" },
		{ TB_TENT, "run", "run takes one word" },
		{ TB_TENT, "run a b", "run takes one word" },
		{ TB_TENT, "serve kv", "NAME and its BYTES" },
		{ TB_TENT, "serve kv 0", "BYTES is \"0\"" },
		{ TB_TENT, "serve kv lots", "BYTES is \"lots\"" },
		{ TB_TENT, "run kv --size 0", "--size is \"0\"" },
		{ TB_TENT, "run kv --size 2G", "at most 1GiB" },
		{ TB_TENT, "run kv --size 4K,,8K", "empty item" },
		{ TB_TENT, "run kv --size 4K,4096", "names 4096 twice" },
		{ TB_TENT, "run kv --size 1M..4K", "range 1M..4K is empty" },
		{ TB_TENT, "run kv --size 4K..", "--size is \"\"" },
		{ TB_TENT, "run kv --depth 0", "from 1 to 4096" },
		{ TB_TENT, "run kv --depth 8k", "--depth is \"8k\"" },
		{ TB_TENT, "run kv --depth -3", "--depth is \"-3\"" },
		{ TB_TENT, "run kv --op copy", "read or write" },
		{ TB_TENT, "run kv --op read,read", "names read twice" },
		{ TB_TENT, "run kv --transport pigeon", "any, shm, tcp, hp_tcp or rdma" },
		{ TB_TENT, "run kv --priority urgent", "--priority is \"urgent\": high, medium or low" },
		{ TB_TENT, "run kv --background low:64M", "PRIORITY:SIZE:DEPTH" },
		{ TB_TENT, "run kv --background low:64M:4:1", "PRIORITY:SIZE:DEPTH" },
		{ TB_TENT, "run kv --background none:64M:4", "the priority is \"none\"" },
		{ TB_TENT, "run kv --background low:2G:4", "at most 1GiB" },
		{ TB_TENT, "run kv --background low:64M:0", "from 1 to 4096" },
		{ TB_TCP, "--background low:64M:4", "unknown option" },
		{ TB_TENT, "run kv --pool tepid", "cold, hot or a size" },
		{ TB_TENT, "run kv --pool 1M --size 1M --depth 8", "need 8388608" },
		{ TB_TENT, "run kv --time 5", "a duration like" },
		{ TB_TENT, "run kv --time 0s", "a duration like" },
		{ TB_TENT, "run kv --time 1s --count 5", "give one" },
		{ TB_TENT, "run kv --count 0", "--count is \"0\"" },
		{ TB_TENT, "run kv --threads 65", "from 1 to 64" },
		{ TB_TENT, "run kv --seed x", "--seed is \"x\"" },
		{ TB_TENT, "run kv --cpu 100000", "--cpu is \"100000\"" },
		{ TB_TENT, "run kv --pid 0", "--pid is \"0\"" },
		{ TB_TENT, "run kv --frobnicate", "unknown option --frobnicate" },
		{ TB_TENT, "run kv --size", "--size needs a value" },
		{ TB_MEMCPY, "kv", "what is \"kv\"" },
		{ TB_MEMCPY, "--depth 8", "unknown option" },
		{ TB_TCP, "--transport tcp", "unknown option" },
	};
	struct tb_args a;
	char err[600];

	for (size_t i = 0; i < TN_ARRAY_LEN(rows); i++) {
		int rc = parse(&a, rows[i].tool, rows[i].line, err);
		bool good = rc == 2 && strstr(err, rows[i].says) != NULL && strstr(err, tb_tool_name(rows[i].tool)) == err;

		CU_ASSERT(good);
		if (!good)
			fprintf(stderr, "\"%s\": exit %d, said: %s\n", rows[i].line, rc, err);
	}
}

static void pids_come_from_the_environment(void)
{
	struct tb_args a;
	char err[600], list[] = "12,34";

	CU_ASSERT_EQUAL_FATAL(setenv("TENTBENCH_PIDS", list, 1), 0);
	CU_ASSERT_EQUAL(parse(&a, TB_TENT, "run kv", err), -1);
	CU_ASSERT_EQUAL(a.pid_cnt, 2);
	CU_ASSERT_EQUAL(a.pids[1], 34);
	CU_ASSERT_EQUAL_FATAL(setenv("TENTBENCH_PIDS", "many", 1), 0);
	CU_ASSERT_EQUAL(parse(&a, TB_TENT, "run kv --pid 5", err), -1); /* the flag wins, the variable is not looked at */
	CU_ASSERT_EQUAL(a.pid_cnt, 1);
	CU_ASSERT_EQUAL(parse(&a, TB_TENT, "run kv", err), 2);
	CU_ASSERT_EQUAL_FATAL(unsetenv("TENTBENCH_PIDS"), 0);
}

TN_TEST_MAIN("perf arguments", { "a sweep is understood", takes_a_sweep },
	     { "pools hold what is in flight", sizes_the_pools },
	     { "nonsense is refused with its reason", refuses_nonsense },
	     { "pids come from the environment", pids_come_from_the_environment })
