/* SPDX-License-Identifier: Apache-2.0
 * The worker's half of a queue pair: private ring state, what is outstanding, open batches. Made by the control
 * thread, owned by one worker between DP_CMD_QP_ADD and the acknowledgement of its removal. */
#ifndef DP_INGRESS_QP_H
#define DP_INGRESS_QP_H

#include "dataplane/request/request.h"
#include "dataplane/transport/transport.h"
#include "dataplane/worker.h"
#include "shm-ring/spsc.h"

struct dp_hot;

struct dp_qp {
	struct tn_list link;       /* the worker's queue pairs */
	struct tn_list hot_link;   /* hot.h; not linked: cold, or done with */
	struct dp_hot *hot;        /* since it was added to a worker */
	uint64_t work_ns;          /* last time it had work, or was asked whether it should turn cold */
	struct tn_list dirty_link; /* has completions that are not published, or not rung, yet */
	struct shr_qp_view view;
	struct shr_sq_cons sq;
	struct shr_cq_prod cq;
	struct dp_pollable bell;   /* doorbell_fd in the worker's epoll set */
	struct tn_list requests;   /* outstanding, also zombies, in ingress order */
	uint32_t outstanding;      /* READs and WRITEs accepted, not terminal */
	uint32_t unrung;           /* completions since its application was last rung or seen awake */
	uint64_t ring_ns;          /* with unrung: ring a sleeping application by then */
	uint32_t note_cnt;         /* NOTIFY with payload outstanding */
	struct tn_list *batches;   /* open batches, hashed by number */
	uint32_t batch_mask, batch_cnt;
	struct tn_list *tokens;    /* outstanding and not terminal, hashed by token */
	uint32_t token_mask;
	bool blocked;              /* its last drain took nothing although entries wait: no room for them yet */
	bool cold;                 /* its doorbell is armed, nobody looks */
	bool broken;               /* its ring broke the rules: never looked at again */
	bool broken_told;          /* DP_EVT_CLIENT_BROKEN is on its way */
	bool closing;              /* QP_DEL or CLIENT_DEL: nothing is drained any more */
	struct dp_qp_cfg cfg;
};

/* Outstanding from now on, until it leaves. A terminal request can no longer be found by its token (renounce) although
 * it may still be outstanding. */
void dp_qp_enter(struct dp_qp *qp, struct dp_request *r);
TN_INLINE void dp_qp_renounce(struct dp_request *r) { tn_list_unlink(&r->token_link); }
TN_INLINE void dp_qp_leave(struct dp_request *r)
{
	tn_list_unlink(&r->token_link);
	tn_list_unlink(&r->qp_link);
}
/* The oldest one with this token that is not terminal, or NULL. */
struct dp_request *dp_qp_request(const struct dp_qp *qp, uint64_t token);

/* The open batch of this number; NULL when there is none. */
struct dp_batch *dp_qp_batch(const struct dp_qp *qp, uint32_t number);
/* Enter a new batch object under its number. */
void dp_qp_batch_add(struct dp_qp *qp, struct dp_batch *b);
/* Its number may be used again; members keep it alive. */
void dp_qp_batch_close(struct dp_qp *qp, struct dp_batch *b);

/* Nothing of it is in flight and nothing will be taken from it. */
TN_INLINE bool dp_qp_quiet(const struct dp_qp *qp) { return tn_list_empty(&qp->requests); }

#endif
