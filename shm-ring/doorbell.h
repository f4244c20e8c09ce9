/* SPDX-License-Identifier: Apache-2.0
 * How a thread that sleeps is woken by one that publishes, without a lost wake-up and without a system call while the
 * other side is awake. An armed word in shared memory says "I sleep"; a socket pair carries the wake-up.
 *
 *   sleeper                                    publisher
 *   armed = 1        (one per ring)            publish (store of the ring's index)
 *   full fence                                 full fence
 *   re-check every ring; work? disarm, go on   armed? ring
 *   sleep in epoll/poll
 *   disarm, drain, work
 *
 * Both fences are needed, also on x86: a store may sit in the store buffer while the following load of another line
 * executes. Without the sleeper's fence it re-checks the ring before its armed = 1 is visible; without the
 * publisher's it reads armed before its index is visible. In both cases each side sees the other's old value and the
 * wake-up is lost. With both, at least one side sees the new value (tests/model/doorbell.pml shows the failure too).
 *
 * Why sockets and not an eventfd: O_NONBLOCK of a shared eventfd can be cleared by the other process, which then makes
 * our write or read block; and every holder of it can drain a wake-up. MSG_DONTWAIT is per call, and only the owner
 * of an end can drain that end. One pair serves both directions of a queue pair: the data plane keeps end 0 and hands
 * end 1 to the application. Hang-up of the peer shows on the end; poll it edge-triggered or drop it on HUP. */
#ifndef SHR_DOORBELL_H
#define SHR_DOORBELL_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "common/atomic.h"
#include "common/compiler.h"
#include "common/status.h"

/* Creates the two ends (close-on-exec). TN_LIMIT, TN_NO_MEMORY, TN_SYSTEM; *ends untouched on failure. */
TN_INLINE tn_status shr_doorbell_create(int ends_out[2])
{
	int ends[2];
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0)
		return tn_status_from_errno(errno);
	ends_out[0] = ends[0];
	ends_out[1] = ends[1];
	return TN_OK;
}

/* Sleeper, step 1: for each ring that may wake it (relaxed; the one fence below orders all of them). */
TN_INLINE void shr_doorbell_arm(tn_a32 *armed) { tn_store_relaxed32(armed, 1); }
/* Sleeper, step 2: once, after arming. Then re-check every ring (shr_sq_pending, shr_cq_pending, ...) and sleep only
 * when all are empty. */
TN_INLINE void shr_doorbell_arm_fence(void)
{
	/* [D1] [D2] full: armed = 1 is visible before the re-check reads an index. */
	tn_fence_full();
}
/* Sleeper, after waking or when the re-check found work. */
TN_INLINE void shr_doorbell_disarm(tn_a32 *armed) { tn_store_relaxed32(armed, 0); }

/* Publisher, step 1: once per batch of publishes. */
TN_INLINE void shr_doorbell_publish_fence(void)
{
	/* [D1] [D2] full: the published index is visible before armed is read. */
	tn_fence_full();
}
/* Publisher, step 2: per ring published, after the fence. */
TN_INLINE bool shr_doorbell_is_armed(const tn_a32 *armed) { return tn_load_relaxed32(armed) != 0; }

/* Sends one wake-up over our end. Never blocks: a full queue means that the peer has wake-ups to read already, and a
 * closed one that there is nobody to wake. One system call. */
TN_INLINE void shr_doorbell_ring(int end)
{
	static const char one = 1;
	(void)!send(end, &one, 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* Publisher, both steps for one ring: a full fence and one relaxed load when the other side is awake.
 * True when it rang. */
TN_INLINE bool shr_doorbell_ring_if_armed(const tn_a32 *armed, int end)
{
	shr_doorbell_publish_fence();
	if (tn_likely(!shr_doorbell_is_armed(armed)))
		return false;
	shr_doorbell_ring(end);
	return true;
}

/* Sleeper, after waking: takes the wake-ups off our end, one system call in the usual case. Bounded, so that a peer that
 * rings without pause cannot hold us here; the bound is above what a socket of default size holds, so that a peer that
 * only rings when it has to always finds room. False when the peer's end is closed (or it sent an empty message, which
 * the protocol does not have): give the queue pair up. */
TN_INLINE bool shr_doorbell_drain(int end)
{
	enum { EACH = 16, CALLS = 32 };
	char sink;
	struct iovec iov = { &sink, sizeof sink };
	struct mmsghdr m[EACH];
	for (int i = 0; i < EACH; i++)
		m[i] = (struct mmsghdr){ .msg_hdr = { .msg_iov = &iov, .msg_iovlen = 1 } };
	for (int i = 0; i < CALLS; i++) {
		int n = recvmmsg(end, m, EACH, MSG_DONTWAIT, NULL);
		if (n > 0 && m[n - 1].msg_len == 0)
			return false;
		if (n < EACH)
			break;
	}
	return true;
}

#endif
