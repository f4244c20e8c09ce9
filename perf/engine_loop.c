/* SPDX-License-Identifier: Apache-2.0
 * What a request costs inside a worker: the real stages and the real shared-memory transport, driven turn by turn in this
 * thread, with the application's half of the rings beside it. Virtual time, no system call per request: an instruction count of
 * engine_loop_measured() is the same in every run, which is what perf/record_cost.sh compares between two builds.
 *   engine_loop [REQUESTS [DEPTH]]      DEPTH requests of 64 bytes per turn; prints nanoseconds of this clock per request */
#include "common/clock.h"
#include "tests/unit/dataplane/rig.h"

enum { REQUEST_BYTES = 64, TURNS_MOST = 16 };

static uint64_t token;

/* Submits `depth` WRITEs and takes their completions. */
static void turn(struct rig *g, uint32_t depth)
{
	struct shr_sqe_shm sqe[RIG_SQ];
	struct shr_cqe_shm c;
	for (uint32_t i = 0; i < depth; i++)
		sqe[i] = rig_sqe(SHR_OP_WRITE, ++token, i * 2 * REQUEST_BYTES, i * 2 * REQUEST_BYTES, REQUEST_BYTES);
	rig_submit_on(&g->q, sqe, depth);
	uint32_t left = depth;
	for (unsigned i = 0; i < TURNS_MOST && left > 0; i++) {
		rig_steps(g, 1);
		while (rig_poll(g, &c)) {
			RIG_FATAL(c.status == TN_OK);
			left--;
		}
	}
	RIG_FATAL(left == 0);
}

static TN_NOINLINE void engine_loop_measured(struct rig *g, uint64_t turns, uint32_t depth)
{
	for (uint64_t i = 0; i < turns; i++)
		turn(g, depth);
}

int main(int argc, char **argv)
{
	static struct rig g;
	uint64_t requests = argc > 1 ? strtoull(argv[1], NULL, 10) : 1000000;
	uint32_t depth = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : 1;
	if (depth == 0 || depth > RIG_SQ || requests < depth) {
		fprintf(stderr, "usage: engine_loop [REQUESTS [DEPTH]]     1 <= DEPTH <= %u, REQUESTS >= DEPTH\n", RIG_SQ);
		return 2;
	}
	rig_open(&g, NULL, 0, NULL);
	for (unsigned i = 0; i < 100; i++) /* first use of pools and tables */
		turn(&g, depth);
	uint64_t turns = requests / depth, start = tn_now_ns();
	engine_loop_measured(&g, turns, depth);
	printf("%.2f\n", (double)(tn_now_ns() - start) / (double)(turns * depth));
	return 0;
}
