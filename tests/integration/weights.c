/* SPDX-License-Identifier: Apache-2.0
 * Model weights: memory that is written once and then only read, and those who load it. Uses the public API only.
 *   weights serve DIR NAME KIND REF...   publishes such memory as NAME until SIGTERM, and before that writes it to each REF.
 *       KIND: write (F_SEAL_WRITE), future (F_SEAL_FUTURE_WRITE), reader (a descriptor that is open for reading only)
 *   weights load DIR REF                 reads all of it and tries to write to it
 * Every right and every request that would write into it must be refused as PERMISSION, and every byte of it, guards
 * included, be what it was. Prints a line per refusal; exit 0 only when all of it was right. */
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <tent/tent.h>

#include "tests/integration/app.h"

#define GUARD 65536u
#define BODY ((3u << 20) + 4099u) /* no multiple of anything */
#define ALL (GUARD + BODY + GUARD)
#define FAR_OFF (UINT64_C(8) << 20) /* where nobody else moves anything in the segments of others */
#define READING (TENT_RIGHT_LOCAL_READ | TENT_RIGHT_REMOTE_READ)

static tent_context *ctx;
static tent_qp *qp;
static bool good = true;

static _Noreturn void die(const char *what)
{
	fprintf(stderr, "weights: %s: %s\n", what, tent_last_error());
	exit(1);
}

static void expect(bool right, const char *what)
{
	if (!right)
		printf("WRONG %s\n", what);
	good = good && right;
}

static uint8_t byte_at(size_t i) { return i < GUARD || i >= GUARD + BODY ? 0x77 : (uint8_t)((i * 31 + (i >> 8) * 7) | 1); }

static void refused(const char *what, tent_status s, const char *says)
{
	bool right = s == TENT_PERMISSION && strstr(tent_last_error(), says) != NULL;
	printf("%s%s: %s\n", right ? "" : "WRONG ", what, tent_last_error());
	good = good && right;
}

static tent_request request(tent_opcode op, tent_memory *mem, tent_segment *seg, uint64_t seg_off)
{
	return (tent_request){ .opcode = op, .memory = mem, .memory_offset = GUARD, .segment = seg, .segment_offset = seg_off,
			       .bytes = BODY, .deadline_ns = now_ns() + 20 * NS_PER_S };
}

static void move(tent_request rq, const char *what)
{
	tent_completion c;
	char text[400];
	int n;
	if (tent_submit(qp, &rq, 1, NULL) != TENT_OK)
		die("tent_submit");
	while ((n = tent_wait(qp, &c, 1, 30 * NS_PER_S)) == 1 && c.kind != TENT_COMPLETION_REQUEST) {}
	if (n != 1)
		die("tent_wait");
	printf("%s: %s\n", what, tent_completion_text(&c, text, sizeof text));
	expect(c.status == TENT_OK, what);
}

/* Memory of a reader: guards that nobody may touch around what is read. */
static uint8_t *room(tent_memory **mem_out)
{
	if (tent_memory_alloc(ctx, ALL, TENT_RIGHT_LOCAL, 0, mem_out) != TENT_OK)
		die("tent_memory_alloc");
	return memset(tent_memory_addr(*mem_out), 0x77, ALL);
}

static bool is_weights(const uint8_t *at)
{
	for (size_t i = 0; i < ALL; i++)
		if (at[i] != byte_at(i))
			return false;
	return true;
}

/* ---- serve ---- */

static int sealed_object(const char *kind)
{
	int fd = memfd_create("weights", MFD_CLOEXEC | MFD_ALLOW_SEALING), seals = F_SEAL_SHRINK | F_SEAL_GROW;
	uint8_t *at = fd >= 0 && ftruncate(fd, ALL) == 0 ? mmap(NULL, ALL, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) : MAP_FAILED;
	char path[64];
	if (at == MAP_FAILED)
		die("memfd");
	for (size_t i = 0; i < ALL; i++)
		at[i] = byte_at(i);
	munmap(at, ALL);
	if (strcmp(kind, "reader") != 0)
		seals |= F_SEAL_SEAL | (strcmp(kind, "write") == 0 ? F_SEAL_WRITE : F_SEAL_FUTURE_WRITE);
	if (fcntl(fd, F_ADD_SEALS, seals) != 0)
		die("seals");
	if (strcmp(kind, "reader") != 0)
		return fd;
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	int reader = open(path, O_RDONLY | O_CLOEXEC);
	close(fd);
	return reader;
}

/* It is the source of WRITEs, and not the destination of a READ. */
static void push(const char *ref, tent_memory *weights)
{
	tent_memory *back;
	tent_segment *seg;
	uint8_t *at = room(&back);
	if (tent_segment_open(ctx, ref, &seg) != TENT_OK)
		die(ref);
	move(request(TENT_WRITE, weights, seg, FAR_OFF), ref);
	move(request(TENT_READ, back, seg, FAR_OFF), ref);
	expect(is_weights(at), "what was written is not what was read");
	tent_request rq = request(TENT_READ, weights, seg, FAR_OFF);
	refused("READ into it", tent_submit(qp, &rq, 1, NULL), "so nothing is read into it");
	if (tent_segment_close(seg) != TENT_OK || tent_memory_free(back) != TENT_OK)
		die("giving back");
}

static void serve(const char *name, const char *kind, char **refs)
{
	static uint8_t now[ALL];
	static const uint32_t writing[] = { TENT_RIGHT_LOCAL, TENT_RIGHT_REMOTE_WRITE, READING | TENT_RIGHT_REMOTE_WRITE };
	int fd = sealed_object(kind);
	tent_memory *mem, *never;
	tent_published *pub;
	for (size_t i = 0; i < sizeof writing / sizeof writing[0]; i++)
		refused(kind, tent_memory_register(ctx, fd, 0, ALL, writing[i], &never), "only TENT_RIGHT_LOCAL_READ");
	if (tent_memory_register(ctx, fd, 0, ALL, READING, &mem) != TENT_OK)
		die("tent_memory_register");
	for (; *refs != NULL; refs++)
		push(*refs, mem);
	tent_buffer buffer = { .memory = mem, .offset = GUARD, .bytes = BODY, .rights = TENT_RIGHT_REMOTE_WRITE };
	refused("published for WRITE", tent_segment_publish(ctx, name, &buffer, 1, NULL, &pub), "rights");
	buffer.rights = 0;
	if (tent_segment_publish(ctx, name, &buffer, 1, NULL, &pub) != TENT_OK)
		die("tent_segment_publish");
	serve_until_stopped();
	expect(pread(fd, now, ALL, 0) == ALL && is_weights(now), "a byte of the weights changed");
}

/* ---- load ---- */

static void load(const char *ref)
{
	tent_memory *mem;
	tent_segment *seg;
	uint8_t *at = room(&mem);
	if (tent_segment_open(ctx, ref, &seg) != TENT_OK)
		die(ref);
	expect(tent_segment_bytes(seg) == BODY, "its length");
	move(request(TENT_READ, mem, seg, 0), ref);
	expect(is_weights(at), "what was read is not what they are");
	tent_request rq = request(TENT_WRITE, mem, seg, 0);
	refused("WRITE to it", tent_submit(qp, &rq, 1, NULL), "does not allow remote WRITE");
}

int main(int argc, char **argv)
{
	tent_options opt = TENT_OPTIONS_INIT;
	if (argc < 4 || (strcmp(argv[1], "serve") == 0 && argc < 5)) {
		fprintf(stderr, "usage: weights serve DIR NAME write|future|reader REF... | load DIR REF\n");
		return 2;
	}
	signal(SIGTERM, on_signal);
	opt.runtime_dir = argv[2];
	opt.timeout_ns = 10 * NS_PER_S;
	if (tent_open(&opt, &ctx) != TENT_OK || tent_qp_create(ctx, NULL, &qp) != TENT_OK)
		die("set-up");
	if (strcmp(argv[1], "serve") == 0)
		serve(argv[3], argv[4], argv + 5);
	else
		load(argv[3]);
	tent_close(ctx);
	return good ? 0 : 1;
}
