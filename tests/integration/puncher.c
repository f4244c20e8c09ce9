/* SPDX-License-Identifier: Apache-2.0
 * The application whose memory is bad, and those who meet it. Uses the public API only.
 *   puncher broken DIR NAME REF...      The data plane cannot have the middle page of this memory (fault point
 *       dp_memory_hole). Moves parts of it to and from every REF, then publishes it as NAME until SIGTERM.
 *   puncher meet DIR REF                moves sound memory to and from such a segment.
 *   puncher taken DIR REF               gives a huge page of its memory back and takes every free one, so that the data
 *       plane really cannot have that page; then moves it to and from REF. Exit 77: no huge pages here.
 *   puncher refusals DIR TAKEN REF      registers, cuts, punches and publishes what must be refused or harmless.
 * Whatever touches the bad page must fail with `fault` and say whose memory it was; whatever does not must be right to
 * the byte; no byte beside the range of an operation may change. Prints one line of text per refusal; exit 0 only when
 * all of it was right. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <tent/tent.h>

#include "tests/integration/app.h"

#define GUARD 65536u
#define BODY (1u << 20)
#define HOLE (BODY / 2) /* of one page; in the middle of guard, body, guard */
#define PAGE 4096u
#define FAR_OFF (UINT64_C(8) << 20) /* where nobody else moves anything in the segments of others */

static tent_context *ctx;
static tent_qp *qp;
static tent_memory *mem;
static uint8_t *base;
static _Noreturn void die(const char *what)
{
	fprintf(stderr, "puncher: %s: %s\n", what, tent_last_error());
	exit(1);
}

static void attach(const char *dir)
{
	tent_options opt = TENT_OPTIONS_INIT;
	opt.runtime_dir = dir;
	opt.timeout_ns = 10 * NS_PER_S;
	if (tent_open(&opt, &ctx) != TENT_OK)
		die("tent_open");
}

static void take_memory(void)
{
	const uint32_t rights = TENT_RIGHT_LOCAL | TENT_RIGHT_REMOTE_READ | TENT_RIGHT_REMOTE_WRITE;
	if (tent_memory_alloc(ctx, BODY + 2 * GUARD, rights, 0, &mem) != TENT_OK || tent_qp_create(ctx, NULL, &qp) != TENT_OK)
		die("set-up");
	base = tent_memory_addr(mem);
	memset(base, 0x77, BODY + 2 * GUARD);
}

static uint8_t pattern(size_t i, unsigned key) { return (uint8_t)((i * 31 + (i >> 8) * 7 + key) | 1); }

static void fill(unsigned key)
{
	for (size_t i = 0; i < BODY; i++)
		base[GUARD + i] = pattern(i, key);
}

/* Everything outside of [off, off + bytes) of the body is still `value`, and both guards are. */
static bool rest_is(uint8_t value, size_t off, size_t bytes)
{
	for (size_t i = 0; i < BODY + 2 * GUARD; i++) {
		bool guard = i < GUARD || i >= GUARD + BODY;
		bool inside = i >= GUARD + off && i < GUARD + off + bytes;
		if (!inside && base[i] != (guard ? 0x77 : value))
			return false;
	}
	return true;
}

static bool body_is(unsigned key, size_t off, size_t bytes)
{
	for (size_t i = off; i < off + bytes; i++)
		if (base[GUARD + i] != pattern(i, key))
			return false;
	return true;
}

static void move(tent_opcode op, tent_segment *seg, uint64_t seg_off, size_t off, size_t bytes, tent_completion *c)
{
	tent_request rq = { .opcode = op, .memory = mem, .memory_offset = GUARD + off, .segment = seg,
			    .segment_offset = seg_off + off, .bytes = bytes, .deadline_ns = now_ns() + 20 * NS_PER_S };
	size_t accepted;
	int n;
	if (tent_submit(qp, &rq, 1, &accepted) != TENT_OK)
		die("tent_submit");
	while ((n = tent_wait(qp, c, 1, 30 * NS_PER_S)) == 1 && c->kind != TENT_COMPLETION_REQUEST) {}
	if (n != 1)
		die("tent_wait");
}

/* The page is touched or not, from every side. */
static const struct { size_t off, bytes; bool good; const char *what; } ranges[] = {
	{ 0, 65536, true, "far before it" },
	{ HOLE - 8, 8, true, "up to its first byte" },
	{ HOLE - 65536, 131072, false, "over it" },
	{ HOLE, PAGE, false, "all of it" },
	{ HOLE + 8, 8, false, "a word inside" },
	{ HOLE - 1, 2, false, "over its first byte" },
	{ HOLE + PAGE - 1, 2, false, "over its last byte" },
	{ HOLE + PAGE, 8, true, "from behind its last byte" },
	{ 0, BODY, false, "everything" },
	{ HOLE + 65536, 65536, true, "far behind it" },
};
static bool told[2]; /* one text for people per direction */

static bool judge(const char *ref, size_t i, const tent_completion *c, const char *phase)
{
	char text[400];
	bool right = ranges[i].good ? c->status == TENT_OK :
		     c->status == TENT_FAULT && c->outcome == TENT_OUTCOME_FAILED &&
		     strcmp(tent_phase_name(c->phase), phase) == 0 && strcmp(tent_reason_name(c->reason), "mr_error") == 0;
	if (!right || (!ranges[i].good && !told[c->opcode & 1])) {
		printf("%s%s, %s: %s\n", right ? "" : "WRONG ", ref, ranges[i].what, tent_completion_text(c, text, sizeof text));
		told[c->opcode & 1] |= right;
	}
	return right;
}

/* One WRITE of a known pattern and one READ back. */
static bool try_one(const char *ref, size_t i, tent_segment *seg, uint64_t seg_off, const char *phase)
{
	const size_t off = ranges[i].off, bytes = ranges[i].bytes;
	const unsigned key = 3 * (unsigned)i;
	tent_completion c;
	fill(key);
	move(TENT_WRITE, seg, seg_off, off, bytes, &c);
	bool right = judge(ref, i, &c, phase), untouched = rest_is(0, 0, BODY) && body_is(key, 0, BODY);
	memset(base + GUARD, 0x5a, BODY);
	move(TENT_READ, seg, seg_off, off, bytes, &c);
	right = judge(ref, i, &c, phase) && right;
	untouched = rest_is(0x5a, off, bytes) && untouched;
	bool same = !ranges[i].good || body_is(key, off, bytes);
	if (!untouched || !same)
		printf("WRONG %s, %s: %s\n", ref, ranges[i].what, same ? "bytes beside the range changed" : "not what was written");
	return right && untouched && same;
}

/* phase: "post" when the local memory is the bad one, "completion" when the segment is. */
static bool try_all(const char *ref, uint64_t seg_off, const char *phase)
{
	tent_segment *seg;
	bool good = true;
	if (tent_segment_open(ctx, ref, &seg) != TENT_OK)
		die(ref);
	told[0] = told[1] = false;
	for (size_t i = 0; i < sizeof ranges / sizeof ranges[0]; i++)
		good = try_one(ref, i, seg, seg_off, phase) && good;
	tent_segment_close(seg);
	return good;
}

static tent_status publish(const char *name)
{
	tent_published *pub;
	tent_buffer buffer = { .memory = mem, .offset = GUARD, .bytes = BODY };
	return tent_segment_publish(ctx, name, &buffer, 1, NULL, &pub);
}

static bool broken(const char *name, char **refs)
{
	bool good = true;
	take_memory();
	for (; *refs != NULL; refs++)
		good = try_all(*refs, FAR_OFF, "post") && good;
	if (publish(name) != TENT_OK)
		die("tent_segment_publish");
	printf("%s\n", good ? "good" : "bad");
	serve_until_stopped();
	bool intact = rest_is(0, 0, BODY);
	printf("guards %s\n", intact ? "intact" : "OVERWRITTEN");
	return good && intact;
}

static bool meet(const char *ref)
{
	take_memory();
	return try_all(ref, 0, "completion");
}

/* The last pages of a pool are gone: a page of registered memory is punched out, and somebody else takes it. */
static int taken(const char *ref)
{
	tent_segment *seg;
	tent_completion c;
	struct stat st;
	char text[400];
	bool good = true;
	int fd = memfd_create("puncher", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_HUGETLB);
	if (fd < 0 || fstat(fd, &st) != 0 || ftruncate(fd, 2 * st.st_blksize) != 0 || fallocate(fd, 0, 0, 2 * st.st_blksize) != 0) {
		printf("no two huge pages are free here\n");
		return 77;
	}
	const size_t huge = (size_t)st.st_blksize;
	if (tent_memory_register(ctx, fd, 0, 2 * huge, TENT_RIGHT_LOCAL, &mem) != TENT_OK ||
	    tent_qp_create(ctx, NULL, &qp) != TENT_OK || tent_segment_open(ctx, ref, &seg) != TENT_OK)
		die("set-up");
	if (fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)huge, (off_t)huge) != 0)
		die("punch");
	while (mmap(NULL, huge, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB | MAP_POPULATE, -1, 0) != MAP_FAILED) {}
	for (unsigned i = 0; i < 4; i++) {
		bool bad = i < 2; /* over the border to the page that is gone, then before it */
		move(i % 2 == 0 ? TENT_WRITE : TENT_READ, seg, 0, bad ? huge - GUARD - PAGE : 0, 2 * PAGE, &c);
		printf("%s\n", tent_completion_text(&c, text, sizeof text));
		good = good && c.status == (bad ? TENT_FAULT : TENT_OK);
	}
	return good ? 0 : 1;
}

/* ---- what is refused ---- */

static int object(size_t bytes, unsigned flags, int seals)
{
	int fd = memfd_create("puncher", MFD_CLOEXEC | flags);
	if (fd < 0 || ftruncate(fd, (off_t)bytes) != 0 || (seals != 0 && fcntl(fd, F_ADD_SEALS, seals) != 0))
		die("memfd");
	return fd;
}

static int plain(void) { return object(4 * PAGE, MFD_ALLOW_SEALING, 0); }
static int never_sealed(void) { return object(4 * PAGE, 0, 0); }
static int sealed_off(void) { return object(4 * PAGE, MFD_ALLOW_SEALING, F_SEAL_SEAL); }
static int write_sealed(void) { return object(4 * PAGE, MFD_ALLOW_SEALING, F_SEAL_WRITE); }
static int empty(void) { return object(0, MFD_ALLOW_SEALING, 0); }
static int device(void) { return open("/dev/zero", O_RDWR | O_CLOEXEC); }
static int closed(void) { return -1; }
static char shm_path[] = "/dev/shm/puncher-XXXXXX";
static int shm_file(void)
{
	int fd = mkstemp(shm_path);
	if (fd < 0 || ftruncate(fd, PAGE) != 0)
		die("file");
	return fd;
}
static int read_only(void)
{
	char path[64];
	int fd = plain();
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	return open(path, O_RDONLY | O_CLOEXEC);
}

static const struct {
	const char *what;
	int (*make)(void);
	uint64_t offset;
	size_t bytes;
	tent_status status;
	const char *says;
} bad[] = {
	{ "longer than the object", plain, 0, 4 * PAGE + 1, TENT_RANGE, "beyond the memfd's 16384 bytes" },
	{ "end beyond the object", plain, PAGE, 4 * PAGE, TENT_RANGE, "offset 4096 + bytes 16384" },
	{ "start at its end", plain, 4 * PAGE, 1, TENT_RANGE, "beyond" },
	{ "offset + bytes overflows", plain, UINT64_MAX - 4095, 8192, TENT_RANGE, "beyond" },
	{ "bytes overflows", plain, PAGE, SIZE_MAX, TENT_RANGE, "beyond" },
	{ "nothing", plain, 0, 0, TENT_INVALID, "bytes is 0" },
	{ "between pages", plain, 100, PAGE, TENT_INVALID, "not a multiple of the page size 4096" },
	{ "an empty object", empty, 0, 1, TENT_RANGE, "0 bytes" },
	{ "an object without seals", never_sealed, 0, PAGE, TENT_UNSUPPORTED, "MFD_ALLOW_SEALING" },
	{ "an object that takes no more seals", sealed_off, 0, PAGE, TENT_UNSUPPORTED, "takes no more seals" },
	{ "an object sealed against writing", write_sealed, 0, PAGE, TENT_PERMISSION, "sealed against writing" },
	{ "an object open for reading", read_only, 0, PAGE, TENT_PERMISSION, "F_SEAL_SHRINK cannot be added" },
	{ "a file of /dev/shm", shm_file, 0, PAGE, TENT_UNSUPPORTED, "use memfd_create()" },
	{ "a device", device, 0, PAGE, TENT_UNSUPPORTED, "a device" },
	{ "no descriptor", closed, 0, PAGE, TENT_INVALID, "memfd -1" },
};

static bool told_so(const char *what, tent_status got, tent_status wanted, const char *says)
{
	bool right = got == wanted && strstr(tent_last_error(), says) != NULL;
	printf("%s%s: %s\n", right ? "" : "WRONG ", what, tent_last_error());
	return right;
}

/* What the owner of a registered object can no longer do to it, and what it can and harms only itself. */
static bool owner_tries(void)
{
	tent_memory *other;
	int fd = plain();
	bool good = tent_memory_register(ctx, fd, 0, 4 * PAGE, TENT_RIGHT_LOCAL, &mem) == TENT_OK;
	good = told_so("the same range again", tent_memory_register(ctx, fd, PAGE, PAGE, TENT_RIGHT_LOCAL, &other), TENT_EXISTS,
		       "overlaps") && good;
	bool cut = ftruncate(fd, PAGE) == 0, sealed = fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE) == 0;
	bool punched = fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 2 * PAGE) == 0;
	printf("%scut %d, sealed against writing %d, punched %d\n", cut || sealed || !punched ? "WRONG " : "", cut, sealed, punched);
	return good && !cut && !sealed && punched;
}

/* The punched pages are there again, and empty; beside them is what was there. */
static bool punched_is_zero(const char *ref)
{
	tent_segment *seg;
	tent_completion c;
	int fd = object(BODY + 2 * GUARD, MFD_ALLOW_SEALING, 0);
	base = mmap(NULL, BODY + 2 * GUARD, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (base == MAP_FAILED || tent_memory_register(ctx, fd, 0, BODY + 2 * GUARD, 7, &mem) != TENT_OK ||
	    tent_qp_create(ctx, NULL, &qp) != TENT_OK || tent_segment_open(ctx, ref, &seg) != TENT_OK)
		die("set-up");
	fill(1);
	if (fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, GUARD + HOLE, PAGE) != 0)
		die("punch");
	move(TENT_WRITE, seg, FAR_OFF, 0, BODY, &c);
	bool good = c.status == TENT_OK;
	memset(base + GUARD, 0x5a, BODY);
	move(TENT_READ, seg, FAR_OFF, 0, BODY, &c);
	good = good && c.status == TENT_OK && body_is(1, 0, HOLE) && body_is(1, HOLE + PAGE, BODY - HOLE - PAGE);
	for (size_t i = 0; i < PAGE; i++)
		good = good && base[GUARD + HOLE + i] == 0;
	printf("%spunched pages are empty pages\n", good ? "" : "WRONG ");
	return good;
}

static bool refusals(const char *taken, const char *ref)
{
	bool good = true;
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		tent_memory *never;
		int fd = bad[i].make();
		good = told_so(bad[i].what, tent_memory_register(ctx, fd, bad[i].offset, bad[i].bytes, TENT_RIGHT_LOCAL, &never),
			       bad[i].status, bad[i].says) && good;
		if (fd >= 0)
			close(fd);
	}
	unlink(shm_path);
	good = owner_tries() && good;
	take_memory();
	good = told_so("a name that another application has", publish(taken), TENT_EXISTS, "taken") && good;
	return punched_is_zero(ref) && good;
}

int main(int argc, char **argv)
{
	if (argc < 4) {
		fprintf(stderr, "usage: puncher broken DIR NAME REF... | meet DIR REF | taken DIR REF | refusals DIR TAKEN REF\n");
		return 2;
	}
	signal(SIGTERM, on_signal);
	attach(argv[2]);
	if (strcmp(argv[1], "taken") == 0)
		return taken(argv[3]); /* what it took goes back with it */
	bool good = false;
	if (strcmp(argv[1], "broken") == 0)
		good = broken(argv[3], argv + 4);
	else if (strcmp(argv[1], "meet") == 0)
		good = meet(argv[3]);
	else if (strcmp(argv[1], "refusals") == 0 && argc > 4)
		good = refusals(argv[3], argv[4]);
	tent_close(ctx);
	return good ? 0 : 1;
}
