/* SPDX-License-Identifier: Apache-2.0
 * Submission and completion rings: batches, clamped peer indices, reservations, index wrap, and both rings at once
 * between two threads. */
#include "shm-ring/spsc.h"

#include <pthread.h>
#include <sched.h>

#include "common/clock.h"
#include "tests/unit/shm-ring/fixture.h"

static void batch_is_invisible_until_published(void)
{
	struct fx_qp q;
	fx_qp_make(&q, 8, 0);
	struct shr_sq_prod p;
	struct shr_sq_cons c;
	shr_sq_prod_init(&p, &q.joiner);
	shr_sq_cons_init(&c, &q.creator);
	uint32_t n = 99;
	CU_ASSERT_EQUAL(shr_sq_space(&p, 1, &n), TN_OK);
	CU_ASSERT_EQUAL(n, 8);
	for (uint64_t i = 0; i < 3; i++)
		shr_sq_put(&p, &(struct shr_sqe_shm){ .user_data = i, .length = 100 + i });
	CU_ASSERT_FALSE(shr_sq_pending(&c));
	CU_ASSERT_EQUAL(shr_sq_peek(&c, 1, &n), TN_OK);
	CU_ASSERT_EQUAL(n, 0);
	CU_ASSERT_EQUAL(shr_sq_publish(&p), 3);
	CU_ASSERT_EQUAL(shr_sq_publish(&p), 0);
	CU_ASSERT(shr_sq_pending(&c));
	CU_ASSERT_EQUAL(shr_sq_peek(&c, 1, &n), TN_OK);
	CU_ASSERT_EQUAL(n, 3);
	struct shr_sqe_shm e;
	for (uint32_t i = 0; i < 3; i++) {
		shr_sq_prefetch(&c, i);
		shr_sq_copy(&c, i, &e);
		CU_ASSERT(e.user_data == i && e.length == 100 + i);
	}
	CU_ASSERT_EQUAL(shr_sq_space(&p, 8, &n), TN_OK);
	CU_ASSERT_EQUAL(n, 5); /* not released yet */
	shr_sq_release(&c, 3);
	CU_ASSERT_EQUAL(shr_sq_space(&p, 8, &n), TN_OK);
	CU_ASSERT_EQUAL(n, 8);
	fx_qp_free(&q);
}

static void sq_garbage_tail_is_refused(void)
{
	static const uint32_t bad[] = { 9, 10, 1000, 0x80000000u, UINT32_MAX, UINT32_MAX - 7 };
	struct fx_qp q;
	fx_qp_make(&q, 8, 0);
	for (size_t i = 0; i < TN_ARRAY_LEN(bad); i++) {
		struct shr_sq_cons c;
		uint32_t n = 55;
		shr_sq_cons_init(&c, &q.creator);
		q.joiner.qp->sq_tail.value = bad[i];
		CU_ASSERT(shr_sq_pending(&c));
		CU_ASSERT_EQUAL(shr_sq_peek(&c, 1, &n), TN_CLIENT_BROKEN);
		CU_ASSERT_EQUAL(n, 55);
	}
	/* An index that steps back below what was already taken is out of range too. */
	struct shr_sq_cons c;
	uint32_t n;
	shr_sq_cons_init(&c, &q.creator);
	q.joiner.qp->sq_tail.value = 5;
	CU_ASSERT_EQUAL(shr_sq_peek(&c, 1, &n), TN_OK);
	shr_sq_release(&c, 5);
	q.joiner.qp->sq_tail.value = 4;
	CU_ASSERT_EQUAL(shr_sq_peek(&c, 1, &n), TN_CLIENT_BROKEN);
	fx_qp_free(&q);
}

static void peers_of_the_data_plane_clamp_too(void)
{
	struct fx_qp q;
	fx_qp_make(&q, 8, 0);
	struct shr_sq_prod p;
	struct shr_cq_cons cc;
	uint32_t n;
	shr_sq_prod_init(&p, &q.joiner);
	shr_cq_cons_init(&cc, &q.joiner);
	for (int i = 0; i < 8; i++)
		shr_sq_put(&p, &(struct shr_sqe_shm){ .opcode = SHR_OP_CANCEL });
	q.creator.qp->sq_head.value = 9;
	CU_ASSERT_EQUAL(shr_sq_space(&p, 1, &n), TN_CLIENT_BROKEN);
	q.creator.qp->cq_tail.value = 17;
	CU_ASSERT_EQUAL(shr_cq_peek(&cc, 1, &n), TN_CLIENT_BROKEN);
	q.creator.qp->cq_tail.value = 16;
	CU_ASSERT_EQUAL(shr_cq_peek(&cc, 1, &n), TN_OK);
	CU_ASSERT_EQUAL(n, 16);
	fx_qp_free(&q);
}

static void completions_have_their_slots(void)
{
	struct fx_qp q;
	fx_qp_make(&q, 8, 0);
	struct shr_cq_prod p;
	struct shr_cq_cons c;
	uint32_t n;
	shr_cq_prod_init(&p, &q.creator);
	shr_cq_cons_init(&c, &q.joiner);
	for (int i = 0; i < 8; i++)
		CU_ASSERT_EQUAL(shr_cq_reserve(&p, 2), TN_OK);
	CU_ASSERT_EQUAL(shr_cq_reserve(&p, 1), TN_AGAIN);
	for (uint64_t i = 0; i < 8; i++) {
		shr_cq_put(&p, &(struct shr_cqe_shm){ .token = i });
		shr_cq_unreserve(&p, 1);
	}
	CU_ASSERT_EQUAL(p.reserved, 0);
	CU_ASSERT_EQUAL(shr_cq_reserve(&p, 9), TN_AGAIN);
	CU_ASSERT_EQUAL(shr_cq_reserve(&p, 8), TN_OK);
	shr_cq_unreserve(&p, 8);
	CU_ASSERT_EQUAL(shr_cq_publish(&p), 8);
	CU_ASSERT(shr_cq_pending(&c));
	CU_ASSERT_EQUAL(shr_cq_peek(&c, 1, &n), TN_OK);
	CU_ASSERT_EQUAL(n, 8);
	struct shr_cqe_shm e;
	shr_cq_copy(&c, 7, &e);
	CU_ASSERT_EQUAL(e.token, 7);
	shr_cq_release(&c, 8);
	CU_ASSERT_FALSE(shr_cq_pending(&c));
	CU_ASSERT_EQUAL(shr_cq_reserve(&p, 16), TN_OK);
	fx_qp_free(&q);
}

static void cq_garbage_head_is_refused(void)
{
	struct fx_qp q;
	fx_qp_make(&q, 8, 0);
	struct shr_cq_prod p;
	shr_cq_prod_init(&p, &q.creator);
	CU_ASSERT_EQUAL(shr_cq_reserve(&p, 10), TN_OK);
	for (int i = 0; i < 10; i++)
		shr_cq_put(&p, &(struct shr_cqe_shm){ .token = 1 });
	shr_cq_publish(&p);
	CU_ASSERT_EQUAL(shr_cq_reserve(&p, 6), TN_OK);
	static const uint32_t bad[] = { 11, 12, 100, UINT32_MAX, 0x80000000u };
	for (size_t i = 0; i < TN_ARRAY_LEN(bad); i++) {
		q.joiner.qp->cq_head.value = bad[i];
		CU_ASSERT_EQUAL(shr_cq_reserve(&p, 1), TN_CLIENT_BROKEN);
	}
	q.joiner.qp->cq_head.value = 4;
	CU_ASSERT_EQUAL(shr_cq_reserve(&p, 4), TN_OK);
	q.joiner.qp->cq_head.value = 3; /* backwards */
	CU_ASSERT_EQUAL(shr_cq_reserve(&p, 1), TN_CLIENT_BROKEN);
	/* Written but not published: nobody can have consumed it. */
	shr_cq_put(&p, &(struct shr_cqe_shm){ .token = 2 });
	q.joiner.qp->cq_head.value = 11;
	CU_ASSERT_EQUAL(shr_cq_reserve(&p, 10), TN_CLIENT_BROKEN);
	fx_qp_free(&q);
}

/* Application: submits numbered requests, checks that each completes once, in order of completion. Both rings wrap
 * their 32-bit indices on the way. The plain arrays stand for the payload that the indices announce and hand back; the
 * thread sanitizer sees a race on them when any of the four orderings is missing. */
#define REQUESTS 200000u
#define DUO_SQ 32u
#define DUO_CQ (2 * DUO_SQ)
struct duo {
	uint64_t asked[DUO_SQ], answered[DUO_CQ];
	struct fx_qp q;
	struct shr_sq_cons sc;
	struct shr_cq_prod cp;
	tn_a32 stop;
	tn_status worker_status;
	uint64_t worker_wrong;
};

static void *worker(void *arg)
{
	struct duo *d = arg;
	uint64_t next = 0;
	while (tn_load_relaxed32(&d->stop) == 0) {
		uint32_t n;
		tn_status s = shr_sq_peek(&d->sc, 1, &n);
		if (s != TN_OK) {
			d->worker_status = s;
			break;
		}
		uint32_t took = 0;
		for (; took < n && (s = shr_cq_reserve(&d->cp, 2)) == TN_OK; took++) {
			struct shr_sqe_shm e;
			shr_sq_copy(&d->sc, took, &e);
			d->worker_wrong += e.user_data != next || e.length != ~next || e.trace_lo != next * 3;
			d->worker_wrong += d->asked[(d->sc.head + took) % DUO_SQ] != next;
			d->answered[d->cp.tail % DUO_CQ] = next;
			next++;
			shr_cq_put(&d->cp, &(struct shr_cqe_shm){ .user_data = e.user_data, .bytes = e.length });
			shr_cq_unreserve(&d->cp, 1);
		}
		if (took != 0) {
			shr_sq_release(&d->sc, took);
			shr_cq_publish(&d->cp);
		} else {
			sched_yield();
		}
	}
	return NULL;
}

static void start_near_wrap(struct duo *d, struct shr_sq_prod *sp, struct shr_cq_cons *cc)
{
	uint32_t at = UINT32_MAX - 1000;
	struct shr_qp_shm *qp = d->q.creator.qp;
	shr_sq_prod_init(sp, &d->q.joiner);
	shr_cq_cons_init(cc, &d->q.joiner);
	shr_sq_cons_init(&d->sc, &d->q.creator);
	shr_cq_prod_init(&d->cp, &d->q.creator);
	qp->sq_tail.value = qp->sq_head.value = qp->cq_tail.value = qp->cq_head.value = at;
	sp->tail = sp->published = sp->head_seen = at;
	d->sc.head = d->sc.tail_seen = at;
	d->cp.tail = d->cp.published = d->cp.head_seen = at;
	cc->head = cc->tail_seen = at;
}

static void two_threads(void)
{
	struct duo d = { .worker_status = TN_OK };
	struct shr_sq_prod sp;
	struct shr_cq_cons cc;
	fx_qp_make(&d.q, DUO_SQ, 0);
	start_near_wrap(&d, &sp, &cc);
	pthread_t t;
	CU_ASSERT_EQUAL_FATAL(pthread_create(&t, NULL, worker, &d), 0);
	uint64_t sent = 0, got = 0, wrong = 0, deadline = tn_now_ns() + 20 * TN_NS_PER_S;
	while (got < REQUESTS && tn_now_ns() < deadline) {
		uint32_t n = 0, room = 0;
		CU_ASSERT_EQUAL_FATAL(shr_cq_peek(&cc, 1, &n), TN_OK);
		for (uint32_t i = 0; i < n; i++) {
			struct shr_cqe_shm e;
			shr_cq_copy(&cc, i, &e);
			wrong += e.user_data != got || e.bytes != ~got || d.answered[(cc.head + i) % DUO_CQ] != got;
			got++;
		}
		if (n != 0)
			shr_cq_release(&cc, n);
		CU_ASSERT_EQUAL_FATAL(shr_sq_space(&sp, 1, &room), TN_OK);
		uint32_t outstanding = (uint32_t)(sent - got), batch = room;
		for (; batch != 0 && outstanding < DUO_SQ && sent < REQUESTS; batch--, outstanding++, sent++) {
			d.asked[sp.tail % DUO_SQ] = sent;
			shr_sq_put(&sp, &(struct shr_sqe_shm){ .user_data = sent, .length = ~sent, .trace_lo = sent * 3 });
		}
		if (shr_sq_publish(&sp) == 0 && n == 0)
			sched_yield();
	}
	tn_store_relaxed32(&d.stop, 1);
	pthread_join(t, NULL);
	CU_ASSERT_EQUAL(got, REQUESTS);
	CU_ASSERT_EQUAL(wrong, 0);
	CU_ASSERT_EQUAL(d.worker_wrong, 0);
	CU_ASSERT_EQUAL(d.worker_status, TN_OK);
	fx_qp_free(&d.q);
}

/* One ring alone: nothing but its own head tells the producer that a slot is free again. */
static void *drain_sq(void *arg)
{
	struct duo *d = arg;
	for (uint64_t next = 0; next < REQUESTS && tn_load_relaxed32(&d->stop) == 0;) {
		uint32_t n = 0;
		if (shr_sq_peek(&d->sc, 1, &n) != TN_OK)
			break;
		for (uint32_t i = 0; i < n; i++, next++)
			d->worker_wrong += d->asked[(d->sc.head + i) % DUO_SQ] != next;
		if (n != 0)
			shr_sq_release(&d->sc, n);
		else
			sched_yield();
	}
	return NULL;
}

static void submission_ring_alone(void)
{
	struct duo d = { .worker_status = TN_OK };
	struct shr_sq_prod sp;
	struct shr_cq_cons cc;
	fx_qp_make(&d.q, DUO_SQ, 0);
	start_near_wrap(&d, &sp, &cc);
	pthread_t t;
	CU_ASSERT_EQUAL_FATAL(pthread_create(&t, NULL, drain_sq, &d), 0);
	uint64_t sent = 0, deadline = tn_now_ns() + 20 * TN_NS_PER_S;
	while (sent < REQUESTS && tn_now_ns() < deadline) {
		uint32_t room = 0;
		CU_ASSERT_EQUAL_FATAL(shr_sq_space(&sp, 1, &room), TN_OK);
		for (; room != 0 && sent < REQUESTS; room--, sent++) {
			d.asked[sp.tail % DUO_SQ] = sent;
			shr_sq_put(&sp, &(struct shr_sqe_shm){ .user_data = sent });
		}
		if (shr_sq_publish(&sp) == 0)
			sched_yield();
	}
	if (sent != REQUESTS)
		tn_store_relaxed32(&d.stop, 1);
	pthread_join(t, NULL);
	CU_ASSERT_EQUAL(sent, REQUESTS);
	CU_ASSERT_EQUAL(d.worker_wrong, 0);
	fx_qp_free(&d.q);
}

static void *fill_cq(void *arg)
{
	struct duo *d = arg;
	for (uint64_t next = 0; next < REQUESTS && tn_load_relaxed32(&d->stop) == 0;) {
		while (next < REQUESTS && shr_cq_reserve(&d->cp, 1) == TN_OK) {
			d->answered[d->cp.tail % DUO_CQ] = next++;
			shr_cq_put(&d->cp, &(struct shr_cqe_shm){ .token = next });
		}
		if (shr_cq_publish(&d->cp) == 0)
			sched_yield();
	}
	return NULL;
}

static void completion_ring_alone(void)
{
	struct duo d = { .worker_status = TN_OK };
	struct shr_sq_prod sp;
	struct shr_cq_cons cc;
	fx_qp_make(&d.q, DUO_SQ, 0);
	start_near_wrap(&d, &sp, &cc);
	pthread_t t;
	CU_ASSERT_EQUAL_FATAL(pthread_create(&t, NULL, fill_cq, &d), 0);
	uint64_t got = 0, wrong = 0, deadline = tn_now_ns() + 20 * TN_NS_PER_S;
	while (got < REQUESTS && tn_now_ns() < deadline) {
		uint32_t n = 0;
		CU_ASSERT_EQUAL_FATAL(shr_cq_peek(&cc, 1, &n), TN_OK);
		for (uint32_t i = 0; i < n; i++, got++)
			wrong += d.answered[(cc.head + i) % DUO_CQ] != got;
		if (n != 0)
			shr_cq_release(&cc, n);
		else
			sched_yield();
	}
	tn_store_relaxed32(&d.stop, 1);
	pthread_join(t, NULL);
	CU_ASSERT_EQUAL(got, REQUESTS);
	CU_ASSERT_EQUAL(wrong, 0);
	fx_qp_free(&d.q);
}

/* A client that writes random numbers into every index line: the worker's side must only ever see a clean refusal or
 * entries inside the ring (the address sanitizer watches the copies). */
static void *scribbler(void *arg)
{
	struct duo *d = arg;
	struct shr_qp_shm *qp = d->q.joiner.qp;
	uint32_t x = 1;
	while (tn_load_relaxed32(&d->stop) == 0) {
		x = x * 1664525u + 1013904223u;
		tn_store_release32(&qp->sq_tail.value, x >> (x & 31));
		tn_store_release32(&qp->cq_head.value, x >> (x >> 5 & 31));
		shr_words_store(d->q.joiner.sq, &d->q.lay, 2);
	}
	return NULL;
}

static void scribbled_indices_stay_inside(void)
{
	struct duo d = { .worker_status = TN_OK };
	fx_qp_make(&d.q, 8, 0);
	pthread_t t;
	CU_ASSERT_EQUAL_FATAL(pthread_create(&t, NULL, scribbler, &d), 0);
	uint64_t refused = 0, taken = 0, until = tn_now_ns() + 500 * TN_NS_PER_MS;
	while (tn_now_ns() < until) {
		uint32_t n;
		shr_sq_cons_init(&d.sc, &d.q.creator);
		shr_cq_prod_init(&d.cp, &d.q.creator);
		for (int i = 0; i < 100; i++) {
			if (shr_sq_peek(&d.sc, 8, &n) != TN_OK) {
				refused++;
				break;
			}
			CU_ASSERT_FATAL(n <= 8);
			for (uint32_t k = 0; k < n; k++) {
				struct shr_sqe_shm e;
				shr_sq_copy(&d.sc, k, &e);
				taken++;
			}
			shr_sq_release(&d.sc, n);
			if (shr_cq_reserve(&d.cp, 1) == TN_OK)
				shr_cq_put(&d.cp, &(struct shr_cqe_shm){ .token = 1 });
			CU_ASSERT_FATAL(d.cp.reserved <= 1);
		}
	}
	tn_store_relaxed32(&d.stop, 1);
	pthread_join(t, NULL);
	CU_ASSERT(refused > 0);
	printf("(refused %llu, taken %llu) ", (unsigned long long)refused, (unsigned long long)taken);
	fx_qp_free(&d.q);
}

TN_TEST_MAIN("shm-ring/spsc",
	{ "a batch is invisible until published, its slots taken until released [R1] [R2]", batch_is_invisible_until_published },
	{ "a tail out of range breaks the client", sq_garbage_tail_is_refused },
	{ "the application clamps the worker's indices", peers_of_the_data_plane_clamp_too },
	{ "every completion has its reserved slot [R3] [R4]", completions_have_their_slots },
	{ "a head out of range breaks the client", cq_garbage_head_is_refused },
	{ "two threads, both rings, across the wrap [R1] [R2] [R3] [R4]", two_threads },
	{ "the submission ring alone [R1] [R2]", submission_ring_alone },
	{ "the completion ring alone [R3] [R4]", completion_ring_alone },
	{ "a scribbling client never leads us outside the ring", scribbled_indices_stay_inside })
