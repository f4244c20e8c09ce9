/* SPDX-License-Identifier: Apache-2.0
 * Mailboxes of the workers as the control thread sees them. Order per worker is the order of the posts, backlog
 * included; acknowledgement ids are handles, so an unknown or late one is nothing. Control thread. */
#include "dataplane/crew.h"

#include <stdlib.h>
#include <unistd.h>

#include "common/assert.h"
#include "common/hook.h"

#define ACKS_MAX (1u << 24)
#define BACKLOG_FIRST 256u
#define BACKLOG_CONGESTED 4096u
#define EVENTS_PER_TURN 4096u

TN_STATIC_ASSERT(SHR_WORKERS_MAX <= 64, "a bit of struct dp_flight.owed for each");

static void member_ready(struct dp_source *s, uint32_t events);

void dp_crew_init(struct dp_crew *crew, struct dp_loop *loop,
                  void (*on_event)(void *arg, uint32_t worker, const struct dp_evt *evt), void *arg)
{
	*crew = (struct dp_crew){ .loop = loop, .on_event = on_event, .arg = arg };
	dp_handles_init(&crew->acks, ACKS_MAX);
	tn_list_init(&crew->owing);
	tn_list_init(&crew->refused);
}

tn_status dp_crew_add(struct dp_crew *crew, struct dp_worker *worker)
{
	struct dp_crew_member *m = &crew->members[crew->cnt];
	tn_status s;

	if (crew->cnt == SHR_WORKERS_MAX)
		return TN_LIMIT;
	*m = (struct dp_crew_member){ .crew = crew, .worker = worker };
	m->events = (struct dp_source){ .ready = member_ready, .fd = dp_worker_event_fd(worker) };
	s = dp_loop_add(crew->loop, &m->events, EPOLLIN);
	if (s == TN_OK)
		crew->cnt++;
	return s;
}

void dp_crew_drop(struct dp_crew *crew)
{
	struct dp_crew_member *m = &crew->members[--crew->cnt];

	dp_loop_del(crew->loop, &m->events);
	free(m->backlog);
}

void dp_crew_fini(struct dp_crew *crew)
{
	while (crew->cnt > 0)
		dp_crew_drop(crew);
	dp_handles_fini(&crew->acks);
}

static bool backlog_keep(struct dp_crew_member *m, const struct dp_cmd *cmd)
{
	if (m->backlog_cnt == m->backlog_cap) {
		uint32_t cap = m->backlog_cap == 0 ? BACKLOG_FIRST : m->backlog_cap * 2;
		struct dp_cmd *ring = malloc(cap * sizeof *ring);
		if (ring == NULL)
			return false;
		for (uint32_t i = 0; i < m->backlog_cnt; i++)
			ring[i] = m->backlog[(m->backlog_head + i) & (m->backlog_cap - 1)];
		free(m->backlog);
		m->backlog = ring;
		m->backlog_cap = cap;
		m->backlog_head = 0;
	}
	m->backlog[(m->backlog_head + m->backlog_cnt++) & (m->backlog_cap - 1)] = *cmd;
	return true;
}

static void member_flush(struct dp_crew_member *m)
{
	while (m->backlog_cnt > 0) {
		if (dp_worker_post(m->worker, &m->backlog[m->backlog_head]) != TN_OK)
			return;
		m->backlog_head = (m->backlog_head + 1) & (m->backlog_cap - 1);
		m->backlog_cnt--;
	}
}

/* Behind what is there already, answered to `flight` if there is one. False: no memory. */
static bool member_keep(struct dp_crew_member *m, struct dp_cmd cmd, struct dp_flight *flight)
{
	struct dp_handles *acks = &m->crew->acks;

	cmd.id = 0;
	if (flight != NULL && (TN_HOOK_FAIL(dp_crew_memory) || dp_handles_add(acks, flight, &cmd.id) != TN_OK))
		return false;
	member_flush(m);
	if ((m->backlog_cnt == 0 && dp_worker_post(m->worker, &cmd) == TN_OK) || backlog_keep(m, &cmd))
		return true;
	if (flight != NULL)
		(void)dp_handles_remove(acks, cmd.id);
	return false;
}

bool dp_crew_post(struct dp_crew *crew, uint32_t worker, struct dp_cmd cmd)
{
	struct dp_crew_member *m = &crew->members[worker];

	return m->owed_cnt == 0 && member_keep(m, cmd, NULL);
}

/* ---- when memory is short ---- */

/* Whoever asked for the object can be told that it cannot be had. */
static bool may_refuse(uint32_t kind)
{
	return kind == DP_CMD_QP_ADD || kind == DP_CMD_MEM_ADD || kind == DP_CMD_SEG_ADD;
}

static void refuse(struct dp_crew *crew, struct dp_flight *f)
{
	tn_assert(f->owed == 0); /* it is the first command about its object */
	f->status = TN_NO_MEMORY;
	if (f->refused++ == 0)
		tn_list_push_back(&crew->refused, &f->link);
}

static void refused_count_off(struct dp_flight *f)
{
	tn_list_unlink(&f->link);
	f->waiting -= f->refused;
	f->refused = 0;
}

static void owe(struct dp_crew_member *m, struct dp_flight *f, const struct dp_cmd *cmd)
{
	if (f->refused != 0)
		refused_count_off(f);
	if (f->owed == 0)
		tn_list_push_back(&m->crew->owing, &f->link);
	f->owed |= UINT64_C(1) << (m - m->crew->members);
	f->cmd = *cmd;
	m->owed_cnt++;
}

static void owe_no_more(struct dp_crew_member *m, struct dp_flight *f)
{
	f->owed &= ~(UINT64_C(1) << (m - m->crew->members));
	m->owed_cnt--;
	if (f->owed == 0)
		tn_list_unlink(&f->link);
}

static bool is_owed(const struct dp_crew_member *m, const struct dp_flight *f)
{
	return (f->owed >> (m - m->crew->members) & 1) != 0;
}

/* In order: what cannot go out holds up all behind it. */
static void owing_flush(struct dp_crew *crew)
{
	for (struct dp_flight *f; (f = tn_list_first(&crew->owing, struct dp_flight, link)) != NULL;) {
		for (uint32_t i = 0; i < crew->cnt; i++) {
			struct dp_crew_member *m = &crew->members[i];
			if (is_owed(m, f) && member_keep(m, f->cmd, f))
				owe_no_more(m, f);
		}
		if (f->owed != 0)
			return;
	}
}

static void refused_flush(struct dp_crew *crew)
{
	for (struct dp_flight *f; (f = tn_list_first(&crew->refused, struct dp_flight, link)) != NULL;) {
		refused_count_off(f);
		if (f->waiting == 0 && f->done != NULL)
			f->done(f);
	}
}

/* ---- sending, and the answers ---- */

void dp_crew_send(struct dp_crew *crew, uint32_t worker, struct dp_cmd cmd, struct dp_flight *flight)
{
	struct dp_crew_member *m = &crew->members[worker];

	if (flight->waiting == 0) {
		flight->status = TN_OK;
		flight->took = 0;
	}
	if (is_owed(m, flight))
		owe_no_more(m, flight);
	else
		flight->waiting++;
	if (m->owed_cnt == 0 && member_keep(m, cmd, flight))
		return;
	if (may_refuse(cmd.kind))
		refuse(crew, flight);
	else
		owe(m, flight, &cmd);
}

void dp_crew_broadcast(struct dp_crew *crew, struct dp_cmd cmd, struct dp_flight *flight)
{
	for (uint32_t i = 0; i < crew->cnt; i++)
		dp_crew_send(crew, i, cmd, flight);
}

bool dp_crew_undo(struct dp_crew *crew, struct dp_cmd cmd, struct dp_flight *flight)
{
	uint64_t took = flight->took;

	for (uint32_t i = 0; i < crew->cnt; i++)
		if ((took >> i & 1) != 0)
			dp_crew_send(crew, i, cmd, flight);
	return took != 0;
}

static void ack_take(struct dp_crew *crew, uint32_t worker, const struct dp_evt *evt)
{
	struct dp_flight *f = dp_handles_remove(&crew->acks, evt->id);

	if (f == NULL)
		return;
	if (evt->status == TN_OK)
		f->took |= UINT64_C(1) << worker;
	else if (f->status == TN_OK)
		f->status = evt->status;
	if (--f->waiting == 0 && f->done != NULL)
		f->done(f);
}

static void member_take(struct dp_crew_member *m)
{
	struct dp_crew *crew = m->crew;
	uint32_t index = (uint32_t)(m - crew->members);
	struct dp_evt evt;

	for (uint32_t i = 0; i < EVENTS_PER_TURN; i++) {
		if (dp_worker_take(m->worker, &evt) != TN_OK)
			return;
		if (evt.kind == DP_EVT_ACK)
			ack_take(crew, index, &evt);
		else
			crew->on_event(crew->arg, index, &evt);
	}
	/* Others get their turn; the rest is announced again, for its wake-up was already taken. */
	(void)!write(m->events.fd, &(uint64_t){ 1 }, sizeof(uint64_t));
}

static void member_ready(struct dp_source *s, uint32_t events)
{
	struct dp_crew_member *m = tn_container_of(s, struct dp_crew_member, events);
	uint64_t count;

	(void)events;
	/* Emptied before the ring is read: an event that comes in between rings again. */
	(void)!read(s->fd, &count, sizeof count);
	member_take(m);
}

void dp_crew_flush(struct dp_crew *crew)
{
	for (uint32_t i = 0; i < crew->cnt; i++)
		member_flush(&crew->members[i]);
	owing_flush(crew);
	refused_flush(crew);
}

bool dp_crew_congested(const struct dp_crew *crew)
{
	for (uint32_t i = 0; i < crew->cnt; i++)
		if (crew->members[i].backlog_cnt > BACKLOG_CONGESTED)
			return true;
	return !tn_list_empty(&crew->owing);
}

uint32_t dp_crew_least_loaded(const struct dp_crew *crew, uint32_t turn)
{
	uint32_t best = turn % crew->cnt;

	for (uint32_t i = 1; i < crew->cnt; i++) {
		uint32_t w = (turn + i) % crew->cnt;
		if (crew->members[w].qp_cnt < crew->members[best].qp_cnt)
			best = w;
	}
	return best;
}
