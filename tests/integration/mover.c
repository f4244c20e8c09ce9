/* SPDX-License-Identifier: Apache-2.0
 * The application of the integration tests: publishes memory with guard patterns around it (serve), or keeps writing and
 * reading blocks of somebody's segment and knows what every byte must be (move). Uses the public API only.
 *   mover serve NAME BYTES [-r DIR] [-f MEMFD]
 *   mover move REF [-r DIR] [-t SECONDS] [-b BLOCK] [-d DEPTH] [-s SEED] [-m DEADLINE_MS] [-q OPS_PER_S] [-p POLICY] [-o] [-i]
 * -f: the memory lives in this inherited memfd, so what was written survives the publisher (guards are checked, not made,
 * when they are there already); -o: WRITEs are AT_MOST_ONCE; -q: no faster than that; -i: the blocks lie in imported memory.
 *   mover churn REF [-r DIR] [-s SEED]
 * churn attaches, registers, publishes, opens REF, reads a little and gives everything back, again and again; a failure is
 * counted by its status and begins anew with another attachment.
 * move prints "ok <CLOCK_MONOTONIC ns>" at most every 10 ms while operations complete, and a JSON summary at the end.
 * Exit 0 only when no byte was wrong, no completion missing or doubled, and something moved. */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <tent/tent.h>

#include "tests/integration/app.h"

#define GUARD 65536u

static void die(const char *what)
{
	fprintf(stderr, "mover: %s: %s\n", what, tent_last_error());
	exit(1);
}

static tent_context *attach(const char *dir)
{
	tent_options opt = TENT_OPTIONS_INIT;
	tent_context *ctx;
	opt.runtime_dir = dir;
	opt.timeout_ns = 10 * NS_PER_S;
	opt.recover_timeout_ns = 60 * NS_PER_S;
	tent_status s;
	for (uint64_t end = now_ns() + 10 * NS_PER_S; (s = tent_open(&opt, &ctx)) == TENT_DATAPLANE_DOWN && now_ns() < end;)
		usleep(5000); /* it is being restarted */
	if (s != TENT_OK)
		die("tent_open");
	return ctx;
}

/* ---- patterns: every word of a block depends on seed, block, version and position ----
 * Not instrumented: they look at every byte that moved, and only within a buffer of this application. */

#define PLAIN __attribute__((no_sanitize("address", "thread", "undefined")))

PLAIN static inline uint64_t mix(uint64_t x)
{
	x ^= x >> 30;
	x *= UINT64_C(0xbf58476d1ce4e5b9);
	x ^= x >> 27;
	x *= UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 31;
}

PLAIN static void fill(uint64_t *to, size_t bytes, uint64_t key)
{
	for (size_t i = 0; i < bytes / 8; i++)
		to[i] = mix(key + i * UINT64_C(0x9e3779b97f4a7c15));
}

PLAIN static bool same(const uint64_t *at, size_t bytes, uint64_t key)
{
	for (size_t i = 0; i < bytes / 8; i++)
		if (at[i] != mix(key + i * UINT64_C(0x9e3779b97f4a7c15)))
			return false;
	return true;
}

/* ---- serve ---- */

/* The served memory: of its own, or of the memfd that the caller keeps. */
static uint8_t *serve_memory(tent_context *ctx, size_t bytes, int memfd, tent_memory **mem_out)
{
	uint32_t rights = TENT_RIGHT_REMOTE_READ | TENT_RIGHT_REMOTE_WRITE;
	if (memfd < 0) {
		if (tent_memory_alloc(ctx, bytes, rights, 0, mem_out) != TENT_OK)
			die("tent_memory_alloc");
		return tent_memory_addr(*mem_out);
	}
	void *base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memfd, 0);
	if (base == MAP_FAILED)
		die("mmap");
	if (tent_memory_register(ctx, memfd, 0, bytes, rights, mem_out) != TENT_OK)
		die("tent_memory_register");
	return base;
}

static int serve(tent_context *ctx, const char *name, size_t bytes, int memfd)
{
	tent_memory *mem;
	tent_published *pub;
	uint8_t *base = serve_memory(ctx, bytes + 2 * GUARD, memfd, &mem);
	uint64_t *before = (uint64_t *)(void *)base, *after = (uint64_t *)(void *)(base + GUARD + bytes);
	if (before[0] == 0) {
		fill(before, GUARD, 1);
		fill(after, GUARD, 2);
	}
	tent_buffer buffer = { .memory = mem, .offset = GUARD, .bytes = bytes };
	if (tent_segment_publish(ctx, name, &buffer, 1, NULL, &pub) != TENT_OK)
		die("tent_segment_publish");
	serve_until_stopped();
	bool good = same(before, GUARD, 1) && same(after, GUARD, 2);
	printf("{\"guards\":\"%s\"}\n", good ? "intact" : "OVERWRITTEN");
	tent_close(ctx);
	return good ? 0 : 1;
}

/* ---- move ---- */

enum { IDLE, WRITING, READING };
struct block { uint64_t version; uint32_t state; bool known; bool releasing; };

struct mover {
	tent_context *ctx;
	tent_qp *qp;
	tent_segment *seg;
	tent_memory *mem;
	uint8_t *base, *imported; /* imported: what it was allocated as */
	struct block *blocks; /* one operation per block at a time */
	uint32_t block_cnt, depth, outstanding;
	size_t block_bytes;
	uint64_t seed, rng, deadline_ns;
	uint64_t pace_ns, next_ns; /* between submissions; 0 = as fast as it goes */
	uint32_t flags;
	uint16_t policy;
	bool import; /* its memory is malloc()'s */
	uint64_t writes, reads, failed, wrong, stray, ok_ns, printed_ns, max_gap_ns;
	uint64_t by_status[512], by_transport[8];
};

static uint64_t key_of(const struct mover *m, uint32_t b, uint64_t version)
{
	return mix(m->seed) ^ mix(((uint64_t)b << 32) + version);
}

static uint64_t *buffer_of(const struct mover *m, uint32_t b)
{
	return (uint64_t *)(void *)(m->base + (size_t)b * m->block_bytes);
}

static bool submit(struct mover *m, uint32_t b)
{
	struct block *bl = &m->blocks[b];
	size_t accepted;
	bool write = !bl->known || (m->rng = mix(m->rng + 1)) % 2 == 0;
	tent_request rq = { .opcode = write ? TENT_WRITE : TENT_READ, .memory = m->mem, .segment = m->seg,
			    .memory_offset = (uint64_t)b * m->block_bytes, .segment_offset = (uint64_t)b * m->block_bytes,
			    .bytes = m->block_bytes, .user_data = b, .flags = write ? m->flags : 0,
			    .deadline_ns = now_ns() + m->deadline_ns, .policy = m->policy };
	if (write)
		fill(buffer_of(m, b), m->block_bytes, key_of(m, b, bl->version + 1));
	else
		memset(buffer_of(m, b), 0xee, m->block_bytes);
	tent_status s = tent_submit(m->qp, &rq, 1, &accepted);
	if (s == TENT_AGAIN)
		return false;
	if (s != TENT_OK)
		die("tent_submit");
	bl->state = write ? WRITING : READING;
	m->outstanding++;
	return true;
}

static void note_ok(struct mover *m, uint64_t now)
{
	if (m->ok_ns != 0 && now - m->ok_ns > m->max_gap_ns)
		m->max_gap_ns = now - m->ok_ns;
	m->ok_ns = now;
	if (now - m->printed_ns >= NS_PER_S / 100) {
		printf("ok %" PRIu64 "\n", now);
		fflush(stdout);
		m->printed_ns = now;
	}
}

static void complete(struct mover *m, const tent_completion *c, uint64_t now)
{
	struct block *bl = &m->blocks[c->user_data];
	if (c->user_data >= m->block_cnt || (c->kind == TENT_COMPLETION_RELEASE ? !bl->releasing : bl->state == IDLE)) {
		m->stray++; /* doubled, or never asked for */
		return;
	}
	if (c->kind == TENT_COMPLETION_RELEASE) {
		bl->releasing = false;
		return;
	}
	m->outstanding--;
	m->by_status[(uint32_t)(-c->status) % 512]++;
	bl->releasing = c->memory_busy;
	if (c->outcome == TENT_OUTCOME_COMPLETED) {
		m->by_transport[c->transport % 8]++;
		note_ok(m, now);
		if (bl->state == WRITING) {
			bl->version++;
			bl->known = true;
			m->writes++;
		} else {
			m->reads++;
			if (!same(buffer_of(m, (uint32_t)c->user_data), m->block_bytes,
				  key_of(m, (uint32_t)c->user_data, bl->version))) {
				m->wrong++;
				fprintf(stderr, "mover: WRONG BYTES in block %" PRIu64 " version %" PRIu64 "\n", c->user_data, bl->version);
			}
		}
	} else {
		m->failed++;
		if (m->failed <= 5) {
			char text[256];
			fprintf(stderr, "mover: %s\n", tent_completion_text(c, text, sizeof text));
		}
		if (bl->state == WRITING) { /* its bytes may be old, new or mixed: never reuse the version */
			bl->version++;
			bl->known = false;
		}
	}
	bl->state = IDLE;
}

static void take(struct mover *m, uint64_t wait_ns)
{
	tent_completion c[64];
	int n = tent_wait(m->qp, c, 64, wait_ns);
	if (n < 0)
		die("tent_wait");
	uint64_t now = now_ns();
	for (int i = 0; i < n; i++)
		complete(m, &c[i], now);
}

static uint32_t releasing(const struct mover *m)
{
	uint32_t n = 0;
	for (uint32_t b = 0; b < m->block_cnt; b++)
		n += m->blocks[b].releasing;
	return n;
}

static int summary(const struct mover *m, double seconds)
{
	bool lost = m->outstanding != 0 || releasing(m) != 0;
	bool good = m->wrong == 0 && m->stray == 0 && !lost && m->writes + m->reads > 0;
	printf("{\"writes\":%" PRIu64 ",\"reads\":%" PRIu64 ",\"failed\":%" PRIu64 ",\"wrong\":%" PRIu64 ",\"stray\":%" PRIu64
	       ",\"lost\":%u,\"max_gap_ms\":%" PRIu64 ",\"gb_per_s\":%.3f,\"status\":{",
	       m->writes, m->reads, m->failed, m->wrong, m->stray, m->outstanding + releasing(m), m->max_gap_ns / 1000000,
	       (double)(m->writes + m->reads) * (double)m->block_bytes / 1e9 / seconds);
	const char *comma = "";
	for (int i = 0; i < 512; i++)
		if (m->by_status[i] != 0) {
			printf("%s\"%s\":%" PRIu64, comma, tent_status_name((tent_status)-i), m->by_status[i]);
			comma = ",";
		}
	printf("},\"transport\":{");
	comma = "";
	for (int i = 0; i < 8; i++)
		if (m->by_transport[i] != 0) {
			printf("%s\"%s\":%" PRIu64, comma, tent_transport_name((tent_transport)i), m->by_transport[i]);
			comma = ",";
		}
	printf("}}\n");
	return good ? 0 : 1;
}

/* May one more be submitted? What was missed while things stood still is not made up for. */
static bool its_time(struct mover *m)
{
	uint64_t now = now_ns();
	if (m->pace_ns != 0 && now > m->next_ns + NS_PER_S / 20)
		m->next_ns = now;
	return now >= m->next_ns;
}

static bool make_memory(struct mover *m)
{
	size_t bytes = (size_t)m->block_cnt * m->block_bytes;
	if (m->import) {
		m->imported = malloc(bytes + 8);
		m->base = m->imported + 8; /* no page's */
		return m->imported != NULL && tent_memory_import(m->ctx, m->base, bytes, TENT_RIGHT_LOCAL, &m->mem) == TENT_OK;
	}
	if (tent_memory_alloc(m->ctx, bytes, TENT_RIGHT_LOCAL, 0, &m->mem) != TENT_OK)
		return false;
	m->base = tent_memory_addr(m->mem);
	return true;
}

static int move(struct mover *m, const char *ref, double seconds)
{
	tent_qp_options qo = TENT_QP_OPTIONS_INIT;
	qo.depth = m->depth;
	tent_status s;
	for (uint64_t end = now_ns() + 20 * NS_PER_S; (s = tent_segment_open(m->ctx, ref, &m->seg)) != TENT_OK;)
		if (now_ns() > end || s == TENT_INVALID)
			die("tent_segment_open");
	m->block_cnt = (uint32_t)(tent_segment_bytes(m->seg) / m->block_bytes);
	if (m->block_cnt > 4 * m->depth)
		m->block_cnt = 4 * m->depth;
	m->blocks = calloc(m->block_cnt, sizeof *m->blocks);
	if (m->block_cnt == 0 || m->blocks == NULL || !make_memory(m) || tent_qp_create(m->ctx, &qo, &m->qp) != TENT_OK)
		die("set-up");
	uint64_t start = now_ns(), end = start + (uint64_t)(seconds * 1e9);
	uint32_t next = 0;
	printf("RUNNING\n");
	fflush(stdout);
	m->ok_ns = start;
	while (!stop && now_ns() < end) {
		for (uint32_t tried = 0; m->outstanding < m->depth && tried < m->block_cnt && its_time(m); tried++) {
			next = (next + 1) % m->block_cnt;
			if (m->blocks[next].state != IDLE || m->blocks[next].releasing)
				continue;
			if (!submit(m, next))
				break;
			m->next_ns += m->pace_ns;
		}
		take(m, m->pace_ns != 0 ? m->pace_ns : NS_PER_S / 10);
	}
	double took = (double)(now_ns() - start) / 1e9;
	for (uint64_t drain = now_ns() + m->deadline_ns + 90 * NS_PER_S;
	     (m->outstanding > 0 || releasing(m) > 0) && now_ns() < drain;)
		take(m, NS_PER_S / 10);
	int rc = summary(m, took);
	tent_qp_destroy(m->qp);
	tent_close(m->ctx);
	free(m->blocks);
	free(m->imported);
	return rc;
}

/* ---- churn ---- */

#define CHURN_BYTES 65536u
#define CHURN_TOLD 200u /* failures of one status that are printed */

static uint64_t churn_status[512];

static bool churned(tent_status s)
{
	if (s != TENT_OK) {
		if (churn_status[(uint32_t)(-s) % 512]++ < CHURN_TOLD)
			fprintf(stderr, "mover: churn: %" PRIu64 ": %s\n", now_ns(), tent_last_error());
	}
	return s == TENT_OK;
}

/* One READ of the segment through a queue pair of its own. */
static bool churn_read(tent_context *ctx, tent_segment *seg, tent_memory *mem)
{
	tent_qp_options qo = TENT_QP_OPTIONS_INIT;
	tent_completion c = { .outcome = TENT_OUTCOME_FAILED };
	tent_qp *qp;
	size_t accepted;
	qo.depth = 8;
	if (!churned(tent_qp_create(ctx, &qo, &qp)))
		return false;
	tent_request rq = { .opcode = TENT_READ, .memory = mem, .segment = seg, .bytes = CHURN_BYTES,
			    .deadline_ns = now_ns() + 4 * NS_PER_S };
	bool good = churned(tent_submit(qp, &rq, 1, &accepted));
	while (good && tent_wait(qp, &c, 1, NS_PER_S) == 0)
		;
	good = good && churned(c.status);
	tent_qp_destroy(qp);
	return good;
}

/* Everything that can be had, and back. */
static bool churn_once(tent_context *ctx, const char *ref, const char *name)
{
	tent_memory *mem;
	tent_published *pub;
	tent_segment *seg;
	if (!churned(tent_memory_alloc(ctx, CHURN_BYTES, TENT_RIGHT_LOCAL | TENT_RIGHT_REMOTE_READ, 0, &mem)))
		return false;
	tent_buffer buffer = { .memory = mem, .bytes = CHURN_BYTES };
	return churned(tent_segment_publish(ctx, name, &buffer, 1, NULL, &pub)) && churned(tent_segment_open(ctx, ref, &seg)) &&
	       churn_read(ctx, seg, mem) && churned(tent_segment_close(seg)) && churned(tent_segment_withdraw(pub)) &&
	       churned(tent_memory_free(mem));
}

static int churn(const char *dir, const char *ref, uint64_t seed)
{
	tent_options opt = TENT_OPTIONS_INIT;
	tent_context *ctx = NULL;
	char name[32];
	uint64_t rounds = 0;
	opt.runtime_dir = dir;
	opt.timeout_ns = 2 * NS_PER_S;
	opt.recover_timeout_ns = 10 * NS_PER_S;
	snprintf(name, sizeof name, "churn-%" PRIu64, seed);
	printf("RUNNING\n");
	for (; !stop; usleep(20000)) {
		if (ctx == NULL && !churned(tent_open(&opt, &ctx))) {
			ctx = NULL;
		} else if (churn_once(ctx, ref, name)) {
			rounds++;
			printf("ok %" PRIu64 "\n", now_ns());
		} else {
			tent_close(ctx);
			ctx = NULL;
		}
		fflush(stdout);
	}
	tent_close(ctx);
	printf("{\"rounds\":%" PRIu64 ",\"status\":{", rounds);
	const char *comma = "";
	for (int i = 0; i < 512; i++)
		if (churn_status[i] != 0) {
			printf("%s\"%s\":%" PRIu64, comma, tent_status_name((tent_status)-i), churn_status[i]);
			comma = ",";
		}
	printf("}}\n");
	return rounds > 0 ? 0 : 1;
}

int main(int argc, char **argv)
{
	const char *dir = NULL, *policy = NULL;
	double seconds = 5;
	int memfd = -1;
	struct mover m = { .block_bytes = 65536, .depth = 16, .seed = 1, .deadline_ns = 20 * NS_PER_S };
	int o;
	if (argc < 3) {
		fprintf(stderr, "usage: mover serve NAME BYTES | move REF (see the head of mover.c)\n");
		return 2;
	}
	while ((o = getopt(argc - 1, argv + 1, "r:t:b:d:s:m:q:f:p:oi")) != -1) {
		switch (o) {
		case 'r': dir = optarg; break;
		case 't': seconds = atof(optarg); break;
		case 'b': m.block_bytes = strtoull(optarg, NULL, 0) & ~(size_t)7; break;
		case 'd': m.depth = (uint32_t)strtoul(optarg, NULL, 0); break;
		case 's': m.seed = strtoull(optarg, NULL, 0); break;
		case 'm': m.deadline_ns = strtoull(optarg, NULL, 0) * 1000000; break;
		case 'q': m.pace_ns = NS_PER_S / strtoull(optarg, NULL, 0); break;
		case 'p': policy = optarg; break;
		case 'f': memfd = atoi(optarg); break;
		case 'o': m.flags = TENT_REQUEST_AT_MOST_ONCE; break;
		case 'i': m.import = true; break;
		default: return 2;
		}
	}
	char **rest = argv + 1 + optind;
	signal(SIGTERM, on_signal);
	signal(SIGINT, on_signal);
	if (strcmp(argv[1], "churn") == 0 && rest[0] != NULL)
		return churn(dir, rest[0], m.seed);
	m.ctx = attach(dir);
	m.rng = m.seed;
	if (policy != NULL && tent_policy_find(m.ctx, policy, &m.policy) != TENT_OK)
		die("tent_policy_find");
	if (strcmp(argv[1], "serve") == 0 && rest[0] != NULL && rest[1] != NULL)
		return serve(m.ctx, rest[0], strtoull(rest[1], NULL, 0), memfd);
	if (strcmp(argv[1], "move") == 0 && rest[0] != NULL)
		return move(&m, rest[0], seconds);
	fprintf(stderr, "mover: what shall be done?\n");
	return 2;
}
