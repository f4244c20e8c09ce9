/* SPDX-License-Identifier: Apache-2.0
 * Signals that ask a command to end become a flag and a readable pipe, so that it ends by its own exit path: temporary
 * files go away, segments are withdrawn. Main thread. */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <unistd.h>

#include "common/clock.h"
#include "controlplane/tentctl/tentctl.h"

static volatile sig_atomic_t stopped; /* volatile: the one kind of object that C lets a signal handler write */
static int wake_pipe[2] = { -1, -1 };

static void on_signal(int sig)
{
	(void)sig;
	stopped = 1;
	if (wake_pipe[1] >= 0)
		(void)!write(wake_pipe[1], "", 1);
}

void tctl_stop_catch(void)
{
	struct sigaction a = { .sa_handler = on_signal }; /* no SA_RESTART: a blocked read must come back */
	if (wake_pipe[0] < 0 && pipe2(wake_pipe, O_CLOEXEC | O_NONBLOCK) != 0)
		wake_pipe[0] = wake_pipe[1] = -1;
	(void)sigaction(SIGINT, &a, NULL);
	(void)sigaction(SIGTERM, &a, NULL);
	(void)sigaction(SIGHUP, &a, NULL);
}

bool tctl_stopped(void)
{
	return stopped != 0;
}

void tctl_stop_sleep(int fd, uint64_t timeout_ns)
{
	struct pollfd p[2] = { { .fd = wake_pipe[0], .events = POLLIN }, { .fd = fd, .events = POLLIN } };
	if (!tctl_stopped())
		(void)poll(p, 2, tn_ns_to_poll_ms(timeout_ns));
}
