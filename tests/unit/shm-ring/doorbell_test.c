/* SPDX-License-Identifier: Apache-2.0
 * Doorbells: nobody can make the other side block, and a sleeper is never left asleep with work in its ring. */
#include "shm-ring/doorbell.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "tests/unit/cu.h"

static bool readable(int fd, int ms)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	return poll(&p, 1, ms) == 1 && (p.revents & POLLIN) != 0;
}

static void rings_both_ways(void)
{
	int end[2] = { -1, -1 };
	CU_ASSERT_EQUAL_FATAL(shr_doorbell_create(end), TN_OK);
	for (int i = 0; i < 2; i++) {
		CU_ASSERT_FALSE(readable(end[i], 0));
		shr_doorbell_ring(end[!i]);
		CU_ASSERT(readable(end[i], 1000));
		CU_ASSERT(shr_doorbell_drain(end[i]));
		CU_ASSERT_FALSE(readable(end[i], 0));
	}
	CU_ASSERT_EQUAL(fcntl(end[0], F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
	close(end[0]);
	close(end[1]);
}

static void armed_word_decides(void)
{
	int end[2] = { -1, -1 };
	tn_a32 armed = 0;
	CU_ASSERT_EQUAL_FATAL(shr_doorbell_create(end), TN_OK);
	CU_ASSERT_FALSE(shr_doorbell_ring_if_armed(&armed, end[0]));
	CU_ASSERT_FALSE(readable(end[1], 0));
	shr_doorbell_arm(&armed);
	shr_doorbell_arm_fence();
	CU_ASSERT(shr_doorbell_ring_if_armed(&armed, end[0]));
	CU_ASSERT(readable(end[1], 1000));
	shr_doorbell_disarm(&armed);
	CU_ASSERT_FALSE(shr_doorbell_ring_if_armed(&armed, end[0]));
	close(end[0]);
	close(end[1]);
}

/* The other side takes O_NONBLOCK away, never reads, or rings without end: our calls come back. The test's own ctest
 * deadline is the judge of "never blocks". */
static void hostile_peer_cannot_block_us(void)
{
	int end[2] = { -1, -1 };
	CU_ASSERT_EQUAL_FATAL(shr_doorbell_create(end), TN_OK);
	for (int i = 0; i < 2; i++)
		CU_ASSERT_EQUAL_FATAL(fcntl(end[i], F_SETFL, 0), 0);
	CU_ASSERT(shr_doorbell_drain(end[0])); /* empty, blocking flags: returns */
	for (int i = 0; i < 100000; i++)
		shr_doorbell_ring(end[0]); /* full long before: returns */
	CU_ASSERT(readable(end[1], 0));
	CU_ASSERT(shr_doorbell_drain(end[1]));
	CU_ASSERT(!readable(end[1], 0)); /* what a socket as made here holds is taken whole: the next ring finds room */
	(void)setsockopt(end[0], SOL_SOCKET, SO_SNDBUF, &(int){ 64 << 20 }, sizeof(int));
	for (int i = 0; i < 100000; i++)
		shr_doorbell_ring(end[0]);
	CU_ASSERT(shr_doorbell_drain(end[1]));
	CU_ASSERT(readable(end[1], 0)); /* bounded: the flood of one that made it larger is not read to its end */
	close(end[1]);
	shr_doorbell_ring(end[0]); /* no SIGPIPE */
	CU_ASSERT_FALSE(shr_doorbell_drain(end[0]));
	close(end[0]);
}

static void hang_up_wakes(void)
{
	int end[2] = { -1, -1 };
	CU_ASSERT_EQUAL_FATAL(shr_doorbell_create(end), TN_OK);
	close(end[0]);
	struct pollfd p = { .fd = end[1], .events = POLLIN };
	CU_ASSERT_EQUAL(poll(&p, 1, 1000), 1);
	CU_ASSERT_FALSE(shr_doorbell_drain(end[1]));
	close(end[1]);
}

/* A sleeper that sleeps whenever its ring is empty, and a publisher that waits until the last entry was taken and then,
 * after a pause that sweeps over the sleeper's arming, publishes the next one: nearly every entry is a race between the
 * two. Without either full fence most runs lose wake-ups (x86, two cores). */
struct race {
	TN_CACHE_ALIGNED tn_a32 tail;  /* the ring's index: entries published */
	TN_CACHE_ALIGNED tn_a32 armed;
	TN_CACHE_ALIGNED tn_a32 taken; /* tells the publisher to go on; plays no part in the protocol */
	TN_CACHE_ALIGNED tn_a32 stop;
	int end[2];
	uint32_t lost, slept;
};

static void pause_a_little(uint32_t rounds)
{
	for (; rounds != 0; rounds--)
		__asm__ __volatile__("");
}

static void *sleeper(void *arg)
{
	struct race *r = arg;
	uint32_t taken = 0;
	while (tn_load_relaxed32(&r->stop) == 0) {
		if (tn_load_acquire32(&r->tail) != taken) {
			tn_store_relaxed32(&r->taken, ++taken);
			continue;
		}
		pause_a_little(taken % 61 * 12);
		shr_doorbell_arm(&r->armed);
		shr_doorbell_arm_fence();
		if (tn_load_relaxed32(&r->tail) == taken) {
			r->slept++;
			/* A timeout is a loss only if there was work to be woken for. */
			if (!readable(r->end[0], 300) && tn_load_relaxed32(&r->tail) != taken)
				r->lost++;
		}
		shr_doorbell_disarm(&r->armed);
		shr_doorbell_drain(r->end[0]);
	}
	return NULL;
}

static void no_wake_up_is_lost(void)
{
	static struct race r;
	pthread_t t;
	memset(&r, 0, sizeof r);
	CU_ASSERT_EQUAL_FATAL(shr_doorbell_create(r.end), TN_OK);
	CU_ASSERT_EQUAL_FATAL(pthread_create(&t, NULL, sleeper, &r), 0);
	uint64_t until = tn_now_ns() + 1500 * TN_NS_PER_MS;
	uint32_t n = 0;
	while (tn_now_ns() < until) {
		pause_a_little(n % 97 * 2);
		tn_store_release32(&r.tail, ++n);
		shr_doorbell_ring_if_armed(&r.armed, r.end[1]);
		for (uint32_t spins = 0; tn_load_relaxed32(&r.taken) != n && tn_now_ns() < until + TN_NS_PER_S; spins++)
			if (spins > 2000)
				sched_yield();
	}
	CU_ASSERT_EQUAL(tn_load_relaxed32(&r.taken), n);
	tn_store_relaxed32(&r.stop, 1);
	shr_doorbell_ring(r.end[1]);
	pthread_join(t, NULL);
	CU_ASSERT_EQUAL(r.lost, 0);
	CU_ASSERT(r.slept > 0);
	printf("(published %u, slept %u) ", n, r.slept);
	close(r.end[0]);
	close(r.end[1]);
}

TN_TEST_MAIN("shm-ring/doorbell",
	{ "one pair rings both ways", rings_both_ways },
	{ "no system call while the other side is awake", armed_word_decides },
	{ "a hostile peer cannot make a call block", hostile_peer_cannot_block_us },
	{ "hang-up wakes the sleeper", hang_up_wakes },
	{ "no wake-up is lost [D1] [D2]", no_wake_up_is_lost })
