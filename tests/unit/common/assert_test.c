/* SPDX-License-Identifier: Apache-2.0
 * A failed assertion names its place and expression on stderr and aborts; a true one costs nothing and says nothing. */
#include "common/assert.h"

#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/cu.h"

static void holds_is_silent(void)
{
	int evaluated = 0;
	tn_assert(++evaluated == 1);
	CU_ASSERT_EQUAL(evaluated, 1);
}

/* Runs `doomed` in a child; stderr text into out; returns the wait status. */
static int run_child(void (*doomed)(void), char *out, size_t cap)
{
	int p[2];
	CU_ASSERT_FATAL(pipe(p) == 0);
	pid_t pid = fork();
	CU_ASSERT_FATAL(pid >= 0);
	if (pid == 0) {
		struct rlimit none = { 0, 0 };
		setrlimit(RLIMIT_CORE, &none);
		signal(SIGABRT, SIG_DFL);
		alarm(20);
		dup2(p[1], STDERR_FILENO);
		doomed();
		_exit(0);
	}
	close(p[1]);
	size_t len = 0;
	for (ssize_t n; len + 1 < cap && (n = read(p[0], out + len, cap - 1 - len)) > 0;)
		len += (size_t)n;
	out[len] = '\0';
	close(p[0]);
	int status = -1;
	CU_ASSERT_FATAL(waitpid(pid, &status, 0) == pid);
	return status;
}

static void broken(void) { tn_assert(1 + 1 == 3); }
static void lost(void) { tn_unreachable(); }

static void failure_names_place_and_aborts(void)
{
	char text[16384];
	int status = run_child(broken, text, sizeof text);
	CU_ASSERT(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "assert_test.c:"));
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "broken: assertion failed: 1 + 1 == 3"));
	CU_ASSERT_PTR_NOT_NULL(strstr(strchr(text, '\n'), "unit_common_assert"));   /* a frame of the backtrace */
	status = run_child(lost, text, sizeof text);
	CU_ASSERT(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "unreachable"));
}

TN_TEST_MAIN("common/assert", { "a true assertion is silent", holds_is_silent },
	{ "a failed one names its place and aborts", failure_names_place_and_aborts })
