/* SPDX-License-Identifier: Apache-2.0
 * Owner of published segments. A name is taken from the moment PUBLISH is accepted until WITHDRAW begins, and can be
 * found only while every worker knows the segment: a peer that was told of it is never refused for being too early.
 * Control thread. */
#include "dataplane/segment/local.h"

#include <stdlib.h>
#include <string.h>

#include "common/hook.h"
#include "dataplane/control.h"
#include "dataplane/segment/map.h"
#include "dataplane/segment/remote.h"

static void segment_acked(struct dp_flight *f);

/* ---- lookup and rights ---- */

/* Any segment that holds the name, also one that workers are still learning. */
static struct dp_local_segment *name_holder(struct dp_control *ctl, const char *name)
{
	struct dp_name *n = dp_names_find(&ctl->segment_names, name, NULL);

	return n != NULL ? tn_container_of(n, struct dp_local_segment, by_name) : NULL;
}

struct dp_local_segment *dp_local_find(struct dp_control *ctl, const char *name)
{
	struct dp_local_segment *seg = name_holder(ctl, name);

	return seg != NULL && seg->state == DP_SEG_LIVE ? seg : NULL;
}

struct dp_local_segment *dp_local_get(struct dp_control *ctl, tn_handle h)
{
	struct dp_local_segment *seg = dp_handles_get(&ctl->segments, h);

	return seg != NULL && seg->state != DP_SEG_DELETING ? seg : NULL;
}

bool dp_local_admits_uid(const struct dp_segment *s, uint32_t uid)
{
	return (s->access & SHR_ACCESS_LOCAL_ALL) != 0 || ((s->access & SHR_ACCESS_SAME_UID) != 0 && uid == s->owner_uid);
}

bool dp_local_admits_peer(const struct dp_segment *s, const char *peer)
{
	if ((s->access & SHR_ACCESS_PEERS) == 0)
		return false;
	for (uint32_t i = 0; i < s->peer_cnt; i++)
		if (strcmp(s->peers[i], peer) == 0)
			return true;
	return s->peer_cnt == 0;
}

/* ---- publish ---- */

struct publish_refusal { tn_status status; uint32_t detail; };
#define REFUSE(s, d) ((struct publish_refusal){ s, d })

static struct publish_refusal buffers_check(struct dp_app *c, const struct shr_publish_view *v, uint64_t *bytes_out)
{
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < v->fixed->buffer_cnt; i++) {
		const struct shr_msg_buffer *b = &v->buffers[i];
		const struct dp_local_memory *mem = dp_map_find(c, b->memory);
		uint32_t remote_rights = SHR_RIGHT_REMOTE_READ | SHR_RIGHT_REMOTE_WRITE;
		if (mem == NULL)
			return REFUSE(TN_STALE, i);
		if (b->length == 0 || b->length > mem->m.bytes || b->offset > mem->m.bytes - b->length)
			return REFUSE(TN_RANGE, i);
		if (b->rights == 0 || (b->rights & ~remote_rights) != 0)
			return REFUSE(TN_INVALID, i);
		if ((b->rights & ~mem->m.rights) != 0)
			return REFUSE(TN_PERMISSION, i);
		if (b->length > INT64_MAX - bytes)
			return REFUSE(TN_RANGE, i);
		bytes += b->length;
	}
	*bytes_out = bytes;
	return REFUSE(TN_OK, 0);
}

static struct publish_refusal publish_check(struct dp_app *c, const struct shr_publish_view *v, uint64_t *bytes_out)
{
	uint32_t known = SHR_ACCESS_SAME_UID | SHR_ACCESS_LOCAL_ALL | SHR_ACCESS_PEERS;
	uint64_t max = tn_config_u64(c->ctl->config, TN_CFG_LIMITS_MAX_SEGMENTS_PER_CLIENT);

	if (c->segment_cnt >= max)
		return REFUSE(TN_LIMIT, (uint32_t)max);
	if (!tn_name_valid(v->fixed->name) || v->fixed->buffer_cnt == 0)
		return REFUSE(TN_INVALID, 0);
	if (v->fixed->access == 0 || (v->fixed->access & ~known) != 0)
		return REFUSE(TN_INVALID, v->fixed->access);
	if (v->fixed->peer_cnt > 0 && (v->fixed->access & SHR_ACCESS_PEERS) == 0)
		return REFUSE(TN_INVALID, v->fixed->peer_cnt);
	for (uint32_t i = 0; i < v->fixed->peer_cnt; i++)
		if (!tn_name_valid(v->peers[i]))
			return REFUSE(TN_INVALID, i);
	if (name_holder(c->ctl, v->fixed->name) != NULL)
		return REFUSE(TN_EXISTS, 0);
	return buffers_check(c, v, bytes_out);
}

/* Buffers and peers behind the struct in one block, so that workers' pointer is one object with one life. */
static struct dp_segment *segment_build(struct dp_app *c, const struct shr_publish_view *v, uint64_t bytes)
{
	struct dp_control *ctl = c->ctl;
	size_t buffers_bytes = v->fixed->buffer_cnt * sizeof(struct dp_buffer);
	size_t peers_bytes = (size_t)v->fixed->peer_cnt * TN_NAME_MAX;
	struct dp_segment *s = calloc(1, sizeof *s + buffers_bytes + peers_bytes);
	uint64_t segment_off = 0;

	if (s == NULL)
		return NULL;
	s->client_id = c->id;
	s->owner_uid = c->cred.uid;
	s->generation = ++ctl->segment_generation;
	s->publication = v->fixed->publication;
	s->bytes = bytes;
	s->access = v->fixed->access;
	s->peer_cnt = v->fixed->peer_cnt;
	memcpy(s->name, v->fixed->name, sizeof s->name);
	s->peers = (char (*)[TN_NAME_MAX])(void *)(s->buffers + v->fixed->buffer_cnt);
	if (peers_bytes > 0)
		memcpy(s->peers, v->peers, peers_bytes);
	s->buffer_cnt = v->fixed->buffer_cnt;
	for (uint32_t i = 0; i < s->buffer_cnt; i++) {
		const struct shr_msg_buffer *b = &v->buffers[i];
		struct dp_local_memory *mem = dp_map_find(c, b->memory);
		if (ctl->registration_next == 0)
			ctl->registration_next = 1;
		s->buffers[i] = (struct dp_buffer){
			.registration = ctl->registration_next++, .base = mem->m.base + b->offset, .bytes = b->length,
			.segment_off = segment_off, .rights = b->rights, .memory = b->memory };
		segment_off += b->length;
	}
	return s;
}

static void memory_refs_add(struct dp_local_segment *seg, int delta)
{
	for (uint32_t i = 0; i < seg->s->buffer_cnt; i++) {
		struct dp_local_memory *mem = dp_handles_get(&seg->ctl->memories, seg->s->buffers[i].memory);
		if (mem != NULL)
			mem->refs += (uint32_t)delta;
	}
}

static tn_status segment_new(struct dp_app *c, const struct shr_publish_view *v, uint64_t bytes,
                             struct dp_local_segment **out)
{
	struct dp_local_segment *seg = calloc(1, sizeof *seg);
	struct dp_segment *s = segment_build(c, v, bytes);
	tn_status status = TN_NO_MEMORY;

	if (seg != NULL && s != NULL)
		status = dp_handles_add(&c->ctl->segments, seg, &s->handle);
	if (status != TN_OK) {
		free(s);
		free(seg);
		return status;
	}
	*seg = (struct dp_local_segment){ .s = s, .client = c, .ctl = c->ctl, .flight = { .done = segment_acked } };
	dp_control_move(DP_CONTROL_SEG, &seg->state, DP_SEG_ADDING);
	dp_names_add(&c->ctl->segment_names, &seg->by_name, s->name);
	tn_list_push_back(&c->segments, &seg->link);
	c->segment_cnt++;
	memory_refs_add(seg, 1);
	*out = seg;
	return TN_OK;
}

void dp_local_on_publish(struct dp_app *c, struct shr_msg *m)
{
	struct shr_publish_view v;
	struct dp_local_segment *seg;
	struct publish_refusal refusal;
	uint64_t bytes;

	shr_msg_publish_view(m, &v);
	refusal = publish_check(c, &v, &bytes);
	if (refusal.status == TN_OK)
		refusal.status = segment_new(c, &v, bytes, &seg);
	if (refusal.status != TN_OK) {
		dp_app_fail(c, SHR_MSG_PUBLISH, m->hdr.correlation, refusal.status, refusal.detail);
		return;
	}
	seg->correlation = m->hdr.correlation;
	dp_crew_broadcast(&c->ctl->crew, (struct dp_cmd){ .kind = DP_CMD_SEG_ADD, .fd = -1, .ptr = seg->s }, &seg->flight);
}

/* ---- withdraw ---- */

static void segment_free(struct dp_local_segment *seg)
{
	struct dp_app *c = seg->client;

	(void)dp_handles_remove(&seg->ctl->segments, seg->s->handle);
	dp_names_remove(&seg->by_name);
	memory_refs_add(seg, -1);
	tn_list_unlink(&seg->link);
	c->segment_cnt--;
	free(seg->s);
	free(seg);
}

static struct dp_cmd delete_cmd(const struct dp_local_segment *seg)
{
	return (struct dp_cmd){ .kind = DP_CMD_SEG_DEL, .fd = -1, .num = seg->s->handle };
}

static void segment_hide(struct dp_local_segment *seg, uint16_t answer)
{
	dp_control_move(DP_CONTROL_SEG, &seg->state, DP_SEG_DELETING);
	seg->answer = answer;
	/* The name is free at once: a restarted application publishes again while its predecessor's lanes drain. */
	dp_names_remove(&seg->by_name);
}

static void segment_withdraw(struct dp_local_segment *seg, uint16_t answer)
{
	segment_hide(seg, answer);
	TN_HOOK(dp_withdraw_begun);
	if (seg->announced)
		dp_link_segment_withdrawn(seg->ctl->link, seg->s);
	dp_crew_broadcast(&seg->ctl->crew, delete_cmd(seg), &seg->flight);
}

/* No worker knows it (any more). */
static void segment_deleted(struct dp_local_segment *seg)
{
	struct dp_app *c = seg->client;

	if (seg->answer == SHR_MSG_PUBLISH)
		dp_app_fail(c, seg->answer, seg->correlation, seg->result, 0);
	else if (seg->answer != 0)
		dp_app_reply(c, seg->answer, seg->correlation);
	dp_control_move(DP_CONTROL_SEG, &seg->state, DP_SEG_FREE);
	segment_free(seg);
	dp_app_settle(c);
}

/* The workers' answer to SEG_ADD. What one of them refused is taken from the others before anybody is told. */
static void segment_added(struct dp_local_segment *seg)
{
	struct dp_control *ctl = seg->ctl;

	if (seg->flight.status != TN_OK) {
		seg->result = seg->flight.status;
		segment_hide(seg, SHR_MSG_PUBLISH);
		if (!dp_crew_undo(&ctl->crew, delete_cmd(seg), &seg->flight))
			segment_deleted(seg);
		return;
	}
	dp_control_move(DP_CONTROL_SEG, &seg->state, DP_SEG_LIVE);
	seg->announced = true;
	TN_HOOK(dp_publish_live);
	dp_link_segment_published(ctl->link, seg->s);
	dp_app_reply_id(seg->client, SHR_MSG_PUBLISH, seg->correlation, seg->s->handle);
	/* Who waited for this name (opened before, withdrawn, published again) gets the new version. */
	dp_remote_segment_appeared(ctl, seg);
}

static void segment_acked(struct dp_flight *f)
{
	struct dp_local_segment *seg = tn_container_of(f, struct dp_local_segment, flight);

	if (seg->state == DP_SEG_ADDING)
		segment_added(seg);
	else
		segment_deleted(seg);
}

void dp_local_on_withdraw(struct dp_app *c, struct shr_msg *m)
{
	const struct shr_msg_id *req = shr_msg_body_ro(m);
	struct dp_local_segment *seg = dp_handles_get(&c->ctl->segments, req->id);

	if (seg != NULL && seg->client == c && seg->state == DP_SEG_DELETING &&
	    dp_app_asks_again(c, m, &seg->answer, &seg->correlation))
		return;
	if (seg == NULL || seg->client != c || seg->state != DP_SEG_LIVE) {
		dp_app_fail(c, SHR_MSG_WITHDRAW, m->hdr.correlation, TN_STALE, 0);
		return;
	}
	seg->correlation = m->hdr.correlation;
	segment_withdraw(seg, SHR_MSG_WITHDRAW);
}

/* Its publisher would go on as if it were there. An older library takes the message for a broken rule. */
static void tell_lost(struct dp_app *c, tn_handle id)
{
	struct shr_msg *m = dp_app_tx(c);
	struct shr_msg_segment_lost *lost;

	if (c->abi_minor < SHR_MINOR_SEGMENT_LOST)
		return;
	lost = shr_msg_begin(m, SHR_MSG_SEGMENT_LOST, 0, sizeof *lost);
	*lost = (struct shr_msg_segment_lost){ .id = id, .status = TN_CANCELED };
	dp_app_send(c, m);
}

tn_status dp_local_withdraw_name(struct dp_control *ctl, const char *name)
{
	struct dp_local_segment *seg = dp_local_find(ctl, name);

	if (seg == NULL)
		return TN_NOT_FOUND;
	struct dp_app *c = seg->client;
	tn_handle id = seg->s->handle;
	segment_withdraw(seg, 0);
	tell_lost(c, id);
	return TN_OK;
}

void dp_local_abandon(struct dp_app *c)
{
	tn_list_foreach(node, &c->segments) {
		struct dp_local_segment *seg = tn_list_entry(node, struct dp_local_segment, link);
		if (seg->state == DP_SEG_DELETING)
			seg->answer = 0;
		else
			segment_withdraw(seg, 0);
	}
}

void dp_local_destroy_all(struct dp_app *c)
{
	tn_list_foreach(node, &c->segments)
		segment_free(tn_list_entry(node, struct dp_local_segment, link));
}
