/* SPDX-License-Identifier: Apache-2.0
 * The state tables are sound: every state can be reached and left, nothing leaves the table unseen, and the counts of
 * objects per state follow the moves. */
#include "dataplane/request/state.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/cu.h"

static void test_tables(void)
{
	CU_ASSERT_EQUAL(dp_machine_cnt, 3);
	for (uint32_t m = 0; m < dp_machine_cnt; m++) {
		const struct dp_machine *k = &dp_machines[m];
		uint32_t from = 0, to = 0;
		for (uint32_t i = 0; i < k->move_cnt; i++) {
			CU_ASSERT(k->moves[i].from < k->state_cnt && k->moves[i].to < k->state_cnt);
			CU_ASSERT(strlen(k->moves[i].when) > 0);
			from |= 1u << k->moves[i].from;
			to |= 1u << k->moves[i].to;
			for (uint32_t j = 0; j < i; j++)
				CU_ASSERT_FALSE(k->moves[i].from == k->moves[j].from && k->moves[i].to == k->moves[j].to);
		}
		CU_ASSERT_EQUAL(from, (1u << k->state_cnt) - 1);
		CU_ASSERT_EQUAL(to, (1u << k->state_cnt) - 1);
	}
}

static void test_counts(void)
{
	struct dp_states s = { 0 };
	struct dp_request r = { .state = DP_REQUEST_FREE };
	dp_request_move(&s, &r, DP_REQUEST_QUEUED);
	CU_ASSERT_EQUAL(s.request[DP_REQUEST_QUEUED], 1);
	dp_request_move(&s, &r, DP_REQUEST_RUNNING);
	CU_ASSERT_EQUAL(s.request[DP_REQUEST_QUEUED], 0);
	CU_ASSERT_EQUAL(s.request[DP_REQUEST_RUNNING], 1);
	dp_request_move(&s, &r, DP_REQUEST_FREE);
	CU_ASSERT_EQUAL(s.request[DP_REQUEST_RUNNING], 0);
	CU_ASSERT_STRING_EQUAL(dp_request_state_name(DP_REQUEST_ZOMBIE), "zombie");
	CU_ASSERT_STRING_EQUAL(dp_owner_state_name(99), "invalid");
}

/* A move outside the table is our bug and must not go unnoticed: it aborts. */
static void test_forbidden(void)
{
	pid_t pid = fork();
	if (pid == 0) {
		struct dp_states s = { 0 };
		struct dp_owner o = { .state = DP_OWNER_FREE };
		(void)!freopen("/dev/null", "w", stderr);
		dp_owner_move(&s, &o, DP_OWNER_DONE);
		_exit(0);
	}
	int status = 0;
	CU_ASSERT_EQUAL_FATAL(waitpid(pid, &status, 0), pid);
	CU_ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}

#if TENT_HOOKS
static char seen[128];
static void see(const struct dp_machine *m, unsigned from, unsigned to)
{
	size_t n = strlen(seen);
	(void)snprintf(seen + n, sizeof seen - n, "%s %s>%s;", m->name, m->states[from], m->states[to]);
}
#endif

static void test_observer(void)
{
#if TENT_HOOKS
	struct dp_states s = { 0 };
	struct dp_request r = { .state = DP_REQUEST_FREE };
	struct dp_owner o = { .state = DP_OWNER_DISPATCHED };
	struct dp_attempt a = { .state = DP_ATTEMPT_ACTIVE };
	dp_move_seen = see;
	dp_request_move(&s, &r, DP_REQUEST_QUEUED);
	dp_owner_move(&s, &o, DP_OWNER_WAITING);
	dp_attempt_move(&s, &a, DP_ATTEMPT_CANCELING);
	dp_move_seen = NULL;
	dp_request_move(&s, &r, DP_REQUEST_RUNNING);
	CU_ASSERT_STRING_EQUAL(seen, "request free>queued;owner dispatched>waiting;attempt active>canceling;");
#endif
}

TN_TEST_MAIN("state",
	{ "every state can be entered and left", test_tables },
	{ "counts follow the moves", test_counts },
	{ "a forbidden move aborts", test_forbidden },
	{ "an observer sees the moves", test_observer },
)
