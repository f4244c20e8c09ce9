/* SPDX-License-Identifier: Apache-2.0
 * Runs seeds, each in a process of its own: what a killed daemon allocated is gone with it, and a crash is one seed's. */
#include <errno.h>
#include <ftw.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <sodium.h>

#include "tests/sim/cover.h"
#include "tests/sim/kernel.h"
#include "tests/sim/story.h"

#define SECONDS_MAX 120

#define JOBS_MAX 64u

struct options { uint64_t from, seeds, jobs; bool trace, twice, cover, until; };

struct result { uint64_t events, hash, virtual_ns; };

/* A seed that runs. */
struct job { pid_t pid; uint64_t seed; char dir[32]; };
static struct job jobs[JOBS_MAX];
static struct result *results; /* of the seed that each job ran last; shared with its process */
static uint64_t failed_cnt, events_sum, events_least = UINT64_MAX;

/* libsodium draws from the simulator, too. */
static uint32_t draw(void) { return sim.cur != NULL ? (uint32_t)tn_rand_u64(&sim.rand) : 4; }
static void draw_buf(void *const to, const size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		((uint8_t *)to)[i] = (uint8_t)draw();
}
static const char *draw_name(void) { return "sim"; }
static struct randombytes_implementation dice = { .implementation_name = draw_name, .random = draw, .buf = draw_buf };

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)st;
	(void)type;
	(void)at;
	return remove(path);
}

static void remove_tree(const char *dir)
{
	(void)nftw(dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static void run_seed(const struct job *j, struct result *r)
{
	(void)alarm(SECONDS_MAX);
	sim_init(j->seed);
	sim_cover_listen();
	sim_story(j->dir);
	*r = (struct result){ .events = sim.events, .hash = sim.hash, .virtual_ns = sim.now_ns };
	_exit(0);
}

static void start(struct job *j, uint64_t seed)
{
	j->seed = seed;
	(void)snprintf(j->dir, sizeof j->dir, "/dev/shm/tent-sim-XXXXXX");
	if (mkdtemp(j->dir) == NULL)
		abort();
	(void)fflush(NULL);
	j->pid = fork();
	if (j->pid < 0)
		abort();
	if (j->pid == 0)
		run_seed(j, &results[j - jobs]);
}

/* True: it passed. */
static bool ended(struct job *j, int status)
{
	const struct result *r = &results[j - jobs];
	remove_tree(j->dir);
	j->pid = 0;
	if (WIFSIGNALED(status))
		fprintf(stderr, "seed %" PRIu64 ": ended by signal %d (%s)%s\n", j->seed, WTERMSIG(status), strsignal(WTERMSIG(status)),
			WTERMSIG(status) == SIGALRM ? ": it hangs" : "");
	if (status == 0) {
		events_sum += r->events;
		events_least = TN_MIN(events_least, r->events);
		return true;
	}
	failed_cnt++;
	fprintf(stderr, "FAILED; again: tests/sim/run --from %" PRIu64 " --seeds 1 [--trace]\n", j->seed);
	return false;
}

static void wait_for_one(void)
{
	int status;
	pid_t pid;
	while ((pid = waitpid(-1, &status, 0)) < 0 && errno == EINTR) {}
	for (uint32_t i = 0; i < JOBS_MAX; i++)
		if (jobs[i].pid == pid && pid > 0)
			(void)ended(&jobs[i], status);
}

static struct job *free_job(const struct options *o)
{
	for (;;) {
		for (uint32_t i = 0; i < o->jobs; i++)
			if (jobs[i].pid == 0)
				return &jobs[i];
		wait_for_one();
	}
}

static void run_all(const struct options *o)
{
	uint32_t running = 0;
	for (uint64_t i = 0; i < o->seeds && !(o->until && failed_cnt > 0); i++)
		start(free_job(o), o->from + i);
	for (uint32_t i = 0; i < JOBS_MAX; i++)
		running += jobs[i].pid != 0;
	for (; running > 0; running--)
		wait_for_one();
}

/* Each seed two times; both runs must be the same, event by event. */
static void run_twice(const struct options *o)
{
	for (uint64_t i = 0; i < o->seeds; i++) {
		struct result first;
		uint64_t failed = failed_cnt;
		start(&jobs[0], o->from + i);
		wait_for_one();
		first = results[0];
		start(&jobs[0], o->from + i);
		wait_for_one();
		if (failed_cnt > failed || memcmp(&first, &results[0], sizeof first) == 0)
			continue;
		failed_cnt++;
		fprintf(stderr, "seed %" PRIu64 ": two runs differ: %" PRIu64 " and %" PRIu64 " events\n", o->from + i, first.events,
			results[0].events);
	}
}

static int usage(void)
{
	fprintf(stderr, "usage: sim [--seeds N] [--from S] [--jobs J] [--trace] [--twice] [--cover] [--until]\n"
			"  --seeds N   how many seeds to run (1)\n"
			"  --from S    the first of them (1)\n"
			"  --jobs J    so many at a time (1)\n"
			"  --until     stop at the first that fails\n"
			"  --trace     print every step (one seed)\n"
			"  --twice     run each seed twice and compare\n"
			"  --cover     fail when a move of a state machine was never made\n");
	return 2;
}

static bool parse(int argc, char **argv, struct options *o)
{
	for (int i = 1; i < argc; i++) {
		bool more = i + 1 < argc;
		if (strcmp(argv[i], "--seeds") == 0 && more)
			o->seeds = strtoull(argv[++i], NULL, 10);
		else if (strcmp(argv[i], "--from") == 0 && more)
			o->from = strtoull(argv[++i], NULL, 10);
		else if (strcmp(argv[i], "--jobs") == 0 && more)
			o->jobs = strtoull(argv[++i], NULL, 10);
		else if (strcmp(argv[i], "--until") == 0)
			o->until = true;
		else if (strcmp(argv[i], "--trace") == 0)
			o->trace = true;
		else if (strcmp(argv[i], "--twice") == 0)
			o->twice = true;
		else if (strcmp(argv[i], "--cover") == 0)
			o->cover = true;
		else
			return false;
	}
	return o->seeds > 0 && o->jobs > 0 && o->jobs <= JOBS_MAX;
}

/* Addresses decide nothing, but a run that differs must not be able to say so. */
static void same_addresses(char **argv)
{
	int now = personality(0xffffffff);
	if (now < 0 || (now & ADDR_NO_RANDOMIZE) != 0 || personality((unsigned long)now | ADDR_NO_RANDOMIZE) < 0)
		return;
	(void)execv("/proc/self/exe", argv);
}

int main(int argc, char **argv)
{
	struct options o = { .from = 1, .seeds = 1, .jobs = 1 };
	struct timespec begin, end;
	if (!parse(argc, argv, &o))
		return usage();
	same_addresses(argv);
	(void)randombytes_set_implementation(&dice);
	if (sodium_init() < 0)
		return 1;
	results = mmap(NULL, JOBS_MAX * sizeof *results, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (results == MAP_FAILED)
		return 1;
	sim_cover_init();
	sim_trace_all = o.trace;
	(void)clock_gettime(CLOCK_MONOTONIC, &begin);
	if (o.twice)
		run_twice(&o);
	else
		run_all(&o);
	(void)clock_gettime(CLOCK_MONOTONIC, &end);
	double s = (double)(end.tv_sec - begin.tv_sec) + (double)(end.tv_nsec - begin.tv_nsec) / 1e9;
	printf("%" PRIu64 " seeds from %" PRIu64 ": %" PRIu64 " failed, %" PRIu64 " events, %" PRIu64 " at least per seed, %.1f s\n", o.seeds,
	       o.from, failed_cnt, events_sum, events_least == UINT64_MAX ? 0 : events_least, s);
	unsigned gaps = o.cover ? sim_cover_print(stdout) : 0;
	if (gaps > 0)
		printf("%u moves were never made\n", gaps);
	return failed_cnt == 0 && gaps == 0 ? 0 : 1;
}
