/* SPDX-License-Identifier: Apache-2.0
 * The functions of dataplane/worker.h for tests, without a thread. */
#include "tests/unit/dataplane_ctl/fake_worker.h"

#include "dataplane/stats/load.h"
#include "dataplane/transport/path_info.h"

#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define EVENTS_MAX 8192

struct dp_inspect fake_inspect;

struct dp_worker {
	unsigned index;
	int fd;
	struct fake_cmds posted;
	struct dp_evt events[EVENTS_MAX];
	unsigned evt_head, evt_tail;
	struct dp_evt held[FAKE_CMDS_MAX];
	unsigned held_cnt;
	tn_status refusals[DP_CMD_STOP + 1];
};
struct dp_qp { struct dp_qp_cfg cfg; };

static struct dp_worker *workers[SHR_WORKERS_MAX];
static bool holding;
static uint32_t room = UINT32_MAX;

tn_status dp_worker_new(const struct dp_worker_env *env, uint32_t index, struct dp_worker **out)
{
	struct dp_worker *w = calloc(1, sizeof *w);

	(void)env;
	if (w == NULL)
		return TN_NO_MEMORY;
	w->index = index;
	w->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	workers[index] = w;
	*out = w;
	return TN_OK;
}

tn_status dp_worker_start(struct dp_worker *w, uint32_t cpu)
{
	(void)w, (void)cpu;
	return TN_OK;
}

void dp_worker_join(struct dp_worker *w, uint64_t deadline_ns)
{
	(void)w, (void)deadline_ns;
}

void dp_worker_free(struct dp_worker *w)
{
	workers[w->index] = NULL;
	close(w->fd);
	free(w);
}

void fake_emit(unsigned i, const struct dp_evt *evt)
{
	struct dp_worker *w = workers[i];

	w->events[w->evt_tail++ % EVENTS_MAX] = *evt;
	(void)!write(w->fd, &(uint64_t){ 1 }, sizeof(uint64_t));
}

tn_status dp_worker_post(struct dp_worker *w, const struct dp_cmd *cmd)
{
	if (room == 0)
		return TN_AGAIN;
	if (room != UINT32_MAX)
		room--;
	w->posted.cmd[w->posted.cnt++ % FAKE_CMDS_MAX] = *cmd;
	if (cmd->kind == DP_CMD_INSPECT)
		memcpy(cmd->ptr, &fake_inspect, sizeof fake_inspect);
	struct dp_evt ack = { .kind = DP_EVT_ACK, .id = cmd->id, .status = w->refusals[cmd->kind] };
	if (cmd->id != 0 && holding)
		w->held[w->held_cnt++] = ack;
	else if (cmd->id != 0)
		fake_emit(w->index, &ack);
	return TN_OK;
}

void fake_refuse(unsigned i, enum dp_cmd_kind kind, tn_status s)
{
	workers[i]->refusals[kind] = s;
}

tn_status dp_worker_take(struct dp_worker *w, struct dp_evt *evt_out)
{
	if (w->evt_head == w->evt_tail)
		return TN_AGAIN;
	*evt_out = w->events[w->evt_head++ % EVENTS_MAX];
	return TN_OK;
}

int dp_worker_event_fd(const struct dp_worker *w)
{
	return w->fd;
}

struct dp_qp *dp_qp_new(const struct dp_qp_cfg *cfg)
{
	struct dp_qp *qp = malloc(sizeof *qp);

	if (qp != NULL)
		qp->cfg = *cfg;
	return qp;
}

void dp_qp_free(struct dp_qp *qp)
{
	free(qp);
}

struct fake_cmds *fake_posted(unsigned i)
{
	return &workers[i]->posted;
}

const struct dp_cmd *fake_last(unsigned i, enum dp_cmd_kind kind)
{
	for (unsigned n = workers[i]->posted.cnt; n-- > 0;)
		if (workers[i]->posted.cmd[n % FAKE_CMDS_MAX].kind == (uint32_t)kind)
			return &workers[i]->posted.cmd[n % FAKE_CMDS_MAX];
	return NULL;
}

unsigned fake_count(unsigned i, enum dp_cmd_kind kind)
{
	unsigned cnt = 0;

	for (unsigned n = 0; n < workers[i]->posted.cnt; n++)
		cnt += workers[i]->posted.cmd[n].kind == (uint32_t)kind;
	return cnt;
}

void fake_hold(bool hold)
{
	holding = hold;
	for (unsigned i = 0; !hold && i < SHR_WORKERS_MAX; i++) {
		struct dp_worker *w = workers[i];
		if (w == NULL)
			continue;
		for (unsigned n = 0; n < w->held_cnt; n++)
			fake_emit(i, &w->held[n]);
		w->held_cnt = 0;
	}
}

void fake_mailbox_room(uint32_t n)
{
	room = n;
}

void fake_reset(void)
{
	holding = false;
	room = UINT32_MAX;
}

/* Every fake worker has done the same: two requests for peer 0, one of them failed, one for this host. */
void dp_worker_load_add(const struct dp_worker *w, uint32_t peer_index, struct dp_load_sum *sum)
{
	(void)w;
	if (peer_index == UINT32_MAX)
		sum->in_cnt++;
	if (peer_index != 0)
		return;
	sum->in_cnt += 2;
	sum->in_bytes += 200;
	sum->out_cnt += 2;
	sum->moved[TN_OP_WRITE] += 100;
	sum->lost_bytes += 100;
	sum->failed_cnt++;
	sum->latency[3]++;
	sum->failure_ns = 1;
	sum->failure_status = TN_PATH_DOWN;
	sum->failure_transport = TN_TRANSPORT_TCP;
	sum->failure_phase = TN_PHASE_CONNECT;
	sum->failure_reason = TN_REASON_PEER_CLOSED;
}

/* Paths of every fake worker: what fake_path says, over tcp only. */
struct dp_path_info fake_path;

bool dp_worker_path_info(const struct dp_worker *w, enum tn_transport kind, uint32_t peer_index, struct dp_path_info *out)
{
	(void)w, (void)peer_index;
	if (kind != TN_TRANSPORT_TCP)
		return false;
	*out = fake_path;
	return true;
}

enum dp_rail_state fake_rail;

enum dp_rail_state dp_worker_rail(const struct dp_worker *w, enum tn_transport kind, uint32_t peer_index,
				  uint64_t *until_ns_out)
{
	(void)w, (void)kind, (void)peer_index;
	*until_ns_out = UINT64_MAX / 2;
	return fake_rail;
}
