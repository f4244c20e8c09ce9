/* SPDX-License-Identifier: Apache-2.0
 * An application whose memory cannot be shared: it imports what malloc() and mmap() gave it. Uses the public API only.
 *   plain sizes DIR REF           WRITE and READ of many sizes at odd addresses, every byte and what lies around checked
 *   plain gone DIR REF            memory that is unmapped, or not for writing: FAULT, and nothing else is harmed
 *   plain rules DIR               what is refused
 *   plain many DIR REF            threads import, move and give back at once
 * Exit 0 only when all was as it must be. */
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <tent/tent.h>

#include "tests/integration/app.h"

#define GUARD 64u
#define PAGE 4096u

static void die(const char *what)
{
	fprintf(stderr, "plain: %s: %s\n", what, tent_last_error());
	exit(1);
}

#define MUST(call) do { if ((call) != TENT_OK) die(#call); } while (0)
#define CHECK(cond) \
	do { \
		if (!(cond)) { \
			fprintf(stderr, "plain: line %d: %s\n", __LINE__, #cond); \
			exit(1); \
		} \
	} while (0)

struct peer { tent_context *ctx; tent_segment *seg; tent_qp *qp; };

static struct peer attach(const char *dir, const char *ref)
{
	tent_options opt = TENT_OPTIONS_INIT;
	struct peer p = { 0 };
	opt.runtime_dir = dir;
	opt.timeout_ns = 20 * NS_PER_S;
	MUST(tent_open(&opt, &p.ctx));
	if (ref == NULL)
		return p;
	tent_status s;
	for (uint64_t end = now_ns() + 20 * NS_PER_S; (s = tent_segment_open(p.ctx, ref, &p.seg)) != TENT_OK;)
		if (now_ns() > end)
			die("tent_segment_open");
	MUST(tent_qp_create(p.ctx, NULL, &p.qp));
	return p;
}

/* One request, to its end: after its release, if it was busy. */
static tent_completion run(const struct peer *p, tent_opcode op, tent_memory *mem, uint64_t off, uint64_t seg_off, uint64_t bytes)
{
	tent_request rq = { .opcode = op, .memory = mem, .memory_offset = off, .segment = p->seg, .segment_offset = seg_off, .bytes = bytes };
	tent_completion c = { .memory_busy = true }, release;
	size_t accepted;
	MUST(tent_submit(p->qp, &rq, 1, &accepted));
	if (tent_wait(p->qp, &c, 1, 60 * NS_PER_S) != 1)
		die("tent_wait");
	if (c.memory_busy && (tent_wait(p->qp, &release, 1, 60 * NS_PER_S) != 1 || release.kind != TENT_COMPLETION_RELEASE))
		die("release");
	return c;
}

static uint8_t byte_at(uint64_t i, unsigned salt) { return (uint8_t)(i * 31 + i / 251 + i / 65521 * 7 + salt); }

static void sizes(const char *dir, const char *ref)
{
	static const size_t all[] = { 1, 2, 7, 4095, 4096, 4097, 65537, (1 << 20) - 1, 1 << 20, (1 << 20) + 1, (3 << 20) + 13, 64 << 20 };
	struct peer p = attach(dir, ref);
	size_t most = all[sizeof all / sizeof all[0] - 1];
	uint8_t *from = malloc(most + 2 * GUARD), *to = malloc(most + 2 * GUARD);
	CHECK(from != NULL && to != NULL);
	for (unsigned i = 0; i < sizeof all / sizeof all[0]; i++) {
		size_t bytes = all[i], skew = i % 5 + 1;
		uint64_t at = bytes < most ? i * 1001 + 3 : 0;
		tent_memory *source, *target;
		for (size_t k = 0; k < bytes; k++)
			from[skew + k] = byte_at(k, i);
		memset(to, 0xee, bytes + 2 * GUARD);
		MUST(tent_memory_import(p.ctx, from + skew, bytes, i % 2 ? TENT_RIGHT_LOCAL_READ : TENT_RIGHT_LOCAL, &source));
		MUST(tent_memory_import(p.ctx, to + GUARD + skew, bytes, TENT_RIGHT_LOCAL, &target));
		CHECK(tent_memory_addr(source) == from + skew && tent_memory_bytes(target) == bytes);
		tent_completion c = run(&p, TENT_WRITE, source, 0, at, bytes);
		CHECK(c.status == TENT_OK && c.bytes == bytes);
		memset(from + skew, 0, bytes); /* it is the application's again */
		c = run(&p, TENT_READ, target, 0, at, bytes);
		CHECK(c.status == TENT_OK && c.bytes == bytes);
		for (size_t k = 0; k < bytes; k++)
			CHECK(to[GUARD + skew + k] == byte_at(k, i));
		CHECK(to[GUARD + skew - 1] == 0xee && to[GUARD + skew + bytes] == 0xee);
		MUST(tent_memory_free(source));
		MUST(tent_memory_free(target));
		printf("%zu bytes over %s\n", bytes, tent_transport_name(c.transport));
	}
	free(from);
	free(to);
	MUST(tent_qp_destroy(p.qp));
	MUST(tent_close(p.ctx));
}

static void *pages(size_t bytes, int prot)
{
	void *at = mmap(NULL, bytes, prot, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(at != MAP_FAILED);
	return at;
}

static void gone(const char *dir, const char *ref)
{
	size_t bytes = 5 << 20;
	struct peer p = attach(dir, ref);
	tent_memory *mem, *good;
	uint8_t *at = pages(bytes, PROT_READ | PROT_WRITE), *spare = malloc(bytes);
	CHECK(spare != NULL);
	memset(spare, 0x77, bytes);
	MUST(tent_memory_import(p.ctx, at, bytes, TENT_RIGHT_LOCAL, &mem));
	MUST(tent_memory_import(p.ctx, spare, bytes, TENT_RIGHT_LOCAL, &good));
	CHECK(run(&p, TENT_WRITE, mem, 0, 0, bytes).status == TENT_OK);
	CHECK(munmap(at + (3 << 20) + PAGE, PAGE) == 0); /* a hole in the middle of a piece */
	CHECK(run(&p, TENT_WRITE, mem, 0, 0, bytes).status == TENT_FAULT);
	CHECK(run(&p, TENT_READ, mem, 0, 0, bytes).status == TENT_FAULT);
	CHECK(run(&p, TENT_READ, mem, 0, 0, 2 << 20).status == TENT_OK); /* what is there serves */
	CHECK(mprotect(at, 1 << 20, PROT_READ) == 0);
	CHECK(run(&p, TENT_WRITE, mem, 0, 0, 4096).status == TENT_OK);
	CHECK(run(&p, TENT_READ, mem, 0, 0, 4096).status == TENT_FAULT);
	CHECK(munmap(at, bytes) == 0);
	tent_completion c = run(&p, TENT_WRITE, mem, 5, 0, 1);
	char text[256];
	CHECK(c.status == TENT_FAULT && !c.memory_busy);
	printf("%s\n", tent_completion_text(&c, text, sizeof text));
	CHECK(run(&p, TENT_WRITE, good, 0, 0, bytes).status == TENT_OK);
	memset(spare, 0, bytes);
	CHECK(run(&p, TENT_READ, good, 0, 0, bytes).status == TENT_OK);
	for (size_t i = 0; i < bytes; i++)
		CHECK(spare[i] == 0x77);
	MUST(tent_memory_free(mem));
	MUST(tent_close(p.ctx));
	free(spare);
}

static void rules(const char *dir)
{
	struct peer p = attach(dir, NULL);
	static uint8_t memory[65536];
	tent_memory *mem, *other = NULL;
	tent_published *pub;
	CHECK(tent_memory_import(p.ctx, NULL, 1, TENT_RIGHT_LOCAL, &other) == TENT_INVALID);
	CHECK(tent_memory_import(p.ctx, memory, 0, TENT_RIGHT_LOCAL, &other) == TENT_INVALID);
	CHECK(tent_memory_import(p.ctx, memory, SIZE_MAX, TENT_RIGHT_LOCAL, &other) == TENT_INVALID);
	CHECK(tent_memory_import(p.ctx, memory, 1, 0, &other) == TENT_INVALID);
	CHECK(tent_memory_import(p.ctx, memory, 1, TENT_RIGHT_LOCAL, NULL) == TENT_INVALID);
	CHECK(tent_memory_import(p.ctx, memory, 1, TENT_RIGHT_LOCAL | TENT_RIGHT_REMOTE_READ, &other) == TENT_UNSUPPORTED);
	CHECK(strstr(tent_last_error(), "tent_memory_alloc") != NULL);
	MUST(tent_memory_import(p.ctx, memory + 1, 1000, TENT_RIGHT_LOCAL, &mem));
	CHECK(tent_memory_import(p.ctx, memory + 1000, 1, TENT_RIGHT_LOCAL, &other) == TENT_EXISTS);
	MUST(tent_memory_import(p.ctx, memory + 1001, 1, TENT_RIGHT_LOCAL, &other));
	tent_buffer buffer = { .memory = mem };
	CHECK(tent_segment_publish(p.ctx, "nope", &buffer, 1, NULL, &pub) == TENT_PERMISSION);
	printf("%s\n", tent_last_error());
	MUST(tent_memory_free(mem));
	CHECK(tent_memory_free(mem) == TENT_STALE);
	MUST(tent_memory_import(p.ctx, memory, sizeof memory - 1002 > 1000 ? 1000 : 1, TENT_RIGHT_LOCAL_READ, &mem));
	MUST(tent_close(p.ctx));
}

static struct peer shared;

static void *one_of_many(void *arg)
{
	size_t bytes = 300000, me = (size_t)(uintptr_t)arg;
	struct peer p = shared;
	MUST(tent_qp_create(p.ctx, NULL, &p.qp));
	for (unsigned round = 0; round < 30; round++) {
		uint8_t *at = malloc(bytes);
		tent_memory *mem;
		CHECK(at != NULL);
		for (size_t k = 0; k < bytes; k++)
			at[k] = byte_at(k, (unsigned)me + round);
		MUST(tent_memory_import(p.ctx, at, bytes, TENT_RIGHT_LOCAL, &mem));
		CHECK(run(&p, TENT_WRITE, mem, 0, me * bytes, bytes).status == TENT_OK);
		memset(at, 0, bytes);
		CHECK(run(&p, TENT_READ, mem, 0, me * bytes, bytes).status == TENT_OK);
		for (size_t k = 0; k < bytes; k++)
			CHECK(at[k] == byte_at(k, (unsigned)me + round));
		MUST(tent_memory_free(mem));
		free(at);
	}
	MUST(tent_qp_destroy(p.qp));
	return NULL;
}

static void many(const char *dir, const char *ref)
{
	pthread_t threads[6];
	shared = attach(dir, ref);
	for (size_t i = 0; i < 6; i++)
		CHECK(pthread_create(&threads[i], NULL, one_of_many, (void *)(uintptr_t)i) == 0);
	for (size_t i = 0; i < 6; i++)
		CHECK(pthread_join(threads[i], NULL) == 0);
	MUST(tent_close(shared.ctx));
}

int main(int argc, char **argv)
{
	const char *what = argc > 2 ? argv[1] : "", *ref = argc > 3 ? argv[3] : NULL;
	if (strcmp(what, "sizes") == 0 && ref != NULL)
		sizes(argv[2], ref);
	else if (strcmp(what, "gone") == 0 && ref != NULL)
		gone(argv[2], ref);
	else if (strcmp(what, "many") == 0 && ref != NULL)
		many(argv[2], ref);
	else if (strcmp(what, "rules") == 0)
		rules(argv[2]);
	else
		return 2;
	printf("DONE\n");
	return 0;
}
