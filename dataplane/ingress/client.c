/* SPDX-License-Identifier: Apache-2.0
 * Owner of one application's socket and of the client's life. Every message is checked whole before it is dispatched
 * (shr_msg_check); one that breaks the rules ends this client and nobody else. A client that does not read its answers
 * is not read from either, and dropped when what it is owed exceeds a bound. Control thread. */
#include "dataplane/ingress/client.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/log.h"
#include "dataplane/control.h"
#include "dataplane/ingress/attach_qp.h"
#include "dataplane/ingress/copy.h"
#include "dataplane/segment/local.h"
#include "dataplane/segment/map.h"
#include "dataplane/segment/remote.h"

#define HELLO_NS UINT64_C(2000000000)
#define MESSAGES_PER_TURN 32
#define SENDQ_MESSAGES_MAX 8192u
#define SENDQ_BYTES_MAX (4u << 20)

struct client_out { /* one message that waits for room in the socket */
	struct tn_list link;
	uint32_t len, fd_cnt;
	int fds[SHR_MSG_FDS_MAX];
	uint8_t bytes[];
};

/* ---- life ---- */

static void client_ready(struct dp_source *s, uint32_t events);
static void client_exited(struct dp_source *s, uint32_t events);
static void client_timer(struct dp_timer *t);
static void client_deleted(struct dp_flight *f);

struct dp_app *dp_app_new(struct dp_control *ctl, int fd, const struct shr_peer_cred *cred, bool no_room)
{
	struct dp_app *c = calloc(1, sizeof *c);
	tn_status life;

	if (c == NULL)
		goto undo_fd;
	*c = (struct dp_app){ .ctl = ctl, .source = { .ready = client_ready, .fd = fd },
	                      .life = { .ready = client_exited, .fd = -1 }, .cred = *cred };
	dp_control_move(DP_CONTROL_APP, &c->state, DP_APP_NEW);
	tn_list_init(&c->link);
	tn_list_init(&c->qps);
	tn_list_init(&c->memories);
	tn_list_init(&c->segments);
	tn_list_init(&c->remotes);
	tn_list_init(&c->sendq);
	c->del.done = client_deleted;
	dp_timer_init(&c->timer, client_timer);
	life = no_room ? TN_LIMIT : shr_peer_pidfd(fd, cred->pid, &c->life.fd);
	if (life != TN_OK && life != TN_LIMIT)
		goto undo_alloc;
	c->no_room = life == TN_LIMIT;
	if (dp_attach_enter(&ctl->attach, c) != TN_OK)
		goto undo_life;
	if (dp_loop_add(&ctl->loop, &c->source, EPOLLIN) != TN_OK)
		goto undo_enter;
	if (c->life.fd >= 0 && dp_loop_add(&ctl->loop, &c->life, EPOLLIN) != TN_OK)
		goto undo_source;
	dp_timer_set(&ctl->loop, &c->timer, ctl->loop.now_ns + HELLO_NS);
	ctl->attach.new_cnt++;
	return c;

undo_source:
	dp_loop_del(&ctl->loop, &c->source);
undo_enter:
	dp_attach_leave(&ctl->attach, c);
undo_life:
	if (c->life.fd >= 0)
		close(c->life.fd);
undo_alloc:
	free(c);
undo_fd:
	close(fd);
	return NULL;
}

static void sendq_clear(struct dp_app *c)
{
	for (struct tn_list *node; (node = tn_list_pop_front(&c->sendq)) != NULL;) {
		struct client_out *o = tn_list_entry(node, struct client_out, link);
		for (uint32_t i = 0; i < o->fd_cnt; i++)
			close(o->fds[i]);
		free(o);
	}
	c->sendq_cnt = 0;
	c->sendq_bytes = 0;
}

/* Nothing more is heard from it or said to it, but the socket stays open: the hang-up is how a client that lives learns
 * that its memory is quiet, so it comes last. */
static void client_mute(struct dp_app *c)
{
	dp_loop_del(&c->ctl->loop, &c->source);
	dp_loop_del(&c->ctl->loop, &c->life);
	sendq_clear(c);
}

static void client_hang_up(struct dp_app *c)
{
	client_mute(c);
	if (c->source.fd >= 0)
		close(c->source.fd);
	if (c->life.fd >= 0)
		close(c->life.fd);
	c->source.fd = c->life.fd = -1;
}

void dp_app_drop(struct dp_app *c, tn_status why)
{
	struct dp_control *ctl = c->ctl;
	bool attached = c->state == DP_APP_ATTACHED;

	if (c->state >= DP_APP_CLOSING) {
		if (why != TN_CLOSED)
			client_mute(c);
		return;
	}
	if (c->state == DP_APP_NEW)
		ctl->attach.new_cnt--;
	dp_control_move(DP_CONTROL_APP, &c->state, DP_APP_CLOSING);
	dp_timer_cancel(&c->timer);
	if (why == TN_CLIENT_BROKEN)
		ctl->attach.broken_cnt++;
	/* A client that said BYE is still watched for its own hang-up. */
	if (why != TN_CLOSED)
		client_mute(c);
	else
		dp_loop_mod(&ctl->loop, &c->source, 0);
	if (!attached) {
		c->del_done = true;
		dp_app_settle(c);
		return;
	}
	ctl->attach.attached_cnt--;
	if (why != TN_CLOSED)
		dp_control_event(ctl, SHR_EVENT_CLIENT_DROPPED, why, c->id);
	/* Its segments first: once they are gone nobody else reaches into its memories. */
	dp_local_abandon(c);
	dp_remote_abandon(c);
	dp_crew_broadcast(&ctl->crew, (struct dp_cmd){ .kind = DP_CMD_CLIENT_DEL, .fd = -1, .num = c->id }, &c->del);
}

/* Every worker has let go of its queue pairs, remotes and memories. */
static void client_deleted(struct dp_flight *f)
{
	struct dp_app *c = tn_container_of(f, struct dp_app, del);

	c->del_done = true;
	dp_qp_release_all(c);
	dp_remote_release_all(c);
	dp_map_release_idle(c);
	dp_app_settle(c);
}

void dp_app_settle(struct dp_app *c)
{
	if (c->state != DP_APP_CLOSING || !c->del_done)
		return;
	dp_map_release_idle(c);
	if (c->qp_cnt + c->memory_cnt + c->segment_cnt + c->remote_cnt != 0)
		return;
	dp_control_move(DP_CONTROL_APP, &c->state, DP_APP_GONE);
	if (c->bye && c->source.fd >= 0) {
		struct shr_msg *m = dp_app_tx(c);
		(void)shr_msg_begin(m, SHR_MSG_BYE | SHR_MSG_REPLY, c->bye_correlation, 0);
		(void)!shr_msg_send(c->source.fd, m);
	}
	client_hang_up(c);
	/* The caller may still look at it: freed when the turn's timers run. */
	dp_timer_set(&c->ctl->loop, &c->timer, c->ctl->loop.now_ns);
}

static void client_timer(struct dp_timer *t)
{
	struct dp_app *c = tn_container_of(t, struct dp_app, timer);

	if (c->state == DP_APP_NEW) {
		c->ctl->attach.refused_cnt++;
		dp_refused(c->ctl, TN_DP_DOOR_ATTACH, TN_REFUSAL_SILENT);
		dp_app_drop(c, TN_TIMEOUT);
		return;
	}
	dp_control_move(DP_CONTROL_APP, &c->state, DP_APP_FREE);
	dp_attach_leave(&c->ctl->attach, c);
	free(c);
}

void dp_app_destroy(struct dp_app *c)
{
	dp_timer_cancel(&c->timer);
	client_hang_up(c);
	dp_qp_release_all(c);
	dp_local_destroy_all(c);
	dp_remote_destroy_all(c);
	dp_map_destroy_all(c);
	dp_attach_leave(&c->ctl->attach, c);
	free(c);
}

/* ---- sending ---- */

struct shr_msg *dp_app_tx(struct dp_app *c)
{
	return &c->ctl->attach.tx;
}

static void sendq_flush(struct dp_app *c)
{
	struct shr_msg *m = dp_app_tx(c);

	while (!tn_list_empty(&c->sendq)) {
		struct client_out *o = tn_list_first(&c->sendq, struct client_out, link);
		memcpy(m->bytes, o->bytes, o->len);
		m->len = o->len;
		m->fd_cnt = o->fd_cnt;
		memcpy(m->fds, o->fds, sizeof o->fds);
		tn_status s = shr_msg_send(c->source.fd, m);
		if (s == TN_AGAIN)
			return;
		if (s != TN_OK) {
			dp_app_drop(c, TN_CLIENT_GONE);
			return;
		}
		shr_msg_close_fds(m);
		tn_list_unlink(&o->link);
		c->sendq_cnt--;
		c->sendq_bytes -= o->len;
		free(o);
	}
	dp_loop_mod(&c->ctl->loop, &c->source, EPOLLIN);
}

static bool sendq_keep(struct dp_app *c, struct shr_msg *m)
{
	struct client_out *o;

	if (c->sendq_cnt >= SENDQ_MESSAGES_MAX || c->sendq_bytes + m->len > SENDQ_BYTES_MAX)
		return false;
	o = malloc(sizeof *o + m->len);
	if (o == NULL)
		return false;
	o->len = m->len;
	o->fd_cnt = m->fd_cnt;
	memcpy(o->fds, m->fds, sizeof o->fds);
	memcpy(o->bytes, m->bytes, m->len);
	m->fd_cnt = 0;
	tn_list_push_back(&c->sendq, &o->link);
	c->sendq_cnt++;
	c->sendq_bytes += o->len;
	/* Not read from until it reads: that is the back-pressure of this door. */
	dp_loop_mod(&c->ctl->loop, &c->source, EPOLLOUT);
	return true;
}

void dp_app_send(struct dp_app *c, struct shr_msg *m)
{
	tn_status s = TN_CLIENT_GONE;

	if (c->state <= DP_APP_ATTACHED) {
		s = tn_list_empty(&c->sendq) ? shr_msg_send(c->source.fd, m) : TN_AGAIN;
		if (s == TN_AGAIN && sendq_keep(c, m))
			return;
		if (s != TN_OK)
			dp_app_drop(c, s == TN_AGAIN ? TN_LIMIT : TN_CLIENT_GONE);
	}
	shr_msg_close_fds(m);
}

void dp_app_fail(struct dp_app *c, uint16_t type, uint32_t correlation, tn_status status, uint32_t detail)
{
	struct shr_msg *m = dp_app_tx(c);

	shr_msg_begin_failure(m, type, correlation, status, detail);
	dp_app_send(c, m);
}

void dp_app_reply(struct dp_app *c, uint16_t type, uint32_t correlation)
{
	struct shr_msg *m = dp_app_tx(c);

	(void)shr_msg_begin(m, type | SHR_MSG_REPLY, correlation, 0);
	dp_app_send(c, m);
}

bool dp_app_asks_again(struct dp_app *c, const struct shr_msg *m, uint16_t *answer_io, uint32_t *correlation_io)
{
	uint32_t earlier = *correlation_io;
	uint16_t answer = *answer_io, type = m->hdr.type;

	if (answer != 0 && answer != type)
		return false;
	*answer_io = type;
	*correlation_io = m->hdr.correlation;
	if (answer != 0)
		dp_app_fail(c, type, earlier, TN_BUSY, 0);
	return true;
}

void dp_app_reply_id(struct dp_app *c, uint16_t type, uint32_t correlation, uint64_t id)
{
	struct shr_msg *m = dp_app_tx(c);
	struct shr_msg_id *body = shr_msg_begin(m, type | SHR_MSG_REPLY, correlation, sizeof *body);

	body->id = id;
	dp_app_send(c, m);
}

/* ---- receiving ---- */

/* May it come in? If not, *detail_out is the number behind the reason. */
static tn_status hello_judge(struct dp_app *c, const struct shr_msg_hello *hello, uint32_t *detail_out)
{
	struct dp_attach *a = &c->ctl->attach;

	if (hello->abi_major != SHR_ABI_MAJOR) {
		*detail_out = SHR_ABI_MAJOR;
		return TN_ABI_MISMATCH;
	}
	if (c->no_room) {
		*detail_out = dp_descriptor_limit();
		return TN_LIMIT;
	}
	if (a->attached_cnt < a->attached_max)
		return TN_OK;
	a->refused_cnt++;
	dp_refused(c->ctl, TN_DP_DOOR_ATTACH, TN_REFUSAL_CROWDED);
	*detail_out = a->attached_max;
	return TN_LIMIT;
}

static void on_hello(struct dp_app *c, struct shr_msg *m)
{
	const struct shr_msg_hello *hello = shr_msg_body_ro(m);
	struct dp_control *ctl = c->ctl;
	const struct tn_config *cfg = ctl->config;
	struct shr_msg_hello_reply *r;
	uint32_t detail;
	tn_status s = hello_judge(c, hello, &detail);

	if (s != TN_OK) {
		dp_app_fail(c, SHR_MSG_HELLO, m->hdr.correlation, s, detail);
		dp_app_drop(c, TN_CLIENT_GONE);
		return;
	}
	memcpy(c->app, hello->app, sizeof c->app - 1);
	c->abi_minor = TN_MIN(hello->abi_minor, (uint16_t)SHR_ABI_MINOR);
	dp_timer_cancel(&c->timer);
	dp_control_move(DP_CONTROL_APP, &c->state, DP_APP_ATTACHED);
	ctl->attach.new_cnt--;
	ctl->attach.attached_cnt++;
	uint32_t correlation = m->hdr.correlation;
	r = shr_msg_begin(dp_app_tx(c), SHR_MSG_HELLO | SHR_MSG_REPLY, correlation, sizeof *r);
	*r = (struct shr_msg_hello_reply){
		.abi_major = SHR_ABI_MAJOR,
		.abi_minor = c->abi_minor,
		.session = ctl->cfg.env->session,
		.default_deadline_ns = tn_config_ns(cfg, TN_CFG_DEADLINE_DEFAULT_MS),
		.max_deadline_ns = tn_config_ns(cfg, TN_CFG_DEADLINE_MAX_MS),
		.max_request_bytes = tn_config_u64(cfg, TN_CFG_LIMITS_MAX_REQUEST_BYTES),
		.client_id = c->id,
		.max_qps = (uint32_t)tn_config_u64(cfg, TN_CFG_LIMITS_MAX_QPS_PER_CLIENT),
		.max_memories = (uint32_t)tn_config_u64(cfg, TN_CFG_LIMITS_MAX_MEMORIES_PER_CLIENT),
		.max_segments = (uint32_t)tn_config_u64(cfg, TN_CFG_LIMITS_MAX_SEGMENTS_PER_CLIENT),
		.max_opens = (uint32_t)tn_config_u64(cfg, TN_CFG_LIMITS_MAX_OPENS_PER_CLIENT),
		.note_inbox = (uint32_t)tn_config_u64(cfg, TN_CFG_LIMITS_NOTE_INBOX),
	};
	if (c->abi_minor >= SHR_MINOR_IMPORT) {
		r->stage_chunk_bytes = (uint32_t)tn_config_u64(cfg, TN_CFG_STAGING_CHUNK_BYTES) / SHR_PAGE * SHR_PAGE;
		r->stage_chunks = (uint32_t)tn_config_u64(cfg, TN_CFG_STAGING_CHUNKS) * ctl->crew.cnt;
	}
	dp_app_send(c, dp_app_tx(c));
}

static void on_bye(struct dp_app *c, struct shr_msg *m)
{
	c->bye = true;
	c->bye_correlation = m->hdr.correlation;
	dp_app_drop(c, TN_CLOSED);
}

/* A number is told when every worker knows it. */
static void on_policy_find(struct dp_app *c, struct shr_msg *m)
{
	const struct shr_msg_policy_find *find = shr_msg_body_ro(m);
	struct dp_control *ctl = c->ctl;
	const struct tn_config_policy *p = tn_config_policy_by_name(ctl->config, find->name);
	uint32_t correlation = m->hdr.correlation;

	if (p == NULL || ctl->config_old != NULL) {
		dp_app_fail(c, SHR_MSG_POLICY_FIND, correlation, p == NULL ? TN_NOT_FOUND : TN_AGAIN, 0);
		return;
	}
	struct shr_msg_id *r = shr_msg_begin(dp_app_tx(c), SHR_MSG_POLICY_FIND | SHR_MSG_REPLY, correlation, sizeof *r);
	r->id = p->id;
	dp_app_send(c, dp_app_tx(c));
}

static void on_note_ack(struct dp_app *c, struct shr_msg *m)
{
	const struct shr_msg_note_ack *ack = shr_msg_body_ro(m);

	if (ack->count > c->note_unacked)
		dp_app_drop(c, TN_CLIENT_BROKEN);
	else
		c->note_unacked -= ack->count;
}

static const struct client_door {
	uint16_t type;
	bool makes; /* makes an object: refused while draining or while workers are behind */
	void (*fn)(struct dp_app *c, struct shr_msg *m);
} doors[] = {
	{ SHR_MSG_QP_CREATE, true, dp_qp_on_create },
	{ SHR_MSG_QP_DESTROY, false, dp_qp_on_destroy },
	{ SHR_MSG_MEM_REGISTER, true, dp_map_on_register },
	{ SHR_MSG_MEM_UNREGISTER, false, dp_map_on_unregister },
	{ SHR_MSG_PUBLISH, true, dp_local_on_publish },
	{ SHR_MSG_WITHDRAW, false, dp_local_on_withdraw },
	{ SHR_MSG_OPEN, true, dp_remote_on_open },
	{ SHR_MSG_CLOSE, false, dp_remote_on_close },
	{ SHR_MSG_NOTE_ACK, false, on_note_ack },
	{ SHR_MSG_BYE, false, on_bye },
	{ SHR_MSG_POLICY_FIND, false, on_policy_find },
	{ SHR_MSG_MEM_IMPORT, true, dp_map_on_import },
	{ SHR_MSG_COPIED, false, dp_copy_on_copied },
};

static void client_dispatch(struct dp_app *c, struct shr_msg *m)
{
	uint16_t type = m->hdr.type;

	if ((c->state == DP_APP_NEW) != (type == SHR_MSG_HELLO)) {
		dp_app_drop(c, TN_CLIENT_BROKEN);
		return;
	}
	if (type == SHR_MSG_HELLO) {
		on_hello(c, m);
		return;
	}
	for (size_t i = 0; i < TN_ARRAY_LEN(doors); i++) {
		if (doors[i].type != type)
			continue;
		if (doors[i].makes && dp_control_drains(c->ctl))
			dp_app_fail(c, type, m->hdr.correlation, TN_DATAPLANE_DOWN, 0);
		else if (doors[i].makes && dp_crew_congested(&c->ctl->crew))
			dp_app_fail(c, type, m->hdr.correlation, TN_AGAIN, 0);
		else
			doors[i].fn(c, m);
		return;
	}
	dp_app_drop(c, TN_CLIENT_BROKEN);
}

/* What it sent came without its descriptors, because we have no more. Its request fails, the client stays. False: the
 * header is not that of a request. */
static bool no_descriptor_for(struct dp_app *c, const struct shr_msg *m)
{
	for (size_t i = 0; i < TN_ARRAY_LEN(doors) && m->len != 0 && dp_app_is_live(c); i++) {
		if (doors[i].type != m->hdr.type || !doors[i].makes)
			continue;
		tn_log_warn("door", "client %u: a request is refused, no descriptor is left for what came with it (RLIMIT_NOFILE is "
			    "%u: raise it with LimitNOFILE= in the unit)", c->id, dp_descriptor_limit());
		dp_app_fail(c, m->hdr.type, m->hdr.correlation, TN_LIMIT, dp_descriptor_limit());
		return true;
	}
	return false;
}

static void client_receive(struct dp_app *c)
{
	struct shr_msg *m = &c->ctl->attach.rx;

	for (int i = 0; i < MESSAGES_PER_TURN && c->state <= DP_APP_ATTACHED && tn_list_empty(&c->sendq); i++) {
		tn_status s = shr_msg_recv(c->source.fd, SHR_FROM_APPLICATION, m);
		if (s == TN_AGAIN)
			return;
		if (s == TN_LIMIT && no_descriptor_for(c, m))
			continue;
		if (s != TN_OK) {
			dp_app_drop(c, s == TN_CLIENT_BROKEN || s == TN_LIMIT ? s : TN_CLIENT_GONE);
			return;
		}
		client_dispatch(c, m);
		shr_msg_close_fds(m);
	}
}

static void client_ready(struct dp_source *s, uint32_t events)
{
	struct dp_app *c = tn_container_of(s, struct dp_app, source);

	if (c->state >= DP_APP_CLOSING) {
		client_mute(c);
		return;
	}
	if (events & EPOLLOUT)
		sendq_flush(c);
	else if (events & EPOLLIN)
		client_receive(c);
	else if (events & (EPOLLHUP | EPOLLERR))
		dp_app_drop(c, TN_CLIENT_GONE);
}

/* The process is dead, whoever else holds its socket. What it said before counts: a BYE is a BYE. */
static void client_exited(struct dp_source *s, uint32_t events)
{
	struct dp_app *c = tn_container_of(s, struct dp_app, life);

	(void)events;
	client_receive(c);
	dp_app_drop(c, TN_CLIENT_GONE);
}
