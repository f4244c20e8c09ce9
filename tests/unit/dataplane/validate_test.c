/* SPDX-License-Identifier: Apache-2.0
 * Ingress: every field of a descriptor with garbage, handles of others, rights, ranges that wrap, bounds. A refusal has
 * its completion, is counted as a rejection, and never as started. */
#include "dataplane/ingress/validate.h"

#include "common/rand.h"
#include "tests/unit/dataplane/rig.h"

#define COUNT(g, at) (TENT_METRICS ? tn_load_relaxed64(&(g)->w->stats.m.cells[(at).cell]) : 0)

struct row {
	const char *what;
	void (*spoil)(struct shr_sqe_shm *e);
	tn_status status;
};

#define SPOIL(name, code) \
	static void spoil_##name(struct shr_sqe_shm *e) { code; }
SPOIL(opcode0, e->opcode = 0)
SPOIL(opcode9, e->opcode = 9)
SPOIL(flags, e->flags = 0x8000)
SPOIL(priority, e->priority = TN_PRIORITY_CNT)
SPOIL(intent, e->intent = 7)
SPOIL(hint_domain, e->hint = TN_TRANSPORT_CNT)
SPOIL(hint_unregistered, e->hint = TN_TRANSPORT_RDMA)
SPOIL(hint_wrong_side, e->segment = tn_handle_make(7, 1); e->hint = TN_TRANSPORT_SHM)
SPOIL(reserved, e->reserved2[15] = 1)
SPOIL(note_fields, e->note_len = 1)
SPOIL(zero_length, e->length = 0)
SPOIL(wrap_local, e->local_off = UINT64_MAX - 5; e->length = 10)
SPOIL(wrap_remote, e->remote_off = UINT64_MAX - 5; e->length = 10)
SPOIL(past_local, e->local_off = RIG_BYTES - 10; e->length = 11)
SPOIL(past_remote, e->remote_off = RIG_BYTES - 10; e->length = 11)
SPOIL(huge, e->length = UINT64_MAX)
SPOIL(no_memory, e->memory = 0)
SPOIL(memory_generation, e->memory = tn_handle_make(1, 2))
SPOIL(memory_index, e->memory = tn_handle_make(UINT32_MAX, 1))
SPOIL(memory_of_other, e->memory = tn_handle_make(2, 1))
SPOIL(no_segment, e->segment = 0)
SPOIL(segment_generation, e->segment = tn_handle_make(1, 7))
SPOIL(segment_index, e->segment = tn_handle_make(UINT32_MAX, 1))
SPOIL(segment_of_other, e->segment = tn_handle_make(5, 1))
SPOIL(policy, e->policy = 1)
SPOIL(policy_end, e->policy = TN_CONFIG_POLICY_ID_FIRST)
SPOIL(batch_without_flag, e->batch = 4)
SPOIL(flag_without_batch, e->flags = SHR_SQE_BATCH)
SPOIL(no_local_right, e->memory = tn_handle_make(3, 1))
SPOIL(source_only, e->memory = tn_handle_make(4, 1); e->opcode = SHR_OP_READ)
SPOIL(no_remote_right, e->segment = tn_handle_make(6, 1))
SPOIL(second_buffer_right, e->segment = tn_handle_make(6, 1); e->opcode = SHR_OP_READ; e->remote_off = RIG_BYTES / 2 - 1; e->length = 2)
#undef SPOIL

static const struct row rows[] = {
	{ "opcode 0", spoil_opcode0, TN_INVALID }, { "opcode 9", spoil_opcode9, TN_INVALID }, { "flags", spoil_flags, TN_INVALID },
	{ "priority", spoil_priority, TN_INVALID }, { "intent", spoil_intent, TN_INVALID },
	{ "hint outside its domain", spoil_hint_domain, TN_INVALID }, { "hint not registered", spoil_hint_unregistered, TN_UNSUPPORTED },
	{ "hint for the wrong side", spoil_hint_wrong_side, TN_UNSUPPORTED }, { "reserved", spoil_reserved, TN_INVALID },
	{ "note_len on WRITE", spoil_note_fields, TN_INVALID }, { "length 0", spoil_zero_length, TN_RANGE },
	{ "local wraps", spoil_wrap_local, TN_RANGE }, { "remote wraps", spoil_wrap_remote, TN_RANGE },
	{ "past memory", spoil_past_local, TN_RANGE }, { "past segment", spoil_past_remote, TN_RANGE }, { "huge", spoil_huge, TN_RANGE },
	{ "no memory", spoil_no_memory, TN_INVALID }, { "memory generation", spoil_memory_generation, TN_STALE },
	{ "memory index", spoil_memory_index, TN_STALE }, { "memory of another client", spoil_memory_of_other, TN_STALE },
	{ "no segment", spoil_no_segment, TN_INVALID }, { "segment generation", spoil_segment_generation, TN_STALE },
	{ "segment index", spoil_segment_index, TN_STALE }, { "segment of another client", spoil_segment_of_other, TN_STALE },
	{ "policy", spoil_policy, TN_INVALID }, { "policy never numbered", spoil_policy_end, TN_INVALID }, { "batch without flag", spoil_batch_without_flag, TN_INVALID },
	{ "flag without batch", spoil_flag_without_batch, TN_INVALID }, { "no local right", spoil_no_local_right, TN_PERMISSION },
	{ "READ into a source", spoil_source_only, TN_PERMISSION },
	{ "no remote right", spoil_no_remote_right, TN_PERMISSION }, { "second buffer's right", spoil_second_buffer_right, TN_PERMISSION },
};

static void test_matrix(void)
{
	struct rig g;
	rig_open(&g, NULL, 0, NULL);
	struct dp_memory remote_only = { .handle = tn_handle_make(3, 1), .client_id = RIG_CLIENT,
					 .rights = SHR_RIGHT_REMOTE_READ, .base = g.local.base, .bytes = RIG_BYTES };
	struct dp_remote *other = rig_remote(g.segment, tn_handle_make(5, 1)), *narrow = rig_remote(g.segment, tn_handle_make(6, 1)),
			 *far = rig_remote(g.segment, tn_handle_make(7, 1));
	other->client_id = RIG_CLIENT + 1;
	narrow->buffers[0].rights = SHR_RIGHT_REMOTE_READ;
	narrow->buffers[1].rights = 0;
	far->local = false;
	far->peer_index = 3;
	struct dp_memory source = remote_only;
	source.handle = tn_handle_make(4, 1);
	source.rights = SHR_RIGHT_LOCAL_READ | SHR_RIGHT_REMOTE_READ | SHR_RIGHT_REMOTE_WRITE;
	rig_do(&g, (struct dp_cmd){ .kind = DP_CMD_MEM_ADD, .ptr = &remote_only, .fd = -1 });
	rig_do(&g, (struct dp_cmd){ .kind = DP_CMD_MEM_ADD, .ptr = &source, .fd = -1 });
	rig_do(&g, (struct dp_cmd){ .kind = DP_CMD_REMOTE_SET, .ptr = other, .fd = -1 });
	rig_do(&g, (struct dp_cmd){ .kind = DP_CMD_REMOTE_SET, .ptr = narrow, .fd = -1 });
	rig_do(&g, (struct dp_cmd){ .kind = DP_CMD_REMOTE_SET, .ptr = far, .fd = -1 });
	for (size_t i = 0; i < TN_ARRAY_LEN(rows); i++) {
		struct shr_sqe_shm e = rig_sqe(SHR_OP_WRITE, i + 1, 0, 0, 4096);
		rows[i].spoil(&e);
		struct shr_cqe_shm c = rig_run(&g, e);
		if (c.status != rows[i].status)
			fprintf(stderr, "%s: %s, not %s\n", rows[i].what, tn_status_name(c.status), tn_status_name(rows[i].status));
		CU_ASSERT_EQUAL(c.status, rows[i].status);
		CU_ASSERT_EQUAL(c.flags, SHR_CQE_REFUSED);
		CU_ASSERT_EQUAL(c.user_data, i + 1001);
		CU_ASSERT_EQUAL(c.phase, TN_PHASE_SUBMIT);
	}
	CU_ASSERT_EQUAL(COUNT(&g, TN_C1(LOGICAL_REQUESTS_STARTED_TOTAL, TN_OP_WRITE)), 0);
	uint64_t rejected = 0;
	for (unsigned r = 0; r < TN_REASON_CNT; r++)
		rejected += COUNT(&g, TN_C1(SUBMIT_REJECTIONS_TOTAL, r));
	CU_ASSERT_EQUAL(rejected, TENT_METRICS ? TN_ARRAY_LEN(rows) : 0);
	struct shr_sqe_shm from_source = rig_sqe(SHR_OP_WRITE, 98, 0, 0, 4096);
	from_source.memory = source.handle;
	CU_ASSERT_EQUAL(rig_run(&g, from_source).status, TN_OK);
	struct shr_cqe_shm c = rig_run(&g, rig_sqe(SHR_OP_WRITE, 99, 0, 0, 4096)); /* the client lives on */
	CU_ASSERT_EQUAL(c.status, TN_OK);
	rig_close(&g);
	free(other), free(narrow), free(far);
}

static void test_bounds(void)
{
	static const char *const sets[] = { "limits/max_request_bytes=8192", "deadline/max_ms=1000", "deadline/default_ms=50" };
	struct rig g;
	rig_open(&g, sets, 3, NULL);
	CU_ASSERT_EQUAL(rig_run(&g, rig_sqe(SHR_OP_WRITE, 1, 0, 0, 8192)).status, TN_OK);
	CU_ASSERT_EQUAL(rig_run(&g, rig_sqe(SHR_OP_WRITE, 2, 0, 0, 8193)).status, TN_TOO_BIG);
	uint64_t deadline = 0;
	struct shr_sqe_shm e = rig_sqe(SHR_OP_WRITE, 3, 0, 0, 64);
	CU_ASSERT_EQUAL(dp_validate(&g.w->view, &g.w->ingress, g.q.qp, &e, 1000, &deadline), TN_OK);
	CU_ASSERT_EQUAL(deadline, 1000 + 50 * RIG_MS);
	e.deadline_ns = UINT64_MAX;
	CU_ASSERT_EQUAL(dp_validate(&g.w->view, &g.w->ingress, g.q.qp, &e, 1000, &deadline), TN_OK);
	CU_ASSERT_EQUAL(deadline, 1000 + 1000 * RIG_MS);
	rig_close(&g);
}

/* Random bytes as descriptors: whatever they say, each has at most one completion and nothing leaks. */
static void test_noise(void)
{
	struct rig g;
	rig_open(&g, NULL, 0, NULL);
	struct tn_rand r;
	tn_rand_seed(&r, 77);
	uint32_t sent = 0, got = 0;
	struct shr_cqe_shm c;
	for (int i = 0; i < 20000; i++) {
		struct shr_sqe_shm e = rig_sqe((uint8_t)tn_rand_range(&r, 0, 6), i, tn_rand_below(&r, RIG_BYTES), tn_rand_below(&r, RIG_BYTES),
					       tn_rand_below(&r, 9000));
		uint64_t noise[16];
		memcpy(noise, &e, sizeof noise);
		for (uint64_t n = tn_rand_below(&r, 4); n > 0; n--)
			noise[tn_rand_below(&r, 16)] ^= UINT64_C(1) << tn_rand_below(&r, 64);
		memcpy(&e, noise, sizeof noise);
		uint32_t room = 0;
		CU_ASSERT_EQUAL_FATAL(shr_sq_space(&g.q.sq, 1, &room), TN_OK);
		if (room > 0) {
			rig_submit(&g, e);
			sent++;
		}
		rig_steps(&g, 1);
		while (rig_poll(&g, &c))
			got += c.kind == SHR_CQE_TERMINAL;
	}
	for (int i = 0; i < 50; i++) {
		rig_advance(&g, 1000 * RIG_MS);
		while (rig_poll(&g, &c))
			got += c.kind == SHR_CQE_TERMINAL;
		for (uint32_t k = 0; k < g.event_cnt; k++) /* notices to ourselves: the inbox takes them */
			if (g.events[k].kind == DP_EVT_NOTE)
				free(g.events[k].ptr);
		g.event_cnt = 0;
	}
	CU_ASSERT(got > sent / 2 && got <= sent);
	CU_ASSERT_FALSE(g.q.qp->broken);
	rig_close(&g);
}

TN_TEST_MAIN("validate",
	{ "every field with garbage", test_matrix },
	{ "size and deadline bounds", test_bounds },
	{ "random descriptors", test_noise },
)
