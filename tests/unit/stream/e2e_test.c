/* SPDX-License-Identifier: Apache-2.0
 * Two instances of the tcp transport over loopback sockets: megabytes both ways with every byte verified, many
 * operations in flight, requests over several buffers, IPv6, restart of the receiver, no epoll_ctl per operation. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/clock.h"
#include "dataplane/segment/fault.h"
#include "tests/unit/cu.h"
#include "tests/unit/stream/rig.h"

#define MIB (1024u * 1024u)
#define ALL_RIGHTS (SHR_RIGHT_REMOTE_READ | SHR_RIGHT_REMOTE_WRITE)

static void move_all(bool ipv6, uint32_t buffers)
{
	static const char *const sets[] = { "transports/tcp/lanes_per_peer=3" };
	rig_start_kernel(ipv6, sets, 1);
	struct rig_memory far = rig_memory(24 * MIB + 5, 0), near = rig_memory(24 * MIB + 5, 0),
			  back = rig_memory(24 * MIB + 5, 0);
	struct dp_segment *seg = rig_publish(&rig.b, 0, &far, buffers, ALL_RIGHTS, SHR_ACCESS_PEERS);
	struct dp_remote *remote = rig_remote(seg);
	rig_pattern(near.base, near.bytes, 1);
	CU_ASSERT_EQUAL(rig_move(TN_OP_WRITE, remote, 0, near.base, near.bytes), TN_OK);
	CU_ASSERT(rig_pattern_is(far.base, far.bytes, 1));
	CU_ASSERT(rig.a.answers >= near.bytes / DP_FRAME_BYTES_MAX); /* each part says that the peer is alive */
	CU_ASSERT(rig.b.t->ops->bulk(rig.b.t) && rig_stream(&rig.a)->call_bytes > 0);
	for (unsigned i = 0; i < 64; i++)
		CU_ASSERT_EQUAL(rig_move(TN_OP_WRITE, remote, i * 64, near.base + i * 64, 64), TN_OK);
	CU_ASSERT_FALSE(rig.a.t->ops->bulk(rig.a.t) || rig.b.t->ops->bulk(rig.b.t));
	CU_ASSERT(rig.a.clock_reads > 0); /* its end is not dated before the bytes moved */
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
	struct dp_segment *seg = rig_publish(&rig.b, 0, &far, 1, ALL_RIGHTS, SHR_ACCESS_PEERS);
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

/* Real pages that the kernel cannot have, under real sockets; what is beside them still moves on the same lanes. */
static void test_lost_pages(void)
{
	static const struct { uint8_t op; bool far; size_t at; } rows[] = {
		{ TN_OP_WRITE, false, 0 }, { TN_OP_WRITE, false, 500000 }, { TN_OP_READ, false, 0 }, { TN_OP_READ, false, 500000 },
		{ TN_OP_WRITE, true, 0 }, { TN_OP_WRITE, true, 500000 }, { TN_OP_READ, true, 0 }, { TN_OP_READ, true, 500000 },
	};
	rig_start_kernel(false, NULL, 0);
	struct rig_memory far = rig_memory(4 * MIB, 1), near = rig_memory(4 * MIB, 2);
	struct dp_segment *seg = rig_publish(&rig.b, 0, &far, 1, ALL_RIGHTS, SHR_ACCESS_PEERS);
	struct dp_remote *remote = rig_remote(seg);
	CU_ASSERT_EQUAL_FATAL(dp_fault_install(), TN_OK);
	for (size_t i = 0; i < TN_ARRAY_LEN(rows); i++) {
		uint8_t *base = rows[i].far ? far.base : near.base;
		uint8_t *page = (uint8_t *)(((uintptr_t)base + rows[i].at + 4095) & ~(uintptr_t)4095);
		rig_page_lose(page);
		tn_status st = rig_move(rows[i].op, remote, 0, near.base, MIB);
		if (st == TN_PATH_DOWN && rows[i].far && rows[i].op == TN_OP_READ) /* its answer broke off: once */
			st = rig_move(rows[i].op, remote, 0, near.base, MIB);
		if (st != TN_FAULT)
			fprintf(stderr, "row %zu: %s\n", i, tn_status_name(st));
		CU_ASSERT_EQUAL(st, TN_FAULT);
		CU_ASSERT_EQUAL(rig_move(rows[i].op, remote, MIB, near.base + MIB, 3 * MIB), TN_OK);
		rig_page_find(page);
		CU_ASSERT_EQUAL(rig_move(rows[i].op, remote, 0, near.base, 4 * MIB), TN_OK);
	}
	CU_ASSERT(rig_guards_intact(&far) && rig_guards_intact(&near));
	rig_stop();
	free(remote);
	rig_memory_free(&far);
	rig_memory_free(&near);
}

/* Each end in a thread of its own, as in two processes: nothing but sockets (and the connection count) is shared. */
static tn_a32 stop;

static void *serve(void *arg)
{
	(void)arg;
	while (!tn_load_relaxed32(&stop))
		rig_step_worker(&rig.b);
	return NULL;
}

static void test_threads(void)
{
	static struct rig_attempt ra[16];
	pthread_t thread;
	rig_start_kernel(false, NULL, 0);
	struct rig_memory far = rig_memory(16 * MIB, 0), near = rig_memory(16 * MIB, 0);
	struct dp_segment *seg = rig_publish(&rig.b, 0, &far, 1, ALL_RIGHTS, SHR_ACCESS_PEERS);
	struct dp_remote *remote = rig_remote(seg);
	rig_pattern(near.base, near.bytes, 3);
	tn_store_relaxed32(&stop, 0);
	CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, serve, NULL), 0);
	for (unsigned op = 0; op < 2; op++) {
		uint64_t end = tn_now_ns() + 20 * TN_NS_PER_S;
		for (unsigned i = 0; i < 16; i++) {
			rig_attempt(&ra[i], op == 0 ? TN_OP_WRITE : TN_OP_READ, remote, i * MIB, near.base + i * MIB,
				    MIB);
			CU_ASSERT_EQUAL(rig_submit(&ra[i]), TN_OK);
		}
		for (unsigned i = 0; i < 16; i++) {
			while (!ra[i].done && tn_now_ns() < end)
				rig_step_worker(&rig.a);
			CU_ASSERT(ra[i].done && ra[i].r.status == TN_OK);
		}
		if (op == 0)
			memset(near.base, 0, near.bytes);
	}
	tn_store_relaxed32(&stop, 1);
	pthread_join(thread, NULL);
	CU_ASSERT(rig_pattern_is(near.base, near.bytes, 3));
	rig_stop();
	free(remote);
	rig_memory_free(&far);
	rig_memory_free(&near);
}

/* The receiver dies in the middle and comes back as another incarnation at another port: what was in doubt is settled
 * by that, and the next attempts go there. */
static void test_restart(void)
{
	struct rig_attempt ra;
	rig_start_kernel(false, NULL, 0);
	struct rig_memory far = rig_memory(64 * MIB, 0), near = rig_memory(64 * MIB, 0);
	struct dp_segment *seg = rig_publish(&rig.b, 0, &far, 1, ALL_RIGHTS, SHR_ACCESS_PEERS);
	struct dp_remote *remote = rig_remote(seg);
	rig_attempt(&ra, TN_OP_WRITE, remote, 0, near.base, near.bytes);
	CU_ASSERT_EQUAL(rig_submit(&ra), TN_OK);
	for (unsigned i = 0; i < 100000 && ra.a.t_done < 4 * MIB; i++)
		rig_step();
	for (unsigned i = 0; i < 10; i++)
		rig_step_worker(&rig.a); /* frames that b will never read */
	CU_ASSERT_FATAL(!ra.done && ra.a.t_done >= 4 * MIB && ra.a.t_slices > 0);
	rig_restart_b();
	rig_until_count(&rig.a.peer_refreshes, 1, 3000); /* the old port refuses: the control thread is asked */
	CU_ASSERT(!ra.done && rig.a.peer_refreshes >= 1);
	rig_peer_set();
	CU_ASSERT(rig_until(&ra.done, 3000));
	CU_ASSERT(ra.r.status == TN_PATH_DOWN && ra.r.fenced && !ra.r.nothing_left);
	CU_ASSERT_EQUAL(rig_move(TN_OP_WRITE, remote, 0, near.base, near.bytes),
			TN_OK); /* same registration in the rig */
	rig_stop();
	free(remote);
	rig_memory_free(&far);
	rig_memory_free(&near);
}

TN_TEST_MAIN("stream end to end",
	{ "24 MiB there and back", test_ipv4 },
	{ "over seven buffers", test_buffers },
	{ "IPv6", test_ipv6 },
	{ "mixed operations", test_mixed },
	{ "lost pages", test_lost_pages },
	{ "two threads", test_threads },
	{ "restart of the receiver", test_restart })
