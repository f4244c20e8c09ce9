/* SPDX-License-Identifier: Apache-2.0
 * The control thread's event loop: one epoll set and one timer wheel. It knows nothing of what waits in it. All calls
 * come from the control thread; callbacks run there, may add and remove any source or timer, and must not block. */
#ifndef DP_LOOP_H
#define DP_LOOP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>

#include "common/list.h"
#include "common/status.h"

#define DP_LOOP_BATCH 64
#define DP_WHEEL_SLOTS 256u
#define DP_WHEEL_TICK_NS UINT64_C(5000000)

/* An fd in the loop. The object belongs to the caller and must stay where it is while added. */
struct dp_source {
	void (*ready)(struct dp_source *s, uint32_t events); /* EPOLL* bits */
	int fd;
	bool added;
};

/* Fires once, at or up to one tick after at_ns. Zeroed memory is not a timer: dp_timer_init() first. */
struct dp_timer {
	struct tn_list link;
	void (*fire)(struct dp_timer *t);
	uint64_t at_ns;
};

struct dp_loop {
	int epoll_fd;
	uint64_t now_ns;       /* CLOCK_MONOTONIC, read once per turn */
	uint64_t tick;         /* wheel position: every slot before it was swept */
	struct epoll_event batch[DP_LOOP_BATCH];
	int batch_cnt, batch_at;
	struct tn_list wheel[DP_WHEEL_SLOTS];
};

/* TN_LIMIT (fds), TN_SYSTEM. */
tn_status dp_loop_init(struct dp_loop *loop);
void dp_loop_fini(struct dp_loop *loop); /* accepts a half-built one; sources and timers are the callers' */

/* One turn: waits up to max_wait_ns for events, runs the callbacks of events and due timers. */
void dp_loop_turn(struct dp_loop *loop, uint64_t max_wait_ns);

tn_status dp_loop_add(struct dp_loop *loop, struct dp_source *s, uint32_t events);
void dp_loop_mod(struct dp_loop *loop, struct dp_source *s, uint32_t events);
/* Also drops events of this turn that were not delivered yet: `s` may be freed afterwards. Does not close the fd.
 * Harmless for a source that is not added. */
void dp_loop_del(struct dp_loop *loop, struct dp_source *s);

void dp_timer_init(struct dp_timer *t, void (*fire)(struct dp_timer *t));
/* (Re)arms. */
void dp_timer_set(struct dp_loop *loop, struct dp_timer *t, uint64_t at_ns);
void dp_timer_cancel(struct dp_timer *t);
TN_INLINE bool dp_timer_armed(const struct dp_timer *t) { return tn_list_linked(&t->link); }

#endif
