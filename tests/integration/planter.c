/* SPDX-License-Identifier: Apache-2.0
 * The application of the redaction test: everything that must not be told of it carries a mark. Uses the public API only.
 *   planter DIR NAME REF...
 * Publishes NAME, then moves bytes to and from every REF until SIGTERM, with marked offsets, user data, payload and notices;
 * now and then it asks for what fails. Prints the addresses of its memory, which are marks too, and READY. */
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <tent/tent.h>

#include "tests/integration/app.h"

#define BYTES (4u << 20)
#define PAYLOAD "PLANTPAYLOAD"
#define NOTICE "PLANTNOTICE"
#define USER_DATA UINT64_C(5786123499123456789)
#define REMOTE_OFF 1236995u
#define LOCAL_OFF 777779u
#define REFS_MAX 8

static tent_context *ctx;
static tent_qp *qp;
static tent_memory *mem;
static uint64_t done_cnt;

static void check(tent_status s, const char *what)
{
	if (s == TENT_OK)
		return;
	fprintf(stderr, "planter: %s: %s\n", what, tent_last_error());
	exit(1);
}

static void reap(uint64_t until_ns)
{
	tent_completion c[16];
	while (tent_qp_outstanding(qp) > 0 && now_ns() < until_ns)
		for (int i = 0, n = tent_wait(qp, c, 16, NS_PER_S / 100); i < n; i++)
			done_cnt += c[i].outcome == TENT_OUTCOME_COMPLETED;
}

static void ask(tent_request r)
{
	r.memory = mem;
	r.priority = TENT_PRIORITY_MEDIUM;
	r.user_data = USER_DATA;
	r.deadline_ns = now_ns() + NS_PER_S / 2;
	(void)tent_submit(qp, &r, 1, NULL); /* a full queue says no: there is always a next round */
}

static void move_round(tent_segment *seg, unsigned round)
{
	tent_request r = { .opcode = TENT_WRITE, .segment = seg, .segment_offset = REMOTE_OFF, .memory_offset = LOCAL_OFF,
			   .bytes = 65536, .batch = round + 1 };
	ask(r);
	(void)tent_notify(qp, seg, round + 1, NOTICE, sizeof NOTICE, USER_DATA, now_ns() + NS_PER_S / 2);
	r.batch = 0;
	r.opcode = TENT_READ;
	ask(r);
	if (round % 8 != 0)
		return;
	r.intent = TENT_INTENT_CHECKPOINT;              /* by a policy, for a transport that is not there */
	ask(r);
	r.intent = TENT_INTENT_UNSPECIFIED;
	r.segment_offset = tent_segment_bytes(seg) - 1; /* beyond its end */
	ask(r);
}

int main(int argc, char **argv)
{
	tent_segment *seg[REFS_MAX];
	tent_published *pub;
	int cnt = argc - 3;
	if (cnt < 1 || cnt > REFS_MAX)
		return 2;
	signal(SIGTERM, on_signal);
	tent_options opt = TENT_OPTIONS_INIT;
	opt.runtime_dir = argv[1];
	opt.app_name = "plantapp";
	opt.timeout_ns = 10 * NS_PER_S;
	check(tent_open(&opt, &ctx), "open");
	check(tent_memory_alloc(ctx, BYTES, TENT_RIGHT_LOCAL | TENT_RIGHT_REMOTE_READ | TENT_RIGHT_REMOTE_WRITE, 0, &mem), "memory");
	uint8_t *base = tent_memory_addr(mem);
	for (size_t i = 0; i < BYTES; i++)
		base[i] = (uint8_t)PAYLOAD[i % (sizeof PAYLOAD - 1)];
	check(tent_segment_publish(ctx, argv[2], &(tent_buffer){ .memory = mem }, 1, NULL, &pub), "publish");
	check(tent_qp_create(ctx, NULL, &qp), "queue pair");
	for (int i = 0; i < cnt; i++)
		while (tent_segment_open(ctx, argv[3 + i], &seg[i]) != TENT_OK && !stop)
			usleep(50000); /* the other one is not there yet */
	tent_segment *none;
	(void)tent_segment_open(ctx, "plantnosuch", &none);
	printf("ADDRESS %" PRIuPTR "\nADDRESS %" PRIuPTR "\nREADY\n", (uintptr_t)base, (uintptr_t)base + LOCAL_OFF);
	fflush(stdout);
	for (unsigned round = 0; !stop; round++) {
		for (int i = 0; i < cnt; i++)
			move_round(seg[i], round);
		reap(now_ns() + NS_PER_S);
		usleep(5000);
	}
	printf("{\"completed\":%" PRIu64 "}\n", done_cnt);
	return done_cnt > 0 && tent_close(ctx) == TENT_OK ? 0 : 1;
}
