/* SPDX-License-Identifier: Apache-2.0
 * Handle tables, name tables, the timer wheel, tickets, the crew: the parts that need no socket. */
#include <sched.h>
#include <stdio.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/dataplane_ctl/bench.h"
#include "common/clock.h"
#include "dataplane/config.h"
#include "dataplane/control_state.h"
#include "tests/unit/cu.h"

static void stale_handles_miss(void)
{
	struct dp_handles t;
	tn_handle h[300];
	int objects[300];

	dp_handles_init(&t, 256);
	for (int i = 0; i < 256; i++) {
		CU_ASSERT_EQUAL_FATAL(dp_handles_add(&t, &objects[i], &h[i]), TN_OK);
		CU_ASSERT_EQUAL(tn_handle_index(h[i]), (uint32_t)i);
	}
	CU_ASSERT_EQUAL(dp_handles_add(&t, &objects[256], &h[256]), TN_LIMIT);
	CU_ASSERT_PTR_EQUAL(dp_handles_get(&t, h[7]), &objects[7]);
	CU_ASSERT_PTR_EQUAL(dp_handles_remove(&t, h[7]), &objects[7]);
	CU_ASSERT_PTR_NULL(dp_handles_get(&t, h[7]));
	CU_ASSERT_PTR_NULL(dp_handles_remove(&t, h[7]));
	CU_ASSERT_EQUAL(dp_handles_add(&t, &objects[9], &h[256]), TN_OK);
	CU_ASSERT_EQUAL(tn_handle_index(h[256]), 7);
	CU_ASSERT_NOT_EQUAL(h[256], h[7]);
	CU_ASSERT_PTR_NULL(dp_handles_get(&t, h[7]));
	CU_ASSERT_PTR_NULL(dp_handles_get(&t, 0));
	CU_ASSERT_PTR_NULL(dp_handles_get(&t, UINT64_MAX));
	CU_ASSERT_EQUAL(t.used, 256);
	dp_handles_fini(&t);
}

static void names_with_twins(void)
{
	static struct dp_names t;
	struct dp_name a, b, c;

	dp_names_init(&t, 42);
	dp_names_add(&t, &a, "kv");
	dp_names_add(&t, &b, "kv");
	dp_names_add(&t, &c, "other");
	CU_ASSERT_PTR_EQUAL(dp_names_find(&t, "kv", NULL), &a);
	CU_ASSERT_PTR_EQUAL(dp_names_find(&t, "kv", &a), &b);
	CU_ASSERT_PTR_NULL(dp_names_find(&t, "kv", &b));
	CU_ASSERT_PTR_NULL(dp_names_find(&t, "k", NULL));
	dp_names_remove(&a);
	dp_names_remove(&a);
	CU_ASSERT_PTR_EQUAL(dp_names_find(&t, "kv", NULL), &b);
}

static struct dp_loop loop;
static unsigned fired[4], fired_cnt;
static struct dp_timer timers[4];

static void on_timer(struct dp_timer *t)
{
	fired[fired_cnt++] = (unsigned)(t - timers);
	if (t == &timers[0])
		dp_timer_cancel(&timers[1]);
}

static void timers_fire_once_and_can_cancel_each_other(void)
{
	CU_ASSERT_EQUAL_FATAL(dp_loop_init(&loop), TN_OK);
	fired_cnt = 0;
	for (int i = 0; i < 4; i++)
		dp_timer_init(&timers[i], on_timer);
	dp_timer_set(&loop, &timers[0], loop.now_ns);
	dp_timer_set(&loop, &timers[1], loop.now_ns);
	dp_timer_set(&loop, &timers[2], loop.now_ns + 30 * TN_NS_PER_MS);
	dp_timer_set(&loop, &timers[3], loop.now_ns + 100 * TN_NS_PER_S); /* many laps away */
	uint64_t until_ns = tn_now_ns() + 2 * TN_NS_PER_S;
	while (fired_cnt < 2 && tn_now_ns() < until_ns)
		dp_loop_turn(&loop, 50 * TN_NS_PER_MS);
	CU_ASSERT_EQUAL(fired_cnt, 2);
	CU_ASSERT_EQUAL(fired[0], 0);
	CU_ASSERT_EQUAL(fired[1], 2);
	CU_ASSERT_TRUE(dp_timer_armed(&timers[3]));
	uint64_t before_ns = tn_now_ns();
	dp_loop_turn(&loop, 20 * TN_NS_PER_MS);
	CU_ASSERT_TRUE(tn_now_ns() - before_ns >= 15 * TN_NS_PER_MS); /* the far timer does not make it spin */
	dp_timer_cancel(&timers[3]);
	dp_loop_fini(&loop);
}

static struct dp_ticket ticket_of(uint8_t n, uint32_t peer_index, uint8_t session, const char *address)
{
	struct dp_ticket t;
	char err[TN_ERR_TEXT];

	memset(&t, 0, sizeof t);
	memset(&t.ticket, n, sizeof t.ticket);
	memset(&t.peer, 100 + (int)peer_index, sizeof t.peer);
	memset(&t.session, session, sizeof t.session);
	t.peer_index = peer_index;
	if (address != NULL && tn_addr_net_parse(address, &t.addrs[0], err) == TN_OK)
		t.addr_cnt = 1;
	return t;
}

static bool admits(const struct dp_tickets *t, const struct dp_ticket *k, const char *from)
{
	char err[TN_ERR_TEXT];
	struct tn_addr addr;

	bool from_ok;

	return tn_addr_parse(from, 5555, &addr, err) == TN_OK &&
	       dp_tickets_match(t, &k->ticket, &k->peer, &k->session, &addr, &from_ok) != NULL && from_ok;
}

static void tickets_are_bound(void)
{
	struct dp_tickets t;
	struct dp_ticket a = ticket_of(1, 0, 9, "127.0.0.1"), other, none = ticket_of(2, 0, 9, NULL);

	CU_ASSERT_EQUAL_FATAL(dp_tickets_init(&t), TN_OK);
	CU_ASSERT_EQUAL(dp_tickets_install(&t, &a), TN_OK);
	CU_ASSERT_TRUE(admits(&t, &a, "127.0.0.1"));
	CU_ASSERT_TRUE(admits(&t, &a, "127.0.0.1")); /* reusable */
	CU_ASSERT_FALSE(admits(&t, &a, "127.0.0.2"));
	other = ticket_of(3, 0, 9, "10.1.0.0/16");
	CU_ASSERT_EQUAL(dp_tickets_install(&t, &other), TN_OK);
	CU_ASSERT_TRUE(admits(&t, &other, "10.1.255.1"));
	CU_ASSERT_FALSE(admits(&t, &other, "10.2.0.1"));
	CU_ASSERT_FALSE(admits(&t, &a, "10.1.255.1")); /* each ticket has its own */
	other = a;
	other.session.b[3] ^= 1;
	CU_ASSERT_FALSE(admits(&t, &other, "127.0.0.1"));
	other = a;
	other.peer.b[31] ^= 1;
	CU_ASSERT_FALSE(admits(&t, &other, "127.0.0.1"));
	other = a;
	other.ticket.b[15] ^= 1;
	CU_ASSERT_FALSE(admits(&t, &other, "127.0.0.1"));
	CU_ASSERT_EQUAL(dp_tickets_install(&t, &none), TN_INVALID);
	other = a;
	memset(&other.ticket, 0, sizeof other.ticket);
	CU_ASSERT_EQUAL(dp_tickets_install(&t, &other), TN_INVALID);
	dp_tickets_fini(&t);
}

static void tickets_are_revoked_and_displaced(void)
{
	struct dp_tickets t;
	struct dp_ticket k[DP_TICKETS_PER_PEER + 1], b = ticket_of(77, 1, 4, "::1");

	CU_ASSERT_EQUAL_FATAL(dp_tickets_init(&t), TN_OK);
	CU_ASSERT_EQUAL(dp_tickets_install(&t, &b), TN_OK);
	for (uint8_t i = 0; i <= DP_TICKETS_PER_PEER; i++) {
		k[i] = ticket_of((uint8_t)(10 + i), 0, i < 4 ? 1 : 2, "10.0.0.1");
		CU_ASSERT_EQUAL(dp_tickets_install(&t, &k[i]), TN_OK);
	}
	CU_ASSERT_FALSE(admits(&t, &k[0], "10.0.0.1")); /* the oldest made room */
	CU_ASSERT_TRUE(admits(&t, &k[1], "10.0.0.1"));
	CU_ASSERT_EQUAL(t.used_end, DP_TICKETS_PER_PEER + 1);
	dp_tickets_revoke_older(&t, 0, &k[DP_TICKETS_PER_PEER].session);
	CU_ASSERT_FALSE(admits(&t, &k[1], "10.0.0.1"));
	CU_ASSERT_TRUE(admits(&t, &k[4], "10.0.0.1"));
	CU_ASSERT_EQUAL(dp_tickets_revoke(&t, 0), DP_TICKETS_PER_PEER - 3);
	CU_ASSERT_FALSE(admits(&t, &k[4], "10.0.0.1"));
	CU_ASSERT_TRUE(admits(&t, &b, "::1"));
	dp_tickets_fini(&t);
}

static struct tn_config *config_with(const char *set)
{
	static struct tn_config_errors errors;
	const char *const no_env[] = { "HOME=/nonexistent", NULL };
	struct tn_config_opts opts = { .size = sizeof opts, .sets = &set, .set_cnt = 1, .env = no_env,
	                               .default_path = "/nonexistent" };
	struct tn_config *cfg = NULL;

	if (tn_config_load(&opts, &cfg, &errors) != TN_OK)
		tn_config_errors_print(&errors, stderr);
	return cfg;
}

static void plan_refuses_foreign_cpus(void)
{
	char err[512] = "", set[64];
	struct dp_plan plan;
	struct tn_config *cfg = config_with("workers/count=2");

	CU_ASSERT_EQUAL(dp_plan_make(cfg, &plan, err, sizeof err), TN_OK);
	CU_ASSERT_EQUAL(plan.worker_cnt, 2);
	CU_ASSERT_EQUAL(plan.event_slots, 4096);
	tn_config_free(cfg);
	cfg = config_with("workers/cpus=[1023]");
	CU_ASSERT_PTR_NOT_NULL_FATAL(cfg);
	CU_ASSERT_EQUAL(dp_plan_make(cfg, &plan, err, sizeof err), TN_CONFIG);
	CU_ASSERT_PTR_NOT_NULL(strstr(err, "--set: workers/cpus[0]: this process may not use CPU 1023, only "));
	tn_config_free(cfg);
	err[0] = '\0';
	(void)snprintf(set, sizeof set, "workers/cpus=[%d, 1023]", sched_getcpu());
	cfg = config_with(set);
	CU_ASSERT_PTR_NOT_NULL_FATAL(cfg);
	CU_ASSERT_EQUAL(dp_plan_make(cfg, &plan, err, sizeof err), TN_CONFIG);
	CU_ASSERT_PTR_NOT_NULL(strstr(err, "workers/cpus[1]"));
	tn_config_free(cfg);
}

static void ignore_ack(struct dp_flight *f) { (void)f; }

/* Its thread could not be made: it gets no STOP, for it would never answer. */
static void dropped_worker_is_not_waited_for(void)
{
	static struct bench b;
	struct dp_flight stopped = { .done = ignore_ack };

	bench_start(&b, 2, NULL);
	dp_crew_drop(&b.ctl.crew);
	dp_control_drain(&b.ctl, &stopped);
	CU_ASSERT(stopped.waiting <= 1);
	CU_ASSERT_TRUE(turn_until(&b, stopped.waiting == 0));
	CU_ASSERT_EQUAL(fake_count(0, DP_CMD_STOP), 1);
	CU_ASSERT_EQUAL(fake_count(1, DP_CMD_STOP), 0);
	bench_stop(&b);
}

#if TENT_HOOKS
static const struct dp_machine *seen;
static unsigned seen_from, seen_to;
static void see(const struct dp_machine *m, unsigned from, unsigned to)
{
	seen = m;
	seen_from = from;
	seen_to = to;
}
#endif

/* Each move of each table is made, and seen; one that stands in no table stops the process. */
static void states_move_as_drawn(void)
{
#if TENT_HOOKS
	dp_move_seen = see;
#endif
	for (unsigned object = 0; object < DP_CONTROL_OBJECT_CNT; object++) {
		const struct dp_machine *m = &dp_control_machines[object];

		for (uint32_t i = 0; i < m->move_cnt; i++) {
			uint8_t state = m->moves[i].from;

			dp_control_move((enum dp_control_object)object, &state, m->moves[i].to);
			CU_ASSERT_EQUAL(state, m->moves[i].to);
#if TENT_HOOKS
			CU_ASSERT(seen == m && seen_from == m->moves[i].from && seen_to == m->moves[i].to);
#endif
		}
	}
#if TENT_HOOKS
	dp_move_seen = NULL;
#endif
	pid_t pid = fork();
	if (pid == 0) {
		uint8_t state = DP_LINK_DOWN;

		(void)!freopen("/dev/null", "w", stderr);
		dp_control_move(DP_CONTROL_LINK, &state, DP_LINK_LIVE);
		_exit(0);
	}
	int status = 0;
	CU_ASSERT_EQUAL_FATAL(waitpid(pid, &status, 0), pid);
	CU_ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}

TN_TEST_MAIN("tables", { "stale handles miss", stale_handles_miss }, { "states move as drawn", states_move_as_drawn },
             { "names with twins", names_with_twins },
             { "timers fire once and can cancel each other", timers_fire_once_and_can_cancel_each_other },
             { "tickets are bound", tickets_are_bound },
             { "tickets are revoked and displaced", tickets_are_revoked_and_displaced },
             { "a worker that never ran is not waited for", dropped_worker_is_not_waited_for },
             { "the plan refuses CPUs that are not ours", plan_refuses_foreign_cpus })
