/* SPDX-License-Identifier: Apache-2.0
 * Memory and segments: what is taken, what is refused and with which words. */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "common/clock.h"
#include "tests/unit/libtent/rig.h"

#define ALL (TENT_RIGHT_LOCAL | TENT_RIGHT_REMOTE_READ | TENT_RIGHT_REMOTE_WRITE)

static struct rig rig;
static tent_context *ctx;

static void begin(void)
{
	rig_up(&rig);
	ctx = rig_open(&rig, 1000);
}

static void end(void)
{
	tent_close(ctx);
	rig_down(&rig);
}

#define SAYS(text) CU_ASSERT_PTR_NOT_NULL(strstr(tent_last_error(), text))

static void allocation(void)
{
	tent_memory *m = NULL;

	begin();
	CU_ASSERT_EQUAL(tent_memory_alloc(ctx, 5000, TENT_RIGHT_LOCAL, 0, &m), TENT_OK);
	CU_ASSERT_EQUAL(tent_memory_bytes(m), 8192);
	CU_ASSERT_PTR_NOT_NULL_FATAL(tent_memory_addr(m));
	CU_ASSERT_EQUAL(((char *)tent_memory_addr(m))[8191], 0);
	CU_ASSERT_EQUAL(tn_load_acquire32(&rig.ctl->memories), 1);
	CU_ASSERT_EQUAL(tent_memory_free(m), TENT_OK);
	CU_ASSERT_EQUAL(tn_load_acquire32(&rig.ctl->memories), 0);
	CU_ASSERT_EQUAL(tent_memory_alloc(ctx, 0, TENT_RIGHT_LOCAL, 0, &m), TENT_INVALID);
	SAYS("bytes is 0");
	CU_ASSERT_EQUAL(tent_memory_alloc(ctx, 4096, 0, 0, &m), TENT_INVALID);
	SAYS("rights");
	CU_ASSERT_EQUAL(tent_memory_alloc(ctx, 4096, 16, 0, &m), TENT_INVALID);
	CU_ASSERT_EQUAL(tent_memory_alloc(ctx, 4096, ALL, 2, &m), TENT_INVALID);
	CU_ASSERT_EQUAL(tent_memory_alloc(ctx, SIZE_MAX, ALL, 0, &m), TENT_TOO_BIG);
	CU_ASSERT_EQUAL(tent_memory_alloc(NULL, 4096, ALL, 0, &m), TENT_INVALID);
	CU_ASSERT_EQUAL(tent_memory_free(NULL), TENT_INVALID);
	tn_store_release32(&rig.ctl->refuse_register, (uint32_t)TENT_LIMIT);
	CU_ASSERT_EQUAL(tent_memory_alloc(ctx, 4096, ALL, 0, &m), TENT_LIMIT);
	SAYS("detail 7");
	end();
}

/* Refused before a page is taken. Should that ever be broken, the limit on file sizes stops the attempt instead of the
 * machine's out-of-memory killer. */
static void more_than_there_is(void)
{
	struct rlimit before, limit = { 1 << 30, 1 << 30 };
	tent_memory *m = NULL;

	begin();
	CU_ASSERT_EQUAL_FATAL(getrlimit(RLIMIT_FSIZE, &before), 0);
	limit.rlim_max = before.rlim_max;
	signal(SIGXFSZ, SIG_IGN);
	CU_ASSERT_EQUAL_FATAL(setrlimit(RLIMIT_FSIZE, &limit), 0);
	CU_ASSERT_EQUAL(tent_memory_alloc(ctx, SIZE_MAX / 4, ALL, 0, &m), TENT_NO_MEMORY);
	SAYS("are available");
	CU_ASSERT_EQUAL(setrlimit(RLIMIT_FSIZE, &before), 0);
	end();
}

static void huge_pages_or_a_reason(void)
{
	tent_memory *m = NULL;

	begin();
	tent_status s = tent_memory_alloc(ctx, 4096, ALL, TENT_MEMORY_HUGETLB, &m);
	if (s == TENT_OK) {
		CU_ASSERT_TRUE(tent_memory_bytes(m) >= 65536);
	} else {
		CU_ASSERT_EQUAL(s, TENT_NO_MEMORY);
		SAYS("huge pages");
	}
	/* More than any machine has set aside for them. */
	CU_ASSERT_EQUAL(tent_memory_alloc(ctx, (size_t)16 << 40, ALL, TENT_MEMORY_HUGETLB, &m), TENT_NO_MEMORY);
	SAYS("huge pages");
	end();
}

static int memfd(unsigned flags, off_t bytes)
{
	int fd = memfd_create("test", MFD_CLOEXEC | flags);

	CU_ASSERT_FATAL(fd >= 0 && ftruncate(fd, bytes) == 0);
	return fd;
}

static void registration(void)
{
	tent_memory *m = NULL, *n = NULL;

	begin();
	int fd = memfd(MFD_ALLOW_SEALING, 65536);
	CU_ASSERT_EQUAL(tent_memory_register(ctx, fd, 4096, 10000, ALL, &m), TENT_OK);
	CU_ASSERT_PTR_NULL(tent_memory_addr(m));
	CU_ASSERT_EQUAL(tent_memory_bytes(m), 10000);
	CU_ASSERT_NOT_EQUAL(fcntl(fd, F_GET_SEALS) & F_SEAL_SHRINK, 0);
	CU_ASSERT_EQUAL(tent_memory_register(ctx, fd, 8192, 4096, ALL, &n), TENT_EXISTS);
	SAYS("overlaps");
	CU_ASSERT_EQUAL(tent_memory_register(ctx, fd, 16384, 4096, ALL, &n), TENT_OK);
	CU_ASSERT_EQUAL(tent_memory_register(ctx, fd, 100, 100, ALL, &n), TENT_INVALID);
	SAYS("page size");
	CU_ASSERT_EQUAL(tent_memory_register(ctx, fd, 61440, 4097, ALL, &n), TENT_RANGE);
	CU_ASSERT_EQUAL(tent_memory_register(ctx, fd, UINT64_MAX - 4095, 8192, ALL, &n), TENT_RANGE);
	close(fd); /* ours is a duplicate */
	CU_ASSERT_EQUAL(tent_memory_free(m), TENT_OK);
	CU_ASSERT_EQUAL(tent_memory_register(ctx, -1, 0, 4096, ALL, &n), TENT_INVALID);
	end();
}

static int again(int fd, int mode)
{
	char path[64];

	(void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	int other = open(path, mode | O_CLOEXEC);
	CU_ASSERT_FATAL(other >= 0);
	return other;
}

static void what_cannot_be_sealed_is_refused(void)
{
	tent_memory *m = NULL;
	int p[2];

	begin();
	int fd = memfd(0, 4096);
	CU_ASSERT_EQUAL(tent_memory_register(ctx, fd, 0, 4096, ALL, &m), TENT_UNSUPPORTED);
	SAYS("MFD_ALLOW_SEALING");
	close(fd);
	fd = memfd(MFD_ALLOW_SEALING, 4096);
	CU_ASSERT_EQUAL(fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_GROW), 0);
	CU_ASSERT_EQUAL(tent_memory_register(ctx, fd, 0, 4096, ALL, &m), TENT_UNSUPPORTED);
	SAYS("F_SEAL_SEAL without F_SEAL_SHRINK");
	close(fd);
	char path[] = "/dev/shm/tent-memory-XXXXXX";
	fd = mkstemp(path);
	CU_ASSERT_FATAL(fd >= 0 && ftruncate(fd, 4096) == 0);
	int ro = again(fd, O_RDONLY);
	CU_ASSERT_EQUAL(tent_memory_register(ctx, fd, 0, 4096, ALL, &m), TENT_UNSUPPORTED);
	SAYS("those of /dev/shm: use memfd_create()");
	CU_ASSERT_EQUAL(tent_memory_register(ctx, ro, 0, 4096, TENT_RIGHT_REMOTE_READ, &m), TENT_UNSUPPORTED);
	SAYS("those of /dev/shm: use memfd_create()");
	unlink(path);
	close(fd);
	close(ro);
	CU_ASSERT_EQUAL_FATAL(pipe(p), 0);
	CU_ASSERT_EQUAL(tent_memory_register(ctx, p[0], 0, 4096, ALL, &m), TENT_UNSUPPORTED);
	SAYS("a pipe");
	close(p[0]);
	close(p[1]);
	fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	CU_ASSERT_EQUAL(tent_memory_register(ctx, fd, 0, 4096, ALL, &m), TENT_UNSUPPORTED);
	SAYS("a regular file");
	close(fd);
	CU_ASSERT_EQUAL(tn_load_acquire32(&rig.ctl->registers_seen), 0);
	end();
}

static void take(int fd, uint32_t rights, tent_status wanted, const char *says)
{
	tent_memory *m = NULL;
	tent_status s = tent_memory_register(ctx, fd, 0, 4096, rights, &m);

	CU_ASSERT_EQUAL(s, wanted);
	if (says != NULL)
		SAYS(says);
	if (s == TENT_OK)
		CU_ASSERT_EQUAL(tent_memory_free(m), TENT_OK);
}

/* Sealed, or open for reading only: the rights that write are refused, the others are good. */
static void what_cannot_be_written_is_read(void)
{
	static const int seals[] = { F_SEAL_WRITE, F_SEAL_FUTURE_WRITE, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL };

	begin();
	for (size_t i = 0; i < 3; i++) {
		int fd = memfd(MFD_ALLOW_SEALING, 4096);
		CU_ASSERT_EQUAL(fcntl(fd, F_ADD_SEALS, seals[i]), 0);
		take(fd, TENT_RIGHT_LOCAL, TENT_PERMISSION, "sealed against writing: only TENT_RIGHT_LOCAL_READ");
		take(fd, TENT_RIGHT_REMOTE_READ | TENT_RIGHT_REMOTE_WRITE, TENT_PERMISSION, "sealed against writing");
		take(fd, TENT_RIGHT_LOCAL_READ | TENT_RIGHT_REMOTE_READ, TENT_OK, NULL);
		CU_ASSERT_NOT_EQUAL(fcntl(fd, F_GET_SEALS) & F_SEAL_SHRINK, 0);
		close(fd);
	}
	int fd = memfd(MFD_ALLOW_SEALING, 4096), ro = again(fd, O_RDONLY), wo = again(fd, O_WRONLY);
	take(ro, TENT_RIGHT_REMOTE_READ, TENT_PERMISSION, "so F_SEAL_SHRINK cannot be added");
	CU_ASSERT_EQUAL(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK), 0);
	take(ro, TENT_RIGHT_LOCAL, TENT_PERMISSION, "open for reading only: only TENT_RIGHT_LOCAL_READ");
	take(ro, TENT_RIGHT_REMOTE_READ, TENT_OK, NULL);
	take(wo, TENT_RIGHT_REMOTE_READ, TENT_PERMISSION, "not open for reading");
	CU_ASSERT_EQUAL(fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL), 0);
	take(fd, ALL, TENT_OK, NULL); /* it takes no more seals, and needs none */
	close(fd), close(ro), close(wo);
	end();
}

static void publishing(void)
{
	tent_memory *m, *local;
	tent_published *pub, *other;
	tent_buffer b[65];

	begin();
	CU_ASSERT_EQUAL(tent_memory_alloc(ctx, 65536, ALL, 0, &m), TENT_OK);
	CU_ASSERT_EQUAL(tent_memory_alloc(ctx, 4096, TENT_RIGHT_LOCAL, 0, &local), TENT_OK);
	for (int i = 0; i < 65; i++)
		b[i] = (tent_buffer){ .memory = m, .offset = 1024u * (unsigned)(i % 8), .bytes = 1024 };
	CU_ASSERT_EQUAL(tent_segment_publish(ctx, "kv.0", b, 8, NULL, &pub), TENT_OK);
	CU_ASSERT_EQUAL(tent_memory_free(m), TENT_BUSY);
	CU_ASSERT_EQUAL(tent_segment_publish(ctx, "kv.0", b, 1, NULL, &other), TENT_EXISTS);
	SAYS("kv.0");
	CU_ASSERT_EQUAL(tent_segment_publish(ctx, "no spaces", b, 1, NULL, &other), TENT_INVALID);
	CU_ASSERT_EQUAL(tent_segment_publish(ctx, "x", b, 65, NULL, &other), TENT_TOO_BIG);
	CU_ASSERT_EQUAL(tent_segment_publish(ctx, "x", b, 0, NULL, &other), TENT_INVALID);
	tent_buffer bad = { .memory = m, .offset = 65536 };
	CU_ASSERT_EQUAL(tent_segment_publish(ctx, "x", &bad, 1, NULL, &other), TENT_RANGE);
	bad = (tent_buffer){ .memory = m, .offset = 1, .bytes = UINT64_MAX };
	CU_ASSERT_EQUAL(tent_segment_publish(ctx, "x", &bad, 1, NULL, &other), TENT_RANGE);
	bad = (tent_buffer){ .memory = local };
	CU_ASSERT_EQUAL(tent_segment_publish(ctx, "x", &bad, 1, NULL, &other), TENT_PERMISSION);
	SAYS("buffers[0].rights");
	bad = (tent_buffer){ .memory = m, .reserved = { 0, 0, 1 } };
	CU_ASSERT_EQUAL(tent_segment_publish(ctx, "x", &bad, 1, NULL, &pub), TENT_INVALID);
	CU_ASSERT_PTR_NOT_NULL(strstr(tent_last_error(), "buffers[0].reserved"));
	bad = (tent_buffer){ .memory = NULL };
	CU_ASSERT_EQUAL(tent_segment_publish(ctx, "x", &bad, 1, NULL, &other), TENT_INVALID);
	const char *peers[] = { "host-b", "bad/name" };
	tent_access acc = TENT_ACCESS_INIT;
	acc.peers = peers;
	acc.peer_count = 1;
	CU_ASSERT_EQUAL(tent_segment_publish(ctx, "x", b, 1, &acc, &other), TENT_OK);
	CU_ASSERT_EQUAL(tent_segment_withdraw(other), TENT_OK);
	acc.peer_count = 2;
	CU_ASSERT_EQUAL(tent_segment_publish(ctx, "x", b, 1, &acc, &other), TENT_INVALID);
	SAYS("peers[1]");
	acc.peer_count = 1;
	acc.who = TENT_ACCESS_SAME_UID;
	CU_ASSERT_EQUAL(tent_segment_publish(ctx, "x", b, 1, &acc, &other), TENT_INVALID);
	CU_ASSERT_EQUAL(tent_segment_withdraw(pub), TENT_OK);
	CU_ASSERT_EQUAL(tent_segment_withdraw(pub), TENT_STALE);
	CU_ASSERT_EQUAL(tent_memory_free(m), TENT_OK);
	CU_ASSERT_EQUAL(tn_load_acquire32(&rig.ctl->segments), 0);
	end();
}

static void opening(void)
{
	tent_segment *seg = NULL;
	char longest[140];

	begin();
	CU_ASSERT_EQUAL(tent_segment_open(ctx, "nothing", &seg), TENT_NOT_FOUND);
	SAYS("nothing");
	CU_ASSERT_EQUAL(tent_segment_open(ctx, "", &seg), TENT_INVALID);
	CU_ASSERT_EQUAL(tent_segment_open(ctx, "a/b/c", &seg), TENT_INVALID);
	CU_ASSERT_EQUAL(tent_segment_open(ctx, "/b", &seg), TENT_INVALID);
	memset(longest, 'n', sizeof longest);
	longest[63] = '/';
	longest[127] = '\0';
	CU_ASSERT_EQUAL(tent_segment_open(ctx, longest, &seg), TENT_NOT_FOUND);
	longest[63] = 'n';
	longest[64] = '/';
	CU_ASSERT_EQUAL(tent_segment_open(ctx, longest, &seg), TENT_INVALID);
	tn_store_release32(&rig.ctl->refuse_open, (uint32_t)TENT_CONTROLPLANE_DOWN);
	CU_ASSERT_EQUAL(tent_segment_open(ctx, "peer/x", &seg), TENT_CONTROLPLANE_DOWN);
	SAYS("start tent-controlplane");
	CU_ASSERT_PTR_NULL(seg);
	CU_ASSERT_EQUAL(tent_segment_bytes(NULL), 0);
	end();
}

/* Objects are made and given back for a long time; storage is reused, ids are not confused. */
static void churn(void)
{
	begin();
	for (int i = 0; i < 300; i++) {
		tent_memory *m;
		tent_published *pub;
		tent_segment *seg;
		CU_ASSERT_EQUAL_FATAL(tent_memory_alloc(ctx, 4096, ALL, 0, &m), TENT_OK);
		tent_buffer b = { .memory = m };
		CU_ASSERT_EQUAL_FATAL(tent_segment_publish(ctx, "s", &b, 1, NULL, &pub), TENT_OK);
		CU_ASSERT_EQUAL_FATAL(tent_segment_open(ctx, "s", &seg), TENT_OK);
		CU_ASSERT_EQUAL(tent_segment_bytes(seg), 4096);
		CU_ASSERT_EQUAL(tent_segment_close(seg), TENT_OK);
		CU_ASSERT_EQUAL(tent_segment_withdraw(pub), TENT_OK);
		CU_ASSERT_EQUAL(tent_memory_free(m), TENT_OK);
	}
	end();
}

static void *free_it(void *m) { return (void *)(intptr_t)tent_memory_free(m); }
static void *withdraw_it(void *p) { return (void *)(intptr_t)tent_segment_withdraw(p); }

/* One of two threads ends it; the other one is told that somebody else does or did. */
static void end_twice(void *(*end_it)(void *), void *handle)
{
	pthread_t threads[2];
	void *got[2];

	rig_set(&rig, &rig.ctl->ends_held, 2);
	for (int i = 0; i < 2; i++)
		CU_ASSERT_EQUAL_FATAL(pthread_create(&threads[i], NULL, end_it, handle), 0);
	for (int i = 0; i < 2; i++)
		CU_ASSERT_EQUAL_FATAL(pthread_join(threads[i], &got[i]), 0);
	int other = (intptr_t)got[0] == TENT_OK ? 1 : 0;
	CU_ASSERT_EQUAL((intptr_t)got[1 - other], TENT_OK);
	CU_ASSERT_TRUE((intptr_t)got[other] == TENT_BUSY || (intptr_t)got[other] == TENT_STALE);
	CU_ASSERT_EQUAL((intptr_t)end_it(handle), TENT_STALE);
}

static void two_threads_end_one_thing(void)
{
	tent_memory *m;
	tent_published *pub;

	begin();
	CU_ASSERT_EQUAL_FATAL(tent_memory_alloc(ctx, 4096, TENT_RIGHT_REMOTE_READ, 0, &m), TENT_OK);
	tent_buffer b = { .memory = m };
	CU_ASSERT_EQUAL_FATAL(tent_segment_publish(ctx, "twice", &b, 1, NULL, &pub), TENT_OK);
	end_twice(withdraw_it, pub);
	end_twice(free_it, m);
	CU_ASSERT_EQUAL(tn_load_acquire32(&rig.ctl->memories), 0);
	end();
}

TN_TEST_MAIN("libtent memory",
	{ "allocation", allocation },
	{ "more than there is", more_than_there_is },
	{ "huge pages, or a reason", huge_pages_or_a_reason },
	{ "registration", registration },
	{ "what cannot be sealed is refused", what_cannot_be_sealed_is_refused },
	{ "what cannot be written is read", what_cannot_be_written_is_read },
	{ "publishing", publishing },
	{ "opening", opening },
	{ "two threads end one thing", two_threads_end_one_thing },
	{ "churn", churn })
