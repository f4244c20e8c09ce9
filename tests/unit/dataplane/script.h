/* SPDX-License-Identifier: Apache-2.0
 * Two scripted transports (kinds rdma and tcp) that say and do what a test tells them, through the same operations
 * table as the real ones. Test code only. */
#ifndef TEST_DATAPLANE_SCRIPT_H
#define TEST_DATAPLANE_SCRIPT_H

#include "tests/unit/dataplane/rig.h"

enum script_do {
	SCRIPT_OK = 0,      /* accept, complete in the next progress() */
	SCRIPT_FAIL,        /* accept, fail with `result` in the next progress() */
	SCRIPT_REFUSE,      /* submit() fails with `result` */
	SCRIPT_FULL,        /* submit() says AGAIN */
	SCRIPT_HANG         /* accept and never end by itself */
};

struct script_step { enum script_do what; struct dp_result result; };

struct script {
	struct dp_transport base;
	struct script_step steps[16];
	uint32_t step_cnt, next;        /* beyond the last step: `beyond` */
	struct script_step beyond;      /* SCRIPT_OK unless a test says otherwise */
	enum dp_reach reach;
	bool cancel_late;               /* cancel() does not end the attempt; script_let_go() does */
	struct dp_attempt *held[64];
	struct script_step held_step[64];
	uint32_t held_cnt;
	uint32_t submits, cancels, peer_sets, notes, probes;
	enum dp_reach probe;            /* what probe() says: READY unless a test says otherwise */
	struct dp_request *note;        /* the last note_send(), until script ends it */
	uint64_t note_seq;
	tn_status note_status;          /* what note_send() returns */
	bool seg_busy, fence_done;
	uint32_t fences, drains, lanes;
	bool serving;                   /* operations of peers are under way: drain() says false */
};

static struct script script_rdma, script_tcp;

static inline struct script *script_of(const struct dp_transport *t)
{
	return t->ops->kind == TN_TRANSPORT_RDMA ? &script_rdma : &script_tcp;
}

static const struct dp_transport_ops script_rdma_ops, script_tcp_ops;

static tn_status script_create(struct dp_worker *w, const struct dp_transport_ops *ops, struct script *s,
			       struct dp_transport **out)
{
	*s = (struct script){ .base = { .ops = ops, .worker = w, .up = true }, .fence_done = true };
	*out = &s->base;
	return TN_OK;
}
static tn_status script_create_rdma(struct dp_worker *w, struct dp_transport **out)
{
	return script_create(w, &script_rdma_ops, &script_rdma, out);
}
static tn_status script_create_tcp(struct dp_worker *w, struct dp_transport **out)
{
	return script_create(w, &script_tcp_ops, &script_tcp, out);
}
static void script_destroy(struct dp_transport *t) { (void)t; }
static enum dp_reach script_reach(const struct dp_transport *t, const struct dp_remote *r)
{
	return r->local && t->ops->kind != TN_TRANSPORT_TCP ? DP_REACH_NO : script_of(t)->reach;
}

static enum dp_reach script_probe(struct dp_transport *t, uint32_t peer_index, uint64_t until_ns)
{
	(void)peer_index;
	(void)until_ns;
	script_of(t)->probes++;
	return script_of(t)->probe;
}

static tn_status script_submit(struct dp_transport *t, struct dp_attempt *a, struct dp_result *result)
{
	struct script *s = script_of(t);
	struct script_step step = s->beyond;
	if (s->next < s->step_cnt)
		step = s->steps[s->next++];
	s->submits++;
	if (step.what == SCRIPT_FULL)
		return TN_AGAIN;
	if (step.what == SCRIPT_REFUSE) {
		*result = step.result;
		return step.result.status;
	}
	RIG_FATAL(s->held_cnt < TN_ARRAY_LEN(s->held));
	s->held[s->held_cnt] = a;
	s->held_step[s->held_cnt++] = step;
	return TN_OK;
}

static void script_end(struct script *s, uint32_t i, const struct dp_result *res)
{
	struct dp_attempt *a = s->held[i];
	s->held_cnt--;
	memmove(&s->held[i], &s->held[i + 1], (s->held_cnt - i) * sizeof s->held[0]);
	memmove(&s->held_step[i], &s->held_step[i + 1], (s->held_cnt - i) * sizeof s->held_step[0]);
	dp_attempt_done(s->base.worker, a, res);
}

static uint32_t script_progress(struct dp_transport *t, uint64_t now_ns, uint32_t budget)
{
	(void)now_ns;
	(void)budget;
	struct script *s = script_of(t);
	uint32_t done = 0;
	for (uint32_t i = 0; i < s->held_cnt;) {
		struct script_step step = s->held_step[i];
		if (step.what == SCRIPT_HANG) {
			i++;
			continue;
		}
		struct dp_result ok = { .status = TN_OK, .bytes = s->held[i]->bytes };
		script_end(s, i, step.what == SCRIPT_OK ? &ok : &step.result);
		done++;
	}
	return done;
}

static void script_cancel(struct dp_transport *t, struct dp_attempt *a)
{
	struct script *s = script_of(t);
	s->cancels++;
	for (uint32_t i = 0; i < s->held_cnt && !s->cancel_late; i++) {
		if (s->held[i] != a)
			continue;
		struct dp_result res = { .status = TN_CANCELED, .phase = TN_PHASE_POLL, .reason = TN_REASON_CANCELED, .fenced = true };
		script_end(s, i, &res);
		return;
	}
}

/* What a late cancel still holds ends now. */
static inline void script_let_go(struct script *s)
{
	struct dp_result res = { .status = TN_CANCELED, .phase = TN_PHASE_POLL, .reason = TN_REASON_CANCELED };
	while (s->held_cnt > 0)
		script_end(s, 0, &res);
}

static uint64_t script_next_timer(const struct dp_transport *t)
{
	(void)t;
	return UINT64_MAX;
}
static bool script_busy(const struct dp_transport *t)
{
	(void)t;
	return false;
}
static void script_peer_set(struct dp_transport *t, const struct dp_peer *p)
{
	(void)p;
	script_of(t)->peer_sets++;
}
static bool script_segment_busy(const struct dp_transport *t, tn_handle h)
{
	(void)h;
	return script_of(t)->seg_busy;
}
static bool script_fence(struct dp_transport *t, uint32_t p, const struct tn_id128 *keep)
{
	(void)p;
	(void)keep;
	script_of(t)->fences++;
	return script_of(t)->fence_done;
}
static bool script_drain(struct dp_transport *t)
{
	script_of(t)->drains++;
	return !script_of(t)->serving;
}
static void script_lane_adopt(struct dp_transport *t, int fd, struct dp_hello *hello)
{
	script_of(t)->lanes++;
	close(fd);
	free(hello);
}
static tn_status script_note(struct dp_transport *t, struct dp_request *r, const struct dp_remote *remote, uint64_t seq)
{
	struct script *s = script_of(t);
	(void)remote;
	if (s->note_status != TN_OK)
		return s->note_status;
	s->notes++;
	s->note = r;
	s->note_seq = seq;
	return TN_OK;
}

#define SCRIPT_OPS(k, fn) \
	{ .kind = k, .create = fn, .destroy = script_destroy, .reach = script_reach, .probe = script_probe, \
	  .submit = script_submit, \
	  .progress = script_progress, .cancel = script_cancel, .next_timer_ns = script_next_timer, .busy = script_busy, \
	  .peer_set = script_peer_set, .segment_busy = script_segment_busy, .fence = script_fence, .note_send = script_note, \
	  .drain = script_drain, .lane_adopt = script_lane_adopt }
static const struct dp_transport_ops script_rdma_ops = SCRIPT_OPS(TN_TRANSPORT_RDMA, script_create_rdma);
static const struct dp_transport_ops script_tcp_ops = SCRIPT_OPS(TN_TRANSPORT_TCP, script_create_tcp);

static const struct dp_transport_ops *const script_both[] = { &dp_shm_ops, &script_rdma_ops, &script_tcp_ops, NULL };
static const struct dp_transport_ops *const script_only_tcp[] = { &dp_shm_ops, &script_tcp_ops, NULL };

/* An opened segment of peer 3 under handle 2/1, same buffers as the rig's local one. */
static inline struct dp_remote *script_remote(struct rig *g, uint64_t generation)
{
	struct dp_remote *r = rig_remote(g->segment, tn_handle_make(2, 1));
	r->local = false;
	r->segment = 0;
	r->peer_index = 3;
	r->generation = generation;
	r->session.b[0] = 42;
	return r;
}

static inline struct dp_remote *script_open_remote(struct rig *g, uint64_t generation)
{
	struct dp_remote *r = script_remote(g, generation);
	RIG_FATAL(rig_do(g, (struct dp_cmd){ .kind = DP_CMD_REMOTE_SET, .ptr = r, .fd = -1 }) == TN_OK);
	return r;
}

static inline struct shr_sqe_shm script_sqe(uint8_t op, uint64_t token, uint64_t off, uint64_t len)
{
	struct shr_sqe_shm e = rig_sqe(op, token, off, off, len);
	e.segment = tn_handle_make(2, 1);
	return e;
}

static inline void script_set(struct script *s, const struct script_step *steps, uint32_t cnt)
{
	memcpy(s->steps, steps, cnt * sizeof *steps);
	s->step_cnt = cnt;
	s->next = 0;
}

#endif
