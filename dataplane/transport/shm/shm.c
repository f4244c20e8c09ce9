/* SPDX-License-Identifier: Apache-2.0
 * Transport shm: both ends are memory of this host that the data plane has mapped; one copy, done by the worker in
 * slices. Requests of at most one slice and slices of large ones (two where the destination is cached: they take no longer)
 * have turns one after the other: nobody small waits behind more than that, and whoever it was for hears of it before the next
 * slice is copied. Large ones take turns of a few slices: a copy that
 * goes on where it stopped finds the processor's prefetchers and page translations warm. Nothing of an attempt can land
 * after it ended: every end is fenced. Worker thread. */
#include <stdlib.h>
#include <string.h>

#include "common/assert.h"
#include "common/config.h"
#include "common/hook.h"
#include "common/metrics.h"
#include "dataplane/segment/fault.h"
#include "dataplane/segment/view.h"
#include "dataplane/transport/shm/copy.h"
#include "dataplane/transport/shm/heat.h"
#include "dataplane/transport/transport.h"

#define DONE_MAX 64u
#define TURN_SLICES 4u /* of a large copy, before the next large one */

struct shm {
	struct dp_transport base;
	struct tn_list small, large; /* dp_attempt.t_link */
	uint64_t slice_bytes, nontemporal_min_bytes;
	uint32_t turn; /* slices that the first large one has had in a row */
	bool owed;     /* small ones had their turn, and a large one waits */
	dp_copy_fn cached, nontemporal;
	struct dp_heat heat;
	const struct tn_metrics *m;
};

static struct shm *self(struct dp_transport *t) { return tn_container_of(t, struct shm, base); }

static tn_status shm_create(struct dp_worker *w, struct dp_transport **out)
{
	struct shm *s = calloc(1, sizeof *s);
	if (!s)
		return TN_NO_MEMORY;
	const struct tn_config *cfg = dp_worker_config(w);
	s->base = (struct dp_transport){ .ops = &dp_shm_ops, .worker = w, .up = true };
	tn_list_init(&s->small);
	tn_list_init(&s->large);
	s->slice_bytes = tn_config_u64(cfg, TN_CFG_SHM_SLICE_BYTES);
	s->nontemporal_min_bytes = tn_config_u64(cfg, TN_CFG_SHM_NONTEMPORAL_MIN_BYTES);
	s->cached = dp_copy_cached();
	s->nontemporal = dp_copy_nontemporal();
	dp_heat_init(&s->heat, dp_copy_near_bytes(), s->nontemporal_min_bytes);
	s->m = dp_worker_metrics(w);
	*out = &s->base;
	return TN_OK;
}

static void shm_destroy(struct dp_transport *t)
{
	if (t)
		free(self(t));
}

static enum dp_reach shm_reach(const struct dp_transport *t, const struct dp_remote *remote)
{
	(void)t;
	return remote->local ? DP_REACH_READY : DP_REACH_NO;
}

static tn_status refuse(struct dp_result *result, tn_status status, uint8_t reason)
{
	*result = (struct dp_result){
		.status = status, .phase = TN_PHASE_SUBMIT, .reason = reason, .nothing_left = true,
	};
	return status;
}

/* How the bytes of a copy in progress go; in dp_attempt.t_slices, which this transport has no other use for. */
enum { WAY_SMALL, WAY_CACHED, WAY_NONTEMPORAL };

/* Buffer `i` holds the first byte. Small ones stay in the caches for the reader, whatever it costs. */
static uint32_t choose_way(struct shm *s, const struct dp_attempt *a, uint32_t i)
{
	const struct dp_segment *seg = a->segment;
	uint64_t end = a->remote_off + a->bytes;
	bool cached = true;
	if (a->bytes < s->nontemporal_min_bytes)
		return WAY_SMALL;
	if (a->op == TN_OP_READ)
		cached = dp_heat_touch(&s->heat, (uintptr_t)a->local, a->bytes);
	for (; a->op == TN_OP_WRITE && i < seg->buffer_cnt && seg->buffers[i].segment_off < end; i++) {
		const struct dp_buffer *b = &seg->buffers[i];
		uint64_t from = TN_MAX(a->remote_off, b->segment_off) - b->segment_off;
		uint64_t to = TN_MIN(end - b->segment_off, b->bytes);
		cached = dp_heat_touch(&s->heat, (uintptr_t)b->base + from, to - from) && cached;
	}
	return cached ? WAY_CACHED : WAY_NONTEMPORAL;
}

/* Every buffer that the range touches must exist and grant the right: the segment may be newer than what was opened. */
static tn_status shm_submit(struct dp_transport *t, struct dp_attempt *a, struct dp_result *result)
{
	struct shm *s = self(t);
	const struct dp_segment *seg = a->segment;
	uint32_t right = a->op == TN_OP_READ ? SHR_RIGHT_REMOTE_READ : SHR_RIGHT_REMOTE_WRITE;
	uint32_t i = dp_segment_buffer_at(seg, a->remote_off);
	if (i == UINT32_MAX || a->remote_off > seg->bytes || a->bytes > seg->bytes - a->remote_off)
		return refuse(result, TN_RANGE, TN_REASON_PROTOCOL);
	for (uint32_t b = i; b < seg->buffer_cnt && seg->buffers[b].segment_off < a->remote_off + a->bytes; b++)
		if (!(seg->buffers[b].rights & right))
			return refuse(result, TN_PERMISSION, TN_REASON_PROTOCOL);
	a->t_next = a->t_done = 0;
	a->t_priv = NULL;
	a->t_result = (struct dp_result){ .status = TN_OK };
	a->t_slices = choose_way(s, a, i);
	tn_list_push_back(a->bytes <= s->slice_bytes ? &s->small : &s->large, &a->t_link);
	return TN_OK;
}

static void move(void *dst, const void *src, size_t bytes) { memmove(dst, src, bytes); }

/* A page of one side cannot be had: it ends here, and asking again would not help. */
static bool spoiled(struct shm *s, struct dp_attempt *a, enum dp_fault fault)
{
	bool local = (fault == DP_FAULT_DST) == (a->op == TN_OP_READ);
	tn_counter_add(s->m, TN_C1(MEMORY_FAULTS_TOTAL, TN_TRANSPORT_SHM), 1);
	a->t_result = (struct dp_result){
		.status = TN_FAULT, .phase = local ? TN_PHASE_POST : TN_PHASE_COMPLETION, .reason = TN_REASON_MR_ERROR,
		.fenced = true,
	};
	return false;
}

/* Copies up to `bytes` from where the attempt stands; walks over buffer ends. False: it failed. */
static bool copy_slice(struct shm *s, struct dp_attempt *a, uint64_t bytes)
{
	const struct dp_segment *seg = a->segment;
	dp_copy_fn copy = a->t_slices == WAY_NONTEMPORAL ? s->nontemporal : s->cached;
	uint64_t end = a->t_done + TN_MIN(bytes, a->bytes - a->t_done);
	uint32_t i = dp_segment_buffer_at(seg, a->remote_off + a->t_done);
	while (a->t_done < end) {
		tn_assert_debug(i < seg->buffer_cnt);
		const struct dp_buffer *b = &seg->buffers[i++];
		uint64_t off = a->remote_off + a->t_done - b->segment_off;
		size_t n = (size_t)TN_MIN(end - a->t_done, b->bytes - off);
		uint8_t *local = a->local + a->t_done, *remote = b->base + off;
		uint8_t *dst = a->op == TN_OP_READ ? local : remote, *src = a->op == TN_OP_READ ? remote : local;
		if (TN_HOOK_ARMED(dp_shm_half)) {
			(void)dp_fault_copy(move, dst, src, n / 2);
			TN_HOOK(dp_shm_half);
		}
		/* an application may name the same memory on both sides */
		enum dp_fault fault = dp_fault_copy(a->t_slices != WAY_SMALL && dst != src ? copy : move, dst, src, n);
		if (tn_unlikely(fault != DP_FAULT_NONE))
			return spoiled(s, a, fault);
		a->t_done += n;
	}
	dp_heat_moved(&s->heat, a->t_done - a->t_next);
	a->t_next = a->t_done;
	return true;
}

static void count_copies(const struct shm *s, unsigned op, enum tn_result outcome, uint64_t took_ns, uint64_t n)
{
	tn_counter_add(s->m, TN_C2(SHM_COPIES_TOTAL, op, outcome), n);
	tn_hist_observe_n(s->m, TN_H2(SHM_COPY_LATENCY_US, op, outcome), took_ns, n);
}

/* Those that began and ended together are counted together. */
static void finish_all(struct shm *s, struct dp_attempt **done, uint32_t cnt)
{
	dp_worker_refresh_now(s->base.worker); /* the copies took time; their ends share one reading */
	uint64_t now_ns = dp_worker_now(s->base.worker);
	for (uint32_t i = 0, same = 0; i < cnt; i++) {
		const struct dp_attempt *a = done[i];
		same++;
		const struct dp_attempt *next = i + 1 < cnt ? done[i + 1] : NULL;
		if (next && next->op == a->op && next->start_ns == a->start_ns && next->t_result.status == a->t_result.status)
			continue;
		count_copies(s, a->op, a->t_result.status == TN_OK ? TN_RESULT_SUCCESS : TN_RESULT_FAILURE,
			     now_ns - a->start_ns, same);
		same = 0;
	}
	for (uint32_t i = 0; i < cnt; i++) {
		struct dp_result result = done[i]->t_result;
		result.bytes = done[i]->t_done;
		dp_attempt_done(s->base.worker, done[i], &result);
	}
}

static uint32_t shm_progress(struct dp_transport *t, uint64_t now_ns, uint32_t budget)
{
	(void)now_ns;
	struct shm *s = self(t);
	struct dp_attempt *done[DONE_MAX + 1];
	uint32_t cnt = 0, moved = 0;
	budget = TN_MIN(budget, DONE_MAX);
	for (uint64_t bytes = 0; !s->owed && cnt < budget && !tn_list_empty(&s->small) && bytes < s->slice_bytes * 4;) {
		struct dp_attempt *a = tn_list_entry(tn_list_pop_front(&s->small), struct dp_attempt, t_link);
		struct dp_attempt *next = tn_list_first(&s->small, struct dp_attempt, t_link);
		if (next)
			TN_PREFETCH(next->op == TN_OP_WRITE ? (const void *)next->local : (const void *)next);
		(void)copy_slice(s, a, a->bytes);
		bytes += a->bytes;
		done[cnt++] = a;
	}
	moved += cnt;
	struct dp_attempt *a = tn_list_first(&s->large, struct dp_attempt, t_link);
	s->owed = a && cnt > 0;
	if (a && cnt == 0) {
		/* Through the caches it takes half as long, so twice as much costs others nothing. */
		uint64_t slice = a->t_slices == WAY_CACHED ? 2 * s->slice_bytes : s->slice_bytes;
		bool ended = !copy_slice(s, a, slice) || a->t_done == a->bytes;
		if (ended || ++s->turn >= TURN_SLICES) {
			s->turn = 0;
			tn_list_unlink(&a->t_link);
			if (ended)
				done[cnt++] = a;
			else
				tn_list_push_back(&s->large, &a->t_link);
		}
		moved++;
	}
	if (cnt > 0)
		finish_all(s, done, cnt);
	return moved;
}

/* A slice never runs while others are called, so the end is always at once. */
static void shm_cancel(struct dp_transport *t, struct dp_attempt *a)
{
	if (tn_list_first(&self(t)->large, struct dp_attempt, t_link) == a)
		self(t)->turn = 0;
	tn_list_unlink(&a->t_link);
	struct dp_result res = {
		.status = TN_CANCELED, .phase = TN_PHASE_POLL, .reason = TN_REASON_CANCELED,
		.nothing_left = a->t_done == 0, .fenced = true, .bytes = a->t_done,
	};
	count_copies(self(t), a->op, TN_RESULT_FAILURE, dp_worker_now(t->worker) - a->start_ns, 1);
	dp_attempt_done(t->worker, a, &res);
}

static uint64_t shm_next_timer_ns(const struct dp_transport *t)
{
	(void)t;
	return UINT64_MAX;
}

static bool shm_busy(const struct dp_transport *t)
{
	const struct shm *s = (const struct shm *)(const void *)t; /* base is its first member */
	return !tn_list_empty(&s->small) || !tn_list_empty(&s->large);
}

const struct dp_transport_ops dp_shm_ops = {
	.kind = TN_TRANSPORT_SHM,
	.create = shm_create,
	.destroy = shm_destroy,
	.reach = shm_reach,
	.submit = shm_submit,
	.progress = shm_progress,
	.cancel = shm_cancel,
	.next_timer_ns = shm_next_timer_ns,
	.busy = shm_busy,
};
