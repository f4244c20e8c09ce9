/* SPDX-License-Identifier: Apache-2.0
 * The command line of tentbench and of the comparison loops: one parser, so that a sweep means the same to all of them.
 * Every argument is checked here, against its own range and against the others; nothing else refuses arguments. */
#ifndef TB_ARGS_H
#define TB_ARGS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define TB_LIST_MAX 32            /* items of --size, --depth, --cpu, --pid, --daemons */
#define TB_SIZE_MAX (UINT64_C(1) << 30)
#define TB_POOL_MAX (UINT64_C(1) << 40)
#define TB_DEPTH_MAX 4096u
#define TB_THREADS_MAX 64u
#define TB_COLD_BYTES (UINT64_C(512) << 20) /* a cold pool has at least this: more than any cache that we know */

enum tb_tool { TB_TENT = 1, TB_MEMCPY = 2, TB_TCP = 4 }; /* bits: an option names the tools that know it */
enum tb_role { TB_RUN = 0, TB_SERVE = 1 };
enum tb_op { TB_OP_READ = 1, TB_OP_WRITE = 2 };          /* numbers of tent_opcode */
enum tb_pool { TB_POOL_COLD = 0, TB_POOL_HOT = 1, TB_POOL_BYTES = 2 };

struct tb_args {
	enum tb_tool tool;
	enum tb_role role;
	const char *segment;             /* serve: its name; run: the reference to open */
	uint64_t serve_bytes;
	uint64_t sizes[TB_LIST_MAX];
	uint32_t depths[TB_LIST_MAX];
	enum tb_op ops[2];
	unsigned size_cnt, depth_cnt, op_cnt;
	unsigned transport;              /* tent_transport */
	enum tb_pool pool;
	uint64_t pool_bytes;             /* of TB_POOL_BYTES */
	uint64_t duration_ns;            /* bound of the window, unless count is set */
	uint64_t count;                  /* 0, or: the window ends after this many operations of the first thread */
	uint64_t warmup_ns;              /* shortest warm-up */
	uint64_t deadline_ns;            /* of each request, relative; 0 = the daemon's default */
	unsigned priority;               /* tent_priority */
	struct { unsigned priority; uint64_t bytes; uint32_t depth; } background; /* bytes 0: none */
	unsigned threads;
	bool busy, verify, hugetlb;
	uint64_t seed;
	int cpus[TB_LIST_MAX];           /* thread i is pinned to cpus[i % cpu_cnt] */
	unsigned cpu_cnt;
	pid_t pids[TB_LIST_MAX];         /* other processes whose CPU time is charged */
	unsigned pid_cnt;
	const char *dirs[TB_LIST_MAX];   /* runtime directories whose daemons are charged */
	unsigned dir_cnt;
	const char *runtime_dir;         /* NULL: libtent's default */
	const char *json_path;           /* NULL: none; "-": standard output */
};

/* Parse and check. -1: go on; else the exit code: 0 after --help or --version, 2 after a mistake, which is explained on
 * standard error. The strings point into argv (or the environment), lists given as text are cut in place there. */
int tb_args_parse(struct tb_args *a, enum tb_tool tool, int argc, char **argv);

/* Bytes of each of the two pools (local, remote) that a cell with these blocks in flight walks. */
uint64_t tb_args_pool_bytes(const struct tb_args *a, uint64_t size, uint32_t depth);
/* The largest of them over the whole sweep. */
uint64_t tb_args_pool_max(const struct tb_args *a);

const char *tb_op_name(enum tb_op op);
const char *tb_pool_name(enum tb_pool pool);
const char *tb_tool_name(enum tb_tool tool);

#endif
