/* SPDX-License-Identifier: Apache-2.0
 * Sleeping for completions: a look as long as it has been paying, then the doorbell protocol of shm-ring/doorbell.h [D2],
 * then the kernel: a sleep costs one ppoll() and, when it was rung, one call that takes the ring away. The keeper's
 * wake-ups arrive on an eventfd of ours, so a dead data plane wakes the sleeper too. Owner thread. */
#include <poll.h>
#include <unistd.h>

#include "dataplane/libtent/queue.h"

/* How long to look before a sleep: what a small operation takes, or, while that has not been paying, what a sleep and a
 * wake-up cost. One look in LOOK_AGAIN is long again, to notice when it would pay. */
#define LOOK_LONG_NS (25 * TN_NS_PER_US)
#define LOOK_SHORT_NS (3 * TN_NS_PER_US)
#define LOOK_AGAIN 32u

static bool ring_has_something(const tent_qp *qp)
{
	return qp->ring != NULL && !qp->ring_broken && shr_cq_pending(&qp->ring->cq);
}

static void drain_knocks(const tent_qp *qp)
{
	uint64_t sink;

	(void)!read(qp->wake_fd, &sink, sizeof sink);
}

static void drain_rings(tent_qp *qp)
{
	/* A hung-up doorbell stays readable for ever; the keeper tells the rest. */
	if (!shr_doorbell_drain(qp->ring->doorbell))
		(void)lt_queue_watch_doorbell(qp, false);
}

/* True: it is safe to sleep. */
static bool arm(tent_qp *qp)
{
	if (lt_queue_has_own(qp) || qp->dead_status != TN_OK)
		return false;
	if (qp->ring != NULL && !qp->ring_broken) {
		shr_doorbell_arm(&qp->ring->view.qp->cq_armed.value);
		qp->armed = true;
	}
	shr_doorbell_arm_fence();
	return !ring_has_something(qp) && tn_load_relaxed32(&qp->events) == 0 &&
	       tn_load_relaxed64(&qp->held_deadline_ns) > tn_now_ns();
}

tent_status tent_arm(tent_qp *qp)
{
	if (tn_unlikely(!lt_queue_enter(qp)))
		return lt_queue_refuse(qp, "tent_arm");
	/* Old wake-ups would end the caller's sleep at once. They are safe to lose: the look after arming sees what they
	 * announced. tent_wait() finds them in its own sleep, which costs nothing when there are none. */
	drain_knocks(qp);
	if (qp->ring != NULL && qp->ring->doorbell_up)
		drain_rings(qp);
	return arm(qp) ? TENT_OK : TENT_AGAIN;
}

static void sleep_until(tent_qp *qp, uint64_t deadline_ns)
{
	bool doorbell = qp->ring != NULL && qp->ring->doorbell_up;
	struct pollfd p[2] = { { .fd = qp->wake_fd, .events = POLLIN },
			       { .fd = doorbell ? qp->ring->doorbell : -1, .events = POLLIN } };
	uint64_t left = tn_remaining_ns(deadline_ns, tn_now_ns());
	struct timespec ts = { .tv_sec = (time_t)(left / TN_NS_PER_S), .tv_nsec = (long)(left % TN_NS_PER_S) };

	if (ppoll(p, 2, deadline_ns == UINT64_MAX ? NULL : &ts, NULL) <= 0)
		return;
	if (p[0].revents != 0)
		drain_knocks(qp);
	if (p[1].revents != 0)
		drain_rings(qp);
}

/* True when something came. */
static bool look(const tent_qp *qp, uint64_t ns)
{
	uint64_t end_ns = tn_now_ns() + ns;

	do {
		for (int i = 0; i < 16; i++) {
			if (ring_has_something(qp) || tn_load_relaxed32(&qp->events) != 0)
				return true;
			tn_cpu_relax();
		}
	} while (tn_now_ns() < end_ns);
	return false;
}

/* Whoever moves large blocks mostly finds nothing in a long look and pays for it; whoever moves small ones, nearly always
 * finds something. More than half of the looks must, for long ones to go on. */
static void look_before_sleep(tent_qp *qp)
{
	bool again = qp->look_credit == 0 && ++qp->look_cnt % LOOK_AGAIN == 0;

	if (look(qp, qp->look_credit > 0 || again ? LOOK_LONG_NS : LOOK_SHORT_NS))
		qp->look_credit = TN_MIN(qp->look_credit + 1, LT_LOOK_CREDIT);
	else if (qp->look_credit > 0)
		qp->look_credit--;
}

int tent_wait(tent_qp *qp, tent_completion *out, int max, uint64_t timeout_ns)
{
	int n = lt_queue_poll(qp, out, max, "tent_wait");

	if (n != 0 || timeout_ns == 0)
		return n;
	uint64_t deadline_ns = tn_deadline_after(tn_now_ns(), timeout_ns);
	look_before_sleep(qp);
	for (;;) {
		n = lt_queue_poll(qp, out, max, "tent_wait");
		if (n != 0)
			return n;
		if (tn_now_ns() >= deadline_ns)
			return 0;
		if (arm(qp))
			sleep_until(qp, TN_MIN(deadline_ns, tn_load_relaxed64(&qp->held_deadline_ns)));
	}
}
