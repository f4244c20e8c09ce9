/* SPDX-License-Identifier: Apache-2.0
 * Owner of queue-pair regions and doorbells. The region is a memfd of ours, sealed before the application sees it, so
 * the worker can touch every byte of it whatever the application does. Control thread. */
#include "dataplane/ingress/attach_qp.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/hook.h"
#include "common/log.h"
#include "dataplane/control.h"
#include "shm-ring/doorbell.h"
#include "shm-ring/region.h"
#include "shm-ring/ring_check.h"

struct local_qp {
	struct tn_list link; /* the client's */
	struct dp_app *client;
	struct dp_control *ctl;
	tn_handle handle;
	uint32_t worker;
	uint8_t state;  /* enum dp_qpair_state */
	struct shr_region region;
	int bell;       /* our end */
	int bell_app;   /* the application's, until it is sent */
	struct dp_qp *half;
	struct dp_flight flight;
	uint32_t correlation;
};

static void qp_move(struct local_qp *q, enum dp_qpair_state to)
{
	dp_control_move(DP_CONTROL_QPAIR, &q->state, to);
}

static void qp_free(struct local_qp *q)
{
	struct dp_app *c = q->client;

	qp_move(q, DP_QPAIR_FREE);
	(void)dp_handles_remove(&q->ctl->qps, q->handle);
	tn_list_unlink(&q->link);
	c->qp_cnt--;
	q->ctl->crew.members[q->worker].qp_cnt--;
	dp_qp_free(q->half);
	if (q->bell >= 0)
		close(q->bell);
	if (q->bell_app >= 0)
		close(q->bell_app);
	shr_region_close(&q->region);
	free(q);
}

static void qp_send_created(struct local_qp *q)
{
	struct shr_msg *m = dp_app_tx(q->client);
	struct shr_msg_qp_create_reply *r;

	r = shr_msg_begin(m, SHR_MSG_QP_CREATE | SHR_MSG_REPLY, q->correlation, sizeof *r);
	*r = (struct shr_msg_qp_create_reply){
		.id = q->handle, .worker = q->worker, .region_bytes = (uint32_t)q->region.bytes };
	/* The message takes the descriptors; our mapping stays. */
	m->fds[0] = q->region.fd;
	m->fds[1] = q->bell_app;
	m->fd_cnt = 2;
	q->region.fd = q->bell_app = -1;
	dp_app_send(q->client, m);
}

static void qp_acked(struct dp_flight *f)
{
	struct local_qp *q = tn_container_of(f, struct local_qp, flight);
	struct dp_app *c = q->client;

	if (q->state == DP_QPAIR_ADDING && f->status == TN_OK) {
		qp_move(q, DP_QPAIR_LIVE);
		TN_HOOK(dp_qp_live);
		qp_send_created(q);
		return;
	}
	if (q->state == DP_QPAIR_ADDING) {
		tn_log_warn("attach", "client %u: worker %u refused a queue pair: %s%s", c->id, q->worker,
		            tn_status_meaning(f->status), f->status == TN_LIMIT ? " (fs.epoll.max_user_watches)" : "");
		dp_app_fail(c, SHR_MSG_QP_CREATE, q->correlation, f->status, 0);
	} else if (q->state == DP_QPAIR_DELETING) {
		dp_app_reply(c, SHR_MSG_QP_DESTROY, q->correlation);
	}
	qp_free(q);
	dp_app_settle(c);
}

/* Region, doorbell and the worker's half; the caller frees q on failure. */
static tn_status qp_build(struct local_qp *q, const struct shr_qp_layout *lay)
{
	struct shr_qp_view view;
	struct dp_qp_cfg cfg;
	char name[64];
	int ends[2] = { -1, -1 };
	tn_status s;

	(void)snprintf(name, sizeof name, "tent-qp-%u", tn_handle_index(q->handle));
	s = shr_region_create(name, lay->region_bytes, &q->region);
	if (s != TN_OK)
		return s;
	s = shr_doorbell_create(ends);
	if (s != TN_OK)
		return s;
	q->bell = ends[0];
	q->bell_app = ends[1];
	shr_qp_format(q->region.base, lay, tn_handle_index(q->handle), &view);
	(void)madvise(q->region.base, q->region.bytes, MADV_DONTDUMP);
	cfg = (struct dp_qp_cfg){
		.id = q->handle, .client_id = q->client->id, .client_uid = q->client->cred.uid, .region = q->region.base,
		.region_bytes = lay->region_bytes, .sq_entries = lay->sq_entries, .cq_entries = lay->cq_entries,
		.note_slots = lay->note_slots, .doorbell_fd = q->bell, .seed = tn_rand_u64(&q->client->ctl->rand) };
	q->half = dp_qp_new(&cfg);
	return q->half != NULL ? TN_OK : TN_NO_MEMORY;
}

static struct local_qp *qp_new(struct dp_app *c)
{
	struct local_qp *q = calloc(1, sizeof *q);

	if (q == NULL)
		return NULL;
	*q = (struct local_qp){ .client = c, .ctl = c->ctl, .region = SHR_REGION_NONE, .bell = -1, .bell_app = -1,
	                        .flight = { .done = qp_acked } };
	if (dp_handles_add(&c->ctl->qps, q, &q->handle) != TN_OK) {
		free(q);
		return NULL;
	}
	qp_move(q, DP_QPAIR_ADDING);
	q->worker = dp_crew_least_loaded(&c->ctl->crew, c->ctl->qp_turn++);
	c->ctl->crew.members[q->worker].qp_cnt++;
	tn_list_push_back(&c->qps, &q->link);
	c->qp_cnt++;
	return q;
}

void dp_qp_on_create(struct dp_app *c, struct shr_msg *m)
{
	const struct shr_msg_qp_create *req = shr_msg_body_ro(m);
	uint64_t max = tn_config_u64(c->ctl->config, TN_CFG_LIMITS_MAX_QPS_PER_CLIENT);
	struct shr_qp_layout lay;
	struct local_qp *q = NULL;
	tn_status s = TN_LIMIT;
	uint32_t detail = (uint32_t)max;

	if (c->qp_cnt >= max)
		goto fail;
	s = shr_qp_layout(req->sq_entries, req->note_slots, &lay);
	detail = req->sq_entries;
	if (s != TN_OK)
		goto fail;
	s = TN_NO_MEMORY;
	detail = 0;
	q = qp_new(c);
	if (q == NULL)
		goto fail;
	errno = 0;
	s = qp_build(q, &lay);
	detail = (uint32_t)errno;
	if (s != TN_OK)
		goto fail;
	q->correlation = m->hdr.correlation;
	dp_crew_send(&c->ctl->crew, q->worker, (struct dp_cmd){ .kind = DP_CMD_QP_ADD, .fd = -1, .ptr = q->half },
	             &q->flight);
	return;
fail:
	if (q != NULL)
		qp_free(q);
	dp_app_fail(c, SHR_MSG_QP_CREATE, m->hdr.correlation, s, detail);
}

void dp_qp_on_destroy(struct dp_app *c, struct shr_msg *m)
{
	const struct shr_msg_id *req = shr_msg_body_ro(m);
	struct local_qp *q = dp_handles_get(&c->ctl->qps, req->id);

	uint16_t answer = SHR_MSG_QP_DESTROY;

	if (q != NULL && q->client == c && q->state == DP_QPAIR_DELETING &&
	    dp_app_asks_again(c, m, &answer, &q->correlation))
		return;
	if (q == NULL || q->client != c || q->state != DP_QPAIR_LIVE) {
		dp_app_fail(c, SHR_MSG_QP_DESTROY, m->hdr.correlation, TN_STALE, 0);
		return;
	}
	qp_move(q, DP_QPAIR_DELETING);
	q->correlation = m->hdr.correlation;
	dp_crew_send(&c->ctl->crew, q->worker, (struct dp_cmd){ .kind = DP_CMD_QP_DEL, .fd = -1, .num = q->handle },
	             &q->flight);
}

void dp_qp_release_all(struct dp_app *c)
{
	tn_list_foreach(node, &c->qps) {
		struct local_qp *q = tn_list_entry(node, struct local_qp, link);
		if (q->flight.waiting == 0 || c->ctl->crew.cnt == 0)
			qp_free(q);
		else if (q->state == DP_QPAIR_ADDING)
			qp_move(q, DP_QPAIR_DEAD); /* its own acknowledgement is still to come */
	}
}
