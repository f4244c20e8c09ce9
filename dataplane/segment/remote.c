/* SPDX-License-Identifier: Apache-2.0
 * Owner of opened segments. Every change is a new immutable struct dp_remote under the same handle (REMOTE_SET); the
 * one before is freed when every worker has let go of it. Control thread. */
#include "dataplane/segment/remote.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/hook.h"
#include "dataplane/control.h"

#define OPEN_DEFAULT_NS UINT64_C(5000000000)
#define OPEN_MAX_NS UINT64_C(60000000000)
#define REFRESH_CALL_NS UINT64_C(5000000000)
#define BACKOFF_FIRST_NS UINT64_C(50000000)
#define BACKOFF_MAX_NS UINT64_C(2000000000)

static void remote_acked(struct dp_flight *f);
static void remote_found(struct dp_open_call *call, tn_status s, const struct dp_peer *peer, struct dp_remote *found);
static void remote_retry(struct dp_timer *t);

/* ---- life ---- */

static void opened_move(struct dp_opened *o, enum dp_opened_state to)
{
	dp_control_move(DP_CONTROL_OPENED, &o->state, to);
}

static struct dp_opened *opened_new(struct dp_app *c, const char *ref, bool local)
{
	struct dp_opened *o = calloc(1, sizeof *o);

	if (o == NULL)
		return NULL;
	*o = (struct dp_opened){ .client = c, .ctl = c->ctl, .local = local,
	                         .flight = { .done = remote_acked }, .call = { .done = remote_found } };
	(void)snprintf(o->ref, sizeof o->ref, "%s", ref);
	dp_call_init(&o->call.call);
	dp_timer_init(&o->retry, remote_retry);
	if (dp_handles_add(&c->ctl->remotes, o, &o->handle) != TN_OK) {
		free(o);
		return NULL;
	}
	opened_move(o, DP_OPENED_OPENING);
	dp_names_add(&c->ctl->remote_refs, &o->by_ref, o->ref);
	tn_list_push_back(&c->remotes, &o->link);
	c->remote_cnt++;
	return o;
}

static void opened_stop_search(struct dp_opened *o)
{
	dp_call_cancel(&o->call.call);
	dp_timer_cancel(&o->retry);
	o->refreshing = false;
}

static void opened_free(struct dp_opened *o)
{
	opened_move(o, DP_OPENED_FREE);
	opened_stop_search(o);
	(void)dp_handles_remove(&o->ctl->remotes, o->handle);
	dp_names_remove(&o->by_ref);
	tn_list_unlink(&o->link);
	o->client->remote_cnt--;
	free(o->prev);
	free(o->cur);
	free(o->next);
	free(o);
}

void dp_remote_abandon(struct dp_app *c)
{
	tn_list_foreach(node, &c->remotes) {
		struct dp_opened *o = tn_list_entry(node, struct dp_opened, link);
		opened_stop_search(o);
		if (o->state == DP_OPENED_OPENING)
			opened_free(o);
	}
}

void dp_remote_release_all(struct dp_app *c)
{
	tn_list_foreach(node, &c->remotes) {
		struct dp_opened *o = tn_list_entry(node, struct dp_opened, link);
		if (o->flight.waiting == 0)
			opened_free(o);
		else if (o->state != DP_OPENED_DELETING)
			opened_move(o, DP_OPENED_DEAD); /* its own acknowledgements are still to come */
	}
}

void dp_remote_destroy_all(struct dp_app *c)
{
	tn_list_foreach(node, &c->remotes)
		opened_free(tn_list_entry(node, struct dp_opened, link));
}

/* ---- versions ---- */

static struct dp_remote *remote_alloc(uint32_t buffer_cnt)
{
	return calloc(1, sizeof(struct dp_remote) + buffer_cnt * sizeof(struct dp_remote_buffer));
}

/* A segment of this host as a remote. */
static struct dp_remote *remote_from_local(const struct dp_control *ctl, const struct dp_segment *s)
{
	struct dp_remote *r = remote_alloc(s->buffer_cnt);

	if (r == NULL)
		return NULL;
	r->local = true;
	r->segment = s->handle;
	r->peer_index = DP_PEER_SELF;
	r->session = ctl->cfg.env->session;
	r->generation = s->generation;
	r->publication = s->publication;
	r->bytes = s->bytes;
	r->buffer_cnt = s->buffer_cnt;
	for (uint32_t i = 0; i < s->buffer_cnt; i++)
		r->buffers[i] = (struct dp_remote_buffer){
			.registration = s->buffers[i].registration, .bytes = s->buffers[i].bytes,
			.segment_off = s->buffers[i].segment_off, .rights = s->buffers[i].rights };
	return r;
}

static struct dp_remote *remote_copy(const struct dp_remote *from)
{
	struct dp_remote *r = remote_alloc(from->buffer_cnt);

	if (r != NULL)
		memcpy(r, from, sizeof *r + from->buffer_cnt * sizeof(struct dp_remote_buffer));
	return r;
}

static void version_send(struct dp_opened *o, struct dp_remote *r)
{
	o->prev = o->cur;
	o->cur = r;
	dp_crew_broadcast(&o->ctl->crew, (struct dp_cmd){ .kind = DP_CMD_REMOTE_SET, .fd = -1, .ptr = r }, &o->flight);
}

/* Takes r. */
static void version_set(struct dp_opened *o, struct dp_remote *r)
{
	r->handle = o->handle;
	r->client_id = o->client->id;
	memcpy(r->ref, o->ref, sizeof r->ref);
	if (o->flight.waiting == 0) {
		version_send(o, r);
		return;
	}
	free(o->next);
	o->next = r;
}

static void send_opened(struct dp_opened *o)
{
	struct shr_msg *m = dp_app_tx(o->client);
	struct shr_msg_open_reply *r;
	uint32_t rights = 0;

	for (uint32_t i = 0; i < o->cur->buffer_cnt; i++)
		rights |= o->cur->buffers[i].rights;
	r = shr_msg_begin(m, SHR_MSG_OPEN | SHR_MSG_REPLY, o->correlation, sizeof *r);
	*r = (struct shr_msg_open_reply){ .id = o->handle, .length = o->cur->bytes, .publication = o->cur->publication,
	                                  .rights = rights, .local = o->local };
	dp_app_send(o->client, m);
}

static void opened_delete(struct dp_opened *o, uint16_t answer)
{
	opened_stop_search(o);
	opened_move(o, DP_OPENED_DELETING);
	o->answer = answer;
	dp_crew_broadcast(&o->ctl->crew, (struct dp_cmd){ .kind = DP_CMD_REMOTE_DEL, .fd = -1, .num = o->handle },
	                  &o->flight);
}

/* Every worker forgot it. */
static void answer_deleted(struct dp_opened *o)
{
	if (o->answer == SHR_MSG_OPEN)
		dp_app_fail(o->client, SHR_MSG_OPEN, o->correlation, o->result, 0);
	else if (o->answer != 0)
		dp_app_reply(o->client, o->answer, o->correlation);
}

static void remote_acked(struct dp_flight *f)
{
	struct dp_opened *o = tn_container_of(f, struct dp_opened, flight);
	struct dp_app *c = o->client;

	if (f->status != TN_OK && o->state < DP_OPENED_DELETING) {
		/* A worker that refused goes on with `prev`. What not all have is taken from all; OPEN is told then. */
		o->result = f->status;
		opened_delete(o, o->state == DP_OPENED_SETTING ? SHR_MSG_OPEN : 0);
		return;
	}
	free(o->prev);
	o->prev = NULL;
	if (o->state >= DP_OPENED_DELETING) {
		if (o->state == DP_OPENED_DELETING)
			answer_deleted(o);
		opened_free(o);
		dp_app_settle(c);
		return;
	}
	if (o->state == DP_OPENED_SETTING) {
		opened_move(o, DP_OPENED_LIVE);
		TN_HOOK(dp_open_live);
		send_opened(o);
	}
	if (o->next != NULL && o->state == DP_OPENED_LIVE && dp_app_is_live(c)) {
		struct dp_remote *r = o->next;
		o->next = NULL;
		version_send(o, r);
	}
}

/* ---- open and close ---- */

static tn_status open_local(struct dp_app *c, const char *name, uint32_t correlation)
{
	struct dp_local_segment *seg = dp_local_find(c->ctl, name);
	struct dp_opened *o;
	struct dp_remote *r;

	if (seg == NULL)
		return TN_NOT_FOUND;
	if (!dp_local_admits_uid(seg->s, c->cred.uid))
		return TN_PERMISSION;
	r = remote_from_local(c->ctl, seg->s);
	o = r != NULL ? opened_new(c, name, true) : NULL;
	if (o == NULL) {
		free(r);
		return TN_NO_MEMORY;
	}
	opened_move(o, DP_OPENED_SETTING);
	o->correlation = correlation;
	version_set(o, r);
	return TN_OK;
}

static tn_status open_at_peer(struct dp_app *c, const char *ref, const char *peer, uint64_t remaining_ns,
                              uint32_t correlation)
{
	struct dp_control *ctl = c->ctl;
	struct dp_opened *o;
	tn_status s;

	const struct dp_peer_slot *slot = dp_peers_find(&ctl->peers, peer);
	if (slot != NULL ? !slot->trusted : tn_config_peer_by_name(ctl->config, peer) == NULL)
		return TN_PEER_UNKNOWN;
	if (!dp_link_attached(ctl->link))
		return TN_CONTROLPLANE_DOWN;
	o = opened_new(c, ref, false);
	if (o == NULL)
		return TN_NO_MEMORY;
	o->correlation = correlation;
	s = dp_link_open(ctl->link, &o->call, o->ref, NULL, tn_deadline_after(ctl->loop.now_ns, remaining_ns));
	if (s != TN_OK)
		opened_free(o);
	return s;
}

void dp_remote_on_open(struct dp_app *c, struct shr_msg *m)
{
	const struct shr_msg_open *req = shr_msg_body_ro(m);
	uint64_t max = tn_config_u64(c->ctl->config, TN_CFG_LIMITS_MAX_OPENS_PER_CLIENT);
	const char *slash = strchr(req->ref, '/');
	const char *name = slash != NULL ? slash + 1 : req->ref;
	uint64_t remaining_ns = req->remaining_ns == 0 ? OPEN_DEFAULT_NS : TN_MIN(req->remaining_ns, OPEN_MAX_NS);
	uint32_t correlation = m->hdr.correlation;
	char peer[TN_NAME_MAX] = "";
	tn_status s;

	if (slash != NULL && (size_t)(slash - req->ref) < sizeof peer)
		memcpy(peer, req->ref, (size_t)(slash - req->ref));
	if (!tn_name_valid(name) || (slash != NULL && !tn_name_valid(peer)))
		s = TN_INVALID;
	else if (c->remote_cnt >= max)
		s = TN_LIMIT;
	else if (slash == NULL || strcmp(peer, tn_config_str(c->ctl->config, TN_CFG_HOST_NAME)) == 0)
		s = open_local(c, name, correlation);
	else
		s = open_at_peer(c, req->ref, peer, remaining_ns, correlation);
	if (s != TN_OK)
		dp_app_fail(c, SHR_MSG_OPEN, correlation, s, s == TN_LIMIT ? (uint32_t)max : 0);
}

void dp_remote_on_close(struct dp_app *c, struct shr_msg *m)
{
	const struct shr_msg_id *req = shr_msg_body_ro(m);
	struct dp_opened *o = dp_handles_get(&c->ctl->remotes, req->id);

	if (o != NULL && o->client == c && o->state == DP_OPENED_DELETING &&
	    dp_app_asks_again(c, m, &o->answer, &o->correlation))
		return;
	if (o == NULL || o->client != c || o->state != DP_OPENED_LIVE) {
		dp_app_fail(c, SHR_MSG_CLOSE, m->hdr.correlation, TN_STALE, 0);
		return;
	}
	o->correlation = m->hdr.correlation;
	opened_delete(o, SHR_MSG_CLOSE);
}

/* ---- newer versions ---- */

/* Workers may use the handle again; unchanged when nothing better was found (their second refusal is final). */
static void refresh_end(struct dp_opened *o, struct dp_remote *r)
{
	opened_stop_search(o);
	if (r == NULL)
		r = remote_copy(o->cur);
	if (r != NULL)
		version_set(o, r);
}

static void refresh_lose(struct dp_opened *o, tn_status why)
{
	struct dp_remote *r = remote_copy(o->cur);

	if (r != NULL) {
		r->lost = true;
		r->lost_status = why;
	}
	refresh_end(o, r);
}

static void refresh_later(struct dp_opened *o)
{
	struct dp_control *ctl = o->ctl;

	if (ctl->loop.now_ns >= o->give_up_ns) {
		refresh_end(o, NULL);
		return;
	}
	/* Jitter of a quarter, so that many handles on one restarted peer do not ask in step. */
	uint64_t wait_ns = o->backoff_ns - tn_rand_below(&ctl->rand, o->backoff_ns / 4);
	o->backoff_ns = TN_MIN(o->backoff_ns * 2, BACKOFF_MAX_NS);
	dp_timer_set(&ctl->loop, &o->retry, ctl->loop.now_ns + wait_ns);
}

static void refresh_try(struct dp_opened *o)
{
	struct dp_control *ctl = o->ctl;
	struct dp_local_segment *seg;

	if (!o->local) {
		if (dp_link_open(ctl->link, &o->call, o->ref, o->cur, ctl->loop.now_ns + REFRESH_CALL_NS) != TN_OK)
			refresh_later(o);
		return;
	}
	seg = dp_local_find(ctl, o->ref);
	if (seg == NULL)
		refresh_later(o);
	else if (!dp_local_admits_uid(seg->s, o->client->cred.uid))
		refresh_lose(o, TN_PERMISSION);
	else
		refresh_end(o, remote_from_local(ctl, seg->s));
}

static void refresh_begin(struct dp_opened *o)
{
	if (o->refreshing || o->state != DP_OPENED_LIVE || !dp_app_is_live(o->client))
		return;
	o->refreshing = true;
	o->backoff_ns = BACKOFF_FIRST_NS;
	o->give_up_ns = o->ctl->loop.now_ns + tn_config_ns(o->ctl->config, TN_CFG_DEADLINE_MAX_MS);
	refresh_try(o);
}

static void remote_retry(struct dp_timer *t)
{
	refresh_try(tn_container_of(t, struct dp_opened, retry));
}

/* The control plane's answer, to the first open or to a search. `found` is ours on TN_OK. */
static void remote_found(struct dp_open_call *call, tn_status s, const struct dp_peer *peer, struct dp_remote *found)
{
	struct dp_opened *o = tn_container_of(call, struct dp_opened, call);
	struct dp_app *c = o->client;

	if (s == TN_OK) {
		/* The peer first: every worker must know it before it meets a remote that names it. */
		s = dp_peers_learn(o->ctl, peer, &found->peer_index);
		if (s != TN_OK)
			free(found);
	}
	if (o->state == DP_OPENED_OPENING) {
		uint32_t correlation = o->correlation;
		if (s == TN_OK) {
			opened_move(o, DP_OPENED_SETTING);
			version_set(o, found);
			return;
		}
		opened_free(o);
		dp_app_fail(c, SHR_MSG_OPEN, correlation, s, 0);
		return;
	}
	if (s == TN_OK)
		refresh_end(o, found);
	else if (s == TN_PERMISSION)
		refresh_lose(o, TN_PERMISSION);
	else
		refresh_later(o);
}

void dp_remote_refresh(struct dp_control *ctl, tn_handle h, uint64_t stale_generation)
{
	struct dp_opened *o = dp_handles_get(&ctl->remotes, h);

	/* Another generation: the worker's next REMOTE_SET is already in its mailbox. */
	if (o != NULL && o->cur != NULL && o->cur->generation == stale_generation)
		refresh_begin(o);
}

void dp_remote_segment_changed(struct dp_control *ctl, const char *peer, const char *name,
                               const struct tn_id128 *session, uint64_t generation)
{
	char ref[2 * TN_NAME_MAX];

	(void)snprintf(ref, sizeof ref, "%s/%s", peer, name);
	for (struct dp_name *n = NULL; (n = dp_names_find(&ctl->remote_refs, ref, n)) != NULL;) {
		struct dp_opened *o = tn_container_of(n, struct dp_opened, by_ref);
		/* Withdrawn (0): the next request finds out, and only then is it worth asking. */
		if (o->cur == NULL || generation == 0 ||
		    (o->cur->generation == generation && tn_id128_eq(&o->cur->session, session) && !o->cur->lost))
			continue;
		if (o->refreshing && dp_timer_armed(&o->retry))
			dp_timer_set(&ctl->loop, &o->retry, ctl->loop.now_ns); /* what is searched for is there now */
		refresh_begin(o);
	}
}

/* The next segment opened at this peer, at or after *at, that somebody uses. NULL: no more. */
static struct dp_opened *next_of_peer(struct dp_control *ctl, const char *peer, uint32_t *at)
{
	size_t len = strlen(peer);

	while (*at < ctl->remotes.cap) {
		struct dp_opened *o = dp_handles_at(&ctl->remotes, (*at)++);
		if (o != NULL && !o->local && strncmp(o->ref, peer, len) == 0 && o->ref[len] == '/' &&
		    o->state == DP_OPENED_LIVE && dp_app_is_live(o->client))
			return o;
	}
	return NULL;
}

void dp_remote_peer_returned(struct dp_control *ctl, const char *peer)
{
	uint32_t at = 0;

	for (struct dp_opened *o; (o = next_of_peer(ctl, peer, &at)) != NULL;) {
		o->backoff_ns = BACKOFF_FIRST_NS;
		if (o->refreshing && dp_timer_armed(&o->retry))
			dp_timer_set(&ctl->loop, &o->retry, ctl->loop.now_ns);
	}
}

void dp_remote_peer_gone(struct dp_control *ctl, const char *peer)
{
	uint32_t at = 0;

	for (struct dp_opened *o; (o = next_of_peer(ctl, peer, &at)) != NULL;)
		refresh_lose(o, TN_PEER_UNKNOWN);
}

void dp_remote_peer_back(struct dp_control *ctl, const char *peer)
{
	uint32_t at = 0;

	for (struct dp_opened *o; (o = next_of_peer(ctl, peer, &at)) != NULL;)
		refresh_begin(o);
}

void dp_remote_segment_appeared(struct dp_control *ctl, const struct dp_local_segment *seg)
{
	for (struct dp_name *n = NULL; (n = dp_names_find(&ctl->remote_refs, seg->s->name, n)) != NULL;) {
		struct dp_opened *o = tn_container_of(n, struct dp_opened, by_ref);
		if (!o->local || o->state != DP_OPENED_LIVE || !dp_app_is_live(o->client))
			continue;
		if (!dp_local_admits_uid(seg->s, o->client->cred.uid))
			refresh_lose(o, TN_PERMISSION);
		else
			refresh_end(o, remote_from_local(ctl, seg->s));
	}
}
