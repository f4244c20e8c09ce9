/* SPDX-License-Identifier: Apache-2.0
 * Scheduler, tasks and the trace. One thread. */
#include "tests/sim/kernel.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/sim/fd.h"
#include "tests/sim/switch.h"

#define STACK_BYTES ((size_t)256 << 10)
#define TRACE_LINES 256u
#define TRACE_BYTES 320u
#define WAKE_MAX_NS UINT64_C(6000) /* from a notification until its task runs */

struct sim sim;
bool sim_trace_all;

struct event {
	uint64_t at_ns, order;
	void (*fire)(void *arg, uint64_t num);
	void *arg;
	uint64_t num;
};

struct sim_task {
	struct sim_task *next;
	struct sim_proc *proc;
	char name[24];
	void *(*main)(void *arg);
	void *arg;
	struct sim_stack stack;
	uint64_t id, turn;      /* turn: names the one resume that is valid */
	uint64_t resumes;       /* in all; who spins is seen by it */
	const void *waits[SIM_TASK_WAITS];
	unsigned wait_cnt;
	bool notified, due_while_stopped, done;
};

static struct event *heap;
static size_t heap_cnt, heap_cap;
static uint64_t order_next, task_next, pid_next;
static struct sim_task *tasks;
static struct sim_stack scheduler;
static char trace_lines[TRACE_LINES][TRACE_BYTES];
static uint64_t trace_cnt;

/* ---- the queue ---- */

static bool before(const struct event *a, const struct event *b)
{
	return a->at_ns != b->at_ns ? a->at_ns < b->at_ns : a->order < b->order;
}

static void heap_push(struct event e)
{
	if (heap_cnt == heap_cap) {
		heap_cap = heap_cap ? heap_cap * 2 : 256;
		heap = sim_realloc(heap, heap_cap * sizeof *heap);
		if (heap == NULL)
			abort();
	}
	size_t i = heap_cnt++;
	for (; i > 0 && before(&e, &heap[(i - 1) / 2]); i = (i - 1) / 2)
		heap[i] = heap[(i - 1) / 2];
	heap[i] = e;
}

static struct event heap_pop(void)
{
	struct event top = heap[0], last = heap[--heap_cnt];
	size_t i = 0;
	for (;;) {
		size_t c = 2 * i + 1;
		if (c >= heap_cnt)
			break;
		if (c + 1 < heap_cnt && before(&heap[c + 1], &heap[c]))
			c++;
		if (before(&last, &heap[c]))
			break;
		heap[i] = heap[c];
		i = c;
	}
	if (heap_cnt > 0)
		heap[i] = last;
	return top;
}

void sim_after(uint64_t delay_ns, void (*fire)(void *arg, uint64_t num), void *arg, uint64_t num)
{
	heap_push((struct event){ .at_ns = tn_deadline_after(sim.now_ns, delay_ns), .order = order_next++, .fire = fire, .arg = arg,
				  .num = num });
}

uint64_t sim_pick(uint64_t lo, uint64_t hi) { return tn_rand_range(&sim.rand, lo, hi); }
bool sim_chance(uint32_t one_in) { return tn_rand_below(&sim.rand, one_in) == 0; }

void sim_init(uint64_t seed)
{
	sim = (struct sim){ .seed = seed, .now_ns = 1000 * TN_NS_PER_S };
	tn_rand_seed(&sim.rand, seed);
	pid_next = 100;
}

bool sim_run(uint64_t events_max)
{
	while (!sim.over && heap_cnt > 0) {
		if (sim.events >= events_max)
			return false;
		struct event e = heap_pop();
		sim.now_ns = TN_MAX(sim.now_ns, e.at_ns);
		sim.events++;
		sim.hash = (sim.hash ^ e.at_ns ^ e.num << 48) * UINT64_C(0x9e3779b97f4a7c15);
		e.fire(e.arg, e.num);
	}
	return true;
}

/* ---- tasks ---- */

static void resume(void *arg, uint64_t turn)
{
	struct sim_task *t = arg;
	if (t->turn != turn || t->done || t->proc->state == SIM_DEAD)
		return;
	if (t->proc->state == SIM_STOPPED) {
		t->due_while_stopped = true;
		return;
	}
	t->turn++;
	t->resumes++;
	sim.cur = t;
	sim_switch(&scheduler, &t->stack);
	sim.cur = NULL;
}

static void resume_in(struct sim_task *t, uint64_t ns)
{
	sim_after(ns, resume, t, t->turn);
}

static void go_away(void)
{
	struct sim_task *t = sim.cur;
	int err = errno;
	sim_switch(&t->stack, &scheduler);
	errno = err;
}

static void task_main(void *arg)
{
	struct sim_task *t = arg;
	(void)t->main(t->arg);
	sim_exit();
}

struct sim_proc *sim_proc_new(uint32_t host, const char *name)
{
	struct sim_proc *p = sim_calloc(1, sizeof *p);
	if (p == NULL)
		abort();
	(void)snprintf(p->name, sizeof p->name, "%s", name);
	p->host = host;
	p->pid = (uint32_t)++pid_next;
	p->next = sim.procs;
	sim.procs = p;
	return p;
}

struct sim_task *sim_spawn(struct sim_proc *p, const char *name, void *(*main)(void *arg), void *arg)
{
	struct sim_task *t = sim_calloc(1, sizeof *t);
	if (t == NULL)
		abort();
	(void)snprintf(t->name, sizeof t->name, "%s", name);
	t->proc = p;
	t->main = main;
	t->arg = arg;
	t->id = ++task_next;
	t->turn = 1;
	sim_stack_make(&t->stack, STACK_BYTES, task_main, t);
	t->next = tasks;
	tasks = t;
	resume_in(t, sim_pick(0, WAKE_MAX_NS));
	return t;
}

struct sim_proc *sim_self(void) { return sim.cur != NULL ? sim.cur->proc : NULL; }
uint64_t sim_task_id(const struct sim_task *t) { return t->id; }
bool sim_task_done(const struct sim_task *t) { return t->done || t->proc->state == SIM_DEAD; }

void sim_exit(void)
{
	struct sim_task *t = sim.cur;
	t->done = true;
	sim_notify(t);
	sim_switch(&t->stack, &scheduler);
	abort(); /* nobody comes back here */
}

static void bury(struct sim_proc *p)
{
	p->state = SIM_DEAD;
	for (struct sim_task **at = &tasks; *at != NULL;) {
		struct sim_task *t = *at;
		if (t->proc == p && t != sim.cur) {
			*at = t->next;
			t->done = true;
			sim_stack_drop(&t->stack);
		} else {
			at = &t->next;
		}
	}
	sim_fd_close_all(p);
	sim_pidfd_died(p);
	sim_notify(p);
	if (p->died != NULL)
		p->died(p, p->died_arg);
}

void sim_exit_process(void)
{
	bury(sim.cur->proc);
	sim_exit();
}

void sim_kill(struct sim_proc *p)
{
	if (p->state == SIM_DEAD)
		return;
	sim_trace("kill %s pid %u", p->name, p->pid);
	bury(p);
	if (sim.cur != NULL && sim.cur->proc == p)
		sim_exit();
}

void sim_stop(struct sim_proc *p)
{
	if (p->state == SIM_RUNS) {
		sim_trace("stop %s", p->name);
		p->state = SIM_STOPPED;
	}
}

void sim_cont(struct sim_proc *p)
{
	if (p->state != SIM_STOPPED)
		return;
	sim_trace("cont %s", p->name);
	p->state = SIM_RUNS;
	for (struct sim_task *t = tasks; t != NULL; t = t->next) {
		if (t->proc != p || !t->due_while_stopped)
			continue;
		t->due_while_stopped = false;
		resume_in(t, sim_pick(0, WAKE_MAX_NS));
	}
}

void sim_sleep(uint64_t ns)
{
	resume_in(sim.cur, ns);
	go_away();
}

void sim_preempt(void)
{
	if (sim.cur != NULL && sim_chance(24))
		sim_sleep(sim_chance(40) ? sim_pick(0, 2 * TN_NS_PER_MS) : sim_pick(0, 8000));
}

bool sim_wait(const void *const *things, unsigned cnt, uint64_t until_ns)
{
	struct sim_task *t = sim.cur;
	tn_assert(cnt <= SIM_TASK_WAITS);
	memcpy(t->waits, things, cnt * sizeof *things);
	t->wait_cnt = cnt;
	t->notified = false;
	if (until_ns != UINT64_MAX)
		resume_in(t, tn_remaining_ns(until_ns, sim.now_ns));
	go_away();
	t->wait_cnt = 0;
	return t->notified;
}

void sim_notify(const void *thing)
{
	for (struct sim_task *t = tasks; t != NULL; t = t->next) {
		for (unsigned i = 0; i < t->wait_cnt && !t->notified; i++) {
			if (t->waits[i] != thing)
				continue;
			t->notified = true;
			t->turn++; /* its time-out is not valid any more */
			resume_in(t, sim_pick(100, WAKE_MAX_NS));
		}
	}
}

/* ---- words ---- */

void sim_trace(const char *fmt, ...)
{
	char *line = trace_lines[trace_cnt++ % TRACE_LINES];
	int n = snprintf(line, TRACE_BYTES, "%8" PRIu64 " %12.6f ", sim.events, (double)sim.now_ns / 1e9 - 1000.0);
	va_list ap;
	va_start(ap, fmt);
	(void)vsnprintf(line + n, TRACE_BYTES - (size_t)n, fmt, ap);
	va_end(ap);
	if (sim_trace_all)
		(void)fprintf(stderr, "%s\n", line);
}

void sim_fail(const char *check, const char *fmt, ...)
{
	va_list ap;
	for (uint64_t i = trace_cnt > TRACE_LINES ? trace_cnt - TRACE_LINES : 0; i < trace_cnt && !sim_trace_all; i++)
		(void)fprintf(stderr, "%s\n", trace_lines[i % TRACE_LINES]);
	(void)fprintf(stderr, "turns:");
	for (const struct sim_task *t = tasks; t != NULL; t = t->next)
		(void)fprintf(stderr, " %s%s %" PRIu64 "%s", t->proc->name, t->name, t->resumes, t->done ? " (ended)" : "");
	(void)fprintf(stderr, "\nseed %" PRIu64 ", event %" PRIu64 ", %s%s: check \"%s\": ", sim.seed, sim.events,
		      sim.cur != NULL ? sim.cur->proc->name : "kernel", sim.cur != NULL ? sim.cur->name : "", check);
	va_start(ap, fmt);
	(void)vfprintf(stderr, fmt, ap);
	va_end(ap);
	(void)fprintf(stderr, "\n");
	(void)fflush(stderr);
	_exit(SIM_FAILED);
}
