/* SPDX-License-Identifier: Apache-2.0
 * The simulator's kernel: virtual time, tasks (threads of simulated processes, each on a stack of its own), and the queue
 * of what happens next. Everything runs in one thread and is decided by one seed: the same seed gives the same run.
 * Time passes only here. A task runs until it asks the kernel for something; between two such points nobody else runs. */
#ifndef SIM_KERNEL_H
#define SIM_KERNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/assert.h"
#include "common/clock.h"
#include "common/compiler.h"
#include "common/rand.h"

#define SIM_TASK_WAITS 8u   /* things that one task can wait for at a time */
#define SIM_HOSTS 2u

enum sim_run_state { SIM_RUNS, SIM_STOPPED, SIM_DEAD };

/* A simulated process. Its memory is ours: when it is killed its tasks never run again, its descriptors are closed, and
 * what it allocated stays where it is until the seed ends. */
struct sim_proc {
	struct sim_proc *next;
	char name[24];
	uint32_t host, pid;
	enum sim_run_state state;
	uint64_t hook_countdown;    /* killed at the pass of a fault point that takes this to 0; 0 = no such order */
	uint64_t alloc_countdown;   /* this allocation from now finds no memory; 0 = all find some */
	bool failing;               /* fault points that fail on order do, at times */
	void (*died)(struct sim_proc *p, void *arg); /* after it was killed or its main returned */
	void *died_arg;
};

struct sim_task;

struct sim {
	uint64_t seed, now_ns, events, hash;
	struct tn_rand rand;
	struct sim_task *cur;       /* NULL: the scheduler, or something that it fired */
	struct sim_proc *procs;
	bool over;                  /* the run ended */
};
extern struct sim sim;

/* Memory of the simulator's own, which never runs out; the code under test may find that there is none. */
void *sim_calloc(size_t n, size_t bytes);
void *sim_malloc(size_t bytes);
void *sim_realloc(void *p, size_t bytes);

/* ---- time and order ---- */
void sim_init(uint64_t seed);
/* Call fire(arg, num) at now + delay_ns. Events of one instant run in the order in which they were asked for. */
void sim_after(uint64_t delay_ns, void (*fire)(void *arg, uint64_t num), void *arg, uint64_t num);
/* Runs events until sim.over, until none is left, or until the limit of events is reached (false). */
bool sim_run(uint64_t events_max);
/* Uniform in lo..hi of the seed's own generator. */
uint64_t sim_pick(uint64_t lo, uint64_t hi);
bool sim_chance(uint32_t one_in);

/* ---- processes and tasks ---- */
struct sim_proc *sim_proc_new(uint32_t host, const char *name);
struct sim_task *sim_spawn(struct sim_proc *p, const char *name, void *(*main)(void *arg), void *arg);
/* As SIGKILL: also from inside one of its own tasks, which then never returns. Does nothing to a dead one. */
void sim_kill(struct sim_proc *p);
/* As SIGSTOP and SIGCONT. */
void sim_stop(struct sim_proc *p);
void sim_cont(struct sim_proc *p);
struct sim_proc *sim_self(void);
/* The running task as a number that is never 0, and its end by itself. */
uint64_t sim_task_id(const struct sim_task *t);
TN_NORETURN void sim_exit(void);
/* The main of its process ended: what is left of the process dies with it. */
TN_NORETURN void sim_exit_process(void);
bool sim_task_done(const struct sim_task *t);

/* ---- what a running task may ask ---- */
/* Others run for this long. */
void sim_sleep(uint64_t ns);
/* A point at which the machine may take the processor away: others may run, most of the time they do not. */
void sim_preempt(void);
/* Sleeps until one of these things is notified, or the time comes. False: the time came. Spurious wake-ups happen. */
bool sim_wait(const void *const *things, unsigned cnt, uint64_t until_ns);
/* Whoever waits for `thing` runs soon. */
void sim_notify(const void *thing);

/* ---- words for whoever reads a failure ---- */
#define SIM_FAILED 3 /* exit status of a seed that failed a check */
extern bool sim_trace_all; /* every word at once, to stderr */
void sim_trace(const char *fmt, ...) TN_PRINTF(1, 2);
/* Prints seed, event, the last words of the trace and this text, and ends the seed as failed. */
TN_NORETURN void sim_fail(const char *check, const char *fmt, ...) TN_PRINTF(2, 3);
#define sim_check(cond, check, ...) ((cond) ? (void)0 : sim_fail(check, __VA_ARGS__))

#endif
