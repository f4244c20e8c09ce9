/* SPDX-License-Identifier: Apache-2.0
 * Reads the command line of tentbench, memcpy_loop and tcp_loop. A table names the options and who knows them; values
 * are parsed one by one, then checked against each other. Start-up only. */
#include "perf/tentbench/args.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/compiler.h"
#include "common/rand.h"
#include "common/units.h"
#include "common/version.h"

#define ALL (TB_TENT | TB_MEMCPY | TB_TCP)

static const struct opt {
	const char *name;
	char key;
	int has_arg;
	unsigned tools;
	const char *value, *help;
} opts[] = {
	{ "size", 's', 1, ALL, "LIST", "bytes per operation: 4K,1M or 4K..64M (every fourth power of two) [1M]" },
	{ "depth", 'd', 1, TB_TENT | TB_TCP, "LIST", "operations in flight per thread [8]" },
	{ "op", 'o', 1, ALL, "LIST", "write, read or write,read [write,read]" },
	{ "transport", 't', 1, TB_TENT, "NAME", "any, shm, tcp, hp_tcp or rdma: only this one may serve [any]" },
	{ "pool", 'p', 1, ALL, "POOL", "cold (>= 512 MiB), hot (just the blocks in flight) or a size [cold]" },
	{ "time", 'T', 1, ALL, "DURATION", "measured time per cell [2s]" },
	{ "count", 'n', 1, ALL, "N", "end a cell after N operations (per thread) instead" },
	{ "warmup", 'w', 1, ALL, "DURATION", "discard at least this much first [200ms or 10 %, the longer]" },
	{ "threads", 'j', 1, TB_TENT, "N", "application threads, one queue pair each [1]" },
	{ "priority", 'y', 1, TB_TENT, "NAME", "high, medium or low [medium]" },
	{ "background", 'B', 1, TB_TENT, "LOAD", "PRIORITY:SIZE:DEPTH: keep such WRITEs in flight beside the cells" },
	{ "busy", 'b', 0, TB_TENT, NULL, "spin on tent_poll() instead of sleeping in tent_wait()" },
	{ "verify", 'V', 0, TB_TENT, NULL, "check every byte (WRITEs are read back); figures then include the checks" },
	{ "seed", 'S', 1, ALL, "N", "seed of order and content [drawn and printed]" },
	{ "cpu", 'c', 1, ALL, "LIST", "pin thread 0, 1 ... (tcp_loop: client, server) to these CPUs [not pinned]" },
	{ "pid", 'P', 1, TB_TENT, "LIST", "charge the CPU time of these processes, too [$TENTBENCH_PIDS]" },
	{ "daemons", 'D', 1, TB_TENT, "DIRS", "charge the daemons that listen in these runtime directories, too" },
	{ "deadline", 'x', 1, TB_TENT, "DURATION", "deadline of each request [the daemon's default]" },
	{ "hugetlb", 'H', 0, ALL, NULL, "use huge pages" },
	{ "runtime-dir", 'r', 1, TB_TENT, "DIR", "where tent-dataplane listens [$TENT_RUNTIME_DIR, or the default]" },
	{ "json", 'J', 1, ALL, "FILE", "also write JSON; - = standard output, the table then goes to standard error" },
	{ "version", 'v', 0, ALL, NULL, "print the version" },
	{ "help", 'h', 0, ALL, NULL, "print this" },
};

const char *tb_op_name(enum tb_op op) { return op == TB_OP_READ ? "read" : "write"; }

const char *tb_pool_name(enum tb_pool pool)
{
	return pool == TB_POOL_COLD ? "cold" : pool == TB_POOL_HOT ? "hot" : "bytes";
}

const char *tb_tool_name(enum tb_tool tool)
{
	return tool == TB_TENT ? "tentbench" : tool == TB_MEMCPY ? "memcpy_loop" : "tcp_loop";
}

TN_PRINTF(2, 3) static bool refuse(enum tb_tool tool, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	fprintf(stderr, "%s: ", tb_tool_name(tool));
	vfprintf(stderr, fmt, ap);
	fprintf(stderr, " (see --help)\n");
	va_end(ap);
	return false;
}

static void usage(enum tb_tool tool)
{
	const char *me = tb_tool_name(tool);

	if (tool == TB_TENT)
		printf("usage: %s serve NAME BYTES [OPTION...]   publish a pool until SIGTERM; prints READY\n"
		       "       %s run REF [OPTION...]            move blocks to and from segment REF (name or peer/name)\n"
		       "Measures what an application sees: from submit to the completion that it took. A cell in which any\n"
		       "operation fails is failed. Exit 0: every cell is good; 1: one failed; 2: wrong usage.\n", me, me);
	else
		printf("usage: %s [OPTION...]\n%s\n", me, tool == TB_MEMCPY ?
		       "The yardstick of shm: one memcpy() after the other between two pools, on one core." :
		       "The yardstick of tcp: a plain epoll request/response loop between two processes on loopback.");
	for (size_t i = 0; i < TN_ARRAY_LEN(opts); i++) {
		char left[40];

		if ((opts[i].tools & tool) == 0)
			continue;
		(void)snprintf(left, sizeof left, "-%c, --%s %s", opts[i].key, opts[i].name,
			       opts[i].value != NULL ? opts[i].value : "");
		printf("  %-26s %s\n", left, opts[i].help);
	}
}

/* ---- values ---- */

static bool parse_u64(const char *text, uint64_t min, uint64_t max, uint64_t *out)
{
	char *end;

	errno = 0;
	uint64_t v = strtoull(text, &end, 0);
	if (errno != 0 || end == text || *end != '\0' || text[0] == '-' || v < min || v > max)
		return false;
	*out = v;
	return true;
}

static bool take_count(struct tb_args *a, const char *name, const char *text, uint64_t min, uint64_t max, uint64_t *out)
{
	return parse_u64(text, min, max, out) ||
	       refuse(a->tool, "--%s is \"%s\": a whole number from %" PRIu64 " to %" PRIu64, name, text, min, max);
}

static bool take_duration(struct tb_args *a, const char *name, const char *text, uint64_t min_ns, uint64_t *out)
{
	uint64_t ns;

	if (tn_duration_parse(text, &ns) != TN_OK || ns < min_ns || ns > 24 * 3600 * TN_NS_PER_S)
		return refuse(a->tool, "--%s is \"%s\": a duration like 500ms or 2s, at most 24h", name, text);
	*out = ns;
	return true;
}

static bool take_size(struct tb_args *a, const char *what, const char *text, uint64_t max, uint64_t *out)
{
	char limit[TN_UNITS_TEXT];

	if (tn_bytes_parse(text, out) == TN_OK && *out >= 1 && *out <= max)
		return true;
	return refuse(a->tool, "%s is \"%s\": a number of bytes like 4096, 64K or 1MiB, at most %s", what, text,
		      tn_bytes_format_exact(max, limit));
}

static bool add_size(struct tb_args *a, uint64_t size)
{
	for (unsigned i = 0; i < a->size_cnt; i++)
		if (a->sizes[i] == size)
			return refuse(a->tool, "--size names %" PRIu64 " twice", size);
	if (a->size_cnt == TB_LIST_MAX)
		return refuse(a->tool, "--size has more than %d items", TB_LIST_MAX);
	a->sizes[a->size_cnt++] = size;
	return true;
}

/* "LO..HI": LO, 4 LO, 16 LO ... up to HI. */
static bool take_size_range(struct tb_args *a, char *item, char *dots)
{
	uint64_t lo, hi;

	*dots = '\0';
	if (!take_size(a, "--size", item, TB_SIZE_MAX, &lo) || !take_size(a, "--size", dots + 2, TB_SIZE_MAX, &hi))
		return false;
	if (lo > hi)
		return refuse(a->tool, "--size: the range %s..%s is empty", item, dots + 2);
	for (; lo <= hi; lo *= 4)
		if (!add_size(a, lo))
			return false;
	return true;
}

static bool take_item(struct tb_args *a, char key, char *item)
{
	uint64_t v;

	switch (key) {
	case 's': {
		char *dots = strstr(item, "..");
		if (dots != NULL)
			return take_size_range(a, item, dots);
		return take_size(a, "--size", item, TB_SIZE_MAX, &v) && add_size(a, v);
	}
	case 'd':
		if (!take_count(a, "depth", item, 1, TB_DEPTH_MAX, &v))
			return false;
		if (a->depth_cnt == TB_LIST_MAX)
			return refuse(a->tool, "--depth has more than %d items", TB_LIST_MAX);
		a->depths[a->depth_cnt++] = (uint32_t)v;
		return true;
	case 'o':
		if (strcmp(item, "read") != 0 && strcmp(item, "write") != 0)
			return refuse(a->tool, "--op is \"%s\": read or write", item);
		if (a->op_cnt == 2 || (a->op_cnt == 1 && strcmp(tb_op_name(a->ops[0]), item) == 0))
			return refuse(a->tool, "--op names %s twice", item);
		a->ops[a->op_cnt++] = item[0] == 'r' ? TB_OP_READ : TB_OP_WRITE;
		return true;
	case 'c':
		if (!take_count(a, "cpu", item, 0, (uint64_t)sysconf(_SC_NPROCESSORS_CONF) - 1, &v))
			return false;
		if (a->cpu_cnt == TB_LIST_MAX)
			return refuse(a->tool, "--cpu has more than %d items", TB_LIST_MAX);
		a->cpus[a->cpu_cnt++] = (int)v;
		return true;
	case 'P':
		if (!take_count(a, "pid", item, 1, INT32_MAX, &v))
			return false;
		if (a->pid_cnt == TB_LIST_MAX)
			return refuse(a->tool, "--pid has more than %d items", TB_LIST_MAX);
		a->pids[a->pid_cnt++] = (pid_t)v;
		return true;
	default: /* 'D' */
		if (a->dir_cnt == TB_LIST_MAX)
			return refuse(a->tool, "--daemons has more than %d items", TB_LIST_MAX);
		a->dirs[a->dir_cnt++] = item;
		return true;
	}
}

static bool take_list(struct tb_args *a, const char *name, char key, char *text)
{
	char *rest = text, *item;

	while ((item = strsep(&rest, ",")) != NULL) {
		if (*item == '\0')
			return refuse(a->tool, "--%s has an empty item", name);
		if (!take_item(a, key, item))
			return false;
	}
	return true;
}

static bool take_transport(struct tb_args *a, const char *text)
{
	static const char *const names[] = { "any", "rdma", "hp_tcp", "tcp", "shm" }; /* order of tent_transport */

	for (unsigned i = 0; i < TN_ARRAY_LEN(names); i++)
		if (strcmp(text, names[i]) == 0) {
			a->transport = i;
			return true;
		}
	return refuse(a->tool, "--transport is \"%s\": any, shm, tcp, hp_tcp or rdma", text);
}

static bool take_priority(struct tb_args *a, const char *what, const char *text, unsigned *out)
{
	static const char *const names[] = { "high", "medium", "low" }; /* order of tent_priority */

	for (unsigned i = 0; text != NULL && i < TN_ARRAY_LEN(names); i++)
		if (strcmp(text, names[i]) == 0) {
			*out = i;
			return true;
		}
	return refuse(a->tool, "%s is \"%s\": high, medium or low", what, text != NULL ? text : "");
}

static bool take_background(struct tb_args *a, char *text)
{
	char *rest = text, *priority = strsep(&rest, ":"), *size = strsep(&rest, ":"), *depth = strsep(&rest, ":");
	uint64_t cnt;

	if (depth == NULL || rest != NULL)
		return refuse(a->tool, "--background is PRIORITY:SIZE:DEPTH, like low:64M:4");
	if (!take_priority(a, "--background: the priority", priority, &a->background.priority) ||
	    !take_size(a, "--background: the size", size, TB_SIZE_MAX, &a->background.bytes) ||
	    !take_count(a, "background", depth, 1, TB_DEPTH_MAX, &cnt))
		return false;
	a->background.depth = (uint32_t)cnt;
	return true;
}

static bool take_pool(struct tb_args *a, const char *text)
{
	a->pool = TB_POOL_BYTES;
	if (strcmp(text, "cold") == 0)
		a->pool = TB_POOL_COLD;
	else if (strcmp(text, "hot") == 0)
		a->pool = TB_POOL_HOT;
	else
		return take_size(a, "--pool (cold, hot or a size)", text, TB_POOL_MAX, &a->pool_bytes);
	return true;
}

static bool take_option(struct tb_args *a, const struct opt *o, char *text)
{
	uint64_t v = 0;

	switch (o->key) {
	case 't': return take_transport(a, text);
	case 'p': return take_pool(a, text);
	case 'y': return take_priority(a, "--priority", text, &a->priority);
	case 'B': return take_background(a, text);
	case 'T': return take_duration(a, o->name, text, TN_NS_PER_MS, &a->duration_ns);
	case 'w': return take_duration(a, o->name, text, 0, &a->warmup_ns);
	case 'x': return take_duration(a, o->name, text, TN_NS_PER_MS, &a->deadline_ns);
	case 'n': return take_count(a, o->name, text, 1, UINT64_C(1) << 40, &a->count);
	case 'S': return take_count(a, o->name, text, 0, UINT64_MAX, &a->seed);
	case 'j':
		if (!take_count(a, o->name, text, 1, TB_THREADS_MAX, &v))
			return false;
		a->threads = (unsigned)v;
		return true;
	case 'b': a->busy = true; return true;
	case 'V': a->verify = true; return true;
	case 'H': a->hugetlb = true; return true;
	case 'r': a->runtime_dir = text; return true;
	case 'J': a->json_path = text; return true;
	default: return take_list(a, o->name, o->key, text);
	}
}

/* ---- the whole ---- */

static bool take_words(struct tb_args *a, int cnt, char **words)
{
	if (a->tool != TB_TENT)
		return cnt == 0 || refuse(a->tool, "what is \"%s\"? There are only options", words[0]);
	if (cnt == 0)
		return refuse(a->tool, "say what to do: serve NAME BYTES, or run REF");
	if (strcmp(words[0], "serve") == 0) {
		a->role = TB_SERVE;
		if (cnt != 3)
			return refuse(a->tool, "serve takes two words: the segment's NAME and its BYTES");
		a->segment = words[1];
		return take_size(a, "BYTES", words[2], TB_POOL_MAX, &a->serve_bytes);
	}
	if (strcmp(words[0], "run") != 0)
		return refuse(a->tool, "\"%s\" is neither serve nor run", words[0]);
	if (cnt != 2)
		return refuse(a->tool, "run takes one word: the segment to open, \"name\" or \"peer/name\"");
	a->segment = words[1];
	return true;
}

static void fill_defaults(struct tb_args *a)
{
	if (a->size_cnt == 0)
		a->sizes[a->size_cnt++] = 1 << 20;
	if (a->depth_cnt == 0)
		a->depths[a->depth_cnt++] = a->tool == TB_MEMCPY ? 1 : 8;
	if (a->op_cnt == 0) {
		a->ops[a->op_cnt++] = TB_OP_WRITE;
		a->ops[a->op_cnt++] = TB_OP_READ;
	}
	if (a->duration_ns == 0)
		a->duration_ns = 2 * TN_NS_PER_S;
}

static bool check_together(struct tb_args *a, bool has_time)
{
	if (a->count != 0 && has_time)
		return refuse(a->tool, "--time and --count are two bounds: give one");
	if (a->pool != TB_POOL_BYTES)
		return true;
	for (unsigned s = 0; s < a->size_cnt; s++)
		for (unsigned d = 0; d < a->depth_cnt; d++) {
			uint64_t need = a->sizes[s] * a->depths[d] * a->threads;
			if (need > a->pool_bytes)
				return refuse(a->tool, "--pool holds %" PRIu64 " bytes, but %" PRIu32 " blocks of %" PRIu64
					      " bytes in flight in %u thread(s) need %" PRIu64, a->pool_bytes, a->depths[d],
					      a->sizes[s], a->threads, need);
		}
	return true;
}

static const struct opt *find_option(int key, enum tb_tool tool)
{
	for (size_t i = 0; i < TN_ARRAY_LEN(opts); i++)
		if (opts[i].key == key && (opts[i].tools & tool) != 0)
			return &opts[i];
	return NULL;
}

int tb_args_parse(struct tb_args *a, enum tb_tool tool, int argc, char **argv)
{
	struct option longs[TN_ARRAY_LEN(opts) + 1] = { 0 };
	char shorts[3 * TN_ARRAY_LEN(opts) + 2] = ":", *at = shorts + 1;
	unsigned cnt = 0;
	bool has_time = false;
	int key;

	for (size_t i = 0; i < TN_ARRAY_LEN(opts); i++) {
		if ((opts[i].tools & tool) == 0)
			continue;
		longs[cnt++] = (struct option){ opts[i].name, opts[i].has_arg, NULL, opts[i].key };
		*at++ = opts[i].key;
		if (opts[i].has_arg)
			*at++ = ':';
	}
	*a = (struct tb_args){ .tool = tool, .threads = 1, .warmup_ns = UINT64_MAX, .priority = 1 /* medium */ };
	if (tn_rand_os(&a->seed, sizeof a->seed) != TN_OK)
		a->seed = tn_real_ns();
	a->seed >>= 32; /* short enough to be typed again */
	optind = 0;
	opterr = 0;
	while ((key = getopt_long(argc, argv, shorts, longs, NULL)) != -1) {
		const struct opt *o = find_option(key, tool);

		if (o == NULL)
			return refuse(tool, key == ':' ? "%s needs a value" : "unknown option %s", argv[optind - 1]), 2;
		if (key == 'h')
			return usage(tool), 0;
		if (key == 'v')
			return printf("%s %s %s\n", tb_tool_name(tool), TN_VERSION, TN_COMMIT), 0;
		has_time |= key == 'T';
		if (!take_option(a, o, optarg))
			return 2;
	}
	if (!take_words(a, argc - optind, argv + optind))
		return 2;
	fill_defaults(a);
	char *pids = getenv("TENTBENCH_PIDS");
	if (tool == TB_TENT && a->pid_cnt == 0 && pids != NULL && *pids != '\0' && !take_list(a, "pid", 'P', pids))
		return 2;
	if (a->warmup_ns == UINT64_MAX) /* 10 % of the operations are the window's own business when it is bound by count */
		a->warmup_ns = TN_MAX(a->count != 0 ? 0 : a->duration_ns / 10, 200 * TN_NS_PER_MS);
	return check_together(a, has_time) ? -1 : 2;
}

uint64_t tb_args_pool_bytes(const struct tb_args *a, uint64_t size, uint32_t depth)
{
	uint64_t need = size * depth * a->threads;

	switch (a->pool) {
	case TB_POOL_HOT: return need;
	case TB_POOL_BYTES: return a->pool_bytes;
	default: return TN_MAX(need, TB_COLD_BYTES);
	}
}

uint64_t tb_args_pool_max(const struct tb_args *a)
{
	uint64_t max = 0;

	for (unsigned s = 0; s < a->size_cnt; s++)
		for (unsigned d = 0; d < a->depth_cnt; d++) {
			uint64_t bytes = tb_args_pool_bytes(a, a->sizes[s], a->depths[d]);
			max = TN_MAX(max, bytes);
		}
	return max;
}
