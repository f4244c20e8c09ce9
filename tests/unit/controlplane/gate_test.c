/* SPDX-License-Identifier: Apache-2.0
 * The gate against real sockets: who goes when too many come, and that descriptors that run out end nothing. */
#include "controlplane/gate.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/clock.h"
#include "controlplane/observe/cells.h"
#include "tests/unit/cu.h"

static struct cp_cells cells;
static char err[512];

/* Where recording is compiled out there is nothing to see: what the test expects is said. */
static bool counted(enum tn_door door, enum tn_refusal why, uint64_t expected)
{
	cp_gate_report(&cells.rec, tn_now_ns());
	return !TENT_METRICS || tn_load_relaxed64(&cells.cell[TN_C2(CONNECTIONS_REFUSED_TOTAL, door, why).cell]) == expected;
}

static int start(enum tn_door door, const struct cp_gate_bounds *b, struct sockaddr_in *at)
{
	socklen_t len = sizeof *at;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	*at = (struct sockaddr_in){ .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	cp_cells_init(&cells, true);
	CU_ASSERT_EQUAL_FATAL(cp_gate_init(1, err, sizeof err), TN_OK);
	cp_gate_bound(door, b);
	CU_ASSERT_EQUAL_FATAL(bind(fd, (struct sockaddr *)at, sizeof *at), 0);
	CU_ASSERT_EQUAL_FATAL(listen(fd, 64), 0);
	CU_ASSERT_EQUAL_FATAL(getsockname(fd, (struct sockaddr *)at, &len), 0);
	return fd;
}

/* From 127.0.0.<host>: a source of its own. */
static int come(const struct sockaddr_in *at, uint8_t host)
{
	struct sockaddr_in from = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(0x7f000000u + host) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	CU_ASSERT_EQUAL_FATAL(bind(fd, (struct sockaddr *)&from, sizeof from), 0);
	CU_ASSERT_EQUAL_FATAL(connect(fd, (const struct sockaddr *)at, sizeof *at), 0);
	return fd;
}

static int let_in(int listen_fd)
{
	struct pollfd p = { .fd = listen_fd, .events = POLLIN };
	CU_ASSERT_EQUAL_FATAL(poll(&p, 1, 5000), 1);
	return accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC);
}

static bool ended(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN | POLLRDHUP };
	return poll(&p, 1, 0) == 1 && (p.revents & (POLLRDHUP | POLLHUP)) != 0;
}

/* The library answers it as it answers only who was let in. */
static void answer(int in, int c, size_t bytes)
{
	char words[200] = { 0 }, back[200];
	CU_ASSERT_EQUAL(send(in, words, bytes, MSG_NOSIGNAL), (ssize_t)bytes);
	CU_ASSERT_EQUAL(recv(c, back, bytes, MSG_WAITALL), (ssize_t)bytes);
}

static void test_closed_door(void)
{
	struct sockaddr_in at;
	const struct cp_gate_bounds b = { .fresh_max = 4, .known_max = 4, .silent_ns = TN_NS_PER_S };
	int l = start(TN_DOOR_BUS, &b, &at), c = come(&at, 1);
	errno = 0;
	CU_ASSERT_EQUAL(let_in(l), -1);
	CU_ASSERT_EQUAL(errno, EAGAIN);
	cp_gate_open(TN_DOOR_BUS, l);
	int in = let_in(l);
	CU_ASSERT_TRUE(in >= 0);
	CU_ASSERT_EQUAL(accept(l, NULL, NULL), -1); /* never waits */
	CU_ASSERT_EQUAL(errno, EAGAIN);
	close(in), close(c), close(l);
	cp_gate_fini();
}

/* Of its own address first, then the oldest of all, never one that is known. */
static void test_who_goes(void)
{
	struct sockaddr_in at;
	const struct cp_gate_bounds b = { 4, 2, 2, 2, 100, 60 * TN_NS_PER_S };
	int l = start(TN_DOOR_CONTROL, &b, &at), c[8], in[8];
	cp_gate_open(TN_DOOR_CONTROL, l);
	for (unsigned i = 0; i < 3; i++) {
		c[i] = come(&at, 1);
		CU_ASSERT_TRUE_FATAL((in[i] = let_in(l)) >= 0);
		if (i == 0)
			answer(in[0], c[0], 101);
	}
	c[3] = come(&at, 2);
	CU_ASSERT_TRUE_FATAL((in[3] = let_in(l)) >= 0);
	CU_ASSERT_TRUE(counted(TN_DOOR_CONTROL, TN_REFUSAL_CROWDED, 0));
	c[4] = come(&at, 1);
	CU_ASSERT_TRUE_FATAL((in[4] = let_in(l)) >= 0);
	CU_ASSERT_TRUE(ended(in[1]) && !ended(in[0]) && !ended(in[2]) && !ended(in[3]));
	c[5] = come(&at, 3);
	CU_ASSERT_TRUE_FATAL((in[5] = let_in(l)) >= 0);
	CU_ASSERT_FALSE(ended(in[2])); /* four: one place was left */
	c[6] = come(&at, 4);
	CU_ASSERT_TRUE_FATAL((in[6] = let_in(l)) >= 0);
	CU_ASSERT_TRUE(ended(in[2]) && !ended(in[0]) && !ended(in[3]));
	CU_ASSERT_TRUE(counted(TN_DOOR_CONTROL, TN_REFUSAL_CROWDED, 2));
	/* too many that are known: the newcomer goes */
	answer(in[3], c[3], 101);
	c[7] = come(&at, 5);
	CU_ASSERT_EQUAL((in[7] = let_in(l)), -1);
	CU_ASSERT_EQUAL(errno, ECONNABORTED);
	CU_ASSERT_TRUE(counted(TN_DOOR_CONTROL, TN_REFUSAL_CROWDED, 3));
	/* until one leaves; it was known, so it is nobody's refusal */
	close(in[3]);
	usleep(10000); /* it looks again only now and then */
	int again = come(&at, 5), again_in = let_in(l);
	CU_ASSERT_TRUE(again_in >= 0);
	CU_ASSERT_TRUE(counted(TN_DOOR_CONTROL, TN_REFUSAL_STRANGER, 0));
	/* a fresh one that ends is a stranger, once */
	close(again_in);
	CU_ASSERT_TRUE(counted(TN_DOOR_CONTROL, TN_REFUSAL_STRANGER, 1));
	CU_ASSERT_TRUE(counted(TN_DOOR_CONTROL, TN_REFUSAL_STRANGER, 1));
	for (unsigned i = 0; i < 8; i++)
		close(c[i]);
	for (unsigned i = 0; i < 7; i++)
		if (i != 3)
			close(in[i]);
	close(again), close(l);
	cp_gate_fini();
}

/* What the library says to it shows that it was let in. */
static void test_answered(void)
{
	struct sockaddr_in at;
	const struct cp_gate_bounds b = { 1, 1, 4, 4, 100, 60 * TN_NS_PER_S };
	int l = start(TN_DOOR_CONTROL, &b, &at), c[3], in[3];
	cp_gate_open(TN_DOOR_CONTROL, l);
	c[0] = come(&at, 1);
	CU_ASSERT_TRUE_FATAL((in[0] = let_in(l)) >= 0);
	answer(in[0], c[0], 101);
	c[1] = come(&at, 1);
	CU_ASSERT_TRUE_FATAL((in[1] = let_in(l)) >= 0);
	CU_ASSERT_FALSE(ended(in[0]));
	answer(in[1], c[1], 100);
	c[2] = come(&at, 1);
	CU_ASSERT_TRUE_FATAL((in[2] = let_in(l)) >= 0);
	CU_ASSERT_TRUE(ended(in[1]) && !ended(in[0]));
	for (unsigned i = 0; i < 3; i++)
		close(c[i]), close(in[i]);
	close(l);
	cp_gate_fini();
}

static void test_silent(void)
{
	struct sockaddr_in at;
	const struct cp_gate_bounds b = { .fresh_max = 4, .silent_ns = 1 };
	int l = start(TN_DOOR_HTTP, &b, &at), c = come(&at, 1);
	cp_gate_open(TN_DOOR_HTTP, l);
	int in = let_in(l);
	CU_ASSERT_TRUE_FATAL(in >= 0);
	close(in);
	CU_ASSERT_TRUE(counted(TN_DOOR_HTTP, TN_REFUSAL_SILENT, 1));
	CU_ASSERT_TRUE(counted(TN_DOOR_HTTP, TN_REFUSAL_STRANGER, 0));
	close(c), close(l);
	cp_gate_fini();
}

/* Every descriptor is taken: the newcomer is closed, what accepts is told that it went, and is not asked again. */
static void test_no_descriptor(void)
{
	struct rlimit old, low;
	struct sockaddr_in at;
	const struct cp_gate_bounds b = { .fresh_max = 4, .known_max = 4, .silent_ns = TN_NS_PER_S };
	int l = start(TN_DOOR_BUS, &b, &at), c = come(&at, 1), fill[64];
	unsigned n = 0;
	cp_gate_open(TN_DOOR_BUS, l);
	CU_ASSERT_EQUAL_FATAL(getrlimit(RLIMIT_NOFILE, &old), 0);
	low = (struct rlimit){ 64, old.rlim_max };
	CU_ASSERT_EQUAL_FATAL(setrlimit(RLIMIT_NOFILE, &low), 0);
	while (n < 64 && (fill[n] = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0)
		n++;
	CU_ASSERT_EQUAL(let_in(l), -1);
	CU_ASSERT_EQUAL(errno, ECONNABORTED);
	CU_ASSERT_EQUAL(accept(l, NULL, NULL), -1);
	CU_ASSERT_EQUAL(errno, EAGAIN); /* nobody waits any more */
	while (n > 0)
		close(fill[--n]);
	CU_ASSERT_EQUAL_FATAL(setrlimit(RLIMIT_NOFILE, &old), 0);
	CU_ASSERT_TRUE(ended(c));
	CU_ASSERT_TRUE(counted(TN_DOOR_BUS, TN_REFUSAL_DESCRIPTORS, 1));
	close(c), close(l);
	cp_gate_fini();
}

/* A limit that peers and doors do not fit into is told at start. Last: a hard limit does not come back. */
static void test_limit_too_small(void)
{
	struct rlimit low = { 256, 256 };
	CU_ASSERT_EQUAL_FATAL(setrlimit(RLIMIT_NOFILE, &low), 0);
	CU_ASSERT_EQUAL(cp_gate_init(1000, err, sizeof err), TN_LIMIT);
	CU_ASSERT_PTR_NOT_NULL(strstr(err, "256"));
	CU_ASSERT_PTR_NOT_NULL(strstr(err, "ulimit -n"));
	cp_gate_fini();
}

TN_TEST_MAIN("controlplane/gate",
	{ "a listener that is no door lets nobody in", test_closed_door },
	{ "who goes when too many come", test_who_goes },
	{ "what was said to it shows that it was let in", test_answered },
	{ "its time ran out", test_silent },
	{ "no descriptor is left", test_no_descriptor },
	{ "the limit is too small", test_limit_too_small })
