/* SPDX-License-Identifier: Apache-2.0
 * A worker without a thread, with virtual time, and everything an application would have: a queue pair, two memories, a
 * published segment and an opened handle on it. Test code only; one thread plays worker, control thread and client. */
#ifndef TEST_DATAPLANE_RIG_H
#define TEST_DATAPLANE_RIG_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/metrics_check.h"
#include "dataplane/worker_state.h"
#include "shm-ring/doorbell.h"
#include "tests/unit/cu.h"
#include "tests/unit/small_tables.h"

#define RIG_SQ 64u
#define RIG_NOTES 8u
#define RIG_BYTES (4u << 20)
#define RIG_T0 UINT64_C(1000000000000)
#define RIG_CLIENT 7u
#define RIG_MS UINT64_C(1000000)

struct rig_qp {
	uint8_t *region;
	struct shr_qp_view view;
	struct shr_sq_prod sq;
	struct shr_cq_cons cq;
	int bells[2];
	struct dp_qp *qp;
	uint64_t id;
};

struct rig {
	struct tn_config *config;
	struct dp_worker_env env;
	struct dp_worker *w;
	uint64_t now;
	struct dp_memory local, target;  /* handles 1/1 and 2/1 */
	struct dp_segment *segment;      /* handle 1/1, two buffers over `target` */
	struct dp_remote *remote;        /* handle 1/1, local */
	struct rig_qp q;
	uint64_t cmd_seq;
	uint64_t acked;                  /* id of the last acknowledgement */
	int32_t ack_status;
	struct dp_evt events[64];        /* other events */
	uint32_t event_cnt;
};

#define RIG_FATAL(cond) \
	do { \
		if (!(cond)) { \
			fprintf(stderr, "%s:%d: rig: %s\n", __FILE__, __LINE__, #cond); \
			abort(); \
		} \
	} while (0)

static inline void rig_take_events(struct rig *g)
{
	struct dp_evt e;
	while (dp_worker_take(g->w, &e) == TN_OK) {
		if (e.kind == DP_EVT_ACK) {
			g->acked = e.id;
			g->ack_status = e.status;
		} else if (g->event_cnt < TN_ARRAY_LEN(g->events)) {
			g->events[g->event_cnt++] = e;
		}
	}
}

/* `n` steps, 1 us apart. */
static inline void rig_steps(struct rig *g, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		g->now += 1000;
		dp_worker_step(g->w, g->now);
		rig_take_events(g);
	}
}

static inline void rig_advance(struct rig *g, uint64_t ns)
{
	g->now += ns;
	rig_steps(g, 2);
}

/* Posts a command with an id; returns the id. */
static inline uint64_t rig_post(struct rig *g, struct dp_cmd cmd)
{
	cmd.id = ++g->cmd_seq;
	RIG_FATAL(dp_worker_post(g->w, &cmd) == TN_OK);
	return cmd.id;
}

/* Posts a command and expects its acknowledgement at once. */
static inline tn_status rig_do(struct rig *g, struct dp_cmd cmd)
{
	uint64_t id = rig_post(g, cmd);
	rig_steps(g, 2);
	RIG_FATAL(g->acked == id);
	return (tn_status)g->ack_status;
}

static inline void rig_qp_make(struct rig *g, struct rig_qp *q, uint64_t id, uint32_t client)
{
	struct shr_qp_layout lay;
	RIG_FATAL(shr_qp_layout(RIG_SQ, RIG_NOTES, &lay) == TN_OK);
	q->region = aligned_alloc(SHR_PAGE, lay.region_bytes);
	memset(q->region, 0, lay.region_bytes);
	shr_qp_format(q->region, &lay, (uint32_t)id, &q->view);
	shr_sq_prod_init(&q->sq, &q->view);
	shr_cq_cons_init(&q->cq, &q->view);
	RIG_FATAL(shr_doorbell_create(q->bells) == TN_OK);
	struct dp_qp_cfg cfg = {
		.id = id, .client_id = client, .client_uid = 1000, .region = q->region, .region_bytes = lay.region_bytes,
		.sq_entries = lay.sq_entries, .cq_entries = lay.cq_entries, .note_slots = lay.note_slots, .doorbell_fd = q->bells[0],
	};
	q->id = id;
	q->qp = dp_qp_new(&cfg);
	RIG_FATAL(q->qp);
	RIG_FATAL(rig_do(g, (struct dp_cmd){ .kind = DP_CMD_QP_ADD, .ptr = q->qp, .fd = -1 }) == TN_OK);
}

static inline void rig_qp_free(struct rig_qp *q)
{
	dp_qp_free(q->qp);
	close(q->bells[0]);
	close(q->bells[1]);
	free(q->region);
}

static inline struct dp_remote *rig_remote(const struct dp_segment *seg, tn_handle handle)
{
	struct dp_remote *r = calloc(1, sizeof *r + seg->buffer_cnt * sizeof r->buffers[0]);
	*r = (struct dp_remote){
		.handle = handle, .client_id = RIG_CLIENT, .local = true, .segment = seg->handle, .generation = seg->generation,
		.bytes = seg->bytes, .buffer_cnt = seg->buffer_cnt, .peer_index = DP_PEER_SELF,
	};
	for (uint32_t i = 0; i < seg->buffer_cnt; i++)
		r->buffers[i] = (struct dp_remote_buffer){
			.registration = seg->buffers[i].registration, .bytes = seg->buffers[i].bytes,
			.segment_off = seg->buffers[i].segment_off, .rights = seg->buffers[i].rights,
		};
	return r;
}

static inline struct tn_config *rig_config(const char *const *sets, size_t cnt)
{
	static struct tn_config_errors errors;
	struct tn_config *c;
	const char *const env[] = { NULL };
	const char *all[SETS_MAX] = { SMALL_TABLES };
	struct tn_config_opts opts = { .size = sizeof opts, .sets = all, .set_cnt = sets_append(all, sets, cnt), .env = env,
	                               .default_path = "/nonexistent" };
	if (tn_config_load(&opts, &c, &errors) != TN_OK) {
		tn_config_errors_print(&errors, stderr);
		abort();
	}
	return c;
}

static inline void rig_open_tele(struct rig *g, const char *const *sets, size_t set_cnt,
				 const struct dp_transport_ops *const *ops, const struct shr_tele *tele)
{
	*g = (struct rig){ .now = RIG_T0 };
	g->config = rig_config(sets, set_cnt);
	g->env = (struct dp_worker_env){ .config = g->config, .session.b = { 1, 2, 3 }, .worker_cnt = 1, .transports = ops,
					 .telemetry = tele };
	RIG_FATAL(dp_worker_new(&g->env, 0, &g->w) == TN_OK);
	g->local = (struct dp_memory){ .handle = tn_handle_make(1, 1), .client_id = RIG_CLIENT, .rights = SHR_RIGHT_ALL,
				       .base = aligned_alloc(SHR_PAGE, RIG_BYTES), .bytes = RIG_BYTES };
	g->target = (struct dp_memory){ .handle = tn_handle_make(2, 1), .client_id = 9, .rights = SHR_RIGHT_ALL,
					.base = aligned_alloc(SHR_PAGE, RIG_BYTES), .bytes = RIG_BYTES };
	memset(g->local.base, 0xa5, RIG_BYTES);
	memset(g->target.base, 0, RIG_BYTES);
	g->segment = calloc(1, sizeof *g->segment + 2 * sizeof g->segment->buffers[0]);
	*g->segment = (struct dp_segment){ .handle = tn_handle_make(1, 1), .client_id = 9, .generation = 5, .bytes = RIG_BYTES,
					   .buffer_cnt = 2, .name = "seg" };
	for (uint32_t i = 0; i < 2; i++)
		g->segment->buffers[i] = (struct dp_buffer){
			.registration = 100 + i, .base = g->target.base + i * (RIG_BYTES / 2), .bytes = RIG_BYTES / 2,
			.segment_off = i * (RIG_BYTES / 2), .rights = SHR_RIGHT_REMOTE_READ | SHR_RIGHT_REMOTE_WRITE,
			.memory = g->target.handle,
		};
	g->remote = rig_remote(g->segment, tn_handle_make(1, 1));
	RIG_FATAL(rig_do(g, (struct dp_cmd){ .kind = DP_CMD_MEM_ADD, .ptr = &g->local, .fd = -1 }) == TN_OK);
	RIG_FATAL(rig_do(g, (struct dp_cmd){ .kind = DP_CMD_MEM_ADD, .ptr = &g->target, .fd = -1 }) == TN_OK);
	RIG_FATAL(rig_do(g, (struct dp_cmd){ .kind = DP_CMD_SEG_ADD, .ptr = g->segment, .fd = -1 }) == TN_OK);
	RIG_FATAL(rig_do(g, (struct dp_cmd){ .kind = DP_CMD_REMOTE_SET, .ptr = g->remote, .fd = -1 }) == TN_OK);
	rig_qp_make(g, &g->q, 11, RIG_CLIENT);
}

static inline void rig_open(struct rig *g, const char *const *sets, size_t set_cnt, const struct dp_transport_ops *const *ops)
{
	rig_open_tele(g, sets, set_cnt, ops, NULL);
}

static inline void rig_check_equations(struct rig *g)
{
	struct tn_equation_breach b[8];
	static uint64_t cells[TN_METRIC_CELL_CNT];
	for (unsigned i = 0; i < TN_METRIC_CELL_CNT; i++)
		cells[i] = tn_load_relaxed64(&g->w->stats.m.cells[i]);
	unsigned n = tn_metric_equations_check(cells, b, TN_ARRAY_LEN(b));
	for (unsigned i = 0; i < n && i < TN_ARRAY_LEN(b); i++)
		fprintf(stderr, "equation %u broken: %s\n", b[i].equation, b[i].text);
	CU_ASSERT_EQUAL(n, 0);
}

/* Every rig ends with: equations hold, nothing is left in any pool. */
static inline void rig_close(struct rig *g)
{
	rig_check_equations(g);
	uint64_t id = rig_post(g, (struct dp_cmd){ .kind = DP_CMD_STOP, .fd = -1 });
	rig_steps(g, 3);
	CU_ASSERT_EQUAL(g->acked, id);
	CU_ASSERT_TRUE(g->w->stopped);
	CU_ASSERT_EQUAL(g->w->pools.requests.live, 0);
	CU_ASSERT_EQUAL(g->w->pools.owners.live, 0);
	CU_ASSERT_EQUAL(g->w->pools.attempts.live, 0);
	CU_ASSERT_EQUAL(dp_admission_out_owners(&g->w->admission), 0);
	CU_ASSERT_EQUAL(g->w->admission.queued, 0);
	rig_check_equations(g);
	for (uint32_t i = 0; i < g->event_cnt; i++)
		if (g->events[i].kind == DP_EVT_NOTE)
			free(g->events[i].ptr);
	dp_worker_free(g->w);
	rig_qp_free(&g->q);
	free(g->local.base);
	free(g->target.base);
	free(g->segment);
	free(g->remote);
	tn_config_free(g->config);
}

/* ---- the application ---- */

static inline struct shr_sqe_shm rig_sqe(uint8_t op, uint64_t token, uint64_t local_off, uint64_t remote_off, uint64_t len)
{
	return (struct shr_sqe_shm){
		.user_data = token + 1000, .token = token, .segment = tn_handle_make(1, 1), .remote_off = remote_off,
		.memory = tn_handle_make(1, 1), .local_off = local_off, .length = len, .opcode = op, .priority = TN_PRIORITY_MEDIUM,
	};
}

static inline void rig_submit_on(struct rig_qp *q, const struct shr_sqe_shm *sqe, uint32_t cnt)
{
	uint32_t room;
	RIG_FATAL(shr_sq_space(&q->sq, cnt, &room) == TN_OK && room >= cnt);
	for (uint32_t i = 0; i < cnt; i++)
		shr_sq_put(&q->sq, &sqe[i]);
	shr_sq_publish(&q->sq);
	(void)shr_doorbell_ring_if_armed(&q->view.qp->sq_armed.value, q->bells[1]);
}

static inline void rig_submit(struct rig *g, struct shr_sqe_shm sqe) { rig_submit_on(&g->q, &sqe, 1); }

/* Takes one completion; false when there is none. */
static inline bool rig_poll_on(struct rig_qp *q, struct shr_cqe_shm *out)
{
	uint32_t avail;
	RIG_FATAL(shr_cq_peek(&q->cq, 1, &avail) == TN_OK);
	if (avail == 0)
		return false;
	shr_cq_copy(&q->cq, 0, out);
	shr_cq_release(&q->cq, 1);
	return true;
}

static inline bool rig_poll(struct rig *g, struct shr_cqe_shm *out) { return rig_poll_on(&g->q, out); }

/* Submits, steps and takes its terminal completion. */
static inline struct shr_cqe_shm rig_run(struct rig *g, struct shr_sqe_shm sqe)
{
	struct shr_cqe_shm c = { .status = TN_PENDING };
	rig_submit(g, sqe);
	for (int i = 0; i < 200 && !rig_poll(g, &c); i++)
		rig_steps(g, 1);
	CU_ASSERT_EQUAL(c.token, sqe.token);
	return c;
}

#endif
