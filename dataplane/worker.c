/* SPDX-License-Identifier: Apache-2.0
 * The worker: its life, its loop, and what it offers to its transports. dp_worker_step() is the pipeline, one line per
 * stage; it needs no thread, so tests and the simulator call it with their own time. */
#include "dataplane/worker.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "common/assert.h"
#include "common/clock.h"
#include "common/hook.h"
#include "dataplane/transport/registry.h"
#include "dataplane/worker_state.h"
#include "shm-ring/doorbell.h"
#include "shm-ring/telemetry.h"

#define TRANSPORT_BUDGET 64u
#define NOTE_BUFFERS 1024u
#define PUBLISH_NS (1 * TN_NS_PER_MS)
#define STUCK_SCAN_NS (100 * TN_NS_PER_MS)
#define BULK_SPIN_NS (2 * TN_NS_PER_US) /* what falling asleep costs */
#define SLEEP_MAX_NS (100 * TN_NS_PER_MS)

/* ---- the loop ---- */

static uint32_t drain_one(struct dp_worker *w, struct dp_qp *qp)
{
	if (tn_unlikely(qp->broken)) {
		struct dp_evt evt = { .kind = DP_EVT_CLIENT_BROKEN, .num = qp->cfg.client_id };
		qp->broken_told = qp->broken_told || dp_worker_tell(w, &evt) == TN_OK;
		return 0;
	}
	return qp->closing ? 0 : dp_flow_ingest(w, qp);
}

static uint32_t drain_hot(struct dp_worker *w)
{
	uint32_t done = 0;
	tn_list_foreach(node, &w->hot.qps) {
		struct dp_qp *qp = tn_list_entry(node, struct dp_qp, hot_link);
		uint32_t cnt = drain_one(w, qp);
		done += cnt;
		if (cnt > 0)
			dp_hot_worked(qp, w->now_ns);
		else
			dp_hot_idle(qp, w->now_ns);
	}
	if (done > 0)
		dp_hot_rotate(&w->hot);
	return done;
}

static uint32_t progress_transports(struct dp_worker *w)
{
	uint32_t done = 0;
	for (uint32_t i = 0; i < w->transport_cnt; i++) {
		struct dp_transport *t = w->transports[i];
		uint32_t moved = t->ops->progress(t, w->now_ns, TRANSPORT_BUDGET);
		if (moved > 0)
			t->progress_ns = w->now_ns;
		done += moved;
	}
	return done;
}

TN_STATIC_ASSERT((int)TN_WORKER_KIND_RDMA == (int)TN_TRANSPORT_RDMA && (int)TN_WORKER_KIND_HP_TCP == (int)TN_TRANSPORT_HP_TCP &&
			 (int)TN_WORKER_KIND_TCP == (int)TN_TRANSPORT_TCP && (int)TN_WORKER_KIND_SHM == (int)TN_TRANSPORT_SHM,
		 "a transport has the same number among the kinds of workers");

static void publish(struct dp_worker *w)
{
	struct shr_worker_shm *b = w->stats.block;
	const struct dp_states *st = &w->pools.states;
	uint64_t oldest = UINT64_MAX;
	uint32_t lanes = 0, up = 0;
	tn_list_foreach(node, &w->hot.qps) { /* whoever has requests is hot */
		const struct dp_qp *qp = tn_list_entry(node, struct dp_qp, hot_link);
		const struct dp_request *r = tn_list_first(&qp->requests, struct dp_request, qp_link);
		if (r)
			oldest = TN_MIN(oldest, r->ingress_ns);
	}
	for (uint32_t i = 0; i < w->transport_cnt; i++) {
		const struct dp_transport *t = w->transports[i];
		up |= (uint32_t)(t->up && !(w->selector.off >> t->ops->kind & 1)) << t->ops->kind;
		tn_gauge_set(&w->stats.m, TN_G1(WORKER_LAST_PROGRESS_TIMESTAMP_SECONDS, t->ops->kind), t->progress_ns);
		for (uint32_t p = 0; t->ops->lane_cnt && p < w->view.peer_top; p++)
			lanes += t->ops->lane_cnt(t, p - 1u); /* row 0: to ourselves */
	}
	tn_store_relaxed64(&b->oldest_work_ns, oldest == UINT64_MAX ? 0 : oldest);
	tn_store_relaxed64(&b->loop_ns, w->now_ns);
	tn_store_relaxed64(&b->busy_ns, w->busy_ns);
	tn_store_relaxed64(&b->idle_ns, w->idle_ns);
	tn_store_relaxed64(&b->last_progress_ns, w->last_work_ns);
	tn_store_relaxed32(&b->inflight, st->request[DP_REQUEST_QUEUED] + st->request[DP_REQUEST_RUNNING]);
	tn_store_relaxed32(&b->queued, w->admission.queued);
	tn_store_relaxed64(&b->outstanding_bytes, dp_admission_out_bytes(&w->admission));
	tn_store_relaxed32(&b->batches, w->pools.batches.live);
	tn_store_relaxed32(&b->lanes, lanes);
	tn_store_relaxed32(&b->transports_up, up);
	tn_gauge_set(&w->stats.m, TN_G1(WORKER_LAST_PROGRESS_TIMESTAMP_SECONDS, TN_WORKER_KIND_PROGRESS),
		     w->last_work_ns);
	dp_stats_follow_switch(&w->stats);
	w->last_publish_ns = w->now_ns;
}

static void account(struct dp_worker *w, uint32_t work, uint64_t start_ns)
{
	uint64_t took = w->loop_ns ? w->now_ns - w->loop_ns : 0;
	w->loop_ns = w->now_ns;
	if (work) {
		w->busy_ns += took;
		w->last_work_ns = w->now_ns;
	} else {
		w->idle_ns += took;
	}
	if (start_ns - w->last_publish_ns >= PUBLISH_NS)
		publish(w);
	if (start_ns - w->last_stuck_ns >= STUCK_SCAN_NS) {
		dp_flow_report_stuck(w);
		w->last_stuck_ns = start_ns;
	}
	if (w->evt_ring) {
		w->evt_ring = false;
		(void)!write(w->evt_fd, &(uint64_t){ 1 }, sizeof(uint64_t)); /* full counter: it is readable already */
	}
}

/* Somebody waits for more than bytes: the sockets are asked in each turn. */
static bool in_rush(const struct dp_worker *w)
{
	for (uint32_t i = 0; i < w->transport_cnt; i++)
		if (w->transports[i]->ops->urgent && w->transports[i]->ops->urgent(w->transports[i]))
			return true;
	return false;
}

uint32_t dp_worker_step(struct dp_worker *w, uint64_t now_ns)
{
	uint32_t work = 0;
	w->now_ns = TN_MAX(now_ns, w->now_ns);
	uint64_t start_ns = w->now_ns;
	work += dp_apply_commands(w);
	bool eager = w->remote_attempts > 0 || w->idle_turn || in_rush(w);
	work += dp_poller_spin(&w->poller, eager, w->hot.cold > 0);
	work += drain_hot(w);
	work += dp_flow_timers(w);
	work += dp_notice_send_ready(w);
	work += tn_unlikely(w->stage.in_use) ? dp_stage_step(w) : 0;
	work += dp_flow_dispatch(w);
	work += progress_transports(w);
	work += dp_cq_flush(&w->completion, w->now_ns);
	work += dp_apply_quiesce(w);
	if (work)
		dp_worker_refresh_now(w);
	dp_tally_flush(&w->stats.tally);
	account(w, work, start_ns);
	w->idle_turn = work == 0;
	return work;
}

uint64_t dp_worker_next_ns(const struct dp_worker *w)
{
	uint64_t next = TN_MIN(dp_heap_next_ns(&w->deadlines), dp_heap_next_ns(&w->retries));
	next = TN_MIN(next, dp_cq_ring_ns(&w->completion));
	next = TN_MIN(next, dp_admission_next_ns(&w->admission));
	if (tn_unlikely(w->stage.in_use))
		next = TN_MIN(next, dp_stage_next_ns(w));
	for (uint32_t i = 0; i < w->transport_cnt; i++) {
		const struct dp_transport *t = w->transports[i];
		next = TN_MIN(next, t->ops->busy(t) ? w->now_ns : t->ops->next_timer_ns(t));
	}
	if (!tn_list_empty(&w->quiescing) || !tn_list_empty(&w->completion.notes))
		next = TN_MIN(next, w->now_ns + TN_NS_PER_MS);
	return next;
}

/* ---- sleeping ---- */

/* Work that came since it was last looked for. */
static bool something_waits(const struct dp_worker *w, bool *blocked_out)
{
	return dp_hot_waits(&w->hot, blocked_out) || shr_mailbox_pending(&w->cmds);
}

static void arm(struct dp_worker *w, bool on)
{
	tn_store_relaxed32(&w->armed, on);
	dp_hot_arm(&w->hot, on);
}

static uint64_t sleep_limit(const struct dp_worker *w, bool blocked)
{
	uint64_t next = dp_worker_next_ns(w);
	return TN_MIN(tn_remaining_ns(next, w->now_ns), blocked ? TN_NS_PER_MS : SLEEP_MAX_NS);
}

/* Whatever moves bytes now moves large blocks. */
static bool in_bulk(const struct dp_worker *w)
{
	for (uint32_t i = 0; i < w->transport_cnt; i++)
		if (w->transports[i]->ops->bulk && w->transports[i]->ops->bulk(w->transports[i]))
			return true;
	return false;
}

bool dp_worker_sleep_begin(struct dp_worker *w, uint64_t *until_ns_out)
{
	bool blocked;
	if (!w->poller.precise)
		(void)dp_cq_flush(&w->completion, UINT64_MAX); /* it may sleep too long for who waits to be rung */
	if (!in_bulk(w) || w->now_ns - w->last_publish_ns >= PUBLISH_NS) /* in bulk it sleeps often, and not for long */
		publish(w);
	arm(w, true);
	/* [D1] [D3] full: armed = 1 is visible before the re-check reads rings and mailbox. */
	shr_doorbell_arm_fence();
	if (something_waits(w, &blocked)) {
		arm(w, false);
		return false;
	}
	*until_ns_out = w->now_ns + sleep_limit(w, blocked);
	return true;
}

void dp_worker_sleep_end(struct dp_worker *w, uint64_t now_ns, uint32_t served)
{
	w->idle_ns += now_ns - w->now_ns;
	w->now_ns = w->loop_ns = now_ns;
	if (served)
		w->last_work_ns = now_ns; /* something will follow: spin for it */
	arm(w, false);
}

static bool spins(const struct dp_worker *w)
{
	uint64_t spin_ns = in_bulk(w) ? TN_MIN(w->spin_ns, BULK_SPIN_NS) : w->spin_ns;
	return w->busy_mode || w->now_ns - w->last_work_ns < spin_ns || dp_worker_next_ns(w) <= w->now_ns;
}

static void idle(struct dp_worker *w)
{
	uint64_t until_ns;
	if (spins(w)) {
		tn_cpu_relax();
	} else if (dp_worker_sleep_begin(w, &until_ns)) {
		uint32_t served = dp_poller_sleep(&w->poller, until_ns - w->now_ns);
		dp_worker_sleep_end(w, tn_now_ns(), served);
	}
}

static void *thread_main(void *arg)
{
	struct dp_worker *w = arg;
	tn_store_relaxed32(&w->stats.block->alive, 1);
	w->now_ns = w->last_work_ns = tn_now_ns();
	while (!w->stopped && !tn_load_relaxed32(&w->abort)) {
		if (dp_worker_step(w, tn_now_ns()) == 0)
			idle(w);
	}
	(void)dp_cq_flush(&w->completion, UINT64_MAX);
	publish(w);
	tn_store_relaxed32(&w->stats.block->alive, 0);
	/* [W1] release: all that this thread did is over before the control thread takes the worker apart. */
	tn_store_release32(&w->exited, 1);
	return NULL;
}

/* ---- life ---- */

static struct dp_admission_cfg admission_cfg(const struct dp_worker *w, const struct tn_config *c)
{
	return (struct dp_admission_cfg){
		.targets = w->view.peer_cap + 1,
		.quantum_bytes = tn_config_u64(c, TN_CFG_ADMISSION_QUANTUM_BYTES),
		.window_owners = (uint32_t)tn_config_u64(c, TN_CFG_ADMISSION_WINDOW_OWNERS),
		.peer_window_owners = (uint32_t)tn_config_u64(c, TN_CFG_ADMISSION_PEER_WINDOW_OWNERS),
		.window_bytes = tn_config_u64(c, TN_CFG_ADMISSION_WINDOW_BYTES),
		.peer_window_bytes = tn_config_u64(c, TN_CFG_ADMISSION_PEER_WINDOW_BYTES),
		.stall_ns = tn_config_ns(c, TN_CFG_ADMISSION_STALL_MS),
		.edf = tn_config_bool(c, TN_CFG_ADMISSION_EDF),
		.drop_infeasible = tn_config_bool(c, TN_CFG_ADMISSION_DROP_INFEASIBLE),
	};
}

static tn_status make_admission(struct dp_worker *w)
{
	struct dp_admission_cfg cfg = admission_cfg(w, w->config);
	return dp_admission_init(&w->admission, &cfg, &w->stats.m, &w->stats.tally);
}

static tn_status make_transports(struct dp_worker *w)
{
	const struct dp_transport_ops *listed[TN_TRANSPORT_CNT] = { 0 };
	const struct dp_transport_ops *const *ops = w->env->transports;
	uint32_t cnt = 0;
	if (!ops) {
		cnt = dp_registry_list(w->config, listed);
		ops = listed;
	} else {
		while (cnt < TN_TRANSPORT_CNT && ops[cnt])
			cnt++;
	}
	for (uint32_t i = 0; i < cnt; i++) {
		struct dp_transport *t;
		tn_status s = ops[i]->create(w, &t);
		if (s == TN_UNSUPPORTED)
			continue; /* not on this host: the others serve */
		if (s != TN_OK)
			return s;
		w->transports[w->transport_cnt++] = t;
		w->selector.by_kind[ops[i]->kind] = t;
		w->ingress.transports |= UINT32_C(1) << ops[i]->kind;
	}
	return TN_OK;
}

static void wake_ready(struct dp_pollable *p, uint32_t events)
{
	uint64_t sink;
	(void)events;
	(void)!read(p->fd, &sink, sizeof sink);
}

static tn_status make_mail(struct dp_worker *w)
{
	w->wake = (struct dp_pollable){ .ready = wake_ready, .fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK) };
	w->evt_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (w->wake.fd < 0 || w->evt_fd < 0)
		return tn_status_from_errno(errno);
	tn_status s;
	if ((s = shr_mailbox_create(&w->cmds, sizeof(struct dp_cmd), DP_MAILBOX_ENTRIES)) != TN_OK ||
	    (s = shr_mailbox_create(&w->evts, sizeof(struct dp_evt), DP_MAILBOX_ENTRIES)) != TN_OK ||
	    (s = dp_poller_add(&w->poller, &w->wake, EPOLLIN, false)) != TN_OK)
		return s;
	w->quiesces = calloc(DP_QUIESCE_MAX, sizeof *w->quiesces);
	if (!w->quiesces)
		return TN_NO_MEMORY;
	for (uint32_t i = 0; i < DP_QUIESCE_MAX; i++)
		tn_list_push_back(&w->quiesce_free, &w->quiesces[i].link);
	return TN_OK;
}

void dp_worker_tune(struct dp_worker *w, const struct tn_config *cfg)
{
	if (!cfg)
		return;
	w->config = cfg;
	dp_selector_tune(&w->selector, cfg, w->now_ns);
	dp_owner_select_anew(w);
	w->ingress.policy_end = tn_config_policy_id_end(cfg);
	w->tuning = (struct dp_tuning){
		.attempts_max = (uint32_t)tn_config_u64(cfg, TN_CFG_RETRY_MAX_ATTEMPTS),
		.backoff_base_ns = tn_config_ns(cfg, TN_CFG_RETRY_BASE_DELAY_MS),
		.backoff_max_ns = tn_config_ns(cfg, TN_CFG_RETRY_MAX_DELAY_MS),
	};
	w->stage.cleanup_ns = tn_config_ns(cfg, TN_CFG_STAGING_CLEANUP_MS);
	struct dp_admission_cfg admission = admission_cfg(w, cfg);
	dp_admission_tune(&w->admission, &admission);
	dp_stats_tune(&w->stats, cfg);
}

static void set_cold(struct dp_worker *w)
{
	const struct tn_config *c = w->config;
	w->ingress.max_request_bytes = tn_config_u64(c, TN_CFG_LIMITS_MAX_REQUEST_BYTES);
	w->ingress.default_deadline_ns = tn_config_ns(c, TN_CFG_DEADLINE_DEFAULT_MS);
	w->ingress.max_deadline_ns = tn_config_ns(c, TN_CFG_DEADLINE_MAX_MS);
	w->merge = tn_config_bool(c, TN_CFG_ADMISSION_MERGE);
	w->merge_max_bytes = tn_config_u64(c, TN_CFG_ADMISSION_MERGE_MAX_BYTES);
	w->busy_mode = tn_config_enum(c, TN_CFG_POLL_MODE) == TN_POLL_MODE_BUSY;
	w->spin_ns = tn_config_ns(c, TN_CFG_POLL_SPIN_US);
}

static tn_status make_parts(struct dp_worker *w, uint64_t seed)
{
	uint32_t requests = (uint32_t)tn_config_u64(w->config, TN_CFG_LIMITS_MAX_REQUESTS_PER_WORKER);
	tn_status s;
	if ((s = dp_stats_init(&w->stats, w->env->telemetry, w->index, w->config, seed)) != TN_OK ||
	    (s = dp_view_init(&w->view, w->config, tn_rand_u64(&w->rand))) != TN_OK ||
	    (s = dp_loads_init(&w->loads, w->view.peer_cap)) != TN_OK ||
	    (s = dp_rails_init(&w->selector.rails, w->view.peer_cap, &w->rand)) != TN_OK ||
	    (s = dp_pools_init(&w->pools, w->index, requests, NOTE_BUFFERS)) != TN_OK ||
	    (s = dp_heap_init(&w->deadlines, requests, offsetof(struct dp_request, timer_slot))) != TN_OK ||
	    (s = dp_heap_init(&w->retries, requests + DP_STAGE_MOVING_MAX, offsetof(struct dp_owner, retry_slot))) != TN_OK ||
	    (s = make_admission(w)) != TN_OK ||
	    (s = dp_poller_init(&w->poller)) != TN_OK ||
	    (s = make_mail(w)) != TN_OK)
		return s;
	dp_completion_init(&w->completion, &w->pools, &w->deadlines, &w->view, &w->stats);
	w->selector.m = &w->stats.m;
	w->selector.tally = &w->stats.tally;
	dp_worker_tune(w, w->config);
	return make_transports(w);
}

tn_status dp_worker_new(const struct dp_worker_env *env, uint32_t index, struct dp_worker **out)
{
	/* Its size is a multiple of its alignment, as aligned_alloc wants: the mailboxes in it are cache-aligned. */
	struct dp_worker *w = aligned_alloc(_Alignof(struct dp_worker), sizeof *w);
	if (!w)
		return TN_NO_MEMORY;
	memset(w, 0, sizeof *w);
	w->env = env;
	w->config = env->config;
	w->index = index;
	w->poller.epfd = w->wake.fd = w->evt_fd = -1;
	w->cpu = UINT32_MAX;
	tn_list_init(&w->qps);
	dp_hot_init(&w->hot);
	tn_list_init(&w->waiting);
	dp_stage_init(&w->stage);
	tn_list_init(&w->orphans);
	tn_list_init(&w->quiescing);
	tn_list_init(&w->quiesce_free);
	/* Seeds from the session, which is random on a host and given in the simulator. */
	uint64_t seed;
	memcpy(&seed, env->session.b, sizeof seed);
	tn_rand_seed(&w->rand, seed + index);
	set_cold(w);
	tn_status s = make_parts(w, seed ^ (uint64_t)index << 56);
	if (s != TN_OK) {
		dp_worker_free(w);
		return s;
	}
	*out = w;
	return TN_OK;
}

void dp_worker_free(struct dp_worker *w)
{
	if (!w)
		return;
	for (uint32_t i = w->transport_cnt; i-- > 0;)
		w->transports[i]->ops->destroy(w->transports[i]);
	shr_mailbox_destroy(&w->cmds);
	shr_mailbox_destroy(&w->evts);
	free(w->quiesces);
	if (w->wake.fd >= 0)
		close(w->wake.fd);
	if (w->evt_fd >= 0)
		close(w->evt_fd);
	dp_poller_destroy(&w->poller);
	dp_admission_destroy(&w->admission);
	dp_heap_destroy(&w->retries);
	dp_heap_destroy(&w->deadlines);
	dp_pools_destroy(&w->pools);
	dp_rails_destroy(&w->selector.rails);
	dp_loads_destroy(&w->loads);
	dp_view_destroy(&w->view);
	dp_stats_destroy(&w->stats);
	free(w);
}

static tn_status make_attr(pthread_attr_t *attr, uint32_t cpu)
{
	int err = pthread_attr_init(attr);
	if (err)
		return tn_status_from_errno(err);
	if (cpu == UINT32_MAX)
		return TN_OK;
	cpu_set_t set;
	CPU_ZERO(&set);
	if (cpu < CPU_SETSIZE)
		CPU_SET(cpu, &set);
	err = pthread_attr_setaffinity_np(attr, sizeof set, &set);
	if (err)
		pthread_attr_destroy(attr);
	return tn_status_from_errno(err);
}

tn_status dp_worker_start(struct dp_worker *w, uint32_t cpu)
{
	pthread_attr_t attr;
	tn_status s = make_attr(&attr, cpu);
	if (s != TN_OK)
		return s;
	w->cpu = cpu;
	w->real_time = true;
	tn_store_relaxed32(&w->stats.block->cpu, cpu);
	/* The thread inherits a mask that blocks everything: signals belong to the control thread. Except the one that it
	 * raises itself when it touches a page that cannot be had (segment/fault.h): blocked, it ends the process. */
	sigset_t all, old;
	sigfillset(&all);
	sigdelset(&all, SIGBUS);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	int err = TN_HOOK_FAIL(dp_worker_start) ? EAGAIN : pthread_create(&w->thread, &attr, thread_main, w);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&attr);
	if (err)
		return tn_status_from_errno(err);
	w->started = true;
	char name[16];
	snprintf(name, sizeof name, "tent-w%u", w->index % 1000u);
	pthread_setname_np(w->thread, name);
	return TN_OK;
}

void dp_worker_join(struct dp_worker *w, uint64_t deadline_ns)
{
	if (!w->started)
		return;
	struct timespec nap = { .tv_nsec = (long)TN_NS_PER_MS };
	/* [W1] acquire: pairs with the thread's last store. */
	while (!tn_load_acquire32(&w->exited) && tn_now_ns() < deadline_ns)
		nanosleep(&nap, NULL);
	/* Not quiet in time: leave the loop as it is. One iteration is bounded, so the join is, too. */
	tn_store_relaxed32(&w->abort, 1);
	(void)!write(w->wake.fd, &(uint64_t){ 1 }, sizeof(uint64_t));
	pthread_join(w->thread, NULL);
	w->started = false;
}

/* ---- mailboxes ---- */

tn_status dp_worker_post(struct dp_worker *w, const struct dp_cmd *cmd)
{
	if (!shr_mailbox_push(&w->cmds, cmd))
		return TN_AGAIN;
	/* [D3] full: the command is visible before armed is read. */
	shr_doorbell_publish_fence();
	if (shr_doorbell_is_armed(&w->armed))
		(void)!write(w->wake.fd, &(uint64_t){ 1 }, sizeof(uint64_t));
	return TN_OK;
}

tn_status dp_worker_take(struct dp_worker *w, struct dp_evt *evt_out)
{
	return shr_mailbox_pop(&w->evts, evt_out) ? TN_OK : TN_AGAIN;
}

int dp_worker_event_fd(const struct dp_worker *w) { return w->evt_fd; }

void dp_worker_load_add(const struct dp_worker *w, uint32_t peer_index, struct dp_load_sum *sum)
{
	dp_load_add(&w->loads, peer_index, sum);
}

bool dp_worker_path_info(const struct dp_worker *w, enum tn_transport kind, uint32_t peer_index, struct dp_path_info *out)
{
	const struct dp_transport *t = w->selector.by_kind[kind]; /* set before the thread started, constant since */
	if (!t || !t->ops->path_info)
		return false;
	t->ops->path_info(t, peer_index, out);
	return true;
}

tn_status dp_worker_tell(struct dp_worker *w, const struct dp_evt *evt)
{
	struct dp_evt e = *evt;
	e.worker = w->index;
	if (!shr_mailbox_push(&w->evts, &e))
		return TN_AGAIN;
	w->evt_ring = true;
	return TN_OK;
}

enum dp_rail_state dp_worker_rail(const struct dp_worker *w, enum tn_transport kind, uint32_t peer_index,
				  uint64_t *until_ns_out)
{
	return dp_rails_look(&w->selector.rails, kind, peer_index, until_ns_out);
}
