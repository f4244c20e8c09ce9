/* SPDX-License-Identifier: Apache-2.0
 * What a call must keep is pushed on the old stack, then popped from the new one. Machines for which that is not written
 * down here use ucontext. */
#include "tests/sim/switch.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "tests/sim/kernel.h"

#define FREE_MAX 64u

static struct { void *base; size_t bytes; } unused[FREE_MAX];
static unsigned unused_cnt;
static struct sim_stack *starting;

static void start(void)
{
	struct sim_stack *s = starting;
	s->entry(s->arg);
	abort();
}

static void *stack_get(size_t bytes)
{
	if (unused_cnt > 0 && unused[unused_cnt - 1].bytes == bytes)
		return unused[--unused_cnt].base;
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
	if (p == MAP_FAILED || mprotect(p, 4096, PROT_NONE) != 0) /* an overflow is a fault, not a riddle */
		abort();
	return p;
}

void sim_stack_drop(struct sim_stack *s)
{
	if (unused_cnt < FREE_MAX) {
		unused[unused_cnt].base = s->base;
		unused[unused_cnt++].bytes = s->bytes;
	}
	s->base = NULL;
}

#if defined __x86_64__ && !defined __SANITIZE_ADDRESS__

void sim_switch_raw(void **from_sp, void *to_sp);
__asm__(".text\n"
	".globl sim_switch_raw\n"
	".type sim_switch_raw,@function\n"
	"sim_switch_raw:\n"
	"\tpushq %rbp\n\tpushq %rbx\n\tpushq %r12\n\tpushq %r13\n\tpushq %r14\n\tpushq %r15\n"
	"\tmovq %rsp, (%rdi)\n"
	"\tmovq %rsi, %rsp\n"
	"\tpopq %r15\n\tpopq %r14\n\tpopq %r13\n\tpopq %r12\n\tpopq %rbx\n\tpopq %rbp\n"
	"\tret\n"
	".size sim_switch_raw,.-sim_switch_raw\n");

void sim_stack_make(struct sim_stack *s, size_t bytes, void (*entry)(void *arg), void *arg)
{
	*s = (struct sim_stack){ .base = stack_get(bytes), .bytes = bytes, .entry = entry, .arg = arg };
	uintptr_t *top = (uintptr_t *)((uintptr_t)s->base + bytes);
	*--top = 0;                   /* where start() would return to */
	*--top = (uintptr_t)start;    /* 16-byte aligned + 8 when it begins, as after a call */
	top -= 6;
	memset(top, 0, 6 * sizeof *top);
	s->sp = top;
}

void sim_switch(struct sim_stack *from, struct sim_stack *to)
{
	starting = to;
	sim_switch_raw(&from->sp, to->sp);
}

#else

void sim_stack_make(struct sim_stack *s, size_t bytes, void (*entry)(void *arg), void *arg)
{
	*s = (struct sim_stack){ .base = stack_get(bytes), .bytes = bytes, .entry = entry, .arg = arg };
	ucontext_t *c = s->sp = sim_calloc(1, sizeof *c);
	if (c == NULL || getcontext(c) != 0)
		abort();
	c->uc_stack.ss_sp = s->base;
	c->uc_stack.ss_size = bytes;
	makecontext(c, start, 0);
}

void sim_switch(struct sim_stack *from, struct sim_stack *to)
{
	if (from->sp == NULL && (from->sp = sim_calloc(1, sizeof(ucontext_t))) == NULL)
		abort();
	starting = to;
	if (swapcontext(from->sp, to->sp) != 0)
		abort();
}

#endif
