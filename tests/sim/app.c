/* SPDX-License-Identifier: Apache-2.0
 * One task per application's main thread (libtent adds its own). What it does next is drawn; what it asked for is told to
 * the model before, what came back after. */
#include "tests/sim/app.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/sim/host.h"
#include "tests/sim/trouble.h"

#define LOCAL_SMALL 24u
#define LOCAL_SMALL_BYTES 1024u
#define LOCAL_BIG 3u
#define LOCAL_BIG_BYTES 24576u
#define LOCAL_SLOTS (LOCAL_SMALL + LOCAL_BIG)
#define LOCAL_BYTES (LOCAL_SMALL * LOCAL_SMALL_BYTES + LOCAL_BIG * LOCAL_BIG_BYTES)
#define QPS 2u
#define POLL 16
#define PARTS_MAX 6u
#define HEAL_GOOD 3u            /* good WRITEs and READs to each target that prove that it healed */

struct sim_app sim_apps[SIM_APPS];
static uint64_t calm_end_ns;
static uint64_t calm_from_ns;
static bool die_young;

/* Everything of one process. */
struct me {
	struct sim_app *app;
	tent_context *ctx;
	tent_memory *local, *memory;
	uint8_t *local_addr;
	uint8_t *own;               /* the same, where it is imported */
	tent_published *published, *extra; /* extra: of a name that both applications of a host want */
	struct sim_instance *instance;
	tent_segment *segments[SIM_APPS];
	bool stale[SIM_APPS];       /* a request failed in a way that a new handle may cure */
	tent_qp *qps[QPS];
	bool dying[QPS];            /* could not be destroyed yet */
	struct sim_op *users[LOCAL_SLOTS][PARTS_MAX]; /* of a slot of local memory, since it was given out last */
	uint16_t policy;            /* the number of one, 0: none */
	uint32_t next_batch;
	struct { uint32_t number, target; unsigned cnt; struct sim_op *ops[SIM_BATCH_OPS]; } batch[QPS];
	unsigned good_since_calm[SIM_APPS];
	tent_status last[SIM_APPS]; /* of a request, or of opening the segment */
	bool leaving;
	tent_note note;
};

static bool calm(void) { return calm_from_ns != 0; }

/* ---- set-up ---- */

static uint32_t local_offset(uint32_t l)
{
	return l < LOCAL_SMALL ? l * LOCAL_SMALL_BYTES : LOCAL_SMALL * LOCAL_SMALL_BYTES + (l - LOCAL_SMALL) * LOCAL_BIG_BYTES;
}

static bool dead_context(struct me *m)
{
	tent_info info = TENT_INFO_INIT;
	return tent_query(m->ctx, &info) != TENT_OK || info.state == TENT_STATE_DEAD;
}

static bool open_context(struct me *m)
{
	tent_options opt = TENT_OPTIONS_INIT;
	char name[16];
	(void)snprintf(name, sizeof name, "app%u", m->app->index);
	opt.runtime_dir = sim_hosts[m->app->host].runtime_dir;
	opt.app_name = name;
	opt.timeout_ns = 2 * TN_NS_PER_S;
	if (sim_chance(4))
		opt.recover_timeout_ns = sim_pick(10, 500) * TN_NS_PER_MS;
	while (tent_open(&opt, &m->ctx) != TENT_OK)
		sim_sleep(sim_pick(1, 100) * TN_NS_PER_MS);
	return true;
}

/* Of a memfd that the simulator keeps mapped: the model looks at it when the process is gone. */
static bool make_memory(struct me *m)
{
	int fd = memfd_create("sim", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0 || ftruncate(fd, SIM_SEGMENT_BYTES) != 0)
		abort();
	uint8_t *at = mmap(NULL, SIM_SEGMENT_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	tent_status s;
	while ((s = tent_memory_register(m->ctx, fd, 0, SIM_SEGMENT_BYTES, TENT_RIGHT_REMOTE_READ | TENT_RIGHT_REMOTE_WRITE, &m->memory)) !=
	       TENT_OK) {
		if (dead_context(m))
			break;
		sim_sleep(sim_pick(1, 20) * TN_NS_PER_MS);
	}
	(void)close(fd);
	if (s != TENT_OK)
		return false;
	if (sim_chance(3))
		m->own = mmap(NULL, LOCAL_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	while ((s = m->own != NULL ? tent_memory_import(m->ctx, m->own, LOCAL_BYTES, TENT_RIGHT_LOCAL, &m->local) :
				     tent_memory_alloc(m->ctx, LOCAL_BYTES, TENT_RIGHT_LOCAL, 0, &m->local)) != TENT_OK) {
		if (dead_context(m))
			return false;
		sim_sleep(sim_pick(1, 20) * TN_NS_PER_MS);
	}
	m->local_addr = tent_memory_addr(m->local);
	m->instance = sim_instance_new(m->app->index, at);
	return true;
}

static bool publish(struct me *m)
{
	tent_buffer buffer = { .memory = m->memory };
	char name[8];
	(void)snprintf(name, sizeof name, "s%u", m->app->index);
	while (tent_segment_publish(m->ctx, name, &buffer, 1, NULL, &m->published) != TENT_OK) {
		if (dead_context(m))
			return false;
		sim_sleep(sim_pick(1, 50) * TN_NS_PER_MS);
	}
	return true;
}

static void publish_extra(struct me *m)
{
	tent_buffer buffer = { .memory = m->memory, .bytes = 4096, .rights = TENT_RIGHT_REMOTE_READ };
	if (m->extra != NULL && tent_segment_withdraw(m->extra) == TENT_OK)
		m->extra = NULL;
	else if (m->extra == NULL)
		(void)tent_segment_publish(m->ctx, "x", &buffer, 1, NULL, &m->extra);
}

/* Memory of a publication is not given back. */
static void free_too_early(struct me *m)
{
	if (tent_segment_published(m->published) != TENT_OK)
		return;
	tent_status s = tent_memory_free(m->memory);
	sim_check(s != TENT_OK || tent_segment_published(m->published) != TENT_OK, "published", "app %u gave back memory that is published", m->app->index);
	if (s == TENT_OK)
		m->leaving = true;
}

static void make_qps(struct me *m)
{
	tent_qp_options opt = TENT_QP_OPTIONS_INIT;
	opt.depth = sim_chance(3) ? 8 : 32;
	for (unsigned i = 0; i < QPS; i++)
		if (m->qps[i] == NULL)
			(void)tent_qp_create(m->ctx, &opt, &m->qps[i]);
}

static void open_segment(struct me *m, uint32_t target)
{
	char ref[16];
	if (target / 2 == m->app->host)
		(void)snprintf(ref, sizeof ref, "s%u", target);
	else
		(void)snprintf(ref, sizeof ref, "%c/s%u", target / 2 == 0 ? 'a' : 'b', target);
	if (m->segments[target] == NULL)
		m->last[target] = tent_segment_open(m->ctx, ref, &m->segments[target]);
}

/* ---- requests ---- */

static bool local_is_free(const struct me *m, uint32_t l)
{
	for (unsigned i = 0; i < PARTS_MAX; i++)
		if (m->users[l][i] != NULL && m->users[l][i]->state != SIM_OP_OVER)
			return false;
	return true;
}

static uint32_t local_pick(const struct me *m, bool big)
{
	for (uint32_t l = big ? LOCAL_SMALL : 0; l < (big ? LOCAL_SLOTS : LOCAL_SMALL); l++)
		if (local_is_free(m, l))
			return l;
	return LOCAL_SLOTS;
}

static uint64_t pick_deadline(void)
{
	if (calm() || sim_chance(2))
		return 0;
	return tn_now_ns() + (sim_chance(2) ? sim_pick(10, 5000) * TN_NS_PER_US : sim_pick(1, 1000) * TN_NS_PER_MS);
}

static uint32_t batch_for(struct me *m, unsigned q, uint32_t target)
{
	if (m->batch[q].number == 0 || m->batch[q].target != target || m->batch[q].cnt == SIM_BATCH_OPS)
		return 0;
	return m->batch[q].number;
}

static void fill(struct me *m, tent_request *r, struct sim_op *op, uint32_t local, uint32_t local_at, uint32_t batch)
{
	*r = (tent_request){ .opcode = op->opcode, .priority = (tent_priority)sim_pick(0, 2), .memory = m->local,
			     .memory_offset = local_offset(local) + local_at, .segment = m->segments[op->target],
			     .segment_offset = op->offset, .bytes = op->bytes, .user_data = op->id, .batch = batch,
			     .deadline_ns = op->deadline_ns };
	if (!calm() && sim_chance(10))
		r->flags = TENT_REQUEST_AT_MOST_ONCE;
	if (!calm() && sim_chance(12))
		r->hint = sim_chance(3) ? TENT_TRANSPORT_RDMA : sim_chance(2) ? TENT_TRANSPORT_TCP : TENT_TRANSPORT_SHM;
	if (!calm() && sim_chance(6))
		r->policy = m->policy;
}

/* One request, or several over parts of one slot that lie end to end and may be merged. */
static void submit(struct me *m)
{
	unsigned q = (unsigned)sim_pick(0, QPS - 1), parts = sim_chance(4) ? (unsigned)sim_pick(2, PARTS_MAX) : 1, made = 0;
	uint32_t target = (uint32_t)sim_pick(0, SIM_APPS - 1), slot, batch;
	bool big = sim_chance(6);
	tent_request r[PARTS_MAX];
	struct sim_op *op[PARTS_MAX] = { NULL };
	uint64_t deadline_ns = pick_deadline();
	/* From here until the model knows, nobody else runs. */
	if (m->qps[q] == NULL || m->dying[q] || m->segments[target] == NULL || !sim_slot_pick(target, big, &slot))
		return;
	uint32_t local = local_pick(m, big);
	if (local == LOCAL_SLOTS)
		return;
	tent_opcode opcode = sim_chance(3) ? TENT_READ : TENT_WRITE;
	uint32_t room = sim_slots[slot].bytes, each = (uint32_t)sim_pick(1, room / parts), at = (uint32_t)sim_pick(0, room - each * parts);
	batch = batch_for(m, q, target);
	if (batch != 0 && m->batch[q].cnt + parts > SIM_BATCH_OPS)
		parts = 1;
	for (; made < parts; made++) {
		op[made] = sim_op_new(sim_self(), m->app->index, target, slot, sim_slots[slot].offset + at + made * each, each, opcode,
				      m->local_addr + local_offset(local) + made * each);
		if (op[made] == NULL)
			break;
		op[made]->deadline_ns = deadline_ns;
		op[made]->queue = m->qps[q];
		fill(m, &r[made], op[made], local, made * each, batch);
	}
	size_t accepted = 0;
	tent_status s = tent_submit(m->qps[q], r, made, &accepted);
	if (s < 0) { /* the handle cannot serve, and may never again */
		m->last[target] = s;
		m->stale[target] = true;
	}
	for (unsigned i = (unsigned)accepted; i < made; i++)
		sim_op_refused(op[i]);
	if (accepted == 0)
		return;
	memcpy(m->users[local], op, sizeof op);
	sim_trace("app %u: %s of %zu x %u to app %u slot %u, first op %llu", m->app->index, opcode == TENT_READ ? "READ" : "WRITE", accepted,
		  each, target, slot, (unsigned long long)op[0]->id);
	for (unsigned i = 0; batch != 0 && i < accepted; i++)
		m->batch[q].ops[m->batch[q].cnt++] = op[i];
}

static void begin_batch(struct me *m)
{
	unsigned q = (unsigned)sim_pick(0, QPS - 1);
	if (m->batch[q].number != 0)
		return;
	m->batch[q].number = ++m->next_batch;
	m->batch[q].target = (uint32_t)sim_pick(0, SIM_APPS - 1);
	m->batch[q].cnt = 0;
}

static void notify(struct me *m)
{
	unsigned q = (unsigned)sim_pick(0, QPS - 1);
	bool batch = m->batch[q].number != 0;
	uint32_t target = batch ? m->batch[q].target : (uint32_t)sim_pick(0, SIM_APPS - 1);
	struct sim_note *n;
	if (m->qps[q] == NULL || m->dying[q] || m->segments[target] == NULL || (n = sim_note_new(m->app->index, target)) == NULL)
		return;
	if (batch) {
		n->op_cnt = m->batch[q].cnt;
		memcpy(n->ops, m->batch[q].ops, sizeof n->ops);
	}
	n->receiver = sim_apps[target].proc;
	if (tent_notify(m->qps[q], m->segments[target], m->batch[q].number, &n->id, sizeof n->id, n->id, pick_deadline()) != TENT_OK) {
		n->over = true;
		return;
	}
	n->queue = m->qps[q];
	sim_trace("app %u: notice %llu to app %u, batch of %u", m->app->index, (unsigned long long)n->id, target, n->op_cnt);
	m->batch[q].number = 0;
}

static void cancel(struct me *m)
{
	uint32_t l = (uint32_t)sim_pick(0, LOCAL_SLOTS - 1);
	const struct sim_op *op = m->users[l][sim_pick(0, PARTS_MAX - 1)];
	for (unsigned q = 0; q < QPS && op != NULL && op->state == SIM_OP_POSTED; q++)
		if (m->qps[q] != NULL && !m->dying[q])
			(void)tent_cancel(m->qps[q], op->id);
}

/* ---- what comes back ---- */

static void heard(struct me *m, const tent_completion *c)
{
	const struct sim_op *op = sim_op_get(c->user_data);
	if (c->kind == TENT_COMPLETION_NOTIFY) {
		sim_note_completed(c);
		return;
	}
	sim_op_completed(c, sim_self());
	if (c->kind != TENT_COMPLETION_REQUEST || op == NULL)
		return;
	m->last[op->target] = c->status;
	if (c->status == TENT_OK && calm())
		m->good_since_calm[op->target]++;
	if (c->status == TENT_STALE || c->status == TENT_NOT_FOUND || c->status == TENT_PEER_STALE || c->status == TENT_PERMISSION)
		m->stale[op->target] = true;
}

static void take(struct me *m, uint64_t wait_ns)
{
	tent_completion c[POLL];
	for (unsigned q = 0; q < QPS; q++) {
		int n = m->qps[q] == NULL || m->dying[q] ? 0 : wait_ns > 0 ? tent_wait(m->qps[q], c, POLL, wait_ns) : tent_poll(m->qps[q], c, POLL);
		for (int i = 0; i < n; i++)
			heard(m, &c[i]);
		wait_ns = 0;
	}
}

static void receive(struct me *m)
{
	uint64_t id;
	while (tent_note_recv(m->ctx, &m->note, 0) == TENT_OK) {
		if (m->note.kind != TENT_NOTE_DATA)
			continue;
		sim_check(m->note.bytes == sizeof id, "notice", "a notice of %zu bytes", m->note.bytes);
		memcpy(&id, m->note.payload, sizeof id);
		sim_note_received(id, m->app->index);
	}
}

static uint32_t outstanding(const struct me *m)
{
	uint32_t n = 0;
	for (unsigned q = 0; q < QPS; q++)
		n += m->qps[q] != NULL && !m->dying[q] ? tent_qp_outstanding(m->qps[q]) : 0;
	for (uint32_t l = 0; l < LOCAL_SLOTS; l++)
		n += !local_is_free(m, l);
	return n;
}

/* ---- the rest of life ---- */

static void reopen_stale(struct me *m)
{
	for (uint32_t t = 0; t < SIM_APPS; t++) {
		if (m->stale[t] && m->segments[t] != NULL) {
			(void)tent_segment_close(m->segments[t]);
			m->segments[t] = NULL;
			for (unsigned q = 0; q < QPS; q++)
				if (m->batch[q].target == t)
					m->batch[q].number = 0;
		}
		m->stale[t] = false;
		open_segment(m, t);
	}
}

/* Also with requests under way: they end unheard. A failure leaves a queue pair that is good for nothing but another try. */
static void destroy_qp(struct me *m, unsigned q)
{
	m->dying[q] = true;
	if (tent_qp_destroy(m->qps[q]) != TENT_OK)
		return;
	sim_trace("app %u: queue pair %u destroyed", m->app->index, q);
	sim_queue_gone(m->qps[q]);
	m->qps[q] = NULL;
	m->dying[q] = false;
	m->batch[q].number = 0;
	make_qps(m);
}

static void exchange_qp(struct me *m)
{
	unsigned q = (unsigned)sim_pick(0, QPS - 1);
	if (m->qps[q] != NULL && (m->dying[q] || !calm() || outstanding(m) == 0))
		destroy_qp(m, q);
}

static void bury_qps(struct me *m)
{
	for (unsigned q = 0; q < QPS; q++)
		if (m->dying[q])
			destroy_qp(m, q);
}

static void wait_for_all(struct me *m)
{
	while (outstanding(m) > 0 && !dead_context(m)) {
		bury_qps(m);
		take(m, sim_pick(1, 20) * TN_NS_PER_MS);
		receive(m);
	}
	take(m, 0);
}

static void close_segment(struct me *m)
{
	uint32_t t = (uint32_t)sim_pick(0, SIM_APPS - 1);
	if (!calm())
		m->stale[t] = true;
}

static void publish_anew(struct me *m)
{
	if (outstanding(m) > 0) /* its memory is in use, and the context is dead */
		return;
	if (m->extra != NULL && tent_segment_withdraw(m->extra) != TENT_OK)
		return;
	m->extra = NULL;
	if (tent_segment_withdraw(m->published) != TENT_OK)
		return;
	sim_instance_gone(m->instance);
	if (tent_memory_free(m->memory) != TENT_OK || tent_memory_free(m->local) != TENT_OK) {
		m->leaving = true;
		return;
	}
	if (m->own != NULL)
		(void)munmap(m->own, LOCAL_BYTES);
	m->own = NULL;
	if (!make_memory(m) || !publish(m))
		m->leaving = true;
}

/* An operator withdrew it, or a successor of the data plane refused it. */
static void look_at_publication(struct me *m)
{
	tent_status s = tent_segment_published(m->published);
	if (s != TENT_OK && s != TENT_PENDING) {
		wait_for_all(m);
		publish_anew(m);
	}
	if (m->extra != NULL && tent_segment_published(m->extra) < 0 && tent_segment_withdraw(m->extra) == TENT_OK)
		m->extra = NULL;
}

static void find_policy(struct me *m)
{
	char name[4];
	(void)snprintf(name, sizeof name, "p%u", (unsigned)sim_pick(0, 5));
	(void)tent_policy_find(m->ctx, name, &m->policy);
}

static void one_thing(struct me *m)
{
	switch (sim_pick(0, 43)) {
	case 0: begin_batch(m); break;
	case 1:
	case 2: notify(m); break;
	case 3:
	case 4: cancel(m); break;
	case 5: exchange_qp(m); break;
	case 6: reopen_stale(m); break;
	case 7:
		if (!calm() && sim_chance(20) && outstanding(m) == 0)
			publish_anew(m);
		break;
	case 8:
	case 9:
	case 10: take(m, 0); break;
	case 11:
	case 12:
	case 13:
	case 14: take(m, sim_pick(1, 20000) * TN_NS_PER_US); break;
	case 16: close_segment(m); break;
	case 17: publish_extra(m); break;
	case 18:
		if (sim_chance(8))
			free_too_early(m);
		break;
	case 19: find_policy(m); break;
	case 15: sim_sleep(sim_pick(1, 50) * TN_NS_PER_MS); break;
	default: submit(m);
	}
	if (sim_chance(8))
		receive(m);
	sim_sleep(sim_chance(4) ? sim_pick(1, 15) * TN_NS_PER_MS : sim_pick(100, 20000));
}

/* Everybody that can be reached was: WRITE and READ went well, several times, since things stopped going wrong. */
static bool healed(const struct me *m)
{
	for (uint32_t t = 0; t < SIM_APPS; t++)
		if (m->good_since_calm[t] < HEAL_GOOD)
			return false;
	return true;
}

static void leave(struct me *m)
{
	wait_for_all(m);
	for (uint32_t t = 0; t < SIM_APPS; t++)
		if (m->segments[t] != NULL)
			(void)tent_segment_close(m->segments[t]);
	for (unsigned q = 0; q < QPS; q++)
		(void)tent_qp_destroy(m->qps[q]);
	receive(m);
	sim_instance_gone(m->instance);
	tent_status s = tent_close(m->ctx);
	sim_check(!calm() || s == TENT_OK, "drain", "app %u: tent_close() says %d", m->app->index, s);
	m->app->drained = s == TENT_OK;
}

static void *app_main(void *arg)
{
	struct me *m = sim_calloc(1, sizeof *m);
	m->app = arg;
	m->app->me = m;
	m->note.size = sizeof m->note;
	(void)open_context(m);
	if (make_memory(m) && publish(m)) {
		make_qps(m);
		for (uint32_t t = 0; t < SIM_APPS; t++)
			open_segment(m, t);
		while (!m->leaving && !dead_context(m) && (calm_end_ns == 0 || tn_now_ns() < calm_end_ns)) {
			one_thing(m);
			bury_qps(m);
			make_qps(m);
			if (calm() || sim_chance(20))
				look_at_publication(m);
			if (calm())
				reopen_stale(m);
			if (calm() && m->app->healed_ns == 0 && healed(m))
				m->app->healed_ns = sim.now_ns - calm_from_ns;
		}
	}
	leave(m);
	sim_exit_process();
}

static void app_start(void *arg, uint64_t num);

static void app_died(struct sim_proc *p, void *arg)
{
	struct sim_app *a = arg;
	sim_model_died(p, a->index);
	if (calm_end_ns == 0 || sim.now_ns < calm_end_ns)
		sim_after(sim_pick(1, 100) * TN_NS_PER_MS, app_start, a, 0);
}

static void kill_it(void *arg, uint64_t num)
{
	(void)num;
	if (!calm())
		sim_kill(arg);
}

void sim_app_kill_in(uint32_t host, uint64_t delay_ns)
{
	struct sim_proc *p = sim_apps[host * 2 + (uint32_t)sim_pick(0, 1)].proc;
	if (!calm() && sim_trouble_kills() && p != NULL)
		sim_after(delay_ns, kill_it, p, 0);
}

static void app_start(void *arg, uint64_t num)
{
	struct sim_app *a = arg;
	char name[24];
	(void)num;
	(void)snprintf(name, sizeof name, "app%u.%u", a->index, (unsigned)++a->starts);
	a->proc = sim_proc_new(a->host, name);
	a->proc->died = app_died;
	a->proc->died_arg = a;
	a->drained = false;
	(void)sim_spawn(a->proc, "", app_main, a);
	sim_trace("start %s", name);
	if (die_young)
		sim_after(sim_chance(2) ? sim_pick(0, 300000) : sim_pick(0, 5 * TN_NS_PER_MS), kill_it, a->proc, 0);
	die_young = false;
}

void sim_apps_print(void)
{
	for (uint32_t i = 0; i < SIM_APPS; i++) {
		const struct me *m = sim_apps[i].me;
		char text[200] = "";
		int n = 0;
		for (uint32_t t = 0; t < SIM_APPS; t++)
			n += snprintf(text + n, sizeof text - (size_t)n, " %u:%s%u good, last %s", t, m->segments[t] == NULL ? "closed, " : "",
				      m->good_since_calm[t], tent_status_name(m->last[t]));
		sim_trace("%s%s, published %s, queue pairs %s %s:%s", sim_apps[i].proc->name, sim_apps[i].proc->state == SIM_DEAD ? " dead" : "",
			  sim_apps[i].proc->state != SIM_DEAD && m->published != NULL ? tent_status_name(tent_segment_published(m->published)) : "not", m->qps[0] == NULL ? "none" : m->dying[0] ? "dying" : "live",
			  m->qps[1] == NULL ? "none" : m->dying[1] ? "dying" : "live", text);
	}
}

void sim_apps_die_young(void) { die_young = true; }

void sim_apps_start(void)
{
	for (uint32_t i = 0; i < SIM_APPS; i++) {
		sim_apps[i] = (struct sim_app){ .index = i, .host = i / 2 };
		sim_after(sim_pick(0, 100) * TN_NS_PER_MS, app_start, &sim_apps[i], 0);
	}
}

void sim_apps_calm(uint64_t end_ns)
{
	calm_from_ns = sim.now_ns;
	calm_end_ns = end_ns;
}
