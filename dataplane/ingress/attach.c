/* SPDX-License-Identifier: Apache-2.0
 * Owner of the attach socket: accepts, looks at the kernel's note of who connected, and lets in the same user and
 * root. A stranger is closed without an answer and counted. Control thread. */
#include "dataplane/ingress/attach.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "dataplane/control.h"

#define ACCEPTS_PER_TURN 16
#define ACCEPT_RETRY_NS UINT64_C(50000000)
#define CLIENTS_SPARE 48u
#define CLIENTS_NEW_MAX 24u /* that have not said HELLO; as many again may wait to be freed */
#define CLIENT_INDEX_BITS 12u
#define CLIENT_GENERATION_MASK 0xfffffu

TN_STATIC_ASSERT(DP_CLIENTS_MAX == 1u << CLIENT_INDEX_BITS, "client ids");

TN_STATIC_ASSERT(CLIENTS_NEW_MAX + ACCEPTS_PER_TURN <= CLIENTS_SPARE, "a place for each that is accepted in one turn");

static void accept_ready(struct dp_source *s, uint32_t events);
static void accept_retry(struct dp_timer *t);

void dp_attach_init(struct dp_attach *a, struct dp_control *ctl, uint32_t client_max)
{
	a->ctl = ctl;
	a->listener = (struct dp_source){ .ready = accept_ready, .fd = -1 };
	/* A few more than the bound may connect, so that those over it are told why. */
	a->attached_max = client_max;
	dp_handles_init(&a->clients, TN_MIN(client_max + CLIENTS_SPARE, DP_CLIENTS_MAX));
	tn_list_init(&a->list);
	dp_timer_init(&a->retry, accept_retry);
	a->spare = (struct tn_spare_fd)TN_SPARE_FD_NONE;
	(void)tn_spare_fd_keep(&a->spare);
}

tn_status dp_attach_listen(struct dp_attach *a, const char *runtime_dir)
{
	char path[SHR_LEASE_PATH_MAX];
	tn_status s;

	if (snprintf(path, sizeof path, "%s/" DP_ATTACH_SOCKET, runtime_dir) >= (int)sizeof path)
		return TN_TOO_BIG;
	s = shr_publish_socket(path, SOCK_SEQPACKET, 0600, &a->listener.fd, &a->published);
	if (s != TN_OK)
		return s;
	return dp_loop_add(&a->ctl->loop, &a->listener, EPOLLIN);
}

void dp_attach_close(struct dp_attach *a)
{
	dp_timer_cancel(&a->retry);
	dp_loop_del(&a->ctl->loop, &a->listener);
	if (a->listener.fd >= 0)
		close(a->listener.fd);
	a->listener.fd = -1;
	(void)shr_publish_remove(&a->published);
}

void dp_attach_announce_shutdown(struct dp_attach *a)
{
	tn_list_foreach(node, &a->list) {
		struct dp_app *c = tn_list_entry(node, struct dp_app, link);
		if (!dp_app_is_live(c))
			continue;
		shr_msg_begin(dp_app_tx(c), SHR_MSG_SHUTDOWN, 0, 0);
		dp_app_send(c, dp_app_tx(c));
	}
}

void dp_attach_fini(struct dp_attach *a)
{
	if (a->ctl == NULL)
		return;
	dp_attach_close(a);
	tn_list_foreach(node, &a->list)
		dp_app_destroy(tn_list_entry(node, struct dp_app, link));
	dp_handles_fini(&a->clients);
	(void)tn_spare_fd_give(&a->spare);
}

static bool may_attach(const struct shr_peer_cred *cred)
{
	return cred->uid == geteuid() || cred->uid == 0;
}

static void refuse(struct dp_attach *a, enum tn_refusal why)
{
	a->refused_cnt++;
	dp_refused(a->ctl, TN_DP_DOOR_ATTACH, why);
}

static bool has_spoken(const struct dp_app *c)
{
	struct pollfd p = { .fd = c->source.fd, .events = POLLIN };
	return poll(&p, 1, 0) == 1;
}

/* Too many that have not said HELLO: the oldest that is silent goes. Who means it has sent its HELLO by now. */
static void make_room(struct dp_attach *a)
{
	if (a->new_cnt < CLIENTS_NEW_MAX)
		return;
	tn_list_foreach(node, &a->list) {
		struct dp_app *c = tn_list_entry(node, struct dp_app, link);
		if (c->state != DP_APP_NEW || has_spoken(c))
			continue;
		refuse(a, TN_REFUSAL_CROWDED);
		dp_app_drop(c, TN_TIMEOUT);
		return;
	}
}

/* no_room: it came in on the spare descriptor, to be told so. */
static void admit(struct dp_attach *a, int fd, bool no_room)
{
	struct shr_peer_cred cred;

	if (dp_control_drains(a->ctl) || shr_peer_cred(fd, &cred) != TN_OK || !may_attach(&cred)) {
		if (dp_control_drains(a->ctl))
			a->refused_cnt++;
		else
			refuse(a, TN_REFUSAL_STRANGER);
		close(fd);
		return;
	}
	make_room(a);
	if (dp_app_new(a->ctl, fd, &cred, no_room) == NULL)
		refuse(a, TN_REFUSAL_CROWDED);
}

static void accept_ready(struct dp_source *s, uint32_t events)
{
	struct dp_attach *a = tn_container_of(s, struct dp_attach, listener);

	(void)events;
	for (int i = 0; i < ACCEPTS_PER_TURN; i++) {
		int fd = accept4(s->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (fd < 0 && (errno == EMFILE || errno == ENFILE) && tn_spare_fd_give(&a->spare)) {
			fd = accept4(s->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
			if (fd >= 0)
				refuse(a, TN_REFUSAL_DESCRIPTORS);
		}
		if (fd >= 0) {
			admit(a, fd, !tn_spare_fd_keep(&a->spare));
			continue;
		}
		if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
			/* The listener stays readable: without a pause this thread would spin until a descriptor is free. */
			dp_loop_mod(&a->ctl->loop, s, 0);
			dp_timer_set(&a->ctl->loop, &a->retry, a->ctl->loop.now_ns + ACCEPT_RETRY_NS);
		}
		return;
	}
}

static void accept_retry(struct dp_timer *t)
{
	struct dp_attach *a = tn_container_of(t, struct dp_attach, retry);

	(void)tn_spare_fd_keep(&a->spare);
	dp_loop_mod(&a->ctl->loop, &a->listener, EPOLLIN);
}

tn_status dp_attach_enter(struct dp_attach *a, struct dp_app *c)
{
	tn_status s = dp_handles_add(&a->clients, c, &c->handle);

	if (s != TN_OK)
		return s;
	c->id = (tn_handle_generation(c->handle) & CLIENT_GENERATION_MASK) << CLIENT_INDEX_BITS | tn_handle_index(c->handle);
	tn_list_push_back(&a->list, &c->link);
	return TN_OK;
}

void dp_attach_leave(struct dp_attach *a, struct dp_app *c)
{
	tn_list_unlink(&c->link);
	(void)dp_handles_remove(&a->clients, c->handle);
	if (a->listener.fd >= 0)
		(void)tn_spare_fd_keep(&a->spare);
}

struct dp_app *dp_attach_find(struct dp_attach *a, uint32_t client_id)
{
	uint32_t index = client_id & (DP_CLIENTS_MAX - 1);
	struct dp_app *c = index < a->clients.cap ? dp_handles_at(&a->clients, index) : NULL;

	return c != NULL && c->id == client_id ? c : NULL;
}
