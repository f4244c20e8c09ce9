/* SPDX-License-Identifier: Apache-2.0
 * Owner of the ZeroMQ socket to the control plane and of outstanding calls. The library's fds are edge-triggered and
 * may stay silent after any call of ours, so both sockets are drained whenever an fd fires and once per turn.
 * Control thread. */
#include "dataplane/link/link.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <zmq.h>

#include "common/clock.h"
#include "common/log.h"
#include "dataplane/link/wire.h"

#define CALLS_MAX 4096u
#define MESSAGES_PER_TURN 256
#define MONITOR "inproc://link-monitor"

/* ---- calls ---- */

static void call_late(struct dp_timer *t);

void dp_call_init(struct dp_call *call)
{
	tn_list_init(&call->link);
	dp_timer_init(&call->deadline, call_late);
	call->id = 0;
}

void dp_call_cancel(struct dp_call *call)
{
	if (!dp_call_waits(call))
		return;
	tn_list_unlink(&call->link);
	dp_timer_cancel(&call->deadline);
	(void)dp_handles_remove(&call->owner->calls, call->id);
}

static void call_end(struct dp_call *call, tn_status status, const char *detail, const json_t *body)
{
	dp_call_cancel(call);
	call->answered(call, status, detail, body);
}

static void call_late(struct dp_timer *t)
{
	call_end(tn_container_of(t, struct dp_call, deadline), TN_TIMEOUT, "the control plane did not answer in time", NULL);
}

void dp_link_fail_calls(struct dp_link *l, tn_status status, const char *detail)
{
	struct tn_list ending;

	/* Who is told may ask again at once: those new calls are not ended. */
	tn_list_init(&ending);
	tn_list_splice_back(&ending, &l->waiting);
	while (!tn_list_empty(&ending))
		call_end(tn_list_first(&ending, struct dp_call, link), status, detail, NULL);
}

tn_status dp_link_send(struct dp_link *l, const struct tn_message *m)
{
	size_t len;
	tn_status s = tn_message_encode(m, l->text, sizeof l->text, &len);

	if (s != TN_OK)
		return s;
	s = zmq_send(l->dealer, l->text, len, ZMQ_DONTWAIT) >= 0 ? TN_OK : TN_AGAIN;
	explicit_bzero(l->text, len);
	return s;
}

tn_status dp_link_ask(struct dp_link *l, struct dp_call *call, const char *type, json_t *body, uint64_t deadline_ns)
{
	struct tn_message m = { .session = l->ctl->cfg.env->session, .body = body };
	uint64_t now_ns = tn_now_ns();
	tn_status s = TN_CONTROLPLANE_DOWN;

	tn_assert(!dp_call_waits(call));
	if (l->state == DP_LINK_DOWN)
		goto out;
	s = dp_handles_add(&l->calls, call, &call->id) == TN_OK ? TN_OK : TN_AGAIN;
	if (s != TN_OK)
		goto out;
	(void)snprintf(m.type, sizeof m.type, "%s", type);
	m.id = call->id;
	m.remaining_ms = TN_MIN(tn_remaining_ns(deadline_ns, now_ns) / TN_NS_PER_MS + 1, TN_MESSAGE_REMAINING_MAX_MS);
	s = dp_link_send(l, &m);
	if (s != TN_OK) {
		(void)dp_handles_remove(&l->calls, call->id);
		goto out;
	}
	call->owner = l;
	tn_list_push_back(&l->waiting, &call->link);
	dp_timer_set(&l->ctl->loop, &call->deadline, deadline_ns);
out:
	json_decref(body);
	return s;
}

/* ---- receiving ---- */

static void on_reply(struct dp_link *l, const struct tn_message *m)
{
	struct dp_call *call = dp_handles_get(&l->calls, m->id);

	if (call == NULL)
		return; /* late: its waiter has given up */
	call_end(call, m->status, m->detail, m->status == TN_OK ? m->body : NULL);
}

static void on_text(struct dp_link *l, const void *text, size_t len)
{
	struct tn_message m;
	char err[TN_ERR_TEXT];
	tn_status s = tn_message_decode(text, len, &m, err);

	l->received_cnt++;
	if (s != TN_OK) {
		l->refused_cnt++;
		tn_log_warn("link", "the control plane sent what we cannot read: %s", err);
		return;
	}
	if (m.reply)
		on_reply(l, &m);
	else
		dp_link_request(l, &m);
	tn_message_clear(&m);
}

/* One whole message, its last frame; false when none waits. */
static bool receive(void *socket, zmq_msg_t *last)
{
	bool any = false;

	for (;;) {
		zmq_msg_t frame;
		(void)zmq_msg_init(&frame);
		if (zmq_msg_recv(&frame, socket, ZMQ_DONTWAIT) < 0) {
			(void)zmq_msg_close(&frame);
			return any;
		}
		bool more = zmq_msg_more(&frame) != 0;
		if (any)
			(void)zmq_msg_close(last);
		(void)zmq_msg_init(last);
		(void)zmq_msg_move(last, &frame);
		(void)zmq_msg_close(&frame);
		any = true;
		if (!more)
			return true;
	}
}

static bool drain_messages(struct dp_link *l)
{
	zmq_msg_t m;

	for (int i = 0; i < MESSAGES_PER_TURN; i++) {
		if (!receive(l->dealer, &m))
			return false;
		on_text(l, zmq_msg_data(&m), zmq_msg_size(&m));
		/* Tickets travel in bodies. */
		explicit_bzero(zmq_msg_data(&m), zmq_msg_size(&m));
		(void)zmq_msg_close(&m);
	}
	return true;
}

/* First frame of a monitor event: {event u16, value u32} in host order. */
static void drain_monitor(struct dp_link *l)
{
	for (;;) {
		uint16_t event = 0;
		zmq_msg_t head;
		(void)zmq_msg_init(&head);
		if (zmq_msg_recv(&head, l->monitor, ZMQ_DONTWAIT) < 0) {
			(void)zmq_msg_close(&head);
			return;
		}
		if (zmq_msg_size(&head) >= sizeof event)
			memcpy(&event, zmq_msg_data(&head), sizeof event);
		bool more = zmq_msg_more(&head) != 0;
		(void)zmq_msg_close(&head);
		while (more) {
			zmq_msg_t rest;
			(void)zmq_msg_init(&rest);
			more = zmq_msg_recv(&rest, l->monitor, ZMQ_DONTWAIT) >= 0 && zmq_msg_more(&rest) != 0;
			(void)zmq_msg_close(&rest);
		}
		if (event == ZMQ_EVENT_HANDSHAKE_SUCCEEDED)
			dp_link_connected(l);
		else if (event == ZMQ_EVENT_DISCONNECTED)
			dp_link_disconnected(l);
	}
}

bool dp_link_poll(struct dp_link *l)
{
	drain_monitor(l);
	bool more = drain_messages(l);
	dp_link_flush_changes(l);
	return more;
}

static void dealer_ready(struct dp_source *s, uint32_t events)
{
	(void)events;
	(void)dp_link_poll(tn_container_of(s, struct dp_link, dealer_fd));
}

static void monitor_ready(struct dp_source *s, uint32_t events)
{
	(void)events;
	(void)dp_link_poll(tn_container_of(s, struct dp_link, monitor_fd));
}

/* ---- life ---- */

static bool set_int(void *socket, int option, int value)
{
	return zmq_setsockopt(socket, option, &value, sizeof value) == 0;
}

static int socket_fd(void *socket)
{
	int fd = -1;
	size_t len = sizeof fd;

	(void)zmq_getsockopt(socket, ZMQ_FD, &fd, &len);
	return fd;
}

static tn_status link_open_sockets(struct dp_link *l, const char *endpoint)
{
	int64_t max = TN_MESSAGE_MAX;

	l->zmq = zmq_ctx_new();
	if (l->zmq == NULL)
		return TN_NO_MEMORY;
	l->dealer = zmq_socket(l->zmq, ZMQ_DEALER);
	l->monitor = zmq_socket(l->zmq, ZMQ_PAIR);
	if (l->dealer == NULL || l->monitor == NULL)
		return TN_LIMIT;
	/* IMMEDIATE: nothing is queued for a control plane that is not there; HWM: bounded by our own calls. */
	if (!set_int(l->dealer, ZMQ_LINGER, 0) || !set_int(l->monitor, ZMQ_LINGER, 0) ||
	    !set_int(l->dealer, ZMQ_IMMEDIATE, 1) || !set_int(l->dealer, ZMQ_SNDHWM, 2 * (int)CALLS_MAX) ||
	    !set_int(l->dealer, ZMQ_RCVHWM, 2 * (int)CALLS_MAX) || !set_int(l->dealer, ZMQ_RECONNECT_IVL, 50) ||
	    !set_int(l->dealer, ZMQ_RECONNECT_IVL_MAX, 500) ||
	    zmq_setsockopt(l->dealer, ZMQ_MAXMSGSIZE, &max, sizeof max) != 0)
		return TN_SYSTEM;
	if (zmq_socket_monitor(l->dealer, MONITOR, ZMQ_EVENT_HANDSHAKE_SUCCEEDED | ZMQ_EVENT_DISCONNECTED) != 0 ||
	    zmq_connect(l->monitor, MONITOR) != 0 || zmq_connect(l->dealer, endpoint) != 0)
		return TN_SYSTEM;
	l->dealer_fd.fd = socket_fd(l->dealer);
	l->monitor_fd.fd = socket_fd(l->monitor);
	tn_status s = dp_loop_add(&l->ctl->loop, &l->dealer_fd, EPOLLIN | EPOLLET);
	return s == TN_OK ? dp_loop_add(&l->ctl->loop, &l->monitor_fd, EPOLLIN | EPOLLET) : s;
}

tn_status dp_link_new(struct dp_control *ctl, const char *runtime_dir, struct dp_link **out)
{
	char endpoint[160];
	struct dp_link *l;
	tn_status s;

	if (snprintf(endpoint, sizeof endpoint, "ipc://%s/link.ipc", runtime_dir) > 100) /* sun_path */
		return TN_TOO_BIG;
	l = calloc(1, sizeof *l);
	if (l == NULL)
		return TN_NO_MEMORY;
	tn_message_watch_memory();
	l->ctl = ctl;
	l->dealer_fd = (struct dp_source){ .ready = dealer_ready, .fd = -1 };
	l->monitor_fd = (struct dp_source){ .ready = monitor_ready, .fd = -1 };
	dp_handles_init(&l->calls, CALLS_MAX);
	tn_list_init(&l->waiting);
	tn_list_init(&l->asked);
	dp_link_attach_init(l);
	s = link_open_sockets(l, endpoint);
	if (s != TN_OK) {
		dp_link_free(l);
		return s;
	}
	*out = l;
	return TN_OK;
}

void dp_link_free(struct dp_link *l)
{
	if (l == NULL)
		return;
	tn_list_foreach(node, &l->waiting)
		dp_call_cancel(tn_list_entry(node, struct dp_call, link));
	dp_link_attach_fini(l);
	dp_link_inspect_fini(l);
	dp_loop_del(&l->ctl->loop, &l->dealer_fd);
	dp_loop_del(&l->ctl->loop, &l->monitor_fd);
	if (l->dealer != NULL)
		zmq_close(l->dealer);
	if (l->monitor != NULL)
		zmq_close(l->monitor);
	if (l->zmq != NULL)
		zmq_ctx_term(l->zmq);
	dp_handles_fini(&l->calls);
	free(l);
}

/* ---- the questions of other rooms ---- */

/* What a refusal means to who asked. STALE and DATAPLANE_DOWN are about this link, not about the question. */
static tn_status question_failed(struct dp_link *l, const char *what, tn_status status, const char *detail)
{
	tn_log_debug("link", "%s: %s: %s", what, tn_status_name(status), detail);
	if (status == TN_STALE)
		dp_link_restart(l, detail);
	return status == TN_STALE || status == TN_DATAPLANE_DOWN ? TN_CONTROLPLANE_DOWN : status;
}

/* What it was given to say about an answer that cannot be used. */
static tn_status answer_unusable(const char *what, tn_status why, const char *err)
{
	if (why == TN_NO_MEMORY)
		return why; /* ours; nothing is wrong with the answer */
	tn_log_warn("link", "the control plane's answer to %s is malformed: %s", what, err);
	return TN_INTERNAL;
}

static void on_opened(struct dp_call *call, tn_status status, const char *detail, const struct json_t *body)
{
	struct dp_open_call *open = tn_container_of(call, struct dp_open_call, call);
	const json_t *peer_json = NULL, *segment_json = NULL;
	struct dp_remote *found = NULL;
	char err[TN_ERR_TEXT] = "";
	struct dp_peer peer;
	struct tn_json_in in;

	memset(&peer, 0, sizeof peer);
	if (status != TN_OK) {
		open->done(open, question_failed(call->owner, "open", status, detail), &peer, NULL);
		return;
	}
	tn_json_in_init(&in, body);
	(void)tn_json_object(&in, "peer", &peer_json);
	status = tn_json_object(&in, "segment", &segment_json);
	memcpy(err, in.err, sizeof err);
	if (status == TN_OK)
		status = dp_link_peer_read(peer_json, &peer, err);
	if (status == TN_OK)
		status = dp_link_remote_read(segment_json, &peer.session, &found, err);
	open->done(open, status == TN_OK ? TN_OK : answer_unusable("open", status, err), &peer, found);
	explicit_bzero(&peer, sizeof peer);
}

tn_status dp_link_open(struct dp_link *l, struct dp_open_call *call, const char *ref, const struct dp_remote *stale,
                       uint64_t deadline_ns)
{
	json_t *body;

	if (!dp_link_attached(l))
		return TN_CONTROLPLANE_DOWN;
	body = json_object();
	(void)tn_json_put_str(body, "ref", ref);
	if (stale != NULL) {
		(void)tn_json_put_u64(body, "stale_generation", stale->generation);
		(void)tn_json_put_hex128(body, "stale_session", &stale->session);
	}
	call->call.answered = on_opened;
	return dp_link_ask(l, &call->call, "open", body, deadline_ns);
}

static void on_refreshed(struct dp_call *call, tn_status status, const char *detail, const struct json_t *body)
{
	struct dp_peer_call *refresh = tn_container_of(call, struct dp_peer_call, call);
	const json_t *peer_json = NULL;
	char err[TN_ERR_TEXT] = "";
	struct dp_peer peer;
	struct tn_json_in in;

	memset(&peer, 0, sizeof peer);
	if (status != TN_OK) {
		refresh->done(refresh, question_failed(call->owner, "peer_refresh", status, detail), &peer);
		return;
	}
	tn_json_in_init(&in, body);
	status = tn_json_object(&in, "peer", &peer_json);
	memcpy(err, in.err, sizeof err);
	if (status == TN_OK)
		status = dp_link_peer_read(peer_json, &peer, err);
	refresh->done(refresh, status == TN_OK ? TN_OK : answer_unusable("peer_refresh", status, err), &peer);
	explicit_bzero(&peer, sizeof peer);
}

tn_status dp_link_peer_refresh(struct dp_link *l, struct dp_peer_call *call, const struct dp_peer *stale,
                               uint64_t deadline_ns)
{
	json_t *body;

	if (!dp_link_attached(l))
		return TN_CONTROLPLANE_DOWN;
	body = json_object();
	(void)tn_json_put_str(body, "peer", stale->name);
	(void)tn_json_put_hex128(body, "stale_session", &stale->session);
	(void)tn_json_put_bool(body, "stale_ticket", true);
	call->call.answered = on_refreshed;
	return dp_link_ask(l, &call->call, "peer_refresh", body, deadline_ns);
}

void dp_link_datagram(struct dp_link *l, const char *peer, const void *bytes, uint32_t len)
{
	static const char digits[] = "0123456789abcdef";
	struct tn_message m = { .type = "datagram", .session = l->ctl->cfg.env->session };
	char hex[2 * DP_FRAME_DATAGRAM_MAX + 1];
	const uint8_t *b = bytes;

	if (!dp_link_attached(l) || len > DP_FRAME_DATAGRAM_MAX)
		return;
	for (uint32_t i = 0; i < len; i++) {
		hex[2 * i] = digits[b[i] >> 4];
		hex[2 * i + 1] = digits[b[i] & 15];
	}
	hex[2 * len] = '\0';
	m.body = json_object();
	(void)tn_json_put_str(m.body, "peer", peer);
	(void)tn_json_put_str(m.body, "payload", hex);
	(void)dp_link_send(l, &m);
	tn_message_clear(&m);
}
