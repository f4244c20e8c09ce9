/* SPDX-License-Identifier: Apache-2.0
 * Owner of the control thread's epoll set and its hashed timer wheel (Varghese, Lauck: "Hashed and hierarchical timing
 * wheels", scheme 6): arming never allocates, so nothing that waits for a deadline can fail to get one. */
#include "dataplane/loop.h"

#include <errno.h>
#include <unistd.h>

#include "common/clock.h"

tn_status dp_loop_init(struct dp_loop *loop)
{
	int fd = epoll_create1(EPOLL_CLOEXEC);

	if (fd < 0)
		return tn_status_from_errno(errno);
	loop->epoll_fd = fd;
	loop->now_ns = tn_now_ns();
	loop->tick = loop->now_ns / DP_WHEEL_TICK_NS;
	loop->batch_cnt = loop->batch_at = 0;
	for (uint32_t i = 0; i < DP_WHEEL_SLOTS; i++)
		tn_list_init(&loop->wheel[i]);
	return TN_OK;
}

void dp_loop_fini(struct dp_loop *loop)
{
	if (loop->epoll_fd > 0)
		close(loop->epoll_fd);
	loop->epoll_fd = -1;
}

/* How long until a slot with timers comes up; a slot may hold only timers of a later lap, which costs one idle turn. */
static uint64_t wheel_wait_ns(const struct dp_loop *loop, uint64_t max_ns)
{
	for (uint64_t i = 0; i < DP_WHEEL_SLOTS && i * DP_WHEEL_TICK_NS < max_ns; i++) {
		if (tn_list_empty(&loop->wheel[(loop->tick + i) % DP_WHEEL_SLOTS]))
			continue;
		uint64_t at = (loop->tick + i + 1) * DP_WHEEL_TICK_NS;
		return TN_MIN(max_ns, tn_remaining_ns(at, loop->now_ns));
	}
	return max_ns;
}

/* Moves what is due out of one slot first: callbacks may arm timers in it. */
static void wheel_sweep(struct dp_loop *loop, struct tn_list *slot, struct tn_list *due)
{
	tn_list_foreach(node, slot) {
		struct dp_timer *t = tn_list_entry(node, struct dp_timer, link);
		if (t->at_ns > loop->now_ns)
			continue;
		tn_list_unlink(node);
		tn_list_push_back(due, node);
	}
}

static void wheel_run(struct dp_loop *loop)
{
	uint64_t target = loop->now_ns / DP_WHEEL_TICK_NS;
	uint64_t sweep_cnt = TN_MIN(target - loop->tick + 1, (uint64_t)DP_WHEEL_SLOTS);
	struct tn_list due;

	tn_list_init(&due);
	for (uint64_t i = 0; i < sweep_cnt; i++)
		wheel_sweep(loop, &loop->wheel[(target - i) % DP_WHEEL_SLOTS], &due);
	loop->tick = target;
	/* A callback may cancel any other timer, also one that is due: it then leaves this list. */
	for (struct tn_list *node; (node = tn_list_pop_front(&due)) != NULL;) {
		struct dp_timer *t = tn_list_entry(node, struct dp_timer, link);
		t->fire(t);
	}
}

void dp_loop_turn(struct dp_loop *loop, uint64_t max_wait_ns)
{
	int wait_ms = tn_ns_to_poll_ms(wheel_wait_ns(loop, max_wait_ns));
	int n = epoll_wait(loop->epoll_fd, loop->batch, DP_LOOP_BATCH, wait_ms);

	loop->now_ns = tn_now_ns();
	loop->batch_cnt = n > 0 ? n : 0;
	for (loop->batch_at = 0; loop->batch_at < loop->batch_cnt; loop->batch_at++) {
		struct epoll_event *ev = &loop->batch[loop->batch_at];
		struct dp_source *s = ev->data.ptr;
		if (s != NULL)
			s->ready(s, ev->events);
	}
	loop->batch_cnt = 0;
	wheel_run(loop);
}

tn_status dp_loop_add(struct dp_loop *loop, struct dp_source *s, uint32_t events)
{
	struct epoll_event ev = { .events = events, .data = { .ptr = s } };

	if (epoll_ctl(loop->epoll_fd, EPOLL_CTL_ADD, s->fd, &ev) != 0)
		return tn_status_from_errno(errno);
	s->added = true;
	return TN_OK;
}

void dp_loop_mod(struct dp_loop *loop, struct dp_source *s, uint32_t events)
{
	struct epoll_event ev = { .events = events, .data = { .ptr = s } };

	if (s->added)
		(void)epoll_ctl(loop->epoll_fd, EPOLL_CTL_MOD, s->fd, &ev);
}

void dp_loop_del(struct dp_loop *loop, struct dp_source *s)
{
	if (!s->added)
		return;
	(void)epoll_ctl(loop->epoll_fd, EPOLL_CTL_DEL, s->fd, NULL);
	s->added = false;
	for (int i = loop->batch_at; i < loop->batch_cnt; i++)
		if (loop->batch[i].data.ptr == s)
			loop->batch[i].data.ptr = NULL;
}

void dp_timer_init(struct dp_timer *t, void (*fire)(struct dp_timer *t))
{
	tn_list_init(&t->link);
	t->fire = fire;
	t->at_ns = 0;
}

void dp_timer_set(struct dp_loop *loop, struct dp_timer *t, uint64_t at_ns)
{
	uint64_t tick = at_ns / DP_WHEEL_TICK_NS;

	tn_list_unlink(&t->link);
	t->at_ns = at_ns;
	/* Already past: the slot that the next sweep begins with. */
	tn_list_push_back(&loop->wheel[TN_MAX(tick, loop->tick) % DP_WHEEL_SLOTS], &t->link);
}

void dp_timer_cancel(struct dp_timer *t)
{
	tn_list_unlink(&t->link);
}
