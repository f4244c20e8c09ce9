/* SPDX-License-Identifier: Apache-2.0
 * Doorbells: nobody can make the other side block, and a sleeper is never left asleep with work in its ring. */
#include "shm-ring/doorbell.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <unistd.h>

#include "common/clock.h"
#include "shm-ring/mailbox.h"
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
	CU_ASSERT(readable(end[1], 0)); /* bounded: the flood is not read to its end */
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

/* Ping-pong through two rings; each side sleeps before each message, so each message is a race between arming and
 * publishing. A lost wake-up shows as a poll() that runs into its second. */
struct side {
	struct shr_mailbox *in, *out;
	tn_a32 *my_armed, *peer_armed;
	int end;
	uint32_t rounds, lost, slept;
	bool starts;
};

/* The sleeper's protocol, as the worker and the application run it. */
static bool sleep_until_work(struct side *s)
{
	shr_doorbell_arm(s->my_armed);
	shr_doorbell_arm_fence();
	bool good = true;
	if (!shr_mailbox_pending(s->in)) {
		s->slept++;
		good = readable(s->end, 1000);
	}
	shr_doorbell_disarm(s->my_armed);
	shr_doorbell_drain(s->end);
	return good;
}

static void *play(void *arg)
{
	struct side *s = arg;
	uint32_t v = 0, done = 0;
	if (s->starts) {
		(void)!shr_mailbox_push(s->out, &v);
		shr_doorbell_ring_if_armed(s->peer_armed, s->end);
	}
	while (done < s->rounds && s->lost < 3) {
		if (!shr_mailbox_pop(s->in, &v)) {
			/* A late ring of the last round may wake us early; only a timeout with work there is a loss. */
			if (!sleep_until_work(s) && shr_mailbox_pending(s->in))
				s->lost++;
			continue;
		}
		done++;
		/* A pause of varying length moves the publish across the peer's arming. */
		for (uint32_t spin = (done * 7919u) & 255u; spin != 0; spin--)
			tn_cpu_relax();
		(void)!shr_mailbox_push(s->out, &v);
		shr_doorbell_ring_if_armed(s->peer_armed, s->end);
	}
	return NULL;
}

static void no_wake_up_is_lost(void)
{
	struct shr_mailbox a, b;
	int end[2] = { -1, -1 };
	struct { TN_CACHE_ALIGNED tn_a32 v; } armed[2] = { { 0 }, { 0 } };
	CU_ASSERT_EQUAL_FATAL(shr_mailbox_create(&a, 4, 8), TN_OK);
	CU_ASSERT_EQUAL_FATAL(shr_mailbox_create(&b, 4, 8), TN_OK);
	CU_ASSERT_EQUAL_FATAL(shr_doorbell_create(end), TN_OK);
	struct side s[2] = {
		{ .in = &a, .out = &b, .my_armed = &armed[0].v, .peer_armed = &armed[1].v, .end = end[0], .rounds = 30000,
		  .starts = true },
		{ .in = &b, .out = &a, .my_armed = &armed[1].v, .peer_armed = &armed[0].v, .end = end[1], .rounds = 30000 },
	};
	pthread_t t[2];
	uint64_t start = tn_now_ns();
	for (int i = 0; i < 2; i++)
		CU_ASSERT_EQUAL_FATAL(pthread_create(&t[i], NULL, play, &s[i]), 0);
	for (int i = 0; i < 2; i++)
		pthread_join(t[i], NULL);
	CU_ASSERT_EQUAL(s[0].lost + s[1].lost, 0);
	CU_ASSERT(s[0].slept + s[1].slept > 0);
	printf("(slept %u times, %llu ms) ", s[0].slept + s[1].slept,
	       (unsigned long long)((tn_now_ns() - start) / TN_NS_PER_MS));
	shr_mailbox_destroy(&a);
	shr_mailbox_destroy(&b);
	close(end[0]);
	close(end[1]);
}

TN_TEST_MAIN("shm-ring/doorbell",
	{ "one pair rings both ways", rings_both_ways },
	{ "no system call while the other side is awake", armed_word_decides },
	{ "a hostile peer cannot make a call block", hostile_peer_cannot_block_us },
	{ "hang-up wakes the sleeper", hang_up_wakes },
	{ "no wake-up is lost [D1] [D2]", no_wake_up_is_lost })
