/* SPDX-License-Identifier: Apache-2.0
 * epoll, wrapped so that a pollable may disappear while its event waits to be served. One worker. */
#include "dataplane/poller.h"

#include <errno.h>
#include <unistd.h>

#include "common/clock.h"

#define SHORT_NS TN_NS_PER_MS /* sleeps below this are worth the more precise call */

tn_status dp_poller_init(struct dp_poller *p)
{
	static const struct timespec at_once = { 0 };
	*p = (struct dp_poller){ .epfd = epoll_create1(EPOLL_CLOEXEC) };
	if (p->epfd < 0)
		return tn_status_from_errno(errno);
	p->precise = epoll_pwait2(p->epfd, p->events, 1, &at_once, NULL) >= 0;
	return TN_OK;
}

void dp_poller_destroy(struct dp_poller *p)
{
	if (p->epfd >= 0)
		close(p->epfd);
	p->epfd = -1;
}

tn_status dp_poller_add(struct dp_poller *p, struct dp_pollable *what, uint32_t events, bool socket)
{
	struct epoll_event e = { .events = events, .data.ptr = what };
	if (epoll_ctl(p->epfd, EPOLL_CTL_ADD, what->fd, &e) != 0)
		return errno == ENOSPC ? TN_LIMIT : tn_status_from_errno(errno);
	p->sockets += socket;
	return TN_OK;
}

void dp_poller_mod(struct dp_poller *p, struct dp_pollable *what, uint32_t events)
{
	struct epoll_event e = { .events = events, .data.ptr = what };
	(void)epoll_ctl(p->epfd, EPOLL_CTL_MOD, what->fd, &e);
}

void dp_poller_del(struct dp_poller *p, struct dp_pollable *what, bool socket)
{
	if (epoll_ctl(p->epfd, EPOLL_CTL_DEL, what->fd, NULL) == 0)
		p->sockets -= socket;
	for (int i = 0; i < p->cnt; i++)
		if (p->events[i].data.ptr == what)
			p->events[i].data.ptr = NULL;
}

static uint32_t serve(struct dp_poller *p, int cnt)
{
	p->cnt = cnt < 0 ? 0 : cnt;
	for (int i = 0; i < p->cnt; i++) {
		struct dp_pollable *what = p->events[i].data.ptr;
		if (what)
			what->ready(what, p->events[i].events);
	}
	uint32_t served = (uint32_t)p->cnt;
	p->cnt = 0;
	return served;
}

uint32_t dp_poller_spin(struct dp_poller *p, bool eager, bool bells)
{
	if (p->sockets == 0 && !bells)
		return 0;
	if ((!eager || p->sockets == 0) && p->skip > 0) {
		p->skip--;
		return 0;
	}
	uint32_t served = serve(p, epoll_wait(p->epfd, p->events, DP_POLL_EVENTS, 0));
	p->skip_max = served ? 0 : TN_MIN(p->skip_max * 2 + 1, p->sockets ? DP_POLL_SKIP_MAX : DP_POLL_SKIP_BELLS);
	p->skip = p->skip_max;
	return served;
}

uint32_t dp_poller_sleep(struct dp_poller *p, uint64_t timeout_ns)
{
	p->skip = p->skip_max = 0;
	if (p->precise && timeout_ns < SHORT_NS) {
		struct timespec ts = { .tv_nsec = (long)timeout_ns };
		return serve(p, epoll_pwait2(p->epfd, p->events, DP_POLL_EVENTS, &ts, NULL));
	}
	return serve(p, epoll_wait(p->epfd, p->events, DP_POLL_EVENTS, tn_ns_to_poll_ms(timeout_ns)));
}
