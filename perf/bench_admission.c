/* SPDX-License-Identifier: Apache-2.0
 * What one owner's way through the admission queue costs (push, next, dispatch, release), by the number of targets that
 * have work: it must not grow with them. A million owners wait all the time; whoever is released enters again at the
 * end of its queue. In time by default; with --instructions it counts, under callgrind, what noise cannot touch. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/rand.h"
#include "dataplane/admission/queue.h"

#define TARGETS_MAX 8000u
#define ROUNDS_MAX 64u
#define IN_FLIGHT 64u

struct bench {
	struct dp_admission adm;
	struct dp_tally tally;
	struct tn_metrics metrics;
	struct dp_owner *owners;
	uint32_t *order;
	uint64_t now_ns;
};

struct opts { uint32_t targets[16], target_cnt, queued, turns, rounds; bool instructions; };

static tn_a64 cells[TN_METRIC_CELL_CNT];

static void die(const char *what)
{
	fprintf(stderr, "bench_admission: %s\n", what);
	exit(2);
}

/* Everybody waits, evenly spread. Owners lie in memory in no order, as those of a pool that has been in use do: else
 * one target alone would walk over neighbours, and many would not. */
static void fill(struct bench *b, const struct opts *o, uint32_t targets)
{
	static const uint64_t bytes[] = { 4096, 16384, 65536, 262144 };
	tn_metrics_bind(&b->metrics, cells, true);
	dp_tally_init(&b->tally, &b->metrics);
	struct dp_admission_cfg cfg = { .targets = TARGETS_MAX + 1, .quantum_bytes = 1 << 20, .window_owners = 1u << 30,
					.peer_window_owners = 1u << 30, .window_bytes = UINT64_MAX, .peer_window_bytes = UINT64_MAX,
					.stall_ns = 200 * TN_NS_PER_MS };
	if (dp_admission_init(&b->adm, &cfg, &b->metrics, &b->tally) != TN_OK)
		die("out of memory");
	for (uint32_t i = 0; i < o->queued; i++) {
		struct dp_owner *owner = &b->owners[b->order[i]];
		memset(owner, 0, sizeof *owner);
		tn_list_init(&owner->link);
		owner->peer_index = i % targets;
		owner->priority = TN_PRIORITY_MEDIUM;
		owner->bytes = bytes[b->order[i] % TN_ARRAY_LEN(bytes)];
		dp_admission_push(&b->adm, owner, b->now_ns, false);
	}
}

/* What is measured, and what callgrind is told to collect: by this name. */
void bench_turns(struct bench *b, uint32_t turns);
__attribute__((noinline)) void bench_turns(struct bench *b, uint32_t turns)
{
	struct dp_owner *out[IN_FLIGHT];
	for (uint32_t done = 0; done < turns; done += IN_FLIGHT) {
		b->now_ns += 1000;
		dp_admission_resume(&b->adm, b->now_ns);
		for (uint32_t i = 0; i < IN_FLIGHT; i++) {
			out[i] = dp_admission_next(&b->adm, b->now_ns);
			dp_admission_dispatch(&b->adm, out[i], b->now_ns);
		}
		for (uint32_t i = 0; i < IN_FLIGHT; i++) {
			dp_admission_release(&b->adm, out[i]);
			dp_admission_push(&b->adm, out[i], b->now_ns, false);
		}
		dp_tally_flush(&b->tally);
	}
}

static void shuffle(uint32_t *order, uint32_t cnt)
{
	struct tn_rand r;
	tn_rand_seed(&r, 1);
	for (uint32_t i = 0; i < cnt; i++)
		order[i] = i;
	for (uint32_t i = cnt; i-- > 1;) {
		uint32_t j = (uint32_t)tn_rand_below(&r, i + 1), t = order[i];
		order[i] = order[j];
		order[j] = t;
	}
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static double median(double *v, uint32_t cnt)
{
	qsort(v, cnt, sizeof *v, by_value);
	return v[cnt / 2];
}

static void table(const char *unit, const struct opts *o, const double *cost)
{
	double lo = cost[0], hi = cost[0];
	printf("%8s %12s\n", "targets", unit);
	for (uint32_t i = 0; i < o->target_cnt; i++) {
		lo = TN_MIN(lo, cost[i]);
		hi = TN_MAX(hi, cost[i]);
		printf("%8u %12.1f\n", o->targets[i], cost[i]);
	}
	printf("largest to smallest: %.3f (%u queued, per owner: push, next, dispatch, release)\n", hi / lo, o->queued);
}

static void run_here(const struct opts *o)
{
	static double ns[16][ROUNDS_MAX];
	double cost[16];
	struct bench *b = calloc(1, sizeof *b);
	if (!b || !(b->owners = calloc(o->queued, sizeof *b->owners)) || !(b->order = calloc(o->queued, sizeof *b->order)))
		die("out of memory");
	shuffle(b->order, o->queued);
	for (uint32_t round = 0; round < o->rounds; round++) /* interleaved: the machine's moods hit all alike */
		for (uint32_t i = 0; i < o->target_cnt; i++) {
			fill(b, o, o->targets[i]);
			uint64_t start = tn_now_ns();
			bench_turns(b, o->turns);
			ns[i][round] = (double)(tn_now_ns() - start) / o->turns;
			dp_admission_destroy(&b->adm);
		}
	for (uint32_t i = 0; i < o->target_cnt; i++)
		cost[i] = median(ns[i], o->rounds);
	table("ns", o, cost);
	free(b->owners);
	free(b->order);
	free(b);
}

/* This program again, under callgrind, with one number of targets. */
static double instructions(const struct opts *o, const char *self, uint32_t targets)
{
	char cmd[512], line[512];
	unsigned long long total = 0;
	snprintf(cmd, sizeof cmd, "valgrind --tool=callgrind --callgrind-out-file=/dev/null --toggle-collect=bench_turns "
		 "'%s' --targets %u --queued %u --turns %u --rounds 1 2>&1", self, targets, o->queued, o->turns);
	FILE *f = popen(cmd, "r");
	if (!f)
		die("cannot start valgrind");
	while (fgets(line, sizeof line, f)) {
		const char *at = strstr(line, "Collected : ");
		if (at)
			total = strtoull(at + strlen("Collected : "), NULL, 10);
	}
	if (pclose(f) != 0 || total == 0)
		die("valgrind counted nothing: is it installed?");
	return (double)total / o->turns;
}

static void run_counted(const struct opts *o, const char *self)
{
	double cost[16];
	for (uint32_t i = 0; i < o->target_cnt; i++)
		cost[i] = instructions(o, self, o->targets[i]);
	table("instructions", o, cost);
}

static uint32_t number(const char *text, uint32_t lo, uint32_t hi)
{
	char *end;
	unsigned long n = strtoul(text, &end, 10);
	if (end == text || *end != '\0' || n < lo || n > hi)
		die("a number is out of range; see --help");
	return (uint32_t)n;
}

static void parse_targets(struct opts *o, char *text)
{
	char *save = NULL;
	o->target_cnt = 0;
	for (char *t = strtok_r(text, ",", &save); t && o->target_cnt < 16; t = strtok_r(NULL, ",", &save))
		o->targets[o->target_cnt++] = number(t, 1, TARGETS_MAX);
	if (o->target_cnt == 0)
		die("--targets names none");
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "targets", required_argument, NULL, 't' }, { "queued", required_argument, NULL, 'q' },
		{ "turns", required_argument, NULL, 'n' }, { "rounds", required_argument, NULL, 'r' },
		{ "instructions", no_argument, NULL, 'i' }, { "help", no_argument, NULL, 'h' }, { 0 },
	};
	struct opts o = { .targets = { 1, 10, 100, 1000 }, .target_cnt = 4, .queued = 1000000, .turns = 640000, .rounds = 5 };
	for (int c; (c = getopt_long(argc, argv, "", options, NULL)) != -1;)
		switch (c) {
		case 't': parse_targets(&o, optarg); break;
		case 'q': o.queued = number(optarg, 1, 10000000); break;
		case 'n': o.turns = number(optarg, 1, 100000000); break;
		case 'r': o.rounds = number(optarg, 1, ROUNDS_MAX); break;
		case 'i': o.instructions = true; break;
		default:
			puts("usage: bench_admission [--targets 1,10,100,1000] [--queued 1000000] [--turns 640000] [--rounds 5] "
			     "[--instructions]");
			return c == 'h' ? 0 : 2;
		}
	if (o.queued < IN_FLIGHT)
		die("--queued must be at least 64");
	o.turns = (o.turns + IN_FLIGHT - 1) / IN_FLIGHT * IN_FLIGHT;
	if (o.instructions)
		run_counted(&o, argv[0]);
	else
		run_here(&o);
	return 0;
}
