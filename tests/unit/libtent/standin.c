/* SPDX-License-Identifier: Apache-2.0
 * A data plane small enough for one test: it speaks the real attach protocol over the real socket, serves real rings,
 * and moves real bytes between clients of this host, in one thread. This half has the sockets, standin_ring.c the
 * rings. What it does wrong or late is ordered through struct standin_ctl.
 * Usage: libtent_standin RUNTIME_DIR CONTROL_FILE. Ends when its standard input is closed. */
#include "tests/unit/libtent/standin_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/clock.h"

#define TICK_MS 50

struct standin_ctl *ctl;
struct client clients[CLIENTS];
static struct tn_id128 session;
static uint64_t last_id;   /* ids of two incarnations never meet */
struct shr_msg msg;
static uint32_t wild_index; /* orders of this turn of the loop */
static bool drop_clients;

/* ---- objects ---- */

struct memory *find_memory(uint64_t id)
{
	for (int c = 0; c < CLIENTS; c++)
		for (int i = 0; id != 0 && i < OBJECTS; i++)
			if (clients[c].memories[i].id == id)
				return &clients[c].memories[i];
	return NULL;
}

struct segment *find_segment(const char *name, struct client **owner_out)
{
	for (int c = 0; c < CLIENTS; c++)
		for (int i = 0; i < OBJECTS; i++)
			if (clients[c].segments[i].id != 0 && strcmp(clients[c].segments[i].name, name) == 0) {
				*owner_out = &clients[c];
				return &clients[c].segments[i];
			}
	return NULL;
}

static void drop_memory(struct memory *m)
{
	if (m->id == 0)
		return;
	munmap(m->base, m->bytes);
	m->id = 0;
	count(&ctl->memories, -1);
}

static void drop_client(struct client *c)
{
	for (int i = 0; i < OBJECTS; i++) {
		drop_memory(&c->memories[i]);
		if (c->segments[i].id != 0)
			count(&ctl->segments, -1);
		if (c->opens[i].id != 0)
			count(&ctl->opens, -1);
	}
	for (size_t i = 0; i < TN_ARRAY_LEN(c->qps); i++)
		if (c->qps[i] != NULL)
			qp_drop(c->qps[i]);
	close(c->sock); /* last: the hang-up tells the client that nothing of it is touched any more */
	memset(c, 0, sizeof *c);
	c->sock = -1;
	count(&ctl->clients, -1);
}

/* ---- control requests ---- */

static void answer(struct client *c, const struct shr_msg_hdr *h, const void *body, uint32_t bytes, const int *fds)
{
	void *b = shr_msg_begin(&msg, h->type | SHR_MSG_REPLY, h->correlation, bytes);

	if (bytes != 0)
		memcpy(b, body, bytes);
	for (uint32_t i = 0; fds != NULL && i < 2; i++)
		msg.fds[msg.fd_cnt++] = fds[i];
	if (shr_msg_send(c->sock, &msg) != TN_OK)
		fprintf(stderr, "standin: reply %u lost\n", h->type);
	msg.fd_cnt = 0;
}

static void answer_id(struct client *c, const struct shr_msg_hdr *h, uint64_t id)
{
	struct shr_msg_id m = { id };

	answer(c, h, &m, sizeof m, NULL);
}

static void refuse_with(struct client *c, const struct shr_msg_hdr *h, tn_status status, uint32_t detail)
{
	shr_msg_begin_failure(&msg, h->type, h->correlation, status, detail);
	(void)!shr_msg_send(c->sock, &msg);
}

static void refuse(struct client *c, const struct shr_msg_hdr *h, tn_status status) { refuse_with(c, h, status, 7); }

static void on_hello(struct client *c, const struct shr_msg_hdr *h)
{
	struct shr_msg_hello_reply r = {
		.abi_major = SHR_ABI_MAJOR, .abi_minor = SHR_ABI_MINOR, .session = session,
		.default_deadline_ns = STANDIN_DEFAULT_DEADLINE_NS, .max_deadline_ns = 60 * TN_NS_PER_S,
		.max_request_bytes = STANDIN_MAX_BYTES, .client_id = 1, .max_qps = 8, .max_memories = OBJECTS,
		.max_segments = OBJECTS, .max_opens = OBJECTS, .note_inbox = STANDIN_NOTE_INBOX,
	};

	answer(c, h, &r, sizeof r, NULL);
}

static void on_policy_find(struct client *c, const struct shr_msg_hdr *h, const struct shr_msg_policy_find *b)
{
	uint32_t shift = tn_load_relaxed32(&ctl->policy_shift);
	bool fast = strcmp(b->name, "fast") == 0;

	if (shift == 1000 || (!fast && strcmp(b->name, "slow") != 0))
		refuse(c, h, TN_NOT_FOUND);
	else
		answer_id(c, h, STANDIN_POLICY_ID + shift + fast);
}

static void on_register(struct client *c, const struct shr_msg_hdr *h, const struct shr_msg_mem_register *b, int fd)
{
	struct shr_foreign f;
	tn_status s = (tn_status)tn_load_relaxed32(&ctl->refuse_register);

	count(&ctl->registers_seen, 1);
	if (s == TN_OK)
		s = shr_region_seal_foreign(fd, b->offset + b->length, &f);
	for (int i = 0; s == TN_OK && i < OBJECTS; i++) {
		struct memory *m = &c->memories[i];

		if (m->id != 0)
			continue;
		void *base = mmap(NULL, b->length, PROT_READ | (f.writable ? PROT_WRITE : 0), f.constant ? MAP_PRIVATE : MAP_SHARED,
				  fd, (off_t)b->offset);
		if (base == MAP_FAILED)
			break;
		*m = (struct memory){ ++last_id, base, b->length };
		count(&ctl->memories, 1);
		answer_id(c, h, m->id);
		return;
	}
	refuse(c, h, s != TN_OK ? s : TN_LIMIT);
}

static void lose(struct client *c, struct segment *g)
{
	struct shr_msg_segment_lost lost = { .id = g->id, .status = TN_CANCELED };

	memcpy(shr_msg_begin(&msg, SHR_MSG_SEGMENT_LOST, 0, sizeof lost), &lost, sizeof lost);
	(void)!shr_msg_send(c->sock, &msg);
	g->id = 0;
	count(&ctl->segments, -1);
}

static void on_publish(struct client *c, const struct shr_msg_hdr *h)
{
	struct shr_publish_view v;
	struct client *owner;
	tn_status s = (tn_status)tn_load_relaxed32(&ctl->refuse_publish);

	count(&ctl->publishes_seen, 1);
	shr_msg_publish_view(&msg, &v);
	if (s == TN_OK && find_segment(v.fixed->name, &owner) != NULL)
		s = TN_EXISTS;
	for (uint32_t i = 0; s == TN_OK && i < v.fixed->buffer_cnt; i++)
		if (find_memory(v.buffers[i].memory) == NULL)
			s = TN_STALE;
	for (int i = 0; s == TN_OK && i < OBJECTS; i++) {
		struct segment *g = &c->segments[i];

		if (g->id != 0)
			continue;
		*g = (struct segment){ .id = ++last_id, .buffer_cnt = TN_MIN(v.fixed->buffer_cnt, 8u) };
		memcpy(g->name, v.fixed->name, sizeof g->name);
		g->publication = v.fixed->publication;
		for (uint32_t k = 0; k < g->buffer_cnt; k++) {
			g->buffers[k] = v.buffers[k];
			g->bytes += v.buffers[k].length;
		}
		count(&ctl->segments, 1);
		if (tn_load_acquire32(&ctl->hold_publish) != 0)
			g->unanswered = *h;
		else
			answer_id(c, h, g->id);
		if (tn_load_acquire32(&ctl->lose_at_once) != 0) {
			count(&ctl->lose_at_once, -1);
			lose(c, g);
		}
		return;
	}
	refuse(c, h, s != TN_OK ? s : TN_LIMIT);
}

static void answer_held_publishes(struct client *c)
{
	for (int i = 0; i < OBJECTS; i++) {
		struct segment *g = &c->segments[i];

		if (g->id != 0 && g->unanswered.magic != 0)
			answer_id(c, &g->unanswered, g->id);
		g->unanswered.magic = 0;
	}
}

static void on_open(struct client *c, const struct shr_msg_hdr *h, const struct shr_msg_open *b)
{
	struct client *owner;
	struct segment *g = find_segment(b->ref, &owner);
	tn_status s = (tn_status)tn_load_relaxed32(&ctl->refuse_open);

	if (s != TN_OK && tn_load_relaxed32(&ctl->refuse_open_cnt) != 0 &&
	    tn_fetch_add32(&ctl->refuse_open_cnt, UINT32_MAX) == 1)
		tn_store_relaxed32(&ctl->refuse_open, TN_OK);
	if (s == TN_OK && g == NULL)
		s = TN_NOT_FOUND;
	for (int i = 0; s == TN_OK && i < OBJECTS; i++) {
		struct opened *o = &c->opens[i];

		if (o->id != 0)
			continue;
		*o = (struct opened){ .id = ++last_id };
		memcpy(o->name, g->name, sizeof o->name);
		struct shr_msg_open_reply r = {
		    .id = o->id, .length = g->bytes, .publication = g->publication, .rights = g->buffers[0].rights,
		    .local = 1 };
		r.publication.b[0] ^= (uint8_t)tn_load_relaxed32(&ctl->republished);
		count(&ctl->opens, 1);
		answer(c, h, &r, sizeof r, NULL);
		return;
	}
	refuse(c, h, s != TN_OK ? s : TN_LIMIT);
}

static void on_qp_create(struct client *c, const struct shr_msg_hdr *h, const struct shr_msg_qp_create *b)
{
	tn_status s = (tn_status)tn_load_relaxed32(&ctl->refuse_qp);

	for (size_t i = 0; s == TN_OK && i < TN_ARRAY_LEN(c->qps); i++) {
		if (c->qps[i] != NULL)
			continue;
		struct qp *q = c->qps[i] = qp_make(b, ++last_id);
		struct shr_msg_qp_create_reply r = { .id = q->id, .region_bytes = q->view.lay.region_bytes };
		int fds[2] = { q->region.fd, q->app_end };

		answer(c, h, &r, sizeof r, fds);
		close(q->app_end);
		return;
	}
	refuse(c, h, s != TN_OK ? s : TN_LIMIT);
}

static bool memory_is_used(uint64_t id)
{
	for (int c = 0; c < CLIENTS; c++)
		for (int i = 0; i < OBJECTS; i++)
			for (uint32_t k = 0; clients[c].segments[i].id != 0 && k < clients[c].segments[i].buffer_cnt;
			     k++)
				if (clients[c].segments[i].buffers[k].memory == id)
					return true;
	return false;
}

/* What ends already is asked to end again: the data plane tells the first who asked BUSY, and answers the last. */
static bool is_first_of_two(struct client *c, const struct shr_msg_hdr *h)
{
	static struct shr_msg_hdr first;

	if (tn_load_acquire32(&ctl->ends_held) == 0)
		return false;
	if (tn_fetch_add32(&ctl->ends_held, UINT32_MAX) == 2) {
		first = *h;
		return true;
	}
	refuse_with(c, &first, TN_BUSY, 0);
	return false;
}

/* Unregister, withdraw, close, destroy: by id. */
static void on_give_back(struct client *c, const struct shr_msg_hdr *h, uint64_t id)
{
	tn_status s = TN_STALE;

	if (is_first_of_two(c, h))
		return;
	for (int i = 0; i < OBJECTS; i++) {
		if (h->type == SHR_MSG_MEM_UNREGISTER && c->memories[i].id == id) {
			s = memory_is_used(id) ? TN_BUSY : TN_OK;
			if (s == TN_OK)
				drop_memory(&c->memories[i]);
		} else if (h->type == SHR_MSG_WITHDRAW && c->segments[i].id == id) {
			c->segments[i].id = 0;
			count(&ctl->segments, -1);
			s = TN_OK;
		} else if (h->type == SHR_MSG_CLOSE && c->opens[i].id == id) {
			c->opens[i].id = 0;
			count(&ctl->opens, -1);
			s = TN_OK;
		}
	}
	for (size_t i = 0; h->type == SHR_MSG_QP_DESTROY && i < TN_ARRAY_LEN(c->qps); i++)
		if (c->qps[i] != NULL && c->qps[i]->id == id) {
			qp_drop(c->qps[i]);
			c->qps[i] = NULL;
			s = TN_OK;
		}
	if (s == TN_OK)
		answer(c, h, NULL, 0, NULL);
	else
		refuse(c, h, s);
}

static void say_nonsense(struct client *c) { (void)!send(c->sock, "nonsense", 8, MSG_NOSIGNAL); }

/* False: the client is gone. */
static bool on_message(struct client *c)
{
	struct shr_msg_hdr h = msg.hdr;
	const void *body = shr_msg_body_ro(&msg);
	struct shr_msg_id id;
	uint32_t not_now = tn_load_acquire32(&ctl->not_now);
	bool makes = h.type == SHR_MSG_QP_CREATE || h.type == SHR_MSG_MEM_REGISTER || h.type == SHR_MSG_PUBLISH ||
		     h.type == SHR_MSG_OPEN;

	if (makes && not_now != 0) {
		tn_store_release32(&ctl->not_now, not_now - 1);
		shr_msg_close_fds(&msg);
		refuse(c, &h, TN_AGAIN);
		return true;
	}
	switch (h.type) {
	case SHR_MSG_HELLO: on_hello(c, &h); break;
	case SHR_MSG_QP_CREATE: {
		struct shr_msg_qp_create b;
		memcpy(&b, body, sizeof b);
		on_qp_create(c, &h, &b);
		break;
	}
	case SHR_MSG_MEM_REGISTER: {
		struct shr_msg_mem_register b;
		int fd = msg.fds[0];
		memcpy(&b, body, sizeof b);
		msg.fds[0] = -1;
		on_register(c, &h, &b, fd);
		close(fd);
		break;
	}
	case SHR_MSG_PUBLISH: on_publish(c, &h); break;
	case SHR_MSG_OPEN: {
		struct shr_msg_open b;
		memcpy(&b, body, sizeof b);
		on_open(c, &h, &b);
		break;
	}
	case SHR_MSG_POLICY_FIND: {
		struct shr_msg_policy_find b;
		memcpy(&b, body, sizeof b);
		on_policy_find(c, &h, &b);
		break;
	}
	case SHR_MSG_NOTE_ACK: {
		struct shr_msg_note_ack b;
		memcpy(&b, body, sizeof b);
		c->notes_out -= TN_MIN(b.count, c->notes_out);
		count(&ctl->acks, (int)b.count);
		break;
	}
	case SHR_MSG_BYE:
		if (tn_load_acquire32(&ctl->nonsense_to_bye) != 0) {
			say_nonsense(c);
			tn_store_relaxed32(&ctl->silent, tn_load_relaxed32(&ctl->nonsense_to_bye) == 2);
			break;
		}
		answer(c, &h, NULL, 0, NULL); return false;
	default:
		memcpy(&id, body, sizeof id);
		on_give_back(c, &h, id.id);
	}
	return true;
}

static void receive(struct client *c)
{
	while (tn_load_acquire32(&ctl->silent) == 0) {
		tn_status s = shr_msg_recv(c->sock, SHR_FROM_APPLICATION, &msg);

		if (s == TN_AGAIN)
			return;
		if (s != TN_OK || !on_message(c)) {
			drop_client(c);
			return;
		}
	}
}

/* ---- orders, loop ---- */

static void obey(struct client *c)
{
	if (tn_load_acquire32(&ctl->nonsense) != 0) {
		tn_store_relaxed32(&ctl->nonsense, 0);
		say_nonsense(c);
	}
	if (tn_load_acquire32(&ctl->drain) != 0) {
		tn_store_relaxed32(&ctl->drain, 0);
		(void)shr_msg_begin(&msg, SHR_MSG_SHUTDOWN, 0, 0);
		(void)!shr_msg_send(c->sock, &msg);
	}
	if (tn_load_acquire32(&ctl->hold_publish) == 0)
		answer_held_publishes(c);
	if (tn_load_acquire32(&ctl->lose_segments) != 0) {
		for (int i = 0; i < OBJECTS; i++)
			if (c->segments[i].id != 0)
				lose(c, &c->segments[i]);
		tn_store_release32(&ctl->lose_segments, 0);
	}
	if (drop_clients)
		drop_client(c);
}

static bool work_waits(void)
{
	for (int i = 0; i < CLIENTS; i++)
		for (size_t k = 0; clients[i].sock >= 0 && k < TN_ARRAY_LEN(clients[i].qps); k++)
			if (clients[i].qps[k] != NULL && tn_load_relaxed32(&ctl->may_take) != 0 &&
			    shr_sq_pending(&clients[i].qps[k]->sq))
				return true;
	return false;
}

static void arm_all(bool on)
{
	for (int i = 0; i < CLIENTS; i++)
		for (size_t k = 0; clients[i].sock >= 0 && k < TN_ARRAY_LEN(clients[i].qps); k++)
			if (clients[i].qps[k] != NULL) {
				tn_a32 *armed = &clients[i].qps[k]->view.qp->sq_armed.value;
				if (on)
					shr_doorbell_arm(armed);
				else
					shr_doorbell_disarm(armed);
			}
	if (on)
		shr_doorbell_arm_fence();
}

/* Sleeps for the listener, the kicks, the sockets and the doorbells. */
static void sleep_for_work(int listener)
{
	struct pollfd p[2 + CLIENTS * 9] = { { 0, POLLIN, 0 }, { listener, POLLIN, 0 } };
	nfds_t n = 2;

	for (int i = 0; i < CLIENTS; i++) {
		if (clients[i].sock < 0)
			continue;
		p[n++] = (struct pollfd){ clients[i].sock, tn_load_acquire32(&ctl->silent) == 0 ? POLLIN : 0, 0 };
		for (size_t k = 0; k < TN_ARRAY_LEN(clients[i].qps); k++)
			if (clients[i].qps[k] != NULL)
				p[n++] = (struct pollfd){ clients[i].qps[k]->doorbell, POLLIN, 0 };
	}
	arm_all(true);
	if (!work_waits())
		(void)poll(p, n, TICK_MS);
	arm_all(false);
	if (p[0].revents != 0) {
		char sink[64];
		if (read(0, sink, sizeof sink) <= 0)
			exit(0);
	}
}

static void accept_all(int listener)
{
	int fd;

	while ((fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0) {
		for (int i = 0; i < CLIENTS && fd >= 0; i++)
			if (clients[i].sock < 0) {
				clients[i].sock = fd;
				fd = -1;
				count(&ctl->clients, 1);
			}
		if (fd >= 0)
			close(fd);
	}
}

static int listen_on(const char *dir)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	snprintf(a.sun_path, sizeof a.sun_path, "%s/attach.sock", dir);
	unlink(a.sun_path);
	if (fd < 0 || bind(fd, (struct sockaddr *)&a, sizeof a) != 0 || listen(fd, 16) != 0) {
		perror("standin: listen");
		exit(2);
	}
	return fd;
}

static void start(const char *control)
{
	int fd = open(control, O_RDWR | O_CLOEXEC);

	ctl = fd >= 0 ? mmap(NULL, sizeof *ctl, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) : MAP_FAILED;
	if (ctl == MAP_FAILED || getrandom(&session, sizeof session, 0) != sizeof session) {
		perror("standin: control file");
		exit(2);
	}
	memcpy(&last_id, session.b, 4);
	last_id = (last_id | 1) << 32;
	for (int i = 0; i < CLIENTS; i++)
		clients[i].sock = -1;
	/* What a killed predecessor had counted is gone with it. */
	tn_a32 *alive[] = { &ctl->clients, &ctl->memories, &ctl->segments, &ctl->opens, &ctl->qps };
	for (size_t i = 0; i < TN_ARRAY_LEN(alive); i++)
		tn_store_relaxed32(alive[i], 0);
}

int main(int argc, char **argv)
{
	if (argc != 3)
		return 2;
	start(argv[2]);
	int listener = listen_on(argv[1]);
	count(&ctl->starts, 1);
	for (;;) {
		sleep_for_work(listener);
		accept_all(listener);
		wild_index = tn_load_acquire32(&ctl->wild_index);
		drop_clients = tn_exchange32(&ctl->drop_clients, 0) != 0;
		for (int i = 0; i < CLIENTS; i++) {
			struct client *c = &clients[i];

			if (c->sock < 0)
				continue;
			receive(c);
			for (size_t k = 0; c->sock >= 0 && k < TN_ARRAY_LEN(c->qps); k++) {
				if (c->qps[k] == NULL)
					continue;
				(void)shr_doorbell_drain(c->qps[k]->doorbell);
				if (!qp_serve(c->qps[k], wild_index)) {
					drop_client(c);
					break;
				}
			}
			if (c->sock >= 0)
				obey(c);
		}
		if (wild_index != 0)
			tn_store_release32(&ctl->wild_index, 0); /* tells the test that it is done */
	}
}
