/* SPDX-License-Identifier: Apache-2.0
 * Sleeping for completions: a short spin, then the doorbell protocol of shm-ring/doorbell.h [D2], then the kernel. The
 * keeper's wake-ups arrive on an eventfd of ours, so a dead data plane wakes the sleeper too. Owner thread. */
#include <poll.h>
#include <unistd.h>

#include "dataplane/libtent/queue.h"

/* About 5 us of looking before the two system calls that a sleep costs. */
#define SPIN_CNT 128

static bool ring_has_something(const tent_qp *qp)
{
	return qp->ring != NULL && !qp->ring_broken && shr_cq_pending(&qp->ring->cq);
}

/* Takes old wake-ups away, so that the next sleep is not cut short. They are safe to lose: the re-check after arming
 * sees what they announced. */
static void drain_wakeups(tent_qp *qp)
{
	uint64_t sink;

	(void)!read(qp->wake_fd, &sink, sizeof sink);
	/* A hung-up doorbell stays readable for ever; the keeper tells the rest. */
	if (qp->ring != NULL && qp->ring->doorbell_up && !shr_doorbell_drain(qp->ring->doorbell))
		(void)lt_queue_watch_doorbell(qp, false);
}

/* True: it is safe to sleep. */
static bool arm(tent_qp *qp)
{
	if (lt_queue_has_own(qp) || qp->dead_status != TN_OK)
		return false;
	drain_wakeups(qp);
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
	return arm(qp) ? TENT_OK : TENT_AGAIN;
}

static void sleep_until(const tent_qp *qp, uint64_t deadline_ns)
{
	bool doorbell = qp->ring != NULL && qp->ring->doorbell_up;
	struct pollfd p[2] = { { .fd = qp->wake_fd, .events = POLLIN },
			       { .fd = doorbell ? qp->ring->doorbell : -1, .events = POLLIN } };
	uint64_t left = tn_remaining_ns(deadline_ns, tn_now_ns());
	struct timespec ts = { .tv_sec = (time_t)(left / TN_NS_PER_S), .tv_nsec = (long)(left % TN_NS_PER_S) };

	(void)ppoll(p, 2, deadline_ns == UINT64_MAX ? NULL : &ts, NULL);
}

static void spin(const tent_qp *qp)
{
	for (int i = 0; i < SPIN_CNT && !ring_has_something(qp) && tn_load_relaxed32(&qp->events) == 0; i++)
		tn_cpu_relax();
}

int tent_wait(tent_qp *qp, tent_completion *out, int max, uint64_t timeout_ns)
{
	int n = tent_poll(qp, out, max);

	if (n != 0 || timeout_ns == 0)
		return n;
	uint64_t deadline_ns = tn_deadline_after(tn_now_ns(), timeout_ns);
	spin(qp);
	for (;;) {
		n = tent_poll(qp, out, max);
		if (n != 0)
			return n;
		if (tn_now_ns() >= deadline_ns)
			return 0;
		if (arm(qp)) {
			sleep_until(qp, TN_MIN(deadline_ns, tn_load_relaxed64(&qp->held_deadline_ns)));
			drain_wakeups(qp);
		}
	}
}
