/* SPDX-License-Identifier: Apache-2.0
 * Stacks and the switch between them. Unlike swapcontext() it does not ask the kernel for the signal mask each time: the
 * simulator switches some fifty thousand times per seed. */
#ifndef SIM_SWITCH_H
#define SIM_SWITCH_H

#include <stddef.h>

struct sim_stack {
	void *sp;               /* valid while it does not run */
	void *base;             /* NULL: the thread's own */
	size_t bytes;
	void (*entry)(void *arg);
	void *arg;
};

/* A stack whose first switch calls entry(arg), which must not return. */
void sim_stack_make(struct sim_stack *s, size_t bytes, void (*entry)(void *arg), void *arg);
/* It does not run and never will again: its memory serves the next one. */
void sim_stack_drop(struct sim_stack *s);
/* Save here, go on there. */
void sim_switch(struct sim_stack *from, struct sim_stack *to);

#endif
