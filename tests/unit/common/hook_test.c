/* SPDX-License-Identifier: Apache-2.0
 * Fault orders: each action does its work on the pass that was asked for, and a mistyped order ends the process. */
#include "common/hook.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/atomic.h"
#include "common/clock.h"
#include "tests/unit/cu.h"

static void names_are_listed_once(void)
{
	size_t cnt;
	const char *const *names = tn_hook_names(&cnt);
	CU_ASSERT_EQUAL(cnt, TN_HOOK_CNT);
	CU_ASSERT_STRING_EQUAL(names[TN_HOOK_log_write], "log_write");
	for (size_t i = 0; i < cnt; i++)
		for (size_t j = 0; j < i; j++)
			CU_ASSERT_STRING_NOT_EQUAL(names[i], names[j]);
}

#if TENT_HOOKS

static void fail_on_chosen_pass(void)
{
	CU_ASSERT_TRUE(tn_hook_set("rand_os=fail@2,log_write=fail"));
	CU_ASSERT_FALSE(TN_HOOK_FAIL(rand_os));
	CU_ASSERT_TRUE(TN_HOOK_FAIL(rand_os));
	CU_ASSERT_FALSE(TN_HOOK_FAIL(rand_os));
	CU_ASSERT_TRUE(TN_HOOK_FAIL(log_write));
	CU_ASSERT_TRUE(TN_HOOK_FAIL(log_write));
	CU_ASSERT_FALSE(TN_HOOK_FAIL(pool_init));
	CU_ASSERT_TRUE(tn_hook_set(NULL));
	CU_ASSERT_FALSE(TN_HOOK_FAIL(log_write));
}

static void wrong_orders_change_nothing(void)
{
	static const char *const wrong[] = { "nosuch=fail", "rand_os", "rand_os=explode", "rand_os=pause", "rand_os=pause:x",
	                                     "rand_os=fail:1", "rand_os=fail@0", "rand_os=fail@", "rand_os=exit:-1", "=fail" };
	CU_ASSERT_TRUE(tn_hook_set("rand_os=fail"));
	for (size_t i = 0; i < TN_ARRAY_LEN(wrong); i++)
		CU_ASSERT_FALSE(tn_hook_set(wrong[i]));
	CU_ASSERT_TRUE(TN_HOOK_FAIL(rand_os));
	CU_ASSERT_TRUE(tn_hook_set(""));
}

static void pause_waits(void)
{
	CU_ASSERT_TRUE(tn_hook_set("rand_os=pause:30"));
	uint64_t start = tn_now_ns();
	CU_ASSERT_FALSE(TN_HOOK_FAIL(rand_os));
	CU_ASSERT(tn_now_ns() - start >= 30 * TN_NS_PER_MS);
	CU_ASSERT_TRUE(tn_hook_set(NULL));
}

/* Wait status of a child that passes the point under `orders`. */
static int child(const char *orders)
{
	pid_t pid = fork();
	CU_ASSERT_FATAL(pid >= 0);
	if (pid == 0) {
		alarm(20);
		if (tn_hook_set(orders))
			TN_HOOK(rand_os);
		_exit(0);
	}
	int status = -1;
	CU_ASSERT_FATAL(waitpid(pid, &status, WUNTRACED) == pid);
	if (WIFSTOPPED(status)) {
		int last;
		kill(pid, SIGKILL);
		waitpid(pid, &last, 0);
	}
	return status;
}

static void deadly_actions(void)
{
	int s = child("rand_os=exit:7");
	CU_ASSERT(WIFEXITED(s) && WEXITSTATUS(s) == 7);
	s = child("rand_os=exit");
	CU_ASSERT(WIFEXITED(s) && WEXITSTATUS(s) == 1);
	s = child("rand_os=kill@1");
	CU_ASSERT(WIFSIGNALED(s) && WTERMSIG(s) == SIGKILL);
	s = child("rand_os=stop");
	CU_ASSERT(WIFSTOPPED(s) && WSTOPSIG(s) == SIGSTOP);
	s = child("rand_os=kill@2");
	CU_ASSERT(WIFEXITED(s) && WEXITSTATUS(s) == 0);
}

static void *pass_then_go_on(void *went_on)
{
	TN_HOOK(rand_os);
	tn_store_relaxed32(went_on, 1);
	return NULL;
}

/* The thread that passes the point is not the first one of its process: it must not run on while the others stop. */
static void stop_holds_its_thread(void)
{
	tn_a32 *went_on = mmap(NULL, sizeof *went_on, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CU_ASSERT_FATAL(went_on != MAP_FAILED);
	for (int i = 0; i < 20; i++) {
		tn_store_relaxed32(went_on, 0);
		pid_t pid = fork();
		CU_ASSERT_FATAL(pid >= 0);
		if (pid == 0) {
			pthread_t thread;
			alarm(20);
			if (tn_hook_set("rand_os=stop") && pthread_create(&thread, NULL, pass_then_go_on, went_on) == 0)
				(void)pthread_join(thread, NULL);
			_exit(0);
		}
		int status = -1;
		CU_ASSERT(waitpid(pid, &status, WUNTRACED) == pid && WIFSTOPPED(status));
		CU_ASSERT_EQUAL(tn_load_relaxed32(went_on), 0);
		kill(pid, SIGKILL);
		CU_ASSERT(waitpid(pid, &status, 0) == pid);
	}
	munmap(went_on, sizeof *went_on);
}

/* Re-runs this program, so that the environment is read for the first time there. */
static int exec_self(const char *orders)
{
	pid_t pid = fork();
	CU_ASSERT_FATAL(pid >= 0);
	if (pid == 0) {
		setenv("TENT_HOOK", orders, 1);
		execl("/proc/self/exe", "test_hook", "one-pass", (char *)NULL);
		_exit(99);
	}
	int status = -1;
	CU_ASSERT_FATAL(waitpid(pid, &status, 0) == pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void environment_is_read(void)
{
	CU_ASSERT_EQUAL(exec_self("rand_os=fail"), 42);
	CU_ASSERT_EQUAL(exec_self("rand_os=exit:9"), 9);
	CU_ASSERT_EQUAL(exec_self(""), 0);
	CU_ASSERT_EQUAL(exec_self("typo=fail"), 2);
}

static const struct tn_test_case cases[] = {
	{ "names are listed once", names_are_listed_once },
	{ "fail on the chosen pass", fail_on_chosen_pass },
	{ "wrong orders change nothing", wrong_orders_change_nothing },
	{ "pause waits", pause_waits },
	{ "exit, kill, stop", deadly_actions },
	{ "stop holds the thread that passes", stop_holds_its_thread },
	{ "the environment is read; a typing mistake ends the process", environment_is_read },
};
#else
static void nothing_happens(void)
{
	setenv("TENT_HOOK", "rand_os=kill", 1);
	TN_HOOK(rand_os);
	CU_ASSERT_FALSE(TN_HOOK_FAIL(rand_os));
}

static const struct tn_test_case cases[] = {
	{ "names are listed once", names_are_listed_once },
	{ "compiled out: nothing happens", nothing_happens },
};
#endif

int main(int argc, char **argv)
{
	if (argc == 2 && strcmp(argv[1], "one-pass") == 0)
		return TN_HOOK_FAIL(rand_os) ? 42 : 0;
	return tn_test_run("common/hook", cases, TN_ARRAY_LEN(cases));
}
