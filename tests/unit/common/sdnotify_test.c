/* SPDX-License-Identifier: Apache-2.0
 * State texts reach a supervisor's socket, by path and by abstract name; without a supervisor nothing happens. */
#include "common/sdnotify.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "tests/unit/cu.h"

/* A datagram socket bound to `name` ('@' = abstract) with a receive deadline. */
static int supervisor(const char *name)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	size_t len = strlen(name);
	memcpy(sa.sun_path, name, len);
	if (name[0] == '@')
		sa.sun_path[0] = '\0';
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct timeval tv = { 5, 0 };
	CU_ASSERT_FATAL(fd >= 0);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof tv);
	CU_ASSERT_FATAL(bind(fd, (struct sockaddr *)&sa, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len)) == 0);
	setenv("NOTIFY_SOCKET", name, 1);
	return fd;
}

static void expect(int fd, const char *text)
{
	char buf[600];
	ssize_t n = recv(fd, buf, sizeof buf - 1, 0);
	CU_ASSERT_FATAL(n >= 0);
	buf[n] = '\0';
	CU_ASSERT_STRING_EQUAL(buf, text);
}

static void reaches_both_kinds(void)
{
	char path[64], abstract[64];
	snprintf(path, sizeof path, "/tmp/tent-sdnotify-%d", (int)getpid());
	snprintf(abstract, sizeof abstract, "@tent-sdnotify-%d", (int)getpid());
	int fd = supervisor(path);
	CU_ASSERT_EQUAL(tn_sdnotify("READY=1"), TN_OK);
	expect(fd, "READY=1");
	close(fd);
	CU_ASSERT_EQUAL(tn_sdnotify("READY=1"), TN_PATH_DOWN);   /* nobody listens any more */
	unlink(path);
	CU_ASSERT_EQUAL(tn_sdnotify("READY=1"), TN_NOT_FOUND);
	fd = supervisor(abstract);
	CU_ASSERT_EQUAL(tn_sdnotifyf("STOPPING=1\nSTATUS=%s %d", "draining", 3), TN_OK);
	expect(fd, "STOPPING=1\nSTATUS=draining 3");
	close(fd);
}

static void without_or_with_wrong_address(void)
{
	char longname[300];
	memset(longname, 'x', sizeof longname);
	longname[0] = '/';
	longname[sizeof longname - 1] = '\0';
	unsetenv("NOTIFY_SOCKET");
	CU_ASSERT_EQUAL(tn_sdnotify("READY=1"), TN_UNSUPPORTED);
	setenv("NOTIFY_SOCKET", "relative", 1);
	CU_ASSERT_EQUAL(tn_sdnotify("READY=1"), TN_INVALID);
	setenv("NOTIFY_SOCKET", longname, 1);
	CU_ASSERT_EQUAL(tn_sdnotify("READY=1"), TN_INVALID);
	CU_ASSERT_EQUAL(tn_sdnotifyf("%600s", "x"), TN_TOO_BIG);
	unsetenv("NOTIFY_SOCKET");
}

static void watchdog_period(void)
{
	char pid[32];
	unsetenv("WATCHDOG_USEC");
	unsetenv("WATCHDOG_PID");
	CU_ASSERT_EQUAL(tn_sdnotify_watchdog_ns(), 0);
	setenv("WATCHDOG_USEC", "30000000", 1);
	CU_ASSERT_EQUAL(tn_sdnotify_watchdog_ns(), UINT64_C(15000000000));
	setenv("WATCHDOG_PID", "1", 1);
	CU_ASSERT_EQUAL(tn_sdnotify_watchdog_ns(), 0);
	snprintf(pid, sizeof pid, "%d", (int)getpid());
	setenv("WATCHDOG_PID", pid, 1);
	CU_ASSERT_EQUAL(tn_sdnotify_watchdog_ns(), UINT64_C(15000000000));
	setenv("WATCHDOG_USEC", "12x", 1);
	CU_ASSERT_EQUAL(tn_sdnotify_watchdog_ns(), 0);
}

TN_TEST_MAIN("common/sdnotify", { "path and abstract sockets", reaches_both_kinds },
	{ "no or wrong address", without_or_with_wrong_address }, { "watchdog period", watchdog_period })
