/* SPDX-License-Identifier: Apache-2.0
 * Each worker has one connection to the other host. Parts of WRITEs carry a copy of their bytes, taken when they left; what
 * happens to them from then on is the network's and the other end's business: they land in memory there, without anybody's
 * processor, as long as the connection that they came over is the one which that end accepts. A connection that breaks
 * leaves parts behind; the next one, once accepted, makes all of them void. One thread. */
#include "tests/sim/fabric.h"

#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "common/bits.h"
#include "dataplane/transport/registry.h"
#include "dataplane/worker_state.h"
#include "tests/sim/fd.h"
#include "tests/sim/host.h"
#include "tests/sim/net.h"

#define FLIGHTS 48u
#define PARTS_OUT 12u
#define TRY_NS (5 * TN_NS_PER_MS)

uint32_t __real_dp_registry_list(const struct tn_config *cfg, const struct dp_transport_ops *out[static TN_TRANSPORT_CNT]);
uint32_t __wrap_dp_registry_list(const struct tn_config *cfg, const struct dp_transport_ops *out[static TN_TRANSPORT_CNT]);

/* An attempt, and what is left of it in the network. */
struct flight {
	struct dp_attempt *a;     /* NULL: it is over */
	uint32_t out;             /* parts that the connection of now still owes an answer */
	bool left, landed;        /* WRITE: a part left; one was answered */
	bool canceled, doubt;     /* doubt: it broke with parts on their way, and waits for the fence */
	bool unfenced;            /* or does not wait */
	struct dp_result failure; /* the first one; status 0: none */
};

enum state { CLOSED, ASKING, UP };

struct fabric {
	struct dp_transport base;
	struct fabric *next;      /* of all that ever were */
	struct sim_proc *proc;
	struct sim_obj *bell;     /* NULL: it is gone */
	struct dp_pollable wake;
	struct tn_id128 there;    /* the incarnation of the other end that we know */
	uint32_t peer_index;
	bool known, broken;       /* broken: to be seen by its next progress() */
	enum state state;
	uint64_t number;          /* of the connection: answers of earlier ones are void */
	uint64_t try_ns, probe_ns;
	struct part *answers, **answers_tail;
	struct flight *flights[FLIGHTS];
	uint32_t flight_cnt, out, turn;
};

struct part {
	struct part *next;
	struct fabric *f;
	struct flight *fl;
	uint64_t number;
	struct tn_id128 from, to;
	uint64_t registration, registration_off, attempt_off;
	uint32_t bytes, worker;
	bool write, again;
	tn_status status;
	uint8_t data[];
};

/* Connections that a host accepts from the other one: the newest of each worker of each incarnation, of which those that are
 * dead stay until the fence. And whom it accepts new ones of. */
#define ACCEPTED (4 * SIM_WORKERS_MAX)
static struct accepted { struct tn_id128 here, from; uint32_t worker; uint64_t number; } accepted[SIM_HOSTS][ACCEPTED];
static uint32_t accepted_cnt[SIM_HOSTS];
static struct admitted { struct tn_id128 here, only; } admitted[SIM_HOSTS];

static struct fabric *all;
static bool present;
static uint32_t lose, delay;

static const struct dp_transport_ops ops;

TN_INLINE struct fabric *fabric_of(struct dp_transport *t) { return tn_container_of(t, struct fabric, base); }
TN_INLINE const struct fabric *fabric_seen(const struct dp_transport *t) { return fabric_of((struct dp_transport *)(uintptr_t)t); }

static bool lives(const struct fabric *f) { return f->bell != NULL && f->proc->state != SIM_DEAD; }

static void ring(struct fabric *f)
{
	if (lives(f))
		(void)f->bell->ops->write(f->bell, &(uint64_t){ 1 }, sizeof(uint64_t));
}

/* ---- the other end: nobody's processor ---- */

static struct dp_worker *end_of(const struct part *p)
{
	struct sim_host *h = &sim_hosts[1 - p->f->proc->host];
	struct dp_worker *w = h->workers[0];
	return w != NULL && tn_id128_eq(dp_worker_session(w), &p->to) ? w : NULL;
}

/* NULL: none of this worker of this incarnation. */
static struct accepted *accepted_of(uint32_t host, const struct tn_id128 *here, const struct tn_id128 *from, uint32_t worker)
{
	for (struct accepted *c = accepted[host]; c < accepted[host] + ACCEPTED; c++)
		if (tn_id128_eq(&c->here, here) && tn_id128_eq(&c->from, from) && c->worker == worker)
			return c;
	return NULL;
}

static bool is_accepted(const struct part *p)
{
	const struct accepted *c = accepted_of(p->f->proc->host, &p->to, &p->from, p->worker);
	return c != NULL && c->number == p->number;
}

static tn_status touch(const struct dp_worker *w, struct part *p)
{
	const struct dp_segment *seg;
	const struct dp_buffer *b = dp_worker_registration(w, p->registration, &seg);
	if (b == NULL || w->stopping)
		return TN_STALE;
	if (!(b->rights & (p->write ? SHR_RIGHT_REMOTE_WRITE : SHR_RIGHT_REMOTE_READ)) || !(seg->access & SHR_ACCESS_PEERS))
		return TN_PERMISSION;
	if (!tn_range_within(p->registration_off, p->bytes, b->bytes))
		return TN_RANGE;
	if (p->write)
		memcpy(b->base + p->registration_off, p->data, p->bytes);
	else
		memcpy(p->data, b->base + p->registration_off, p->bytes);
	return TN_OK;
}

/* ---- the network ---- */

static uint64_t travel_ns(const struct part *p)
{
	uint64_t ns = sim_link_delay(0, 1, p->bytes) / 4 + sim_pick(0, 200000);
	if (delay > 0) {
		delay--;
		ns += sim_pick(1, 300) * TN_NS_PER_MS;
	}
	return ns;
}

static void no_answer(void *arg, uint64_t number)
{
	struct fabric *f = arg;
	if (lives(f) && f->number == number && f->state == UP) {
		f->broken = true;
		ring(f);
	}
}

static bool gets_through(void)
{
	if (lose > 0) {
		lose--;
		return false;
	}
	return !sim_link(0, 1)->cut;
}

/* What its sender hears of it: nothing, for a while, and then that the connection is broken. */
static void lost(struct part *p)
{
	sim_after(sim_pick(1, 20) * TN_NS_PER_MS, no_answer, p->f, p->number);
	free(p);
}

static void answered(void *arg, uint64_t num)
{
	struct part *p = arg;
	struct fabric *f = p->f;
	(void)num;
	if (!lives(f) || f->number != p->number) {
		free(p);
		return;
	}
	if (!gets_through()) {
		lost(p);
		return;
	}
	p->next = NULL;
	*f->answers_tail = p;
	f->answers_tail = &p->next;
	ring(f);
}

static void arrived(void *arg, uint64_t num)
{
	struct part *p = arg;
	const struct dp_worker *w = end_of(p);
	(void)num;
	if (!gets_through() || w == NULL || !is_accepted(p)) {
		lost(p);
		return;
	}
	p->status = touch(w, p);
	bool twice = !p->again && sim_chance(8); /* sent again, since its sender thinks that it was lost: answered once */
	p->again = true;
	sim_after(travel_ns(p), twice ? arrived : answered, p, 0);
}

/* ---- attempts ---- */

/* It is over, and its answers are for nobody. */
static void end_flight(struct fabric *f, uint32_t i, const struct dp_result *res)
{
	struct flight *fl = f->flights[i];
	struct dp_attempt *a = fl->a;
	f->flights[i] = f->flights[--f->flight_cnt];
	f->out -= fl->out; /* a flight is never freed: parts on their way may name it */
	fl->out = 0;
	fl->a = NULL;
	dp_attempt_done(f->base.worker, a, res);
}

static struct dp_result result_of(const struct flight *fl, bool fenced)
{
	struct dp_result r = fl->failure;
	bool read = fl->a->op == TN_OP_READ;
	if (r.status == TN_OK && fl->canceled)
		r = (struct dp_result){ .status = TN_CANCELED, .phase = TN_PHASE_POST, .reason = TN_REASON_CANCELED };
	r.bytes = r.status == TN_OK ? fl->a->bytes : 0;
	r.nothing_left = read || (!fl->landed && !fl->doubt && !fl->unfenced && fl->out == 0);
	r.fenced = !r.nothing_left && fenced && !fl->unfenced;
	return r;
}

static bool all_handed_out(const struct flight *fl)
{
	return fl->a->t_next == fl->a->bytes || fl->canceled || fl->failure.status != TN_OK;
}

/* Everything that can be said of it has been said. */
static void settle(struct fabric *f)
{
	for (uint32_t i = 0; i < f->flight_cnt;) {
		struct flight *fl = f->flights[i];
		if (fl->doubt || fl->out > 0 || !all_handed_out(fl)) {
			i++;
			continue;
		}
		struct dp_result r = result_of(fl, true);
		end_flight(f, i, &r);
		i = 0; /* what follows an end may be a beginning */
	}
}

static void fail(struct flight *fl, tn_status status, uint8_t reason)
{
	if (fl->failure.status == TN_OK)
		fl->failure = (struct dp_result){ .status = status, .phase = TN_PHASE_COMPLETION, .reason = reason };
}

static void take_answers(struct fabric *f)
{
	struct part *p;
	while ((p = f->answers) != NULL) {
		struct flight *fl = p->fl;
		f->answers = p->next;
		if (f->answers == NULL)
			f->answers_tail = &f->answers;
		if (p->number == f->number && fl->a != NULL) {
			fl->out--;
			f->out--;
			fl->landed |= p->write && p->status == TN_OK;
			if (p->status != TN_OK)
				fail(fl, p->status, p->status == TN_STALE ? TN_REASON_STALE_GENERATION : TN_REASON_MR_ERROR);
			else if (!p->write)
				memcpy(fl->a->local + p->attempt_off, p->data, p->bytes);
			fl->a->t_done += p->bytes;
			dp_worker_answered(f->base.worker, TN_TRANSPORT_RDMA, f->peer_index);
		}
		free(p);
	}
}

/* What was on its way is in doubt if it writes, and read for nothing if it reads. */
static void take_down(struct fabric *f, tn_status status)
{
	f->broken = false;
	f->state = CLOSED;
	f->number++;
	f->out = 0;
	f->try_ns = dp_worker_now(f->base.worker) + sim_pick(0, 30) * TN_NS_PER_MS;
	for (uint32_t i = 0; i < f->flight_cnt; i++) {
		struct flight *fl = f->flights[i];
		bool lands = fl->out > 0 && fl->a->op == TN_OP_WRITE;
		fl->doubt |= lands && !fl->canceled;
		fl->unfenced |= lands && fl->canceled;
		fl->out = 0;
		fail(fl, status, TN_REASON_PEER_CLOSED);
	}
}

static void undoubted(struct fabric *f)
{
	for (uint32_t i = 0; i < f->flight_cnt; i++) {
		f->flights[i]->landed |= f->flights[i]->doubt;
		f->flights[i]->doubt = false;
	}
}

/* ---- sending ---- */

static const struct dp_remote_buffer *buffer_at(const struct dp_remote *r, uint64_t off)
{
	for (uint32_t i = 0; i < r->buffer_cnt; i++)
		if (off >= r->buffers[i].segment_off && off - r->buffers[i].segment_off < r->buffers[i].bytes)
			return &r->buffers[i];
	return NULL;
}

static void send_part(struct fabric *f, struct flight *fl)
{
	struct dp_attempt *a = fl->a;
	uint64_t off = a->remote_off + a->t_next;
	const struct dp_remote_buffer *b = buffer_at(a->remote, off);
	if (b == NULL) {
		fail(fl, TN_RANGE, TN_REASON_MR_ERROR);
		return;
	}
	uint64_t most = TN_MIN(a->bytes - a->t_next, b->segment_off + b->bytes - off), size = sim_pick(64, 16384);
	uint32_t bytes = (uint32_t)TN_MIN(most, size);
	struct part *p = sim_calloc(1, sizeof *p + bytes);
	*p = (struct part){ .f = f, .fl = fl, .number = f->number, .from = *dp_worker_session(f->base.worker), .to = f->there,
			    .registration = b->registration, .registration_off = off - b->segment_off, .attempt_off = a->t_next,
			    .bytes = bytes, .worker = dp_worker_index(f->base.worker), .write = a->op == TN_OP_WRITE };
	if (p->write)
		memcpy(p->data, a->local + a->t_next, bytes);
	a->t_next += bytes;
	fl->left = true;
	fl->out++;
	f->out++;
	sim_after(travel_ns(p), arrived, p, 0);
}

/* In turn, so that parts of several attempts mix. */
static uint32_t send_some(struct fabric *f, uint32_t budget)
{
	uint32_t sent = 0, passed = 0;
	while (f->state == UP && sent < budget && f->out < PARTS_OUT && passed < f->flight_cnt) {
		struct flight *fl = f->flights[f->turn++ % f->flight_cnt];
		passed++;
		if (all_handed_out(fl))
			continue;
		send_part(f, fl);
		sent++;
		passed = 0;
	}
	return sent;
}

/* ---- connecting ---- */

struct call { struct fabric *f; uint64_t number; struct tn_id128 from, to; uint32_t worker; };

static void call_answered(void *arg, uint64_t yes)
{
	struct call *c = arg;
	struct fabric *f = c->f;
	if (lives(f) && f->state == ASKING && f->number == c->number) {
		f->state = yes && !sim_link(0, 1)->cut ? UP : CLOSED;
		f->try_ns = sim.now_ns + sim_pick(1, 20) * TN_NS_PER_MS;
		ring(f);
	}
	free(c);
}

/* The other end: from here on nothing counts that came over an earlier connection. */
static void call_arrived(void *arg, uint64_t num)
{
	struct call *c = arg;
	uint32_t host = c->f->proc->host;
	const struct dp_worker *w = sim_hosts[1 - host].workers[0];
	(void)num;
	const struct admitted *who = &admitted[host];
	bool yes = !sim_link(0, 1)->cut && w != NULL && tn_id128_eq(dp_worker_session(w), &c->to) && !w->stopping &&
		   (!tn_id128_eq(&who->here, &c->to) || tn_id128_eq(&who->only, &c->from));
	struct accepted *now = accepted_of(host, &c->to, &c->from, c->worker);
	yes = yes && (now == NULL || now->number <= c->number);
	if (yes && now == NULL)
		now = &accepted[host][accepted_cnt[host]++ % ACCEPTED];
	if (yes)
		*now = (struct accepted){ .here = c->to, .from = c->from, .worker = c->worker, .number = c->number };
	sim_after(sim_link_delay(0, 1, 64), call_answered, c, yes);
}

static bool wanted(const struct fabric *f) { return f->flight_cnt > 0 || f->probe_ns != 0; }

/* Sessions are introduced to each other by the framed transport, which also keeps out who came before. */
static void connect_if_wanted(struct fabric *f, uint64_t now_ns)
{
	if (f->state != CLOSED || !wanted(f) || now_ns < f->try_ns)
		return;
	struct dp_worker *w = f->base.worker;
	struct dp_transport *tcp = w->selector.by_kind[TN_TRANSPORT_TCP];
	f->try_ns = now_ns + TRY_NS;
	if (!f->known || tcp->ops->probe(tcp, f->peer_index, now_ns + TRY_NS) != DP_REACH_READY)
		return;
	struct call *c = sim_calloc(1, sizeof *c);
	*c = (struct call){ .f = f, .number = f->number, .from = *dp_worker_session(w), .to = f->there, .worker = dp_worker_index(w) };
	f->state = ASKING;
	sim_after(sim_link_delay(0, 1, 64), call_arrived, c, 0);
}

/* ---- the contract ---- */

static void woken(struct dp_pollable *p, uint32_t events)
{
	uint64_t sink;
	(void)events;
	(void)!read(p->fd, &sink, sizeof sink);
}

static tn_status create(struct dp_worker *w, struct dp_transport **out)
{
	struct fabric *f = sim_calloc(1, sizeof *f); /* the network knows it for ever */
	f->base = (struct dp_transport){ .ops = &ops, .worker = w, .up = true };
	f->answers_tail = &f->answers;
	f->proc = sim_self();
	f->wake = (struct dp_pollable){ .ready = woken, .fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK) };
	if (f->wake.fd < 0)
		return TN_LIMIT;
	tn_status s = dp_worker_poll_add(w, &f->wake, EPOLLIN);
	if (s != TN_OK) {
		(void)close(f->wake.fd);
		return s;
	}
	f->bell = sim_fd_get(f->wake.fd);
	sim_obj_get(f->bell);
	f->next = all;
	all = f;
	*out = &f->base;
	return TN_OK;
}

static void destroy(struct dp_transport *t)
{
	struct fabric *f = fabric_of(t);
	sim_obj_put(f->bell);
	f->bell = NULL;
	dp_worker_poll_del(t->worker, &f->wake);
	(void)close(f->wake.fd);
}

static enum dp_reach reach(const struct dp_transport *t, const struct dp_remote *remote)
{
	const struct fabric *f = fabric_seen(t);
	return remote->local || !f->known ? DP_REACH_NO : f->state == UP ? DP_REACH_READY : DP_REACH_CONNECT;
}

static enum dp_reach probe(struct dp_transport *t, uint32_t peer_index, uint64_t until_ns)
{
	struct fabric *f = fabric_of(t);
	(void)peer_index;
	if (f->state == UP)
		return DP_REACH_READY;
	f->probe_ns = until_ns;
	return DP_REACH_CONNECT;
}

static tn_status submit(struct dp_transport *t, struct dp_attempt *a, struct dp_result *result)
{
	struct fabric *f = fabric_of(t);
	if (!f->known) {
		*result = (struct dp_result){ .status = TN_PEER_DOWN, .phase = TN_PHASE_CONNECT, .reason = TN_REASON_UNAVAILABLE,
					      .nothing_left = true };
		return TN_PEER_DOWN;
	}
	if (f->flight_cnt == FLIGHTS)
		return TN_AGAIN;
	struct flight *fl = sim_calloc(1, sizeof *fl);
	fl->a = a;
	a->t_priv = fl;
	a->t_next = a->t_done = 0;
	f->flights[f->flight_cnt++] = fl;
	return TN_OK;
}

static void cancel(struct dp_transport *t, struct dp_attempt *a)
{
	struct fabric *f = fabric_of(t);
	struct flight *fl = a->t_priv;
	fl->canceled = true;
	bool writes = a->op == TN_OP_WRITE;
	if (writes && fl->out > 0 && !fl->doubt)
		return; /* what left will land, or break the connection */
	struct dp_result r = result_of(fl, !fl->doubt);
	for (uint32_t i = 0; i < f->flight_cnt; i++)
		if (f->flights[i] == fl) {
			end_flight(f, i, &r);
			return;
		}
}

/* Nobody gets through: who waits for a connection that is not made in time goes another way. */
static void give_up_waiting(struct fabric *f)
{
	if (f->state == UP)
		return;
	for (uint32_t i = 0; i < f->flight_cnt; i++)
		if (!f->flights[i]->left && sim.now_ns - f->flights[i]->a->start_ns > 50 * TN_NS_PER_MS)
			fail(f->flights[i], TN_PEER_DOWN, TN_REASON_UNAVAILABLE);
}

static uint32_t progress(struct dp_transport *t, uint64_t now_ns, uint32_t budget)
{
	struct fabric *f = fabric_of(t);
	uint32_t before = f->flight_cnt, done = f->answers != NULL || f->broken;
	take_answers(f);
	if (f->broken)
		take_down(f, TN_PATH_DOWN);
	if (f->state == UP)
		undoubted(f);
	if (f->probe_ns != 0 && (f->state == UP || now_ns >= f->probe_ns)) {
		f->probe_ns = 0;
		dp_worker_probed(t->worker, TN_TRANSPORT_RDMA, f->peer_index, f->state == UP);
	}
	give_up_waiting(f);
	settle(f);
	connect_if_wanted(f, now_ns);
	done += send_some(f, budget);
	return done + (before > f->flight_cnt);
}

static uint64_t next_timer_ns(const struct dp_transport *t)
{
	const struct fabric *f = fabric_seen(t);
	return f->state == CLOSED && wanted(f) ? TN_MAX(f->try_ns, sim.now_ns + TN_NS_PER_MS) : UINT64_MAX;
}

static bool busy(const struct dp_transport *t)
{
	const struct fabric *f = fabric_seen(t);
	bool more = false;
	for (uint32_t i = 0; i < f->flight_cnt && f->state == UP && f->out < PARTS_OUT; i++)
		more |= !all_handed_out(f->flights[i]);
	return f->answers != NULL || f->broken || more;
}

/* A new incarnation over there: the old one is dead, and nothing lands in it any more. */
static void peer_set(struct dp_transport *t, const struct dp_peer *peer)
{
	struct fabric *f = fabric_of(t);
	if (peer->index == DP_PEER_SELF || (f->known && tn_id128_eq(&f->there, &peer->session)))
		return;
	if (f->known) {
		take_down(f, TN_PATH_DOWN);
		undoubted(f);
	}
	f->there = peer->session;
	f->peer_index = peer->index;
	f->known = !tn_id128_is_zero(&peer->session);
	settle(f);
}

/* This end: only that incarnation of the other host may come, and what an earlier one left on its way is void. */
static bool fence(struct dp_transport *t, uint32_t peer_index, const struct tn_id128 *keep_session)
{
	struct fabric *f = fabric_of(t);
	uint32_t other = 1 - f->proc->host;
	if (peer_index == DP_PEER_SELF)
		return true;
	admitted[other] = (struct admitted){ .here = *dp_worker_session(t->worker), .only = *keep_session };
	for (uint32_t i = 0; i < ACCEPTED; i++)
		if (!tn_id128_eq(&accepted[other][i].from, keep_session))
			accepted[other][i] = (struct accepted){ .number = 0 };
	return true;
}

static const struct dp_transport_ops ops = {
	.kind = TN_TRANSPORT_RDMA, .create = create, .destroy = destroy, .reach = reach, .probe = probe, .submit = submit,
	.progress = progress, .cancel = cancel, .next_timer_ns = next_timer_ns, .busy = busy, .peer_set = peer_set, .fence = fence,
};

uint32_t __wrap_dp_registry_list(const struct tn_config *cfg, const struct dp_transport_ops *out[static TN_TRANSPORT_CNT])
{
	uint32_t cnt = __real_dp_registry_list(cfg, out);
	if (present)
		out[cnt++] = &ops;
	return cnt;
}

/* ---- what goes wrong ---- */

void sim_fabric_init(bool on) { present = on; }

void sim_fabric_break(uint32_t host)
{
	for (struct fabric *f = all; f != NULL; f = f->next)
		if (f->proc->host == host)
			no_answer(f, f->number);
}

void sim_fabric_lose(uint32_t parts) { lose = parts; }
void sim_fabric_delay(uint32_t parts) { delay = parts; }
void sim_fabric_calm(void) { lose = delay = 0; }
