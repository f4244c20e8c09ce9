/* SPDX-License-Identifier: Apache-2.0
 * The worker end to end, in one thread and virtual time, over a real queue-pair region and the real shm transport:
 * data, merging, cancel, deadlines, back pressure, a scribbled ring, removal of what is in use. */
#include "tests/unit/dataplane/rig.h"

static uint64_t cell(const struct rig *g, uint32_t i) { return tn_load_relaxed64(&g->w->stats.m.cells[i]); }
#define COUNT(g, at) (TENT_METRICS ? cell(g, (at).cell) : 0)
#define IF_METRICS(n) (TENT_METRICS ? (n) : 0)

#define MANY 16u

static void test_write_then_read(void)
{
	struct rig g;
	rig_open(&g, NULL, 0, NULL);
	for (uint32_t i = 0; i < RIG_BYTES; i++)
		g.local.base[i] = (uint8_t)(i * 7 + i / 251);
	static const uint64_t sizes[] = { 1, 7, 4096, 65537, 262144, 262145, 2000000, 3000000 };
	uint64_t token = 1;
	for (size_t i = 0; i < TN_ARRAY_LEN(sizes); i++) {
		struct shr_cqe_shm c = rig_run(&g, rig_sqe(SHR_OP_WRITE, token++, 13, 4097, sizes[i]));
		CU_ASSERT_EQUAL(c.status, TN_OK);
		CU_ASSERT_EQUAL(c.bytes, sizes[i]);
		CU_ASSERT_EQUAL(c.transport, TN_TRANSPORT_SHM);
		CU_ASSERT_EQUAL(c.attempts, 1);
		CU_ASSERT_EQUAL(c.kind, SHR_CQE_TERMINAL);
		CU_ASSERT_EQUAL(memcmp(g.target.base + 4097, g.local.base + 13, sizes[i]), 0);
		CU_ASSERT_EQUAL(g.target.base[4096], 0);
		memset(g.local.base + 13, 0, sizes[i]);
		c = rig_run(&g, rig_sqe(SHR_OP_READ, token++, 13, 4097, sizes[i]));
		CU_ASSERT_EQUAL(c.status, TN_OK);
		CU_ASSERT_EQUAL(memcmp(g.target.base + 4097, g.local.base + 13, sizes[i]), 0);
	}
	struct dp_load_sum load = { 0 }, other = { 0 };
	uint64_t moved = 0, timed = 0;
	for (size_t i = 0; i < TN_ARRAY_LEN(sizes); i++)
		moved += sizes[i];
	dp_worker_load_add(g.w, UINT32_MAX, &load);
	dp_worker_load_add(g.w, 0, &other);
	CU_ASSERT_EQUAL(load.in_cnt, 2 * TN_ARRAY_LEN(sizes));
	CU_ASSERT_EQUAL(load.out_cnt, load.in_cnt);
	CU_ASSERT_EQUAL(load.in_bytes, 2 * moved);
	CU_ASSERT_TRUE(load.moved[TN_OP_READ] == moved && load.moved[TN_OP_WRITE] == moved);
	CU_ASSERT_TRUE(load.failed_cnt == 0 && load.failure_ns == 0 && load.lost_bytes == 0);
	for (unsigned b = 0; b <= TN_BUCKETS_LATENCY_CNT; b++)
		timed += load.latency[b];
	CU_ASSERT_EQUAL(timed, load.out_cnt);
	CU_ASSERT_EQUAL(other.in_cnt, 0);
	CU_ASSERT_EQUAL(COUNT(&g, TN_C1(LOGICAL_REQUESTS_STARTED_TOTAL, TN_OP_WRITE)), IF_METRICS(TN_ARRAY_LEN(sizes)));
	CU_ASSERT_EQUAL(COUNT(&g, TN_C2(SHM_COPIES_TOTAL, TN_OP_READ, TN_RESULT_SUCCESS)), IF_METRICS(TN_ARRAY_LEN(sizes)));
	uint64_t ended_ns = g.now;
	rig_advance(&g, 2 * RIG_MS); /* published; nothing moved in this one */
	uint64_t shm = COUNT(&g, TN_G1(WORKER_LAST_PROGRESS_TIMESTAMP_SECONDS, TN_WORKER_KIND_SHM));
	CU_ASSERT_TRUE(shm == 0 ? !TENT_METRICS : shm > RIG_T0 && shm <= ended_ns);
	CU_ASSERT_EQUAL(COUNT(&g, TN_G1(WORKER_LAST_PROGRESS_TIMESTAMP_SECONDS, TN_WORKER_KIND_TCP)), 0);
	rig_close(&g);
}

/* 32 neighbours of 4 KiB in one drain batch become one owner; completions stay one per request. */
static void test_merge(void)
{
	struct rig g;
	rig_open(&g, NULL, 0, NULL);
	struct shr_sqe_shm sqe[32];
	for (uint32_t i = 0; i < 32; i++)
		sqe[i] = rig_sqe(SHR_OP_WRITE, i + 1, i * 4096, i * 4096, 4096);
	sqe[31].remote_off += 4096; /* not contiguous: an owner of its own */
	rig_submit_on(&g.q, sqe, 32);
	rig_steps(&g, 2);
	struct shr_cqe_shm c;
	for (uint32_t i = 0; i < 32; i++) {
		CU_ASSERT_TRUE_FATAL(rig_poll(&g, &c));
		CU_ASSERT_EQUAL(c.status, TN_OK);
		CU_ASSERT_EQUAL(c.bytes, 4096);
	}
	CU_ASSERT_FALSE(rig_poll(&g, &c));
	CU_ASSERT_EQUAL(COUNT(&g, TN_C2(TRANSPORT_ATTEMPTS_TOTAL, TN_TRANSPORT_SHM, TN_OP_WRITE)), IF_METRICS(2));
	CU_ASSERT_EQUAL(COUNT(&g, TN_C1(LOGICAL_REQUESTS_STARTED_TOTAL, TN_OP_WRITE)), IF_METRICS(32));
	rig_close(&g);
}

/* Everything in the merge key keeps neighbours apart, and so does the end of a buffer. */
static void test_merge_key(void)
{
	struct rig g;
	rig_open(&g, NULL, 0, NULL);
	uint64_t before = COUNT(&g, TN_C2(TRANSPORT_ATTEMPTS_TOTAL, TN_TRANSPORT_SHM, TN_OP_WRITE));
	for (unsigned variant = 0; variant < 9; variant++) {
		struct shr_sqe_shm s[2] = { rig_sqe(SHR_OP_WRITE, 1, 0, 0, 4096), rig_sqe(SHR_OP_WRITE, 2, 4096, 4096, 4096) };
		switch (variant) {
		case 0: break; /* merges */
		case 1: s[1].priority = TN_PRIORITY_LOW; break;
		case 2: s[1].intent = 2; break;
		case 3: s[1].flags = SHR_SQE_AT_MOST_ONCE; break;
		case 4: s[1].hint = TN_TRANSPORT_SHM; break;
		case 5: s[1].batch = 3, s[1].flags = SHR_SQE_BATCH; break;
		case 6: s[1].deadline_ns = g.now + 5000 * RIG_MS; break;
		case 7: s[1].local_off += 1; break;
		case 8:
			s[0].remote_off = RIG_BYTES / 2 - 4096;
			s[1].remote_off = RIG_BYTES / 2;
			break;
		}
		rig_submit_on(&g.q, s, 2);
		rig_steps(&g, 3);
		struct shr_cqe_shm c;
		CU_ASSERT_TRUE(rig_poll(&g, &c) && c.status == TN_OK);
		CU_ASSERT_TRUE(rig_poll(&g, &c) && c.status == TN_OK);
		uint64_t now = COUNT(&g, TN_C2(TRANSPORT_ATTEMPTS_TOTAL, TN_TRANSPORT_SHM, TN_OP_WRITE));
		CU_ASSERT_EQUAL(now - before, IF_METRICS(variant == 0 ? 1u : 2u));
		before = now;
	}
	rig_close(&g);
}

static void test_cancel_running(void)
{
	struct rig g;
	rig_open(&g, NULL, 0, NULL);
	rig_submit(&g, rig_sqe(SHR_OP_WRITE, 5, 0, 0, 4000000));
	rig_steps(&g, 3); /* a few slices are copied */
	struct shr_cqe_shm c;
	CU_ASSERT_FALSE(rig_poll(&g, &c));
	rig_submit(&g, (struct shr_sqe_shm){ .opcode = SHR_OP_CANCEL, .token = 5 });
	rig_submit(&g, (struct shr_sqe_shm){ .opcode = SHR_OP_CANCEL, .token = 77 }); /* nobody */
	rig_steps(&g, 1);
	CU_ASSERT_TRUE_FATAL(rig_poll(&g, &c));
	CU_ASSERT_EQUAL(c.token, 5);
	CU_ASSERT_EQUAL(c.status, TN_CANCELED);
	CU_ASSERT_EQUAL(c.outcome, TN_OUTCOME_CANCELED);
	CU_ASSERT_EQUAL(c.flags, 0); /* shm lets go at once */
	rig_steps(&g, 50);
	CU_ASSERT_FALSE(rig_poll(&g, &c));
	CU_ASSERT_EQUAL(g.target.base[3999999], 0);
	rig_close(&g);
}

/* One of a merged owner's requests is canceled: its completion says memory busy, the release follows with the owner. */
static void test_cancel_merged(void)
{
	struct rig g;
	rig_open(&g, NULL, 0, NULL);
	struct shr_sqe_shm s[3] = { rig_sqe(SHR_OP_WRITE, 1, 0, 0, 700000), rig_sqe(SHR_OP_WRITE, 2, 700000, 700000, 600000),
				    (struct shr_sqe_shm){ .opcode = SHR_OP_CANCEL, .token = 1 } };
	rig_submit_on(&g.q, s, 3);
	rig_steps(&g, 1);
	struct shr_cqe_shm c;
	CU_ASSERT_TRUE_FATAL(rig_poll(&g, &c));
	CU_ASSERT_EQUAL(c.token, 1);
	CU_ASSERT_EQUAL(c.status, TN_CANCELED);
	CU_ASSERT_EQUAL(c.flags, SHR_CQE_MEMORY_BUSY);
	CU_ASSERT_FALSE(rig_poll(&g, &c));
	/* It still holds memory, but its token names whoever has it now. */
	struct shr_sqe_shm again[2] = { rig_sqe(SHR_OP_WRITE, 1, 3000000, 3000000, 100), s[2] };
	rig_submit_on(&g.q, again, 2);
	rig_steps(&g, 1);
	CU_ASSERT_TRUE_FATAL(rig_poll(&g, &c));
	CU_ASSERT(c.token == 1 && c.kind == SHR_CQE_TERMINAL && c.status == TN_CANCELED && c.flags == 0);
	rig_steps(&g, 20);
	bool released = false, completed = false;
	while (rig_poll(&g, &c)) {
		released |= c.kind == SHR_CQE_RELEASE && c.token == 1;
		completed |= c.kind == SHR_CQE_TERMINAL && c.token == 2 && c.status == TN_OK;
	}
	CU_ASSERT_TRUE(released && completed);
	rig_close(&g);
}

/* Each finds its victim among many, in whatever order they come, and once only. */
static void test_cancel_many(void)
{
	struct rig g;
	rig_open(&g, NULL, 0, NULL);
	struct shr_sqe_shm s[2 * MANY];
	for (uint32_t i = 0; i < MANY; i++) {
		s[i] = rig_sqe(SHR_OP_WRITE, i * 64, i * 8192, i * 8192, 4096);
		s[MANY + i] = (struct shr_sqe_shm){ .opcode = SHR_OP_CANCEL, .token = i / 2 * 7 % MANY * 64 }; /* each twice */
	}
	rig_submit_on(&g.q, s, 2 * MANY);
	rig_steps(&g, 1);
	struct shr_cqe_shm c;
	for (uint32_t i = 0; i < MANY / 2; i++) {
		CU_ASSERT_TRUE_FATAL(rig_poll(&g, &c));
		CU_ASSERT(c.token == i * 7 % MANY * 64 && c.status == TN_CANCELED && c.flags == 0);
	}
	rig_steps(&g, 20);
	for (uint32_t i = 0; i < MANY / 2; i++)
		CU_ASSERT(rig_poll(&g, &c) && c.status == TN_OK);
	CU_ASSERT_FALSE(rig_poll(&g, &c));
	rig_close(&g);
}

static void test_deadline(void)
{
	struct rig g;
	rig_open(&g, NULL, 0, NULL);
	struct shr_sqe_shm s = rig_sqe(SHR_OP_WRITE, 1, 0, 0, 4000000);
	s.deadline_ns = g.now + 5000;
	rig_submit(&g, s);
	rig_steps(&g, 4);
	struct shr_cqe_shm c;
	CU_ASSERT_FALSE(rig_poll(&g, &c));
	rig_advance(&g, 2000);
	CU_ASSERT_TRUE_FATAL(rig_poll(&g, &c));
	CU_ASSERT_EQUAL(c.status, TN_TIMEOUT);
	CU_ASSERT_EQUAL(c.outcome, TN_OUTCOME_TIMEOUT);
	CU_ASSERT_EQUAL(c.reason, TN_REASON_TIMEOUT);
	s = rig_sqe(SHR_OP_WRITE, 2, 0, 0, 10);
	s.deadline_ns = 1; /* long gone: accepted, counted as started, over at once */
	c = rig_run(&g, s);
	CU_ASSERT_EQUAL(c.status, TN_TIMEOUT);
	CU_ASSERT_EQUAL(c.phase, TN_PHASE_ADMISSION);
	rig_close(&g);
}

/* Small requests do not wait behind a large one. */
static void test_small_passes_large(void)
{
	struct rig g;
	rig_open(&g, NULL, 0, NULL);
	rig_submit(&g, rig_sqe(SHR_OP_WRITE, 1, 0, 0, 4000000));
	rig_steps(&g, 1);
	struct shr_cqe_shm c = { 0 };
	rig_submit(&g, rig_sqe(SHR_OP_READ, 2, 4000000, 4000000, 4096));
	rig_steps(&g, 1);
	CU_ASSERT_TRUE(rig_poll(&g, &c));
	CU_ASSERT_EQUAL(c.token, 2);
	rig_steps(&g, 40);
	CU_ASSERT_TRUE(rig_poll(&g, &c));
	CU_ASSERT_EQUAL(c.token, 1);
	rig_close(&g);
}

static uint64_t landed(const struct rig *g)
{
	uint64_t cnt = 0;
	while (cnt < RIG_BYTES && g->target.base[cnt] != 0)
		cnt++;
	return cnt;
}

/* Between a small request and its completion no slice of a large one is copied; after each turn of small ones it has one. */
static void test_small_waits_for_one_slice(void)
{
	struct rig g;
	struct shr_cqe_shm c = { 0 };
	uint64_t token = 2;
	rig_open(&g, NULL, 0, NULL);
	memset(g.local.base, 1, RIG_BYTES);
	rig_submit(&g, rig_sqe(SHR_OP_WRITE, 1, 0, 0, 4000000));
	rig_steps(&g, 1);
	for (uint64_t before = landed(&g); before < 4000000; before = landed(&g), token++) {
		CU_ASSERT_TRUE_FATAL(before > 0 && token < 100);
		rig_submit(&g, rig_sqe(SHR_OP_READ, token, 4100000, 4100000, 4096));
		rig_steps(&g, 1);
		CU_ASSERT_TRUE_FATAL(rig_poll(&g, &c) && c.token == token);
		CU_ASSERT_EQUAL(landed(&g), before);
		rig_submit(&g, rig_sqe(SHR_OP_READ, ++token, 4100000, 4100000, 4096));
		rig_steps(&g, 1);
		CU_ASSERT_FALSE(rig_poll(&g, &c) && c.token != 1);
		CU_ASSERT_TRUE(landed(&g) > before);
		rig_steps(&g, 1);
		CU_ASSERT_TRUE(rig_poll(&g, &c) && c.token == token);
		rig_steps(&g, 1); /* the debt of that turn is paid */
	}
	rig_close(&g);
}

/* An application that never takes completions blocks only itself, and loses nothing. */
static void test_back_pressure(void)
{
	struct rig g;
	rig_open(&g, NULL, 0, NULL);
	uint32_t submitted = 0, room;
	for (int i = 0; i < 20; i++) {
		CU_ASSERT_EQUAL_FATAL(shr_sq_space(&g.q.sq, RIG_SQ, &room), TN_OK);
		for (; room > 0; room--)
			rig_submit(&g, rig_sqe(SHR_OP_WRITE, ++submitted, 0, 0, 64));
		rig_steps(&g, 3);
	}
	/* Two slots are reserved for a running request, so up to all slots but one fill with terminal completions. */
	CU_ASSERT(submitted >= RIG_SQ && submitted <= 3 * RIG_SQ);
	uint32_t got = 0;
	struct shr_cqe_shm c;
	for (int i = 0; i < 20; i++) {
		while (rig_poll(&g, &c))
			CU_ASSERT_EQUAL(c.token, ++got);
		rig_steps(&g, 3);
	}
	CU_ASSERT_EQUAL(got, submitted);
	rig_close(&g);
}

static void test_scribbled_ring(void)
{
	struct rig g;
	rig_open(&g, NULL, 0, NULL);
	struct rig_qp other;
	rig_qp_make(&g, &other, 12, RIG_CLIENT + 1);
	rig_submit(&g, rig_sqe(SHR_OP_WRITE, 1, 0, 0, 4000000));
	rig_steps(&g, 2);
	tn_store_release32(&other.view.qp->sq_tail.value, 0xdeadbeef);
	rig_steps(&g, 5);
	CU_ASSERT_EQUAL(g.event_cnt, 1);
	CU_ASSERT_EQUAL(g.events[0].kind, DP_EVT_CLIENT_BROKEN);
	CU_ASSERT_EQUAL(g.events[0].num, RIG_CLIENT + 1);
	struct shr_cqe_shm c = rig_run(&g, rig_sqe(SHR_OP_READ, 2, 0, 0, 4096)); /* nobody else notices */
	CU_ASSERT_EQUAL(c.status, TN_OK);
	CU_ASSERT_EQUAL(rig_do(&g, (struct dp_cmd){ .kind = DP_CMD_CLIENT_DEL, .num = RIG_CLIENT + 1, .fd = -1 }), TN_OK);
	rig_qp_free(&other);
	rig_steps(&g, 40);
	CU_ASSERT_TRUE(rig_poll(&g, &c));
	/* The other index: completions consumed that were never posted. */
	tn_store_release32(&g.q.view.qp->cq_head.value, 12345);
	for (uint32_t i = 0; i < 3 * RIG_SQ && g.event_cnt < 2; i++) {
		rig_submit(&g, rig_sqe(SHR_OP_READ, 3, 0, 0, 4096));
		rig_steps(&g, 1);
	}
	CU_ASSERT_EQUAL_FATAL(g.event_cnt, 2);
	CU_ASSERT_EQUAL(g.events[1].kind, DP_EVT_CLIENT_BROKEN);
	rig_close(&g);
}

/* Removal in the middle of a copy: hidden at once, acknowledged when quiet, work ends CANCELED (memory, remote, queue
 * pair, client) or is finished (segment). */
static void test_removal(void)
{
	for (unsigned kind = DP_CMD_QP_DEL; kind <= DP_CMD_REMOTE_DEL; kind++) {
		if (kind == DP_CMD_MEM_ADD || kind == DP_CMD_SEG_ADD || kind == DP_CMD_REMOTE_SET)
			continue;
		struct rig g;
		rig_open(&g, NULL, 0, NULL);
		rig_submit(&g, rig_sqe(SHR_OP_WRITE, 1, 0, 0, 4000000));
		rig_steps(&g, 2);
		uint64_t num = kind == DP_CMD_QP_DEL ? 11 : kind == DP_CMD_CLIENT_DEL ? RIG_CLIENT : tn_handle_make(1, 1);
		uint64_t id = rig_post(&g, (struct dp_cmd){ .kind = kind, .num = num, .fd = -1 });
		rig_steps(&g, 1);
		struct shr_cqe_shm c = { 0 };
		if (kind == DP_CMD_SEG_DEL) {
			CU_ASSERT_NOT_EQUAL(g.acked, id); /* the copy still runs */
			rig_steps(&g, 40);
			CU_ASSERT_TRUE(rig_poll(&g, &c) && c.status == TN_OK);
		} else {
			CU_ASSERT_TRUE(rig_poll(&g, &c) && c.status == TN_CANCELED && !(c.flags & SHR_CQE_MEMORY_BUSY));
		}
		CU_ASSERT_EQUAL(g.acked, id);
		if (kind != DP_CMD_QP_DEL && kind != DP_CMD_CLIENT_DEL) {
			struct shr_sqe_shm s = rig_sqe(SHR_OP_WRITE, 2, 0, 0, 4096);
			s.deadline_ns = g.now + 20 * RIG_MS;
			rig_submit(&g, s);
			rig_steps(&g, 2);
			rig_advance(&g, 30 * RIG_MS); /* a withdrawn segment asks for a newer descriptor and waits */
			CU_ASSERT_TRUE_FATAL(rig_poll(&g, &c));
			CU_ASSERT_EQUAL(c.status, kind == DP_CMD_SEG_DEL ? TN_TIMEOUT : TN_STALE);
			CU_ASSERT_EQUAL(c.flags, kind == DP_CMD_SEG_DEL ? 0 : SHR_CQE_REFUSED);
		}
		/* Asking again for what is gone is fine. */
		CU_ASSERT_EQUAL(rig_do(&g, (struct dp_cmd){ .kind = kind, .num = num, .fd = -1 }), TN_OK);
		rig_close(&g);
	}
}

static void test_policy_exhausted(void)
{
	static const char *const sets[] = { "policies=[{\"name\":\"p\",\"transports\":[\"rdma\"]}]" };
	struct rig g;
	rig_open(&g, sets, 1, NULL);
	struct shr_cqe_shm c = rig_run(&g, rig_sqe(SHR_OP_WRITE, 1, 0, 0, 4096)); /* rdma cannot serve this host */
	CU_ASSERT_EQUAL(c.status, TN_UNSUPPORTED);
	CU_ASSERT_EQUAL(c.phase, TN_PHASE_SELECTION);
	CU_ASSERT_EQUAL(c.outcome, TN_OUTCOME_FAILED);
	rig_close(&g);
}

/* Falling asleep arms doorbell and mailbox, and is called off by whatever came just before. */
static void test_sleep(void)
{
	struct rig g;
	uint64_t until_ns = 0;
	rig_open(&g, NULL, 0, NULL);
	rig_steps(&g, 2);
	CU_ASSERT_TRUE_FATAL(dp_worker_sleep_begin(g.w, &until_ns));
	CU_ASSERT(until_ns > g.now && until_ns <= g.now + 100 * RIG_MS);
	CU_ASSERT_EQUAL(tn_load_relaxed32(&g.w->armed), 1);
	CU_ASSERT_TRUE(shr_doorbell_is_armed(&g.q.view.qp->sq_armed.value));
	uint64_t idle_ns = g.w->idle_ns, slept_ns = until_ns - g.now;
	g.now = until_ns;
	dp_worker_sleep_end(g.w, until_ns, 0);
	CU_ASSERT_EQUAL(tn_load_relaxed32(&g.w->armed), 0);
	CU_ASSERT_FALSE(shr_doorbell_is_armed(&g.q.view.qp->sq_armed.value));
	CU_ASSERT_EQUAL(g.w->idle_ns - idle_ns, slept_ns);
	CU_ASSERT_NOT_EQUAL(g.w->last_work_ns, g.now);
	rig_submit(&g, rig_sqe(SHR_OP_WRITE, 1, 0, 0, 64));
	CU_ASSERT_FALSE(dp_worker_sleep_begin(g.w, &until_ns));
	CU_ASSERT_EQUAL(tn_load_relaxed32(&g.w->armed), 0);
	rig_steps(&g, 2);
	uint64_t id = rig_post(&g, (struct dp_cmd){ .kind = DP_CMD_FENCE, .fd = -1 });
	CU_ASSERT_FALSE(dp_worker_sleep_begin(g.w, &until_ns));
	rig_steps(&g, 2);
	CU_ASSERT_EQUAL(g.acked, id);
	CU_ASSERT_TRUE_FATAL(dp_worker_sleep_begin(g.w, &until_ns));
	g.now += RIG_MS;
	dp_worker_sleep_end(g.w, g.now, 1); /* something was ready: more will follow */
	CU_ASSERT_EQUAL(g.w->last_work_ns, g.now);
	rig_close(&g);
}

static void test_doorbell(void)
{
	struct rig g;
	rig_open(&g, NULL, 0, NULL);
	char byte;
	rig_run(&g, rig_sqe(SHR_OP_WRITE, 1, 0, 0, 64));
	CU_ASSERT(recv(g.q.bells[1], &byte, 1, MSG_DONTWAIT) < 0); /* nobody sleeps */
	shr_doorbell_arm(&g.q.view.qp->cq_armed.value);
	rig_run(&g, rig_sqe(SHR_OP_WRITE, 2, 0, 0, 64));
	CU_ASSERT_EQUAL(recv(g.q.bells[1], &byte, 1, MSG_DONTWAIT), 1);
	rig_close(&g);
}

/* Eight copies of 512 KiB, and an application that sleeps. How many are over when it is rung first; each step moves the
 * time by `step_ns`. */
static uint32_t over_when_rung(uint64_t step_ns)
{
	struct rig g;
	struct shr_cqe_shm c;
	char byte;
	uint32_t over = 0;
	rig_open(&g, NULL, 0, NULL);
	shr_doorbell_arm(&g.q.view.qp->cq_armed.value);
	for (uint64_t i = 0; i < 8; i++) /* from the end, so that they do not merge */
		rig_submit(&g, rig_sqe(SHR_OP_WRITE, i, (7 - i) << 19, (7 - i) << 19, 1u << 19));
	rig_steps(&g, 1);
	g.now += RIG_MS;
	for (int i = 0; i < 40 && recv(g.q.bells[1], &byte, 1, MSG_DONTWAIT) < 0; i++) {
		g.now += step_ns;
		rig_steps(&g, 1);
	}
	CU_ASSERT_EQUAL(shr_cq_peek(&g.q.cq, 64, &over), TN_OK);
	shr_doorbell_disarm(&g.q.view.qp->cq_armed.value);
	rig_steps(&g, 40);
	for (uint32_t i = 0; i < 8; i++)
		CU_ASSERT_TRUE(rig_poll(&g, &c));
	CU_ASSERT_EQUAL(dp_cq_ring_ns(&g.w->completion), UINT64_MAX);
	rig_close(&g);
	return over;
}

/* Who sleeps over many large requests is not woken for each, but not late either: at half of them, or when time is up. */
static void test_company(void)
{
	CU_ASSERT_EQUAL(over_when_rung(0), 4);
	CU_ASSERT_EQUAL(over_when_rung(300000), 1);
}

/* A quiet pair is not looked at until its application rings, and is armed for that; the busy neighbour stays hot. */
static void test_quiet_turns_cold(void)
{
	struct rig g;
	rig_open(&g, NULL, 0, NULL);
	struct rig_qp quiet;
	struct shr_cqe_shm c;
	rig_qp_make(&g, &quiet, 12, RIG_CLIENT);
	for (int i = 0; i < 6; i++) {
		g.now += DP_HOT_NS / 4;
		rig_run(&g, rig_sqe(SHR_OP_WRITE, 1, 0, 0, 64));
	}
	CU_ASSERT_EQUAL(g.w->hot.cold, 1);
	CU_ASSERT_TRUE(shr_doorbell_is_armed(&quiet.view.qp->sq_armed.value));
	CU_ASSERT_FALSE(shr_doorbell_is_armed(&g.q.view.qp->sq_armed.value));
	struct shr_sqe_shm s = rig_sqe(SHR_OP_WRITE, 2, 0, 0, 64);
	shr_sq_put(&quiet.sq, &s);
	shr_sq_publish(&quiet.sq); /* without the ring that it owes */
	rig_steps(&g, 2 * DP_POLL_SKIP_BELLS);
	CU_ASSERT_FALSE(rig_poll_on(&quiet, &c));
	shr_doorbell_ring(quiet.bells[1]);
	rig_steps(&g, DP_POLL_SKIP_BELLS + 3);
	CU_ASSERT_TRUE(rig_poll_on(&quiet, &c) && c.token == 2);
	CU_ASSERT_EQUAL(g.w->hot.cold, 0);
	CU_ASSERT_FALSE(shr_doorbell_is_armed(&quiet.view.qp->sq_armed.value));
	rig_advance(&g, DP_HOT_NS);
	CU_ASSERT_EQUAL(g.w->hot.cold, 2);
	CU_ASSERT_EQUAL(rig_do(&g, (struct dp_cmd){ .kind = DP_CMD_QP_DEL, .num = 12, .fd = -1 }), TN_OK);
	CU_ASSERT_EQUAL(g.w->hot.cold, 1);
	rig_qp_free(&quiet);
	rig_close(&g);
}

/* What has requests is hot however long they take: the reports of stuck and oldest requests look nowhere else. */
static void test_outstanding_stays_hot(void)
{
	struct rig g;
	rig_open(&g, NULL, 0, NULL);
	struct shr_cqe_shm c;
	rig_submit(&g, rig_sqe(SHR_OP_WRITE, 4, 0, 0, 4000000));
	rig_steps(&g, 1);
	for (int i = 0; i < 4; i++) {
		g.now += 2 * DP_HOT_NS;
		rig_steps(&g, 1); /* one slice in each */
	}
	CU_ASSERT_FALSE(rig_poll(&g, &c));
	CU_ASSERT_EQUAL(g.w->hot.cold, 0);
	rig_steps(&g, 40);
	CU_ASSERT_TRUE(rig_poll(&g, &c));
	rig_advance(&g, DP_HOT_NS);
	CU_ASSERT_EQUAL(g.w->hot.cold, 1);
	rig_close(&g);
}

TN_TEST_MAIN("worker",
	{ "WRITE, then READ back, many sizes", test_write_then_read },
	{ "contiguous neighbours merge", test_merge },
	{ "the merge key keeps apart what differs", test_merge_key },
	{ "cancel a running copy", test_cancel_running },
	{ "cancel one of a merged owner", test_cancel_merged },
	{ "cancel half of many", test_cancel_many },
	{ "deadlines", test_deadline },
	{ "a small request passes a large one", test_small_passes_large },
	{ "a small request waits for one slice", test_small_waits_for_one_slice },
	{ "untaken completions push back", test_back_pressure },
	{ "a scribbled ring harms nobody else", test_scribbled_ring },
	{ "removal while in use", test_removal },
	{ "no candidate at all", test_policy_exhausted },
	{ "falling asleep", test_sleep },
	{ "the doorbell rings only for sleepers", test_doorbell },
	{ "completions of large requests wait for company", test_company },
	{ "a quiet queue pair turns cold", test_quiet_turns_cold },
	{ "outstanding requests keep one hot", test_outstanding_stays_hot },
)
