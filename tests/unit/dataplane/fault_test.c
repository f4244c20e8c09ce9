/* SPDX-License-Identifier: Apache-2.0
 * Pages that cannot be had: real ones (of a mapping that reaches beyond its object), so the kernel raises the signal.
 * A guarded copy lives through it and says whose page it was; the shm transport fails that request only; anywhere else the
 * process dies of it. */
#include "dataplane/segment/fault.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "tests/unit/dataplane/rig.h"

#define PAGE 4096u
#define BYTES (8u * PAGE)

/* The page at `at` cannot be had from now on. */
static void lose(uint8_t *at)
{
	int fd = memfd_create("lost", MFD_CLOEXEC);
	RIG_FATAL(fd >= 0 && mmap(at, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) == at);
	close(fd);
}

static void find(uint8_t *at)
{
	RIG_FATAL(mmap(at, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == at);
}

static uint8_t *room(void)
{
	uint8_t *p = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	RIG_FATAL(p != MAP_FAILED);
	return p;
}

static void move(void *dst, const void *src, size_t bytes) { memmove(dst, src, bytes); }

static void test_copy(void)
{
	uint8_t *good = room(), *bad = room();
	CU_ASSERT_EQUAL_FATAL(dp_fault_install(), TN_OK);
	memset(good, 0x11, BYTES);
	memset(bad, 0x22, BYTES);
	lose(bad + 3 * PAGE);
	for (int i = 0; i < 3; i++) { /* again and again: no signal stays blocked, no guard stays up */
		CU_ASSERT_EQUAL(dp_fault_copy(move, bad + PAGE, good + PAGE, 4 * PAGE), DP_FAULT_DST);
		CU_ASSERT_EQUAL(dp_fault_copy(move, good + PAGE, bad + PAGE, 4 * PAGE), DP_FAULT_SRC);
		CU_ASSERT_EQUAL(dp_fault_copy(move, good, bad + 4 * PAGE - 1, 1), DP_FAULT_SRC);
		CU_ASSERT_EQUAL(dp_fault_copy(move, bad + 3 * PAGE, good, 1), DP_FAULT_DST);
		CU_ASSERT_EQUAL(dp_fault_copy(move, bad + 4 * PAGE, good, PAGE), DP_FAULT_NONE);
		CU_ASSERT_EQUAL(dp_fault_copy(move, good, bad + 2 * PAGE, PAGE), DP_FAULT_NONE);
	}
	CU_ASSERT(good[5 * PAGE] == 0x11 && good[BYTES - 1] == 0x11 && bad[PAGE - 1] == 0x22 && bad[5 * PAGE] == 0x22);
	CU_ASSERT(dp_fault_readable(bad, 3 * PAGE) && dp_fault_readable(bad + 4 * PAGE, 4 * PAGE) && dp_fault_readable(bad, 0));
	CU_ASSERT(!dp_fault_readable(bad + 3 * PAGE - 1, 2) && !dp_fault_readable(bad + 4 * PAGE - 1, 1) && !dp_fault_readable(bad, BYTES));
	munmap(good, BYTES);
	munmap(bad, BYTES);
}

static uint8_t *lost;

static void touch_unguarded(void) { *(volatile uint8_t *)lost = 1; }
static void after_a_guard(void)
{
	uint8_t word[8];
	(void)dp_fault_copy(move, word, lost, 8);
	(void)dp_fault_copy(move, word, word, 8);
	*(volatile uint8_t *)lost = 1;
}
static void copy_elsewhere(void *dst, const void *src, size_t bytes)
{
	(void)dst, (void)src, (void)bytes;
	*(volatile uint8_t *)lost = 1;
}
static void inside_of_anothers_guard(void)
{
	uint8_t word[8] = { 0 };
	(void)dp_fault_copy(copy_elsewhere, word, word, 8);
	(void)dp_fault_copy(copy_elsewhere, lost - 8, lost + PAGE, 8); /* up to it, and from behind it */
}
static void sent_by_a_process(void) { (void)kill(getpid(), SIGBUS); }
static void sent_to_a_guarded_copy(void *dst, const void *src, size_t bytes)
{
	(void)dst, (void)src, (void)bytes;
	(void)raise(SIGBUS);
}
static void sent_into_a_guard(void)
{
	uint8_t word[8] = { 0 };
	(void)dp_fault_copy(sent_to_a_guarded_copy, word, lost, 8);
}

/* Nothing hides a bug: the child must end by this signal. */
static void test_elsewhere(void)
{
	static void (*const ways[])(void) = { touch_unguarded, after_a_guard, inside_of_anothers_guard, sent_by_a_process,
					      sent_into_a_guard };
	uint8_t *p = room();
	lost = p + PAGE;
	lose(lost);
	for (size_t i = 0; i < TN_ARRAY_LEN(ways); i++) {
		int status = 0;
		pid_t child = fork();
		if (child == 0) {
			(void)setrlimit(RLIMIT_CORE, &(struct rlimit){ 0, 0 });
			if (dp_fault_install() != TN_OK)
				_exit(1);
			ways[i]();
			_exit(0);
		}
		CU_ASSERT(child > 0 && waitpid(child, &status, 0) == child);
		CU_ASSERT(WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS);
	}
	munmap(p, BYTES);
}

struct shm_row { const char *what; uint8_t op; uint64_t local_off, remote_off, bytes; tn_status status; };

/* The page lies at 1 MiB of the memory that is bad. */
static void shm_rows(bool local_bad, const struct shm_row *rows, size_t cnt)
{
	struct rig g;
	CU_ASSERT_EQUAL_FATAL(dp_fault_install(), TN_OK);
	rig_open(&g, NULL, 0, NULL);
	uint8_t *page = (local_bad ? g.local.base : g.target.base) + (1u << 20);
	RIG_FATAL((uintptr_t)page % PAGE == 0);
	memset(g.local.base, 0x33, RIG_BYTES);
	memset(g.target.base, 0x44, RIG_BYTES);
	lose(page);
	for (size_t i = 0; i < cnt; i++) {
		struct shr_sqe_shm e = rig_sqe(rows[i].op, i + 1, rows[i].local_off, rows[i].remote_off, rows[i].bytes);
		struct shr_cqe_shm c = rig_run(&g, e);
		if (c.status != rows[i].status)
			fprintf(stderr, "%s: %s, not %s\n", rows[i].what, tn_status_name(c.status), tn_status_name(rows[i].status));
		CU_ASSERT_EQUAL(c.status, rows[i].status);
		CU_ASSERT_EQUAL(c.flags, 0); /* started, and its memory is free again */
		if (rows[i].status == TN_OK)
			continue;
		CU_ASSERT_EQUAL(c.phase, local_bad ? TN_PHASE_POST : TN_PHASE_COMPLETION);
		CU_ASSERT_EQUAL(c.reason, TN_REASON_MR_ERROR);
		CU_ASSERT_EQUAL(c.attempts, 1); /* asking again would not help */
	}
	CU_ASSERT_FALSE(g.q.qp->broken);
	find(page);
	CU_ASSERT_EQUAL(rig_run(&g, rig_sqe(SHR_OP_WRITE, 90, 0, 0, RIG_BYTES)).status, TN_OK); /* it is there again */
	rig_close(&g);
}

#define AT (UINT64_C(1) << 20)
static void test_shm_local(void)
{
	static const struct shm_row rows[] = {
		{ "READ up to it", SHR_OP_READ, AT - 4096, 0, 4096, TN_OK },
		{ "READ into it", SHR_OP_READ, AT - 4096, 0, 4097, TN_FAULT },
		{ "WRITE out of it", SHR_OP_WRITE, AT + 4095, 0, 1, TN_FAULT },
		{ "WRITE from behind it", SHR_OP_WRITE, AT + 4096, 0, 4096, TN_OK },
		{ "WRITE in slices over it", SHR_OP_WRITE, 0, 0, RIG_BYTES, TN_FAULT },
		{ "READ in slices over it", SHR_OP_READ, 0, 0, RIG_BYTES, TN_FAULT },
		{ "READ beside it", SHR_OP_READ, 2 * AT, 0, AT, TN_OK },
	};
	shm_rows(true, rows, TN_ARRAY_LEN(rows));
}

static void test_shm_remote(void)
{
	static const struct shm_row rows[] = {
		{ "READ up to it", SHR_OP_READ, 0, AT - 4096, 4096, TN_OK },
		{ "READ out of it", SHR_OP_READ, 0, AT - 4096, 4097, TN_FAULT },
		{ "WRITE into it", SHR_OP_WRITE, 0, AT + 4095, 1, TN_FAULT },
		{ "WRITE from behind it", SHR_OP_WRITE, 0, AT + 4096, 4096, TN_OK },
		{ "WRITE in slices over it", SHR_OP_WRITE, 0, 0, RIG_BYTES, TN_FAULT },
		{ "READ in slices over it", SHR_OP_READ, 0, 0, RIG_BYTES, TN_FAULT },
		{ "READ beside it", SHR_OP_READ, 0, 2 * AT, AT, TN_OK },
	};
	shm_rows(false, rows, TN_ARRAY_LEN(rows));
}

TN_TEST_MAIN("fault",
	{ "a guarded copy lives through it", test_copy },
	{ "anywhere else the process dies", test_elsewhere },
	{ "shm: local memory", test_shm_local },
	{ "shm: the segment's memory", test_shm_remote })
