/* SPDX-License-Identifier: Apache-2.0
 * What the test applications share. A header only: they link libtent and nothing else of ours, as a user's would. */
#ifndef TEST_INTEGRATION_APP_H
#define TEST_INTEGRATION_APP_H

#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_S UINT64_C(1000000000)

static volatile sig_atomic_t stop; /* SIGTERM or SIGINT came */

static inline void on_signal(int sig) { (void)sig, stop = 1; }

/* Tells the test that all is published, and serves until the signal. */
static inline void serve_until_stopped(void)
{
	printf("READY\n");
	fflush(stdout);
	while (!stop)
		pause();
}

/* CLOCK_MONOTONIC. */
static inline uint64_t now_ns(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec;
}

#endif
