/* SPDX-License-Identifier: Apache-2.0
 * Staged owners in virtual time: the application is a script that fills and empties staging buffers when it is asked to, at
 * once, later, or never. Every byte is checked, every case ends with the contract's equations, empty pools and gauges of
 * zero; together the cases make every move of a piece's table. */
#include "tests/unit/dataplane/script.h"

#define CHUNK 65536u
#define CHUNKS 4u
#define STAGING tn_handle_make(3, 1)
#define IMPORTED tn_handle_make(4, 1)
#define SETS "staging/cleanup_ms=50", "admission/merge=false"

static const struct script_step hang = { SCRIPT_HANG, { 0 } };

/* One application: its own memory, which the worker cannot see, and its staging buffers. */
struct app {
	struct rig *g;
	struct dp_memory staging, imported;
	uint8_t *memory;
	struct dp_evt asked[256]; /* not answered */
	uint32_t asked_cnt;
	bool lazy;                /* answers only when a case does it */
	bool gone;                /* its memory is not there */
};

static const char *const sets[] = { SETS };
static uint64_t moves_seen;

#if TENT_HOOKS
static void see(const struct dp_machine *m, unsigned from, unsigned to)
{
	if (m == &dp_stage_machine)
		moves_seen |= UINT64_C(1) << (from * 8 + to);
}
static void listen_to_moves(bool on) { dp_move_seen = on ? see : NULL; }
#else
static void listen_to_moves(bool on) { (void)on; }
#endif

static void app_open(struct app *a, struct rig *g, const char *const *s, size_t cnt, const struct dp_transport_ops *const *ops)
{
	rig_open(g, s, cnt, ops);
	*a = (struct app){ .g = g, .memory = malloc(RIG_BYTES) };
	memset(a->memory, 0x5a, RIG_BYTES);
	a->staging = (struct dp_memory){ .handle = STAGING, .client_id = RIG_CLIENT, .rights = SHR_RIGHT_STAGING,
					 .base = aligned_alloc(SHR_PAGE, CHUNKS * CHUNK), .bytes = CHUNKS * CHUNK,
					 .areas = calloc(1, sizeof(struct dp_stage_area)) };
	dp_stage_area_init(a->staging.areas, STAGING, CHUNK, 0, CHUNKS);
	a->imported = (struct dp_memory){ .handle = IMPORTED, .client_id = RIG_CLIENT, .rights = SHR_RIGHT_LOCAL, .bytes = RIG_BYTES,
					  .staging = STAGING };
	RIG_FATAL(rig_do(g, (struct dp_cmd){ .kind = DP_CMD_MEM_ADD, .ptr = &a->staging, .fd = -1 }) == TN_OK);
	RIG_FATAL(rig_do(g, (struct dp_cmd){ .kind = DP_CMD_MEM_ADD, .ptr = &a->imported, .fd = -1 }) == TN_OK);
	listen_to_moves(true);
}

static uint64_t gauge(struct app *a, unsigned cell) { return tn_load_relaxed64(&a->g->w->stats.m.cells[cell]); }

static void app_free(struct app *a)
{
	listen_to_moves(false);
	free(a->memory);
	free(a->staging.base);
	free(a->staging.areas);
}

static void app_close(struct app *a)
{
	const struct dp_stage *s = &a->g->w->stage;
	rig_steps(a->g, 2);
	CU_ASSERT_EQUAL(s->task_cnt + s->leaving_cnt + s->quarantine_cnt + s->moving_cnt, 0);
	CU_ASSERT_EQUAL(s->bytes, 0);
	CU_ASSERT_EQUAL(a->g->w->pools.tasks.live, 0);
	CU_ASSERT_EQUAL(a->staging.areas->free, (1u << CHUNKS) - 1);
	CU_ASSERT_EQUAL(gauge(a, TN_G0(STAGING_INFLIGHT_TASKS).cell), 0);
	CU_ASSERT_EQUAL(gauge(a, TN_G0(STAGING_INFLIGHT_BYTES).cell), 0);
	CU_ASSERT_EQUAL(gauge(a, TN_G1(STAGING_DEFERRED_CLEANUPS, TN_CLEANUP_LOCAL_BUFFER).cell), 0);
	CU_ASSERT_EQUAL(gauge(a, TN_G1(STAGING_DEFERRED_CLEANUPS, TN_CLEANUP_BATCH).cell), 0);
	CU_ASSERT_EQUAL(gauge(a, TN_G0(QUARANTINED_BATCHES).cell), 0);
	rig_close(a->g);
	app_free(a);
}

/* What the worker asked for since it was last looked. */
static void app_hear(struct app *a)
{
	for (uint32_t i = 0; i < a->g->event_cnt; i++)
		if (a->g->events[i].kind == DP_EVT_COPY)
			a->asked[a->asked_cnt++] = a->g->events[i];
	a->g->event_cnt = 0;
}

static void app_say(struct app *a, uint64_t tag, tn_status status)
{
	struct dp_cmd cmd = { .kind = DP_CMD_COPIED, .num = tag, .num2 = STAGING, .len = RIG_CLIENT, .status = status, .fd = -1 };
	RIG_FATAL(dp_worker_post(a->g->w, &cmd) == TN_OK);
}

/* Copies, and answers what was asked i-th. */
static void app_copy(struct app *a, uint32_t i)
{
	struct dp_evt e = a->asked[i];
	uint8_t *chunk = a->staging.base + (uint64_t)dp_stage_tag_chunk(e.id) * CHUNK;
	a->asked[i] = a->asked[--a->asked_cnt];
	if (!a->gone && e.status)
		memcpy(a->memory + e.num2, chunk, e.len);
	else if (!a->gone)
		memcpy(chunk, a->memory + e.num2, e.len);
	app_say(a, e.id, a->gone ? TN_FAULT : TN_OK);
}

static void app_steps(struct app *a, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		rig_steps(a->g, 1);
		app_hear(a);
		while (!a->lazy && a->asked_cnt > 0)
			app_copy(a, 0);
	}
}

static struct shr_sqe_shm sqe_of(uint8_t op, uint64_t token, uint64_t off, uint64_t len, bool peer)
{
	struct shr_sqe_shm e = rig_sqe(op, token, off, off, len);
	e.memory = IMPORTED;
	if (peer)
		e.segment = tn_handle_make(2, 1);
	return e;
}

static bool app_poll(struct app *a, struct shr_cqe_shm *c)
{
	for (int i = 0; i < 400; i++) {
		if (rig_poll(a->g, c))
			return true;
		app_steps(a, 1);
	}
	return false;
}

static void cancel(struct app *a, uint64_t token)
{
	rig_submit(a->g, (struct shr_sqe_shm){ .opcode = SHR_OP_CANCEL, .token = token });
	rig_steps(a->g, 2);
	app_hear(a);
}

static struct dp_stage_piece *piece(struct app *a, unsigned i) { return &a->staging.areas->pieces[i]; }

static unsigned in_state(struct app *a, enum dp_stage_state state)
{
	unsigned n = 0;
	for (unsigned i = 0; i < CHUNKS; i++)
		n += piece(a, i)->state == state;
	return n;
}

/* ---- the usual way ---- */

static void test_bytes(void)
{
	static const uint64_t sizes[] = { 1, 7, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK, 9 * CHUNK + 13 };
	struct rig g;
	struct app a;
	struct shr_cqe_shm c;
	app_open(&a, &g, sets, TN_ARRAY_LEN(sets), NULL);
	for (unsigned i = 0; i < TN_ARRAY_LEN(sizes); i++) {
		uint64_t off = 4096 * i + 3, len = sizes[i];
		for (uint64_t k = 0; k < RIG_BYTES; k++)
			a.memory[k] = (uint8_t)(k * 31 + k / 251 + i);
		memset(g.target.base, 0xee, RIG_BYTES);
		rig_submit(&g, sqe_of(SHR_OP_WRITE, 2 * i, off, len, false));
		CU_ASSERT(app_poll(&a, &c) && c.status == TN_OK && c.bytes == len && c.transport == TN_TRANSPORT_SHM);
		CU_ASSERT(memcmp(g.target.base + off, a.memory + off, len) == 0);
		CU_ASSERT(g.target.base[off - 1] == 0xee && g.target.base[off + len] == 0xee);
		memset(a.memory, 0x11, RIG_BYTES);
		rig_submit(&g, sqe_of(SHR_OP_READ, 2 * i + 1, off, len, false));
		CU_ASSERT(app_poll(&a, &c) && c.status == TN_OK && c.bytes == len);
		CU_ASSERT(memcmp(g.target.base + off, a.memory + off, len) == 0);
		CU_ASSERT(a.memory[off - 1] == 0x11 && a.memory[off + len] == 0x11);
	}
	if (TENT_METRICS) { /* one request each, however many pieces; the pieces are attempts */
		CU_ASSERT_EQUAL(gauge(&a, TN_C1(WRITE_REQUESTS_TOTAL, TN_TRANSPORT_SHM).cell), TENT_METRICS * (TN_ARRAY_LEN(sizes)));
		CU_ASSERT_EQUAL(gauge(&a, TN_C2(TRANSPORT_ATTEMPTS_TOTAL, TN_TRANSPORT_SHM, TN_OP_WRITE).cell), TENT_METRICS * (4 + 2 + 3 + 10));
		CU_ASSERT_EQUAL(gauge(&a, TN_C2(ADMISSION_EVENTS_TOTAL, TN_OWNER_KIND_STAGING_INTERNAL, TN_ADMISSION_DISPATCH).cell),
				2 * (4 + 2 + 3 + 10));
	}
	app_close(&a);
}

/* One fills while the other moves; and while the application copies, nobody's window is used. */
static void test_pipelined(void)
{
	struct rig g;
	struct app a;
	struct shr_cqe_shm c;
	app_open(&a, &g, sets, TN_ARRAY_LEN(sets), script_only_tcp);
	struct dp_remote *r = script_open_remote(&g, 1);
	a.lazy = true;
	script_tcp.beyond = hang;
	rig_submit(&g, sqe_of(SHR_OP_WRITE, 1, 0, 6 * CHUNK, true));
	app_steps(&a, 3);
	CU_ASSERT_EQUAL(a.asked_cnt, 2); /* as many as are left free */
	CU_ASSERT_EQUAL(dp_admission_out_owners(&g.w->admission) + g.w->admission.queued, 0);
	CU_ASSERT_EQUAL(gauge(&a, TN_G0(STAGING_INFLIGHT_TASKS).cell), TENT_METRICS * 1);
	CU_ASSERT_EQUAL(gauge(&a, TN_G0(STAGING_INFLIGHT_BYTES).cell), TENT_METRICS * (2 * CHUNK));
	app_copy(&a, 0);
	app_steps(&a, 3);
	CU_ASSERT(script_tcp.held_cnt == 1 && script_tcp.held[0]->bytes == CHUNK && a.asked_cnt == 1);
	CU_ASSERT_EQUAL(dp_admission_out_bytes(&g.w->admission), CHUNK);
	struct dp_result ok = { .status = TN_OK };
	script_end(&script_tcp, 0, &ok);
	app_steps(&a, 3);
	CU_ASSERT(a.asked_cnt == 2 && script_tcp.held_cnt == 0);
	a.lazy = false;
	script_tcp.beyond = (struct script_step){ SCRIPT_OK, { 0 } };
	CU_ASSERT(app_poll(&a, &c) && c.status == TN_OK && c.bytes == 6 * CHUNK && c.attempts == 6);
	/* A READ is over when the last byte is in the application's memory, and not before. */
	a.lazy = true;
	rig_submit(&g, sqe_of(SHR_OP_READ, 2, 0, CHUNK, true));
	app_steps(&a, 20);
	CU_ASSERT(script_tcp.held_cnt == 0 && a.asked_cnt == 1 && in_state(&a, DP_STAGE_DRAIN) == 1 && !rig_poll(&g, &c));
	CU_ASSERT_EQUAL(dp_admission_out_bytes(&g.w->admission), 0);
	app_copy(&a, 0);
	a.lazy = false;
	CU_ASSERT(app_poll(&a, &c) && c.status == TN_OK);
	app_close(&a);
	free(r);
}

/* What waits for buffers holds nothing; a huge request does not keep small ones waiting, nor a low one a high one. */
static void test_turns(void)
{
	struct rig g;
	struct app a;
	struct shr_cqe_shm c;
	app_open(&a, &g, sets, TN_ARRAY_LEN(sets), NULL);
	a.lazy = true;
	rig_submit(&g, sqe_of(SHR_OP_WRITE, 1, 0, 40 * CHUNK, false));
	for (uint64_t i = 2; i < 12; i++)
		rig_submit(&g, sqe_of(SHR_OP_WRITE, i, i * 4096, 4096, false));
	struct shr_sqe_shm urgent = sqe_of(SHR_OP_WRITE, 12, 0, 4096, false);
	urgent.priority = TN_PRIORITY_HIGH;
	rig_submit(&g, urgent);
	app_steps(&a, 3);
	CU_ASSERT(a.asked_cnt == CHUNKS && a.staging.areas->free == 0);
	CU_ASSERT_EQUAL(g.w->admission.queued + dp_admission_out_owners(&g.w->admission), 0);
	unsigned place_of_huge = 0, n = 0;
	a.lazy = false;
	while (app_poll(&a, &c)) {
		n++;
		CU_ASSERT_EQUAL(c.status, TN_OK);
		if (c.token == 1)
			place_of_huge = n;
		if (c.token == 12)
			CU_ASSERT(n <= CHUNKS);
	}
	CU_ASSERT(n == 12 && place_of_huge == 12);
	app_close(&a);
}

static void test_merged(void)
{
	static const char *const merging[] = { "staging/cleanup_ms=50" };
	struct rig g;
	struct app a;
	struct shr_cqe_shm c;
	unsigned n = 0;
	app_open(&a, &g, merging, 1, NULL);
	struct shr_sqe_shm many[16];
	for (uint64_t i = 0; i < 16; i++)
		many[i] = sqe_of(SHR_OP_WRITE, i, i * 1000, 1000, false);
	rig_submit_on(&g.q, many, 16);
	for (; app_poll(&a, &c); n++)
		CU_ASSERT_EQUAL(c.status, TN_OK);
	CU_ASSERT_EQUAL(n, 16);
	CU_ASSERT(memcmp(g.target.base, a.memory, 16000) == 0);
	if (TENT_METRICS)
		CU_ASSERT_EQUAL(gauge(&a, TN_C2(TRANSPORT_ATTEMPTS_TOTAL, TN_TRANSPORT_SHM, TN_OP_WRITE).cell), TENT_METRICS * 1);
	/* One of them ends early; the rest goes on, and its own release follows theirs. */
	a.lazy = true;
	rig_submit_on(&g.q, many, 2);
	app_steps(&a, 3);
	cancel(&a, 0);
	CU_ASSERT(rig_poll(&g, &c) && c.token == 0 && c.status == TN_CANCELED && c.flags == SHR_CQE_MEMORY_BUSY);
	a.lazy = false;
	app_copy(&a, 0);
	bool whole = false, released = false;
	while (app_poll(&a, &c)) {
		whole |= c.token == 1 && c.status == TN_OK && c.kind == SHR_CQE_TERMINAL;
		released |= c.token == 0 && c.kind == SHR_CQE_RELEASE;
	}
	CU_ASSERT(whole && released);
	app_close(&a);
}

/* ---- failures ---- */

static void test_fault(void)
{
	struct rig g;
	struct app a;
	struct shr_cqe_shm c;
	app_open(&a, &g, sets, TN_ARRAY_LEN(sets), NULL);
	a.gone = true;
	rig_submit(&g, sqe_of(SHR_OP_WRITE, 1, 0, 3 * CHUNK, false));
	CU_ASSERT(app_poll(&a, &c) && c.status == TN_FAULT && c.outcome == TN_OUTCOME_FAILED && c.phase == TN_PHASE_POST &&
		  c.reason == TN_REASON_MR_ERROR);
	CU_ASSERT_EQUAL(g.target.base[0], 0); /* nothing was moved that was not filled */
	while (app_poll(&a, &c))
		CU_ASSERT_EQUAL(c.kind, SHR_CQE_RELEASE);
	rig_submit(&g, sqe_of(SHR_OP_READ, 2, 0, 3 * CHUNK, false));
	CU_ASSERT(app_poll(&a, &c) && c.status == TN_FAULT && c.phase == TN_PHASE_COMPLETION);
	while (app_poll(&a, &c))
		CU_ASSERT_EQUAL(c.kind, SHR_CQE_RELEASE);
	a.gone = false;
	rig_submit(&g, sqe_of(SHR_OP_WRITE, 3, 0, 3 * CHUNK, false));
	CU_ASSERT(app_poll(&a, &c) && c.status == TN_OK);
	app_close(&a);
}

/* A piece is tried again with what is in its buffer; the application is not asked twice. What cannot be tried again fails
 * the request, once, with the reason of the piece. */
static void test_retry(void)
{
	static const struct script_step steps[] = {
		{ SCRIPT_FAIL, { .status = TN_PATH_DOWN, .phase = TN_PHASE_POST, .reason = TN_REASON_PEER_CLOSED, .nothing_left = true } },
	};
	static const struct script_step lost[] = {
		{ SCRIPT_FAIL, { .status = TN_PATH_DOWN, .phase = TN_PHASE_POLL, .reason = TN_REASON_PEER_CLOSED } },
	};
	struct rig g;
	struct app a;
	struct shr_cqe_shm c = { 0 };
	app_open(&a, &g, sets, TN_ARRAY_LEN(sets), script_only_tcp);
	struct dp_remote *r = script_open_remote(&g, 1);
	script_set(&script_tcp, steps, 1);
	rig_submit(&g, sqe_of(SHR_OP_WRITE, 1, 0, CHUNK, true));
	for (int i = 0; i < 50 && !rig_poll(&g, &c); i++) {
		app_steps(&a, 3);
		rig_advance(&g, 20 * RIG_MS);
	}
	CU_ASSERT(c.token == 1 && c.status == TN_OK && c.attempts == 2 && piece(&a, 0)->seq == 1);
	script_set(&script_tcp, lost, 1);
	struct shr_sqe_shm once = sqe_of(SHR_OP_WRITE, 2, 0, 3 * CHUNK, true);
	once.flags |= SHR_SQE_AT_MOST_ONCE;
	rig_submit(&g, once);
	CU_ASSERT(app_poll(&a, &c) && c.token == 2 && c.status == TN_AMBIGUOUS);
	while (app_poll(&a, &c))
		CU_ASSERT_EQUAL(c.kind, SHR_CQE_RELEASE);
	app_close(&a);
	free(r);
}

/* ---- ending early, in every state ---- */

/* Brings one piece of a request of one chunk into that state, and keeps it there. */
static void reach(struct app *a, enum dp_stage_state state, uint64_t token)
{
	bool read = state == DP_STAGE_DRAIN;
	a->lazy = true;
	script_tcp.beyond = state == DP_STAGE_MOVE ? hang : (struct script_step){ SCRIPT_OK, { 0 } };
	rig_submit(a->g, sqe_of(read ? SHR_OP_READ : SHR_OP_WRITE, token, 0, CHUNK, true));
	app_steps(a, 4);
	if (state == DP_STAGE_READY)
		a->g->w->stage.moving_cnt += DP_STAGE_MOVING_MAX; /* as when so many move */
	if (state == DP_STAGE_READY || state == DP_STAGE_MOVE) {
		app_copy(a, 0);
		app_steps(a, 4);
	}
	CU_ASSERT_EQUAL_FATAL(in_state(a, state), 1);
}

static void unreach(struct app *a, enum dp_stage_state state)
{
	if (state == DP_STAGE_READY)
		a->g->w->stage.moving_cnt -= DP_STAGE_MOVING_MAX;
}

static void test_cancel(void)
{
	static const struct { enum dp_stage_state state; bool waits; } cases[] = {
		{ DP_STAGE_FILL, true }, { DP_STAGE_READY, false }, { DP_STAGE_MOVE, false }, { DP_STAGE_DRAIN, true },
	};
	struct rig g;
	struct app a;
	struct shr_cqe_shm c;
	app_open(&a, &g, sets, TN_ARRAY_LEN(sets), script_only_tcp);
	struct dp_remote *r = script_open_remote(&g, 1);
	for (unsigned i = 0; i < TN_ARRAY_LEN(cases); i++) {
		reach(&a, cases[i].state, i);
		cancel(&a, i);
		unreach(&a, cases[i].state);
		CU_ASSERT(rig_poll(&g, &c) && c.token == i && c.status == TN_CANCELED);
		CU_ASSERT_EQUAL(c.flags, cases[i].waits ? SHR_CQE_MEMORY_BUSY : 0);
		if (cases[i].waits) { /* what the application has is its own until it says so */
			rig_steps(&g, 5);
			CU_ASSERT_EQUAL(gauge(&a, TN_G1(STAGING_DEFERRED_CLEANUPS, TN_CLEANUP_LOCAL_BUFFER).cell), TENT_METRICS * 1);
			CU_ASSERT_EQUAL(gauge(&a, TN_G1(STAGING_DEFERRED_CLEANUPS, TN_CLEANUP_BATCH).cell), TENT_METRICS * 1);
			CU_ASSERT_FALSE(rig_poll(&g, &c));
			app_copy(&a, 0);
			app_steps(&a, 3);
			CU_ASSERT(rig_poll(&g, &c) && c.token == i && c.kind == SHR_CQE_RELEASE);
		}
		CU_ASSERT_EQUAL(in_state(&a, DP_STAGE_FREE), CHUNKS);
	}
	/* Before its first buffer, and while a transport is slow to let go. */
	a.lazy = true;
	script_tcp.beyond = hang;
	for (uint64_t i = 10; i < 20; i++)
		rig_submit(&g, sqe_of(SHR_OP_WRITE, i, 0, CHUNK, true));
	app_steps(&a, 4);
	cancel(&a, 19);
	CU_ASSERT(rig_poll(&g, &c) && c.token == 19 && c.status == TN_CANCELED && c.flags == 0);
	a.lazy = false;
	app_copy(&a, 0);
	app_steps(&a, 20);
	script_tcp.cancel_late = true;
	for (uint64_t i = 10; i < 19; i++)
		cancel(&a, i);
	unsigned busy = 0, released = 0;
	while (rig_poll(&g, &c)) {
		CU_ASSERT_EQUAL(c.status, TN_CANCELED);
		busy += c.flags == SHR_CQE_MEMORY_BUSY;
	}
	CU_ASSERT_EQUAL(busy, CHUNKS);
	script_let_go(&script_tcp);
	app_steps(&a, 3);
	for (; rig_poll(&g, &c); released++)
		CU_ASSERT_EQUAL(c.kind, SHR_CQE_RELEASE);
	CU_ASSERT_EQUAL(released, CHUNKS);
	app_close(&a);
	free(r);
}

static void test_deadline(void)
{
	struct rig g;
	struct app a;
	struct shr_cqe_shm c;
	app_open(&a, &g, sets, TN_ARRAY_LEN(sets), NULL);
	a.lazy = true; /* as when it is stopped */
	for (uint64_t i = 0; i < 8; i++) {
		struct shr_sqe_shm e = sqe_of(SHR_OP_WRITE, i, 0, CHUNK, false);
		e.deadline_ns = g.now + 10 * RIG_MS;
		rig_submit(&g, e);
	}
	struct shr_sqe_shm other = rig_sqe(SHR_OP_WRITE, 100, 0, 0, CHUNK); /* memory that is shared: not disturbed */
	CU_ASSERT_EQUAL(rig_run(&g, other).status, TN_OK);
	rig_advance(&g, 10 * RIG_MS);
	unsigned n = 0, busy = 0;
	for (; rig_poll(&g, &c); n++) {
		CU_ASSERT(c.status == TN_TIMEOUT && c.latency_ns < 11 * RIG_MS);
		busy += c.flags == SHR_CQE_MEMORY_BUSY;
	}
	CU_ASSERT(n == 8 && busy == CHUNKS);
	app_hear(&a);
	while (a.asked_cnt > 0)
		app_copy(&a, 0);
	app_steps(&a, 5);
	for (n = 0; rig_poll(&g, &c); n++)
		CU_ASSERT_EQUAL(c.kind, SHR_CQE_RELEASE);
	CU_ASSERT_EQUAL(n, CHUNKS);
	app_close(&a);
}

/* The application dies with a piece in each state: its worker lets go of it at once. */
static void test_death(void)
{
	static const enum dp_stage_state states[] = { DP_STAGE_FILL, DP_STAGE_READY, DP_STAGE_MOVE, DP_STAGE_DRAIN, DP_STAGE_QUARANTINE };
	for (unsigned i = 0; i < TN_ARRAY_LEN(states); i++) {
		struct rig g;
		struct app a;
		app_open(&a, &g, sets, TN_ARRAY_LEN(sets), script_only_tcp);
		struct dp_remote *r = script_open_remote(&g, 1);
		reach(&a, states[i] == DP_STAGE_QUARANTINE ? DP_STAGE_FILL : states[i], 1);
		if (states[i] == DP_STAGE_QUARANTINE) {
			cancel(&a, 1);
			rig_advance(&g, 60 * RIG_MS);
			CU_ASSERT_EQUAL(in_state(&a, DP_STAGE_QUARANTINE), 1);
		}
		CU_ASSERT_EQUAL(rig_do(&g, (struct dp_cmd){ .kind = DP_CMD_CLIENT_DEL, .num = RIG_CLIENT, .fd = -1 }), TN_OK);
		unreach(&a, states[i]);
		app_close(&a);
		free(r);
	}
}

/* ---- cleanup ---- */

static void test_quarantine(void)
{
	static const enum dp_stage_state states[] = { DP_STAGE_FILL, DP_STAGE_DRAIN };
	struct rig g;
	struct app a;
	struct shr_cqe_shm c;
	app_open(&a, &g, sets, TN_ARRAY_LEN(sets), script_only_tcp);
	struct dp_remote *r = script_open_remote(&g, 1);
	for (unsigned i = 0; i < TN_ARRAY_LEN(states); i++) {
		reach(&a, states[i], i);
		cancel(&a, i);
		CU_ASSERT(rig_poll(&g, &c) && c.flags == SHR_CQE_MEMORY_BUSY);
		CU_ASSERT(dp_worker_next_ns(g.w) <= g.now + 50 * RIG_MS);
		rig_advance(&g, 49 * RIG_MS);
		CU_ASSERT_EQUAL(gauge(&a, TN_G0(QUARANTINED_BATCHES).cell), 0);
		rig_advance(&g, 2 * RIG_MS);
		rig_steps(&g, 2);
		CU_ASSERT_EQUAL(gauge(&a, TN_G0(QUARANTINED_BATCHES).cell), TENT_METRICS * 1);
		CU_ASSERT_EQUAL(gauge(&a, TN_G1(STAGING_DEFERRED_CLEANUPS, TN_CLEANUP_BATCH).cell), 0);
		if (TENT_METRICS)
			CU_ASSERT_EQUAL(gauge(&a, TN_C0(STAGING_CLEANUP_TIMEOUTS_TOTAL).cell), TENT_METRICS * (i + 1));
		/* Others are served meanwhile, and the memory waits. */
		uint64_t id = rig_post(&g, (struct dp_cmd){ .kind = DP_CMD_MEM_DEL, .num = tn_handle_make(9, 1), .fd = -1 });
		rig_steps(&g, 2);
		CU_ASSERT_EQUAL(g.acked, id);
		script_tcp.beyond = (struct script_step){ SCRIPT_OK, { 0 } };
		rig_submit(&g, sqe_of(SHR_OP_WRITE, 50, 0, CHUNK, true));
		app_steps(&a, 4);
		app_copy(&a, 1);
		CU_ASSERT(app_poll(&a, &c) && c.token == 50 && c.status == TN_OK);
		app_copy(&a, 0); /* late */
		app_steps(&a, 4);
		CU_ASSERT(rig_poll(&g, &c) && c.token == i && c.kind == SHR_CQE_RELEASE);
		CU_ASSERT_EQUAL(gauge(&a, TN_G0(QUARANTINED_BATCHES).cell), 0);
	}
	app_close(&a);
	free(r);
}

/* defect 20: a stop does not wait for ever for an application that does not answer. */
static void test_stop(void)
{
	struct rig g;
	struct app a;
	app_open(&a, &g, sets, TN_ARRAY_LEN(sets), NULL);
	a.lazy = true;
	rig_submit(&g, sqe_of(SHR_OP_WRITE, 1, 0, 9 * CHUNK, false));
	app_steps(&a, 4);
	uint64_t id = rig_post(&g, (struct dp_cmd){ .kind = DP_CMD_STOP, .fd = -1 });
	rig_advance(&g, 10 * RIG_MS);
	CU_ASSERT_NOT_EQUAL(g.acked, id);
	rig_advance(&g, 51 * RIG_MS);
	CU_ASSERT(g.acked == id && g.w->stopped);
	rig_check_equations(&g);
	dp_worker_free(g.w);
	rig_qp_free(&g.q);
	free(g.local.base);
	free(g.target.base);
	free(g.segment);
	free(g.remote);
	tn_config_free(g.config);
	app_free(&a);
}

/* ---- what the application must not do ---- */

static unsigned broken(struct rig *g)
{
	unsigned n = 0;
	for (uint32_t i = 0; i < g->event_cnt; i++)
		n += g->events[i].kind == DP_EVT_CLIENT_BROKEN && g->events[i].num == RIG_CLIENT;
	g->event_cnt = 0;
	return n;
}

static void test_lies(void)
{
	struct rig g;
	struct app a;
	struct shr_cqe_shm c;
	app_open(&a, &g, sets, TN_ARRAY_LEN(sets), NULL);
	a.lazy = true;
	rig_submit(&g, sqe_of(SHR_OP_WRITE, 1, 0, CHUNK, false));
	app_steps(&a, 3);
	CU_ASSERT_EQUAL_FATAL(a.asked_cnt, 1);
	uint64_t good = a.asked[0].id;
	const uint64_t lies[] = { good + 1, good - 1, good + (UINT64_C(1) << 32), good | 0xffffffull << 32, 0, UINT64_MAX };
	for (unsigned i = 0; i < TN_ARRAY_LEN(lies); i++) {
		app_say(&a, lies[i], TN_OK);
		rig_steps(&g, 2);
		CU_ASSERT_EQUAL(broken(&g), 1);
	}
	a.lazy = false;
	app_copy(&a, 0);
	app_say(&a, good, TN_OK); /* twice */
	rig_steps(&g, 1);
	CU_ASSERT_EQUAL(broken(&g), 1);
	CU_ASSERT(app_poll(&a, &c) && c.status == TN_OK);
	/* Requests may not name the buffers. */
	struct shr_sqe_shm e = rig_sqe(SHR_OP_WRITE, 2, 0, 0, 4096);
	e.memory = STAGING;
	rig_submit(&g, e);
	CU_ASSERT(app_poll(&a, &c) && c.status == TN_PERMISSION && c.flags == SHR_CQE_REFUSED);
	app_close(&a);
}

/* ---- beside other commands ---- */

static void test_taken_away(void)
{
	struct rig g;
	struct app a;
	struct shr_cqe_shm c;
	app_open(&a, &g, sets, TN_ARRAY_LEN(sets), script_both);
	struct dp_remote *r = script_open_remote(&g, 1), *newer = script_remote(&g, 2);
	script_rdma.beyond = hang;
	rig_submit(&g, sqe_of(SHR_OP_READ, 1, 0, 2 * CHUNK, true));
	app_steps(&a, 4);
	CU_ASSERT_EQUAL_FATAL(script_rdma.held_cnt, 2);
	uint64_t id = rig_post(&g, (struct dp_cmd){ .kind = DP_CMD_REMOTE_SET, .ptr = newer, .fd = -1 });
	rig_steps(&g, 3);
	CU_ASSERT_NOT_EQUAL(g.acked, id); /* pieces use the old one */
	struct dp_cmd off = { .kind = DP_CMD_TRANSPORT, .num = TN_TRANSPORT_RDMA, .fd = -1 };
	uint64_t off_id = rig_post(&g, off);
	app_steps(&a, 3);
	CU_ASSERT(g.acked == off_id || g.acked == id);
	CU_ASSERT(script_rdma.held_cnt == 0 && script_rdma.cancels == 2);
	CU_ASSERT(app_poll(&a, &c) && c.status == TN_OK && c.transport == TN_TRANSPORT_TCP);
	app_close(&a);
	free(r);
	free(newer);
}

/* The publisher comes back with other memory when a part of the request is in the old one: that is no completed request. */
static void test_two_publications(void)
{
	struct rig g;
	struct app a;
	struct shr_cqe_shm c;
	app_open(&a, &g, sets, TN_ARRAY_LEN(sets), script_only_tcp);
	struct dp_remote *first = script_remote(&g, 1), *same = script_remote(&g, 2), *other = script_remote(&g, 3);
	first->publication.b[0] = same->publication.b[0] = 1;
	other->publication.b[0] = 2;
	for (unsigned i = 0; i < 2; i++) {
		struct dp_cmd cmd = { .kind = DP_CMD_REMOTE_SET, .ptr = first, .fd = -1 };
		CU_ASSERT_EQUAL(rig_do(&g, cmd), TN_OK);
		a.lazy = true;
		rig_submit(&g, sqe_of(SHR_OP_WRITE, i, 0, 2 * CHUNK, true));
		app_steps(&a, 3);
		app_copy(&a, 0);
		app_steps(&a, 4); /* one half is there */
		cmd.ptr = i == 0 ? same : other;
		CU_ASSERT_EQUAL(rig_do(&g, cmd), TN_OK);
		a.lazy = false;
		app_copy(&a, 0);
		CU_ASSERT(app_poll(&a, &c) && c.token == i && c.status == (i == 0 ? TN_OK : TN_STALE));
	}
	app_close(&a);
	free(first);
	free(same);
	free(other);
}

/* ---- anything in any order ---- */

static void test_random(void)
{
	struct rig g;
	struct app a;
	struct shr_cqe_shm c;
	struct tn_rand rand;
	uint8_t due[4096] = { 0 }; /* by token: 1 terminal, 2 release */
	uint64_t token = 0;
	tn_rand_seed(&rand, 20);
	app_open(&a, &g, sets, TN_ARRAY_LEN(sets), script_only_tcp);
	struct dp_remote *r = script_open_remote(&g, 1);
	a.lazy = true;
	for (unsigned i = 0; i < 20000 || g.w->pools.requests.live > 0 || a.asked_cnt > 0; i++) {
		bool more = i < 20000 && token < TN_ARRAY_LEN(due);
		uint64_t dice = tn_rand_u64(&rand) % 100;
		static const struct dp_result down = { .status = TN_PATH_DOWN, .phase = TN_PHASE_POLL, .reason = TN_REASON_PEER_CLOSED };
		script_tcp.beyond = (struct script_step){ dice % 10 == 0 && more ? SCRIPT_HANG : dice % 10 == 1 ? SCRIPT_FAIL : SCRIPT_OK, down };
		script_tcp.cancel_late = dice % 3 == 0;
		uint32_t room;
		RIG_FATAL(shr_sq_space(&g.q.sq, 1, &room) == TN_OK);
		if (dice < 20 && more && room > 0) {
			struct shr_sqe_shm e = sqe_of(dice % 2 ? SHR_OP_WRITE : SHR_OP_READ, token, 0, 1 + tn_rand_u64(&rand) % (6 * CHUNK), true);
			e.deadline_ns = g.now + (1 + tn_rand_u64(&rand) % 100) * RIG_MS;
			e.priority = (uint8_t)(dice % TN_PRIORITY_CNT);
			due[token++] = 1;
			rig_submit(&g, e);
		} else if (dice < 24 && more && room > 0 && token > 8) {
			rig_submit(&g, (struct shr_sqe_shm){ .opcode = SHR_OP_CANCEL, .token = token - 1 - tn_rand_u64(&rand) % 8 });
		} else if (a.asked_cnt > 0 && dice < 80) {
			a.gone = dice % 20 == 0;
			app_copy(&a, (uint32_t)(tn_rand_u64(&rand) % a.asked_cnt));
		} else if (dice < 82) {
			script_let_go(&script_tcp);
		}
		rig_advance(&g, dice < 90 ? 1000 : 10 * RIG_MS);
		app_hear(&a);
		while (rig_poll(&g, &c)) {
			unsigned want = c.kind == SHR_CQE_RELEASE ? 2 : 1;
			CU_ASSERT_EQUAL_FATAL(due[c.token], want);
			due[c.token] = c.flags == SHR_CQE_MEMORY_BUSY ? 2 : 0;
		}
		uint64_t held = 0;
		for (unsigned k = 0; k < CHUNKS; k++)
			held += piece(&a, k)->state != DP_STAGE_FREE ? piece(&a, k)->bytes : 0;
		CU_ASSERT_EQUAL_FATAL(held, g.w->stage.bytes);
	}
	for (unsigned i = 0; i < TN_ARRAY_LEN(due); i++)
		CU_ASSERT_EQUAL(due[i], 0);
	CU_ASSERT(token > 1000);
	app_close(&a);
	free(r);
}

static void test_split(void)
{
	uint64_t chunk;
	uint32_t cnt;
	CU_ASSERT(dp_stage_split(16 << 20, 1 << 20, 2, &chunk, &cnt) && chunk == 1 << 20 && cnt == 8);
	CU_ASSERT(dp_stage_split((16 << 20) + 4095, (1 << 20) + 5, 2, &chunk, &cnt) && chunk == 1 << 20 && cnt == 8);
	CU_ASSERT(dp_stage_split(2 * SHR_PAGE, 1 << 20, 2, &chunk, &cnt) && chunk == SHR_PAGE && cnt == 1);
	CU_ASSERT(dp_stage_split(UINT64_MAX, SHR_PAGE, 1, &chunk, &cnt) && chunk == SHR_PAGE && cnt == DP_STAGE_CHUNKS_MAX);
	CU_ASSERT_FALSE(dp_stage_split(2 * SHR_PAGE - 1, 1 << 20, 2, &chunk, &cnt));
}

/* Last: the cases above made every move. */
static void test_moves(void)
{
	for (uint32_t i = 0; i < dp_stage_machine.move_cnt; i++) {
		const struct dp_move_row *m = &dp_stage_machine.moves[i];
		bool seen = moves_seen >> (m->from * 8 + m->to) & 1;
		if (!seen)
			fprintf(stderr, "never: %s -> %s\n", dp_stage_machine.states[m->from], dp_stage_machine.states[m->to]);
		CU_ASSERT(seen || !TENT_HOOKS);
	}
}

TN_TEST_MAIN("staging", { "every byte of every size", test_bytes }, { "fill, move and drain overlap", test_pipelined },
	{ "turns and priorities", test_turns }, { "merged requests share pieces", test_merged }, { "memory that is gone", test_fault },
	{ "a piece is retried alone", test_retry }, { "cancel in every state", test_cancel }, { "deadline", test_deadline },
	{ "death in every state", test_death }, { "quarantine and late return", test_quarantine },
	{ "a stop is bounded", test_stop }, { "lies of the application", test_lies },
	{ "transport off, newer descriptor", test_taken_away },
	{ "two publications make no request", test_two_publications }, { "anything in any order", test_random },
	{ "buffers are split", test_split }, { "every move was made", test_moves })
