/* SPDX-License-Identifier: Apache-2.0
 * Publishes, withdraws, opens and closes segments. Names, ranges and rights are checked here first, so that an error
 * text can name the argument; the data plane checks them again. Application threads; may block. */
#include "dataplane/libtent/segment.h"

#include <stdio.h>
#include <string.h>

#include "common/bits.h"
#include "common/rand.h"
#include "dataplane/libtent/options.h"

#define RIGHTS_REMOTE (TENT_RIGHT_REMOTE_READ | TENT_RIGHT_REMOTE_WRITE)
#define ACCESS_ALL (TENT_ACCESS_SAME_UID | TENT_ACCESS_LOCAL_ALL | TENT_ACCESS_PEERS)
#define ACCESS_DEFAULT (TENT_ACCESS_SAME_UID | TENT_ACCESS_PEERS)

/* The data plane answers an open by its deadline; its own answer says more than our time-out, so we wait longer. */
#define OPEN_GRACE_NS (250 * TN_NS_PER_MS)

/* ---- publish ---- */

static uint32_t build_publish(const void *arg, uint8_t body[static SHR_MSG_MAX])
{
	const tent_published *pub = arg;
	struct shr_msg_publish m = { .publication = pub->publication, .access = pub->access,
				     .buffer_cnt = pub->buffer_cnt, .peer_cnt = pub->peer_cnt };
	uint32_t at = sizeof m;

	memcpy(m.name, pub->name, sizeof m.name);
	memcpy(body, &m, sizeof m);
	for (uint32_t i = 0; i < pub->buffer_cnt; i++) {
		const tent_buffer *b = &pub->buffers[i];
		struct shr_msg_buffer mb = { .memory = tn_load_relaxed64(&b->memory->obj.id), .offset = b->offset,
					     .length = b->bytes, .rights = b->rights };
		memcpy(body + at, &mb, sizeof mb);
		at += sizeof mb;
	}
	memcpy(body + at, pub->peers, pub->peer_cnt * sizeof pub->peers[0]);
	return at + pub->peer_cnt * TN_NAME_MAX;
}

tn_status lt_published_call(const tent_published *pub, uint64_t deadline_ns, struct lt_call *call_out)
{
	for (uint32_t i = 0; i < pub->buffer_cnt; i++) {
		const struct lt_object *mem = &pub->buffers[i].memory->obj;

		if (tn_load_relaxed32(&mem->state) == LT_OBJECT_FAILED)
			return (tn_status)tn_load_relaxed32(&mem->fail_status);
	}
	*call_out = (struct lt_call){ .type = SHR_MSG_PUBLISH,
				     .build = build_publish,
				     .arg = pub,
				     .fd = -1,
				     .again = true,
				     .deadline_ns = deadline_ns };
	return TN_OK;
}

static tent_status take_buffer(tent_context *ctx, size_t i, const tent_buffer *in, tent_buffer *out)
{
	const tent_memory *mem = in->memory;

	if (mem == NULL || !lt_object_is(&mem->obj, LT_MEMORY, ctx))
		return lt_fail(mem == NULL ? TN_INVALID : TN_STALE, "tent_segment_publish: buffers[%zu].memory is %s",
			       i, mem == NULL ? "NULL" : "freed, or of another context");
	if (!tn_all_zero(in->reserved, sizeof in->reserved))
		return lt_fail(TN_INVALID, "tent_segment_publish: buffers[%zu].reserved is not zero", i);
	*out = *in;
	if (out->bytes == 0 && in->offset < mem->bytes)
		out->bytes = mem->bytes - in->offset;
	if (out->bytes == 0 || !tn_range_within(in->offset, out->bytes, mem->bytes))
		return lt_fail(
		    TN_RANGE, "tent_segment_publish: buffers[%zu]: offset %llu + bytes %llu leaves the memory's %llu",
		    i, (unsigned long long)in->offset, (unsigned long long)in->bytes, (unsigned long long)mem->bytes);
	uint32_t may = mem->rights & RIGHTS_REMOTE;
	out->rights = in->rights != 0 ? in->rights : may;
	if (out->rights == 0 || (out->rights & ~may) != 0)
		return lt_fail(TN_PERMISSION,
			       "tent_segment_publish: buffers[%zu].rights is 0x%x, but its memory was registered "
			       "with REMOTE rights 0x%x",
			       i, in->rights, may);
	return TENT_OK;
}

static tent_status take_access(tent_published *pub, const tent_access *access)
{
	tent_access a = TENT_ACCESS_INIT;

	if (access != NULL) {
		tent_status s = lt_options_take("tent_segment_publish: access", "TENT_ACCESS_INIT", access,
						offsetof(tent_access, who) + sizeof a.who, &a, sizeof a);
		if (s != TENT_OK)
			return s;
	}
	if ((a.who & ~ACCESS_ALL) != 0)
		return lt_fail(TN_INVALID, "tent_segment_publish: access->who is 0x%x: only TENT_ACCESS_* bits", a.who);
	pub->access = a.who != 0 ? a.who : ACCESS_DEFAULT;
	if (a.peer_count > SHR_SEGMENT_PEERS_MAX || (a.peer_count != 0 && a.peers == NULL))
		return lt_fail(TN_TOO_BIG, "tent_segment_publish: access lists %zu peers, at most %u", a.peer_count,
			       SHR_SEGMENT_PEERS_MAX);
	if (a.peer_count != 0 && (pub->access & TENT_ACCESS_PEERS) == 0)
		return lt_fail(TN_INVALID, "tent_segment_publish: access lists peers without TENT_ACCESS_PEERS");
	for (size_t i = 0; i < a.peer_count; i++) {
		if (a.peers[i] == NULL || !tn_name_valid(a.peers[i]))
			return lt_fail(TN_INVALID, "tent_segment_publish: access->peers[%zu] is no peer name "
				       "(1..63 of [A-Za-z0-9._-])", i);
		(void)snprintf(pub->peers[i], TN_NAME_MAX, "%s", a.peers[i]);
	}
	pub->peer_cnt = (uint32_t)a.peer_count;
	return TENT_OK;
}

static tent_status take_recipe(tent_published *pub, const char *name, const tent_buffer *buffers, size_t count,
			       const tent_access *access)
{
	uint64_t total = 0;

	if (name == NULL || !tn_name_valid(name))
		return lt_fail(TN_INVALID, "tent_segment_publish: name is not 1..63 of [A-Za-z0-9._-]");
	if (buffers == NULL || count == 0 || count > SHR_SEGMENT_BUFFERS_MAX)
		return lt_fail(buffers == NULL || count == 0 ? TN_INVALID : TN_TOO_BIG,
			       "tent_segment_publish: %zu buffers, not 1..%u", count, SHR_SEGMENT_BUFFERS_MAX);
	(void)snprintf(pub->name, sizeof pub->name, "%s", name);
	tent_status s = take_access(pub, access);
	for (size_t i = 0; s == TENT_OK && i < count; i++) {
		s = take_buffer(pub->obj.ctx, i, &buffers[i], &pub->buffers[i]);
		if (s == TENT_OK && !tn_add_checked(total, pub->buffers[i].bytes, &total))
			s = lt_fail(TN_RANGE, "tent_segment_publish: the buffers are longer than 2^64 together");
	}
	pub->buffer_cnt = (uint32_t)count;
	return s;
}

static void use_memories(const tent_published *pub, bool use)
{
	for (uint32_t i = 0; i < pub->buffer_cnt; i++)
		pub->buffers[i].memory->used_by += use ? 1 : UINT32_MAX; /* UINT32_MAX: minus one */
}

/* ---- the end of a publication that its publisher did not ask for ---- */

void lt_published_lose(tent_published *pub, tn_status why)
{
	tn_store_relaxed32(&pub->obj.fail_status, (uint32_t)why);
	lt_object_move(&pub->obj, LT_OBJECT_LOST);
	lt_note_lost(pub);
}

void lt_published_lost(tent_context *ctx, const struct shr_msg *m)
{
	struct shr_msg_segment_lost lost;

	memcpy(&lost, shr_msg_body_ro(m), sizeof lost);
	tn_list_foreach(node, &ctx->objects[LT_PUBLISHED]) {
		struct lt_object *o = tn_list_entry(node, struct lt_object, link);

		if (tn_load_relaxed64(&o->id) != lost.id)
			continue;
		if (tn_load_relaxed32(&o->state) == LT_OBJECT_LIVE) /* else it is being given back */
			lt_published_lose((tent_published *)o, (tn_status)lost.status);
		return;
	}
	/* The answer to its PUBLISH came before, but the thread that waits for that has not run yet. */
	ctx->early_losses[ctx->early_loss_cnt++ % LT_EARLY_LOSSES] = lost;
}

/* Lock held. */
static void take_early_loss(tent_published *pub, uint64_t id)
{
	tent_context *ctx = pub->obj.ctx;

	for (uint32_t i = 0; i < LT_EARLY_LOSSES; i++)
		if (ctx->early_losses[i].id == id) {
			lt_published_lose(pub, (tn_status)ctx->early_losses[i].status);
			return;
		}
}

tent_status tent_segment_published(const tent_published *pub)
{
	if (pub == NULL)
		return lt_fail(TN_INVALID, "tent_segment_published: the handle is NULL");
	tent_context *ctx = pub->obj.ctx;
	tent_status s = lt_context_check(ctx, "tent_segment_published");
	if (s != TENT_OK)
		return s;
	(void)pthread_mutex_lock(&ctx->lock);
	enum lt_object_state state = (enum lt_object_state)tn_load_relaxed32(&pub->obj.state);
	tn_status why = (tn_status)tn_load_relaxed32(&pub->obj.fail_status);
	if (pub->obj.kind != LT_PUBLISHED || state == LT_OBJECT_GONE || state == LT_OBJECT_CLOSING)
		s = lt_fail(TN_STALE, "tent_segment_published: no handle of a publication, or given back");
	else if (state == LT_OBJECT_LOST)
		s = lt_fail(why, "tent_segment_published: %s: %s", pub->name,
			    why == TN_CANCELED ? "an operator withdrew it" :
						 "it could not be published again after the data plane restarted");
	else if (ctx->state == TENT_STATE_DEAD)
		s = lt_context_fail_dead(ctx, "tent_segment_published");
	else if (state == LT_OBJECT_RESTORING || ctx->state == TENT_STATE_RECOVERING)
		s = TENT_PENDING;
	(void)pthread_mutex_unlock(&ctx->lock);
	return s;
}

/* ---- publish, the call ---- */

/* Lock held. */
static tent_status publish_locked(tent_published *pub)
{
	tent_context *ctx = pub->obj.ctx;
	struct lt_reply reply = { .status = TN_OK };
	struct lt_call c;
	uint64_t id;

	tn_status s = lt_published_call(pub, tn_deadline_after(tn_now_ns(), ctx->timeout_ns), &c);
	use_memories(pub, true); /* nobody frees them while the lock is away */
	if (s == TN_OK)
		s = lt_call(ctx, &c, &reply);
	if (s == TN_OK)
		s = reply.status;
	if (s != TN_OK) {
		use_memories(pub, false);
		return lt_call_fail(ctx, "tent_segment_publish", pub->name, s, reply.detail);
	}
	memcpy(&id, reply.body, sizeof id);
	lt_object_enlist(&pub->obj, id);
	take_early_loss(pub, id);
	return TENT_OK;
}

tent_status tent_segment_publish(tent_context *ctx, const char *name, const tent_buffer *buffers, size_t count,
				 const tent_access *access, tent_published **pub_out)
{
	tent_status s = lt_context_check(ctx, "tent_segment_publish");

	if (s != TENT_OK)
		return s;
	if (pub_out == NULL)
		return lt_fail(TN_INVALID, "tent_segment_publish: pub_out is NULL");
	(void)pthread_mutex_lock(&ctx->lock);
	tent_published *pub = (tent_published *)lt_object_new(ctx, LT_PUBLISHED, sizeof *pub);
	if (pub == NULL) {
		s = lt_fail(TN_NO_MEMORY, "tent_segment_publish: no memory for the handle");
	} else {
		s = take_recipe(pub, name, buffers, count, access);
		if (s == TENT_OK && tn_rand_id128(&pub->publication) != TN_OK)
			s = lt_fail(TN_SYSTEM, "tent_segment_publish: the kernel gave no random number for the publication");
		if (s == TENT_OK)
			s = publish_locked(pub);
		if (s != TENT_OK)
			lt_object_bury(&pub->obj);
	}
	(void)pthread_mutex_unlock(&ctx->lock);
	if (s == TENT_OK)
		*pub_out = pub;
	return s;
}

/* ---- what withdraw and close share: CLOSING, the call, the grave ---- */

/* Lock held. A time-out leaves the object CLOSING; the next call asks again. */
static tent_status give_back(struct lt_object *o, uint16_t type, const char *call, const char *what)
{
	tent_context *ctx = o->ctx;
	uint64_t deadline_ns = tn_deadline_after(tn_now_ns(), ctx->timeout_ns);
	uint32_t life = tn_load_relaxed32(&o->generation);
	uint32_t detail = 0;

	/* The keeper walks the list while it recovers, and may have asked for this very object again. */
	while (ctx->state == TENT_STATE_RECOVERING || o->inflight != NULL)
		if (!lt_context_wait(ctx, deadline_ns))
			return lt_call_fail(ctx, call, what, TN_TIMEOUT, 0);
	if (tn_load_relaxed32(&o->state) == LT_OBJECT_GONE || lt_object_is_over(o, life))
		return lt_fail(TN_STALE, "%s: the handle was given back already", call);
	if (tn_load_relaxed32(&o->state) != LT_OBJECT_CLOSING)
		lt_object_move(o, LT_OBJECT_CLOSING);
	tn_status s = lt_call_let_go(ctx, type, tn_load_relaxed64(&o->id), deadline_ns, &detail);
	if (lt_object_is_over(o, life))
		return lt_fail(TN_STALE, "%s: another thread gave the handle back meanwhile", call);
	return s == TN_OK ? TENT_OK : lt_call_fail(ctx, call, what, s, detail);
}

static tent_status check_handle(const struct lt_object *o, enum lt_kind kind, const char *call)
{
	if (o == NULL)
		return lt_fail(TN_INVALID, "%s: the handle is NULL", call);
	tent_status s = lt_context_check(o->ctx, call);
	if (s == TENT_OK && o->kind != (uint32_t)kind)
		return lt_fail(TN_INVALID, "%s: a handle of another kind", call);
	return s;
}

tent_status tent_segment_withdraw(tent_published *pub)
{
	tent_status s = check_handle(pub != NULL ? &pub->obj : NULL, LT_PUBLISHED, "tent_segment_withdraw");

	if (s != TENT_OK)
		return s;
	tent_context *ctx = pub->obj.ctx;
	(void)pthread_mutex_lock(&ctx->lock);
	s = give_back(&pub->obj, SHR_MSG_WITHDRAW, "tent_segment_withdraw", pub->name);
	if (s == TENT_OK) {
		use_memories(pub, false);
		lt_note_unlost(pub);
		lt_object_bury(&pub->obj);
	}
	(void)pthread_mutex_unlock(&ctx->lock);
	return s;
}

/* ---- open ---- */

static uint32_t build_open(const void *arg, uint8_t body[static SHR_MSG_MAX])
{
	const tent_segment *seg = arg;
	struct shr_msg_open m = { .remaining_ns = seg->obj.ctx->timeout_ns };

	memcpy(m.ref, seg->ref, sizeof m.ref);
	memcpy(body, &m, sizeof m);
	return sizeof m;
}

void lt_segment_open_call(const tent_segment *seg, uint64_t deadline_ns, struct lt_call *call_out)
{
	*call_out = (struct lt_call){ .type = SHR_MSG_OPEN, .build = build_open, .arg = seg, .fd = -1, .again = true,
				      .deadline_ns = deadline_ns };
}

uint64_t lt_segment_take_reply(tent_segment *seg, const struct lt_reply *reply)
{
	struct shr_msg_open_reply r;

	memcpy(&r, reply->body, sizeof r);
	/* Nobody asks the data plane that died whether this was so from the beginning of its life: what it was at the
	 * first open counts, which errs on the safe side. */
	if (!tn_id128_is_zero(&seg->publication) && !tn_id128_eq(&seg->publication, &r.publication))
		tn_store_relaxed64(&seg->republished_ns, tn_now_ns());
	seg->publication = r.publication;
	tn_store_relaxed64(&seg->bytes, r.length);
	tn_store_relaxed32(&seg->rights, r.rights);
	return r.id;
}

/* "name" or "peer/name". */
static bool ref_is_valid(const char *ref)
{
	char peer[TN_NAME_MAX];
	const char *slash = strchr(ref, '/');

	if (slash == NULL)
		return tn_name_valid(ref);
	size_t bytes = (size_t)(slash - ref);
	if (bytes >= sizeof peer)
		return false;
	memcpy(peer, ref, bytes);
	peer[bytes] = '\0';
	return tn_name_valid(peer) && tn_name_valid(slash + 1);
}

/* Lock held. */
static tent_status open_locked(tent_segment *seg)
{
	tent_context *ctx = seg->obj.ctx;
	struct lt_reply reply = { .status = TN_OK };
	struct lt_call c;

	lt_segment_open_call(seg, tn_deadline_after(tn_now_ns(), ctx->timeout_ns + OPEN_GRACE_NS), &c);
	tn_status s = lt_call(ctx, &c, &reply);
	if (s == TN_OK)
		s = reply.status;
	if (s != TN_OK)
		return lt_call_fail(ctx, "tent_segment_open", seg->ref, s, reply.detail);
	lt_object_enlist(&seg->obj, lt_segment_take_reply(seg, &reply));
	return TENT_OK;
}

tent_status tent_segment_open(tent_context *ctx, const char *ref, tent_segment **seg_out)
{
	tent_status s = lt_context_check(ctx, "tent_segment_open");

	if (s != TENT_OK)
		return s;
	if (seg_out == NULL || ref == NULL || !ref_is_valid(ref))
		return lt_fail(TN_INVALID, "tent_segment_open: %s", seg_out == NULL ? "seg_out is NULL" :
			       "ref is not \"name\" or \"peer/name\" (1..63 of [A-Za-z0-9._-] each)");
	(void)pthread_mutex_lock(&ctx->lock);
	tent_segment *seg = (tent_segment *)lt_object_new(ctx, LT_SEGMENT, sizeof *seg);
	if (seg == NULL) {
		s = lt_fail(TN_NO_MEMORY, "tent_segment_open: no memory for the handle");
	} else {
		(void)snprintf(seg->ref, sizeof seg->ref, "%s", ref);
		s = open_locked(seg);
		if (s != TENT_OK)
			lt_object_bury(&seg->obj);
	}
	(void)pthread_mutex_unlock(&ctx->lock);
	if (s == TENT_OK)
		*seg_out = seg;
	return s;
}

uint64_t tent_segment_bytes(const tent_segment *seg)
{
	return seg != NULL && lt_object_is(&seg->obj, LT_SEGMENT, NULL) ? tn_load_relaxed64(&seg->bytes) : 0;
}

tent_status tent_segment_close(tent_segment *seg)
{
	tent_status s = check_handle(seg != NULL ? &seg->obj : NULL, LT_SEGMENT, "tent_segment_close");

	if (s != TENT_OK)
		return s;
	tent_context *ctx = seg->obj.ctx;
	(void)pthread_mutex_lock(&ctx->lock);
	s = give_back(&seg->obj, SHR_MSG_CLOSE, "tent_segment_close", seg->ref);
	if (s == TENT_OK)
		lt_object_bury(&seg->obj);
	(void)pthread_mutex_unlock(&ctx->lock);
	return s;
}
