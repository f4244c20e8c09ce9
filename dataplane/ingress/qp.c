/* SPDX-License-Identifier: Apache-2.0
 * Building a queue pair's private half, and its tables of open batches and of tokens. new/free: control thread; the rest: worker. */
#include "dataplane/ingress/qp.h"

#include <stdlib.h>

#include "common/bits.h"

static struct tn_list *buckets_new(uint32_t cnt)
{
	struct tn_list *b = calloc(cnt, sizeof *b);
	for (uint32_t i = 0; b && i < cnt; i++)
		tn_list_init(&b[i]);
	return b;
}

struct dp_qp *dp_qp_new(const struct dp_qp_cfg *cfg)
{
	struct shr_qp_layout lay;
	if (shr_qp_layout(cfg->sq_entries, cfg->note_slots, &lay) != TN_OK || lay.region_bytes != cfg->region_bytes ||
	    lay.cq_entries != cfg->cq_entries)
		return NULL;
	struct dp_qp *qp = calloc(1, sizeof *qp);
	uint32_t buckets = (uint32_t)tn_pow2_ceil(TN_MIN(lay.sq_entries, 256u));
	uint32_t tokens = (uint32_t)tn_pow2_ceil(lay.sq_entries);
	struct tn_list *by_batch = buckets_new(buckets), *by_token = buckets_new(tokens);
	if (!qp || !by_batch || !by_token) {
		free(by_token);
		free(by_batch);
		free(qp);
		return NULL;
	}
	qp->cfg = *cfg;
	/* From our own numbers, not from the header: the application may already be writing to it. */
	qp->view = (struct shr_qp_view){
		.lay = lay,
		.qp = (struct shr_qp_shm *)(void *)cfg->region,
		.sq = (struct shr_sqe_shm *)(void *)(cfg->region + lay.sq_off),
		.cq = (struct shr_cqe_shm *)(void *)(cfg->region + lay.cq_off),
		.notes = lay.note_slots ? cfg->region + lay.note_off : NULL,
	};
	shr_sq_cons_init(&qp->sq, &qp->view);
	shr_cq_prod_init(&qp->cq, &qp->view);
	tn_list_init(&qp->link);
	tn_list_init(&qp->hot_link);
	tn_list_init(&qp->dirty_link);
	tn_list_init(&qp->requests);
	qp->batches = by_batch;
	qp->batch_mask = buckets - 1;
	qp->tokens = by_token;
	qp->token_mask = tokens - 1;
	qp->bell.fd = -1;
	return qp;
}

void dp_qp_free(struct dp_qp *qp)
{
	if (!qp)
		return;
	free(qp->tokens);
	free(qp->batches);
	free(qp);
}

static uint32_t hash(const struct dp_qp *qp, uint64_t key)
{
	return (uint32_t)((key ^ qp->cfg.seed) * UINT64_C(0x9e3779b97f4a7c15) >> 40);
}

static struct tn_list *bucket(const struct dp_qp *qp, uint32_t number)
{
	return &qp->batches[hash(qp, number) & qp->batch_mask];
}

static struct tn_list *token_bucket(const struct dp_qp *qp, uint64_t token)
{
	return &qp->tokens[hash(qp, token) & qp->token_mask];
}

void dp_qp_enter(struct dp_qp *qp, struct dp_request *r)
{
	tn_list_push_back(&qp->requests, &r->qp_link);
	tn_list_push_back(token_bucket(qp, r->sqe.token), &r->token_link);
}

struct dp_request *dp_qp_request(const struct dp_qp *qp, uint64_t token)
{
	tn_list_foreach(node, token_bucket(qp, token)) {
		struct dp_request *r = tn_list_entry(node, struct dp_request, token_link);
		if (r->sqe.token == token)
			return r;
	}
	return NULL;
}

struct dp_batch *dp_qp_batch(const struct dp_qp *qp, uint32_t number)
{
	tn_list_foreach(node, bucket(qp, number)) {
		struct dp_batch *b = tn_list_entry(node, struct dp_batch, link);
		if (b->number == number)
			return b;
	}
	return NULL;
}

void dp_qp_batch_add(struct dp_qp *qp, struct dp_batch *b)
{
	tn_list_push_front(bucket(qp, b->number), &b->link);
	qp->batch_cnt++;
}

void dp_qp_batch_close(struct dp_qp *qp, struct dp_batch *b)
{
	if (!tn_list_linked(&b->link))
		return;
	tn_list_unlink(&b->link);
	qp->batch_cnt--;
}
